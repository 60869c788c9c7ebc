//! What stands at a path, said by whoever may not look for itself, and what a path becomes.

use std::collections::BTreeMap;

use crate::{Body, Content, WsPath};

/// What stands at a path, or shall stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    #[default]
    Absent,
    /// A directory, with its permission bits where they matter: only one that is made gets them.
    Dir {
        /// Permission bits such as `0o755`.
        mode: Option<u32>,
    },
    /// A file or a link. Where it shall stand, no mode means: as what it replaces, or is like.
    Entry(Body),
}

impl State {
    /// The file or link.
    pub fn entry(&self) -> Option<&Body> {
        match self {
            State::Entry(body) => Some(body),
            _ => None,
        }
    }

    /// Whether something stands there.
    pub fn stands(&self) -> bool {
        *self != State::Absent
    }
}

/// What a path becomes, said by its end alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Becomes {
    /// What shall stand there.
    pub state: State,
    /// The path whose file this is a renamed or copied version of, where that is known.
    pub from: Option<WsPath>,
}

impl Becomes {
    /// This, and it comes from nowhere else.
    pub fn new(state: State) -> Becomes {
        Becomes { state, from: None }
    }
}

/// What a command did, or would do, to the workspace: every path that it leaves otherwise than it found it.
pub type Effects = BTreeMap<WsPath, Becomes>;

/// What is seen at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Its bytes.
        content: Content,
        /// Permission bits such as `0o644`.
        mode: u32,
        /// How many names it has.
        links: u64,
    },
    /// A symbolic link and the text of its target.
    Link(Content),
    /// A directory.
    Directory {
        /// Permission bits such as `0o755`.
        mode: u32,
    },
    /// Anything else: a socket, a FIFO, a device, what may not be read or lies outside.
    Other,
}

/// Looks at the workspace for those who may not touch it themselves (`shell`, `watch`); `engine` supplies it. Links in
/// the last place are seen as links.
pub trait FileSource {
    /// What stands at a path now.
    fn see(&self, at: &WsPath) -> Seen;
}
