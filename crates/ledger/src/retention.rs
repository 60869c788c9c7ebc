//! What is kept and for how long (R23): a change is kept whole or dropped whole, oldest first, and what is pinned is
//! neither dropped nor counted.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cotenant_model::{Change, ChangeId, Digest, Millis, Outcome};
use rusqlite::{Connection, params};

use crate::blobs::Stored;
use crate::writer::Job;
use crate::{IDEMPOTENCY_MS, Ledger, LedgerError, rows, schema};

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

/// Drops changes older than `days`, then the oldest until what counts is at most `megabytes` (10^6 bytes). First they
/// are marked, synced, then their images are removed; also those that nothing names, a day after they came.
pub fn prune(ledger: &Ledger, now: Millis, days: u64, megabytes: u64) -> Result<Report, LedgerError> {
    ledger.settle();
    // A connection of its own, so that the memory this takes is given back.
    let conn = schema::connect(&ledger.inner.shared.dir, CACHE)?;
    let oldest = Millis(now.0.saturating_sub(days.saturating_mul(DAY_MS)));
    let files = ledger.inner.blobs.list()?;
    let limit = megabytes.saturating_mul(MEGABYTE);
    // One view for both looks, or a change that lands between them would not be known as its path's newest.
    let view = conn.unchecked_transaction()?;
    let stock = Stock::load(&conn, &files)?;
    let mut report = Report { kept: stock.counted, ..Report::default() };
    let mut expired = Vec::new();
    if stock.counted > limit || stock.oldest < oldest {
        (expired, report.kept) = stock.expire(&conn, oldest, limit)?;
    }
    view.finish()?;
    report.expired = expired.len() as u64;
    let answers_before = Millis(now.0.saturating_sub(IDEMPOTENCY_MS));
    ledger.run(Job::Expire { changes: expired, now, answers_before })?;

    conn.execute_batch(NAMED)?;
    remove_files(ledger, &conn, &files, now, &mut report)?;
    remove_small(ledger, &conn, now, &mut report)?;
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
        if named == Some(true) || (named.is_none() && now.since(file.since) < DAY_MS) {
            continue;
        }
        // The table stays locked, so that a pin comes either before the look or after the removal.
        let pins = ledger.inner.pins.table();
        if !pins.contains_key(&file.digest) {
            ledger.inner.blobs.remove(file.digest)?;
            report.images += 1;
            report.bytes += file.bytes;
        }
    }
    Ok(())
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
        if pins.contains_key(&digest) {
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

/// Per image that a change names: whether a change that is kept names it; and the images of unsealed intents.
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
";

/// What the changes that may be dropped hold. Images by their number in the database.
struct Stock {
    /// Changes that may not be dropped: the newest of each path, and those behind an idempotency key.
    pinned: HashSet<i64>,
    /// Images that count, with their bytes and how often droppable changes name them.
    images: HashMap<i64, (u64, usize)>,
    /// Bytes of all of those.
    counted: u64,
    /// When the oldest droppable change was made.
    oldest: Millis,
}

/// The changes that are kept so far, oldest first, one row per path.
const KEPT: &str = "SELECT c.id, c.time, f.pre, f.post FROM change c LEFT JOIN file f ON f.change = c.id \
                    WHERE c.expired IS NULL ORDER BY c.id";

impl Stock {
    fn load(conn: &Connection, files: &[Stored]) -> Sql<Stock> {
        let pinned: HashSet<i64> = conn
            .prepare(
                "SELECT max(f.change) FROM file f CROSS JOIN change c ON c.id = f.change WHERE c.outcome IN (?1, ?2) \
                 GROUP BY f.path UNION SELECT change FROM answer WHERE change IS NOT NULL",
            )?
            .query_map([rows::outcome(Outcome::Sealed), rows::outcome(Outcome::Overtaken)], |row| row.get(0))?
            .collect::<Sql<_>>()?;
        let mut images: HashMap<i64, (u64, usize)> = HashMap::new();
        let mut held = HashSet::new();
        let mut oldest = Millis(u64::MAX);
        let mut kept = conn.prepare(KEPT)?;
        let mut found = kept.query([])?;
        while let Some(row) = found.next()? {
            let named = row.get::<_, Option<i64>>(2)?.into_iter().chain(row.get::<_, Option<i64>>(3)?);
            if pinned.contains(&row.get(0)?) {
                held.extend(named);
                continue;
            }
            oldest = oldest.min(Millis(row.get::<_, i64>(1)?.cast_unsigned()));
            named.for_each(|image| images.entry(image).or_default().1 += 1);
        }
        images.retain(|image, _| !held.contains(image));
        let mut stock = Stock { pinned, images, counted: 0, oldest };
        stock.weigh(conn, files)?;
        Ok(stock)
    }

    fn weigh(&mut self, conn: &Connection, files: &[Stored]) -> Sql<()> {
        let mut small = conn.prepare("SELECT id, length(bytes) FROM image WHERE bytes IS NOT NULL")?;
        let mut found = small.query([])?;
        while let Some(row) = found.next()? {
            self.weigh_one(row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned());
        }
        let mut number = conn.prepare("SELECT id FROM image WHERE digest = ?1")?;
        for file in files {
            for id in number.query_map([file.digest.as_bytes().as_slice()], |row| row.get(0))? {
                self.weigh_one(id?, file.bytes);
            }
        }
        Ok(())
    }

    fn weigh_one(&mut self, image: i64, bytes: u64) {
        if let Some((weight, _)) = self.images.get_mut(&image) {
            self.counted += bytes;
            *weight += bytes;
        }
    }

    /// The changes to be dropped, oldest first: all from before `oldest`, then until at most `limit` bytes count; and
    /// the bytes that count then.
    fn expire(mut self, conn: &Connection, oldest: Millis, limit: u64) -> Sql<(Vec<ChangeId>, u64)> {
        let mut expired: Vec<ChangeId> = Vec::new();
        let mut kept = conn.prepare(KEPT)?;
        let mut found = kept.query([])?;
        while let Some(row) = found.next()? {
            let id: i64 = row.get(0)?;
            let change = ChangeId(id.cast_unsigned());
            if expired.last() != Some(&change) {
                let time = Millis(row.get::<_, i64>(1)?.cast_unsigned());
                if self.pinned.contains(&id) || (time >= oldest && self.counted <= limit) {
                    continue;
                }
                expired.push(change);
            }
            for image in row.get::<_, Option<i64>>(2)?.into_iter().chain(row.get::<_, Option<i64>>(3)?) {
                if let Some((weight, uses)) = self.images.get_mut(&image) {
                    *uses = uses.saturating_sub(1);
                    if *uses == 0 {
                        self.counted -= std::mem::take(weight);
                    }
                }
            }
        }
        Ok((expired, self.counted))
    }
}

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
    let mut forget = conn.prepare_cached("UPDATE image SET bytes = NULL, idle = NULL WHERE digest = ?1")?;
    for digest in images {
        forget.execute([digest.as_bytes().as_slice()])?;
    }
    let mut mark = conn.prepare_cached("UPDATE image SET idle = ?2 WHERE digest = ?1 AND idle IS NULL")?;
    for digest in idle {
        mark.execute(params![digest.as_bytes().as_slice(), now.0.cast_signed()])?;
    }
    Ok(())
}
