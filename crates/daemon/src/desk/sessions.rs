//! Tool calls from a terminal: one session per session leader, for as long as that process lives.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use cotenant_model::{Code, HUMAN, Profile, Refusal, SessionId};
use cotenant_tools::Toolbox;
use cotenant_tools::host::{Hello, Host};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Map, Value};

use super::{named_session, text};
use crate::{Peer, sys};

/// The sessions of terminals, by the process that leads them, and that of the human behind all of them.
#[derive(Default)]
pub(super) struct Terminals {
    by_leader: Mutex<HashMap<u32, Terminal>>,
    human: Mutex<Option<SessionId>>,
}

struct Terminal {
    session: SessionId,
    leader: OwnedFd,
}

impl Terminals {
    /// The session that a call belongs to: the one it names, else its terminal's, opened if need be.
    pub(super) fn session(
        &self,
        toolbox: &Toolbox,
        args: &Map<String, Value>,
        peer: &Peer,
    ) -> Result<SessionId, Refusal> {
        if let Some(session) = named_session(args)? {
            // The human's own cannot be had by its name.
            let human = *self.human.lock().unwrap_or_else(PoisonError::into_inner);
            if human != Some(session) && toolbox.workspace().coord().session(session).is_some() {
                return Ok(session);
            }
            return Err(Refusal::new(
                Code::SessionEnded,
                format!("There is no session {session} (COTENANT_SESSION)."),
            )
            .next("unset COTENANT_SESSION"));
        }
        let mut terminals = self.by_leader.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<u32> = terminals
            .iter()
            .filter(|(_, terminal)| has_ended(&terminal.leader))
            .map(|(pid, _)| *pid)
            .collect();
        for pid in ended {
            if let Some(terminal) = terminals.remove(&pid) {
                toolbox.close(terminal.session);
            }
        }
        let hello = Hello {
            agent: Some(text(args, "agent").unwrap_or("terminal").to_owned()),
            task: text(args, "task").map(str::to_owned),
            profile: text(args, "profile").and_then(Profile::parse),
            tools: Some(cotenant_model::ToolSet::ALL.to_vec()),
            pid: Some(peer.pid),
            ..Hello::default()
        };
        // A caller that is gone already, or whose leader is, gets a session for this one call's sake.
        let Some((leader, fd)) = leader(peer.pid) else { return toolbox.open(&hello) };
        if let Some(terminal) = terminals.get(&leader) {
            return Ok(terminal.session);
        }
        let session = toolbox.open(&hello)?;
        terminals.insert(leader, Terminal { session, leader: fd });
        Ok(session)
    }
}

impl Terminals {
    /// The session of a human who takes something back: one for all terminals, opened anew once it has ended.
    pub(super) fn human(&self, toolbox: &Toolbox) -> Result<SessionId, Refusal> {
        let mut human = self.human.lock().unwrap_or_else(PoisonError::into_inner);
        let open = human.filter(|session| toolbox.workspace().coord().session(*session).is_some());
        if let Some(session) = open {
            return Ok(session);
        }
        let hello = Hello {
            agent: Some(HUMAN.to_owned()),
            human: true,
            profile: Some(Profile::Trusting),
            tools: Some(cotenant_model::ToolSet::ALL.to_vec()),
            ..Hello::default()
        };
        let session = toolbox.open(&hello)?;
        *human = Some(session);
        Ok(session)
    }
}

/// The process that a caller's session hangs on. A leader outside our pid namespace cannot be seen: what was started
/// in a container from without hangs on the container's first process.
fn leader(caller: u32) -> Option<(u32, OwnedFd)> {
    let leader = sys::session_leader(caller)?.max(1);
    Some((leader, sys::pidfd(leader)?))
}

/// Whether the process has ended: its descriptor is readable then.
fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&at_once)), Ok(ready) if ready > 0)
}
