//! The order of overlapping calls of one session (R17): they run as they arrived, everything else at once.

use std::collections::BTreeMap;

use cotenant_model::{SessionId, WsPath};

/// A call's place in the order of arrival; rising, never used twice.
pub type Ticket = u64;

/// A path that a call touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The path as it was asked for.
    pub at: WsPath,
    /// Everything below it, too: it is a directory.
    pub subtree: bool,
    /// It may be changed. Reads never wait for reads.
    pub write: bool,
}

impl Touch {
    fn conflicts(&self, other: &Touch) -> bool {
        (self.write || other.write)
            && (self.at == other.at
                || self.subtree && other.at.is_within(&self.at)
                || other.subtree && self.at.is_within(&other.at))
    }
}

/// What a call touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Footprint {
    /// These paths, all entered at once.
    Paths(Vec<Touch>),
    /// It may change anything: a command, an undo of unknown extent.
    Everything,
    /// No path at all.
    Nothing,
}

impl Footprint {
    fn conflicts(&self, other: &Footprint) -> bool {
        match (self, other) {
            (Footprint::Nothing, _) | (_, Footprint::Nothing) => false,
            (Footprint::Everything, _) | (_, Footprint::Everything) => true,
            (Footprint::Paths(mine), Footprint::Paths(theirs)) => {
                mine.iter().any(|touch| theirs.iter().any(|other| touch.conflicts(other)))
            }
        }
    }
}

#[derive(Debug)]
struct Call {
    footprint: Footprint,
    /// Earlier calls of the session, still here, that it waits for.
    blockers: usize,
}

/// The calls of all sessions that have arrived and not left.
#[derive(Debug, Default)]
pub(crate) struct Order {
    last: Ticket,
    sessions: BTreeMap<Ticket, SessionId>,
    calls: BTreeMap<SessionId, BTreeMap<Ticket, Call>>,
}

impl Order {
    pub(crate) fn arrive(&mut self, id: SessionId, footprint: Footprint) -> Ticket {
        self.last += 1;
        let calls = self.calls.entry(id).or_default();
        let blockers = calls.values().filter(|call| call.footprint.conflicts(&footprint)).count();
        calls.insert(self.last, Call { footprint, blockers });
        self.sessions.insert(self.last, id);
        self.last
    }

    /// Whether no earlier call stands in the way. True of a call that is not here: nothing holds it.
    pub(crate) fn ready(&self, ticket: Ticket) -> bool {
        let call = self.sessions.get(&ticket).and_then(|id| self.calls.get(id)?.get(&ticket));
        call.is_none_or(|call| call.blockers == 0)
    }

    /// The call is done, or waits for a human: the ones that it alone held up are ready now.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Vec<Ticket> {
        let Some(id) = self.sessions.remove(&ticket) else { return Vec::new() };
        let Some(calls) = self.calls.get_mut(&id) else { return Vec::new() };
        let Some(gone) = calls.remove(&ticket) else { return Vec::new() };
        let mut ready = Vec::new();
        for (later, call) in calls.range_mut(ticket..) {
            if gone.footprint.conflicts(&call.footprint) {
                call.blockers -= 1;
                if call.blockers == 0 {
                    ready.push(*later);
                }
            }
        }
        if calls.is_empty() {
            self.calls.remove(&id);
        }
        ready
    }

    /// Whether the session has a call that has not left.
    pub(crate) fn busy(&self, id: SessionId) -> bool {
        self.calls.contains_key(&id)
    }

    /// The session is gone: its calls, which the engine must wake.
    pub(crate) fn end(&mut self, id: SessionId) -> Vec<Ticket> {
        let tickets: Vec<Ticket> = self.calls.remove(&id).unwrap_or_default().into_keys().collect();
        tickets.iter().for_each(|ticket| {
            self.sessions.remove(ticket);
        });
        tickets
    }
}
