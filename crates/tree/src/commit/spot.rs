//! Names in held directories: looked at without following, exchanged, renamed without replacing, removed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use cotenant_model::{Digest, Entry, EntryKind, WsPath};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use super::inode::Inode;
use crate::{Ident, Tree, sys};

/// The identity of an inode, as long as something (a name, a descriptor) keeps it from being reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

impl FileId {
    pub(super) fn of(stat: &Stat) -> FileId {
        FileId { dev: stat.st_dev, ino: stat.st_ino }
    }
}

/// A directory of the workspace, held open. It follows the directory wherever that is moved, so a step that counts asks
/// [`Held::in_place`] afterwards.
#[derive(Debug)]
pub struct Held {
    fd: OwnedFd,
    id: Ident,
    at: WsPath,
}

/// What the system says of a directory that is no longer at its path: nothing there, something else, a link on the way,
/// another mount.
const GONE: [Errno; 4] = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::XDEV];

impl Held {
    /// Opens the directory at `at`, a resolved path: a link on the way is an error (`ELOOP`).
    pub fn open(tree: &Tree, at: &WsPath) -> io::Result<Held> {
        let fd = beneath(tree, at, OFlags::RDONLY)?;
        let id = sys::stat_dir(fd.as_fd())?;
        Ok(Held { fd, id, at: at.clone() })
    }

    /// The directory at `at`, or `None` where no directory stands there any more.
    pub fn find(tree: &Tree, at: &WsPath) -> io::Result<Option<Held>> {
        present(Held::open(tree, at))
    }

    /// The directory `name` in `self`, or `None` where no directory stands there.
    pub fn find_child(&self, name: &[u8], at: &WsPath) -> io::Result<Option<Held>> {
        present(self.child(name, at))
    }

    /// The directory `name`d in `self` that stands, or will stand, at `at`.
    pub fn child(&self, name: &[u8], at: &WsPath) -> io::Result<Held> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        let id = sys::stat_dir(fd.as_fd())?;
        Ok(Held { fd, id, at: at.clone() })
    }

    /// Who it is.
    pub fn id(&self) -> Ident {
        self.id
    }

    /// Its inode.
    pub fn file_id(&self) -> FileId {
        FileId { dev: self.id.dev, ino: self.id.ino }
    }

    /// Where it was opened.
    pub fn at(&self) -> &WsPath {
        &self.at
    }

    /// Its descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The digest of all names below it, as [`Tree::below`] has it.
    pub fn listing(&self) -> io::Result<Digest> {
        Ok(crate::below::descend(self.fd.as_fd(), &mut |_, _, _| {})?)
    }

    /// `st_mode`.
    pub fn mode(&self) -> io::Result<u32> {
        Ok(rustix::fs::fstat(&self.fd)?.st_mode)
    }

    /// Whether its path, resolved anew from the folder, still leads to this very directory.
    pub fn in_place(&self, tree: &Tree) -> io::Result<bool> {
        match beneath(tree, &self.at, OFlags::PATH) {
            Ok(fd) => Ok(sys::stat_dir(fd.as_fd())? == self.id),
            // Nothing there, no directory, a link on the way, or another mount.
            Err(error) if GONE.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the directory's names durable.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    /// Bytes that may still be written on its file system by this user.
    pub fn free(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.fd)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Whether nothing stands in it.
    pub fn is_empty(&self) -> io::Result<bool> {
        let mut names = rustix::fs::Dir::read_from(&self.fd)?;
        Ok(names.all(|entry| entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))))
    }
}

/// `None` for a directory that is not there.
fn present<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(there) => Ok(Some(there)),
        Err(error) if GONE.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens the directory at `at` beneath its folder: plain names only, on the folder's own mount.
fn beneath(tree: &Tree, at: &WsPath, access: OFlags) -> io::Result<OwnedFd> {
    let root = tree.root_dir(at.folder).ok_or(io::ErrorKind::NotFound)?;
    let path: &[u8] = if at.path.is_root() { b"." } else { at.path.as_bytes() };
    Ok(sys::open_beneath(root.fd(), path, access | OFlags::DIRECTORY)?)
}

/// What stands at a name.
#[derive(Debug)]
pub enum Look {
    /// Nothing.
    Absent,
    /// A regular file, open for reading.
    File(Inode),
    /// A symbolic link: never followed.
    Link(Link),
    /// A directory.
    Directory(FileId),
    /// A regular file that this user may not read.
    Denied(FileId),
    /// A FIFO, socket or device: never opened.
    Other(FileId),
}

/// A symbolic link as it was seen. Nobody can write into one: another text is another inode.
#[derive(Debug)]
pub struct Link {
    /// Keeps the inode number from being reused.
    fd: OwnedFd,
    /// Its inode.
    pub id: FileId,
    /// The text of its target.
    pub target: Vec<u8>,
    /// Owner and group.
    pub owner: (u32, u32),
}

/// A file or a link.
#[derive(Debug)]
pub enum Leaf {
    /// A regular file, open for reading.
    File(Inode),
    /// A symbolic link.
    Link(Link),
}

impl Leaf {
    /// Which inode it is.
    pub fn id(&self) -> FileId {
        match self {
            Leaf::File(inode) => inode.id(),
            Leaf::Link(link) => link.id,
        }
    }

    /// What it is and the digest of its bytes as they are now.
    pub fn entry(&self) -> io::Result<Entry> {
        match self {
            Leaf::File(inode) => inode.digest().map(Entry::file),
            Leaf::Link(link) => Ok(Entry::link(Digest::of(&link.target))),
        }
    }

    /// Whether the last name it had, as far as the kernel knows, is `spot`.
    pub fn was_last_at(&self, spot: &Spot) -> io::Result<bool> {
        let fd = match self {
            Leaf::File(inode) => inode.fd(),
            Leaf::Link(link) => link.fd.as_fd(),
        };
        let last = sys::path_of(fd)?.into_os_string().into_encoded_bytes();
        let last = last.strip_suffix(b" (deleted)").unwrap_or(&last);
        let mut path = sys::path_of(&spot.dir.fd)?.into_os_string().into_encoded_bytes();
        path.push(b'/');
        path.extend_from_slice(&spot.name);
        Ok(last == path)
    }

    /// `st_mode` when it was looked at.
    pub fn mode(&self) -> u32 {
        match self {
            Leaf::File(inode) => EntryKind::File.bits() | inode.mode(),
            Leaf::Link(_) => EntryKind::Link.bits() | 0o777,
        }
    }

    /// Owner and group when it was looked at.
    pub fn owner(&self) -> (u32, u32) {
        match self {
            Leaf::File(inode) => inode.owner(),
            Leaf::Link(link) => link.owner,
        }
    }
}

impl Look {
    /// The inode seen; `None` for an absent one.
    pub fn id(&self) -> Option<FileId> {
        match self {
            Look::Absent => None,
            Look::File(inode) => Some(inode.id()),
            Look::Link(link) => Some(link.id),
            Look::Directory(id) | Look::Denied(id) | Look::Other(id) => Some(*id),
        }
    }

    /// The file or link with the digest of its bytes as they are now; `None` for anything else.
    pub fn entry(&self) -> io::Result<Option<Entry>> {
        match self {
            Look::File(inode) => Ok(Some(Entry::file(inode.digest()?))),
            Look::Link(link) => Ok(Some(Entry::link(Digest::of(&link.target)))),
            _ => Ok(None),
        }
    }

    /// The file or link; `None` for anything else.
    pub fn leaf(self) -> Option<Leaf> {
        match self {
            Look::File(inode) => Some(Leaf::File(inode)),
            Look::Link(link) => Some(Leaf::Link(link)),
            _ => None,
        }
    }
}

/// A name in a held directory.
#[derive(Clone, Debug)]
pub struct Spot {
    dir: Arc<Held>,
    name: Box<[u8]>,
}

impl Spot {
    /// The name `name`, one component, in `dir`.
    pub fn new(dir: Arc<Held>, name: &[u8]) -> Spot {
        debug_assert!(!name.is_empty() && !name.contains(&b'/'), "one component");
        Spot { dir, name: name.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Arc<Held> {
        &self.dir
    }

    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The path it had when its directory was opened.
    pub fn at(&self) -> WsPath {
        self.dir.at.join(&self.name)
    }

    /// The inode that stands there, not followed.
    pub fn id(&self) -> io::Result<Option<FileId>> {
        match rustix::fs::statat(&self.dir.fd, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileId::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What stands there; a regular file is opened for reading. Never blocks, never follows.
    pub fn look(&self) -> io::Result<Look> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let probe =
                match rustix::fs::openat(&self.dir.fd, &*self.name, OFlags::PATH | flags, Mode::empty()) {
                    Err(Errno::NOENT) => return Ok(Look::Absent),
                    other => other?,
                };
            let seen = rustix::fs::fstat(&probe)?;
            match FileType::from_raw_mode(seen.st_mode) {
                FileType::RegularFile => {}
                FileType::Directory => return Ok(Look::Directory(FileId::of(&seen))),
                FileType::Symlink => {
                    // By the descriptor, so that it is this very inode's text.
                    let target = rustix::fs::readlinkat(&probe, "", Vec::new())?.into_bytes();
                    let owner = (seen.st_uid, seen.st_gid);
                    return Ok(Look::Link(Link { id: FileId::of(&seen), target, owner, fd: probe }));
                }
                _ => return Ok(Look::Other(FileId::of(&seen))),
            }
            let open = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | flags;
            match rustix::fs::openat(&self.dir.fd, &*self.name, open, Mode::empty()) {
                Ok(fd) => {
                    let inode = Inode::new(fd)?;
                    if inode.id() == FileId::of(&seen) {
                        return Ok(Look::File(inode));
                    }
                }
                // It was replaced between the two looks: look again.
                Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => {}
                Err(Errno::ACCESS) => return Ok(Look::Denied(FileId::of(&seen))),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Removes the name of a file.
    pub fn unlink(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir.fd, &*self.name, AtFlags::empty())?)
    }

    /// Makes a directory there, with these permission bits; `None`: 0777 less the umask.
    pub fn make_dir(&self, mode: Option<u32>) -> io::Result<()> {
        let first = if mode.is_some() { 0o700 } else { 0o777 };
        rustix::fs::mkdirat(&self.dir.fd, &*self.name, Mode::from_raw_mode(first))?;
        if let Some(mode) = mode {
            // Past the umask, and with the bits that mkdir does not take.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = rustix::fs::openat(&self.dir.fd, &*self.name, flags, Mode::empty())?;
            rustix::fs::fchmod(made, Mode::from_raw_mode(mode & 0o7777))?;
        }
        Ok(())
    }

    /// Makes a symbolic link there, with that owner if one is given; `AlreadyExists` if anything stands there.
    pub fn make_link(&self, target: &[u8], owner: Option<(u32, u32)>) -> io::Result<()> {
        rustix::fs::symlinkat(target, &self.dir.fd, &*self.name)?;
        let Some((uid, gid)) = owner else { return Ok(()) };
        let made = rustix::fs::statat(&self.dir.fd, &*self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (made.st_uid, made.st_gid) == (uid, gid) {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        Ok(rustix::fs::chownat(&self.dir.fd, &*self.name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Removes an empty directory there.
    pub fn remove_dir(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir.fd, &*self.name, AtFlags::REMOVEDIR)?)
    }
}

/// Swaps what stands at the two names, atomically; both must exist.
pub fn exchange(a: &Spot, b: &Spot) -> io::Result<()> {
    move_with(a, b, RenameFlags::EXCHANGE)
}

/// Renames `from` to `to`; `AlreadyExists` if anything stands there.
pub fn rename(from: &Spot, to: &Spot) -> io::Result<()> {
    move_with(from, to, RenameFlags::NOREPLACE)
}

fn move_with(from: &Spot, to: &Spot, flags: RenameFlags) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(&from.dir.fd, &*from.name, &to.dir.fd, &*to.name, flags)?)
}

/// What every temporary name begins with; 16 hex digits follow.
pub const TEMP_PREFIX: &str = ".cotenant-";

/// A temporary name that nobody else has: 64 random bits, nothing of the target's own name.
pub fn fresh_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(format!("{TEMP_PREFIX}{:016x}", u64::from_ne_bytes(bytes)))
}
