//! After a command's end: what it did becomes a plan, lands, is asked about or refused; and its report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cotenant_coord::ApprovalOutcome;
use cotenant_engine::effects::{self, Barrier, Before, Bounds, Clash, Conflict, Mark, Run, Settled};
use cotenant_engine::{Idempotency, Submitted};
use cotenant_model::{
    ApprovalId, Body, ChangeId, Code, FactValue, FileSource, FolderId, Plan, Refusal, RelPath, Seen,
    SessionId, State, WirePath, WsPath,
};
use cotenant_shell::policy::{Judgement, ShownFile, ShownLines};
use cotenant_shell::run::{self, Ended, Exceeded, Hint};
use cotenant_shell::sandbox::Grade;
use cotenant_tree::RACY_NS;
use serde_json::{Map, Value, json};

use super::RUN;
use super::effects::{Left, Settling, planned};
use super::flow::{Way, Where};
use super::jobs::{End, Job, Report};
use super::wanted::Wanted;
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::questions::{Raised, Then};
use crate::reply::Reply;
use crate::toolbox::Toolbox;

/// A look at a running command is taken at least so often; its end is told at once.
const WATCH: std::time::Duration = std::time::Duration::from_secs(3600);

/// Names that are looked at for what changed just now.
const YOUNG: usize = 256;

/// What was noted before a command began, for its end.
pub(super) struct AfterRun {
    /// The call's arguments, which `retry` repeats.
    raw: Map<String, Value>,
    way: Way,
    /// What had landed by then, and when that was in the folder's own time.
    mark: Mark,
    barrier: Option<Barrier>,
    /// Files that were so young by then that their time alone does not tell (R19).
    young: BTreeMap<WsPath, State>,
    /// What stood where, for a command that writes the workspace itself.
    before: Option<Before>,
    /// Files that the command only shows.
    shows: Vec<ShownFile>,
    /// The folder that it runs in.
    folder: FolderId,
    /// The question whose yes let it run.
    approved: Option<ApprovalId>,
    /// A human must agree to whatever it does.
    strict: bool,
    key: Option<Idempotency>,
    notes: Vec<String>,
}

impl AfterRun {
    /// Looks at what there is before a command begins.
    pub(super) fn before(
        toolbox: &Toolbox,
        ctx: &Ctx<'_>,
        wanted: &Wanted,
        judged: &Judgement,
        way: &Way,
        approved: Option<ApprovalId>,
        key: Option<&Idempotency>,
    ) -> Result<AfterRun, Refusal> {
        let barrier = toolbox.barrier(wanted.cwd.folder);
        let before = match way.place {
            Where::Direct => {
                let git = toolbox.shell.git(&toolbox.ws);
                Some(effects::before(
                    &toolbox.ws,
                    &toolbox.written_folders(ctx.session),
                    git,
                    Bounds::default(),
                )?)
            }
            Where::Staged | Where::Inside(_) => None,
        };
        Ok(AfterRun {
            raw: ctx.raw.clone(),
            way: way.clone(),
            barrier,
            mark: toolbox.ws.mark()?,
            young: match way.place {
                Where::Staged => toolbox.young(&wanted.cwd, &wanted.command, barrier),
                Where::Direct | Where::Inside(_) => BTreeMap::new(),
            },
            before,
            shows: judged.shows.clone(),
            folder: wanted.cwd.folder,
            approved,
            strict: toolbox.is_strict(ctx.session, judged),
            key: key.cloned(),
            notes: cotenant_shell::edits::traps(&wanted.command, &toolbox.shell.locale()),
        })
    }
}

impl Toolbox {
    /// Waits for a command's end beside the calls, and settles what it did.
    pub(super) fn attend(&self, job: &Arc<Job>, after: AfterRun) {
        let Some(toolbox) = self.me() else { return };
        let watched = Arc::clone(job);
        let watch = move || {
            let ended = ended(&watched.process);
            let end = toolbox.settled(&watched, &ended, after);
            watched.ended(end);
            // Whoever has just looked and seen it running waits by now, and hears it.
            drop(toolbox.ws.coord());
            toolbox.ws.wake();
        };
        let thread = std::thread::Builder::new().name("job".to_owned()).spawn(watch);
        if let Err(error) = thread {
            job.process.stop();
            let why = format!("The command could not be followed, and was ended: {error}.");
            job.ended(End::Refused(Box::new(Refusal::new(Code::IoError, why).next("run it again"))));
        }
    }

    fn settled(&self, job: &Arc<Job>, ended: &Ended, after: AfterRun) -> End {
        let approved = after.approved;
        let end = self.outcome(job, ended, after);
        if let Some(question) = approved {
            self.answered(question, &end);
        }
        end
    }

    /// A question whose command has ended has its last word.
    fn answered(&self, question: ApprovalId, end: &End) {
        let outcome = match end {
            End::Done(report) => match report.change {
                Some(change) => ApprovalOutcome::Landed(change),
                None => ApprovalOutcome::Ran,
            },
            End::Refused(refusal) => ApprovalOutcome::Refused(refusal.clone()),
            End::Asked(_) => ApprovalOutcome::Ran,
        };
        self.settle(question, outcome);
    }

    fn outcome(&self, job: &Arc<Job>, ended: &Ended, mut after: AfterRun) -> End {
        let head = self.head(job, ended, &after);
        let well = ended.exit == Some(0);
        let cut = ended.timed_out || ended.stopped;
        let landed = match (after.before.take(), after.way.place.clone()) {
            (Some(before), _) => self.direct(job, &before, head),
            (None, Where::Inside(exec)) => {
                exec.ran(format!(
                    "{} exit={}",
                    job.brief(),
                    ended.exit.map_or("none".to_owned(), |code| code.to_string())
                ));
                Ok(Landing::Report(head, None))
            }
            (None, _) if cut => Ok(Landing::Report(dropped(head), None)),
            (None, _) => self.staged(job, head, &after),
        };
        match landed {
            Ok(Landing::Report(reply, change)) => {
                if well {
                    self.saw_shown(job.session, &after);
                }
                End::Done(Box::new(Report { reply, well, cut, change }))
            }
            Ok(Landing::Asked(question)) => End::Asked(question),
            Err(refusal) => End::Refused(Box::new(told(refusal, job, ended))),
        }
    }

    /// The facts of the run itself: exit, time, how it ran.
    fn head(&self, job: &Job, ended: &Ended, after: &AfterRun) -> Reply {
        let exit: FactValue = match (ended.exit, ended.signal) {
            (Some(code), _) => i64::from(code).into(),
            _ => "none".into(),
        };
        let mut reply = Reply::new().fact("exit", exit).fact_if("signal", ended.signal.map(i64::from));
        if ended.timed_out {
            reply = reply.fact("timed_out", true);
        }
        if ended.stopped {
            reply = reply.fact("stopped", true);
        }
        reply = reply.fact("ms", ended.ms);
        if ended.timed_out {
            reply = reply.fact("timeout_s", job.wanted.timeout_s);
        }
        reply = reply.fact("mode", job.mode);
        let grade = ended.tier.grade();
        reply = match grade {
            Grade::G3 => reply.field("grade", grade.to_string()),
            _ => reply.fact("grade", grade.to_string()),
        };
        // What is usual is not said on line 1.
        let usual = if matches!(after.way.place, Where::Direct) { Grade::G2 } else { Grade::G3 };
        reply = match grade < usual || !ended.tier.own_processes {
            true => reply.fact("tier", ended.tier.to_string()),
            false => reply.field("tier", ended.tier.to_string()),
        };
        if let Some(exceeded) = ended.exceeded {
            let what = match exceeded {
                Exceeded::Memory => "memory",
                Exceeded::Disk => "disk",
            };
            reply = reply
                .fact("exceeded", what)
                .notice(format!("ended because it used more {what} than [exec] of cotenant.toml allows"));
        }
        if !job.wanted.cwd.path.is_root() {
            reply = reply.fact("cwd", self.ws.tree().folders().show(&job.wanted.cwd));
        }
        if let Some(why) = &after.way.why {
            reply = reply.notice(format!("ran direct: {why}"));
        }
        for hint in &ended.hints {
            reply = reply.notice(hinted(*hint));
        }
        for left in &ended.left_running {
            reply = reply.notice(format!("still ran at the end and was ended: {left}"));
        }
        after.notes.iter().fold(reply, |reply, note| reply.notice(note.clone()))
    }

    /// What a staged command did: ignored files are moved over, the rest lands as one change, or is asked about.
    fn staged(&self, job: &Arc<Job>, head: Reply, after: &AfterRun) -> Result<Landing, Refusal> {
        let ctx = self.ctx(job.session, &RUN, &after.raw);
        let upper = job.process.upper().map_err(|error| unread(&error.to_string()))?;
        let folders = self.folders(job.session);
        let sorted = self.sorted(&upper, &super::upper::writable(&folders))?;
        if let Some(git) = sorted.git.first() {
            return Err(wrote_git(&ctx, git));
        }
        let head = sorted.odd.iter().fold(head, |head, odd| head.notice(odd.clone()));
        let left = Left { upper, ignored: sorted.ignored };
        let run = Run {
            effects: sorted.effects,
            opaque: sorted.opaque,
            barrier: after.barrier,
            mark: after.mark.clone(),
            saw: after.young.clone(),
        };
        let mut settling = Settling { run, head, left: Some(left) };
        let settled = self.settle_run(&ctx, &settling)?;
        // Should it wait for a human, what it saw is known then.
        settling.run.saw =
            settled.shifts.iter().map(|shift| (shift.at.clone(), shift.before.clone())).collect();
        let mut planned = planned(&ctx, settled, settling.head.clone())?;
        if job.wanted.dry_run {
            return Ok(Landing::Report(shown_only(self, &planned), None));
        }
        let ignored = settling.left.as_ref().map_or(0, |left| left.ignored.len());
        if ignored > 0 {
            planned.reply = planned.reply.fact("ignored_writes", ignored);
        }
        if planned.ops.is_empty() {
            self.carry_over(&settling);
            return Ok(Landing::Report(planned.reply, None));
        }
        self.submit_effects(job, planned, settling, after)
    }

    /// What is ignored is moved over, where its directory is there. What was moved is not there to be moved again.
    pub(crate) fn carry_over(&self, settling: &Settling) {
        let Some(left) = &settling.left else { return };
        let mut ignores = self.ws.tree().ignores();
        for one in &left.ignored {
            if one.gone {
                self.ws.discard_ignored(&mut ignores, &one.at);
                continue;
            }
            self.ws.admit_ignored(&mut ignores, &one.at, |dir, name| {
                left.upper.move_into(one.folder, &one.at.path, (dir, name), true).is_ok()
            });
        }
        self.ignored_dirs.set(self.find_ignored_dirs());
    }

    /// Effects over the files as they are now.
    fn settle_run(&self, ctx: &Ctx<'_>, settling: &Settling) -> Result<Settled, Refusal> {
        effects::plan_effects(&self.ws, settling.run.clone())
            .map_err(|conflicts| conflicting(ctx, &conflicts))
    }

    /// The plan of effects over the files as they are now.
    pub(super) fn merged(&self, ctx: &Ctx<'_>, settling: &Settling) -> Result<Planned, Refusal> {
        planned(ctx, self.settle_run(ctx, settling)?, settling.head.clone())
    }

    /// The same once more, for a plan that waited; `None` where it does not fit any more.
    pub(crate) fn merged_anew(&self, ctx: &Ctx<'_>, settling: &Settling) -> Option<Planned> {
        self.merged(ctx, settling).ok()
    }

    fn submit_effects(
        &self,
        job: &Arc<Job>,
        planned: Planned,
        settling: Settling,
        after: &AfterRun,
    ) -> Result<Landing, Refusal> {
        let session = job.session;
        let mut wish = self.wish(session, &RUN, &planned, after.key.as_ref());
        // Who said yes to the command said yes to what it does.
        wish.by_human |= after.approved.is_some();
        wish.asked |= after.strict;
        match self.ws.submit(wish)? {
            Submitted::Landed(landed) => {
                self.carry_over(&settling);
                let reply = self.finish(session, planned, &landed);
                Ok(Landing::Report(reply, Some(landed.change)))
            }
            Submitted::Ask(plan) => {
                let diff = planned.diff(self.ws.tree().folders(), crate::calls::DIFF);
                let plan = Plan { diff: format!("{}\n{diff}", command_line(&job.wanted)), ..*plan };
                self.carry_over(&settling);
                let then = Then::Merges(Arc::new(settling));
                let mut planned = planned;
                planned.reply =
                    self.whole(job, &Report { reply: planned.reply, well: true, ..Report::default() });
                let raw = &after.raw;
                let key = after.key.as_ref();
                self.raise(Raised { session, tool: &RUN, raw, plan, planned, then, asked: None, key })
                    .map(Landing::Asked)
            }
        }
    }

    /// What a command did that wrote the workspace itself: found by comparing, and recorded as one change.
    fn direct(&self, job: &Arc<Job>, before: &Before, head: Reply) -> Result<Landing, Refusal> {
        let turn = self.ws.coord().turn_for_change(job.session, self.ws.clock().steady());
        let author = self.plan(job.session, &RUN, &Planned::default(), turn).author;
        let recorded = effects::after(&self.ws, before, &author, RUN.name)?;
        if let Some(change) = recorded.change {
            let files: Vec<_> = recorded.files.iter().map(|file| (file.at.clone(), file.post)).collect();
            self.note_files(job.session, change, None, &files);
        }
        let ctx_raw = Map::new();
        let ctx = self.ctx(job.session, &RUN, &ctx_raw);
        let reply = super::effects::recorded(&ctx, &recorded, head);
        Ok(Landing::Report(reply, recorded.change))
    }

    /// What the command only showed counts as read.
    fn saw_shown(&self, session: SessionId, after: &AfterRun) {
        let ctx = self.ctx(session, &RUN, &after.raw);
        for file in &after.shows {
            let at = WsPath { folder: after.folder, path: file.path.clone() };
            let Ok(place) = ctx.place_at(&WirePath { at, dir_only: false }) else { continue };
            if place.stat().is_none() {
                continue;
            }
            let Ok(loaded) = ctx.load_any(&place) else { continue };
            let last = loaded.line_count();
            let line = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(last);
            match file.lines {
                ShownLines::Whole => ctx.saw(&place, &loaded, &[], true),
                ShownLines::Range(from, to) => ctx.saw(&place, &loaded, &[(line(from), line(to))], false),
                ShownLines::From(from) => ctx.saw(&place, &loaded, &[(line(from), last)], false),
                ShownLines::Last(count) => {
                    ctx.saw(&place, &loaded, &[(last.saturating_sub(line(count)) + 1, last)], false)
                }
            }
        }
    }
}

impl Toolbox {
    /// The files that were changed just before a moment, of those that a command names or finds in its directory: a
    /// change just after would bear the same time, so that their bytes are looked at.
    pub(super) fn young(
        &self,
        cwd: &WsPath,
        command: &str,
        barrier: Option<Barrier>,
    ) -> BTreeMap<WsPath, State> {
        let Some(barrier) = barrier else { return BTreeMap::new() };
        let tree = self.ws.tree();
        let words = command.split(|ch: char| ch.is_whitespace() || "'\"`;&|<>()=,".contains(ch));
        let named = words
            .filter_map(|word| RelPath::parse(word).ok())
            .map(|path| path.components().fold(cwd.clone(), |at, name| at.join(name)));
        let listed = tree.names_in(cwd, YOUNG).into_iter().map(|name| cwd.join(&name));
        let young =
            |at: &WsPath| tree.key(at).is_some_and(|key| key.stat.ctime_ns + RACY_NS >= barrier.ctime_ns);
        let candidates: BTreeSet<WsPath> = named.take(YOUNG).chain(listed).collect();
        let young = candidates.into_iter().filter(young);
        young.filter_map(|at| seen(self.ws.see(&at)).map(|state| (at, state))).collect()
    }

    /// This moment, as the file system of a folder stamps time.
    pub(super) fn barrier(&self, folder: FolderId) -> Option<Barrier> {
        self.ws.tree().stamp(folder).map(|ctime_ns| Barrier { ctime_ns })
    }
}

/// What came of a command's effects.
enum Landing {
    Report(Reply, Option<ChangeId>),
    Asked(ApprovalId),
}

/// A staged command that was ended leaves nothing.
fn dropped(head: Reply) -> Reply {
    head.fact("changed", 0)
        .notice("it was ended with all its processes; its file changes were dropped (staged)")
}

/// What it would change, for `dry_run`.
fn shown_only(toolbox: &Toolbox, planned: &Planned) -> Reply {
    let diff = planned.diff(toolbox.ws.tree().folders(), crate::calls::DIFF);
    let content = format!("{}\n{diff}", planned.reply.content);
    planned.reply.clone().fact("dry_run", true).notice("nothing was kept of it").content(content)
}

fn command_line(wanted: &Wanted) -> String {
    format!("$ {}", wanted.command.trim_end().replace('\n', "\n> "))
}

/// A refusal says that the command ran, and where its output is.
fn told(refusal: Refusal, job: &Job, ended: &Ended) -> Refusal {
    let exit: FactValue = ended.exit.map_or_else(|| "none".into(), |code| i64::from(code).into());
    let refusal = refusal.fact("exit", exit).fact("mode", job.mode).fact("handle", job.handle.to_string());
    if refusal.next.is_empty() {
        let handle = json!({"handle": job.handle.to_string()});
        return refusal.next(format!("read_more {handle} shows its output"));
    }
    refusal
}

/// Waits for a command's end.
fn ended(process: &run::Job) -> Ended {
    loop {
        if let Some(ended) = process.wait(WATCH) {
            return ended;
        }
    }
}

fn hinted(hint: Hint) -> &'static str {
    match hint {
        Hint::DirectoryRename => {
            "a directory could not be renamed (EXDEV), as on every copy: the same with mode direct can"
        }
        Hint::ForeignOwner => {
            "a file of another owner could not be written, as on every copy: the same with mode direct may"
        }
    }
}

fn unread(why: &str) -> Refusal {
    let why = format!("What the command changed cannot be read: {why}. Nothing of it was kept.");
    Refusal::new(Code::IoError, why).next("run it again, or with mode direct")
}

/// `.git` is written by git alone (R21).
fn wrote_git(ctx: &Ctx<'_>, path: &str) -> Refusal {
    let why = format!(
        "The command ran on a copy and wrote {path} there; what stands in .git is never taken over. Nothing of it was kept."
    );
    Refusal::new(Code::NotAvailable, why)
        .fact("path", path)
        .next(ctx.call("retry", json!({"token": ctx.retry_token(), "set": {"mode": "direct"}})))
}

/// Others wrote what the command wrote, in the same places.
fn conflicting(ctx: &Ctx<'_>, conflicts: &[Conflict]) -> Refusal {
    let protected = |conflict: &&Conflict| matches!(conflict.why, Clash::Protected { .. });
    if let Some(conflict) = conflicts.iter().find(protected) {
        let class = ctx.ws.tree().class_of(&conflict.at);
        let refusal = cotenant_coord::protected(&ctx.show(&conflict.at), &class);
        let message = format!("{} Nothing that the command changed was kept.", refusal.message);
        return Refusal { message, ..refusal };
    }
    let paths: Vec<String> = conflicts.iter().take(5).map(|conflict| ctx.show(&conflict.at)).collect();
    let why: Vec<String> = conflicts
        .iter()
        .take(5)
        .map(|conflict| format!("{}: {}", ctx.show(&conflict.at), conflict.why))
        .collect();
    let message = format!(
        "Files that the command changed were changed by others while it ran. Nothing of it was kept. {}",
        why.join("; ")
    );
    Refusal::new(Code::FileChangedSinceRead, message).fact("paths", paths).next(format!(
        "{} runs it again on the files as they are now",
        ctx.call("retry", json!({"token": ctx.retry_token()}))
    ))
}

/// What is seen at a path, where that is something whole.
fn seen(seen: Seen) -> Option<State> {
    Some(match seen {
        Seen::Absent => State::Absent,
        Seen::Directory { .. } | Seen::Other => return None,
        Seen::Link(target) => State::Entry(Body::link(target)),
        Seen::File { content, mode, .. } => State::Entry(Body::file(content).with_mode(mode)),
    })
}
