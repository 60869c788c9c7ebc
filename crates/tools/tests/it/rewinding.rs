//! `rewind`: all of an agent's changes since a turn or a change, as one change; others' work stays.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use cotenant_model::SessionId;
use serde_json::json;

use crate::fixture::{Fixture, fact};

fn edit(f: &Fixture, session: SessionId, path: &str, old: &str, new: &str) -> String {
    f.call_as(session, "read_file", json!({"path": path}));
    let done = f.ok_as(session, "edit_file", json!({"path": path, "old_text": old, "new_text": new}));
    fact(&done, "change").unwrap()
}

/// Every file with its bytes and mode, but for `.git`.
fn tree(f: &Fixture) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![f.path("")];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if !path.file_name().unwrap().to_str().unwrap().starts_with(".cotenant-") {
                let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
                let name = path.strip_prefix(f.path("")).unwrap().display().to_string();
                found.insert(name, (mode, std::fs::read(&path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn files_that_were_made_changed_and_deleted_are_as_they_were_and_the_rest_is_untouched() {
    let f = Fixture::new();
    f.put("t", "a\n");
    f.put("gone", "d\n");
    std::fs::set_permissions(f.path("gone"), std::fs::Permissions::from_mode(0o751)).unwrap();
    f.put("output/run.jsonl", "DATA\n");
    let began = tree(&f);
    edit(&f, f.session, "t", "a", "b");
    f.ok("write_file", json!({"path": "new/dir/n.txt", "content": "n\n"}));
    f.ok("read_file", json!({"path": "gone"}));
    f.ok("delete_file", json!({"path": "gone"}));
    edit(&f, f.session, "new/dir/n.txt", "n", "m");
    let dry = f.ok("rewind", json!({"turn": 1, "dry_run": true}));
    assert!(dry.contains("+a") && f.get("t") == "b\n", "{dry}");
    let done = f.ok("rewind", json!({"turn": 1}));
    assert!(done.starts_with("rewound=4 since=c1 change=c5 paths=5"), "{done}");
    assert_eq!(tree(&f), began);
    assert!(!f.has("new"), "directories that were made go, too");
    let again = f.no("NOTHING_TO_CHANGE", "rewind", json!({"turn": 1}));
    assert!(!f.follow(&again).is_error, "{again}");
}

/// C143: a rewind is a change like another: undone as one, and gone back over in part.
#[test]
fn a_rewind_is_undone_as_one_and_then_done_in_part() {
    let f = Fixture::new();
    f.put("f", "1\n");
    edit(&f, f.session, "f", "1", "2");
    let middle = edit(&f, f.session, "f", "2", "3");
    let rewound = f.ok("rewind", json!({"change": "c1"}));
    assert_eq!(f.get("f"), "1\n");
    f.ok("undo", json!({"change": fact(&rewound, "change").unwrap()}));
    assert_eq!(f.get("f"), "3\n");
    f.ok("rewind", json!({"change": middle}));
    assert_eq!(f.get("f"), "2\n");
    let last = f.ok("undo", json!({}));
    assert_eq!(
        fact(&last, "undone").as_deref(),
        Some("c1"),
        "what a rewind took back is not undone again: {last}"
    );
    assert_eq!(f.get("f"), "1\n");
}

/// C142.
#[test]
fn what_others_did_meanwhile_stays_line_by_line() {
    let f = Fixture::new();
    f.put("agent", "1\n");
    f.put("human", "1\n");
    f.put("both", "l1\nl2\nl3\n");
    edit(&f, f.session, "agent", "1", "A");
    edit(&f, f.session, "both", "l1", "A1");
    let other = f.session("agent-b");
    let theirs = edit(&f, other, "both", "l3", "B3");
    f.put("human", "2\n");
    let done = f.ok("rewind", json!({"turn": 1}));
    assert_eq!(fact(&done, "kept"), Some(theirs), "{done}");
    assert_eq!(
        (f.get("agent"), f.get("human"), f.get("both")),
        ("1\n".into(), "2\n".into(), "l1\nl2\nB3\n".into())
    );
}

#[test]
fn a_turn_is_the_state_in_which_it_began() {
    let f = Fixture::new();
    f.put("a", "0\n");
    for turn in 1..=4 {
        edit(&f, f.session, "a", &(turn - 1).to_string(), &turn.to_string());
        // A pause begins a turn.
        f.pass(121_000);
    }
    assert_eq!(fact(&f.ok("whoami", json!({})), "turn").as_deref(), Some("4"));
    f.ok("rewind", json!({"turn": 3}));
    assert_eq!(f.get("a"), "2\n");
    f.ok("rewind", json!({"turn": 2}));
    assert_eq!(f.get("a"), "1\n");
    f.no("NOTHING_TO_CHANGE", "rewind", json!({"turn": 99}));
}

#[test]
fn all_that_stands_in_the_way_is_listed_and_what_would_work_is_offered() {
    let f = Fixture::new();
    for name in ["clean", "mine", "late"] {
        f.put(name, "x\n");
    }
    edit(&f, f.session, "clean", "x", "y");
    edit(&f, f.session, "mine", "x", "y");
    let other = f.session("agent-b");
    edit(&f, other, "mine", "y", "z");
    let late = edit(&f, f.session, "late", "x", "y");
    let before = tree(&f);
    let refusal =
        f.no("UNDO_CONFLICT since=c1 changes=3 files=3 clean=2 overlap=1", "rewind", json!({"turn": 1}));
    assert!(refusal.contains("c3 (agent-b, 0 s ago) line 1:  -y  +z"), "{refusal}");
    assert!(refusal.contains(&format!(r#"rewind {{"change":"{late}"}}"#)), "{refusal}");
    assert_eq!(tree(&f), before, "nothing was written");
    let part = f.retry(&refusal);
    assert!(!part.is_error, "{}", part.text);
    assert_eq!((f.get("clean"), f.get("mine"), f.get("late")), ("x\n".into(), "z\n".into(), "x\n".into()));
}

#[test]
fn anothers_changes_are_asked_about_and_one_name_is_one_agent_over_its_sessions() {
    let f = Fixture::new();
    f.put("a", "x\n");
    let other = f.session("agent-b");
    let change = edit(&f, other, "a", "x", "y");
    let asked = f.no("APPROVAL_PENDING", "rewind", json!({"turn": 1, "agent": "agent-b"}));
    assert_eq!(f.get("a"), "y\n", "{asked}");
    let id = fact(&asked, "id").unwrap().parse().unwrap();
    f.toolbox.approve(id, &fact(&asked, "digest").unwrap()).unwrap();
    assert_eq!(f.get("a"), "x\n");
    f.no("NOT_FOUND", "rewind", json!({"turn": 1, "agent": "nobody"}));
    let twin = f.session("agent-b");
    let second = edit(&f, twin, "a", "x", "z");
    assert!(second != change);
    f.ok_as(f.session("agent-b"), "rewind", json!({"change": second}));
    assert_eq!(f.get("a"), "x\n");
}

#[test]
fn a_point_is_needed_and_only_one() {
    let f = Fixture::new();
    for args in [json!({}), json!({"turn": 1, "change": "c1"})] {
        let refusal = f.no("BAD_INPUT", "rewind", args);
        assert!(!refusal.contains("panicked"), "{refusal}");
    }
    f.no("NOT_FOUND change=c9", "rewind", json!({"change": "c9"}));
    f.no("BAD_INPUT", "rewind", json!({"change": "9"}));
}

#[test]
fn a_change_and_its_undo_are_nothing_whoever_came_after() {
    let f = Fixture::new();
    f.put("a", "one\ntwo\n");
    edit(&f, f.session, "a", "one", "uno");
    f.ok("undo", json!({}));
    let other = f.session("agent-b");
    edit(&f, other, "a", "one", "eins");
    f.no("NOTHING_TO_CHANGE", "rewind", json!({"turn": 1}));
    assert_eq!(f.get("a"), "eins\ntwo\n");
}

/// The user's repository is nobody's to take back: every byte of it stays.
#[test]
fn the_repository_is_not_touched() {
    let f = Fixture::new();
    f.put(".git/HEAD", "ref: refs/heads/main\n");
    f.put(".git/index", b"\0index");
    f.put("third/lib/.git/config", "[core]\n");
    f.put("third/lib/a", "x\n");
    let repository = |f: &Fixture| -> Vec<(String, (u32, Vec<u8>))> {
        tree(f).into_iter().filter(|(name, _)| name.contains(".git/")).collect()
    };
    let before = repository(&f);
    edit(&f, f.session, "third/lib/a", "x", "y");
    f.ok("write_file", json!({"path": "third/new", "content": "n\n"}));
    f.ok("undo", json!({}));
    f.ok("rewind", json!({"turn": 1}));
    assert_eq!((repository(&f), f.get("third/lib/a").as_str()), (before, "x\n"));
}

#[test]
fn a_move_undone_and_done_again_is_taken_back_with_what_came_after() {
    let f = Fixture::new();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let first = fact(&f.ok("move_path", json!({"from": "a", "to": "d/x"})), "change").unwrap();
    let undone = fact(&f.ok("undo", json!({"change": first})), "change").unwrap();
    f.ok("undo", json!({"change": undone}));
    f.ok("edit_file", json!({"path": "d/x", "old_text": "one", "new_text": "two"}));
    f.ok("rewind", json!({"change": first}));
    assert_eq!(f.get("a"), "one\n");
    assert!(!f.has("d"));
}
