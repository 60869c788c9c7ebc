//! From one process to three: a stub that joins the session's namespaces, an init that ends everything with itself,
//! and the command.
//!
//! The stub exists because a process with several threads cannot enter a user namespace; it makes init a child of the
//! daemon (`CLONE_PARENT`) and goes. Init waits for the command, tells its exact status through a pipe, and then waits to
//! be killed: with it, in a process namespace, goes every process there is.

use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::calls::{self, Done};
use super::step::{Hands, Task};

/// The program that a child becomes. The pointers are made before the fork and lead into the strings beside them.
#[derive(Debug)]
pub(crate) struct Command {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Command {
    /// The program's path, its arguments with its own name first, and `NAME=value` strings.
    pub(crate) fn new(program: CString, arguments: Vec<CString>, environment: Vec<CString>) -> Command {
        Command { program, arguments, environment }
    }
}

/// What the command has as descriptors 0 to 2.
#[derive(Debug)]
pub(crate) struct Stdio {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) errors: OwnedFd,
}

/// Everything that the children do, made beforehand.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// Before init exists.
    pub(crate) stub: &'a [Task],
    /// By init.
    pub(crate) init: &'a [Task],
    /// By the command, before it is one.
    pub(crate) command: &'a [Task],
    /// `CLONE_NEW*` flags of init: its own mounts, processes, and so on.
    pub(crate) namespaces: i32,
    /// What runs; `None` where init shall only stand there until it is killed.
    pub(crate) program: Option<(&'a Command, &'a Stdio)>,
    /// Gets one [`Phase`] record if a step fails, and its end once the command runs.
    pub(crate) set_up: BorrowedFd<'a>,
    /// Where the process that starts init says its number.
    pub(crate) born: BorrowedFd<'a>,
    /// Gets [`Report`] records.
    pub(crate) reports: BorrowedFd<'a>,
    /// A pidfd of the daemon: readable once it is gone.
    pub(crate) daemon: BorrowedFd<'a>,
}

/// Who was carrying a step out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The stub.
    Stub,
    /// Init.
    Init,
    /// The command.
    Command,
}

/// What init tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Its steps are done, and there is no command to run.
    Ready,
    /// The command ended, with this status of `wait`.
    Ended(i32),
}

impl Report {
    /// Bytes of a record.
    pub(crate) const SIZE: usize = 8;

    fn bytes(self) -> [u8; Report::SIZE] {
        let (kind, value) = match self {
            Report::Ready => (2i32, 0),
            Report::Ended(status) => (3, status),
        };
        let mut bytes = [0; Report::SIZE];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[4..].copy_from_slice(&value.to_ne_bytes());
        bytes
    }

    /// From a record's bytes.
    pub(crate) fn parse(bytes: [u8; Report::SIZE]) -> Option<Report> {
        let [a, b, c, d, rest @ ..] = bytes;
        let value = i32::from_ne_bytes(rest);
        match i32::from_ne_bytes([a, b, c, d]) {
            2 => Some(Report::Ready),
            3 => Some(Report::Ended(value)),
            _ => None,
        }
    }
}

/// Which step failed, from the record in the set-up pipe: phase, index (past the end for what comes after the steps),
/// `errno`. `None` where the record is not whole.
pub(crate) fn set_up_failure(bytes: &[u8]) -> Option<(Phase, usize, i32)> {
    let bytes: [u8; 12] = bytes.get(..12)?.try_into().ok()?;
    let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let phase = match word(0) {
        0 => Phase::Stub,
        1 => Phase::Init,
        _ => Phase::Command,
    };
    Some((phase, usize::try_from(word(4)).unwrap_or(usize::MAX), word(8)))
}

/// Starts the stub and with it everything. The calling thread must live as long as what it started: init ends with it.
/// Returns the stub, which the caller has to wait for.
pub(crate) fn launch(launch: &Launch<'_>) -> io::Result<(Pid, OwnedFd)> {
    let mut hands = Hands::new(launch.init);
    let mut vectors = launch.program.map(|(command, stdio)| Vectors::new(command, stdio));
    // SAFETY: the child shares no memory with us, and below here only makes system calls with what was made before.
    let pid = match unsafe { clone(0) } {
        Ok(0) => unsafe { stub(launch, vectors.as_mut(), &mut hands) },
        Ok(pid) => pid,
        Err(errno) => return Err(io::Error::from_raw_os_error(errno)),
    };
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))
}

/// A command as `execve` takes it.
struct Vectors<'a> {
    command: &'a Command,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    stdio: [RawFd; 3],
    /// For the command's way from init to `execve`, on which it shares init's memory.
    stack: Vec<u128>,
}

/// Of 16 bytes each; the steps of a command need few.
const STACK: usize = 1 << 13;

impl<'a> Vectors<'a> {
    fn new(command: &'a Command, stdio: &Stdio) -> Vectors<'a> {
        let pointers = |strings: &[CString]| -> Vec<*const c_char> {
            strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        Vectors {
            command,
            arguments: pointers(&command.arguments),
            environment: pointers(&command.environment),
            stdio: [stdio.input.as_raw_fd(), stdio.output.as_raw_fd(), stdio.errors.as_raw_fd()],
            stack: vec![0; STACK],
        }
    }
}

/// A fork that no library knows of, with further `CLONE_*` flags.
///
/// # Safety
/// In the child, locks of other threads may be held for ever: it may only make system calls.
unsafe fn clone(flags: i32) -> Done<i32> {
    let flags = libc::c_ulong::from((flags | libc::SIGCHLD) as u32);
    // SAFETY: without CLONE_VM the child has its own memory; a stack of 0 means the same one, copied.
    calls::number(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })
}

/// # Safety
/// Only in a child of [`clone`].
unsafe fn stub(launch: &Launch<'_>, program: Option<&mut Vectors<'_>>, hands: &mut Hands) -> ! {
    // SAFETY: system calls only; init is a child of our parent and does not return either.
    unsafe {
        // Away from the terminal of whoever started the daemon.
        libc::setsid();
        run_all(launch, Phase::Stub, launch.stub, hands);
        match clone(launch.namespaces | libc::CLONE_PARENT) {
            Ok(0) => init(launch, program, hands),
            // On a way of its own: what init says may come first.
            Ok(pid) => drop(calls::write(launch.born.as_raw_fd(), &pid.to_ne_bytes())),
            Err(errno) => fail(launch, Phase::Stub, launch.stub.len(), errno),
        }
        libc::_exit(0)
    }
}

/// # Safety
/// Only in a child of [`clone`].
unsafe fn init(launch: &Launch<'_>, program: Option<&mut Vectors<'_>>, hands: &mut Hands) -> ! {
    // SAFETY: system calls only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if abandoned(launch, 0) {
            libc::_exit(1);
        }
        libc::setsid();
        // Without a process namespace, what its parents leave behind comes to init all the same.
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        run_all(launch, Phase::Init, launch.init, hands);
        let Some(program) = program else {
            report(launch, Report::Ready);
            // What the daemon had open is not to outlive it here: its locks, its connections.
            close_all_but(launch.daemon.as_raw_fd());
            while !abandoned(launch, -1) {}
            libc::_exit(1)
        };
        // The memory of the daemon stands in this process too.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        let top = program.stack.as_mut_ptr_range().end;
        let mut own = Own { launch, program, hands };
        // Init stands still until the command is one, or gone: its memory need not be copied once more.
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let command = libc::clone(become_command, top.cast(), flags, (&raw mut own).cast());
        let command = match calls::number(command.into()) {
            Ok(pid) => pid,
            Err(errno) => fail(launch, Phase::Init, launch.init.len(), errno),
        };
        // Once more, and last: it may have died while its own were still being ended.
        if abandoned(launch, 0) {
            libc::kill(command, libc::SIGKILL);
            libc::_exit(1);
        }
        close_all_but(launch.reports.as_raw_fd());
        wait_for(launch, command)
    }
}

/// Whether the daemon is gone; waits up to `ms` for that, -1 for ever. It may have died before the kernel was told to
/// end us with it. A pipe would not tell: its other end stands open in every child that was forked meanwhile.
///
/// # Safety
/// Only in a child of [`clone`].
unsafe fn abandoned(launch: &Launch<'_>, ms: i32) -> bool {
    let mut poll = libc::pollfd { fd: launch.daemon.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, a local that outlives the call.
    unsafe { libc::poll(&raw mut poll, 1, ms) > 0 }
}

/// # Safety
/// Only in a child of [`clone`], which needs no other descriptor any more.
unsafe fn close_all_but(kept: RawFd) {
    // SAFETY: descriptors of this process alone.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, kept - 1, 0);
        libc::syscall(libc::SYS_close_range, kept + 1, libc::c_uint::MAX, 0);
    }
}

/// Reaps what ends, passes a request to end on, reports the command's status, and waits to be killed.
///
/// # Safety
/// Only in a child of [`clone`], with the signals blocked.
unsafe fn wait_for(launch: &Launch<'_>, command: i32) -> ! {
    // SAFETY: pointers to locals; the signals waited for are blocked, so none is lost.
    unsafe {
        let mut awaited: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut awaited);
        libc::sigaddset(&raw mut awaited, libc::SIGCHLD);
        libc::sigaddset(&raw mut awaited, libc::SIGTERM);
        loop {
            let signal = libc::sigwaitinfo(&raw const awaited, std::ptr::null_mut());
            if signal == libc::SIGTERM {
                // As process 1 of a namespace: everything in it. Otherwise `-1` would mean all that the user has.
                let all = libc::syscall(libc::SYS_getpid) == 1;
                libc::kill(if all { -1 } else { -command }, libc::SIGTERM);
                continue;
            }
            loop {
                let mut status = 0;
                let ended = libc::waitpid(-1, &raw mut status, libc::WNOHANG);
                if ended <= 0 {
                    break;
                }
                if ended == command {
                    report(launch, Report::Ended(status));
                }
            }
        }
    }
}

/// What init hands to the command on its way.
struct Own<'a, 'b> {
    launch: &'a Launch<'b>,
    program: &'a Vectors<'b>,
    hands: &'a mut Hands,
}

extern "C" fn become_command(own: *mut libc::c_void) -> libc::c_int {
    // SAFETY: init passes a pointer to its own `Own` and does nothing until we are gone. System calls only; the vectors
    // end in null and lead to C strings made before the fork.
    unsafe {
        let Own { launch, program, hands } = &mut *own.cast::<Own<'_, '_>>();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        libc::setsid();
        for (to, from) in (0..).zip(program.stdio) {
            libc::dup2(from, to);
        }
        let all = libc::c_uint::MAX;
        libc::syscall(libc::SYS_close_range, 3, all, libc::CLOSE_RANGE_CLOEXEC);
        run_all(launch, Phase::Command, launch.command, hands);
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::execve(
            program.command.program.as_ptr(),
            program.arguments.as_ptr(),
            program.environment.as_ptr(),
        );
        let errno = *libc::__errno_location();
        fail(launch, Phase::Command, launch.command.len(), errno)
    }
}

/// # Safety
/// Only in a child of [`clone`].
unsafe fn run_all(launch: &Launch<'_>, phase: Phase, tasks: &[Task], hands: &mut Hands) {
    for (index, task) in tasks.iter().enumerate() {
        match task.step.run(hands) {
            // SAFETY: the same condition as here.
            Err(errno) if !task.forgives(errno) => unsafe { fail(launch, phase, index, errno) },
            _ => {}
        }
    }
}

/// # Safety
/// Only in a child of [`clone`].
unsafe fn fail(launch: &Launch<'_>, phase: Phase, index: usize, errno: i32) -> ! {
    let words = [phase as i32, i32::try_from(index).unwrap_or(i32::MAX), errno];
    let mut record = [0u8; 12];
    for (place, word) in record.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let _ = calls::write(launch.set_up.as_raw_fd(), &record);
    // SAFETY: ends this process and nothing else.
    unsafe { libc::_exit(127) }
}

fn report(launch: &Launch<'_>, report: Report) {
    let _ = calls::write(launch.reports.as_raw_fd(), &report.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_arrive_as_they_were_sent() {
        for report in [Report::Ready, Report::Ended(0x0900)] {
            assert_eq!(Report::parse(report.bytes()), Some(report));
        }
        assert_eq!(Report::parse([0; 8]), None);
    }

    #[test]
    fn a_failure_that_is_not_whole_is_none() {
        assert_eq!(set_up_failure(&[0; 11]), None);
        let mut record = [0u8; 12];
        record[0] = 1;
        record[4] = 3;
        record[8] = 13;
        assert_eq!(set_up_failure(&record), Some((Phase::Init, 3, 13)));
    }
}
