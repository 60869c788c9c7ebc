//! What policy says of commands: asked before every hook, and again when a command is about to run.

use cotenant_engine::Workspace;
use cotenant_model::{Code, Refusal, RelPath, Settings, WirePath, WsPath};
use cotenant_shell::policy::{self, Judgement, Rules, Surroundings, Verdict};
use serde_json::{Map, Value};

use super::flow::brief;
use crate::args::quoted;

/// The rules that refuse commands whatever a hook says of them.
pub struct Floor {
    rules: Rules,
}

impl Floor {
    /// With the rules of the settings; the error is a sentence about a rule whose example does not hold.
    pub fn new(settings: &Settings) -> Result<Floor, String> {
        Ok(Floor { rules: Rules::new(&settings.commands.rules)? })
    }

    /// The refusal of a call of `run_command` or `exec_run` with these arguments, by their own names.
    pub fn refusal(&self, ws: &Workspace, tool: &str, args: &Map<String, Value>) -> Option<Refusal> {
        let command = args.get("command")?.as_str()?;
        let cwd = args.get("cwd").and_then(Value::as_str).unwrap_or(".");
        // A directory that cannot be entered is refused when the command is about to run.
        let cwd = ws.tree().parse(cwd).map_or_else(|_| WsPath::default(), |wire: WirePath| wire.at);
        match judge(ws, &self.rules, command, &cwd, &[]).verdict {
            Verdict::Deny { part, rule, why, next } => Some(denied(tool, &part, &rule, &why, &next)),
            _ => None,
        }
    }
}

/// What policy says of a command in a directory.
pub(super) fn judge(
    ws: &Workspace,
    rules: &Rules,
    command: &str,
    cwd: &WsPath,
    env: &[(String, String)],
) -> Judgement {
    let root = ws.tree().host_path(cwd.folder).display().to_string();
    let home = std::env::var("HOME").ok();
    let writable: Vec<String> =
        ws.settings().commands.caches.iter().map(|path| path.display().to_string()).collect();
    let class = |path: &RelPath| ws.tree().class_of(&WsPath { folder: cwd.folder, path: path.clone() }).class;
    let around = Surroundings {
        root: &root,
        cwd: &cwd.path,
        home: home.as_deref(),
        writable: &writable,
        class: &class,
    };
    // A variable that a call sets counts as if the command set it.
    let set: String = env.iter().map(|(name, text)| format!("export {name}={}; ", quoted(text))).collect();
    policy::judge(&format!("{set}{command}"), rules, &around)
}

/// `COMMAND_DENIED`: the part and the rule.
pub(super) fn denied(tool: &str, part: &str, rule: &str, why: &str, next: &str) -> Refusal {
    let next = match next {
        "" => "do without it, or ask the user. Another spelling of the same is refused too",
        next => next,
    };
    Refusal::new(Code::CommandDenied, format!("{why} Nothing was run, also not the parts before it."))
        .fact("tool", tool)
        .fact("part", brief(part))
        .fact("rule", rule)
        .next(next)
}
