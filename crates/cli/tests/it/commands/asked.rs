//! Commands that a human is asked about: nothing before the yes, exactly what was shown after it, nothing after a no.

use serde_json::json;

use super::{approve, both, can_stage, waiting};

/// A command that no table knows to be harmless, and what it makes of `a.txt`.
const CHANGES: &str = "perl -pi -e 's/two/2/' a.txt; echo said";

#[test]
fn a_staged_command_waits_with_its_diff_and_lands_at_the_yes() {
    both("careful", |scratch, mut agent| {
        if !can_stage(scratch) {
            return;
        }
        scratch.put("a.txt", "one\ntwo\n");
        let asked = agent.run(CHANGES);
        asked.refused("APPROVAL_PENDING");
        assert!(!asked.is_error, "a question is no error");
        assert_eq!(scratch.text("a.txt"), "one\ntwo\n", "nothing before a yes");
        let question = waiting(scratch);
        assert_eq!((&question["id"], &question["tool"]), (&json!(asked.get("id")), &json!("run_command")));
        assert_eq!(question["paths"], json!(["a.txt"]));
        let diff = question["diff"].as_str().unwrap();
        assert!(diff.contains(CHANGES) && diff.contains("-two") && diff.contains("+2"), "{diff}");
        let landed = approve(scratch, &question);
        assert!(landed.ok().stdout.contains("landed as c1"), "{landed:?}");
        assert_eq!(scratch.text("a.txt"), "one\n2\n");
        let done = agent.call("retry", json!({"token": asked.offered("token")}));
        assert_eq!((done.ok().get("change"), done.number("exit")), ("c1".to_owned(), 0));
        done.says("said");
        assert_eq!(approve(scratch, &question).code, 1, "answered once is answered");
        assert_eq!(scratch.text("a.txt"), "one\n2\n");
    });
}

#[test]
fn a_direct_command_runs_at_the_yes_alone() {
    both("careful", |scratch, mut agent| {
        scratch.put("log", "");
        let asked = agent.run_with("echo ran >> log; echo said", json!({"mode": "direct"}));
        asked.refused("APPROVAL_PENDING");
        assert_eq!(scratch.text("log"), "");
        let question = waiting(scratch);
        let diff = question["diff"].as_str().unwrap();
        assert!(diff.starts_with("run in ., direct:\necho ran >> log; echo said"), "{diff}");
        assert!(diff.contains("its parts:\n"), "{diff}");
        let other = "0".repeat(question["digest"].as_str().unwrap().len());
        assert_eq!(scratch.run(&["approve", &asked.get("id"), "--digest", &other]).code, 1);
        assert_eq!(scratch.text("log"), "", "another digest is no yes");
        let begun = approve(scratch, &question);
        assert!(begun.ok().stdout.contains("approved: runs as j"), "{begun:?}");
        let done = agent.call("retry", json!({"token": asked.offered("token"), "wait_s": 40}));
        assert_eq!((done.ok().number("exit"), done.get("mode")), (0, "direct".to_owned()));
        done.says("said").says("M log");
        assert_eq!(scratch.text("log"), "ran\n");
        // Collected twice, run once.
        agent.call("retry", json!({"token": asked.offered("token")}));
        assert_eq!(approve(scratch, &question).code, 1);
        assert_eq!(scratch.text("log"), "ran\n");
    });
}

#[test]
fn a_no_drops_what_the_command_did_and_tells_the_reason() {
    both("careful", |scratch, mut agent| {
        scratch.put("a.txt", "one\ntwo\n");
        for more in [json!({}), json!({"mode": "direct"})] {
            let asked = agent.run_with(CHANGES, more);
            asked.refused("APPROVAL_PENDING");
            scratch.run(&["deny", &asked.get("id"), "--reason", "leave two alone"]).ok();
            let answer = agent.call("retry", json!({"token": asked.offered("token")}));
            answer.refused("APPROVAL_DENIED").says("leave two alone");
            assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
            assert_eq!(scratch.run(&["deny", &asked.get("id"), "--reason", "again"]).code, 1);
        }
        assert_eq!(agent.call("history", json!({})).number("changes"), 0);
        assert_eq!(scratch.run(&["pending", "--json"]).json()["pending"], json!([]));
    });
}

#[test]
fn what_only_looks_or_creates_nothing_is_not_asked_about() {
    both("careful", |scratch, mut agent| {
        scratch.put("a.txt", "one\n");
        for command in ["cat a.txt", "grep -rn one .", "ls -la | head -3", "true", "python3 -c 'print(1)'"] {
            assert_eq!(agent.run(command).ok().number("exit"), 0, "{command}");
        }
        assert_eq!(scratch.run(&["pending", "--json"]).json()["pending"], json!([]));
    });
}

#[test]
fn a_background_command_asks_at_its_end_and_is_collected_as_a_job() {
    both("careful", |scratch, mut agent| {
        if !can_stage(scratch) {
            return;
        }
        scratch.put("a.txt", "one\ntwo\n");
        let started = agent.run_with(CHANGES, json!({"background": true}));
        let job = started.ok().get("job");
        let ended = agent.call("command_output", json!({"id": job, "wait_s": 40}));
        ended.refused("APPROVAL_PENDING");
        assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
        approve(scratch, &waiting(scratch)).ok();
        let done = agent.call("command_output", json!({"id": job, "wait_s": 40}));
        assert_eq!(done.ok().number("exit"), 0);
        assert_eq!(done.get("change"), "c1", "{}", done.text);
        assert_eq!(scratch.text("a.txt"), "one\n2\n");
    });
}

#[test]
fn readonly_runs_what_only_looks_and_nothing_else() {
    both("readonly", |scratch, mut agent| {
        scratch.put("a.txt", "one\n");
        agent.run("cat a.txt").ok().says("one");
        for command in ["sed -i s/one/1/ a.txt", "make", "echo x > b", "python3 -c 1"] {
            for mode in ["auto", "staged", "direct"] {
                agent.run_with(command, json!({"mode": mode})).refused("PROFILE_READ_ONLY");
            }
        }
        assert_eq!(scratch.text("a.txt"), "one\n");
        assert!(!scratch.path("b").exists());
    });
}

#[test]
fn a_question_outlives_neither_its_session_nor_a_second_yes() {
    let scratch = crate::support::scratch();
    scratch.put("log", "");
    let mut agent = scratch.mcp().profile("careful").start();
    let asked = agent.call("run_command", json!({"command": "echo ran >> log", "mode": "direct"}));
    asked.refused("APPROVAL_PENDING");
    let question = waiting(&scratch);
    agent.kill();
    // The daemon sees the end of the bridge before or after the answer; either way nothing runs for nobody twice.
    let [first, second] = [(); 2].map(|()| approve(&scratch, &question).code);
    assert!(second == 1, "{first} {second}");
    scratch.run(&["stop"]).ok();
    assert!(["", "ran\n"].contains(&scratch.text("log").as_str()), "{:?}", scratch.text("log"));
}
