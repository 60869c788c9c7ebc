//! Sandboxes over the wire and from a terminal: what is tried in them stays there, until it is promoted.

use cotenant_testkit::Scratch;
use serde_json::{Value, json};

use super::{Agent, all_gone, approve, asleep, can_stage, marker, waiting};
use crate::support::scratch;

fn with_exec(scratch: &Scratch, profile: &'static str) -> Option<Agent> {
    scratch.sh("printf 'one\\ntwo\\n' > a.txt; printf 'b\\n' > b.txt; printf 'test:\\n\\t@grep -q 2 a.txt && echo passed\\n' > Makefile");
    let client = scratch.mcp().profile(profile).flags(&["--tools", "core,history,exec"]).start();
    can_stage(scratch).then(|| Agent::Stdio(Box::new(client)))
}

#[test]
fn write_run_fix_and_promote() {
    let scratch = scratch();
    let Some(mut agent) = with_exec(&scratch, "trusting") else { return };
    let exec = agent.call("exec_open", json!({"name": "trial"})).ok().get("exec");
    let run =
        |agent: &mut Agent, command: &str| agent.call("exec_run", json!({"exec": exec, "command": command}));
    assert_eq!(agent.call("exec_run", json!({"exec": exec, "task": "test"})).ok().number("exit"), 2);
    let edit = json!({"path": format!("{exec}:a.txt"), "old_text": "two", "new_text": "2"});
    agent.call("read_file", json!({"path": format!("{exec}:a.txt")})).ok();
    agent.call("edit_file", edit).ok();
    let passed = agent.call("exec_run", json!({"exec": exec, "task": "test"}));
    assert_eq!(passed.ok().number("exit"), 0);
    passed.says("passed");
    run(&mut agent, "rm b.txt; mkdir made; echo x > made/new; ln -s a.txt link; chmod 755 Makefile").ok();
    let inside = agent.run_with("ls", json!({"cwd": format!("{exec}:made")}));
    assert_eq!(inside.ok().content(), "new");
    assert_eq!(scratch.sh("cat *; ls").stdout.lines().last(), Some("b.txt"), "nothing landed");
    let shown = agent.call("exec_promote", json!({"exec": exec, "dry_run": true}));
    shown.ok().says("+2");
    assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
    let some = agent.call("exec_promote", json!({"exec": exec, "paths": ["made"]}));
    some.ok().says("made/new");
    assert!(scratch.path("b.txt").exists() && scratch.text("made/new") == "x\n");
    let all = agent.call("exec_promote", json!({"exec": exec}));
    assert_eq!(
        scratch.sh("cat a.txt; readlink link; stat -c %a Makefile").stdout,
        "one\n2\na.txt\n755\n",
        "{}",
        all.text
    );
    assert!(!scratch.path("b.txt").exists());
    agent.call("exec_promote", json!({"exec": exec})).refused("NOTHING_TO_CHANGE");
    agent.call("undo", json!({"change": all.get("change")})).ok();
    assert_eq!((scratch.text("a.txt"), scratch.text("b.txt")), ("one\ntwo\n".to_owned(), "b\n".to_owned()));
    agent.call("exec_close", json!({"exec": exec})).ok();
    run(&mut agent, "true").refused("NOT_FOUND");
    agent.run_with("true", json!({"cwd": format!("{exec}:.")})).refused("NOT_FOUND");
}

#[test]
fn a_promotion_waits_for_its_yes_and_meets_what_others_wrote() {
    let scratch = scratch();
    let Some(mut agent) = with_exec(&scratch, "careful") else { return };
    let exec = agent.call("exec_open", json!({})).ok().get("exec");
    agent.call("exec_run", json!({"exec": exec, "command": "sed -i s/two/2/ a.txt"})).ok();
    let asked = agent.call("exec_promote", json!({"exec": exec}));
    asked.refused("APPROVAL_PENDING");
    assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
    approve(&scratch, &waiting(&scratch)).ok();
    assert_eq!(scratch.text("a.txt"), "one\n2\n");
    agent.call("retry", json!({"token": asked.offered("token")})).ok();
    // What somebody else changed in the same line is not written over.
    agent.call("exec_run", json!({"exec": exec, "command": "printf 'theirs\\n' > b.txt"})).ok();
    scratch.put("b.txt", "mine\n");
    agent
        .call("exec_promote", json!({"exec": exec}))
        .refused_as(&["FILE_CHANGED_SINCE_READ", "APPROVAL_PENDING"]);
    assert_eq!(scratch.text("b.txt"), "mine\n");
}

#[test]
fn what_is_closed_or_left_leaves_nothing_behind() {
    let scratch = scratch();
    let Some(mut agent) = with_exec(&scratch, "trusting") else { return };
    let opened: Vec<String> = (0..4).map(|_| agent.call("exec_open", json!({})).ok().get("exec")).collect();
    agent.call("exec_open", json!({})).refused("LIMIT_REACHED").says(&opened[0]);
    let [closed, left] = [marker(), marker()];
    let sleeping = |exec: &str, marker: &str| json!({"command": format!("echo x > x; sleep {marker}"), "cwd": format!("{exec}:."), "background": true, "timeout_s": 900});
    agent.call("run_command", sleeping(&opened[0], &closed)).ok();
    agent.call("run_command", sleeping(&opened[1], &left)).ok();
    asleep(&closed);
    asleep(&left);
    agent.call("exec_close", json!({"exec": opened[0]})).ok();
    all_gone(&closed);
    agent.vanish();
    all_gone(&left);
    assert!(!scratch.path("x").exists());
    // What one daemon leaves of its sandboxes the next clears away.
    scratch.run(&["stop"]).ok();
    scratch.run(&["run-command", "true"]).ok();
    let left =
        scratch.sh(&format!("ls -d {}/cotenant/*/ledger/run/x*", scratch.base().join("state").display())
            .replace("ls -d", "! ls -d"));
    assert_eq!(left.stdout, "");
}

/// A sandbox lives no longer than its daemon; what was in it is gone, and the workspace is as it was.
#[test]
fn a_sandbox_of_a_killed_daemon_is_gone_and_said_to_be() {
    let scratch = scratch();
    let Some(mut agent) = with_exec(&scratch, "trusting") else { return };
    let exec = agent.call("exec_open", json!({})).ok().get("exec");
    let marker = marker();
    let command = format!("echo three >> a.txt; sleep {marker}");
    let more = json!({"cwd": format!("{exec}:."), "background": true, "timeout_s": 900});
    agent.run_with(&command, more).ok();
    asleep(&marker);
    scratch.kill_daemon();
    all_gone(&marker);
    for (tool, arguments) in [
        ("exec_run", json!({"exec": exec, "command": "true"})),
        ("exec_promote", json!({"exec": exec})),
        ("read_file", json!({"path": format!("{exec}:a.txt")})),
        ("write_file", json!({"path": format!("{exec}:new"), "content": "x"})),
    ] {
        agent.call(tool, arguments).refused("NOT_FOUND").says("exec_open");
    }
    assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
    let again = agent.call("exec_open", json!({})).ok().get("exec");
    let said = agent.call("exec_run", json!({"exec": again, "command": "cat a.txt"}));
    assert_eq!(said.ok().content(), "one\ntwo", "a new one begins with what is there");
}

/// Four commands of one terminal are of one session.
#[test]
fn a_sandbox_from_a_terminal_is_there_for_its_next_command() {
    let scratch = scratch();
    scratch.configure("[approvals]\nprofile = \"trusting\"\n");
    scratch.put("a.txt", "one\n");
    if !can_stage(&scratch) {
        return;
    }
    let run = |arguments: &[&str]| -> Value { scratch.run(&[arguments, &["--json"]].concat()).ok().json() };
    let exec = run(&["exec-open", "--name", "trial"])["exec"].as_str().unwrap().to_owned();
    let ran = run(&["exec-run", &exec, "--command", "sed -i s/one/1/ a.txt; cat a.txt"]);
    assert_eq!((&ran["exit"], &ran["mode"]), (&json!(0), &json!("exec")), "{ran}");
    assert_eq!(scratch.text("a.txt"), "one\n");
    let read = run(&["read-file", &format!("{exec}:a.txt")]);
    assert!(read["text"].as_str().unwrap().contains("1|1"), "{read}");
    let promoted = run(&["exec-promote", &exec]);
    assert_eq!(promoted["change"], json!("c1"), "{promoted}");
    assert_eq!(scratch.text("a.txt"), "1\n");
    run(&["exec-close", &exec]);
    assert_eq!(scratch.run(&["exec-run", &exec, "--command", "true"]).code, 1);
}
