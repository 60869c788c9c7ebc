//! How often a session was refused the same thing on the same path in a row: the third answer carries the region itself.

use std::collections::BTreeMap;

use cotenant_model::{Code, SessionId, WsPath};

/// From so many refusals of one kind in a row on a path, the answer carries the region itself.
pub const REGION_AT: u32 = 3;

/// Paths remembered per session; beyond it all are forgotten, which only makes an answer shorter.
const PER_SESSION: usize = 1000;

/// The refusals in a row, by session and path (`None`: calls about no path).
#[derive(Debug, Default)]
pub(crate) struct Tries(BTreeMap<SessionId, BTreeMap<Option<WsPath>, (Code, u32)>>);

impl Tries {
    /// Counts a refusal; the number of times in a row, from 1. Another code starts anew.
    pub(crate) fn refused(&mut self, id: SessionId, at: Option<&WsPath>, code: Code) -> u32 {
        let tries = self.0.entry(id).or_default();
        if tries.len() >= PER_SESSION {
            tries.clear();
        }
        let entry = tries.entry(at.cloned()).or_insert((code, 0));
        if entry.0 != code {
            *entry = (code, 0);
        }
        entry.1 = entry.1.saturating_add(1);
        entry.1
    }

    pub(crate) fn succeeded(&mut self, id: SessionId, at: Option<&WsPath>) {
        if let Some(tries) = self.0.get_mut(&id) {
            tries.remove(&at.cloned());
        }
    }

    pub(crate) fn end(&mut self, id: SessionId) {
        self.0.remove(&id);
    }
}
