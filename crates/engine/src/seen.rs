//! The workspace as those see it who may not touch it: one path at a time, through the gate of `tree`.

use cotenant_model::{FileSource, Seen, WirePath, WsPath};
use cotenant_tree::{Kind, Place};

use crate::workspace::Workspace;

/// Bytes of a file that are shown; a larger one is something else.
const MOST: u64 = 64 << 20;

impl FileSource for Workspace {
    fn see(&self, at: &WsPath) -> Seen {
        let wire = WirePath { at: at.clone(), dir_only: false };
        match self.tree().locate_link(&wire) {
            // What stands behind a link on the way is another path's.
            Ok(place) if place.real == *at => self.seen(&place),
            _ => Seen::Other,
        }
    }
}

impl Workspace {
    fn seen(&self, place: &Place) -> Seen {
        match &place.kind {
            Kind::Absent { .. } => Seen::Absent,
            Kind::Dir => Seen::Directory { mode: self.tree().mode(place).unwrap_or_default() },
            Kind::Link => match self.tree().link_target(place) {
                Ok(target) => Seen::Link(target.into()),
                Err(_) => Seen::Other,
            },
            Kind::File(_) => match self.tree().read(place, MOST) {
                // A file that changes under the look has no one content.
                Ok(file) if !file.unstable => Seen::File {
                    mode: file.stat.mode & 0o7777,
                    links: file.stat.nlink.into(),
                    content: file.bytes.into(),
                },
                _ => Seen::Other,
            },
        }
    }
}
