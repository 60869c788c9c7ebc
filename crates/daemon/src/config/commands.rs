//! `[commands]` and `[exec]`: what commands may do, may use and may write.

use std::path::{Component, Path, PathBuf};

use cotenant_model::{Answer, CommandRule, Commands, ExecLimits};

use super::file;
use super::meaning::Checked;

/// `[commands]`, its rules in the order `deny`, `ask`, `allow`.
pub(super) fn commands(given: file::Commands, root: &Path) -> Checked<Commands> {
    let lists = [(Answer::Deny, given.deny), (Answer::Ask, given.ask), (Answer::Allow, given.allow)];
    let rule = |answer| {
        move |rule: file::CommandRule| CommandRule {
            pattern: rule.pattern,
            matches: rule.fits,
            not_matches: rule.not_match,
            reason: rule.reason.unwrap_or_default(),
            answer,
        }
    };
    let rules: Vec<CommandRule> =
        lists.into_iter().flat_map(|(answer, list)| list.into_iter().map(rule(answer))).collect();
    check_commands(&rules)?;
    Ok(Commands {
        rules,
        network: given.network.unwrap_or(false),
        env: given.env.into_iter().map(variable).collect::<Checked<_>>()?,
        caches: given.caches.into_iter().map(|path| cache(&path, root)).collect::<Checked<_>>()?,
    })
}

/// Every rule says something, and nothing that a command line cannot hold.
fn check_commands(rules: &[CommandRule]) -> Checked<()> {
    for rule in rules {
        let list = match rule.answer {
            Answer::Deny => "deny",
            Answer::Ask => "ask",
            Answer::Allow => "allow",
        };
        let wrong = |what: &str| Err(format!("[commands] {list}: the rule {:?} {what}.", rule.pattern));
        if rule.pattern.trim().is_empty() {
            return wrong("has an empty pattern");
        }
        if rule.pattern.contains(char::is_control) || rule.reason.contains('\0') {
            return wrong("holds a control character");
        }
        let examples = || rule.matches.iter().chain(&rule.not_matches);
        if examples().any(|example| example.trim().is_empty() || example.contains('\0')) {
            return wrong("has an example that is no command");
        }
    }
    cotenant_shell::policy::Rules::new(rules).map(drop).map_err(|why| format!("{why}."))
}

fn variable(name: String) -> Checked<String> {
    let plain = |ch: char| ch.is_ascii_alphanumeric() || ch == '_';
    if name.is_empty() || !name.chars().all(plain) || name.starts_with(|ch: char| ch.is_ascii_digit()) {
        return Err(format!("[commands] env: {name:?} is no name of a variable."));
    }
    Ok(name)
}

/// A directory outside that commands may write. One that holds the workspace, or lies in it, would lift what holds there.
fn cache(given: &str, root: &Path) -> Checked<PathBuf> {
    let wrong = |what: &str| Err(format!("[commands] caches: {given:?} {what}."));
    let path = match given.strip_prefix("~/") {
        None => PathBuf::from(given),
        Some(rest) => match home() {
            Some(home) => home.join(rest.trim_start_matches('/')),
            None => return wrong("lies in a home folder, and HOME names none"),
        },
    };
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() || climbs || given.contains('\0') {
        return wrong("must be an absolute path without .., or begin with ~/");
    }
    // Without doubled and final slashes.
    let path: PathBuf = path.components().collect();
    if root.starts_with(&path) || path.starts_with(root) {
        return wrong("must neither hold the workspace nor lie in it");
    }
    if home().is_some_and(|home| home.starts_with(&path)) {
        return wrong("is the whole home folder, or more");
    }
    Ok(path)
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// `[exec]`.
pub(super) fn exec(given: &file::Exec) -> Checked<ExecLimits> {
    let defaults = ExecLimits::default();
    let at_least_one = |name: &str, value: Option<u64>, default: u64| match value {
        Some(0) => Err(format!("[exec] {name} is 0, and must be at least 1.")),
        value => Ok(value.unwrap_or(default)),
    };
    Ok(ExecLimits {
        memory_mb: at_least_one("memory_mb", given.memory_mb, defaults.memory_mb)?,
        cpu_s: at_least_one("cpu_s", given.cpu_s, defaults.cpu_s)?,
        processes: at_least_one("processes", given.processes, defaults.processes)?,
        disk_mb: at_least_one("disk_mb", given.disk_mb, defaults.disk_mb)?,
    })
}
