//! `[hooks]`: in the words of this file, or in those of Claude Code's settings.

use cotenant_model::{Hook, Hooks};

use super::file;
use super::meaning::Checked;
use crate::hooks::matcher;

/// Seconds a hook has where it says nothing else.
const TIMEOUT_S: u64 = 10;

/// Seconds a hook has at most: a call is answered within 50.
const TIMEOUT_MAX_S: u64 = 30;

/// `[hooks]`.
pub(super) fn hooks(given: file::Hooks) -> Checked<Hooks> {
    let all = |list: &str, entries: Vec<file::HookEntry>| {
        let hooks = entries.into_iter().map(|entry| entry_hooks(list, entry)).collect::<Checked<Vec<_>>>()?;
        Ok::<_, String>(hooks.concat())
    };
    Ok(Hooks {
        pre_tool_call: all("pre_tool_call", given.pre_tool_call)?,
        post_tool_response: all("post_tool_response", given.post_tool_response)?,
    })
}

/// The hooks of one entry: itself, or those below its matcher.
fn entry_hooks(list: &str, entry: file::HookEntry) -> Checked<Vec<Hook>> {
    let wrong = |what: String| format!("[hooks] {list}: {what}.");
    // As elsewhere, nothing and `*` are every tool.
    let matcher = entry.matcher.filter(|matcher| !matches!(matcher.as_str(), "" | "*"));
    if let Some(Err(error)) = matcher.as_deref().map(matcher::compiled) {
        return Err(wrong(format!("the matcher {matcher:?} is no regular expression: {error}")));
    }
    let hook = |command: String, timeout_s: Option<u64>, fail_open: Option<bool>| {
        let timeout_s = timeout_s.unwrap_or(TIMEOUT_S);
        if command.trim().is_empty() || command.contains('\0') {
            return Err(wrong("a command is empty, or holds a NUL".to_owned()));
        }
        if !(1..=TIMEOUT_MAX_S).contains(&timeout_s) {
            return Err(wrong(format!("a timeout is {timeout_s}, and must be 1 to {TIMEOUT_MAX_S} seconds")));
        }
        Ok(Hook { matcher: matcher.clone(), command, timeout_s, fail_open: fail_open.unwrap_or(false) })
    };
    match (entry.command, entry.hooks) {
        (Some(command), None) => Ok(vec![hook(command, entry.timeout_s, entry.fail_open)?]),
        (None, Some(below)) if entry.timeout_s.is_none() => {
            let one = |given: file::ClaudeHook| {
                hook(given.command, given.timeout, given.fail_open.or(entry.fail_open))
            };
            below.into_iter().map(one).collect()
        }
        (None, Some(_)) => {
            Err(wrong("timeout_s stands beside hooks; give each of them a timeout".to_owned()))
        }
        (Some(_), Some(_)) => Err(wrong("an entry has a command or hooks, not both".to_owned())),
        (None, None) => Err(wrong("an entry has neither a command nor hooks".to_owned())),
    }
}
