//! Moves (R9): fenced at the source, renamed without replacing or exchanged with what they go over, verified at both ends,
//! and taken back so that whatever a foreign writer put at either end stays on top.

use std::io;

use cotenant_model::Entry;
use cotenant_tree::commit::{self, FileId, Spot};

use super::back::Top;
use super::desk::{Desk, Pair};
use super::miss::{Doing, Miss};
use super::swap::{Displaced, after_back, placed};

impl Desk {
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
        let old = over.map(|over| self.fence(pair, &pair.target, over)).transpose()?;
        self.step("move", &pair.at).doing("moving")?;
        // A rename over either end breaks no lease. One that comes even later shows after the move.
        let stands = |spot: &Spot| spot.id().doing("moving");
        if stands(source)? != Some(id) || stands(&pair.target)? != old.as_ref().map(|old| old.leaf.id()) {
            return Err(Miss::Changed);
        }
        let renamed = match &old {
            None => commit::rename(source, &pair.target),
            Some(_) => commit::exchange(source, &pair.target),
        };
        renamed.map_err(|error| placed(error, "moving"))?;
        let verified = self.verify_move(pair, source, id, moved.as_ref());
        let tucked = verified.and_then(|()| match old.as_ref().zip(over) {
            Some((old, over)) => self.tuck(pair, source, old, over),
            None => Ok(()),
        });
        let Err(miss) = tucked else { return Ok(old) };
        let stands = pair.target.id().stuck("looking at what was moved to")?;
        let at_source = source.id().stuck("looking at what was moved from")?;
        // Whatever came to the source since is none of ours to move.
        let ours = |old: &Displaced| matches!(miss, Miss::Changed) || at_source == Some(old.leaf.id());
        let exchanged = old.as_ref().is_some_and(ours);
        let top = self.back_moved(pair, source, stands.unwrap_or(id), exchanged)?;
        Err(after_back(miss, top))
    }

    /// Whether what was moved is what was fenced, nobody asked for it meanwhile, and both ends were where they were
    /// thought.
    fn verify_move(
        &self,
        pair: &Pair,
        source: &Spot,
        id: FileId,
        moved: Option<&Displaced>,
    ) -> Result<(), Miss> {
        self.step("verify", &pair.at).doing("verifying")?;
        if pair.target.id().doing("verifying")? != Some(id) {
            // If it was replaced there after the move the newer file stays, as after any other change. If another file
            // stood at the source when it was renamed, that goes back. The kernel knows the last name of what was
            // fenced.
            match moved {
                Some(moved) if !moved.leaf.was_last_at(source).doing("verifying")? => self.save(moved)?,
                _ => return Err(Miss::Changed),
            }
        }
        if let Some(moved) = moved
            && moved.wanted()
        {
            return Err(Miss::Busy(id));
        }
        if !source.dir().in_place(&self.tree).doing("verifying")? {
            return Err(Miss::Moved);
        }
        self.in_place(pair)
    }

    /// Verifies what the move went over, which stands at the source now, and renames it to the temporary name.
    fn tuck(&self, pair: &Pair, source: &Spot, old: &Displaced, over: Entry) -> Result<(), Miss> {
        self.step("move.over", &pair.at).doing("moving")?;
        let stands = |spot: &Spot| spot.id().doing("moving");
        if stands(source)? != Some(old.leaf.id()) {
            // As above: either another file stood at the target when they were exchanged, or one came to the source
            // since, where it stays.
            if old.leaf.was_last_at(&pair.target).doing("verifying")? {
                return Err(Miss::Changed);
            }
            return self.save(old);
        }
        old.unwritten(over)?;
        match commit::rename(source, &pair.temp) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.save(old),
            Err(error) => Err(placed(error, "moving")),
            Ok(()) if stands(&pair.temp)? == Some(old.leaf.id()) => Ok(()),
            // It came to the source this very moment.
            Ok(()) => {
                commit::rename(&pair.temp, source).or_else(gone).doing("moving")?;
                self.save(old)
            }
        }
    }

    /// Stores a file that another program has just taken the name from.
    fn save(&self, file: &Displaced) -> Result<(), Miss> {
        let kept = self.keep(&file.leaf);
        kept.map(drop).map_err(|error| Miss::Io {
            doing: "keeping what was moved to",
            error: io::Error::other(error.to_string()),
        })
    }

    /// Takes a move back: what was moved goes where it came from, and what it displaced comes up again. The move's own
    /// file is told by its inode: whoever writes into it meanwhile writes into the same file at either place.
    pub(super) fn back_move(&self, pair: &Pair, source: &Spot, moved: FileId) -> Result<Top, Miss> {
        self.step("back.move", &pair.at).stuck("taking back")?;
        if pair.target.id().stuck("looking at what was moved to")? != Some(moved) {
            // Replaced or removed by another program since: that stays, and what was displaced is kept.
            return Ok(Top::Foreign);
        }
        let over = pair.temp.id().stuck("looking beside")?.is_some();
        if over {
            // The old target first, so that one exchange brings both home.
            self.step("back.over", &pair.at).stuck("taking back")?;
            match commit::rename(&pair.temp, source) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return self.newcomer(pair),
                Err(error) => return Err(Miss::Stuck { doing: "taking back", error }),
            }
        }
        self.back_moved(pair, source, moved, over)
    }

    /// The same once what was displaced, if anything was (`over`), stands at the source.
    pub(super) fn back_moved(
        &self,
        pair: &Pair,
        source: &Spot,
        moved: FileId,
        over: bool,
    ) -> Result<Top, Miss> {
        self.step("back.rename", &pair.at).stuck("taking back")?;
        let back = if over { commit::exchange } else { commit::rename };
        match back(&pair.target, source) {
            Ok(()) => self.returned(pair, source, moved),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.newcomer(pair),
            // One end is gone, which was a foreign hand.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Top::Foreign),
            Err(error) => Err(Miss::Stuck { doing: "taking back", error }),
        }
    }

    /// Whether what came back is what was moved; if another file was put over it in the last moment, that one goes back.
    fn returned(&self, pair: &Pair, source: &Spot, moved: FileId) -> Result<Top, Miss> {
        if source.id().stuck("looking at what was moved back to")? == Some(moved) {
            return Ok(Top::Restored);
        }
        match commit::exchange(&pair.target, source) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                commit::rename(source, &pair.target).or_else(gone).stuck("taking back")?;
            }
            Err(error) => return Err(Miss::Stuck { doing: "taking back", error }),
        }
        Ok(Top::Foreign)
    }

    /// Another program put something where the moved file came from: both stay where they are.
    fn newcomer(&self, pair: &Pair) -> Result<Top, Miss> {
        self.question(pair, "it could not be moved back: something else stands where it came from");
        Ok(Top::Foreign)
    }
}

/// A name that came or went meanwhile was a foreign hand's doing.
fn gone(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(error),
    }
}
