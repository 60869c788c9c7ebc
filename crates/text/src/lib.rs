//! Bytes in, bytes out: text forms, matching and near-miss diagnosis, edits that keep every other byte, diffs and merges.
//!
//! Pure: no I/O, no clock. Matching happens on a [`View`] with a map back to raw byte offsets; what is written are raw bytes.

mod adapt;
mod breaks;
mod codec;
mod create;
mod diagnose;
mod diff;
mod edit;
mod editorconfig;
mod escapes;
mod fit;
mod form;
mod glob;
mod json;
mod loose;
mod merge;
mod nearest;
pub mod notebook;
pub mod patch;
mod show;
mod splice;
mod substitute;
mod view;

pub use create::{Want, compose};
pub use diagnose::{Cause, Miss, Near, Suggestion};
pub use diff::{Diff, DiffLine, Hunk, Region, Tag, changed_regions, clear_of, stat, unified};
pub use edit::{EditError, EditSpec, Edited, Level, Place, Tolerance, apply};
pub use editorconfig::{EditorConfig, properties};
pub use form::{Break, Encoding, Eol, Form, NotText, detect, detect_as_git};
pub use merge::{Clash, Conflict, merge3};
pub use show::{Clip, clip, shown, visible, visible_window, window};
pub use splice::Span;
pub use substitute::{Substituted, Swap, Unfit, occurrences, substitute};
pub use view::{View, line_count};
