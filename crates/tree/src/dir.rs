//! A held directory and what identifies it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::sys;

/// The identity of a directory while it is held: equal means the same directory on the same mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ident {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Mount id; 0 where the kernel does not tell.
    pub mount_id: u64,
}

/// What is known of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Length in bytes.
    pub size: u64,
    /// File type and permission bits, as in `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Hard links.
    pub nlink: u32,
    /// Last change of the content, nanoseconds since the Unix epoch.
    pub mtime_ns: i128,
    /// Last change of content or attributes, nanoseconds since the Unix epoch.
    pub ctime_ns: i128,
}

/// A directory held by an `O_PATH` descriptor: it stays the same one whatever happens to its name.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    ident: Ident,
}

impl Dir {
    pub(crate) fn new(fd: OwnedFd) -> Result<Dir, Errno> {
        let ident = sys::stat_dir(fd.as_fd())?;
        Ok(Dir { fd, ident })
    }

    /// The descriptor; good for the `*at` calls, not for reading the directory or syncing it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// What identifies it.
    pub fn ident(&self) -> Ident {
        self.ident
    }
}
