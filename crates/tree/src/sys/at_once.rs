//! Looking only at what is in memory: a thread that others depend on must not wait for a disk, or for a server behind a
//! file system, that may hang.

use std::cell::Cell;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// What the thread may do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Wait.
    Waits,
    /// Nothing that may take long.
    AtOnce,
    /// The same, and something was needed that is not in memory.
    Missed,
}

thread_local! {
    static PATIENCE: Cell<Patience> = const { Cell::new(Patience::Waits) };
}

/// Runs `act`, in which this crate looks on this thread only at what the kernel has in memory: paths, attributes and
/// contents of files. `None` where anything else was needed, whatever `act` made of that; what it gave must not be
/// used then, for it may rest on a file that was taken for absent.
pub fn at_once<T>(act: impl FnOnce() -> T) -> Option<T> {
    /// Gives the patience back, after a panic too.
    struct Back(Patience);
    impl Drop for Back {
        fn drop(&mut self) {
            PATIENCE.set(self.0);
        }
    }
    let _back = Back(PATIENCE.replace(Patience::AtOnce));
    let done = act();
    (!has_missed()).then_some(done)
}

/// Whether [`at_once`] is around this and something was needed that is not in memory: what was found since is not to
/// be relied on.
pub fn has_missed() -> bool {
    PATIENCE.get() == Patience::Missed
}

/// Whether the thread may wait for a disk.
pub(crate) fn may_wait() -> bool {
    PATIENCE.get() == Patience::Waits
}

/// What is asked for cannot be had without waiting, as the error of the system call that would have to.
pub(crate) fn miss() -> Errno {
    PATIENCE.set(Patience::Missed);
    Errno::AGAIN
}

/// Opens what stands at `path`, whose every name is in memory.
pub(super) fn open(
    dir: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    match openat2(dir, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve | ResolveFlags::CACHED) {
        // A signal, a name that is not in memory, a file system that would have to ask, a kernel that does not know
        // the flag.
        Err(Errno::INTR | Errno::AGAIN | Errno::OPNOTSUPP | Errno::INVAL) => Err(miss()),
        other => other,
    }
}

/// Reads the part at `offset` of which all, or a first piece, is in memory.
pub(crate) fn read(file: impl AsFd, part: &mut [u8], offset: u64) -> Result<usize, Errno> {
    preadv2(file, &mut [IoSliceMut::new(part)], offset, ReadWriteFlags::NOWAIT).map_err(|_| miss())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_never_given_out() {
        assert_eq!(at_once(|| 7), Some(7));
        let swallowed = at_once(|| {
            assert!(!may_wait() && !has_missed());
            assert_eq!(miss(), Errno::AGAIN);
            assert!(!may_wait() && has_missed());
            7
        });
        assert_eq!(swallowed, None);
        assert!(may_wait() && !has_missed());
    }

    #[test]
    fn patience_comes_back_after_a_panic() {
        let panicked = std::panic::catch_unwind(|| at_once(|| panic!("on purpose")));
        assert!(panicked.is_err() && may_wait());
    }
}
