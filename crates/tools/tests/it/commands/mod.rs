//! Commands through the toolbox: really run, on a copy or in the workspace, and taken back.

mod attacks;
mod cases;
mod corpus;
mod ground;
mod limits;
mod running;
mod sandboxes;
mod sed;

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// A shell's work outside of any sandbox, in the workspace, for setting up.
fn sh(fixture: &Fixture, script: &str) {
    let done = std::process::Command::new("bash")
        .args(["-ec", script])
        .current_dir(fixture.path("."))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Runs a command that must be answered, whatever its exit.
fn run(fixture: &Fixture, command: &str) -> String {
    fixture.ok("run_command", json!({"command": command}))
}

/// The same with further arguments.
fn run_with(fixture: &Fixture, command: &str, more: Value) -> String {
    let mut args = json!({"command": command});
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fixture.ok("run_command", args)
}
