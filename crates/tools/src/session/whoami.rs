//! `whoami`: the session as cotenant knows it, for after a loss of context. At most 2 KB.

use cotenant_model::{Access, FolderId, Refusal, ToolSet};
use serde_json::{Value, json};

use crate::args::Args;
use crate::calls::NOTICES;
use crate::ctx::Ctx;
use crate::reply::Reply;
use crate::tool::{Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "whoami",
    title: "Where am I",
    set: ToolSet::Core,
    about: "Your session: task, mode, leases, jobs, pending approvals, what you changed, notices. Call it after losing context.",
    params: &[],
    destructive: false,
    run: Run::Look(run),
};

/// Files that the answer names.
const FILES: usize = 12;
/// Bytes of the answer's lines.
const BYTES: usize = 1600;
/// Bytes of the task that the first line names.
const TASK: usize = 120;

fn run(ctx: &Ctx<'_>, _args: &Args) -> Result<Reply, Refusal> {
    let mut reply = identity(ctx);
    let mut lines = Vec::new();
    changed(ctx, &mut lines);
    jobs(ctx, &mut lines);
    pending(ctx, &mut lines);
    refusals(ctx, &mut lines);
    let notices: Vec<String> = {
        let coord = ctx.ws.coord();
        let folders = ctx.ws.tree().folders();
        coord.recent_notices(ctx.session).map(|notice| notice.text(folders, ctx.now)).collect()
    };
    reply = reply.field("notices", Value::from(notices.clone()));
    lines.extend(notices.iter().rev().take(5).map(|notice| format!("notice: {}", notice.replace('\n', " "))));
    // What waits to be told stands above the lines, and takes of their room.
    let room = if ctx.ws.coord().has_notices(ctx.session) { BYTES - NOTICES } else { BYTES };
    let mut text = String::new();
    for line in lines {
        if text.len() + line.len() > room {
            text.push_str("… history {} has the rest\n");
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    Ok(reply.content(text))
}

fn identity(ctx: &Ctx<'_>) -> Reply {
    let coord = ctx.ws.coord();
    let Some(me) = coord.session(ctx.session) else { return Reply::new() };
    let root = ctx.ws.tree().host_path(FolderId::ROOT);
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut reply = Reply::new().fact("agent", &*me.agent).fact("session", ctx.session.to_string());
    if let Some(task) = &me.task {
        let cut = task.floor_char_boundary(TASK);
        reply = reply
            .fact("task", if cut < task.len() { format!("{}…", &task[..cut]) } else { task.to_string() });
    }
    reply = reply
        .fact("turn", me.turn)
        .fact("mode", if me.plan_mode { "plan" } else { "normal" })
        .fact("profile", me.profile.name())
        .fact("durability", ctx.ws.durability(None).name())
        .fact("grade", "G4")
        .fact("root", name);
    let further: Vec<String> = further_folders(ctx);
    if further.is_empty() { reply } else { reply.fact("folders", further) }
        .field("leases", json!([]))
        .field("strikes", 0)
        .field("taint", json!({"confidentiality": "PUBLIC", "integrity": "trusted"}))
}

fn further_folders(ctx: &Ctx<'_>) -> Vec<String> {
    let folders = ctx.ws.tree().folders();
    (1..folders.len())
        .filter_map(|index| u16::try_from(index).ok().map(FolderId))
        .map(|id| {
            let access = if ctx.ws.tree().access(id) == Access::Read { "read" } else { "read-write" };
            format!("{}({access})", folders.name(id))
        })
        .collect()
}

fn changed(ctx: &Ctx<'_>, lines: &mut Vec<String>) {
    let coord = ctx.ws.coord();
    let Some(work) = coord.own_changes(ctx.session) else { return };
    if !work.changed.is_empty() {
        let files = work.changed.len();
        lines.push(format!(
            "changed this session: {files} {}, undo with rewind {{\"turn\":1}}, the last with undo {{}}",
            if files == 1 { "file" } else { "files" }
        ));
    }
    let entry = |at: &cotenant_model::WsPath| {
        let missed = work.unseen.get(at).and_then(|missed| missed.last());
        let missed = missed.map(|missed| {
            let by = missed.by.as_deref().unwrap_or("someone");
            format!(", unseen since: {by} {}", missed.change)
        });
        missed.unwrap_or_default()
    };
    for (at, changes) in work.changed.iter().take(FILES) {
        let ids: Vec<String> = changes.iter().rev().take(5).map(ToString::to_string).collect();
        lines.push(format!("  {} ({}){}", ctx.show(at), ids.join(" "), entry(at)));
    }
    if work.changed.len() > FILES {
        lines.push(format!("  and {} more: history {{\"agent\":\"me\"}}", work.changed.len() - FILES));
    }
    for at in work.unseen.keys().filter(|at| !work.changed.contains_key(*at)).take(FILES) {
        lines.push(format!("reload {}{}", ctx.show(at), entry(at)));
    }
}

/// Commands that run, and how the last one ended.
fn jobs(ctx: &Ctx<'_>, lines: &mut Vec<String>) {
    let jobs = ctx.jobs.of(ctx.session);
    let running = jobs.iter().filter(|job| job.end().is_none()).take(FILES);
    lines.extend(running.map(|job| {
        let seconds = ctx.now.since(job.began) / 1000;
        format!("job: {} running {seconds} s `{}`", job.id, job.brief())
    }));
    if let Some(last) = jobs.iter().rev().find(|job| job.end().is_some()) {
        lines.push(format!("last command: {} `{}`", last.handle, last.brief()));
    }
}

fn pending(ctx: &Ctx<'_>, lines: &mut Vec<String>) {
    let coord = ctx.ws.coord();
    let reviewer = if coord.reviewers() > 0 { "a reviewer is there" } else { "nobody reviewing" };
    let mine = coord.pending().filter(|question| question.session == ctx.session);
    for question in mine.take(FILES) {
        let paths: Vec<String> = question.paths().take(3).map(|at| ctx.show(at)).collect();
        lines.push(format!(
            "pending: {} {} {}, {reviewer}, retry {}",
            question.id,
            question.plan.tool,
            paths.join(" "),
            question.retry
        ));
    }
}

fn refusals(ctx: &Ctx<'_>, lines: &mut Vec<String>) {
    let coord = ctx.ws.coord();
    let Some(tally) = coord.tally(ctx.session) else { return };
    let edits = tally.totals.edits();
    let list: Vec<String> =
        tally.totals.refusals.iter().map(|(code, count)| format!("{count} {code}")).collect();
    if !list.is_empty() {
        lines.push(format!(
            "refusals: {} of {} calls, {} of them edits",
            list.join(", "),
            tally.totals.calls().calls,
            edits.calls
        ));
    }
}
