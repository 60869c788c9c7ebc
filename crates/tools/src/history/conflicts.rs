//! Why something cannot be taken back, with both sides: what a later change made of it, and what taking it back needs.

use std::collections::BTreeSet;

use cotenant_ledger::{Query, Restorable, Since};
use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeKind, Code, Content, Digest, Millis, Refusal, WsPath,
};
use cotenant_text::{Clash, Conflict};
use serde_json::{Map, json};

use super::back::Taken;
use crate::ctx::Ctx;

/// Bytes of each side that a conflict shows.
const SIDE: usize = 160;
/// Places of a file that are shown.
const PLACES: usize = 3;
/// Later changes of a file that are compared to find whose lines are in the way.
const LATER: usize = 50;

/// What stands in the way of taking one path back.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    /// The path, as the change has it.
    pub(super) at: WsPath,
    /// The change that cannot be taken back there.
    pub(super) change: ChangeId,
    /// `UNDO_CONFLICT`, or why it could not even be tried.
    pub(super) code: Code,
    /// A line or more.
    pub(super) text: String,
    /// The later change that is in the way, where it is known.
    pub(super) beside: Option<ChangeId>,
}

/// Why a step cannot be taken back.
pub(super) enum Stop {
    /// Something later stands there.
    Conflict { text: String, beside: Option<ChangeId> },
    /// Something else forbids it.
    Refused(Box<Refusal>),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(Box::new(refusal))
    }
}

impl Stop {
    pub(super) fn trouble(self, ctx: &Ctx<'_>, at: &WsPath, change: ChangeId) -> Trouble {
        let at = at.clone();
        match self {
            Stop::Conflict { text, beside } => Trouble { at, change, code: Code::UndoConflict, text, beside },
            Stop::Refused(refusal) => {
                let text = format!("{}: {}", ctx.show(&at), refusal.message);
                Trouble { at, change, code: refusal.code, text, beside: None }
            }
        }
    }
}

/// A change that cannot be taken back, and where it is now.
pub(super) struct Overlap<'a> {
    pub(super) ctx: &'a Ctx<'a>,
    /// The change.
    pub(super) change: ChangeId,
    /// The path now.
    pub(super) at: &'a WsPath,
    /// The later changes of the path, oldest first.
    pub(super) later: Vec<Change>,
}

impl Overlap<'_> {
    /// Something else stands there; what, is said by `why`, a sentence that goes on from the path.
    pub(super) fn whole(self, why: &str) -> Stop {
        let by = self.later.iter().rev().find(|change| file_at(change, self.at).is_some());
        let who = by.map(|change| format!(" ({})", who(self.ctx, change))).unwrap_or_default();
        let text = format!("{}: {why}{who}", self.ctx.show(self.at));
        Stop::Conflict { text, beside: by.map(|change| change.id) }
    }

    /// Lines were changed on both sides; `is` and `was` are what the change left and what it found.
    pub(super) fn lines(self, is: &[u8], was: &[u8], conflict: &Conflict) -> Stop {
        let earlier: Vec<(&Change, Conflict)> = self
            .later
            .iter()
            .filter_map(|change| Some((change, self.clash_with(change, is, was)?)))
            .collect();
        let mut lines =
            vec![format!("Later changes stand on lines of {} in {}:", self.change, self.ctx.show(self.at))];
        let mut beside = None;
        for clash in conflict.clashes.iter().take(PLACES) {
            let hits = |conflict: &Conflict| conflict.clashes.iter().any(|other| touch(clash, other));
            let by = earlier.iter().find(|(_, conflict)| hits(conflict)).map(|(change, _)| *change);
            let name =
                by.map_or_else(|| "someone outside cotenant".to_owned(), |change| who(self.ctx, change));
            let place = place(clash);
            lines.push(format!("{name} {place}:  {}", sides(&clash.base_bytes, &clash.our_bytes)));
            let need = sides(&clash.base_bytes, &clash.their_bytes);
            lines.push(format!("Taking {} back would need: {need}", self.change));
            beside = beside.or_else(|| by.map(|change| change.id));
        }
        let more = conflict.clashes.len().saturating_sub(PLACES);
        if more > 0 {
            lines.push(format!("and {more} more places"));
        }
        Stop::Conflict { text: lines.join("\n"), beside }
    }

    /// Where a version that a later change left cannot be brought back before ours, if so.
    fn clash_with(&self, change: &Change, is: &[u8], was: &[u8]) -> Option<Conflict> {
        let version = self.ctx.image(file_at(change, self.at)?.post?)?;
        cotenant_text::merge3(is, &version, was).err()
    }
}

/// The later changes of a path but for those in `skip`, oldest first.
pub(super) fn later(
    ctx: &Ctx<'_>,
    at: &WsPath,
    since: ChangeId,
    skip: impl Fn(ChangeId) -> bool,
) -> Result<Vec<Change>, Refusal> {
    let query =
        Query { path: Some(at.clone()), since: Some(Since::Change(since)), limit: LATER, ..Query::default() };
    let mut changes = ctx.ws.ledger().history(&query).map_err(|error| error.refusal())?;
    changes.retain(|change| {
        !skip(change.id) && change.files.iter().any(|file| file.at == *at || file.from.as_ref() == Some(at))
    });
    changes.reverse();
    Ok(changes)
}

fn file_at<'a>(change: &'a Change, at: &WsPath) -> Option<&'a ChangeFile> {
    change.files.iter().find(|file| file.at == *at)
}

fn touch(one: &Clash, other: &Clash) -> bool {
    one.base.start <= other.base.end && other.base.start <= one.base.end
}

/// `lines 55-57` of the file as it is.
fn place(clash: &Clash) -> String {
    match clash.ours.end.saturating_sub(1) {
        last if last > clash.ours.start => format!("lines {}-{last}", clash.ours.start),
        _ => format!("line {}", clash.ours.start),
    }
}

/// What became what, each as one line.
fn sides(old: &[u8], new: &[u8]) -> String {
    let side = |sign: char, bytes: &[u8]| {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let clip = cotenant_text::clip(bytes, SIDE);
        let more = if clip.left > 0 { "…" } else { "" };
        format!("{sign}{}{more}", clip.text.replace('\n', "⏎"))
    };
    match (old.is_empty(), new.is_empty()) {
        (false, false) => format!("{}  {}", side('-', old), side('+', new)),
        (false, true) => side('-', old),
        (true, false) => side('+', new),
        (true, true) => "nothing".to_owned(),
    }
}

/// `c38 (you, 20 min ago)`.
pub(super) fn who(ctx: &Ctx<'_>, change: &Change) -> String {
    let me = ctx.ws.coord().session(ctx.session).map(|me| me.agent.clone());
    let name = match &change.agent {
        Some(agent) if Some(agent) == me.as_ref() => "you",
        Some(agent) => agent,
        None if change.kind == ChangeKind::Observed => "someone outside cotenant",
        None => "human",
    };
    let age = Millis(ctx.ws.clock().wall().since(change.time));
    format!("{} ({name}, {age} ago)", change.id)
}

/// An image of a change; where it is no longer kept, `NOT_RESTORABLE` with the date.
pub(super) fn image(ctx: &Ctx<'_>, digest: Digest, change: ChangeId) -> Result<Content, Refusal> {
    ctx.image(digest).ok_or_else(|| {
        let ledger = ctx.ws.ledger();
        let expired = match ledger.change(change).ok().flatten().map(|change| ledger.restorable(&change)) {
            Some(Ok(Restorable::Expired { since })) => Some(since.rfc3339()),
            _ => None,
        };
        let since = expired.as_deref().map(|since| format!(" since {since}")).unwrap_or_default();
        Refusal::new(Code::NotRestorable, format!("its image in {change} is no longer kept{since}"))
            .fact("change", change.to_string())
    })
}

/// Bytes of all that a refusal shows of what is in the way.
const BLOCK: usize = 2000;

/// The refusal that lists what is in the way, and what would work: the clean paths alone, or a later point.
pub(super) fn refusal(ctx: &Ctx<'_>, head: Refusal, taken: &Taken, later: Option<ChangeId>) -> Refusal {
    let code = match taken.troubles.first().map(|trouble| trouble.code) {
        Some(code) if taken.troubles.iter().all(|trouble| trouble.code == code) => code,
        _ => Code::UndoConflict,
    };
    let refusal = Refusal { code, ..head }
        .fact("files", taken.paths)
        .fact("clean", taken.clean.len())
        .fact("overlap", taken.troubles.len())
        .block(block(&taken.troubles));
    let mut ways: Vec<String> = Vec::new();
    if !taken.clean.is_empty() {
        ways.push(format!("{} takes back the clean paths", clean(ctx, taken)));
    }
    if let Some(later) = later {
        ways.push(format!(
            "{} takes back what came after",
            ctx.call("rewind", json!({"change": later.to_string()}))
        ));
    }
    let beside: BTreeSet<ChangeId> = taken.troubles.iter().filter_map(|trouble| trouble.beside).collect();
    if let Some(beside) = beside.last() {
        ways.push(format!("{} first", ctx.call("undo", json!({"change": beside.to_string()}))));
    }
    let path = taken.troubles.first().map(|trouble| ctx.show(&trouble.at)).unwrap_or_default();
    if ways.is_empty() {
        ways.push(ctx.call("history", json!({"path": path})));
    }
    if code == Code::UndoConflict {
        ways.push(format!("edit {path} by hand"));
    }
    refusal.next(ways.join("; or "))
}

fn block(troubles: &[Trouble]) -> String {
    let mut block = String::new();
    for (index, trouble) in troubles.iter().enumerate() {
        if index > 0 && block.len() + trouble.text.len() > BLOCK {
            block.push_str(&format!("and {} more", troubles.len() - index));
            break;
        }
        block.push_str(&trouble.text);
        block.push('\n');
    }
    block
}

/// The call again, with the clean paths alone.
fn clean(ctx: &Ctx<'_>, taken: &Taken) -> String {
    let paths: Vec<String> = taken.clean.iter().map(|at| ctx.show(at)).collect();
    ctx.again(Map::from_iter([("paths".to_owned(), paths.into())]))
}
