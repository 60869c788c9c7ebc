//! What a staged command left: an upper layer, read as the list of paths that it changes.

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cotenant_model::RelPath;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, chmodat, openat2, readlinkat, statat,
};
use rustix::io::Errno;

use super::compose::layers;
use super::points;

/// Why an upper layer could not be read or moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpperError {
    /// The system's answer, and on what.
    #[error("{path}: {error}")]
    Io {
        /// Where, relative to the folder.
        path: RelPath,
        /// The system's words.
        error: String,
    },
    /// There is no such layer: the folder was not writable, or not part of the run.
    #[error("folder {0} has no upper layer")]
    NoLayer(usize),
    /// More entries than may be looked at.
    #[error("the command changed more than {0} paths")]
    TooMany(usize),
}

/// Mode, owner and times of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits such as `0o644`, set-id and sticky bits among them.
    pub mode: u32,
    /// Owner and group.
    pub owner: (u32, u32),
    /// Modification time, in seconds and nanoseconds.
    pub modified: (i64, u32),
}

/// What stands at a path of an upper layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpperKind {
    /// What stood there below is gone.
    Whiteout,
    /// A directory.
    Dir {
        /// Nothing of what was below shows through: all that is not listed here is gone.
        opaque: bool,
        /// It was there before: only what is listed inside it, and perhaps its mode, changed.
        merged: bool,
    },
    /// A regular file; its content is read with [`Upper::open`].
    File {
        /// In bytes.
        size: u64,
        /// How many names it has in this layer.
        links: u64,
        /// Inode: two names of one file have the same.
        inode: u64,
        /// It is a changed copy of a file that was there, perhaps under another name.
        copied: bool,
    },
    /// A link and its target.
    Link(Vec<u8>),
    /// A FIFO, a socket, a device, or a path too long to name: never taken over.
    Other(&'static str),
}

/// One entry of an upper layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpperEntry {
    /// Relative to the folder.
    pub path: RelPath,
    /// What stands there.
    pub kind: UpperKind,
    /// Its attributes; of a whiteout they mean nothing.
    pub attributes: Attributes,
    /// Extended attributes that the command itself set, in `user.`: their names.
    pub xattrs: Vec<Vec<u8>>,
}

/// All entries of one folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// Every entry but those of `.git`, directories before what is in them, else in byte order.
    pub entries: Vec<UpperEntry>,
    /// Every path of `.git`, at any depth, that is no directory which was there before.
    pub git: Vec<RelPath>,
}

/// The upper layers of a run. Dropped, they are removed from the disk in the background.
#[derive(Clone)]
pub struct Upper {
    run: Arc<RunDir>,
}

/// A run's private directory, removed with its last user.
#[derive(Debug)]
pub(crate) struct RunDir(pub(crate) PathBuf);

impl Drop for RunDir {
    fn drop(&mut self) {
        points::remove_later(std::mem::take(&mut self.0));
    }
}

impl fmt::Debug for Upper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Upper").field(&self.run.0).finish()
    }
}

const NO_LINKS: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

impl Upper {
    pub(crate) fn new(run: Arc<RunDir>) -> Upper {
        Upper { run }
    }

    /// The layer of the folder with this place in [`Request::folders`](crate::run::Request::folders).
    pub(crate) fn layer(&self, folder: usize) -> Result<OwnedFd, UpperError> {
        let (upper, _) = layers(&self.run.0, folder);
        points::open_dir(&upper).map_err(|_| UpperError::NoLayer(folder))
    }

    /// Lists what the command left in a folder, at most `most` entries.
    pub fn walk(&self, folder: usize, most: usize) -> Result<Walk, UpperError> {
        let layer = self.layer(folder)?;
        let mut walk = Walk::default();
        let mut open = vec![RelPath::root()];
        // The next one is always the last: what lies in a directory comes before the directory's later siblings.
        while let Some(dir) = open.pop() {
            let mut inner = Vec::new();
            for entry in list(&layer, &dir)? {
                if walk.entries.len() + walk.git.len() >= most {
                    return Err(UpperError::TooMany(most));
                }
                let merged = matches!(entry.kind, UpperKind::Dir { merged: true, .. });
                if matches!(entry.kind, UpperKind::Dir { .. }) {
                    inner.push(entry.path.clone());
                }
                let of_git = entry.path.components().any(|part| part == b".git");
                match of_git {
                    true if merged => {}
                    true => walk.git.push(entry.path),
                    false => walk.entries.push(entry),
                }
            }
            open.extend(inner.into_iter().rev());
        }
        walk.entries.sort_by(|one, other| one.path.components().cmp(other.path.components()));
        Ok(walk)
    }

    /// Opens a file of a layer for reading.
    pub fn open(&self, folder: usize, path: &RelPath) -> Result<OwnedFd, UpperError> {
        open_readable(&self.layer(folder)?, path, OFlags::RDONLY).map_err(at(path))
    }
}

/// An error on a path.
pub(super) fn at(path: &RelPath) -> impl Fn(Errno) -> UpperError + '_ {
    |error| UpperError::Io { path: path.clone(), error: std::io::Error::from(error).to_string() }
}

/// The directory that an entry stands in, and its name there.
pub(super) fn parent_of(layer: &OwnedFd, path: &RelPath) -> Result<(OwnedFd, CString), Errno> {
    let leaf = CString::new(path.leaf().unwrap_or(b".")).map_err(|_| Errno::INVAL)?;
    let parent = path.parent().unwrap_or_default();
    Ok((open_readable(layer, &parent, OFlags::RDONLY | OFlags::DIRECTORY)?, leaf))
}

/// Opens beneath the layer. It is ours and nobody works in it any more: a mode by which the command shut its owner out
/// is opened first.
pub(super) fn open_readable(layer: &OwnedFd, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let name = if path.is_root() { b"." } else { path.as_bytes() };
    let open = || openat2(layer, name, flags, Mode::empty(), NO_LINKS);
    match open() {
        Err(Errno::ACCESS) if !path.is_root() => {
            let (parent, leaf) = parent_of(layer, path)?;
            let stat = statat(&parent, leaf.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)?;
            let mode = Mode::from_raw_mode(stat.st_mode & 0o7777 | 0o700);
            chmodat(&parent, leaf.as_c_str(), mode, AtFlags::empty())?;
            open()
        }
        other => other,
    }
}

/// The entries of one directory, in byte order.
fn list(layer: &OwnedFd, dir: &RelPath) -> Result<Vec<UpperEntry>, UpperError> {
    let fd = open_readable(layer, dir, OFlags::RDONLY | OFlags::DIRECTORY).map_err(at(dir))?;
    let mut entries = Vec::new();
    let mut listing = Dir::read_from(&fd).map_err(at(dir))?;
    while let Some(found) = listing.read() {
        let found = found.map_err(at(dir))?;
        let name = found.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        entries.push(entry(&fd, dir, name)?);
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

fn entry(parent: &OwnedFd, dir: &RelPath, name: &CStr) -> Result<UpperEntry, UpperError> {
    let path = dir.join(name.to_bytes());
    let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(at(&path))?;
    let notes = Notes::read(parent, name, &stat).map_err(at(&path))?;
    let attributes = Attributes {
        mode: stat.st_mode & 0o7777,
        owner: (stat.st_uid, stat.st_gid),
        modified: (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0)),
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        // The path as a whole must still be one.
        _ if RelPath::from_bytes(path.as_bytes()).is_err() => UpperKind::Other("a path that is too long"),
        FileType::CharacterDevice if stat.st_rdev == 0 => UpperKind::Whiteout,
        FileType::RegularFile if notes.whiteout => UpperKind::Whiteout,
        FileType::RegularFile => UpperKind::File {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            links: stat.st_nlink as u64,
            inode: stat.st_ino,
            copied: notes.origin,
        },
        FileType::Directory => UpperKind::Dir { opaque: notes.opaque, merged: notes.origin && !notes.opaque },
        FileType::Symlink => {
            UpperKind::Link(readlinkat(parent, name, Vec::new()).map_err(at(&path))?.into_bytes())
        }
        FileType::Fifo => UpperKind::Other("a FIFO"),
        FileType::Socket => UpperKind::Other("a socket"),
        _ => UpperKind::Other("a device"),
    };
    Ok(UpperEntry { path, kind, attributes, xattrs: notes.own })
}

/// What the overlay noted at an entry in extended attributes, and which of them are the command's own.
#[derive(Debug, Default, PartialEq, Eq)]
struct Notes {
    opaque: bool,
    origin: bool,
    whiteout: bool,
    own: Vec<Vec<u8>>,
}

/// Prefixes of the overlay's own notes, in a user namespace and as root.
const PREFIXES: [&[u8]; 2] = [b"user.overlay.", b"trusted.overlay."];

impl Notes {
    fn read(parent: &OwnedFd, name: &CStr, stat: &Stat) -> Result<Notes, Errno> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::Directory | FileType::RegularFile) {
            return Ok(Notes::default());
        }
        // By name below the directory's descriptor: no kernel before 6.13 reads attributes at a directory.
        let at = attribute_path(parent, name);
        let names = list_attributes(&at)?;
        Ok(Notes::from(&names, |name| value(&at, name)))
    }

    /// From the names (each with its final NUL) and a way to a value.
    fn from(names: &[u8], value: impl Fn(&[u8]) -> Vec<u8>) -> Notes {
        let mut notes = Notes::default();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let noted = PREFIXES.iter().find_map(|prefix| name.strip_prefix(*prefix));
            match noted {
                Some(b"opaque") => notes.opaque = value(name) == b"y",
                Some(b"origin") => notes.origin = true,
                Some(b"whiteout") => notes.whiteout = true,
                // An attribute of that name which the command set itself is escaped by one more `overlay.`.
                Some(rest) if rest.starts_with(b"overlay.") => {
                    notes.own.push([b"user.overlay.", &rest[b"overlay.".len()..]].concat());
                }
                None if name.starts_with(b"user.") => notes.own.push(name.to_owned()),
                _ => {}
            }
        }
        notes
    }
}

/// A name that the calls for extended attributes can take.
pub(super) fn attribute_path(parent: &OwnedFd, name: &CStr) -> PathBuf {
    let below = format!("/proc/self/fd/{}", parent.as_fd().as_raw_fd());
    Path::new(&below).join(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// Names of extended attributes, each with its final NUL; none where the file system has none.
pub(super) fn list_attributes(at: &Path) -> Result<Vec<u8>, Errno> {
    let mut names = vec![0; 512];
    loop {
        match rustix::fs::llistxattr(at, &mut names[..]) {
            Ok(length) => {
                names.truncate(length);
                return Ok(names);
            }
            Err(Errno::RANGE) if names.len() < 1 << 16 => names = vec![0; names.len() * 8],
            Err(Errno::NOTSUP) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
}

fn value(at: &Path, name: &[u8]) -> Vec<u8> {
    let mut value = vec![0; 64];
    let length = rustix::fs::lgetxattr(at, std::ffi::OsStr::from_bytes(name), &mut value[..]).unwrap_or(0);
    value.truncate(length);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(names: &[&str], opaque: &[u8]) -> Notes {
        let joined: Vec<u8> = names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect();
        Notes::from(&joined, |_| opaque.to_owned())
    }

    #[test]
    fn notes_of_both_modes_are_understood() {
        for prefix in ["user", "trusted"] {
            let name = |what: &str| format!("{prefix}.overlay.{what}");
            let (opaque, origin, impure) = (name("opaque"), name("origin"), name("impure"));
            let read = notes(&[&opaque, &origin, &impure], b"y");
            assert_eq!(read, Notes { opaque: true, origin: true, ..Notes::default() });
            assert!(notes(&[&name("whiteout")], b"").whiteout);
        }
        // `x` means that whiteouts as attributes lie inside; the directory shows what is below it.
        assert!(!notes(&["user.overlay.opaque"], b"x").opaque);
    }

    #[test]
    fn attributes_of_the_commands_own_are_told_apart() {
        let read = notes(
            &["user.overlay.overlay.opaque", "user.mine", "security.selinux", "user.overlay.uuid"],
            b"y",
        );
        assert!(!read.opaque);
        assert_eq!(read.own, [b"user.overlay.opaque".to_vec(), b"user.mine".to_vec()]);
    }
}
