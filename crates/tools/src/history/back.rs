//! Taking changes back: newest first, each against what stands there by then, three ways (R22).
//!
//! Lines of text are taken back line by line, everything else as a whole: where it is as the change left it, it becomes
//! what it was before; where it is that already, nothing is to be done; anything else is a conflict. What was moved is
//! taken back where it is now. Nothing is written here: what comes out is a plan's operations, or what is in the way.

use std::collections::BTreeSet;

use cotenant_coord::LineMap;
use cotenant_model::{Body, Change, ChangeId, Content, EntryKind, Op, Refusal, WsPath};

use super::conflicts::{self, Overlap, Stop, Trouble};
use super::names::Names;
use super::steps::{self, Did, Image, Step};
use super::world::{Node, World};
use crate::ctx::{Ctx, Loaded};
use crate::planned::{After, Planned};
use crate::states::{Operations, State};

/// What taking back came to.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// What would be done.
    pub(super) operations: Operations,
    /// The paths where something is taken back, as the changes have them.
    pub(super) clean: BTreeSet<WsPath>,
    /// What stands in the way.
    pub(super) troubles: Vec<Trouble>,
    /// Later changes of others on the same files, which stay.
    pub(super) kept: BTreeSet<ChangeId>,
    /// Paths that were looked at.
    pub(super) paths: usize,
}

/// Takes changes back, as far as they are about `only` (all where that is empty). `idle` are changes among them that come
/// to nothing together: what they did to names they also took back.
pub(super) fn take_back(
    ctx: &Ctx<'_>,
    newest_first: &[Change],
    only: &[WsPath],
    idle: &BTreeSet<ChangeId>,
) -> Result<Taken, Refusal> {
    let changes = newest_first.iter().map(|change| change.id);
    let set: BTreeSet<ChangeId> = changes.chain(idle.iter().copied()).collect();
    let Some(oldest) = set.first() else { return Ok(Taken::default()) };
    let names = Names::since(ctx, *oldest, &set)?;
    let mut back = Back { ctx, world: World::new(ctx), names, set: &set, taken: Taken::default() };
    for step in steps::composed(newest_first.iter()) {
        if only.is_empty() || step.is_at(only) {
            back.take(&step);
        }
    }
    Ok(back.finish())
}

struct Back<'a> {
    ctx: &'a Ctx<'a>,
    world: World<'a>,
    names: Names,
    set: &'a BTreeSet<ChangeId>,
    taken: Taken,
}

impl Back<'_> {
    fn take(&mut self, step: &Step) {
        let done = match &step.did {
            Did::Changed { was, is } => self.changed(step, *was, *is),
            Did::Came { from, was, is, over } => self.came(step, from, *was, *is, *over),
            Did::DirCame { from } => self.dir_came(step, from),
            Did::DirMade => {
                let now = self.names.of_what_stood(&step.at, step.change);
                if !now.is_gone() {
                    self.world.doom(now.at);
                }
                Ok(false)
            }
            Did::DirGone { mode } => self.dir_gone(step, *mode),
        };
        self.taken.paths += 1;
        match done {
            Ok(true) => drop(self.taken.clean.insert(step.at.clone())),
            Ok(false) => {}
            Err(stop) => self.taken.troubles.push(stop.trouble(self.ctx, &step.at, step.change)),
        }
    }

    /// A file or link that came, went or changed.
    fn changed(&mut self, step: &Step, was: Option<Image>, is: Option<Image>) -> Result<bool, Stop> {
        let (at, gone) = match is.map(|_| self.names.of_what_stood(&step.at, step.change)) {
            Some(now) => (now.at.clone(), now.is_gone()),
            None => (self.names.of_the_place(&step.at, step.change), false),
        };
        let node = if gone { Node::default() } else { self.world.look(&at)? };
        match (was, is, node.state) {
            (None, None, _) | (None, Some(_), State::Absent) => Ok(false),
            (_, _, State::Dir { .. }) => Err(self.overlap(step, &at)?.whole("a directory stands there now")),
            (Some(_), Some(_), State::Absent) => Err(self.overlap(step, &at)?.whole("it was deleted since")),
            (Some(was), None, State::Absent) => {
                let body = self.body(step, was)?;
                self.world.put(&at, State::Entry(body), None);
                Ok(true)
            }
            (Some(was), None, State::Entry(now)) if now.entry() == was.entry => Ok(false),
            (Some(_), None, State::Entry(_)) => {
                Err(self.overlap(step, &at)?.whole("something else stands there now"))
            }
            (None, Some(is), State::Entry(now)) if now.entry() == is.entry => {
                self.world.put(&at, State::Absent, None);
                Ok(true)
            }
            (None, Some(_), State::Entry(_)) => Err(self.overlap(step, &at)?.whole("it has other bytes now")),
            (Some(was), Some(is), State::Entry(now)) => {
                let Some(body) = self.merged(step, &at, was, is, &now)? else { return Ok(false) };
                self.world.put(&at, State::Entry(body), node.from);
                Ok(true)
            }
        }
    }

    /// A file or link that came from another name goes back to it.
    fn came(
        &mut self,
        step: &Step,
        from: &WsPath,
        was: Image,
        is: Image,
        over: Option<Image>,
    ) -> Result<bool, Stop> {
        let at = self.still_there(step)?;
        let back = self.names.of_the_place(from, step.change);
        let node = self.world.look(&at)?;
        let home = self.world.look(&back)?;
        let now = match (node.state, home.state.entry()) {
            (State::Absent, Some(home)) if home.entry() == was.entry => return Ok(false),
            (State::Absent, _) => return Err(self.overlap(step, &at)?.whole("it was deleted since")),
            (State::Dir { .. }, _) => {
                return Err(self.overlap(step, &at)?.whole("a directory stands there now"));
            }
            (State::Entry(now), _) => now,
        };
        if home.state.stands() {
            return Err(self.overlap(step, &back)?.whole("something else stands there now"));
        }
        let body = self.merged(step, &at, was, is, &now)?.unwrap_or(now);
        let over = over.map(|over| self.body(step, over)).transpose()?;
        self.world.put(&back, State::Entry(body), node.from);
        self.world.put(&at, over.map_or(State::Absent, State::Entry), None);
        Ok(true)
    }

    /// A directory goes back to its other name with all that is in it by now.
    fn dir_came(&mut self, step: &Step, from: &WsPath) -> Result<bool, Stop> {
        let at = self.still_there(step)?;
        let back = self.names.of_the_place(from, step.change);
        let (now, home) = (self.world.look(&at)?.state, self.world.look(&back)?.state);
        match (now, home) {
            (State::Dir { .. }, State::Absent) => {
                self.world.turn(&at, &back);
                Ok(true)
            }
            (State::Absent, State::Dir { .. }) => Ok(false),
            (State::Dir { .. }, _) => {
                Err(self.overlap(step, &back)?.whole("something else stands there now"))
            }
            _ => Err(self.overlap(step, &at)?.whole("the directory is gone")),
        }
    }

    fn dir_gone(&mut self, step: &Step, mode: Option<u32>) -> Result<bool, Stop> {
        let at = self.names.of_the_place(&step.at, step.change);
        if self.world.look(&at)?.state.stands() {
            return Ok(false);
        }
        self.world.put(&at, State::Dir { mode }, None);
        Ok(true)
    }

    /// Where that is now which the step gave its name; a conflict where it got yet another one since, or is gone.
    /// Directories above it may have got others.
    fn still_there(&mut self, step: &Step) -> Result<WsPath, Stop> {
        let now = self.names.of_what_stood(&step.at, step.change);
        if now.is_gone() {
            return Err(self.overlap(step, &now.at)?.whole("it was deleted since"));
        }
        let at = now.at;
        let Some(mover) = self.names.moved_on(&step.at, step.change) else { return Ok(at) };
        let (shown, to) = (self.ctx.show(&step.at), self.ctx.show(&at));
        let name = self.ctx.change(mover).map(|change| conflicts::who(self.ctx, &change));
        let name = name.unwrap_or_else(|_| mover.to_string());
        Err(Stop::Conflict {
            text: format!("{shown}: it was moved on to {to} ({name})"),
            beside: Some(mover),
        })
    }

    /// The image, whole.
    fn body(&self, step: &Step, image: Image) -> Result<Body, Stop> {
        let content = conflicts::image(self.ctx, image.entry.digest, step.first)?;
        Ok(Body { kind: image.entry.kind, content, mode: image.mode })
    }

    /// What stands there without what the change did to it; `None` where there is nothing of it.
    fn merged(
        &mut self,
        step: &Step,
        at: &WsPath,
        was: Image,
        is: Image,
        now: &Body,
    ) -> Result<Option<Body>, Stop> {
        let mode = match (was.mode, is.mode, now.mode) {
            (Some(was), Some(is), Some(now)) if was != is && now == is => Some(was),
            (Some(was), Some(is), Some(now)) if was != is && now != was => {
                return Err(self.overlap(step, at)?.whole(&format!(
                    "its mode is {now:o} now, {} made it {is:o} from {was:o}",
                    step.change
                )));
            }
            (.., now) => now,
        };
        let entry = now.entry();
        let body = if was.entry == is.entry || entry == was.entry {
            now.clone()
        } else if entry == is.entry {
            self.body(step, was)?
        } else {
            self.keep_later(step, at)?;
            self.lines(step, at, was, is, now)?
        };
        let mode = if body.kind == now.kind { mode } else { was.mode };
        let body = Body { mode, ..body };
        Ok((body != *now).then_some(body))
    }

    fn lines(&self, step: &Step, at: &WsPath, was: Image, is: Image, now: &Body) -> Result<Body, Stop> {
        let (old, new) = (self.body(step, was)?, self.body(step, is)?);
        let text_bytes = usize::try_from(self.ctx.limits().text_bytes).unwrap_or(usize::MAX);
        let charset = self.ctx.editorconfig(at).charset;
        let images = [&old, &new, now].map(|body| text(body, text_bytes, charset));
        let [Some(was), Some(is), Some(present)] = &images else {
            return Err(self.overlap(step, at)?.whole("it is not text, and has other bytes now"));
        };
        if was.form.encoding != present.form.encoding || is.form.encoding != present.form.encoding {
            return Err(self.overlap(step, at)?.whole("it has another encoding now"));
        }
        match cotenant_text::merge3(&is.bytes, &present.bytes, &was.bytes) {
            Ok(merged) => Ok(Body { content: merged.into(), ..now.clone() }),
            Err(conflict) => Err(self.overlap(step, at)?.lines(&is.bytes, &was.bytes, &conflict)),
        }
    }

    fn overlap<'b>(&'b self, step: &Step, at: &'b WsPath) -> Result<Overlap<'b>, Stop> {
        let later = conflicts::later(self.ctx, at, step.change, |id| self.set.contains(&id))?;
        Ok(Overlap { ctx: self.ctx, change: step.change, at, later })
    }

    fn keep_later(&mut self, step: &Step, at: &WsPath) -> Result<(), Stop> {
        let later = conflicts::later(self.ctx, at, step.change, |id| self.set.contains(&id))?;
        self.taken.kept.extend(later.iter().map(|change| change.id));
        Ok(())
    }

    fn finish(self) -> Taken {
        let Back { ctx, world, set, mut taken, .. } = self;
        match world.operations() {
            Ok(operations) => taken.operations = operations,
            Err(blocked) => {
                let newest = set.last().copied().unwrap_or(ChangeId(0));
                taken.troubles.push(Stop::Refused(blocked.why).trouble(ctx, &blocked.at, newest));
            }
        }
        let bad: BTreeSet<&WsPath> = taken.troubles.iter().map(|trouble| &trouble.at).collect();
        taken.clean.retain(|at| !bad.contains(at));
        taken
    }
}

/// A text that is small enough to be taken line by line.
fn text(body: &Body, most: usize, charset: Option<cotenant_text::Encoding>) -> Option<Loaded> {
    let is_file = body.kind == EntryKind::File && body.content.len() <= most;
    let image = is_file.then(|| {
        let image = Loaded::of(body.content.clone(), None);
        if image.text { image } else { Loaded::of(body.content.clone(), charset) }
    })?;
    image.text.then_some(image)
}

/// A plan of these operations, with what the session knows of each file once they have landed: what comes back of its
/// `own` work it has seen.
pub(super) fn planned(ctx: &Ctx<'_>, operations: Operations, own: bool) -> Planned {
    let mut planned = Planned::default();
    for (op, before) in operations.ops.iter().zip(&operations.before) {
        if let Op::Create { .. } | Op::Replace { .. } | Op::Delete { .. } = op.op {
            let after = after(ctx, &op.at, before.as_ref(), op.content());
            let whole = op.content().filter(|_| own && before.is_none());
            let whole = whole.map(|content| Loaded::fresh_or_binary(content.clone()).line_count());
            planned.after.push(After { whole, ..after });
        }
    }
    let Operations { ops, classes, before, also } = operations;
    Planned { ops, classes, before, also, ..planned }
}

fn after(ctx: &Ctx<'_>, at: &WsPath, old: Option<&Content>, new: Option<&Content>) -> After {
    let image = |content: &Content| Loaded::fresh_or_binary(content.clone());
    let map = match (old, new) {
        (Some(old), Some(new)) => ctx.line_map(&image(old), &image(new)),
        _ => LineMap::default(),
    };
    let digest = |content: &Content| content.digest();
    After { at: at.clone(), old: old.map(digest), new: new.map(digest), map, since: None, whole: None }
}

/// The operations as lines: a verb and a path, of a move both.
pub(super) fn lines(ctx: &Ctx<'_>, planned: &Planned) -> String {
    let line = |op: &cotenant_model::FileOp| match &op.op {
        Op::Move { to, .. } => format!("{} {} -> {}", op.verb(), ctx.show(&op.at), ctx.show(to)),
        _ => format!("{} {}", op.verb(), ctx.show(&op.at)),
    };
    planned.ops.iter().map(line).collect::<Vec<_>>().join("\n")
}
