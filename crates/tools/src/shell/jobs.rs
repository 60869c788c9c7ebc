//! The commands of all sessions, running and ended, with their output and what became of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cotenant_model::{ApprovalId, ChangeId, HandleId, JobId, Millis, Refusal, SessionId};
use cotenant_shell::run;
use cotenant_shell::sandbox::{self, Machine, StartError};

use super::flow::brief;
use super::wanted::Wanted;
use crate::reply::Reply;

/// Ended commands of a session whose output is kept.
const KEPT: usize = 32;

/// A command that was started.
pub(crate) struct Job {
    /// Its id.
    pub(crate) id: JobId,
    /// Whose it is.
    pub(crate) session: SessionId,
    /// What was asked for.
    pub(crate) wanted: Wanted,
    /// When it began, steady clock.
    pub(crate) began: Millis,
    /// The word for how it runs: `staged`, `direct`.
    pub(crate) mode: &'static str,
    /// Where its output is read by `read_more`.
    pub(crate) handle: HandleId,
    /// The running process and its output.
    pub(crate) process: run::Job,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    end: Option<End>,
    /// Bytes of the output that answers have shown.
    told: u64,
}

/// What became of a command.
#[derive(Clone)]
pub(crate) enum End {
    /// It is over; what it changed has landed.
    Done(Box<Report>),
    /// It is over; what it changed waits for a human.
    Asked(ApprovalId),
    /// It is over, and what it changed was refused.
    Refused(Box<Refusal>),
}

/// A finished command's answer but for its output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// The facts up to those about the output, and the notices; its content are the changed files.
    pub(crate) reply: Reply,
    /// Whether it went well: decides how much of the output is shown.
    pub(crate) well: bool,
    /// It was ended by its time limit or by `stop_command`.
    pub(crate) cut: bool,
    /// What it changed, as a change.
    pub(crate) change: Option<ChangeId>,
}

impl Job {
    pub(crate) fn new(
        id: JobId,
        session: SessionId,
        wanted: Wanted,
        began: Millis,
        mode: &'static str,
        handle: HandleId,
        process: run::Job,
    ) -> Job {
        Job { id, session, wanted, began, mode, handle, process, progress: Mutex::default() }
    }

    /// Its command, in one short line.
    pub(crate) fn brief(&self) -> String {
        brief(&self.wanted.command)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of it; `None` while it runs, or its changes are on their way.
    pub(crate) fn end(&self) -> Option<End> {
        self.progress().end.clone()
    }

    /// It is over.
    pub(super) fn ended(&self, end: End) {
        self.progress().end = Some(end);
    }

    /// How far its output was shown.
    pub(super) fn told(&self) -> u64 {
        self.progress().told
    }

    /// Its output was shown up to here.
    pub(super) fn tell(&self, to: u64) {
        let mut progress = self.progress();
        progress.told = progress.told.max(to);
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Jobs(Mutex<Shelves>);

#[derive(Default)]
struct Shelves {
    jobs: BTreeMap<JobId, Arc<Job>>,
    /// The lines that a command printed the last time, by session and command, with the handle of that run.
    said: HashMap<(SessionId, String), Said>,
    /// One loopback for the commands of a session.
    spaces: HashMap<SessionId, Arc<sandbox::Session>>,
}

/// What a command printed.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) handle: HandleId,
    pub(super) lines: Arc<HashMap<String, usize>>,
}

impl Jobs {
    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a job; of the session's ended ones the oldest go.
    pub(super) fn add(&self, job: &Arc<Job>) {
        let mut shelves = self.shelves();
        let over: Vec<JobId> = shelves
            .jobs
            .values()
            .filter(|other| other.session == job.session && other.end().is_some())
            .map(|other| other.id)
            .collect();
        for id in over.iter().take((over.len() + 1).saturating_sub(KEPT)) {
            shelves.jobs.remove(id);
        }
        shelves.jobs.insert(job.id, Arc::clone(job));
    }

    /// A job of the session.
    pub(crate) fn get(&self, session: SessionId, id: JobId) -> Option<Arc<Job>> {
        self.shelves().jobs.get(&id).filter(|job| job.session == session).cloned()
    }

    /// The job whose output a handle of the session stands for.
    pub(crate) fn by_handle(&self, session: SessionId, handle: HandleId) -> Option<Arc<Job>> {
        self.shelves().jobs.values().find(|job| job.session == session && job.handle == handle).cloned()
    }

    /// The jobs of a session, oldest first.
    pub(crate) fn of(&self, session: SessionId) -> Vec<Arc<Job>> {
        self.shelves().jobs.values().filter(|job| job.session == session).cloned().collect()
    }

    /// Whether a command runs, or its changes are on their way.
    pub(crate) fn any_running(&self) -> bool {
        self.shelves().jobs.values().any(|job| job.end().is_none())
    }

    /// The loopback of a session, made where there is none yet.
    pub(super) fn space(
        &self,
        session: SessionId,
        machine: &Machine,
    ) -> Result<Arc<sandbox::Session>, StartError> {
        let mut shelves = self.shelves();
        if let Some(space) = shelves.spaces.get(&session) {
            return Ok(Arc::clone(space));
        }
        let space = Arc::new(sandbox::Session::open(machine)?);
        shelves.spaces.insert(session, Arc::clone(&space));
        Ok(space)
    }

    /// What the same command of the session said the last time; from now on it is what it says now.
    pub(super) fn said(&self, session: SessionId, command: &str, now: Said) -> Option<Said> {
        let mut shelves = self.shelves();
        let mine = shelves.said.keys().filter(|(other, _)| *other == session).count();
        if mine >= KEPT {
            shelves.said.retain(|(other, _), _| *other != session);
        }
        shelves.said.insert((session, command.to_owned()), now)
    }

    /// Ends all of a session.
    pub(crate) fn end_session(&self, session: SessionId) {
        let (jobs, space) = {
            let mut shelves = self.shelves();
            let (gone, kept) =
                std::mem::take(&mut shelves.jobs).into_iter().partition(|(_, job)| job.session == session);
            shelves.jobs = kept;
            shelves.said.retain(|(other, _), _| *other != session);
            let gone: BTreeMap<JobId, Arc<Job>> = gone;
            (gone, shelves.spaces.remove(&session))
        };
        jobs.values().for_each(|job| job.process.stop());
        if let Some(space) = space {
            space.end();
        }
    }
}
