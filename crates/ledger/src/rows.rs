//! Between the model's types and the rows of the database.

use std::collections::HashMap;
use std::sync::Arc;

use cotenant_model::{
    Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Digest, FolderId, Millis, Outcome, RelPath,
    SessionId, WsPath,
};
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Connection, Row, params};

use crate::pack::Row as ImageRow;
use crate::{Idempotency, Intent, IntentPath, ParentId, trash};

type Sql<T> = rusqlite::Result<T>;

/// Numbers in the database. They are part of the format: never renumber.
pub(crate) const KINDS: [ChangeKind; 2] = [ChangeKind::Planned, ChangeKind::Observed];
const OUTCOMES: [Outcome; 4] = [Outcome::Open, Outcome::Sealed, Outcome::Aborted, Outcome::Overtaken];
const OPS: [ChangeOp; 6] = [
    ChangeOp::Create,
    ChangeOp::Edit,
    ChangeOp::Delete,
    ChangeOp::MakeDir,
    ChangeOp::RemoveDir,
    ChangeOp::Move,
];

fn number<T: PartialEq>(table: &[T], value: &T) -> i64 {
    table.iter().position(|entry| entry == value).map_or(-1, |index| index as i64)
}

pub(crate) fn value<T: Copy>(table: &[T], row: &Row<'_>, column: usize) -> Sql<T> {
    let number: i64 = row.get(column)?;
    let known = usize::try_from(number).ok().and_then(|index| table.get(index));
    known.copied().ok_or(rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// The number of what happened at a path.
pub(crate) fn op(op: ChangeOp) -> i64 {
    number(&OPS, &op)
}

/// The number of an outcome.
pub(crate) fn outcome(outcome: Outcome) -> i64 {
    number(&OUTCOMES, &outcome)
}

/// SQLite's integers are signed; identities of inodes use all 64 bits.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> Sql<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

fn bytes(digest: Option<&Digest>) -> Option<&[u8]> {
    digest.map(|digest| digest.as_bytes().as_slice())
}

/// A digest that is never null.
pub(crate) fn digest(row: &Row<'_>, column: usize) -> Sql<Digest> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Digest::from_bytes(bytes).ok_or_else(|| {
        let error = FromSqlError::InvalidBlobSize { expected_size: 32, blob_size: bytes.len() };
        rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(error))
    })
}

fn maybe_digest(row: &Row<'_>, column: usize) -> Sql<Option<Digest>> {
    if row.get_ref(column)? == rusqlite::types::ValueRef::Null {
        Ok(None)
    } else {
        digest(row, column).map(Some)
    }
}

/// A path from its folder in `column` and its bytes in the next one.
pub(crate) fn path(row: &Row<'_>, column: usize) -> Sql<WsPath> {
    let bytes = row.get_ref(column + 1)?.as_blob()?;
    let path = if bytes.is_empty() { Ok(RelPath::root()) } else { RelPath::from_bytes(bytes) };
    let path = path.map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column + 1, Type::Blob, error.to_string().into())
    })?;
    Ok(WsPath { folder: FolderId(row.get(column)?), path })
}

/// The same where there may be none.
fn maybe_path(row: &Row<'_>, column: usize) -> Sql<Option<WsPath>> {
    if row.get_ref(column)? == rusqlite::types::ValueRef::Null {
        Ok(None)
    } else {
        path(row, column).map(Some)
    }
}

/// The columns that `change` and `intent` share, in the order [`change`] reads them.
pub(crate) const CHANGE: &str = "id, time, kind, agent, session, task, turn, tool, undoes";

/// A change from the columns of [`CHANGE`] and its outcome behind them; its files are added by the caller.
pub(crate) fn change(row: &Row<'_>) -> Sql<Change> {
    Ok(Change {
        id: ChangeId(unsigned(row, 0)?),
        time: Millis(unsigned(row, 1)?),
        kind: value(&KINDS, row, 2)?,
        agent: row.get(3)?,
        session: row.get::<_, Option<i64>>(4)?.map(|id| SessionId(id.cast_unsigned())),
        task: row.get(5)?,
        turn: row.get(6)?,
        tool: row.get(7)?,
        undoes: row.get::<_, Option<i64>>(8)?.map(|id| ChangeId(id.cast_unsigned())),
        outcome: value(&OUTCOMES, row, 9)?,
        files: Vec::new(),
    })
}

fn file(row: &Row<'_>) -> Sql<ChangeFile> {
    Ok(ChangeFile {
        at: path(row, 0)?,
        op: value(&OPS, row, 2)?,
        pre: maybe_digest(row, 3)?,
        post: maybe_digest(row, 4)?,
        pre_mode: row.get(5)?,
        post_mode: row.get(6)?,
        from: maybe_path(row, 7)?,
    })
}

/// The files of a sealed change.
pub(crate) fn files(conn: &Connection, id: ChangeId) -> Sql<Vec<ChangeFile>> {
    conn.prepare_cached(
        "SELECT p.folder, p.bytes, f.op, a.digest, b.digest, f.mode, f.post_mode, o.folder, o.bytes FROM file f \
         JOIN path p ON p.id = f.path LEFT JOIN image a ON a.id = f.pre LEFT JOIN image b ON b.id = f.post \
         LEFT JOIN path o ON o.id = f.origin WHERE f.change = ?1 ORDER BY f.seq",
    )?
    .query_map([signed(id.0)], file)?
    .collect()
}

/// Writes an intent.
pub(crate) fn insert_intent(conn: &Connection, intent: &Intent) -> Sql<()> {
    let change = &intent.change;
    let id = signed(change.id.0);
    let key = intent.idempotency.as_ref();
    conn.prepare_cached(
        "INSERT INTO intent VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        id,
        signed(change.time.0),
        number(&KINDS, &change.kind),
        change.agent,
        change.session.map(|session| signed(session.0)),
        change.task,
        change.turn,
        change.tool,
        change.undoes.map(|undone| signed(undone.0)),
        key.map(|key| &*key.agent),
        key.map(|key| &*key.tool),
        key.map(|key| &*key.key),
        bytes(key.map(|key| &key.args)),
    ])?;
    let mut insert =
        conn.prepare_cached("INSERT INTO intent_file VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")?;
    for (seq, file) in change.files.iter().enumerate() {
        insert.execute(params![
            id,
            seq as i64,
            file.at.folder.0,
            file.at.path.as_bytes(),
            number(&OPS, &file.op),
            bytes(file.pre.as_ref()),
            bytes(file.post.as_ref()),
            file.pre_mode,
            file.post_mode,
            file.from.as_ref().map(|from| from.folder.0),
            file.from.as_ref().map(|from| from.path.as_bytes()),
        ])?;
    }
    let mut insert = conn.prepare_cached(
        "INSERT INTO intent_path VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
         ?17, ?18, ?19)",
    )?;
    for (seq, path) in intent.paths.iter().enumerate() {
        insert.execute(params![
            id,
            seq as i64,
            path.at.folder.0,
            path.at.path.as_bytes(),
            number(&OPS, &path.op),
            signed(path.parent.dev),
            signed(path.parent.ino),
            signed(path.parent.mount),
            path.temp,
            bytes(path.pre.as_ref()),
            bytes(path.post.as_ref()),
            path.pre_mode,
            path.uid,
            path.gid,
            path.inline_pre,
            path.made_ino.map(signed),
            path.post_mode,
            path.from.as_ref().map(|from| from.folder.0),
            path.from.as_ref().map(|from| from.path.as_bytes()),
        ])?;
    }
    Ok(())
}

/// Moves an intent into history under `outcome`, with `answer` under its key. Nothing happens where it is not there.
pub(crate) fn seal(conn: &Connection, id: ChangeId, ended: Outcome, answer: Option<&[u8]>) -> Sql<()> {
    let id = signed(id.0);
    let run = |sql: &str| conn.prepare_cached(sql)?.execute([id]);
    run("INSERT INTO image (digest, bytes) SELECT pre, inline_pre FROM intent_path \
         WHERE intent = ?1 AND pre IS NOT NULL AND inline_pre IS NOT NULL \
         ON CONFLICT (digest) DO UPDATE SET bytes = excluded.bytes WHERE bytes IS NULL")?;
    run(
        "INSERT OR IGNORE INTO image (digest) SELECT pre FROM intent_file WHERE intent = ?1 AND pre IS NOT NULL \
         UNION SELECT post FROM intent_file WHERE intent = ?1 AND post IS NOT NULL",
    )?;
    run(
        "INSERT OR IGNORE INTO path (folder, bytes) SELECT folder, path FROM intent_file WHERE intent = ?1 \
         UNION SELECT from_folder, from_path FROM intent_file WHERE intent = ?1 AND from_path IS NOT NULL",
    )?;
    conn.prepare_cached(
        "INSERT INTO change SELECT id, time, kind, ?2, agent, session, task, turn, tool, undoes, NULL FROM intent \
         WHERE id = ?1",
    )?
    .execute(params![id, outcome(ended)])?;
    run("INSERT INTO file SELECT f.intent, f.seq, p.id, f.op, a.id, b.id, f.mode, f.post_mode, o.id \
         FROM intent_file f JOIN path p ON p.folder = f.folder AND p.bytes = f.path \
         LEFT JOIN image a ON a.digest = f.pre LEFT JOIN image b ON b.digest = f.post \
         LEFT JOIN path o ON o.folder = f.from_folder AND o.bytes = f.from_path WHERE f.intent = ?1")?;
    trash::record(conn, id)?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO answer SELECT key_agent, key_tool, key, key_args, ?2, id, time FROM intent \
         WHERE id = ?1 AND key IS NOT NULL",
    )?
    .execute(params![id, answer])?;
    // The paths stay until `sweep`: their temporary names may still be on the disk.
    run("UPDATE intent_path SET inline_pre = NULL WHERE intent = ?1 AND inline_pre IS NOT NULL")?;
    run("DELETE FROM intent_file WHERE intent = ?1")?;
    run("DELETE FROM intent WHERE id = ?1")?;
    Ok(())
}

/// Forgets the temporary names of a sealed change.
pub(crate) fn sweep(conn: &Connection, id: ChangeId) -> Sql<()> {
    conn.prepare_cached(
        "DELETE FROM intent_path WHERE intent = ?1 AND intent NOT IN (SELECT id FROM intent)",
    )?
    .execute([signed(id.0)])?;
    Ok(())
}

/// The sealed changes whose temporary names may still be on the disk, oldest first, as intents.
pub(crate) fn unswept(conn: &Connection) -> Sql<Vec<Intent>> {
    let sql = format!(
        "SELECT {CHANGE}, outcome FROM change WHERE id IN (SELECT intent FROM intent_path) ORDER BY id"
    );
    let changes: Vec<Change> = conn.prepare_cached(&sql)?.query_map([], change)?.collect::<Sql<_>>()?;
    changes
        .into_iter()
        .map(|mut change| {
            change.files = files(conn, change.id)?;
            Ok(Intent { paths: paths(conn, change.id)?, change, idempotency: None })
        })
        .collect()
}

/// The paths of an intent, in the order of the commit.
fn paths(conn: &Connection, id: ChangeId) -> Sql<Vec<IntentPath>> {
    conn.prepare_cached(
        "SELECT folder, path, op, dev, ino, mount, temp, pre, post, pre_mode, uid, gid, inline_pre, made_ino, \
         post_mode, from_folder, from_path FROM intent_path WHERE intent = ?1 ORDER BY seq",
    )?
    .query_map([signed(id.0)], intent_path)?
    .collect()
}

/// Writes the inode of a directory that was made into its intent.
pub(crate) fn note_made_dir(conn: &Connection, id: ChangeId, index: usize, ino: u64) -> Sql<()> {
    conn.prepare_cached("UPDATE intent_path SET made_ino = ?3 WHERE intent = ?1 AND seq = ?2")?
        .execute(params![signed(id.0), index as i64, signed(ino)])?;
    Ok(())
}

/// The changes of all unsealed intents, oldest first.
pub(crate) fn open_changes(conn: &Connection) -> Sql<Vec<Change>> {
    let sql = format!("SELECT {CHANGE}, 0 FROM intent ORDER BY id");
    let mut changes: Vec<Change> = conn.prepare_cached(&sql)?.query_map([], change)?.collect::<Sql<_>>()?;
    let mut files = conn.prepare_cached(
        "SELECT folder, path, op, pre, post, mode, post_mode, from_folder, from_path FROM intent_file \
         WHERE intent = ?1 ORDER BY seq",
    )?;
    for change in &mut changes {
        change.files = files.query_map([signed(change.id.0)], file)?.collect::<Sql<_>>()?;
    }
    Ok(changes)
}

/// All unsealed intents, oldest first.
pub(crate) fn intents(conn: &Connection) -> Sql<Vec<Intent>> {
    let keys: HashMap<u64, Idempotency> = conn
        .prepare_cached("SELECT id, key_agent, key_tool, key, key_args FROM intent WHERE key IS NOT NULL")?
        .query_map([], |row| {
            let key: Idempotency = Idempotency {
                agent: row.get(1)?,
                tool: row.get(2)?,
                key: row.get(3)?,
                args: digest(row, 4)?,
            };
            Ok((unsigned(row, 0)?, key))
        })?
        .collect::<Sql<_>>()?;
    open_changes(conn)?
        .into_iter()
        .map(|change| {
            let idempotency = keys.get(&change.id.0).cloned();
            Ok(Intent { paths: paths(conn, change.id)?, change, idempotency })
        })
        .collect()
}

fn intent_path(row: &Row<'_>) -> Sql<IntentPath> {
    Ok(IntentPath {
        at: path(row, 0)?,
        op: value(&OPS, row, 2)?,
        parent: ParentId { dev: unsigned(row, 3)?, ino: unsigned(row, 4)?, mount: unsigned(row, 5)? },
        temp: row.get(6)?,
        pre: maybe_digest(row, 7)?,
        post: maybe_digest(row, 8)?,
        pre_mode: row.get(9)?,
        uid: row.get(10)?,
        gid: row.get(11)?,
        inline_pre: row.get(12)?,
        made_ino: row.get::<_, Option<i64>>(13)?.map(i64::cast_unsigned),
        post_mode: row.get(14)?,
        from: maybe_path(row, 15)?,
    })
}

/// Stores the bytes of a small image.
pub(crate) fn insert_image(conn: &Connection, digest: Digest, image: &[u8]) -> Sql<()> {
    conn.prepare_cached(
        "INSERT INTO image (digest, bytes) VALUES (?1, ?2) \
         ON CONFLICT (digest) DO UPDATE SET bytes = coalesce(bytes, excluded.bytes), idle = NULL",
    )?
    .execute(params![digest.as_bytes().as_slice(), image])?;
    Ok(())
}

/// An image that has no file of its own, in history or in an unsealed intent.
pub(crate) fn inline_image(conn: &Connection, digest: Digest) -> Sql<Option<ImageRow>> {
    conn.prepare_cached(
        "SELECT i.bytes, b.digest FROM image i LEFT JOIN image b ON b.id = i.base \
         WHERE i.digest = ?1 AND i.bytes IS NOT NULL \
         UNION ALL SELECT inline_pre, NULL FROM intent_path WHERE pre = ?1 AND inline_pre IS NOT NULL LIMIT 1",
    )?
    .query_map([digest.as_bytes().as_slice()], |row| {
        let bytes = row.get(0)?;
        Ok(match maybe_digest(row, 1)? {
            Some(base) => ImageRow::Delta { delta: bytes, base },
            None => ImageRow::Whole(bytes),
        })
    })?
    .next()
    .transpose()
}

/// Keeps an answer without a change under its key.
pub(crate) fn insert_answer(conn: &Connection, key: &Idempotency, answer: &[u8], time: Millis) -> Sql<()> {
    let args = key.args.as_bytes().as_slice();
    conn.prepare_cached("INSERT OR REPLACE INTO answer VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)")?
        .execute(params![key.agent, key.tool, key.key, args, answer, signed(time.0)])?;
    Ok(())
}

/// Sets a counter: all numbers below `value` are spent.
pub(crate) fn set_counter(conn: &Connection, kind: &str, value: u64) -> Sql<()> {
    conn.prepare_cached("INSERT OR REPLACE INTO counter VALUES (?1, ?2)")?
        .execute(params![kind, signed(value)])?;
    Ok(())
}

/// A counter; 0 where it was never set.
pub(crate) fn counter(conn: &Connection, kind: &str) -> Sql<i64> {
    conn.query_row("SELECT ifnull((SELECT value FROM counter WHERE kind = ?1), 0)", [kind], |row| row.get(0))
}

/// All counters.
pub(crate) fn counters(conn: &Connection) -> Sql<HashMap<Arc<str>, u64>> {
    conn.prepare("SELECT kind, value FROM counter")?
        .query_map([], |row| Ok((row.get(0)?, unsigned(row, 1)?)))?
        .collect()
}

/// The greatest id of a change or an intent; 0 for none.
pub(crate) fn last_change(conn: &Connection) -> Sql<u64> {
    conn.query_row(
        "SELECT max(ifnull((SELECT max(id) FROM change), 0), ifnull((SELECT max(id) FROM intent), 0))",
        [],
        |row| unsigned(row, 0),
    )
}
