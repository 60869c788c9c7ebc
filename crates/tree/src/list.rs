//! Listing directories.

use cotenant_model::WsPath;

use crate::error::TreeError;
use crate::place::Place;
use crate::tree::Tree;

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
    pub fn list(&self, _place: &Place, _options: &ListOptions) -> Result<Listing, TreeError> {
        Ok(Listing::default())
    }
}
