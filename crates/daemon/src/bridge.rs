//! The bridge: one process per agent that copies between the client's pipes and the daemon's socket.
//!
//! It keeps every request that has no answer yet. If the daemon dies it finds or starts another, greets it as the
//! client did, and asks those requests again; each tool call carries a key under which the daemon answers a second
//! time what it answered first. Plain threads, no runtime; nothing but the protocol is written to the client.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cotenant_mcp::scan::Scan;
use cotenant_mcp::{Cutter, Line, MESSAGE_MAX, too_long_answer};
use cotenant_model::{Code, Refusal};
use cotenant_tools::host::Hello;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value, json};

use crate::client::{Asking, connect_or_start};
use crate::{Kind, Place, Starter};

/// Calls under way may take so long after the client has closed its end.
const FINISH: Duration = Duration::from_millis(1500);

/// What is read at a time, in bytes.
const CHUNK: usize = 32 * 1024;

/// So many daemons may die over one request; then it is answered with that.
const TRIES: u32 = 3;

/// The `_meta` entry that makes a repeated call the same call.
pub const IDEMPOTENCY: &str = "cotenant/idempotency";

/// The id of the greeting that the bridge repeats to a new daemon, and whose answer the client already has.
const GREETING: &str = "\"cotenant-bridge\"";

/// Enough for a greeting of any depth that is JSON to us; only what is used costs memory.
const STACK: usize = 512 * 1024;

/// Why a bridge ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client closed its end, or went away.
    Client,
    /// There is no daemon to be had; the client has been told.
    Daemon,
}

/// Copies until the client closes `input` or `output`, or until no daemon can be had.
pub fn run(place: &Place, starter: &Starter, hello: &Hello, input: OwnedFd, output: OwnedFd) -> End {
    let output = Arc::new(Mutex::new(File::from(output)));
    let mut asking = Asking { kind: Kind::Mcp, hello: hello.clone(), any_build: false };
    let (stream, read) = match connect_or_start(place, starter, &asking) {
        Ok(client) => {
            // To another daemon it is the agent that it was to this one.
            asking.hello.number = asking.hello.number.or(client.session);
            client.into_stream()
        }
        Err(refusal) => {
            turn_away(File::from(input), &output, &refusal);
            return End::Daemon;
        }
    };
    let (ended, end) = channel();
    let bridge = Arc::new(Bridge {
        place: place.clone(),
        starter: starter.clone(),
        asking: Asking { any_build: true, ..asking },
        kept: Mutex::default(),
        wanted: Condvar::new(),
        link: Mutex::new(Link { stream: stream.try_clone().ok(), generation: 0 }),
        output,
    });
    let threads = [
        spawn(&bridge, &ended, move |bridge, ended| bridge.answers(stream, read, ended)),
        spawn(&bridge, &ended, move |bridge, ended| bridge.requests(File::from(input), ended)),
        spawn(&bridge, &ended, Bridge::watch_output),
    ];
    if threads.iter().any(|started| !started) {
        crate::log("no thread could be started");
        return End::Daemon;
    }
    let first = end.recv().unwrap_or(Ended::Output);
    match first {
        Ended::Input if bridge.waiting() => match end.recv_timeout(FINISH) {
            Ok(Ended::Daemon) => End::Daemon,
            _ => End::Client,
        },
        Ended::Daemon => End::Daemon,
        _ => End::Client,
    }
}

/// What has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The client's requests.
    Input,
    /// The client's interest in answers.
    Output,
    /// The daemon's answers, after the client's requests.
    Answers,
    /// All daemons.
    Daemon,
}

fn spawn(
    bridge: &Arc<Bridge>,
    ended: &Sender<Ended>,
    act: impl FnOnce(&Arc<Bridge>, &Sender<Ended>) + Send + 'static,
) -> bool {
    let (bridge, ended) = (Arc::clone(bridge), ended.clone());
    thread::Builder::new().stack_size(STACK).spawn(move || act(&bridge, &ended)).is_ok()
}

struct Bridge {
    place: Place,
    starter: Starter,
    asking: Asking,
    kept: Mutex<Kept>,
    /// Signalled when `kept` gets a request, or its end.
    wanted: Condvar,
    /// Whoever writes to the daemon holds this. Never taken while `kept` is held.
    link: Mutex<Link>,
    output: Arc<Mutex<File>>,
}

/// The way to the daemon that is connected now.
struct Link {
    stream: Option<UnixStream>,
    generation: u64,
}

/// What a new daemon must be told.
#[derive(Default)]
struct Kept {
    /// As `link` will have it once all that is kept has been sent there.
    generation: u64,
    /// The requests without an answer, in their order.
    requests: Vec<Waiting>,
    initialize: Option<Arc<Vec<u8>>>,
    initialized: Option<Arc<Vec<u8>>>,
    ended: bool,
}

struct Waiting {
    /// The raw JSON of its id.
    id: Vec<u8>,
    line: Arc<Vec<u8>>,
    /// How many daemons were lost over it.
    lost: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bridge {
    fn waiting(&self) -> bool {
        !lock(&self.kept).requests.is_empty()
    }

    /// Copies the client's lines to the daemon, to their end.
    fn requests(&self, input: File, ended: &Sender<Ended>) {
        let mut lines = Lines::new(input, MESSAGE_MAX, &[]);
        let mut keys = Keys::new();
        while let Some(line) = lines.next() {
            match line {
                Line::Whole(line) => self.request(line, &mut keys),
                Line::TooLong(scan) => {
                    if let Some(answer) = too_long_answer(&scan) {
                        self.answer(&answer);
                    }
                }
            }
        }
        lock(&self.kept).ended = true;
        self.wanted.notify_one();
        // Told before the daemon is: its end must not be seen first.
        let _ = ended.send(Ended::Input);
        if let Some(stream) = &lock(&self.link).stream {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }

    /// Keeps what a new daemon would have to be told, and passes the line on.
    fn request(&self, line: Vec<u8>, keys: &mut Keys) {
        let scan = Scan::of(&line);
        let line = match scan.method() {
            Some(b"tools/call") => Arc::new(keys.keyed(line, &scan)),
            _ => Arc::new(line),
        };
        let generation = {
            let mut kept = lock(&self.kept);
            match (scan.method(), scan.id()) {
                (Some(method), Some(id)) => {
                    if method == b"initialize" {
                        kept.initialize = Some(Arc::clone(&line));
                    }
                    kept.requests.push(Waiting { id: id.to_vec(), line: Arc::clone(&line), lost: 0 });
                    self.wanted.notify_one();
                }
                (Some(b"notifications/initialized"), None) => kept.initialized = Some(Arc::clone(&line)),
                (Some(b"notifications/cancelled"), None) => {
                    kept.requests.retain(|waiting| scan.request() != Some(&waiting.id));
                }
                _ => {}
            }
            kept.generation
        };
        let link = lock(&self.link);
        if link.generation == generation
            && let Some(mut stream) = link.stream.as_ref()
        {
            // A daemon that is gone is met by the other thread, which asks again what is kept.
            let _ = stream.write_all(&line);
        }
    }

    /// Copies the daemon's lines to the client, over as many daemons as it takes.
    fn answers(self: &Arc<Self>, stream: UnixStream, read: Vec<u8>, ended: &Sender<Ended>) {
        // Answers are as long as the client asked for them to be.
        let mut lines = Lines::new(stream, usize::MAX, &read);
        loop {
            while let Some(line) = lines.next() {
                if let Line::Whole(line) = line
                    && !self.deliver(&line)
                {
                    let _ = ended.send(Ended::Output);
                    return;
                }
            }
            // A daemon that was stopped is not started again before someone wants something of it.
            if !self.wait_for_request() {
                let _ = ended.send(Ended::Answers);
                return;
            }
            match self.reconnect() {
                Ok(stream) => lines = Lines::new(stream, usize::MAX, &[]),
                Err(refusal) => {
                    self.give_up(&refusal);
                    let _ = ended.send(Ended::Daemon);
                    return;
                }
            }
        }
    }

    /// Waits until there is a request without an answer; false where there will be none.
    fn wait_for_request(&self) -> bool {
        let idle = |kept: &mut Kept| kept.requests.is_empty() && !kept.ended;
        let kept = self.wanted.wait_while(lock(&self.kept), idle);
        !kept.unwrap_or_else(PoisonError::into_inner).requests.is_empty()
    }

    /// Hands a line to the client; false where it is gone.
    fn deliver(&self, line: &[u8]) -> bool {
        let scan = Scan::of(line);
        let id = scan.id().filter(|_| scan.answers());
        if id == Some(GREETING.as_bytes()) {
            return true;
        }
        // Forgotten after it was written: what is not waited for any more has arrived.
        let written = self.answer(line);
        let mut kept = lock(&self.kept);
        if let Some(at) = kept.requests.iter().position(|waiting| Some(waiting.id.as_slice()) == id) {
            kept.requests.remove(at);
        }
        written
    }

    fn answer(&self, line: &[u8]) -> bool {
        lock(&self.output).write_all(line).is_ok()
    }

    /// Finds or starts another daemon, and tells it what is kept while its answers are read already.
    fn reconnect(self: &Arc<Self>) -> Result<UnixStream, Refusal> {
        // Whatever was being written to the old one fails at once, and lets go of the link.
        let mut link = lock(&self.link);
        link.stream = None;
        drop(link);
        let (stream, _) = connect_or_start(&self.place, &self.starter, &self.asking)?.into_stream();
        let failed = |error: io::Error| Refusal::new(Code::IoError, format!("The daemon was lost: {error}."));
        let writer = stream.try_clone().map_err(failed)?;
        let (told, tell) = channel();
        let bridge = Arc::clone(self);
        let teller = move || {
            let mut link = lock(&bridge.link);
            let lines = bridge.to_tell(link.generation + 1);
            // The reader goes on once later requests queue behind these.
            let _ = told.send(());
            link.generation += 1;
            for line in lines {
                if (&writer).write_all(&line).is_err() {
                    break;
                }
            }
            if lock(&bridge.kept).ended {
                let _ = writer.shutdown(Shutdown::Write);
            }
            link.stream = Some(writer);
        };
        thread::Builder::new().stack_size(STACK).spawn(teller).map_err(failed)?;
        let _ = tell.recv();
        Ok(stream)
    }

    /// What a new daemon is told: the greeting, then the requests. What the client sends from now on is of the new
    /// generation, and follows.
    fn to_tell(&self, generation: u64) -> Vec<Arc<Vec<u8>>> {
        let mut kept = lock(&self.kept);
        kept.generation = generation;
        kept.requests.iter_mut().for_each(|waiting| waiting.lost += 1);
        let fatal: Vec<Waiting> = kept.requests.extract_if(.., |waiting| waiting.lost >= TRIES).collect();
        let refusal = Refusal::new(Code::IoError, "The daemon ended each time that it was asked this.")
            .fact("log", self.place.log().display().to_string());
        for waiting in fatal {
            self.answer(&no_daemon(&waiting.id, &refusal));
        }
        let waits = |line: &Arc<Vec<u8>>| kept.requests.iter().any(|known| Arc::ptr_eq(&known.line, line));
        let greeting = kept.initialize.as_ref().filter(|line| !waits(line)).and_then(|line| greeting(line));
        greeting
            .into_iter()
            .map(Arc::new)
            .chain(kept.initialized.iter().cloned())
            .chain(kept.requests.iter().map(|waiting| Arc::clone(&waiting.line)))
            .collect()
    }

    /// Answers every request that waits: there is nobody else to do it.
    fn give_up(&self, refusal: &Refusal) {
        crate::log(&refusal.to_string());
        for waiting in std::mem::take(&mut lock(&self.kept).requests) {
            self.answer(&no_daemon(&waiting.id, refusal));
        }
    }

    /// Waits until nobody can read the answers any more.
    fn watch_output(self: &Arc<Self>, ended: &Sender<Ended>) {
        let Ok(output) = lock(&self.output).as_fd().try_clone_to_owned() else { return };
        // Errors and hang-ups are reported without being asked for.
        while let Err(rustix::io::Errno::INTR) = poll(&mut [PollFd::new(&output, PollFlags::empty())], None) {
        }
        let _ = ended.send(Ended::Output);
    }
}

/// The greeting under the bridge's own id.
fn greeting(initialize: &[u8]) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(initialize).ok()?;
    message["id"] = serde_json::from_str(GREETING).ok()?;
    let mut line = serde_json::to_vec(&message).ok()?;
    line.push(b'\n');
    Some(line)
}

/// Answers the first request with what hinders: a client shows that, while it shows standard error rarely.
fn turn_away(input: File, output: &Mutex<File>, refusal: &Refusal) {
    crate::log(&refusal.to_string());
    let mut lines = Lines::new(input, MESSAGE_MAX, &[]);
    while let Some(line) = lines.next() {
        let scan = match line {
            Line::Whole(line) => Scan::of(&line),
            Line::TooLong(scan) => scan,
        };
        if scan.method().is_some()
            && let Some(id) = scan.id()
        {
            // The client may be gone already.
            let _ = lock(output).write_all(&no_daemon(id, refusal));
            return;
        }
    }
}

fn no_daemon(id: &[u8], refusal: &Refusal) -> Vec<u8> {
    let id: Value = serde_json::from_slice(id).unwrap_or_default();
    let error = json!({ "code": -32000, "message": refusal.to_string() });
    let mut line = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Keys that no other bridge has.
struct Keys {
    prefix: String,
    next: u64,
}

impl Keys {
    fn new() -> Keys {
        let mut random = [0u8; 8];
        if getrandom(&mut random, GetRandomFlags::empty()).is_err() {
            // Only kernels without the call; the time of day and the process tell bridges apart well enough.
            let seed = crate::clock::now().0 ^ (u64::from(std::process::id()) << 40);
            random = seed.to_be_bytes();
        }
        Keys { prefix: format!("b{:016x}", u64::from_be_bytes(random)), next: 1 }
    }

    /// The call with a key in its `_meta`. A call without params is passed on as it is: it will be refused.
    fn keyed(&mut self, line: Vec<u8>, scan: &Scan) -> Vec<u8> {
        let Some(at) = scan.meta().or(scan.params()) else { return line };
        let entry = format!("\"{IDEMPOTENCY}\":\"{}-{}\"", self.prefix, self.next);
        self.next += 1;
        let entry = if scan.meta().is_some() { entry } else { format!("\"_meta\":{{{entry}}}") };
        let rest = &line[at..];
        let empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
        let mut keyed = Vec::with_capacity(line.len() + entry.len() + 1);
        keyed.extend_from_slice(&line[..at]);
        keyed.extend_from_slice(entry.as_bytes());
        if !empty {
            keyed.push(b',');
        }
        keyed.extend_from_slice(rest);
        keyed
    }
}

/// The lines of a stream; an error is its end.
struct Lines<R> {
    input: R,
    cutter: Cutter,
    chunk: Vec<u8>,
}

impl<R: Read> Lines<R> {
    fn new(input: R, max: usize, read: &[u8]) -> Lines<R> {
        let mut cutter = Cutter::new(max);
        cutter.push(read);
        Lines { input, cutter, chunk: vec![0; CHUNK] }
    }

    fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.cutter.cut() {
                return Some(line);
            }
            match self.input.read(&mut self.chunk) {
                Ok(0) => return None,
                Ok(read) => self.cutter.push(&self.chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
