//! What is kept and for how long (R23): a change is kept whole or dropped whole, and what is pinned is neither dropped
//! nor counted. Which changes go is decided in `stock`; here they go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cotenant_model::{Change, ChangeId, Digest, Millis};
use rusqlite::{Connection, params};

use crate::blobs::Stored;
use crate::stock::{Limit, Limits, Stock};
use crate::writer::Job;
use crate::{IDEMPOTENCY_MS, Ledger, LedgerError, pack, rows, schema};

type Sql<T> = rusqlite::Result<T>;

const DAY_MS: u64 = 24 * 3600 * 1000;
const MEGABYTE: u64 = 1_000_000;

/// Whether the images of a change are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restorable {
    /// Retention has not touched them.
    Yes,
    /// Retention removed them.
    Expired {
        /// When, wall clock.
        since: Millis,
    },
}

/// What retention did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Changes that became not restorable.
    pub expired: u64,
    /// Images removed.
    pub images: u64,
    /// Bytes of those images.
    pub bytes: u64,
    /// Bytes of the images still kept that count against the limit.
    pub kept: u64,
}

/// Images that retention must leave alone, with how often they are pinned.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<HashMap<Digest, usize>>);

impl Pins {
    fn table(&self) -> MutexGuard<'_, HashMap<Digest, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps images from retention until it is dropped.
#[derive(Debug)]
#[must_use = "the images are pinned only while the guard lives"]
pub struct PinGuard {
    pins: Arc<Pins>,
    digests: Vec<Digest>,
}

impl PinGuard {
    /// One more.
    pub(crate) fn add(&mut self, digest: Digest) {
        *self.pins.table().entry(digest).or_insert(0) += 1;
        self.digests.push(digest);
    }
}

impl Drop for PinGuard {
    fn drop(&mut self) {
        let mut table = self.pins.table();
        for digest in &self.digests {
            if let Some(count) = table.get_mut(digest) {
                *count -= 1;
                if *count == 0 {
                    table.remove(digest);
                }
            }
        }
    }
}

impl Ledger {
    /// Keeps images from retention until the guard is dropped: those of a plan that waits for a human, of a running
    /// undo, and those that an intent will rely on. Pinned first and found stored after, an image stays.
    pub fn pin(&self, digests: &[Digest]) -> PinGuard {
        let mut table = self.inner.pins.table();
        for digest in digests {
            *table.entry(*digest).or_insert(0) += 1;
        }
        drop(table);
        PinGuard { pins: Arc::clone(&self.inner.pins), digests: digests.to_vec() }
    }

    /// Whether retention has dropped a change.
    pub fn restorable(&self, change: &Change) -> Result<Restorable, LedgerError> {
        let expired: Option<Option<i64>> = self.read(|conn| {
            conn.prepare_cached("SELECT expired FROM change WHERE id = ?1")?
                .query_map([change.id.0.cast_signed()], |row| row.get(0))?
                .next()
                .transpose()
        })?;
        Ok(match expired.flatten() {
            Some(since) => Restorable::Expired { since: Millis(since.cast_unsigned()) },
            None => Restorable::Yes,
        })
    }
}

/// What is kept: for so many days, and then within so many megabytes (10^6 bytes), oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Days of history.
    pub days: u64,
    /// Megabytes of history, the trash included.
    pub megabytes: u64,
    /// Days of the trash.
    pub trash_days: u64,
    /// Megabytes of the trash of each folder.
    pub trash_megabytes: u64,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { days: 90, megabytes: 2048, trash_days: 30, trash_megabytes: 100 }
    }
}

impl Keep {
    /// What changes must not be older than, and what they may hold.
    fn limits(self, now: Millis) -> Limits {
        let limit = |days: u64, megabytes: u64| Limit {
            oldest: Millis(now.0.saturating_sub(days.saturating_mul(DAY_MS))),
            bytes: megabytes.saturating_mul(MEGABYTE),
        };
        Limits {
            history: limit(self.days, self.megabytes),
            trash: limit(self.trash_days, self.trash_megabytes),
        }
    }
}

/// Drops the changes that `keep` does not cover (`stock` says which). First they are marked, synced, then their images
/// are removed; also those that nothing names, a day after they came.
pub fn prune(ledger: &Ledger, now: Millis, keep: Keep) -> Result<Report, LedgerError> {
    ledger.settle();
    let _alone = ledger.inner.upkeep();
    // A connection of its own, so that the memory this takes is given back.
    let conn = schema::connect(&ledger.inner.shared.dir, CACHE)?;
    let files = ledger.inner.blobs.list()?;
    // One view for all looks, or a change that lands between them would not be known as its path's newest.
    let view = conn.unchecked_transaction()?;
    let dropped = Stock::load(&conn, &files)?.dropped(&conn, keep.limits(now))?;
    view.finish()?;
    let mut report =
        Report { expired: dropped.changes.len() as u64, kept: dropped.kept, ..Report::default() };
    let answers_before = Millis(now.0.saturating_sub(IDEMPOTENCY_MS));
    ledger.run(Job::Expire { changes: dropped.changes, now, answers_before })?;

    conn.execute_batch(NAMED)?;
    // What stands on others goes before them.
    remove_small(ledger, &conn, now, &mut report)?;
    remove_files(ledger, &conn, &files, now, &mut report)?;
    Ok(report)
}

/// Page cache in KiB.
const CACHE: u32 = 2048;

/// Removes the image files that nothing needs.
fn remove_files(
    ledger: &Ledger,
    conn: &Connection,
    files: &[Stored],
    now: Millis,
    report: &mut Report,
) -> Result<(), LedgerError> {
    let mut needed = conn.prepare(
        "SELECT needed FROM image i JOIN temp.named n ON n.image = i.id WHERE i.digest = ?1 \
         UNION ALL SELECT 1 FROM temp.intended WHERE digest = ?1 ORDER BY 1 DESC LIMIT 1",
    )?;
    for file in files {
        let named: Option<bool> =
            needed.query_map([file.digest.as_bytes().as_slice()], |row| row.get(0))?.next().transpose()?;
        // What no change ever named may belong to a plan that is being made.
        let kept = named == Some(true) || (named.is_none() && now.since(file.since) < DAY_MS);
        // A crash may leave the file of an image that was packed.
        if kept && !pack::is_packed(conn, file.digest)? {
            continue;
        }
        // The table stays locked, so that a pin comes either before the look or after the removal.
        let pins = ledger.inner.pins.table();
        if kept || !is_pinned(conn, &pins, file.digest)? {
            ledger.inner.blobs.remove(file.digest)?;
            report.images += 1;
            report.bytes += file.bytes;
        }
    }
    Ok(())
}

/// Whether an image, or one that stands on it, is pinned.
fn is_pinned(conn: &Connection, pins: &HashMap<Digest, usize>, image: Digest) -> Sql<bool> {
    if pins.is_empty() || pins.contains_key(&image) {
        return Ok(!pins.is_empty());
    }
    Ok(pack::above(conn, image)?.iter().any(|above| pins.contains_key(above)))
}

/// Removes the images in the database that nothing needs, or notes since when nothing names them.
fn remove_small(
    ledger: &Ledger,
    conn: &Connection,
    now: Millis,
    report: &mut Report,
) -> Result<(), LedgerError> {
    let (mut images, mut idle) = (Vec::new(), Vec::new());
    let mut unneeded = conn.prepare(
        "SELECT i.digest, length(i.bytes), i.idle, n.image IS NOT NULL FROM image i \
         LEFT JOIN temp.named n ON n.image = i.id WHERE i.bytes IS NOT NULL AND ifnull(n.needed, 0) = 0 \
         AND i.digest NOT IN (SELECT digest FROM temp.intended)",
    )?;
    let pins = ledger.inner.pins.table();
    let mut found = unneeded.query([])?;
    while let Some(row) = found.next()? {
        let digest = rows::digest(row, 0)?;
        let since: Option<i64> = row.get(2)?;
        let waits = since.is_none_or(|since| now.since(Millis(since.cast_unsigned())) < DAY_MS);
        if is_pinned(conn, &pins, digest)? {
            continue;
        }
        if row.get(3)? || !waits {
            images.push(digest);
            report.images += 1;
            report.bytes += row.get::<_, i64>(1)?.cast_unsigned();
        } else if since.is_none() {
            idle.push(digest);
        }
    }
    // Still under the lock of the pins, for the same reason.
    ledger.run(Job::Forget { images, idle, now })
}

/// Per image that a change names, or that one stands on that is needed: whether it is needed itself; and the images of
/// unsealed intents.
const NAMED: &str = "
    CREATE TEMP TABLE named (image INTEGER PRIMARY KEY, needed INTEGER NOT NULL);
    INSERT INTO temp.named SELECT image, max(kept) FROM (
        SELECT f.pre AS image, c.expired IS NULL AS kept FROM file f JOIN change c ON c.id = f.change
        UNION ALL SELECT f.post, c.expired IS NULL FROM file f JOIN change c ON c.id = f.change)
        WHERE image IS NOT NULL GROUP BY image;
    CREATE TEMP TABLE intended AS
        SELECT pre AS digest FROM intent_path WHERE pre IS NOT NULL AND intent IN (SELECT id FROM intent)
        UNION SELECT post FROM intent_path WHERE post IS NOT NULL AND intent IN (SELECT id FROM intent)
        UNION SELECT pre FROM intent_file WHERE pre IS NOT NULL
        UNION SELECT post FROM intent_file WHERE post IS NOT NULL;
    WITH RECURSIVE under(image) AS (
        SELECT i.base FROM image i WHERE i.base IS NOT NULL AND (
            i.id IN (SELECT image FROM temp.named WHERE needed) OR i.digest IN (SELECT digest FROM temp.intended))
        UNION SELECT i.base FROM under u JOIN image i ON i.id = u.image WHERE i.base IS NOT NULL)
    INSERT INTO temp.named SELECT image, 1 FROM under WHERE true
        ON CONFLICT (image) DO UPDATE SET needed = 1;
";

/// Marks changes as dropped, and forgets idempotency keys of before `answers_before`.
pub(crate) fn expire(
    conn: &Connection,
    changes: &[ChangeId],
    now: Millis,
    answers_before: Millis,
) -> Sql<()> {
    let mut mark = conn.prepare_cached("UPDATE change SET expired = ?2 WHERE id = ?1")?;
    for id in changes {
        mark.execute(params![id.0.cast_signed(), now.0.cast_signed()])?;
    }
    conn.prepare_cached("DELETE FROM answer WHERE time < ?1")?.execute([answers_before.0.cast_signed()])?;
    Ok(())
}

/// Removes the bytes of small images, and marks those that nothing names as idle from `now` on.
pub(crate) fn forget(conn: &Connection, images: &[Digest], idle: &[Digest], now: Millis) -> Sql<()> {
    let mut forget =
        conn.prepare_cached("UPDATE image SET bytes = NULL, base = NULL, idle = NULL WHERE digest = ?1")?;
    for digest in images {
        forget.execute([digest.as_bytes().as_slice()])?;
    }
    let mut mark = conn.prepare_cached("UPDATE image SET idle = ?2 WHERE digest = ?1 AND idle IS NULL")?;
    for digest in idle {
        mark.execute(params![digest.as_bytes().as_slice(), now.0.cast_signed()])?;
    }
    Ok(())
}
