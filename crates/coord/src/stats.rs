//! Calls and refusals, counted per tool, code and session; and the signature of an edit that cannot succeed.

use std::collections::BTreeMap;
use std::sync::Arc;

use cotenant_model::{Agent, Code, SessionId};

/// The tools whose refusals make the edit error rate.
const EDIT_TOOLS: &[&str] = &["edit_file", "write_file", "replace_text", "apply_patch"];

/// So many `TEXT_NOT_FOUND` in a row are a signature: the file holds something that the model does not see.
const SIGNATURE_AT: u32 = 3;

/// Ended sessions whose counts are kept; beyond it the oldest go. The totals keep everything.
const ENDED: usize = 200;

/// Signatures kept; the oldest go.
const SIGNATURES: usize = 200;

/// Tools counted by name; what is called beyond them counts as `other`.
const TOOLS: usize = 200;

/// Calls, and how many of them failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All calls.
    pub calls: u64,
    /// Those that were refused; a pending approval is no error.
    pub errors: u64,
}

impl Tally {
    fn count(&mut self, outcome: Result<(), Code>) {
        self.calls += 1;
        self.errors += u64::from(outcome.is_err_and(Code::is_error));
    }

    fn plus(self, other: Tally) -> Tally {
        Tally { calls: self.calls + other.calls, errors: self.errors + other.errors }
    }

    /// Errors by calls, 0 to 1; 0 without calls.
    #[allow(clippy::cast_precision_loss, reason = "a rate, for people")]
    pub fn error_rate(self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.errors as f64 / self.calls as f64 }
    }
}

/// Counts by tool and by code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// By tool.
    pub tools: BTreeMap<Arc<str>, Tally>,
    /// Refusals by code, pending approvals too.
    pub refusals: BTreeMap<Code, u64>,
}

impl Totals {
    fn count(&mut self, tool: &str, outcome: Result<(), Code>) {
        let known = self.tools.contains_key(tool) || self.tools.len() < TOOLS;
        self.tools.entry(if known { tool.into() } else { "other".into() }).or_default().count(outcome);
        if let Err(code) = outcome {
            *self.refusals.entry(code).or_default() += 1;
        }
    }

    /// All calls.
    pub fn calls(&self) -> Tally {
        self.tools.values().copied().fold(Tally::default(), Tally::plus)
    }

    /// The calls of the editing tools.
    pub fn edits(&self) -> Tally {
        EDIT_TOOLS
            .iter()
            .filter_map(|tool| self.tools.get(*tool))
            .copied()
            .fold(Tally::default(), Tally::plus)
    }
}

/// The counts of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTally {
    /// Which.
    pub session: SessionId,
    /// Whose.
    pub agent: Agent,
    /// Its counts.
    pub totals: Totals,
    /// It has ended.
    pub ended: bool,
}

/// Three or more refusals in a row that come from one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: Agent,
    /// The code; so far always `TEXT_NOT_FOUND`.
    pub code: Code,
    /// How many in a row.
    pub count: u32,
    /// The likely cause: the one found most often, of equals the last.
    pub cause: String,
}

/// The refusals in a row of one session, as they come in.
#[derive(Debug, Default)]
struct Run {
    count: u32,
    causes: Vec<String>,
}

impl Run {
    fn likely(&self) -> String {
        let times = |cause: &String| self.causes.iter().filter(|other| *other == cause).count();
        self.causes.iter().max_by_key(|cause| times(cause)).cloned().unwrap_or_else(|| "unknown".to_owned())
    }
}

/// All counts.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    totals: Totals,
    sessions: BTreeMap<SessionId, SessionTally>,
    runs: BTreeMap<SessionId, Run>,
    signatures: Vec<Signature>,
}

impl Stats {
    pub(crate) fn open(&mut self, id: SessionId, agent: &Agent) {
        let fresh =
            || SessionTally { session: id, agent: agent.clone(), totals: Totals::default(), ended: false };
        self.sessions.entry(id).or_insert_with(fresh).agent = agent.clone();
    }

    pub(crate) fn end(&mut self, id: SessionId) {
        if let Some(tally) = self.sessions.get_mut(&id) {
            tally.ended = true;
        }
        self.runs.remove(&id);
        let ended = self.sessions.values().filter(|tally| tally.ended).count();
        let mut over = ended.saturating_sub(ENDED);
        self.sessions.retain(|_, tally| {
            let goes = tally.ended && over > 0;
            over -= usize::from(goes);
            !goes
        });
    }

    /// Counts a call. A success of an editing tool ends the session's run of failures.
    pub(crate) fn counted(&mut self, id: SessionId, tool: &str, outcome: Result<(), Code>) {
        self.totals.count(tool, outcome);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.totals.count(tool, outcome);
        }
        if outcome.is_ok() && EDIT_TOOLS.contains(&tool) {
            self.runs.remove(&id);
        }
    }

    /// One more `TEXT_NOT_FOUND` with this cause.
    pub(crate) fn missed(&mut self, id: SessionId, cause: &str) {
        let Some(session) = self.sessions.get(&id) else { return };
        let run = self.runs.entry(id).or_default();
        run.count = run.count.saturating_add(1);
        if run.causes.len() >= 20 {
            run.causes.remove(0);
        }
        run.causes.push(cause.to_owned());
        if run.count < SIGNATURE_AT {
            return;
        }
        // The run goes on: what was noted of it is brought up to date.
        let noted = self.signatures.iter().rposition(|noted| noted.session == id);
        if let Some(index) = noted.filter(|_| run.count > SIGNATURE_AT) {
            self.signatures.remove(index);
        }
        if self.signatures.len() >= SIGNATURES {
            self.signatures.remove(0);
        }
        self.signatures.push(Signature {
            session: id,
            agent: session.agent.clone(),
            code: Code::TextNotFound,
            count: run.count,
            cause: run.likely(),
        });
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(crate) fn session(&self, id: SessionId) -> Option<&SessionTally> {
        self.sessions.get(&id)
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = &SessionTally> {
        self.sessions.values()
    }

    pub(crate) fn signatures(&self) -> &[Signature] {
        &self.signatures
    }
}
