//! The workspace behind the wire: sessions and their terms, the order of calls, and what goes around every call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use cotenant_coord::{Footprint, NewSession, Touch};
use cotenant_engine::{Landed, Workspace};
use cotenant_model::{
    Access, Agent, AgentRule, ApprovalId, ChangeId, Code, Digest, Durability, FolderId, HUMAN, Profile,
    Refusal, SessionId, ToolSet, WsPath,
};
use serde_json::{Map, Value, json};

use crate::args::{Args, with_end_line};
use crate::files::read_file;
use crate::files::rename_path::is_name;
use crate::gate::Gate;
use crate::host::{Answer, Call, Hello, Host, Ticket};
use crate::planned::Planned;
use crate::questions::Question;
use crate::registry;
use crate::shell::exec::Execs;
use crate::shell::host::ShellHost;
use crate::shell::jobs::Jobs;
use crate::shell::request::IgnoredDirs;
use crate::tool::{Kind, Run, Tool, Verb};

/// No call answers later.
pub(crate) const MOST_WAIT_MS: u64 = 50_000;

/// Bytes of an argument that the journal keeps as it was sent.
const NOTED: usize = 200;

/// The workspace with its tools.
pub struct Toolbox {
    pub(crate) ws: Arc<Workspace>,
    terms: Mutex<HashMap<SessionId, Arc<Terms>>>,
    /// What lands, or is answered, when a human answers.
    pub(crate) questions: Mutex<HashMap<ApprovalId, Question>>,
    /// What judges calls before they run, and their answers.
    pub(crate) gate: Option<Box<dyn Gate>>,
    /// Keys of calls under way: the same key waits for the same answer (R16).
    pub(crate) under_way: Mutex<std::collections::HashSet<(String, String, String)>>,
    /// What commands need of the machine.
    pub(crate) shell: ShellHost,
    /// The commands of all sessions.
    pub(crate) jobs: Jobs,
    /// The ignored directories, as they were found last.
    pub(crate) ignored_dirs: IgnoredDirs,
    /// The open sandboxes.
    pub(crate) execs: Execs,
    /// Itself, for the threads that follow commands.
    me: Weak<Toolbox>,
}

/// What a session agreed to when it opened.
pub(crate) struct Terms {
    pub(crate) profile: Profile,
    pub(crate) durability: Option<Durability>,
    pub(crate) sets: Vec<ToolSet>,
    pub(crate) structured: bool,
    /// Folders that the settings allow this agent for reading only.
    pub(crate) read_only: Vec<FolderId>,
    /// A human gives its commands themselves.
    pub(crate) human: bool,
    /// `--agent` was given: the client's info does not rename it.
    named: bool,
    /// The number in its name otherwise.
    number: u64,
    list: OnceLock<Arc<Vec<Value>>>,
    last_turn: Mutex<Option<String>>,
}

impl Toolbox {
    /// The tools of a workspace. Refused where the rules about commands are none.
    pub fn new(ws: Arc<Workspace>) -> Result<Arc<Toolbox>, Refusal> {
        Toolbox::with(ws, None)
    }

    /// The tools of a workspace, every call of an agent behind a gate.
    pub fn behind(ws: Arc<Workspace>, gate: Box<dyn Gate>) -> Result<Arc<Toolbox>, Refusal> {
        Toolbox::with(ws, Some(gate))
    }

    fn with(ws: Arc<Workspace>, gate: Option<Box<dyn Gate>>) -> Result<Arc<Toolbox>, Refusal> {
        let shell = ShellHost::new(ws.settings())?;
        Ok(Arc::new_cyclic(|me| Toolbox {
            ws,
            terms: Mutex::default(),
            questions: Mutex::default(),
            gate,
            under_way: Mutex::default(),
            shell,
            jobs: Jobs::default(),
            ignored_dirs: IgnoredDirs::default(),
            execs: Execs::default(),
            me: Weak::clone(me),
        }))
    }

    /// Itself, to be held by a thread; `None` while it is dropped.
    pub(crate) fn me(&self) -> Option<Arc<Toolbox>> {
        self.me.upgrade()
    }

    /// Whether a command runs, so that the daemon must not end.
    pub fn is_running(&self) -> bool {
        self.jobs.any_running()
    }

    /// The workspace.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.ws
    }

    fn all_terms(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Terms>>> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn terms(&self, session: SessionId) -> Option<Arc<Terms>> {
        self.all_terms().get(&session).cloned()
    }

    /// The agent of a session.
    pub(crate) fn agent(&self, session: SessionId) -> Agent {
        self.ws.coord().session(session).map_or_else(|| "nobody".into(), |session| Arc::clone(&session.agent))
    }

    /// The paths that a call touches, as far as its arguments tell.
    fn footprint(&self, tool: &'static Tool, args: &Map<String, Value>) -> Footprint {
        // What it repeats or takes back is known only later: it keeps its place among everything.
        if matches!(tool.run, Run::Retry)
            || matches!(tool.run, Run::Shell(Verb::Run | Verb::ExecRun | Verb::ExecPromote))
            || matches!(tool.name, "undo" | "rewind" | "restore_file" | "apply_patch")
        {
            return Footprint::Everything;
        }
        let Ok(args) = Args::decode(tool, args) else { return Footprint::Nothing };
        let mut touches = Vec::new();
        for param in tool.params.iter().filter(|param| param.kind == Kind::Path) {
            let text = args.text(param.name).unwrap_or(".");
            let Ok(path) = self.ws.tree().parse(text) else { continue };
            // What is below goes along with a directory; below a file there is nothing.
            let touch = |at| Touch { at, subtree: true, write: tool.mutates() };
            let name = args.text("new_name").filter(|name| is_name(name));
            let renamed = name.and_then(|name| Some(path.at.parent()?.join(name.as_bytes())));
            touches.extend(renamed.map(touch));
            touches.push(touch(path.at));
        }
        if touches.is_empty() { Footprint::Nothing } else { Footprint::Paths(touches) }
    }

    /// What `[agents.NAME] folders` leaves of the workspace: the folders, and those for reading only.
    fn narrowed_by(&self, rule: &AgentRule) -> (Option<Vec<WsPath>>, Vec<FolderId>) {
        let Some(allowed) = &rule.folders else { return (None, Vec::new()) };
        let folders = self.ws.tree().folders();
        let id = |name: &String| if name.is_empty() { Some(FolderId::ROOT) } else { folders.by_name(name) };
        let within = allowed.keys().filter_map(id).map(|folder| WsPath { folder, ..WsPath::default() });
        let read_only =
            allowed.iter().filter(|(_, access)| **access == Access::Read).filter_map(|(name, _)| id(name));
        (Some(within.collect()), read_only.collect())
    }

    fn narrowed(&self, roots: &[String]) -> Vec<WsPath> {
        let folders = self.ws.tree().folders();
        let path = |root: &String| folders.parse(root.strip_prefix("file://").unwrap_or(root)).ok();
        roots.iter().filter_map(path).map(|path| path.at).collect()
    }
}

impl Host for Toolbox {
    fn open(&self, hello: &Hello) -> Result<SessionId, Refusal> {
        self.ws.check_root()?;
        let settings = self.ws.settings();
        let rule =
            hello.agent.as_ref().and_then(|agent| settings.agents.get(agent)).cloned().unwrap_or_default();
        let profile = hello.profile.or(rule.profile).unwrap_or(settings.profile);
        // What the settings say of an agent by name may only be narrowed.
        let profile = rule.profile.map_or(profile, |most| profile.min(most));
        let (within, read_only) = self.narrowed_by(&rule);
        let id = SessionId(self.ws.next_id("session")?);
        let number = hello.number.unwrap_or(id.0);
        // No agent passes for the human.
        let named = hello.agent.as_ref().filter(|name| hello.human || *name != HUMAN);
        let agent: Agent = named.cloned().unwrap_or_else(|| format!("agent-{number}")).into();
        let who = NewSession {
            agent,
            task: hello.task.as_deref().map(Into::into),
            profile,
            pid: hello.pid,
            ttl_ms: hello.pid.is_none().then_some(3_600_000),
            plan_mode: hello.plan,
            within,
        };
        let terms = Terms {
            profile,
            durability: hello.durability,
            sets: tool_sets(hello.tools.as_ref(), rule.tools.as_ref())
                .unwrap_or_else(|| settings.tools.clone()),
            read_only,
            structured: hello.structured,
            human: hello.human,
            named: named.is_some(),
            number,
            list: OnceLock::new(),
            last_turn: Mutex::default(),
        };
        self.all_terms().insert(id, Arc::new(terms));
        let now = self.ws.clock().steady();
        self.ws.coord().open_session(id, who, now);
        Ok(id)
    }

    fn introduce(&self, session: SessionId, client: &str, roots: Option<&[String]>) {
        let Some(terms) = self.terms(session) else { return };
        let mut coord = self.ws.coord();
        if !terms.named && !client.is_empty() {
            let name: String = client.chars().filter(|ch| !ch.is_control()).take(40).collect();
            coord.rename_session(session, format!("{name}-{}", terms.number).into());
        }
        if let Some(roots) = roots {
            // A root outside of ours narrows to nothing of ours; an announced parent of ours leaves all of it.
            let within = self.narrowed(roots);
            if !within.is_empty() {
                coord.narrow_session(session, within);
            }
        }
    }

    fn close(&self, session: SessionId) {
        let now = self.ws.clock().steady();
        let _ended = self.ws.coord().end_session(session, now);
        self.all_terms().remove(&session);
        self.jobs.end_session(session);
        self.execs.end_session(session);
        self.ws.wake();
    }

    fn tools(&self, session: SessionId) -> Arc<Vec<Value>> {
        let Some(terms) = self.terms(session) else { return Arc::default() };
        Arc::clone(terms.list.get_or_init(|| Arc::new(registry::listing(&terms.sets, terms.structured))))
    }

    fn instructions(&self, session: SessionId) -> String {
        let sets = self.terms(session).map(|terms| terms.sets.clone()).unwrap_or_default();
        crate::instructions::text(&self.ws, &sets)
    }

    fn arrive(&self, session: SessionId, tool: &str, args: &Map<String, Value>) -> Ticket {
        let footprint = registry::find(tool)
            .map_or(Footprint::Nothing, |tool| self.footprint(tool, &with_end_line(tool, args)));
        Ticket(self.ws.coord().arrive(session, footprint))
    }

    fn forgo(&self, _session: SessionId, ticket: Ticket) {
        self.leave(ticket);
    }

    fn glances(&self, call: &Call) -> bool {
        call.tool == read_file::TOOL.name && self.ws.coord().ready(call.ticket.0)
    }

    fn glance(&self, call: &Call) -> Option<Answer> {
        let answer = cotenant_tree::at_once(|| self.answer_at_once(call))??;
        self.leave(call.ticket);
        Some(answer)
    }

    fn call(&self, call: Call) -> Answer {
        let arrived = self.ws.clock().steady();
        let ready = self.ws.wait(self.waits_ms(&call), |coord| coord.ready(call.ticket.0).then_some(()));
        let answer =
            if ready.is_some() { self.answer(&call, arrived) } else { self.render_refusal(&call, busy()) };
        self.leave(call.ticket);
        answer
    }
}

impl Toolbox {
    /// `_meta["cotenant/turn"]`: another value than the last one begins a turn.
    pub(crate) fn mark_turn(&self, session: SessionId, turn: &str) {
        let Some(terms) = self.terms(session) else { return };
        let mut last = terms.last_turn.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_deref() != Some(turn) {
            // The first value names the turn that the session began with.
            if last.is_some() {
                let now = self.ws.clock().steady();
                self.ws.coord().mark_turn(session, now);
            }
            *last = Some(turn.to_owned());
        }
    }

    /// Notes a call in the journal, long texts by their size.
    pub(crate) fn note(&self, call: &Call, code: Result<(), Code>, ms: u64) {
        let short = |value: &Value| match value {
            Value::String(text) if text.len() > NOTED => format!("…{} bytes", text.len()).into(),
            Value::Array(list) if value.to_string().len() > NOTED => format!("…{} items", list.len()).into(),
            other => other.clone(),
        };
        let args: Map<String, Value> =
            call.args.iter().map(|(name, value)| (name.clone(), short(value))).collect();
        let body = json!({
            "session": call.session.to_string(),
            "agent": &*self.agent(call.session),
            "tool": call.tool,
            "args": args,
            "result": code.map_or_else(Code::name, |()| "ok"),
            "ms": ms,
        });
        self.ws.journal("call", body.to_string().as_bytes());
    }

    /// Notes a landed change in the journal.
    pub(crate) fn note_change(&self, session: SessionId, planned: &Planned, landed: &Landed) {
        self.note_files(session, landed.change, planned.undoes, &landed.files);
    }

    /// Notes a change of these files, with what they are now, in the journal.
    pub(crate) fn note_files(
        &self,
        session: SessionId,
        change: ChangeId,
        undoes: Option<ChangeId>,
        files: &[(WsPath, Option<Digest>)],
    ) {
        let folders = self.ws.tree().folders();
        let file = |(at, post): &(WsPath, Option<Digest>)| json!({"path": folders.show(at), "digest": post.map(|digest| digest.hex())});
        let files: Vec<Value> = files.iter().map(file).collect();
        let body = json!({
            "change": change.to_string(),
            "session": session.to_string(),
            "agent": &*self.agent(session),
            "undoes": undoes.map(|undone| undone.to_string()),
            "files": files,
        });
        self.ws.journal("change", body.to_string().as_bytes());
    }

    /// Tells sessions of foreign writes that were found, and notes them in the journal.
    pub(crate) fn take_findings(&self) {
        let folders = self.ws.tree().folders();
        for change in self.ws.take_findings() {
            let files: Vec<String> = change.files.iter().map(|file| folders.show(&file.at)).collect();
            let body = json!({"change": change.id.to_string(), "kind": "observed", "files": files});
            self.ws.journal("change", body.to_string().as_bytes());
        }
    }

    /// A call leaves the order: those behind it may run. Leaving twice is harmless.
    pub(crate) fn leave(&self, ticket: Ticket) {
        let _ready = self.ws.coord().leave(ticket.0);
        self.ws.wake();
    }
}

/// The sets that were asked for, of those that the settings leave the agent.
fn tool_sets(asked: Option<&Vec<ToolSet>>, ruled: Option<&Vec<ToolSet>>) -> Option<Vec<ToolSet>> {
    match (asked, ruled) {
        (Some(asked), Some(ruled)) => Some(asked.iter().copied().filter(|set| ruled.contains(set)).collect()),
        (asked, ruled) => asked.or(ruled).cloned(),
    }
}

pub(crate) fn busy() -> Refusal {
    Refusal::new(
        Code::Busy,
        "An earlier call of this session on the same path is still under way; nothing was done.",
    )
    .fact("waited_s", MOST_WAIT_MS / 1000)
    .next("send the call again when the earlier one has answered")
}
