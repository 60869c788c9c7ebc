//! `exec_open` … `exec_close`: a view of the workspace that stays open, and what of it is brought over.

use cotenant_model::{Profile, Settings};
use serde_json::json;

use super::sh;
use crate::fixture::{Fixture, body, fact};

fn opened(fixture: &Fixture) -> String {
    let said = fixture.ok("exec_open", json!({"name": "trial"}));
    fact(&said, "exec").unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn what_is_written_in_it_stays_in_it_until_it_is_promoted() {
    let fixture = Fixture::new();
    sh(&fixture, "git init -q .; printf 'one\\ntwo\\n' > a.txt; printf x > b.txt");
    let exec = opened(&fixture);
    let ran = fixture
        .ok("exec_run", json!({"exec": exec, "command": "echo three >> a.txt; echo new > c.txt; rm b.txt"}));
    assert_eq!(fact(&ran, "exit").as_deref(), Some("0"), "{ran}");
    assert_eq!(fact(&ran, "mode").as_deref(), Some("exec"));
    let read = fixture.ok("read_file", json!({"path": format!("{exec}:a.txt")}));
    assert!(read.contains("3|three") && read.contains(&format!("path={exec}:a.txt")), "{read}");
    fixture.ok("edit_file", json!({"path": format!("{exec}:a.txt"), "old_text": "two", "new_text": "2"}));
    let again = fixture.ok("run_command", json!({"command": "cat a.txt", "cwd": format!("{exec}:.")}));
    assert_eq!(body(&again), "one\n2\nthree");
    assert_eq!(fixture.get("a.txt"), "one\ntwo\n");
    let shown = fixture.ok("exec_promote", json!({"exec": exec, "dry_run": true}));
    assert!(shown.contains("+three"), "{shown}");
    let some = fixture.ok("exec_promote", json!({"exec": exec, "paths": ["c.txt"]}));
    assert!(some.contains("A c.txt") && fixture.has("b.txt"), "{some}");
    let all = fixture.ok("exec_promote", json!({"exec": exec}));
    assert!(all.contains("M a.txt") && all.contains("D b.txt"), "{all}");
    assert_eq!(fixture.get("a.txt"), "one\n2\nthree\n");
    fixture.no("NOTHING_TO_CHANGE", "exec_promote", json!({"exec": exec}));
    fixture.ok("exec_close", json!({"exec": exec}));
    fixture.no("NOT_FOUND", "read_file", json!({"path": format!("{exec}:a.txt")}));
    fixture.ok("undo", json!({}));
    assert_eq!(fixture.get("a.txt"), "one\ntwo\n");
    assert!(fixture.has("b.txt"));
}

#[test]
fn a_promotion_is_asked_about_as_a_whole() {
    let fixture = Fixture::careful();
    sh(&fixture, "printf 'one\\n' > a.txt");
    let exec = opened(&fixture);
    fixture.ok("exec_run", json!({"exec": exec, "command": "echo two >> a.txt"}));
    fixture.no("APPROVAL_PENDING", "exec_promote", json!({"exec": exec}));
    assert_eq!(fixture.get("a.txt"), "one\n");
    let question = fixture.toolbox.waiting().pop().unwrap();
    assert!(question.plan.diff.contains("+two"), "{}", question.plan.diff);
    fixture.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    assert_eq!(fixture.get("a.txt"), "one\ntwo\n");
}

#[test]
fn a_task_is_the_projects_own_command() {
    let fixture = Fixture::new();
    sh(&fixture, "printf 'test:\\n\\t@echo tested\\n' > Makefile");
    let exec = opened(&fixture);
    let ran = fixture.ok("exec_run", json!({"exec": exec, "task": "test"}));
    assert_eq!(body(&ran), "tested", "{ran}");
    fixture.no("NOT_FOUND", "exec_run", json!({"exec": exec, "task": "build"}));
    fixture.no("BAD_INPUT", "exec_run", json!({"exec": exec}));
}

#[test]
fn network_in_it_is_asked_for() {
    let fixture = Fixture::with(Settings { profile: Profile::Trusting, ..Settings::default() });
    let asked = fixture.no("APPROVAL_PENDING", "exec_open", json!({"network": true}));
    let question = fixture.toolbox.waiting().pop().unwrap();
    fixture.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    let opened = fixture.retry(&asked);
    assert!(opened.text.starts_with("exec=x"), "{}", opened.text);
}

#[test]
fn it_belongs_to_its_session_and_ends_with_it() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    let exec = opened(&fixture);
    let other = fixture.session("agent-b");
    let theirs = fixture.call_as(other, "exec_run", json!({"exec": exec, "command": "true"}));
    assert!(theirs.text.starts_with("NOT_FOUND"), "{}", theirs.text);
    let mixed = fixture.call("move_path", json!({"from": format!("{exec}:a.txt"), "to": "b.txt"}));
    assert!(mixed.text.starts_with("BAD_INPUT"), "{}", mixed.text);
}
