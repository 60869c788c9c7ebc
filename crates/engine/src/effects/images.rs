//! Which image belongs to which version of a file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cotenant_ledger::{Ledger, PinGuard};
use cotenant_model::{Digest, WsPath};
use cotenant_tree::Stat;

/// Versions that are remembered from run to run, at most.
const REMEMBERED: usize = 200_000;

/// A version of a file: what its stat tells of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Version {
    dev: u64,
    ino: u64,
    size: u64,
    mtime_ns: i64,
    ctime_ns: i64,
}

impl Version {
    pub(super) fn of(stat: &Stat) -> Version {
        // Until the year 2262.
        let short = |ns: i128| i64::try_from(ns).unwrap_or(i64::MAX);
        let (mtime_ns, ctime_ns) = (short(stat.mtime_ns), short(stat.ctime_ns));
        Version { dev: stat.dev, ino: stat.ino, size: stat.size, mtime_ns, ctime_ns }
    }
}

/// Where the bytes of a version are.
#[derive(Clone, Debug)]
pub(super) enum Image {
    /// In the ledger.
    Stored(Digest),
    /// In a repository's objects.
    Git { repository: Arc<WsPath>, object: Box<str> },
}

/// Versions whose images are to be had; those in the ledger are pinned, so that it goes on having them.
#[derive(Debug)]
pub(super) struct Covered {
    by_version: HashMap<Version, Image>,
    _pins: PinGuard,
}

impl Covered {
    pub(super) fn new(ledger: &Ledger, by_version: HashMap<Version, Image>) -> Covered {
        let stored = |image: &Image| match image {
            Image::Stored(digest) => Some(*digest),
            Image::Git { .. } => None,
        };
        let digests: Vec<Digest> = by_version.values().filter_map(stored).collect();
        Covered { by_version, _pins: ledger.pin(&digests) }
    }

    pub(super) fn get(&self, version: &Version) -> Option<&Image> {
        self.by_version.get(version)
    }
}

/// What the last run left: the next one need not read it all again, nor ask git.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Option<Arc<Covered>>>);

impl Known {
    pub(super) fn get(&self) -> Option<Arc<Covered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, covered: &Arc<Covered>) {
        let kept = (covered.by_version.len() <= REMEMBERED).then(|| Arc::clone(covered));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }
}
