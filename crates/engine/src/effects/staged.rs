//! What a command that wrote into an upper layer saw of each path it changed, and what becomes of that now (R19, R22).
//!
//! The layer below may have moved on while the command ran. A path is as the command saw it if what stands there is older
//! than the run, or is what the ledger knows to have stood there when it began. Where it is neither, what the command did
//! is merged into what stands there by lines, from what it saw; else it is a conflict. What a command only read is not
//! looked at; nor is a directory that another program put in the place of one it saw, with old files in it.

use std::collections::BTreeMap;

use cotenant_model::{
    Becomes, Body, ChangeId, Content, Digest, Effects, EntryKind, Refusal, State, WirePath, WsPath,
};
use cotenant_text::Encoding;
use cotenant_tree::{Key, Kind, Place, RACY_NS, TreeError};

use super::others::{Mark, Others, ends};
use super::stand::Stand;
use crate::image::Image;
use crate::workspace::Workspace;

/// The moment before a run's layers were mounted, as the file system of its lower layer stamps time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// The change time of a file that was touched then, nanoseconds since the Unix epoch.
    pub ctime_ns: i128,
}

/// A run that is over, its processes dead and its layers unmounted.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What the upper layer says of each path.
    pub effects: Effects,
    /// Directories that hide what is below them: all of it that is not in `effects` goes.
    pub opaque: Vec<WsPath>,
    /// When it began, by time; `None` where that is not to be had: then only the ledger tells what it saw.
    pub barrier: Option<Barrier>,
    /// When it began, by changes; taken after the barrier.
    pub mark: Mark,
    /// What the command saw, where that was settled before: for effects that are settled once more.
    pub saw: BTreeMap<WsPath, State>,
}

/// What becomes of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shifted {
    /// The path.
    pub at: WsPath,
    /// What stands there.
    pub before: State,
    /// What shall stand there.
    pub after: State,
    /// The path whose file this is, under another name.
    pub from: Option<WsPath>,
}

/// What a run comes to. What it only touched is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// In path order.
    pub shifts: Vec<Shifted>,
    /// Those among them that others changed meanwhile, too: both sides' lines are in them.
    pub merged: Vec<WsPath>,
    /// Directories to which the command gave other permissions: those stay as they are.
    pub unlike: Vec<WsPath>,
}

/// Why the effect on a path cannot land.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// Its lines, its mode or all of it were changed by both.
    #[error("it was changed meanwhile, in the same places")]
    Changed,
    /// Others deleted it.
    #[error("it was deleted meanwhile")]
    Deleted,
    /// Others made it.
    #[error("something was put there meanwhile")]
    Created,
    /// A file became a directory, or a directory a file.
    #[error("it became another kind of thing, which no single change can make of it")]
    Kind,
    /// A directory above it got another name.
    #[error("a directory above it was moved meanwhile")]
    Moved,
    /// It changed about when the run began or later, and nobody knows what it was.
    #[error("it changed while the command ran, and what the command saw of it is not kept")]
    Unknown,
    /// Agents may not change it.
    #[error("it is protected by {rule}")]
    Protected {
        /// The rule.
        rule: String,
    },
    /// It cannot be looked at: a FIFO, a mount point, a link on the way, a file that is being written.
    #[error("{why}")]
    Closed {
        /// Why.
        why: String,
    },
}

/// An effect that cannot land.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where.
    pub at: WsPath,
    /// Why.
    pub why: Clash,
    /// The change that is in the way, where it is known.
    pub by: Option<ChangeId>,
}

/// Decides what every path was when the command saw it, and what becomes of what stands there now. Nothing is written.
///
/// # Errors
/// Every path whose effect cannot land: nothing of the run should, then.
pub fn plan_effects(ws: &Workspace, run: Run) -> Result<Settled, Vec<Conflict>> {
    let failed = |refusal: Refusal| {
        let at = run.effects.keys().next().cloned().unwrap_or_default();
        vec![Conflict { at, why: Clash::Closed { why: refusal.to_string() }, by: None }]
    };
    let others = Others::since(ws.ledger(), &run.mark).map_err(|error| failed(error.refusal()))?;
    let Run { mut effects, opaque, barrier, mark, saw } = run;
    let lower = Lower { ws, others, barrier, mark, saw };
    let mut conflicts = lower.spread(&mut effects, &opaque);
    let mut settled = Settled::default();
    for (at, becomes) in effects {
        // What stands below another kind of thing stands nowhere yet.
        if conflicts.iter().any(|conflict| conflict.why == Clash::Kind && at.is_within(&conflict.at)) {
            continue;
        }
        settled.unlike.extend(lower.is_unlike(&at, &becomes.state).then(|| at.clone()));
        match lower.settle(&at, becomes) {
            Ok(None) => {}
            Ok(Some((shift, merged))) => {
                settled.merged.extend(merged.then(|| at.clone()));
                settled.shifts.push(shift);
            }
            Err((why, by)) => conflicts.push(Conflict { at, why, by }),
        }
    }
    if !conflicts.is_empty() {
        conflicts.sort_by(|a, b| a.at.cmp(&b.at));
        return Err(conflicts);
    }
    settled.pair();
    Ok(settled)
}

type Stop = (Clash, Option<ChangeId>);

/// The layer below as it is now, and what is known of how it was.
struct Lower<'w> {
    ws: &'w Workspace,
    others: Others,
    barrier: Option<Barrier>,
    mark: Mark,
    saw: BTreeMap<WsPath, State>,
}

impl Lower<'_> {
    /// Adds what goes with the directories that go, are hidden, or become something else.
    fn spread(&self, effects: &mut Effects, opaque: &[WsPath]) -> Vec<Conflict> {
        let gone = effects.iter().filter(|(_, becomes)| !matches!(becomes.state, State::Dir { .. }));
        let tops: Vec<WsPath> = gone.map(|(at, _)| at).chain(opaque).cloned().collect();
        let mut conflicts = Vec::new();
        for top in tops {
            let place = match self.place(&top) {
                Ok(place) if place.kind == Kind::Dir => place,
                // What stands in the way is told where the path itself is settled.
                _ => continue,
            };
            let closed = |at: WsPath, why: String| Conflict { at, why: Clash::Closed { why }, by: None };
            match self.ws.tree().below(&place) {
                Ok(below) => {
                    let mount = |at| closed(at, "it is a mount point".to_owned());
                    conflicts.extend(below.mounts.into_iter().map(mount));
                    for (at, _) in below.entries {
                        effects.entry(at).or_insert_with(|| Becomes::new(State::Absent));
                    }
                }
                Err(error) => conflicts.push(closed(top, error.to_string())),
            }
        }
        conflicts
    }

    fn place(&self, at: &WsPath) -> Result<Place, TreeError> {
        let place = self.ws.tree().locate_link(&WirePath { at: at.clone(), dir_only: false })?;
        match place.real == *at {
            true => Ok(place),
            false => Err(TreeError::Outside { why: "a link stands on the way to it".to_owned(), real: None }),
        }
    }

    /// What becomes of a path, and whether it was merged; `None` where nothing does.
    fn settle(&self, at: &WsPath, becomes: Becomes) -> Result<Option<(Shifted, bool)>, Stop> {
        let place = self.place(at).map_err(|error| (closed(error), None))?;
        let before = self.state(&place)?;
        let Becomes { state: after, from } = becomes;
        if same(&before, &after) {
            return Ok(None);
        }
        if matches!(
            (&before, &after),
            (State::Dir { .. }, State::Entry(_)) | (State::Entry(_), State::Dir { .. })
        ) {
            return Err((Clash::Kind, None));
        }
        let shift = |after| Shifted { at: at.clone(), before: before.clone(), after, from: from.clone() };
        if let Some(by) = self.others.turned(at) {
            return Err((Clash::Moved, Some(by)));
        }
        if before.stands() && self.is_older(at) {
            return Ok(Some((shift(after), false)));
        }
        let (base, by) = self.base(at);
        let now = stand(&before);
        match base {
            Some(base) if base.is_as(now) => Ok(Some((shift(after), false))),
            // The command never saw it: it goes with its directory.
            Some(Stand::Absent) if !after.stands() => Err((Clash::Created, by)),
            // The command left it as it found it.
            Some(base) if base.is_as(stand(&after)) => Ok(None),
            // Nothing stands there that could be lost, and nothing is known to have stood there.
            None if now == Stand::Absent => Ok(Some((shift(after), false))),
            None => Err((Clash::Unknown, None)),
            Some(base) => match (base.entry(), &before, &after) {
                (Some(_), State::Entry(now), State::Entry(new)) => {
                    let body = self.merged(at, base, now, new).ok_or((Clash::Changed, by))?;
                    let merged = State::Entry(body);
                    Ok((!same(&before, &merged)).then(|| (shift(merged), true)))
                }
                (Some(_), State::Absent, _) => Err((Clash::Deleted, by)),
                (None, ..) if base == Stand::Absent => Err((Clash::Created, by)),
                _ => Err((Clash::Changed, by)),
            },
        }
    }

    /// Whether a directory stands there that shall have other permissions.
    fn is_unlike(&self, at: &WsPath, after: &State) -> bool {
        let State::Dir { mode: Some(mode) } = after else { return false };
        let is_dir = |key: &Key| key.kind == cotenant_tree::EntryKind::Dir;
        self.ws.tree().key(at).filter(is_dir).is_some_and(|key| key.stat.mode & 0o7777 != mode & 0o7777)
    }

    /// What stands at a place, whole.
    fn state(&self, place: &Place) -> Result<State, Stop> {
        let read = |error: TreeError| (closed(error), None);
        Ok(match &place.kind {
            Kind::Absent { .. } => State::Absent,
            Kind::Dir => State::Dir { mode: None },
            Kind::Link => State::Entry(Body::link(self.ws.tree().link_target(place).map_err(read)?)),
            Kind::File(_) => {
                let file = self.ws.tree().read(place, u64::MAX).map_err(read)?;
                if file.unstable {
                    return Err((Clash::Closed { why: "it is being written".to_owned() }, None));
                }
                State::Entry(Body::file(file.bytes).with_mode(file.stat.mode))
            }
        })
    }

    /// Whether what stands there was not changed since before the run.
    fn is_older(&self, at: &WsPath) -> bool {
        let key = self.ws.tree().key(at);
        match (self.barrier, key) {
            (Some(barrier), Some(key)) => {
                // A directory's own time tells of what is in it, which is settled path by path.
                key.stat.ctime_ns + RACY_NS < barrier.ctime_ns || key.kind == cotenant_tree::EntryKind::Dir
            }
            _ => false,
        }
    }

    /// What the ledger knows to have stood there when the run began, and the change that came after.
    fn base(&self, at: &WsPath) -> (Option<Stand>, Option<ChangeId>) {
        if let [first, .., last] | [first @ last] = self.others.steps(at) {
            return (Some(first.was), Some(last.change));
        }
        if let Some(saw) = self.saw.get(at) {
            return (Some(stand(saw)), None);
        }
        let newest = self.ws.ledger().newest(at).filter(|change| self.mark.saw(change.id));
        let base = newest.and_then(|change| {
            let file = change.files.iter().rev().find(|file| file.at == *at);
            let left = change.files.iter().any(|file| file.from.as_ref() == Some(at));
            file.map(|file| ends(file).1).or(left.then_some(Stand::Absent))
        });
        (base, None)
    }

    /// What the command did to what it saw, done to what stands there.
    fn merged(&self, at: &WsPath, base: Stand, now: &Body, new: &Body) -> Option<Body> {
        let entry = base.entry()?;
        let rights = match (base.mode() & 0o7777, now.mode, new.mode) {
            (_, now, None) => now,
            (_, now, new) if now == new => now,
            (was, now, new) if base.mode() == 0 || now == Some(was) => new,
            (was, now, new) if new == Some(was) => now,
            _ => return None,
        };
        let body = if new.entry() == entry || new.entry() == now.entry() {
            now.clone()
        } else if now.entry() == entry {
            new.clone()
        } else if [entry.kind, now.kind, new.kind] != [EntryKind::File; 3] {
            return None;
        } else {
            let saw = self.saw.get(at).and_then(State::entry).map(|body| body.content.clone());
            let was = saw.or_else(|| self.ws.image(entry.digest))?;
            Body { content: self.lines(at, &was, &now.content, &new.content)?, ..now.clone() }
        };
        Some(Body { mode: rights, ..body })
    }

    fn lines(&self, at: &WsPath, was: &Content, now: &Content, new: &Content) -> Option<Content> {
        let charset = self.ws.editorconfig(at).charset;
        let limit = self.ws.settings().limits.text_bytes;
        let images = [was, now, new].map(|bytes| text(bytes, limit, charset));
        let [Some(was), Some(now), Some(new)] = &images else { return None };
        let one = was.form.encoding == now.form.encoding && was.form.encoding == new.form.encoding;
        let merged = one.then(|| cotenant_text::merge3(&was.bytes, &now.bytes, &new.bytes));
        merged.and_then(Result::ok).map(Content::from)
    }
}

impl Settled {
    /// Finds what only got another name: a file that goes and one that comes with the same bytes.
    fn pair(&mut self) {
        let mut gone: BTreeMap<(bool, [u8; 32]), Vec<WsPath>> = BTreeMap::new();
        let said: Vec<WsPath> = self.shifts.iter().filter_map(|shift| shift.from.clone()).collect();
        let key = |body: &Body| (body.kind == EntryKind::File, *Digest::of(&body.content).as_bytes());
        for shift in
            self.shifts.iter().rev().filter(|shift| !shift.after.stands() && !said.contains(&shift.at))
        {
            if let Some(body) = shift.before.entry().filter(|body| !body.content.is_empty()) {
                gone.entry(key(body)).or_default().push(shift.at.clone());
            }
        }
        let comes = |shift: &&mut Shifted| !shift.before.stands() && shift.from.is_none();
        for shift in self.shifts.iter_mut().filter(comes) {
            let Some(body) = shift.after.entry() else { continue };
            shift.from = gone.get_mut(&key(body)).and_then(Vec::pop);
        }
    }
}

/// A text that may be merged by lines.
fn text(bytes: &Content, limit: u64, charset: Option<Encoding>) -> Option<Image> {
    let small = bytes.len() as u64 <= limit;
    let image = small.then(|| Image::of(Content::clone(bytes), None))?;
    let image = if image.text { image } else { Image::of(Content::clone(bytes), charset) };
    image.text.then_some(image)
}

fn closed(error: TreeError) -> Clash {
    match error {
        TreeError::Protected { rule } => Clash::Protected { rule },
        error => Clash::Closed { why: error.to_string() },
    }
}

fn stand(state: &State) -> Stand {
    match state {
        State::Absent => Stand::Absent,
        State::Dir { mode } => Stand::Dir(mode.unwrap_or(0)),
        State::Entry(body) => {
            let bits = body.kind.bits();
            Stand::Entry(body.entry(), body.mode.map_or(0, |mode| bits | mode))
        }
    }
}

/// Whether nothing is to be done.
fn same(before: &State, after: &State) -> bool {
    stand(before).is_as(stand(after))
}
