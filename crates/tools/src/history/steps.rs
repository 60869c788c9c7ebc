//! What changes did, name by name, as far as taking it back goes.
//!
//! A change that was followed by another of the same set, with nobody in between, is one step with it: what came and
//! went again within the set needs no taking back, and nobody's work can stand in the way of it.

use std::collections::BTreeMap;

use cotenant_model::{Change, ChangeFile, ChangeId, ChangeOp, Entry, WsPath};

/// A file or a link as a change left or found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// What it is.
    pub(super) entry: Entry,
    /// Its permission bits, where they are known.
    pub(super) mode: Option<u32>,
}

impl Image {
    fn of(entry: Option<Entry>, mode: u32) -> Option<Image> {
        Some(Image { entry: entry?, mode: (mode != 0).then_some(mode & 0o7777) })
    }

    /// The same as far as both are known.
    fn agrees(self, other: Image) -> bool {
        self.entry == other.entry && (self.mode == other.mode || self.mode.is_none() || other.mode.is_none())
    }
}

/// What happened to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// A file or a link came, went or changed.
    Changed { was: Option<Image>, is: Option<Image> },
    /// A file or a link came from another name, edited perhaps, and replaced what stood there.
    Came { from: WsPath, was: Image, is: Image, over: Option<Image> },
    /// A directory came from another name.
    DirCame { from: WsPath },
    /// A directory was made.
    DirMade,
    /// A directory went.
    DirGone { mode: Option<u32> },
}

/// One step that can be taken back.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The name, after the change.
    pub(super) at: WsPath,
    /// What happened.
    pub(super) did: Did,
    /// The change; of several, the newest.
    pub(super) change: ChangeId,
    /// The change; of several, the oldest.
    pub(super) first: ChangeId,
}

impl Step {
    /// Whether one of these paths is meant: that of the step, or where it came from, or a directory above.
    pub(super) fn is_at(&self, only: &[WsPath]) -> bool {
        let from = match &self.did {
            Did::Came { from, .. } | Did::DirCame { from } => Some(from),
            _ => None,
        };
        only.iter().any(|path| self.at.is_within(path) || from.is_some_and(|from| from.is_within(path)))
    }
}

/// The names that a change gave to files, links and directories that stand under another name since: from, to.
pub(super) fn renames(change: &Change) -> impl Iterator<Item = (&WsPath, &WsPath)> {
    let went = |from: &WsPath| change.files.iter().any(|file| is_deletion_of(file, from));
    change.files.iter().filter_map(move |file| {
        let from = file.from.as_ref()?;
        let renamed = match file.op {
            ChangeOp::Move => true,
            ChangeOp::Create => went(from),
            _ => false,
        };
        renamed.then_some((from, &file.at))
    })
}

fn is_deletion_of(file: &ChangeFile, at: &WsPath) -> bool {
    file.op == ChangeOp::Delete && file.at == *at
}

/// The steps of a change.
fn of(change: &Change) -> Vec<Step> {
    let mut edited_names: BTreeMap<&WsPath, &ChangeFile> = BTreeMap::new();
    for (from, to) in renames(change) {
        let old = change.files.iter().find(|file| is_deletion_of(file, from));
        if let Some(old) = old.filter(|old| old.pre.is_some()) {
            // Of two files that are both versions of one, the first is the one that was renamed.
            if !edited_names.values().any(|taken| taken.at == old.at) {
                edited_names.insert(to, old);
            }
        }
    }
    let taken = |file: &ChangeFile| edited_names.values().any(|old| std::ptr::eq(*old, file));
    let files = change.files.iter().filter(|file| !taken(file));
    files
        .filter_map(|file| {
            let did = did(file, edited_names.get(&file.at).copied())?;
            Some(Step { at: file.at.clone(), did, change: change.id, first: change.id })
        })
        .collect()
}

/// What happened at a path; `old` is the deletion that makes a creation a rename.
fn did(file: &ChangeFile, old: Option<&ChangeFile>) -> Option<Did> {
    let was = Image::of(file.before(), file.pre_mode);
    let is = Image::of(file.after(), file.post_mode);
    Some(match (file.op, &file.from, is) {
        (ChangeOp::MakeDir, ..) => Did::DirMade,
        (ChangeOp::RemoveDir, ..) => {
            Did::DirGone { mode: (file.pre_mode & 0o7777 != 0).then_some(file.pre_mode & 0o7777) }
        }
        (ChangeOp::Move, Some(from), Some(is)) => Did::Came { from: from.clone(), was: is, is, over: was },
        (ChangeOp::Move, Some(from), None) => Did::DirCame { from: from.clone() },
        (ChangeOp::Create, Some(from), Some(is)) if old.is_some() => {
            let was = old.and_then(|old| Image::of(old.before(), old.pre_mode))?;
            Did::Came { from: from.clone(), was, is, over: None }
        }
        _ => Did::Changed { was, is },
    })
}

/// The steps of these changes, newest first, as few as they can be.
pub(super) fn composed<'a>(newest_first: impl Iterator<Item = &'a Change>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // By name, the step that an older one of the same name could be one with.
    let mut open: BTreeMap<WsPath, usize> = BTreeMap::new();
    for older in newest_first.flat_map(|change| of(change).into_iter().rev()) {
        let Did::Changed { was, is } = older.did else {
            // Names change here: what came before is about another thing of that name.
            let ends = |at: &WsPath| match &older.did {
                Did::Came { from, .. } | Did::DirCame { from } => {
                    at.is_within(&older.at) || at.is_within(from)
                }
                _ => false,
            };
            open.retain(|at, _| !ends(at));
            steps.push(older);
            continue;
        };
        let newer = open.get(&older.at).and_then(|index| steps.get_mut(*index));
        match newer {
            Some(Step { did: Did::Changed { was: then, .. }, first, .. }) if agree(*then, is) => {
                *then = was;
                *first = older.first;
            }
            _ => {
                open.insert(older.at.clone(), steps.len());
                steps.push(older);
            }
        }
    }
    steps
}

fn agree(one: Option<Image>, other: Option<Image>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.agrees(other),
        (None, None) => true,
        _ => false,
    }
}
