//! The `cotenant` binary: finds the root, connects to its daemon, and hands each sub-command to its room.

mod connect;
mod desk;
mod exit;
mod out;
mod questions;
mod reports;
mod root;
mod serve;
mod tool_commands;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::desk::Desk;
use crate::exit::Exit;

fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are answers; everything else is a slip. clap writes where each belongs.
            let _ = error.print();
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { Exit::Done } else { Exit::Usage }.into();
        }
    };
    run(&matches).into()
}

/// The whole command line.
fn command() -> Command {
    let root = Arg::new("root")
        .long("root")
        .value_name("DIR")
        .global(true)
        .help("The workspace; by default that of the current directory");
    Command::new("cotenant")
        .about("One workspace, many agents, nothing lost.")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(root)
        .subcommands(connect::commands())
        .subcommand(serve::command())
        .subcommands(questions::commands())
        .subcommands(reports::commands())
        .subcommands([
            Command::new("status")
                .about("What the daemon of the workspace is doing")
                .arg(
                    Arg::new("pid")
                        .long("pid")
                        .action(ArgAction::SetTrue)
                        .help("Print the daemon's process id only"),
                )
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print as JSON")),
            Command::new("stop").about("End the daemon once its calls are answered"),
        ])
        .subcommands(tool_commands::commands())
}

fn run(matches: &ArgMatches) -> Exit {
    let Some((name, own)) = matches.subcommand() else { return out::usage("no command given") };
    let root = match root::find(own.get_one::<String>("root").map(String::as_str)) {
        Ok(root) => root,
        Err(why) => return out::usage(&why),
    };
    match name {
        "mcp" => return connect::mcp(&root, own),
        "daemon" => return connect::daemon(&root),
        "serve" => return serve::run(&root),
        "doctor" => return connect::doctor(&root, own),
        "stop" => return connect::stop(&root),
        "status" => return connect::status(&root, own),
        "config" => return reports::config_check(&root, own),
        "journal" => {
            if let Some(file) =
                own.subcommand_matches("verify").and_then(|verify| verify.get_one::<String>("file"))
            {
                return reports::verify_file(file.as_ref());
            }
        }
        _ => {}
    }
    let mut desk = match Desk::open(&root) {
        Ok(desk) => desk,
        Err(refusal) => return out::refusal(&refusal, false),
    };
    match name {
        "pending" | "approve" | "deny" | "review" => questions::run(&mut desk, name, own),
        "stats" | "journal" => reports::run(&mut desk, name, own),
        _ => match tool_commands::tool(name) {
            Some(tool) => tool_commands::run(&mut desk, tool, own),
            None => out::usage(&format!("there is no command {name}")),
        },
    }
}
