//! `rewind`: takes back all that an agent changed since a point, as one change; what others did stays.
//!
//! A turn is one of a session: turn N is the state in which that turn began. A change as a point means itself and
//! everything later of that agent, over all its sessions. The change that a rewind makes is said to undo the oldest of
//! those it takes back (`taken_back_by` tells the others); it is undone as one.

use std::collections::BTreeSet;

use cotenant_ledger::{Query, Since};
use cotenant_model::{Change, ChangeId, Code, Outcome, Refusal, ToolSet, WsPath};
use serde_json::json;

use super::{back, conflicts, undo};
use crate::args::{Args, bad};
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "rewind",
    title: "Rewind",
    set: ToolSet::History,
    about: "Take back all your own changes since a turn or change, as one change; others' work stays. dry_run first.",
    params: &[
        Param::new("turn", Kind::Number, ""),
        Param::new("change", Kind::Text, ""),
        Param::new("agent", Kind::Text, "Another's need a human"),
        Param::new("dry_run", Kind::Flag, ""),
        Param::hidden("paths", Kind::List),
    ],
    destructive: true,
    run: Run::Change(run),
};

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let (changes, idle) = without_undone(changes(ctx, args)?);
    let only = undo::paths(ctx, args)?;
    let Some(oldest) = changes.last().map(|change| change.id) else { return Err(nothing(ctx)) };
    let taken = back::take_back(ctx, &changes, &only, &idle)?;
    if !taken.troubles.is_empty() {
        let head = Refusal::new(
            Code::UndoConflict,
            "Not all of it can be taken back; nothing was written. What stands in the way:",
        )
        .fact("since", oldest.to_string())
        .fact("changes", changes.len());
        let newest = taken.troubles.iter().map(|trouble| trouble.change).max();
        let later = changes.iter().rev().map(|change| change.id).find(|id| Some(*id) > newest);
        return Err(conflicts::refusal(ctx, head, &taken, later));
    }
    if taken.operations.ops.is_empty() {
        return Err(nothing(ctx));
    }
    let reply = Reply::new().fact("rewound", changes.len()).fact("since", oldest.to_string());
    Ok(undo::finish(ctx, taken, reply, &changes))
}

/// The changes that the call means, newest first.
fn changes(ctx: &Ctx<'_>, args: &Args) -> Result<Vec<Change>, Refusal> {
    let point = match (args.count("turn"), args.text("change")) {
        (Some(turn), None) => Point::Turn(u32::try_from(turn).unwrap_or(u32::MAX)),
        (None, Some(change)) => Point::Change(ctx.change(undo::change_id(&TOOL, change)?)?),
        _ => {
            return Err(bad(
                &TOOL,
                "turn",
                "a rewind needs a turn or a change to go back to, and only one of them",
            )
            .next(ctx.call("rewind", json!({"turn": 1, "dry_run": true}))));
        }
    };
    let agent = agent(ctx, args, &point)?;
    let query = match &point {
        Point::Turn(_) => Query { session: session(ctx, &agent)?, ..Query::default() },
        Point::Change(change) => {
            let before = ChangeId(change.id.0.saturating_sub(1));
            Query { agent: Some(agent), since: Some(Since::Change(before)), ..Query::default() }
        }
    };
    let mut changes = ctx.ws.ledger().history(&query).map_err(|error| error.refusal())?;
    changes.retain(|change| {
        let landed = matches!(change.outcome, Outcome::Sealed | Outcome::Overtaken);
        landed && !matches!(point, Point::Turn(turn) if change.turn < turn)
    });
    Ok(changes)
}

enum Point {
    Turn(u32),
    Change(Change),
}

/// Whose changes: those of the agent that is named, else the caller's own; for a human, those of the change's agent.
fn agent(ctx: &Ctx<'_>, args: &Args, point: &Point) -> Result<String, Refusal> {
    let me = ctx.ws.coord().session(ctx.session).map(|me| me.agent.to_string()).unwrap_or_default();
    match (args.text("agent"), point) {
        (Some("me"), _) => Ok(me),
        (Some(name), _) => Ok(name.to_owned()),
        (None, _) if !ctx.is_human() => Ok(me),
        (None, Point::Change(Change { agent: Some(agent), .. })) => Ok(agent.to_string()),
        (None, _) => Err(bad(&TOOL, "agent", "say whose changes are to be taken back")
            .next(ctx.call("history", json!({})))),
    }
}

/// The session whose turns are meant: the caller's, or another agent's newest one.
fn session(ctx: &Ctx<'_>, agent: &str) -> Result<Option<cotenant_model::SessionId>, Refusal> {
    let mine = ctx.ws.coord().session(ctx.session).is_some_and(|me| *me.agent == *agent);
    if mine {
        return Ok(Some(ctx.session));
    }
    let query = Query { agent: Some(agent.to_owned()), limit: 1, ..Query::default() };
    let newest = ctx.ws.ledger().history(&query).map_err(|error| error.refusal())?;
    newest.first().map(|change| change.session).ok_or_else(|| {
        Refusal::new(Code::NotFound, format!("No agent {agent} has changed anything here."))
            .fact("agent", agent)
            .next(ctx.call("history", json!({})))
    })
}

/// Without the pairs of a change and its undo, which are nothing together; and those pairs.
fn without_undone(newest_first: Vec<Change>) -> (Vec<Change>, BTreeSet<ChangeId>) {
    let mut gone: BTreeSet<ChangeId> = BTreeSet::new();
    for change in &newest_first {
        let undone = change.undoes.filter(|_| change.tool.as_ref() == undo::TOOL.name);
        let undone = undone.and_then(|id| newest_first.iter().find(|other| other.id == id));
        if let Some(undone) =
            undone.filter(|undone| !gone.contains(&change.id) && names(undone) == names(change))
        {
            gone.extend([change.id, undone.id]);
        }
    }
    let left = newest_first.into_iter().filter(|change| !gone.contains(&change.id)).collect();
    (left, gone)
}

/// Every name that a change touched.
fn names(change: &Change) -> BTreeSet<&WsPath> {
    change.files.iter().flat_map(|file| std::iter::once(&file.at).chain(&file.from)).collect()
}

/// Those of `changes` that `change` takes back, where it is an undo or a rewind.
pub(super) fn taken_back_by<'a>(
    change: &'a Change,
    changes: &'a [Change],
) -> impl Iterator<Item = ChangeId> + use<'a> {
    let oldest = change.undoes;
    let is_one = change.tool.as_ref() != TOOL.name;
    let within = move |id: ChangeId| {
        oldest.is_some_and(|oldest| id == oldest || !is_one && (oldest..change.id).contains(&id))
    };
    changes.iter().map(|change| change.id).filter(move |id| within(*id))
}

fn nothing(ctx: &Ctx<'_>) -> Refusal {
    Refusal::new(Code::NothingToChange, "Nothing that was changed since then still stands; nothing was done.")
        .next(ctx.call("history", json!({"agent": "me"})))
}
