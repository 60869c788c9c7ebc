//! What changes did, name by name, as far as taking it back goes.
//!
//! A change that was followed by another of the same set, with nobody in between, is one step with it: what came and
//! went again within the set needs no taking back, and nobody's work can stand in the way of it.

use std::collections::BTreeMap;

use cotenant_model::{Change, ChangeFile, ChangeId, ChangeOp, Entry, EntryKind, WsPath};

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
        let entry = entry?;
        // A link has no permissions of its own.
        let known = mode != 0 && entry.kind == EntryKind::File;
        Some(Image { entry, mode: known.then_some(mode & 0o7777) })
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
    change.files.iter().filter_map(|file| {
        let from = file.from.as_ref()?;
        (file.op == ChangeOp::Move || left(change, file).is_some()).then_some((from, &file.at))
    })
}

/// Of a creation that is a file's new name: what happened at the old one. It was deleted; or, as only what takes
/// changes back does, it was replaced by what stood there before.
fn left<'a>(change: &'a Change, made: &ChangeFile) -> Option<&'a ChangeFile> {
    let from = made.from.as_ref().filter(|_| made.op == ChangeOp::Create)?;
    let old = change.files.iter().find(|file| file.at == *from && file.pre.is_some())?;
    let first =
        change.files.iter().find(|file| file.op == ChangeOp::Create && file.from.as_ref() == Some(from));
    // Of two files that are both versions of one, the first is the one that was renamed.
    let is_first = first.is_some_and(|first| first.at == made.at);
    let replaced = old.op == ChangeOp::Edit && matches!(&*change.tool, "undo" | "rewind");
    (is_first && (old.op == ChangeOp::Delete || replaced)).then_some(old)
}

/// The steps of a change, those first that are the last to be taken back.
fn of(change: &Change) -> Vec<Step> {
    let renamed: Vec<(&ChangeFile, &ChangeFile)> =
        change.files.iter().filter_map(|file| Some((file, left(change, file)?))).collect();
    let step = |at: &WsPath, did: Did| Step { at: at.clone(), did, change: change.id, first: change.id };
    let mut steps = Vec::new();
    for (made, old) in &renamed {
        let images = (Image::of(old.before(), old.pre_mode), Image::of(made.after(), made.post_mode));
        if let (Some(was), Some(is)) = images {
            steps.push(step(&made.at, Did::Came { from: old.at.clone(), was, is, over: None }));
        }
    }
    for file in &change.files {
        let is = Image::of(file.after(), file.post_mode);
        if renamed.iter().any(|(_, old)| std::ptr::eq(*old, file)) {
            // The old name got something else.
            if is.is_some() {
                steps.push(step(&file.at, Did::Changed { was: None, is }));
            }
        } else if !renamed.iter().any(|(made, _)| std::ptr::eq(*made, file)) {
            steps.push(step(&file.at, did(file, is)));
        }
    }
    steps
}

/// What happened at a path.
fn did(file: &ChangeFile, is: Option<Image>) -> Did {
    let was = Image::of(file.before(), file.pre_mode);
    let mode = file.pre_mode & 0o7777;
    match (file.op, &file.from, is) {
        (ChangeOp::MakeDir, ..) => Did::DirMade,
        (ChangeOp::RemoveDir, ..) => Did::DirGone { mode: (mode != 0).then_some(mode) },
        (ChangeOp::Move, Some(from), Some(is)) => Did::Came { from: from.clone(), was: is, is, over: was },
        (ChangeOp::Move, Some(from), None) => Did::DirCame { from: from.clone() },
        _ => Did::Changed { was, is },
    }
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
