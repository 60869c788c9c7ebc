//! What this machine can enforce for a workspace, grade by grade. A grade that is missing is shown, never imitated.

use std::fs;
use std::path::Path;

use cotenant_ledger::Medium;
use cotenant_model::{FolderId, Refusal};
use cotenant_shell::sandbox::{Grade, Machine, Surroundings};
use cotenant_tree::Tree;
use serde_json::{Value, json};

use crate::{Homes, Place, config, sys};

/// One thing that was looked at.
struct Check {
    /// The grade it belongs to, the strongest first.
    grade: &'static str,
    /// What was looked at.
    what: &'static str,
    /// Whether it is there.
    ok: bool,
    /// What was found.
    found: String,
}

impl Check {
    fn new(grade: &'static str, what: &'static str, ok: bool, found: impl Into<String>) -> Check {
        Check { grade, what, ok, found: found.into() }
    }
}

/// The report: `checks` [{`grade`, `what`, `ok`, `found`}], `grades` {grade: available}, `strays` (files with our
/// prefix that no intent names: reported, never removed), `moved_from` (where the root was when its state began; null
/// where it is still there).
pub fn report(root: &Path, homes: &Homes) -> Result<Value, Refusal> {
    let place = Place::of(root, homes)?;
    let settings = config::load(&place.root)?;
    let tree = cotenant_engine::open_tree(&place.root, &settings)?;
    let mut checks = own_tools(&tree);
    let state = settings.state_dir.clone().unwrap_or_else(|| place.state.clone());
    checks.push(state_folder(&state));
    checks.extend(commands(&state));
    checks.extend(watching());
    let strays: Vec<String> = tree.strays().iter().map(|at| tree.folders().show(at)).collect();
    let list: Vec<Value> = checks
        .iter()
        .map(|check| json!({"grade": check.grade, "what": check.what, "ok": check.ok, "found": check.found}))
        .collect();
    let have = |grade: &str| checks.iter().filter(|check| check.grade == grade).all(|check| check.ok);
    Ok(json!({
        "root": tree.host_path(FolderId::ROOT).display().to_string(),
        "moved_from": place.moved_from.map(|path| path.display().to_string()),
        "kernel": kernel(),
        "grades": {"G4": have("G4"), "G3": have("G3"), "G2": have("G2"), "G1": have("G1")},
        "checks": list,
        "strays": strays,
    }))
}

fn kernel() -> String {
    read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// G4: cotenant's own tools. The root was opened by `openat2`, or there would be no tree.
fn own_tools(tree: &Tree) -> Vec<Check> {
    let mut checks = vec![Check::new("G4", "confined opens (openat2)", true, "in use")];
    let probe = tree.probe(FolderId::ROOT);
    let yes = |ok: bool| if ok { "there" } else { "missing" };
    checks.push(Check::new(
        "G4",
        "unnamed temporary files (O_TMPFILE)",
        probe.unnamed_files,
        yes(probe.unnamed_files),
    ));
    checks.push(Check::new(
        "G4",
        "kernel leases against writers in between (F_SETLEASE)",
        probe.leases,
        if probe.leases { "there" } else { "missing: the displaced file is checked after the swap instead" },
    ));
    checks
}

fn state_folder(state: &Path) -> Check {
    let (ok, found) = match Medium::of(state) {
        Ok(Medium::Disk) => (true, "on a disk".to_owned()),
        Ok(Medium::Volatile) => (true, "in memory: whatever the settings say, durability is fast".to_owned()),
        Err(error) => (false, error.to_string()),
    };
    Check::new("G4", "state folder", ok, found)
}

/// G3 and G2: what shell commands can be run under; tried out, with nothing to run.
fn commands(state: &Path) -> Vec<Check> {
    let mut checks = kernel_parts();
    let scratch = state.join(format!("doctor-{}", std::process::id()));
    let around = Surroundings {
        scratch: scratch.clone(),
        hidden: vec![state.to_owned()],
        environment: std::env::vars_os().collect(),
        user_namespaces: true,
    };
    match Machine::probe(&around) {
        Ok(machine) => {
            let staged = machine.staged();
            let tier = machine.direct_tier();
            let found = staged.as_ref().map_or_else(Clone::clone, |()| "in use".to_owned());
            checks.push(Check::new("G3", "commands on a copy", staged.is_ok(), found));
            let direct = tier.grade() >= Grade::G2;
            checks.push(Check::new("G2", "commands in the workspace", direct, tier.to_string()));
            checks.extend(machine.report().into_iter().map(|part| {
                let ok = part.state.is_ok();
                Check::new("sandbox", part.name, ok, part.state.unwrap_or_else(|why| why))
            }));
        }
        Err(error) => checks.push(Check::new("G3", "commands on a copy", false, error.to_string())),
    }
    // Nothing of it is needed any more; what cannot be removed is the next one's to remove.
    let _ = fs::remove_dir_all(scratch);
    checks
}

/// What the kernel has for commands.
fn kernel_parts() -> Vec<Check> {
    let spaces =
        read("/proc/sys/user/max_user_namespaces").and_then(|most| most.parse::<u64>().ok()).unwrap_or(0);
    let overlay =
        read("/proc/filesystems").is_some_and(|list| list.lines().any(|line| line.ends_with("overlay")));
    let abi = sys::landlock_abi();
    let filters = read("/proc/sys/kernel/seccomp/actions_avail").is_some();
    vec![
        Check::new("G3", "user namespaces", spaces > 0, format!("at most {spaces}")),
        Check::new("G3", "overlayfs", overlay, if overlay { "there" } else { "not in /proc/filesystems" }),
        Check::new(
            "G2",
            "Landlock",
            abi.is_some(),
            abi.map_or("missing".to_owned(), |abi| format!("ABI {abi}")),
        ),
        Check::new("G2", "seccomp filters", filters, if filters { "there" } else { "missing" }),
    ]
}

/// G1: foreign writes seen.
fn watching() -> Vec<Check> {
    let watches =
        read("/proc/sys/fs/inotify/max_user_watches").and_then(|most| most.parse::<u64>().ok()).unwrap_or(0);
    let capable = read("/proc/self/status").is_some_and(|status| has_sys_admin(&status));
    vec![
        Check::new("G1", "inotify", watches > 0, format!("{watches} watches")),
        Check::new(
            "G1",
            "fanotify with the writer's process",
            capable,
            if capable {
                "CAP_SYS_ADMIN held"
            } else {
                "needs CAP_SYS_ADMIN: a writer is not proved without it"
            },
        ),
    ]
}

/// Bit 21 of the effective capabilities in `/proc/PID/status`.
fn has_sys_admin(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> 21 & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_is_read_from_its_bit() {
        assert!(has_sys_admin("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(!has_sys_admin("CapEff:\t0000000000000000\n"));
        assert!(!has_sys_admin("CapInh:\t000001ffffffffff\n"));
    }
}
