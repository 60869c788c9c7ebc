//! The plan of a patch that fits, and its answer: what becomes of each file and where each hunk landed.

use cotenant_coord::LineMap;
use cotenant_model::{Code, Refusal, WsPath};
use cotenant_text::Level;
use cotenant_text::patch::{Applied, Landed, Patch};
use serde_json::{Value, json};

use super::canvas::{Canvas, Done, Sheet, What};
use crate::ctx::{Ctx, Loaded, entry_name};
use crate::planned::{After, Planned};
use crate::reply::Reply;
use crate::states::Impossible;

/// Notes of the hunks that an answer has.
const NOTES: usize = 6;
/// Bytes of the list of files that an answer shows.
const LISTED: usize = 8 * 1024;

/// The plan, or why nothing comes of it.
pub(super) fn planned(
    ctx: &Ctx<'_>,
    patch: &Patch,
    canvas: Canvas<'_>,
    done: &[Done],
) -> Result<Planned, Refusal> {
    let operations = canvas.shifts().operations().map_err(|impossible| refused(ctx, &impossible))?;
    if operations.ops.is_empty() {
        return Err(Refusal::new(Code::NothingToChange, "The patch changes nothing; nothing was written.")
            .fact("files", patch.files.len())
            .next("go on; the files are as the patch wants them"));
    }
    let hunks: usize = done.iter().filter_map(|one| one.applied.as_ref()).map(|one| one.landed.len()).sum();
    let wanted: usize = patch.files.iter().map(|file| file.hunks.len()).sum();
    let skipped = patch.files.len() - done.len();
    let reply = Reply::new()
        .fact("patch", patch.grammar.name())
        .fact("files", done.len())
        .fact("hunks", if hunks == 0 { wanted } else { hunks })
        .fact_if("skipped_files", (skipped > 0).then_some(skipped));
    let change_at = reply.facts.len();
    let lines: Vec<String> = done.iter().map(|one| line(ctx, one)).collect();
    let mut reply = reply.field("files", done.iter().map(|one| json(ctx, one)).collect::<Vec<_>>());
    for note in notes(ctx, done) {
        reply = reply.notice(note);
    }
    let reply = ctx.capped(reply, "apply_patch", &lines.join("\n"), LISTED);
    let after = canvas.sheets().iter().filter_map(|(at, sheet)| after(ctx, at, sheet)).collect();
    Ok(Planned {
        ops: operations.ops,
        classes: operations.classes,
        before: operations.before,
        reply,
        change_at,
        after,
        listing: true,
        ..Planned::default()
    })
}

fn refused(ctx: &Ctx<'_>, impossible: &Impossible) -> Refusal {
    let path = ctx.show(impossible.at());
    Refusal::new(Code::BadInput, format!("{path}: {impossible}; nothing was written."))
        .fact("path", path)
        .next("make two patches of it: first what goes, then what comes to its place")
}

/// What the session knows of a file afterwards.
fn after(ctx: &Ctx<'_>, at: &WsPath, sheet: &Sheet) -> Option<After> {
    let (old, new) = (sheet.before.entry(), sheet.after.entry());
    if old == new {
        return None;
    }
    let digest = |body: &cotenant_model::Body| body.entry().digest;
    let image = |body: Option<&cotenant_model::Body>| {
        Loaded::fresh_or_binary(body.map(|body| body.content.clone()).unwrap_or_default())
    };
    let map = match (old, new) {
        (Some(_), Some(_)) => ctx.line_map(&image(old), &image(new)),
        _ => LineMap::default(),
    };
    let whole = (old.is_none() && sheet.from.is_none()).then(|| image(new).line_count());
    Some(After { at: at.clone(), old: old.map(digest), new: new.map(digest), map, since: None, whole })
}

/// `M src/a.rs +2 -2 lines=12-14,40-41`.
fn line(ctx: &Ctx<'_>, done: &Done) -> String {
    let name = |at: &WsPath| entry_name(ctx.show(at).as_bytes()).into_owned();
    let to = name(&done.at);
    let mut text = match &done.what {
        What::Added => format!("A {to}"),
        What::Changed => format!("M {to}"),
        What::Deleted => format!("D {to}"),
        What::Renamed(from) => format!("R {} -> {to}", name(from)),
        What::Copied(from) => format!("C {} -> {to}", name(from)),
    };
    match done.counts {
        None => text.push_str(" binary"),
        Some((0, 0)) => {}
        Some((new, old)) => text.push_str(&format!(" +{new} -{old}")),
    }
    if let Some((old, new)) = done.modes {
        text.push_str(&format!(" {old:03o}->{new:03o}"));
    }
    if let Some(applied) = &done.applied {
        let places: Vec<String> = applied.landed.iter().map(place).collect();
        text.push_str(&format!(" lines={}", places.join(",")));
    }
    text
}

/// The lines of a hunk in the new file.
fn place(landed: &Landed) -> String {
    let (first, count) = landed.new;
    match count {
        0 => format!("{first}(taken out)"),
        1 => first.to_string(),
        _ => format!("{first}-{}", first + count - 1),
    }
}

/// What differs from what was sent: hunks that stand elsewhere than stated, and what the files made of them.
fn notes(ctx: &Ctx<'_>, done: &[Done]) -> Vec<String> {
    let mut notes = Vec::new();
    for (one, applied) in done.iter().filter_map(|one| Some((one, one.applied.as_ref()?))) {
        let path = ctx.show(&one.at);
        notes.extend(applied.notes.iter().map(|note| format!("{path}: {note}")));
        notes.extend(drifted(&path, applied));
    }
    let left = notes.len().saturating_sub(NOTES);
    notes.truncate(NOTES);
    if left > 0 {
        notes.push(format!("and {left} more of this kind"));
    }
    notes
}

fn drifted(path: &str, applied: &Applied) -> Option<String> {
    let furthest = applied.landed.iter().max_by_key(|landed| landed.drift.unsigned_abs())?;
    let (lines, hunk) = (furthest.drift.unsigned_abs(), furthest.hunk);
    let side = if furthest.drift > 0 { "below" } else { "above" };
    (lines > 0).then(|| format!("{path}: hunk {hunk} stands {lines} lines {side} its stated one"))
}

fn json(ctx: &Ctx<'_>, done: &Done) -> Value {
    let (op, from) = match &done.what {
        What::Added => ("create", None),
        What::Changed => ("edit", None),
        What::Deleted => ("delete", None),
        What::Renamed(from) => ("move", Some(from)),
        What::Copied(from) => ("copy", Some(from)),
    };
    let hunk = |landed: &Landed| {
        json!({
            "hunk": landed.hunk,
            "old": [landed.old.0, landed.old.1],
            "new": [landed.new.0, landed.new.1],
            "drift": landed.drift,
            "match": if landed.level == Level::Exact { "exact" } else { "eol" },
        })
    };
    let hunks: Vec<Value> = done.applied.iter().flat_map(|applied| &applied.landed).map(hunk).collect();
    let mut value = json!({"path": ctx.show(&done.at), "op": op, "hunks": hunks});
    if let (Some(map), Some(from)) = (value.as_object_mut(), from) {
        map.insert("from".to_owned(), ctx.show(from).into());
    }
    value
}
