//! Every tool once: request, reply, description and plan function in one file each, and one registry of them all.

pub mod args;
mod calls;
pub mod ctx;
pub mod docs;
mod entries;
pub mod files;
pub mod gate;
pub mod history;
pub mod host;
mod instructions;
pub mod patch;
pub mod planned;
mod questions;
pub mod registry;
pub mod reply;
pub mod session;
pub mod shell;
pub mod states;
pub mod tool;
mod toolbox;

pub use questions::{Approved, NotAnswered};
pub use toolbox::Toolbox;
