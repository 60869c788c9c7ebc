//! What this machine can do, found out once by doing it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::compose::{Composed, OWN};
use super::groups::Groups;
use super::rights::Landlock;
use super::start::{quietly, start};
use super::view::View;
use super::{Mode, Network, Shared, StartError, Tier, calls, points};
use crate::run::Folder;
use crate::sys::{self, Filter, Flavour, Held, NamespaceKind, Spot, Step, Task};
use std::os::fd::AsRawFd;

/// What the daemon knows of its surroundings.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// A folder of the workspace's private state, outside every served folder. Everything of commands lies in it, and is
    /// removed from it: nobody else may use it, and one daemon only.
    pub scratch: PathBuf,
    /// Directories that no command may see, wherever they lie, such as the state folder.
    pub hidden: Vec<PathBuf>,
    /// The daemon's own environment: which home there is, which toolchains.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether user namespaces may be used. Without them root still has mounts of its own for a command; others have
    /// Landlock and seccomp alone.
    pub user_namespaces: bool,
}

/// One thing that a sandbox is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// A short, stable name.
    pub name: &'static str,
    /// What there is, or why there is not.
    pub state: Result<String, String>,
}

/// What this machine can do for commands. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) inner: Arc<Inner>,
}

/// By what a command gets a root of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A user namespace.
    User,
    /// The right of the machine's root to mount.
    Root,
    /// It gets none.
    Bare,
}

/// The two filters: with sockets of the internet families, and without.
#[derive(Clone, Debug)]
pub(crate) struct Filters {
    pub(crate) internet: Filter,
    pub(crate) local: Filter,
}

#[derive(Clone, Debug)]
pub(crate) struct Inner {
    pub(crate) scratch: PathBuf,
    /// Where upper layers may lie; the same as `scratch` if its file system allows it.
    pub(crate) overlay: Result<PathBuf, String>,
    pub(crate) view: Result<View, String>,
    pub(crate) standing: Standing,
    pub(crate) net: bool,
    pub(crate) own_proc: bool,
    pub(crate) pid_max_is_own: bool,
    pub(crate) root: bool,
    pub(crate) landlock: Option<Landlock>,
    pub(crate) filters: Result<Filters, String>,
    pub(crate) groups: Result<Groups, String>,
    why_bare: String,
}

impl Machine {
    /// Finds out what can be done here, by doing it once with nothing to run. What an earlier daemon left in the scratch
    /// folder is removed.
    pub fn probe(around: &Surroundings) -> Result<Machine, StartError> {
        let scratch = &around.scratch;
        points::private_dir(scratch).map_err(|error| StartError::io("making the scratch folder", error))?;
        let scratch = scratch.canonicalize().map_err(|error| StartError::io("the scratch folder", error))?;
        clear(&scratch);
        let mut hidden = around.hidden.clone();
        hidden.push(scratch.clone());
        let view = View::build(scratch.join("view"), hidden, &around.environment);
        let root = rustix::process::geteuid().is_root();
        let mut inner = Inner {
            overlay: Err("no mounts of its own".to_owned()),
            view: view.map_err(|error| error.to_string()),
            standing: Standing::Bare,
            net: false,
            own_proc: false,
            pid_max_is_own: kernel() >= (6, 14),
            root,
            landlock: Landlock::of_kernel(sys::landlock_abi()),
            filters: filters(),
            groups: Groups::find(),
            why_bare: String::new(),
            scratch,
        };
        quietly(|| inner.try_out(around.user_namespaces))?;
        Ok(Machine { inner: Arc::new(inner) })
    }

    /// The same machine as if it had no namespaces at all, for root too.
    #[must_use]
    pub fn without_namespaces(&self) -> Machine {
        let mut inner = (*self.inner).clone();
        inner.standing = Standing::Bare;
        inner.net = false;
        inner.overlay = Err("switched off".to_owned());
        inner.why_bare = "switched off".to_owned();
        Machine { inner: Arc::new(inner) }
    }

    /// Whether a command can run staged at all; why not.
    pub fn staged(&self) -> Result<(), String> {
        self.inner.overlay.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// How strongly a direct command without network would be held.
    pub fn direct_tier(&self) -> Tier {
        let inner = &self.inner;
        let own_root = inner.standing != Standing::Bare;
        Tier {
            mode: Mode::Direct,
            own_root,
            own_processes: own_root,
            landlock: inner.landlock.map(Landlock::number),
            seccomp: inner.filters.is_ok(),
            memory_together: inner.groups.as_ref().is_ok_and(Groups::bounds_memory),
            network: if inner.net { Network::Loopback } else { Network::Nothing },
        }
    }

    /// Everything that sandboxes are made of, for `doctor`.
    pub fn report(&self) -> Vec<Ability> {
        let inner = &self.inner;
        let has = |there: bool, what: &str, lacks: &str| match there {
            true => Ok(what.to_owned()),
            false => Err(lacks.to_owned()),
        };
        let namespaces = match inner.standing {
            Standing::User => Ok("user, mount, process and ipc namespaces".to_owned()),
            Standing::Root => Ok("mount, process and ipc namespaces, as root".to_owned()),
            Standing::Bare => Err(inner.why_bare.clone()),
        };
        let overlay = inner.overlay.as_ref().map(|dir| format!("upper layers in {}", dir.display()));
        let landlock = inner.landlock.map(|landlock| format!("ABI {}", landlock.number()));
        let groups = match &inner.groups {
            Ok(Groups::One(dir)) => Ok(format!("in {}", dir.display())),
            Ok(Groups::Each { memory, pids }) => {
                let part = |name, dir: &Option<PathBuf>| dir.as_ref().map(|_| name);
                let parts: Vec<&str> =
                    [part("memory", memory), part("pids", pids)].into_iter().flatten().collect();
                Ok(format!("version 1: {}", parts.join(", ")))
            }
            Err(why) => Err(why.clone()),
        };
        let states = [
            ("namespaces", namespaces),
            ("overlay", overlay.map_err(Clone::clone)),
            ("network", has(inner.net, "a loopback of each session's own", "no network namespace")),
            ("proc", has(inner.own_proc, "a /proc of its own", "the machine's /proc is shown")),
            ("landlock", landlock.ok_or_else(|| "no Landlock of ABI 2 or later".to_owned())),
            ("seccomp", inner.filters.as_ref().map(|_| "a filter".to_owned()).map_err(Clone::clone)),
            ("cgroup", groups),
        ];
        states.map(|(name, state)| Ability { name, state }).into()
    }
}

/// Removes what an earlier daemon left; the view is kept.
fn clear(scratch: &Path) {
    let entries = std::fs::read_dir(scratch).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name() != "view") {
        points::remove(&entry.path());
    }
}

fn filters() -> Result<Filters, String> {
    Ok(Filters { internet: calls::filter(true)?, local: calls::filter(false)? })
}

/// Version and patch level of the kernel.
fn kernel() -> (u32, u32) {
    version(&std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default())
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

impl Inner {
    /// How overlays of this machine keep their notes.
    pub(crate) fn flavour(&self) -> Flavour {
        if self.standing == Standing::Root { Flavour::Trusted } else { Flavour::User }
    }

    /// What a command has as its home and for its temporary files, by the paths that it sees. Where a folder holds the
    /// user's home, the command's own lies elsewhere: what is written there is no change of the folder.
    pub(crate) fn homes(&self, shared: &Shared, folders: &[Folder]) -> (PathBuf, PathBuf) {
        if self.standing == Standing::Bare {
            return (shared.home.clone(), shared.tmp.clone());
        }
        let tmp = PathBuf::from("/tmp");
        let home = self.view.as_ref().ok().map(|view| view.home.clone());
        let shown = home.filter(|home| !folders.iter().any(|folder| home.starts_with(&folder.host)));
        (shown.unwrap_or_else(|| tmp.clone()), tmp)
    }

    /// Tries each part; on a quiet thread.
    fn try_out(&mut self, user: bool) {
        let refused = || Err(std::io::Error::other("switched off"));
        let held = match if user { sys::hold(true, true) } else { refused() } {
            Ok(held) => Ok((Standing::User, held)),
            Err(why) if self.root => sys::hold(false, true)
                .or(Ok(Held::default()))
                .map(|held| (Standing::Root, held))
                .map_err(|_: std::io::Error| why),
            Err(why) => Err(why),
        };
        let (standing, held) = match held {
            Ok(found) => found,
            Err(why) => {
                self.why_bare = format!("user namespaces: {why}");
                return;
            }
        };
        let view = match &self.view {
            Ok(view) => view.root.clone(),
            Err(why) => {
                self.why_bare = why.clone();
                return;
            }
        };
        self.standing = standing;
        if let Err(error) = attempt(&held, &view, Vec::new()) {
            self.standing = Standing::Bare;
            self.why_bare = error.to_string();
            return;
        }
        self.net = held.net.is_some();
        self.own_proc = attempt(&held, &view, vec![Step::Proc(c"proc".to_owned())]).is_ok();
        self.overlay = self.try_overlay(&held, &view);
    }

    /// Looks for a place that upper layers may lie in.
    fn try_overlay(&self, held: &Held, view: &Path) -> Result<PathBuf, String> {
        let memory =
            format!("/dev/shm/cotenant-{}-{}", rustix::process::geteuid().as_raw(), std::process::id());
        let mut why = String::new();
        for dir in [self.scratch.clone(), PathBuf::from(memory)] {
            match self.try_upper(held, view, &dir.join("try")) {
                Ok(()) => return Ok(dir),
                Err(error) => why = error.to_string(),
            }
            points::remove(&dir.join("try"));
        }
        Err(why)
    }

    fn try_upper(&self, held: &Held, view: &Path, at: &Path) -> Result<(), StartError> {
        let part = |name: &str| {
            let dir = at.join(name);
            points::private_dir(&dir).map_err(|error| StartError::io("making a directory", error))?;
            crate::run::c_string(dir.into_os_string().into_encoded_bytes(), "a path")
        };
        let step = Step::Overlay {
            number: 0,
            lower: part("lower")?,
            ident: None,
            upper: part("upper")?,
            work: part("work")?,
            flavour: self.flavour(),
            to: c"tmp".to_owned(),
        };
        let tried = attempt(held, view, vec![step]);
        points::remove(at);
        tried
    }
}

/// Puts a small root together with `more` in it, and takes it down again.
fn attempt(held: &Held, view: &Path, more: Vec<Step>) -> Result<(), StartError> {
    let join =
        |fd: &Option<std::os::fd::OwnedFd>, kind| fd.as_ref().map(|fd| Step::Join(fd.as_raw_fd(), kind));
    let stub = [
        join(&held.user, NamespaceKind::User),
        join(&held.net, NamespaceKind::Net),
        join(&held.ipc, NamespaceKind::Ipc),
    ];
    let usr = Step::Bind {
        from: Spot::Host(c"/usr".to_owned()),
        ident: None,
        to: c"usr".to_owned(),
        read_only: true,
    };
    let root = crate::run::c_string(view.as_os_str().as_encoded_bytes(), "a path")?;
    let before = [Step::Private, Step::NewRoot(root), usr];
    let init = before.into_iter().chain(more).chain([Step::Pivot]);
    let composed = Composed {
        stub: stub.into_iter().flatten().map(Task::must).collect(),
        init: init.map(Task::must).collect(),
        namespaces: OWN,
        ..Composed::default()
    };
    start(&composed, None).map(|started| started.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_release_is_two_numbers() {
        assert_eq!(version("6.18.44-fc-v657"), (6, 18));
        assert_eq!(version("5.4.0"), (5, 4));
        assert_eq!(version("6"), (6, 0));
        assert_eq!(version("odd"), (0, 0));
        assert!((6, 18) >= (6, 14) && (5, 19) < (6, 14));
    }

    #[test]
    fn what_an_earlier_daemon_left_goes_and_the_view_stays() {
        let base = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "clear");
        for dir in ["view/usr", "run-1/upper-0", "session-1/tmp"] {
            points::private_dir(&base.join(dir)).unwrap();
        }
        clear(&base);
        let left: Vec<_> =
            std::fs::read_dir(&base).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["view"]);
        points::remove(&base);
    }
}
