//! One path of a plan, swapped in: fenced, compared, exchanged, verified (R3, R9). Every miss is taken back here.

use std::io;
use std::sync::Arc;

use cotenant_model::Digest;
use cotenant_tree::commit::{self, Attributes, FileId, Grip, Held, Inode, Look, Stamp, Temp};

use super::back::Top;
use super::desk::{Desk, Ours, Pair};
use super::miss::{Doing, Miss};
use super::prepare::{Aimed, Work, replaceable};

/// What a swap did, as far as going back needs it.
pub(super) enum Landing {
    /// A directory came to be.
    Made(Arc<Held>),
    /// A file came to be.
    Created(Ours),
    /// A file was replaced by ours; the old one is held, with its lease.
    Replaced(FileId, Displaced),
    /// A file was renamed away.
    Deleted(Displaced),
    /// A directory was renamed away.
    Removed,
}

/// A file whose name was taken from it. While the lease is held nobody has written into it since its digest was read.
pub(super) struct Displaced {
    pub(super) inode: Inode,
    pub(super) grip: Grip,
}

impl Desk {
    /// Swaps one path in. `again`: an earlier try was taken back, so the new file may have its temporary name already.
    pub(super) fn forward(&self, aimed: &Aimed, again: bool) -> Result<Landing, Miss> {
        let pair = &aimed.pair;
        match (&aimed.work, aimed.pre, aimed.post) {
            (Work::MakeDir, ..) => {
                let made = aimed.made.as_ref().ok_or(Miss::Vanished)?;
                self.make_dir(pair, made).map(|()| Landing::Made(Arc::clone(made)))
            }
            (Work::Create { temp, .. }, _, Some(digest)) => {
                let ours = Ours { id: temp.id(), digest };
                self.create(pair, temp, ours, again).map(|()| Landing::Created(ours))
            }
            (Work::Replace { temp, attributes, stamp, .. }, Some(pre), _) => {
                self.link(pair, temp, again)?;
                let like = |inode: &Inode| refit(temp, attributes, *stamp, inode);
                self.replace(pair, temp.id(), pre, like).map(|old| Landing::Replaced(temp.id(), old))
            }
            (Work::Delete, Some(pre), _) => self.delete(pair, pre).map(Landing::Deleted),
            (Work::RemoveDir { id }, ..) => self.remove_dir(pair, *id).map(|()| Landing::Removed),
            // Prepared plans have the images that their operations need.
            _ => Err(Miss::Changed),
        }
    }

    /// Takes a landed path back.
    pub(super) fn backward(&self, pair: &Pair, landing: &Landing) -> Result<Top, Miss> {
        match landing {
            Landing::Made(made) => self.back_directory(pair, made),
            Landing::Created(ours) => self.back_creation(pair, *ours),
            Landing::Replaced(ours, _) => self.back_exchange(pair, *ours),
            Landing::Deleted(_) | Landing::Removed => self.back_removal(pair),
        }
    }

    fn link(&self, pair: &Pair, temp: &Temp, again: bool) -> Result<(), Miss> {
        self.step("link", &pair.at).doing("linking the new content beside")?;
        if again && pair.temp.id().doing("looking beside")? == Some(temp.id()) {
            return Ok(());
        }
        temp.link(&pair.temp).doing("linking the new content beside")
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

    fn create(&self, pair: &Pair, temp: &Temp, ours: Ours, again: bool) -> Result<(), Miss> {
        self.step("create", &pair.at).doing("creating")?;
        let taken_back = again && pair.temp.id().doing("looking beside")? == Some(ours.id);
        let placed_at =
            if taken_back { commit::rename(&pair.temp, &pair.target) } else { temp.link(&pair.target) };
        placed_at.map_err(|error| placed(error, "creating"))?;
        if let Err(miss) = self.in_place(pair) {
            self.back_creation(pair, ours)?;
            return Err(miss);
        }
        Ok(())
    }

    /// Replaces the target, whose bytes must be `pre`, by our file, which stands at the temporary name.
    pub(super) fn replace(
        &self,
        pair: &Pair,
        ours: FileId,
        pre: Digest,
        refit: impl FnOnce(&Inode) -> Result<(), Miss>,
    ) -> Result<Displaced, Miss> {
        let old = self.fence(pair, pre)?;
        replaceable(&old.inode)?;
        refit(&old.inode)?;
        self.step("exchange", &pair.at).doing("replacing")?;
        commit::exchange(&pair.target, &pair.temp).map_err(|error| placed(error, "replacing"))?;
        let Err(miss) = self.verify(pair, &old, pre) else { return Ok(old) };
        // Back before the lease goes: a writer that waits for it must find the file under its name.
        let top = self.back_exchange(pair, ours)?;
        Err(after_back(miss, top))
    }

    /// Renames the target, whose bytes must be `pre`, to the temporary name.
    pub(super) fn delete(&self, pair: &Pair, pre: Digest) -> Result<Displaced, Miss> {
        let old = self.fence(pair, pre)?;
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

    /// Holds writers off the target and compares it with `pre`.
    fn fence(&self, pair: &Pair, pre: Digest) -> Result<Displaced, Miss> {
        self.step("open", &pair.at).doing("opening")?;
        let inode = match pair.target.look().doing("opening")? {
            Look::File(inode) => inode,
            Look::Absent => return Err(Miss::Vanished),
            Look::Denied(_) => return Err(Miss::Denied),
            Look::Directory(_) | Look::Other(_) => return Err(Miss::NotAFile),
        };
        self.step("lease", &pair.at).doing("fencing")?;
        let grip = match inode.grip() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(Miss::Busy(inode.id())),
            other => other.doing("fencing")?,
        };
        self.step("digest", &pair.at).doing("reading")?;
        if inode.digest().doing("reading")? != pre {
            return Err(Miss::Changed);
        }
        Ok(Displaced { inode, grip })
    }

    /// Whether what was displaced is what was fenced, nobody asked for it meanwhile, and it was where it was thought.
    fn verify(&self, pair: &Pair, old: &Displaced, pre: Digest) -> Result<(), Miss> {
        self.step("verify", &pair.at).doing("verifying")?;
        if pair.temp.id().doing("verifying")? != Some(old.inode.id()) {
            return Err(Miss::Changed);
        }
        match old.grip {
            Grip::Lease if !old.inode.gripped() => return Err(Miss::Busy(old.inode.id())),
            Grip::None if old.inode.digest().doing("verifying")? != pre => return Err(Miss::Changed),
            Grip::Lease | Grip::None => {}
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

/// Owner, mode or attributes may have changed since the new file was staged: it gets them as they are now.
fn refit(temp: &Temp, staged: &Attributes, stamp: Stamp, inode: &Inode) -> Result<(), Miss> {
    if inode.stamp().doing("reading")? == stamp {
        return Ok(());
    }
    let now = Attributes::of(inode.fd())?;
    if now != *staged {
        temp.give(&now)?;
    }
    Ok(())
}
