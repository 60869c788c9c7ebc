//! Everything that waits, expires or conflicts: sessions, receipts, staleness, order, verdicts, approvals, grants.
//!
//! Pure and deterministic: no I/O, no clock, no threads, no locks. Points in time come in as values (`now`, on any
//! one scale that never goes back), and what the world must do comes out as values ([`Effect`]). The same events give
//! the same state and the same effects. Waiting itself is the engine's: it wraps one [`Coord`] in a mutex and wakes
//! its waiters by the effects.

mod approvals;
mod coord;
mod effect;
mod grant;
mod keep;
mod lines;
mod notices;
mod order;
mod receipts;
mod sessions;
mod staleness;
mod stats;
mod tries;
mod verdict;
mod work;

pub use approvals::{AnswerError, Answered, ApprovalOutcome, HumanAnswer, KEPT_MS, Pending};
pub use coord::Coord;
pub use effect::{Effect, Why};
pub use grant::{Approver, Grant, LeaseToken};
pub use keep::{Handle, KEEP_MS, Retry, Suggestion};
pub use lines::{LineMap, LineSet};
pub use notices::{Notice, NoticeKind};
pub use order::{Footprint, Ticket, Touch};
pub use receipts::{Lines, Receipt, Shown, Standing};
pub use sessions::{IDLE_MS, NewSession, Session};
pub use staleness::{EditDecision, OverwriteDecision, decide_edit, decide_overwrite};
pub use stats::{SessionTally, Signature, Tally, Totals};
pub use tries::REGION_AT;
pub use verdict::{ApprovalRules, JudgeFacts, Verdict, generated, judge, protected, read_only};
pub use work::{LandedFile, Unseen, Work};
