//! A place: where a path from outside leads, as a held directory and a name in it.

use std::sync::Arc;

use cotenant_model::{Access, ClassHit, WsPath};

use crate::dir::{Dir, Stat};

/// What [`Tree::locate`](crate::Tree::locate) found. It is never `Protected`.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path as it was asked for.
    pub asked: WsPath,
    /// Where it leads: no link stands between the root and the leaf.
    pub real: WsPath,
    /// Whether a link was followed, so that `real` is not `asked`.
    pub through_link: bool,
    /// It was asked for with a final `/`: only a directory will do. Matters for what is absent.
    pub dir_only: bool,
    /// The stricter of the classes of `asked` and `real`, with what the disk adds: a bare repository's files are
    /// `Sensitive`, what `.gitattributes` calls `linguist-generated` is `Generated`.
    pub class: ClassHit,
    /// The directory that holds the leaf; for an absent path, the deepest one that exists.
    pub parent: Arc<Dir>,
    /// The last name; `.` for a folder itself.
    pub leaf: Vec<u8>,
    /// What stands there.
    pub kind: Kind,
    /// What may be done in its folder.
    pub access: Access,
}

/// What stands at a place. Anything else (FIFO, socket, device) is no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File(Stat),
    /// A directory.
    Dir,
    /// A symbolic link itself; only from [`Tree::locate_link`](crate::Tree::locate_link).
    Link,
    /// Nothing.
    Absent {
        /// The names of missing directories below `parent`, outermost first; the leaf stands in the last of them.
        missing: Vec<Vec<u8>>,
    },
}

impl Place {
    /// The file's facts, where a file stands there.
    pub fn stat(&self) -> Option<&Stat> {
        match &self.kind {
            Kind::File(stat) => Some(stat),
            _ => None,
        }
    }

    /// Whether nothing stands there.
    pub fn is_absent(&self) -> bool {
        matches!(self.kind, Kind::Absent { .. })
    }
}
