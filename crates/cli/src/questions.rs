//! `pending`, `approve`, `deny` and a plain `review`, line by line.

use std::io::{BufRead, IsTerminal};

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value, json};

use crate::desk::Desk;
use crate::exit::Exit;
use crate::out;

/// The sub-commands.
pub(crate) fn commands() -> [Command; 4] {
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print as JSON");
    let id = || Arg::new("id").required(true).value_name("ID").help("The question, such as a21");
    let digest = || Arg::new("digest").long("digest").value_name("D").help("The digest of what you saw");
    [
        Command::new("pending").about("List the changes that wait for your answer").arg(json()),
        Command::new("approve")
            .about("Approve a change: what was shown lands, or nothing")
            .arg(id())
            .arg(digest())
            .arg(json()),
        Command::new("deny")
            .about("Deny a change and tell the agent why")
            .arg(id())
            .arg(Arg::new("reason").long("reason").value_name("TEXT").default_value(""))
            .arg(digest())
            .arg(json()),
        Command::new("review")
            .about("Answer changes one by one as they come; agents' calls wait while this is open")
            .arg(json()),
    ]
}

/// Runs one of them.
pub(crate) fn run(desk: &mut Desk, name: &str, matches: &ArgMatches) -> Exit {
    let as_json = matches.get_flag("json");
    let done = match name {
        "approve" => approve(desk, matches),
        "deny" => deny(desk, matches),
        "review" if !as_json => return review(desk),
        _ => desk.plain("pending"),
    };
    match done {
        Err(refusal) => out::refusal(&refusal, as_json),
        Ok(value) if as_json => {
            out::json(&value);
            Exit::Done
        }
        Ok(value) => {
            out::line(&summary(name, &value));
            Exit::Done
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn summary(name: &str, value: &Value) -> String {
    match name {
        "approve" => match text(value, "job") {
            "" if value.get("done").is_some() => format!("{} approved: done", text(value, "id")),
            "" => format!("{} approved: landed as {}", text(value, "id"), text(value, "change")),
            job => format!("{} approved: runs as {job}", text(value, "id")),
        },
        "deny" => format!("{} denied", text(value, "id")),
        _ => {
            let list = value.get("pending").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let lines: Vec<String> = list.iter().map(one_line).collect();
            if lines.is_empty() { "nothing waits".to_owned() } else { lines.join("\n") }
        }
    }
}

/// A question on one line.
fn one_line(question: &Value) -> String {
    let paths: Vec<&str> = question
        .get("paths")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    out::safe(&format!(
        "{} {} agent={} {} digest={} age_s={}",
        text(question, "id"),
        text(question, "tool"),
        text(question, "agent"),
        paths.join(" "),
        text(question, "digest"),
        question.get("age_s").and_then(Value::as_u64).unwrap_or(0)
    ))
}

type Asked = Result<Value, cotenant_model::Refusal>;

fn find(desk: &mut Desk, id: &str) -> Result<Option<Value>, cotenant_model::Refusal> {
    let value = desk.plain("pending")?;
    let list = value.get("pending").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(list.into_iter().find(|question| text(question, "id") == id))
}

/// On a terminal the change is shown first and its digest is what is approved; elsewhere the digest must be given.
fn approve(desk: &mut Desk, matches: &ArgMatches) -> Asked {
    let id = matches.get_one::<String>("id").map(String::as_str).unwrap_or_default();
    let mut digest = matches.get_one::<String>("digest").cloned();
    if digest.is_none()
        && std::io::stdin().is_terminal()
        && let Some(question) = find(desk, id)?
    {
        show(&question);
        if answer("approve? [y/N] ").as_deref() == Some("y") {
            digest = Some(text(&question, "digest").to_owned());
        }
    }
    desk.ask("approve", object(json!({"id": id, "digest": digest.unwrap_or_default()})))
}

fn deny(desk: &mut Desk, matches: &ArgMatches) -> Asked {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    desk.ask("deny", object(json!({"id": given("id"), "reason": given("reason"), "digest": given("digest")})))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn show(question: &Value) {
    let task = text(question, "task");
    let task = if task.is_empty() { String::new() } else { format!(" ({task})") };
    out::line(&out::safe(&format!("\n{}{task}", one_line(question))));
    let (hook, why) = (text(question, "hook"), text(question, "why"));
    if !hook.is_empty() {
        out::line(&out::safe(&format!("asked by {hook}: {}", why.replace(['\n', '\r'], " "))));
    }
    out::line(&out::safe(text(question, "diff")));
}

/// A line from the human, trimmed; `None` at the end of input.
fn answer(prompt: &str) -> Option<String> {
    out::prompt(prompt);
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}

/// Questions one by one until the end of input or `q`. While it runs a reviewer is there.
fn review(desk: &mut Desk) -> Exit {
    let mut skipped: Vec<String> = Vec::new();
    let mut value = match desk.plain("review") {
        Ok(value) => value,
        Err(refusal) => return out::refusal(&refusal, false),
    };
    loop {
        let list = value.get("pending").and_then(Value::as_array).cloned().unwrap_or_default();
        let known: Vec<String> = list.iter().map(|question| text(question, "id").to_owned()).collect();
        let Some(question) =
            list.iter().find(|question| !skipped.iter().any(|id| id == text(question, "id")))
        else {
            if !std::io::stdin().is_terminal() {
                // Nobody will answer what comes later.
                out::line("nothing waits");
                return Exit::Done;
            }
            if skipped.is_empty() && value.get("said").is_none() {
                out::line("nothing waits; questions are shown as they come (end with Ctrl-D or Ctrl-C)");
            }
            value = match desk.ask("wait", object(json!({"known": known}))) {
                Ok(mut next) => {
                    next["said"] = true.into();
                    next
                }
                Err(refusal) => return out::refusal(&refusal, false),
            };
            continue;
        };
        show(question);
        if decide(desk, question, &mut skipped) != Some(true) {
            return Exit::Done;
        }
        value = match desk.plain("pending") {
            Ok(value) => value,
            Err(refusal) => return out::refusal(&refusal, false),
        };
    }
}

/// One answer; `None` at the end of input, `Some(false)` to quit.
fn decide(desk: &mut Desk, question: &Value, skipped: &mut Vec<String>) -> Option<bool> {
    let id = text(question, "id");
    let word = answer("[a]pprove, [d]eny, [s]kip, [q]uit: ")?;
    let done = match word.to_lowercase().as_str() {
        "a" | "approve" | "y" | "yes" => {
            desk.ask("approve", object(json!({"id": id, "digest": text(question, "digest")})))
        }
        "d" | "deny" | "n" | "no" => {
            let reason = answer("reason: ")?;
            desk.ask("deny", object(json!({"id": id, "reason": reason, "digest": text(question, "digest")})))
        }
        "q" | "quit" => return Some(false),
        "s" | "skip" => {
            skipped.push(id.to_owned());
            return Some(true);
        }
        _ => return Some(true),
    };
    match done {
        Ok(value) if value.get("change").is_some() => out::line(&summary("approve", &value)),
        Ok(value) => out::line(&summary("deny", &value)),
        Err(refusal) => {
            out::refusal(&refusal, false);
        }
    }
    Some(true)
}
