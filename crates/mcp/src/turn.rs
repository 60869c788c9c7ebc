//! One tool call on its way: a place in the order when it arrives, a thread when its turn comes, an answer or none. What
//! can be answered at once needs no thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cotenant_model::{Code, FactValue, Refusal, SessionId};
use cotenant_tools::host::{Answer, Call, Host};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

/// A call that has arrived. It waits for its handler to say go; a handler that never does (the request was wrong, or
/// cancelled) gives the place back.
#[derive(Clone)]
pub(crate) struct Turn(Arc<Mutex<Option<Arrived>>>);

/// The last call that arrived, for the next one.
#[derive(Default)]
pub(crate) struct Before(Weak<Mutex<Option<Arrived>>>);

impl Before {
    /// Hands out the thread of a call that has none yet: the next one of its session arrives, and may wait for it.
    pub(crate) fn settle(&self) {
        if let Some(turn) = self.0.upgrade() {
            let mut arrived = held(&turn);
            *arrived = match arrived.take() {
                Some(Arrived::AtOnce(waiting)) => Some(Arrived::Threaded(waiting.threaded())),
                other => other,
            };
        }
    }
}

fn held(turn: &Mutex<Option<Arrived>>) -> MutexGuard<'_, Option<Arrived>> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Arrived {
    /// Perhaps answered without a thread.
    AtOnce(Box<Waiting>),
    /// With a thread, which waits for go.
    Threaded(Threaded),
}

struct Threaded {
    go: oneshot::Sender<()>,
    answer: JoinHandle<Option<Answer>>,
    cancelled: Arc<AtomicBool>,
}

impl Turn {
    /// Takes the call's place in the order of its session. Must be called in order of arrival: the threads are handed
    /// out in that order too, so that a call never waits for one that has no thread. `slot` is held until the call
    /// has ended, whatever became of its answer.
    pub(crate) fn arrive<S: Send + 'static>(
        host: &Arc<dyn Host>,
        session: SessionId,
        tool: String,
        args: Map<String, Value>,
        meta: Map<String, Value>,
        slot: S,
    ) -> Turn {
        let ticket = host.arrive(session, &tool, &args);
        let call = Call { session, tool, args, meta, ticket };
        let glances = host.glances(&call);
        let waiting = Waiting { host: Arc::clone(host), call: Some(call), _slot: Box::new(slot) };
        let arrived =
            if glances { Arrived::AtOnce(Box::new(waiting)) } else { Arrived::Threaded(waiting.threaded()) };
        Turn(Arc::new(Mutex::new(Some(arrived))))
    }

    /// As the one before the next.
    pub(crate) fn before(&self) -> Before {
        Before(Arc::downgrade(&self.0))
    }

    /// Lets the call run and waits for its answer; `None` where `cancelled` came first. A call that already runs
    /// goes on to its end.
    pub(crate) async fn answer(self, cancelled: impl Future<Output = ()>) -> Option<Answer> {
        let threaded = match self.at_once()? {
            Ok(answer) => return Some(answer),
            Err(threaded) => threaded,
        };
        // The receiver lives in the thread and waits for nothing else.
        let _ = threaded.go.send(());
        tokio::select! {
            answer = threaded.answer => answer.unwrap_or_else(|_| Some(fault())),
            () = cancelled => {
                threaded.cancelled.store(true, Ordering::Release);
                None
            }
        }
    }

    /// The answer, where it can be had without a thread; `None` of a call that was let run before.
    fn at_once(&self) -> Option<Result<Answer, Threaded>> {
        // Held meanwhile, so that a later call gets its thread after this one.
        let mut arrived = held(&self.0);
        Some(match arrived.take()? {
            Arrived::Threaded(threaded) => Err(threaded),
            Arrived::AtOnce(waiting) => waiting.glanced().map_err(|waiting| waiting.threaded()),
        })
    }
}

/// A call with its place in the order, which is given back where it is never carried out.
struct Waiting {
    host: Arc<dyn Host>,
    call: Option<Call>,
    _slot: Box<dyn Send>,
}

impl Waiting {
    /// Gives it a thread, which waits for go.
    fn threaded(mut self) -> Threaded {
        let (go, wait) = oneshot::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&cancelled);
        let answer = spawn_blocking(move || {
            if wait.blocking_recv().is_err() || stop.load(Ordering::Acquire) {
                return None;
            }
            Some(carried_out(self.host.as_ref(), self.call.take()?))
        });
        Threaded { go, answer, cancelled }
    }

    /// Its answer, or itself where that takes a thread.
    fn glanced(mut self: Box<Self>) -> Result<Answer, Box<Waiting>> {
        let Some(call) = &self.call else { return Err(self) };
        let glanced = catch_unwind(AssertUnwindSafe(|| self.host.glance(call)));
        match glanced {
            Ok(None) => Err(self),
            Ok(Some(answer)) => {
                self.call = None;
                Ok(answer)
            }
            // Dropped, it gives its place back.
            Err(_) => Ok(fault()),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.host.forgo(call.session, call.ticket);
        }
    }
}

/// Runs the call. A panic is answered, its place given back so that later calls do not wait for it.
fn carried_out(host: &dyn Host, call: Call) -> Answer {
    let (session, ticket) = (call.session, call.ticket);
    catch_unwind(AssertUnwindSafe(|| host.call(call))).unwrap_or_else(|_| {
        host.forgo(session, ticket);
        fault()
    })
}

fn fault() -> Answer {
    refused(
        &Refusal::new(
            Code::IoError,
            "The call ended in a fault of cotenant itself. Whether it changed anything is in the history.",
        )
        .next("history {\"limit\":5}"),
    )
}

/// A refusal as the answer of a tool.
pub(crate) fn refused(refusal: &Refusal) -> Answer {
    let facts: Map<String, Value> =
        refusal.facts.iter().map(|fact| (fact.name.to_string(), fact_json(&fact.value))).collect();
    let record = json!({
        "code": refusal.code.name(), "message": refusal.message, "next": refusal.next, "facts": facts,
    });
    Answer {
        text: refusal.to_string(),
        is_error: refusal.code.is_error(),
        meta: Map::from_iter([("cotenant/refusal".to_owned(), record)]),
        structured: None,
    }
}

fn fact_json(value: &FactValue) -> Value {
    match value {
        FactValue::Text(text) => json!(text),
        FactValue::Number(number) => json!(number),
        FactValue::Flag(flag) => json!(flag),
        FactValue::List(list) => json!(list),
    }
}
