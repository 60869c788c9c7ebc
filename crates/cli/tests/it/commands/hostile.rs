//! Commands that mean harm to the one who answers: what is shown is what runs, and nobody says yes to himself.

use serde_json::json;

use super::{can_stage, waiting};
use crate::support::scratch;

/// Characters that hide, reorder, or drive a terminal.
const HOSTILE: &[char] = &[
    '\u{1b}',
    '\u{7}',
    '\u{8}',
    '\r',
    '\u{9b}',
    '\u{202e}',
    '\u{2066}',
    '\u{200b}',
    '\u{feff}',
    '\u{e0041}',
];

#[test]
fn hiding_characters_of_a_command_never_reach_a_terminal() {
    let scratch = scratch();
    let mut agent = scratch.mcp().profile("careful").start();
    let hostile: String = HOSTILE.iter().collect();
    let command = format!("echo safe # {hostile}\necho x > made");
    let asked = agent.call("run_command", json!({"command": command, "mode": "direct"}));
    asked.refused("APPROVAL_PENDING");
    let mut shown = vec![
        scratch.run(&["pending"]),
        scratch.run(&["review"]),
        scratch.run(&["pending", "--json"]),
        scratch.run(&["review", "--json"]),
        scratch.run(&["deny", &asked.get("id"), "--reason", &format!("no {hostile}").replace('\0', "")]),
    ];
    shown.push(scratch.run(&["run-command", &command]));
    shown.push(scratch.run(&["history"]));
    shown.push(scratch.run(&["stats"]));
    for output in &shown {
        for hidden in HOSTILE {
            let told = output.stdout.contains(*hidden) || output.stderr.contains(*hidden);
            assert!(!told, "U+{:04X} goes out raw: {output:?}", u32::from(*hidden));
        }
    }
    assert!(shown[1].stdout.contains("echo x > made"), "the second line is shown: {:?}", shown[1]);
    assert!(!scratch.path("made").exists());
}

#[test]
fn what_a_command_prints_does_not_drive_the_terminal_either() {
    let scratch = scratch();
    scratch.configure("[approvals]\nprofile = \"trusting\"\n");
    let print = "printf '\\033[2J\\033]0;title\\007\\302\\233\\342\\200\\256back\\r over\\n\\377\\n'; touch $'odd\\033[2Jname'";
    for extra in [&[][..], &["--json"]] {
        let said = scratch.run(&[&["run-command", print], extra].concat());
        for hidden in ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}'] {
            assert!(!said.stdout.contains(hidden), "U+{:04X} goes out raw: {said:?}", u32::from(hidden));
        }
    }
    let history = scratch.run(&["history"]);
    assert!(!history.stdout.contains('\u{1b}'), "{history:?}");
}

#[test]
fn a_command_cannot_say_yes_to_its_own_question() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let mut agent = scratch.mcp().profile("trusting").start();
    let mut asker = scratch.mcp().profile("careful").flags(&["--agent", "asker"]).start();
    asker.read("a.txt");
    asker.edit("a.txt", "one", "1").refused("APPROVAL_PENDING");
    let question = waiting(&scratch);
    let (id, digest) = (question["id"].as_str().unwrap(), question["digest"].as_str().unwrap());
    let root = scratch.root().display().to_string();
    let run = scratch.base().join("run").display().to_string();
    let state = scratch.base().join("state").display().to_string();
    let program = scratch.program().display().to_string();
    let approve = format!(
        "XDG_RUNTIME_DIR={run} XDG_STATE_HOME={state} {program} approve {id} --digest {digest} --root {root}"
    );
    let connect = format!(
        "python3 -c \"
import os, socket, sys
for top in ['{run}', '{state}']:
    for at, dirs, files in os.walk(top):
        for name in files:
            try:
                s = socket.socket(socket.AF_UNIX); s.connect(os.path.join(at, name)); print('CONNECTED', name)
            except OSError as e: pass
\"; ls {run}/* {state}/* 2>&1 | head -5; true"
    );
    // Outside of any sandbox the same finds the way.
    assert!(scratch.sh(&connect).stdout.contains("CONNECTED"));
    for mode in ["staged", "direct"] {
        if mode == "staged" && !can_stage(&scratch) {
            continue;
        }
        let said = agent.call("run_command", json!({"command": approve, "mode": mode}));
        assert!(said.is_error || said.number("exit") != 0, "{mode}: {}", said.text);
        let said = agent.call("run_command", json!({"command": connect, "mode": mode}));
        said.never_says("CONNECTED");
        assert_eq!(scratch.text("a.txt"), "one\n", "{mode}");
        assert_eq!(waiting(&scratch)["digest"], digest, "{mode}: it still waits");
    }
}

#[test]
fn a_command_sees_nothing_of_the_state_and_of_what_lies_outside() {
    let scratch = scratch();
    std::fs::write(scratch.out().join("secret"), "top-secret\n").unwrap();
    let mut agent = scratch.mcp().start();
    agent.write("a.txt", "x\n").ok();
    let (out, state) =
        (scratch.out().display().to_string(), scratch.base().join("state").display().to_string());
    for mode in ["staged", "direct"] {
        if mode == "staged" && !can_stage(&scratch) {
            continue;
        }
        for command in [
            format!("python3 -c \"open('{out}/made','w').write('x')\""),
            format!("python3 -c \"import shutil; shutil.rmtree('{state}')\""),
            format!("python3 -c \"import os; os.rename('{out}/secret','{out}/moved')\""),
        ] {
            let said = agent.call("run_command", json!({"command": command, "mode": mode}));
            assert!(said.is_error || said.number("exit") != 0, "{mode} {command}: {}", said.text);
        }
        assert!(!scratch.out().join("made").exists() && scratch.out().join("secret").exists());
    }
    assert_eq!(agent.call("history", json!({})).number("changes"), 1, "the ledger is there");
    scratch.run(&["journal", "verify"]).ok();
}

#[test]
fn what_does_not_parse_hides_or_is_too_long_is_never_run_unasked() {
    let scratch = scratch();
    let mut agent = scratch.mcp().profile("trusting").start();
    let long = format!("echo {} > made", "x".repeat(10_000));
    let many = format!("{}echo x > made", "true; ".repeat(60));
    let commands = [
        "echo 'open > made",
        "echo x > made \u{202e}# safe",
        "echo x\r > made",
        &long,
        &many,
        "if true; then touch made",
    ];
    for command in commands {
        let said = agent.call("run_command", json!({"command": command}));
        said.refused_as(&["APPROVAL_PENDING", "COMMAND_DENIED", "BAD_INPUT"]);
        assert!(!scratch.path("made").exists(), "{command:.40}");
        if said.code() == Some("APPROVAL_PENDING") {
            scratch.run(&["deny", &said.get("id"), "--reason", "no"]).ok();
        }
    }
}

#[test]
fn a_command_reaches_neither_the_daemon_nor_another_command() {
    let scratch = scratch();
    let mut agent = scratch.mcp().profile("trusting").start();
    let mut other = scratch.mcp().profile("trusting").flags(&["--agent", "other"]).start();
    let marker = super::marker();
    let sleeping = json!({"command": format!("sleep {marker}"), "background": true, "timeout_s": 900});
    let job = other.call("run_command", sleeping).ok().get("job");
    let sleeper = super::asleep(&marker);
    let daemon = scratch.daemon_pid().unwrap();
    for mode in ["staged", "direct"] {
        if mode == "staged" && !can_stage(&scratch) {
            continue;
        }
        // Asked only whether it is there; nothing is sent.
        let tried = ["0", "CONT"].map(|signal| {
            format!("kill -{signal} {daemon} && echo REACHED; kill -{signal} {sleeper} && echo REACHED")
        });
        for command in tried.iter().chain(&[
            format!("ls /proc/{daemon}/fd && echo REACHED"),
            format!("cat /proc/{sleeper}/environ && echo REACHED"),
        ]) {
            let said = agent.call("run_command", json!({"command": command, "mode": mode}));
            said.ok().never_says("\nREACHED");
        }
    }
    other.call("stop_command", json!({"id": job})).ok();
    super::all_gone(&marker);
}

#[test]
fn a_server_of_one_session_is_not_seen_by_another() {
    let scratch = scratch();
    let [mut one, mut other] =
        ["one", "other"].map(|name| scratch.mcp().profile("trusting").flags(&["--agent", name]).start());
    let serve = "python3 -u -c \"
import socket
s = socket.create_server(('127.0.0.1', 8431))
print('LISTENING', flush=True)
while True:
    c, _ = s.accept()
    c.sendall(b'hello'); c.close()
\"";
    let started = json!({"command": serve, "background": true, "timeout_s": 900});
    let job = one.call("run_command", started).ok().get("job");
    while !one.call("command_output", json!({"id": job, "offset": 0})).ok().text.contains("LISTENING") {}
    let get = "python3 -c \"import socket; print(socket.create_connection(('127.0.0.1', 8431), 5).recv(5))\"";
    assert_eq!(one.call("run_command", json!({"command": get})).ok().content(), "b'hello'");
    let refused = other.call("run_command", json!({"command": get}));
    assert_ne!(refused.ok().number("exit"), 0);
    refused.never_says("hello");
    assert!(std::net::TcpStream::connect(("127.0.0.1", 8431)).is_err(), "nor from outside");
    one.call("stop_command", json!({"id": job})).ok();
}
