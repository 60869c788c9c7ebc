//! When the ledger is to be tidied: whoever keeps the time is told, once for each session that takes something away.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cotenant_model::SessionId;

/// Who took something away already, and who is told.
#[derive(Debug, Default)]
pub(crate) struct Upkeep(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    known: HashSet<SessionId>,
    bell: Option<Sender<()>>,
}

impl Upkeep {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something comes out of what is returned at the first destructive change of each session from now on. It ends
    /// with the workspace, or when it is asked for again.
    pub(crate) fn listen(&self) -> Receiver<()> {
        let (bell, told) = channel();
        self.state().bell = Some(bell);
        told
    }

    /// A session changed or took away what stood.
    pub(crate) fn taken_away(&self, session: SessionId) {
        let mut state = self.state();
        if state.known.insert(session)
            && let Some(bell) = &state.bell
        {
            // Nobody may listen any more.
            let _ = bell.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_told_of_once() {
        let upkeep = Upkeep::default();
        upkeep.taken_away(SessionId(1));
        let told = upkeep.listen();
        upkeep.taken_away(SessionId(1));
        assert!(told.try_recv().is_err(), "known before");
        for session in [2, 2, 3] {
            upkeep.taken_away(SessionId(session));
        }
        assert_eq!(told.try_iter().count(), 2);
        drop(upkeep);
        assert_eq!(told.recv(), Err(std::sync::mpsc::RecvError));
    }
}
