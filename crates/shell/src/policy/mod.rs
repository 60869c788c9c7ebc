//! Whether a command may run: its parts, the rules of the workspace, and the floor that nothing lifts.
//!
//! [`judge`] reads a command line and runs nothing. What it cannot read is never automatic; what it can read is taken
//! apart into every command in it, through wrappers and substitutions, and each is tried against the floor, the rules of
//! `[commands]`, and the tables of what provably changes nothing. None of this is a boundary: the kernel is. It decides
//! only whether a human is asked before the command runs, after it, or not at all.

mod builtin;
mod floor;
mod git;
mod lex;
mod part;
mod place;
mod rules;
mod safe;
mod script;
mod shown;
mod test;
mod walk;
mod word;
mod wrap;
mod writers;

use cotenant_model::{PathClass, RelPath};

pub use rules::Rules;
pub use shown::{ShownFile, ShownLines};

use part::{Part, State};
use walk::Walk;

/// Commands in a line over which it is always asked about.
pub const MAX_PARTS: usize = 50;

/// Bytes of a command line over which it is always asked about.
pub const MAX_BYTES: usize = 10_000;

/// Bytes of a command line over which it is not read at all.
const UNREAD_BYTES: usize = 200_000;

/// Where a command would run. All paths are absolute host paths but `cwd`.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The workspace's root.
    pub root: &'a str,
    /// The working directory, relative to the root.
    pub cwd: &'a RelPath,
    /// The home directory that the command sees as `$HOME`.
    pub home: Option<&'a str>,
    /// Directories outside that commands may write: the listed caches, `$TMPDIR`. `/tmp` is theirs anyway.
    pub writable: &'a [String],
    /// The class of a path of the workspace.
    pub class: &'a dyn Fn(&RelPath) -> PathClass,
}

/// What a command line is, and may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether it may run.
    pub verdict: Verdict,
    /// Every command in it, in order, those that others start behind them; the whole line where it cannot be read. As
    /// written: control characters are escaped by whoever shows them.
    pub parts: Vec<String>,
    /// What it does with git.
    pub git: GitUse,
    /// Files of which it shows lines and no more, if it exits with 0: their reading counts.
    pub shows: Vec<ShownFile>,
    /// Some of what it does cannot be seen in its text: variables, substitutions, text from elsewhere that is run.
    pub unseen: bool,
}

/// Whether a command line may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every part provably changes nothing.
    ReadOnly,
    /// It may run where its effects are seen before they land; otherwise it is asked about first.
    Ordinary,
    /// A rule allows every part that is not read-only.
    Allowed,
    /// A human is asked before it runs.
    Ask {
        /// Why, each a clause.
        why: Vec<String>,
    },
    /// It does not run.
    Deny {
        /// The part it is about.
        part: String,
        /// The rule: `commands.deny[3]`, or `floor: …`.
        rule: String,
        /// Why.
        why: String,
        /// What to do instead; may be empty.
        next: String,
    },
}

/// What a command line does with git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitUse {
    /// Nothing.
    None,
    /// It reads a repository.
    Reads,
    /// It writes `.git`, or may.
    Writes,
}

/// Judges a command line. Total: any text has an answer, in time that grows with its length alone.
pub fn judge(command: &str, rules: &Rules, around: &Surroundings<'_>) -> Judgement {
    let mut why = suspicions(command);
    let mut walk = Walk::default();
    let mut state = State {
        cwd: around.cwd.to_str().map(|cwd| place::normal(&format!("{}/{cwd}", around.root))),
        home: around.home.map(place::normal),
        ..State::default()
    };
    if command.len() > UNREAD_BYTES || command.contains('\0') {
        return unread(command, why);
    }
    let read = walk.script(command, &mut state);
    // The floor and the rules hold for what could be read, whatever else is wrong.
    let said = rules.judge(&walk.parts);
    if let Some(deny) = floor::check(&walk, around).or_else(|| said.deny.map(denied)) {
        return judgement(deny, &walk, around);
    }
    if let Err(reason) = read {
        why.push(format!("it cannot be read: {reason}"));
        return unread(command, why);
    }
    if walk.parts.len() > MAX_PARTS {
        why.push(format!("it has {} commands, more than {MAX_PARTS}", walk.parts.len()));
    }
    why.extend(said.ask);
    for part in &walk.parts {
        if git::leads_outside(part, around) {
            why.push(format!("`{}` uses a repository that may be outside the workspace", part.shown));
        }
        if let Some(path) = safe::secret_read(part, around) {
            why.push(format!("`{}` reads {path}, which is protected", part.shown));
        }
        if let Some(name) = deletes_unknown(part) {
            why.push(format!("`{}` deletes what `${name}` names, and nothing here sets it", part.shown));
        }
    }
    why.dedup();
    let verdict = match why {
        why if !why.is_empty() => Verdict::Ask { why },
        _ => automatic(&walk, &said.allowed, around),
    };
    judgement(verdict, &walk, around)
}

/// What a line is where nothing speaks against it.
fn automatic(walk: &Walk, allowed: &[bool], around: &Surroundings<'_>) -> Verdict {
    if walk.unseen {
        return Verdict::Ordinary;
    }
    let read_only: Vec<bool> = walk.parts.iter().map(|part| safe::is_read_only(part, around)).collect();
    let lifted = |(read_only, allowed): (&bool, &bool)| *read_only || *allowed;
    if read_only.iter().all(|read_only| *read_only) {
        Verdict::ReadOnly
    } else if read_only.iter().zip(allowed).all(lifted) {
        Verdict::Allowed
    } else {
        Verdict::Ordinary
    }
}

fn judgement(verdict: Verdict, walk: &Walk, around: &Surroundings<'_>) -> Judgement {
    let shows = if verdict == Verdict::ReadOnly { shown::files(walk, around) } else { Vec::new() };
    Judgement {
        verdict,
        parts: walk.parts.iter().map(|part| part.shown.clone()).filter(|shown| !shown.is_empty()).collect(),
        git: walk.parts.iter().map(git::usage).max().unwrap_or(GitUse::None),
        shows,
        unseen: walk.unseen || walk.parts.iter().any(Part::is_opaque),
    }
}

/// A line that was not read to its end: it may do anything.
fn unread(command: &str, why: Vec<String>) -> Judgement {
    let names_git = command.split(|ch: char| !ch.is_ascii_alphanumeric()).any(|word| word == "git");
    Judgement {
        verdict: Verdict::Ask { why },
        parts: vec![command.to_owned()],
        git: if names_git { GitUse::Writes } else { GitUse::None },
        shows: Vec::new(),
        unseen: true,
    }
}

fn denied((part, rule, reason): (String, String, String)) -> Verdict {
    let why = if reason.is_empty() { format!("{rule} denies it") } else { reason };
    Verdict::Deny { part, rule, why, next: String::new() }
}

/// What makes a line one that is always asked about, before it is read.
fn suspicions(command: &str) -> Vec<String> {
    let mut why = Vec::new();
    if command.len() > MAX_BYTES {
        why.push(format!("it is {} bytes long, more than {MAX_BYTES}", command.len()));
    }
    if command.contains('\0') {
        why.push("it has a NUL byte".to_owned());
    }
    if command.contains('\r') {
        why.push("it has a carriage return, which some readers take for an end of line".to_owned());
    }
    if let Some(ch) = command.chars().find(|ch| is_invisible(*ch)) {
        why.push(format!("it has a character that nobody sees (U+{:04X})", ch as u32));
    }
    why
}

/// Characters that are not shown, or change the order in which others are.
fn is_invisible(ch: char) -> bool {
    let control = ch.is_control() && !matches!(ch, '\t' | '\n' | '\r' | '\0');
    let format = matches!(ch,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}');
    control || format
}

/// A tree that is deleted by the name of a variable alone, which nothing in the line sets.
fn deletes_unknown(part: &Part) -> Option<&str> {
    let targets = writers::targets(part).into_iter().filter(|target| target.whole_tree);
    let mut unset = targets.filter_map(|target| target.arg.unset.as_ref());
    unset.next().map(|(name, _)| name.as_str())
}
