//! `undo`: takes back one change's own hunks and keeps everything done since; itself a change that can be undone.

use std::collections::BTreeSet;

use cotenant_ledger::Query;
use cotenant_model::{Change, ChangeId, Code, Outcome, Refusal, ToolSet, WsPath};
use serde_json::json;

use super::back::{self, Taken};
use super::{conflicts, rewind};
use crate::args::{Args, bad};
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "undo",
    title: "Undo change",
    set: ToolSet::Core,
    about: "Take back one change, however old, and keep everything done since. An undo can be undone.",
    params: &[
        Param::new("change", Kind::Text, "Id such as c41; default your last"),
        Param::new("dry_run", Kind::Flag, ""),
        Param::hidden("paths", Kind::List),
    ],
    destructive: true,
    run: Run::Change(run),
};

/// How far back the session's last change is looked for.
const RECENT: usize = 50;
/// Ids that an answer names.
const NAMED: usize = 5;

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let change = match args.text("change") {
        Some(id) => ctx.change(change_id(&TOOL, id)?)?,
        None => last(ctx)?,
    };
    if change.outcome == Outcome::Aborted {
        return Err(nothing(ctx, change.id, "nothing of it stands"));
    }
    let only = paths(ctx, args)?;
    let has = |at: &WsPath| {
        change
            .files
            .iter()
            .any(|file| file.at.is_within(at) || file.from.as_ref().is_some_and(|from| from.is_within(at)))
    };
    if let Some(stray) = only.iter().find(|at| !has(at)) {
        let sentence = format!("{} is not in {}", ctx.show(stray), change.id);
        return Err(bad(&TOOL, "paths", &sentence)
            .next(ctx.call("show_change", json!({"change": change.id.to_string()}))));
    }
    let taken = back::take_back(ctx, std::slice::from_ref(&change), &only, &BTreeSet::new())?;
    if !taken.troubles.is_empty() {
        let head = Refusal::new(
            Code::UndoConflict,
            format!("Later changes stand on what {} did; nothing was written.", change.id),
        );
        return Err(conflicts::refusal(ctx, head.fact("change", change.id.to_string()), &taken, None));
    }
    if taken.operations.ops.is_empty() {
        return Err(nothing(ctx, change.id, "the files are as they were before it"));
    }
    let reply = Reply::new().fact("undone", change.id.to_string());
    Ok(finish(ctx, taken, reply, std::slice::from_ref(&change)))
}

/// The plan and its answer. `changes` are those that are taken back, newest first.
pub(super) fn finish(ctx: &Ctx<'_>, taken: Taken, reply: Reply, changes: &[Change]) -> Planned {
    let me = ctx.ws.coord().session(ctx.session).map(|me| me.agent.clone());
    let own = changes.iter().all(|change| change.agent.is_some() && change.agent == me);
    let mut planned = back::planned(ctx, taken.operations, own);
    planned.others_work = !own;
    planned.undoes = changes.last().map(|oldest| oldest.id);
    planned.change_at = reply.facts.len();
    let mut kept: Vec<String> = taken.kept.iter().take(NAMED).map(ToString::to_string).collect();
    if taken.kept.len() > NAMED {
        kept.push(format!("+{}", taken.kept.len() - NAMED));
    }
    planned.reply = reply
        .fact("paths", planned.ops.len())
        .fact_if("kept", (!kept.is_empty()).then_some(kept))
        .content(back::lines(ctx, &planned));
    planned
}

/// The paths that the call is narrowed to.
pub(super) fn paths(ctx: &Ctx<'_>, args: &Args) -> Result<Vec<WsPath>, Refusal> {
    args.texts("paths").into_iter().map(|text| ctx.path(text)).collect()
}

/// The id in the argument `change`.
pub(super) fn change_id(tool: &Tool, text: &str) -> Result<ChangeId, Refusal> {
    text.parse().map_err(|error| bad(tool, "change", &format!("{error}")))
}

/// The session's newest change that stands and was not taken back; for a human, anybody's.
fn last(ctx: &Ctx<'_>) -> Result<Change, Refusal> {
    let session = (!ctx.is_human()).then_some(ctx.session);
    let query = Query { session, limit: RECENT, ..Query::default() };
    let changes = ctx.ws.ledger().history(&query).map_err(|error| error.refusal())?;
    let mut undone: BTreeSet<ChangeId> = BTreeSet::new();
    for change in &changes {
        // What was taken back takes nothing back itself.
        if !undone.contains(&change.id) {
            undone.extend(rewind::taken_back_by(change, &changes));
        }
    }
    let stands = |change: &Change| change.undoes.is_none() && !undone.contains(&change.id);
    changes.into_iter().find(stands).ok_or_else(|| {
        Refusal::new(
            Code::NothingToChange,
            "This session has made no change that still stands; nothing was done.",
        )
        .next(ctx.call("history", json!({"agent": "me"})))
    })
}

pub(super) fn nothing(ctx: &Ctx<'_>, change: ChangeId, why: &str) -> Refusal {
    Refusal::new(Code::NothingToChange, format!("{change} needs no undoing: {why}."))
        .fact("change", change.to_string())
        .next(ctx.call("history", json!({})))
}
