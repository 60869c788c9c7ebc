//! Finding files by name.

use cotenant_model::WsPath;

use crate::content::SearchError;
use crate::place::Place;
use crate::tree::Tree;

/// A search by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameQuery {
    /// A glob if it has one of `*?[{`, else part of a name. A glob without `/` is matched with the name alone, one with `/`
    /// with the path below the searched directory or below the folder. Part of a name in lower case fits any case.
    pub pattern: String,
    /// How many paths at most.
    pub limit: usize,
    /// How many to pass over first.
    pub offset: usize,
    /// Also what ignore files exclude.
    pub include_ignored: bool,
}

/// The files found, in byte order.
#[derive(Clone, Debug, Default)]
pub struct NameHits {
    /// The page asked for.
    pub paths: Vec<WsPath>,
    /// How many there are in all.
    pub total: usize,
    /// What was passed over: (`ignored` | `protected` | `links` | `unreadable` | `mounts` | `other`, how many).
    pub skipped: Vec<(&'static str, usize)>,
}

impl Tree {
    /// Files below `place` (or the file there) whose name fits.
    pub fn search_names(&self, _place: &Place, _query: &NameQuery) -> Result<NameHits, SearchError> {
        Ok(NameHits::default())
    }
}
