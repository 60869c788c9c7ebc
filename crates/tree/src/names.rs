//! Finding files by name.

use cotenant_model::WsPath;

use memchr::memmem::Finder;

use crate::content::SearchError;
use crate::error::TreeError;
use crate::glob::{PathGlob, composed, name_of};
use crate::list::{EntryKind, ws_path};
use crate::place::{Kind, Place};
use crate::tree::Tree;
use crate::walk;

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
    /// Files below `place` (or the file there) whose name fits. Two Unicode spellings of one name count the same.
    pub fn search_names(&self, place: &Place, query: &NameQuery) -> Result<NameHits, SearchError> {
        let pattern = NamePattern::new(&query.pattern)?;
        let start = &place.real;
        let mut hits = NameHits::default();
        let mut take = |path: &[u8], below: usize| {
            if !pattern.fits(path, below) {
                return;
            }
            hits.total += 1;
            if hits.total > query.offset && hits.paths.len() < query.limit {
                hits.paths.extend(ws_path(start, path));
            }
        };
        match place.kind {
            Kind::Absent { .. } => return Err(TreeError::NotFound.into()),
            Kind::File(_) | Kind::Link => take(start.path.as_bytes(), 0),
            Kind::Dir => {
                let include_ignored = query.include_ignored;
                let options = walk::Options { include_ignored, ..walk::Options::default() };
                let walked = self.walk(start, options);
                let mut left_out = walked.left_out;
                let below = start.path.as_bytes().len();
                walked.for_each(|path, kind| match kind {
                    EntryKind::File => take(path, below),
                    EntryKind::Link => left_out.links += 1,
                    EntryKind::Other => left_out.other += 1,
                    EntryKind::Dir => {}
                });
                hits.skipped = left_out.named();
            }
        }
        Ok(hits)
    }
}

/// How names are compared.
enum NamePattern {
    Glob(PathGlob),
    Part {
        finder: Box<Finder<'static>>,
        any_case: bool,
        /// It has a `/` and is held against the whole path.
        in_path: bool,
    },
}

impl NamePattern {
    fn new(text: &str) -> Result<NamePattern, SearchError> {
        if text.contains(['*', '?', '[', '{']) {
            return Ok(NamePattern::Glob(PathGlob::new(text)?));
        }
        let any_case = !text.chars().any(char::is_uppercase);
        Ok(NamePattern::Part {
            finder: Box::new(Finder::new(&composed(text.as_bytes())).into_owned()),
            any_case,
            in_path: text.contains('/'),
        })
    }

    /// Whether `path` (relative to the folder) fits; `start` is the length of the searched directory's path.
    fn fits(&self, path: &[u8], start: usize) -> bool {
        match self {
            NamePattern::Glob(glob) => glob.fits(path, start),
            NamePattern::Part { finder, any_case, in_path } => {
                let text = composed(if *in_path { path } else { name_of(path) });
                if *any_case && text.iter().any(|byte| !byte.is_ascii_lowercase()) {
                    return finder.find(String::from_utf8_lossy(&text).to_lowercase().as_bytes()).is_some();
                }
                finder.find(&text).is_some()
            }
        }
    }
}
