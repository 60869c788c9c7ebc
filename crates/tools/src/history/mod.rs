//! The tools that look at what was changed and take it back.

mod back;
mod conflicts;
pub mod list;
pub mod list_trash;
mod names;
pub mod restore_file;
pub mod rewind;
pub mod show_change;
mod steps;
pub mod undo;
mod world;
