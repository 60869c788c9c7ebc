//! Taking away what ignore files leave out: no pre-image is kept of it, as of nothing that a build can make again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, OFlags, unlinkat};
use rustix::io::Errno;

use crate::below::names;
use crate::list::EntryKind;
use crate::place::{Kind, Place};
use crate::sys;

/// Removes what stands at a place, a directory with all that is in it; links are never followed, and mount points are
/// not entered. What is gone already is no error.
pub fn discard(place: &Place) -> io::Result<()> {
    let gone = match place.kind {
        Kind::Absent { .. } => return Ok(()),
        Kind::Dir => remove_dir(place.parent.fd(), &place.leaf),
        Kind::File(_) | Kind::Link => unlinkat(place.parent.fd(), &*place.leaf, AtFlags::empty()),
    };
    match gone {
        Err(Errno::NOENT) => Ok(()),
        other => other.map_err(io::Error::from),
    }
}

/// Directories nest as deep as paths are long; the list of what is still open is on the heap.
fn remove_dir(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    let top = sys::open_beneath(parent, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut dirs = vec![Vec::new()];
    let mut next = 0;
    while let Some(path) = dirs.get(next).cloned() {
        next += 1;
        let here: &[u8] = if path.is_empty() { b"." } else { &path };
        let dir = sys::open_beneath(top.as_fd(), here, OFlags::RDONLY | OFlags::DIRECTORY)?;
        for (name, kind) in names(dir.as_fd())? {
            match kind {
                EntryKind::Dir => {
                    let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
                    dirs.push([&path[..], slash, &name].concat());
                }
                _ => unlinkat(&dir, &*name, AtFlags::empty())?,
            }
        }
    }
    // What lies deeper came later.
    for path in dirs.iter().skip(1).rev() {
        let (above, leaf) = split(path);
        let dir = sys::open_beneath(top.as_fd(), above, OFlags::RDONLY | OFlags::DIRECTORY)?;
        unlinkat(&dir, leaf, AtFlags::REMOVEDIR)?;
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b".", path),
    }
}
