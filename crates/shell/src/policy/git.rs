//! Git: its options before the sub-command, which sub-commands only read, and where its repository lies.

use super::part::{Arg, Kind, Part};
use super::place::Place;
use super::{GitUse, Surroundings};

/// A call of git, taken apart.
pub(super) struct Call<'p> {
    /// The sub-command.
    pub(super) verb: Option<&'p Arg>,
    /// What follows it.
    pub(super) rest: &'p [Arg],
    /// Directories that `-C`, `--git-dir` and their like name.
    places: Vec<(&'p str, bool)>,
    /// It has an option before the sub-command that is not one of pager and colours.
    pub(super) bent: bool,
}

/// Takes a call apart; `None` where it is not git.
pub(super) fn call(part: &Part) -> Option<Call<'_>> {
    part.program().filter(|name| *name == "git" && !part.is_function)?;
    let rest = part.rest();
    let (mut at, mut places, mut bent) = (0, Vec::new(), false);
    while let Some(arg) = rest.get(at).filter(|arg| arg.word.start().starts_with('-')) {
        let text = arg.text();
        let value = rest.get(at + 1).map_or(("", false), |arg| (arg.text(), arg.known.is_some()));
        match text.split_once('=') {
            Some(("--git-dir" | "--work-tree" | "--exec-path" | "--namespace", path)) => {
                places.push((path, true));
                bent = true;
            }
            _ if matches!(text, "-C" | "--git-dir" | "--work-tree") => {
                places.push(value);
                bent |= text != "-C";
                at += 1;
            }
            _ if matches!(text, "-c" | "--namespace" | "--config-env" | "--super-prefix") => {
                bent = true;
                at += 1;
            }
            _ => {
                bent |= !matches!(
                    text,
                    "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--version"
                )
            }
        }
        if arg.known.is_none() {
            // `--git-dir=$x`
            places.push((arg.word.start(), false));
        }
        at += 1;
    }
    Some(Call { verb: rest.get(at), rest: rest.get(at + 1..).unwrap_or_default(), places, bent })
}

/// Whether the repository of a call lies, or may lie, outside the workspace.
pub(super) fn leads_outside(part: &Part, around: &Surroundings<'_>) -> bool {
    let Some(call) = call(part) else { return false };
    let outside = |path: &str| {
        let place = around.place(part.cwd.as_deref(), path);
        !matches!(place, Place::Root | Place::Inside(_) | Place::Free)
    };
    let by_variable = |(name, value): &(String, Option<String>)| {
        let directs =
            ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"];
        directs.contains(&name.as_str()) && value.as_deref().is_none_or(outside)
    };
    let by_directory = part.cwd.as_deref().is_none_or(outside);
    let named = |(path, known): &(&str, bool)| !known || outside(path);
    let first = call.places.first().is_some_and(|(path, _)| path.starts_with('/'));
    call.places.iter().any(named)
        || part.assigns.iter().any(by_variable)
        || (by_directory && !first && needs_repository(&call))
}

/// Calls that look at no repository.
fn needs_repository(call: &Call<'_>) -> bool {
    call.verb.is_some_and(|verb| !matches!(verb.text(), "help" | "version" | "clone" | "init"))
}

/// What a part does with git.
pub(super) fn usage(part: &Part) -> GitUse {
    if part.kind == Kind::Wrapper {
        return GitUse::None;
    }
    match call(part) {
        None => GitUse::None,
        Some(_) if part.more => GitUse::Writes,
        Some(call) => {
            if call.verb.is_none_or(|verb| reads(verb.text(), call.rest)) {
                GitUse::Reads
            } else {
                GitUse::Writes
            }
        }
    }
}

/// `git config --global NAME VALUE` and its like.
pub(super) fn writes_global(part: &Part) -> bool {
    let Some(call) = call(part).filter(|call| call.verb.is_some_and(|verb| verb.text() == "config")) else {
        return false;
    };
    call.rest.iter().any(|arg| matches!(arg.text(), "--global" | "--system")) && !reads_config(call.rest)
}

/// Whether `git config` only shows.
fn reads_config(rest: &[Arg]) -> bool {
    const SHOWS: &[&str] = &[
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--list",
        "-l",
        "--get-color",
        "--get-colorbool",
    ];
    let options = rest.iter().filter(|arg| arg.text().starts_with('-'));
    let operands: Vec<&str> = rest.iter().map(Arg::text).filter(|text| !text.starts_with('-')).collect();
    let changes = options.clone().any(|arg| {
        let text = arg.text();
        ["--unset", "--add", "--replace", "--rename", "--remove", "--edit", "-e"]
            .iter()
            .any(|word| text.starts_with(word))
    });
    !changes
        && (options.clone().any(|arg| SHOWS.contains(&arg.text()))
            || matches!(operands.first(), Some(&("get" | "list")))
            || (operands.len() == 1 && !matches!(operands[0], "edit" | "set" | "unset")))
}

/// Whether a sub-command leaves the repository as it is (but for its caches).
pub(super) fn reads(verb: &str, rest: &[Arg]) -> bool {
    let operands = || rest.iter().map(Arg::text).filter(|text| !text.starts_with('-') || text.is_empty());
    let first = operands().next();
    let has = |words: &[&str]| rest.iter().any(|arg| words.contains(&arg.text()));
    match verb {
        "status" | "log" | "diff" | "show" | "rev-parse" | "ls-files" | "ls-tree" | "cat-file" | "blame"
        | "annotate" | "grep" | "shortlog" | "describe" | "rev-list" | "merge-base" | "name-rev"
        | "for-each-ref" | "show-ref" | "count-objects" | "var" | "diff-tree" | "diff-index"
        | "diff-files" | "whatchanged" | "cherry" | "check-ignore" | "check-attr" | "check-ref-format"
        | "version" | "help" | "range-diff" | "show-branch" | "ls-remote" | "archive" | "fsck"
        | "verify-pack" | "verify-commit" | "verify-tag" | "format-patch" | "--version" | "hash-object"
        | "merge-tree" | "patch-id" | "get-tar-commit-id" | "stripspace" | "column" | "credential" => {
            !(verb == "hash-object" && has(&["-w"]))
        }
        "branch" | "tag" => lists(rest),
        "remote" => matches!(first, None | Some("get-url" | "show")),
        "config" => reads_config(rest),
        "reflog" => matches!(first, None | Some("show" | "list" | "exists" | "HEAD")),
        "stash" => matches!(first, Some("list" | "show")),
        "worktree" | "notes" | "bundle" => {
            matches!(first, Some("list" | "verify" | "show")) || (first.is_none() && verb == "notes")
        }
        "submodule" => matches!(first, None | Some("status" | "summary")),
        "bisect" => matches!(first, Some("log" | "view" | "visualize")),
        "apply" => has(&["--stat", "--numstat", "--summary", "--check"]) && !has(&["--apply"]),
        "symbolic-ref" => operands().count() < 2 && !has(&["-d", "--delete"]),
        "lfs" => matches!(first, Some("ls-files" | "status" | "env")),
        _ => false,
    }
}

/// Whether `git branch` or `git tag` only lists: each option is one that lists, and no operand is a new name.
fn lists(rest: &[Arg]) -> bool {
    // Those after which operands are patterns or commits.
    const LISTS: &[&str] =
        &["-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
    const SHOWS: &[&str] = &[
        "-a",
        "--all",
        "-r",
        "--remotes",
        "-v",
        "-vv",
        "--verbose",
        "-av",
        "-avv",
        "-rv",
        "-q",
        "--quiet",
        "-i",
        "--ignore-case",
        "--show-current",
        "-n",
        "--no-column",
        "--column",
        "--no-color",
        "--color",
        "--no-abbrev",
    ];
    const VALUED: &[&str] = &[
        "--sort=",
        "--format=",
        "--color=",
        "--column=",
        "--abbrev=",
        "--contains=",
        "--merged=",
        "--no-merged=",
        "--points-at=",
    ];
    let number = |text: &str| {
        text.strip_prefix("-n").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let shows = |text: &str| {
        LISTS.contains(&text)
            || SHOWS.contains(&text)
            || number(text)
            || VALUED.iter().any(|start| text.starts_with(start))
    };
    let option = |arg: &&Arg| arg.text().starts_with('-');
    let operands = rest.iter().filter(|arg| !option(arg)).count();
    let lists = rest.iter().any(|arg| LISTS.contains(&arg.text()));
    rest.iter().filter(option).all(|arg| shows(arg.text()))
        && rest.iter().all(|arg| arg.known.is_some())
        && (lists || operands == 0)
}
