//! One call: find the tool, decode, run, land, render; with idempotency, notices, counts and the journal around it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use cotenant_coord::{LandedFile, Lines, Shown};
use cotenant_engine::{Idempotency, Landed, Submitted, Wish};
use cotenant_model::{
    Author, ChangeId, Code, Digest, Durability, FileOp, Millis, Moved, Op, Outcome, Plan, Refusal, SessionId,
    WsPath,
};
use serde_json::{Map, Value, json};

use crate::args::{Args, with_end_line};
use crate::ctx::Ctx;
use crate::gate::AskedBy;
use crate::history::undo;
use crate::host::{Answer, Call};
use crate::planned::{After, Planned};
use crate::questions::Then;
use crate::registry;
use crate::reply::{Reply, call_text, facts_json, refusal_json};
use crate::tool::{Run, Tool};
use crate::toolbox::Toolbox;

/// Bytes of the diff that a human, or `dry_run`, is shown, unless `max_bytes` says otherwise.
pub(crate) const DIFF: usize = 32 * 1024;

/// Bytes of an answer's notices at most; the first is told whatever it takes.
pub(crate) const NOTICES: usize = 900;

/// Bytes of a refusal, its block apart, at most.
const REFUSAL: usize = 1200;

/// So often a call is planned whose file others change at the same moment.
const PLANS: u32 = 5;

/// A call that has been understood.
pub(crate) struct Heard<'a> {
    pub(crate) call: &'a Call,
    pub(crate) tool: &'static Tool,
    /// The arguments that `retry` would repeat.
    pub(crate) raw: Map<String, Value>,
    pub(crate) args: Args,
    /// The gate wants a human to agree, whatever the profile.
    pub(crate) asked: Option<AskedBy>,
    /// When it arrived, on the steady clock.
    pub(crate) began: Millis,
}

impl Toolbox {
    /// Answers a call whose turn it is, and which arrived at `arrived`.
    pub(crate) fn answer(&self, call: &Call, arrived: Millis) -> Answer {
        let began = self.begin(call);
        let outcome = self.hear(call, arrived).and_then(|heard| self.once(&heard));
        self.end(call, began, outcome)
    }

    /// The same where it succeeds without a wait. What refuses may look around for what was meant, and is left to a
    /// thread that may; so is what a gate judges.
    pub(crate) fn answer_at_once(&self, call: &Call) -> Option<Answer> {
        if self.gate.is_some() {
            return None;
        }
        let began = self.begin(call);
        let outcome = self.hear(call, began).and_then(|heard| self.once(&heard));
        (outcome.is_ok() && !cotenant_tree::has_missed()).then(|| self.end(call, began, outcome))
    }

    /// What goes before every call; when it began. Done twice it does no more.
    fn begin(&self, call: &Call) -> Millis {
        let began = self.ws.clock().steady();
        self.ws.coord().called(call.session, began);
        self.take_findings();
        if let Some(turn) = call.meta.get("cotenant/turn").filter(|turn| !turn.is_null()) {
            self.mark_turn(call.session, &turn.to_string());
        }
        began
    }

    /// What goes after every call: its answer, counted and noted.
    fn end(&self, call: &Call, began: Millis, outcome: Result<Done, Refusal>) -> Answer {
        let code = match &outcome {
            Ok(Done::Reply(_)) => Ok(()),
            Ok(Done::Stored(_)) => Ok(()),
            Err(refusal) => Err(refusal.code),
        };
        let answer = match outcome {
            Ok(Done::Reply(reply)) => self.render_reply(call, reply),
            Ok(Done::Stored(answer)) => self.replayed(call, *answer),
            Err(refusal) => self.render_refusal(call, refusal),
        };
        self.ws.coord().counted(call.session, &call.tool, code);
        self.note(call, code, self.ws.clock().steady().since(began));
        self.shown_to_gate(call, answer)
    }

    fn hear<'a>(&self, call: &'a Call, began: Millis) -> Result<Heard<'a>, Refusal> {
        let Some(terms) = self.terms(call.session) else {
            return Err(Refusal::new(Code::SessionEnded, "This session has ended; nothing was done.")
                .next("open a new one"));
        };
        let tool = registry::find(&call.tool).filter(|tool| terms.sets.contains(&tool.set));
        let Some(tool) = tool else { return Err(self.no_tool(call, &terms.sets)) };
        let raw = with_end_line(tool, &call.args);
        let args = Args::decode(tool, &raw).map_err(|refusal| self.retryable(call, tool, &raw, refusal))?;
        Ok(Heard { call, tool, raw, args, asked: None, began })
    }

    /// A slip in an argument's name is mended by a short `retry` instead of sending everything again.
    pub(crate) fn retryable(
        &self,
        call: &Call,
        tool: &'static Tool,
        raw: &Map<String, Value>,
        refusal: Refusal,
    ) -> Refusal {
        // A token repeats what does something, never a repetition.
        if matches!(tool.run, Run::Retry) {
            return refusal;
        }
        let near = match (refusal.get("argument"), refusal.get("nearest")) {
            (Some(given), Some(near)) => (plain(given), plain(near)),
            _ => return refusal,
        };
        let Some(value) = raw.get(&near.0) else { return refusal };
        let ctx = self.ctx(call.session, tool, raw);
        let set = json!({near.0.as_str(): null, near.1.as_str(): value});
        let shown = if set.to_string().len() < 400 {
            set
        } else {
            json!({near.0.as_str(): null, near.1.as_str(): "…"})
        };
        let next = ctx.call("retry", json!({"token": ctx.retry_token(), "set": shown}));
        refusal.next(next)
    }

    pub(crate) fn ctx<'a>(
        &'a self,
        session: SessionId,
        tool: &'static Tool,
        raw: &'a Map<String, Value>,
    ) -> Ctx<'a> {
        Ctx { ws: &self.ws, jobs: &self.jobs, session, tool, raw, now: self.ws.clock().steady() }
    }

    /// Runs a call at most once per idempotency key (R16).
    fn once(&self, heard: &Heard<'_>) -> Result<Done, Refusal> {
        let Some(key) = self.key(heard) else { return self.run(heard, None).map(Done::Reply) };
        let slot = (key.agent.to_string(), key.tool.to_string(), key.key.clone());
        let claimed =
            self.ws.wait(self.left_ms(heard), |_| self.under_way().insert(slot.clone()).then_some(()));
        if claimed.is_none() {
            return Err(Refusal::new(
                Code::Busy,
                "The same call is still under way; nothing was done twice.",
            )
            .next("send it again"));
        }
        let outcome = self.recall(heard, &key).and_then(|stored| match stored {
            Some(answer) => Ok(Done::Stored(Box::new(answer))),
            None => self.run_and_remember(heard, &key),
        });
        self.under_way().remove(&slot);
        self.ws.wake();
        outcome
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, std::collections::HashSet<(String, String, String)>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, heard: &Heard<'_>) -> Option<Idempotency> {
        if !heard.tool.mutates() || heard.args.flag("dry_run") {
            return None;
        }
        let given = heard.args.text("idempotency_key");
        let key = given.or_else(|| heard.call.meta.get("cotenant/idempotency")?.as_str())?;
        let mut args = heard.args.map().clone();
        args.remove("idempotency_key");
        let digest = Digest::of(Value::from(args).to_string().as_bytes());
        let agent = self.agent(heard.call.session);
        Some(Idempotency { agent, tool: heard.tool.name.into(), key: key.to_owned(), args: digest })
    }

    /// The stored answer of a key; `BAD_INPUT` where it was used with other arguments.
    fn recall(&self, heard: &Heard<'_>, key: &Idempotency) -> Result<Option<Answer>, Refusal> {
        let now = self.ws.clock().wall();
        let Some(found) = self.ws.ledger().recall(key, now).map_err(|error| error.refusal())? else {
            return self.recall_question(heard, key);
        };
        if found.args != key.args {
            return Err(key_used(heard.tool));
        }
        if let Some(answer) = found.answer.as_deref().and_then(stored) {
            return Ok(Some(answer));
        }
        // The machine died between the commit and the answer: it is told from the recovered change. What recovery took
        // back was not done, and is done now.
        let stands = |change: &ChangeId| {
            let change = self.ws.ledger().change(*change).ok().flatten();
            change.is_some_and(|change| change.outcome != Outcome::Aborted)
        };
        Ok(found.change.filter(stands).map(|change| {
            let reply = Reply::new().fact("change", change.to_string()).fact("recovered", true).content(format!(
                "The call was carried out before an interruption; show_change {{\"change\":\"{change}\"}} shows it."
            ));
            Answer { text: reply.text(), ..Answer::default() }
        }))
    }

    fn run_and_remember(&self, heard: &Heard<'_>, key: &Idempotency) -> Result<Done, Refusal> {
        let outcome = self.run(heard, Some(key));
        match &outcome {
            Err(refusal) if refusal.code.is_passing() => {}
            Err(refusal) => self.ws.remember(key, &store_refusal(refusal)),
            Ok(reply) => self.ws.remember(key, &store_reply(reply)),
        }
        outcome.map(Done::Reply)
    }

    /// Runs a call that another one repeats; the key, if any, is the other's.
    pub(crate) fn run_plain(&self, heard: &Heard<'_>) -> Result<Reply, Refusal> {
        self.run(heard, None)
    }

    /// Plans and lands. Where another changed the file between plan and swap, the plan is made anew: most such changes
    /// lie elsewhere in the file, and those that do not are refused by the plan itself.
    fn change(
        &self,
        ctx: &Ctx<'_>,
        heard: &Heard<'_>,
        plan: fn(&Ctx<'_>, &Args) -> Result<Planned, Refusal>,
        key: Option<&Idempotency>,
    ) -> Result<Reply, Refusal> {
        let mut plans = 0;
        loop {
            let planned = plan(ctx, &heard.args)?;
            if heard.args.flag("dry_run") {
                return Ok(dry(ctx, &heard.args, &planned));
            }
            plans += 1;
            match self.land(heard, planned, key) {
                Err(refusal) if plans < PLANS && was_raced(&refusal) => {}
                done => return done,
            }
        }
    }

    /// Carries out a call that may run.
    pub(crate) fn carry_out(&self, heard: &Heard<'_>, key: Option<&Idempotency>) -> Result<Reply, Refusal> {
        if let Some((exec, raw)) = self.routed(heard)? {
            return exec.carry_out(heard, raw);
        }
        let ctx = self.ctx(heard.call.session, heard.tool, &heard.raw);
        let mut reply = match heard.tool.run {
            Run::Look(look) => look(&ctx, &heard.args)?,
            Run::Change(plan) => self.change(&ctx, heard, plan, key)?,
            Run::Retry => self.retry(heard)?,
            Run::Shell(verb) => self.shell_call(verb, heard, key)?,
        };
        if !heard.args.ignored.is_empty() {
            reply = reply.fact("ignored", heard.args.ignored.clone());
        }
        Ok(reply)
    }

    /// Puts a plan through the pipeline, or before the human.
    fn land(&self, heard: &Heard<'_>, planned: Planned, key: Option<&Idempotency>) -> Result<Reply, Refusal> {
        let wish =
            Wish { asked: heard.asked.is_some(), ..self.wish(heard.call.session, heard.tool, &planned, key) };
        match self.ws.submit(wish) {
            Ok(Submitted::Landed(landed)) => Ok(self.finish(heard.call.session, planned, &landed)),
            Ok(Submitted::Ask(plan)) => {
                let diff = planned.diff(self.ws.tree().folders(), DIFF);
                self.ask(heard, Plan { diff, ..*plan }, planned, Then::Lands, key)
            }
            Err(refusal) => Err(self.decorate(heard, refusal)),
        }
    }

    pub(crate) fn wish(
        &self,
        session: SessionId,
        tool: &Tool,
        planned: &Planned,
        key: Option<&Idempotency>,
    ) -> Wish {
        let now = self.ws.clock().steady();
        let turn = self.ws.coord().turn_for_change(session, now);
        let terms = self.terms(session);
        Wish {
            plan: self.plan(session, tool, planned, turn),
            classes: planned.classes.clone(),
            also: planned.also.clone(),
            profile: terms.as_ref().map_or(self.ws.settings().profile, |terms| terms.profile),
            others_work: planned.others_work,
            asked: false,
            by_human: terms.as_ref().is_some_and(|terms| terms.human),
            read_only: terms.as_ref().map(|terms| terms.read_only.clone()).unwrap_or_default(),
            durability: self.ws.durability(terms.as_ref().and_then(|terms| terms.durability)),
            idempotency: key.cloned(),
        }
    }

    /// The plan of a session's call.
    pub(crate) fn plan(&self, session: SessionId, tool: &Tool, planned: &Planned, turn: u32) -> Plan {
        let who = self.ws.coord().session(session).map(|who| (who.agent.clone(), who.task.clone()));
        let (agent, task) = who.unwrap_or_else(|| ("nobody".into(), None));
        Plan {
            author: Author { agent, session, task, turn },
            tool: tool.name.into(),
            ops: planned.ops.clone(),
            // Made where somebody will look at it: most plans are never asked about.
            diff: String::new(),
            undoes: planned.undoes,
            command: None,
        }
    }

    /// After the landing: receipts follow, and the answer gets the change's id.
    pub(crate) fn finish(&self, session: SessionId, planned: Planned, landed: &Landed) -> Reply {
        self.ws.announce(Some(session), landed, &landed_files(&planned, landed), &moves(&planned));
        for after in &planned.after {
            self.renew(session, after);
        }
        self.note_change(session, &planned, landed);
        let mut reply = planned.reply;
        let fact = cotenant_model::Fact { name: "change".into(), value: landed.change.to_string().into() };
        reply.facts.insert(planned.change_at.min(reply.facts.len()), fact);
        let terms = self.terms(session);
        let durability = self.ws.durability(terms.as_ref().and_then(|terms| terms.durability));
        if durability == Durability::Fast {
            reply = reply.fact("durability", "fast");
        }
        if let Some(back) =
            planned.back.filter(|_| terms.is_none_or(|terms| terms.sets.contains(&undo::TOOL.set)))
        {
            let call = call_text(undo::TOOL.name, &json!({"change": landed.change.to_string()}));
            reply = reply.notice(format!("{call} {back}"));
        }
        for note in &landed.grade_notes {
            reply = reply.notice(note.clone());
        }
        for path in &landed.overtaken {
            let shown = self.ws.tree().folders().show(path);
            reply = reply.notice(format!(
                "{shown} was written by someone else meanwhile: their bytes stand, yours are kept in {}",
                landed.change
            ));
        }
        reply
    }

    fn renew(&self, session: SessionId, after: &After) {
        let now = self.ws.clock().steady();
        let mut coord = self.ws.coord();
        coord.succeeded(session, Some(&after.at));
        match (after.whole, after.new) {
            (Some(lines), Some(digest)) => {
                let shown = Shown { digest, total_lines: Some(lines), lines: Lines::All };
                coord.shown(session, &after.at, shown, now);
            }
            _ => {
                let old = after.old.unwrap_or_else(|| Digest::of(b""));
                if let Some((shown, map)) = &after.since {
                    coord.renewed(session, &after.at, *shown, Some(old), map, now);
                }
                coord.renewed(session, &after.at, old, after.new, &after.map, now);
            }
        }
    }

    /// A refusal of the pipeline, with the path as the client knows it and a call to make.
    fn decorate(&self, heard: &Heard<'_>, refusal: Refusal) -> Refusal {
        if !refusal.next.is_empty() {
            return refusal;
        }
        let ctx = self.ctx(heard.call.session, heard.tool, &heard.raw);
        match refusal.code {
            Code::Busy | Code::OutOfSpace | Code::IoError => {
                let next = ctx.call("retry", json!({"token": ctx.retry_token()}));
                refusal.next(next)
            }
            _ => match heard.args.text("path").or_else(|| heard.args.text("from")) {
                Some(path) => {
                    let next = ctx.call("read_file", json!({"path": path}));
                    refusal.next(next)
                }
                None => refusal.next(ctx.call("whoami", json!({}))),
            },
        }
    }
}

/// Whether only the moment was wrong: the file was another one at the swap, and nothing of the plan stands.
fn was_raced(refusal: &Refusal) -> bool {
    refusal.code == Code::FileChangedSinceRead && refusal.get("overtaken").is_none()
}

/// What a call came to.
pub(crate) enum Done {
    Reply(Reply),
    Stored(Box<Answer>),
}

pub(crate) fn dry(ctx: &Ctx<'_>, args: &Args, planned: &Planned) -> Reply {
    let bytes = args.count("max_bytes").unwrap_or(DIFF);
    let mut reply = planned.reply.clone().fact("dry_run", true);
    // The digest of what was not written would pass for that of the file.
    reply.facts.retain(|fact| fact.name != "digest");
    let token = {
        let mut raw = ctx.raw.clone();
        raw.remove("dry_run");
        raw.extend(planned.pinned.clone());
        Ctx { raw: &raw, ..*ctx }.retry_token()
    };
    let mut diff = planned.diff(ctx.ws.tree().folders(), bytes);
    if planned.listing {
        diff = format!("{}\n{diff}", planned.reply.content);
    }
    reply
        .notice(format!("nothing was written; {} does it", ctx.call("retry", json!({"token": token}))))
        .content(diff)
}

/// The landed files with their changed lines, where the plan knows them.
fn landed_files(planned: &Planned, landed: &Landed) -> Vec<LandedFile> {
    let after: BTreeMap<&WsPath, &After> = planned.after.iter().map(|after| (&after.at, after)).collect();
    // A directory is no file that anyone has seen or changed.
    let directories: BTreeSet<&WsPath> = planned.ops.iter().filter_map(directory).collect();
    let lines = |at: &WsPath| {
        let regions = after.get(at).map(|after| after.map.regions.as_slice()).unwrap_or_default();
        regions
            .iter()
            .map(|region| (region.new.start, region.new.end.saturating_sub(1).max(region.new.start)))
            .collect()
    };
    landed
        .files
        .iter()
        .filter(|(at, _)| !directories.contains(at))
        .map(|(at, post)| LandedFile { at: at.clone(), post: *post, lines: lines(at) })
        .collect()
}

/// The directory that an operation leaves, or took away.
fn directory(op: &FileOp) -> Option<&WsPath> {
    match &op.op {
        Op::MakeDir { .. } | Op::RemoveDir => Some(&op.at),
        Op::Move { to, what: Moved::Directory { .. }, .. } => Some(to),
        Op::Move { .. } | Op::Create { .. } | Op::Replace { .. } | Op::Delete { .. } => None,
    }
}

/// From where to where the plan moves files and directories.
fn moves(planned: &Planned) -> Vec<(WsPath, WsPath)> {
    let moved = |op: &FileOp| match &op.op {
        Op::Move { to, .. } => Some((op.at.clone(), to.clone())),
        _ => None,
    };
    planned.ops.iter().filter_map(moved).collect()
}

fn plain(value: &cotenant_model::FactValue) -> String {
    match value {
        cotenant_model::FactValue::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Toolbox {
    /// There is no such tool; where its name is a slip, a token repeats the call with the right one.
    fn no_tool(&self, call: &Call, sets: &[cotenant_model::ToolSet]) -> Refusal {
        let refusal = no_tool(&call.tool, sets);
        let near = registry::near(&call.tool, sets).and_then(registry::find);
        let near = near.filter(|near| !matches!(near.run, Run::Retry));
        match near.filter(|near| Args::decode(near, &with_end_line(near, &call.args)).is_ok()) {
            Some(near) => {
                let token = self.ctx(call.session, near, &call.args).retry_token();
                refusal.next(format!("retry {} is the same call of {}", json!({"token": token}), near.name))
            }
            None => refusal,
        }
    }
}

fn no_tool(name: &str, sets: &[cotenant_model::ToolSet]) -> Refusal {
    let names: Vec<&str> = registry::in_sets(sets).map(|tool| tool.name).collect();
    let near = registry::near(name, sets);
    let hint = near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    let shown: String = name.chars().take(60).collect();
    Refusal::new(
        Code::BadInput,
        format!(
            "There is no tool {shown} in this session; nothing was done.{hint} There are: {}.",
            names.join(", ")
        ),
    )
    .fact("tool", shown)
    .next(match near {
        Some(near) => format!("call {near} with its own arguments; whoami {{}} tells where you are"),
        None => "whoami {}".to_owned(),
    })
}

/// The notices as lines, those that do not fit as their number: `_meta` has them all.
fn lines_of(notices: &[(String, Value)]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut bytes = 0;
    for (index, (text, _)) in notices.iter().enumerate() {
        bytes += text.len() + 3;
        if index > 0 && bytes > NOTICES {
            lines.push(format!("and {} more; whoami and history have them", notices.len() - index));
            break;
        }
        lines.push(text.clone());
    }
    lines
}

/// A refusal within what a refusal may weigh, whatever a client sent to be quoted in it.
fn brief(mut refusal: Refusal) -> Refusal {
    use cotenant_model::FactValue;
    let cut = |text: &mut String, most: usize| {
        if text.len() > most {
            text.truncate(text.floor_char_boundary(most));
            text.push('…');
        }
    };
    let weight = |refusal: &Refusal| refusal.to_string().len() - refusal.block.len();
    if weight(&refusal) <= REFUSAL {
        return refusal;
    }
    for fact in &mut refusal.facts {
        match &mut fact.value {
            FactValue::Text(text) => cut(text, 120),
            FactValue::List(list) => {
                list.truncate(3);
                list.iter_mut().for_each(|text| cut(text, 120));
            }
            FactValue::Number(_) | FactValue::Flag(_) => {}
        }
    }
    cut(&mut refusal.message, 400);
    if weight(&refusal) > REFUSAL {
        // A call that was cut would not work.
        refusal.next = "whoami {}".to_owned();
    }
    refusal
}

/// A next step that names only tools which the session has: of several ways those that are open to it.
fn within_sets(mut refusal: Refusal, sets: &[cotenant_model::ToolSet]) -> Refusal {
    let missing: Vec<String> = registry::TOOLS
        .iter()
        .filter(|tool| !sets.contains(&tool.set))
        .map(|tool| format!("{} {{", tool.name))
        .collect();
    let open = |way: &str| !missing.iter().any(|call| way.contains(call));
    if open(&refusal.next) {
        return refusal;
    }
    let ways = refusal.next.split_inclusive(", or ").flat_map(|way| way.split_inclusive("; "));
    let kept: String = ways.filter(|way| open(way)).collect();
    let kept = kept.trim_end_matches(", or ").trim_end_matches("; ").trim();
    refusal.next = match kept {
        "" if open("whoami {}") => "whoami {}".to_owned(),
        "" => "go on with what the tools of this session can do".to_owned(),
        _ => kept.to_owned(),
    };
    refusal
}

/// A key that came with other arguments before.
pub(crate) fn key_used(tool: &Tool) -> Refusal {
    Refusal::new(Code::BadInput, "This idempotency_key was used for another call; nothing was done.")
        .fact("tool", tool.name)
        .fact("argument", "idempotency_key")
        .next("use a new key for a new call")
}

fn plain_refusal(refusal: &Refusal) -> Answer {
    let mut meta = Map::new();
    meta.insert("cotenant/refusal".to_owned(), refusal_json(refusal).into());
    Answer { text: refusal.to_string(), is_error: refusal.code.is_error(), meta, structured: None }
}

/// A reply as it is kept under an idempotency key.
pub(crate) fn store_reply(reply: &Reply) -> Vec<u8> {
    let mut meta = Map::new();
    meta.insert("cotenant/facts".to_owned(), facts_json(&reply.facts).into());
    store(&Answer { text: reply.text(), is_error: false, meta, structured: Some(reply.json().into()) })
}

/// A refusal as it is kept under an idempotency key.
pub(crate) fn store_refusal(refusal: &Refusal) -> Vec<u8> {
    let answer = plain_refusal(refusal);
    store(&Answer { structured: Some(refusal_json(refusal).into()), ..answer })
}

fn store(answer: &Answer) -> Vec<u8> {
    let fields = &answer.structured;
    json!({"text": answer.text, "is_error": answer.is_error, "meta": answer.meta, "fields": fields})
        .to_string()
        .into_bytes()
}

fn stored(bytes: &[u8]) -> Option<Answer> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    Some(Answer {
        text: value.get("text")?.as_str()?.to_owned(),
        is_error: value.get("is_error")?.as_bool()?,
        meta: value.get("meta").and_then(Value::as_object).cloned().unwrap_or_default(),
        structured: value.get("fields").filter(|fields| fields.is_object()).cloned(),
    })
}

impl Toolbox {
    pub(crate) fn render_reply(&self, call: &Call, mut reply: Reply) -> Answer {
        let notices = self.notices(call.session);
        reply.notices.extend(lines_of(&notices));
        let text = reply.text();
        let mut meta = Map::new();
        // The same facts for programs, where they are few.
        let facts = Value::from(facts_json(&reply.facts));
        meta.insert("cotenant/facts".to_owned(), facts);
        self.notices_meta(&mut meta, &notices);
        let structured = self.wants_fields(call).then(|| {
            let mut fields = reply.json();
            fields.insert("text".to_owned(), text.as_str().into());
            fields.into()
        });
        Answer { text, is_error: false, meta, structured }
    }

    pub(crate) fn render_refusal(&self, call: &Call, refusal: Refusal) -> Answer {
        let refusal = brief(refusal);
        let refusal = match self.terms(call.session) {
            Some(terms) => within_sets(refusal, &terms.sets),
            None => refusal,
        };
        let notices = self.notices(call.session);
        let mut answer = plain_refusal(&refusal);
        if !notices.is_empty() {
            let told = lines_of(&notices);
            let announced = refusal.clone().fact("notices", told.len()).to_string();
            let (first, rest) = announced.split_once('\n').unwrap_or((&announced, ""));
            let lines: String =
                told.iter().map(|notice| format!("\n! {}", notice.replace(['\n', '\r'], " "))).collect();
            answer.text = format!("{first}{lines}\n{rest}");
            self.notices_meta(&mut answer.meta, &notices);
        }
        answer.structured = self.wants_fields(call).then(|| {
            let mut fields = refusal_json(&refusal);
            fields.insert("text".to_owned(), answer.text.as_str().into());
            fields.into()
        });
        answer
    }

    /// A stored answer, with its fields where the caller is a program.
    fn replayed(&self, call: &Call, mut answer: Answer) -> Answer {
        let fields = answer.structured.take().filter(|_| self.wants_fields(call));
        answer.structured = fields.map(|mut fields| {
            if let Some(map) = fields.as_object_mut() {
                map.entry("text").or_insert_with(|| answer.text.as_str().into());
            }
            fields
        });
        answer
    }

    /// Whether the caller is a program: `--structured`, or the command line.
    fn wants_fields(&self, call: &Call) -> bool {
        call.meta.contains_key("cotenant/structured")
            || self.terms(call.session).is_some_and(|terms| terms.structured)
    }

    /// Notices for the session, each delivered once: text and its form for programs.
    fn notices(&self, session: SessionId) -> Vec<(String, Value)> {
        let now = self.ws.clock().steady();
        let notices = self.ws.coord().take_notices(session);
        let folders = self.ws.tree().folders();
        let render = |notice: &cotenant_coord::Notice| {
            let text = notice.text(folders, now);
            let path = notice.at().map(|at| folders.show(at));
            (text.clone(), json!({"kind": notice.kind().name(), "path": path, "message": text}))
        };
        notices.iter().map(render).collect()
    }

    fn notices_meta(&self, meta: &mut Map<String, Value>, notices: &[(String, Value)]) {
        if !notices.is_empty() {
            let list: Vec<Value> = notices.iter().map(|notice| notice.1.clone()).collect();
            meta.insert("cotenant/notices".to_owned(), list.into());
        }
    }
}
