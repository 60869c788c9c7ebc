//! What is needed of the system that no safe library offers.
#![allow(unsafe_code, reason = "the only module of this crate that may")]

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::unix::AsyncFd;

/// `SO_PEERPIDFD` of `asm-generic/socket.h`, which libc does not name yet.
const SO_PEERPIDFD: libc::c_int = 77;

/// Process and user at the other end of a Unix socket. The process is 0 where it lies outside our pid namespace, as
/// that of a host's program seen from a container: no library type for process ids can hold that.
pub(crate) fn peer_credentials(socket: impl AsFd) -> Option<(u32, u32)> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the option's value is one `ucred`; both pointers lead to locals that outlive the call.
    let got = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    (got == 0).then_some((u32::try_from(credentials.pid).unwrap_or(0), credentials.uid))
}

/// The process at the other end of a Unix socket, readable at its end. Kernels before 6.5 cannot say so themselves:
/// there it is opened by `pid`, which the caller has from the socket just now. `None` where the process is gone, or
/// cannot be seen from here.
pub(crate) fn peer_process(socket: impl AsFd, pid: u32) -> Option<OwnedFd> {
    let mut fd: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option's value is one int; both pointers lead to locals that outlive the call.
    let got = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &raw mut length,
        )
    };
    if got == 0 && fd >= 0 {
        // SAFETY: the kernel has just made this descriptor for us; nobody else knows it.
        return Some(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    pidfd(pid)
}

/// A descriptor that is readable once the process has ended; `None` for 0, and where there is no such process.
pub(crate) fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Waits for the end of a process; for ever where it is not known.
pub(crate) async fn ended(process: Option<Arc<OwnedFd>>) {
    if let Some(process) = process {
        // SAFETY: an `Arc<OwnedFd>` has one descriptor, which stays open for as long as it is registered.
        let registered = unsafe { AsyncFd::register(process) };
        if let Ok(registered) = registered
            && registered.readable().await.is_ok()
        {
            return;
        }
    }
    std::future::pending().await
}

/// Lets no process that is started from now on inherit a descriptor but the standard ones. Kernels before 5.11 cannot;
/// there, what was left open stays so.
pub(crate) fn inherit_nothing() {
    // SAFETY: numbers only; the flag changes what children get, and closes nothing here.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// Gives memory that is free inside the allocator back to the system.
pub(crate) fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The parent of a process; `None` where there is no such process.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    stat_field(pid, 1)
}

/// The process that leads the session of `pid`; 0 where that one lies outside our pid namespace, as for what a
/// container runtime starts inside. `None` where there is no such process.
pub(crate) fn session_leader(pid: u32) -> Option<u32> {
    stat_field(pid, 3)
}

/// A number of `/proc/PID/stat`, counted from 0 behind the name.
fn stat_field(pid: u32, index: usize) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too; what follows the last one has a fixed form.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(index)?.parse().ok()
}

/// The Landlock ABI of the kernel; `None` where it has none or it is switched off.
pub(crate) fn landlock_abi() -> Option<u64> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel reads no attributes; a null pointer and size 0 are what it asks for.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    u64::try_from(abi).ok().filter(|abi| *abi > 0)
}
