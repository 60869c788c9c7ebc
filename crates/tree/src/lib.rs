//! The only code that touches workspace files: allowed folders held by descriptors, every path opened beneath them.
//!
//! Nothing here takes a host path after [`Tree::open`]. A path from outside goes through [`Tree::locate`], the one gate
//! of confinement and protection, which answers a [`Place`]: a held directory and a name in it. All else works on that.

mod attributes;
mod below;
pub mod commit;
mod content;
mod dir;
mod error;
mod glob;
mod ignored;
mod ignores;
mod lines;
mod list;
mod names;
mod near;
mod place;
mod probe;
mod read;
mod resolve;
mod scan;
mod sys;
mod tree;
mod walk;

pub use below::Below;
pub use content::{ContentHits, ContentQuery, FileHits, Files, HitLine, Output, SearchError};
pub use dir::{Dir, Ident, Stat};
pub use error::{NotAFile, TreeError, path_refusal};
pub use ignored::Ignores;
pub use lines::{LineWindow, RawLine};
pub use list::{Entry, EntryKind, ListOptions, Listing};
pub use names::{NameHits, NameQuery};
pub use place::{Kind, Place};
pub use probe::Probe;
pub use read::ReadFile;
pub use scan::{Difference, Key, Opened, RACY_NS, Scan};
pub use sys::{at_once, has_missed};
pub use tree::{OpenError, RootState, Tree};
