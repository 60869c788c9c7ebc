//! The writing half of the ledger. Only `engine` may name this module.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use cotenant_model::{Change, ChangeId, ChangeKind, Content, Digest, Durability, Millis, Outcome};

use crate::blobs::Image;
use crate::journal::Draft;
use crate::writer::Job;
use crate::{INLINE_MAX, Idempotency, Intent, Ledger, LedgerError, PinGuard, space};

/// An intent on its way to the disk.
#[must_use = "an intent is durable only once its ticket was waited for"]
#[derive(Debug)]
pub struct Ticket(Result<Receiver<Result<(), LedgerError>>, LedgerError>);

impl Ticket {
    /// Waits until the intent is durable, as far as the ledger's durability goes. On an error nothing of it stands in
    /// the ledger, and nothing may be written. The one exception is [`LedgerError::Failed`]: then the intent may stand
    /// there, and recovery after [`Ledger::reopen`] will find that nothing of it happened.
    pub fn wait(self) -> Result<(), LedgerError> {
        self.0?.recv().unwrap_or_else(|_| Err(Ledger::gone()))
    }
}

/// The id for a change that is about to be intended. Ids rise; one that was intended is never given again.
pub fn next_change(ledger: &Ledger) -> ChangeId {
    ChangeId(ledger.inner.next_change.fetch_add(1, Ordering::Relaxed))
}

/// Queues an intent. All intents that wait when the writer is free become durable with one flush. Refused where the
/// disk would not hold it and 16 MiB besides (R14).
pub fn intend(ledger: &Ledger, intent: Intent) -> Ticket {
    intend_at(ledger, intent, ledger.durability())
}

/// Like [`intend`], for a change of this durability: at `Fast` the intent survives the end of the process, not that of
/// the machine, unless an image that does was stored since the last flush: that one may be what the change replaces.
pub fn intend_at(ledger: &Ledger, intent: Intent, durability: Durability) -> Ticket {
    let inline = intent.paths.iter().filter_map(|path| path.inline_pre.as_ref()).map(Vec::len).sum::<usize>();
    let bytes = (inline + intent.paths.len() * 1024) as u64;
    let room = space::room(&ledger.inner.shared.dir, bytes);
    let light = durability == Durability::Fast;
    Ticket(room.map(|()| ledger.ask(Job::Intend { intent: Box::new(intent), light })))
}

/// Notes that the directory of the intent's path `index` was made and has inode `ino`. Not waited for; order is kept.
pub fn note_made_dir(ledger: &Ledger, change: ChangeId, index: usize, ino: u64) {
    ledger.tell(Job::MadeDir { change, index, ino });
}

/// Ends an intent: it becomes a change in history, and `answer` is kept under its idempotency key. Not waited for;
/// order is kept. An intent that is not there, or ended before, stays as it is.
pub fn seal(ledger: &Ledger, change: ChangeId, outcome: Outcome, answer: Option<Vec<u8>>) {
    ledger.tell(Job::Seal { change, outcome, answer });
}

/// The temporary names of a sealed change are gone from the disk. Not waited for; order is kept.
pub fn swept(ledger: &Ledger, change: ChangeId) {
    ledger.tell(Job::Swept { change });
}

/// The changes, oldest first, that were sealed but never [`swept`]: a crash may have left their temporary names. An
/// intent of this kind has its outcome and carries no image.
pub fn unswept(ledger: &Ledger) -> Result<Vec<Intent>, LedgerError> {
    flush(ledger)?;
    ledger.read(crate::rows::unswept)
}

/// Waits until everything queued before, the journal excepted, is in the database (not necessarily synced).
pub fn written(ledger: &Ledger) -> Result<(), LedgerError> {
    ledger.run(Job::Settle)?;
    // The batch may have failed under it.
    ledger.trusted()
}

/// Waits until everything queued before, the journal too, is in the database (not necessarily synced).
pub fn flush(ledger: &Ledger) -> Result<(), LedgerError> {
    ledger.run(Job::Flush)
}

/// Records a foreign write that was found, durably; its id is given by the ledger, the one in `change` is not used.
/// Its images should be stored before. `Open` counts as `Sealed`.
pub fn observe(ledger: &Ledger, change: Change) -> Result<ChangeId, LedgerError> {
    let id = next_change(ledger);
    let outcome = if change.outcome == Outcome::Open { Outcome::Sealed } else { change.outcome };
    let change = Change { id, outcome, kind: ChangeKind::Observed, ..change };
    ledger.run(Job::Observe(Box::new(change)))?;
    Ok(id)
}

/// Stores an image. Readable at once, not synced: see [`sync_blobs`].
pub fn store(ledger: &Ledger, bytes: &[u8]) -> Result<Digest, LedgerError> {
    store_at(ledger, bytes, ledger.durability())
}

/// Like [`store`], for a change of this durability.
pub fn store_at(ledger: &Ledger, bytes: &[u8], durability: Durability) -> Result<Digest, LedgerError> {
    store_as(ledger, bytes, Digest::of(bytes), durability)
}

/// Like [`store_at`], of bytes that know their digest.
pub fn store_content(
    ledger: &Ledger,
    content: &Content,
    durability: Durability,
) -> Result<Digest, LedgerError> {
    store_as(ledger, content, content.digest(), durability)
}

fn store_as(
    ledger: &Ledger,
    bytes: &[u8],
    digest: Digest,
    durability: Durability,
) -> Result<Digest, LedgerError> {
    if bytes.len() <= INLINE_MAX {
        let promised = durability != Durability::Fast;
        ledger.run(Job::Image { digest, bytes: bytes.to_vec(), promised })?;
    } else {
        ledger.trusted()?;
        // It may be packed.
        if ledger.inline(digest)?.is_none() {
            ledger.watched(ledger.inner.blobs.write(digest, bytes))?;
        }
    }
    Ok(digest)
}

/// Stores the content of an open regular file, from its beginning, whatever the descriptor's offset. Not synced.
pub fn store_file(ledger: &Ledger, file: BorrowedFd<'_>) -> Result<Digest, LedgerError> {
    ledger.trusted()?;
    match ledger.watched(ledger.inner.blobs.copy(file))? {
        Image::Filed(digest) => Ok(digest),
        Image::Small(bytes) => store(ledger, &bytes),
    }
}

/// Many images on their way into the store: nobody waits for the single one. They are pinned from the first.
#[must_use = "the images are readable, or known not to be, only when all were waited for"]
#[derive(Debug)]
pub struct Storing<'l> {
    ledger: &'l Ledger,
    pins: PinGuard,
    waiting: Vec<Receiver<Result<(), LedgerError>>>,
}

impl<'l> Storing<'l> {
    /// Begins.
    pub fn new(ledger: &'l Ledger) -> Storing<'l> {
        Storing { ledger, pins: ledger.pin(&[]), waiting: Vec::new() }
    }

    /// Takes in the content of an open regular file, as [`store_file`] does.
    pub fn file(&mut self, file: BorrowedFd<'_>) -> Result<Digest, LedgerError> {
        self.ledger.trusted()?;
        loop {
            match self.ledger.watched(self.ledger.inner.blobs.copy(file))? {
                Image::Small(bytes) => return self.bytes(bytes),
                Image::Filed(digest) => {
                    self.pins.add(digest);
                    // Retention may have come in between.
                    if has(self.ledger, digest) {
                        return Ok(digest);
                    }
                }
            }
        }
    }

    /// Takes in these bytes.
    pub fn bytes(&mut self, bytes: Vec<u8>) -> Result<Digest, LedgerError> {
        let digest = Digest::of(&bytes);
        self.pins.add(digest);
        if bytes.len() > INLINE_MAX {
            return store(self.ledger, &bytes);
        }
        // Whoever comes to rely on it syncs it.
        self.waiting.push(self.ledger.ask(Job::Image { digest, bytes, promised: false }));
        Ok(digest)
    }

    /// Waits until all are readable; they stay as long as the guard. Not synced: see [`sync_blobs`]. On an error some may
    /// not be stored.
    pub fn done(self) -> Result<PinGuard, LedgerError> {
        let wait =
            |one: Receiver<Result<(), LedgerError>>| one.recv().unwrap_or_else(|_| Err(Ledger::gone()));
        self.waiting.into_iter().try_for_each(wait)?;
        Ok(self.pins)
    }
}

/// Takes the displaced inode `name` in `dir` into the store as `expected`: by a rename where both lie on one mount and
/// it has no other name, else by a copy. The digest of what is copied is verified now ([`LedgerError::Corrupt`] where
/// someone wrote into it), the digest of what is renamed whenever it is read. Afterwards the name may or may not be
/// there: the caller unlinks what is left of it, once [`sync_blobs`] returned. Not synced.
pub fn adopt(ledger: &Ledger, dir: BorrowedFd<'_>, name: &[u8], expected: Digest) -> Result<(), LedgerError> {
    ledger.trusted()?;
    match ledger.watched(ledger.inner.blobs.adopt(dir, name, expected))? {
        Image::Filed(_) => Ok(()),
        Image::Small(bytes) => store(ledger, &bytes).map(drop),
    }
}

/// Whether the image is in the store. [Pin](Ledger::pin) it before, or retention may remove it right after.
pub fn has(ledger: &Ledger, digest: Digest) -> bool {
    ledger.inner.blobs.has(digest) || ledger.inline(digest).is_ok_and(|image| image.is_some())
}

/// Keeps the next large image that differs little from the one before it as a delta, off the path of any call: `false`
/// where there is none left to look at. The caller pauses in between. See `pack`.
pub fn pack(ledger: &Ledger) -> Result<bool, LedgerError> {
    ledger.pack_next()
}

/// Makes stored images durable. At durability `fast` there is nothing to do.
pub fn sync_blobs(ledger: &Ledger, digests: &[Digest]) -> Result<(), LedgerError> {
    ledger.trusted()?;
    let (files, small): (Vec<Digest>, Vec<Digest>) =
        digests.iter().partition(|digest| ledger.inner.blobs.has(**digest));
    for digest in &small {
        ledger.inline(*digest)?.ok_or(LedgerError::Missing(*digest))?;
    }
    if ledger.durability() == Durability::Fast {
        return Ok(());
    }
    if !files.is_empty() {
        for gone in ledger.watched(ledger.inner.blobs.sync(&files))? {
            // What was packed meanwhile is durable.
            ledger.inline(gone)?.ok_or(LedgerError::Missing(gone))?;
        }
    }
    if small.is_empty() { Ok(()) } else { ledger.run(Job::Barrier) }
}

/// Keeps an answer that came without a change (a final refusal) under its key, as of `now`. Not waited for.
pub fn remember(ledger: &Ledger, key: &Idempotency, answer: &[u8], now: Millis) {
    ledger.tell(Job::Remember { key: key.clone(), answer: answer.to_vec(), time: now });
}

/// Appends to the journal: `body` is opaque, secrets in it are masked, each entry's hash covers the one before. Not
/// waited for, and written after all that is waited for, at most a few hundredths of a second later.
pub fn journal(ledger: &Ledger, time: Millis, kind: &str, body: &[u8]) {
    if ledger.inner.shared.gather(Draft { time, kind: kind.to_owned(), body: body.to_vec() }) {
        ledger.tell(Job::Journal);
    }
}
