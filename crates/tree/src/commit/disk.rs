//! Getting bytes to the disk: how many flushes, of what, and how many at once (R2).

use std::io;
use std::os::fd::BorrowedFd;

use cotenant_model::Durability;

use crate::sys::swap;

/// More files than this are never flushed one after the other.
const SERIAL_MAX: usize = 8;
/// Threads that flush many files where one flush of the whole file system would wait for others' data.
const THREADS: usize = 8;
/// Others' dirty data, in kB, above which the whole file system is not flushed.
const DIRTY_MAX_KB: u64 = 256 * 1024;

/// What is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Files' bytes.
    Data,
    /// Directories' names.
    Names,
}

/// Makes the files or directories durable as `how` says. `fast` only starts writing files out, so that a machine that
/// dies later does not leave an empty file under a name that was swapped in; names are left to the system.
pub fn flush(fds: &[BorrowedFd<'_>], what: Flush, how: Durability) -> io::Result<()> {
    if fds.is_empty() {
        return Ok(());
    }
    match (how, what) {
        (Durability::Fast, Flush::Data) => fds.iter().try_for_each(|fd| start_write_out(*fd)),
        (Durability::Fast, Flush::Names) => Ok(()),
        (Durability::Full, _) if fds.len() <= SERIAL_MAX => fds.iter().try_for_each(|fd| one(*fd, what)),
        _ if dirty_kb().is_some_and(|dirty| dirty > DIRTY_MAX_KB) => in_threads(fds, what),
        _ => whole(fds),
    }
}

fn one(fd: BorrowedFd<'_>, what: Flush) -> io::Result<()> {
    match what {
        Flush::Data => rustix::fs::fdatasync(fd)?,
        Flush::Names => rustix::fs::fsync(fd)?,
    }
    Ok(())
}

/// One flush for each file system.
fn whole(fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut seen = Vec::new();
    for fd in fds {
        let dev = rustix::fs::fstat(*fd)?.st_dev;
        if !seen.contains(&dev) {
            rustix::fs::syncfs(*fd)?;
            seen.push(dev);
        }
    }
    Ok(())
}

fn in_threads(fds: &[BorrowedFd<'_>], what: Flush) -> io::Result<()> {
    std::thread::scope(|scope| {
        let share = fds.len().div_ceil(THREADS);
        let workers: Vec<_> = fds
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().try_for_each(|fd| one(*fd, what))))
            .collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => Err(io::Error::other("a flushing thread died")),
        })
    })
}

fn start_write_out(fd: BorrowedFd<'_>) -> io::Result<()> {
    match swap::start_write_out(fd) {
        // A file system without it (tmpfs, some FUSE) has nothing to start.
        Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => {
            Ok(())
        }
        Err(error) if error.raw_os_error() == Some(libc::ESPIPE) => Ok(()),
        other => other,
    }
}

fn dirty_kb() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    meminfo
        .lines()
        .find_map(|line| line.strip_prefix("Dirty:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
}
