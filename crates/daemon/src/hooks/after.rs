//! After a call: hooks look at the answer before the agent does. What one of them took out no later one sees.

use std::time::{Duration, Instant};

use cotenant_engine::Workspace;
use cotenant_model::Refusal;
use cotenant_tools::gate::{Asked, hook_denied};
use cotenant_tools::host::Answer;
use serde_json::{Map, Value, json};

use super::dialect::{Remark, remark};
use super::{Event, Hooks, One, input, note};

/// What stands where something was taken out.
const REDACTED: &str = "[redacted]";

/// Facts that stay where a text was taken out or replaced: ids and digests say nothing of the content.
const PLAIN: &[&str] = &["change", "id"];

impl Hooks {
    /// Shows an answer to the hooks. A refusal takes its place.
    pub(super) fn look_at(
        &self,
        ws: &Workspace,
        asked: &Asked<'_>,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let Some(fitting) = self.by_tool.get(asked.tool.name) else { return Ok(()) };
        let deadline = Instant::now() + Duration::from_millis(fitting.takes_ms.1);
        let shown = Value::from(input::shown(ws, asked.tool, asked.args));
        let mut notices = Vec::new();
        for one in fitting.after.iter().map(|index| &self.after[*index]) {
            let mut about = self.about(ws, Event::After, asked, &shown);
            about["tool_response"] = json!({"text": answer.text, "is_error": answer.is_error});
            let heard = self.ask(ws, one, &about, deadline);
            let noted = |decision: &str, reason: &str| {
                note(ws, asked, one, decision, reason, heard.ms);
            };
            match heard.said.as_ref().map_err(Clone::clone).and_then(remark) {
                Ok(Remark { blocked: Some(reason), .. }) => {
                    noted("block", &reason);
                    return Err(blocked(asked, one, answer, &reason));
                }
                Ok(remark) => {
                    noted(if changed(answer, &remark) { "redact" } else { "none" }, "");
                    notices.extend(remark.context.map(|context| format!("{}: {context}", one.name)));
                }
                Err(why) if one.hook.fail_open => {
                    noted("failed, passed", &why);
                    notices.push(format!(
                        "{}: could not be asked ({why}); the answer passed without it",
                        one.name
                    ));
                }
                Err(why) => {
                    noted("failed", &why);
                    withheld(asked, one, answer, &why)?;
                    break;
                }
            }
        }
        notices.iter().for_each(|notice| answer.notice(notice));
        Ok(())
    }
}

/// Does to an answer what a hook wants; whether that changed anything.
fn changed(answer: &mut Answer, remark: &Remark) -> bool {
    let mut text = remark.text.clone().unwrap_or_else(|| answer.text.clone());
    for pattern in &remark.redact {
        text = pattern.replace_all(&text, regex::NoExpand(REDACTED)).into_owned();
    }
    let unfit = |text: &str| remark.redact.iter().any(|pattern| pattern.is_match(text));
    // What is to be taken out may stand beside the text alone.
    let beside = answer.structured.iter().chain(answer.meta.values()).any(|value| holds(value, &unfit));
    let changed = text != answer.text || beside;
    if changed {
        replace(answer, text);
    }
    changed
}

/// Whether one of the texts in a value, names too, is such a one.
fn holds(value: &Value, such: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => such(text),
        Value::Array(list) => list.iter().any(|value| holds(value, such)),
        Value::Object(map) => map.iter().any(|(name, value)| such(name) || holds(value, such)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Gives an answer another text, and leaves nothing of the first in what goes beside it.
fn replace(answer: &mut Answer, text: String) {
    let facts = plain(answer);
    let code = code(answer).map(str::to_owned);
    answer.meta.retain(|name, _| !name.starts_with("cotenant/"));
    match code {
        Some(code) => {
            answer.meta.insert("cotenant/refusal".to_owned(), json!({"code": code, "facts": facts}))
        }
        None => answer.meta.insert("cotenant/facts".to_owned(), facts.clone().into()),
    };
    if answer.structured.is_some() {
        let mut fields = facts;
        fields.insert("text".to_owned(), text.as_str().into());
        answer.structured = Some(fields.into());
    }
    answer.text = text;
}

/// Keeps an answer back that could not be looked at. That the call was made, and what it changed, is said.
fn withheld(asked: &Asked<'_>, one: &One, answer: &mut Answer, why: &str) -> Result<(), Refusal> {
    let told = format!("The hook {} could not look at this answer ({why}), so it is kept back.", one.name);
    let told = format!("{told} {}", effect(answer));
    if code(answer).is_some() {
        let next =
            "tell the user that a hook of cotenant.toml fails; go on with what needs no answer of this tool";
        return Err(with_facts(hook_denied(&one.name, asked.tool.name, told), answer).next(next));
    }
    let facts = plain(answer);
    let mut words: Vec<String> =
        facts.iter().map(|(name, value)| format!("{name}={}", plain_text(value))).collect();
    words.push("withheld=yes".to_owned());
    replace(answer, words.join(" "));
    answer.notice(&told);
    Ok(())
}

fn blocked(asked: &Asked<'_>, one: &One, answer: &Answer, reason: &str) -> Refusal {
    let why = if reason.is_empty() { String::new() } else { format!(": {reason:?}") };
    let message = format!("The hook {} keeps this answer back{why}. {}", one.name, effect(answer));
    with_facts(hook_denied(&one.name, asked.tool.name, message), answer)
        .next("do what the reason says; do not send the call again, it has been made")
}

fn with_facts(refusal: Refusal, answer: &Answer) -> Refusal {
    plain(answer).into_iter().fold(refusal, |refusal, (name, value)| refusal.fact(name, plain_text(&value)))
}

fn plain_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What became of the call, in a sentence.
fn effect(answer: &Answer) -> String {
    let text = |name: &str| answer.fact(name).and_then(Value::as_str);
    match (text("change"), code(answer), text("id")) {
        (Some(change), _, _) => format!("The call was carried out: {change} stands."),
        (None, Some("APPROVAL_PENDING"), Some(id)) => format!("The call waits for a human, as {id}."),
        (None, Some(code), _) => format!("The call had been refused ({code})."),
        (None, None, _) => "The call was carried out.".to_owned(),
    }
}

/// The code of an answer that is a refusal.
fn code(answer: &Answer) -> Option<&str> {
    answer.meta.get("cotenant/refusal")?.get("code")?.as_str()
}

fn plain(answer: &Answer) -> Map<String, Value> {
    let fact = |name: &&str| {
        Some(((*name).to_owned(), answer.fact(name).filter(|value| value.is_string())?.clone()))
    };
    PLAIN.iter().filter_map(fact).collect()
}
