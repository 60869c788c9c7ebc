//! From what stands where, and what shall stand there, to the operations that lead from one to the other.
//!
//! Whoever knows a change by its ends alone (a patch, an undo, a rewind) says for each path what it is and what it
//! becomes. Which of these are moves, in which order swaps and chains of names are possible and which directories must
//! come to be is decided here, once.

use std::collections::{BTreeMap, BTreeSet};

pub use cotenant_model::State;
use cotenant_model::{Body, ClassHit, Content, EntryKind, FileOp, Moved, Op, WsPath};
use thiserror::Error;

/// What becomes of one path.
#[derive(Clone, Debug)]
pub struct Shift {
    /// What stands there now.
    pub before: State,
    /// What shall stand there.
    pub after: State,
    /// The path, as it is called now, whose file this is a renamed or copied version of.
    pub from: Option<WsPath>,
    /// The class of the path.
    pub class: ClassHit,
}

/// What becomes of a set of paths. All that change must be in it, but for missing directories: see [`Shifts::dirs`].
#[derive(Clone, Debug, Default)]
pub struct Shifts(BTreeMap<WsPath, Shift>);

/// Operations in path order, at most one of them touching a path, with what belongs to each.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// The operations.
    pub ops: Vec<FileOp>,
    /// The class of each operation's path; of a move, the stricter one of both ends.
    pub classes: Vec<ClassHit>,
    /// The bytes that each operation replaces or deletes.
    pub before: Vec<Option<Content>>,
    /// Further paths that are touched: those below a moved directory, at both ends.
    pub also: Vec<WsPath>,
}

/// What no set of operations that land at once can do: a path is touched by one of them only.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Impossible {
    /// A file or a link stands where a directory is needed.
    #[error("a file stands where a directory is needed")]
    FileInTheWay(WsPath),
    /// A directory stands where a file or a link is needed.
    #[error("a directory stands where a file is needed")]
    DirectoryInTheWay(WsPath),
}

impl Impossible {
    /// Where.
    pub fn at(&self) -> &WsPath {
        match self {
            Impossible::FileInTheWay(at) | Impossible::DirectoryInTheWay(at) => at,
        }
    }
}

impl Shifts {
    /// Says what becomes of a path; what was said of it before is void.
    pub fn set(&mut self, at: WsPath, shift: Shift) {
        self.0.insert(at, shift);
    }

    /// What becomes of a path, if anything.
    pub fn get(&self, at: &WsPath) -> Option<&Shift> {
        self.0.get(at)
    }

    /// Directories that are missing and shall be there, unless something else was said of them.
    pub fn dirs(&mut self, missing: impl IntoIterator<Item = WsPath>) {
        for at in missing {
            let made = Shift {
                before: State::Absent,
                after: State::Dir { mode: None },
                from: None,
                class: ClassHit::ordinary(),
            };
            self.0.entry(at).or_insert(made);
        }
    }

    /// The operations that lead from what stands to what shall stand. A directory that shall go stays where something
    /// below it comes to be or is said to stay; one that is missing above what shall stand is made if it was named.
    pub fn operations(mut self) -> Result<Operations, Impossible> {
        self.hold_directories()?;
        let moves = self.moves();
        let arrived: BTreeSet<&WsPath> = moves.values().collect();
        let mut found = Operations::default();
        for (at, shift) in &self.0 {
            if let Some(to) = moves.get(at) {
                let class = self.0.get(to).map_or_else(ClassHit::ordinary, |end| end.class.clone());
                if let Some(op) = moved(&shift.before, to) {
                    found.push(at, op, shift.class.clone().max(class), None);
                }
            } else if !arrived.contains(at)
                && let Some(op) = self.operation(at, shift)?
            {
                let before = shift.before.entry().map(|body| body.content.clone());
                found.push(at, op, shift.class.clone(), before);
            }
        }
        Ok(found)
    }

    /// Every directory above something that shall stand is one afterwards.
    fn hold_directories(&mut self) -> Result<(), Impossible> {
        let needed: BTreeSet<WsPath> =
            self.0.iter().filter(|(_, shift)| shift.after.stands()).flat_map(|(at, _)| above(at)).collect();
        for at in needed {
            let Some(shift) = self.0.get_mut(&at) else { continue };
            match (&shift.before, &shift.after) {
                (_, State::Dir { .. }) => {}
                (State::Dir { .. }, State::Absent) => shift.after = shift.before.clone(),
                (State::Absent, State::Absent) => shift.after = State::Dir { mode: None },
                _ => return Err(Impossible::FileInTheWay(at)),
            }
        }
        Ok(())
    }

    /// The files that only change their name: from where to where. Of two copies one is the move.
    fn moves(&self) -> BTreeMap<WsPath, WsPath> {
        let mut moves = BTreeMap::new();
        for (to, shift) in &self.0 {
            let Some(from) = shift.from.as_ref().filter(|_| !shift.before.stands()) else { continue };
            let source = self.0.get(from).filter(|source| !source.after.stands());
            let same = match (source.and_then(|source| source.before.entry()), shift.after.entry()) {
                (Some(old), Some(new)) => settles(old, new) && from.folder == to.folder,
                _ => false,
            };
            if same {
                moves.entry(from.clone()).or_insert_with(|| to.clone());
            }
        }
        moves
    }

    fn operation(&self, at: &WsPath, shift: &Shift) -> Result<Option<Op>, Impossible> {
        Ok(match (&shift.before, &shift.after) {
            (State::Absent, State::Absent) | (State::Dir { .. }, State::Dir { .. }) => None,
            (State::Absent, State::Dir { mode }) => Some(Op::MakeDir { mode: *mode }),
            (State::Dir { .. }, State::Absent) => Some(Op::RemoveDir),
            (State::Absent, State::Entry(new)) => {
                Some(Op::Create { new: new.clone(), like: self.like(shift, new) })
            }
            (State::Entry(old), State::Absent) => Some(Op::Delete { old: old.entry() }),
            (State::Entry(old), State::Entry(new)) => {
                (!settles(old, new)).then(|| {
                    // A mode that stays need not be said.
                    let said = old.kind != new.kind || old.mode != new.mode;
                    let mode = new.mode.filter(|_| said);
                    Op::Replace { old: old.entry(), new: Body { mode, ..new.clone() } }
                })
            }
            (State::Entry(_), State::Dir { .. }) => return Err(Impossible::FileInTheWay(at.clone())),
            (State::Dir { .. }, State::Entry(_)) => return Err(Impossible::DirectoryInTheWay(at.clone())),
        })
    }

    /// The file or link that a new one is a version of, and takes owner, mode and attributes from: it stands while the
    /// new one is made, whatever becomes of it in the same plan.
    fn like(&self, shift: &Shift, new: &Body) -> Option<WsPath> {
        let from = shift.from.as_ref()?;
        let alike = |source: &Shift| source.before.entry().is_some_and(|body| body.kind == new.kind);
        self.0.get(from).is_none_or(alike).then(|| from.clone())
    }
}

impl Operations {
    fn push(&mut self, at: &WsPath, op: Op, class: ClassHit, before: Option<Content>) {
        self.ops.push(FileOp { at: at.clone(), op });
        self.classes.push(class);
        self.before.push(before);
    }
}

fn moved(what: &State, to: &WsPath) -> Option<Op> {
    let entry = what.entry()?.entry();
    Some(Op::Move { to: to.clone(), what: Moved::Entry(entry), over: None })
}

/// Whether what stands is already what shall stand.
fn settles(old: &Body, new: &Body) -> bool {
    let mode = new.kind == EntryKind::Link || new.mode.is_none() || new.mode == old.mode;
    old.kind == new.kind && mode && old.content == new.content
}

/// The directories above a path, the folder itself left out.
pub(crate) fn above(at: &WsPath) -> impl Iterator<Item = WsPath> {
    std::iter::successors(at.parent(), WsPath::parent).take_while(|at| !at.path.is_root())
}
