//! What the file system of a folder can do for a commit, tried without leaving a trace, and what a crash may have left.

use std::os::fd::AsFd;

use cotenant_model::{FolderId, RelPath, WsPath};
use rustix::fs::{Mode, OFlags};

use crate::sys;
use crate::tree::Tree;
use crate::walk::{Options, is_temporary};

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Files without a name (`O_TMPFILE`): a new content is put down without anyone seeing it.
    pub unnamed_files: bool,
    /// Leases (`F_SETLEASE`): writers are held off between the check and the swap.
    pub leases: bool,
}

impl Tree {
    /// Tries the folder's file system with a file that never has a name.
    pub fn probe(&self, folder: FolderId) -> Probe {
        let Some(root) = self.root_dir(folder) else { return Probe::default() };
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let Ok(written) = rustix::fs::openat(root.fd(), ".", flags, Mode::RUSR | Mode::WUSR) else {
            return Probe::default();
        };
        // A lease for reading wants nobody to have the file open for writing.
        let read = sys::reopen_for_reading(written.as_fd());
        drop(written);
        let leases = read.is_ok_and(|file| sys::swap::lease(file.as_fd()).is_ok());
        Probe { unnamed_files: true, leases }
    }

    /// Files with the name of a commit's temporary ones. While no change is under way, none of them is ours: they are
    /// reported to a human, never removed (R6).
    pub fn strays(&self) -> Vec<WsPath> {
        let mut strays = Vec::new();
        let options = Options { include_ignored: true, temporaries: true, ..Options::default() };
        for index in 0..self.folders().len() {
            let folder = FolderId(u16::try_from(index).unwrap_or(u16::MAX));
            let walked = self.walk(&WsPath { folder, ..WsPath::default() }, options);
            walked.for_each(|path, _| {
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                if is_temporary(name)
                    && let Ok(path) = RelPath::from_bytes(path)
                {
                    strays.push(WsPath { folder, path });
                }
            });
        }
        strays
    }
}
