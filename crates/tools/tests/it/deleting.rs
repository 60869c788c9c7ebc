//! `delete_file`: one file that was seen, or a link itself; nothing goes unseen, and what went comes back.

use cotenant_model::{GeneratedRule, Limits, Profile, Settings};
use serde_json::json;

use crate::fixture::{Fixture, body, fact, next_calls, notices};

#[test]
fn what_was_seen_whole_goes_and_comes_back() {
    let f = Fixture::new();
    f.put("d/a", "one\ntwo\n");
    f.ok("read_file", json!({"path": "d/a"}));
    let gone = f.ok("delete_file", json!({"path": "d/a"}));
    assert!(gone.starts_with("path=d/a deleted=yes lines=2 bytes=8 change=c1 notices=1\n"), "{gone}");
    assert_eq!(notices(&gone), ["! undo {\"change\":\"c1\"} brings it back"]);
    assert!(!f.has("d/a") && f.has("d"), "the directory stays");
    f.no("NOT_FOUND", "read_file", json!({"path": "d/a"}));
    f.ok("undo", json!({"change": "c1"}));
    assert_eq!(f.get("d/a"), "one\ntwo\n");
}

#[test]
fn what_was_not_seen_whole_stays_until_its_digest_is_named() {
    let f = Fixture::new();
    f.put("a", "l\n".repeat(50));
    let unseen = f.no("EDIT_REQUIRES_PRIOR_READ path=a lines=50", "delete_file", json!({"path": "a"}));
    f.ok("read_file", json!({"path": "a", "limit": 10}));
    let part = f.no("EDIT_REQUIRES_PRIOR_READ", "delete_file", json!({"path": "a"}));
    assert_eq!(fact(&part, "seen").as_deref(), Some("1-10"), "{part}");
    assert!(part.contains("deleting takes all of it"), "{part}");
    f.no(
        "FILE_CHANGED_SINCE_READ",
        "delete_file",
        json!({"path": "a", "expected_digest": "0123456789abcdef"}),
    );
    assert!(f.has("a"));
    assert!(!f.retry(&unseen).is_error, "the refusal carries the digest");
    assert!(!f.has("a"));
}

#[test]
fn binary_and_large_files_go_by_their_digest_too() {
    let f = Fixture::with(Settings {
        profile: Profile::Trusting,
        limits: Limits { text_bytes: 1000, ..Limits::default() },
        ..Settings::default()
    });
    f.put("bin", b"v\0x");
    f.put("big", "x\n".repeat(5000));
    for (path, why, bytes) in [("bin", "not text", "3"), ("big", "too large", "10000")] {
        let before = f.bytes(path);
        let refusal = f.no("EDIT_REQUIRES_PRIOR_READ", "delete_file", json!({"path": path}));
        assert!(refusal.contains(why), "{refusal}");
        assert_eq!(fact(&refusal, "bytes").as_deref(), Some(bytes), "{refusal}");
        let done = f.retry(&refusal);
        assert!(!done.is_error && !f.has(path), "{}", done.text);
        f.ok("undo", json!({}));
        assert!(f.bytes(path) == before, "{path} came back to the byte");
    }
}

#[test]
fn a_change_since_it_was_seen_stops_it() {
    let f = Fixture::new();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    f.put("a", "two\n");
    let refusal = f.no("FILE_CHANGED_SINCE_READ path=a", "delete_file", json!({"path": "a"}));
    assert!(refusal.contains("-one") && refusal.contains("+two"), "{refusal}");
    assert_eq!(f.get("a"), "two\n");
    f.no("FILE_CHANGED_SINCE_READ", "delete_file", json!({"path": "a"}));
    f.ok("read_file", json!({"path": "a"}));
    f.ok("delete_file", json!({"path": "a"}));
}

#[test]
fn what_is_no_file_of_ones_own_stays() {
    let f = Fixture::with(Settings {
        profile: Profile::Trusting,
        generated: vec![GeneratedRule { paths: vec!["gen/**".to_owned()], from: None, command: None }],
        ..Settings::default()
    });
    f.put("d/a", "x\n");
    f.put("gen/a", "x\n");
    f.put(".env", "K=1\n");
    f.put(".git/HEAD", "x\n");
    let directory = f.no("NOT_A_FILE path=d", "delete_file", json!({"path": "d"}));
    assert_eq!(next_calls(&directory)[0], ("list_directory".to_owned(), json!({"path": "d"})));
    for (path, code) in [
        (".", "NOT_A_FILE"),
        ("d/", "NOT_A_FILE"),
        ("d/a/", "NOT_A_DIRECTORY"),
        ("d/..", "PATH_OUTSIDE"),
        ("/", "PATH_OUTSIDE"),
        (".git", "PATH_PROTECTED"),
        (".env", "PATH_PROTECTED"),
        ("gen/a", "PATH_READ_ONLY"),
        ("none", "NOT_FOUND"),
        ("d/a/b", "NOT_A_DIRECTORY"),
        ("", "BAD_INPUT"),
    ] {
        f.no(code, "delete_file", json!({"path": path}));
    }
    assert!(f.has("d/a") && f.has("gen/a") && f.has(".env") && f.has(".git/HEAD"));
    assert!(f.changes().is_empty());
}

#[test]
fn a_dry_run_shows_what_would_go() {
    let f = Fixture::new();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let dry = f.ok("delete_file", json!({"path": "a", "dry_run": true}));
    assert_eq!(body(&dry), "--- a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n", "{dry}");
    assert!(f.has("a") && !dry.contains("brings it back"), "{dry}");
    let token = dry.split("retry ").nth(1).unwrap().split(" does").next().unwrap();
    f.ok("retry", serde_json::from_str(token).unwrap());
    assert!(!f.has("a"));
}

#[test]
fn others_who_saw_it_hear_of_it() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    f.ok_as(other, "read_file", json!({"path": "a"}));
    f.ok("delete_file", json!({"path": "a"}));
    let told = f.ok_as(other, "list_directory", json!({}));
    assert!(notices(&told)[0].contains("reload a: agent-a deleted it (c1"), "{told}");
}

#[test]
fn a_human_is_asked_where_the_profile_says_so() {
    let f = Fixture::careful();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let asked = f.call("delete_file", json!({"path": "a"}));
    assert!(asked.text.starts_with("APPROVAL_PENDING id=a1 kind=delete_file path=a"), "{}", asked.text);
    assert!(f.has("a"));
    let question = f.toolbox.waiting().remove(0);
    assert!(question.plan.diff.contains("-one"), "{}", question.plan.diff);
    f.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    assert!(!f.has("a"));
}

#[test]
fn a_name_that_is_no_text_or_has_odd_characters_is_one_all_the_same() {
    let f = Fixture::new();
    for name in ["a b", "a\nb", "__x__", "-rf", "ü"] {
        f.put(name, "x\n");
        f.ok("read_file", json!({"path": name}));
        f.ok("delete_file", json!({"path": name}));
        assert!(!f.has(name), "{name:?}");
        f.ok("undo", json!({}));
        assert_eq!(f.get(name), "x\n", "{name:?}");
    }
}

#[test]
fn the_same_name_deleted_again_and_again_keeps_every_version() {
    let f = Fixture::new();
    for text in ["1\n", "2\n", "3\n"] {
        f.ok("write_file", json!({"path": "a/same", "content": text}));
        f.ok("delete_file", json!({"path": "a/same"}));
    }
    for (change, text) in [("c2", "1\n"), ("c4", "2\n"), ("c6", "3\n")] {
        f.ok("undo", json!({"change": change}));
        assert_eq!(f.get("a/same"), text);
        f.ok("delete_file", json!({"path": "a/same"}));
    }
}
