//! Who may swap when: the workspace's gate (R11), and one commit at a time for each path.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cotenant_model::WsPath;

/// The gate. Passing it for reading is permission to swap; whoever takes it for writing knows that no swap which was
/// checked before can still happen.
#[derive(Debug, Default)]
pub(super) struct Gate(RwLock<()>);

/// The gate is closed while this lives: no swap happens.
#[derive(Debug)]
#[must_use = "the gate opens again when the guard is dropped"]
pub struct FreezeGuard<'a>(#[allow(dead_code, reason = "held for its Drop")] RwLockWriteGuard<'a, ()>);

impl Gate {
    /// Passes it, to check and to swap.
    pub(super) fn pass(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it; returns once every swap under way is through.
    pub(super) fn close(&self) -> FreezeGuard<'_> {
        FreezeGuard(self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Locks on paths. They are for our own commits alone: foreign writers know nothing of them.
#[derive(Debug, Default)]
pub(super) struct Paths {
    taken: Mutex<BTreeSet<WsPath>>,
    freed: Condvar,
}

/// Paths that no other commit touches while this lives.
#[derive(Debug)]
pub(super) struct PathGuard<'a> {
    paths: &'a Paths,
    held: Vec<WsPath>,
}

impl Paths {
    /// Takes the paths, one after the other in their own order, so that two commits never wait for each other in a
    /// circle.
    pub(super) fn lock(&self, wanted: BTreeSet<WsPath>) -> PathGuard<'_> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &wanted {
            while !taken.insert(path.clone()) {
                taken = self.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(taken);
        PathGuard { paths: self, held: wanted.into_iter().collect() }
    }
}

impl Drop for PathGuard<'_> {
    fn drop(&mut self) {
        let mut taken = self.paths.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &self.held {
            taken.remove(path);
        }
        drop(taken);
        self.paths.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use cotenant_model::RelPath;

    use super::*;

    fn set(names: &[&str]) -> BTreeSet<WsPath> {
        names.iter().map(|name| WsPath::root(RelPath::parse(name).unwrap())).collect()
    }

    #[test]
    fn one_commit_at_a_time_for_each_path_and_no_circle() {
        let paths = Paths::default();
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for order in [["a", "b"], ["b", "a"], ["b", "c"], ["c", "b"]] {
                let (paths, inside, most) = (&paths, &inside, &most);
                scope.spawn(move || {
                    for _ in 0..500 {
                        let guard = paths.lock(set(&order));
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(guard);
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1, "all of them want b");
        assert!(paths.taken.lock().unwrap().is_empty());
    }

    #[test]
    fn other_paths_do_not_wait() {
        let paths = Paths::default();
        let one = paths.lock(set(&["a"]));
        let two = paths.lock(set(&["b"]));
        drop((one, two));
    }

    #[test]
    fn many_pass_the_gate_and_closing_waits_for_all() {
        let gate = Gate::default();
        let (one, two) = (gate.pass(), gate.pass());
        std::thread::scope(|scope| {
            let closer = scope.spawn(|| drop(gate.close()));
            assert!(!closer.is_finished());
            drop(one);
            drop(two);
        });
    }
}
