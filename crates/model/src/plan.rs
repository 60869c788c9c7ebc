//! A plan: everything one call would change, with the state it was made against. Only the pipeline can carry it out.

use std::sync::Arc;

use crate::{Agent, Content, Digest, SessionId, WsPath};

/// What a name that is no directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link; its bytes are the text of its target.
    Link,
}

impl EntryKind {
    /// The file type bits of `st_mode`.
    pub const fn bits(self) -> u32 {
        match self {
            EntryKind::File => 0o100_000,
            EntryKind::Link => 0o120_000,
        }
    }

    /// The kind that `st_mode` tells; `None` for a directory and anything else. Without type bits it is a file.
    pub const fn of_mode(mode: u32) -> Option<EntryKind> {
        match mode & 0o170_000 {
            0 | 0o100_000 => Some(EntryKind::File),
            0o120_000 => Some(EntryKind::Link),
            _ => None,
        }
    }
}

/// A file or a link as it stands: what it is and the digest of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Which of the two.
    pub kind: EntryKind,
    /// Of the file's bytes, or of the text of the link's target.
    pub digest: Digest,
}

impl Entry {
    /// A regular file.
    pub const fn file(digest: Digest) -> Entry {
        Entry { kind: EntryKind::File, digest }
    }

    /// A symbolic link.
    pub const fn link(digest: Digest) -> Entry {
        Entry { kind: EntryKind::Link, digest }
    }
}

/// A file or a link as it shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Which of the two.
    pub kind: EntryKind,
    /// The file's bytes, or the text of the link's target.
    pub content: Content,
    /// Permission bits such as `0o755`. `None`: those of what it replaces or is like, else 0666 less the umask. Of no
    /// meaning for a link.
    pub mode: Option<u32>,
}

impl Body {
    /// A file with these bytes.
    pub fn file(content: impl Into<Content>) -> Body {
        Body { kind: EntryKind::File, content: content.into(), mode: None }
    }

    /// A link to this target, which need not exist.
    pub fn link(target: impl Into<Content>) -> Body {
        Body { kind: EntryKind::Link, content: target.into(), mode: None }
    }

    /// The same with permission bits.
    pub fn with_mode(self, mode: u32) -> Body {
        Body { mode: Some(mode & 0o7777), ..self }
    }

    /// What will stand there.
    pub fn entry(&self) -> Entry {
        Entry { kind: self.kind, digest: self.content.digest() }
    }
}

/// What is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moved {
    /// A file or a link with these bytes.
    Entry(Entry),
    /// A directory with all that lies in it; the digest of the names below it when the plan was made.
    Directory {
        /// As `tree` computes it.
        listing: Digest,
    },
}

/// What a path was when the plan was made; the commit re-checks it in the same critical section as the swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreImage {
    /// Nothing stood there.
    Absent,
    /// This file or link stood there.
    Entry(Entry),
    /// A directory stood there.
    Directory,
}

/// One operation of a plan. Paths are resolved: no link stands between the root and the leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Make a directory that is absent. Parents come before children in [`Plan::ops`].
    MakeDir {
        /// Permission bits such as `0o755`; `None` for 0777 less the umask.
        mode: Option<u32>,
    },
    /// Make a file or a link that is absent.
    Create {
        /// What it will be.
        new: Body,
        /// The file that it is a renamed or copied version of: owner, mode and attributes come from it.
        like: Option<WsPath>,
    },
    /// Replace a file or a link; owner, attributes and, unless `new` says otherwise, the mode stay.
    Replace {
        /// What stands there now.
        old: Entry,
        /// What it becomes.
        new: Body,
    },
    /// Delete a file or a link.
    Delete {
        /// What stands there now.
        old: Entry,
    },
    /// Remove a directory, which must be empty by then.
    RemoveDir,
    /// Move what stands at the path to another one.
    Move {
        /// Where to.
        to: WsPath,
        /// What stands at the path now.
        what: Moved,
        /// What is replaced at `to`; `None` where nothing may stand there.
        over: Option<Entry>,
    },
}

/// An operation at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOp {
    /// The resolved path.
    pub at: WsPath,
    /// What happens there.
    pub op: Op,
}

impl FileOp {
    /// What must stand at the path for the operation to go ahead.
    pub fn pre(&self) -> PreImage {
        match &self.op {
            Op::MakeDir { .. } | Op::Create { .. } => PreImage::Absent,
            Op::Replace { old, .. } | Op::Delete { old } | Op::Move { what: Moved::Entry(old), .. } => {
                PreImage::Entry(*old)
            }
            Op::RemoveDir | Op::Move { what: Moved::Directory { .. }, .. } => PreImage::Directory,
        }
    }

    /// What it leaves at the path; `None` where that is neither a file nor a link.
    pub fn post(&self) -> Option<Entry> {
        match &self.op {
            Op::Create { new, .. } | Op::Replace { new, .. } => Some(new.entry()),
            Op::MakeDir { .. } | Op::Delete { .. } | Op::RemoveDir | Op::Move { .. } => None,
        }
    }

    /// Every path that it touches: its own, and where it moves to.
    pub fn paths(&self) -> impl Iterator<Item = &WsPath> + Clone {
        let to = match &self.op {
            Op::Move { to, .. } => Some(to),
            _ => None,
        };
        std::iter::once(&self.at).chain(to)
    }

    /// The bytes that it writes.
    pub fn content(&self) -> Option<&Content> {
        match &self.op {
            Op::Create { new, .. } | Op::Replace { new, .. } => Some(&new.content),
            _ => None,
        }
    }

    /// A word for logs, listings and the plan's digest.
    pub fn verb(&self) -> &'static str {
        match self.op {
            Op::MakeDir { .. } => "mkdir",
            Op::Create { .. } => "create",
            Op::Replace { .. } => "edit",
            Op::Delete { .. } => "delete",
            Op::RemoveDir => "rmdir",
            Op::Move { .. } => "move",
        }
    }
}

/// Who is behind a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The agent's name.
    pub agent: Agent,
    /// Its session.
    pub session: SessionId,
    /// What it says it works on.
    pub task: Option<Arc<str>>,
    /// The turn within the session that the change belongs to; counts from 1.
    pub turn: u32,
}

/// File operations that land as one change, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Who wants it.
    pub author: Author,
    /// The tool that made it, such as `edit_file`.
    pub tool: Arc<str>,
    /// The operations; a path is touched by one of them at most. The pipeline brings them into the order of R12.
    pub ops: Vec<FileOp>,
    /// The diff shown to a human, with every invisible character visible.
    pub diff: String,
    /// The change that this plan takes back, for `undo`.
    pub undoes: Option<crate::ChangeId>,
    /// The command that a yes would let run, with all that decides what it may do; then there are no operations yet.
    pub command: Option<Arc<str>>,
}

impl Plan {
    /// What a human's yes binds to: every path, operation, pre-image, post-image and mode, the command, and nothing else.
    pub fn digest(&self) -> Digest {
        let mut text = Vec::new();
        if let Some(command) = &self.command {
            // No verb is like it, and nothing follows.
            text.extend_from_slice(b"run\0");
            text.extend_from_slice(command.as_bytes());
        }
        for op in &self.ops {
            encode(op, &mut text);
        }
        Digest::of(&text)
    }

    /// Whether it changes something that stands already; `careful` lets mere creation pass.
    pub fn only_creates(&self) -> bool {
        self.ops.iter().all(|op| matches!(op.op, Op::MakeDir { .. } | Op::Create { .. }))
    }
}

/// One operation as bytes; different operations have different bytes, also one after the other: every part has a fixed
/// length, or ends in a 0 that it cannot hold.
fn encode(op: &FileOp, text: &mut Vec<u8>) {
    let path = |text: &mut Vec<u8>, at: &WsPath| {
        text.extend_from_slice(&at.folder.0.to_le_bytes());
        text.extend_from_slice(at.path.as_bytes());
        text.push(0);
    };
    let entry = |text: &mut Vec<u8>, entry: Entry| {
        text.push(1 + entry.kind as u8);
        text.extend_from_slice(entry.digest.as_bytes());
    };
    let mode = |text: &mut Vec<u8>, mode: Option<u32>| {
        text.extend_from_slice(&mode.map_or(u32::MAX, |mode| mode & 0o7777).to_le_bytes());
    };
    text.extend_from_slice(op.verb().as_bytes());
    text.push(0);
    path(text, &op.at);
    match &op.op {
        Op::MakeDir { mode: bits } => mode(text, *bits),
        Op::Create { new, like } => {
            entry(text, new.entry());
            mode(text, new.mode);
            text.push(u8::from(like.is_some()));
            like.iter().for_each(|like| path(text, like));
        }
        Op::Replace { old, new } => {
            entry(text, *old);
            entry(text, new.entry());
            mode(text, new.mode);
        }
        Op::Delete { old } => entry(text, *old),
        Op::RemoveDir => {}
        Op::Move { to, what, over } => {
            path(text, to);
            match what {
                Moved::Entry(moved) => entry(text, *moved),
                Moved::Directory { listing } => {
                    text.push(0);
                    text.extend_from_slice(listing.as_bytes());
                }
            }
            text.push(u8::from(over.is_some()));
            over.iter().for_each(|over| entry(text, *over));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelPath;

    fn at(path: &str) -> WsPath {
        WsPath::root(RelPath::parse(path).unwrap())
    }

    fn plan(op: Op, path: &str) -> Plan {
        Plan {
            author: Author { agent: "a".into(), session: SessionId(1), task: None, turn: 1 },
            tool: "edit_file".into(),
            ops: vec![FileOp { at: at(path), op }],
            diff: String::new(),
            undoes: None,
            command: None,
        }
    }

    fn file(bytes: &[u8]) -> Entry {
        Entry::file(Digest::of(bytes))
    }

    #[test]
    fn the_digest_binds_to_what_would_be_written_and_to_nothing_else() {
        let replace = |old: &[u8], new: &[u8]| Op::Replace { old: file(old), new: Body::file(new) };
        let base = plan(replace(b"x", b"y"), "f");
        let mut same = base.clone();
        same.diff = "shown otherwise".to_owned();
        same.author.turn = 7;
        assert_eq!(base.digest(), same.digest());
        let create = |new: Body, like| plan(Op::Create { new, like }, "f");
        let moved = |to: &str, what, over| plan(Op::Move { to: at(to), what, over }, "f");
        let mut plans = vec![
            base,
            plan(replace(b"x", b"z"), "f"),
            plan(replace(b"w", b"y"), "f"),
            plan(replace(b"x", b"y"), "g"),
            plan(Op::Replace { old: Entry::link(Digest::of(b"x")), new: Body::file(&b"y"[..]) }, "f"),
            plan(Op::Replace { old: file(b"x"), new: Body::link(&b"y"[..]) }, "f"),
            plan(Op::Replace { old: file(b"x"), new: Body::file(&b"y"[..]).with_mode(0o644) }, "f"),
            plan(Op::Delete { old: file(b"x") }, "f"),
            plan(Op::Delete { old: Entry::link(Digest::of(b"x")) }, "f"),
            create(Body::file(&b"y"[..]), None),
            create(Body::file(&b"y"[..]), Some(at("g"))),
            create(Body::file(&b"y"[..]).with_mode(0o755), None),
            create(Body::link(&b"y"[..]), None),
            moved("g", Moved::Entry(file(b"x")), None),
            moved("h", Moved::Entry(file(b"x")), None),
            moved("g", Moved::Entry(file(b"x")), Some(file(b"y"))),
            moved("g", Moved::Directory { listing: Digest::of(b"x") }, None),
            plan(Op::MakeDir { mode: None }, "f"),
            plan(Op::MakeDir { mode: Some(0o700) }, "f"),
            plan(Op::RemoveDir, "f"),
            Plan { ops: Vec::new(), command: Some("make".into()), ..plan(Op::RemoveDir, "f") },
            Plan { ops: Vec::new(), command: Some("make all".into()), ..plan(Op::RemoveDir, "f") },
        ];
        let count = plans.len();
        plans.sort_by_key(|plan| *plan.digest().as_bytes());
        plans.dedup_by_key(|plan| plan.digest());
        assert_eq!(plans.len(), count);
    }

    #[test]
    fn only_creation_passes_as_creation() {
        assert!(plan(Op::MakeDir { mode: None }, "d").only_creates());
        assert!(!plan(Op::RemoveDir, "d").only_creates());
        assert!(!plan(Op::Delete { old: file(b"") }, "d").only_creates());
        let moved = Op::Move { to: at("e"), what: Moved::Entry(file(b"")), over: None };
        assert!(!plan(moved, "d").only_creates());
    }

    #[test]
    fn a_move_touches_both_ends() {
        let op = Op::Move { to: at("b"), what: Moved::Entry(file(b"")), over: None };
        let op = FileOp { at: at("a"), op };
        assert_eq!(op.paths().collect::<Vec<_>>(), [&at("a"), &at("b")]);
        assert_eq!((op.pre(), op.post(), op.content()), (PreImage::Entry(file(b"")), None, None));
    }

    #[test]
    fn a_mode_tells_the_kind() {
        for kind in [EntryKind::File, EntryKind::Link] {
            assert_eq!(EntryKind::of_mode(kind.bits() | 0o644), Some(kind));
        }
        assert_eq!(EntryKind::of_mode(0o644), Some(EntryKind::File));
        assert_eq!((EntryKind::of_mode(0o040_755), EntryKind::of_mode(0o010_644)), (None, None));
    }
}
