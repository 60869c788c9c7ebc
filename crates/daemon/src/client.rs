//! The near end of a connection to the daemon, for programs without a runtime.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use cotenant_model::{Code, Refusal};
use cotenant_tools::host::Hello;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Map, Value, json};

use crate::hello::{First, Reply, refusal_of};
use crate::{Kind, Place, Starter, socket};

/// How often a connection is tried anew where the daemon goes away under the client's hands.
const TRIES: usize = 8;

/// How a connection is asked for.
#[derive(Clone, Debug)]
pub struct Asking {
    /// What it is for.
    pub kind: Kind,
    /// What the session is to be like.
    pub hello: Hello,
    /// Whether a daemon of another build will do, or is to be replaced.
    pub any_build: bool,
}

/// An open connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    /// The daemon's process.
    pub pid: u32,
    /// The daemon's build.
    pub build: String,
    /// The number of the agent's session, where it is one.
    pub session: Option<u64>,
}

/// How an attempt to connect ended.
enum Attempt {
    Open(Client),
    /// Nobody listens, or the daemon is going.
    Nobody,
}

/// Connects to the daemon that runs; `None` where there is none.
pub fn connect(place: &Place, asking: &Asking) -> Result<Option<Client>, Refusal> {
    match attempt(place, asking)? {
        Attempt::Open(client) => Ok(Some(client)),
        Attempt::Nobody => Ok(None),
    }
}

/// Connects to the daemon, and starts it where there is none, or one of another build that has to go.
pub fn connect_or_start(place: &Place, starter: &Starter, asking: &Asking) -> Result<Client, Refusal> {
    for _ in 0..TRIES {
        match attempt(place, asking)? {
            Attempt::Open(client) => return Ok(client),
            Attempt::Nobody => starter.start(place)?,
        }
    }
    Err(Refusal::new(Code::Busy, "The daemon starts and goes away again.")
        .fact("log", place.log().display().to_string()))
}

fn attempt(place: &Place, asking: &Asking) -> Result<Attempt, Refusal> {
    let stream = match socket::connect(&place.socket) {
        Ok(stream) => stream,
        Err(error) if nobody(&error) => return Ok(Attempt::Nobody),
        Err(error) => return Err(broken(&error).fact("socket", place.socket.display().to_string())),
    };
    let mut stream = BufReader::with_capacity(64 * 1024, stream);
    let first = First::new(asking.kind, asking.any_build, &asking.hello);
    let reply = match exchange(&mut stream, &first) {
        Ok(Some(reply)) => reply,
        Ok(None) => return Ok(Attempt::Nobody),
        Err(error) if nobody(&error) => return Ok(Attempt::Nobody),
        Err(error) => return Err(broken(&error)),
    };
    match reply {
        Reply::Open { build, pid, session, .. } => Ok(Attempt::Open(Client { stream, pid, build, session })),
        Reply::Replaced { .. } => Ok(Attempt::Nobody),
        Reply::Refused { refusal } => Err(refusal_of(&refusal)),
    }
}

/// Whether the error says that there is no daemon, or that it has just gone.
fn nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof)
}

fn broken(error: &io::Error) -> Refusal {
    Refusal::new(Code::IoError, format!("The connection to the daemon failed: {error}."))
}

/// Sends a line and reads the answer's; `None` where the other end closed.
fn exchange<T: serde::de::DeserializeOwned>(
    stream: &mut BufReader<UnixStream>,
    request: &impl serde::Serialize,
) -> io::Result<Option<T>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.get_mut().write_all(&line)?;
    let mut answer = Vec::new();
    stream.read_until(b'\n', &mut answer)?;
    if answer.last() != Some(&b'\n') {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&answer)?))
}

impl Client {
    /// Asks for an admin operation. The error is the daemon's refusal, or says that the connection broke.
    pub fn ask(&mut self, op: &str, args: Map<String, Value>) -> Result<Value, Refusal> {
        let mut request = args;
        request.insert("op".to_owned(), json!(op));
        let answer =
            exchange::<Map<String, Value>>(&mut self.stream, &request).map_err(|error| broken(&error))?;
        let mut answer =
            answer.ok_or_else(|| Refusal::new(Code::IoError, "The daemon went away before it answered."))?;
        match answer.remove("refusal") {
            Some(refusal) => Err(refusal_of(&refusal)),
            None => Ok(answer.remove("ok").unwrap_or(Value::Null)),
        }
    }

    /// Waits until the daemon closes the connection, which after `stop` means that it has ended.
    pub fn wait_end(mut self) {
        let process = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // An error is an end, too.
        let _ = io::copy(&mut self.stream.by_ref(), &mut io::sink());
        // The socket closes a moment before the process is gone.
        if let Some(process) = process {
            let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], None);
        }
    }

    /// The stream, and what was already read from it.
    pub(crate) fn into_stream(self) -> (UnixStream, Vec<u8>) {
        let read = self.stream.buffer().to_vec();
        (self.stream.into_inner(), read)
    }
}
