//! The tree as it would be: what stands on the disk, read where it is asked for, under changes that are only thought of.
//!
//! A directory that is turned to another name keeps what is in it without a look; only where something below it changes
//! as well does it go file by file.

use std::collections::{BTreeMap, BTreeSet};

use cotenant_model::{Body, Code, EntryKind, FileOp, Moved, Op, Refusal, WirePath, WsPath};
use cotenant_tree::{Kind as Found, ListOptions, Place};

use crate::ctx::Ctx;
use crate::files::write_file::missing_dirs;
use crate::states::{Operations, Shift, Shifts, State};

/// Names below a directory that goes file by file, at most.
const BELOW: usize = 10_000;

/// What would stand at a path, and the path on the disk that it comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) state: State,
    pub(super) from: Option<WsPath>,
}

/// A path at which the operations cannot be made, and why.
pub(super) struct Blocked {
    pub(super) at: WsPath,
    pub(super) why: Box<Refusal>,
}

fn blocked(at: &WsPath) -> impl Fn(Refusal) -> Blocked {
    move |why| Blocked { at: at.clone(), why: Box::new(why) }
}

/// A directory with all that is in it under another name.
#[derive(Clone, Debug)]
struct Turned {
    from: WsPath,
    to: WsPath,
}

impl Turned {
    fn ends(&self) -> [&WsPath; 2] {
        [&self.from, &self.to]
    }

    /// Whether one end of one lies within one end of the other.
    fn crosses(&self, other: &Turned) -> bool {
        let within = |one: &Turned, other: &Turned| {
            one.ends().iter().any(|end| other.ends().iter().any(|top| end.is_within(top)))
        };
        within(self, other) || within(other, self)
    }
}

/// See the head of this file.
pub(super) struct World<'a> {
    ctx: &'a Ctx<'a>,
    disk: BTreeMap<WsPath, (Place, State)>,
    now: BTreeMap<WsPath, Node>,
    turned: Vec<Turned>,
    /// Directories that go if nothing is left in them.
    doomed: Vec<WsPath>,
}

impl<'a> World<'a> {
    pub(super) fn new(ctx: &'a Ctx<'a>) -> World<'a> {
        World { ctx, disk: BTreeMap::new(), now: BTreeMap::new(), turned: Vec::new(), doomed: Vec::new() }
    }

    /// What would stand at a path.
    pub(super) fn look(&mut self, at: &WsPath) -> Result<Node, Refusal> {
        if let Some(node) = self.now.get(at) {
            return Ok(node.clone());
        }
        let Some(from) = self.on_disk(at) else { return Ok(Node::default()) };
        let state = self.read(&from)?;
        let from = state.stands().then_some(from);
        Ok(Node { state, from })
    }

    /// Puts something there, or nothing.
    pub(super) fn put(&mut self, at: &WsPath, state: State, from: Option<WsPath>) {
        self.now.insert(at.clone(), Node { state, from });
    }

    /// Takes a directory with all that is in it to another name.
    pub(super) fn turn(&mut self, from: &WsPath, to: &WsPath) {
        let inside: Vec<WsPath> = self.now.keys().filter(|at| at.is_within(from)).cloned().collect();
        for at in inside {
            if let Some(node) = self.now.remove(&at) {
                self.now.insert(rebased(&at, from, to), node);
            }
        }
        for at in self.doomed.iter_mut().filter(|at| at.is_within(from)) {
            *at = rebased(at, from, to);
        }
        match self.turned.last_mut() {
            // There and back again is nothing, and on from there is one way.
            Some(last) if last.to == *from && last.from == *to => drop(self.turned.pop()),
            Some(last) if last.to == *from => last.to = to.clone(),
            _ => self.turned.push(Turned { from: from.clone(), to: to.clone() }),
        }
    }

    /// A directory goes in the end if nothing is left in it.
    pub(super) fn doom(&mut self, at: WsPath) {
        self.doomed.push(at);
    }

    /// Where on the disk that is looked for which would stand at `at`; `None` where what stood there went elsewhere.
    fn on_disk(&self, at: &WsPath) -> Option<WsPath> {
        let mut at = at.clone();
        for turned in self.turned.iter().rev() {
            if at.is_within(&turned.to) {
                at = rebased(&at, &turned.to, &turned.from);
            } else if at.is_within(&turned.from) {
                return None;
            }
        }
        Some(at)
    }

    /// Where that goes which stands at `at` on the disk.
    fn goes_to(&self, at: &WsPath) -> WsPath {
        let turn = |at: WsPath, turned: &Turned| {
            if at.is_within(&turned.from) { rebased(&at, &turned.from, &turned.to) } else { at }
        };
        self.turned.iter().fold(at.clone(), turn)
    }

    /// What stands on the disk.
    fn read(&mut self, at: &WsPath) -> Result<State, Refusal> {
        if let Some((_, state)) = self.disk.get(at) {
            return Ok(state.clone());
        }
        let place = self.ctx.entry_at(&WirePath { at: at.clone(), dir_only: false })?;
        if place.real != *at {
            let shown = self.ctx.show(at);
            return Err(Refusal::new(Code::UndoConflict, format!("a link stands on the way to {shown} now")));
        }
        let state = self.ctx.state(&place)?;
        self.disk.insert(at.clone(), (place, state.clone()));
        Ok(state)
    }

    /// The operations that make it so. An error is about the path beside it.
    pub(super) fn operations(mut self) -> Result<Operations, Blocked> {
        self.spread()?;
        self.empty_directories()?;
        let mut shifts = Shifts::default();
        for (at, node) in std::mem::take(&mut self.now) {
            self.shift(&mut shifts, &at, node).map_err(blocked(&at))?;
        }
        let mut whole = Operations::default();
        for turned in std::mem::take(&mut self.turned) {
            self.whole(&mut shifts, &turned, &mut whole).map_err(blocked(&turned.from))?;
        }
        let mut found = shifts.operations().map_err(|impossible| {
            blocked(impossible.at())(Refusal::new(Code::UndoConflict, impossible.to_string()))
        })?;
        found.ops.append(&mut whole.ops);
        found.classes.append(&mut whole.classes);
        found.before.append(&mut whole.before);
        Ok(Operations { also: whole.also, ..found })
    }

    /// What becomes of one path.
    fn shift(&mut self, shifts: &mut Shifts, at: &WsPath, node: Node) -> Result<(), Refusal> {
        let before = self.read(at)?;
        let Some((place, _)) = self.disk.get(at) else { return Ok(()) };
        if before != node.state {
            self.ctx.writable(place)?;
        }
        if node.state.stands() {
            shifts.dirs(missing_dirs(place).into_iter().map(|op| op.at));
        }
        let from = node.from.filter(|from| from != at);
        shifts.set(at.clone(), Shift { before, after: node.state, from, class: place.class.clone() });
        Ok(())
    }

    /// A directory that goes under another name as it is.
    fn whole(&mut self, shifts: &mut Shifts, turned: &Turned, found: &mut Operations) -> Result<(), Refusal> {
        for end in turned.ends() {
            self.read(end)?;
        }
        let place = |at: &WsPath| self.disk.get(at).map(|(place, _)| place);
        let (Some(from), Some(to)) = (place(&turned.from), place(&turned.to)) else {
            return Err(Refusal::new(Code::UndoConflict, "it is gone"));
        };
        self.ctx.writable(from)?;
        self.ctx.writable(to)?;
        shifts.dirs(missing_dirs(to).into_iter().map(|op| op.at));
        let below = self.ctx.tree(|tree| tree.below(from), &turned.from)?;
        if let Some(mount) = below.mounts.first() {
            let why = format!("{} is a mount point", self.ctx.show(mount));
            return Err(Refusal::new(Code::CrossDevice, why));
        }
        let class = from.class.clone().max(to.class.clone());
        let (class, mut paths) = self.ctx.along(&below, &turned.from, &turned.to, class)?;
        let what = Moved::Directory { listing: below.digest };
        let op = Op::Move { to: turned.to.clone(), what, over: None };
        found.ops.push(FileOp { at: turned.from.clone(), op });
        found.classes.push(class);
        found.before.push(None);
        found.also.append(&mut paths);
        Ok(())
    }

    /// Turned directories in which something else changes go file by file.
    fn spread(&mut self) -> Result<(), Blocked> {
        let mixed = |(index, turned): (usize, &Turned)| {
            let mut others = self.turned.iter().enumerate().filter(|(other, _)| *other != index);
            let crossed = self.now.keys().any(|at| turned.ends().iter().any(|end| at.is_within(end)))
                || others.any(|(_, other)| turned.crosses(other));
            crossed.then_some(index)
        };
        let mixed: BTreeSet<usize> = self.turned.iter().enumerate().filter_map(mixed).collect();
        let mut spread: Vec<(WsPath, WsPath)> = Vec::new();
        for index in &mixed {
            let Some(top) = self.turned.get(*index).map(|turned| turned.from.clone()) else { continue };
            // What an earlier turn brought to that name is spread by that one.
            let below = self.all_below(&top).map_err(blocked(&top))?;
            spread.extend(below.into_iter().map(|at| (self.goes_to(&at), at)));
        }
        for (to, from) in spread {
            let state = self.read(&from).map_err(blocked(&from))?;
            self.now.entry(to).or_insert_with(|| Node { state, from: Some(from.clone()) });
            self.now.entry(from).or_default();
        }
        let mut index = 0;
        self.turned.retain(|_| {
            index += 1;
            !mixed.contains(&(index - 1))
        });
        Ok(())
    }

    /// A directory of the disk and everything in it.
    fn all_below(&mut self, top: &WsPath) -> Result<Vec<WsPath>, Refusal> {
        if !matches!(self.read(top)?, State::Dir { .. }) {
            return Ok(Vec::new());
        }
        let Some((place, _)) = self.disk.get(top) else { return Ok(Vec::new()) };
        let below = self.ctx.tree(|tree| tree.below(place), top)?;
        if !below.mounts.is_empty() || below.entries.len() > BELOW {
            let shown = self.ctx.show(top);
            return Err(Refusal::new(
                Code::UndoConflict,
                format!("{shown} holds too much to be moved back name by name"),
            ));
        }
        let below = below.entries.into_iter().map(|(at, _)| at);
        Ok(std::iter::once(top.clone()).chain(below).collect())
    }

    /// Of the directories that were made, those go in which nothing is left.
    fn empty_directories(&mut self) -> Result<(), Blocked> {
        let mut doomed = std::mem::take(&mut self.doomed);
        doomed.sort_unstable_by(|a, b| b.cmp(a));
        for at in doomed {
            if self.is_empty(&at).map_err(blocked(&at))? {
                self.put(&at, State::Absent, None);
            }
        }
        Ok(())
    }

    fn is_empty(&mut self, at: &WsPath) -> Result<bool, Refusal> {
        let node = self.look(at)?;
        if !matches!(node.state, State::Dir { .. }) {
            return Ok(false);
        }
        let stands =
            |(below, node): (&WsPath, &Node)| below != at && below.is_within(at) && node.state.stands();
        let comes = |turned: &Turned| turned.to.is_within(at);
        if self.now.iter().any(stands) || self.turned.iter().any(comes) {
            return Ok(false);
        }
        let Some(from) = node.from else { return Ok(true) };
        let Some((place, _)) = self.disk.get(&from) else { return Ok(false) };
        let limit = self.now.len() + self.turned.len() + 1;
        let options = ListOptions { depth: Some(1), limit, include_ignored: true };
        let listing = self.ctx.tree(|tree| tree.list(place, &options), &from)?;
        if !listing.omitted.is_empty() || listing.total > listing.entries.len() {
            return Ok(false);
        }
        for entry in listing.entries {
            if self.look(&rebased(&entry.path, &from, at))?.state.stands() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Ctx<'_> {
    /// What stands at a place, whole.
    pub(crate) fn state(&self, place: &Place) -> Result<State, Refusal> {
        Ok(match &place.kind {
            Found::Absent { .. } => State::Absent,
            Found::Dir => State::Dir { mode: None },
            Found::Link => {
                let target = self.tree(|tree| tree.link_target(place), &place.asked)?;
                State::Entry(Body { kind: EntryKind::Link, content: target.into(), mode: None })
            }
            Found::File(stat) => {
                let mode = stat.mode & 0o7777;
                State::Entry(Body::file(self.load_any(place)?.bytes).with_mode(mode))
            }
        })
    }
}

/// What `at` is called once `from`, at or above it, is called `to`.
fn rebased(at: &WsPath, from: &WsPath, to: &WsPath) -> WsPath {
    at.moved(from, to).unwrap_or_else(|| at.clone())
}
