//! From a request to the steps that make its sandbox: which mounts, in which order, and what is given up at the end.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cotenant_model::{ExecLimits, RelPath};

use super::machine::{Inner, Standing};
use super::rights::Rules;
use super::start::mount_below;
use super::view::{self, NODES, Shown, inside};
use super::{Mode, Network, Shared, StartError, Tier, mounts, points};
use crate::run::{Folder, How, InFolder, Request, c_string, os_path};
use crate::sys::{Filter, Ident, NamespaceKind, Spot, Step, Task};

/// What is left to root: to own and change files, to become another user, to listen on low ports. Everything by which the
/// machine itself is changed is gone.
const ROOT_KEEPS: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10;

/// A sandbox as steps, and what must stay open until they are done.
#[derive(Debug, Default)]
pub(crate) struct Composed {
    pub(crate) stub: Vec<Task>,
    pub(crate) init: Vec<Task>,
    pub(crate) command: Vec<Task>,
    pub(crate) namespaces: i32,
    pub(super) keep: Vec<OwnedFd>,
}

/// Namespaces of every command that has its own root.
pub(crate) const OWN: i32 = libc::CLONE_NEWNS | libc::CLONE_NEWPID;

/// Where the upper layers of a command lie: `upper-N` and `work-N` for each writable folder.
pub(crate) fn layers(run: &Path, folder: usize) -> (PathBuf, PathBuf) {
    (run.join(format!("upper-{folder}")), run.join(format!("work-{folder}")))
}

/// Everything for one command. `run` is its private directory, with the layers made.
pub(crate) fn compose(
    machine: &Inner,
    shared: &Shared,
    request: &Request,
    run: &Path,
) -> Result<(Composed, Tier), StartError> {
    let mut to = Composed::default();
    let own_root = machine.standing != Standing::Bare;
    to.stub.extend(join_session(machine, shared, request.network)?);
    to.init.push(Task::may(Step::Write(c"/proc/self/oom_score_adj".to_owned(), b"500".to_vec())));
    if let How::Overlay(overlay) = &request.how {
        to.stub.push(Task::must(Step::Join(overlay.mounts_fd(), NamespaceKind::Mount)));
        to.init.extend([Task::must(Step::Private), Task::must(Step::SameRoot)]);
    } else if own_root {
        mount(machine, shared, request, run, &mut to.init)?;
        to.init.push(Task::must(Step::Pivot));
    }
    if own_root {
        to.namespaces = OWN;
        to.init.extend(processes(machine, &request.limits, matches!(request.how, How::Overlay(_))));
    }
    let cut = request.network || shared.held(machine)?.net.is_some();
    restrict(machine, shared, request, cut, &mut to)?;
    let network = match (request.network, cut) {
        (true, _) => Network::Host,
        (false, true) => Network::Loopback,
        (false, false) => Network::Nothing,
    };
    let tier = Tier {
        mode: match request.how {
            How::Staged { .. } => Mode::Staged,
            How::Direct { .. } => Mode::Direct,
            How::Overlay(_) => Mode::Exec,
        },
        own_root,
        own_processes: own_root,
        landlock: machine.landlock.map(super::rights::Landlock::number),
        seccomp: machine.filters.is_ok(),
        memory_together: machine.groups.as_ref().is_ok_and(super::groups::Groups::bounds_memory),
        network,
    };
    Ok((to, tier))
}

/// Joins the namespaces of the session that the command shall be in.
fn join_session(machine: &Inner, shared: &Shared, network: bool) -> Result<Vec<Task>, StartError> {
    let held = shared.held(machine)?;
    let user = held.user.as_ref().map(|fd| Step::Join(fd.as_raw_fd(), NamespaceKind::User));
    let net = held.net.as_ref().filter(|_| !network).map(|fd| Step::Join(fd.as_raw_fd(), NamespaceKind::Net));
    let ipc = held.ipc.as_ref().map(|fd| Step::Join(fd.as_raw_fd(), NamespaceKind::Ipc));
    Ok(user.into_iter().chain(net).chain(ipc).map(Task::must).collect())
}

/// The mounts of an overlay that stays open: those of a staged command, without its processes.
pub(crate) fn compose_open(
    machine: &Inner,
    shared: &Shared,
    request: &Request,
    run: &Path,
) -> Result<Composed, StartError> {
    let mut to = Composed { namespaces: OWN, ..Composed::default() };
    to.stub.extend(join_session(machine, shared, false)?);
    mount(machine, shared, request, run, &mut to.init)?;
    to.init.push(Task::must(Step::Pivot));
    Ok(to)
}

fn path(of: impl AsRef<Path>) -> Result<CString, StartError> {
    c_string(of.as_ref().as_os_str().as_bytes(), "a path")
}

/// A path below the new root; the root itself is `.`.
fn below(of: &Path) -> Result<CString, StartError> {
    let below = inside(of);
    path(if below.as_os_str().is_empty() { Path::new(".") } else { below })
}

fn show(from: &Path, to: &Path, read_only: bool) -> Result<Step, StartError> {
    Ok(Step::Bind { from: Spot::Host(path(from)?), ident: None, to: below(to)?, read_only })
}

/// Puts the root together.
fn mount(
    machine: &Inner,
    shared: &Shared,
    request: &Request,
    run: &Path,
    tasks: &mut Vec<Task>,
) -> Result<(), StartError> {
    let view = machine.view.as_ref().map_err(|error| StartError::io("the view of the machine", error))?;
    tasks.push(Task::must(Step::Private));
    tasks.push(Task::must(Step::NewRoot(path(&view.root)?)));
    let places =
        Places { view, shared, home: request.folders.iter().all(|f| !view.home.starts_with(&f.host)) };
    let mut shown: BTreeMap<PathBuf, Task> = BTreeMap::new();
    for one in &view.readable {
        places.make(&one.to, one.file)?;
        shown.insert(one.to.clone(), Task::may(show(&one.from, &one.to, true)?));
    }
    shown.insert("/tmp".into(), Task::must(show(&shared.tmp, Path::new("/tmp"), false)?));
    shown.insert("/var/tmp".into(), Task::must(show(&shared.tmp, Path::new("/var/tmp"), false)?));
    if places.home {
        places.make(&view.home, false)?;
        shown.insert(view.home.clone(), Task::must(show(&shared.home, &view.home, false)?));
    }
    for cache in request.caches.iter().filter(|cache| cache.is_dir()) {
        places.make(cache, false)?;
        shown.insert(cache.clone(), Task::may(show(cache, cache, false)?));
    }
    // By path, so that what lies inside comes after what it lies in.
    tasks.extend(shown.into_values());
    devices(machine, tasks)?;
    let mut overlays = 0;
    for (index, folder) in by_depth(&request.folders) {
        places.make(&folder.host, false)?;
        tasks.push(Task::must(folder_step(machine, request, run, (index, folder), &mut overlays)?));
        closer(request, (index, folder), overlays, tasks)?;
        cover(view, shared, folder, tasks)?;
    }
    Ok(())
}

/// Folders with their numbers, outermost first.
fn by_depth(folders: &[Folder]) -> Vec<(usize, &Folder)> {
    let mut sorted: Vec<_> = folders.iter().enumerate().collect();
    sorted.sort_by_key(|(_, folder)| &folder.host);
    sorted
}

fn devices(machine: &Inner, tasks: &mut Vec<Task>) -> Result<(), StartError> {
    for node in NODES {
        let step = show(&Path::new("/dev").join(node), &Path::new("/dev").join(node), false)?;
        tasks.push(if *node == "null" { Task::must(step) } else { Task::may(step) });
    }
    tasks.push(Task::may(Step::Terminals(c"dev/pts".to_owned())));
    tasks.push(Task::may(Step::Memory { to: c"dev/shm".to_owned(), size: c"512m".to_owned() }));
    tasks.push(match machine.own_proc {
        true => Task::must(Step::Proc(c"proc".to_owned())),
        false => Task::must(show(Path::new("/proc"), Path::new("/proc"), false)?),
    });
    Ok(())
}

/// The folder itself: an overlay over it, or it.
fn folder_step(
    machine: &Inner,
    request: &Request,
    run: &Path,
    (index, folder): (usize, &Folder),
    overlays: &mut usize,
) -> Result<Step, StartError> {
    let ident = folder.dir.as_ref().map(|dir| ident(dir)).transpose()?;
    let staged = matches!(request.how, How::Staged { .. });
    if !(staged && folder.writable) {
        let from = Spot::Host(path(&folder.host)?);
        return Ok(Step::Bind { from, ident, to: below(&folder.host)?, read_only: !folder.writable });
    }
    let (upper, work) = layers(run, index);
    *overlays += 1;
    Ok(Step::Overlay {
        number: *overlays - 1,
        lower: path(&folder.host)?,
        ident,
        upper: path(upper)?,
        work: path(work)?,
        flavour: machine.flavour(),
        to: below(&folder.host)?,
    })
}

fn ident(dir: &OwnedFd) -> Result<Ident, StartError> {
    let stat = rustix::fs::fstat(dir).map_err(|error| StartError::io("looking at a folder", error))?;
    Ok((stat.st_dev, stat.st_ino))
}

/// What lies closer over a folder: ignored directories as they are, protected paths for reading.
fn closer(
    request: &Request,
    (index, folder): (usize, &Folder),
    overlays: usize,
    tasks: &mut Vec<Task>,
) -> Result<(), StartError> {
    let of_folder = |paths: &[InFolder]| -> Vec<RelPath> {
        paths.iter().filter(|(of, _)| *of == index).map(|(_, path)| path.clone()).collect()
    };
    let (through, read_only, git) = match &request.how {
        How::Staged { through, read_only } => (of_folder(through), of_folder(read_only), false),
        How::Direct { read_only, git } => (Vec::new(), of_folder(read_only), *git),
        How::Overlay(_) => return Ok(()),
    };
    if !folder.writable {
        return Ok(());
    }
    for rel in through {
        let from = Spot::Lower(overlays.saturating_sub(1), path(os_path(&rel))?);
        let to = below(&folder.host.join(os_path(&rel)))?;
        // Where it cannot be shown, what is written there lands in the upper layer, and is found there.
        tasks.push(Task::may(Step::Bind { from, ident: None, to, read_only: false }));
    }
    let direct = matches!(request.how, How::Direct { .. });
    for (rel, closed) in guarded(read_only, git && direct, direct) {
        let at = below(&folder.host.join(os_path(&rel)))?;
        let step = Step::Bind { from: Spot::New(at.clone()), ident: None, to: at, read_only: closed };
        tasks.push(Task::if_there(step));
    }
    Ok(())
}

/// Parts of `.git` that only a human writes: what is in them runs, or says what runs.
const GIT_CLOSED: &[&str] = &["config", "config.worktree", "hooks", "info", "modules"];

/// Paths to mount over themselves, those in front that the others lie in; true for those that are closed. A directory
/// above a protected path is a mount of its own so that it cannot be renamed, and its place taken by another.
fn guarded(read_only: Vec<RelPath>, git: bool, ancestors: bool) -> BTreeMap<RelPath, bool> {
    let dot_git = RelPath::root().join(b".git");
    let of_git = GIT_CLOSED.iter().map(|name| dot_git.join(name.as_bytes())).filter(|_| git);
    let mut all = BTreeMap::new();
    for closed in read_only.into_iter().chain(of_git) {
        let mut above = closed.parent().filter(|_| ancestors);
        while let Some(dir) = above.filter(|dir| !dir.is_root()) {
            all.entry(dir.clone()).or_insert(false);
            above = dir.parent();
        }
        all.insert(closed, true);
    }
    all
}

/// Lays nothing over the secrets that a folder would show.
fn cover(
    view: &view::View,
    shared: &Shared,
    folder: &Folder,
    tasks: &mut Vec<Task>,
) -> Result<(), StartError> {
    for Shown { to, file, .. } in view.secrets_in(&folder.host) {
        let from = if file { &shared.blank } else { &shared.nothing };
        tasks.push(Task::must(show(from, &to, true)?));
    }
    Ok(())
}

/// Where the places to mount on are made.
struct Places<'a> {
    view: &'a view::View,
    shared: &'a Shared,
    /// Whether the session's home is shown.
    home: bool,
}

impl Places<'_> {
    /// Makes a place; inside what is shown from the machine it is there already.
    fn make(&self, to: &Path, file: bool) -> Result<(), StartError> {
        let error = |error| StartError::io("making a place to mount on", error);
        let home = self.home.then_some((self.view.home.as_path(), &self.shared.home));
        let tmp = ["/tmp", "/var/tmp"].map(|dir| (Path::new(dir), &self.shared.tmp));
        let within = |dir: &&(&Path, &PathBuf)| to.starts_with(dir.0) && to != dir.0;
        let writable: Vec<_> = home.into_iter().chain(tmp).collect();
        let deepest = writable.iter().filter(within).max_by_key(|dir| dir.0.as_os_str().len());
        if let Some((dir, from)) = deepest {
            let top = points::open_dir(from).map_err(error)?;
            let rest = to.strip_prefix(dir).unwrap_or(to);
            return if file { points::file_beneath(top, rest) } else { points::dir_beneath(top, rest) }
                .map_err(error);
        }
        let shown = |one: &Shown| to.starts_with(&one.to);
        if self.view.readable.iter().any(shown) || to.parent().is_none() {
            return Ok(());
        }
        self.view.place(to, file).map_err(error)
    }
}

/// What holds for the processes of a command with a root of its own.
fn processes(machine: &Inner, limits: &ExecLimits, again: bool) -> Vec<Task> {
    let mut tasks = Vec::new();
    if again && machine.own_proc {
        tasks.push(Task::must(Step::Proc(c"proc".to_owned())));
    }
    if machine.own_proc && machine.pid_max_is_own {
        let most = limits.processes.saturating_add(300).clamp(301, 4_000_000).to_string();
        let file = c"/proc/sys/kernel/pid_max".to_owned();
        tasks.push(Task::may(Step::Write(file, most.into_bytes())));
    }
    if machine.root {
        // Its id is that of the machine's root, to which these files belong.
        for (name, must) in [(c"proc/sys", true), (c"proc/sysrq-trigger", false), (c"proc/irq", false)] {
            let from = Spot::New(name.to_owned());
            let step = Step::Bind { from, ident: None, to: name.to_owned(), read_only: true };
            tasks.push(if must { Task::must(step) } else { Task::if_there(step) });
        }
    }
    tasks
}

/// What the command gives up last.
fn restrict(
    machine: &Inner,
    shared: &Shared,
    request: &Request,
    internet: bool,
    to: &mut Composed,
) -> Result<(), StartError> {
    let own_root = machine.standing != Standing::Bare;
    let folder = request.seen().get(request.cwd.0);
    let folder = folder.ok_or_else(|| StartError::BadRequest("there is no such folder".to_owned()))?;
    let spot = |at: &Path| -> Result<Spot, StartError> {
        Ok(if own_root { Spot::New(below(at)?) } else { Spot::Host(path(at)?) })
    };
    let cwd = os_path(&request.cwd.1);
    let cwd = path(if cwd.as_os_str().is_empty() { Path::new(".") } else { cwd })?;
    to.command.push(Task::must(Step::Enter { folder: spot(&folder.host)?, below: cwd }));
    let keep = if machine.root { ROOT_KEEPS } else { 0 };
    let needs_rights = own_root || machine.root;
    to.command.extend(needs_rights.then(|| Task::must(Step::Capabilities(keep))));
    to.command.push(Task::must(Step::NoNewPrivileges));
    if let Some(landlock) = machine.landlock {
        let rules = rules(machine, shared, request, own_root);
        let error = |error| StartError::SetUp { what: "restricting by Landlock".to_owned(), error };
        let ruleset = landlock.ruleset(&rules, !internet).map_err(error)?;
        let fd = ruleset.as_raw_fd();
        let allow = |at, access: u64| Step::Allow { ruleset: fd, at, access };
        for folder in request.seen() {
            let access = if folder.writable { landlock.write() } else { landlock.read() };
            to.command.push(Task::must(allow(spot(&folder.host)?, access.bits())));
        }
        if own_root {
            let process = landlock.read() | landlock::AccessFs::WriteFile;
            let own = [
                (c".", landlock::AccessFs::ReadDir.into()),
                (c"proc", process),
                (c"dev/shm", landlock.write()),
                (c"dev/pts", landlock.use_nodes()),
            ];
            for (at, access) in own {
                to.command.push(Task::must(allow(Spot::New(at.to_owned()), access.bits())));
            }
        }
        to.command.push(Task::must(Step::Restrict(fd)));
        to.keep.push(ruleset);
    }
    to.command.extend(limits(machine, &request.limits, own_root));
    if let Ok(filters) = &machine.filters {
        let filter: &Filter = if internet { &filters.internet } else { &filters.local };
        to.command.push(Task::must(Step::Calls(filter.clone())));
    }
    Ok(())
}

/// Paths for Landlock, as they are outside.
fn rules(machine: &Inner, shared: &Shared, request: &Request, own_root: bool) -> Rules {
    let view = machine.view.as_ref().ok();
    let mut rules = Rules {
        read: view.into_iter().flat_map(|view| &view.readable).map(|shown| shown.from.clone()).collect(),
        write: vec![shared.home.clone(), shared.tmp.clone()],
        nodes: NODES.iter().map(|node| Path::new("/dev").join(node)).collect(),
    };
    rules.write.extend(request.caches.iter().cloned());
    if !own_root {
        rules.read.push("/proc".into());
    }
    rules
}

fn limits(machine: &Inner, limits: &ExecLimits, own_root: bool) -> Vec<Task> {
    let bytes = |megabytes: u64| megabytes.saturating_mul(1 << 20);
    let mut all = vec![
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_CPU, limits.cpu_s),
        (libc::RLIMIT_DATA, bytes(limits.memory_mb)),
        (libc::RLIMIT_FSIZE, bytes(limits.disk_mb)),
    ];
    // Counted per user and user namespace; without one of its own it would count what the user runs elsewhere.
    if own_root && machine.standing == Standing::User {
        all.push((libc::RLIMIT_NPROC, limits.processes));
    }
    all.into_iter().map(|(resource, value)| Task::must(Step::Limit(resource, value))).collect()
}

/// Refuses what an overlay cannot lie over, before anything is made.
pub(crate) fn stageable(machine: &Inner, folders: &[Folder]) -> Result<(), StartError> {
    let refuse = |word, why| Err(StartError::NotStageable { word, why });
    if let Err(why) = &machine.overlay {
        return refuse("not-available", why.clone());
    }
    let points = mounts::mount_points();
    for folder in folders.iter().filter(|folder| folder.writable) {
        if let Some(point) = mounts::below(&points, &folder.host) {
            return Err(mount_below(point));
        }
        if let Some(path) = mounts::foreign(&folder.host) {
            let why = format!("{} belongs to another user or group and could not be written", path.display());
            return refuse("foreign-owner", why);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rel(path: &str) -> RelPath {
        RelPath::parse(path).unwrap()
    }

    fn shown(read_only: &[&str], git: bool, ancestors: bool) -> Vec<String> {
        let guarded = guarded(read_only.iter().map(|path| rel(path)).collect(), git, ancestors);
        guarded.iter().map(|(path, closed)| format!("{path}{}", if *closed { " ro" } else { "" })).collect()
    }

    #[test]
    fn directories_above_a_protected_path_are_mounts_too() {
        assert_eq!(shown(&["a/b/.env"], false, true), ["a", "a/b", "a/b/.env ro"]);
        assert_eq!(shown(&["a/b/.env"], false, false), ["a/b/.env ro"]);
        assert_eq!(shown(&[".git", ".git/config"], false, true), [".git ro", ".git/config ro"]);
        assert_eq!(shown(&[".git/config", ".git"], false, true), [".git ro", ".git/config ro"]);
    }

    #[test]
    fn of_git_only_what_runs_is_closed() {
        let all = shown(&["vendor/x/.git"], true, true);
        let closed = [".git", ".git/config ro", ".git/config.worktree ro", ".git/hooks ro"];
        assert_eq!(all[..4], closed);
        assert!(all.contains(&"vendor/x/.git ro".to_owned()) && !all.contains(&".git/objects ro".to_owned()));
    }

    #[test]
    fn outer_folders_come_first_and_keep_their_numbers() {
        let folder = |host: &str| Folder { host: host.into(), dir: None, writable: true };
        let folders = [folder("/w/root/inner"), folder("/w/root"), folder("/docs")];
        let numbers: Vec<usize> = by_depth(&folders).iter().map(|(index, _)| *index).collect();
        assert_eq!(numbers, [2, 1, 0]);
    }

    #[test]
    fn the_root_itself_is_a_dot() {
        assert_eq!(below(Path::new("/")).unwrap().to_str(), Ok("."));
        assert_eq!(below(Path::new("/a/b")).unwrap().to_str(), Ok("a/b"));
        assert!(path("a\0b").is_err());
    }
}
