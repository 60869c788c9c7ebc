//! Starting what was composed, up to the point where it runs or stands.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, pidfd_open, pidfd_send_signal, waitid,
    waitpid,
};

use super::compose::Composed;
use super::{StartError, mounts};
use crate::sys::{self, Command, Deadline, Phase, Report, Stdio, Step, Task};

/// Setting up takes milliseconds; a file system that does not answer must not hold a call for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// An init, and behind it perhaps a command.
#[derive(Debug)]
pub(crate) struct Started {
    /// Its process, readable at its end.
    pub(crate) process: OwnedFd,
    /// The same as a number: it is our child and not reaped, so nobody else's.
    pub(crate) pid: Pid,
    /// Brings [`Report`] records.
    pub(crate) reports: OwnedFd,
}

impl Started {
    /// Sends init a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        // Already gone is what any signal of ours is for.
        let _ = pidfd_send_signal(&self.process, signal);
    }

    /// Waits until init is gone, and with it every process of its namespace.
    pub(crate) fn reap(&self) {
        let wait = || waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED);
        while matches!(wait(), Err(rustix::io::Errno::INTR)) {}
    }

    /// Kills init and waits.
    pub(crate) fn end(&self) {
        self.signal(Signal::KILL);
        self.reap();
    }

    /// The next report; `None` once there are no more.
    pub(crate) fn report(&self) -> Option<Report> {
        read_report(&self.reports)
    }
}

fn read_report(pipe: &OwnedFd) -> Option<Report> {
    let mut record = [0; Report::SIZE];
    loop {
        match rustix::io::read(pipe, &mut record) {
            Ok(Report::SIZE) => return Report::parse(record),
            Err(rustix::io::Errno::INTR) => {}
            _ => return None,
        }
    }
}

/// Starts and waits until the command runs (`exec_ready`), or, without one, until init stands. On the calling thread,
/// which must be quiet ([`sys::quiet_thread`]) and outlive what it started.
pub(crate) fn start(composed: &Composed, program: Option<(&Command, &Stdio)>) -> Result<Started, StartError> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).and_then(|(r, w)| Ok((high(r)?, high(w)?)));
    let error = |error| StartError::io("making a pipe", error);
    let (set_up, set_up_end) = pipe().map_err(error)?;
    let (reports, reports_end) = pipe().map_err(error)?;
    let (born, born_end) = pipe().map_err(error)?;
    let daemon = pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).and_then(high);
    let daemon = daemon.map_err(|error| StartError::io("watching this process", error))?;
    let launch = sys::Launch {
        stub: &composed.stub,
        init: &composed.init,
        command: &composed.command,
        namespaces: composed.namespaces,
        program,
        set_up: set_up_end.as_fd(),
        reports: reports_end.as_fd(),
        born: born_end.as_fd(),
        daemon: daemon.as_fd(),
    };
    let (stub, _process) =
        sys::launch(&launch).map_err(|error| StartError::io("starting a process", error))?;
    drop((set_up_end, reports_end, born_end));
    let _ = waitpid(Some(stub), WaitOptions::empty());
    // It has said the number by now, or never will.
    let mut number = [0; 4];
    let said = readable_now(&born) && rustix::io::read(&born, &mut number) == Ok(4);
    let pid = i32::from_ne_bytes(number);
    if !said {
        return Err(failure(composed, set_up));
    }
    let found = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH);
    let found = found.and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
    let (pid, process) = found.map_err(|error| StartError::io("watching a process", error))?;
    let started = Started { process, pid, reports };
    let ready = match program {
        Some(_) => exec_ready(&set_up),
        None => readable(&started.reports) && started.report() == Some(Report::Ready),
    };
    if ready { Ok(started) } else { Err(failed(&started, composed, set_up)) }
}

/// Waits for the end of the set-up pipe; false where something was written to it, or it did not end.
pub(crate) fn exec_ready(set_up: &OwnedFd) -> bool {
    if !readable(set_up) {
        return false;
    }
    let mut watched = [PollFd::new(set_up, PollFlags::IN)];
    let now = rustix::event::Timespec::default();
    let _ = poll(&mut watched, Some(&now));
    !watched[0].revents().contains(PollFlags::IN)
}

fn readable(fd: &OwnedFd) -> bool {
    let deadline = Deadline::after(PATIENCE);
    loop {
        let mut watched = [PollFd::new(fd, PollFlags::IN)];
        match poll(&mut watched, Some(&deadline.timespec())) {
            Ok(ready) if ready > 0 => return true,
            Err(rustix::io::Errno::INTR) => {}
            _ if deadline.passed() => return false,
            _ => {}
        }
    }
}

/// Whether there is something to read, or nothing ever will be.
fn readable_now(fd: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut watched, Some(&rustix::event::Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn failed(started: &Started, composed: &Composed, set_up: OwnedFd) -> StartError {
    started.end();
    failure(composed, set_up)
}

/// What the record in the set-up pipe says, if there is one: it was written at once. A process that another thread
/// started meanwhile may hold the pipe open, so that its end is not waited for.
fn failure(composed: &Composed, set_up: OwnedFd) -> StartError {
    let mut record = Vec::new();
    if readable_now(&set_up) {
        let mut bytes = [0; 12];
        let read = rustix::io::read(&set_up, &mut bytes).unwrap_or(0);
        record.extend_from_slice(&bytes[..read]);
    }
    let Some((phase, index, errno)) = sys::set_up_failure(&record) else {
        let what = "starting the command".to_owned();
        return StartError::SetUp { what, error: "it did not get ready".to_owned() };
    };
    let tasks = match phase {
        Phase::Stub => &composed.stub,
        Phase::Init => &composed.init,
        Phase::Command => &composed.command,
    };
    let error = io::Error::from_raw_os_error(errno).to_string();
    match tasks.get(index).map(|task: &Task| &task.step) {
        Some(Step::Enter { below, .. }) => StartError::NoDirectory(below.to_string_lossy().into_owned()),
        Some(step @ Step::Overlay { lower, .. }) => {
            let folder = lower.to_string_lossy().into_owned();
            let points = mounts::mount_points();
            match mounts::below(&points, folder.as_ref()) {
                Some(point) => mount_below(point),
                None => StartError::NotStageable {
                    word: "overlay-refused",
                    why: format!("{}: {error}", step.what()),
                },
            }
        }
        Some(step) => StartError::SetUp { what: step.what(), error },
        None if phase == Phase::Command => StartError::SetUp { what: "starting the shell".to_owned(), error },
        None => StartError::SetUp { what: "starting a process".to_owned(), error },
    }
}

/// An overlay cannot lie over a tree with mounts in it.
pub(crate) fn mount_below(point: &std::path::Path) -> StartError {
    let why = format!("{} is a mount of its own", point.display());
    StartError::NotStageable { word: "mount-below", why }
}

/// The same descriptor above those that a command has as its own three.
pub(crate) fn high(fd: OwnedFd) -> rustix::io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { rustix::io::fcntl_dupfd_cloexec(&fd, 3) }
}

/// Does `work` on a thread of its own on which no signal is delivered.
pub(crate) fn quietly<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, StartError> {
    let lost = || StartError::io("starting a thread", "it ended early");
    std::thread::scope(|scope| {
        let quiet = || {
            sys::quiet_thread();
            work()
        };
        let thread = std::thread::Builder::new().name("cotenant-start".to_owned()).spawn_scoped(scope, quiet);
        thread.map_err(|error| StartError::io("starting a thread", error))?.join().map_err(|_| lost())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_never_one_of_the_commands_own() {
        let (one, other) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let number = one.as_raw_fd();
        assert_eq!(high(one).unwrap().as_raw_fd(), number);
        assert!(high(other).unwrap().as_raw_fd() > 2);
    }

    #[test]
    fn the_end_of_the_set_up_pipe_means_that_the_command_runs() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        drop(write);
        assert!(exec_ready(&read));
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        rustix::io::write(&write, &[0; 12]).unwrap();
        assert!(!exec_ready(&read));
    }
}
