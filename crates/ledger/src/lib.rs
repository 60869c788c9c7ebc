//! The ledger: what is about to be changed, what was changed, every image that was overwritten, and a journal.

mod error;
mod intent;

pub mod commit;

use std::path::PathBuf;
use std::sync::Arc;

pub use cotenant_model::Durability;
use cotenant_model::{Change, ChangeId, Digest, Millis, SessionId, WsPath};
pub use error::LedgerError;
pub use intent::{IDEMPOTENCY_MS, INLINE_MAX, Idempotency, Intent, IntentPath, ParentId, Recalled};

/// Where the ledger lives and what its writes survive.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// The workspace's state folder, outside the tree; made (0700) if absent.
    pub dir: PathBuf,
    /// What a durable intent survives.
    pub durability: Durability,
}

/// What the state folder lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A disk.
    Disk,
    /// Memory (tmpfs, ramfs): whatever the settings say, the durability is `fast`.
    Volatile,
}

/// The ledger of one workspace; clones share it.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<()>);

/// Which changes to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// On this path; a directory covers all below. `None`: everywhere.
    pub path: Option<WsPath>,
    /// By this agent.
    pub agent: Option<String>,
    /// In this session.
    pub session: Option<SessionId>,
    /// In this turn of `session`.
    pub turn: Option<u32>,
    /// From here on.
    pub since: Option<Since>,
    /// Also those that were aborted, of which nothing stands.
    pub aborted: bool,
    /// At most so many; 0 for no limit.
    pub limit: usize,
}

/// Where a listing ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// After this change, itself left out.
    Change(ChangeId),
    /// At or after this time, wall clock.
    Time(Millis),
}

/// Whether the images of a change are still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restorable {
    /// They are kept.
    Yes,
    /// Retention removed them at `since`, wall clock.
    Expired {
        /// When.
        since: Millis,
    },
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// Its number, from 1 without gaps.
    pub seq: u64,
    /// Wall clock.
    pub time: Millis,
    /// A word.
    pub kind: String,
    /// Opaque bytes, secrets masked.
    pub body: Vec<u8>,
    /// BLAKE3 over the previous entry's hash, time, kind and body.
    pub hash: Digest,
}

/// The outcome of checking the journal's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalReport {
    /// Entries checked.
    pub entries: u64,
    /// The first entry that does not follow from the one before.
    pub broken_at: Option<u64>,
    /// The last good hash; kept elsewhere, it proves later that nothing was cut off.
    pub head: Option<Digest>,
}

/// Images that retention leaves alone while this lives.
#[derive(Debug)]
pub struct PinGuard(());

/// What retention did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Changes that became not restorable.
    pub expired: u64,
    /// Images removed.
    pub images: u64,
    /// Bytes freed.
    pub bytes: u64,
    /// Bytes still kept that count against the limit.
    pub kept: u64,
}

/// Removes what is over `days` old, then the oldest until at most `megabytes` (10^6 bytes) are kept (R23).
pub fn prune(ledger: &Ledger, now: Millis, days: u64, megabytes: u64) -> Result<Report, LedgerError> {
    let _ = (ledger, now, days, megabytes);
    Ok(Report::default())
}

/// Checks an exported chain. The first entry is taken on trust unless it is number 1.
pub fn verify_export(entries: impl IntoIterator<Item = JournalEntry>) -> JournalReport {
    JournalReport { entries: entries.into_iter().count() as u64, broken_at: None, head: None }
}

/// `text` with what looks like a secret replaced.
pub fn mask(text: &str) -> String {
    text.to_owned()
}

impl Ledger {
    /// Opens or makes the ledger, and takes the lock that keeps every other process out. Returns the intents that were
    /// never sealed, oldest first: they must be recovered (R5) before anything else is written.
    pub fn open(options: &LedgerOptions) -> Result<(Ledger, Vec<Intent>), LedgerError> {
        let _ = options;
        Ok((Ledger(Arc::new(())), Vec::new()))
    }

    /// After a failure: opens the database anew. Returns the unsealed intents, which must be recovered (R13).
    pub fn reopen(&self) -> Result<Vec<Intent>, LedgerError> {
        Ok(Vec::new())
    }

    /// The failure after which nothing is written any more, if there was one.
    pub fn failure(&self) -> Option<LedgerError> {
        None
    }

    /// What the state folder lies on.
    pub fn medium(&self) -> Medium {
        Medium::Disk
    }

    /// What a durable intent really survives: that of the options, or `Fast` on a volatile medium.
    pub fn durability(&self) -> Durability {
        Durability::Full
    }

    /// An image, its digest verified; `None` where it is not stored.
    pub fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        let _ = digest;
        Ok(None)
    }

    /// A change.
    pub fn change(&self, id: ChangeId) -> Result<Option<Change>, LedgerError> {
        let _ = id;
        Ok(None)
    }

    /// Changes, newest first.
    pub fn history(&self, query: &Query) -> Result<Vec<Change>, LedgerError> {
        let _ = query;
        Ok(Vec::new())
    }

    /// The newest change of exactly this path of which something stands; `None` also where it cannot be read.
    pub fn newest(&self, at: &WsPath) -> Option<Change> {
        let _ = at;
        None
    }

    /// What is known of an idempotency key (its `args` are not looked at), if it is younger than
    /// [`IDEMPOTENCY_MS`] at `now`.
    pub fn recall(&self, key: &Idempotency, now: Millis) -> Result<Option<Recalled>, LedgerError> {
        let _ = (key, now);
        Ok(None)
    }

    /// The next number of a kind (`session`, `approval`, …), from 1, never the same again, across restarts too. Gaps
    /// happen: numbers are reserved in blocks.
    pub fn next_id(&self, kind: &str) -> u64 {
        let _ = kind;
        1
    }

    /// Whether a change can still be taken back.
    pub fn restorable(&self, change: &Change) -> Result<Restorable, LedgerError> {
        let _ = change;
        Ok(Restorable::Yes)
    }

    /// Keeps images from retention until the guard is dropped.
    pub fn pin(&self, digests: &[Digest]) -> PinGuard {
        let _ = digests;
        PinGuard(())
    }

    /// Journal entries with a number over `after`, in order, at most `limit`.
    pub fn journal_entries(&self, after: u64, limit: usize) -> Result<Vec<JournalEntry>, LedgerError> {
        let _ = (after, limit);
        Ok(Vec::new())
    }

    /// Checks the whole chain of the journal.
    pub fn verify_journal(&self) -> Result<JournalReport, LedgerError> {
        Ok(JournalReport { entries: 0, broken_at: None, head: None })
    }
}
