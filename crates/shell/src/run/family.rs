//! Processes that descend from one: what a command leaves running, and how it is ended where no namespace does it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::sys::Deadline;

/// More than anybody reads.
const NAMED: usize = 20;

/// Every descendant of a process that still runs.
pub(crate) fn descendants(of: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut open = vec![of];
    while let Some(parent) = open.pop() {
        let below = children(parent);
        found.extend(&below);
        open.extend(below);
    }
    found
}

/// The children of a process, of all its threads.
fn children(of: Pid) -> Vec<Pid> {
    let tasks = format!("/proc/{}/task", of.as_raw_nonzero());
    let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| parse(&list)).filter(|pid| runs(*pid)).collect()
}

fn parse(list: &str) -> Vec<Pid> {
    let numbers = list.split_ascii_whitespace().filter_map(|word| word.parse().ok());
    numbers.filter(|number| *number > 0).filter_map(Pid::from_raw).collect()
}

/// Whether it is more than an entry that waits to be reaped.
fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The command lines of processes.
pub(crate) fn names(pids: &[Pid]) -> Vec<String> {
    pids.iter().take(NAMED).map(|pid| name(*pid)).collect()
}

fn name(pid: Pid) -> String {
    let read =
        |file: &str| std::fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
    let line = read("cmdline");
    let words: Vec<String> =
        line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(super::plain).collect();
    let line = if words.is_empty() { super::plain(&read("comm")).trim().to_owned() } else { words.join(" ") };
    line.chars().take(200).collect()
}

/// Ends every descendant of `init`, to which those come whose parents are gone, and waits for that. All are stopped
/// before one is killed, so that none forks meanwhile; what one of them had forked just before is found the next time.
pub(crate) fn end(init: Pid) {
    for _ in 0..64 {
        let all: Vec<OwnedFd> = descendants(init)
            .into_iter()
            .filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            .collect();
        if all.is_empty() {
            return;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for process in &all {
                // Gone meanwhile is as good.
                let _ = pidfd_send_signal(process, signal);
            }
        }
        all.iter().for_each(gone);
    }
}

/// Waits until a process that was killed is gone; not for ever, as one that waits for a broken disk never goes.
fn gone(process: &OwnedFd) {
    let deadline = Deadline::after(Duration::from_secs(2));
    let mut watched = [PollFd::new(process, PollFlags::IN)];
    while !deadline.passed() && matches!(poll(&mut watched, Some(&deadline.timespec())), Err(Errno::INTR)) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_and_named_and_one_that_ended_is_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        let me = rustix::process::getpid();
        assert!(descendants(me).contains(&pid));
        child.kill().unwrap();
        cotenant_testkit::wait_exit(&mut child, cotenant_testkit::PATIENCE).unwrap();
        assert!(!descendants(me).contains(&pid));
        assert!(!name(me).is_empty());
    }

    #[test]
    fn a_list_of_children_is_numbers() {
        assert_eq!(parse("12 13 \n"), [12, 13].map(|pid| Pid::from_raw(pid).unwrap()));
        assert_eq!(parse("x 0 -1"), Vec::<Pid>::new());
    }
}
