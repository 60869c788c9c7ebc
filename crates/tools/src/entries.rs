//! What a call must know of a file or link that it takes as a whole: its weight, its target, where it went.

use cotenant_ledger::Query;
use cotenant_model::{
    Change, ChangeFile, ChangeOp, ClassHit, Content, Entry, PathClass, Refusal, WirePath, WsPath,
};
use cotenant_tree::{Below, ListOptions, Place};

use crate::ctx::{Ctx, Loaded};

/// How many changes of a path are looked at for the one that moved it.
const RECENT: usize = 20;

/// A symbolic link itself.
pub struct Link {
    /// The text of its target.
    pub content: Content,
}

impl Link {
    /// As a plan names it.
    pub fn entry(&self) -> Entry {
        Entry::link(self.content.digest())
    }
}

impl Ctx<'_> {
    /// How long the call has been under way, in milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        self.ws.clock().steady().since(self.now)
    }

    /// The link at a place.
    pub fn link(&self, place: &Place) -> Result<Link, Refusal> {
        let target = self.tree(|tree| tree.link_target(place), &place.asked)?;
        Ok(Link { content: target.into() })
    }

    /// The target of a link as an answer shows it.
    pub fn told(&self, link: &Link) -> String {
        cotenant_text::shown(&link.content).into_owned()
    }

    /// Where what stood at a path went, with a directory above it or by itself, and who moved it, in words; only where it
    /// stands there now.
    pub fn went(&self, at: &WsPath) -> Option<(Place, String)> {
        let query = Query { path: Some(at.clone()), limit: RECENT, ..Query::default() };
        let changes = self.ws.ledger().history(&query).ok()?;
        // A directory above may have gone after what stood in it.
        changes.iter().find_map(|change| Some((self.stands(at, change)?, self.made(change))))
    }

    /// Where what a change moved away from a path stands now.
    fn stands(&self, at: &WsPath, change: &Change) -> Option<Place> {
        let goal =
            |file: &ChangeFile| at.moved(file.from.as_ref().filter(|_| file.op == ChangeOp::Move)?, &file.at);
        let to = change.files.iter().find_map(goal)?;
        let now = self.ws.ledger().present_path(&to, change.id).ok().filter(|now| now.gone.is_none())?.at;
        let place = self.ws.tree().locate_link(&WirePath { at: now, dir_only: false }).ok()?;
        (!place.is_absent()).then_some(place)
    }

    /// Whether a directory holds this very name; where letter case does not count, a look-up finds others for it.
    pub fn is_listed(&self, at: &WsPath) -> bool {
        let parent = at.parent().unwrap_or_default();
        let options = ListOptions { depth: Some(1), limit: usize::MAX, include_ignored: true };
        let listed = self.ws.tree().locate(&WirePath { at: parent, dir_only: true });
        let listed = listed.and_then(|place| self.ws.tree().list(&place, &options));
        listed.map_or(true, |listing| listing.entries.iter().any(|entry| entry.path == *at))
    }

    /// Reads a file that is to go as a whole. Of one that is too large to be shown only the digest is taken: it has no
    /// bytes then, and is no text.
    pub fn weigh(&self, place: &Place) -> Result<Loaded, Refusal> {
        if self.size(place) <= self.limits().text_bytes {
            return self.load_any(place);
        }
        let digest = self.tree(|tree| tree.digest(place), &place.asked)?;
        Ok(Loaded::unread(digest, "it is too large to be shown as a whole"))
    }

    /// What goes along with a directory that is moved: the strictest class of it all, beside `class`, and every path
    /// below it as it is called now and as it would be called. None of them may be closed to the tools.
    pub fn along(
        &self,
        below: &Below,
        from: &WsPath,
        to: &WsPath,
        mut class: ClassHit,
    ) -> Result<(ClassHit, Vec<WsPath>), Refusal> {
        let mut paths = Vec::with_capacity(2 * below.entries.len());
        for (at, _) in &below.entries {
            let then = at.moved(from, to).unwrap_or_else(|| at.clone());
            for at in [at.clone(), then] {
                let hit = self.ws.tree().class_of(&at);
                self.open(&at, &hit)?;
                class = class.max(hit);
                paths.push(at);
            }
        }
        Ok((class, paths))
    }

    /// Refuses a path that the tools may not change.
    fn open(&self, at: &WsPath, hit: &ClassHit) -> Result<(), Refusal> {
        let shown = self.show(at);
        match hit.class {
            PathClass::Protected => Err(cotenant_coord::protected(&shown, hit)),
            PathClass::Generated => Err(cotenant_coord::generated(&shown, hit)),
            PathClass::Ordinary | PathClass::Sensitive => Ok(()),
        }
    }
}
