//! `serve`: keeps the workspace served in the foreground and says how to connect each client.

use std::path::Path;

use clap::Command;
use serde_json::{Map, Value};

use crate::desk::Desk;
use crate::exit::Exit;
use crate::out;

/// The sub-command.
pub(crate) fn command() -> Command {
    Command::new("serve").about("Serve the workspace to agents, and say how to connect each client")
}

/// Serves until the daemon ends or the process is interrupted.
pub(crate) fn run(root: &Path) -> Exit {
    let served = Desk::open(root).and_then(|mut desk| {
        let http = desk.ask("http", Map::new())?;
        let status = desk.plain("status")?;
        Ok((desk, http, status))
    });
    let (desk, http, status) = match served {
        Ok(served) => served,
        Err(refusal) => return out::refusal(&refusal, false),
    };
    out::line(&greeting(&http, &status));
    // The connection keeps the door open; it ends with the daemon.
    desk.wait_end();
    out::line("the daemon has ended");
    Exit::Done
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn greeting(http: &Value, status: &Value) -> String {
    let root = text(status, "root");
    let exe = std::env::current_exe()
        .map(|exe| exe.display().to_string())
        .unwrap_or_else(|_| "cotenant".to_owned());
    let profile = text(status, "profile");
    let asks = match profile {
        "trusting" => "changes that can be undone land without asking",
        "readonly" => "every change is refused",
        _ => {
            "new files land; every change to an existing file waits for your yes: run `cotenant review` in another terminal"
        }
    };
    let bearer = text(http, "token");
    let bearer = if bearer.is_empty() {
        "with a bearer token of [http] tokens in cotenant.toml".to_owned()
    } else {
        format!("with the header  Authorization: Bearer {bearer}")
    };
    format!(
        "serving {root}\n\
         profile {profile}: {asks}\n\
         \n\
         Claude Code   claude mcp add cotenant -- {exe} mcp --root {root}\n\
         Codex         codex mcp add cotenant -- {exe} mcp --root {root}\n\
         Gemini CLI    gemini mcp add cotenant {exe} mcp -- --root {root}\n\
         any other     command {exe}, arguments mcp --root {root}\n\
         over HTTP     {url}  {bearer}\n\
         \n\
         This stays in the foreground; Ctrl-C ends it. Agents connected over `cotenant mcp` are served either way.",
        url = text(http, "url"),
    )
}
