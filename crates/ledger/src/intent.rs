//! What is made durable before a change (R1): enough to finish it or to take it back after a crash, and no image
//! that is kept elsewhere.

use std::sync::Arc;

use cotenant_model::{Agent, Change, ChangeOp, Digest, WsPath};

/// A change that is about to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What history will say of it, once sealed; its outcome is `Open` until then.
    pub change: Change,
    /// One entry for each path that the commit touches, in the order of the commit (R12).
    pub paths: Vec<IntentPath>,
    /// The key under which the answer is kept, if the caller gave one.
    pub idempotency: Option<Idempotency>,
}

/// One path of an intent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntentPath {
    /// The resolved path; of a move, where it goes.
    pub at: WsPath,
    /// What happens there.
    pub op: ChangeOp,
    /// The directory it stands in.
    pub parent: ParentId,
    /// The temporary name beside it, `.cotenant-<16 hex>`; empty where the operation needs none.
    pub temp: String,
    /// Where a move comes from.
    pub from: Option<WsPath>,
    /// The image before, at `at`; `None` where there is no file or link.
    pub pre: Option<Digest>,
    /// The image after, at `at`; `None` where there will be no file or link.
    pub post: Option<Digest>,
    /// `st_mode` before.
    pub pre_mode: u32,
    /// `st_mode` after; 0 where it will be as before.
    pub post_mode: u32,
    /// Owner before.
    pub uid: u32,
    /// Group before.
    pub gid: u32,
    /// The bytes of `pre`, where they are at most [`INLINE_MAX`] and not in the store yet.
    pub inline_pre: Option<Vec<u8>>,
    /// The inode of a directory that this commit made, once it is made; of a move, that of what is moved.
    pub made_ino: Option<u64>,
}

/// The identity of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ParentId {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// Mount id.
    pub mount: u64,
}

/// The largest image that is kept in the database instead of a file of its own, in bytes.
pub const INLINE_MAX: usize = 16 * 1024;

/// How long an idempotency key is kept, in milliseconds (R16).
pub const IDEMPOTENCY_MS: u64 = 24 * 3600 * 1000;

/// A key that a caller gave so that the same call is carried out once (R16). Keys of different agents or tools are
/// different keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Idempotency {
    /// Who calls.
    pub agent: Agent,
    /// The tool.
    pub tool: Arc<str>,
    /// The key.
    pub key: String,
    /// The digest of the arguments: the same key with others is a mistake of the caller.
    pub args: Digest,
}

/// What is known of an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// The digest of the arguments it was used with.
    pub args: Digest,
    /// The answer; `None` while the change is open, and where a crash came before the answer: then it is rebuilt
    /// from the change.
    pub answer: Option<Vec<u8>>,
    /// The change it led to, if any.
    pub change: Option<cotenant_model::ChangeId>,
}
