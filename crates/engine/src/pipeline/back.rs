//! Taking a swap back so that whatever a foreign writer put there meanwhile ends on top (R4, R9).
//!
//! Nothing is unlinked here: what comes out waits at the temporary name until its image is in the ledger.

use std::io;

use cotenant_tree::commit::{self, FileId, Held};

use super::desk::{Desk, Ours, Pair};
use super::miss::{Doing, Miss};

/// What stands at the target after going back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Top {
    /// What stood there before the swap.
    Restored,
    /// Something that another program wrote after it, or nothing because another program removed it.
    Foreign,
}

/// After so many exchanges in a row that each met a newer file, a human is asked.
const ROUNDS: usize = 8;

impl Desk {
    /// Takes an exchange back. `ours` is the file that the exchange put at the target.
    pub(super) fn back_exchange(&self, pair: &Pair, ours: FileId) -> Result<Top, Miss> {
        let mut expected = Some(ours);
        // Open descriptors keep the inode numbers that are compared from being used again.
        let mut pinned = Vec::new();
        for round in 0..ROUNDS {
            let up = pair.temp.look().stuck("looking at what was displaced from")?;
            if !self.exchange_if_there(pair)? {
                return Ok(Top::Foreign);
            }
            if pair.temp.id().stuck("looking at what came back from")? == expected {
                return Ok(if round == 0 { Top::Restored } else { Top::Foreign });
            }
            // What came out is newer than what went up: it goes on top again, and what went up must come out.
            expected = up.id();
            pinned.push(up);
        }
        self.exchange_if_there(pair)?;
        self.question(
            pair,
            "it was replaced again and again while a change was taken back; the newest is on top",
        );
        Ok(Top::Foreign)
    }

    /// Exchanges the two names; false if one of them is gone, which was a foreign hand.
    fn exchange_if_there(&self, pair: &Pair) -> Result<bool, Miss> {
        self.step("back.exchange", &pair.at).stuck("taking back")?;
        match commit::exchange(&pair.target, &pair.temp) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Miss::Stuck { doing: "taking back", error }),
        }
    }

    /// Puts back what was renamed away to the temporary name: a deletion, or a directory's removal.
    pub(super) fn back_removal(&self, pair: &Pair) -> Result<Top, Miss> {
        self.step("back.rename", &pair.at).stuck("taking back")?;
        match commit::rename(&pair.temp, &pair.target) {
            Ok(()) => Ok(Top::Restored),
            // A newcomer stays; ours is kept in the ledger.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Top::Foreign),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Top::Foreign),
            Err(error) => Err(Miss::Stuck { doing: "taking back", error }),
        }
    }

    /// Takes a created file away again, if inode and digest are ours; anything else stays where it is.
    pub(super) fn back_creation(&self, pair: &Pair, ours: Ours) -> Result<Top, Miss> {
        self.away(pair, |desk| {
            let look = pair.temp.look().stuck("looking at what was created at")?;
            let same = look.id() == Some(ours.id);
            desk.step("back.digest", &pair.at).stuck("reading what was created at")?;
            Ok(same && look.entry().stuck("reading what was created at")? == Some(ours.entry))
        })
    }

    /// Takes a made directory away again, if it is `made` and nobody put anything into it.
    pub(super) fn back_directory(&self, pair: &Pair, made: &Held) -> Result<Top, Miss> {
        self.away(pair, |_| {
            let same = pair.temp.id().stuck("looking at the directory made at")? == Some(made.file_id());
            Ok(same && made.is_empty().stuck("listing the directory made at")?)
        })
    }

    /// Renames the target to the temporary name and asks `ours` there; what is not ours goes back.
    fn away(&self, pair: &Pair, ours: impl FnOnce(&Desk) -> Result<bool, Miss>) -> Result<Top, Miss> {
        self.step("back.away", &pair.at).stuck("taking back")?;
        match commit::rename(&pair.target, &pair.temp) {
            Ok(()) => {}
            // Removed by another program: nothing stood there before, and nothing does now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Top::Restored),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.question(pair, "its temporary name was taken by another program, so what was made could not be taken away");
                return Ok(Top::Foreign);
            }
            Err(error) => return Err(Miss::Stuck { doing: "taking back", error }),
        }
        if ours(self)? {
            return Ok(Top::Restored);
        }
        self.back_removal(pair)?;
        Ok(Top::Foreign)
    }
}
