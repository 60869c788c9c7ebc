//! The disk that a command uses, looked at while it runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::sys::Moment;

/// How often it is looked at.
const EVERY: Duration = Duration::from_millis(300);

/// Looks at directories until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch(Arc<(Mutex<bool>, Condvar)>);

impl Watch {
    /// Calls `exceeded` once `own` directories hold more than `limit` bytes together with what `shared` ones have
    /// gained since the first look.
    pub(crate) fn start(
        own: Vec<PathBuf>,
        shared: Vec<PathBuf>,
        limit: u64,
        exceeded: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Watch> {
        let ended = Arc::new((Mutex::new(false), Condvar::new()));
        let signal = ended.clone();
        let work = move || look((&own, &shared), limit, &signal, exceeded);
        std::thread::Builder::new().name("cotenant-disk".to_owned()).spawn(work)?;
        Ok(Watch(ended))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

fn look(
    (own, shared): (&[PathBuf], &[PathBuf]),
    limit: u64,
    (ended, signal): &(Mutex<bool>, Condvar),
    exceeded: impl FnOnce(),
) {
    let before: u64 = shared.iter().map(|dir| used(dir, u64::MAX)).sum();
    let most = limit.saturating_add(before);
    loop {
        let start = Moment::now();
        let dirs = own.iter().chain(shared);
        let now = dirs.fold(0, |sum: u64, dir| sum.saturating_add(used(dir, most.saturating_sub(sum))));
        if now > most {
            return exceeded();
        }
        // A large tree is looked at less often, so that looking stays a small part of the work.
        let wait = EVERY.max(start.elapsed() * 20);
        let guard = ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = signal.wait_timeout_while(guard, wait, |ended| !*ended);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 {
            return;
        }
    }
}

/// Bytes on the disk at and below `dir`; counting ends once they are over `enough`.
fn used(dir: &Path, enough: u64) -> u64 {
    let mut sum = 0u64;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            sum = sum.saturating_add(found.blocks().saturating_mul(512));
            if sum > enough {
                return sum;
            }
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn more_than_the_limit_is_noticed_and_less_is_not() {
        let dir = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "watch");
        std::fs::create_dir(dir.join("below")).unwrap();
        std::fs::write(dir.join("below/old"), vec![1; 100_000]).unwrap();
        assert!(used(&dir, u64::MAX) >= 100_000 && used(&dir, 0) > 0);
        let shared = || vec![dir.join("below")];
        let (sender, noticed) = mpsc::channel();
        let watch =
            Watch::start(vec![dir.join("own")], shared(), 1_000_000, move || sender.send(()).unwrap())
                .unwrap();
        std::fs::create_dir(dir.join("own")).unwrap();
        std::fs::write(dir.join("own/new"), vec![1; 3_000_000]).unwrap();
        noticed.recv_timeout(cotenant_testkit::PATIENCE).unwrap();
        drop(watch);
        let (sender, noticed) = mpsc::channel::<()>();
        drop(Watch::start(Vec::new(), shared(), 1_000_000, move || sender.send(()).unwrap()).unwrap());
        assert!(noticed.recv().is_err());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
