//! From the form of `cotenant.toml` to settings: what the form alone cannot forbid is checked here.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use cotenant_model::{
    Access, AgentRule, Answer, ApprovalRule, ClassRules, Durability, Edits, FolderSpec, GeneratedRule,
    Limits, Profile, Settings, StalePolicy, ToolSet,
};

use super::{commands, file, hooks};

/// The shortest token that is not guessed, in bytes.
const TOKEN_MIN: usize = 8;

/// The longest wait for a reviewer, in seconds: no call answers later than that.
const WAIT_MAX: u64 = 50;

/// The longest time that a command may have, in seconds.
const COMMAND_MAX: u64 = 3600;

/// What was read, or a sentence that says what is wrong.
pub(super) type Checked<T> = Result<T, String>;

/// The settings; the error is a sentence.
pub(super) fn settings(sections: file::Sections, root: &Path) -> Checked<Settings> {
    let defaults = Settings::default();
    let workspace = sections.workspace;
    let folders = folders(workspace.folders, root)?;
    let generated: Vec<GeneratedRule> = workspace.generated.into_iter().map(generated_rule).collect();
    ClassRules::new(&workspace.protected.add, &workspace.protected.except, &generated)
        .map_err(|error| format!("[workspace] has a pattern that is none: {error}."))?;
    let approvals = sections.approvals;
    let approval_wait_s = approvals.wait_s.unwrap_or(defaults.approval_wait_s);
    if approval_wait_s > WAIT_MAX {
        return Err(format!("[approvals] wait_s is {approval_wait_s}, and can be {WAIT_MAX} at most."));
    }
    Ok(Settings {
        state_dir: workspace.state_dir.map(|path| outside(&path, root)).transpose()?,
        limits: limits(&sections.limits)?,
        tools: sections.tools.sets.map_or(defaults.tools, tool_sets),
        edits: edits(&sections.edits),
        durability: sections.durability.mode.map_or(defaults.durability, durability),
        profile: approvals.profile.map_or(defaults.profile, profile),
        approval_wait_s,
        approval_rules: approvals.rules.into_iter().map(approval_rule).collect::<Checked<_>>()?,
        agents: agents(sections.agents, &folders)?,
        commands: commands::commands(sections.commands, root)?,
        hooks: hooks::hooks(sections.hooks)?,
        exec: commands::exec(&sections.exec)?,
        idle_s: sections.daemon.idle_s,
        http_listen: sections.http.listen.map(loopback).transpose()?,
        http_tokens: tokens(sections.http.tokens)?,
        http_origins: sections.http.allowed_origins.into_iter().map(origin).collect::<Checked<_>>()?,
        retention_days: sections.retention.days.unwrap_or(defaults.retention_days),
        retention_megabytes: sections.retention.megabytes.unwrap_or(defaults.retention_megabytes),
        trash_days: sections.retention.trash_days.unwrap_or(defaults.trash_days),
        trash_megabytes: sections.retention.trash_megabytes.unwrap_or(defaults.trash_megabytes),
        folders,
        protected_add: workspace.protected.add,
        protected_except: workspace.protected.except,
        generated,
    })
}

fn folders(given: Vec<file::Folder>, root: &Path) -> Checked<Vec<FolderSpec>> {
    let mut folders: Vec<FolderSpec> = Vec::new();
    for folder in given {
        let name = folder.name;
        let plain = |ch: char| ch.is_ascii_alphanumeric() || ch == '-' || ch == '_';
        let overlay =
            name.strip_prefix('x').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        if name.is_empty() || !name.chars().all(plain) || overlay {
            return Err(format!(
                "[workspace] folders: {name:?} is no name; letters, digits, - and _ make one, and x1 is an overlay's."
            ));
        }
        if folders.iter().any(|known| known.name == name) {
            return Err(format!("[workspace] folders: {name:?} is there twice."));
        }
        folders.push(FolderSpec { name, path: root.join(folder.path), access: access(folder.access) });
    }
    Ok(folders)
}

fn access(given: file::Access) -> Access {
    match given {
        file::Access::Read => Access::Read,
        file::Access::ReadWrite => Access::ReadWrite,
    }
}

fn generated_rule(given: file::Generated) -> GeneratedRule {
    GeneratedRule { paths: given.paths, from: given.from, command: given.command }
}

/// State in the tree would be in reach of every command that runs there.
fn outside(path: &Path, root: &Path) -> Checked<PathBuf> {
    if !path.is_absolute() {
        return Err(format!("[workspace] state_dir is {path:?}, and must be an absolute path."));
    }
    if path.starts_with(root) {
        return Err(format!("[workspace] state_dir is {path:?}, and must lie outside of the workspace."));
    }
    Ok(path.to_owned())
}

fn limits(given: &file::Limits) -> Checked<Limits> {
    let defaults = Limits::default();
    let at_least_one = |name: &str, value: Option<usize>, default: usize| match value {
        Some(0) => Err(format!("[limits] {name} is 0, and must be at least 1.")),
        value => Ok(value.unwrap_or(default)),
    };
    Ok(Limits {
        read_lines: at_least_one("read_lines", given.read_lines, defaults.read_lines)?,
        read_bytes: at_least_one("read_bytes", given.read_bytes, defaults.read_bytes)?,
        answer_bytes: at_least_one("answer_bytes", given.answer_bytes, defaults.answer_bytes)?,
        text_bytes: given.text_bytes.unwrap_or(defaults.text_bytes),
        list: at_least_one("list", given.list, defaults.list)?,
        names: at_least_one("names", given.names, defaults.names)?,
        matches: at_least_one("matches", given.matches, defaults.matches)?,
        context: given.context.unwrap_or(defaults.context),
        regex_bytes: at_least_one("regex_bytes", given.regex_bytes, defaults.regex_bytes)?,
        command_s: command_s(given.command_s.unwrap_or(defaults.command_s))?,
        shown_ok_bytes: at_least_one("shown_ok_bytes", given.shown_ok_bytes, defaults.shown_ok_bytes)?,
        shown_failed_bytes: at_least_one(
            "shown_failed_bytes",
            given.shown_failed_bytes,
            defaults.shown_failed_bytes,
        )?,
    })
}

/// No command runs longer than an hour, whoever asks.
fn command_s(given: u64) -> Checked<u64> {
    match given {
        1..=COMMAND_MAX => Ok(given),
        _ => Err(format!("[limits] command_s is {given}, and must be 1 to {COMMAND_MAX}.")),
    }
}

fn tool_sets(given: Vec<file::Set>) -> Vec<ToolSet> {
    let set = |set: file::Set| match set {
        file::Set::Core => ToolSet::Core,
        file::Set::Team => ToolSet::Team,
        file::Set::History => ToolSet::History,
        file::Set::Organise => ToolSet::Organise,
        file::Set::Plan => ToolSet::Plan,
        file::Set::Exec => ToolSet::Exec,
    };
    given.into_iter().map(set).collect()
}

fn edits(given: &file::Edits) -> Edits {
    let level = |level: &file::Tolerance| match level {
        file::Tolerance::TrailingSpace => "trailing-space",
        file::Tolerance::Punctuation => "punctuation",
        file::Tolerance::Indent => "indent",
    };
    Edits {
        tolerant: given.tolerant.iter().map(|tolerance| level(tolerance).to_owned()).collect(),
        stale: match given.stale {
            Some(file::Stale::Strict) => StalePolicy::Strict,
            Some(file::Stale::Region) | None => StalePolicy::Region,
        },
    }
}

fn durability(given: file::Mode) -> Durability {
    match given {
        file::Mode::Full => Durability::Full,
        file::Mode::Batch => Durability::Batch,
        file::Mode::Fast => Durability::Fast,
    }
}

fn profile(given: file::Profile) -> Profile {
    match given {
        file::Profile::Careful => Profile::Careful,
        file::Profile::Trusting => Profile::Trusting,
        file::Profile::Readonly => Profile::ReadOnly,
    }
}

fn approval_rule(given: file::Rule) -> Checked<ApprovalRule> {
    ClassRules::new(&given.paths, &[], &[])
        .map_err(|error| format!("[approvals] rules has a pattern that is none: {error}."))?;
    let answer = match given.answer {
        file::Answer::Allow => Answer::Allow,
        file::Answer::Ask => Answer::Ask,
        file::Answer::Deny => Answer::Deny,
    };
    Ok(ApprovalRule { tool: given.tool, paths: given.paths, answer })
}

fn agents(
    given: BTreeMap<String, file::Agent>,
    known: &[FolderSpec],
) -> Checked<BTreeMap<String, AgentRule>> {
    let rule = |(name, agent): (String, file::Agent)| {
        let folders = agent.folders.map(|folders| agent_folders(&name, folders, known)).transpose()?;
        let rule =
            AgentRule { folders, profile: agent.profile.map(profile), tools: agent.tools.map(tool_sets) };
        Ok((name, rule))
    };
    given.into_iter().map(rule).collect()
}

/// An agent's folders are among those of the workspace, and are not wider than there.
fn agent_folders(
    agent: &str,
    given: Vec<file::AgentFolder>,
    known: &[FolderSpec],
) -> Checked<BTreeMap<String, Access>> {
    let mut folders = BTreeMap::new();
    for folder in given {
        let access = access(folder.access);
        let whole = match folder.name.as_str() {
            "" => Some(Access::ReadWrite),
            name => known.iter().find(|known| known.name == name).map(|known| known.access),
        };
        match whole {
            None => return Err(format!("[agents.{agent}] folders: there is no folder {:?}.", folder.name)),
            Some(whole) if access > whole => {
                return Err(format!("[agents.{agent}] folders: {:?} is read-only for all.", folder.name));
            }
            Some(_) => folders.insert(folder.name, access),
        };
    }
    Ok(folders)
}

/// HTTP is for this machine.
fn loopback(listen: String) -> Checked<String> {
    let address = listen.replace("localhost:", "127.0.0.1:");
    match address.parse::<SocketAddr>() {
        Ok(parsed) if parsed.ip().is_loopback() => Ok(address),
        _ => Err(format!("[http] listen is {listen:?}, and must be an address such as 127.0.0.1:7777.")),
    }
}

fn tokens(given: Vec<file::Token>) -> Checked<BTreeMap<String, String>> {
    let mut tokens = BTreeMap::new();
    for file::Token { name, token } in given {
        let unfit = token.len() < TOKEN_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic());
        if name.is_empty() || unfit {
            return Err(format!(
                "[http] tokens: the token of {name:?} must have at least {TOKEN_MIN} characters and no spaces, the agent a name."
            ));
        }
        if tokens.insert(token, name.clone()).is_some() {
            return Err(format!("[http] tokens: the token of {name:?} is another agent's, too."));
        }
    }
    Ok(tokens)
}

fn origin(origin: String) -> Checked<String> {
    let rest = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.trim_end_matches('/').contains('/')) {
        return Ok(origin);
    }
    Err(format!("[http] allowed_origins: {origin:?} is none; https://app.example.com is one."))
}
