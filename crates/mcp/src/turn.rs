//! One tool call on its way: a place in the order when it arrives, a thread when its turn comes, an answer or none.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cotenant_model::{Code, FactValue, Refusal, SessionId};
use cotenant_tools::host::{Answer, Call, Host};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

/// A call that has arrived. It waits in a thread for its handler to say go; a handler that never does (the request
/// was wrong, or cancelled) gives the place back.
#[derive(Clone)]
pub(crate) struct Turn(Arc<Mutex<Option<Arrived>>>);

struct Arrived {
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
        let (go, wait) = oneshot::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let (host, stop) = (Arc::clone(host), Arc::clone(&cancelled));
        let answer = spawn_blocking(move || {
            let _held = slot;
            if wait.blocking_recv().is_err() || stop.load(Ordering::Acquire) {
                host.forgo(session, ticket);
                return None;
            }
            Some(carried_out(host.as_ref(), call))
        });
        Turn(Arc::new(Mutex::new(Some(Arrived { go, answer, cancelled }))))
    }

    /// Lets the call run and waits for its answer; `None` where `cancelled` came first. A call that already runs
    /// goes on to its end.
    pub(crate) async fn answer(self, cancelled: impl Future<Output = ()>) -> Option<Answer> {
        let arrived = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // The receiver lives in the thread and waits for nothing else.
        let _ = arrived.go.send(());
        tokio::select! {
            answer = arrived.answer => answer.unwrap_or_else(|_| Some(fault())),
            () = cancelled => {
                arrived.cancelled.store(true, Ordering::Release);
                None
            }
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
