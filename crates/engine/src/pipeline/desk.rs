//! What every part of the pipeline works with.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use cotenant_ledger::Ledger;
use cotenant_model::{Change, Entry, WsPath};
use cotenant_tree::Tree;
use cotenant_tree::commit::{FileId, Spot};

use super::Question;
use super::steps::Steps;

/// The tree, the ledger, and what was found that others must hear of.
pub(super) struct Desk {
    pub(super) tree: Arc<Tree>,
    pub(super) ledger: Ledger,
    pub(super) steps: Arc<dyn Steps>,
    observed: Mutex<Vec<Change>>,
    questions: Mutex<Vec<Question>>,
}

impl Desk {
    pub(super) fn new(tree: Arc<Tree>, ledger: Ledger, steps: Arc<dyn Steps>) -> Desk {
        Desk { tree, ledger, steps, observed: Mutex::default(), questions: Mutex::default() }
    }

    /// Announces a step.
    pub(super) fn step(&self, step: &'static str, at: &WsPath) -> io::Result<()> {
        self.steps.reached(step, at)
    }

    /// A foreign write was found and recorded.
    pub(super) fn found(&self, change: Change) {
        lock(&self.observed).push(change);
    }

    /// Takes what was found since the last call.
    pub(super) fn take_found(&self) -> Vec<Change> {
        std::mem::take(&mut lock(&self.observed))
    }

    /// A human should look at something.
    pub(super) fn ask(&self, question: Question) {
        lock(&self.questions).push(question);
    }

    /// Takes the questions since the last call.
    pub(super) fn take_questions(&self) -> Vec<Question> {
        std::mem::take(&mut lock(&self.questions))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One path of a change on the disk: where it stands, and the temporary name that belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) at: WsPath,
    pub(super) target: Spot,
    pub(super) temp: Spot,
}

/// Our own file or link, by inode while it is pinned, and by its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ours {
    pub(super) id: FileId,
    pub(super) entry: Entry,
}
