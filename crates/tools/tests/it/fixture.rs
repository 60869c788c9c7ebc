//! A workspace in a scratch folder with its tools, a clock that stands still, and calls as a client makes them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cotenant_engine::{Clock, Options, Workspace};
use cotenant_model::{Millis, Profile, Refusal, SessionId, Settings, ToolSet};
use cotenant_tools::Toolbox;
use cotenant_tools::gate::Gate;
use cotenant_tools::host::{Answer, Call, Hello, Host};
use serde_json::{Map, Value};

/// A clock that a test moves.
pub(crate) struct Hand(AtomicU64);

impl Clock for Hand {
    fn wall(&self) -> Millis {
        Millis(1_796_053_442_000 + self.0.load(Ordering::SeqCst))
    }
    fn steady(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct Fixture {
    base: PathBuf,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) session: SessionId,
    clock: Arc<Hand>,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture::with(Settings { profile: Profile::Trusting, ..Settings::default() })
    }

    pub(crate) fn careful() -> Fixture {
        Fixture::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Fixture {
        Fixture::made(settings, Toolbox::new)
    }

    /// With every call behind a gate.
    pub(crate) fn behind(settings: Settings, gate: Box<dyn Gate>) -> Fixture {
        Fixture::made(settings, |workspace| Toolbox::behind(workspace, gate))
    }

    fn made(
        settings: Settings,
        toolbox: impl FnOnce(Arc<Workspace>) -> Result<Arc<Toolbox>, Refusal>,
    ) -> Fixture {
        let base = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "tools");
        std::fs::create_dir_all(base.join("root")).unwrap();
        let clock = Arc::new(Hand(AtomicU64::new(1000)));
        let options = Options {
            root: base.join("root"),
            state: base.join("state"),
            settings,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
        };
        let workspace = Workspace::open(options).unwrap_or_else(|refusal| panic!("{refusal}"));
        let toolbox = toolbox(Arc::new(workspace)).unwrap_or_else(|refusal| panic!("{refusal}"));
        let session = open(&toolbox, "agent-a");
        Fixture { base, toolbox, session, clock }
    }

    /// Another session.
    pub(crate) fn session(&self, agent: &str) -> SessionId {
        open(&self.toolbox, agent)
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.base.join("root").join(relative)
    }

    pub(crate) fn put(&self, relative: &str, bytes: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(relative).parent().unwrap()).unwrap();
        std::fs::write(self.path(relative), bytes).unwrap();
    }

    pub(crate) fn get(&self, relative: &str) -> String {
        String::from_utf8(std::fs::read(self.path(relative)).unwrap()).unwrap()
    }

    pub(crate) fn has(&self, relative: &str) -> bool {
        std::fs::symlink_metadata(self.path(relative)).is_ok()
    }

    pub(crate) fn call(&self, tool: &str, args: Value) -> Answer {
        self.call_as(self.session, tool, args)
    }

    pub(crate) fn call_as(&self, session: SessionId, tool: &str, args: Value) -> Answer {
        let args: Map<String, Value> = args.as_object().cloned().unwrap_or_default();
        let ticket = self.toolbox.arrive(session, tool, &args);
        let call = Call { session, tool: tool.to_owned(), args, meta: Map::new(), ticket };
        // As the transport does.
        let glanced = self.toolbox.glances(&call).then(|| self.toolbox.glance(&call)).flatten();
        glanced.unwrap_or_else(|| self.toolbox.call(call))
    }

    /// A call that must succeed.
    pub(crate) fn ok(&self, tool: &str, args: Value) -> String {
        let answer = self.call(tool, args);
        assert!(!answer.is_error, "{}", answer.text);
        answer.text
    }

    /// A call that must be refused with `code`.
    pub(crate) fn no(&self, code: &str, tool: &str, args: Value) -> String {
        let answer = self.call(tool, args);
        assert!(answer.text.starts_with(code), "{code} wanted: {}", answer.text);
        answer.text
    }

    /// A call of another session that must succeed.
    pub(crate) fn ok_as(&self, session: SessionId, tool: &str, args: Value) -> String {
        let answer = self.call_as(session, tool, args);
        assert!(!answer.is_error, "{}", answer.text);
        answer.text
    }

    /// Every byte of a file as it is.
    pub(crate) fn bytes(&self, relative: &str) -> Vec<u8> {
        std::fs::read(self.path(relative)).unwrap()
    }

    /// The ids of all changes, newest first.
    pub(crate) fn changes(&self) -> Vec<String> {
        let history = self.ok("history", serde_json::json!({"limit": 1000}));
        body(&history).lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
    }

    /// Carries out the first call that an answer's `next:` names.
    pub(crate) fn follow(&self, text: &str) -> Answer {
        let (tool, args) = next_calls(text).into_iter().next().unwrap_or_else(|| panic!("no call: {text}"));
        self.call(&tool, args)
    }

    /// Carries out the `retry` that a refusal offers.
    pub(crate) fn retry(&self, refusal: &str) -> Answer {
        let next = refusal.rsplit("retry {").next().unwrap();
        let text = format!("{{{next}");
        let args = serde_json::Deserializer::from_str(&text).into_iter::<Value>().next().unwrap().unwrap();
        self.call("retry", args)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.toolbox.workspace().settle();
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

fn open(toolbox: &Toolbox, agent: &str) -> SessionId {
    let hello =
        Hello { agent: Some(agent.to_owned()), tools: Some(ToolSet::ALL.to_vec()), ..Hello::default() };
    toolbox.open(&hello).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The value of a fact on line 1.
pub(crate) fn fact(text: &str, name: &str) -> Option<String> {
    let line = text.lines().next()?;
    let start = line
        .find(&format!(" {name}="))
        .map(|at| at + name.len() + 2)
        .or_else(|| line.starts_with(&format!("{name}=")).then_some(name.len() + 1))?;
    let rest = &line[start..];
    // Up to the first space that stands in no string.
    let (mut inside, mut escaped) = (false, false);
    let end = rest.char_indices().find(|(_, ch)| {
        let ends = *ch == ' ' && !inside;
        inside ^= *ch == '"' && !escaped;
        escaped = *ch == '\\' && !escaped;
        ends
    });
    let end = end.map_or(rest.len(), |(at, _)| at);
    Some(rest[..end].to_owned())
}

/// What stands below line 1 and its notices.
pub(crate) fn body(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let notices: usize = fact(first, "notices").map_or(0, |count| count.parse().unwrap());
    rest.splitn(notices + 1, '\n').nth(notices).unwrap_or_default().to_owned()
}

/// The notices that line 1 announces.
pub(crate) fn notices(text: &str) -> Vec<String> {
    let count: usize = fact(text, "notices").map_or(0, |count| count.parse().unwrap());
    text.lines().skip(1).take(count).map(str::to_owned).collect()
}

/// The calls in the `next:` line of an answer: a tool's name and JSON arguments.
pub(crate) fn next_calls(text: &str) -> Vec<(String, Value)> {
    let Some((_, next)) = text.rsplit_once("\nnext: ") else { return Vec::new() };
    let tools = cotenant_tools::registry::TOOLS.iter().map(|tool| tool.name);
    let mut calls: Vec<(usize, String, Value)> = tools
        .flat_map(|name| {
            next.match_indices(&format!("{name} {{")).map(|(at, _)| (at, name)).collect::<Vec<_>>()
        })
        .map(|(at, name)| {
            let json = &next[at + name.len() + 1..];
            let args = serde_json::Deserializer::from_str(json).into_iter::<Value>().next();
            let args = args.and_then(Result::ok).unwrap_or_else(|| panic!("no JSON after {name}: {next}"));
            (at, name.to_owned(), args)
        })
        .collect();
    calls.sort_by_key(|call| call.0);
    calls.into_iter().map(|(_, name, args)| (name, args)).collect()
}
