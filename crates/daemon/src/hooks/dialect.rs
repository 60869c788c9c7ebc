//! What a hook's exit status and output mean. Claude Code's form, its older one, and those of Gemini CLI and Cursor.
//!
//! Status 0 without output is no opinion; status 2 is a no, standard error says why; JSON on standard output says more.
//! Everything else is a fault, told as a sentence: a word that is unknown, too, since it may have been meant as a no.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::{REASON, cut, stderr};
use crate::spawn::{Said, ScriptEnd};

/// A compiled expression of `redact`, in bytes.
const PATTERN: usize = 256 * 1024;

/// Bytes of `additionalContext` that the model is shown.
const CONTEXT: usize = 2000;

/// A hook's word about a call, from no opinion to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Decision {
    #[default]
    None,
    Allow,
    Ask,
    Deny,
}

impl Decision {
    pub(super) fn name(self) -> &'static str {
        match self {
            Decision::None => "none",
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

/// What a hook says before a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Opinion {
    pub(super) decision: Decision,
    pub(super) reason: String,
    /// Arguments that it changes.
    pub(super) input: Option<Input>,
    /// For the model.
    pub(super) context: Option<String>,
}

/// Arguments as a hook wants them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    /// All of them.
    Whole(Map<String, Value>),
    /// Those that are named; the others stay.
    Some(Map<String, Value>),
}

/// What a hook says of an answer.
#[derive(Debug, Default)]
pub(super) struct Remark {
    /// The answer is kept back, and why.
    pub(super) blocked: Option<String>,
    /// The text that takes the answer's place.
    pub(super) text: Option<String>,
    /// What is taken out of the text.
    pub(super) redact: Vec<Regex>,
    /// For the model.
    pub(super) context: Option<String>,
}

/// What was said before a call.
pub(super) fn opinion(said: &Said) -> Result<Opinion, String> {
    let Some(json) = heard(said)? else {
        return Ok(match said.end {
            ScriptEnd::Code(2) => {
                Opinion { decision: Decision::Deny, reason: stderr(said), ..Opinion::default() }
            }
            _ => Opinion::default(),
        });
    };
    let inner = object(&json, "hookSpecificOutput")?;
    let mut opinion = Opinion { context: context(&json, inner)?, input: input(inner)?, ..Opinion::default() };
    let words = [
        (inner, "permissionDecision", "permissionDecisionReason"),
        (Some(&json), "permissionDecision", "permissionDecisionReason"),
        (Some(&json), "decision", "reason"),
        (Some(&json), "permission", "agent_message"),
    ];
    for (map, name, reason) in words {
        let Some(map) = map else { continue };
        let decision = text(map, name)?.map(decision).transpose()?.unwrap_or_default();
        // The strictest counts, with its own reason.
        if decision > opinion.decision {
            opinion.decision = decision;
            opinion.reason = text(map, reason)?.unwrap_or_default().to_owned();
        }
    }
    if let Some(reason) = stopped(&json)? {
        opinion.decision = Decision::Deny;
        opinion.reason = reason;
    }
    opinion.reason = cut(&opinion.reason, REASON).to_owned();
    Ok(opinion)
}

/// What was said of an answer.
pub(super) fn remark(said: &Said) -> Result<Remark, String> {
    let Some(json) = heard(said)? else {
        let blocked = (said.end == ScriptEnd::Code(2)).then(|| stderr(said));
        return Ok(Remark { blocked, ..Remark::default() });
    };
    let inner = object(&json, "hookSpecificOutput")?;
    let blocked = match text(&json, "decision")?.map(decision).transpose()?.unwrap_or_default() {
        Decision::Deny => Some(text(&json, "reason")?.unwrap_or_default().to_owned()),
        Decision::Ask => return Err("its decision is ask, and the call has been made".to_owned()),
        Decision::None | Decision::Allow => stopped(&json)?,
    };
    let mut remark = Remark {
        blocked: blocked.map(|reason| cut(&reason, REASON).to_owned()),
        context: context(&json, inner)?,
        ..Remark::default()
    };
    for map in [inner, Some(&json)].into_iter().flatten() {
        for name in ["updatedToolOutput", "updatedMCPToolOutput"] {
            if let Some(value) = map.get(name).filter(|value| !value.is_null()) {
                remark.text = Some(output(value).ok_or_else(|| format!("its {name} is no text"))?);
            }
        }
        for value in list(map, "redact")? {
            remark.redact.push(pattern(value)?);
        }
    }
    Ok(remark)
}

/// The JSON object that a hook said; `None` where it said nothing, or status 2 says all.
fn heard(said: &Said) -> Result<Option<Map<String, Value>>, String> {
    match said.end {
        ScriptEnd::Code(2) => return Ok(None),
        ScriptEnd::Code(0) => {}
        ScriptEnd::Code(127) => return Err("its command was not found".to_owned()),
        ScriptEnd::Code(code) => return Err(format!("it ended with status {code}")),
        ScriptEnd::Signal(signal) => return Err(format!("it was ended by signal {signal}")),
        ScriptEnd::Late => return Err("it did not answer in time".to_owned()),
        ScriptEnd::TooMuch => return Err("it said over 1 MiB".to_owned()),
    }
    let text = said.stdout.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    let json: Map<String, Value> =
        serde_json::from_slice(text).map_err(|_| "its output is no JSON object".to_owned())?;
    if !json.is_empty() && !json.keys().any(|name| KNOWN.contains(&name.as_str())) {
        return Err("its output says nothing that is known".to_owned());
    }
    Ok(Some(json))
}

/// What an output may hold; one that has nothing of these is a slip.
const KNOWN: &[&str] = &[
    "hookSpecificOutput",
    "decision",
    "permissionDecision",
    "permission",
    "continue",
    "suppressOutput",
    "systemMessage",
    "additionalContext",
    "updatedToolOutput",
    "updatedMCPToolOutput",
    "redact",
];

fn decision(word: &str) -> Result<Decision, String> {
    match word {
        "allow" | "approve" => Ok(Decision::Allow),
        "ask" => Ok(Decision::Ask),
        "deny" | "block" => Ok(Decision::Deny),
        "defer" => Ok(Decision::None),
        word => Err(format!("its decision {:?} is none", cut(word, 40))),
    }
}

/// `continue: false`: nothing of it shall happen.
fn stopped(json: &Map<String, Value>) -> Result<Option<String>, String> {
    match json.get("continue") {
        Some(Value::Bool(false)) => Ok(Some(text(json, "stopReason")?.unwrap_or_default().to_owned())),
        None | Some(Value::Bool(true) | Value::Null) => Ok(None),
        Some(_) => Err("its continue is neither true nor false".to_owned()),
    }
}

fn input(inner: Option<&Map<String, Value>>) -> Result<Option<Input>, String> {
    let Some(inner) = inner else { return Ok(None) };
    let whole = object(inner, "updatedInput")?.cloned().map(Input::Whole);
    let some = object(inner, "tool_input")?.cloned().map(Input::Some);
    match (whole, some) {
        (Some(_), Some(_)) => Err("it has both updatedInput and tool_input".to_owned()),
        (whole, some) => Ok(whole.or(some)),
    }
}

fn context(json: &Map<String, Value>, inner: Option<&Map<String, Value>>) -> Result<Option<String>, String> {
    let given = inner.map(|inner| text(inner, "additionalContext")).transpose()?.flatten();
    let given = given.or(text(json, "additionalContext")?);
    Ok(given.map(str::trim).filter(|text| !text.is_empty()).map(|text| cut(text, CONTEXT).to_owned()))
}

/// A text by itself, or in the forms that an answer has in the protocol.
fn output(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(map) => map.get("text").or_else(|| map.get("content")).and_then(output),
        Value::Array(blocks) => {
            let texts: Option<Vec<String>> = blocks.iter().map(output).collect();
            texts.map(|texts| texts.join("\n"))
        }
        _ => None,
    }
}

/// A text that is taken out as it stands, or `{"regex": "…"}`.
fn pattern(value: &Value) -> Result<Regex, String> {
    let (pattern, literal) = match value {
        Value::String(text) => (text.as_str(), true),
        Value::Object(map) => (map.get("regex").and_then(Value::as_str).unwrap_or_default(), false),
        _ => ("", true),
    };
    let source = if literal { regex::escape(pattern) } else { pattern.to_owned() };
    let compiled = RegexBuilder::new(&source).size_limit(PATTERN).build();
    match compiled {
        // What fits nothing at all would be taken out between any two characters.
        Ok(compiled) if !pattern.is_empty() && !compiled.is_match("") => Ok(compiled),
        _ => Err("its redact holds something that is neither a text nor a regular expression".to_owned()),
    }
}

fn list<'a>(map: &'a Map<String, Value>, name: &str) -> Result<&'a [Value], String> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(format!("its {name} is no list")),
    }
}

fn text<'a>(map: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its {name} is no text")),
    }
}

fn object<'a>(map: &'a Map<String, Value>, name: &str) -> Result<Option<&'a Map<String, Value>>, String> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => Err(format!("its {name} is no object")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ended(code: i32, stdout: &str, stderr: &str) -> Said {
        Said { stdout: stdout.into(), stderr: stderr.into(), end: ScriptEnd::Code(code) }
    }

    fn said(json: Value) -> Said {
        ended(0, &json.to_string(), "noise")
    }

    fn decided(json: Value) -> (Decision, String) {
        let opinion = opinion(&said(json)).unwrap();
        (opinion.decision, opinion.reason)
    }

    #[test]
    fn status_and_silence() {
        assert_eq!(opinion(&ended(0, "", "warning")), Ok(Opinion::default()));
        assert_eq!(opinion(&ended(0, " \n\t", "")), Ok(Opinion::default()));
        assert_eq!(opinion(&ended(0, "{}", "")), Ok(Opinion::default()));
        let no = Opinion { decision: Decision::Deny, reason: "because".to_owned(), ..Opinion::default() };
        assert_eq!(opinion(&ended(2, "{\"decision\":\"allow\"}", " because\n")), Ok(no));
        assert_eq!(opinion(&ended(2, "", "")).unwrap().decision, Decision::Deny);
        for code in [1, 3, 126, 127, 255, -1] {
            assert!(opinion(&ended(code, "{\"decision\":\"allow\"}", "")).is_err(), "{code}");
            assert!(remark(&ended(code, "", "")).is_err(), "{code}");
        }
        for end in [ScriptEnd::Signal(9), ScriptEnd::Late, ScriptEnd::TooMuch] {
            let said = Said { end, ..ended(0, "{\"decision\":\"allow\"}", "") };
            assert!(opinion(&said).is_err() && remark(&said).is_err(), "{end:?}");
        }
    }

    #[test]
    fn every_hosts_words_for_yes_no_and_ask() {
        use Decision::{Allow, Ask, Deny, None};
        let inner = |word: &str| json!({"hookSpecificOutput": {"permissionDecision": word, "permissionDecisionReason": "why"}});
        let old = |word: &str| json!({"decision": word, "reason": "why"});
        let cursor = |word: &str| json!({"permission": word, "agent_message": "why"});
        for (json, decision) in [
            (inner("allow"), Allow),
            (inner("ask"), Ask),
            (inner("deny"), Deny),
            (inner("defer"), None),
            (old("approve"), Allow),
            (old("allow"), Allow),
            (old("ask"), Ask),
            (old("block"), Deny),
            (old("deny"), Deny),
            (cursor("deny"), Deny),
            (cursor("ask"), Ask),
            (json!({"permissionDecision": "deny", "permissionDecisionReason": "why"}), Deny),
            (json!({"continue": false, "stopReason": "why", "decision": "allow"}), Deny),
        ] {
            let reason = if decision == None { "" } else { "why" };
            assert_eq!(decided(json.clone()), (decision, reason.to_owned()), "{json}");
        }
        for json in [json!({"decision": null}), json!({"continue": true}), json!({"suppressOutput": true})] {
            assert_eq!(decided(json), (None, String::new()));
        }
    }

    #[test]
    fn the_strictest_of_two_words_counts_with_its_reason() {
        let mut json = json!({"decision": "allow", "reason": "fine",
            "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "never"}});
        assert_eq!(decided(json.clone()), (Decision::Deny, "never".to_owned()));
        json["decision"] = "block".into();
        json["hookSpecificOutput"]["permissionDecision"] = "ask".into();
        assert_eq!(decided(json), (Decision::Deny, "fine".to_owned()));
    }

    #[test]
    fn what_may_have_been_meant_as_a_no_is_a_fault() {
        for stdout in [
            "ok",
            "[]",
            "true",
            "{",
            "{} {}",
            r#"{"descision":"deny"}"#,
            r#"{"decision":"Deny"}"#,
            r#"{"decision":true}"#,
            r#"{"continue":"false"}"#,
            r#"{"hookSpecificOutput":"deny"}"#,
            r#"{"hookSpecificOutput":{"permissionDecision":"no"}}"#,
            r#"{"hookSpecificOutput":{"permissionDecision":["deny"]}}"#,
            r#"{"hookSpecificOutput":{"updatedInput":"x"}}"#,
            r#"{"hookSpecificOutput":{"updatedInput":{},"tool_input":{}}}"#,
            r#"{"hookSpecificOutput":{"additionalContext":1}}"#,
            r#"{"decision":"deny","reason":1}"#,
            "{\"decision\":\"deny\",\"reason\":\"\u{0}\"}",
        ] {
            let said = ended(0, stdout, "");
            assert!(opinion(&said).is_err(), "{stdout}");
        }
        let not_utf8 =
            Said { stdout: b"{\"reason\":\"\xff\",\"decision\":\"deny\"}".to_vec(), ..ended(0, "", "") };
        assert!(opinion(&not_utf8).is_err());
    }

    #[test]
    fn arguments_and_context() {
        let heard = opinion(&said(json!({"hookSpecificOutput": {"updatedInput": {"a": 1}}}))).unwrap();
        assert_eq!(heard.input, Some(Input::Whole(json!({"a": 1}).as_object().unwrap().clone())));
        assert_eq!(heard.decision, Decision::None);
        let heard = opinion(&said(json!({"hookSpecificOutput": {"tool_input": {"a": 1}}}))).unwrap();
        assert_eq!(heard.input, Some(Input::Some(json!({"a": 1}).as_object().unwrap().clone())));
        let heard =
            opinion(&said(json!({"hookSpecificOutput": {"additionalContext": " mind the gap \n"}}))).unwrap();
        assert_eq!(heard.context.as_deref(), Some("mind the gap"));
        let long = "é".repeat(3000);
        let heard =
            opinion(&said(json!({"additionalContext": long, "decision": "deny", "reason": long}))).unwrap();
        assert_eq!((heard.context.unwrap().len(), heard.reason.len()), (CONTEXT, REASON));
    }

    #[test]
    fn remarks_about_an_answer() {
        assert!(remark(&ended(0, "", "")).unwrap().blocked.is_none());
        assert_eq!(remark(&ended(2, "", "why\n")).unwrap().blocked.as_deref(), Some("why"));
        let blocked = |json: Value| remark(&said(json)).unwrap().blocked;
        assert_eq!(blocked(json!({"decision": "block", "reason": "why"})).as_deref(), Some("why"));
        assert_eq!(blocked(json!({"continue": false, "stopReason": "stop"})).as_deref(), Some("stop"));
        assert_eq!(blocked(json!({"decision": "approve"})), None);
        let text = |json: Value| remark(&said(json)).unwrap().text;
        let inner = json!({"hookSpecificOutput": {"updatedMCPToolOutput": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}});
        assert_eq!(text(inner).as_deref(), Some("a\nb"));
        assert_eq!(text(json!({"updatedToolOutput": ""})).as_deref(), Some(""));
        let redact = remark(&said(json!({"redact": ["a.b", {"regex": "[0-9]+"}]}))).unwrap().redact;
        assert!(redact[0].is_match("a.b") && !redact[0].is_match("axb") && redact[1].is_match("7"));
        for json in [
            json!({"decision": "ask"}),
            json!({"decision": "nope"}),
            json!({"updatedToolOutput": 5}),
            json!({"updatedToolOutput": {"image": "x"}}),
            json!({"redact": "a"}),
            json!({"redact": [""]}),
            json!({"redact": [5]}),
            json!({"redact": [{"regex": "("}]}),
            json!({"redact": [{"regex": "a*"}]}),
            json!({"redact": [{"regexp": "a"}]}),
            json!({"redact": [{"regex": "(a{999}){999}"}]}),
        ] {
            assert!(remark(&said(json.clone())).is_err(), "{json}");
        }
    }
}
