//! Reading many files into the ledger, on as many threads as help.

use cotenant_ledger::{LedgerError, PinGuard, commit as record};
use cotenant_model::{Digest, WsPath};
use cotenant_tree::{Opened, Stat, Tree};

use super::{Bounds, Loss};
use crate::workspace::Workspace;

/// Images that are waited for at once.
const BATCH: usize = 256;
/// More threads do not make it faster.
const MAX_THREADS: usize = 4;
/// How often a file that changes under the read is read again.
const REREADS: usize = 3;

/// A file to read.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) at: WsPath,
    pub(super) bytes: u64,
}

/// A file that was read.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) at: WsPath,
    /// Its stat when these bytes were read, and their digest.
    pub(super) found: Result<(Stat, Digest), Loss>,
}

/// Takes the bytes of files into the ledger as far as the bounds go, the small ones first where they do not reach. What is
/// out of bounds is read for its digest alone where `digests` says so. What is stored stays as long as the guards.
pub(super) fn store(
    ws: &Workspace,
    mut wanted: Vec<Wanted>,
    bounds: Bounds,
    digests: bool,
) -> Result<(Vec<Read>, Vec<PinGuard>), LedgerError> {
    if wanted.iter().map(|file| file.bytes).sum::<u64>() > bounds.run_bytes {
        wanted.sort_by_key(|file| file.bytes);
    }
    let mut used = 0;
    let within: Vec<(Wanted, Option<Loss>)> = wanted
        .into_iter()
        .map(|file| {
            let over = if file.bytes > bounds.file_bytes {
                Some(Loss::TooLarge)
            } else if used + file.bytes > bounds.run_bytes {
                Some(Loss::OverBudget)
            } else {
                used += file.bytes;
                None
            };
            (file, over)
        })
        .collect();
    ws.ledger().room(used)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = within.len().div_ceil(threads).max(BATCH);
    let read = |files: &[(Wanted, Option<Loss>)]| batches(ws, files, digests);
    std::thread::scope(|scope| {
        let workers: Vec<_> = within.chunks(share).map(|files| scope.spawn(move || read(files))).collect();
        let (mut all, mut pins) = (Vec::with_capacity(within.len()), Vec::new());
        for worker in workers {
            let died = || LedgerError::Failed("a reading thread died".into());
            let (read, pinned) = worker.join().unwrap_or_else(|_| Err(died()))?;
            all.extend(read);
            pins.extend(pinned);
        }
        Ok((all, pins))
    })
}

fn batches(
    ws: &Workspace,
    files: &[(Wanted, Option<Loss>)],
    digests: bool,
) -> Result<(Vec<Read>, Vec<PinGuard>), LedgerError> {
    let (mut all, mut pins) = (Vec::with_capacity(files.len()), Vec::new());
    for batch in files.chunks(BATCH) {
        let mut storing = record::Storing::new(ws.ledger());
        for (file, over) in batch {
            let found = match over {
                None => read(ws.tree(), &file.at, |opened| storing.file(opened.fd()))?,
                Some(_) if digests => {
                    read(ws.tree(), &file.at, |opened| Ok(opened.digest().ok())).map(|found| {
                        found.and_then(|(stat, digest)| Ok((stat, digest.ok_or(Loss::Unreadable)?)))
                    })?
                }
                Some(over) => Err(*over),
            };
            all.push(Read { at: file.at.clone(), found });
        }
        pins.push(storing.done()?);
    }
    Ok((all, pins))
}

/// Reads a file while it holds still, or, where it does not, as it was in the end.
fn read<T>(
    tree: &Tree,
    at: &WsPath,
    mut take: impl FnMut(&mut Opened) -> Result<T, LedgerError>,
) -> Result<Result<(Stat, T), Loss>, LedgerError> {
    let mut rereads = 0;
    loop {
        let Ok(mut opened) = tree.open_file(at) else { return Ok(Err(Loss::Unreadable)) };
        let taken = take(&mut opened)?;
        if opened.unchanged() || rereads == REREADS {
            return Ok(Ok((*opened.stat(), taken)));
        }
        rereads += 1;
    }
}
