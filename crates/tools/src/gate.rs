//! What stands around every call of an agent: asked once a call is understood and before it runs, shown its answer after.
//!
//! The one place where calls run is behind the gate, so that a call which `retry` repeats, or which a gate rewrote, is
//! judged like any other, with the very arguments it runs with. A human's own commands pass no gate.

use cotenant_engine::Workspace;
use cotenant_model::{Code, Refusal, SessionId};
use serde_json::{Map, Value};

use crate::args::{Args, with_end_line};
use crate::calls::Heard;
use crate::host::{Answer, Call, Host, Ticket};
use crate::registry;
use crate::reply::Reply;
use crate::tool::{Run, Tool};
use crate::toolbox::{MOST_WAIT_MS, Toolbox};

/// A call before it runs, or once it is answered.
pub struct Asked<'a> {
    /// Whose.
    pub session: SessionId,
    /// The tool.
    pub tool: &'static Tool,
    /// Its arguments by their own names. After a call that was not understood: as they came.
    pub args: &'a Map<String, Value>,
}

/// A gate lets the call pass.
#[derive(Debug, Default)]
pub struct Passed {
    /// A human must agree to the change, whatever the profile: who wants it, and why.
    pub ask: Option<AskedBy>,
    /// Other arguments to run with. They decode for the tool.
    pub args: Option<Map<String, Value>>,
    /// Lines for the model.
    pub notices: Vec<String>,
}

/// Who wants a human to be asked, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedBy {
    /// The name of a hook.
    pub hook: String,
    /// Told to the human and to the model; may be empty.
    pub reason: String,
}

/// Judges calls before they run, and their answers.
pub trait Gate: Send + Sync + 'static {
    /// Milliseconds that [`Gate::before`] and [`Gate::after`] may take for the tool; (0, 0) where it has nothing to say.
    /// What a call waits for is shortened by as much, so that it is answered in time.
    fn takes_ms(&self, tool: &Tool) -> (u64, u64);

    /// Judges a call that is understood. A refusal ends it.
    fn before(&self, ws: &Workspace, asked: &Asked<'_>) -> Result<Passed, Refusal>;

    /// Judges an answer, and may change it. A refusal takes its place.
    fn after(&self, ws: &Workspace, asked: &Asked<'_>, answer: &mut Answer) -> Result<(), Refusal>;
}

/// A place in the order that is given back however the call ends.
struct Place<'a>(&'a Toolbox, Ticket);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

impl Toolbox {
    /// The gate that has something to say of a session's calls of a tool.
    fn gate(&self, session: SessionId, tool: &Tool) -> Option<&dyn Gate> {
        let gate = self.gate.as_deref()?;
        let human = self.terms(session).is_some_and(|terms| terms.human);
        (!human && gate.takes_ms(tool) != (0, 0)).then_some(gate)
    }

    /// Milliseconds that a call may wait in all, once its gate has what it may take.
    pub(crate) fn waits_ms(&self, call: &Call) -> u64 {
        let gate =
            registry::find(&call.tool).and_then(|tool| Some(self.gate(call.session, tool)?.takes_ms(tool)));
        MOST_WAIT_MS.saturating_sub(gate.map_or(0, |(before, after)| before + after))
    }

    /// Milliseconds that a call may still wait, with time left for its answer to be looked at.
    pub(crate) fn left_ms(&self, heard: &Heard<'_>) -> u64 {
        let after = self.gate(heard.call.session, heard.tool).map_or(0, |gate| gate.takes_ms(heard.tool).1);
        let gone = self.ws.clock().steady().since(heard.began);
        MOST_WAIT_MS.saturating_sub(gone.saturating_add(after))
    }

    /// Runs an understood call behind the gate.
    pub(crate) fn run(
        &self,
        heard: &Heard<'_>,
        key: Option<&cotenant_engine::Idempotency>,
    ) -> Result<Reply, Refusal> {
        // A repeated call is judged as what it is, when it is known.
        let gate =
            self.gate(heard.call.session, heard.tool).filter(|_| !matches!(heard.tool.run, Run::Retry));
        let Some(gate) = gate else { return self.carry_out(heard, key) };
        let asked = Asked { session: heard.call.session, tool: heard.tool, args: heard.args.map() };
        let passed = gate.before(&self.ws, &asked)?;
        let outcome = match passed.args {
            Some(args) => self.run_instead(heard, args, passed.ask, key),
            None if passed.ask.is_some() => {
                let (raw, args) = (heard.raw.clone(), heard.args.clone());
                self.carry_out(&Heard { asked: passed.ask, raw, args, ..*heard }, key)
            }
            None => self.carry_out(heard, key),
        };
        told(outcome, passed.notices)
    }

    /// Runs a call with the arguments that the gate gave it, at a place of their own in the order.
    fn run_instead(
        &self,
        heard: &Heard<'_>,
        args: Map<String, Value>,
        asked: Option<AskedBy>,
        key: Option<&cotenant_engine::Idempotency>,
    ) -> Result<Reply, Refusal> {
        let (session, tool) = (heard.call.session, heard.tool);
        let raw = with_end_line(tool, &args);
        let args = Args::decode(tool, &raw)?;
        self.leave(heard.call.ticket);
        let place = Place(self, self.arrive(session, tool.name, &raw));
        let call = Call { args: raw.clone(), ticket: place.1, ..heard.call.clone() };
        let instead = Heard { call: &call, tool, raw, args, asked, began: heard.began };
        match self.ws.wait(self.left_ms(&instead), |coord| coord.ready(place.1.0).then_some(())) {
            Some(()) => self.carry_out(&instead, key),
            None => Err(crate::toolbox::busy()),
        }
    }

    /// Shows the gate an answer.
    pub(crate) fn shown_to_gate(&self, call: &Call, mut answer: Answer) -> Answer {
        let Some(tool) = registry::find(&call.tool) else { return answer };
        let Some(gate) = self.gate(call.session, tool).filter(|gate| gate.takes_ms(tool).1 > 0) else {
            return answer;
        };
        let decoded = Args::decode(tool, &with_end_line(tool, &call.args)).ok();
        let args = decoded.as_ref().map_or(&call.args, Args::map);
        match gate.after(&self.ws, &Asked { session: call.session, tool, args }, &mut answer) {
            Ok(()) => answer,
            Err(refusal) => self.render_refusal(call, refusal),
        }
    }
}

/// The outcome with what the gate says of it.
fn told(outcome: Result<Reply, Refusal>, notices: Vec<String>) -> Result<Reply, Refusal> {
    match outcome {
        Ok(mut reply) => {
            reply.notices.extend(notices);
            Ok(reply)
        }
        Err(mut refusal) if !notices.is_empty() => {
            // What is asked of the human, or refused, is not the call as it was sent.
            let said = notices.join("; ");
            refusal.message = format!("{} ({said}.)", refusal.message);
            Err(refusal)
        }
        Err(refusal) => Err(refusal),
    }
}

/// `HOOK_DENIED`, with the hook's name.
pub fn hook_denied(hook: &str, tool: &str, message: impl Into<String>) -> Refusal {
    Refusal::new(Code::HookDenied, message).fact("hook", hook).fact("tool", tool)
}
