//! The trash: a view of history. An item is an image that stood at a path until a change of which it was the point to
//! take it away.
//!
//! What counts, decided when a change is sealed, by what happened at the path:
//!
//! | `how` | is | when |
//! |---|---|---|
//! | 0 | deleted | the file or link went, whoever deleted it; not where the same change made another path of it (a rename) |
//! | 1 | overwritten | `write_file` or `restore_file` put other bytes there |
//! | 2 | replaced | a file became a link, or a link a file |
//! | 3 | moved over | a move put another file or link there |
//!
//! Everything else that changes bytes (an edit, a patch, a replacement, an undo) is history: it is taken back by `undo`.

use cotenant_model::{
    Agent, ChangeId, ChangeKind, ChangeOp, Digest, FolderId, Millis, Outcome, RelPath, TrashId, WsPath,
};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

use crate::history::{Since, below};
use crate::{Ledger, LedgerError, delta, rows};

type Sql<T> = rusqlite::Result<T>;

/// How something came into the trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Displaced {
    /// It was deleted.
    Deleted,
    /// A tool that writes whole files wrote over it.
    Overwritten,
    /// It became a thing of another kind.
    Replaced,
    /// Another file was moved to its path.
    MovedOver,
}

/// Numbers in the database. They are part of the format: never renumber.
const HOW: [Displaced; 4] =
    [Displaced::Deleted, Displaced::Overwritten, Displaced::Replaced, Displaced::MovedOver];

impl Displaced {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Displaced::Deleted => "deleted",
            Displaced::Overwritten => "overwritten",
            Displaced::Replaced => "replaced",
            Displaced::MovedOver => "moved_over",
        }
    }
}

/// Something that can be restored, or could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrashItem {
    /// Its number, rising in the order of sealing.
    pub id: TrashId,
    /// The change that took it away.
    pub change: ChangeId,
    /// Where it stood.
    pub at: WsPath,
    /// Its image: a file's bytes, or the text of a link's target.
    pub digest: Digest,
    /// Bytes of the image; `None` where the store does not have it.
    pub size: Option<u64>,
    /// `st_mode` it had: the kind and the permission bits.
    pub mode: u32,
    /// How it went.
    pub how: Displaced,
    /// When, wall clock.
    pub time: Millis,
    /// Which agent took it away; `None` for a human's or an unknown hand.
    pub by: Option<Agent>,
    /// Whether the change was ours or found.
    pub kind: ChangeKind,
    /// The tool; empty for an observed change.
    pub tool: Agent,
    /// When retention removed it, if it did.
    pub expired: Option<Millis>,
}

/// Which items to list.
#[derive(Clone, Debug, Default)]
pub struct TrashQuery {
    /// Of this folder; `None` for all.
    pub folder: Option<FolderId>,
    /// From this path or below it.
    pub path: Option<WsPath>,
    /// Taken away from here on.
    pub since: Option<Since>,
    /// Older than this item, to go on with a listing.
    pub before: Option<TrashId>,
    /// Also those that retention removed.
    pub expired: bool,
    /// At most so many; 0 for no limit.
    pub limit: usize,
}

/// The columns of an item, in the order [`item`] reads them.
const ITEM: &str = "SELECT t.id, t.change, p.folder, p.bytes, i.digest, length(i.bytes), i.base IS NOT NULL, \
                    substr(i.bytes, 1, 10), f.mode, t.how, c.time, c.agent, c.kind, c.tool, c.expired FROM trash t \
                    CROSS JOIN change c ON c.id = t.change CROSS JOIN file f ON f.change = t.change AND f.seq = t.seq \
                    CROSS JOIN path p ON p.id = t.path CROSS JOIN image i ON i.id = f.pre";

impl Ledger {
    /// What is in the trash, newest first.
    pub fn trash(&self, query: &TrashQuery) -> Result<Vec<TrashItem>, LedgerError> {
        self.settle();
        let items = self.read(|conn| list(conn, query))?;
        Ok(items.into_iter().map(|item| self.sized(item)).collect())
    }

    /// An item, expired or not; `None` where there never was one of that number.
    pub fn trash_item(&self, id: TrashId) -> Result<Option<TrashItem>, LedgerError> {
        self.settle();
        let found = self.read(|conn| {
            let sql = format!("{ITEM} WHERE t.id = ?1");
            conn.prepare_cached(&sql)?.query_map([id.0.cast_signed()], item)?.next().transpose()
        })?;
        Ok(found.map(|item| self.sized(item)))
    }

    /// Adds the size of what is a file of its own.
    fn sized(&self, mut item: TrashItem) -> TrashItem {
        item.size = item.size.or_else(|| self.inner.blobs.size(item.digest));
        item
    }
}

fn list(conn: &Connection, query: &TrashQuery) -> Sql<Vec<TrashItem>> {
    let mut values: Vec<Value> = Vec::new();
    let mut wanted = String::new();
    let mut want = |sql: &str, more: &[Value]| {
        // Each `?` stands for the next value.
        let mut parts = sql.split('?');
        wanted.push_str(parts.next().unwrap_or_default());
        for (value, part) in more.iter().zip(parts) {
            values.push(value.clone());
            wanted.push_str(&format!("?{}{part}", values.len()));
        }
    };
    if let Some(folder) = query.folder {
        want(" AND p.folder = ?", &[folder.0.into()]);
    }
    match &query.path {
        Some(path) if path.path == RelPath::root() => want(" AND p.folder = ?", &[path.folder.0.into()]),
        Some(path) => {
            let folder = Value::from(path.folder.0);
            let [exact, from, to] = below(path);
            want(
                " AND t.path IN (SELECT id FROM path WHERE folder = ? AND bytes = ? \
                 UNION ALL SELECT id FROM path WHERE folder = ? AND bytes > ? AND bytes < ?)",
                &[folder.clone(), exact, folder, from, to],
            );
        }
        None => {}
    }
    match query.since {
        None => {}
        Some(Since::Change(id)) => want(" AND t.change > ?", &[id.0.cast_signed().into()]),
        Some(Since::Time(time)) => want(" AND c.time >= ?", &[time.0.cast_signed().into()]),
    }
    if let Some(before) = query.before {
        want(" AND t.id < ?", &[before.0.cast_signed().into()]);
    }
    if !query.expired {
        want(" AND c.expired IS NULL", &[]);
    }
    let limit = if query.limit == 0 { i64::MAX } else { i64::try_from(query.limit).unwrap_or(i64::MAX) };
    want(" ORDER BY t.id DESC LIMIT ?", &[limit.into()]);
    conn.prepare_cached(&format!("{ITEM} WHERE 1{wanted}"))?
        .query_map(params_from_iter(values), item)?
        .collect()
}

fn item(row: &Row<'_>) -> Sql<TrashItem> {
    let length: Option<i64> = row.get(5)?;
    let size = if row.get(6)? {
        row.get_ref(7)?.as_blob_or_null()?.and_then(delta::length)
    } else {
        length.map(i64::cast_unsigned)
    };
    Ok(TrashItem {
        id: TrashId(rows::unsigned(row, 0)?),
        change: ChangeId(rows::unsigned(row, 1)?),
        at: rows::path(row, 2)?,
        digest: rows::digest(row, 4)?,
        size,
        mode: row.get(8)?,
        how: rows::value(&HOW, row, 9)?,
        time: Millis(rows::unsigned(row, 10)?),
        by: row.get(11)?,
        kind: rows::value(&rows::KINDS, row, 12)?,
        tool: row.get(13)?,
        expired: row.get::<_, Option<i64>>(14)?.map(|time| Millis(time.cast_unsigned())),
    })
}

/// What a change took away, of which [`record`] makes rows.
pub(crate) const RECORD: &str = "INSERT INTO trash (change, seq, path, how) SELECT change, seq, path, how FROM ( \
             SELECT f.change, f.seq, f.path, CASE \
                 WHEN f.op = ?4 AND NOT EXISTS \
                     (SELECT 1 FROM file g WHERE g.origin = f.path AND g.change = f.change) THEN 0 \
                 WHEN f.op = ?5 AND (f.mode & 61440) <> (f.post_mode & 61440) AND f.post_mode <> 0 \
                     AND (f.mode & 61440) <> 0 THEN 2 \
                 WHEN f.op = ?5 AND c.tool IN ('write_file', 'restore_file') THEN 1 \
                 WHEN f.op = ?6 THEN 3 END AS how \
             FROM file f JOIN change c ON c.id = f.change \
             WHERE f.change = ?1 AND f.pre IS NOT NULL AND c.outcome IN (?2, ?3)) \
         WHERE how IS NOT NULL ORDER BY seq";

/// Puts what a sealed change took away into the trash, in the writing thread.
pub(crate) fn record(conn: &Connection, change: i64) -> Sql<()> {
    conn.prepare_cached(RECORD)?.execute(params![
        change,
        rows::outcome(Outcome::Sealed),
        rows::outcome(Outcome::Overtaken),
        rows::op(ChangeOp::Delete),
        rows::op(ChangeOp::Edit),
        rows::op(ChangeOp::Move),
    ])?;
    Ok(())
}
