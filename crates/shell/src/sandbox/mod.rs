//! What the kernel is asked to allow a command: namespaces, an overlay, Landlock, seccomp.
//!
//! A command gets a root of its own making (`view`), in which its folders lie as an overlay (staged) or as they are
//! (direct). Landlock and seccomp say the same again in their own words. What this machine lacks is found once
//! ([`Machine::probe`]) and named in every result ([`Tier`]); a weaker sandbox than the one asked for is never used
//! in silence.

mod calls;
mod compose;
mod groups;
mod machine;
mod mounts;
mod overlay;
mod points;
mod rights;
mod session;
mod start;
mod tier;
mod upper;
mod upper_read;
mod upper_take;
mod view;

pub(crate) use compose::{Composed, compose, stageable};
pub(crate) use groups::{Group, Groups};
pub(crate) use overlay::{Inside, make_run};
pub(crate) use session::{Killable, Shared};
pub(crate) use start::{Started, high, start as start_program};
pub(crate) use upper::RunDir;

pub use machine::{Ability, Machine, Surroundings};
pub use overlay::{OpenOverlay, OverlayError};
pub use session::Session;
pub use tier::{Grade, Mode, Network, Tier};
pub use upper::{Attributes, Upper, UpperEntry, UpperError, UpperKind, Walk};

/// Why a command was not started. Nothing of it ran.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// It cannot run staged here; `direct` may be the way.
    #[error("not staged, {word}: {why}")]
    NotStageable {
        /// A stable word: `not-available`, `mount-below`, `foreign-owner`, `overlay-refused`.
        word: &'static str,
        /// What is the case.
        why: String,
    },
    /// The directory that it should run in is not there, or is none.
    #[error("the directory {0} cannot be entered")]
    NoDirectory(String),
    /// The request cannot be carried out as it is: a NUL byte, a folder that is not in it.
    #[error("{0}")]
    BadRequest(String),
    /// The overlay is busy with another command, or closed.
    #[error("{0}")]
    Busy(String),
    /// A step of the set-up failed.
    #[error("the sandbox could not be set up, {what}: {error}")]
    SetUp {
        /// Which step.
        what: String,
        /// The system's words.
        error: String,
    },
    /// Something outside the sandbox failed: no process, no pipe, no space.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The system's words.
        error: String,
    },
}

impl StartError {
    pub(crate) fn io(what: &'static str, error: impl std::fmt::Display) -> StartError {
        StartError::Io { what, error: error.to_string() }
    }
}
