//! The tools that look at what was changed and take it back.

pub mod list;
pub mod show_change;
pub mod undo;
