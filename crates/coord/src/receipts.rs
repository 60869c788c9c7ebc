//! Receipts: proof of what a session was shown of a file, by content hash and line ranges.

use std::collections::BTreeMap;

use cotenant_model::{Digest, Millis, SessionId, WsPath};

use crate::lines::{LineMap, LineSet};

/// Receipts a session may hold; beyond it the oldest quarter goes, and those files ask for a read again.
const PER_SESSION: usize = 20_000;

/// What an answer showed of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The bytes of the whole file it was taken from.
    pub digest: Digest,
    /// Their number of lines; `None` where only a part of a large file was read.
    pub total_lines: Option<usize>,
    /// What was shown.
    pub lines: Lines,
}

/// Lines that were shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    /// All of the file.
    All,
    /// These, inclusive, from 1.
    Ranges(Vec<(usize, usize)>),
}

/// What a session has seen of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The version it saw.
    pub digest: Digest,
    /// The lines of that version it saw.
    pub ranges: LineSet,
    /// It saw all of it.
    pub whole: bool,
    /// Number of lines of that version, where it is known.
    pub total_lines: Option<usize>,
    /// When it was last shown something of it.
    pub at: Millis,
}

impl Receipt {
    fn of(digest: Digest, total_lines: Option<usize>, at: Millis) -> Receipt {
        Receipt { digest, ranges: LineSet::new(), whole: false, total_lines, at }
    }

    fn add(&mut self, lines: &Lines) {
        match lines {
            Lines::All => {
                self.whole = true;
                self.ranges.add(1, self.total_lines.unwrap_or(0));
            }
            Lines::Ranges(ranges) => {
                ranges.iter().for_each(|(first, last)| self.ranges.add((*first).max(1), *last));
            }
        }
        self.whole |= self.total_lines.is_some_and(|total| self.ranges.covers(1, total));
    }
}

/// How a session stands to a file as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was shown nothing of it.
    NeverShown,
    /// What it was shown is what stands there.
    Current {
        /// It saw all of it.
        whole: bool,
        /// The lines it saw.
        ranges: LineSet,
    },
    /// The file is another one by now.
    Stale {
        /// The version it saw.
        shown: Digest,
        /// It saw all of that version.
        whole: bool,
        /// The lines of that version it saw.
        ranges: LineSet,
    },
}

/// The receipts of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    by_session: BTreeMap<SessionId, BTreeMap<WsPath, Receipt>>,
}

impl Receipts {
    /// Notes what was shown. Another version than before replaces what was known of the old one.
    pub(crate) fn shown(&mut self, id: SessionId, at: &WsPath, shown: &Shown, now: Millis) {
        let receipts = self.by_session.entry(id).or_default();
        if receipts.len() >= PER_SESSION && !receipts.contains_key(at) {
            drop_oldest(receipts);
        }
        let fresh = || Receipt::of(shown.digest, shown.total_lines, now);
        let receipt = receipts.entry(at.clone()).or_insert_with(fresh);
        if receipt.digest != shown.digest {
            *receipt = fresh();
        }
        receipt.total_lines = receipt.total_lines.or(shown.total_lines);
        receipt.at = now;
        receipt.add(&shown.lines);
    }

    pub(crate) fn get(&self, id: SessionId, at: &WsPath) -> Option<&Receipt> {
        self.by_session.get(&id)?.get(at)
    }

    /// The session's own change from `old` to `new`: its receipt follows. Where it had none, or one of another version,
    /// it knows what it wrote.
    pub(crate) fn renewed(
        &mut self,
        id: SessionId,
        at: &WsPath,
        old: Digest,
        new: Option<Digest>,
        map: &LineMap,
        now: Millis,
    ) {
        let receipts = self.by_session.entry(id).or_default();
        let before = receipts.remove(at);
        let Some(new) = new else { return };
        let base = before.as_ref().filter(|receipt| receipt.digest == old);
        if base.is_none() && !map.known {
            receipts.extend(before.map(|receipt| (at.clone(), receipt)));
            return;
        }
        let seen = base.map_or_else(LineSet::new, |receipt| receipt.ranges.clone());
        let mut receipt = Receipt::of(new, map.total_lines, now);
        receipt.ranges = map.carry(&seen);
        receipt.whole = base.is_some_and(|receipt| receipt.whole) && map.known
            || map.total_lines.is_some_and(|total| receipt.ranges.covers(1, total));
        receipts.insert(at.clone(), receipt);
    }

    /// The path and all below it is gone, for every session.
    pub(crate) fn forget(&mut self, at: &WsPath) {
        for receipts in self.by_session.values_mut() {
            receipts.retain(|path, _| !path.is_within(at));
        }
    }

    /// What stood at `from` and below stands at `to`: the same bytes, so the receipts follow, in every session.
    pub(crate) fn moved(&mut self, from: &WsPath, to: &WsPath) {
        for receipts in self.by_session.values_mut() {
            let leaving: Vec<WsPath> = receipts.keys().filter(|path| path.is_within(from)).cloned().collect();
            let taken: Vec<_> = leaving
                .iter()
                .filter_map(|path| Some((path.moved(from, to)?, receipts.remove(path)?)))
                .collect();
            receipts.retain(|path, _| !path.is_within(to));
            receipts.extend(taken);
        }
    }

    /// The sessions that were shown something at or below `at`.
    pub(crate) fn holders_below(&self, at: &WsPath) -> impl Iterator<Item = SessionId> {
        self.by_session
            .iter()
            .filter(move |(_, receipts)| receipts.keys().any(|path| path.is_within(at)))
            .map(|(id, _)| *id)
    }

    pub(crate) fn clear(&mut self) {
        self.by_session.clear();
    }

    pub(crate) fn end(&mut self, id: SessionId) {
        self.by_session.remove(&id);
    }

    /// The sessions that were shown something of `at`, with the version each saw.
    pub(crate) fn holders(&self, at: &WsPath) -> impl Iterator<Item = (SessionId, Digest)> {
        self.by_session.iter().filter_map(move |(id, receipts)| Some((*id, receipts.get(at)?.digest)))
    }

    pub(crate) fn standing(&self, id: SessionId, at: &WsPath, current: Digest) -> Standing {
        match self.get(id, at) {
            None => Standing::NeverShown,
            Some(receipt) if receipt.digest == current => {
                Standing::Current { whole: receipt.whole, ranges: receipt.ranges.clone() }
            }
            Some(receipt) => Standing::Stale {
                shown: receipt.digest,
                whole: receipt.whole,
                ranges: receipt.ranges.clone(),
            },
        }
    }
}

fn drop_oldest(receipts: &mut BTreeMap<WsPath, Receipt>) {
    let mut times: Vec<Millis> = receipts.values().map(|receipt| receipt.at).collect();
    times.sort_unstable();
    let mut left = receipts.len() / 4;
    let limit = times.get(left.saturating_sub(1)).copied().unwrap_or_default();
    receipts.retain(|_, receipt| {
        let goes = left > 0 && receipt.at <= limit;
        left -= usize::from(goes);
        !goes
    });
}
