//! Opening and looking at names beneath a held directory: never above it, never through a link, never on another mount.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, makedev, openat2, statx};
use rustix::io::Errno;

use super::at_once;
use crate::dir::{Ident, Stat};
use crate::error::NotAFile;

/// Nothing is resolved but plain names beneath the descriptor, on the same mount.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    File,
    Dir,
    Link,
    Fifo,
    Socket,
    Device,
}

impl Flavour {
    /// What it is called where a regular file was wanted.
    pub(crate) fn what(self) -> NotAFile {
        match self {
            Flavour::Fifo => NotAFile::Fifo,
            Flavour::Socket => NotAFile::Socket,
            Flavour::Dir => NotAFile::Directory,
            Flavour::Link => NotAFile::Link,
            Flavour::File | Flavour::Device => NotAFile::Device,
        }
    }
}

/// What `statx` tells of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub(crate) flavour: Flavour,
    pub(crate) stat: Stat,
    pub(crate) mount_id: u64,
}

/// Opens a host directory to be served; the one place where a path is followed as the system does.
pub(crate) fn open_root(path: &std::path::Path) -> Result<OwnedFd, Errno> {
    if !at_once::may_wait() {
        return Err(at_once::miss());
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Opens `path` (relative, no links in it) beneath `dir` with `flags`; links anywhere in it are `ELOOP`, another mount
/// is `EXDEV`. Never blocks, never becomes a controlling terminal.
pub(crate) fn open_beneath(dir: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    if !at_once::may_wait() {
        return at_once::open(dir, path, flags, BENEATH);
    }
    loop {
        // EAGAIN: something was renamed while the kernel looked; EINTR: a signal.
        match openat2(dir, path, flags, Mode::empty(), BENEATH) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Opens the directory `path` beneath `dir` as a place to work in (`O_PATH`).
pub(crate) fn open_dir(dir: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    open_beneath(dir, path, OFlags::PATH | OFlags::DIRECTORY)
}

/// Opens `path` beneath `dir` for reading, without waiting for the other end of a FIFO.
pub(crate) fn open_file(dir: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    open_beneath(dir, path, OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK)
}

/// What the open descriptor is.
pub(crate) fn stat_beneath(fd: BorrowedFd<'_>) -> Result<Meta, Errno> {
    meta(fd, b"", AtFlags::EMPTY_PATH)
}

/// What `name` in `dir` is; a link is not followed.
pub(crate) fn stat_leaf(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Meta, Errno> {
    if !at_once::may_wait() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        return stat_beneath(at_once::open(dir, name, flags, ResolveFlags::empty())?.as_fd());
    }
    meta(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The identity of an open directory.
pub(crate) fn stat_dir(fd: BorrowedFd<'_>) -> Result<Ident, Errno> {
    let meta = stat_beneath(fd)?;
    Ok(Ident { dev: meta.stat.dev, ino: meta.stat.ino, mount_id: meta.mount_id })
}

/// Where the link `name` in `dir` points, as it is written.
pub(crate) fn read_link(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Vec<u8>, Errno> {
    if !at_once::may_wait() {
        return Err(at_once::miss());
    }
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
}

fn meta(dir: BorrowedFd<'_>, name: &[u8], flags: AtFlags) -> Result<Meta, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    // What is open has its attributes in memory; whether they are still those of a server elsewhere is not asked.
    let sync = if at_once::may_wait() { AtFlags::empty() } else { AtFlags::STATX_DONT_SYNC };
    let found = statx(dir.as_fd(), name, flags | AtFlags::NO_AUTOMOUNT | sync, wanted)?;
    Ok(Meta { flavour: flavour(&found), stat: stat(&found), mount_id: found.stx_mnt_id })
}

fn flavour(found: &Statx) -> Flavour {
    match FileType::from_raw_mode(u32::from(found.stx_mode)) {
        FileType::RegularFile => Flavour::File,
        FileType::Directory => Flavour::Dir,
        FileType::Symlink => Flavour::Link,
        FileType::Fifo => Flavour::Fifo,
        FileType::Socket => Flavour::Socket,
        _ => Flavour::Device,
    }
}

fn stat(found: &Statx) -> Stat {
    let nanos = |time: &rustix::fs::StatxTimestamp| {
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    Stat {
        dev: makedev(found.stx_dev_major, found.stx_dev_minor),
        ino: found.stx_ino,
        size: found.stx_size,
        mode: u32::from(found.stx_mode),
        uid: found.stx_uid,
        gid: found.stx_gid,
        nlink: found.stx_nlink,
        mtime_ns: nanos(&found.stx_mtime),
        ctime_ns: nanos(&found.stx_ctime),
    }
}

/// The host path of an open directory, as the kernel names it now.
pub(crate) fn path_of(fd: impl AsFd) -> Result<std::path::PathBuf, Errno> {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStringExt;
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new())?.into_bytes();
    Ok(std::ffi::OsString::from_vec(path).into())
}

/// The time as the directory's file system stamps it, nanoseconds since the Unix epoch: that of a file without a name.
/// `None` where such files are not to be had, or nothing may be written.
pub(crate) fn time_at(dir: BorrowedFd<'_>) -> Option<i128> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, ".", flags, Mode::RUSR | Mode::WUSR).ok()?;
    Some(stat_beneath(file.as_fd()).ok()?.stat.ctime_ns)
}

/// Opens `path` beneath `dir` as it is, a link as a link, to look at it (`O_PATH`).
pub(crate) fn open_entry(dir: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    open_beneath(dir, path, OFlags::PATH | OFlags::NOFOLLOW)
}

/// The same file once more, for reading only.
pub(crate) fn reopen_for_reading(fd: impl AsFd) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    rustix::fs::open(link, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// The identity of the directory that a host path names now.
pub(crate) fn ident_of_path(path: &std::path::Path) -> Option<Ident> {
    stat_dir(open_root(path).ok()?.as_fd()).ok()
}
