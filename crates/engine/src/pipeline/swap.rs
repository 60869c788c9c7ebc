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
        let Err(miss) = self.verify(pair, &pair.temp, &old, pre) else { return Ok(old) };
        // Back before the lease goes: a writer that waits for it must find the file under its name.
        let top = self.back_exchange(pair, ours)?;
        Err(after_back(miss, top))
    }

    /// Renames the target, which must be `pre`, to the temporary name.
    pub(super) fn delete(&self, pair: &Pair, pre: Entry) -> Result<Displaced, Miss> {
        let old = self.fence(pair, &pair.target, pre)?;
        self.step("remove", &pair.at).doing("deleting")?;
        commit::rename(&pair.target, &pair.temp).doing("deleting")?;
        let Err(miss) = self.verify(pair, &pair.temp, &old, pre) else { return Ok(old) };
        let top = self.back_removal(pair)?;
        Err(after_back(miss, top))
    }

    /// Moves what stands at `source`, of inode `id`, to the target. A file or a link must be `entry`; a directory is
    /// told by its inode alone. What it goes over must be `over`, and comes to the temporary name.
    pub(super) fn move_to(
        &self,
        pair: &Pair,
        source: &Spot,
        id: FileId,
        entry: Option<Entry>,
        over: Option<Entry>,
    ) -> Result<Option<Displaced>, Miss> {
        // Held until the move is verified: whoever wants to write meanwhile finds the file at one place or the other.
        let moved = entry.map(|entry| self.fence(pair, source, entry)).transpose()?;
        if moved.as_ref().is_some_and(|moved| moved.leaf.id() != id) {
            return Err(Miss::Changed);
        }
        let old = over.map(|over| self.fence(pair, &pair.target, over)).transpose()?;
        self.step("move", &pair.at).doing("moving")?;
        let renamed = match &old {
            None => commit::rename(source, &pair.target),
            Some(_) => commit::exchange(source, &pair.target),
        };
        renamed.map_err(|error| placed(error, "moving"))?;
        let verified = self.verify_move(pair, source, id, moved.as_ref(), old.as_ref().zip(over));
        if let Err(miss) = verified {
            let top = self.back_moved(pair, source, pair.target.id().doing("verifying")?.unwrap_or(id))?;
            return Err(after_back(miss, top));
        }
        if old.is_some() {
            self.step("move.over", &pair.at).doing("moving")?;
            if let Err(error) = commit::rename(source, &pair.temp) {
                self.back_moved(pair, source, id)?;
                return Err(placed(error, "moving"));
            }
        }
        Ok(old)
    }

    fn verify_move(
        &self,
        pair: &Pair,
        source: &Spot,
        id: FileId,
        moved: Option<&Displaced>,
        old: Option<(&Displaced, Entry)>,
    ) -> Result<(), Miss> {
        self.step("verify", &pair.at).doing("verifying")?;
        if pair.target.id().doing("verifying")? != Some(id) {
            return Err(Miss::Changed);
        }
        if let Some(moved) = moved
            && moved.wanted()
        {
            return Err(Miss::Busy(id));
        }
        if let Some((old, over)) = old {
            self.verify(pair, source, old, over)?;
        }
        if !source.dir().in_place(&self.tree).doing("verifying")? {
            return Err(Miss::Moved);
        }
        self.in_place(pair)
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
    fn fence(&self, pair: &Pair, spot: &Spot, pre: Entry) -> Result<Displaced, Miss> {
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

    /// Whether what was displaced to `spot` is what was fenced, nobody asked for it meanwhile, and it was where it was
    /// thought.
    fn verify(&self, pair: &Pair, spot: &Spot, old: &Displaced, pre: Entry) -> Result<(), Miss> {
        self.step("verify", &pair.at).doing("verifying")?;
        if spot.id().doing("verifying")? != Some(old.leaf.id()) {
            return Err(Miss::Changed);
        }
        if old.wanted() {
            return Err(Miss::Busy(old.leaf.id()));
        }
        if !old.fenced() && old.leaf.entry().doing("verifying")? != pre {
            return Err(Miss::Changed);
        }
        self.in_place(pair)
    }

    /// Whether the target's directory is still where it was opened.
    fn in_place(&self, pair: &Pair) -> Result<(), Miss> {
        self.step("in_place", &pair.at).doing("verifying")?;
        if pair.target.dir().in_place(&self.tree).doing("verifying")? { Ok(()) } else { Err(Miss::Moved) }
    }
}

/// A name that was there or not against all expectation is the world's doing, not the disk's.
fn placed(error: io::Error, doing: &'static str) -> Miss {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Miss::Exists,
        io::ErrorKind::NotFound => Miss::Vanished,
        _ => Miss::Io { doing, error },
    }
}

/// The miss to tell once the target was put back: where another's bytes came on top it makes no sense to try again.
fn after_back(miss: Miss, top: Top) -> Miss {
    match (miss, top) {
        (Miss::Busy(_), Top::Foreign) => Miss::Changed,
        (miss, _) => miss,
    }
}
