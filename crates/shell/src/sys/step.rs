//! The steps by which a child becomes a command in surroundings of its own. They are made in the parent, where there
//! is memory and time; carrying one out is nothing but system calls.

use std::ffi::{CStr, CString};
use std::os::fd::RawFd;

use super::calls::{self, Done, NewFs};

/// Device and inode: what a path must lead to.
pub(crate) type Ident = (u64, u64);

/// `MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV`, and the same with `MOUNT_ATTR_NOEXEC`.
const PLAIN: libc::c_uint = 2 | 4;
const NO_EXEC: libc::c_uint = PLAIN | 8;

/// A place in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// An absolute path, links followed: only for what nobody but the user could have put there.
    Host(CString),
    /// A path below the root that is being put together; no link is followed.
    New(CString),
    /// A path below the folder that an overlay lies on, by the overlay's number; no link is followed.
    Lower(usize, CString),
}

/// How an overlay keeps its notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// In `user.overlay.*`: in a user namespace.
    User,
    /// In `trusted.overlay.*`: mounted by the machine's root.
    Trusted,
}

/// A kind of namespace to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamespaceKind {
    /// Users and capabilities.
    User,
    /// Network devices.
    Net,
    /// Mounts.
    Mount,
    /// What processes share by number.
    Ipc,
}

/// A compiled seccomp filter.
pub(crate) type Filter = std::sync::Arc<[libc::sock_filter]>;

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Enters a namespace that is held open.
    Join(RawFd, NamespaceKind),
    /// Cuts the mounts off from those outside.
    Private,
    /// A copy of a directory becomes the root that is being put together, for now at its own place.
    NewRoot(CString),
    /// The present root is the one that was put together already.
    SameRoot,
    /// Shows at `to`, below the new root, what stands at `from`.
    Bind { from: Spot, ident: Option<Ident>, to: CString, read_only: bool },
    /// Mounts an overlay at `to`, below the new root. The lower directory is kept under `number`.
    Overlay {
        number: usize,
        lower: CString,
        ident: Option<Ident>,
        upper: CString,
        work: CString,
        flavour: Flavour,
        to: CString,
    },
    /// Mounts `/proc` of this process namespace.
    Proc(CString),
    /// Mounts a `/dev/pts` of its own.
    Terminals(CString),
    /// Mounts a file system in memory, of so many bytes at most (as text).
    Memory { to: CString, size: CString },
    /// The new root becomes the root, the old one is gone.
    Pivot,
    /// Writes a file of the kernel.
    Write(CString, Vec<u8>),
    /// Grants rights in a Landlock ruleset.
    Allow { ruleset: RawFd, at: Spot, access: u64 },
    /// Makes the directory `below` the current one; links inside `folder` are followed.
    Enter { folder: Spot, below: CString },
    /// Sets a limit, soft and hard; never above the hard limit that holds already.
    Limit(libc::__rlimit_resource_t, u64),
    /// Keeps these capabilities at most.
    Capabilities(u64),
    /// Nothing run from now on gains rights by being run.
    NoNewPrivileges,
    /// The ruleset holds from now on.
    Restrict(RawFd),
    /// The filter holds from now on.
    Calls(Filter),
}

/// A step, and whether the command may go without it.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) step: Step,
    need: Need,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Must,
    May,
    IfThere,
}

impl Task {
    /// A step that has to succeed.
    pub(crate) fn must(step: Step) -> Task {
        Task { step, need: Need::Must }
    }

    /// A step whose failure leaves less to see, and never more to reach.
    pub(crate) fn may(step: Step) -> Task {
        Task { step, need: Need::May }
    }

    /// A step that has to succeed unless what it is about is not there.
    pub(crate) fn if_there(step: Step) -> Task {
        Task { step, need: Need::IfThere }
    }

    /// Whether the command may go on after this error.
    pub(super) fn forgives(&self, errno: i32) -> bool {
        match self.need {
            Need::Must => false,
            Need::May => true,
            Need::IfThere => errno == libc::ENOENT,
        }
    }
}

/// What the steps before have opened. Made in the parent: a child may not allocate.
#[derive(Debug)]
pub(crate) struct Hands {
    root: RawFd,
    lowers: Vec<RawFd>,
}

impl Hands {
    /// For as many overlays as the steps mount.
    pub(crate) fn new(tasks: &[Task]) -> Hands {
        let overlays = tasks.iter().filter(|task| matches!(task.step, Step::Overlay { .. })).count();
        Hands { root: -1, lowers: vec![-1; overlays] }
    }

    fn open(&self, spot: &Spot) -> Done<RawFd> {
        match spot {
            Spot::Host(path) => calls::open_path(path),
            Spot::New(path) => calls::open_beneath(self.root, path, false),
            Spot::Lower(number, path) => {
                let lower = self.lowers.get(*number).copied().unwrap_or(-1);
                calls::open_beneath(lower, path, false)
            }
        }
    }

    /// Puts a mount at a place below the new root, or lets go of it.
    fn attach(&self, mount: RawFd, to: &CStr) -> Done {
        let attached = calls::open_beneath(self.root, to, false).and_then(|at| {
            let attached = calls::attach(mount, at);
            calls::close(at);
            attached
        });
        calls::close(mount);
        attached
    }
}

impl Step {
    /// Carries the step out; the error is `errno`. Nothing here allocates.
    pub(super) fn run(&self, hands: &mut Hands) -> Done {
        match self {
            Step::Join(fd, kind) => join(*fd, *kind),
            Step::Private => calls::make_private(),
            Step::NewRoot(path) => new_root(hands, path),
            Step::SameRoot => calls::open_path(c"/").map(|root| hands.root = root),
            Step::Bind { from, ident, to, read_only } => bind(hands, from, *ident, to, *read_only),
            Step::Overlay { number, lower, ident, upper, work, flavour, to } => {
                let mount = overlay(hands, *number, (lower, *ident), (upper, work), *flavour)?;
                hands.attach(mount, to)
            }
            Step::Proc(to) => NewFs::open(c"proc")?.mount(NO_EXEC).and_then(|mount| hands.attach(mount, to)),
            Step::Terminals(to) => terminals().and_then(|mount| hands.attach(mount, to)),
            Step::Memory { to, size } => memory(size).and_then(|mount| hands.attach(mount, to)),
            Step::Pivot => calls::pivot(hands.root),
            Step::Write(path, bytes) => calls::write_file(path, bytes),
            Step::Allow { ruleset, at, access } => allow(hands, *ruleset, at, *access),
            Step::Enter { folder, below } => enter(hands, folder, below),
            Step::Limit(resource, value) => limit(*resource, *value),
            Step::Capabilities(keep) => calls::drop_capabilities(*keep),
            // SAFETY: numbers only.
            Step::NoNewPrivileges => {
                calls::done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())
            }
            Step::Restrict(ruleset) => calls::landlock_restrict(*ruleset),
            Step::Calls(filter) => filter_calls(filter),
        }
    }

    /// What the step is for, for the message that says it failed.
    pub(crate) fn what(&self) -> String {
        let show = |path: &CString| path.to_string_lossy().into_owned();
        match self {
            Step::Join(_, kind) => format!("joining the session's {kind:?} namespace"),
            Step::Private => "separating the mounts".to_owned(),
            Step::NewRoot(_) | Step::SameRoot | Step::Pivot => "changing the root".to_owned(),
            Step::Bind { to, .. } => format!("showing /{}", show(to)),
            Step::Overlay { to, .. } => format!("mounting the overlay at /{}", show(to)),
            Step::Proc(_) => "mounting /proc".to_owned(),
            Step::Terminals(_) => "mounting /dev/pts".to_owned(),
            Step::Memory { to, .. } => format!("mounting /{} in memory", show(to)),
            Step::Write(path, _) => format!("writing {}", show(path)),
            Step::Allow { .. } | Step::Restrict(_) => "restricting by Landlock".to_owned(),
            Step::Enter { below, .. } => format!("entering the directory {}", show(below)),
            Step::Limit(..) => "setting a limit".to_owned(),
            Step::Capabilities(_) | Step::NoNewPrivileges => "giving up privileges".to_owned(),
            Step::Calls(_) => "restricting by seccomp".to_owned(),
        }
    }
}

fn join(fd: RawFd, kind: NamespaceKind) -> Done {
    let flag = match kind {
        NamespaceKind::User => libc::CLONE_NEWUSER,
        NamespaceKind::Net => libc::CLONE_NEWNET,
        NamespaceKind::Mount => libc::CLONE_NEWNS,
        NamespaceKind::Ipc => libc::CLONE_NEWIPC,
    };
    // SAFETY: numbers only.
    calls::done(unsafe { libc::setns(fd, flag) }.into())
}

fn new_root(hands: &mut Hands, path: &CStr) -> Done {
    let at = calls::open_path(path)?;
    let root = calls::clone_mounts(at)?;
    calls::read_only(root)?;
    calls::attach(root, at)?;
    calls::close(at);
    hands.root = root;
    Ok(())
}

/// Fails unless `fd` is what is expected: a path may have come to mean something else since it was looked at.
fn verify(fd: RawFd, ident: Option<Ident>) -> Done {
    match ident {
        Some(expected) if calls::ident(fd)? != expected => Err(libc::ESTALE),
        _ => Ok(()),
    }
}

fn bind(hands: &Hands, from: &Spot, ident: Option<Ident>, to: &CStr, read_only: bool) -> Done {
    let source = hands.open(from)?;
    verify(source, ident)?;
    let mount = calls::clone_mounts(source)?;
    calls::close(source);
    if read_only {
        calls::read_only(mount)?;
    }
    hands.attach(mount, to)
}

fn overlay(
    hands: &mut Hands,
    number: usize,
    (lower, ident): (&CStr, Option<Ident>),
    (upper, work): (&CStr, &CStr),
    flavour: Flavour,
) -> Done<RawFd> {
    let below = calls::open_path(lower)?;
    verify(below, ident)?;
    let (upper, work) = (calls::open_path(upper)?, calls::open_path(work)?);
    let fs = NewFs::open(c"overlay")?;
    fs.layer(c"lowerdir+", c"lowerdir", below)?;
    fs.layer(c"upperdir", c"upperdir", upper)?;
    fs.layer(c"workdir", c"workdir", work)?;
    // An upper file without its data, or a directory that stands for one elsewhere, must be impossible.
    fs.text(c"redirect_dir", c"nofollow")?;
    fs.text(c"metacopy", c"off")?;
    // Thrown away after a crash, so nothing of it need be synced.
    fs.flag(c"volatile")?;
    if flavour == Flavour::User {
        fs.flag(c"userxattr")?;
    }
    let mount = fs.mount(PLAIN)?;
    calls::close(upper);
    calls::close(work);
    if let Some(kept) = hands.lowers.get_mut(number) {
        *kept = below;
    }
    Ok(mount)
}

fn terminals() -> Done<RawFd> {
    let fs = NewFs::open(c"devpts")?;
    fs.text(c"ptmxmode", c"0666")?;
    fs.text(c"mode", c"0620")?;
    // `MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC`.
    fs.mount(2 | 8)
}

fn memory(size: &CStr) -> Done<RawFd> {
    let fs = NewFs::open(c"tmpfs")?;
    fs.text(c"size", size)?;
    fs.text(c"mode", c"1777")?;
    fs.mount(PLAIN)
}

fn allow(hands: &Hands, ruleset: RawFd, at: &Spot, access: u64) -> Done {
    let at = hands.open(at)?;
    let allowed = calls::landlock_allow(ruleset, at, access);
    calls::close(at);
    allowed
}

fn enter(hands: &Hands, folder: &Spot, below: &CStr) -> Done {
    let folder = hands.open(folder)?;
    let dir = calls::open_beneath(folder, below, true)?;
    calls::close(folder);
    // SAFETY: a number.
    let entered = calls::done(unsafe { libc::fchdir(dir) }.into());
    calls::close(dir);
    entered
}

fn limit(resource: libc::__rlimit_resource_t, value: u64) -> Done {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer leads to a local that outlives the call.
    calls::done(unsafe { libc::getrlimit(resource, &raw mut now) }.into())?;
    let value = value.min(now.rlim_max);
    let new = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: as above.
    calls::done(unsafe { libc::setrlimit(resource, &raw const new) }.into())
}

fn filter_calls(filter: &[libc::sock_filter]) -> Done {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| libc::E2BIG)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program and its instructions outlive the call, which copies them.
    calls::done(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    })
}
