//! The pipeline: `Grant → Intent → swap → Seal`. The only way by which a byte of the workspace changes.

mod gate;

use std::sync::Arc;

use cotenant_coord::Grant;
use cotenant_ledger::{Idempotency, Intent, Ledger};
use cotenant_model::{Change, ChangeId, Code, Digest, Durability, Millis, Outcome, Refusal, WsPath};
use cotenant_tree::Tree;

pub use gate::FreezeGuard;

/// Carries granted plans out. Shared by all threads.
pub struct Pipeline {
    gate: gate::Gate,
    #[allow(dead_code)]
    paths: gate::Paths,
}

/// How a plan is carried out.
pub struct How<'a> {
    /// What the change must survive before it is answered.
    pub durability: Durability,
    /// Wall clock.
    pub now: Millis,
    /// The key under which the answer is kept, if the caller gave one.
    pub idempotency: Option<Idempotency>,
    /// The third check of the grant's tokens, made inside the gate: nothing can come between it and the swap.
    pub still_valid: &'a (dyn Fn(&Grant) -> Result<(), Refusal> + Sync),
}

/// A plan that landed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Its change.
    pub change: ChangeId,
    /// The plan's paths in path order, with the digest of what stands there now; `None` where no file stands.
    pub files: Vec<(WsPath, Option<Digest>)>,
    /// How it ended: `Sealed`.
    pub outcome: Outcome,
    /// What the caller must be told of the promise that was kept less than usual: sentences.
    pub grade_notes: Vec<String>,
    /// Paths where somebody else wrote during the commit and whose bytes are on top.
    pub overtaken: Vec<WsPath>,
}

/// What recovery did when the pipeline was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Every change that a crash had left open, oldest first, and how it ended.
    pub changes: Vec<(ChangeId, Outcome)>,
    /// What only a human can decide. Nothing is lost: every image is in the ledger.
    pub questions: Vec<Question>,
}

/// Something that a human should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The change it is about.
    pub change: ChangeId,
    /// The path.
    pub at: WsPath,
    /// What is the case, in a sentence.
    pub why: String,
}

impl Pipeline {
    /// Opens it, and first recovers the intents that a crash left open (R5). Recovery is idempotent: a crash inside it
    /// is recovered the same way.
    pub fn open(
        _tree: Arc<Tree>,
        _ledger: Ledger,
        _unsealed: Vec<Intent>,
        _now: Millis,
    ) -> Result<(Pipeline, Recovered), Refusal> {
        Ok((Pipeline { gate: gate::Gate::default(), paths: gate::Paths::default() }, Recovered::default()))
    }

    /// Commits the granted plan, or leaves everything as it was.
    pub fn commit(&self, _grant: Grant, _how: &How<'_>) -> Result<Landed, Refusal> {
        Err(Refusal::new(Code::NotAvailable, "The pipeline is being built."))
    }

    /// Closes the gate (R11): returns when no swap with an old token can still happen.
    pub fn freeze(&self) -> FreezeGuard<'_> {
        self.gate.close()
    }

    /// Foreign writes that were found on displaced files since the last call. They are in the ledger.
    pub fn observed(&self) -> Vec<Change> {
        Vec::new()
    }

    /// Waits until the background work of every commit so far is done: stores, seals, unlinks.
    pub fn idle(&self) {}
}
