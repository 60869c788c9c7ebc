//! The transport under rmcp: lines in, lines out, in order, in bounded memory. It answers itself what rmcp leaves
//! unanswered, and takes the place of each call in the order of arrival.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use cotenant_model::SessionId;
use cotenant_tools::host::Host;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetMeta, RequestId,
    RequestMetaObject, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::lines::{Line, Lines, Reader};
use crate::parse::{Parsed, error_line, parse, too_long};
use crate::turn::{Before, Turn};

/// A byte stream that a session writes to.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// Requests of one connection that are under way, from their arrival until their answer is written. The next one is
/// not taken from the connection before one of them is done: a client that does not read is not read.
const IN_FLIGHT: usize = 16;

/// Held by a request until its answer is written and its call has ended.
type Slot = Arc<OwnedSemaphorePermit>;

/// One connection's transport.
pub(crate) struct Wire {
    host: Arc<dyn Host>,
    session: SessionId,
    lines: Lines,
    output: Arc<tokio::sync::Mutex<Writer>>,
    slots: Arc<Semaphore>,
    flights: Flights,
    /// A line that was read and waits for a slot.
    waiting: Option<Parsed>,
    introduced: String,
    /// The last call that arrived.
    last: Before,
    stop: watch::Receiver<bool>,
}

/// The requests under way by id, each with its slot.
#[derive(Clone, Default)]
struct Flights(Arc<Mutex<HashMap<RequestId, Slot>>>);

impl Flights {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<RequestId, Slot>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Wire {
    pub(crate) fn new(
        host: Arc<dyn Host>,
        session: SessionId,
        input: Reader,
        output: Writer,
        stop: watch::Receiver<bool>,
    ) -> Wire {
        Wire {
            host,
            session,
            lines: Lines::new(input),
            output: Arc::new(tokio::sync::Mutex::new(output)),
            slots: Arc::new(Semaphore::new(IN_FLIGHT)),
            flights: Flights::default(),
            waiting: None,
            introduced: String::new(),
            last: Before::default(),
            stop,
        }
    }

    /// The next message for rmcp. Every wait in it may be dropped: what was read stays in `lines` or in `waiting`.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let parsed = match self.waiting.take() {
                Some(parsed) => parsed,
                None => match self.lines.next().await.ok()?? {
                    Line::Whole(line) => parse(&line),
                    Line::TooLong(scan) => too_long(&scan),
                },
            };
            match parsed {
                Parsed::Nothing => {}
                Parsed::Message(message) if !matches!(*message, ClientJsonRpcMessage::Request(_)) => {
                    self.note(&message);
                    return Some(*message);
                }
                parsed => {
                    self.waiting = Some(parsed);
                    let slot = Arc::new(Arc::clone(&self.slots).acquire_owned().await.ok()?);
                    if let Some(message) = self.waiting.take().and_then(|parsed| self.admit(parsed, slot)) {
                        return Some(message);
                    }
                }
            }
        }
    }

    /// Lets a request in, or answers it here.
    fn admit(&mut self, parsed: Parsed, slot: Slot) -> Option<ClientJsonRpcMessage> {
        let mut message = match parsed {
            Parsed::Message(message) => *message,
            Parsed::Wrong(id, error) => {
                self.answer_wrong(id, &error, slot);
                return None;
            }
            Parsed::Nothing => return None,
        };
        let ClientJsonRpcMessage::Request(request) = &mut message else { return Some(message) };
        let id = request.id.clone();
        let taken = self.flights.with(|flights| {
            let taken = flights.contains_key(&id);
            flights.entry(id.clone()).or_insert_with(|| Arc::clone(&slot));
            taken
        });
        if taken {
            let error = ErrorData::invalid_request("a request with this id is still under way", None);
            self.answer_wrong(Some(id), &error, slot);
            return None;
        }
        self.introduce(&request.request);
        if let ClientRequest::CallToolRequest(call) = &mut request.request {
            let meta = call.extensions.get::<RequestMetaObject>().map(|meta| meta.0.0.clone());
            let args = call.params.arguments.take().unwrap_or_default();
            let tool = call.params.name.to_string();
            self.last.settle();
            let turn = Turn::arrive(&self.host, self.session, tool, args, meta.unwrap_or_default(), slot);
            self.last = turn.before();
            call.extensions.insert(turn);
        }
        Some(message)
    }

    /// Tells the host who the client is, as soon as it says so: names are known before the first call.
    fn introduce(&mut self, request: &ClientRequest) {
        let client = match request {
            ClientRequest::InitializeRequest(request) => Some(request.params.client_info.name.clone()),
            other => other.get_meta().client_info().map(|client| client.name),
        };
        if let Some(client) = client.filter(|client| *client != self.introduced) {
            self.host.introduce(self.session, &client, None);
            self.introduced = client;
        }
    }

    /// A cancelled request is never answered: its slot is free once its call has ended.
    fn note(&self, message: &ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Notification(notification) = message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.flights.with(|flights| flights.remove(id));
        }
    }

    fn answer_wrong(&self, id: Option<RequestId>, error: &ErrorData, slot: Slot) {
        let line = error_line(id.as_ref(), error);
        let output = Arc::clone(&self.output);
        tokio::spawn(async move {
            // A write that fails is met again by the reader as the end of the stream.
            let _ = write(&output, &line).await;
            drop(slot);
        });
    }
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &message {
            ServerJsonRpcMessage::Response(response) => Some(response.id.clone()),
            ServerJsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let slot = id.and_then(|id| self.flights.with(|flights| flights.remove(&id)));
        let line = line(&message);
        let output = Arc::clone(&self.output);
        async move {
            let written = write(&output, &line).await;
            drop(slot);
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => None,
            message = self.next() => message,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.shutdown().await
    }
}

fn line(message: &impl serde::Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(512);
    if serde_json::to_writer(&mut line, message).is_err() {
        // Only a map with keys that are no strings cannot be written, and the protocol has none.
        line.clear();
    }
    line.push(b'\n');
    line
}

async fn write(output: &tokio::sync::Mutex<Writer>, line: &[u8]) -> io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(line).await?;
    output.flush().await
}
