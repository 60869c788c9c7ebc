//! The words of cotenant as types: paths, classes, digests, ids, plans, changes, refusals, settings.
//!
//! Pure: no I/O, no clock, no async, no serialisation. Everything else in the workspace speaks in these types.

mod change;
mod class;
mod content;
mod digest;
mod git;
mod ids;
mod path;
mod plan;
mod refusal;
mod settings;
mod state;
mod time;

pub use change::{Change, ChangeFile, ChangeKind, ChangeOp, HUMAN, Outcome};
pub use class::{ClassHit, ClassRules, PROTECTED, PathClass, SENSITIVE};
pub use content::Content;
pub use digest::Digest;
pub use git::{GitObjects, GitStamp, Tracked};
pub use ids::{
    Agent, ApprovalId, BadId, ChangeId, ExecId, HandleId, JobId, PlanId, RetryToken, SessionId, SuggestionId,
    TrashId,
};
pub use path::{FolderId, Folders, NAME_MAX, PATH_MAX, PathError, RelPath, WirePath, WsPath};
pub use plan::{Author, Body, Entry, EntryKind, FileOp, Moved, Op, Plan, PreImage};
pub use refusal::{Code, Fact, FactValue, Refusal, needs_escape};
pub use settings::{
    Access, AgentRule, Answer, ApprovalRule, CommandRule, Commands, Durability, Edits, ExecLimits,
    FolderSpec, GeneratedRule, Hook, Hooks, Limits, Profile, Settings, StalePolicy, ToolSet,
};
pub use state::{Becomes, Effects, FileSource, Seen, State};
pub use time::Millis;
