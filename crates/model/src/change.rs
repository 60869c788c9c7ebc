//! A change: the sealed record of what a plan did, or of what the outside did.

use std::sync::Arc;

use crate::{Agent, ChangeId, Digest, Millis, SessionId, WsPath};

/// Who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Ours, through the pipeline.
    Planned,
    /// A foreign write that was found.
    Observed,
}

/// How the commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The intent is durable, nothing more is known; recovery will decide.
    Open,
    /// Every path landed.
    Sealed,
    /// Nothing of it stands.
    Aborted,
    /// Someone wrote meanwhile and could not be rolled back: their bytes are on top, ours are kept.
    Overtaken,
}

/// What happened at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOp {
    /// A file came to be.
    Create,
    /// A file's bytes changed.
    Edit,
    /// A file went.
    Delete,
    /// A directory came to be.
    MakeDir,
    /// A directory went.
    RemoveDir,
}

impl ChangeOp {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ChangeOp::Create => "create",
            ChangeOp::Edit => "edit",
            ChangeOp::Delete => "delete",
            ChangeOp::MakeDir => "mkdir",
            ChangeOp::RemoveDir => "rmdir",
        }
    }
}

/// One path of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeFile {
    /// The resolved path.
    pub at: WsPath,
    /// What happened there.
    pub op: ChangeOp,
    /// The image before; `None` where there was no file.
    pub pre: Option<Digest>,
    /// The image after; `None` where there is no file.
    pub post: Option<Digest>,
    /// Permission bits of the file before (of the new one where it was created).
    pub mode: u32,
}

/// A record of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its id, rising.
    pub id: ChangeId,
    /// When its intent was made, wall clock.
    pub time: Millis,
    /// Ours or found.
    pub kind: ChangeKind,
    /// How it ended.
    pub outcome: Outcome,
    /// The agent; `None` for a human's or an unknown hand.
    pub agent: Option<Agent>,
    /// The agent's session.
    pub session: Option<SessionId>,
    /// The agent's task.
    pub task: Option<Arc<str>>,
    /// The session's turn, from 1; 0 where there was none.
    pub turn: u32,
    /// The tool; empty for an observed change.
    pub tool: Arc<str>,
    /// The paths, in path order.
    pub files: Vec<ChangeFile>,
    /// The change it takes back.
    pub undoes: Option<ChangeId>,
}
