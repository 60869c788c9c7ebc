//! What is asked for: a script, where it runs, what it may touch, and how much it may use.

use std::ffi::CString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cotenant_model::{ExecLimits, RelPath};

use crate::sandbox::{OpenOverlay, StartError};

/// A folder that a command sees, at its own host path.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Its host path: absolute, resolved.
    pub host: PathBuf,
    /// The directory itself, where the caller holds it: the path must still lead there, or nothing starts.
    pub dir: Option<Arc<OwnedFd>>,
    /// Whether it may be written.
    pub writable: bool,
}

/// A path in a folder, by the folder's place in [`Request::folders`].
pub type InFolder = (usize, RelPath);

/// Where writes go.
#[derive(Clone, Debug)]
pub enum How {
    /// Into an upper layer over every writable folder, to be looked at afterwards.
    Staged {
        /// Ignored directories that exist: what is written there is written for real.
        through: Vec<InFolder>,
        /// Paths that exist and may not be written.
        read_only: Vec<InFolder>,
    },
    /// Into the folders.
    Direct {
        /// Paths that exist and may not be written. They and the directories above them cannot be renamed either.
        read_only: Vec<InFolder>,
        /// Git may write the `.git` at the top of each writable folder; its config, hooks, info and modules it may not.
        git: bool,
    },
    /// Into an overlay that stays open. The folders are the overlay's; those of the request are not looked at.
    Overlay(Arc<OpenOverlay>),
}

/// How much of its output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes of the beginning, and again of the end, that are kept in memory.
    pub memory: usize,
    /// Bytes that are kept on the disk; past them only the end is.
    pub disk: u64,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        OutputLimits { memory: 1 << 18, disk: 1 << 28 }
    }
}

/// A command to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// For `bash -c`, or `sh -c` where there is no bash.
    pub script: String,
    /// The directory it runs in.
    pub cwd: InFolder,
    /// Its whole environment but for what the sandbox itself sets: `HOME`, `TMPDIR`, `PWD`. See
    /// [`environment`](super::environment).
    pub env: Vec<(String, String)>,
    /// It is ended after so long.
    pub timeout: Duration,
    /// Whether it may use the machine's network; otherwise it has its session's loopback.
    pub network: bool,
    /// What it sees.
    pub folders: Vec<Folder>,
    /// Where its writes go.
    pub how: How,
    /// What it may use at most.
    pub limits: ExecLimits,
    /// Directories outside that it may write; those that are there.
    pub caches: Vec<PathBuf>,
    /// How much of its output is kept.
    pub output: OutputLimits,
}

impl Request {
    /// A request with the usual limits, to be changed where it should be otherwise.
    pub fn new(script: &str, folders: Vec<Folder>, how: How) -> Request {
        Request {
            script: script.to_owned(),
            cwd: (0, RelPath::root()),
            env: Vec::new(),
            timeout: Duration::from_secs(60),
            network: false,
            folders,
            how,
            limits: ExecLimits::default(),
            caches: Vec::new(),
            output: OutputLimits::default(),
        }
    }

    /// The folders that the command sees.
    pub(crate) fn seen(&self) -> &[Folder] {
        match &self.how {
            How::Overlay(overlay) => overlay.folders(),
            _ => &self.folders,
        }
    }

    /// The host path of its directory.
    pub(crate) fn directory(&self) -> Result<PathBuf, StartError> {
        let (folder, path) = &self.cwd;
        let folder = self.seen().get(*folder);
        let folder =
            folder.ok_or_else(|| StartError::BadRequest(format!("there is no folder {}", self.cwd.0)))?;
        Ok(folder.host.join(crate::run::os_path(path)))
    }
}

/// A text as the kernel takes it.
pub(crate) fn c_string(text: impl Into<Vec<u8>>, what: impl fmt::Display) -> Result<CString, StartError> {
    CString::new(text).map_err(|_| StartError::BadRequest(format!("{what} has a NUL byte")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_below_its_folder() {
        let folder = Folder { host: "/w/root".into(), dir: None, writable: true };
        let how = How::Direct { read_only: Vec::new(), git: false };
        let mut request = Request::new("true", vec![folder], how);
        assert_eq!(request.directory(), Ok(PathBuf::from("/w/root/")));
        request.cwd = (0, RelPath::parse("a/b").unwrap());
        assert_eq!(request.directory(), Ok(PathBuf::from("/w/root/a/b")));
        request.cwd = (1, RelPath::root());
        assert!(matches!(request.directory(), Err(StartError::BadRequest(_))));
    }

    #[test]
    fn a_nul_byte_is_named() {
        let error = c_string("a\0b", "the command").unwrap_err();
        assert_eq!(error.to_string(), "the command has a NUL byte");
    }
}
