//! The one thread that writes to the database. It takes all that waits in its queue and commits it as one transaction,
//! so that many sessions share one flush (R2); the journal comes after, where nobody waits for it.
//!
//! On a full disk, what is new is refused and what ends an intent is written with the reserve's help (R14). On any
//! other failure nothing is written any more until the ledger is reopened (R13).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use cotenant_model::{Change, ChangeId, Digest, Durability, Millis, Outcome};
use rusqlite::Connection;

use crate::journal::{Chain, Draft};
use crate::keeper::{Key, Keyed, Shared};
use crate::{Idempotency, Intent, LedgerError, rows, schema};

/// Journal entries written in one transaction, so that an intent that arrives meanwhile waits a millisecond at most.
const JOURNAL_BATCH: usize = 64;
/// For so long entries are gathered before they are written: a transaction of its own costs more than the call it tells
/// of, and runs while the next call does.
const JOURNAL_GATHERS: Duration = Duration::from_millis(20);
/// For so long what ends a change waits for something that is waited for, to be written with it.
const PATIENCE: Duration = Duration::from_millis(20);
/// What the journal may hold back in memory while the disk is full, in bytes of bodies.
const JOURNAL_BACKLOG: usize = 1 << 20;

/// Where an answer goes.
pub(crate) type Reply = SyncSender<Result<(), LedgerError>>;

/// Something to write.
#[derive(Debug)]
pub(crate) enum Job {
    /// `light`: at durability `fast`, not synced for its own sake.
    Intend {
        intent: Box<Intent>,
        light: bool,
    },
    Observe(Box<Change>),
    MadeDir {
        change: ChangeId,
        index: usize,
        ino: u64,
    },
    Seal {
        change: ChangeId,
        outcome: Outcome,
        answer: Option<Vec<u8>>,
    },
    Swept {
        change: ChangeId,
    },
    Remember {
        key: Idempotency,
        answer: Vec<u8>,
        time: Millis,
    },
    /// `promised`: its change was answered as one that survives the machine.
    Image {
        digest: Digest,
        bytes: Vec<u8>,
        promised: bool,
    },
    Counter {
        kind: Arc<str>,
        value: u64,
    },
    Expire {
        changes: Vec<ChangeId>,
        now: Millis,
        answers_before: Millis,
    },
    /// Keeps an image as a delta from now on.
    Pack {
        image: Digest,
        base: Digest,
        delta: Vec<u8>,
    },
    Forget {
        images: Vec<Digest>,
        idle: Vec<Digest>,
        now: Millis,
    },
    /// Makes all that was written before durable.
    Barrier,
    /// Entries for the journal are gathered in [`Shared`].
    Journal,
    /// Answered when all that was queued before is written, the journal excepted.
    Settle,
    /// The same, the journal included.
    Flush,
}

/// A job and who waits for it.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) job: Job,
    pub(crate) reply: Option<Reply>,
    /// Held while a job that names an idempotency key is under way.
    pub(crate) _keyed: Option<Keyed>,
}

impl Queued {
    fn answer(self, result: Result<(), LedgerError>) {
        // A caller that went away needs no answer.
        if let Some(reply) = self.reply {
            let _ = reply.send(result);
        }
    }
}

impl Job {
    /// Whether it must be on the disk before its answer.
    fn synced(&self) -> bool {
        match self {
            Job::Intend { light, .. } => !light,
            Job::Observe(_) | Job::Expire { .. } | Job::Pack { .. } | Job::Barrier => true,
            _ => false,
        }
    }

    /// The idempotency key under which [`Ledger::recall`](crate::Ledger::recall) must see it; `None` where it has none.
    pub(crate) fn key(&self) -> Option<Key> {
        match self {
            Job::Intend { intent, .. } => intent.idempotency.clone().map(Some),
            Job::Seal { answer, .. } => answer.is_some().then_some(None),
            Job::Remember { key, .. } => Some(Some(key.clone())),
            _ => None,
        }
    }

    /// Whether it can wait for others, to be written with them: a crash costs nothing by it that recovery does not
    /// find again.
    fn patient(&self) -> bool {
        matches!(self, Job::Seal { .. } | Job::Swept { .. } | Job::Remember { .. })
    }

    /// Whether a full disk is a reason to refuse it: it begins something.
    fn refusable(&self) -> bool {
        matches!(
            self,
            Job::Intend { .. } | Job::Observe(_) | Job::Image { .. } | Job::Pack { .. } | Job::Barrier
        )
    }

    /// Whether it is kept for later where even the reserve did not help: it ends something.
    fn owed(&self) -> bool {
        matches!(self, Job::Seal { .. } | Job::MadeDir { .. })
    }

    fn apply(&self, conn: &Connection) -> rusqlite::Result<()> {
        match self {
            Job::Intend { intent, .. } => rows::insert_intent(conn, intent),
            Job::Observe(change) => {
                let intent = Intent { change: (**change).clone(), paths: Vec::new(), idempotency: None };
                rows::insert_intent(conn, &intent)?;
                rows::seal(conn, change.id, change.outcome, None)
            }
            Job::MadeDir { change, index, ino } => rows::note_made_dir(conn, *change, *index, *ino),
            Job::Seal { change, outcome, answer } => rows::seal(conn, *change, *outcome, answer.as_deref()),
            Job::Swept { change } => rows::sweep(conn, *change),
            Job::Remember { key, answer, time } => rows::insert_answer(conn, key, answer, *time),
            Job::Image { digest, bytes, .. } => rows::insert_image(conn, *digest, bytes),
            Job::Counter { kind, value } => rows::set_counter(conn, kind, *value),
            Job::Expire { changes, now, answers_before } => {
                crate::retention::expire(conn, changes, *now, *answers_before)
            }
            Job::Pack { image, base, delta } => crate::pack::record(conn, *image, *base, delta),
            Job::Forget { images, idle, now } => crate::retention::forget(conn, images, idle, *now),
            Job::Barrier => rows::set_counter(conn, "barrier", 0),
            Job::Journal | Job::Settle | Job::Flush => Ok(()),
        }
    }
}

/// The thread's state.
pub(crate) struct Writer {
    conn: Connection,
    queue: Receiver<Queued>,
    shared: Arc<Shared>,
    chain: Chain,
    /// Journal entries to be written.
    drafts: VecDeque<Draft>,
    /// When what is gathered for the journal is to be written; `None` where nothing is.
    due: Option<Instant>,
    /// Entries that the backlog had no room for.
    dropped: u64,
    /// Seals that a full disk holds back.
    owed: Vec<Queued>,
    /// What waits to be written with others, and until when; `None` where nothing does.
    patient: Vec<Queued>,
    patience: Option<Instant>,
    /// Who waits until the journal is written too.
    flushes: Vec<Reply>,
    /// The log has images that were promised to survive the machine and are not synced yet. Whatever may come to rely
    /// on them begins with an intent, and syncs them with it.
    promises: bool,
    /// The connection's present setting: commits are synced.
    syncing: bool,
}

impl Writer {
    pub(crate) fn new(
        conn: Connection,
        queue: Receiver<Queued>,
        shared: Arc<Shared>,
    ) -> Result<Writer, LedgerError> {
        let chain = Chain::load(&conn)?;
        Ok(Writer {
            conn,
            queue,
            shared,
            chain,
            drafts: VecDeque::new(),
            // What was gathered while no writer ran told nobody.
            due: Some(Instant::now()),
            dropped: 0,
            owed: Vec::new(),
            patient: Vec::new(),
            patience: None,
            flushes: Vec::new(),
            // An earlier process may have left some.
            promises: true,
            syncing: false,
        })
    }

    /// Works until every sender is gone and the queue is empty.
    pub(crate) fn run(mut self) {
        self.shared.ballast.ensure();
        if let Err(error) = schema::settle(&self.shared.dir, &self.conn) {
            self.shared.health.fail(error);
        }
        let mut more = false;
        while let Some(first) = self.next(more) {
            let jobs: Vec<Queued> = first.into_iter().chain(self.queue.try_iter()).collect();
            if let Some(jobs) = self.not_only_patient(jobs) {
                self.round(jobs);
            }
            more = (more || self.journal_is_due()) && self.write_journal();
        }
        let left = std::mem::take(&mut self.patient);
        self.round(left);
        self.gather();
        while self.write_journal() {}
    }

    /// The next job; nothing where `more` of the journal waits to be written, or is due. `None`: there will be no more.
    fn next(&self, more: bool) -> Option<Option<Queued>> {
        if more {
            return Some(self.queue.try_recv().ok());
        }
        let due = self.due.into_iter().chain(self.patience).min();
        let Some(due) = due else { return self.queue.recv().ok().map(Some) };
        match self.queue.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(queued) => Some(Some(queued)),
            Err(RecvTimeoutError::Timeout) => Some(None),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// What is to be written now, the patient ones that came before included; `None` where nobody waits for any of it
    /// and it can wait for others.
    fn not_only_patient(&mut self, jobs: Vec<Queued>) -> Option<Vec<Queued>> {
        let now = Instant::now();
        let is_due = self.patience.is_some_and(|until| until <= now);
        let (journal, jobs): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|queued| matches!(queued.job, Job::Journal));
        if !journal.is_empty() {
            self.due = self.due.or_else(|| Some(now + JOURNAL_GATHERS));
        }
        let urgent = jobs.iter().any(|queued| !queued.job.patient());
        self.patient.extend(jobs);
        if urgent || is_due {
            self.patience = None;
            return Some(std::mem::take(&mut self.patient));
        }
        if !self.patient.is_empty() {
            self.patience = self.patience.or(Some(now + PATIENCE));
        }
        None
    }

    /// Whether the journal is to be written now; then what was gathered is here.
    fn journal_is_due(&mut self) -> bool {
        let due = !self.flushes.is_empty() || self.due.is_some_and(|due| due <= Instant::now());
        if due {
            self.gather();
        }
        due
    }

    fn gather(&mut self) {
        self.due = None;
        self.drafts.extend(self.shared.gathered());
    }

    fn round(&mut self, jobs: Vec<Queued>) {
        if let Some(error) = self.shared.health.failure() {
            self.gather();
            self.drafts.clear();
            self.owed.clear();
            return jobs.into_iter().for_each(|queued| queued.answer(Err(error.clone())));
        }
        let mut batch = std::mem::take(&mut self.owed);
        let mut settled = Vec::new();
        for queued in jobs {
            match queued.job {
                Job::Settle => settled.push(queued),
                Job::Flush => self.flushes.extend(queued.reply),
                _ => batch.push(queued),
            }
        }
        match self.commit(&batch) {
            Ok(()) => batch.into_iter().for_each(|queued| queued.answer(Ok(()))),
            Err(LedgerError::OutOfSpace) => self.on_full(batch),
            Err(error) => self.fail(error, batch),
        }
        settled.into_iter().for_each(|queued| queued.answer(Ok(())));
    }

    /// One transaction for all of `batch`.
    fn commit(&mut self, batch: &[Queued]) -> Result<(), LedgerError> {
        if batch.is_empty() {
            return Ok(());
        }
        let any = |wanted: fn(&Job) -> bool| batch.iter().any(|queued| wanted(&queued.job));
        self.promises |= any(|job| matches!(job, Job::Image { promised: true, .. }));
        let wanted = any(Job::synced) || (self.promises && any(|job| matches!(job, Job::Intend { .. })));
        let synced = self.shared.durability != Durability::Fast && wanted;
        self.transact(synced, |conn| batch.iter().try_for_each(|queued| queued.job.apply(conn)))?;
        self.promises &= !synced;
        Ok(())
    }

    fn transact(
        &mut self,
        synced: bool,
        write: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), LedgerError> {
        if self.syncing != synced {
            let setting = if synced { "PRAGMA synchronous=FULL" } else { "PRAGMA synchronous=NORMAL" };
            self.conn.execute_batch(setting)?;
            self.syncing = synced;
        }
        let run = |sql: &str| self.conn.prepare_cached(sql)?.execute([]).map(drop);
        run("BEGIN IMMEDIATE")?;
        let written = write(&self.conn).and_then(|()| run("COMMIT"));
        if let Err(error) = written {
            let _ = run("ROLLBACK");
            return Err(error.into());
        }
        self.shared.written(&self.conn)
    }

    /// Refuses what begins something and writes what ends something, if need be with the reserve given up.
    fn on_full(&mut self, batch: Vec<Queued>) {
        let (refused, rest): (Vec<_>, Vec<_>) = batch.into_iter().partition(|queued| queued.job.refusable());
        refused.into_iter().for_each(|queued| queued.answer(Err(LedgerError::OutOfSpace)));
        let mut written = self.commit(&rest);
        if written == Err(LedgerError::OutOfSpace) {
            self.shared.ballast.release();
            written = self.commit(&rest);
        }
        match written {
            Ok(()) => rest.into_iter().for_each(|queued| queued.answer(Ok(()))),
            Err(LedgerError::OutOfSpace) => {
                let (owed, lost) = rest.into_iter().partition(|queued| queued.job.owed());
                self.owed = owed;
                let lost: Vec<Queued> = lost;
                lost.into_iter().for_each(|queued| queued.answer(Err(LedgerError::OutOfSpace)));
            }
            Err(error) => self.fail(error, rest),
        }
    }

    fn fail(&mut self, error: LedgerError, batch: Vec<Queued>) {
        let error = self.shared.health.fail(error);
        batch.into_iter().for_each(|queued| queued.answer(Err(error.clone())));
    }

    /// Writes a batch of the journal; whether there is more that can be written now.
    fn write_journal(&mut self) -> bool {
        let take = self.drafts.len().min(JOURNAL_BATCH);
        let mut result = Ok(());
        if take > 0 {
            let gap = (self.dropped > 0).then(|| Draft {
                time: self.drafts[0].time,
                kind: "gap".to_owned(),
                body: format!("{{\"dropped\":{}}}", self.dropped).into_bytes(),
            });
            let drafts = std::mem::take(&mut self.drafts);
            let mut chain = self.chain;
            result = self.transact(false, |conn| {
                gap.iter().chain(drafts.iter().take(take)).try_for_each(|draft| chain.append(conn, draft))
            });
            self.drafts = drafts;
            match &result {
                Ok(()) => {
                    self.chain = chain;
                    self.dropped = 0;
                    self.drafts.drain(..take);
                }
                Err(LedgerError::OutOfSpace) => self.trim_backlog(),
                Err(error) => {
                    result = Err(self.shared.health.fail(error.clone()));
                    self.drafts.clear();
                }
            }
        }
        if result.is_err() || self.drafts.is_empty() {
            self.flushes.drain(..).for_each(|reply| {
                let _ = reply.send(result.clone());
            });
            return false;
        }
        true
    }

    fn trim_backlog(&mut self) {
        let mut held: usize = self.drafts.iter().map(|draft| draft.body.len()).sum();
        while held > JOURNAL_BACKLOG {
            let Some(oldest) = self.drafts.pop_front() else { break };
            held -= oldest.body.len();
            self.dropped += 1;
        }
    }
}
