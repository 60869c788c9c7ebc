//! The ledger: what is about to be changed, what was changed, every image that was overwritten, and a journal of it
//! all. One per workspace, in a state folder outside the tree.
//!
//! # The state folder (0700, every file in it 0600)
//!
//! | name | what |
//! |---|---|
//! | `ledger.db`, `-wal`, `-shm` | SQLite in WAL mode: intents, history, images up to 16 KiB, deltas, answers by key, journal |
//! | `blobs/<2 hex>/<64 hex>` | larger images, named by their digest; `blobs/new-*` are unfinished ones |
//! | `making` | there until a new database is on the disk; found at a start, the database is made anew |
//! | `ballast` | 4 MiB that are given up when the disk is full, so that an intent can still be ended |
//! | `lock` | held (`flock`) by the one process that has the ledger open |
//!
//! # Who may do what
//!
//! Writing stands in [`commit`], which only `engine` names. One thread writes (`writer`), one keeps the log short
//! (`keeper`); readers have connections of their own and are never in the way. Reads see everything that was queued
//! before them.
//!
//! # What survives what
//!
//! An intent is synced before [`commit::Ticket::wait`] returns, unless the durability is `fast`. A seal, an answer, the
//! journal and images are in the database at once and on the disk with the next intent, or with
//! [`commit::sync_blobs`]: what a crash can cost is a seal, and then recovery finds the same outcome again (R5).

mod blobs;
mod delta;
mod error;
mod follow;
mod history;
mod intent;
mod journal;
mod keeper;
mod mask;
mod pack;
mod retention;
mod rows;
mod schema;
mod space;
mod stock;
mod trash;
mod writer;

pub mod commit;

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cotenant_model::{ChangeId, Digest, Durability, Millis};
use rusqlite::{Connection, params};

pub use error::LedgerError;
pub use follow::{Point, Whereabouts};
pub use history::{Query, Since};
pub use intent::{IDEMPOTENCY_MS, INLINE_MAX, Idempotency, Intent, IntentPath, ParentId, Recalled};
pub use journal::{JournalEntry, JournalReport, verify_export};
pub use mask::mask;
pub use retention::{Keep, PinGuard, Report, Restorable, prune};
pub use space::Medium;
pub use trash::{Displaced, TrashItem, TrashQuery};

use blobs::Blobs;
use keeper::{Keyed, Shared};
use retention::Pins;
use writer::{Job, Queued, Writer};

/// Page caches of the connections, in KiB.
const WRITER_CACHE: u32 = 512;
const READER_CACHE: u32 = 256;
/// Idle read connections that are kept.
const READERS: usize = 2;
/// Numbers reserved at once by [`Ledger::next_id`].
const BLOCK: u64 = 1000;

/// Where the ledger lives and what its writes survive.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// The workspace's state folder, outside the tree; made (0700) with its parents if absent.
    pub dir: PathBuf,
    /// What a durable intent survives.
    pub durability: Durability,
}

/// The ledger of one workspace; clones share it. The last one to go writes what is queued and gives up the lock.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) blobs: Blobs,
    pub(crate) pins: Arc<Pins>,
    pub(crate) next_change: AtomicU64,
    medium: Medium,
    /// By kind: the next number, and the end of the reserved block.
    counters: Mutex<HashMap<Arc<str>, (u64, u64)>>,
    readers: Mutex<Vec<Connection>>,
    threads: Mutex<Threads>,
    /// Held by whoever tidies the store: packing and retention take turns.
    upkeep: Mutex<Upkeep>,
    _lock: space::Lock,
}

/// What tidying the store remembers.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// How far packing came, once it has begun.
    pub(crate) packed: Option<pack::Cursor>,
}

#[derive(Debug, Default)]
struct Threads {
    queue: Option<Sender<Queued>>,
    running: Vec<JoinHandle<()>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// Opens or makes the ledger, and takes the lock that keeps every other process out. Returns the intents that were
    /// never sealed, oldest first: they must be recovered (R5) before anything else is written.
    ///
    /// Errors: `Locked`, `Unsuitable` (network file systems: ask for `state_dir`), `Newer`, and those of the disk.
    pub fn open(options: &LedgerOptions) -> Result<(Ledger, Vec<Intent>), LedgerError> {
        let dir = &options.dir;
        let made = DirBuilder::new().mode(0o700).recursive(true).create(dir);
        made.map_err(|error| LedgerError::io("make", dir, error))?;
        let medium = Medium::of(dir)?;
        let lock = space::Lock::take(dir)?;
        let durability = if medium == Medium::Volatile { Durability::Fast } else { options.durability };
        let shared = Arc::new(Shared::new(dir.clone(), durability));
        schema::ensure(dir)?;
        let ledger = Ledger {
            inner: Arc::new(Inner {
                shared,
                blobs: Blobs::open(dir)?,
                pins: Arc::default(),
                next_change: AtomicU64::new(1),
                medium,
                counters: Mutex::default(),
                readers: Mutex::default(),
                threads: Mutex::default(),
                upkeep: Mutex::default(),
                _lock: lock,
            }),
        };
        let mut conn = schema::connect(dir, WRITER_CACHE)?;
        schema::migrate(&mut conn)?;
        let counters = rows::counters(&conn)?;
        *held(&ledger.inner.counters) = counters.into_iter().map(|(kind, end)| (kind, (end, end))).collect();
        let unsealed = ledger.start(conn)?;
        Ok((ledger, unsealed))
    }

    /// Starts the threads on a fresh connection; the unsealed intents.
    fn start(&self, conn: Connection) -> Result<Vec<Intent>, LedgerError> {
        let unsealed = rows::intents(&conn)?;
        self.inner.next_change.fetch_max(rows::last_change(&conn)? + 1, Ordering::Relaxed);
        let (queue, jobs) = mpsc::channel();
        let writer = Writer::new(conn, jobs, Arc::clone(&self.inner.shared))?;
        let shared = Arc::clone(&self.inner.shared);
        shared.restart();
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run);
            spawned.map_err(|error| LedgerError::io("start a thread for", &self.inner.shared.dir, error))
        };
        let mut threads = held(&self.inner.threads);
        threads.running.push(spawn("ledger-writer", Box::new(move || writer.run()))?);
        threads.running.push(spawn("ledger-keeper", Box::new(move || shared.keep()))?);
        threads.queue = Some(queue);
        Ok(unsealed)
    }

    /// After a failure (R13): opens the database anew and lets writing go on. Returns the unsealed intents, which must
    /// be recovered first. Seals that were queued when the failure came are among them.
    pub fn reopen(&self) -> Result<Vec<Intent>, LedgerError> {
        self.inner.stop();
        held(&self.inner.readers).clear();
        let conn = schema::connect(&self.inner.shared.dir, WRITER_CACHE)?;
        // After a failed flush the kernel may call pages clean that never reached the disk. Copying the whole log
        // writes each page anew, and an empty log claims nothing.
        keeper::empty_log(&conn)?;
        self.inner.shared.health.clear();
        self.start(conn)
    }

    /// The failure after which nothing is written any more, if there was one.
    pub fn failure(&self) -> Option<LedgerError> {
        self.inner.shared.health.failure()
    }

    /// What the state folder lies on.
    pub fn medium(&self) -> Medium {
        self.inner.medium
    }

    /// What a durable intent really survives: that of the options, or `Fast` on a volatile medium.
    pub fn durability(&self) -> Durability {
        self.inner.shared.durability
    }

    /// Whether the disk of the state folder holds `bytes` more and 16 MiB besides; `OutOfSpace` where not (R14).
    pub fn room(&self, bytes: u64) -> Result<(), LedgerError> {
        space::room(&self.inner.shared.dir, bytes)
    }

    /// An image, its digest verified (`Corrupt` where it is not what it should be); `None` where it is not stored.
    pub fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        let row = match self.inline(digest)? {
            Some(row) => row,
            None => match self.inner.blobs.read(digest)? {
                Some(image) => return Ok(Some(image)),
                // It may have been packed between the two looks.
                None => match self.inline(digest)? {
                    Some(row) => row,
                    None => return Ok(None),
                },
            },
        };
        match row {
            pack::Row::Delta { delta, base } => self.unpack(digest, delta, base).map(Some),
            pack::Row::Whole(image) if Digest::of(&image) == digest => Ok(Some(image)),
            pack::Row::Whole(_) => Err(LedgerError::Corrupt(digest)),
        }
    }

    /// What is known of an idempotency key (its `args` are not looked at), if it is younger than [`IDEMPOTENCY_MS`] at
    /// `now`, wall clock.
    pub fn recall(&self, key: &Idempotency, now: Millis) -> Result<Option<Recalled>, LedgerError> {
        if self.inner.shared.has_keyed(key) {
            self.settle();
        }
        let after = now.0.saturating_sub(IDEMPOTENCY_MS);
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT args, answer, change FROM answer WHERE agent = ?1 AND tool = ?2 AND key = ?3 AND time > ?4 \
                 UNION ALL SELECT key_args, NULL, id FROM intent WHERE key_agent = ?1 AND key_tool = ?2 AND key = ?3 \
                 LIMIT 1",
            )?
            .query_map(params![key.agent, key.tool, key.key, after.cast_signed()], |row| {
                Ok(Recalled {
                    args: rows::digest(row, 0)?,
                    answer: row.get(1)?,
                    change: row.get::<_, Option<i64>>(2)?.map(|id| ChangeId(id.cast_unsigned())),
                })
            })?
            .next()
            .transpose()
        })
    }

    /// The next number of a kind (`session`, `approval`, …), from 1, never the same again, across restarts too. Gaps
    /// happen: numbers are reserved in blocks. A reservation is on the disk before any intent that could name one of
    /// its numbers.
    pub fn next_id(&self, kind: &str) -> u64 {
        let mut counters = held(&self.inner.counters);
        let (next, end) = counters.get(kind).copied().unwrap_or((1, 1));
        let end = if next < end {
            end
        } else {
            let end = next + BLOCK;
            // A ledger that cannot write records nothing that could name the number a second time.
            let _ = self.run(Job::Counter { kind: kind.into(), value: end });
            end
        };
        counters.insert(kind.into(), (next + 1, end));
        next
    }

    fn gone() -> LedgerError {
        LedgerError::Failed("its writing thread has ended".into())
    }

    fn send(&self, job: Job, reply: Option<writer::Reply>) {
        // Where the thread is gone the job goes with its reply, and whoever waits learns of it by that.
        let keyed = job.key().map(|key| Keyed::new(&self.inner.shared, key));
        if let Some(queue) = &held(&self.inner.threads).queue {
            let _ = queue.send(Queued { job, reply, _keyed: keyed });
        }
    }

    /// Queues a job that nobody waits for.
    pub(crate) fn tell(&self, job: Job) {
        self.send(job, None);
    }

    /// Queues a job; its result comes later.
    pub(crate) fn ask(&self, job: Job) -> Receiver<Result<(), LedgerError>> {
        let (reply, result) = mpsc::sync_channel(1);
        self.send(job, Some(reply));
        result
    }

    /// Queues a job and waits for it.
    pub(crate) fn run(&self, job: Job) -> Result<(), LedgerError> {
        self.ask(job).recv().unwrap_or_else(|_| Err(Ledger::gone()))
    }

    /// Waits for the queue but not for the journal, so that what is read is what was written; where it failed, the
    /// database says what stands.
    pub(crate) fn settle(&self) {
        let _ = self.run(Job::Settle);
    }

    /// Reads with a connection of the pool.
    pub(crate) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        let pooled = held(&self.inner.readers).pop();
        let conn = match pooled {
            Some(conn) => conn,
            None => schema::connect(&self.inner.shared.dir, READER_CACHE)?,
        };
        let result = query(&conn)?;
        let mut readers = held(&self.inner.readers);
        if readers.len() < READERS {
            readers.push(conn);
        }
        Ok(result)
    }

    /// An image that is no file.
    pub(crate) fn inline(&self, digest: Digest) -> Result<Option<pack::Row>, LedgerError> {
        self.read(|conn| rows::inline_image(conn, digest))
    }

    /// Refuses to write after a failure.
    pub(crate) fn trusted(&self) -> Result<(), LedgerError> {
        self.failure().map_or(Ok(()), Err)
    }

    /// Lets a failure of an image file end all writing (R13).
    pub(crate) fn watched<T>(&self, result: Result<T, LedgerError>) -> Result<T, LedgerError> {
        result.map_err(|error| match error {
            LedgerError::Failed(_) => self.inner.shared.health.fail(error),
            other => other,
        })
    }
}

impl Inner {
    /// Waits until nobody else tidies the store.
    pub(crate) fn upkeep(&self) -> MutexGuard<'_, Upkeep> {
        held(&self.upkeep)
    }

    /// The same where nobody does.
    pub(crate) fn try_upkeep(&self) -> Option<MutexGuard<'_, Upkeep>> {
        match self.upkeep.try_lock() {
            Ok(upkeep) => Some(upkeep),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Writes what is queued and ends the threads.
    fn stop(&self) {
        let mut threads = held(&self.threads);
        threads.queue = None;
        self.shared.stop();
        for thread in threads.running.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}
