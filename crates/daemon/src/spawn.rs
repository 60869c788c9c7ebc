//! Processes: the daemon, started as one of its own and waited for until it can be reached; and the hooks of a workspace.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
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

/// Bytes that a hook may say in all, on both its outputs.
const SAID_MOST: usize = 1024 * 1024;

/// A command line that is asked about a call.
pub(crate) struct Script<'a> {
    /// For the shell.
    pub(crate) command: &'a str,
    /// Where it runs.
    pub(crate) cwd: &'a Path,
    /// What it reads.
    pub(crate) input: &'a [u8],
    /// It is ended after so long.
    pub(crate) limit: Duration,
}

/// What a script said, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) end: ScriptEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptEnd {
    /// By itself, with this status.
    Code(i32),
    /// By this signal, which was not ours.
    Signal(i32),
    /// It took longer than it may, and was ended.
    Late,
    /// It said more than it may, and was ended.
    TooMuch,
}

impl Script<'_> {
    /// Runs it to its end, in a process group of its own of which nothing is left afterwards.
    pub(crate) fn run(&self) -> io::Result<Said> {
        sys::inherit_nothing();
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(self.command)
            .current_dir(self.cwd)
            .env("CLAUDE_PROJECT_DIR", self.cwd)
            .env_remove("COTENANT_SESSION")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let talked = Talk::new(&mut child, self.input).and_then(|talk| talk.until_it_ends(self.limit));
        // The child has not been waited for, so that its number still names its group and nobody else's.
        let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // Whatever is left of it; a group without processes is as good.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let status = child.wait()?;
        let (talk, cut) = talked?;
        let end = cut.unwrap_or_else(|| ended(status));
        Ok(Said { stdout: talk.stdout.1, stderr: talk.stderr.1, end })
    }
}

fn ended(status: ExitStatus) -> ScriptEnd {
    match status.code() {
        Some(code) => ScriptEnd::Code(code),
        None => ScriptEnd::Signal(status.signal().unwrap_or(0)),
    }
}

/// The pipes of a running script. None of them blocks.
struct Talk<'a> {
    input: &'a [u8],
    stdin: Option<ChildStdin>,
    stdout: (Option<ChildStdout>, Vec<u8>),
    stderr: (Option<ChildStderr>, Vec<u8>),
    /// Readable once the process has ended, whoever still holds its pipes.
    process: std::os::fd::OwnedFd,
}

impl<'a> Talk<'a> {
    fn new(child: &mut Child, input: &'a [u8]) -> io::Result<Talk<'a>> {
        let process =
            sys::pidfd(child.id()).ok_or_else(|| io::Error::other("no descriptor of the process"))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pipes = [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ];
        for pipe in pipes.into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Talk { input, stdin, stdout: (stdout, Vec::new()), stderr: (stderr, Vec::new()), process })
    }

    /// Writes and reads until the process has ended; `Some` where it must be ended instead.
    fn until_it_ends(mut self, limit: Duration) -> io::Result<(Talk<'a>, Option<ScriptEnd>)> {
        let deadline = Instant::now() + limit;
        loop {
            let over = self.wait(deadline)?;
            self.write()?;
            read(&mut self.stdout, SAID_MOST.saturating_sub(self.stderr.1.len()))?;
            read(&mut self.stderr, SAID_MOST.saturating_sub(self.stdout.1.len()))?;
            let cut = match over {
                _ if self.stdout.1.len() + self.stderr.1.len() > SAID_MOST => Some(ScriptEnd::TooMuch),
                Some(true) => None,
                Some(false) => Some(ScriptEnd::Late),
                None => continue,
            };
            return Ok((self, cut));
        }
    }

    /// Waits for something to do: `Some(true)` once the process has ended, `Some(false)` once it is too late.
    fn wait(&self, deadline: Instant) -> io::Result<Option<bool>> {
        let mut fds = vec![PollFd::new(&self.process, PollFlags::IN)];
        fds.extend(self.stdin.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        fds.extend(self.stdout.0.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        fds.extend(self.stderr.0.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&left)) {
            Ok(_) if !fds[0].revents().is_empty() => Ok(Some(true)),
            // However much it says: what has not ended by then is late.
            Ok(_) => Ok((Instant::now() >= deadline).then_some(false)),
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes what the pipe takes; closes it at the end, and where nobody reads.
    fn write(&mut self) -> io::Result<()> {
        while let Some(pipe) = &mut self.stdin {
            match pipe.write(self.input) {
                Ok(0) => self.stdin = None,
                Ok(count) => self.input = &self.input[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.stdin = None,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads what is there, one byte more than `most` at most; lets go of a pipe that has ended.
fn read<R: Read>((pipe, said): &mut (Option<R>, Vec<u8>), most: usize) -> io::Result<()> {
    let mut bytes = [0; 16 * 1024];
    while let Some(open) = pipe
        && said.len() <= most
    {
        match open.read(&mut bytes) {
            Ok(0) => *pipe = None,
            Ok(count) => said.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, input: &[u8], limit_ms: u64) -> Said {
        let script = Script { command, cwd: Path::new("/"), input, limit: Duration::from_millis(limit_ms) };
        script.run().unwrap()
    }

    fn said(stdout: &str, stderr: &str, end: ScriptEnd) -> Said {
        Said { stdout: stdout.into(), stderr: stderr.into(), end }
    }

    const LONG: u64 = 60_000;

    #[test]
    fn what_is_said_is_kept_apart_with_how_it_ended() {
        assert_eq!(run("cat; echo no >&2; exit 3", b"in", LONG), said("in", "no\n", ScriptEnd::Code(3)));
        assert_eq!(run("kill -TERM $$", b"", LONG), said("", "", ScriptEnd::Signal(15)));
        assert_eq!(run("pwd; echo $CLAUDE_PROJECT_DIR", b"", LONG), said("/\n/\n", "", ScriptEnd::Code(0)));
    }

    #[test]
    fn as_much_as_may_be_said_is_heard_and_no_more() {
        let all = run("head -c 1048576 /dev/zero", b"", LONG);
        assert_eq!((all.stdout.len(), all.end), (SAID_MOST, ScriptEnd::Code(0)));
        let more = run("head -c 1048577 /dev/zero", b"", LONG);
        assert_eq!(more.end, ScriptEnd::TooMuch);
        let endless = run("yes >&2", b"", LONG);
        assert_eq!((endless.stderr.len() <= SAID_MOST + 16 * 1024, endless.end), (true, ScriptEnd::TooMuch));
    }

    #[test]
    fn nobody_waits_for_who_does_not_end_nor_for_what_it_left() {
        assert_eq!(run("echo begun; exec sleep 1000", b"", 200), said("begun\n", "", ScriptEnd::Late));
        // One that says something all the time is late, too.
        let chatter = run("while :; do echo; read -r line < /proc/self/stat; done", b"", 200);
        assert!(matches!(chatter.end, ScriptEnd::Late | ScriptEnd::TooMuch), "{:?}", chatter.end);
        // The pipes are held by a child that goes on.
        assert_eq!(run("sleep 1000 & echo done", b"", LONG), said("done\n", "", ScriptEnd::Code(0)));
    }

    #[test]
    fn input_that_nobody_reads_or_that_is_long_does_not_block() {
        let input = vec![b'x'; 3 * SAID_MOST];
        assert_eq!(run("exec <&-; echo closed", &input, LONG), said("closed\n", "", ScriptEnd::Code(0)));
        assert_eq!(run("true", &input, LONG), said("", "", ScriptEnd::Code(0)));
        assert_eq!(run("wc -c", &input, LONG), said("3145728\n", "", ScriptEnd::Code(0)));
        let echoed = run("head -c 1000000", &input, LONG);
        assert_eq!((echoed.stdout.len(), echoed.end), (1_000_000, ScriptEnd::Code(0)));
    }

    #[test]
    fn a_place_that_is_gone_is_an_error() {
        let script = Script {
            command: "true",
            cwd: Path::new("/no/such/place"),
            input: b"",
            limit: Duration::from_secs(9),
        };
        assert!(script.run().is_err());
    }
}
