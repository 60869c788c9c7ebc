//! A plan: everything one call would change, with the state it was made against. Only the pipeline can carry it out.

use std::sync::Arc;

use crate::{Agent, Digest, SessionId, WsPath};

/// The bytes of a post-image, shared between plan, approval and commit.
pub type Content = Arc<[u8]>;

/// What a path was when the plan was made; the commit re-checks it in the same critical section as the swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreImage {
    /// Nothing stood there.
    Absent,
    /// A regular file with these bytes stood there.
    Digest(Digest),
    /// A directory stood there.
    Directory,
}

/// One operation of a plan. Paths are resolved: no link stands between the root and the leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Make a directory that is absent. Parents come before children in [`Plan::ops`].
    MakeDir,
    /// Make a file that is absent. `mode`: permission bits, `None` for 0666 less the umask.
    Create {
        /// The new file's bytes.
        content: Content,
        /// Permission bits such as `0o755`.
        mode: Option<u32>,
    },
    /// Replace a file's bytes; its mode, owner and attributes stay.
    Replace {
        /// The bytes it has now.
        pre: Digest,
        /// The bytes it gets.
        content: Content,
    },
    /// Delete a regular file.
    Delete {
        /// The bytes it has now.
        pre: Digest,
    },
    /// Remove a directory, which must be empty by then.
    RemoveDir,
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
            Op::MakeDir | Op::Create { .. } => PreImage::Absent,
            Op::Replace { pre, .. } | Op::Delete { pre } => PreImage::Digest(*pre),
            Op::RemoveDir => PreImage::Directory,
        }
    }

    /// The digest of the file it leaves; `None` where it leaves no file.
    pub fn post(&self) -> Option<Digest> {
        match &self.op {
            Op::Create { content, .. } | Op::Replace { content, .. } => Some(Digest::of(content)),
            Op::MakeDir | Op::Delete { .. } | Op::RemoveDir => None,
        }
    }

    /// A word for logs, listings and the plan's digest.
    pub fn verb(&self) -> &'static str {
        match self.op {
            Op::MakeDir => "mkdir",
            Op::Create { .. } => "create",
            Op::Replace { .. } => "edit",
            Op::Delete { .. } => "delete",
            Op::RemoveDir => "rmdir",
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
    /// The operations; at most one a path. The pipeline brings them into the order of R12.
    pub ops: Vec<FileOp>,
    /// The diff shown to a human, with every invisible character visible.
    pub diff: String,
    /// The change that this plan takes back, for `undo`.
    pub undoes: Option<crate::ChangeId>,
}

impl Plan {
    /// What a human's yes binds to: every path, operation, pre-image, post-image and mode, and nothing else.
    pub fn digest(&self) -> Digest {
        let mut text = Vec::new();
        for op in &self.ops {
            text.extend_from_slice(op.verb().as_bytes());
            text.push(0);
            text.extend_from_slice(&op.at.folder.0.to_le_bytes());
            text.extend_from_slice(op.at.path.as_bytes());
            text.push(0);
            match op.pre() {
                PreImage::Absent => text.push(0),
                PreImage::Directory => text.push(1),
                PreImage::Digest(pre) => text.extend_from_slice(pre.as_bytes()),
            }
            if let Some(post) = op.post() {
                text.extend_from_slice(post.as_bytes());
            }
            if let Op::Create { mode: Some(mode), .. } = op.op {
                text.extend_from_slice(&mode.to_le_bytes());
            }
            text.push(0);
        }
        Digest::of(&text)
    }

    /// Whether it changes something that stands already; `careful` lets mere creation pass.
    pub fn only_creates(&self) -> bool {
        self.ops.iter().all(|op| matches!(op.op, Op::MakeDir | Op::Create { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelPath;

    fn plan(op: Op, path: &str) -> Plan {
        Plan {
            author: Author { agent: "a".into(), session: SessionId(1), task: None, turn: 1 },
            tool: "edit_file".into(),
            ops: vec![FileOp { at: WsPath::root(RelPath::parse(path).unwrap()), op }],
            diff: String::new(),
            undoes: None,
        }
    }

    #[test]
    fn the_digest_binds_to_what_would_be_written_and_to_nothing_else() {
        let replace =
            |pre: &[u8], content: &[u8]| Op::Replace { pre: Digest::of(pre), content: content.into() };
        let base = plan(replace(b"x", b"y"), "f");
        let mut same = base.clone();
        same.diff = "shown otherwise".to_owned();
        same.author.turn = 7;
        assert_eq!(base.digest(), same.digest());
        for other in [
            plan(replace(b"x", b"z"), "f"),
            plan(replace(b"w", b"y"), "f"),
            plan(replace(b"x", b"y"), "g"),
            plan(Op::Delete { pre: Digest::of(b"x") }, "f"),
            plan(Op::Create { content: b"y"[..].into(), mode: None }, "f"),
        ] {
            assert_ne!(base.digest(), other.digest(), "{other:?}");
        }
        let created = |mode| plan(Op::Create { content: b"y"[..].into(), mode }, "f").digest();
        assert_ne!(created(None), created(Some(0o755)));
    }

    #[test]
    fn only_creation_passes_as_creation() {
        assert!(plan(Op::MakeDir, "d").only_creates());
        assert!(!plan(Op::RemoveDir, "d").only_creates());
        assert!(!plan(Op::Delete { pre: Digest::of(b"") }, "d").only_creates());
    }
}
