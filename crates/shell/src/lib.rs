//! Commands: what one would do, whether it may, and how it is run so that its effects are seen before they land.
//!
//! The kernel is the boundary ([`sandbox`], [`run`]). Reading a command's text ([`policy`], [`edits`]) only decides how
//! politely a human is asked, and which edits need no shell at all.

pub mod edits;
pub mod git;
pub mod policy;
pub mod run;
pub mod sandbox;
mod sys;
