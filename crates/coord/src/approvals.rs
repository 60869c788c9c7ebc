//! Questions to the human: each binds to the digest of one plan, is answered once, and keeps its outcome for a while.
//!
//! `Pending` → approve → `Landing` → settled; `Pending` → deny → `Denied`. A file that changes under a plan puts a new
//! plan under the same question; from `Landing` only the commit that found the change does so, for its grant is spent.

use std::collections::BTreeMap;

use cotenant_model::{ApprovalId, ChangeId, Digest, Millis, Plan, Refusal, RetryToken, SessionId, WsPath};

/// An outcome is kept so long after the answer.
pub const KEPT_MS: u64 = 600_000;

/// Open questions an agent may have: more would bury the human.
const OPEN_PER_AGENT: usize = 100;

/// A question that waits for a human.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its id.
    pub id: ApprovalId,
    /// Whose call it was.
    pub session: SessionId,
    /// What would land. Its author names agent and task.
    pub plan: Plan,
    /// The plan's digest: what the answer must name.
    pub digest: Digest,
    /// When it was asked.
    pub asked: Millis,
    /// With this its session collects the result.
    pub retry: RetryToken,
}

impl Pending {
    /// The paths it would change, in the plan's order.
    pub fn paths(&self) -> impl Iterator<Item = &WsPath> {
        self.plan.ops.iter().flat_map(cotenant_model::FileOp::paths)
    }
}

/// What the human says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HumanAnswer {
    /// It may land.
    Approve,
    /// It may not.
    Deny {
        /// Told to the model as it is; may be empty.
        reason: String,
    },
}

/// What an answer led to.
#[derive(Debug)]
pub enum Answered {
    /// Commit this, then [`crate::Coord::settle`].
    Approved(Box<crate::Grant>),
    /// Nothing lands.
    Denied,
}

/// Why an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no such question, or it was answered.
    #[error("the question is gone or has already been answered")]
    Gone,
    /// The plan is another one by now.
    #[error("the plan's digest is {present} by now")]
    OtherDigest {
        /// The digest of what would land now.
        present: Digest,
    },
}

/// Where a question stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalOutcome {
    /// Nobody answered yet.
    Pending,
    /// Approved; the commit is under way.
    Landing,
    /// It landed as this change.
    Landed(ChangeId),
    /// The command was run, and left nothing to land.
    Ran,
    /// A human said no.
    Denied {
        /// Their words; may be empty.
        reason: String,
    },
    /// The files changed and the plan no longer fits.
    Stale,
    /// Approved, but the commit was refused.
    Refused(Box<Refusal>),
}

impl ApprovalOutcome {
    /// Whether it is the last word.
    pub fn is_final(&self) -> bool {
        !matches!(self, ApprovalOutcome::Pending | ApprovalOutcome::Landing)
    }
}

#[derive(Debug)]
enum State {
    /// `Pending` or, with `approved`, `Landing`. The plan stays, so that it can be planned anew.
    Open { question: Box<Pending>, approved: bool },
    /// Settled at the time given.
    Done(SessionId, ApprovalOutcome, Millis),
}

/// All questions.
#[derive(Debug, Default)]
pub(crate) struct Approvals(BTreeMap<ApprovalId, State>);

impl Approvals {
    pub(crate) fn ask(&mut self, question: Pending) {
        self.0.entry(question.id).or_insert(State::Open { question: Box::new(question), approved: false });
    }

    /// Whether one more question of the agent fits.
    pub(crate) fn may_ask(&self, agent: &str) -> bool {
        self.open().filter(|question| &*question.plan.author.agent == agent).count() < OPEN_PER_AGENT
    }

    /// The questions that can be answered, oldest first.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.0.values().filter_map(|state| match state {
            State::Open { question, approved: false } => Some(&**question),
            _ => None,
        })
    }

    /// These and the ones that are landing.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Pending> {
        self.0.values().filter_map(|state| match state {
            State::Open { question, .. } => Some(&**question),
            State::Done(..) => None,
        })
    }

    /// Takes an approval: the plan to be committed. A denial is [`Approvals::check`] and then [`Approvals::settle`].
    pub(crate) fn approve(&mut self, id: ApprovalId, digest: &str) -> Result<Plan, AnswerError> {
        self.check(id, digest)?;
        match self.0.get_mut(&id) {
            Some(State::Open { question, approved }) => {
                *approved = true;
                Ok(question.plan.clone())
            }
            _ => Err(AnswerError::Gone),
        }
    }

    /// Whether the question can be answered, and the digest is the one of its present plan.
    pub(crate) fn check(&self, id: ApprovalId, digest: &str) -> Result<(), AnswerError> {
        match self.0.get(&id) {
            Some(State::Open { question, approved: false }) if question.digest.matches(digest) => Ok(()),
            Some(State::Open { question, approved: false }) => {
                Err(AnswerError::OtherDigest { present: question.digest })
            }
            _ => Err(AnswerError::Gone),
        }
    }

    /// Puts a new plan under a question that is `approved` or not; the old digest no longer answers it.
    pub(crate) fn replan(&mut self, id: ApprovalId, plan: Plan, was_approved: bool) -> bool {
        match self.0.get_mut(&id) {
            Some(State::Open { question, approved }) if *approved == was_approved => {
                question.digest = plan.digest();
                question.plan = plan;
                *approved = false;
                true
            }
            _ => false,
        }
    }

    /// The last word on an open question; the session it belongs to, or `None` where the outcome does not follow from
    /// the state: only what was approved lands or fails, only what was not is denied.
    pub(crate) fn settle(
        &mut self,
        id: ApprovalId,
        outcome: ApprovalOutcome,
        now: Millis,
    ) -> Option<SessionId> {
        let state = self.0.get_mut(&id)?;
        let State::Open { question, approved } = state else { return None };
        let follows = match outcome {
            ApprovalOutcome::Landed(_) | ApprovalOutcome::Ran | ApprovalOutcome::Refused(_) => *approved,
            ApprovalOutcome::Denied { .. } => !*approved,
            ApprovalOutcome::Stale => true,
            ApprovalOutcome::Pending | ApprovalOutcome::Landing => false,
        };
        let session = question.session;
        if !follows {
            return None;
        }
        *state = State::Done(session, outcome, now);
        Some(session)
    }

    pub(crate) fn outcome(&self, id: ApprovalId) -> Option<&ApprovalOutcome> {
        self.0.get(&id).map(|state| match state {
            State::Open { approved: false, .. } => &ApprovalOutcome::Pending,
            State::Open { approved: true, .. } => &ApprovalOutcome::Landing,
            State::Done(_, outcome, _) => outcome,
        })
    }

    /// The same, with the session whose call it was.
    pub(crate) fn settled(&self, id: ApprovalId) -> Option<(SessionId, &ApprovalOutcome)> {
        let session = match self.0.get(&id)? {
            State::Open { question, .. } => question.session,
            State::Done(session, ..) => *session,
        };
        Some((session, self.outcome(id)?))
    }

    /// Whether its result may still be collected.
    pub(crate) fn is_kept(&self, id: ApprovalId, now: Millis) -> bool {
        match self.0.get(&id) {
            Some(State::Open { .. }) => true,
            Some(State::Done(_, _, at)) => now < at.plus(KEPT_MS),
            None => false,
        }
    }

    pub(crate) fn expire(&mut self, now: Millis) {
        self.0.retain(|_, state| !matches!(state, State::Done(_, _, at) if at.plus(KEPT_MS) <= now));
    }

    pub(crate) fn deadline(&self) -> Option<Millis> {
        let done = |state: &State| match state {
            State::Done(_, _, at) => Some(at.plus(KEPT_MS)),
            State::Open { .. } => None,
        };
        self.0.values().filter_map(done).min()
    }
}
