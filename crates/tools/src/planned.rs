//! What a mutating tool makes of its arguments: operations and the answer it will give once they have landed.

use cotenant_coord::LineMap;
use cotenant_model::{
    Body, ChangeId, ClassHit, Content, Digest, Entry, EntryKind, FileOp, Folders, Moved, Op, WsPath,
};
use serde_json::{Map, Value};

use crate::ctx::Loaded;
use crate::reply::Reply;

/// Lines of context in a diff.
pub(crate) const CONTEXT: usize = 3;

/// A plan and its answer. Nothing has been written.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// The operations; at most one a path.
    pub ops: Vec<FileOp>,
    /// The class of each operation's path, in the order of `ops`.
    pub classes: Vec<ClassHit>,
    /// The bytes that each operation replaces, deletes or moves something over, in the order of `ops`: the old side of the
    /// diff; `None` where there are none, or the file is too large to be read.
    pub before: Vec<Option<Content>>,
    /// The answer, without the fact `change`.
    pub reply: Reply,
    /// Where in the facts `change` goes.
    pub change_at: usize,
    /// What the session knows of each file afterwards.
    pub after: Vec<After>,
    /// The change it takes back.
    pub undoes: Option<ChangeId>,
    /// It takes back another's change: a human must agree in every profile.
    pub others_work: bool,
    /// Further paths that it touches: those below a moved directory, at both ends.
    pub also: Vec<WsPath>,
    /// What an undo of the change does, in words: the answer then names the call.
    pub back: Option<&'static str>,
    /// Arguments that the call which a dry run offers has beside its own.
    pub pinned: Map<String, Value>,
    /// The content of the answer says what the diff does not: a dry run shows both.
    pub listing: bool,
}

/// What a session knows of a file after its own change.
#[derive(Clone, Debug)]
pub struct After {
    /// The resolved path.
    pub at: WsPath,
    /// The digest it had; `None` where there was no file.
    pub old: Option<Digest>,
    /// The digest it has; `None` where there is no file.
    pub new: Option<Digest>,
    /// Where the old lines are now, and which lines are new.
    pub map: LineMap,
    /// The version that the session had been shown, where that was an older one, and what changed from it to `old`.
    pub since: Option<(Digest, LineMap)>,
    /// Lines of the new file, where the author sent every byte of it.
    pub whole: Option<usize>,
}

impl Planned {
    /// The unified diff, every invisible character visible, within about `bytes`.
    pub fn diff(&self, folders: &Folders, bytes: usize) -> String {
        let mut text = String::new();
        for (index, (op, before)) in self.ops.iter().zip(&self.before).enumerate() {
            if text.len() >= bytes {
                text.push_str(&format!(
                    "… {} of {} paths are left out\n",
                    self.ops.len() - index,
                    self.ops.len()
                ));
                break;
            }
            text.push_str(&one(folders, op, before.as_ref(), bytes));
        }
        text
    }
}

/// One operation, in git's words where git has some.
fn one(folders: &Folders, op: &FileOp, before: Option<&Content>, bytes: usize) -> String {
    let path = name(folders, &op.at);
    match &op.op {
        Op::MakeDir { .. } => format!("new directory {path}/\n"),
        Op::RemoveDir => format!("removed directory {path}/\n"),
        Op::Move { to, what, over } => moved(&path, &name(folders, to), what, *over, before, bytes),
        Op::Create { new, like } => {
            let mode = new_mode(new).map(|mode| format!("new file mode {mode:06o}\n")).unwrap_or_default();
            let like =
                like.as_ref().map(|like| format!("like {}\n", name(folders, like))).unwrap_or_default();
            mode + &like + &file_diff("/dev/null", &path, None, Some(&new.content), bytes)
        }
        Op::Replace { old, new } => {
            let kinds = match (old.kind, new.kind) {
                (EntryKind::File, EntryKind::File) => new.mode.map(|mode| EntryKind::File.bits() | mode),
                (old, new) if old == new => None,
                (_, kind) => Some(kind.bits()),
            };
            let mode = kinds.map(|mode| format!("new mode {mode:06o}\n")).unwrap_or_default();
            if before.is_some_and(|before| **before == *new.content) && !mode.is_empty() {
                return format!("--- {path}\n+++ {path}\n{mode}");
            }
            mode + &file_diff(&path, &path, before, Some(&new.content), bytes)
        }
        Op::Delete { old } => {
            let link = if old.kind == EntryKind::Link { "deleted file mode 120000\n" } else { "" };
            link.to_owned() + &gone(&path, before, bytes)
        }
    }
}

/// What stands at `from` goes to `to`, and what stood there goes.
fn moved(
    from: &str,
    to: &str,
    what: &Moved,
    over: Option<Entry>,
    before: Option<&Content>,
    bytes: usize,
) -> String {
    let slash = if matches!(what, Moved::Directory { .. }) { "/" } else { "" };
    let head = format!("rename from {from}{slash}\nrename to {to}{slash}\n");
    match over {
        None => head,
        Some(_) => format!("{head}over what stands there:\n{}", gone(to, before, bytes)),
    }
}

/// All of a file goes.
fn gone(path: &str, before: Option<&Content>, bytes: usize) -> String {
    match before {
        Some(before) => file_diff(path, "/dev/null", Some(before), None, bytes),
        None => format!("--- {path}\n+++ /dev/null\ntoo large to be shown\n"),
    }
}

/// The mode that a new entry is given, where it is not the usual one.
fn new_mode(new: &Body) -> Option<u32> {
    match new.kind {
        EntryKind::Link => Some(EntryKind::Link.bits()),
        EntryKind::File => new.mode.map(|mode| EntryKind::File.bits() | mode),
    }
}

/// A path in a line of a diff: nothing in it may end the line or hide.
fn name(folders: &Folders, at: &WsPath) -> String {
    let shown = folders.show(at);
    match shown.chars().any(cotenant_model::needs_escape) {
        true => cotenant_model::FactValue::from(shown).to_string(),
        false => shown,
    }
}

/// The diff of one file under its two names.
pub fn file_diff(
    old_name: &str,
    new_name: &str,
    old: Option<&Content>,
    new: Option<&Content>,
    bytes: usize,
) -> String {
    let image = |content: Option<&Content>| Loaded::fresh_or_binary(content.cloned().unwrap_or_default());
    let (old, new) = (image(old), image(new));
    let head = format!("--- {old_name}\n+++ {new_name}\n");
    if !old.text || !new.text {
        return format!("{head}binary: {} bytes before, {} after\n", old.bytes.len(), new.bytes.len());
    }
    let diff = cotenant_text::unified(&old.bytes, &old.form, &new.bytes, &new.form, CONTEXT);
    let mut text = head + &diff.render(bytes, true);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
