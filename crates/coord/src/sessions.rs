//! Sessions: who is connected, when it was last heard of, and which turn it is in.

use std::collections::BTreeMap;
use std::sync::Arc;

use cotenant_model::{Agent, Millis, Profile, SessionId, WsPath};

/// The first change after so long without a call begins a new turn.
pub const IDLE_MS: u64 = 120_000;

/// What is known of a session when it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// The agent's name.
    pub agent: Agent,
    /// What it says it works on.
    pub task: Option<Arc<str>>,
    /// How much is asked.
    pub profile: Profile,
    /// The process it is tied to; the daemon watches it and ends the session with it.
    pub pid: Option<u32>,
    /// Over HTTP: it ends when nothing was heard of it for so long.
    pub ttl_ms: Option<u64>,
    /// It starts in plan mode.
    pub plan_mode: bool,
    /// The directories it is narrowed to; `None` for all that is served.
    pub within: Option<Vec<WsPath>>,
}

/// One connection of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// The agent's name.
    pub agent: Agent,
    /// What it says it works on.
    pub task: Option<Arc<str>>,
    /// How much is asked.
    pub profile: Profile,
    /// The process it is tied to.
    pub pid: Option<u32>,
    /// Its time to live without a call, over HTTP.
    pub ttl_ms: Option<u64>,
    /// Every change is refused until a human approves a plan.
    pub plan_mode: bool,
    /// The directories it is narrowed to; `None` for all that is served.
    pub within: Option<Vec<WsPath>>,
    /// When it opened.
    pub opened: Millis,
    /// When it was last heard of.
    pub last_call: Millis,
    /// The turn it is in, from 1.
    pub turn: u32,
    /// It was silent for [`IDLE_MS`] since its last change: the next one begins a turn.
    idle: bool,
}

impl Session {
    /// Whether the session may touch `at` at all.
    pub fn may_enter(&self, at: &WsPath) -> bool {
        self.within.as_ref().is_none_or(|roots| roots.iter().any(|root| at.is_within(root)))
    }

    /// When it ends by silence.
    fn deadline(&self) -> Option<Millis> {
        self.ttl_ms.map(|ttl| self.last_call.plus(ttl))
    }

    fn heard(&mut self, now: Millis) {
        self.idle |= now.since(self.last_call) >= IDLE_MS;
        self.last_call = self.last_call.max(now);
    }

    fn next_turn(&mut self) -> u32 {
        self.turn = self.turn.saturating_add(1);
        self.idle = false;
        self.turn
    }
}

/// The sessions that are open.
#[derive(Debug, Default)]
pub(crate) struct Sessions(BTreeMap<SessionId, Session>);

impl Sessions {
    pub(crate) fn open(&mut self, id: SessionId, who: NewSession, now: Millis) {
        let NewSession { agent, task, profile, pid, ttl_ms, plan_mode, within } = who;
        let (opened, last_call) = (now, now);
        let session = Session {
            id,
            agent,
            task,
            profile,
            pid,
            ttl_ms,
            plan_mode,
            within,
            opened,
            last_call,
            turn: 1,
            idle: false,
        };
        self.0.insert(id, session);
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.0.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.0.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.0.values()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn end(&mut self, id: SessionId) -> bool {
        self.0.remove(&id).is_some()
    }

    pub(crate) fn called(&mut self, id: SessionId, now: Millis) {
        if let Some(session) = self.0.get_mut(&id) {
            session.heard(now);
        }
    }

    pub(crate) fn mark_turn(&mut self, id: SessionId, now: Millis) -> u32 {
        self.0.get_mut(&id).map_or(0, |session| {
            session.heard(now);
            session.next_turn()
        })
    }

    pub(crate) fn turn_for_change(&mut self, id: SessionId, now: Millis) -> u32 {
        self.0.get_mut(&id).map_or(0, |session| {
            session.heard(now);
            if session.idle { session.next_turn() } else { session.turn }
        })
    }

    /// The sessions whose time is over, of those that `busy` does not keep.
    pub(crate) fn expired(&self, now: Millis, busy: impl Fn(SessionId) -> bool) -> Vec<SessionId> {
        self.deadlines(busy).filter(|(deadline, _)| *deadline <= now).map(|(_, id)| id).collect()
    }

    /// When each session that has a time to live ends by silence, of those that `busy` does not keep.
    pub(crate) fn deadlines(
        &self,
        busy: impl Fn(SessionId) -> bool,
    ) -> impl Iterator<Item = (Millis, SessionId)> {
        self.0
            .values()
            .filter_map(|session| Some((session.deadline()?, session.id)))
            .filter(move |(_, id)| !busy(*id))
    }
}
