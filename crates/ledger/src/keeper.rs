//! What the threads of the ledger share, and the thread that keeps the write-ahead log short: it copies the log into
//! the database when nobody writes, or when the log has grown, and never makes a writer wait.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cotenant_model::Durability;
use rusqlite::{Connection, ErrorCode};

use crate::journal::Draft;
use crate::schema;
use crate::space::Ballast;
use crate::{Idempotency, LedgerError};

/// Without a write for so long, the log is copied.
const QUIET: Duration = Duration::from_millis(300);
/// So many pages more in the log are copied at once, quiet or not (8 MiB).
const GROWN: u64 = 2048;
/// So many pages in the log (128 MiB) make the writer itself copy them: only between its own commits can the log begin
/// anew under load without a pause.
const OVERGROWN: u64 = 32_768;

/// Shared by the ledger and its threads.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) health: Health,
    pub(crate) ballast: Ballast,
    /// Journal entries that the writer has not taken yet.
    gathering: Mutex<Vec<Draft>>,
    /// The idempotency keys that jobs under way name.
    keyed: Mutex<Vec<Key>>,
    log: Mutex<Log>,
    wake: Condvar,
}

/// The write-ahead log, as its writer left it.
#[derive(Debug, Default)]
struct Log {
    pages: u64,
    commits: u64,
    /// The keeper is to be woken when so many pages are in it: whoever wakes it at every commit pays for that.
    wanted: u64,
    stop: bool,
}

impl Shared {
    pub(crate) fn new(dir: PathBuf, durability: Durability) -> Shared {
        Shared {
            ballast: Ballast::new(&dir),
            dir,
            durability,
            health: Health::default(),
            gathering: Mutex::default(),
            keyed: Mutex::default(),
            log: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by the writer after each commit.
    pub(crate) fn written(&self, conn: &Connection) -> Result<(), LedgerError> {
        let mut pages = copy(conn, "NOOP")?;
        if pages > OVERGROWN {
            pages = copy(conn, "PASSIVE")?;
        }
        let mut log = self.log();
        log.pages = pages;
        log.commits += 1;
        if log.pages >= log.wanted {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Puts an entry to those that wait to be written; whether it is the first, of which the writer must be told.
    pub(crate) fn gather(&self, draft: Draft) -> bool {
        let mut gathering = self.gathering.lock().unwrap_or_else(PoisonError::into_inner);
        gathering.push(draft);
        gathering.len() == 1
    }

    /// Takes the entries that wait, in their order.
    pub(crate) fn gathered(&self) -> Vec<Draft> {
        std::mem::take(&mut *self.gathering.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keyed(&self) -> MutexGuard<'_, Vec<Key>> {
        self.keyed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a job that may name the idempotency key is under way.
    pub(crate) fn has_keyed(&self, key: &Idempotency) -> bool {
        let is_it = |known: &Key| {
            known.as_ref().is_none_or(|known| {
                known.agent == key.agent && known.tool == key.tool && known.key == key.key
            })
        };
        self.keyed().iter().any(is_it)
    }

    /// Lets [`Shared::keep`] run again after a stop.
    pub(crate) fn restart(&self) {
        *self.log() = Log::default();
    }

    /// Ends [`Shared::keep`].
    pub(crate) fn stop(&self) {
        self.log().stop = true;
        self.wake.notify_one();
    }

    /// The thread: sleeps until something was written, then until it is time, then copies.
    pub(crate) fn keep(self: Arc<Shared>) {
        let mut conn = None;
        let mut copied = Log::default();
        while self.wait(&mut copied) {
            if let Err(error) = self.copy_log(&mut conn) {
                self.health.fail(error);
            }
            self.ballast.ensure();
        }
    }

    /// Waits until the log should be copied; `false` when it is time to end.
    fn wait(&self, copied: &mut Log) -> bool {
        let poisoned = PoisonError::into_inner;
        let mut log = self.log();
        log.wanted = 0;
        let mut log = self
            .wake
            .wait_while(log, |log| !log.stop && log.commits == copied.commits)
            .unwrap_or_else(poisoned);
        loop {
            // A log that begins anew is shorter than what was copied of it.
            let before = if log.pages < copied.pages { 0 } else { copied.pages };
            if log.stop || log.pages - before >= GROWN {
                break;
            }
            log.wanted = before + GROWN;
            let commits = log.commits;
            let (next, waited) =
                self.wake.wait_timeout(log, QUIET).unwrap_or_else(|error| error.into_inner());
            log = next;
            if waited.timed_out() && log.commits == commits {
                break;
            }
        }
        *copied = Log { pages: log.pages, commits: log.commits, ..Log::default() };
        !log.stop
    }

    fn copy_log(&self, conn: &mut Option<Connection>) -> Result<(), LedgerError> {
        let conn = match conn {
            Some(conn) => conn,
            None => conn.insert(schema::connect(&self.dir, 64)?),
        };
        match copy(conn, "PASSIVE") {
            // The log keeps what the full disk has no room for; the next round tries again.
            Err(LedgerError::OutOfSpace) => Ok(()),
            done => done.map(drop),
        }
    }
}

/// Runs a checkpoint; the pages in the log. One that another connection is running counts as done.
fn copy(conn: &Connection, mode: &str) -> Result<u64, LedgerError> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let pages = conn.prepare_cached(&sql).and_then(|mut run| run.query_row([], |row| row.get::<_, i64>(1)));
    match pages {
        Ok(pages) => Ok(u64::try_from(pages).unwrap_or(0)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Copies the whole log and empties it; for a connection that is alone.
pub(crate) fn empty_log(conn: &Connection) -> Result<(), LedgerError> {
    copy(conn, "TRUNCATE").map(drop)
}

/// An idempotency key that a job names; `None` where it is one that only the database knows.
pub(crate) type Key = Option<Idempotency>;

/// Holds an idempotency key for known to be under way until its job is written, or has failed.
#[derive(Debug)]
pub(crate) struct Keyed {
    shared: Arc<Shared>,
    key: Key,
}

impl Keyed {
    pub(crate) fn new(shared: &Arc<Shared>, key: Key) -> Keyed {
        shared.keyed().push(key.clone());
        Keyed { shared: Arc::clone(shared), key }
    }
}

impl Drop for Keyed {
    fn drop(&mut self) {
        let mut keyed = self.shared.keyed();
        if let Some(at) = keyed.iter().position(|known| *known == self.key) {
            keyed.swap_remove(at);
        }
    }
}

/// Whether writes may go on (R13).
#[derive(Debug, Default)]
pub(crate) struct Health {
    failed: AtomicBool,
    reason: Mutex<Option<Arc<str>>>,
}

impl Health {
    fn reason(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The failure, if there was one.
    pub(crate) fn failure(&self) -> Option<LedgerError> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.reason().clone().map(LedgerError::Failed)
    }

    /// Stops all writing; the first reason stays.
    pub(crate) fn fail(&self, error: LedgerError) -> LedgerError {
        let reason: Arc<str> = match error {
            LedgerError::Failed(reason) => reason,
            other => other.to_string().into(),
        };
        let first = self.reason().get_or_insert(reason).clone();
        self.failed.store(true, Ordering::Release);
        LedgerError::Failed(first)
    }

    /// Lets writing go on.
    pub(crate) fn clear(&self) {
        *self.reason() = None;
        self.failed.store(false, Ordering::Release);
    }
}
