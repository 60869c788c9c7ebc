//! A throw-away workspace with its ledger and pipeline, and plans in one line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cotenant_coord::{Approver, Coord};
use cotenant_engine::pipeline::{How, Landed, Pipeline, Recovered, Steps, Unwatched};
use cotenant_ledger::{Ledger, LedgerOptions};
use cotenant_model::{
    Author, Body, ClassRules, Code, Digest, Durability, Entry, FileOp, Millis, Moved, Op, Plan, Refusal,
    RelPath, SessionId, WsPath,
};
use cotenant_tree::Tree;

/// A directory that goes with the value.
pub struct Scratch(PathBuf);

impl Scratch {
    /// On the disk that holds the system's temporary files.
    pub fn new() -> Scratch {
        Scratch::below(&std::env::temp_dir())
    }

    /// In memory where that is possible: for tests that start many ledgers.
    pub fn fast() -> Scratch {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() && fs::metadata(memory).is_ok_and(|meta| !meta.permissions().readonly()) {
            // `/dev` itself is never served, so the tree stays on disk and only the ledger may go there.
            return Scratch::below(memory);
        }
        Scratch::new()
    }

    fn below(base: &Path) -> Scratch {
        fs::create_dir_all(base).unwrap();
        Scratch(cotenant_testkit::fresh_directory(base, "engine"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The pipeline of a workspace.
pub struct Rig {
    pub root: PathBuf,
    pub ledger: Ledger,
    pub pipeline: Pipeline,
    pub recovered: Recovered,
    pub durability: Durability,
    coord: Mutex<Coord>,
}

pub const NOW: Millis = Millis(1_796_053_442_000);

impl Rig {
    pub fn open(root: &Path, state: &Path) -> Rig {
        Rig::watched(root, state, Durability::Full, Arc::new(Unwatched)).unwrap()
    }

    pub fn watched(
        root: &Path,
        state: &Path,
        durability: Durability,
        steps: Arc<dyn Steps>,
    ) -> Result<Rig, Refusal> {
        let tree = Arc::new(Tree::open(root, &[], ClassRules::default()).unwrap());
        let (ledger, unsealed) = Ledger::open(&LedgerOptions { dir: state.to_owned(), durability }).unwrap();
        let (pipeline, recovered) = Pipeline::open_watched(tree, ledger.clone(), unsealed, NOW, steps)?;
        let coord = Mutex::new(Coord::new());
        Ok(Rig { root: root.to_owned(), ledger, pipeline, recovered, durability, coord })
    }

    pub fn commit(&self, ops: Vec<FileOp>) -> Result<Landed, Refusal> {
        self.commit_if(ops, &|| Ok(()))
    }

    pub fn commit_if(
        &self,
        ops: Vec<FileOp>,
        valid: &dyn Fn() -> Result<(), Refusal>,
    ) -> Result<Landed, Refusal> {
        let grant = self.coord.lock().unwrap().authorise(plan(ops), Approver::Policy);
        let how =
            How { durability: self.durability, now: NOW, idempotency: None, still_valid: &|_grant| valid() };
        self.pipeline.commit(grant, &how)
    }

    pub fn refused(&self, ops: Vec<FileOp>) -> Refusal {
        self.commit(ops).expect_err("the plan must be refused")
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.root.join(path)).ok()
    }

    pub fn blob(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.ledger.blob(Digest::of(bytes)).unwrap()
    }

    /// Whether a version is in the ledger, or stands anywhere in the tree.
    pub fn has(&self, bytes: &[u8]) -> bool {
        self.blob(bytes).as_deref() == Some(bytes)
            || files(&self.root).values().any(|content| content == bytes)
    }

    /// Waits for the background and asserts that it left no temporary name.
    pub fn settle(&self) {
        self.pipeline.idle();
        assert_eq!(stray(&self.root), Vec::<String>::new(), "temporary names are left");
    }
}

/// Two directories: the tree, and the state of its ledger.
pub struct Place {
    pub tree: Scratch,
    pub state: Scratch,
}

impl Place {
    pub fn new() -> Place {
        Place { tree: Scratch::new(), state: Scratch::new() }
    }

    pub fn fast() -> Place {
        Place { tree: Scratch::new(), state: Scratch::fast() }
    }

    pub fn open(&self) -> Rig {
        Rig::open(self.tree.path(), self.state.path())
    }
}

pub fn plan(ops: Vec<FileOp>) -> Plan {
    Plan {
        author: Author { agent: "agent-a".into(), session: SessionId(1), task: None, turn: 1 },
        tool: "edit_file".into(),
        ops,
        diff: String::new(),
        undoes: None,
        command: None,
    }
}

pub fn at(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

pub fn replace(path: &str, pre: &[u8], post: &[u8]) -> FileOp {
    FileOp { at: at(path), op: Op::Replace { old: Entry::file(Digest::of(pre)), new: Body::file(post) } }
}

pub fn create(path: &str, bytes: &[u8]) -> FileOp {
    FileOp { at: at(path), op: Op::Create { new: Body::file(bytes), like: None } }
}

pub fn delete(path: &str, pre: &[u8]) -> FileOp {
    FileOp { at: at(path), op: Op::Delete { old: Entry::file(Digest::of(pre)) } }
}

pub fn replace_link(path: &str, pre: &[u8], post: &[u8]) -> FileOp {
    FileOp { at: at(path), op: Op::Replace { old: Entry::link(Digest::of(pre)), new: Body::link(post) } }
}

pub fn create_link(path: &str, target: &[u8]) -> FileOp {
    FileOp { at: at(path), op: Op::Create { new: Body::link(target), like: None } }
}

pub fn delete_link(path: &str, target: &[u8]) -> FileOp {
    FileOp { at: at(path), op: Op::Delete { old: Entry::link(Digest::of(target)) } }
}

/// Moves a file.
pub fn move_to(from: &str, to: &str, bytes: &[u8]) -> FileOp {
    let what = Moved::Entry(Entry::file(Digest::of(bytes)));
    FileOp { at: at(from), op: Op::Move { to: at(to), what, over: None } }
}

/// Moves a file over another.
pub fn move_over(from: &str, to: &str, bytes: &[u8], over: &[u8]) -> FileOp {
    let (what, over) = (Moved::Entry(Entry::file(Digest::of(bytes))), Some(Entry::file(Digest::of(over))));
    FileOp { at: at(from), op: Op::Move { to: at(to), what, over } }
}

/// Moves a directory as it is now.
pub fn move_dir(rig: &Rig, from: &str, to: &str) -> FileOp {
    let tree = Tree::open(&rig.root, &[], ClassRules::default()).unwrap();
    let place = tree.locate(&tree.parse(from).unwrap()).unwrap();
    moved_dir(from, to, tree.below(&place).unwrap().digest)
}

/// Moves a directory with these names below it: each with a 0 and its kind.
pub fn move_listed(from: &str, to: &str, names: &[u8]) -> FileOp {
    moved_dir(from, to, Digest::of(names))
}

fn moved_dir(from: &str, to: &str, listing: Digest) -> FileOp {
    FileOp { at: at(from), op: Op::Move { to: at(to), what: Moved::Directory { listing }, over: None } }
}

pub fn mkdir(path: &str) -> FileOp {
    FileOp { at: at(path), op: Op::MakeDir { mode: None } }
}

pub fn rmdir(path: &str) -> FileOp {
    FileOp { at: at(path), op: Op::RemoveDir }
}

/// Every regular file below `root`, by its path.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    walk(root, &mut |path, is_dir| {
        if !is_dir && path.is_file() {
            found.insert(
                path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(),
                fs::read(path).unwrap(),
            );
        }
    });
    found
}

/// Temporary names below `root`.
pub fn stray(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk(root, &mut |path, _| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with(".cotenant-") {
            found.push(name);
        }
    });
    found
}

fn walk(dir: &Path, see: &mut dyn FnMut(&Path, bool)) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let is_dir = entry.file_type().unwrap().is_dir();
        see(&entry.path(), is_dir);
        if is_dir {
            walk(&entry.path(), see);
        }
    }
}

#[track_caller]
pub fn assert_code(refusal: &Refusal, code: Code) {
    assert_eq!(refusal.code, code, "{refusal}");
    assert!(!refusal.next.is_empty(), "no next step: {refusal}");
}
