//! One thread that finishes changes after they were answered, watches displaced files for late writers, and, when it
//! has nothing else to do, packs what the ledger keeps.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cotenant_ledger::commit as record;

use super::desk::Desk;
use super::finish::{Finish, Finished, Watched};

/// Descriptors of displaced files that are kept at most.
const WATCHED_MAX: usize = 1024;

/// How long a job waits whose displaced file is being written.
const PATIENCE: Duration = Duration::from_millis(10);

/// So long after the last of some changes images are packed, one at a time, with a pause in between: packing takes a
/// core from whoever is at work. While changes never pause it begins after so many of these all the same.
const LATER: Duration = Duration::from_secs(1);
const PATIENT: u32 = 10;
const PACE: Duration = Duration::from_millis(20);

/// The thread and its queue.
pub(super) struct Background {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    desk: Arc<Desk>,
    state: Mutex<State>,
    /// Signalled when there is work and when work is done.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Finish>,
    /// Jobs that wait for a foreign writer, and until when.
    waiting: VecDeque<(Instant, Finish)>,
    /// When to pack the next image, if there may be one.
    pack: Option<Instant>,
    /// When packing begins, whatever is done until then.
    pack_at_last: Option<Instant>,
    working: bool,
    /// Someone waits for a look at everything that is watched.
    look_now: bool,
    closing: bool,
    /// Why work stopped; nothing is done until the pipeline recovered.
    failure: Option<String>,
}

impl State {
    fn has_jobs(&self) -> bool {
        !self.queue.is_empty() || !self.waiting.is_empty()
    }

    /// A change was made at `now`: packing waits until it is quiet.
    fn pack_later(&mut self, now: Instant) {
        let at_last = *self.pack_at_last.get_or_insert(now + LATER * PATIENT);
        self.pack = Some(at_last.min(now + LATER));
    }

    fn forget_jobs(&mut self) {
        self.queue.clear();
        self.waiting.clear();
    }

    /// The next job that may run at `now`.
    fn job(&mut self, now: Instant) -> Option<Finish> {
        if self.failure.is_some() {
            return None;
        }
        match self.waiting.front() {
            Some((until, _)) if *until <= now => self.waiting.pop_front().map(|(_, job)| job),
            _ => self.queue.pop_front(),
        }
    }
}

impl Background {
    /// Starts the thread.
    pub(super) fn start(desk: Arc<Desk>) -> std::io::Result<Background> {
        // An earlier process may have left something to pack.
        let state = State { pack: Some(Instant::now() + LATER), ..State::default() };
        let shared = Arc::new(Shared { desk, state: Mutex::new(state), changed: Condvar::new() });
        let worker = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("finish".to_owned()).spawn(move || worker.run())?;
        Ok(Background { shared, thread: Some(thread) })
    }

    /// Hands a change over.
    pub(super) fn push(&self, job: Finish) {
        self.shared.lock().queue.push_back(job);
        self.shared.changed.notify_all();
    }

    /// Waits until the queue is empty and every watched file was looked at once more.
    pub(super) fn idle(&self) {
        let mut state = self.shared.lock();
        state.look_now = true;
        self.shared.changed.notify_all();
        while state.failure.is_none() && (state.working || state.look_now || state.has_jobs()) {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether work stopped over a failure.
    pub(super) fn has_failed(&self) -> bool {
        self.shared.lock().failure.is_some()
    }

    /// Forgets what is queued, for recovery finds it all in the intents; what was being done is through when this
    /// returns.
    pub(super) fn discard(&self) {
        let mut state = self.shared.lock();
        state.forget_jobs();
        while state.working {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.forget_jobs();
        state.failure = None;
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there is a bug that its own message has told.
            let _ = thread.join();
        }
    }
}

/// What to do next.
enum Next {
    Finish(Box<Finish>),
    Look,
    Pack,
    Stop,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut watched: VecDeque<Watched> = VecDeque::new();
        loop {
            match self.next(watched.front().map(Watched::due)) {
                Next::Finish(job) => {
                    let failure = match self.desk.finish(*job) {
                        Ok(Finished::Done(more)) => {
                            watched.extend(more);
                            None
                        }
                        Ok(Finished::Later(job)) => {
                            self.lock().waiting.push_back((Instant::now() + PATIENCE, job));
                            None
                        }
                        Err(why) => Some(why.to_string()),
                    };
                    while watched.len() > WATCHED_MAX {
                        self.last_look(&mut watched);
                    }
                    self.lock().pack_later(Instant::now());
                    self.done(failure, false);
                }
                Next::Pack => {
                    // Where it fails, all is as it was, and the next change is the next try.
                    let more = record::pack(&self.desk.ledger) == Ok(true);
                    let mut state = self.lock();
                    state.pack = more.then(|| Instant::now() + PACE);
                    state.pack_at_last = state.pack_at_last.filter(|_| more);
                    drop(state);
                    self.done(None, false);
                }
                Next::Look => {
                    let looks = watched.iter_mut().map(|file| self.desk.look_again(file));
                    let failure = looks.filter_map(Result::err).map(|why| why.to_string()).next();
                    let now = Instant::now();
                    watched.retain(|file| file.due() > now);
                    self.done(failure, true);
                }
                Next::Stop => break,
            }
        }
        while !watched.is_empty() {
            self.last_look(&mut watched);
        }
    }

    /// Looks at the oldest once more and lets it go.
    fn last_look(&self, watched: &mut VecDeque<Watched>) {
        if let Some(mut file) = watched.pop_front()
            && let Err(why) = self.desk.look_again(&mut file)
        {
            self.lock().failure = Some(why.to_string());
        }
    }

    /// Waits for the next thing to do. `due`: when the oldest watched file must be looked at.
    fn next(&self, due: Option<Instant>) -> Next {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if let Some(job) = state.job(now) {
                state.working = true;
                return Next::Finish(Box::new(job));
            }
            let jobs_left = state.failure.is_none() && state.has_jobs();
            if (state.look_now && !jobs_left) || due.is_some_and(|due| due <= now) {
                state.working = true;
                return Next::Look;
            }
            if state.closing && !jobs_left {
                return Next::Stop;
            }
            let pack = state.pack.filter(|_| state.failure.is_none() && !state.has_jobs());
            if pack.is_some_and(|pack| pack <= now) {
                state.working = true;
                return Next::Pack;
            }
            let later = state.waiting.front().map(|(until, _)| *until);
            state = match due.into_iter().chain(later).chain(pack).min() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let waited = self.changed.wait_timeout(state, until.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn done(&self, failure: Option<String>, looked: bool) {
        let mut state = self.lock();
        state.working = false;
        if looked {
            state.look_now = false;
        }
        if state.failure.is_none() {
            state.failure = failure;
        }
        drop(state);
        self.changed.notify_all();
    }
}
