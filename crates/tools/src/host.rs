//! What the wire sees of the workspace: sessions are opened, calls arrive, answers come back. Knows no transport.

use std::sync::Arc;

use cotenant_model::{Durability, Profile, Refusal, SessionId, ToolSet};
use serde_json::{Map, Value};

/// What a connection says of itself when it opens: the flags of `cotenant mcp`, or the defaults of an HTTP token.
#[derive(Clone, Debug, Default)]
pub struct Hello {
    /// `--agent`; without it the agent is named `CLIENT-N` after the client's info.
    pub agent: Option<String>,
    /// `--task`.
    pub task: Option<String>,
    /// `--profile`; it may only narrow what the settings say of the agent.
    pub profile: Option<Profile>,
    /// `--durability`.
    pub durability: Option<Durability>,
    /// `--tools`.
    pub tools: Option<Vec<ToolSet>>,
    /// `--structured`: answers carry `structuredContent`, the list output schemas.
    pub structured: bool,
    /// `--plan`.
    pub plan: bool,
    /// The number in the name of an agent without one: a bridge that found another daemon brings the one it had, so
    /// that it stays the agent it was.
    pub number: Option<u64>,
    /// A human gives the commands of this session themselves. Never from the wire.
    pub human: bool,
    /// The process the session is tied to; `None` over HTTP.
    pub pid: Option<u32>,
}

/// One tool call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whose.
    pub session: SessionId,
    /// The tool's name as it was sent.
    pub tool: String,
    /// Its arguments as they were sent.
    pub args: Map<String, Value>,
    /// `_meta` of the request.
    pub meta: Map<String, Value>,
    /// The place in the session's order, from [`Host::arrive`].
    pub ticket: Ticket,
}

/// A call's place in the order of arrival of its session (R17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A call's answer: exactly one text block, with the same facts in `_meta`.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The text block.
    pub text: String,
    /// `isError`.
    pub is_error: bool,
    /// `_meta` of the result: `cotenant/facts` or `cotenant/refusal`, `cotenant/notices`.
    pub meta: Map<String, Value>,
    /// `structuredContent`, where the session asked for it.
    pub structured: Option<Value>,
}

impl Answer {
    /// Adds a line for the model: announced on line 1, below the notices that are there.
    pub fn notice(&mut self, notice: &str) {
        // A notice is one line: what is in it must not end the line and fake another.
        let notice = notice.replace(['\n', '\r'], " ");
        let (first, rest) =
            self.text.split_once('\n').map_or((&*self.text, None), |(first, rest)| (first, Some(rest)));
        // A fact's value with a space in it stands in quotes, so that this is one of ours.
        let (facts, told) = first.rsplit_once("notices=").map_or((first, 0), |(facts, count)| {
            let ours = facts.is_empty() || facts.ends_with(' ');
            count.parse::<usize>().ok().filter(|_| ours).map_or((first, 0), |count| (facts, count))
        });
        let mut lines: Vec<&str> = rest.into_iter().flat_map(|rest| rest.split('\n')).collect();
        let line = format!("! {notice}");
        lines.insert(told.min(lines.len()), &line);
        let space = if facts.is_empty() || facts.ends_with(' ') { "" } else { " " };
        let text = format!("{facts}{space}notices={}\n{}", told + 1, lines.join("\n"));
        if let Some(Value::Object(fields)) = &mut self.structured {
            if let Value::Array(list) = fields.entry("notices").or_insert_with(|| Value::Array(Vec::new())) {
                list.push(notice.into());
            }
            fields.insert("text".to_owned(), text.as_str().into());
        }
        self.text = text;
    }

    /// A fact of the answer or of the refusal that it is.
    pub fn fact(&self, name: &str) -> Option<&Value> {
        let of = |name: &str| self.meta.get(name).and_then(Value::as_object);
        let facts = of("cotenant/facts").or_else(|| of("cotenant/refusal")?.get("facts")?.as_object());
        facts?.get(name)
    }
}

/// The workspace behind a transport. Every method may be called from any thread.
pub trait Host: Send + Sync + 'static {
    /// Opens a session. A refusal (a root that is gone, a profile that is not allowed) ends the connection.
    fn open(&self, hello: &Hello) -> Result<SessionId, Refusal>;

    /// The client said who it is (`clientInfo.name`), and which roots it announced (they may only narrow).
    fn introduce(&self, session: SessionId, client: &str, roots: Option<&[String]>);

    /// Ends a session: its waiting calls are answered, its leases go.
    fn close(&self, session: SessionId);

    /// The `tools` array of `tools/list` for the session; does not change within a connection.
    fn tools(&self, session: SessionId) -> Arc<Vec<Value>>;

    /// The server's `instructions`.
    fn instructions(&self, session: SessionId) -> String;

    /// Takes a place in the session's order. Called in order of arrival, by the reader; must not block.
    fn arrive(&self, session: SessionId, tool: &str, args: &Map<String, Value>) -> Ticket;

    /// Gives a place back without a call: the call was cancelled before it ran.
    fn forgo(&self, session: SessionId, ticket: Ticket);

    /// Whether [`Host::glance`] may answer the call: it is short, and its turn has come. Must not block.
    fn glances(&self, _call: &Call) -> bool {
        false
    }

    /// Carries the call out on the caller's thread, if nothing in it has to wait, and gives its place back. `None`:
    /// nothing was done, and it is to be carried out by [`Host::call`].
    fn glance(&self, _call: &Call) -> Option<Answer> {
        None
    }

    /// Carries the call out. Blocks, at most 50 s.
    fn call(&self, call: Call) -> Answer;
}
