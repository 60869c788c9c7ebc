//! What a session did and what it missed: its own changed files, and others' changes on files that it saw.

use std::collections::BTreeMap;

use cotenant_model::{Agent, ChangeId, Digest, Millis, SessionId, WsPath};

/// Missed changes remembered per file; the oldest go.
const MISSED: usize = 10;

/// A file of a change that landed, or was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedFile {
    /// Where.
    pub at: WsPath,
    /// What stands there now; `None` where no file does.
    pub post: Option<Digest>,
    /// The changed lines of the new version, inclusive, from 1; empty where they are not known.
    pub lines: Vec<(usize, usize)>,
}

/// A change that a session has not seen, on a file that it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// Whose; `None` where it was no session of ours.
    pub by: Option<Agent>,
    /// Which.
    pub change: ChangeId,
    /// The changed lines of the version it left; empty where they are not known.
    pub lines: Vec<(usize, usize)>,
    /// When.
    pub time: Millis,
}

/// For `whoami`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The files the session changed, with the changes, oldest first.
    pub changed: BTreeMap<WsPath, Vec<ChangeId>>,
    /// The files it saw that others changed since, with what it missed, oldest first.
    pub unseen: BTreeMap<WsPath, Vec<Unseen>>,
}

/// The work of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Works(BTreeMap<SessionId, Work>);

impl Works {
    pub(crate) fn get(&self, id: SessionId) -> Option<&Work> {
        self.0.get(&id)
    }

    pub(crate) fn did(&mut self, id: SessionId, at: &WsPath, change: ChangeId) {
        let changes = self.0.entry(id).or_default().changed.entry(at.clone()).or_default();
        if changes.last() != Some(&change) {
            changes.push(change);
        }
    }

    pub(crate) fn missed(&mut self, id: SessionId, at: &WsPath, unseen: Unseen) {
        let missed = self.0.entry(id).or_default().unseen.entry(at.clone()).or_default();
        if missed.len() >= MISSED {
            missed.remove(0);
        }
        missed.push(unseen);
    }

    /// What stood at `from` and below stands at `to`: what sessions did to it and missed of it goes along.
    pub(crate) fn moved(&mut self, from: &WsPath, to: &WsPath) {
        for work in self.0.values_mut() {
            rebase(&mut work.changed, from, to);
            rebase(&mut work.unseen, from, to);
        }
    }

    /// The session has seen the file as it is.
    pub(crate) fn saw(&mut self, id: SessionId, at: &WsPath) {
        if let Some(work) = self.0.get_mut(&id) {
            work.unseen.remove(at);
        }
    }

    /// No session has seen anything any more, so none has missed anything.
    pub(crate) fn forget_unseen(&mut self) {
        self.0.values_mut().for_each(|work| work.unseen.clear());
    }

    pub(crate) fn end(&mut self, id: SessionId) {
        self.0.remove(&id);
    }
}

/// What is kept under paths at and below `from` is kept under those at and below `to`, beside what is there.
fn rebase<T>(map: &mut BTreeMap<WsPath, Vec<T>>, from: &WsPath, to: &WsPath) {
    let leaving: Vec<WsPath> = map.keys().filter(|path| path.is_within(from)).cloned().collect();
    let taken: Vec<_> =
        leaving.iter().filter_map(|path| Some((path.moved(from, to)?, map.remove(path)?))).collect();
    for (path, list) in taken {
        map.entry(path).or_default().extend(list);
    }
}
