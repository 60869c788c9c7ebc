//! The pipeline: `Grant → Intent → swap → Seal`. The only way by which a byte of the workspace changes.
//!
//! What is waited for: the new files' bytes and the intent, in parallel; then, with no wait at all between check and
//! swap, the swaps; then the directories' names. The images, the seal and the temporary names are the background's.

mod back;
mod background;
mod desk;
mod finish;
mod gate;
mod miss;
mod moves;
mod prepare;
mod recovery;
mod steps;
mod swap;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use cotenant_coord::Grant;
use cotenant_ledger::commit as record;
use cotenant_ledger::{Idempotency, Intent, Ledger};
use cotenant_model::{
    Access, Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Code, Digest, Durability, FileOp, HUMAN,
    Millis, Moved, Op, Outcome, Plan, Refusal, WsPath,
};
use cotenant_tree::Tree;
use cotenant_tree::commit::{self, Flush, Held};

pub use gate::FreezeGuard;
pub use steps::{Steps, Unwatched};

use back::Top;
use background::Background;
use desk::{Desk, Pair};
use finish::{Finish, Rest};
use miss::{Doing, Miss};
use prepare::{Aimed, Failure, Prepared, Work};
use swap::Landing;

/// How often a file that is being written elsewhere is tried, and how long is waited in between (R3).
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Carries granted plans out. Shared by all threads.
pub struct Pipeline {
    desk: Arc<Desk>,
    gate: gate::Gate,
    paths: gate::Paths,
    /// Read by every commit from its beginning to its end; written by the recovery after a failure.
    alive: RwLock<()>,
    /// Something failed after which the ledger must be reopened and its intents recovered (R13).
    failed: AtomicBool,
    background: Background,
}

/// How a plan is carried out.
pub struct How<'a> {
    /// What the change must survive before it is answered.
    pub durability: Durability,
    /// Wall clock.
    pub now: Millis,
    /// The key under which the answer is kept, if the caller gave one.
    pub idempotency: Option<Idempotency>,
    /// The third check of the grant's tokens, made inside the gate: nothing can come between it and the swap.
    pub still_valid: &'a dyn Fn(&Grant) -> Result<(), Refusal>,
}

/// A plan that landed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Its change.
    pub change: ChangeId,
    /// The plan's paths in path order, with the digest of what stands there now; `None` where no file stands.
    pub files: Vec<(WsPath, Option<Digest>)>,
    /// How it ended: `Sealed`.
    pub outcome: Outcome,
    /// What the caller must be told where the promise is less than usual: sentences.
    pub grade_notes: Vec<String>,
    /// Paths where somebody else wrote during the commit and whose bytes are on top. Empty: such a plan is refused.
    pub overtaken: Vec<WsPath>,
}

/// What recovery did when the pipeline was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Every change that a crash had left open, oldest first, and how it ended.
    pub changes: Vec<(ChangeId, Outcome)>,
    /// What only a human can decide. Nothing is lost: every image is in the ledger or where the question says.
    pub questions: Vec<Question>,
}

/// Something that a human should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The path.
    pub at: WsPath,
    /// What is the case, in a sentence.
    pub why: String,
}

/// Why a plan did not land, once its intent was durable.
struct Setback {
    why: Why,
    /// Paths where another's bytes are on top although the plan was taken back.
    overtaken: Vec<WsPath>,
}

/// What stopped it.
enum Why {
    /// The grant is no longer valid.
    Invalid(Refusal),
    /// A path missed, or could not be taken back.
    Missed(Failure),
}

impl Setback {
    /// Whether all that happened is that somebody has a file open for writing: another try may help.
    fn is_busy(&self) -> bool {
        self.overtaken.is_empty() && matches!(&self.why, Why::Missed(Failure { miss: Miss::Busy(_), .. }))
    }

    /// How the change ends; `None` where recovery must decide.
    fn outcome(&self) -> Option<Outcome> {
        match &self.why {
            Why::Missed(Failure { miss: Miss::Stuck { .. }, .. }) => None,
            _ if self.overtaken.is_empty() => Some(Outcome::Aborted),
            _ => Some(Outcome::Overtaken),
        }
    }
}

impl Pipeline {
    /// Opens it, and first recovers the intents that a crash left open (R5). Recovery is idempotent: a crash inside it
    /// is recovered the same way.
    pub fn open(
        tree: Arc<Tree>,
        ledger: Ledger,
        unsealed: Vec<Intent>,
        now: Millis,
    ) -> Result<(Pipeline, Recovered), Refusal> {
        Pipeline::open_watched(tree, ledger, unsealed, now, Arc::new(Unwatched))
    }

    /// The same, every step being announced to `steps`: for tests that attack in between.
    pub fn open_watched(
        tree: Arc<Tree>,
        ledger: Ledger,
        unsealed: Vec<Intent>,
        now: Millis,
        steps: Arc<dyn Steps>,
    ) -> Result<(Pipeline, Recovered), Refusal> {
        commit::prepare_process();
        let desk = Arc::new(Desk::new(tree, ledger, steps));
        let (changes, left) = recovery::recover(&desk, &unsealed, now)?;
        let recovered = Recovered { changes, questions: desk.take_questions() };
        let background = Background::start(Arc::clone(&desk)).map_err(|error| {
            Refusal::new(Code::IoError, format!("A thread could not be started: {error}."))
                .next("raise the limit on processes, then repeat the call")
        })?;
        left.into_iter().for_each(|job| background.push(job));
        let pipeline = Pipeline {
            desk,
            gate: gate::Gate::default(),
            paths: gate::Paths::default(),
            alive: RwLock::new(()),
            failed: AtomicBool::new(false),
            background,
        };
        Ok((pipeline, recovered))
    }

    /// Commits the granted plan as one change, or leaves everything as it was. Blocks for the disk, and up to 200 ms
    /// for a foreign writer.
    pub fn commit(&self, grant: Grant, how: &How<'_>) -> Result<Landed, Refusal> {
        self.run(grant.plan(), how, &|| (how.still_valid)(&grant))
    }

    /// Closes the gate (R11): returns when no swap with an old token can still happen.
    pub fn freeze(&self) -> FreezeGuard<'_> {
        self.gate.close()
    }

    /// Foreign writes that were found on displaced files since the last call. They are in the ledger.
    pub fn observed(&self) -> Vec<Change> {
        self.desk.take_found()
    }

    /// What a human should look at, since the last call.
    pub fn questions(&self) -> Vec<Question> {
        self.desk.take_questions()
    }

    /// Waits until the background work of every commit so far is done (stores, seals, unlinks) and looks once more
    /// whether anyone wrote into a displaced file.
    pub fn idle(&self) {
        self.background.idle();
    }

    fn run(
        &self,
        plan: &Plan,
        how: &How<'_>,
        valid: &dyn Fn() -> Result<(), Refusal>,
    ) -> Result<Landed, Refusal> {
        let since = Instant::now();
        self.may_write(plan)?;
        let _alive = self.ready(how.now)?;
        let _paths = self.paths.lock(plan.ops.iter().flat_map(FileOp::paths).cloned().collect());
        let mut prepared = prepare::prepare(&self.desk, plan).map_err(|failure| self.refused(&failure))?;
        let change = record::next_change(&self.desk.ledger);
        let files = landed_files(prepared.change_files());
        self.intend(&mut prepared, plan, how, change)?;
        let durability = how.durability;
        let ended = |outcome, rests| Finish { change, durability, time: how.now, since, outcome, rests };
        let aimed = match self.aim(prepared, change) {
            Ok(aimed) => aimed,
            Err((failure, pairs)) => {
                // After a failure of the machinery recovery finds what was made in the intent.
                if !failure.miss.is_failure() {
                    self.end(ended(Outcome::Aborted, pairs.into_iter().map(untouched).collect()));
                }
                return Err(self.refused(&failure));
            }
        };
        match self.swap(&aimed, valid) {
            Ok(landings) => {
                self.names_durable(&aimed, how.durability)?;
                let grade_notes = self.grade_notes(&aimed, &landings, how.durability);
                let rests =
                    aimed.into_iter().zip(landings).map(|(aimed, landing)| landed(aimed, landing)).collect();
                self.end(ended(Outcome::Sealed, rests));
                Ok(Landed { change, files, outcome: Outcome::Sealed, grade_notes, overtaken: Vec::new() })
            }
            Err(setback) => {
                // Without an outcome the intent stays open: the failure brings recovery before the next change.
                let refusal = self.told(&setback);
                if let Some(outcome) = setback.outcome() {
                    self.end(ended(outcome, aimed.into_iter().map(taken_back).collect()));
                }
                Err(refusal)
            }
        }
    }

    /// What would be a mistake of the caller, not of the world.
    fn may_write(&self, plan: &Plan) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for at in plan.ops.iter().flat_map(FileOp::paths) {
            let shown = || self.desk.tree.folders().show(at);
            if self.desk.tree.access(at.folder) != Access::ReadWrite {
                return Err(Refusal::new(
                    Code::PathReadOnly,
                    format!("{} lies in a folder that is read-only.", shown()),
                )
                .fact("path", shown())
                .next("choose a path in a folder that may be written; whoami lists them"));
            }
            if !seen.insert(at) || at.path.is_root() {
                return Err(Refusal::new(
                    Code::BadInput,
                    format!("{} is changed twice, or is the folder itself.", shown()),
                )
                .fact("path", shown())
                .next("name each path once"));
            }
        }
        self.not_below_a_move(plan)
    }

    /// What lies in a directory that moves is not changed by the same plan: each path must mean one place.
    fn not_below_a_move(&self, plan: &Plan) -> Result<(), Refusal> {
        let moves =
            plan.ops.iter().filter(|op| matches!(op.op, Op::Move { what: Moved::Directory { .. }, .. }));
        for (op, end) in moves.flat_map(|op| op.paths().map(move |end| (op, end))) {
            let others = plan.ops.iter().filter(|other| other.at != op.at).flat_map(FileOp::paths);
            if let Some(below) = others.into_iter().find(|at| at.is_within(end)) {
                let (below, end) = (self.desk.tree.folders().show(below), self.desk.tree.folders().show(end));
                let why = format!("{below} lies in {end}, which the same change moves.");
                return Err(Refusal::new(Code::BadInput, why)
                    .fact("path", below)
                    .next("make two changes of it"));
            }
        }
        Ok(())
    }

    /// Waits for a recovery, or does it, where something failed before.
    fn ready(&self, now: Millis) -> Result<RwLockReadGuard<'_, ()>, Refusal> {
        loop {
            let alive = self.alive.read().unwrap_or_else(PoisonError::into_inner);
            if !self.has_failed() {
                return Ok(alive);
            }
            drop(alive);
            self.repair(now)?;
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
            || self.background.has_failed()
            || self.desk.ledger.failure().is_some()
    }

    /// R13: the ledger is opened anew, and what its intents say is recovered as after a crash.
    fn repair(&self, now: Millis) -> Result<(), Refusal> {
        let _alone = self.alive.write().unwrap_or_else(PoisonError::into_inner);
        if !self.has_failed() {
            return Ok(());
        }
        self.background.discard();
        // Until recovery is through, the next call must try again.
        self.failed.store(true, Ordering::SeqCst);
        let unsealed = self.desk.ledger.reopen().map_err(|error| error.refusal())?;
        let (_, left) = recovery::recover(&self.desk, &unsealed, now)?;
        left.into_iter().for_each(|job| self.background.push(job));
        self.failed.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Makes the intent and the new files' bytes durable, both at once (R2).
    fn intend(
        &self,
        prepared: &mut Prepared,
        plan: &Plan,
        how: &How<'_>,
        id: ChangeId,
    ) -> Result<(), Refusal> {
        let change = Change {
            id,
            time: how.now,
            kind: ChangeKind::Planned,
            outcome: Outcome::Open,
            agent: Some(Arc::clone(&plan.author.agent)).filter(|agent| **agent != *HUMAN),
            session: Some(plan.author.session),
            task: plan.author.task.clone(),
            turn: plan.author.turn,
            tool: Arc::clone(&plan.tool),
            files: prepared.change_files(),
            undoes: plan.undoes,
        };
        let first = plan.ops.first().map(|op| op.at.clone()).unwrap_or_default();
        let intent = Intent { change, paths: prepared.intent_paths(), idempotency: how.idempotency.clone() };
        let ticket = record::intend_at(&self.desk.ledger, intent, how.durability);
        let flushed = self
            .desk
            .step("sync.data", &first)
            .and_then(|()| commit::flush(&prepared.unsynced(), Flush::Data, how.durability))
            .doing("syncing the new content of");
        ticket.wait().map_err(|error| error.refusal())?;
        let recorded =
            flushed.and_then(|()| self.desk.step("intended", &first).doing("recording the change of"));
        recorded.map_err(|miss| {
            // Nothing has a name yet.
            self.conclude(id, Outcome::Aborted);
            record::swept(&self.desk.ledger, id);
            self.refused(&Failure { at: first, miss })
        })
    }

    /// Makes the missing directories, still hidden, and waits until the ledger knows them.
    fn aim(&self, prepared: Prepared, id: ChangeId) -> Result<Vec<Aimed>, (Failure, Vec<Pair>)> {
        let ledger = &self.desk.ledger;
        prepared.aim(&self.desk, |index, made: &Held| {
            record::note_made_dir(ledger, id, index, made.id().ino);
            record::flush(ledger).map_err(|error| Miss::Io {
                doing: "recording the directory",
                error: std::io::Error::other(error.to_string()),
            })
        })
    }

    /// Swaps every path in, or none: a file that is open for writing elsewhere is waited for with nothing swapped and
    /// the gate left.
    fn swap(
        &self,
        aimed: &[Aimed],
        valid: &dyn Fn() -> Result<(), Refusal>,
    ) -> Result<Vec<Landing>, Box<Setback>> {
        for attempt in 1.. {
            let gate = self.gate.pass();
            valid().map_err(|refusal| Setback { why: Why::Invalid(refusal), overtaken: Vec::new() })?;
            let swapped = self.swap_all(aimed, attempt > 1);
            drop(gate);
            match swapped {
                Err(setback) if setback.is_busy() && attempt < TRIES => std::thread::sleep(PAUSE),
                other => return other,
            }
        }
        Ok(Vec::new())
    }

    /// One try, inside the gate.
    fn swap_all(&self, aimed: &[Aimed], again: bool) -> Result<Vec<Landing>, Box<Setback>> {
        let mut landings = Vec::with_capacity(aimed.len());
        for one in aimed {
            match self.desk.forward(one, again) {
                Ok(landing) => landings.push(landing),
                Err(miss) => {
                    return Err(self.take_back(aimed, &landings, Failure { at: one.pair.at.clone(), miss }));
                }
            }
        }
        Ok(landings)
    }

    /// Takes back what landed, the last first.
    fn take_back(&self, aimed: &[Aimed], landings: &[Landing], mut failure: Failure) -> Box<Setback> {
        let mut overtaken = Vec::new();
        for (one, landing) in aimed.iter().zip(landings).rev() {
            match self.desk.backward(one, landing) {
                Ok(Top::Restored) => {}
                Ok(Top::Foreign) => overtaken.insert(0, one.pair.at.clone()),
                Err(miss) => failure = Failure { at: one.pair.at.clone(), miss },
            }
        }
        Box::new(Setback { why: Why::Missed(failure), overtaken })
    }

    /// The answer to a setback.
    fn told(&self, setback: &Setback) -> Refusal {
        let refusal = match &setback.why {
            Why::Invalid(refusal) => refusal.clone(),
            Why::Missed(failure) => self.refused(failure),
        };
        if setback.overtaken.is_empty() {
            return refusal;
        }
        let shown = setback.overtaken.iter().map(|at| self.desk.tree.folders().show(at)).collect::<Vec<_>>();
        refusal.fact("overtaken", shown)
    }

    /// Makes the new names durable. If that fails the swaps stand, and recovery will say so.
    fn names_durable(&self, aimed: &[Aimed], how: Durability) -> Result<(), Refusal> {
        let mut dirs: Vec<&Arc<Held>> = Vec::new();
        for one in aimed {
            let source = match &one.work {
                Work::Move(moving) => Some(moving.source.dir()),
                _ => None,
            };
            for dir in std::iter::once(one.pair.target.dir()).chain(source) {
                if !dirs.iter().any(|seen| seen.id() == dir.id()) {
                    dirs.push(dir);
                }
            }
        }
        let Some(first) = aimed.first() else { return Ok(()) };
        let fds: Vec<_> = dirs.iter().map(|dir| dir.fd()).collect();
        let synced = self
            .desk
            .step("sync.names", &first.pair.at)
            .and_then(|()| commit::flush(&fds, Flush::Names, how));
        synced.map_err(|error| {
            self.failed.store(true, Ordering::SeqCst);
            let shown = self.desk.tree.folders().show(&first.pair.at);
            Refusal::new(
                Code::IoError,
                format!("Syncing the directory of {shown} failed: {error}. The change may stand; recovery decides before the next change."),
            )
            .fact("path", shown)
            .next("read_file shows which version stands")
        })
    }

    fn grade_notes(&self, aimed: &[Aimed], landings: &[Landing], how: Durability) -> Vec<String> {
        let mut notes = Vec::new();
        if how == Durability::Fast || self.desk.ledger.durability() == Durability::Fast {
            notes.push(
                "durability=fast: this change survives the end of cotenant, not of the machine".to_owned(),
            );
        }
        let unfenced: Vec<String> = aimed
            .iter()
            .zip(landings)
            .filter(|(_, landing)| match landing {
                Landing::Replaced(_, old) | Landing::Deleted(old) | Landing::Moved(_, Some(old)) => {
                    !old.fenced()
                }
                _ => false,
            })
            .map(|(one, _)| self.desk.tree.folders().show(&one.pair.at))
            .collect();
        if !unfenced.is_empty() {
            notes.push(format!(
                "no kernel lease to be had on {}: only its digest was checked",
                unfenced.join(", ")
            ));
        }
        notes
    }

    /// The answer to a failure; where the machinery failed, nothing more is written before a recovery.
    fn refused(&self, failure: &Failure) -> Refusal {
        if failure.miss.is_failure() {
            self.failed.store(true, Ordering::SeqCst);
        }
        failure.miss.refusal(&self.desk.tree, &failure.at)
    }

    /// Seals a change and leaves the rest to the background.
    fn end(&self, job: Finish) {
        self.conclude(job.change, job.outcome);
        self.background.push(job);
    }

    fn conclude(&self, change: ChangeId, outcome: Outcome) {
        record::seal(&self.desk.ledger, change, outcome, None);
    }
}

/// The paths of a change with what stands there now; of a move both ends.
fn landed_files(files: Vec<ChangeFile>) -> Vec<(WsPath, Option<Digest>)> {
    let mut landed = Vec::with_capacity(files.len());
    for file in files {
        if file.op == ChangeOp::Move {
            landed.extend(file.from.map(|from| (from, None)));
        }
        landed.push((file.at, file.post));
    }
    landed.sort();
    landed
}

/// The rest of a path that landed.
fn landed(aimed: Aimed, landing: Landing) -> Rest {
    let old = match landing {
        Landing::Replaced(_, old) | Landing::Deleted(old) => Some(old),
        Landing::Moved(_, old) => old,
        Landing::Made(_) | Landing::Created(_) | Landing::Removed => None,
    };
    Rest { old, ..taken_back(aimed) }
}

/// The rest of a path that was taken back: whatever stands at its temporary name.
fn taken_back(aimed: Aimed) -> Rest {
    let (content, post) = match aimed.work {
        Work::Create(fresh) | Work::Replace(fresh) => (Some(fresh.content()), aimed.post),
        // What is moved keeps its bytes where it stands.
        Work::MakeDir { .. } | Work::Delete | Work::RemoveDir { .. } | Work::Move(_) => (None, None),
    };
    Rest { pair: aimed.pair, pre: aimed.pre, kept: aimed.kept, post, content, old: None }
}

/// The rest of a path at which nothing was begun but, perhaps, a hidden directory.
fn untouched(pair: Pair) -> Rest {
    Rest { pair, pre: None, kept: true, post: None, content: None, old: None }
}
