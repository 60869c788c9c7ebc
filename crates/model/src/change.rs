//! A change: the sealed record of what a plan did, or of what the outside did.

use std::sync::Arc;

use crate::{Agent, ChangeId, Digest, Entry, EntryKind, Millis, SessionId, WsPath};

/// The name under which a human's own commands make plans. No agent gets it, and no change bears it: see
/// [`Change::agent`].
pub const HUMAN: &str = "human";

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeOp {
    /// A file or a link came to be.
    Create,
    /// Its bytes, its mode, or what it is changed.
    #[default]
    Edit,
    /// A file or a link went.
    Delete,
    /// A directory came to be.
    MakeDir,
    /// A directory went.
    RemoveDir,
    /// A file, a link or a directory came from another path.
    Move,
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
            ChangeOp::Move => "move",
        }
    }
}

/// One path of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFile {
    /// The resolved path; of a move, where it went.
    pub at: WsPath,
    /// What happened there.
    pub op: ChangeOp,
    /// Where a move came from: nothing stands there afterwards. Of a creation, the file that it is a renamed or copied
    /// version of.
    pub from: Option<WsPath>,
    /// The image before, at `at`; `None` where there was no file or link.
    pub pre: Option<Digest>,
    /// The image after, at `at`; `None` where there is no file or link.
    pub post: Option<Digest>,
    /// `st_mode` before: type and permission bits; 0 where nothing stood there.
    pub pre_mode: u32,
    /// `st_mode` after; 0 where nothing stands there, or it is not known.
    pub post_mode: u32,
}

impl ChangeFile {
    /// What stood there before, if it was a file or a link.
    pub fn before(&self) -> Option<Entry> {
        entry(self.pre, self.pre_mode)
    }

    /// What stood there after, if it was a file or a link.
    pub fn after(&self) -> Option<Entry> {
        entry(self.post, self.post_mode)
    }
}

fn entry(digest: Option<Digest>, mode: u32) -> Option<Entry> {
    Some(Entry { kind: EntryKind::of_mode(mode)?, digest: digest? })
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
