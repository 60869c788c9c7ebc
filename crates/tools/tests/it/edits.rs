//! Editing, from the call to the disk and back.

use serde_json::json;

use crate::fixture::{Fixture, fact};

#[test]
fn read_edit_and_undo() {
    let f = Fixture::new();
    f.put("src/a.rs", "fn a() {\n    one();\n}\n");
    let read = f.ok("read_file", json!({"path": "src/a.rs"}));
    assert!(read.starts_with("path=src/a.rs lines=1-3 of=3 bytes=22 digest="), "{read}");
    assert!(read.ends_with("\n1|fn a() {\n2|    one();\n3|}"), "{read}");
    let edit = f.ok(
        "edit_file",
        json!({"path": "src/a.rs", "old_text": "one();", "new_text": "two();\n    three();"}),
    );
    assert!(edit.starts_with("path=src/a.rs edited=2-3 was=2-2 match=exact change=c1 digest="), "{edit}");
    assert!(edit.ends_with("\n1|fn a() {\n2|    two();\n3|    three();\n4|}"), "{edit}");
    assert_eq!(f.get("src/a.rs"), "fn a() {\n    two();\n    three();\n}\n");
    let history = f.ok("history", json!({}));
    assert!(
        history.contains("c1 2026-11-30T15:44:03Z agent=agent-a tool=edit_file files=src/a.rs"),
        "{history}"
    );
    let shown = f.ok("show_change", json!({"change": "c1"}));
    assert!(shown.contains("-    one();\n+    two();\n+    three();"), "{shown}");
    let undone = f.ok("undo", json!({}));
    assert!(undone.starts_with("undone=c1 change=c2"), "{undone}");
    assert_eq!(f.get("src/a.rs"), "fn a() {\n    one();\n}\n");
    // An undo is a change like any other.
    f.ok("undo", json!({"change": "c2"}));
    assert_eq!(f.get("src/a.rs"), "fn a() {\n    two();\n    three();\n}\n");
}

#[test]
fn an_unseen_file_asks_for_a_look_and_then_takes_the_same_edit() {
    let f = Fixture::new();
    f.put("net.rs", "a\nb\nc\nd\n");
    let refusal = f.no(
        "EDIT_REQUIRES_PRIOR_READ path=net.rs",
        "edit_file",
        json!({"path": "net.rs", "old_text": "c", "new_text": "C"}),
    );
    assert!(refusal.contains("1|a\n2|b\n3|c\n4|d"), "{refusal}");
    assert_eq!(f.get("net.rs"), "a\nb\nc\nd\n");
    let answer = f.retry(&refusal);
    assert!(answer.text.contains("match=exact"), "{}", answer.text);
    assert_eq!(f.get("net.rs"), "a\nb\nC\nd\n");
}

#[test]
fn a_wrong_indent_is_offered_as_one_short_call() {
    let f = Fixture::new();
    f.put("main.go", "func f() {\n\tif err != nil {\n\t\treturn nil, err\n\t}\n}\n");
    f.ok("read_file", json!({"path": "main.go"}));
    let refusal = f.no(
        "TEXT_NOT_FOUND path=main.go cause=tabs",
        "edit_file",
        json!({"path": "main.go", "old_text": "    if err != nil {\n        return nil, err", "new_text": "    if err != nil {\n        return err"}),
    );
    let token = refusal.split("\"suggestion\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let edit = f.ok("edit_file", json!({"path": "main.go", "suggestion": token}));
    assert!(edit.contains("match=indent(tabs)"), "{edit}");
    assert_eq!(f.get("main.go"), "func f() {\n\tif err != nil {\n\t\treturn err\n\t}\n}\n");
}

#[test]
fn an_ambiguous_text_is_told_apart_and_taken_by_line() {
    let f = Fixture::new();
    f.put("lib.rs", "impl A {\n    close();\n}\nimpl B {\n    close();\n}\n");
    f.ok("read_file", json!({"path": "lib.rs"}));
    let refusal = f.no(
        "TEXT_AMBIGUOUS path=lib.rs count=2 lines=2,5",
        "edit_file",
        json!({"path": "lib.rs", "old_text": "close();", "new_text": "open();"}),
    );
    assert!(refusal.contains("impl B"), "{refusal}");
    let answer = f.retry(&refusal);
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(f.get("lib.rs"), "impl A {\n    close();\n}\nimpl B {\n    open();\n}\n");
}

#[test]
fn a_change_elsewhere_does_not_stop_an_edit_a_change_nearby_does() {
    let f = Fixture::new();
    f.put("s.txt", "a\nb\nc\nd\ne\n");
    f.ok("read_file", json!({"path": "s.txt"}));
    f.put("s.txt", "A\nb\nc\nd\ne\n");
    f.ok("edit_file", json!({"path": "s.txt", "old_text": "e", "new_text": "E"}));
    assert_eq!(f.get("s.txt"), "A\nb\nc\nd\nE\n");
    f.put("s.txt", "A\nb\nc\nD\nE\n");
    let refusal = f.no(
        "FILE_CHANGED_SINCE_READ path=s.txt",
        "edit_file",
        json!({"path": "s.txt", "old_text": "E", "new_text": "F"}),
    );
    assert!(refusal.contains("-d\n+D"), "{refusal}");
    assert_eq!(f.get("s.txt"), "A\nb\nc\nD\nE\n");
    // The lines shown count as read.
    f.ok("edit_file", json!({"path": "s.txt", "old_text": "D\nE", "new_text": "D\nF"}));
}

#[test]
fn creating_overwriting_and_refusing_to_overwrite() {
    let f = Fixture::new();
    let made = f.ok("write_file", json!({"path": "a/b/c.txt", "content": "one"}));
    assert!(made.contains("created=yes lines=1 bytes=4 directories=2 change=c1"), "{made}");
    assert_eq!(f.get("a/b/c.txt"), "one\n");
    let refusal =
        f.no("ALREADY_EXISTS path=a/b/c.txt", "write_file", json!({"path": "a/b/c.txt", "content": "two\n"}));
    assert_eq!(f.get("a/b/c.txt"), "one\n");
    let answer = f.retry(&refusal);
    assert!(answer.text.contains("overwritten=yes"), "{}", answer.text);
    assert_eq!(f.get("a/b/c.txt"), "two\n");
    f.no(
        "NOTHING_TO_CHANGE",
        "write_file",
        json!({"path": "a/b/c.txt", "content": "two\n", "overwrite": true}),
    );
    f.no("UNDO_CONFLICT change=c1", "undo", json!({"change": "c1"}));
    f.ok("undo", json!({"change": "c2"}));
    f.ok("undo", json!({"change": "c1"}));
    assert!(!f.has("a"), "the directories it made went, too");
}

#[test]
fn a_dry_run_shows_the_diff_and_its_token_does_it() {
    let f = Fixture::new();
    f.put("x", "1\n");
    f.ok("read_file", json!({"path": "x"}));
    let dry = f.ok("edit_file", json!({"path": "x", "old_text": "1", "new_text": "2", "dry_run": true}));
    assert!(dry.contains("dry_run=yes") && dry.contains("-1\n+2"), "{dry}");
    assert_eq!(f.get("x"), "1\n");
    let done = f.retry(&dry);
    assert!(done.text.contains("change=c1"), "{}", done.text);
    assert_eq!(f.get("x"), "2\n");
}

#[test]
fn a_key_that_comes_twice_is_answered_once() {
    let f = Fixture::new();
    let args = json!({"path": "k", "content": "v\n", "idempotency_key": "once"});
    let first = f.ok("write_file", args.clone());
    assert_eq!(f.ok("write_file", args), first);
    let history = f.ok("history", json!({}));
    assert_eq!(fact(&history, "changes").as_deref(), Some("1"), "{history}");
    f.no("BAD_INPUT", "write_file", json!({"path": "k2", "content": "v\n", "idempotency_key": "once"}));
}

#[test]
fn another_sessions_change_is_told_with_the_next_answer() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.put("shared", "a\nb\nc\n");
    f.ok("read_file", json!({"path": "shared"}));
    let read = f.call_as(other, "read_file", json!({"path": "shared"}));
    assert!(!read.is_error);
    let edit = f.call_as(other, "edit_file", json!({"path": "shared", "old_text": "c", "new_text": "C"}));
    assert!(!edit.is_error, "{}", edit.text);
    let next = f.ok("whoami", json!({}));
    assert!(next.contains("notices=1\n! reload shared: agent-b changed line 3 (c1"), "{next}");
    assert!(!f.ok("whoami", json!({})).contains("notices="), "told once");
}

#[test]
fn what_is_proposed_for_one_edit_is_proposed_for_all_that_miss() {
    let f = Fixture::new();
    let text = "def a():\n\treturn 1\n\ndef b():\n\treturn 2\n\ndef c():\n\treturn 3\n";
    f.put("a.py", text);
    f.ok("read_file", json!({"path": "a.py"}));
    let edit = |name: &str, n: u8| json!({"old_text": format!("def {name}():\n    return {n}"), "new_text": format!("def {name}():\n    return {n}0")});
    let edits = json!([edit("a", 1), edit("b", 2), edit("c", 3)]);
    let refused =
        f.no("TEXT_NOT_FOUND path=a.py cause=tabs", "edit_file", json!({"path": "a.py", "edits": edits}));
    let done = f.follow(&refused);
    assert!(!done.is_error, "{}", done.text);
    assert_eq!(f.get("a.py"), "def a():\n\treturn 10\n\ndef b():\n\treturn 20\n\ndef c():\n\treturn 30\n");
}

#[test]
fn a_path_that_is_not_there_is_answered_with_the_edit_of_the_one_that_has_the_text() {
    let f = Fixture::new();
    f.put("src/Parser.rs", "fn only_here() {}\n");
    f.put("src/Parsed.rs", "fn elsewhere() {}\n");
    f.ok("read_file", json!({"path": "src/Parser.rs"}));
    for named in ["a/src/Parser.rs", "src/parser.rs"] {
        let edit = json!({"path": named, "old_text": "fn only_here() {}", "new_text": "fn renamed() {}"});
        let refused = f.no("NOT_FOUND", "edit_file", edit);
        assert!(refused.contains(r#""set":{"path":"src/Parser.rs"}"#), "{refused}");
        assert!(!f.follow(&refused).is_error);
        assert_eq!(f.get("src/Parser.rs"), "fn renamed() {}\n");
        f.ok("edit_file", json!({"path": "src/Parser.rs", "old_text": "renamed", "new_text": "only_here"}));
    }
    // Where none of them has the text, there is nothing to repeat.
    let refused = f.no(
        "NOT_FOUND",
        "edit_file",
        json!({"path": "src/parser.rs", "old_text": "absent", "new_text": "x"}),
    );
    assert!(refused.contains("next: read_file"), "{refused}");
}
