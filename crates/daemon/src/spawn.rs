//! Starts the daemon as a process of its own and waits until it says that it can be reached.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cotenant_model::{Code, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hello::refusal_of;
use crate::{Place, sys};

/// How long a daemon may take to start: it recovers what a crash left, and waits for one of another build to finish.
const START: Duration = Duration::from_secs(120);

/// What is shown of the log of a daemon that died.
const LOG_TAIL: u64 = 2000;

/// A log that is longer is begun anew, in bytes.
const LOG_MAX: u64 = 1024 * 1024;

/// The command that is a daemon.
#[derive(Clone, Debug)]
pub struct Starter {
    /// The file to run. By default the running one itself, also where another has taken its name since.
    pub exe: PathBuf,
    /// Arguments before `--root DIR`.
    pub args: Vec<String>,
    /// Environment variables that are added.
    pub env: Vec<(String, String)>,
}

impl Default for Starter {
    fn default() -> Starter {
        Starter { exe: PathBuf::from("/proc/self/exe"), args: vec!["daemon".to_owned()], env: Vec::new() }
    }
}

/// What a daemon says on its standard output once it is known how its start ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "cotenant_daemon", rename_all = "lowercase")]
pub(crate) enum Notice {
    /// It, or another daemon of the same root, can be reached.
    Ready,
    /// There will be none.
    Refused {
        /// Why.
        refusal: Value,
    },
}

impl Starter {
    /// Starts a daemon and waits until one can be reached. Where several start at once, one becomes the daemon.
    pub(crate) fn start(&self, place: &Place) -> Result<(), Refusal> {
        let stdout = self.spawn(place).map_err(|error| {
            Refusal::new(Code::IoError, format!("The daemon could not be started: {error}."))
        })?;
        match notice(stdout) {
            Ok(Some(Notice::Ready)) => Ok(()),
            Ok(Some(Notice::Refused { refusal })) => Err(refusal_of(&refusal)),
            Ok(None) => {
                let log = log_tail(place).unwrap_or_default();
                Err(Refusal::new(Code::IoError, "The daemon ended before it could be reached.")
                    .fact("log", place.log().display().to_string())
                    .block(log))
            }
            Err(error) => Err(Refusal::new(Code::IoError, format!("The daemon did not start: {error}."))
                .fact("log", place.log().display().to_string())),
        }
    }

    fn spawn(&self, place: &Place) -> io::Result<ChildStdout> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(place.log())?;
        if log.metadata()?.len() > LOG_MAX {
            log.set_len(0)?;
        }
        // A pipe that some caller of ours left open would never end while the daemon lives.
        sys::inherit_nothing();
        let mut child = Command::new(&self.exe)
            .arg0("cotenant")
            .args(&self.args)
            .arg("--root")
            .arg(&place.root)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        // A child that ended is kept by the kernel until its parent asks for it; a bridge lives long.
        std::thread::Builder::new().stack_size(64 * 1024).spawn(move || child.wait())?;
        Ok(stdout)
    }
}

/// Waits for the notice; `None` where the daemon ended without one.
fn notice(stdout: ChildStdout) -> io::Result<Option<Notice>> {
    let deadline = Instant::now() + START;
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        if lines.buffer().is_empty() {
            readable(lines.get_ref(), deadline)?;
        }
        let some = lines.fill_buf()?;
        if some.is_empty() {
            return Ok(None);
        }
        let end = memchr::memchr(b'\n', some);
        line.extend_from_slice(&some[..end.unwrap_or(some.len())]);
        let used = end.map_or(some.len(), |end| end + 1);
        lines.consume(used);
        if end.is_some() {
            if let Ok(notice) = serde_json::from_slice(&line) {
                return Ok(Some(notice));
            }
            line.clear();
        }
    }
}

fn readable(pipe: impl AsFd, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::TimedOut)),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn log_tail(place: &Place) -> io::Result<String> {
    let mut log = std::fs::File::open(place.log())?;
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
    let mut tail = Vec::new();
    log.take(LOG_TAIL).read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).into_owned())
}
