//! Before a call: every hook that fits sees it as it would run, and the strictest word counts.

use std::time::{Duration, Instant};

use cotenant_engine::Workspace;
use cotenant_model::Refusal;
use cotenant_tools::args::{Args, with_end_line};
use cotenant_tools::gate::{Asked, AskedBy, Passed, hook_denied};
use serde_json::{Map, Value};

use super::dialect::{Decision, Opinion, opinion};
use super::{Event, Hooks, One, cut, input, note, stderr};

/// So often the arguments of one call may be changed: hooks that undo one another's changes never end.
const REWRITES: usize = 4;

impl Hooks {
    /// Judges a call. A hook that was asked before another one changed the arguments is asked again.
    pub(super) fn judge(&self, ws: &Workspace, asked: &Asked<'_>) -> Result<Passed, Refusal> {
        let Some(fitting) = self.by_tool.get(asked.tool.name) else { return Ok(Passed::default()) };
        let deadline = Instant::now() + Duration::from_millis(fitting.takes_ms.0);
        let mut passed = Passed::default();
        self.own_rules(ws, asked)?;
        let mut due = vec![true; fitting.before.len()];
        let mut rewrites = 0;
        while let Some(at) = due.iter().position(|due| *due) {
            due[at] = false;
            let one = &self.before[fitting.before[at]];
            let args = passed.args.take();
            let now = Asked { args: args.as_ref().unwrap_or(asked.args), ..*asked };
            let shown = input::shown(ws, now.tool, now.args);
            let said = self.one(ws, &now, one, &shown, deadline)?;
            passed.notices.extend(said.context.map(|context| format!("{}: {context}", one.name)));
            if said.decision == Decision::Ask && passed.ask.is_none() {
                passed.ask = Some(may_be_asked(&now, one, &said.reason)?);
            }
            let changed = said.input.and_then(|wanted| input::wanted(now.args, &shown, wanted));
            let Some(changed) = changed else {
                passed.args = args;
                continue;
            };
            rewrites += 1;
            if rewrites > REWRITES {
                return Err(denied(
                    &now,
                    one,
                    "changes the arguments again and again, as another hook does",
                    "",
                ));
            }
            let changed = decoded(&now, one, &changed)?;
            self.own_rules(ws, &Asked { args: &changed, ..*asked })?;
            passed.notices.push(format!(
                "{} changed the arguments of this call{}",
                one.name,
                reason(&said.reason)
            ));
            passed.args = Some(changed);
            due.iter_mut().enumerate().filter(|(other, _)| *other != at).for_each(|(_, due)| *due = true);
        }
        Ok(passed)
    }

    fn own_rules(&self, ws: &Workspace, asked: &Asked<'_>) -> Result<(), Refusal> {
        let fitting = self.by_tool.get(asked.tool.name).into_iter().flat_map(|fitting| &fitting.builtin);
        fitting
            .map(|index| &self.builtin[*index])
            .try_for_each(|rule| (rule.judge)(ws, asked).map_or(Ok(()), Err))
    }

    /// What one hook says. Its no is a refusal, and so is that it could not be asked.
    fn one(
        &self,
        ws: &Workspace,
        asked: &Asked<'_>,
        one: &One,
        shown: &Map<String, Value>,
        deadline: Instant,
    ) -> Result<Opinion, Refusal> {
        let input = self.about(ws, Event::Before, asked, &shown.clone().into());
        let heard = self.ask(ws, one, &input, deadline);
        let said = heard.said.as_ref().map_err(Clone::clone).and_then(opinion);
        let noted = |decision: &str, reason: &str| {
            note(ws, asked, one, decision, reason, heard.ms);
        };
        match said {
            Ok(said) if said.decision == Decision::Deny => {
                noted("deny", &said.reason);
                Err(denied(asked, one, "refuses this call", &said.reason))
            }
            Ok(said) => {
                noted(if said.input.is_some() { "rewrite" } else { said.decision.name() }, &said.reason);
                Ok(said)
            }
            Err(why) if one.hook.fail_open => {
                noted("failed, passed", &why);
                let context = Some(format!("could not be asked ({why}); the call passed without it"));
                Ok(Opinion { context, ..Opinion::default() })
            }
            Err(why) => {
                noted("failed", &why);
                let said = heard.said.as_ref().map(stderr).unwrap_or_default();
                let refusal =
                    denied(asked, one, &format!("could not be asked ({why}), which counts as a no"), "");
                Err(if said.is_empty() { refusal } else { refusal.block(format!("it said: {said:?}")) })
            }
        }
    }
}

/// A question is about a change: where there is none to show, it is a no.
fn may_be_asked(asked: &Asked<'_>, one: &One, reason: &str) -> Result<AskedBy, Refusal> {
    let dry = asked.args.get("dry_run") == Some(&Value::Bool(true));
    if asked.tool.mutates() && !dry {
        return Ok(AskedBy { hook: one.name.clone(), reason: reason.to_owned() });
    }
    let refusal = denied(asked, one, "wants a human asked, which goes for changes only", reason);
    Err(if dry { refusal.next("send the call without dry_run: then a human is asked") } else { refusal })
}

/// The arguments of a hook, by our names. Those that are none are not the model's slip.
fn decoded(asked: &Asked<'_>, one: &One, args: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    let decoded = Args::decode(asked.tool, &with_end_line(asked.tool, args));
    let wrong = |refusal: Refusal| {
        let why = cut(&refusal.message, 200);
        denied(asked, one, &format!("gave it arguments that it cannot have ({why})"), "")
    };
    decoded.map(|args| args.map().clone()).map_err(wrong)
}

fn reason(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason:?}") }
}

fn denied(asked: &Asked<'_>, one: &One, does: &str, why: &str) -> Refusal {
    let message = format!("The hook {} {does}{}. Nothing was done.", one.name, reason(why));
    let next = match why {
        "" => {
            "tell the user that a hook of cotenant.toml stands against this call, and go on with what needs it not"
        }
        _ => "do what the reason says; do not send this call again, nor do the same by another tool",
    };
    hook_denied(&one.name, asked.tool.name, message).next(next)
}
