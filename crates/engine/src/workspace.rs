//! A workspace that is open: its tree, its ledger, its coordinator and the pipeline between them.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cotenant_coord::{ApprovalRules, Coord, Shown};
use cotenant_ledger::{Keep, Ledger, LedgerOptions, Medium, Report};
use cotenant_model::{
    Answer, ClassRules, Code, Content, Digest, Durability, FolderId, Millis, Refusal, SessionId, Settings,
    WsPath,
};
use cotenant_text::{EditorConfig, Encoding};
use cotenant_tree::{OpenError, Place, RootState, Tree, TreeError};

use crate::clock::Clock;
use crate::effects::Known;
use crate::effects::Mark;
use crate::image::Image;
use crate::pipeline::{Pipeline, Question, Recovered};
use crate::shelf::Shelf;
use crate::upkeep::Upkeep;

/// Bytes of file contents that are kept so that an edit on a changed file can be placed.
const SHELF: usize = 16 << 20;
/// The file that declares encodings and line ends.
const EDITORCONFIG: &[u8] = b".editorconfig";

/// How a workspace is opened.
pub struct Options {
    /// The root, a host path.
    pub root: PathBuf,
    /// Where its state lives, outside the tree.
    pub state: PathBuf,
    /// What it is configured to be.
    pub settings: Settings,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
}

/// An open workspace. Everything may be called from any thread.
pub struct Workspace {
    tree: Arc<Tree>,
    ledger: Ledger,
    pipeline: Pipeline,
    recovered: Recovered,
    /// What a human should look at.
    pub(crate) questions: Mutex<Vec<Question>>,
    coord: Mutex<Coord>,
    /// Signalled whenever a call leaves the order, a question is settled or a session ends.
    woken: Condvar,
    shelf: Shelf,
    pub(crate) upkeep: Upkeep,
    /// What of the workspace's files the ledger has.
    known: Known,
    settings: Settings,
    rules: ApprovalRules,
    clock: Arc<dyn Clock>,
    scratch: PathBuf,
}

impl Workspace {
    /// Opens the tree and the ledger, and recovers what a crash left (R5) before it returns.
    pub fn open(options: Options) -> Result<Workspace, Refusal> {
        let tree = open_tree(&options.root, &options.settings)?;
        Workspace::of(tree, options)
    }

    /// A workspace over a directory that is held already: a sandbox's view, whose paths begin with `NAME:`.
    pub fn over(dir: OwnedFd, name: &str, options: Options) -> Result<Workspace, Refusal> {
        let classes = class_rules(&options.settings)?;
        let tree = Tree::over(dir, name, &options.root, classes);
        let tree = tree.map_err(|error| unopened(&options.root, &error))?;
        Workspace::of(tree, options)
    }

    fn of(tree: Tree, options: Options) -> Result<Workspace, Refusal> {
        let settings = options.settings;
        let tree = Arc::new(tree);
        let scratch = options.state.join("run");
        let rules = ApprovalRules::new(&settings.approval_rules, tree.folders()).map_err(misconfigured)?;
        let ledger_options = LedgerOptions { dir: options.state, durability: settings.durability };
        let (ledger, unsealed) = Ledger::open(&ledger_options).map_err(|error| error.refusal())?;
        let now = options.clock.wall();
        let (pipeline, recovered) = Pipeline::open(Arc::clone(&tree), ledger.clone(), unsealed, now)?;
        Ok(Workspace {
            tree,
            ledger,
            pipeline,
            questions: Mutex::new(recovered.questions.clone()),
            recovered,
            coord: Mutex::new(Coord::new()),
            woken: Condvar::new(),
            shelf: Shelf::new(SHELF),
            upkeep: Upkeep::default(),
            known: Known::default(),
            settings,
            rules,
            clock: options.clock,
            scratch,
        })
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// A private directory outside of the tree, for what lives only while commands run. It need not exist.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// The ledger, to read.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The pipeline.
    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// What of the workspace's files the ledger has.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// What was recovered when the workspace was opened.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The approval rules.
    pub(crate) fn rules(&self) -> &ApprovalRules {
        &self.rules
    }

    /// The clock, to be shared.
    pub fn shared_clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// What has landed by now.
    pub fn mark(&self) -> Result<Mark, Refusal> {
        Mark::now(&self.ledger).map_err(|error| error.refusal())
    }

    /// What an approval rule says of a tool at a path: the strictest answer, and the rule's number.
    pub fn tool_rule(&self, tool: &str, at: &WsPath) -> Option<(Answer, usize)> {
        self.rules.answer(tool, at)
    }

    /// The clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The coordinator, locked. Never held over I/O.
    pub fn coord(&self) -> MutexGuard<'_, Coord> {
        self.coord.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes every waiting call, to look again at what it waits for.
    pub fn wake(&self) {
        self.woken.notify_all();
    }

    /// Waits until `done` gives something, or until `wait_ms` have passed.
    pub fn wait<T>(&self, wait_ms: u64, mut done: impl FnMut(&mut Coord) -> Option<T>) -> Option<T> {
        let until = self.clock.steady().plus(wait_ms);
        let mut coord = self.coord();
        loop {
            if let Some(result) = done(&mut coord) {
                return Some(result);
            }
            let left = until.since(self.clock.steady());
            if left == 0 {
                return None;
            }
            let waited = self.woken.wait_timeout(coord, Duration::from_millis(left));
            coord = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The durability that a commit has here: on a state folder in memory nothing is more than `fast` (R15).
    pub fn durability(&self, wanted: Option<Durability>) -> Durability {
        match self.ledger.medium() {
            Medium::Volatile => Durability::Fast,
            Medium::Disk => wanted.unwrap_or(self.settings.durability),
        }
    }

    /// Reads the file at a place, up to `most` bytes, with the encoding that `.editorconfig` declares for it.
    pub fn load(&self, place: &Place, most: u64) -> Result<Image, TreeError> {
        let file = self.tree.read(place, most)?;
        let bytes: Content = file.bytes.into();
        let mut image = Image::of(bytes.clone(), None);
        // A declaration matters only where the bytes do not speak for themselves.
        if (!image.text || image.form.encoding == Encoding::UnknownAscii)
            && let Some(declared) = self.editorconfig(&place.real).charset
        {
            image = Image::of(bytes, Some(declared));
        }
        image.unstable = file.unstable;
        // What seemed to be absent on the way to the file may have been out of reach only.
        if cotenant_tree::has_missed() { Err(TreeError::Changing) } else { Ok(image) }
    }

    /// `.editorconfig`'s rules for a path, from the files in its directory and above.
    pub fn editorconfig(&self, at: &WsPath) -> EditorConfig {
        let Some(path) = at.path.to_str() else { return EditorConfig::default() };
        let mut files: Vec<(String, String)> = Vec::new();
        let mut dir = at.parent();
        while let Some(here) = dir {
            let file = here.path.join(EDITORCONFIG);
            if let Some(bytes) = self.tree.read_meta_file(at.folder, &file)
                && let Ok(text) = String::from_utf8(bytes)
            {
                files.push((here.path.to_str().unwrap_or_default().to_owned(), text));
            }
            dir = here.parent();
        }
        let nearest_first: Vec<(&str, &str)> =
            files.iter().map(|(dir, text)| (dir.as_str(), text.as_str())).collect();
        cotenant_text::properties(&nearest_first, path)
    }

    /// Notes what a session was shown, and keeps the bytes for a later comparison.
    pub fn shown(&self, session: SessionId, at: &WsPath, shown: Shown, bytes: Option<&Content>) {
        if let Some(bytes) = bytes {
            self.shelf.put(shown.digest, bytes);
        }
        let now = self.clock.steady();
        self.coord().shown(session, at, shown, now);
    }

    /// An image that a session was shown or that the ledger has, if it is still kept.
    pub fn image(&self, digest: Digest) -> Option<Content> {
        let stored = || self.ledger.blob(digest).ok().flatten().map(Content::from);
        self.shelf.get(digest).or_else(stored).or_else(|| {
            // It may be on its way into the store.
            self.pipeline.idle();
            stored()
        })
    }

    /// Keeps bytes that were just written.
    pub(crate) fn keep(&self, bytes: &Content) {
        if bytes.len() <= SHELF / 4 {
            self.shelf.put(bytes.digest(), bytes);
        }
    }

    /// Whether the root's path still names the root. A removed one is opened anew; receipts and open plans are void then.
    pub fn check_root(&self) -> Result<RootState, Refusal> {
        let state = self.tree.root_state();
        if state == RootState::Removed {
            let root = self.tree.host_path(FolderId::ROOT);
            self.tree.reopen_root().map_err(|error| unopened(root, &error))?;
            let now = self.clock.steady();
            let _settled = self.coord().void_all(now);
            self.wake();
        }
        Ok(state)
    }

    /// What passes: expired tokens, sessions, questions. Returns when to come back.
    pub fn tick(&self) -> Option<Millis> {
        let now = self.clock.steady();
        let mut coord = self.coord();
        let effects = coord.tick(now);
        let next = coord.next_deadline();
        drop(coord);
        if !effects.is_empty() {
            self.wake();
        }
        next
    }

    /// Gives something at the first destructive change of each session: then, and daily, what is kept should be looked
    /// through ([`Workspace::keep_house`]). Ends with the workspace; one listener at a time.
    pub fn destructions(&self) -> Receiver<()> {
        self.upkeep.listen()
    }

    /// Lets go of what is older or more than the settings keep (R23). Takes its time.
    pub fn keep_house(&self) -> Result<Report, Refusal> {
        let keep = Keep {
            days: self.settings.retention_days,
            megabytes: self.settings.retention_megabytes,
            trash_days: self.settings.trash_days,
            trash_megabytes: self.settings.trash_megabytes,
        };
        // What was just taken away is to be history by then.
        self.settle();
        cotenant_ledger::prune(&self.ledger, self.clock.wall(), keep).map_err(|error| error.refusal())
    }

    /// Waits until nothing is under way in the background: stores, unlinks, seals.
    pub fn settle(&self) {
        self.pipeline.idle();
    }
}

/// The tree of a root by its settings.
pub fn open_tree(root: &Path, settings: &Settings) -> Result<Tree, Refusal> {
    let classes = class_rules(settings)?;
    Tree::open(root, &settings.folders, classes).map_err(|error| unopened(root, &error))
}

fn class_rules(settings: &Settings) -> Result<ClassRules, Refusal> {
    let classes = ClassRules::new(&settings.protected_add, &settings.protected_except, &settings.generated);
    classes.map_err(misconfigured)
}

fn misconfigured(why: String) -> Refusal {
    Refusal::new(Code::BadInput, format!("cotenant.toml: {why}.")).next("cotenant config check")
}

fn unopened(root: &Path, error: &OpenError) -> Refusal {
    Refusal::new(Code::BadInput, format!("{} cannot be served: {error}.", root.display()))
        .fact("root", root.display().to_string())
        .next("cotenant serve --root DIR with the directory of a project")
}
