//! The database: its tables, how it is made, brought up to date and connected to.
//!
//! An intent is written to three small tables without indexes, so that what a caller waits for is a page or two. The
//! seal, which nobody waits for, moves it from there into history and pays for the indexes.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::{LedgerError, rows, space};

/// The steps from an empty database to the present schema; `user_version` counts how many were taken. Steps are only
/// ever added.
const MIGRATIONS: &[&str] = &["
    -- Numbers that only rise, by kind: all below `value` are spent.
    CREATE TABLE counter (kind TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

    -- Unsealed intents.
    CREATE TABLE intent (
        id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind INTEGER NOT NULL, agent TEXT, session INTEGER, task TEXT,
        turn INTEGER NOT NULL, tool TEXT NOT NULL, undoes INTEGER,
        key_agent TEXT, key_tool TEXT, key TEXT, key_args BLOB);
    CREATE TABLE intent_file (
        intent INTEGER, seq INTEGER, folder INTEGER NOT NULL, path BLOB NOT NULL, op INTEGER NOT NULL, pre BLOB,
        post BLOB, mode INTEGER NOT NULL, PRIMARY KEY (intent, seq)) WITHOUT ROWID;
    CREATE TABLE intent_path (
        intent INTEGER, seq INTEGER, folder INTEGER NOT NULL, path BLOB NOT NULL, op INTEGER NOT NULL,
        dev INTEGER NOT NULL, ino INTEGER NOT NULL, mount INTEGER NOT NULL, temp TEXT NOT NULL, pre BLOB, post BLOB,
        pre_mode INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, inline_pre BLOB, made_ino INTEGER,
        PRIMARY KEY (intent, seq)) WITHOUT ROWID;

    -- History. Paths and images are named once and then by number.
    CREATE TABLE path (id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE (folder, bytes));
    -- `bytes` is null where the image is a file of its own, or gone. `idle`: when retention first found that no
    -- change names it.
    CREATE TABLE image (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, idle INTEGER, bytes BLOB);
    -- `expired`: when retention removed its images.
    CREATE TABLE change (
        id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind INTEGER NOT NULL, outcome INTEGER NOT NULL, agent TEXT,
        session INTEGER, task TEXT, turn INTEGER NOT NULL, tool TEXT NOT NULL, undoes INTEGER, expired INTEGER);
    CREATE INDEX change_agent ON change (agent) WHERE agent IS NOT NULL;
    CREATE INDEX change_session ON change (session) WHERE session IS NOT NULL;
    CREATE TABLE file (
        change INTEGER, seq INTEGER, path INTEGER NOT NULL, op INTEGER NOT NULL, pre INTEGER, post INTEGER,
        mode INTEGER NOT NULL, PRIMARY KEY (change, seq)) WITHOUT ROWID;
    CREATE INDEX file_path ON file (path, change);

    -- Answers by idempotency key.
    CREATE TABLE answer (
        agent TEXT, tool TEXT, key TEXT, args BLOB NOT NULL, answer BLOB, change INTEGER, time INTEGER NOT NULL,
        PRIMARY KEY (agent, tool, key)) WITHOUT ROWID;

    CREATE TABLE journal (
        seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, hash BLOB NOT NULL);
", "
    -- Where a move came from, and what a path is afterwards.
    ALTER TABLE intent_file ADD COLUMN post_mode INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE intent_file ADD COLUMN from_folder INTEGER;
    ALTER TABLE intent_file ADD COLUMN from_path BLOB;
    ALTER TABLE intent_path ADD COLUMN post_mode INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE intent_path ADD COLUMN from_folder INTEGER;
    ALTER TABLE intent_path ADD COLUMN from_path BLOB;
    ALTER TABLE file ADD COLUMN post_mode INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE file ADD COLUMN origin INTEGER;
    CREATE INDEX file_origin ON file (origin, change) WHERE origin IS NOT NULL;
", "
    -- `base`: `bytes` is then a delta on that image.
    ALTER TABLE image ADD COLUMN base INTEGER;
    CREATE INDEX image_base ON image (base) WHERE base IS NOT NULL;

    -- What can be restored: the image that stood at a path before a change. `how` as in `trash`.
    CREATE TABLE trash (
        id INTEGER PRIMARY KEY, change INTEGER NOT NULL, seq INTEGER NOT NULL, path INTEGER NOT NULL,
        how INTEGER NOT NULL, UNIQUE (change, seq));
    CREATE INDEX trash_path ON trash (path, id);
    INSERT INTO trash (change, seq, path, how)
        SELECT f.change, f.seq, f.path, iif(f.op = 2, 0, 1) FROM file f JOIN change c ON c.id = f.change
        WHERE f.pre IS NOT NULL AND c.outcome IN (1, 3) AND (f.op = 2 OR f.op = 1 AND c.tool = 'write_file')
        ORDER BY f.change, f.seq;
"];

/// A database that is not on the disk yet is marked by this file. What it holds was never promised to anyone, so one
/// that a crash left marked is made anew.
const MARK: &str = "making";

/// Makes sure that `dir/ledger.db` exists. A new one is complete, but on the disk only after [`settle`].
pub(crate) fn ensure(dir: &Path) -> Result<(), LedgerError> {
    let database = dir.join("ledger.db");
    let mark = dir.join(MARK);
    if database.exists() && !mark.exists() {
        return Ok(());
    }
    // The log of a database that is gone would be replayed into the new one.
    for stale in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        match fs::remove_file(dir.join(stale)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LedgerError::io("remove", &dir.join(stale), error));
            }
            _ => {}
        }
    }
    // SQLite gives a file's log and index the mode of the file.
    for new in [&mark, &database] {
        space::private(new).map_err(|error| LedgerError::io("make", new, error))?;
    }
    let mut conn = Connection::open(&database)?;
    conn.execute_batch("PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY;")?;
    migrate(&mut conn)?;
    conn.execute_batch("PRAGMA journal_mode=WAL;")?;
    conn.close().map_err(|(_, error)| LedgerError::from(error))
}

/// Brings a new database to the disk, in the writing thread before its first commit: nobody waits for the disk at the
/// start of a session that only reads. SQLite itself has to sync the file: its locks would go with any other
/// descriptor of it.
pub(crate) fn settle(dir: &Path, conn: &Connection) -> Result<(), LedgerError> {
    let mark = dir.join(MARK);
    if !mark.exists() {
        return Ok(());
    }
    conn.execute_batch("PRAGMA synchronous=FULL;")?;
    rows::set_counter(conn, "barrier", 0)?;
    conn.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()))?;
    conn.execute_batch("PRAGMA synchronous=NORMAL;")?;
    fs::remove_file(&mark).map_err(|error| LedgerError::io("remove", &mark, error))?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| LedgerError::io("sync", dir, error))
}

/// Brings the database to the present schema.
pub(crate) fn migrate(conn: &mut Connection) -> Result<(), LedgerError> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(LedgerError::Newer { found, known });
    }
    if found == known {
        return Ok(());
    }
    let step = conn.transaction()?;
    for sql in &MIGRATIONS[found as usize..] {
        step.execute_batch(sql)?;
    }
    step.pragma_update(None, "user_version", known)?;
    step.commit()?;
    Ok(())
}

/// A connection with a page cache of at most `cache_kib`. Checkpoints are never run by it unasked.
pub(crate) fn connect(dir: &Path, cache_kib: u32) -> Result<Connection, LedgerError> {
    let conn = Connection::open(dir.join("ledger.db"))?;
    conn.execute_batch(&format!(
        "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0; PRAGMA temp_store=MEMORY; \
         PRAGMA cache_size=-{cache_kib};"
    ))?;
    conn.set_prepared_statement_cache_capacity(64);
    // A plan that looked at what was bound is made anew whenever that is bound anew: each execution would compile.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn what_is_bound_anew_is_not_compiled_anew() {
        let dir = std::env::temp_dir().join(format!("cotenant-schema-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        ensure(&dir).unwrap();
        let compiled = |conn: &Connection| {
            let mut statement = conn.prepare(crate::trash::RECORD).unwrap();
            for number in 0..5 {
                assert_eq!(statement.execute([number, 1, 3, 2, 1, 5]).unwrap(), 0);
            }
            statement.get_status(StatementStatus::RePrepare)
        };
        assert_eq!(compiled(&connect(&dir, 64).unwrap()), 0);
        assert!(
            compiled(&Connection::open(dir.join("ledger.db")).unwrap()) > 0,
            "the statement shows nothing"
        );
        fs::remove_dir_all(&dir).unwrap();
    }
}
