//! What is kept and for how long (R23): a change is kept whole or dropped whole, oldest first, and what is pinned is
//! neither dropped nor counted.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cotenant_model::{Change, ChangeId, Digest, Millis, Outcome};
use rusqlite::{Connection, params};

use crate::writer::Job;
use crate::{IDEMPOTENCY_MS, Ledger, LedgerError, rows};

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
    let oldest = Millis(now.0.saturating_sub(days.saturating_mul(DAY_MS)));
    let sizes = sizes(ledger)?;
    let mut stock = ledger.read(Stock::load)?;
    stock.weigh(&sizes);
    let expired = stock.expire(oldest, megabytes.saturating_mul(MEGABYTE));
    let mut report = Report { expired: expired.len() as u64, kept: stock.counted, ..Report::default() };
    let answers_before = Millis(now.0.saturating_sub(IDEMPOTENCY_MS));
    ledger.run(Job::Expire { changes: expired, now, answers_before })?;

    let named = ledger.read(named)?;
    let day_ago = Millis(now.0.saturating_sub(DAY_MS));
    let (mut small, mut idle) = (Vec::new(), Vec::new());
    for (digest, size) in &sizes {
        // What no change ever named may belong to a plan that is being made.
        let young = !named.known.contains(digest) && size.since.unwrap_or(now) > day_ago;
        if young && size.since.is_none() {
            idle.push(*digest);
        }
        if young || named.needed.contains(digest) {
            continue;
        }
        // The table stays locked, so that a pin comes either before the look or after the removal.
        let pins = ledger.inner.pins.table();
        if pins.contains_key(digest) {
            continue;
        }
        if size.filed {
            ledger.inner.blobs.remove(*digest)?;
            report.images += 1;
            report.bytes += size.bytes;
        }
        if size.inline {
            small.push(*digest);
        }
    }
    let pins = ledger.inner.pins.table();
    small.retain(|digest| !pins.contains_key(digest));
    report.images += small.len() as u64;
    report.bytes += small.iter().filter_map(|digest| sizes.get(digest)).map(|size| size.bytes).sum::<u64>();
    ledger.run(Job::Forget { images: small, idle, now })?;
    Ok(report)
}

/// A stored image.
struct Size {
    bytes: u64,
    filed: bool,
    inline: bool,
    /// When it came, or when retention first found that nothing names it.
    since: Option<Millis>,
}

fn sizes(ledger: &Ledger) -> Result<HashMap<Digest, Size>, LedgerError> {
    let mut sizes: HashMap<Digest, Size> = ledger.read(|conn| {
        conn.prepare("SELECT digest, length(bytes), idle FROM image WHERE bytes IS NOT NULL")?
            .query_map([], |row| {
                let bytes = row.get::<_, i64>(1)?.cast_unsigned();
                let since = row.get::<_, Option<i64>>(2)?.map(|time| Millis(time.cast_unsigned()));
                Ok((rows::digest(row, 0)?, Size { bytes, filed: false, inline: true, since }))
            })?
            .collect()
    })?;
    for stored in ledger.inner.blobs.list()? {
        let since = Some(stored.since);
        let size =
            sizes.entry(stored.digest).or_insert(Size { bytes: 0, filed: false, inline: false, since });
        size.bytes = stored.bytes;
        size.filed = true;
    }
    Ok(sizes)
}

/// The changes that could be dropped, and the images they hold.
struct Stock {
    /// Oldest first: id, time, images.
    changes: Vec<(ChangeId, Millis, Vec<Digest>)>,
    /// Images that do not count: a change that may not be dropped names them.
    pinned: HashSet<Digest>,
    /// How many droppable changes name an image.
    uses: HashMap<Digest, usize>,
    weights: HashMap<Digest, u64>,
    /// Bytes of the images that count.
    counted: u64,
}

impl Stock {
    fn load(conn: &Connection) -> Sql<Stock> {
        let stands = [rows::outcome(Outcome::Sealed), rows::outcome(Outcome::Overtaken)];
        let pinned: HashSet<i64> = conn
            .prepare(
                "SELECT max(f.change) FROM file f JOIN change c ON c.id = f.change WHERE c.outcome IN (?1, ?2) \
                 GROUP BY f.path UNION SELECT change FROM answer WHERE change IS NOT NULL",
            )?
            .query_map(stands, |row| row.get(0))?
            .collect::<Sql<_>>()?;
        let mut stock = Stock {
            changes: Vec::new(),
            pinned: HashSet::new(),
            uses: HashMap::new(),
            weights: HashMap::new(),
            counted: 0,
        };
        let mut files = conn.prepare(
            "SELECT i.digest FROM file f JOIN image i ON i.id IN (f.pre, f.post) WHERE f.change = ?1",
        )?;
        let mut changes = conn.prepare("SELECT id, time FROM change WHERE expired IS NULL ORDER BY id")?;
        let mut rows = changes.query([])?;
        while let Some(row) = rows.next()? {
            let (id, time): (i64, i64) = (row.get(0)?, row.get(1)?);
            let images: Vec<Digest> =
                files.query_map([id], |row| rows::digest(row, 0))?.collect::<Sql<_>>()?;
            if pinned.contains(&id) {
                stock.pinned.extend(images);
            } else {
                stock.changes.push((ChangeId(id.cast_unsigned()), Millis(time.cast_unsigned()), images));
            }
        }
        Ok(stock)
    }

    fn weigh(&mut self, sizes: &HashMap<Digest, Size>) {
        for digest in self.changes.iter().flat_map(|(_, _, images)| images) {
            *self.uses.entry(*digest).or_insert(0) += 1;
        }
        for digest in self.uses.keys().filter(|digest| !self.pinned.contains(*digest)) {
            if let Some(size) = sizes.get(digest) {
                self.weights.insert(*digest, size.bytes);
                self.counted += size.bytes;
            }
        }
    }

    /// The changes to be dropped, oldest first: all from before `oldest`, then until at most `limit` bytes count.
    fn expire(&mut self, oldest: Millis, limit: u64) -> Vec<ChangeId> {
        let mut expired = Vec::new();
        for (id, time, images) in &self.changes {
            if *time >= oldest && self.counted <= limit {
                continue;
            }
            expired.push(*id);
            for digest in images {
                let Some(uses) = self.uses.get_mut(digest) else { continue };
                *uses -= 1;
                if *uses == 0 {
                    self.counted -= self.weights.remove(digest).unwrap_or(0);
                }
            }
        }
        expired
    }
}

/// Images by what names them.
struct Named {
    /// By a change that is kept or an unsealed intent.
    needed: HashSet<Digest>,
    /// By any change, dropped ones too.
    known: HashSet<Digest>,
}

fn named(conn: &Connection) -> Sql<Named> {
    let collect = |sql: &str| -> Sql<HashSet<Digest>> {
        conn.prepare(sql)?.query_map([], |row| rows::digest(row, 0))?.collect()
    };
    Ok(Named {
        needed: collect(
            "SELECT i.digest FROM change c JOIN file f ON f.change = c.id JOIN image i ON i.id IN (f.pre, f.post) \
             WHERE c.expired IS NULL \
             UNION SELECT pre FROM intent_path WHERE pre IS NOT NULL \
             UNION SELECT post FROM intent_path WHERE post IS NOT NULL \
             UNION SELECT pre FROM intent_file WHERE pre IS NOT NULL \
             UNION SELECT post FROM intent_file WHERE post IS NOT NULL",
        )?,
        known: collect("SELECT DISTINCT i.digest FROM file f JOIN image i ON i.id IN (f.pre, f.post)")?,
    })
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
