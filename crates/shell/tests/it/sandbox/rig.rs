//! A workspace to throw away, a machine that was probed for it, and commands that run there.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cotenant_model::RelPath;
use cotenant_shell::run::{Ended, Folder, How, Job, Request, environment, start};
use cotenant_shell::sandbox::{Machine, Session, StartError, Surroundings, Upper, UpperEntry, UpperKind};
use cotenant_testkit::{PATIENCE, fresh_directory};

pub(crate) struct Rig {
    pub(crate) base: PathBuf,
    pub(crate) machine: Machine,
    pub(crate) session: Session,
}

/// What a command came to.
pub(crate) struct Ran {
    pub(crate) ended: Ended,
    pub(crate) said: String,
    pub(crate) job: Job,
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> Ran {
        assert_eq!(self.ended.exit, Some(0), "{:?}\n{}", self.ended, self.said);
        self
    }

    pub(crate) fn upper(&self) -> Upper {
        self.job.upper().unwrap()
    }

    /// The upper layer in words: `path kind`.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.upper().walk(0, 100_000).unwrap().entries.iter().map(word).collect()
    }
}

pub(crate) fn word(entry: &UpperEntry) -> String {
    let kind = match &entry.kind {
        UpperKind::Whiteout => "gone".to_owned(),
        UpperKind::Dir { merged: true, .. } => "dir".to_owned(),
        UpperKind::Dir { opaque: true, .. } => "dir opaque".to_owned(),
        UpperKind::Dir { .. } => "dir new".to_owned(),
        UpperKind::File { copied, .. } => format!("file {}", if *copied { "copied" } else { "new" }),
        UpperKind::Link(target) => format!("link {}", String::from_utf8_lossy(target)),
        UpperKind::Other(what) => (*what).to_owned(),
    };
    format!("{} {kind}", entry.path)
}

pub(crate) fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(&[])
    }

    /// With these in the daemon's environment as well.
    pub(crate) fn with(more: &[(&str, &str)]) -> Rig {
        Rig::made(more, true)
    }

    /// Where root mounts without a user namespace; `None`, with a line that says SKIP, for others.
    pub(crate) fn as_root(test: &str) -> Option<Rig> {
        let rig = Rig::made(&[], false);
        rig.has_root(test).then_some(rig)
    }

    fn made(more: &[(&str, &str)], user_namespaces: bool) -> Rig {
        let base = fresh_directory(&std::env::temp_dir().canonicalize().unwrap(), "sandbox");
        for dir in ["root", "out", "home", "state/scratch"] {
            std::fs::create_dir_all(base.join(dir)).unwrap();
        }
        std::fs::set_permissions(base.join("root"), PermissionsExt::from_mode(0o755)).unwrap();
        let mut own = vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
        own.push(("HOME".into(), base.join("home").into()));
        own.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
        let around = Surroundings {
            scratch: base.join("state/scratch"),
            hidden: vec![base.join("state")],
            environment: own,
            user_namespaces,
        };
        let machine = Machine::probe(&around).unwrap();
        let session = Session::open(&machine).unwrap();
        Rig { base, machine, session }
    }

    /// On a machine without namespaces.
    pub(crate) fn bare() -> Rig {
        let mut rig = Rig::new();
        rig.machine = rig.machine.without_namespaces();
        rig.session = Session::open(&rig.machine).unwrap();
        rig
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub(crate) fn folder(&self) -> Folder {
        let dir = std::fs::File::open(self.root()).unwrap();
        Folder { host: self.root(), dir: Some(std::sync::Arc::new(dir.into())), writable: true }
    }

    pub(crate) fn request(&self, script: &str, how: How) -> Request {
        let mut request = Request::new(script, vec![self.folder()], how);
        let own = [("PATH".into(), std::env::var_os("PATH").unwrap_or_default())];
        let given = [
            ("OUT".to_owned(), self.base.join("out").to_str().unwrap().to_owned()),
            ("W".to_owned(), self.root().to_str().unwrap().to_owned()),
        ];
        request.env = environment(own, &[], &given);
        request
    }

    pub(crate) fn start(&self, request: Request) -> Result<Job, StartError> {
        start(&self.machine, &self.session, request)
    }

    #[track_caller]
    pub(crate) fn run(&self, request: Request) -> Ran {
        let job = self.start(request).unwrap();
        self.finish(job)
    }

    #[track_caller]
    pub(crate) fn finish(&self, job: Job) -> Ran {
        let ended = job.wait(PATIENCE).expect("the command ends");
        let said = String::from_utf8_lossy(&job.output().read(0, 1 << 20)).into_owned();
        Ran { ended, said, job }
    }

    #[track_caller]
    pub(crate) fn staged(&self, script: &str) -> Ran {
        self.run(self.request(script, staged()))
    }

    #[track_caller]
    pub(crate) fn direct(&self, script: &str) -> Ran {
        self.run(self.request(script, direct(&[])))
    }

    /// False, with a line that says SKIP, where nothing can be staged here.
    pub(crate) fn can_stage(&self, test: &str) -> bool {
        self.machine.staged().map_err(|why| eprintln!("SKIP {test}: {why}")).is_ok()
    }

    /// The same for a root of a command's own.
    pub(crate) fn has_root(&self, test: &str) -> bool {
        let held = self.machine.direct_tier().own_root;
        if !held {
            eprintln!("SKIP {test}: {:?}", self.machine.report());
        }
        held
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.session.end();
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

pub(crate) fn staged() -> How {
    How::Staged { through: Vec::new(), read_only: Vec::new() }
}

pub(crate) fn direct(read_only: &[&str]) -> How {
    How::Direct { read_only: read_only.iter().map(|path| (0, rel(path))).collect(), git: false }
}

pub(crate) fn seconds(request: Request, seconds: u64) -> Request {
    Request { timeout: Duration::from_secs(seconds), ..request }
}

pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
