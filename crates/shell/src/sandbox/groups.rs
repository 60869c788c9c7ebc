//! Control groups: how much memory and how many processes all of a command may have together. Where we may make none,
//! each process has its limit alone.
//!
//! Joining one waits for every processor of the machine, which may take longer than most commands run. So a command is
//! put into a group once it has run for a while; until then its processes have their single limits.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cotenant_model::ExecLimits;
use rustix::process::Pid;

/// Where groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// One hierarchy for all (version 2).
    One(PathBuf),
    /// A hierarchy each (version 1).
    Each {
        /// For memory.
        memory: Option<PathBuf>,
        /// For the number of processes.
        pids: Option<PathBuf>,
    },
}

impl Groups {
    /// Looks where this process may make groups; `Err` says why nowhere.
    pub(crate) fn find() -> Result<Groups, String> {
        let own = std::fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
        let found = candidates(&own, &mounts);
        let each = |name: &str| found.each(name).into_iter().find(|dir| usable(dir, &[]));
        if let Some(dir) = found.one().into_iter().find(|dir| usable(dir, &["memory", "pids"])) {
            return Ok(Groups::One(dir));
        }
        match (each("memory"), each("pids")) {
            (None, None) => Err("no control group may be made here".to_owned()),
            (memory, pids) => Ok(Groups::Each { memory, pids }),
        }
    }

    /// Whether memory is bounded together.
    pub(crate) fn bounds_memory(&self) -> bool {
        !matches!(self, Groups::Each { memory: None, .. })
    }

    /// Makes the groups of one command.
    pub(crate) fn make(&self, limits: &ExecLimits) -> io::Result<Group> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cotenant-{}-{number}", std::process::id());
        let memory = (limits.memory_mb.saturating_mul(1 << 20)).to_string();
        let pids = limits.processes.to_string();
        let mut group = Group { dirs: Vec::new(), oom: None };
        match self {
            Groups::One(dir) => {
                let dir = dir.join(name);
                group.add(&dir, &[("memory.max", &memory), ("pids.max", &pids)])?;
                let _ = std::fs::write(dir.join("memory.swap.max"), "0");
                group.oom = Some(dir.join("memory.events"));
            }
            Groups::Each { memory: of_memory, pids: of_pids } => {
                if let Some(dir) = of_memory.as_ref().map(|dir| dir.join(&name)) {
                    group.add(&dir, &[("memory.limit_in_bytes", &memory)])?;
                    group.oom = Some(dir.join("memory.oom_control"));
                }
                if let Some(dir) = of_pids.as_ref().map(|dir| dir.join(&name)) {
                    group.add(&dir, &[("pids.max", &pids)])?;
                }
            }
        }
        Ok(group)
    }
}

/// Whether a group can be made in `dir` that has these controllers. Groups that a daemon before us left go first.
fn usable(dir: &Path, controllers: &[&str]) -> bool {
    let left = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for old in left.filter(|entry| is_orphan(&entry.file_name().to_string_lossy())) {
        let _ = std::fs::remove_dir(old.path());
    }
    let on = std::fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    if !controllers.iter().all(|wanted| on.split_ascii_whitespace().any(|word| word == *wanted)) {
        return false;
    }
    let probe = dir.join(format!("cotenant-probe-{}", std::process::id()));
    let made = std::fs::create_dir(&probe).is_ok();
    let writable = made && File::options().write(true).open(probe.join("cgroup.procs")).is_ok();
    let _ = std::fs::remove_dir(&probe);
    writable
}

/// Whether a group was made by a daemon that is gone: its process id stands in the name.
fn is_orphan(name: &str) -> bool {
    let id = name
        .strip_prefix("cotenant-")
        .and_then(|rest| rest.split('-').find_map(|part| part.parse::<u32>().ok()));
    id.is_some_and(|id| !Path::new("/proc").join(id.to_string()).exists())
}

/// Directories in which groups might be made, by hierarchy: our own group's, then the one above it.
struct Candidates(Vec<(String, Vec<PathBuf>)>);

impl Candidates {
    fn one(&self) -> Vec<PathBuf> {
        self.each("")
    }

    fn each(&self, name: &str) -> Vec<PathBuf> {
        self.0.iter().find(|(kind, _)| kind == name).map(|(_, dirs)| dirs.clone()).unwrap_or_default()
    }
}

fn candidates(own: &str, mounts: &str) -> Candidates {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (fields.next(), fields.next()) else { continue };
        for kind in kinds.split(',') {
            let Some(mount) = mount_of(kind, mounts) else { continue };
            let dir = mount.join(path.trim_start_matches('/'));
            let above = dir.parent().filter(|above| above.starts_with(&mount)).map(Path::to_owned);
            found.push((kind.to_owned(), std::iter::once(dir).chain(above).collect()));
        }
    }
    Candidates(found)
}

/// Where the hierarchy of a controller is mounted; version 2 has the empty name.
fn mount_of(kind: &str, mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (place, fs) = line.split_once(" - ")?;
        let mut fs = fs.split_ascii_whitespace();
        let (fs, options) = (fs.next()?, fs.nth(1).unwrap_or(""));
        let fits = match kind {
            "" => fs == "cgroup2",
            kind => fs == "cgroup" && options.split(',').any(|option| option == kind),
        };
        fits.then(|| place.split_ascii_whitespace().nth(4).map(PathBuf::from))?
    })
}

/// The groups of one command; removed when dropped, its processes being gone.
#[derive(Debug)]
pub(crate) struct Group {
    dirs: Vec<PathBuf>,
    oom: Option<PathBuf>,
}

/// More processes than these are not looked for: those who are in pass the group on.
const JOINED_AT_MOST: usize = 64;

impl Group {
    fn add(&mut self, dir: &Path, limits: &[(&str, &str)]) -> io::Result<()> {
        std::fs::create_dir(dir)?;
        self.dirs.push(dir.to_owned());
        for (file, value) in limits {
            std::fs::write(dir.join(file), value)?;
        }
        Ok(())
    }

    /// Puts processes in, and those that they start from now on. `all` lists them anew: one may have forked meanwhile.
    /// False where none could be put in.
    pub(crate) fn take(&self, all: impl Fn() -> Vec<Pid>) -> bool {
        let mut taken = HashSet::new();
        loop {
            let new: Vec<Pid> = all().into_iter().filter(|pid| !taken.contains(pid)).collect();
            if new.is_empty() || taken.len() >= JOINED_AT_MOST {
                return !taken.is_empty();
            }
            for pid in new {
                let put = |dir: &PathBuf| {
                    std::fs::write(dir.join("cgroup.procs"), pid.as_raw_nonzero().to_string())
                };
                let put: io::Result<()> = self.dirs.iter().try_for_each(put);
                // One that has ended meanwhile needs no limit; for every other reason there is none.
                if put.is_err_and(|error| error.raw_os_error() != Some(libc::ESRCH)) {
                    return false;
                }
                taken.insert(pid);
            }
        }
    }

    /// Whether a process was ended because memory ran out.
    pub(crate) fn ran_out(&self) -> bool {
        let text = self.oom.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        text.is_some_and(|text| {
            let count =
                |line: &str| line.strip_prefix("oom_kill ").and_then(|n| n.trim().parse::<u64>().ok());
            text.lines().filter_map(count).any(|count| count > 0)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for dir in &self.dirs {
            let _ = std::fs::remove_dir(dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "31 25 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    const ONE: &str = "40 25 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                       41 25 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                       42 25 0:32 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";

    #[test]
    fn our_own_group_is_tried_first_and_then_the_one_above() {
        let found = candidates("0::/user.slice/app.slice/x.scope\n", TWO);
        let dirs = ["/sys/fs/cgroup/user.slice/app.slice/x.scope", "/sys/fs/cgroup/user.slice/app.slice"];
        assert_eq!(found.one(), dirs.map(PathBuf::from));
        assert_eq!(candidates("0::/\n", TWO).one(), [PathBuf::from("/sys/fs/cgroup/")]);
    }

    #[test]
    fn each_hierarchy_of_the_first_version_has_its_mount() {
        let found = candidates("4:memory:/a/b\n2:cpu,cpuacct:/\n8:pids:/\n0::/\n", ONE);
        assert_eq!(found.each("memory")[0], PathBuf::from("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(found.each("pids"), [PathBuf::from("/sys/fs/cgroup/pids/")]);
        assert_eq!(found.one(), Vec::<PathBuf>::new());
        assert_eq!(found.each("blkio"), Vec::<PathBuf>::new());
    }

    #[test]
    fn groups_of_daemons_that_live_are_left_alone() {
        assert!(!is_orphan(&format!("cotenant-{}-7", std::process::id())));
        assert!(!is_orphan(&format!("cotenant-probe-{}", std::process::id())));
        assert!(is_orphan("cotenant-4194999-0"));
        assert!(!is_orphan("cotenant-") && !is_orphan("user.slice"));
    }

    #[test]
    fn nonsense_is_nowhere() {
        assert_eq!(candidates("", "").one(), Vec::<PathBuf>::new());
        assert_eq!(candidates("0:\n::\n0::/x", "a - b\n - cgroup2").one(), Vec::<PathBuf>::new());
    }
}
