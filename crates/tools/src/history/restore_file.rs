//! `restore_file`: an item of the trash comes back, where it was or elsewhere, never over something.

use cotenant_ledger::{Restorable, TrashItem};
use cotenant_model::{Body, Code, EntryKind, Refusal, ToolSet, TrashId, WirePath};
use cotenant_tree::Place;
use serde_json::json;

use super::back;
use crate::args::{Args, bad};
use crate::ctx::{Ctx, Loaded};
use crate::files::write_file::missing_dirs;
use crate::planned::Planned;
use crate::reply::Reply;
use crate::states::{Shift, Shifts, State};
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "restore_file",
    title: "Restore file",
    set: ToolSet::History,
    about: "Bring an item of the trash back, never over something.",
    params: &[Param::required("item", Kind::Text, ""), Param::new("to", Kind::Path, "")],
    destructive: false,
    run: Run::Change(run),
};

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let item = item(ctx, args)?;
    let place = match args.text("to") {
        Some(to) => ctx.entry(to)?,
        None => ctx.entry_at(&WirePath { at: item.at.clone(), dir_only: false })?,
    };
    let shown = ctx.show(&place.asked);
    if place.dir_only {
        return Err(bad(&TOOL, "to", &format!("{shown}/ names a directory, say the file's name in it, too"))
            .next(again(ctx, &item, &place)));
    }
    if !place.is_absent() {
        return Err(taken(ctx, &item, &place));
    }
    ctx.writable(&place)?;
    let content = ctx.image(item.digest).ok_or_else(|| expired(ctx, &item))?;
    let kind = EntryKind::of_mode(item.mode).unwrap_or(EntryKind::File);
    let mode = (item.mode != 0 && kind == EntryKind::File).then_some(item.mode & 0o7777);
    let mut shifts = Shifts::default();
    shifts.dirs(missing_dirs(&place).into_iter().map(|op| op.at));
    let after = State::Entry(Body { kind, content: content.clone(), mode });
    let class = place.class.clone();
    shifts.set(place.real.clone(), Shift { before: State::Absent, after, from: None, class });
    let operations = shifts
        .operations()
        .map_err(|impossible| Refusal::new(Code::NotADirectory, format!("{shown}: {impossible}.")))?;
    let dirs = operations.ops.len() - 1;
    let reply = Reply::new()
        .fact("path", shown)
        .fact_if("resolved", place.through_link.then(|| ctx.show(&place.real)))
        .fact("restored", item.id.to_string())
        .fact("bytes", content.len())
        .fact_if("link", (kind == EntryKind::Link).then_some(true))
        .fact_if("directories", (dirs > 0).then_some(dirs));
    let change_at = reply.facts.len();
    let lines = Loaded::fresh_or_binary(content).line_count();
    let reply = reply.fact("digest", item.digest.to_string()).fact_if("lines", (lines > 0).then_some(lines));
    // Only what the session took away itself has it seen.
    let own = ctx.ws.coord().session(ctx.session).is_some_and(|me| Some(&me.agent) == item.by.as_ref());
    Ok(Planned { reply, change_at, ..back::planned(ctx, operations, own) })
}

fn item(ctx: &Ctx<'_>, args: &Args) -> Result<TrashItem, Refusal> {
    let id: TrashId =
        args.need("item").trim().parse().map_err(|error| bad(&TOOL, "item", &format!("{error}")))?;
    let found = ctx.ws.ledger().trash_item(id).map_err(|error| error.refusal())?;
    let item = found.ok_or_else(|| {
        Refusal::new(Code::NotFound, format!("There is no {id} in the trash."))
            .fact("item", id.to_string())
            .next(ctx.call("list_trash", json!({})))
    })?;
    if item.expired.is_some() { Err(expired(ctx, &item)) } else { Ok(item) }
}

/// `NOT_RESTORABLE`, with the date.
fn expired(ctx: &Ctx<'_>, item: &TrashItem) -> Refusal {
    let known = || match ctx.change(item.change).map(|change| ctx.ws.ledger().restorable(&change)) {
        Ok(Ok(Restorable::Expired { since })) => Some(since),
        _ => None,
    };
    let since = item.expired.or_else(known).map(|since| since.rfc3339());
    let when = since.as_deref().map(|since| format!(" since {since}")).unwrap_or_default();
    let path = ctx.show(&item.at);
    let refusal = Refusal::new(
        Code::NotRestorable,
        format!("{path} of {} is no longer kept{when}; nothing was written.", item.change),
    )
    .fact("item", item.id.to_string())
    .fact("path", path.as_str());
    let refusal = match since {
        Some(since) => refusal.fact("expired", since),
        None => refusal,
    };
    refusal.next(ctx.call("list_trash", json!({"path": path})))
}

/// `ALREADY_EXISTS`: it is never put over something.
fn taken(ctx: &Ctx<'_>, item: &TrashItem, place: &Place) -> Refusal {
    let shown = ctx.show(&place.asked);
    Refusal::new(
        Code::AlreadyExists,
        format!(
            "Something stands at {shown}, and a restore never overwrites; nothing was written. Last change: {}.",
            ctx.who_changed(&place.real)
        ),
    )
    .fact("path", shown)
    .fact("item", item.id.to_string())
    .next(format!("{} puts it beside it", again(ctx, item, place)))
}

/// The call again, with a name that is free.
fn again(ctx: &Ctx<'_>, item: &TrashItem, place: &Place) -> String {
    let leaf = item.at.path.leaf().unwrap_or(b"file");
    let (stem, ending) = match leaf.iter().rposition(|byte| *byte == b'.') {
        Some(dot) if dot > 0 => leaf.split_at(dot),
        _ => (leaf, &b""[..]),
    };
    let home = if place.dir_only { Some(place.asked.clone()) } else { place.asked.parent() };
    let home = home.unwrap_or_default();
    let named = |number: usize| {
        let mark = if number == 1 { "-restored".to_owned() } else { format!("-restored-{number}") };
        home.join(&[stem, mark.as_bytes(), ending].concat())
    };
    let free = |at: &cotenant_model::WsPath| {
        let place = ctx.entry_at(&WirePath { at: at.clone(), dir_only: false });
        place.is_ok_and(|place| place.is_absent())
    };
    let to = (1..100).map(named).find(free).map(|at| ctx.show(&at)).unwrap_or_default();
    ctx.call("restore_file", json!({"item": item.id.to_string(), "to": to}))
}
