//! The system calls behind the commit protocol that have no safe wrapper: kernel leases, write-out, the SIGIO disposition.
#![allow(unsafe_code, reason = "fcntl leases, sync_file_range and signal dispositions have no safe wrapper")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What the kernel says of a lease of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// Held, nobody waits.
    Held,
    /// Somebody waits to write, or it is gone.
    Broken,
}

/// Takes a read lease: fails with `EAGAIN` (`WouldBlock`) while anyone has the inode open or mapped for writing.
pub(crate) fn lease(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: F_SETLEASE takes an int by value and touches no memory of ours; the descriptor is alive for the call.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) })
}

/// Gives the lease back; who waits to write goes on.
pub(crate) fn unlease(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: as in `lease`.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) })
}

/// Whether the lease still stands unbroken.
pub(crate) fn lease_state(fd: BorrowedFd<'_>) -> LeaseState {
    // SAFETY: F_GETLEASE takes no argument; the descriptor is alive for the call.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETLEASE) } {
        libc::F_RDLCK => LeaseState::Held,
        _ => LeaseState::Broken,
    }
}

/// Starts writing the file's dirty pages out and does not wait for the disk.
pub(crate) fn start_write_out(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: plain integers; length 0 means to the end of the file.
    check(unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) })
}

/// Ignores SIGIO in the whole process: a broken lease sends it, and its default action kills.
pub(crate) fn ignore_sigio() {
    // SAFETY: SIG_IGN is a valid disposition for SIGIO and no handler of ours is replaced.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
