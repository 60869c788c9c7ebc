//! The MCP Inspector's command line over stdio: each step is a client that comes, asks one thing and goes.

use super::fetch::Clients;
use super::scene::{Programs, Scene};
use super::{Seen, said};
use crate::Failure;
use serde_json::Value;
use std::fs;
use std::process::Output;

/// The Inspector's exit status for a tool that answered with an error.
const TOOL_ERROR: i32 = 5;

const FILE: &str = "inspected.txt";

/// One step: its words after the server's, its exit status, and what its answer is to be.
struct Step {
    what: &'static str,
    words: &'static [&'static str],
    exit: i32,
    holds: fn(&Value) -> bool,
}

const STEPS: &[Step] = &[
    Step {
        what: "tools are listed, and no schema is one that some client stumbles over",
        words: &["--method", "tools/list", "--strict"],
        exit: 0,
        holds: |answer| {
            let tools = answer["tools"].as_array().map_or(&[][..], Vec::as_slice);
            ["read_file", "edit_file", "undo"]
                .iter()
                .all(|name| tools.iter().any(|tool| tool["name"] == *name))
        },
    },
    Step {
        what: "a file is read",
        words: &["--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=inspected.txt"],
        exit: 0,
        holds: |answer| text(answer).contains("1|before"),
    },
    Step {
        what: "an edit of a file that this client never read is refused, with a next step",
        words: &[
            "--method",
            "tools/call",
            "--tool-name",
            "edit_file",
            "--tool-arg",
            "path=inspected.txt",
            "old_text=before",
            "new_text=after",
        ],
        exit: TOOL_ERROR,
        holds: |answer| {
            let said = text(answer);
            answer["isError"] == true
                && said.starts_with("EDIT_REQUIRES_PRIOR_READ")
                && said.contains("\nnext: ")
        },
    },
    Step {
        what: "an edit that makes a new file lands",
        words: &[
            "--method",
            "tools/call",
            "--tool-name",
            "edit_file",
            "--tool-arg",
            "path=made.txt",
            "old_text=\"\"",
            "new_text=made by the Inspector",
        ],
        exit: 0,
        holds: |answer| text(answer).contains("change=c"),
    },
];

/// Takes every step, then looks at the folder.
pub(super) fn run(clients: &Clients, programs: &Programs, scene: &Scene) -> Result<Seen, Failure> {
    fs::write(scene.root().join(FILE), "before\n")?;
    let mut seen = Seen {
        client: "Inspector, stdio".into(),
        passed: 0,
        all: 0,
        note: String::new(),
        wrong: String::new(),
    };
    for step in STEPS {
        let mut inspector = clients.node("mcp-inspector");
        inspector.arg("--cli").arg(&programs.cotenant).args(["mcp", "--profile", "trusting", "--root"]);
        inspector.arg(scene.root()).args(["--format", "json"]).envs(scene.places());
        for (name, place) in scene.places() {
            inspector.arg("-e").arg(format!("{name}={}", place.display()));
        }
        let output = inspector.args(step.words).output()?;
        check(&mut seen, step.what, step.is_met(&output), &said(&output));
    }
    let kept = fs::read_to_string(scene.root().join(FILE))?;
    check(&mut seen, "what was refused changed nothing", kept == "before\n", &kept);
    let made = fs::read_to_string(scene.root().join("made.txt")).unwrap_or_default();
    check(&mut seen, "what landed is on disk", made.starts_with("made by the Inspector"), &made);
    Ok(seen)
}

impl Step {
    fn is_met(&self, output: &Output) -> bool {
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        output.status.code() == Some(self.exit) && (self.holds)(&answer["result"])
    }
}

/// The text of a tool's answer.
fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_default()
}

fn check(seen: &mut Seen, what: &str, holds: bool, told: &str) {
    seen.all += 1;
    if holds {
        seen.passed += 1;
    } else {
        seen.wrong.push_str(&format!("{what}: {told}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn a_step_is_met_by_its_answer_and_its_exit_status_together() {
        let output = |code: i32, stdout: &str| Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: vec![],
        };
        let read = r#"{"result":{"content":[{"type":"text","text":"path=inspected.txt\n1|before"}]}}"#;
        assert!(STEPS[1].is_met(&output(0, read)));
        assert!(!STEPS[1].is_met(&output(TOOL_ERROR, read)));
        assert!(!STEPS[1].is_met(&output(0, "{}")));
        assert!(!STEPS[1].is_met(&output(0, "no JSON")));
    }
}
