//! Runs a filter: bytes in, bytes out, with a limit on time, memory and output. It gets a pipe and nothing of the
//! workspace.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// How long all filters of one command may run.
const PATIENCE: Duration = Duration::from_secs(2);
/// The memory that a filter may map, in bytes: a pattern space can be doubled in a loop.
const MEMORY: u64 = 512 << 20;
/// The output that is taken, in bytes.
const OUTPUT: u64 = 16 << 20;

/// Why a filter has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilterError {
    /// It could not be started or fed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Its time was up.
    #[error("2 s passed")]
    Slow,
    /// It wrote more than is taken.
    #[error("it writes over 16 MiB")]
    Long,
    /// It ended with another status than 0, and these were its words.
    #[error("{0}")]
    Failed(String),
}

/// The time that the filters of one command have together; its thread ends when this is dropped.
pub(super) struct Clock {
    events: Receiver<Event>,
    sender: Sender<Event>,
    /// Never used; when it is dropped, the thread ends.
    _running: Sender<()>,
    up: bool,
}

enum Event {
    /// A filter's whole output, or why it cannot be had.
    Output(std::io::Result<Vec<u8>>),
    TimeIsUp,
}

impl Clock {
    /// Starts to run.
    pub(super) fn start() -> Clock {
        let (sender, events) = mpsc::channel();
        let (running, stopped) = mpsc::channel::<()>();
        let ring = sender.clone();
        thread::spawn(move || {
            if stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Nobody waits any more: then there is nobody to tell.
                let _ = ring.send(Event::TimeIsUp);
            }
        });
        Clock { events, sender, _running: running, up: false }
    }
}

/// The standard output of `program`, fed `input`, in an environment of `variables` alone.
pub(super) fn filter(
    program: &Path,
    arguments: &[&str],
    variables: &[(String, String)],
    input: &[u8],
    clock: &mut Clock,
) -> Result<Vec<u8>, FilterError> {
    if clock.up {
        return Err(FilterError::Slow);
    }
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/");
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let result = converse(&mut child, input, clock);
    if result.is_err() {
        // It may have ended by itself already.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let output = result?;
    if status.success() {
        return Ok(output);
    }
    Err(FilterError::Failed(last_words(&mut child)))
}

/// Feeds the child and takes its output, until it closes that or time is up.
fn converse(child: &mut Child, input: &[u8], clock: &mut Clock) -> Result<Vec<u8>, FilterError> {
    // It waits for its first line, so no script of it has run yet.
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    prlimit(pid, Resource::As, limit).map_err(std::io::Error::from)?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::Error::other("no pipes").into());
    };
    let input = input.to_vec();
    // A filter may end before it has read everything; what it wrote is what counts.
    thread::spawn(move || stdin.write_all(&input));
    let sender = clock.sender.clone();
    thread::spawn(move || {
        let mut output = Vec::new();
        let read = stdout.take(OUTPUT + 1).read_to_end(&mut output);
        let _ = sender.send(Event::Output(read.map(|_| output)));
    });
    match clock.events.recv() {
        Ok(Event::Output(output)) => {
            let output = output?;
            if u64::try_from(output.len()).is_ok_and(|length| length > OUTPUT) {
                Err(FilterError::Long)
            } else {
                Ok(output)
            }
        }
        Ok(Event::TimeIsUp) | Err(_) => {
            clock.up = true;
            Err(FilterError::Slow)
        }
    }
}

/// The first line that an ended child wrote to standard error.
fn last_words(child: &mut Child) -> String {
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // Without words the status alone says that it failed.
        let _ = stderr.take(4096).read_to_end(&mut said);
    }
    let said = String::from_utf8_lossy(&said);
    said.lines().next().unwrap_or("it failed").to_owned()
}
