//! Waiting for processes to end, by pidfd; never by sleeping.

use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// How long a test waits before it gives up: longer than any answer may take (50 s).
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the process is gone; true if it went within `limit`.
pub fn gone(pid: i32, limit: Duration) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return true };
    // Another user's process and one that is gone already both have nothing to wait for.
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap();
        let mut watched = [PollFd::new(&handle, PollFlags::IN)];
        match poll(&mut watched, Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll on a pidfd: {error}"),
        }
    }
}

/// Waits for a child's end; `None` if it still runs after `limit`.
pub fn wait_exit(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let pid = i32::try_from(child.id()).unwrap();
    // A reaped child's id may already be another's: ask the handle first.
    if let Some(status) = child.try_wait().unwrap() {
        return Some(status);
    }
    gone(pid, limit).then(|| child.wait().unwrap())
}

/// Whether a process of that id runs (a zombie does not).
pub fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

/// Kills a process at once, and waits for its end.
pub(crate) fn kill_and_wait(pid: i32) {
    if let Some(target) = Pid::from_raw(pid) {
        // Already gone is what was wanted.
        let _ = kill_process(target, Signal::KILL);
        assert!(gone(pid, PATIENCE), "process {pid} survives SIGKILL");
    }
}

/// Processes that were started for a scratch directory: its path, which is unique, stands in their arguments or
/// environment.
pub(crate) fn strays(base: &Path) -> Vec<i32> {
    let needle = base.as_os_str().as_encoded_bytes();
    let mentions = |pid: i32, file: &str| {
        let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(needle.len()).any(|window| window == needle)
    };
    let own = i32::try_from(std::process::id()).unwrap();
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != own && (mentions(pid, "cmdline") || mentions(pid, "environ")))
        .collect()
}
