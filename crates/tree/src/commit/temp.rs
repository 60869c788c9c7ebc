//! A post-image before it has a name: an unnamed file that already is what the target is to become.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::inode::Inode;
use super::meta::{Attributes, Unlike};
use super::spot::{FileId, Held, Spot};

/// What the new file is like, beside its bytes.
#[derive(Clone, Copy, Debug)]
pub enum Like<'a> {
    /// A new file with these permission bits; `None` for 0666 less the umask and what the directory's ACL says.
    New(Option<u32>),
    /// Owner, mode, ACL and attributes of another.
    File(&'a Attributes),
}

/// Why a post-image could not be put down.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The file system has no unnamed files, so none could be swapped in without a trace.
    #[error("the file system has no unnamed temporary files (O_TMPFILE)")]
    Unsupported,
    /// The new file cannot be made like the old one.
    #[error(transparent)]
    Unlike(#[from] Unlike),
    /// The system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file without a name, open for reading only: nobody can write into it before it is linked, and an open descriptor
/// for writing would keep the kernel from granting a lease on it afterwards.
#[derive(Debug)]
pub struct Temp {
    inode: Inode,
}

impl Temp {
    /// Puts `content` down on the file system of `home`. Nothing is visible to anyone, nothing is synced; a crash
    /// leaves nothing.
    pub fn stage(home: &Held, content: &[u8], like: Like<'_>) -> Result<Temp, StageError> {
        // A copy of another file is private until it has that file's own mode.
        let mode = match like {
            Like::New(None) => 0o666,
            Like::New(Some(mode)) => mode & 0o777,
            Like::File(_) => 0o600,
        };
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(home.fd(), ".", flags, Mode::from_raw_mode(mode)) {
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => return Err(StageError::Unsupported),
            other => other.map_err(io::Error::from)?,
        };
        let mut file = File::from(fd);
        file.write_all(content)?;
        match like {
            Like::File(attributes) => attributes.give(file.as_fd())?,
            Like::New(Some(mode)) => {
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o7777)).map_err(io::Error::from)?;
            }
            Like::New(None) => {}
        }
        Ok(Temp { inode: Inode::new(reopen(file.as_fd())?)? })
    }

    /// Which inode it is.
    pub fn id(&self) -> FileId {
        self.inode.id()
    }

    /// Permission bits.
    pub fn mode(&self) -> u32 {
        self.inode.mode()
    }

    /// The file.
    pub fn inode(&self) -> &Inode {
        &self.inode
    }

    /// Its descriptor, open for reading.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.inode.fd()
    }

    /// Makes it like `attributes` once more: the target's were changed since it was staged.
    pub fn give(&self, attributes: &Attributes) -> Result<(), Unlike> {
        attributes.give(self.inode.fd())
    }

    /// Gives it a name; `AlreadyExists` if anything stands there.
    pub fn link(&self, to: &Spot) -> io::Result<()> {
        // With the descriptor alone where the kernel lets us, else by its entry in /proc.
        match rustix::fs::linkat(self.fd(), "", to.dir().fd(), to.name(), AtFlags::EMPTY_PATH) {
            Err(Errno::NOENT | Errno::PERM | Errno::ACCESS) => {
                let path = proc_path(self.fd());
                Ok(rustix::fs::linkat(
                    rustix::fs::CWD,
                    path,
                    to.dir().fd(),
                    to.name(),
                    AtFlags::SYMLINK_FOLLOW,
                )?)
            }
            other => Ok(other?),
        }
    }
}

/// The same file by a second descriptor, for reading only.
fn reopen(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::open(proc_path(fd), flags, Mode::empty())?)
}

fn proc_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
