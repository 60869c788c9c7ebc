//! What the engine and the daemon must do after an event: effects are values, carried out by others.

use cotenant_model::{ApprovalId, SessionId};

use crate::order::Ticket;

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The client went, or said goodbye.
    Closed,
    /// Nothing was heard of it for its time to live.
    Expired,
}

/// Something to be done, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The session is gone: answer its waiting calls with `SESSION_ENDED`.
    Ended {
        /// Which.
        session: SessionId,
        /// Why.
        why: Why,
    },
    /// These calls may run now, or their session is gone: wake them.
    Ready(Vec<Ticket>),
    /// The question has an outcome: wake the call that waits for it, tell the reviewers that it is gone.
    Settled(ApprovalId),
}
