//! What a command did to ignored paths: carried over as it is, beside the pipeline. It is no change: nothing of it is asked
//! about, recorded or taken back, and no ignored path is ever a protected one.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use cotenant_model::{Access, PathClass, WirePath, WsPath};
use cotenant_tree::{Ignores, Kind, Place};

use crate::workspace::Workspace;

impl Workspace {
    /// Puts something at an ignored path: `put` is given the directory and the name in it. False where the path is not
    /// ignored, is protected, or has no directory to stand in.
    pub fn admit_ignored(
        &self,
        ignores: &mut Ignores<'_>,
        at: &WsPath,
        put: impl FnOnce(BorrowedFd<'_>, &OsStr) -> bool,
    ) -> bool {
        match self.ignored_place(ignores, at) {
            Some(place) => put(place.parent.fd(), OsStr::from_bytes(&place.leaf)),
            None => false,
        }
    }

    /// Takes an ignored path away with all that is below it. False as above, and where the system refuses.
    pub fn discard_ignored(&self, ignores: &mut Ignores<'_>, at: &WsPath) -> bool {
        let place = self.ignored_place(ignores, at);
        place.is_some_and(|place| cotenant_tree::commit::discard(&place).is_ok())
    }

    fn ignored_place(&self, ignores: &mut Ignores<'_>, at: &WsPath) -> Option<Place> {
        let place = self.tree().locate_link(&WirePath { at: at.clone(), dir_only: false }).ok()?;
        let stands = match &place.kind {
            Kind::Absent { missing } => missing.is_empty(),
            _ => true,
        };
        let allowed = place.real == *at
            && place.access == Access::ReadWrite
            && place.class.class != PathClass::Protected;
        let is_dir = place.kind == Kind::Dir;
        let ignored = ignores.covers(at, is_dir) || place.is_absent() && ignores.covers(at, true);
        (stands && allowed && ignored).then_some(place)
    }
}
