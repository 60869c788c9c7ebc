//! From what a command left behind to a plan: the operations, the answer's lines, and what the session knows afterwards.

use std::collections::BTreeSet;

use cotenant_coord::LineMap;
use cotenant_engine::effects::{Recorded, Run, Settled, Shifted};
use cotenant_model::{
    Body, ChangeFile, ChangeOp, Code, Content, Digest, EntryKind, Op, Refusal, State, WirePath, WsPath,
};
use cotenant_shell::sandbox::Upper;
use serde_json::{Value, json};

use super::upper::Ignored;
use crate::ctx::{Ctx, Loaded, entry_name};
use crate::files::write_file::missing_dirs;
use crate::planned::{After, Planned};
use crate::reply::Reply;
use crate::states::{Impossible, Operations, Shift, Shifts};

/// Files whose changed lines others are told of; of more than that nobody reads each.
const MAPPED: usize = 500;
/// Things that cannot be taken back which an answer names.
const LOSSES: usize = 5;
/// Lines about changed files that an answer has.
const LISTED: usize = 50;

/// What is needed to merge a command's effects once more into files that changed meanwhile.
pub(crate) struct Settling {
    /// What the command did, and when it began.
    pub(crate) run: Run,
    /// The facts of its answer.
    pub(crate) head: Reply,
    /// What is ignored, and moved over beside the change.
    pub(crate) left: Option<Left>,
}

/// What a command left that is ignored, while its upper layer is there.
pub(crate) struct Left {
    pub(crate) upper: Upper,
    pub(crate) ignored: Vec<Ignored>,
}

/// The plan of settled effects. `head` holds the facts about the run itself.
pub(crate) fn planned(ctx: &Ctx<'_>, settled: Settled, head: Reply) -> Result<Planned, Refusal> {
    let unlike: Vec<String> = settled.unlike.iter().map(|at| ctx.show(at)).collect();
    let merged: Vec<String> = settled.merged.iter().map(|at| ctx.show(at)).collect();
    let lines = lines(ctx, &settled.shifts);
    let operations = operations(ctx, settled.shifts)?;
    let change_at = head.facts.len();
    let mut reply = head.fact("changed", lines.len());
    if !merged.is_empty() {
        reply = reply.notice(format!(
            "others changed {} while the command ran; what it changed was merged in",
            merged.join(", ")
        ));
    }
    if !unlike.is_empty() {
        reply = reply.notice(format!("permissions of directories stay as they were: {}", unlike.join(", ")));
    }
    let reply = reply
        .field("changes", lines.iter().map(|line| line.json(ctx)).collect::<Vec<_>>())
        .content(listing(ctx, &lines));
    let after = after(ctx, &operations);
    let Operations { ops, classes, before, also } = operations;
    Ok(Planned { ops, classes, before, also, reply, change_at, after, listing: true, ..Planned::default() })
}

fn operations(ctx: &Ctx<'_>, settled: Vec<Shifted>) -> Result<Operations, Refusal> {
    let mut shifts = Shifts::default();
    for Shifted { at, before, after, from } in settled {
        let place = ctx.entry_at(&WirePath { at: at.clone(), dir_only: false })?;
        ctx.writable(&place)?;
        if after.stands() {
            shifts.dirs(missing_dirs(&place).into_iter().map(|op| op.at));
        }
        shifts.set(at, Shift { before, after, from, class: place.class });
    }
    shifts.operations().map_err(|impossible| refused(ctx, &impossible))
}

/// What a plan cannot do at once, a command may have done: a file that became a directory, or the other way round.
fn refused(ctx: &Ctx<'_>, impossible: &Impossible) -> Refusal {
    let path = ctx.show(impossible.at());
    Refusal::new(
        Code::NotAvailable,
        format!("The command made {path} a directory where a file was, or the other way round, which cannot land as one change; nothing of it was kept."),
    )
    .fact("path", path)
    .next("run what removes it and what makes it anew as two commands, or the whole with mode direct")
}

/// What the session knows of the files afterwards: what it had seen it still has, line by line.
fn after(ctx: &Ctx<'_>, operations: &Operations) -> Vec<After> {
    let touched = operations
        .ops
        .iter()
        .zip(&operations.before)
        .filter(|(op, _)| matches!(op.op, Op::Create { .. } | Op::Replace { .. } | Op::Delete { .. }));
    touched.take(MAPPED).map(|(op, before)| after_of(ctx, &op.at, before.as_ref(), op.content())).collect()
}

fn after_of(ctx: &Ctx<'_>, at: &WsPath, old: Option<&Content>, new: Option<&Content>) -> After {
    let image = |content: &Content| Loaded::fresh_or_binary(content.clone());
    let map = match (old, new) {
        (Some(old), Some(new)) => ctx.line_map(&image(old), &image(new)),
        _ => LineMap::default(),
    };
    let digest = |content: &Content| Digest::of(content);
    After { at: at.clone(), old: old.map(digest), new: new.map(digest), map, since: None, whole: None }
}

/// A changed path as an answer names it.
#[derive(Clone)]
struct Line {
    word: char,
    at: WsPath,
    from: Option<WsPath>,
    directory: bool,
    /// Lines that came and went; `None` for what is no text.
    counts: Option<(usize, usize)>,
    /// Permission bits before and after, where they changed.
    modes: Option<(u32, u32)>,
}

/// One line a path; what only changed its name has one.
fn lines(ctx: &Ctx<'_>, shifts: &[Shifted]) -> Vec<Line> {
    let gone: BTreeSet<&WsPath> =
        shifts.iter().filter(|shift| !shift.after.stands()).map(|shift| &shift.at).collect();
    let renamed: BTreeSet<&WsPath> = shifts
        .iter()
        .filter(|shift| !shift.before.stands())
        .filter_map(|shift| shift.from.as_ref())
        .filter(|from| gone.contains(from))
        .collect();
    let told = shifts.iter().filter(|shift| !renamed.contains(&shift.at));
    told.filter_map(|shift| Line::of(ctx, shift, shift.from.as_ref().filter(|from| renamed.contains(from))))
        .collect()
}

impl Line {
    fn of(ctx: &Ctx<'_>, shift: &Shifted, renamed: Option<&WsPath>) -> Option<Line> {
        let line = Line {
            word: 'M',
            at: shift.at.clone(),
            from: renamed.cloned(),
            directory: false,
            counts: Some((0, 0)),
            modes: None,
        };
        let word = |word| Line { word, ..line.clone() };
        Some(match (&shift.before, &shift.after) {
            (State::Absent, State::Absent) | (State::Dir { .. }, State::Dir { .. }) => return None,
            (State::Absent, State::Dir { .. }) => Line { directory: true, ..word('A') },
            (State::Dir { .. }, State::Absent) => Line { directory: true, ..word('D') },
            (State::Absent, State::Entry(_)) if renamed.is_some() => word('R'),
            (State::Absent, State::Entry(new)) => Line { counts: counts(ctx, None, Some(new)), ..word('A') },
            (State::Entry(old), State::Absent) => Line { counts: counts(ctx, Some(old), None), ..word('D') },
            (State::Entry(old), State::Entry(new)) if old.kind == new.kind => Line {
                counts: counts(ctx, Some(old), Some(new)),
                modes: old.mode.zip(new.mode).filter(|(old, new)| old != new),
                ..line
            },
            _ => word('T'),
        })
    }

    fn text(&self, ctx: &Ctx<'_>) -> String {
        let name = |at: &WsPath| entry_name(ctx.show(at).as_bytes()).into_owned();
        let slash = if self.directory { "/" } else { "" };
        let mut text = match &self.from {
            Some(from) => format!("{} {} -> {}", self.word, name(from), name(&self.at)),
            None => format!("{} {}{slash}", self.word, name(&self.at)),
        };
        if let Some((old, new)) = self.modes {
            text.push_str(&format!(" {old:03o}->{new:03o}"));
        }
        match self.counts {
            None => text.push_str(" binary"),
            Some((0, 0)) => {}
            Some((new, old)) => text.push_str(&format!(" +{new} -{old}")),
        }
        text
    }

    fn json(&self, ctx: &Ctx<'_>) -> Value {
        json!({
            "op": self.word.to_string(),
            "path": ctx.show(&self.at),
            "from": self.from.as_ref().map(|from| ctx.show(from)),
        })
    }
}

/// Lines that came and went; `None` where one of the two is no text.
fn counts(ctx: &Ctx<'_>, old: Option<&Body>, new: Option<&Body>) -> Option<(usize, usize)> {
    if [old, new].into_iter().flatten().any(|body| body.kind == EntryKind::Link) {
        return Some((0, 0));
    }
    let image = |body: Option<&Body>| {
        Loaded::fresh_or_binary(body.map(|body| body.content.clone()).unwrap_or_default())
    };
    let (old, new) = (image(old), image(new));
    if !old.text || !new.text {
        return if old.bytes == new.bytes { Some((0, 0)) } else { None };
    }
    let regions = ctx.line_map(&old, &new).regions;
    Some(
        regions
            .iter()
            .fold((0, 0), |(came, went), region| (came + region.new.len(), went + region.old.len())),
    )
}

/// The lines, as many as an answer has.
fn listing(ctx: &Ctx<'_>, lines: &[Line]) -> String {
    let mut text: Vec<String> = lines.iter().take(LISTED).map(|line| line.text(ctx)).collect();
    if lines.len() > LISTED {
        text.push(format!("… and {} more; show_change has them all", lines.len() - LISTED));
    }
    text.join("\n")
}

/// The answer of a command that wrote the workspace itself: what it changed, and what of it cannot be taken back.
pub(super) fn recorded(ctx: &Ctx<'_>, recorded: &Recorded, head: Reply) -> Reply {
    let mut reply = head;
    if let Some(change) = recorded.change {
        reply = reply.fact("change", change.to_string());
    }
    reply = reply.fact("changed", recorded.files.len());
    let lost: Vec<String> = recorded
        .not_restorable
        .iter()
        .take(LOSSES)
        .map(|(at, loss)| format!("{}: {loss}", ctx.show(at)))
        .collect();
    if !lost.is_empty() {
        let more = recorded.not_restorable.len() - lost.len();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        reply = reply
            .fact("not_restorable", recorded.not_restorable.len())
            .notice(format!("undo cannot bring back {}{more}", lost.join("; ")));
    }
    if !recorded.overlapped.is_empty() {
        let paths: Vec<String> = recorded.overlapped.iter().take(LOSSES).map(|at| ctx.show(at)).collect();
        reply = reply.notice(format!(
            "others changed these meanwhile, what was theirs is not counted: {}",
            paths.join(", ")
        ));
    }
    let files = &recorded.files;
    let lines: Vec<String> = files.iter().take(LISTED).map(|file| recorded_line(ctx, file)).collect();
    let more = files.len().saturating_sub(LISTED);
    let more =
        if more > 0 { format!("\n… and {more} more; show_change has them all") } else { String::new() };
    let changes: Vec<Value> =
        files.iter().map(|file| json!({"op": file.op.name(), "path": ctx.show(&file.at)})).collect();
    reply.field("changes", changes).content(lines.join("\n") + &more)
}

fn recorded_line(ctx: &Ctx<'_>, file: &ChangeFile) -> String {
    let name = |at: &WsPath| entry_name(ctx.show(at).as_bytes()).into_owned();
    let line = match (file.op, &file.from) {
        (ChangeOp::Create, _) => format!("A {}", name(&file.at)),
        (ChangeOp::MakeDir, _) => format!("A {}/", name(&file.at)),
        (ChangeOp::Delete, _) => format!("D {}", name(&file.at)),
        (ChangeOp::RemoveDir, _) => format!("D {}/", name(&file.at)),
        (ChangeOp::Move, Some(from)) => format!("R {} -> {}", name(from), name(&file.at)),
        (ChangeOp::Edit | ChangeOp::Move, _) => format!("M {}", name(&file.at)),
    };
    match (file.pre_mode & 0o7777, file.post_mode & 0o7777) {
        (before, after) if file.op == ChangeOp::Edit && before != after => {
            format!("{line} {before:03o}->{after:03o}")
        }
        _ => line,
    }
}
