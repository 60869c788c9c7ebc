//! Which changes retention drops (R23).
//!
//! A change belongs to the *trash* of a folder if all it did to bytes was to take them away (it has an item of `trash`
//! there, and neither an edit nor a deletion that is none). Every change, that one too, belongs to *history*. Trash and
//! history have limits of their own, an age and a size, and the trash of each folder has its own.
//!
//! Pinned are, whatever the limits say: the newest change of each path at which something stands (of a path that is
//! gone, its deletion is the trash's to keep), and what an idempotency key would answer with.
//!
//! Of an account that is over its size, first those changes go that alone hold more than a quarter of it, oldest first,
//! so that one installation of packages does not evict what many small changes left; then all others, oldest first. The
//! newest change of a folder's trash is neither counted nor dropped over the size, or else what was just deleted by
//! mistake would be the first to go.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use cotenant_model::{ChangeId, ChangeOp, Millis, Outcome};
use rusqlite::Connection;

use crate::blobs::Stored;
use crate::rows;

type Sql<T> = rusqlite::Result<T>;

/// What may be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// Nothing of before, wall clock.
    pub(crate) oldest: Millis,
    /// In images.
    pub(crate) bytes: u64,
}

/// The limits of both kinds of account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) history: Limit,
    pub(crate) trash: Limit,
}

/// A change that alone holds more than this part of an account goes first.
const SHARE: u64 = 4;

/// What is to be dropped.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    /// In order.
    pub(crate) changes: Vec<ChangeId>,
    /// Bytes of what may be dropped and is kept.
    pub(crate) kept: u64,
}

/// The changes that may be dropped, and what they hold. Images by their number in the database.
pub(crate) struct Stock {
    /// Oldest first.
    changes: Vec<Held>,
    /// The images that they name, one after the other.
    images: Vec<i64>,
    /// What each image takes.
    weights: HashMap<i64, u64>,
    /// What an image stands on.
    bases: HashMap<i64, i64>,
    /// Images of what is pinned, and what they stand on: they do not count.
    pinned: HashSet<i64>,
}

/// A change that may be dropped.
struct Held {
    id: i64,
    time: Millis,
    /// Its part of [`Stock::images`].
    images: Range<usize>,
}

impl Stock {
    /// Reads all there is; `files` are the images that are files.
    pub(crate) fn load(conn: &Connection, files: &[Stored]) -> Sql<Stock> {
        let pinned = pinned_changes(conn)?;
        let mut stock = Stock {
            changes: Vec::new(),
            images: Vec::new(),
            weights: weights(conn, files)?,
            bases: pairs(conn, "SELECT id, base FROM image WHERE base IS NOT NULL")?,
            pinned: HashSet::new(),
        };
        let mut kept = conn.prepare(
            "SELECT c.id, c.time, f.pre, f.post FROM change c LEFT JOIN file f ON f.change = c.id \
             WHERE c.expired IS NULL ORDER BY c.id",
        )?;
        let mut found = kept.query([])?;
        while let Some(row) = found.next()? {
            let (id, time) = (row.get(0)?, Millis(row.get::<_, i64>(1)?.cast_unsigned()));
            let named = row.get::<_, Option<i64>>(2)?.into_iter().chain(row.get::<_, Option<i64>>(3)?);
            if pinned.contains(&id) {
                named.for_each(|image| stock.pin(image));
                continue;
            }
            if stock.changes.last().is_none_or(|last| last.id != id) {
                let at = stock.images.len();
                stock.changes.push(Held { id, time, images: at..at });
            }
            stock.images.extend(named);
            if let Some(last) = stock.changes.last_mut() {
                last.images.end = stock.images.len();
            }
        }
        Ok(stock)
    }

    /// An image and all it stands on.
    fn chain(&self, image: i64) -> impl Iterator<Item = i64> {
        // What stands on others does so over a few steps; a damaged database must not make it endless.
        std::iter::successors(Some(image), |image| self.bases.get(image).copied()).take(100)
    }

    fn pin(&mut self, image: i64) {
        let chain: Vec<i64> = self.chain(image).collect();
        self.pinned.extend(chain);
    }

    /// Which changes go.
    pub(crate) fn dropped(&self, conn: &Connection, limits: Limits) -> Sql<Dropped> {
        let mut gone: HashSet<i64> = HashSet::new();
        for members in trash(conn)?.values() {
            let newest = members.iter().max();
            let trash = |held: &&Held| members.contains(&held.id);
            gone.extend(
                self.changes
                    .iter()
                    .filter(trash)
                    .filter(|held| held.time < limits.trash.oldest)
                    .map(|held| held.id),
            );
            let counted = self.changes.iter().filter(trash).filter(|held| Some(&held.id) != newest);
            Account::of(self, counted.filter(|held| !gone.contains(&held.id)).collect())
                .shrink(limits.trash.bytes, &mut gone);
        }
        let old = self.changes.iter().filter(|held| held.time < limits.history.oldest);
        gone.extend(old.map(|held| held.id));
        let mut history =
            Account::of(self, self.changes.iter().filter(|held| !gone.contains(&held.id)).collect());
        history.shrink(limits.history.bytes, &mut gone);
        let kept = history.counted;
        let mut changes: Vec<ChangeId> = gone.into_iter().map(|id| ChangeId(id.cast_unsigned())).collect();
        changes.sort_unstable();
        Ok(Dropped { changes, kept })
    }
}

/// Some of the changes, and what they hold together.
struct Account<'a> {
    stock: &'a Stock,
    members: Vec<&'a Held>,
    /// How often each image that counts is named by members, or stood on by such.
    uses: HashMap<i64, usize>,
    counted: u64,
}

impl<'a> Account<'a> {
    /// `members`: oldest first.
    fn of(stock: &'a Stock, members: Vec<&'a Held>) -> Account<'a> {
        let mut account = Account { stock, members, uses: HashMap::new(), counted: 0 };
        for at in 0..account.members.len() {
            for image in account.images(at) {
                *account.uses.entry(image).or_insert_with(|| {
                    account.counted += stock.weights.get(&image).copied().unwrap_or(0);
                    0
                }) += 1;
            }
        }
        account
    }

    /// What a member names and what that stands on, as often as it does.
    fn images(&self, member: usize) -> Vec<i64> {
        let range = self.members.get(member).map_or(0..0, |held| held.images.clone());
        let named = self.stock.images.get(range).unwrap_or_default();
        let all = named.iter().flat_map(|image| self.stock.chain(*image));
        all.filter(|image| !self.stock.pinned.contains(image)).collect()
    }

    /// What would be free without this member.
    fn alone(&self, member: usize) -> u64 {
        let mut own: HashMap<i64, usize> = HashMap::new();
        self.images(member).into_iter().for_each(|image| *own.entry(image).or_default() += 1);
        let only = own.into_iter().filter(|(image, times)| self.uses.get(image) == Some(times));
        only.filter_map(|(image, _)| self.stock.weights.get(&image)).sum()
    }

    /// Drops members until the rest takes at most `bytes`.
    fn shrink(&mut self, bytes: u64, gone: &mut HashSet<i64>) {
        if self.counted <= bytes {
            return;
        }
        let mut order: Vec<(bool, usize)> =
            (0..self.members.len()).map(|at| (self.alone(at) <= bytes / SHARE, at)).collect();
        // The heavy ones first, each oldest first.
        order.sort_unstable();
        for (_, member) in order {
            if self.counted <= bytes {
                break;
            }
            self.release(member);
            gone.extend(self.members.get(member).map(|held| held.id));
        }
    }

    fn release(&mut self, member: usize) {
        for image in self.images(member) {
            let Some(uses) = self.uses.get_mut(&image) else { continue };
            *uses = uses.saturating_sub(1);
            if *uses == 0 {
                self.counted -= self.stock.weights.get(&image).copied().unwrap_or(0);
            }
        }
    }
}

/// The changes that are kept whatever the limits say.
fn pinned_changes(conn: &Connection) -> Sql<HashSet<i64>> {
    conn.prepare(
        "SELECT newest FROM (SELECT f.path, max(f.change) AS newest, f.op FROM file f \
             CROSS JOIN change c ON c.id = f.change WHERE c.outcome IN (?1, ?2) GROUP BY f.path) n \
         WHERE n.op NOT IN (?3, ?4) AND NOT EXISTS ( \
             SELECT 1 FROM file m CROSS JOIN change c ON c.id = m.change \
             WHERE m.origin = n.path AND m.op = ?5 AND m.change > n.newest AND c.outcome IN (?1, ?2)) \
         UNION SELECT change FROM answer WHERE change IS NOT NULL",
    )?
    .query_map(
        [
            rows::outcome(Outcome::Sealed),
            rows::outcome(Outcome::Overtaken),
            rows::op(ChangeOp::Delete),
            rows::op(ChangeOp::RemoveDir),
            rows::op(ChangeOp::Move),
        ],
        |row| row.get(0),
    )?
    .collect()
}

/// The changes of each folder's trash, in the folders' order: a change of two folders that the first drops weighs nothing
/// in the second.
fn trash(conn: &Connection) -> Sql<BTreeMap<i64, HashSet<i64>>> {
    let mut folders: BTreeMap<i64, HashSet<i64>> = BTreeMap::new();
    let mut members = conn.prepare(
        "SELECT DISTINCT p.folder, t.change FROM trash t JOIN path p ON p.id = t.path WHERE t.change IN ( \
             SELECT c.id FROM (SELECT DISTINCT change AS id FROM trash) c WHERE NOT EXISTS ( \
                 SELECT 1 FROM file f WHERE f.change = c.id AND f.op IN (?1, ?2) \
                 AND NOT EXISTS (SELECT 1 FROM trash u WHERE u.change = f.change AND u.seq = f.seq)))",
    )?;
    let mut found = members.query([rows::op(ChangeOp::Edit), rows::op(ChangeOp::Delete)])?;
    while let Some(row) = found.next()? {
        folders.entry(row.get(0)?).or_default().insert(row.get(1)?);
    }
    Ok(folders)
}

/// What the images that are there take.
fn weights(conn: &Connection, files: &[Stored]) -> Sql<HashMap<i64, u64>> {
    let mut weights: HashMap<i64, u64> =
        pairs(conn, "SELECT id, length(bytes) FROM image WHERE bytes IS NOT NULL")?
            .into_iter()
            .map(|(id, bytes): (i64, i64)| (id, bytes.cast_unsigned()))
            .collect();
    let mut number = conn.prepare("SELECT id FROM image WHERE digest = ?1")?;
    for file in files {
        for id in number.query_map([file.digest.as_bytes().as_slice()], |row| row.get(0))? {
            *weights.entry(id?).or_default() += file.bytes;
        }
    }
    Ok(weights)
}

fn pairs(conn: &Connection, sql: &str) -> Sql<HashMap<i64, i64>> {
    conn.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
