//! The writing half of the ledger. Only `engine` may name this module.

use std::os::fd::BorrowedFd;

use cotenant_model::{Change, ChangeId, Digest, Millis, Outcome};

use crate::{Idempotency, Intent, Ledger, LedgerError};

/// An intent on its way to the disk.
#[must_use = "an intent is durable only once its ticket was waited for"]
#[derive(Debug)]
pub struct Ticket(pub(crate) Result<(), LedgerError>);

impl Ticket {
    /// Waits until the intent is durable, as far as the ledger's durability goes. On an error nothing of it stands in
    /// the ledger, and nothing may be written.
    pub fn wait(self) -> Result<(), LedgerError> {
        self.0
    }
}

/// The id for a change that is about to be intended. Ids rise and are never used twice.
pub fn next_change(ledger: &Ledger) -> ChangeId {
    let _ = ledger;
    ChangeId(1)
}

/// Queues an intent. All intents that wait when the writer is free become durable with one flush.
pub fn intend(ledger: &Ledger, intent: Intent) -> Ticket {
    let _ = (ledger, intent);
    Ticket(Ok(()))
}

/// Notes that the directory of the intent's path `index` was made and has inode `ino`. Not waited for; order is kept.
pub fn note_made_dir(ledger: &Ledger, change: ChangeId, index: usize, ino: u64) {
    let _ = (ledger, change, index, ino);
}

/// Ends an intent: it becomes a change in history, and `answer` is kept under its idempotency key. Not waited for;
/// order is kept.
pub fn seal(ledger: &Ledger, change: ChangeId, outcome: Outcome, answer: Option<Vec<u8>>) {
    let _ = (ledger, change, outcome, answer);
}

/// Waits until everything queued before is in the database (not necessarily synced).
pub fn flush(ledger: &Ledger) -> Result<(), LedgerError> {
    let _ = ledger;
    Ok(())
}

/// Records a foreign write that was found; its id is given by the ledger, the one in `change` is not used. Its images
/// should be stored before.
pub fn observe(ledger: &Ledger, change: Change) -> Result<ChangeId, LedgerError> {
    let _ = ledger;
    Ok(change.id)
}

/// Stores an image. Not synced: see [`sync_blobs`].
pub fn store(ledger: &Ledger, bytes: &[u8]) -> Result<Digest, LedgerError> {
    let _ = ledger;
    Ok(Digest::of(bytes))
}

/// Stores the content of an open regular file, from its beginning, whatever the descriptor's offset. Not synced.
pub fn store_file(ledger: &Ledger, file: BorrowedFd<'_>) -> Result<Digest, LedgerError> {
    let _ = (ledger, file);
    Ok(Digest::of(b""))
}

/// Takes the displaced inode `name` in `dir` into the store as `expected`: by a rename where both lie on one mount and
/// it has no other name, else by a copy. The digest is verified whenever the image is read. Afterwards the name may
/// or may not be there: the caller unlinks what is left of it, once [`sync_blobs`] returned. Not synced.
pub fn adopt(ledger: &Ledger, dir: BorrowedFd<'_>, name: &[u8], expected: Digest) -> Result<(), LedgerError> {
    let _ = (ledger, dir, name, expected);
    Ok(())
}

/// Whether the image is in the store. Take a pin before relying on it, or retention may remove it meanwhile.
pub fn has(ledger: &Ledger, digest: Digest) -> bool {
    let _ = (ledger, digest);
    false
}

/// Makes stored images durable. At durability `fast` there is nothing to do.
pub fn sync_blobs(ledger: &Ledger, digests: &[Digest]) -> Result<(), LedgerError> {
    let _ = (ledger, digests);
    Ok(())
}

/// Keeps an answer that came without a change (a final refusal) under its key. Not waited for.
pub fn remember(ledger: &Ledger, key: &Idempotency, answer: &[u8], now: Millis) {
    let _ = (ledger, key, answer, now);
}

/// Appends to the journal: `body` is opaque, secrets in it are masked, each entry's hash covers the one before. Not
/// waited for, written after all that is waited for.
pub fn journal(ledger: &Ledger, time: Millis, kind: &str, body: &[u8]) {
    let _ = (ledger, time, kind, body);
}
