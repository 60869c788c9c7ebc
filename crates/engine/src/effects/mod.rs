//! What a command did that wrote the workspace itself: found by a look before and a look after, with both images of every
//! path, and recorded as one change that is taken back like any other.
//!
//! [`before`] makes sure that what may be overwritten can be had later: what git keeps stays with git, the rest goes into
//! the ledger, unless it is there already. [`after`] looks again, takes out what others did meanwhile through the pipeline,
//! and records the rest. `docs/decisions/0012` says why the change is an observed one and what a run cannot promise.
//!
//! [`plan_effects`] is for commands that wrote into an upper layer: it decides what each path was when the command saw it
//! (R19), so that their effects can go through the pipeline.

mod after;
mod before;
mod images;
mod others;
mod reading;
mod renames;
mod staged;
mod stand;

use cotenant_model::{ChangeId, WsPath};

pub use after::after;
pub use before::{Before, before};
pub(crate) use images::Known;
pub use others::Mark;
pub use staged::{Barrier, Clash, Conflict, Run, Settled, Shifted, plan_effects};

/// What a look may take into the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The largest file, in bytes.
    pub file_bytes: u64,
    /// All files of a run together, in bytes; before it and after it each.
    pub run_bytes: u64,
    /// So much is read into the ledger without asking git for it, in bytes, a small file counting as 16 KiB.
    pub unasked_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { file_bytes: 10 << 20, run_bytes: 256 << 20, unasked_bytes: 32 << 20 }
    }
}

/// Why something that a command did cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Loss {
    /// The old bytes were more than [`Bounds::file_bytes`].
    #[error("it was too large to be kept")]
    TooLarge,
    /// The old bytes were too many with those of other files.
    #[error("there was no room to keep it: the run's budget was used up")]
    OverBudget,
    /// It could not be read before, or cannot be read now.
    #[error("it could not be read")]
    Unreadable,
    /// Its old bytes were to be had from git or the ledger, and are not any more.
    #[error("its old bytes are gone")]
    ImageGone,
    /// Agents may not touch it, and nothing of it is kept.
    #[error("it is protected, so nothing of it is kept")]
    Protected,
    /// It is or was a FIFO, a socket or a device.
    #[error("it is no file, link or directory")]
    Special,
    /// Only the permissions or the owner of a directory changed.
    #[error("a directory's permissions and owner are not put back")]
    Directory,
    /// Its owner or group changed.
    #[error("its owner is not put back")]
    Owner,
    /// It has further names, and all of them changed.
    #[error("it has several names (hard links), which a change cannot keep")]
    HardLinked,
    /// A file became a directory, or a directory a file.
    #[error("it became another kind of thing; take the rest back first, then restore it from the trash")]
    KindChanged,
}

/// What became of a command's effects.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The change; `None` where nothing was done that can be recorded.
    pub change: Option<ChangeId>,
    /// Its paths and what happened there, in path order.
    pub files: Vec<cotenant_model::ChangeFile>,
    /// What was done and cannot be taken back, with the reason, in path order.
    pub not_restorable: Vec<(WsPath, Loss)>,
    /// Paths that others changed through the pipeline meanwhile: only what was not theirs is in the change.
    pub overlapped: Vec<WsPath>,
}
