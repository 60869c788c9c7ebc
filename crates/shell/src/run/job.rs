//! A command from its start to its end.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{Mode, OFlags};

use super::attend::{Run, attend};
use super::output::Output;
use super::request::{Folder, How, Request, c_string};
use crate::sandbox::{
    Killable, Machine, OverlayError, RunDir, Session, StartError, Tier, Upper, compose, make_run, stageable,
};
use crate::sys::{Command, Deadline};

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status; `None` where a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its time was up.
    pub timed_out: bool,
    /// It was stopped on request, or with its session.
    pub stopped: bool,
    /// It used more than it may, and was ended for it.
    pub exceeded: Option<Exceeded>,
    /// How long it ran, in milliseconds.
    pub ms: u64,
    /// How it was held.
    pub tier: Tier,
    /// Command lines of processes that outlived the shell, and were ended.
    pub left_running: Vec<String>,
    /// What its output suggests about the way it was run.
    pub hints: Vec<Hint>,
}

/// A limit that was gone over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// The memory of all its processes.
    Memory,
    /// The disk that it may fill.
    Disk,
}

/// What only happens to a staged command; run direct, it might succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A directory that was there before could not be renamed.
    DirectoryRename,
    /// A file of an owner or group unknown to the sandbox could not be written.
    ForeignOwner,
}

/// A time of change of a file system, from just before a command could write: seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Barrier {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within.
    pub nanos: u32,
}

/// A command that was started. It runs on whether or not this is kept.
#[derive(Clone, Debug)]
pub struct Job {
    shared: Arc<JobShared>,
    barriers: Arc<[Option<Barrier>]>,
    upper: Option<Upper>,
}

/// What a job and the thread that attends to it have in common.
#[derive(Debug)]
pub(crate) struct JobShared {
    pub(crate) output: Output,
    /// Readable once something was asked for.
    pub(crate) wake: OwnedFd,
    asked: AtomicU8,
    ended: Mutex<Option<Ended>>,
    over: Condvar,
}

const STOP: u8 = 1;
const KILL: u8 = 2;
const DISK: u8 = 4;

impl JobShared {
    fn ask(&self, what: u8) {
        self.asked.fetch_or(what, Ordering::SeqCst);
        // A full counter wakes just as well.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Whether it was asked to stop.
    pub(crate) fn stop_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) & (STOP | KILL) != 0
    }

    /// Whether it was asked to end without delay.
    pub(crate) fn kill_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst) & KILL != 0
    }

    /// Whether it filled the disk beyond its limit.
    pub(crate) fn disk_exceeded(&self) -> bool {
        self.asked.load(Ordering::SeqCst) & DISK != 0
    }

    /// It filled the disk beyond its limit.
    pub(crate) fn exceed_disk(&self) {
        self.ask(DISK);
    }

    /// It is over.
    pub(crate) fn finish(&self, ended: Ended) {
        *self.ended() = Some(ended);
        self.output.close();
        self.over.notify_all();
    }

    fn ended(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Killable for JobShared {
    fn kill(&self) {
        self.ask(KILL);
    }
}

impl Job {
    /// Waits for the end, at most so long.
    pub fn wait(&self, up_to: Duration) -> Option<Ended> {
        let deadline = Deadline::after(up_to);
        let mut ended = self.shared.ended();
        while ended.is_none() && !deadline.passed() {
            let waited = self.shared.over.wait_timeout(ended, deadline.left().min(Duration::from_secs(3600)));
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        ended.clone()
    }

    /// Asks it to end, and ends it if it does not soon. [`Job::wait`] tells when it has.
    pub fn stop(&self) {
        self.shared.ask(STOP);
    }

    /// What it has written so far.
    pub fn output(&self) -> &Output {
        &self.shared.output
    }

    /// What a staged command left, once it has ended; every process of it is gone then, and so is the mount.
    pub fn upper(&self) -> Result<Upper, OverlayError> {
        match (&self.upper, self.shared.ended().is_some()) {
            (_, false) => Err(OverlayError::Running),
            (None, true) => Err(OverlayError::NoFolder(0)),
            (Some(upper), true) => Ok(upper.clone()),
        }
    }

    /// For the folder of this place: a change time of its file system from just before the command started; what changed
    /// later has a later one. `None` where the scratch folder lies on another file system.
    pub fn barrier(&self, folder: usize) -> Option<Barrier> {
        self.barriers.get(folder).copied().flatten()
    }
}

/// Starts a command. It is set up and runs once this returns; otherwise nothing of it ran.
pub fn start(machine: &Machine, session: &Session, request: Request) -> Result<Job, StartError> {
    let inner = &machine.inner;
    let (command, inside) = (shell(machine, session, &request)?, enter(session, &request)?);
    let staged = matches!(request.how, How::Staged { .. });
    if staged {
        stageable(inner, &request.folders)?;
    }
    let run = match &request.how {
        How::Overlay(overlay) => overlay.run_dir().clone(),
        How::Staged { .. } => make_run(machine, &request.folders)?,
        How::Direct { .. } => make_run(machine, &[])?,
    };
    let (composed, tier) = compose(inner, session.shared(), &request, &run.0)?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let shared = Arc::new(JobShared {
        output: Output::new(request.output, inner.scratch.clone()),
        wake: wake.map_err(|error| StartError::io("making an event", error))?,
        asked: AtomicU8::new(0),
        ended: Mutex::default(),
        over: Condvar::new(),
    });
    let weak: std::sync::Weak<JobShared> = Arc::downgrade(&shared);
    session.shared().join(weak)?;
    let barriers = barriers(&inner.scratch, request.seen());
    let upper = staged.then(|| Upper::new(run.clone()));
    let (sender, started) = mpsc::channel();
    let work = Run {
        job: shared.clone(),
        session: session.shared().clone(),
        composed,
        tier,
        command,
        groups: inner.groups.as_ref().ok().cloned(),
        run,
        timeout: request.timeout,
        limits: request.limits,
        _inside: inside,
    };
    let thread = std::thread::Builder::new().name("cotenant-job".to_owned());
    thread
        .spawn(move || attend(work, &sender))
        .map_err(|error| StartError::io("starting a thread", error))?;
    let lost = |_| StartError::io("starting the command", "its thread ended");
    started.recv().map_err(lost)??;
    Ok(Job { shared, barriers, upper })
}

/// Counts the command as one that runs in its overlay, if it has one.
fn enter(session: &Session, request: &Request) -> Result<Option<crate::sandbox::Inside>, StartError> {
    match &request.how {
        How::Overlay(overlay) => overlay.enter(session.shared()).map(Some),
        _ => Ok(None),
    }
}

const SHELLS: &[&str] = &["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh"];

/// The shell with its arguments and environment.
fn shell(machine: &Machine, session: &Session, request: &Request) -> Result<Command, StartError> {
    let shell = SHELLS.iter().find(|path| Path::new(path).exists()).copied().unwrap_or("/bin/sh");
    let name = Path::new(shell).file_name().unwrap_or_default().as_encoded_bytes().to_owned();
    let script = c_string(request.script.as_str(), "the command")?;
    let arguments = vec![c_string(name, "the shell")?, c"-c".to_owned(), script];
    let mut environment: BTreeMap<Vec<u8>, Vec<u8>> = request
        .env
        .iter()
        .map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()))
        .collect();
    let (home, tmp) = machine.inner.homes(session.shared(), request.seen());
    let path = |path: PathBuf| path.into_os_string().into_encoded_bytes();
    for (name, value) in [("HOME", home), ("TMPDIR", tmp), ("PWD", clean(&request.directory()?))] {
        environment.insert(name.as_bytes().to_owned(), path(value));
    }
    let pair =
        |(name, value): (Vec<u8>, Vec<u8>)| c_string([&name[..], b"=", &value].concat(), "the environment");
    let environment: Vec<CString> = environment.into_iter().map(pair).collect::<Result<_, _>>()?;
    Ok(Command::new(c_string(shell, "the shell")?, arguments, environment))
}

/// The path without a final `/`.
fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Touches a nameless file and takes its change time, for each folder on the same file system.
fn barriers(scratch: &Path, folders: &[Folder]) -> Arc<[Option<Barrier>]> {
    let touched = touch(scratch);
    let device = |folder: &Folder| match &folder.dir {
        Some(dir) => rustix::fs::fstat(dir).ok().map(|stat| stat.st_dev),
        None => std::fs::metadata(&folder.host).ok().map(|found| found.dev()),
    };
    let of =
        |folder: &Folder| touched.filter(|(on, _)| device(folder) == Some(*on)).map(|(_, barrier)| barrier);
    folders.iter().map(of).collect()
}

fn touch(scratch: &Path) -> Option<(u64, Barrier)> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(scratch, flags, Mode::from_raw_mode(0o600)).ok()?;
    rustix::io::write(&file, b"x").ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let nanos = u32::try_from(stat.st_ctime_nsec).unwrap_or(0);
    Some((stat.st_dev, Barrier { seconds: stat.st_ctime, nanos }))
}

/// So that a run's directory stays as long as anything of the run.
pub(crate) type Kept = Arc<RunDir>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_barrier_is_not_earlier() {
        let (device, first) = touch(&std::env::temp_dir()).unwrap();
        let (again, second) = touch(&std::env::temp_dir()).unwrap();
        assert_eq!(device, again);
        assert!(first <= second);
        assert_eq!(touch(Path::new("/nonexistent")), None);
    }

    #[test]
    fn a_directorys_name_has_no_final_slash() {
        assert_eq!(clean(Path::new("/w/root/")), Path::new("/w/root"));
        assert_eq!(clean(Path::new("/")), Path::new("/"));
    }
}
