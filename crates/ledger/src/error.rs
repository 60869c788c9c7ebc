//! What can go wrong in the ledger, and how it is told to a caller.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cotenant_model::{Code, Digest, Refusal};

/// Why the ledger could not do what was asked. Cheap to clone: one failure answers every caller that waited for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// Another process owns the state folder.
    #[error("the state folder {} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// The state folder lies on a file system on which a write-ahead log is not safe.
    #[error("the state folder {} lies on {kind}, where a write-ahead log is not safe", dir.display())]
    Unsuitable {
        /// The folder.
        dir: PathBuf,
        /// The kind of file system, such as `NFS`.
        kind: &'static str,
    },
    /// The state folder was written by a later version.
    #[error("the ledger has schema {found}, this version knows up to {known}")]
    Newer {
        /// The schema's version on disk.
        found: u32,
        /// The latest one this version knows.
        known: u32,
    },
    /// The disk of the state folder is full; nothing was written.
    #[error("the disk that holds the ledger is full")]
    OutOfSpace,
    /// A write failed in a way after which nothing more may be trusted: every write is refused until
    /// [`Ledger::reopen`](crate::Ledger::reopen) (R13).
    #[error("the ledger stopped writing after a failure: {0}")]
    Failed(Arc<str>),
    /// A file of the state folder could not be read or written.
    #[error("{what}: {error}")]
    Io {
        /// What was being done, to which file.
        what: Arc<str>,
        /// The system's words.
        error: Arc<str>,
    },
    /// The database answered with an error on a read.
    #[error("the ledger's database: {0}")]
    Database(Arc<str>),
    /// An image that should be stored is not.
    #[error("the image {0} is not in the store")]
    Missing(Digest),
    /// A stored image does not have the digest it is stored under.
    #[error("the stored image {0} is damaged")]
    Corrupt(Digest),
}

impl LedgerError {
    /// The refusal that a call is answered with: `OUT_OF_SPACE`, or `IO_ERROR` naming the ledger.
    pub fn refusal(&self) -> Refusal {
        let code = match self {
            LedgerError::OutOfSpace => Code::OutOfSpace,
            _ => Code::IoError,
        };
        let next = match self {
            LedgerError::OutOfSpace => {
                "free space on the disk that holds cotenant's state folder, then repeat the call"
            }
            LedgerError::Locked(_) => "stop the other cotenant process of this workspace",
            LedgerError::Unsuitable { .. } => "set state_dir in cotenant.toml to a folder on a local disk",
            LedgerError::Newer { .. } => {
                "use the version of cotenant that wrote this state folder, or a later one"
            }
            LedgerError::Failed(_) => {
                "repeat the call; if it is refused again, check the disk of cotenant's state folder"
            }
            LedgerError::Io { .. } | LedgerError::Database(_) => "check the disk of cotenant's state folder",
            LedgerError::Missing(_) | LedgerError::Corrupt(_) => {
                "the image cannot be restored; check the disk of cotenant's state folder"
            }
        };
        Refusal::new(code, format!("The ledger could not be used: {self}.")).fact("what", "ledger").next(next)
    }

    /// An I/O error on `path`. A full disk is told as such; a disk that reports damage ends all trust (R13).
    pub(crate) fn io(what: &str, path: &Path, error: impl Into<std::io::Error>) -> LedgerError {
        let error: std::io::Error = error.into();
        let what = format!("{what} {}", path.display());
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => LedgerError::OutOfSpace,
            _ if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                LedgerError::Failed(format!("{what}: {error}").into())
            }
            _ => LedgerError::Io { what: what.into(), error: error.to_string().into() },
        }
    }
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> LedgerError {
        if is_full(&error) {
            LedgerError::OutOfSpace
        } else {
            LedgerError::Database(error.to_string().into())
        }
    }
}

/// Whether SQLite found no room: for its pages, or for the shared index of the log.
fn is_full(error: &rusqlite::Error) -> bool {
    let Some(code) = error.sqlite_error() else { return false };
    code.code == rusqlite::ErrorCode::DiskFull || code.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE
}
