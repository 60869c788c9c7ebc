//! A whole workspace, a command that a test plays in it, and other agents' changes through the pipeline.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cotenant_coord::Approver;
use cotenant_engine::effects::{self, Before, Bounds, Loss, Recorded};
use cotenant_engine::{Clock, Landed, Options, Workspace};
use cotenant_model::{Author, FileOp, GitObjects, Millis, Refusal, SessionId, Settings, WsPath};
use cotenant_shell::git::Git;

use crate::rig::{NOW, Place, plan};

/// Time that stands still.
struct Still;

impl Clock for Still {
    fn wall(&self) -> Millis {
        NOW
    }
    fn steady(&self) -> Millis {
        Millis(1000)
    }
}

pub struct Desk {
    pub place: Place,
    pub ws: Workspace,
    pub git: Option<Arc<dyn GitObjects>>,
    pub bounds: Bounds,
}

impl Desk {
    pub fn new() -> Desk {
        Desk::at(Place::fast())
    }

    pub fn at(place: Place) -> Desk {
        let options = Options {
            root: place.tree.path().to_owned(),
            state: place.state.path().to_owned(),
            settings: Settings::default(),
            clock: Arc::new(Still),
        };
        let ws = Workspace::open(options).unwrap_or_else(|refusal| panic!("{refusal}"));
        Desk { place, ws, git: None, bounds: Bounds::default() }
    }

    /// With a repository in which `script` (bash) was run.
    pub fn with_git(script: &str) -> Desk {
        let mut desk = Desk::new();
        desk.sh(&format!("git init -q .; git config user.name a; git config user.email a@b; {script}"));
        let path = std::env::var_os("PATH").unwrap();
        let git = Git::find(&path, vec![desk.root().to_owned()]).unwrap();
        desk.git = Some(Arc::new(git));
        // However little it is.
        desk.bounds.unasked_bytes = 0;
        desk
    }

    pub fn root(&self) -> &Path {
        self.place.tree.path()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    #[track_caller]
    pub fn sh(&self, script: &str) {
        let mut bash = std::process::Command::new("bash");
        bash.args(["-ec", script]).current_dir(self.root()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = bash.output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn get(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path(path)).ok()
    }

    pub fn before(&self) -> Before {
        effects::before(&self.ws, &[WsPath::default()], self.git.clone(), self.bounds).unwrap()
    }

    pub fn after(&self, before: &Before) -> Recorded {
        let author =
            Author { agent: "runner".into(), session: SessionId(7), task: Some("build".into()), turn: 3 };
        effects::after(&self.ws, before, &author, "run_command").unwrap()
    }

    /// A whole run.
    pub fn run(&self, command: impl FnOnce(&Path)) -> Recorded {
        let before = self.before();
        command(self.root());
        self.after(&before)
    }

    /// A change of another agent, through the pipeline.
    pub fn try_commit(&self, ops: Vec<FileOp>) -> Result<Landed, Refusal> {
        let grant = self.ws.coord().authorise(plan(ops), Approver::Policy);
        self.ws.land(grant, cotenant_model::Durability::Fast, None)
    }

    #[track_caller]
    pub fn commit(&self, ops: Vec<FileOp>) -> Landed {
        self.try_commit(ops).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    pub fn blob(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.ws.ledger().blob(cotenant_model::Digest::of(bytes)).unwrap()
    }
}

/// What a run did, as `op path`, of a rename both names.
pub fn told(recorded: &Recorded) -> Vec<String> {
    let files = recorded.files.iter().map(|file| match &file.from {
        Some(from) => format!("{} {} <- {}", file.op.name(), file.at.path, from.path),
        None => format!("{} {}", file.op.name(), file.at.path),
    });
    files.collect()
}

pub fn losses(recorded: &Recorded) -> Vec<(String, Loss)> {
    recorded.not_restorable.iter().map(|(at, loss)| (at.path.to_string(), *loss)).collect()
}

/// Waits until the file system's clock has gone on so far that what was written before is old.
pub fn grow_old(desk: &Desk) {
    let tree = desk.ws.tree();
    loop {
        let scan = tree.scan(&WsPath::default(), None).unwrap();
        if scan.entries().all(|(_, key)| !scan.is_racy(key)) {
            return;
        }
    }
}
