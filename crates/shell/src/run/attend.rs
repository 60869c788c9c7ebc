//! The thread that attends to a command: it takes its output, knows its time, and sees it to its end. One thread for all
//! of that, so that a flood of output and a limit of time are looked at by the same eyes.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal};

use cotenant_model::ExecLimits;

use super::family;
use super::job::{Ended, Exceeded, Hint, JobShared, Kept};
use super::output::{Output, Stream};
use super::watch::Watch;
use crate::sandbox::{
    Composed, Group, Groups, Inside, Shared, StartError, Started, Tier, high, start_program,
};
use crate::sys::{self, Command, Deadline, Moment, Report, Stdio};

/// Time between the request to end and the end.
const GRACE: Duration = Duration::from_secs(1);
/// Disk and memory of all together are looked after from so late on: what ends sooner cannot have filled them.
const WATCHED_AFTER: Duration = Duration::from_millis(300);
/// Of output that a process writes on although everything was ended, no more than this is taken.
const LAST_WORDS: usize = 1 << 22;

/// All that a command needs while it runs.
pub(crate) struct Run {
    pub(crate) job: Arc<JobShared>,
    pub(crate) session: Arc<Shared>,
    pub(crate) composed: Composed,
    pub(crate) tier: Tier,
    pub(crate) command: Command,
    pub(crate) groups: Option<Groups>,
    pub(crate) run: Kept,
    pub(crate) timeout: Duration,
    pub(crate) limits: ExecLimits,
    pub(crate) _inside: Option<Inside>,
}

/// Starts the command, tells how that went, and stays until it has ended.
pub(crate) fn attend(run: Run, started: &Sender<Result<(), StartError>>) {
    sys::quiet_thread();
    let begun = Moment::now();
    let (process, pipes) = match begin(&run) {
        Ok(begun) => begun,
        Err(error) => {
            drop(run);
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(()));
    let mut attended = Attended {
        job: &run.job,
        process,
        pipes: pipes.map(Some),
        buffer: vec![0; 1 << 16],
        deadline: Deadline::after(run.timeout),
        timed_out: false,
    };
    let mut guard = None;
    let status = attended.until_the_end(|init| guard = Some(Guard::set(&run, init)));
    let left_running = attended.end_the_rest(run.tier.own_processes);
    attended.last_words();
    let timed_out = attended.timed_out;
    drop(attended);
    let (exit, signal) = decode(status);
    let disk = run.job.disk_exceeded().then_some(Exceeded::Disk);
    let group = guard.as_ref().map(|guard| guard.group.as_ref());
    let memory = || group.flatten().is_some_and(Group::ran_out).then_some(Exceeded::Memory);
    let together = run.tier.memory_together && group.is_none_or(|group| group.is_some());
    let ended = Ended {
        exit,
        signal,
        timed_out,
        stopped: run.job.stop_asked(),
        exceeded: disk.or_else(memory),
        ms: begun.ms(),
        tier: Tier { memory_together: together, ..run.tier },
        left_running,
        hints: hints(&run.job.output),
    };
    let job = run.job.clone();
    drop(guard);
    // Whoever hears of the end finds nothing in use any more.
    drop(run);
    job.finish(ended);
}

/// Pipes, and the start itself.
fn begin(run: &Run) -> Result<(Started, [OwnedFd; 2]), StartError> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).and_then(|(r, w)| Ok((high(r)?, high(w)?)));
    let error = |error| StartError::io("making a pipe", error);
    let (output, output_end) = pipe().map_err(error)?;
    let (errors, errors_end) = pipe().map_err(error)?;
    for end in [&output, &errors] {
        let flags = fcntl_getfl(end).map_err(error)?;
        fcntl_setfl(end, flags | OFlags::NONBLOCK).map_err(error)?;
    }
    let input = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let input = input.and_then(high).map_err(|error| StartError::io("opening /dev/null", error))?;
    let stdio = Stdio { input, output: output_end, errors: errors_end };
    let process = start_program(&run.composed, Some((&run.command, &stdio)))?;
    Ok((process, [output, errors]))
}

/// What holds a command that has run for a while.
struct Guard {
    /// The control group that it was put into, where that could be done.
    group: Option<Group>,
    /// Without a thread that looks at the disk the limits of each file hold alone.
    _watch: Option<Watch>,
}

impl Guard {
    fn set(run: &Run, init: Pid) -> Guard {
        let job = run.job.clone();
        let shared = vec![run.session.tmp.clone(), run.session.home.clone()];
        let disk = run.limits.disk_mb.saturating_mul(1 << 20);
        let watch = Watch::start(vec![run.run.0.clone()], shared, disk, move || job.exceed_disk());
        let group = run.groups.as_ref().and_then(|groups| groups.make(&run.limits).ok());
        let group = group.filter(|group| group.take(|| family::descendants(init)));
        Guard { group, _watch: watch.ok() }
    }
}

struct Attended<'a> {
    job: &'a JobShared,
    process: Started,
    /// Standard output and standard error, until they are closed.
    pipes: [Option<OwnedFd>; 2],
    buffer: Vec<u8>,
    deadline: Deadline,
    timed_out: bool,
}

impl Attended<'_> {
    /// Until the command itself has ended, or nothing is left but to kill it. Its status of `wait`, where there is one.
    fn until_the_end(&mut self, watch: impl FnOnce(Pid)) -> Option<i32> {
        let mut watch = Some(watch);
        let watch_from = Deadline::after(WATCHED_AFTER);
        let mut grace: Option<Deadline> = None;
        loop {
            let until = grace.unwrap_or(self.deadline);
            let next = if watch.is_some() && watch_from.left() < until.left() { watch_from } else { until };
            if let Some(end) = self.step(next) {
                return end;
            }
            if watch_from.passed()
                && let Some(watch) = watch.take()
            {
                watch(self.process.pid);
            }
            self.timed_out |= self.deadline.passed() && grace.is_none();
            let asked = self.timed_out || self.job.stop_asked() || self.job.disk_exceeded();
            if self.job.kill_asked() || grace.is_some_and(Deadline::passed) {
                return None;
            }
            if asked && grace.is_none() {
                self.process.signal(Signal::TERM);
                grace = Some(Deadline::after(GRACE));
            }
        }
    }

    /// Waits for one event and takes it. `Some` is the end.
    fn step(&mut self, until: Deadline) -> Option<Option<i32>> {
        let [output, errors] = [0, 1].map(|at| self.pipes[at].as_ref());
        let always = [self.process.reports.as_fd(), self.process.process.as_fd(), self.job.wake.as_fd()];
        let fds = always.into_iter().chain([output, errors].into_iter().flatten().map(AsFd::as_fd));
        let mut polled: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if !matches!(poll(&mut polled, Some(&until.timespec())), Ok(1..)) {
            return None;
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        drop(polled);
        if ready[2] {
            let _ = rustix::io::read(&self.job.wake, &mut [0u8; 8]);
        }
        if ready[3..].contains(&true) {
            self.take(0);
            self.take(1);
        }
        if ready[0] {
            return match self.process.report() {
                Some(Report::Ended(status)) => Some(Some(status)),
                Some(_) => None,
                None => Some(None),
            };
        }
        ready[1].then_some(None)
    }

    /// Reads once from a stream; how much, or `None` where nothing more is there for now or for good.
    fn take(&mut self, at: usize) -> Option<usize> {
        let pipe = self.pipes[at].as_ref()?;
        match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(0) => {
                self.pipes[at] = None;
                None
            }
            Ok(count) => {
                let stream = if at == 0 { Stream::Output } else { Stream::Errors };
                self.job.output.push(stream, &self.buffer[..count]);
                Some(count)
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(_) => {
                self.pipes[at] = None;
                None
            }
        }
    }

    /// Ends what the command left running, and says what that was.
    fn end_the_rest(&mut self, together: bool) -> Vec<String> {
        let left = family::descendants(self.process.pid);
        let names = family::names(&left);
        if !together {
            family::end(self.process.pid);
        }
        self.process.end();
        names
    }

    /// What stands in the pipes still.
    fn last_words(&mut self) {
        let mut taken = 0;
        for at in [0, 1] {
            while taken < LAST_WORDS {
                match self.take(at) {
                    Some(count) => taken += count,
                    None => break,
                }
            }
        }
    }
}

/// Exit status and signal of a status of `wait`; one that is not known means that it was killed.
fn decode(status: Option<i32>) -> (Option<i32>, Option<i32>) {
    let Some(status) = status else { return (None, Some(Signal::KILL.as_raw())) };
    match status & 0x7f {
        0 => (Some(status >> 8 & 0xff), None),
        signal => (None, Some(signal)),
    }
}

/// What programs say when the overlay did not let them.
fn hints(output: &Output) -> Vec<Hint> {
    const LOOKED_AT: usize = 1 << 16;
    let shown = output.snapshot(LOOKED_AT, LOOKED_AT);
    let says = |needle: &str| {
        let needle = needle.as_bytes();
        [&shown.head, &shown.tail]
            .iter()
            .any(|text| text.windows(needle.len()).any(|window| window == needle))
    };
    let renamed = says("Invalid cross-device link") || says("EXDEV");
    let foreign = says("Value too large for defined data type") || says("EOVERFLOW");
    let all = [(renamed, Hint::DirectoryRename), (foreign, Hint::ForeignOwner)];
    all.into_iter().filter(|(said, _)| *said).map(|(_, hint)| hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::OutputLimits;

    #[test]
    fn an_exit_of_137_is_not_a_kill() {
        assert_eq!(decode(Some(137 << 8)), (Some(137), None));
        assert_eq!(decode(Some(9)), (None, Some(9)));
        assert_eq!(decode(Some(11 | 0x80)), (None, Some(11)));
        assert_eq!(decode(Some(0)), (Some(0), None));
        assert_eq!(decode(None), (None, Some(9)));
    }

    #[test]
    fn a_directory_that_could_not_be_renamed_is_noticed() {
        let output = Output::new(OutputLimits::default(), std::env::temp_dir());
        assert_eq!(hints(&output), []);
        output.push(Stream::Errors, b"fatal: renaming 'a' failed: Invalid cross-device link\n");
        assert_eq!(hints(&output), [Hint::DirectoryRename]);
    }
}
