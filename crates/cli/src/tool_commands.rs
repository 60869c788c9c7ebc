//! Every tool as a sub-command, made from the registry: required arguments by position, all of them as flags.

use clap::{Arg, ArgAction, ArgMatches, Command};
use cotenant_tools::registry;
use cotenant_tools::tool::{Kind, Param, Tool};
use serde_json::{Map, Value, json};

use crate::desk::Desk;
use crate::exit::Exit;
use crate::out;

/// The sub-commands of all tools.
pub(crate) fn commands() -> impl Iterator<Item = Command> {
    registry::TOOLS.iter().map(|tool| command(tool))
}

fn command(tool: &'static Tool) -> Command {
    let mut command = Command::new(flag(tool.name)).about(tool.title).long_about(tool.about);
    if tool.name == "list_trash" {
        command = command.visible_alias("trash");
    }
    let mut index = 0;
    for param in cotenant_tools::args::accepted(tool) {
        let mut arg = Arg::new(param.name).help(param.about);
        if param.required && param.kind != Kind::Flag {
            index += 1;
            arg = arg.index(index).required(true).allow_hyphen_values(true);
        } else {
            arg = arg.long(flag(param.name));
        }
        command = command.arg(kinded(arg, param));
    }
    if let Some(param) = by_position(tool) {
        let name = flag(param.name);
        let help = format!("The same as --{name}");
        command = command.arg(Arg::new(PLACE).index(index + 1).value_name(name.to_uppercase()).help(help));
    }
    command
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print every field as JSON"))
        .arg(Arg::new("as").long("as").value_name("AGENT").help("The agent's name of a new session"))
}

/// What may be left out, a path or the change to take back, is also taken by position, after what must be given:
/// `list-directory src`, `undo c41`.
const PLACE: &str = "PLACE";

fn by_position(tool: &Tool) -> Option<&'static Param> {
    let change = |param: &&Param| param.name == "change" && takes_back(tool);
    tool.params.iter().find(|param| !param.required && (param.kind == Kind::Path || change(param)))
}

/// The tools by which a human takes something back; what they say themselves is not asked about.
fn takes_back(tool: &Tool) -> bool {
    matches!(tool.name, "undo" | "rewind" | "restore_file")
}

fn kinded(arg: Arg, param: &Param) -> Arg {
    match param.kind {
        Kind::Flag => {
            arg.num_args(0..=1).default_missing_value("true").require_equals(true).value_name("BOOL")
        }
        Kind::Choice(words) => arg.value_parser(words.to_vec()),
        Kind::Number => arg.value_name("N").allow_negative_numbers(true),
        Kind::List => arg.action(ArgAction::Append).value_name("TEXT"),
        Kind::Edits | Kind::Object => arg.value_name("JSON"),
        Kind::Text | Kind::Path | Kind::Command => arg.value_name("TEXT").allow_hyphen_values(true),
    }
}

/// `read_file` is `read-file` on the command line.
fn flag(name: &'static str) -> String {
    name.replace('_', "-")
}

/// The tool that a sub-command stands for.
pub(crate) fn tool(command: &str) -> Option<&'static Tool> {
    registry::find(&command.replace('-', "_"))
}

/// Calls the tool and prints its answer. A text argument of `-` is read from standard input.
pub(crate) fn run(desk: &mut Desk, tool: &'static Tool, matches: &ArgMatches) -> Exit {
    let arguments = match arguments(tool, matches) {
        Ok(arguments) => arguments,
        Err(error) => return out::usage(&format!("standard input: {error}")),
    };
    let mut request = Map::new();
    request.insert("tool".to_owned(), tool.name.into());
    request.insert("args".to_owned(), arguments.into());
    let session = std::env::var("COTENANT_SESSION").ok();
    let agent = matches.get_one::<String>("as");
    let by_human = takes_back(tool) && session.is_none() && agent.is_none();
    request.insert("human".to_owned(), by_human.into());
    if let Some(session) = session {
        request.insert("session".to_owned(), session.into());
    }
    if let Some(agent) = agent {
        request.insert("agent".to_owned(), agent.as_str().into());
    }
    let answer = match desk.ask("tool", request) {
        Ok(answer) => answer,
        Err(refusal) => return out::refusal(&refusal, matches.get_flag("json")),
    };
    if matches.get_flag("json") {
        out::json(answer.get("fields").unwrap_or(&Value::Null));
    } else {
        out::line(answer.get("text").and_then(Value::as_str).unwrap_or_default());
    }
    if answer.get("refused") == Some(&json!(true)) { Exit::Refused } else { Exit::Done }
}

fn arguments(tool: &Tool, matches: &ArgMatches) -> std::io::Result<Map<String, Value>> {
    let mut arguments = Map::new();
    for param in cotenant_tools::args::accepted(tool) {
        let value = match param.kind {
            Kind::List => {
                let list: Vec<&String> = matches.get_many(param.name).into_iter().flatten().collect();
                if list.is_empty() { continue } else { json!(list) }
            }
            _ => match matches.get_one::<String>(param.name) {
                Some(text) if text == "-" && param.kind == Kind::Text => {
                    std::io::read_to_string(std::io::stdin())?.into()
                }
                Some(text) => text.as_str().into(),
                None => continue,
            },
        };
        arguments.insert(param.name.to_owned(), value);
    }
    if let Some(param) = by_position(tool)
        && let Some(given) = matches.get_one::<String>(PLACE)
    {
        arguments.entry(param.name.to_owned()).or_insert_with(|| given.as_str().into());
    }
    Ok(arguments)
}
