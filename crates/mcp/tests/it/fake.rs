//! A host that remembers what was asked of it and does what a test wants.

use std::sync::{Arc, Condvar, Mutex};

use cotenant_model::{Code, Refusal, SessionId};
use cotenant_tools::host::{Answer, Call, Hello, Host, Ticket};
use serde_json::{Map, Value, json};

#[derive(Default)]
pub(crate) struct State {
    pub(crate) opened: Vec<Hello>,
    pub(crate) closed: Vec<SessionId>,
    pub(crate) introduced: Vec<(SessionId, String, Option<Vec<String>>)>,
    pub(crate) arrived: Vec<(u64, String)>,
    pub(crate) forgone: Vec<u64>,
    /// Tickets of calls that ran, in the order in which they ran.
    pub(crate) ran: Vec<u64>,
    pub(crate) running: usize,
    pub(crate) most_running: usize,
    /// Calls of `gate` go on when this is set.
    pub(crate) gate_open: bool,
    /// The list of tools and the instructions are faults.
    pub(crate) faulty: bool,
}

#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
}

impl Fake {
    pub(crate) fn new() -> Arc<Fake> {
        Arc::default()
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let out = act(&mut self.state.lock().unwrap());
        self.changed.notify_all();
        out
    }

    /// Blocks until the state is as wanted; for 20 s at most.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let limit = std::time::Duration::from_secs(20);
        let (_state, out) = self.changed.wait_timeout_while(state, limit, |state| !wanted(state)).unwrap();
        assert!(!out.timed_out(), "the host was never as wanted");
    }

    pub(crate) fn open_gate(&self) {
        self.with(|state| state.gate_open = true);
    }

    fn fault(&self) {
        // Decided under the lock, done without it.
        let faulty = self.with(|state| state.faulty);
        assert!(!faulty, "a fault on purpose");
    }

    fn text(text: impl Into<String>) -> Answer {
        let facts = Map::from_iter([("cotenant/facts".to_owned(), json!({ "a": 1 }))]);
        Answer { text: text.into(), is_error: false, meta: facts, structured: None }
    }

    fn run(&self, call: &Call) -> Answer {
        let text = |name: &str| call.args.get(name).and_then(Value::as_str).unwrap_or_default();
        match call.tool.as_str() {
            "echo" => Fake::text(text("text")),
            "session" => Fake::text(call.session.to_string()),
            "ticket" => Fake::text(call.ticket.0.to_string()),
            "meta" => Fake::text(Value::Object(call.meta.clone()).to_string()),
            "structured" => Answer { structured: Some(json!({ "text": "t" })), ..Fake::text("t") },
            "gate" => {
                self.wait_for(|state| state.gate_open);
                Fake::text("passed")
            }
            "big" => {
                let bytes = call.args.get("bytes").and_then(Value::as_u64).unwrap_or_default();
                Fake::text("x".repeat(usize::try_from(bytes).unwrap()))
            }
            "fault" => panic!("a fault on purpose"),
            other => Answer { is_error: true, meta: Map::new(), ..Fake::text(format!("BAD_INPUT {other}")) },
        }
    }
}

impl Host for Fake {
    fn open(&self, hello: &Hello) -> Result<SessionId, Refusal> {
        if hello.agent.as_deref() == Some("refused") {
            return Err(Refusal::new(Code::PermissionDenied, "Not you."));
        }
        Ok(self.with(|state| {
            state.opened.push(hello.clone());
            SessionId(state.opened.len() as u64)
        }))
    }

    fn introduce(&self, session: SessionId, client: &str, roots: Option<&[String]>) {
        let roots = roots.map(<[String]>::to_vec);
        self.with(|state| state.introduced.push((session, client.to_owned(), roots)));
    }

    fn close(&self, session: SessionId) {
        self.with(|state| state.closed.push(session));
    }

    fn tools(&self, _session: SessionId) -> Arc<Vec<Value>> {
        self.fault();
        let text = r#"{"name":"echo","title":"Echo","description":"Says it again.","inputSchema":{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"type":"integer","minimum":1}},"required":["zeta"]},"annotations":{"readOnlyHint":true,"openWorldHint":false},"_meta":{"anthropic/maxResultSizeChars":500000}}"#;
        Arc::new(vec![serde_json::from_str(text).unwrap()])
    }

    fn instructions(&self, session: SessionId) -> String {
        self.fault();
        format!("instructions for {session}")
    }

    fn arrive(&self, _session: SessionId, tool: &str, _args: &Map<String, Value>) -> Ticket {
        self.with(|state| {
            let ticket = state.arrived.len() as u64;
            state.arrived.push((ticket, tool.to_owned()));
            Ticket(ticket)
        })
    }

    fn forgo(&self, _session: SessionId, ticket: Ticket) {
        self.with(|state| state.forgone.push(ticket.0));
    }

    fn glances(&self, call: &Call) -> bool {
        call.tool.starts_with("quick")
    }

    fn glance(&self, call: &Call) -> Option<Answer> {
        assert_ne!(call.tool, "quick fault", "a fault on purpose");
        (call.tool == "quick").then(|| {
            self.with(|state| state.ran.push(call.ticket.0));
            Fake::text(call.ticket.0.to_string())
        })
    }

    fn call(&self, call: Call) -> Answer {
        if call.tool == "ordered" || call.tool == "quick but not now" {
            // As the real host does: a call runs when all that arrived before it are done.
            self.wait_for(|state| {
                (0..call.ticket.0)
                    .all(|before| state.ran.contains(&before) || state.forgone.contains(&before))
            });
            self.with(|state| state.ran.push(call.ticket.0));
            return Fake::text(call.ticket.0.to_string());
        }
        self.with(|state| {
            state.running += 1;
            state.most_running = state.most_running.max(state.running);
        });
        struct Done<'a>(&'a Fake);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.with(|state| state.running -= 1);
            }
        }
        let _done = Done(self);
        let answer = self.run(&call);
        self.with(|state| state.ran.push(call.ticket.0));
        answer
    }
}
