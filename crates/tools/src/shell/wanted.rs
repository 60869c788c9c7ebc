//! What a call asks to be run, read from its arguments and held against the workspace.

use cotenant_model::{Code, ExecId, Refusal, WsPath};
use serde_json::{Value, json};

use super::exec::in_sandbox;
use crate::args::{Args, bad};
use crate::ctx::Ctx;

/// The longest that a command may take, in seconds.
const TIMEOUT_MOST: u64 = 3600;

/// How it is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As is best: without a shell where that is the same, else staged where the machine can, else direct.
    Auto,
    /// On a copy, or not at all.
    Staged,
    /// In the workspace itself.
    Direct,
}

/// A command as it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The command line.
    pub(crate) command: String,
    /// Where it runs; in a sandbox, the path in it.
    pub(crate) cwd: WsPath,
    /// The sandbox it runs in.
    pub(crate) exec: Option<ExecId>,
    /// It is ended after so many seconds.
    pub(crate) timeout_s: u64,
    /// How.
    pub(crate) mode: Mode,
    /// The call answers at once.
    pub(crate) background: bool,
    /// Further environment variables.
    pub(crate) env: Vec<(String, String)>,
    /// What it would change is shown and dropped.
    pub(crate) dry_run: bool,
}

impl Wanted {
    /// From the arguments of `run_command`.
    pub(crate) fn of(ctx: &Ctx<'_>, args: &Args) -> Result<Wanted, Refusal> {
        let command = args.need("command").to_owned();
        if command.trim().is_empty() {
            return Err(bad(ctx.tool, "command", "The command is empty"));
        }
        if command.contains('\0') {
            return Err(bad(ctx.tool, "command", "The command holds a NUL, which no shell takes"));
        }
        let cwd = args.text("cwd").unwrap_or(".");
        let (exec, cwd) = match in_sandbox(cwd) {
            Some((exec, path)) => (Some(exec), inside(ctx, path)?),
            None => (None, ctx.directory(cwd)?.real),
        };
        let mode = match args.text("mode") {
            Some("staged") => Mode::Staged,
            Some("direct") => Mode::Direct,
            _ => Mode::Auto,
        };
        Ok(Wanted {
            command,
            cwd,
            exec,
            timeout_s: timeout(ctx, args)?,
            mode,
            background: args.flag("background"),
            env: env(ctx, args)?,
            dry_run: args.flag("dry_run"),
        })
    }

    /// From the arguments of `exec_run`, for a command that may be the project's own.
    pub(crate) fn in_exec(
        ctx: &Ctx<'_>,
        args: &Args,
        exec: ExecId,
        command: String,
    ) -> Result<Wanted, Refusal> {
        Ok(Wanted {
            command,
            cwd: WsPath::default(),
            exec: Some(exec),
            timeout_s: timeout(ctx, args)?,
            mode: Mode::Auto,
            background: false,
            env: Vec::new(),
            dry_run: false,
        })
    }

    /// All that decides what it may do, in one text: what a human's yes binds to.
    pub(crate) fn terms(&self, cwd: &str, mode: &str, network: bool) -> String {
        json!({
            "command": self.command,
            "cwd": cwd,
            "mode": mode,
            "network": network,
            "env": self.env,
            "timeout_s": self.timeout_s,
        })
        .to_string()
    }
}

/// A directory of a sandbox; whether it is there is seen when the command starts.
fn inside(ctx: &Ctx<'_>, path: &str) -> Result<WsPath, Refusal> {
    ctx.path(if path.is_empty() { "." } else { path })
}

/// The time limit, in seconds.
fn timeout(ctx: &Ctx<'_>, args: &Args) -> Result<u64, Refusal> {
    match args.number("timeout_s") {
        None => Ok(ctx.limits().command_s.min(TIMEOUT_MOST)),
        Some(seconds) => match u64::try_from(seconds) {
            Ok(seconds @ 1..=TIMEOUT_MOST) => Ok(seconds),
            _ => Err(Refusal::new(
                Code::BadInput,
                format!("timeout_s is {seconds}, and can be 1 to {TIMEOUT_MOST}; nothing was run."),
            )
            .fact("tool", ctx.tool_name())
            .fact("argument", "timeout_s")
            .next(
                ctx.call("retry", json!({"token": ctx.retry_token(), "set": {"timeout_s": TIMEOUT_MOST}})),
            )),
        },
    }
}

/// `env`: names and texts. What would change how programs are found or loaded is refused.
fn env(ctx: &Ctx<'_>, args: &Args) -> Result<Vec<(String, String)>, Refusal> {
    let Some(map) = args.value("env").and_then(Value::as_object) else { return Ok(Vec::new()) };
    let mut env = Vec::with_capacity(map.len());
    for (name, value) in map {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(bad(ctx.tool, "env", "env must be an object of texts")),
        };
        let plain = |ch: char| ch.is_ascii_alphanumeric() || ch == '_';
        let begins = |ch: char| ch.is_ascii_alphabetic() || ch == '_';
        if !name.starts_with(begins) || !name.chars().all(plain) || text.contains('\0') {
            return Err(bad(
                ctx.tool,
                "env",
                &format!("{name:?} is no name of a variable, or its text holds a NUL"),
            ));
        }
        env.push((name.clone(), text));
    }
    Ok(env)
}
