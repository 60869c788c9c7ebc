//! One command from the call to its start: whether it may run, whether a shell is needed, how it runs, who is asked first.

use std::sync::Arc;

use cotenant_coord::Handle;
use cotenant_engine::Idempotency;
use cotenant_model::{Answer, ApprovalId, Code, JobId, Plan, Profile, Refusal, SessionId, WsPath};
use cotenant_shell::policy::{GitUse, Judgement, Verdict};
use cotenant_shell::run;
use cotenant_shell::sandbox::StartError;
use serde_json::json;

use super::RUN;
use super::exec::Exec;
use super::finish::AfterRun;
use super::jobs::Job;
use super::wanted::{Mode, Wanted};
use crate::calls::Heard;
use crate::ctx::Ctx;
use crate::gate::AskedBy;
use crate::planned::Planned;
use crate::questions::{Raised, Then};
use crate::reply::Reply;
use crate::toolbox::Toolbox;

/// Where a command is to run.
#[derive(Clone)]
pub(super) enum Where {
    /// On a copy of the workspace.
    Staged,
    /// In the workspace itself.
    Direct,
    /// In a sandbox.
    Inside(Arc<Exec>),
}

/// How a command is to run.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) place: Where,
    pub(super) network: bool,
    /// Why it does not run staged, where it was not asked for.
    pub(super) why: Option<String>,
}

impl Way {
    pub(super) fn word(&self) -> &'static str {
        match self.place {
            Where::Staged => "staged",
            Where::Direct => "direct",
            Where::Inside(_) => "exec",
        }
    }

    /// Whether what it does may reach the workspace or the outside before anybody saw it.
    fn is_open(&self) -> bool {
        match self.place {
            Where::Staged => self.network,
            Where::Direct => true,
            // Its network was agreed to when it was opened.
            Where::Inside(_) => false,
        }
    }
}

impl Toolbox {
    /// `run_command`.
    pub(super) fn command(&self, heard: &Heard<'_>, key: Option<&Idempotency>) -> Result<Reply, Refusal> {
        let ctx = self.ctx(heard.call.session, heard.tool, &heard.raw);
        let wanted = Wanted::of(&ctx, &heard.args)?;
        self.run_wanted(&ctx, heard, wanted, key)
    }

    /// Runs it, or has a human asked first.
    pub(super) fn run_wanted(
        &self,
        ctx: &Ctx<'_>,
        heard: &Heard<'_>,
        wanted: Wanted,
        key: Option<&Idempotency>,
    ) -> Result<Reply, Refusal> {
        let judged = self.judged(&wanted);
        self.permitted(ctx, &wanted, &judged)?;
        if let Some(reply) = self.without_shell(ctx, heard, &wanted, &judged, key)? {
            return Ok(reply);
        }
        let way = self.way(ctx, &wanted, &judged)?;
        if heard.asked.is_some() || self.asks_first(heard.call.session, &judged, &way) {
            let raised = self.ask_first(ctx, wanted, &judged, &way, heard.asked.clone(), key)?;
            return self.await_answer(heard, raised);
        }
        let job = self.start_job(ctx, wanted, &judged, way, None, key)?;
        let wait_ms = if job.wanted.background { 0 } else { self.follows_ms(heard) };
        self.followed(heard, &job, wait_ms)
    }

    /// What policy says of the command.
    pub(super) fn judged(&self, wanted: &Wanted) -> Judgement {
        super::floor::judge(&self.ws, self.shell.rules(), &wanted.command, &wanted.cwd, &wanted.env)
    }

    /// Whether it may run at all: the floor and the rules, the profile, plan mode.
    fn permitted(&self, ctx: &Ctx<'_>, wanted: &Wanted, judged: &Judgement) -> Result<(), Refusal> {
        if let Verdict::Deny { part, rule, why, next } = &judged.verdict {
            return Err(super::floor::denied(ctx.tool_name(), part, rule, why, next));
        }
        if let Some((Answer::Deny, index)) = self.ws.tool_rule(RUN.name, &wanted.cwd) {
            let rule = format!("approvals.rules[{index}]");
            let why = "A rule of cotenant.toml denies run_command; nothing was run.";
            return Err(Refusal::new(Code::ApprovalDenied, why)
                .fact("tool", RUN.name)
                .fact("rule", rule)
                .next("go on with the file tools, or tell the user what you would run"));
        }
        if judged.verdict == Verdict::ReadOnly {
            return Ok(());
        }
        self.may_act(ctx, &wanted.command)
    }

    /// Whether the session's profile and mode let anything happen that is not known to change nothing.
    pub(super) fn may_act(&self, ctx: &Ctx<'_>, command: &str) -> Result<(), Refusal> {
        let (plan_mode, profile) = {
            let coord = self.ws.coord();
            let me = coord.session(ctx.session);
            (me.is_some_and(|me| me.plan_mode), me.map_or(self.ws.settings().profile, |me| me.profile))
        };
        let refuse = |code, why: &str, next: &str| {
            Err(Refusal::new(code, why).fact("tool", RUN.name).fact("command", brief(command)).next(next))
        };
        if profile == Profile::ReadOnly {
            return refuse(
                Code::ProfileReadOnly,
                "The profile readonly lets only commands run that are known to change nothing; nothing was run.",
                "go on reading and searching, and tell the user what you would run",
            );
        }
        if plan_mode {
            return refuse(
                Code::PlanMode,
                "Plan mode is on until a human approves a plan; this is not known to change nothing, so nothing was run. Reading, searching, dry_run and read-only commands work.",
                "go on reading and searching, and tell the user what you plan to run",
            );
        }
        Ok(())
    }

    /// Staged where the machine can and the command bears it, else direct: with the reason, where nobody asked for it.
    pub(super) fn way(&self, ctx: &Ctx<'_>, wanted: &Wanted, judged: &Judgement) -> Result<Way, Refusal> {
        let network = self.ws.settings().commands.network;
        if let Some(id) = wanted.exec {
            let exec =
                self.execs.get(ctx.session, id).ok_or_else(|| self.no_exec(ctx.session, &id.to_string()))?;
            return Ok(Way { network: exec.network, place: Where::Inside(exec), why: None });
        }
        let way = |place, why| Ok(Way { place, network, why });
        match wanted.mode {
            Mode::Direct => way(Where::Direct, None),
            Mode::Auto if judged.git == GitUse::Writes => {
                way(Where::Direct, Some("it writes .git, which git alone does".to_owned()))
            }
            Mode::Auto => match self.stageable() {
                Ok(()) => way(Where::Staged, None),
                Err(why) => way(Where::Direct, Some(why)),
            },
            Mode::Staged => match self.stageable() {
                Ok(()) => way(Where::Staged, None),
                Err(why) => Err(Refusal::new(
                    Code::NotAvailable,
                    format!("This workspace cannot run a command staged: {why}. Nothing was run."),
                )
                .fact("mode", "staged")
                .next(ctx.call("retry", json!({"token": ctx.retry_token(), "set": {"mode": "direct"}})))),
            },
        }
    }

    /// Whether commands can run on a copy here.
    fn stageable(&self) -> Result<(), String> {
        self.shell.machine(&self.ws)?.staged()
    }

    /// Whether a human must say yes before anything runs. What runs staged and without network is asked about, once, when
    /// it is known what it would change.
    pub(super) fn asks_first(&self, session: SessionId, judged: &Judgement, way: &Way) -> bool {
        let terms = self.terms(session);
        if terms.as_ref().is_some_and(|terms| terms.human) {
            return false;
        }
        let rule = self.ws.tool_rule(RUN.name, &WsPath::default()).map(|(answer, _)| answer);
        match (&judged.verdict, rule) {
            (Verdict::Ask { .. }, _) | (_, Some(Answer::Ask)) => true,
            (Verdict::ReadOnly | Verdict::Allowed, _) | (_, Some(Answer::Allow)) => false,
            _ => {
                let profile = terms.map_or(self.ws.settings().profile, |terms| terms.profile);
                profile == Profile::Careful && way.is_open()
            }
        }
    }

    /// Whether a human must agree to whatever the command does: in careful, unless a rule lets it run. What it only creates
    /// may be what runs next time, so that is asked about too.
    pub(super) fn is_strict(&self, session: SessionId, judged: &Judgement) -> bool {
        let rule = self.ws.tool_rule(RUN.name, &WsPath::default()).map(|(answer, _)| answer);
        let allowed = judged.verdict == Verdict::Allowed || rule == Some(Answer::Allow);
        let profile = self.terms(session).map_or(self.ws.settings().profile, |terms| terms.profile);
        profile == Profile::Careful && !allowed
    }

    /// Puts the command itself before a human.
    pub(super) fn ask_first(
        &self,
        ctx: &Ctx<'_>,
        wanted: Wanted,
        judged: &Judgement,
        way: &Way,
        asked: Option<AskedBy>,
        key: Option<&Idempotency>,
    ) -> Result<ApprovalId, Refusal> {
        let cwd = ctx.show(&wanted.cwd);
        let terms = wanted.terms(&cwd, way.word(), way.network);
        let diff = question(&wanted, &cwd, judged, way);
        self.raise_terms(ctx, terms, diff, Then::Runs(Box::new(wanted)), asked, key)
    }

    /// Puts something before a human that is no plan yet: `terms` is what a yes binds to, `diff` what is shown.
    pub(super) fn raise_terms(
        &self,
        ctx: &Ctx<'_>,
        terms: String,
        diff: String,
        then: Then,
        asked: Option<AskedBy>,
        key: Option<&Idempotency>,
    ) -> Result<ApprovalId, Refusal> {
        let planned = Planned::default();
        let now = self.ws.clock().steady();
        let turn = self.ws.coord().turn_for_change(ctx.session, now);
        let command = Some(terms.into());
        let plan = Plan { diff, command, ..self.plan(ctx.session, ctx.tool, &planned, turn) };
        let (session, tool, raw) = (ctx.session, ctx.tool, ctx.raw);
        self.raise(Raised { session, tool, raw, plan, planned, then, asked, key })
    }

    /// Starts the command; from here on it is a job that ends by itself.
    pub(super) fn start_job(
        &self,
        ctx: &Ctx<'_>,
        wanted: Wanted,
        judged: &Judgement,
        way: Way,
        approved: Option<ApprovalId>,
        key: Option<&Idempotency>,
    ) -> Result<Arc<Job>, Refusal> {
        let session = ctx.session;
        let machine = self.shell.machine(&self.ws).map_err(|why| unable(ctx, &why))?;
        let after = AfterRun::before(self, ctx, &wanted, judged, &way, approved, key)?;
        let agreed = approved.is_some() || self.terms(session).is_some_and(|terms| terms.human);
        let request = self.request(session, &wanted, judged, &way, agreed);
        let space = self.jobs.space(session, machine).map_err(|error| not_started(ctx, &error))?;
        let process = run::start(machine, &space, request).map_err(|error| not_started(ctx, &error))?;
        let id = JobId(self.ws.next_id("job")?);
        let handle = {
            let title = format!("run_command {}", brief(&wanted.command));
            let now = self.ws.clock().steady();
            self.ws.coord().keep_handle(session, Handle { title, bytes: Vec::new().into() }, now)
        };
        let began = self.ws.clock().steady();
        let job = Arc::new(Job::new(id, session, wanted, began, way.word(), handle, process));
        self.jobs.add(&job);
        if let Some(question) = approved {
            self.begins(question, id);
        }
        self.attend(&job, after);
        Ok(job)
    }
}

/// A command in an answer's first line.
pub(super) fn brief(command: &str) -> String {
    let line = command.lines().next().unwrap_or_default();
    let cut = line.floor_char_boundary(120);
    if cut < command.len() { format!("{}…", &line[..cut]) } else { line.to_owned() }
}

fn unable(ctx: &Ctx<'_>, why: &str) -> Refusal {
    Refusal::new(Code::NotAvailable, format!("Commands cannot be run here: {why}. Nothing was run."))
        .fact("tool", ctx.tool_name())
        .next("go on with the file tools, and tell the user; `cotenant doctor` says what is missing")
}

fn not_started(ctx: &Ctx<'_>, error: &StartError) -> Refusal {
    let refusal = |code| {
        Refusal::new(code, format!("The command could not be started: {error}. Nothing was run."))
            .fact("tool", ctx.tool_name())
    };
    let again = |set| ctx.call("retry", json!({"token": ctx.retry_token(), "set": set}));
    match error {
        StartError::NotStageable { word, .. } => {
            refusal(Code::NotAvailable).fact("why", *word).next(again(json!({"mode": "direct"})))
        }
        StartError::NoDirectory(_) => refusal(Code::NotFound).next(again(json!({"cwd": "."}))),
        StartError::BadRequest(_) => refusal(Code::BadInput).next("send the command corrected"),
        StartError::Busy(_) => refusal(Code::Busy).next(again(json!({}))),
        StartError::SetUp { .. } | StartError::Io { .. } => {
            refusal(Code::NotAvailable).next(again(json!({})))
        }
    }
}

/// What a human is shown of a command that waits.
fn question(wanted: &Wanted, cwd: &str, judged: &Judgement, way: &Way) -> String {
    let cwd = if cwd.is_empty() { "." } else { cwd };
    let network = if way.network { ", with network" } else { "" };
    let mut text = format!("run in {cwd}, {}{network}:\n{}\n", way.word(), escaped(&wanted.command));
    if judged.parts.len() > 1 {
        text.push_str("its parts:\n");
        judged.parts.iter().for_each(|part| text.push_str(&format!("  {}\n", escaped(part))));
    }
    for (name, value) in &wanted.env {
        text.push_str(&format!("with {name}={}\n", escaped(value)));
    }
    if let Verdict::Ask { why } = &judged.verdict {
        why.iter().for_each(|why| text.push_str(&format!("asked because {why}\n")));
    }
    if let Some(why) = &way.why {
        text.push_str(&format!("direct because {why}\n"));
    }
    text
}

/// Nothing in it hides, reorders or drives a terminal; newlines and tabs stay.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '\n' | '\t' => out.push(ch),
            ch if cotenant_model::needs_escape(ch) => out.push_str(&format!("\\u{{{:x}}}", ch as u32)),
            ch => out.push(ch),
        }
    }
    out
}
