//! Large images that differ little from the one before them, kept as deltas: an edit of ten bytes must not cost the
//! whole file for ever.
//!
//! Packing goes along history, behind it, one image at a time. An image that a change left is kept as a delta on the
//! one that the change replaced: in its row, with the number of its base, instead of a file. The steps, of which each
//! may be the last one before the process dies:
//!
//! 1. The base is read and verified, the delta made, and the image made of both compared with what it should be.
//! 2. The base's file is written anew, if nothing stands on it yet: one that was renamed into the store may still be
//!    open for somebody outside.
//! 3. The row is written, synced.
//! 4. The image's file goes. Where it is left behind, retention removes it.
//!
//! What something stands on is never packed itself, and so no circle can come to be and no chain can grow from below.

use cotenant_model::{Digest, Outcome};
use rusqlite::{Connection, OptionalExtension, params};

use crate::writer::Job;
use crate::{Ledger, LedgerError, delta, rows};

type Sql<T> = rusqlite::Result<T>;

/// Images from this size on are worth it, in bytes.
pub(crate) const SMALLEST: u64 = 256_000;
/// Above this size they would take too much memory, in bytes: both images and the delta are there at once.
pub(crate) const LARGEST: u64 = 16 << 20;
/// Deltas that are read for one image at most.
pub(crate) const DEPTH: usize = 8;
/// A delta takes at most this share of its image, and at most so many bytes.
const WORTH: usize = 4;
const DELTA_MAX: usize = 512 * 1024;

/// So many changes are looked at again at a start.
const AGAIN: i64 = 64;

/// The counter of the last change that packing is through with.
const COUNTER: &str = "packed";

/// How far packing came: the change, and the file of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    change: i64,
    seq: i64,
    /// All changes up to this one are through.
    stored: i64,
}

impl Cursor {
    /// Where a process begins, of which an earlier one got through with `stored`. Ids are given before they are used, so
    /// that a few may have been sealed behind the back of packing: the last ones are looked at again.
    fn begin(stored: i64) -> Cursor {
        Cursor { stored, ..Cursor::behind(stored - AGAIN) }
    }

    /// Behind all files of a change.
    fn behind(change: i64) -> Cursor {
        Cursor { change, seq: i64::MAX, stored: change }
    }
}

/// An image and the one that it replaced.
struct Pair {
    at: Cursor,
    before: Digest,
    after: Digest,
}

/// An image as the database has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// Its bytes.
    Whole(Vec<u8>),
    /// What it has other than its base.
    Delta { delta: Vec<u8>, base: Digest },
}

impl Ledger {
    /// Packs the next image that may be worth it; `false` where history has no further one. The caller decides when,
    /// and pauses in between. Does nothing while retention is at work.
    pub(crate) fn pack_next(&self) -> Result<bool, LedgerError> {
        self.trusted()?;
        let Some(mut upkeep) = self.inner.try_upkeep() else { return Ok(true) };
        let cursor = match upkeep.packed {
            Some(cursor) => cursor,
            None => Cursor::begin(self.read(|conn| rows::counter(conn, COUNTER))?),
        };
        let (pair, end) = self.read(|conn| {
            let end = sealed_up_to(conn)?;
            Ok((next_pair(conn, cursor, end)?, end))
        })?;
        let next = match &pair {
            Some(pair) => {
                match self.pack(pair.before, pair.after) {
                    // One file that cannot be read must not keep all others from it.
                    Ok(()) | Err(LedgerError::Io { .. }) => {}
                    failed => failed?,
                }
                Cursor { stored: cursor.stored, ..pair.at }
            }
            None => Cursor::behind(end.max(cursor.stored)),
        };
        if next.stored > cursor.stored {
            // Lost in a crash, it costs a second look.
            self.tell(Job::Counter { kind: COUNTER.into(), value: next.stored.cast_unsigned() });
        }
        upkeep.packed = Some(next);
        Ok(pair.is_some())
    }

    /// Keeps `image` as a delta on `before`, or on what that stands on in the end, if it is worth it.
    fn pack(&self, before: Digest, image: Digest) -> Result<(), LedgerError> {
        let worth = |size: u64| (SMALLEST..=LARGEST).contains(&size);
        if !self.inner.blobs.size(image).is_some_and(worth) {
            return Ok(());
        }
        let (stood_on, chain) = self.read(|conn| Ok((is_base(conn, image)?, chain(conn, before)?)))?;
        let base = if chain.len() < DEPTH { before } else { chain.last().copied().unwrap_or(before) };
        if stood_on || base == image {
            return Ok(());
        }
        let (Some(old), Some(new)) = (sound(self.blob(base))?, sound(self.inner.blobs.read(image))?) else {
            return Ok(());
        };
        if old.len() as u64 > LARGEST {
            return Ok(());
        }
        let Some(delta) = delta::encode(&old, &new, DELTA_MAX.min(new.len() / WORTH)) else { return Ok(()) };
        if delta::decode(&old, &delta, new.len()).as_deref() != Some(&*new) {
            return Ok(());
        }
        if self.read(|conn| Ok(!is_base(conn, base)? && rows::inline_image(conn, base)?.is_none()))? {
            self.watched(self.inner.blobs.renew(base, &old))?;
        }
        match self.run(Job::Pack { image, base, delta }) {
            // The image stays as it is.
            Err(LedgerError::OutOfSpace) => return Ok(()),
            written => written?,
        }
        match self.inline(image)? {
            Some(Row::Delta { base: recorded, .. }) if recorded == base => self.inner.blobs.remove(image),
            _ => Ok(()),
        }
    }

    /// The image that a delta makes.
    pub(crate) fn unpack(&self, image: Digest, delta: Vec<u8>, base: Digest) -> Result<Vec<u8>, LedgerError> {
        let mut deltas = vec![delta];
        let mut at = base;
        let mut bytes = loop {
            match self.inline(at)? {
                Some(Row::Delta { delta, base }) if deltas.len() <= DEPTH => {
                    deltas.push(delta);
                    at = base;
                }
                Some(Row::Delta { .. }) => return Err(LedgerError::Corrupt(image)),
                Some(Row::Whole(bytes)) => break bytes,
                None => break self.inner.blobs.read(at)?.ok_or(LedgerError::Missing(at))?,
            }
        };
        for delta in deltas.iter().rev() {
            let most = usize::try_from(LARGEST).unwrap_or(usize::MAX);
            bytes = delta::decode(&bytes, delta, most).ok_or(LedgerError::Corrupt(image))?;
        }
        if Digest::of(&bytes) == image { Ok(bytes) } else { Err(LedgerError::Corrupt(image)) }
    }
}

/// What is damaged or gone is not packed, and nothing is packed on it.
fn sound(image: Result<Option<Vec<u8>>, LedgerError>) -> Result<Option<Vec<u8>>, LedgerError> {
    match image {
        Err(LedgerError::Corrupt(_) | LedgerError::Missing(_)) => Ok(None),
        other => other,
    }
}

/// The newest change with all before it ended.
fn sealed_up_to(conn: &Connection) -> Sql<i64> {
    conn.query_row(
        "SELECT ifnull((SELECT min(id) - 1 FROM intent), ifnull((SELECT max(id) FROM change), 0))",
        [],
        |row| row.get(0),
    )
}

/// The next file behind `cursor`, up to the change `end`, whose images are both files of their own.
fn next_pair(conn: &Connection, cursor: Cursor, end: i64) -> Sql<Option<Pair>> {
    conn.prepare_cached(
        "SELECT f.change, f.seq, a.digest, b.digest FROM file f CROSS JOIN image a ON a.id = f.pre \
         CROSS JOIN image b ON b.id = f.post CROSS JOIN change c ON c.id = f.change \
         WHERE (f.change, f.seq) > (?1, ?2) AND f.change <= ?3 AND b.bytes IS NULL AND a.id <> b.id \
         AND c.expired IS NULL AND c.outcome IN (?4, ?5) ORDER BY f.change, f.seq LIMIT 1",
    )?
    .query_row(
        params![
            cursor.change,
            cursor.seq,
            end,
            rows::outcome(Outcome::Sealed),
            rows::outcome(Outcome::Overtaken)
        ],
        |row| {
            let at = Cursor { change: row.get(0)?, seq: row.get(1)?, stored: 0 };
            Ok(Pair { at, before: rows::digest(row, 2)?, after: rows::digest(row, 3)? })
        },
    )
    .optional()
}

/// Whether an image stands on this one.
fn is_base(conn: &Connection, image: Digest) -> Sql<bool> {
    conn.prepare_cached("SELECT 1 FROM image WHERE base = (SELECT id FROM image WHERE digest = ?1)")?
        .exists([image.as_bytes().as_slice()])
}

/// Whether an image is kept as a delta.
pub(crate) fn is_packed(conn: &Connection, image: Digest) -> Sql<bool> {
    conn.prepare_cached("SELECT 1 FROM image WHERE digest = ?1 AND base IS NOT NULL")?
        .exists([image.as_bytes().as_slice()])
}

/// What an image stands on, the nearest first.
fn chain(conn: &Connection, image: Digest) -> Sql<Vec<Digest>> {
    conn.prepare_cached(
        "WITH RECURSIVE under(id, depth) AS ( \
             SELECT base, 1 FROM image WHERE digest = ?1 AND base IS NOT NULL \
             UNION ALL SELECT i.base, depth + 1 FROM under u JOIN image i ON i.id = u.id WHERE i.base IS NOT NULL \
             AND depth < 100) \
         SELECT i.digest FROM under u JOIN image i ON i.id = u.id ORDER BY depth",
    )?
    .query_map([image.as_bytes().as_slice()], |row| rows::digest(row, 0))?
    .collect()
}

/// The images that stand on one, at any height.
pub(crate) fn above(conn: &Connection, image: Digest) -> Sql<Vec<Digest>> {
    conn.prepare_cached(
        "WITH RECURSIVE above(id) AS (SELECT i.id FROM image b JOIN image i ON i.base = b.id WHERE b.digest = ?1 \
         UNION SELECT i.id FROM above a JOIN image i ON i.base = a.id) \
         SELECT i.digest FROM above a JOIN image i ON i.id = a.id",
    )?
    .query_map([image.as_bytes().as_slice()], |row| rows::digest(row, 0))?
    .collect()
}

/// Keeps an image as a delta, in the writing thread.
pub(crate) fn record(conn: &Connection, image: Digest, base: Digest, delta: &[u8]) -> Sql<()> {
    conn.prepare_cached(
        "UPDATE image SET bytes = ?3, base = (SELECT id FROM image WHERE digest = ?2) \
         WHERE digest = ?1 AND bytes IS NULL AND EXISTS (SELECT 1 FROM image WHERE digest = ?2)",
    )?
    .execute(params![image.as_bytes().as_slice(), base.as_bytes().as_slice(), delta])?;
    Ok(())
}
