//! The floor: what no configuration lets an agent run.

use super::part::{Arg, Part};
use super::place::Place;
use super::walk::Walk;
use super::writers::{self, Target};
use super::{Surroundings, Verdict};

/// A refusal of the floor.
struct Floor {
    rule: &'static str,
    why: String,
    next: String,
}

fn floor(rule: &'static str, why: impl Into<String>, next: impl Into<String>) -> Floor {
    Floor { rule, why: why.into(), next: next.into() }
}

/// The first part that the floor refuses.
pub(super) fn check(walk: &Walk, around: &Surroundings<'_>) -> Option<Verdict> {
    if let Some(name) = &walk.bomb {
        let why = format!("`{name}` starts itself again and again");
        let bomb = floor("fork bomb", why, "Call the function from outside itself.");
        return Some(refusal(name.clone(), bomb));
    }
    walk.parts.iter().find_map(|part| Some(refusal(part.shown.clone(), part_floor(part, around)?)))
}

fn refusal(part: String, floor: Floor) -> Verdict {
    Verdict::Deny { part, rule: format!("floor: {}", floor.rule), why: floor.why, next: floor.next }
}

fn part_floor(part: &Part, around: &Surroundings<'_>) -> Option<Floor> {
    let program = part.program().filter(|_| !part.is_function);
    program.and_then(|program| by_name(program, part)).or_else(|| {
        let targets = writers::targets(part);
        targets.iter().find_map(|target| by_target(part, target, around))
    })
}

/// Programs that are refused by name, or by name and a word.
fn by_name(program: &str, part: &Part) -> Option<Floor> {
    let own = "Say what is needed; a human can do it outside.";
    match program {
        "sudo" | "su" | "doas" | "pkexec" | "run0" | "sudoedit" => Some(floor(
            "no other user",
            format!("`{program}` would act as another user"),
            "Run the command without it; what needs more rights is a human's to do.",
        )),
        "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "parted" | "wipefs" | "mkswap" | "blkdiscard" => {
            Some(floor("no disks", format!("`{program}` changes disks"), own))
        }
        _ if program == "mkfs" || program.starts_with("mkfs.") => {
            Some(floor("no disks", format!("`{program}` makes a file system"), own))
        }
        "shutdown" | "reboot" | "halt" | "poweroff" => {
            Some(floor("no shutdown", format!("`{program}` ends the machine"), own))
        }
        "init" | "telinit" if part.has(&["0", "6"]) => Some(floor("no shutdown", "it ends the machine", own)),
        "systemctl" | "loginctl" if part.has(&["poweroff", "reboot", "halt", "kexec", "suspend", "hibernate"]) => {
            Some(floor("no shutdown", "it ends the machine", own))
        }
        "kill" => kills_all(part.rest()).then(|| {
            let next = "Name the process: `kill PID`, or `stop_command` for a job of your own.";
            floor("not every process", "`kill` with -1 signals every process", next)
        }),
        "dd" => part.rest().iter().find_map(|arg| arg.text().strip_prefix("of=")).and_then(|file| {
            let raw = super::place::normal(file);
            let device = raw.starts_with("/dev/") && file.starts_with('/') && !is_stream(&raw);
            device.then(|| floor("no disks", format!("`dd` would write {file}"), own))
        }),
        "git" => super::git::writes_global(part).then(|| {
            floor(
                "no settings of the whole machine",
                "`git config --global` and `--system` write outside the workspace",
                "Give the setting to one call: `git -c NAME=VALUE …`, or names by GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL.",
            )
        }),
        _ => None,
    }
}

fn is_stream(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/zero" | "/dev/full" | "/dev/tty")
        || path.starts_with("/dev/fd/")
        || path.starts_with("/dev/shm/")
}

/// Whether `kill` is told the process -1; a first word alone is a signal where a process follows.
fn kills_all(rest: &[Arg]) -> bool {
    let words: Vec<&str> = rest.iter().map(Arg::text).collect();
    match words.as_slice() {
        ["-1"] => true,
        [_, later @ ..] => later.contains(&"-1"),
        [] => false,
    }
}

/// A file that may not be written, or a tree that may not be deleted.
fn by_target(part: &Part, target: &Target<'_>, around: &Surroundings<'_>) -> Option<Floor> {
    if let Some((name, true)) = target.arg.unset.as_ref().filter(|_| target.whole_tree) {
        let rest = target.arg.word.raw.trim_matches('"');
        return Some(floor(
            "nothing below a variable that may be empty",
            format!("nothing here sets `${name}`; where it is empty, `{rest}` is below `/`"),
            format!("Write the path itself, or `${{{name}:?}}` for `${name}`."),
        ));
    }
    let text = target.arg.known.as_deref()?;
    let (path, pattern) = split_pattern(text, target.arg.globbed);
    let place = around.place(part.cwd.as_deref(), path);
    match place {
        Place::Device(path) => {
            Some(floor("no disks", format!("{path} is a device"), "Write to a file of the workspace."))
        }
        Place::Root if target.whole_tree && !pattern => Some(floor(
            "not the whole workspace",
            "it would delete or change the workspace itself",
            "Name the files and directories in it that are meant.",
        )),
        Place::Above(path) => Some(match target.whole_tree {
            true => floor(
                "nothing that holds the workspace",
                format!("it would delete or change {path} and everything in it"),
                "Name the files and directories of the workspace that are meant.",
            ),
            false => outside(&path),
        }),
        Place::Outside(path) => Some(outside(&path)),
        Place::Inside(path) if around.is_protected(&path) => Some(floor(
            "no protected paths",
            format!("{path} is protected"),
            if path.components().any(|name| name.eq_ignore_ascii_case(b".git")) {
                "Let git itself change its files, by its own commands."
            } else {
                "A human can change it, or except it in `cotenant.toml`."
            },
        )),
        Place::Root | Place::Inside(_) | Place::Free | Place::Unknown => None,
    }
}

fn outside(path: &str) -> Floor {
    floor(
        "nothing outside",
        format!("{path} is outside the workspace"),
        "Write inside the workspace, or below $TMPDIR; a cache can be listed in `[commands] caches`.",
    )
}

/// The directory in which a pattern of file names picks, and whether it is one.
fn split_pattern(text: &str, globbed: bool) -> (&str, bool) {
    let first = text.find(['*', '?', '[']).filter(|_| globbed);
    let Some(first) = first else { return (text, false) };
    match text[..first].rfind('/') {
        Some(0) => ("/", true),
        Some(slash) => (&text[..slash], true),
        None => (".", true),
    }
}
