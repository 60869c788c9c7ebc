//! Listing directories.

use cotenant_model::{RelPath, WsPath};
use rustix::fs::OFlags;

use crate::error::TreeError;
use crate::place::{Kind, Place};
use crate::sys;
use crate::tree::Tree;
use crate::walk;

/// What to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// How deep; 1 is the directory's own entries, `None` is unlimited.
    pub depth: Option<usize>,
    /// How many entries at most.
    pub limit: usize,
    /// Also what ignore files exclude.
    pub include_ignored: bool,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link, wherever it leads.
    Link,
    /// FIFO, socket or device.
    Other,
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: WsPath,
    /// What it is.
    pub kind: EntryKind,
}

/// A listing, in byte order of the paths, a directory counting as its path with `/`.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The first `limit` entries.
    pub entries: Vec<Entry>,
    /// How many there are in all.
    pub total: usize,
    /// What was left out and not counted in `total`: (`ignored` | `protected` | `unreadable` | `mounts`, how many). An
    /// ignored or protected directory counts once, with all below it.
    pub omitted: Vec<(&'static str, usize)>,
}

impl Tree {
    /// Lists the directory at `place`. Links are listed, never followed.
    pub fn list(&self, place: &Place, options: &ListOptions) -> Result<Listing, TreeError> {
        let start = directory(self, place)?;
        // What cannot be read at all is refused; below it, it is counted.
        if let Some(root) = self.root_dir(start.folder) {
            let path = if start.path.is_root() { b"." } else { start.path.as_bytes() };
            sys::open_beneath(root.fd(), path, OFlags::RDONLY | OFlags::DIRECTORY)
                .map_err(|errno| TreeError::of(errno, "listing"))?;
        }
        let (depth, include_ignored) = (options.depth, options.include_ignored);
        let walked = self.walk(start, walk::Options { depth, include_ignored, ..walk::Options::default() });
        let mut listing = Listing { omitted: walked.left_out.named(), ..Listing::default() };
        walked.for_each(|path, kind| {
            listing.total += 1;
            if listing.entries.len() < options.limit
                && let Some(path) = ws_path(start, path)
            {
                listing.entries.push(Entry { path, kind });
            }
        });
        Ok(listing)
    }
}

/// The path of the directory at `place`.
fn directory<'p>(tree: &Tree, place: &'p Place) -> Result<&'p WsPath, TreeError> {
    match place.kind {
        Kind::Dir => Ok(&place.real),
        Kind::Absent { .. } => Err(TreeError::NotFound),
        Kind::File(_) | Kind::Link => Err(TreeError::NotADirectory { at: tree.folders().show(&place.asked) }),
    }
}

/// A path that a walk from `start` found. The walk does not come to paths that are longer than paths can be.
pub(crate) fn ws_path(start: &WsPath, path: &[u8]) -> Option<WsPath> {
    Some(WsPath { folder: start.folder, path: RelPath::from_bytes(path).ok()? })
}
