//! One path of a plan, swapped in: fenced, compared, exchanged, verified (R3, R9). Every miss is taken back here.

use std::io;
use std::sync::Arc;

use cotenant_model::Entry;
use cotenant_tree::commit::{self, FileId, Grip, Held, Leaf, Look, Spot};

use super::back::Top;
use super::desk::{Desk, Ours, Pair};
use super::miss::{Doing, Miss};
use super::prepare::{Aimed, Fresh, Work};

/// What a swap did, as far as going back needs it.
pub(super) enum Landing {
    /// A directory came to be.
    Made(Arc<Held>),
    /// A file or a link came to be.
    Created(Ours),
    /// A file or a link was replaced by ours; the old one is held, with its lease.
    Replaced(FileId, Displaced),
    /// A file or a link was renamed away.
    Deleted(Displaced),
    /// A directory was renamed away.
    Removed,
    /// Something came from elsewhere; what it replaced is held, with its lease.
    Moved(FileId, Option<Displaced>),
}

/// A file or a link whose name was taken from it. While the lease is held nobody has written into it since its digest
/// was read.
pub(super) struct Displaced {
    pub(super) leaf: Leaf,
    pub(super) grip: Grip,
}

impl Displaced {
    /// Whether a lease that was taken is wanted by another: somebody opens the file for writing.
    pub(super) fn wanted(&self) -> bool {
        matches!(&self.leaf, Leaf::File(inode) if self.grip == Grip::Lease && !inode.gripped())
    }

    /// Misses where somebody wrote into it since it was `pre`, or is about to.
    pub(super) fn unwritten(&self, pre: Entry) -> Result<(), Miss> {
        if self.wanted() {
            return Err(Miss::Busy(self.leaf.id()));
        }
        if !self.fenced() && self.leaf.entry().doing("verifying")? != pre {
            return Err(Miss::Changed);
        }
        Ok(())
    }

    /// Whether nobody can have written into it since its digest was read.
    pub(super) fn fenced(&self) -> bool {
        match self.leaf {
            Leaf::File(_) => self.grip == Grip::Lease,
            Leaf::Link(_) => true,
        }
    }
}

impl Desk {
    /// Swaps one path in. `again`: an earlier try was taken back, so the new file may have its temporary name already.
    pub(super) fn forward(&self, aimed: &Aimed, again: bool) -> Result<Landing, Miss> {
        let pair = &aimed.pair;
        match (&aimed.work, aimed.pre, aimed.post) {
            (Work::MakeDir { .. }, ..) => {
                let made = aimed.made.as_ref().ok_or(Miss::Vanished)?;
                self.make_dir(pair, made).map(|()| Landing::Made(Arc::clone(made)))
            }
            (Work::Create(fresh), _, Some(entry)) => {
                self.create(pair, fresh, entry, again).map(Landing::Created)
            }
            (Work::Replace(fresh), Some(pre), _) => {
                let id = self.beside(pair, fresh, again)?;
                let old = self.replace(pair, id, pre, |old| fresh.refit(old))?;
                Ok(Landing::Replaced(id, old))
            }
            (Work::Delete, Some(pre), _) => self.delete(pair, pre).map(Landing::Deleted),
            (Work::RemoveDir { id }, ..) => self.remove_dir(pair, *id).map(|()| Landing::Removed),
            (Work::Move(moving), over, _) => {
                let old = self.move_to(pair, &moving.source, moving.id, moving.entry, over)?;
                Ok(Landing::Moved(moving.id, old))
            }
            // Prepared plans have the images that their operations need.
            _ => Err(Miss::Changed),
        }
    }

    /// Takes a landed path back.
    pub(super) fn backward(&self, aimed: &Aimed, landing: &Landing) -> Result<Top, Miss> {
        let pair = &aimed.pair;
        match (landing, &aimed.work) {
            (Landing::Made(made), _) => self.back_directory(pair, made),
            (Landing::Created(ours), _) => self.back_creation(pair, *ours),
            (Landing::Replaced(ours, _), _) => self.back_exchange(pair, *ours),
            (Landing::Moved(id, _), Work::Move(moving)) => self.back_move(pair, &moving.source, *id),
            _ => self.back_removal(pair),
        }
    }

    /// Gives the new file or link its temporary name.
    fn beside(&self, pair: &Pair, fresh: &Fresh, again: bool) -> Result<FileId, Miss> {
        self.step("link", &pair.at).doing("putting the new content beside")?;
        match fresh {
            Fresh::File { temp, .. } => {
                if !(again && pair.temp.id().doing("looking beside")? == Some(temp.id())) {
                    temp.link(&pair.temp).doing("putting the new content beside")?;
                }
                Ok(temp.id())
            }
            Fresh::Link { target, owner } => {
                let made = pair.temp.make_link(target, *owner);
                match made {
                    Err(error) if again && error.kind() == io::ErrorKind::AlreadyExists => {}
                    other => other.doing("putting the new link beside")?,
                }
                pair.temp.id().doing("looking beside")?.ok_or(Miss::Vanished)
            }
        }
    }

    fn make_dir(&self, pair: &Pair, made: &Held) -> Result<(), Miss> {
        self.step("place.dir", &pair.at).doing("placing the directory")?;
        commit::rename(&pair.temp, &pair.target).map_err(|error| placed(error, "placing the directory"))?;
        if let Err(miss) = self.in_place(pair) {
            self.back_directory(pair, made)?;
            return Err(miss);
        }
        Ok(())
    }

    fn create(&self, pair: &Pair, fresh: &Fresh, entry: Entry, again: bool) -> Result<Ours, Miss> {
        self.step("create", &pair.at).doing("creating")?;
        let beside = match fresh {
            Fresh::File { temp, .. } => again && pair.temp.id().doing("looking beside")? == Some(temp.id()),
            Fresh::Link { .. } => true,
        };
        let (id, placed_at) = match fresh {
            Fresh::File { temp, .. } if !beside => (temp.id(), temp.link(&pair.target)),
            _ => (self.beside(pair, fresh, again)?, commit::rename(&pair.temp, &pair.target)),
        };
        placed_at.map_err(|error| placed(error, "creating"))?;
        let ours = Ours { id, entry };
        if let Err(miss) = self.in_place(pair) {
            self.back_creation(pair, ours)?;
            return Err(miss);
        }
        Ok(ours)
    }

    /// Replaces the target, which must be `pre`, by our file or link, which stands at the temporary name.
    pub(super) fn replace(
        &self,
        pair: &Pair,
        ours: FileId,
        pre: Entry,
        refit: impl FnOnce(&Leaf) -> Result<(), Miss>,
    ) -> Result<Displaced, Miss> {
        let old = self.fence(pair, &pair.target, pre)?;
        refit(&old.leaf)?;
        self.step("exchange", &pair.at).doing("replacing")?;
        commit::exchange(&pair.target, &pair.temp).map_err(|error| placed(error, "replacing"))?;
        let Err(miss) = self.verify(pair, &old, pre) else { return Ok(old) };
        // Back before the lease goes: a writer that waits for it must find the file under its name.
        let top = self.back_exchange(pair, ours)?;
        Err(after_back(miss, top))
    }

    /// Renames the target, which must be `pre`, to the temporary name.
    pub(super) fn delete(&self, pair: &Pair, pre: Entry) -> Result<Displaced, Miss> {
        let old = self.fence(pair, &pair.target, pre)?;
        self.step("remove", &pair.at).doing("deleting")?;
        commit::rename(&pair.target, &pair.temp).doing("deleting")?;
        let Err(miss) = self.verify(pair, &old, pre) else { return Ok(old) };
        let top = self.back_removal(pair)?;
        Err(after_back(miss, top))
    }

    fn remove_dir(&self, pair: &Pair, id: FileId) -> Result<(), Miss> {
        self.step("remove.dir", &pair.at).doing("removing the directory")?;
        commit::rename(&pair.target, &pair.temp).doing("removing the directory")?;
        let Err(miss) = self.verify_removed_dir(pair, id) else { return Ok(()) };
        self.back_removal(pair)?;
        Err(miss)
    }

    fn verify_removed_dir(&self, pair: &Pair, id: FileId) -> Result<(), Miss> {
        if pair.temp.id().doing("removing the directory")? != Some(id) {
            return Err(Miss::Changed);
        }
        let held = pair.temp.dir().child(pair.temp.name(), &pair.at).doing("removing the directory")?;
        if !held.is_empty().doing("listing the directory")? {
            return Err(Miss::NotEmpty);
        }
        self.in_place(pair)
    }

    /// Holds writers off what stands at `spot` and compares it with `pre`.
    pub(super) fn fence(&self, pair: &Pair, spot: &Spot, pre: Entry) -> Result<Displaced, Miss> {
        self.step("open", &pair.at).doing("opening")?;
        let leaf = match spot.look().doing("opening")? {
            Look::Absent => return Err(Miss::Vanished),
            Look::Denied(_) => return Err(Miss::Denied),
            look => look.leaf().ok_or(Miss::NotAFile)?,
        };
        self.step("lease", &pair.at).doing("fencing")?;
        let grip = match &leaf {
            Leaf::Link(_) => Grip::None,
            Leaf::File(inode) => match inode.grip() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(Miss::Busy(inode.id()));
                }
                other => other.doing("fencing")?,
            },
        };
        self.step("digest", &pair.at).doing("reading")?;
        if leaf.entry().doing("reading")? != pre {
            return Err(Miss::Changed);
        }
        Ok(Displaced { leaf, grip })
    }

    /// Whether what was displaced is what was fenced, nobody asked for it meanwhile, and it was where it was thought.
    fn verify(&self, pair: &Pair, old: &Displaced, pre: Entry) -> Result<(), Miss> {
        self.step("verify", &pair.at).doing("verifying")?;
        if pair.temp.id().doing("verifying")? != Some(old.leaf.id()) {
            return Err(Miss::Changed);
        }
        old.unwritten(pre)?;
        self.in_place(pair)
    }

    /// Whether the target's directory is still where it was opened.
    pub(super) fn in_place(&self, pair: &Pair) -> Result<(), Miss> {
        self.step("in_place", &pair.at).doing("verifying")?;
        if pair.target.dir().in_place(&self.tree).doing("verifying")? { Ok(()) } else { Err(Miss::Moved) }
    }
}

/// A name that was there or not against all expectation is the world's doing, not the disk's.
pub(super) fn placed(error: io::Error, doing: &'static str) -> Miss {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Miss::Exists,
        io::ErrorKind::NotFound => Miss::Vanished,
        _ => Miss::Io { doing, error },
    }
}

/// The miss to tell once the target was put back: where another's bytes came on top it makes no sense to try again.
pub(super) fn after_back(miss: Miss, top: Top) -> Miss {
    match (miss, top) {
        (Miss::Busy(_), Top::Foreign) => Miss::Changed,
        (miss, _) => miss,
    }
}
