//! `mcp`, `daemon`, `stop`, `status`: the process side of a workspace.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use cotenant_daemon::{Asking, Homes, Kind, Options, Place, Starter, bridge, connect};
use cotenant_model::{Durability, Profile, Refusal, ToolSet};
use cotenant_tools::host::Hello;
use serde_json::{Map, Value};

use crate::exit::Exit;
use crate::out;

/// A daemon that nobody needs ends after this long.
const IDLE: Duration = Duration::from_secs(600);

/// The sub-commands.
pub(crate) fn commands() -> [Command; 3] {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    [
        Command::new("mcp")
            .about("Serve the workspace to one agent over standard input and output (MCP)")
            .arg(
                text("profile", "PROFILE", "careful, trusting or readonly")
                    .value_parser(["careful", "trusting", "readonly"]),
            )
            .arg(text(
                "tools",
                "SETS",
                "Tool sets, separated by commas: core,team,history,organise,plan,exec",
            ))
            .arg(text("durability", "MODE", "full, batch or fast").value_parser(["full", "batch", "fast"]))
            .arg(text("agent", "NAME", "The agent's name; by default the client's, with a number"))
            .arg(text("task", "TEXT", "What the agent works on, for the others to read"))
            .arg(Arg::new("plan").long("plan").action(ArgAction::SetTrue).help("Start in plan mode"))
            .arg(
                Arg::new("structured")
                    .long("structured")
                    .action(ArgAction::SetTrue)
                    .help("Add structuredContent, for programs"),
            ),
        Command::new("daemon").about("Run the daemon in the foreground").hide(true),
        Command::new("doctor")
            .about("What this machine can enforce, grade by grade")
            .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print as JSON"))
            .arg(
                Arg::new("relink")
                    .long("relink")
                    .value_name("OLD")
                    .value_parser(clap::value_parser!(std::path::PathBuf))
                    .help("Take over the history of the workspace that was at OLD and was copied here"),
            ),
    ]
}

/// `mcp`: a bridge between the client's pipes and the daemon.
pub(crate) fn mcp(root: &Path, matches: &ArgMatches) -> Exit {
    let hello = match hello(matches) {
        Ok(hello) => hello,
        Err(why) => return out::usage(&why),
    };
    let place = match place(root) {
        Ok(place) => place,
        Err(refusal) => return out::refusal(&refusal, false),
    };
    let pipes =
        (std::io::stdin().as_fd().try_clone_to_owned(), std::io::stdout().as_fd().try_clone_to_owned());
    let (Ok(input), Ok(output)) = pipes else { return out::usage("standard input or output is closed") };
    match bridge::run(&place, &Starter::default(), &hello, input, output) {
        bridge::End::Client => Exit::Done,
        bridge::End::Daemon => Exit::Refused,
    }
}

fn place(root: &Path) -> Result<Place, Refusal> {
    Place::of(root, &Homes::of_user()?)
}

fn hello(matches: &ArgMatches) -> Result<Hello, String> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let sets = text("tools").map(|list| {
        let set = |word: &str| {
            ToolSet::parse(word.trim()).ok_or_else(|| format!("--tools: there is no tool set {word:?}"))
        };
        list.split(',').map(set).collect::<Result<Vec<_>, _>>()
    });
    Ok(Hello {
        human: false,
        agent: text("agent"),
        task: text("task"),
        profile: text("profile").as_deref().and_then(Profile::parse),
        durability: text("durability").as_deref().and_then(Durability::parse),
        tools: sets.transpose()?,
        structured: matches.get_flag("structured"),
        plan: matches.get_flag("plan"),
        number: None,
        pid: None,
    })
}

/// `daemon`: what `mcp` and the others start on demand.
pub(crate) fn daemon(root: &Path) -> Exit {
    let homes = match Homes::of_user() {
        Ok(homes) => homes,
        Err(refusal) => return out::refusal(&refusal, false),
    };
    match cotenant_daemon::run(root, &Options { idle: IDLE, homes }, cotenant_daemon::desk::open) {
        Ok(()) => Exit::Done,
        Err(refusal) => out::refusal(&refusal, false),
    }
}

/// `doctor`: exit status 3 where cotenant's own tools (G4) cannot keep their whole promise here.
pub(crate) fn doctor(root: &Path, matches: &ArgMatches) -> Exit {
    let as_json = matches.get_flag("json");
    let report = Homes::of_user().and_then(|homes| {
        if let Some(old) = matches.get_one::<std::path::PathBuf>("relink") {
            Place::relink(root, old, &homes)?;
        }
        cotenant_daemon::doctor::report(root, &homes)
    });
    let report = match report {
        Ok(report) => report,
        Err(refusal) => return out::refusal(&refusal, as_json),
    };
    if as_json {
        out::json(&report);
    } else {
        out::line(&out::safe(&lines(&report)));
    }
    if report["grades"]["G4"] == Value::Bool(true) { Exit::Done } else { Exit::NotAvailable }
}

/// The daemon that runs, if one does.
fn running(root: &Path) -> Result<Option<cotenant_daemon::Client>, Refusal> {
    let asking = Asking { kind: Kind::Admin, hello: Hello::default(), any_build: true };
    connect(&place(root)?, &asking)
}

/// `stop`: returns when the daemon has ended.
pub(crate) fn stop(root: &Path) -> Exit {
    match running(root) {
        Err(refusal) => out::refusal(&refusal, false),
        Ok(None) => {
            out::line("no daemon runs");
            Exit::Done
        }
        Ok(Some(mut client)) => match client.ask("stop", Map::new()) {
            Ok(_) => {
                client.wait_end();
                out::line("stopped");
                Exit::Done
            }
            Err(refusal) => out::refusal(&refusal, false),
        },
    }
}

/// `status`: of the daemon that runs; exit status 1 where none does.
pub(crate) fn status(root: &Path, matches: &ArgMatches) -> Exit {
    let as_json = matches.get_flag("json");
    let client = match running(root) {
        Ok(client) => client,
        Err(refusal) => return out::refusal(&refusal, as_json),
    };
    let Some(mut client) = client else {
        if as_json {
            out::json(&serde_json::json!({"running": false, "watcher": {"ready": false}}));
        } else {
            out::usage("no daemon runs for this workspace; any command or agent starts one");
        }
        return Exit::Refused;
    };
    if matches.get_flag("pid") {
        out::line(&client.pid.to_string());
        return Exit::Done;
    }
    match client.ask("status", Map::new()) {
        Ok(value) if as_json => {
            out::json(&value);
            Exit::Done
        }
        Ok(value) => {
            out::line(&out::safe(&lines(&value)));
            Exit::Done
        }
        Err(refusal) => out::refusal(&refusal, as_json),
    }
}

/// `name=value` lines; lists one entry a line below.
fn lines(value: &Value) -> String {
    let mut text = String::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Array(list) if list.iter().any(Value::is_object) => {
                text.push_str(&format!("{name}:\n"));
                for entry in list {
                    let fields: Vec<String> = entry
                        .as_object()
                        .into_iter()
                        .flatten()
                        .filter(|(_, value)| !value.is_null())
                        .map(|(name, value)| format!("{name}={}", plain(value)))
                        .collect();
                    text.push_str(&format!("  {}\n", fields.join(" ")));
                }
            }
            Value::Null => {}
            value => text.push_str(&format!("{name}={}\n", plain(value))),
        }
    }
    text.trim_end().to_owned()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
