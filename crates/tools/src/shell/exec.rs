//! Sandboxes: a private view of the workspace that stays open over many calls. Nothing of it lands before it is promoted.
//!
//! In a sandbox the file tools are a workspace of their own over its directory, so that what is said of a path there,
//! confinement, receipts, refusals, is what is said of any. A call whose paths begin with `x1:` goes there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cotenant_engine::effects::{Barrier, Mark, Run as Effected};
use cotenant_engine::{Idempotency, Options, Workspace};
use cotenant_model::{
    Code, Durability, ExecId, ExecLimits, FileSource, FolderId, Profile, Refusal, RelPath, Seen, SessionId,
    State, WsPath,
};
use cotenant_shell::sandbox::OpenOverlay;
use serde_json::{Map, Value, json};

use super::EXEC_OPEN;
use super::effects::Settling;
use super::tasks::{self, Task};
use super::wanted::Wanted;
use crate::args::{Args, bad};
use crate::calls::{Heard, dry};
use crate::ctx::Ctx;
use crate::host::{Call, Hello, Host};
use crate::questions::Then;
use crate::reply::{Reply, call_text};
use crate::tool::{Kind, Run, Tool};
use crate::toolbox::Toolbox;

/// Sandboxes that a session may have open.
const OPEN: usize = 4;

/// An open sandbox.
pub(crate) struct Exec {
    pub(crate) id: ExecId,
    session: SessionId,
    /// What it is called, for people.
    name: String,
    pub(crate) overlay: Arc<OpenOverlay>,
    pub(crate) network: bool,
    pub(crate) limits: ExecLimits,
    /// What had landed when it was opened: what it was made from.
    mark: Mark,
    barrier: Option<Barrier>,
    /// Files that were so young then that their time alone does not tell.
    young: BTreeMap<WsPath, State>,
    /// The file tools over it, and the session that the calls of ours are there.
    inside: Arc<Toolbox>,
    inner: SessionId,
    /// How its commands ended, oldest first.
    runs: Mutex<Vec<String>>,
}

/// The open sandboxes of all sessions.
#[derive(Default)]
pub(crate) struct Execs(Mutex<BTreeMap<ExecId, Arc<Exec>>>);

impl Execs {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ExecId, Arc<Exec>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, session: SessionId, id: ExecId) -> Option<Arc<Exec>> {
        self.all().get(&id).filter(|exec| exec.session == session).cloned()
    }

    fn of(&self, session: SessionId) -> Vec<Arc<Exec>> {
        self.all().values().filter(|exec| exec.session == session).cloned().collect()
    }

    /// Takes a sandbox out; it ends with its last command.
    fn take(&self, id: ExecId) {
        self.all().remove(&id);
    }

    /// Ends all of a session.
    pub(crate) fn end_session(&self, session: SessionId) {
        self.all().retain(|_, exec| exec.session != session);
    }
}

/// A sandbox, and a call's arguments as they are there.
pub(crate) type Routed = (Arc<Exec>, Map<String, Value>);

/// What a sandbox is to be.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    name: String,
    network: bool,
    limits: ExecLimits,
}

impl Opening {
    fn of(ctx: &Ctx<'_>, args: &Args) -> Result<Opening, Refusal> {
        let most = &ctx.settings().exec;
        let within = |argument: &'static str, most: u64| match args.number(argument) {
            None => Ok(most),
            Some(given) => match u64::try_from(given) {
                Ok(given) if given > 0 && given <= most => Ok(given),
                _ => {
                    let why =
                        format!("{argument} is {given}, and can be 1 to {most} ([exec] of cotenant.toml)");
                    Err(bad(ctx.tool, argument, &why))
                }
            },
        };
        let name: String =
            args.text("name").unwrap_or("sandbox").chars().filter(|ch| !ch.is_control()).take(40).collect();
        let limits = ExecLimits {
            memory_mb: within("memory_mb", most.memory_mb)?,
            cpu_s: within("cpu_s", most.cpu_s)?,
            ..most.clone()
        };
        Ok(Opening { name, network: args.flag("network"), limits })
    }
}

impl Toolbox {
    /// `exec_open`.
    pub(super) fn exec_open(&self, heard: &Heard<'_>, key: Option<&Idempotency>) -> Result<Reply, Refusal> {
        let ctx = self.ctx(heard.call.session, heard.tool, &heard.raw);
        let opening = Opening::of(&ctx, &heard.args)?;
        self.may_act(&ctx, &format!("exec_open {}", opening.name))?;
        if self.execs.of(ctx.session).len() >= OPEN {
            let open: Vec<String> =
                self.execs.of(ctx.session).iter().map(|exec| exec.id.to_string()).collect();
            let next = call_text("exec_close", &json!({"exec": open.first()}));
            return Err(Refusal::new(
                Code::LimitReached,
                format!("{OPEN} sandboxes are open; nothing was opened."),
            )
            .fact("open", open)
            .next(next));
        }
        let human = self.terms(ctx.session).is_some_and(|terms| terms.human);
        let granted = ctx.settings().commands.network || human;
        if heard.asked.is_some() || opening.network && !granted {
            let terms = json!({"exec_open": opening.name, "network": opening.network}).to_string();
            let diff = format!(
                "open a sandbox {:?}{}\n",
                opening.name,
                if opening.network { " with network" } else { "" }
            );
            let id = self.raise_terms(
                &ctx,
                terms,
                diff,
                Then::Opens(Box::new(opening)),
                heard.asked.clone(),
                key,
            )?;
            return self.await_answer(heard, id);
        }
        self.opened(ctx.session, opening)
    }

    /// Opens a sandbox.
    pub(crate) fn opened(&self, session: SessionId, opening: Opening) -> Result<Reply, Refusal> {
        let id = ExecId(self.ws.next_id("exec")?);
        let (barrier, mark) = (self.barrier(FolderId::ROOT), self.ws.mark()?);
        let young = self.young(&WsPath::default(), "", barrier);
        let unavailable = |why: String| {
            Refusal::new(
                Code::NotAvailable,
                format!("This machine cannot open a sandbox: {why}. Nothing was opened."),
            )
            .next("run_command runs commands without one")
        };
        let machine = self.shell.machine(&self.ws).map_err(unavailable)?;
        let space = self.jobs.space(session, machine).map_err(|error| unavailable(error.to_string()))?;
        let folders = self.folders(session);
        let caches = self.ws.settings().commands.caches.clone();
        let overlay = OpenOverlay::open(machine, &space, folders, Vec::new(), caches)
            .map_err(|error| unavailable(error.to_string()))?;
        let dir = overlay.dir(usize::from(FolderId::ROOT.0)).map_err(|error| error.to_string());
        let dir =
            dir.and_then(|dir| dir.try_clone().map_err(|error| error.to_string())).map_err(unavailable)?;
        let (inside, inner) = self.inside(session, id, dir)?;
        let Opening { name, network, limits } = opening;
        let exec = Exec {
            id,
            session,
            name,
            overlay: Arc::new(overlay),
            network,
            limits,
            mark,
            barrier,
            young,
            inside,
            inner,
            runs: Mutex::default(),
        };
        let reply = Reply::new()
            .fact("exec", id.to_string())
            .fact("name", exec.name.as_str())
            .fact("network", network)
            .content(format!(
                "Files in it are {id}:path in every file tool; {} runs commands in it; {} brings its changes into the workspace.",
                call_text("exec_run", &json!({"exec": id.to_string(), "command": "…"})),
                call_text("exec_promote", &json!({"exec": id.to_string()}))
            ));
        self.execs.all().insert(id, Arc::new(exec));
        Ok(reply)
    }

    /// The file tools over a sandbox, with a session of their own: nothing is asked there, for nothing of it lands.
    fn inside(
        &self,
        session: SessionId,
        id: ExecId,
        dir: std::os::fd::OwnedFd,
    ) -> Result<(Arc<Toolbox>, SessionId), Refusal> {
        let mut settings = self.ws.settings().clone();
        settings.profile = Profile::Trusting;
        settings.durability = Durability::Fast;
        settings.folders.clear();
        let options = Options {
            root: self.ws.tree().host_path(FolderId::ROOT).to_owned(),
            state: self.ws.scratch().join(format!("{id}-files")),
            settings,
            clock: self.ws.shared_clock(),
        };
        let workspace = Workspace::over(dir, &id.to_string(), options)?;
        let inside = Toolbox::new(Arc::new(workspace))?;
        let agent = self.agent(session).to_string();
        let hello = Hello { agent: Some(agent), human: true, structured: true, ..Hello::default() };
        let inner = inside.open(&hello)?;
        Ok((inside, inner))
    }

    /// `exec_run`.
    pub(super) fn exec_run(&self, heard: &Heard<'_>, key: Option<&Idempotency>) -> Result<Reply, Refusal> {
        let exec = self.exec_of(heard)?;
        let ctx = self.ctx(heard.call.session, heard.tool, &heard.raw);
        let command = self.exec_command(&ctx, &exec, &heard.args)?;
        let wanted = Wanted::in_exec(&ctx, &heard.args, exec.id, command)?;
        self.run_wanted(&ctx, heard, wanted, key)
    }

    /// The command of a call: as it is, or the project's own for a task.
    fn exec_command(&self, ctx: &Ctx<'_>, exec: &Exec, args: &Args) -> Result<String, Refusal> {
        match (args.text("command"), args.text("task").and_then(Task::parse)) {
            (Some(command), None) if !command.trim().is_empty() => Ok(command.to_owned()),
            (None, Some(task)) => tasks::command(exec, task).ok_or_else(|| {
                let word = args.need("task");
                Refusal::new(
                    Code::NotFound,
                    format!("Nothing at the root says how this project does its {word}."),
                )
                .fact("task", word)
                .next(ctx.call("exec_run", json!({"exec": exec.id.to_string(), "command": "…"})))
            }),
            _ => Err(bad(ctx.tool, "command", "exec_run takes either command or task")),
        }
    }

    /// The sandbox that a call names.
    pub(super) fn exec_of(&self, heard: &Heard<'_>) -> Result<Arc<Exec>, Refusal> {
        let name = heard.args.need("exec").trim();
        let found = name.parse::<ExecId>().ok().and_then(|id| self.execs.get(heard.call.session, id));
        found.ok_or_else(|| self.no_exec(heard.call.session, name))
    }

    pub(super) fn no_exec(&self, session: SessionId, name: &str) -> Refusal {
        let open: Vec<String> = self.execs.of(session).iter().map(|exec| exec.id.to_string()).collect();
        let refusal = Refusal::new(Code::NotFound, format!("{name:?} is no open sandbox of this session."))
            .fact("exec", name);
        match open.is_empty() {
            true => refusal.next(call_text(EXEC_OPEN.name, &json!({}))),
            false => refusal.fact("open", open.clone()).next(format!("use {}", open.join(" or "))),
        }
    }

    /// `exec_promote`.
    pub(super) fn exec_promote(
        &self,
        heard: &Heard<'_>,
        key: Option<&Idempotency>,
    ) -> Result<Reply, Refusal> {
        let exec = self.exec_of(heard)?;
        let ctx = self.ctx(heard.call.session, heard.tool, &heard.raw);
        let only = self.promoted_paths(&ctx, &exec, &heard.args)?;
        let upper = exec.overlay.upper().map_err(|error| {
            Refusal::new(
                Code::Busy,
                format!("{} cannot be looked at: {error}. Nothing was changed.", exec.id),
            )
            .next(ctx.call("retry", json!({"token": ctx.retry_token()})))
        })?;
        let mut upper = self.sorted(&upper, &super::upper::writable(exec.overlay.folders()))?;
        if !only.is_empty() {
            upper.effects.retain(|at, _| only.iter().any(|path| at.is_within(path)));
        }
        let mut head = Reply::new().fact("exec", exec.id.to_string());
        for odd in upper.odd.iter().chain(upper.git.first()) {
            head = head.notice(format!("left out: {odd}"));
        }
        let run = Effected {
            effects: upper.effects,
            opaque: upper.opaque,
            barrier: exec.barrier,
            mark: exec.mark.clone(),
            saw: exec.young.clone(),
        };
        let settling = Settling { run, head, left: None };
        let planned = self.merged(&ctx, &settling)?;
        if heard.args.flag("dry_run") {
            return Ok(dry(&ctx, &heard.args, &planned));
        }
        if planned.ops.is_empty() {
            return Err(Refusal::new(
                Code::NothingToChange,
                "The sandbox holds nothing that the workspace has not.",
            )
            .fact("exec", exec.id.to_string())
            .next("go on; ignored files are not promoted"));
        }
        self.land_or_ask(heard, planned, false, Then::Merges(Arc::new(settling)), key)
    }

    /// `paths` of a promotion, with or without the sandbox's name before them.
    fn promoted_paths(&self, ctx: &Ctx<'_>, exec: &Exec, args: &Args) -> Result<Vec<WsPath>, Refusal> {
        let prefix = format!("{}:", exec.id);
        args.texts("paths")
            .into_iter()
            .map(|text| ctx.path(text.strip_prefix(&prefix).unwrap_or(text)))
            .collect()
    }

    /// `exec_close`.
    pub(super) fn exec_close(&self, heard: &Heard<'_>) -> Result<Reply, Refusal> {
        let exec = self.exec_of(heard)?;
        for job in self.jobs.of(heard.call.session) {
            if job.wanted.exec == Some(exec.id) && job.end().is_none() {
                job.process.stop();
                self.ws.wait(self.left_ms(heard), |_| job.end());
            }
        }
        exec.overlay.close();
        self.execs.take(exec.id);
        let runs = exec.runs();
        Ok(Reply::new().fact("exec", exec.id.to_string()).fact("closed", true).fact("runs", runs.len()))
    }

    /// The sandbox that a call's paths, or its token or handle, lie in, and the arguments as they are there. Paths
    /// inside and outside in one call are refused.
    pub(crate) fn routed(&self, heard: &Heard<'_>) -> Result<Option<Routed>, Refusal> {
        let tool = heard.tool;
        let named = |value: &Value| value.as_str().is_some_and(|text| in_sandbox(text).is_some());
        // What is in a sandbox leads to no other.
        let inside_already = !self.ws.tree().folders().name(FolderId::ROOT).is_empty();
        if inside_already || !heard.raw.values().any(named) || !reaches_in(tool) {
            return Ok(None);
        }
        let mut args = heard.raw.clone();
        let mut inside: Option<ExecId> = None;
        let mut outside = false;
        for (name, value) in &mut args {
            let kind = place_kind(tool, &crate::args::canonical(tool, name));
            let (Some(text), Some(kind)) = (value.as_str(), kind) else { continue };
            match in_sandbox(text) {
                None => outside |= kind == Place::Path,
                Some((id, rest)) => {
                    if inside.is_some_and(|other| other != id) {
                        return Err(two_places(tool));
                    }
                    inside = Some(id);
                    if kind == Place::Token {
                        *value = rest.to_owned().into();
                    }
                }
            }
        }
        let Some(id) = inside else { return Ok(None) };
        if outside {
            return Err(two_places(tool));
        }
        match self.execs.get(heard.call.session, id) {
            Some(exec) => Ok(Some((exec, args))),
            None => Err(self.no_exec(heard.call.session, &id.to_string())),
        }
    }
}

impl Exec {
    /// Carries out a file tool's call in it.
    pub(crate) fn carry_out(&self, heard: &Heard<'_>, raw: Map<String, Value>) -> Result<Reply, Refusal> {
        let args = Args::decode(heard.tool, &raw)?;
        let ticket = self.inside.arrive(self.inner, heard.tool.name, &raw);
        let call = Call { session: self.inner, args: raw.clone(), ticket, ..heard.call.clone() };
        let inner = Heard { call: &call, tool: heard.tool, raw, args, asked: None, began: heard.began };
        let ready =
            self.inside.ws.wait(self.inside.left_ms(&inner), |coord| coord.ready(ticket.0).then_some(()));
        let outcome = match ready {
            Some(()) => self.inside.carry_out(&inner, None),
            None => Err(crate::toolbox::busy()),
        };
        self.inside.leave(ticket);
        outcome
    }

    /// Notes how a command ended.
    pub(super) fn ran(&self, line: String) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// How its commands ended, oldest first.
    pub(super) fn runs(&self) -> Vec<String> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Exec {
    fn seen(&self, name: &str) -> Seen {
        let at = RelPath::parse(name).map(WsPath::root).unwrap_or_default();
        self.inside.ws.see(&at)
    }
}

impl tasks::Root for Exec {
    fn has(&self, name: &str) -> bool {
        matches!(self.seen(name), Seen::File { .. })
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.seen(name) {
            Seen::File { content, .. } => String::from_utf8(content.to_vec()).ok(),
            _ => None,
        }
    }
}

/// What an argument says of where a call happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Path,
    Token,
}

fn place_kind(tool: &Tool, name: &str) -> Option<Place> {
    match name {
        "token" | "handle" => Some(Place::Token),
        "cwd" => Some(Place::Path),
        _ => {
            let param = tool.params.iter().find(|param| param.name == name)?;
            (param.kind == Kind::Path).then_some(Place::Path)
        }
    }
}

/// Whether a tool works on files, or repeats what does: commands have their own way into a sandbox.
fn reaches_in(tool: &Tool) -> bool {
    matches!(tool.run, Run::Look(_) | Run::Change(_) | Run::Retry)
}

/// `x1:path`: the sandbox, and the rest.
pub(super) fn in_sandbox(text: &str) -> Option<(ExecId, &str)> {
    let (name, rest) = text.split_once(':')?;
    Some((name.parse().ok()?, rest))
}

fn two_places(tool: &Tool) -> Refusal {
    Refusal::new(Code::BadInput, "The call names paths inside and outside of a sandbox, or in two; nothing was done.")
        .fact("tool", tool.name)
        .next("exec_promote brings files from a sandbox into the workspace; within one, begin every path with its name")
}
