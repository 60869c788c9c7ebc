//! What a mutating tool makes of its arguments: operations and the answer it will give once they have landed.

use cotenant_coord::LineMap;
use cotenant_model::{ChangeId, ClassHit, Content, Digest, FileOp, Folders, Op, WsPath};

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
    /// The bytes that each operation replaces or deletes, in the order of `ops`: the old side of the diff.
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
            let path = folders.show(&op.at);
            if text.len() >= bytes {
                text.push_str(&format!(
                    "… {} of {} paths are left out\n",
                    self.ops.len() - index,
                    self.ops.len()
                ));
                break;
            }
            match &op.op {
                Op::MakeDir { .. } => text.push_str(&format!("new directory {path}/\n")),
                Op::Move { to, .. } => {
                    text.push_str(&format!("rename from {path}\nrename to {}\n", folders.show(to)));
                }
                Op::RemoveDir => text.push_str(&format!("removed directory {path}/\n")),
                Op::Create { new, .. } => {
                    text.push_str(&file_diff("/dev/null", &path, None, Some(&new.content), bytes))
                }
                Op::Replace { new, .. } => {
                    text.push_str(&file_diff(&path, &path, before.as_ref(), Some(&new.content), bytes));
                }
                Op::Delete { .. } => {
                    text.push_str(&file_diff(&path, "/dev/null", before.as_ref(), None, bytes))
                }
            }
        }
        text
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
