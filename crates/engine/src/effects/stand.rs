//! What stands at a path, as far as telling one version from another goes.

use cotenant_model::{Digest, Entry, EntryKind};
use cotenant_tree::Key;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Nothing.
    Absent,
    /// A directory, with its `st_mode`.
    Dir(u32),
    /// A file or a link, with its `st_mode`; 0 where that is not known.
    Entry(Entry, u32),
    /// A file whose bytes nobody has.
    Unknown,
}

impl Stand {
    /// A link that was looked at.
    pub(super) fn link(key: &Key) -> Stand {
        let target = key.target.as_deref().unwrap_or_default();
        Stand::Entry(Entry::link(Digest::of(target)), key.stat.mode)
    }

    pub(super) fn entry(self) -> Option<Entry> {
        match self {
            Stand::Entry(entry, _) => Some(entry),
            _ => None,
        }
    }

    /// `st_mode`; 0 where nothing stands.
    pub(super) fn mode(self) -> u32 {
        match self {
            Stand::Dir(mode) | Stand::Entry(_, mode) => mode,
            Stand::Absent | Stand::Unknown => 0,
        }
    }

    /// Whether it is the same as far as both are known. A link has no permissions, and those of a directory do not make
    /// it another one.
    pub(super) fn is_as(self, other: Stand) -> bool {
        match (self, other) {
            (Stand::Absent, Stand::Absent) | (Stand::Dir(_), Stand::Dir(_)) => true,
            (Stand::Entry(one, mode), Stand::Entry(other, others)) => {
                let rights = mode & 0o7777 == others & 0o7777 || mode == 0 || others == 0;
                one == other && (rights || one.kind == EntryKind::Link)
            }
            _ => false,
        }
    }
}

/// What became of a path between the two looks.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) at: cotenant_model::WsPath,
    pub(super) was: Stand,
    pub(super) is: Stand,
    /// The stat of what stood there and of what stands.
    pub(super) old: Option<cotenant_tree::Stat>,
    pub(super) new: Option<cotenant_tree::Stat>,
}
