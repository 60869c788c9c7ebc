//! Everything that lies below a directory which is to be moved: ignored, protected and temporary names too.

use std::os::fd::{AsFd, BorrowedFd};

use cotenant_model::{Digest, WsPath};
use rustix::fs::{FileType, OFlags, RawDir};
use rustix::io::Errno;

use crate::TreeError;
use crate::commit::TEMP_PREFIX;
use crate::list::EntryKind;
use crate::place::Place;
use crate::sys;
use crate::tree::Tree;

/// Bytes of a directory read at once.
const BUFFER: usize = 32 * 1024;

/// What lies below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// Of all names and what they are, in their order; the temporary files of commits do not count.
    pub digest: Digest,
    /// Every entry, a directory before what is in it. Links are not followed.
    pub entries: Vec<(WsPath, EntryKind)>,
    /// Directories that are mount points: what lies in them is not looked at.
    pub mounts: Vec<WsPath>,
}

impl Tree {
    /// Lists everything below the directory at `place`. A directory that cannot be read is an error: what is not known
    /// must not be moved.
    pub fn below(&self, place: &Place) -> Result<Below, TreeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = sys::open_beneath(place.parent.fd(), &place.leaf, flags)
            .map_err(|errno| TreeError::of(errno, "listing"))?;
        let mut below = Below { digest: Digest::of(b""), entries: Vec::new(), mounts: Vec::new() };
        let found = descend(dir.as_fd(), &mut |path, kind, mount| {
            let at = path.split(|byte| *byte == b'/').fold(place.real.clone(), |at, name| at.join(name));
            if mount {
                below.mounts.push(at.clone());
            }
            below.entries.push((at, kind));
        });
        below.digest = found.map_err(|errno| TreeError::of(errno, "listing"))?;
        Ok(below)
    }
}

/// Calls `each` with every path below `dir`, what it is and whether it is a mount point, and digests them. `dir` is open
/// for reading or as a place.
pub(crate) fn descend(
    dir: BorrowedFd<'_>,
    each: &mut dyn FnMut(&[u8], EntryKind, bool),
) -> Result<Digest, Errno> {
    let mut text = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let opened = sys::open_beneath(
            dir,
            if path.is_empty() { b"." } else { &path },
            OFlags::RDONLY | OFlags::DIRECTORY,
        );
        let opened = match opened {
            // The entry is told all the same; what lies behind it belongs to another file system.
            Err(Errno::XDEV) => {
                tell(&path, EntryKind::Dir, true, &mut text, each);
                continue;
            }
            other => other?,
        };
        if !path.is_empty() {
            tell(&path, EntryKind::Dir, false, &mut text, each);
        }
        let mut names = names(opened.as_fd())?;
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let child = |name: &[u8]| [&path[..], if path.is_empty() { b"" } else { b"/" }, name].concat();
        for (name, kind) in names.iter().filter(|(_, kind)| *kind != EntryKind::Dir) {
            tell(&child(name), *kind, false, &mut text, each);
        }
        let dirs = names.iter().rev().filter(|(_, kind)| *kind == EntryKind::Dir);
        waiting.extend(dirs.map(|(name, _)| child(name)));
    }
    Ok(Digest::of(&text))
}

fn tell(
    path: &[u8],
    kind: EntryKind,
    mount: bool,
    text: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8], EntryKind, bool),
) {
    text.extend_from_slice(path);
    text.extend([0, kind as u8]);
    each(path, kind, mount);
}

/// A name and what it is.
pub(crate) type Named = (Box<[u8]>, EntryKind);

/// The entries of an open directory, but the temporary files of commits.
pub(crate) fn names(dir: BorrowedFd<'_>) -> Result<Vec<Named>, Errno> {
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || name.starts_with(TEMP_PREFIX.as_bytes()) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Dir,
            FileType::Symlink => EntryKind::Link,
            // Some file systems do not say.
            FileType::Unknown => match sys::stat_leaf(dir, name)?.flavour {
                sys::Flavour::File => EntryKind::File,
                sys::Flavour::Dir => EntryKind::Dir,
                sys::Flavour::Link => EntryKind::Link,
                _ => EntryKind::Other,
            },
            _ => EntryKind::Other,
        };
        found.push((name.into(), kind));
    }
    Ok(found)
}
