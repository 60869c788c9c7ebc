//! What is kept for a session and fetched again by a short name: calls to retry, suggestions, the rest of capped answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use cotenant_model::{ApprovalId, Millis, SessionId, WsPath};

/// A kept thing lives so long; a retry token of a question also as long as the question and its outcome are kept.
pub const KEEP_MS: u64 = 600_000;

/// A capped answer lives so long.
const HANDLE_MS: u64 = 3_600_000;

/// A call that `retry` repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The tool.
    pub tool: Arc<str>,
    /// Its arguments, as the tools encode them.
    pub args: Arc<[u8]>,
    /// The question whose result it collects.
    pub approval: Option<ApprovalId>,
}

/// A proposal made by a refusal, accepted in one short call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The file it is for.
    pub at: WsPath,
    /// What it would do, as the tools encode it.
    pub payload: Arc<[u8]>,
}

/// The rest of a capped answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// What it is the rest of, such as `search_files pattern=x`.
    pub title: String,
    /// The whole answer's bytes.
    pub bytes: Arc<[u8]>,
}

/// What a [`Shelf`] holds.
pub(crate) trait Kept {
    /// Bytes that count against the bounds.
    fn weight(&self) -> usize;

    /// It belongs to a question: it makes no room for others.
    fn pinned(&self) -> bool {
        false
    }
}

/// What an entry counts besides its bytes, so that the number of small ones is bounded, too.
const OVERHEAD: usize = 4096;

impl Kept for Retry {
    fn weight(&self) -> usize {
        OVERHEAD + self.args.len()
    }

    fn pinned(&self) -> bool {
        self.approval.is_some()
    }
}
impl Kept for Suggestion {
    fn weight(&self) -> usize {
        OVERHEAD + self.at.path.as_bytes().len() + self.payload.len()
    }
}
impl Kept for Handle {
    fn weight(&self) -> usize {
        OVERHEAD + self.title.len() + self.bytes.len()
    }
}

#[derive(Debug)]
struct Item<T> {
    session: SessionId,
    /// `None`: it is over by itself, and lives as long as the question it belongs to.
    deadline: Option<Millis>,
    thing: T,
}

/// Things by rising number, bounded in bytes per session and in all: the oldest goes first, but the newest always
/// stays, and so does what belongs to a question.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    last: u64,
    items: BTreeMap<u64, Item<T>>,
    session_bytes: usize,
    total_bytes: usize,
}

impl<T: Kept> Shelf<T> {
    pub(crate) fn new(session_bytes: usize, total_bytes: usize) -> Shelf<T> {
        Shelf { last: 0, items: BTreeMap::new(), session_bytes, total_bytes }
    }

    pub(crate) fn keep(&mut self, session: SessionId, thing: T, deadline: Millis) -> u64 {
        self.last += 1;
        self.items.insert(self.last, Item { session, deadline: Some(deadline), thing });
        self.trim(self.session_bytes, |item| item.session == session);
        self.trim(self.total_bytes, |_| true);
        self.last
    }

    /// Drops the oldest of those that `counts` until they weigh at most `limit`.
    fn trim(&mut self, limit: usize, counts: impl Fn(&Item<T>) -> bool) {
        let weight: usize =
            self.items.values().filter(|item| counts(item)).map(|item| item.thing.weight()).sum();
        let mut over = weight.saturating_sub(limit);
        let newest = self.last;
        self.items.retain(|id, item| {
            let goes = over > 0 && *id != newest && !item.thing.pinned() && counts(item);
            if goes {
                over = over.saturating_sub(item.thing.weight());
            }
            !goes
        });
    }

    /// The thing, if it is this session's and its time is not over; `lives` decides of what is over by itself.
    pub(crate) fn get(
        &self,
        session: SessionId,
        id: u64,
        now: Millis,
        lives: impl Fn(&T) -> bool,
    ) -> Option<&T> {
        let item = self.items.get(&id).filter(|item| item.session == session)?;
        (!over(item.deadline, now) || lives(&item.thing)).then_some(&item.thing)
    }

    pub(crate) fn end(&mut self, session: SessionId) {
        self.items.retain(|_, item| item.session != session);
    }

    /// Drops what is over and does not live on.
    pub(crate) fn expire(&mut self, now: Millis, lives: impl Fn(&T) -> bool) {
        self.items.retain(|_, item| {
            if !over(item.deadline, now) {
                return true;
            }
            item.deadline = None;
            lives(&item.thing)
        });
    }

    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.items.values().filter_map(|item| item.deadline).min()
    }
}

fn over(deadline: Option<Millis>, now: Millis) -> bool {
    deadline.is_none_or(|deadline| deadline <= now)
}

/// Megabytes, in bytes.
const MB: usize = 1024 * 1024;

/// The three shelves of the workspace.
#[derive(Debug)]
pub(crate) struct Keep {
    pub(crate) retries: Shelf<Retry>,
    pub(crate) suggestions: Shelf<Suggestion>,
    pub(crate) handles: Shelf<Handle>,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep {
            retries: Shelf::new(16 * MB, 64 * MB),
            suggestions: Shelf::new(4 * MB, 16 * MB),
            handles: Shelf::new(16 * MB, 64 * MB),
        }
    }
}

impl Keep {
    pub(crate) fn keep_retry(&mut self, session: SessionId, retry: Retry, now: Millis) -> u64 {
        self.retries.keep(session, retry, now.plus(KEEP_MS))
    }

    pub(crate) fn keep_suggestion(&mut self, session: SessionId, suggestion: Suggestion, now: Millis) -> u64 {
        self.suggestions.keep(session, suggestion, now.plus(KEEP_MS))
    }

    pub(crate) fn keep_handle(&mut self, session: SessionId, handle: Handle, now: Millis) -> u64 {
        self.handles.keep(session, handle, now.plus(HANDLE_MS))
    }

    pub(crate) fn end(&mut self, session: SessionId) {
        self.retries.end(session);
        self.suggestions.end(session);
        self.handles.end(session);
    }

    pub(crate) fn expire(&mut self, now: Millis, lives: impl Fn(ApprovalId) -> bool) {
        self.retries.expire(now, |retry| retry.approval.is_some_and(&lives));
        self.suggestions.expire(now, |_| false);
        self.handles.expire(now, |_| false);
    }

    pub(crate) fn deadline(&self) -> Option<Millis> {
        [self.retries.deadline(), self.suggestions.deadline(), self.handles.deadline()]
            .into_iter()
            .flatten()
            .min()
    }
}
