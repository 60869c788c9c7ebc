//! `stats`, `journal`, `config check`.

use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value, json};

use crate::desk::Desk;
use crate::exit::Exit;
use crate::out;

/// The sub-commands.
pub(crate) fn commands() -> [Command; 3] {
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print as JSON");
    [
        Command::new("stats")
            .about("Calls, refusals by code, and the edit error rate, by session and tool")
            .arg(json()),
        Command::new("journal")
            .about("Print the journal of calls, decisions and changes, one JSON line each")
            .arg(json())
            .subcommand(
                Command::new("verify")
                    .about("Check the stored journal, or an exported one, as a chain")
                    .arg(Arg::new("file").value_name("FILE"))
                    .arg(json()),
            ),
        Command::new("config").about("The workspace's settings").subcommand_required(true).subcommand(
            Command::new("check").about("Check cotenant.toml; exit status 1 where it has errors").arg(json()),
        ),
    ]
}

/// Runs `stats` or `journal`.
pub(crate) fn run(desk: &mut Desk, name: &str, matches: &ArgMatches) -> Exit {
    let done = match (name, matches.subcommand()) {
        ("stats", _) => desk.plain("stats").map(|value| show_stats(&value, matches.get_flag("json"))),
        (_, Some(("verify", _))) => desk.plain("journal_verify").map(|value| show_verdict(&value)),
        _ => journal(desk),
    };
    done.unwrap_or_else(|refusal| out::refusal(&refusal, matches.get_flag("json")))
}

fn journal(desk: &mut Desk) -> Result<Exit, cotenant_model::Refusal> {
    let mut after = 0;
    loop {
        let mut args = Map::new();
        args.insert("after".to_owned(), after.into());
        let page = desk.ask("journal", args)?;
        for entry in page.get("entries").and_then(Value::as_array).into_iter().flatten() {
            out::json(entry);
        }
        match page.get("last").and_then(Value::as_u64) {
            Some(last) if page.get("more") == Some(&json!(true)) => after = last,
            _ => return Ok(Exit::Done),
        }
    }
}

/// `journal verify FILE`: needs no daemon.
pub(crate) fn verify_file(file: &Path) -> Exit {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return out::usage(&format!("{}: {error}", file.display())),
    };
    match cotenant_daemon::desk::verify_lines(&text) {
        Ok(value) => show_verdict(&value),
        Err(refusal) => out::refusal(&refusal, false),
    }
}

/// `config check`: the settings as the daemon would read them.
pub(crate) fn config_check(root: &Path, matches: &ArgMatches) -> Exit {
    let as_json = matches.subcommand_matches("check").is_some_and(|check| check.get_flag("json"));
    match cotenant_daemon::config::load(root) {
        Ok(_) if as_json => {
            out::json(&json!({"ok": true}));
            Exit::Done
        }
        Ok(_) => {
            out::line("cotenant.toml is right");
            Exit::Done
        }
        Err(refusal) => out::refusal(&refusal, as_json),
    }
}

fn show_verdict(value: &Value) -> Exit {
    let number = |name: &str| value.get(name).and_then(Value::as_u64);
    match number("broken_at") {
        None => {
            let head = value.get("head").and_then(Value::as_str).unwrap_or("none");
            out::line(&format!("whole: {} entries, head {head}", number("entries").unwrap_or(0)));
            Exit::Done
        }
        Some(entry) => {
            out::line(&format!("broken at entry {entry}"));
            Exit::Refused
        }
    }
}

fn show_stats(value: &Value, as_json: bool) -> Exit {
    if as_json {
        out::json(value);
        return Exit::Done;
    }
    let rate = |value: &Value, name: &str| value.get(name).and_then(Value::as_f64).unwrap_or(0.0) * 100.0;
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
    let entries = |name: &str| value.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let list = |name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    for (tool, counts) in entries("tools") {
        out::line(&format!(
            "{tool} calls={} error_rate={:.1}%",
            number(&counts, "calls"),
            rate(&counts, "error_rate")
        ));
    }
    for (code, count) in entries("refusals") {
        out::line(&format!("{code} {count}"));
    }
    for session in list("sessions") {
        out::line(&out::safe(&format!(
            "{} agent={} calls={} edit_error_rate={:.1}%",
            text(&session, "session"),
            text(&session, "agent"),
            number(&session, "calls"),
            rate(&session, "edit_error_rate")
        )));
    }
    for signature in list("signatures") {
        out::line(&out::safe(&format!(
            "signature: {} {} {} in a row, likely {}",
            text(&signature, "agent"),
            number(&signature, "count"),
            text(&signature, "code"),
            text(&signature, "cause")
        )));
    }
    Exit::Done
}
