//! Hooks: command lines of `cotenant.toml` that are asked before an agent's call runs, and shown its answer after.
//!
//! They speak the JSON of Claude Code's hooks. What cannot be asked, or answers nonsense, counts as a no: a hook is there
//! to keep something from happening. Hooks make things stricter; an `allow` lifts nothing that cotenant itself asks
//! or refuses.

mod after;
mod before;
mod builtin;
mod dialect;
mod input;
pub(crate) mod matcher;
mod scripts;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cotenant_engine::Workspace;
use cotenant_model::{Code, FolderId, Hook, Refusal, Settings};
use cotenant_tools::gate::{Asked, Gate, Passed};
use cotenant_tools::host::Answer;
use cotenant_tools::registry;
use cotenant_tools::tool::Tool;
use regex::Regex;
use serde_json::{Value, json};

pub(crate) use self::scripts::scripts;
use crate::spawn::{Said, Script};

/// Milliseconds that all hooks of one call have together: it must be answered within 50 s, and do something, too.
const TOGETHER_MS: u64 = 30_000;

/// Bytes of a hook's reason that are passed on.
const REASON: usize = 500;

/// Bytes of a command line that the journal keeps.
const COMMAND: usize = 300;

/// Tools whose answer may be any other tool's: what is looked at there is looked at here.
const ANY_ANSWER: &[&str] = &["retry", "read_more"];

/// The hooks of a workspace.
pub(crate) struct Hooks {
    builtin: Vec<builtin::Rule>,
    before: Vec<One>,
    after: Vec<One>,
    by_tool: HashMap<&'static str, Fitting>,
}

/// A configured hook.
struct One {
    /// Its place in `cotenant.toml`, from 1: `pre_tool_call[1]`.
    name: String,
    event: Event,
    hook: Hook,
}

/// What concerns one tool, by index.
#[derive(Default)]
struct Fitting {
    builtin: Vec<usize>,
    before: Vec<usize>,
    after: Vec<usize>,
    takes_ms: (u64, u64),
}

/// The moment in a call at which a hook is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Before,
    After,
}

impl Event {
    /// Claude Code's word.
    fn name(self) -> &'static str {
        match self {
            Event::Before => "PreToolUse",
            Event::After => "PostToolUse",
        }
    }
}

/// What became of asking a hook.
struct Heard {
    said: Result<Said, String>,
    ms: u64,
}

impl Hooks {
    /// The hooks of the settings, and the rules of our own; `None` where there are neither.
    pub(crate) fn new(settings: &Settings) -> Result<Option<Hooks>, Refusal> {
        let own = builtin::rules(settings).map_err(|why| {
            Refusal::new(Code::BadInput, format!("cotenant.toml: {why}.")).next("cotenant config check")
        })?;
        Hooks::with(own, settings)
    }

    fn with(builtin: Vec<builtin::Rule>, settings: &Settings) -> Result<Option<Hooks>, Refusal> {
        let (before, before_fits) = named(Event::Before, "pre_tool_call", &settings.hooks.pre_tool_call)?;
        let (after, after_fits) =
            named(Event::After, "post_tool_response", &settings.hooks.post_tool_response)?;
        if builtin.is_empty() && before.is_empty() && after.is_empty() {
            return Ok(None);
        }
        let mut hooks = Hooks { builtin, before, after, by_tool: HashMap::new() };
        hooks.by_tool = registry::TOOLS
            .iter()
            .map(|tool| (tool.name, hooks.fitting(tool, &before_fits, &after_fits)))
            .collect();
        Ok(Some(hooks))
    }

    fn fitting(&self, tool: &Tool, before: &[Option<Regex>], after: &[Option<Regex>]) -> Fitting {
        let of = |fits: &[Option<Regex>], all: bool| -> Vec<usize> {
            let fit =
                |fits: &Option<Regex>| all || fits.as_ref().is_none_or(|fits| matcher::fits(fits, tool.name));
            fits.iter().enumerate().filter(|(_, fits)| fit(fits)).map(|(index, _)| index).collect()
        };
        let concerns = |rule: &builtin::Rule| rule.tools.contains(&tool.name);
        let builtin = (0..self.builtin.len()).filter(|index| concerns(&self.builtin[*index])).collect();
        let (before, after) = (of(before, tool.name == "retry"), of(after, ANY_ANSWER.contains(&tool.name)));
        let sum = |hooks: &[One], fitting: &[usize]| {
            fitting
                .iter()
                .map(|index| hooks[*index].hook.timeout_s.saturating_mul(1000))
                .fold(0, u64::saturating_add)
        };
        let takes_ms = shares(sum(&self.before, &before), sum(&self.after, &after));
        Fitting { builtin, before, after, takes_ms }
    }

    /// Asks one hook, and waits for its answer until `deadline` at most.
    fn ask(&self, ws: &Workspace, one: &One, input: &Value, deadline: Instant) -> Heard {
        let began = Instant::now();
        let limit = Duration::from_secs(one.hook.timeout_s).min(deadline.saturating_duration_since(began));
        let script = Script {
            command: &one.hook.command,
            cwd: ws.tree().host_path(FolderId::ROOT),
            input: input.to_string().as_bytes(),
            limit,
        }
        .run()
        .map_err(|error| format!("it could not be started: {error}"));
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Heard { said: script, ms }
    }

    /// What a hook reads about a call.
    fn about(&self, ws: &Workspace, event: Event, asked: &Asked<'_>, shown: &Value) -> Value {
        let session = asked.session.to_string();
        let who = ws.coord().session(asked.session).map(|who| (who.agent.clone(), who.task.clone()));
        let (agent, task) = who.unzip();
        json!({
            "session_id": session,
            "cwd": ws.tree().host_path(FolderId::ROOT).display().to_string(),
            "hook_event_name": event.name(),
            "tool_name": asked.tool.name,
            "tool_input": shown,
            "cotenant": {
                "agent": agent.as_deref(),
                "task": task.flatten().as_deref(),
                "session": session,
                "tool": asked.tool.name,
                "also": matcher::also(asked.tool.name),
            },
        })
    }
}

/// Notes in the journal what a hook decided.
fn note(ws: &Workspace, asked: &Asked<'_>, one: &One, decision: &str, reason: &str, ms: u64) {
    let agent = ws.coord().session(asked.session).map(|who| who.agent.clone());
    let body = json!({
        "event": one.event.name(),
        "hook": one.name,
        "command": cut(&one.hook.command, COMMAND),
        "session": asked.session.to_string(),
        "agent": agent.as_deref(),
        "tool": asked.tool.name,
        "decision": decision,
        "reason": cut(reason, REASON),
        "ms": ms,
    });
    ws.journal("hook", body.to_string().as_bytes());
}

impl Gate for Hooks {
    fn takes_ms(&self, tool: &Tool) -> (u64, u64) {
        let Some(fitting) = self.by_tool.get(tool.name) else { return (0, 0) };
        let (before, after) = fitting.takes_ms;
        // A rule of our own takes no time worth counting, but must be asked.
        (before.max(u64::from(!fitting.builtin.is_empty())), after)
    }

    fn before(&self, ws: &Workspace, asked: &Asked<'_>) -> Result<Passed, Refusal> {
        self.judge(ws, asked)
    }

    fn after(&self, ws: &Workspace, asked: &Asked<'_>, answer: &mut Answer) -> Result<(), Refusal> {
        self.look_at(ws, asked, answer)
    }
}

/// Hooks by their names, with what they fit.
fn named(event: Event, list: &str, hooks: &[Hook]) -> Result<(Vec<One>, Vec<Option<Regex>>), Refusal> {
    let one = |(index, hook): (usize, &Hook)| {
        let fits = hook.matcher.as_deref().map(matcher::compiled).transpose().map_err(|error| {
            Refusal::new(Code::BadInput, format!("[hooks] {list}: {error}.")).next("cotenant config check")
        })?;
        Ok((One { name: format!("{list}[{}]", index + 1), event, hook: hook.clone() }, fits))
    };
    let all: Vec<_> = hooks.iter().enumerate().map(one).collect::<Result<_, Refusal>>()?;
    Ok(all.into_iter().unzip())
}

/// What hooks before and after a call get of [`TOGETHER_MS`], when they would take so much: each side at least half
/// of it, and what the other leaves.
fn shares(before: u64, after: u64) -> (u64, u64) {
    let half = TOGETHER_MS / 2;
    let after = after.min(half.max(TOGETHER_MS.saturating_sub(before)));
    (before.min(TOGETHER_MS - after), after)
}

/// A text up to so many bytes.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// What a hook said on standard error, as far as it is passed on.
fn stderr(said: &Said) -> String {
    let text = String::from_utf8_lossy(&said.stderr);
    cut(text.trim(), REASON).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_share_half_a_minute() {
        for (before, after, shared) in [
            (0, 0, (0, 0)),
            (10_000, 0, (10_000, 0)),
            (30_000, 0, (30_000, 0)),
            (90_000, 0, (30_000, 0)),
            (0, 90_000, (0, 30_000)),
            (10_000, 10_000, (10_000, 10_000)),
            (30_000, 10_000, (20_000, 10_000)),
            (5_000, 30_000, (5_000, 25_000)),
            (30_000, 30_000, (15_000, 15_000)),
            (u64::MAX, u64::MAX, (15_000, 15_000)),
        ] {
            assert_eq!(shares(before, after), shared, "{before} {after}");
        }
    }

    #[test]
    fn a_tool_takes_the_time_of_the_hooks_that_fit_it() {
        let hook = |matcher: Option<&str>, timeout_s| Hook {
            matcher: matcher.map(str::to_owned),
            command: "true".to_owned(),
            timeout_s,
            fail_open: false,
        };
        let mut settings = Settings::default();
        settings.hooks.pre_tool_call = vec![hook(Some("Edit|Write"), 3), hook(None, 2)];
        settings.hooks.post_tool_response = vec![hook(Some("Read"), 7)];
        let hooks = Hooks::new(&settings).unwrap().unwrap();
        for (tool, takes_ms) in [
            ("edit_file", (5_000, 0)),
            ("read_file", (2_000, 7_000)),
            ("whoami", (2_000, 0)),
            // They may hold, or repeat, anything.
            ("read_more", (2_000, 7_000)),
            ("retry", (5_000, 7_000)),
        ] {
            assert_eq!(hooks.takes_ms(registry::find(tool).unwrap()), takes_ms, "{tool}");
        }
    }
}
