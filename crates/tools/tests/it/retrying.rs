//! `retry` and `read_more`: what a token repeats, what may be changed, and the rest of a long answer.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact};

fn token(text: &str) -> String {
    text.split("\"token\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

/// A workspace whose file `a` was never shown, and the token of an edit of it.
fn refused(args: Value) -> (Fixture, String) {
    let f = Fixture::new();
    f.put("a", "x\ny\nx\n");
    let mut call = json!({"path": "a", "old_text": "y", "new_text": "z"});
    call.as_object_mut().unwrap().extend(args.as_object().cloned().unwrap_or_default());
    let refusal = f.call("edit_file", call);
    assert!(refusal.is_error, "{}", refusal.text);
    let token = token(&refusal.text);
    (f, token)
}

#[test]
fn set_merges_null_removes_and_the_rest_stays() {
    for (set, result) in [
        (json!({}), "x\nz\nx\n"),
        (json!({"new_text": "Z"}), "x\nZ\nx\n"),
        (json!({"newText": "Z"}), "x\nZ\nx\n"),
        (json!({"new_string": "Z", "old_string": "y\n"}), "x\nZx\n"),
        (json!({"old_text": "x", "replace_all": true}), "z\ny\nz\n"),
        (json!({"old_text": "x", "line": 3}), "x\ny\nz\n"),
        (json!("{\"new_text\":\"Z\"}"), "x\nZ\nx\n"),
        (json!({"nothing": null}), "x\nz\nx\n"),
    ] {
        let (f, token) = refused(json!({}));
        let done = f.ok("retry", json!({"token": token, "set": set}));
        assert_eq!(f.get("a"), result, "{set}: {done}");
    }
}

#[test]
fn an_argument_is_the_same_by_any_of_its_names() {
    let f = Fixture::new();
    f.put("a", "x\n");
    f.put("b", "x\n");
    let refusal =
        f.no("EDIT_REQUIRES", "edit_file", json!({"filePath": "a", "oldString": "x", "newString": "y"}));
    f.ok("read_file", json!({"path": "b"}));
    f.ok("retry", json!({"token": token(&refusal), "set": {"path": "b", "new_text": "z"}}));
    assert_eq!((f.get("a").as_str(), f.get("b").as_str()), ("x\n", "z\n"));
    let removed = f.no("BAD_INPUT", "retry", json!({"token": token(&refusal), "set": {"new_text": null}}));
    assert!(removed.contains("old_text and new_text"), "{removed}");
}

#[test]
fn a_repeated_call_is_checked_as_a_new_one() {
    let (f, token) = refused(json!({}));
    for (set, code) in [
        (json!({"path": ".env"}), "PATH_PROTECTED"),
        (json!({"path": "../a"}), "PATH_OUTSIDE"),
        (json!({"nonsense": 1}), "BAD_INPUT"),
        (json!({"replace_all": "perhaps"}), "BAD_INPUT"),
        (json!({"old_text": "q"}), "TEXT_NOT_FOUND"),
        (json!({"old_text": "x"}), "TEXT_AMBIGUOUS"),
    ] {
        f.no(code, "retry", json!({"token": token, "set": set}));
    }
    assert_eq!(f.get("a"), "x\ny\nx\n");
    f.ok("retry", json!({"token": token}));
    f.no("TEXT_NOT_FOUND", "retry", json!({"token": token}));
    for bad in ["r99", "a1", "", "r", "r-1", "r1r1"] {
        f.no("HANDLE_EXPIRED", "retry", json!({"token": bad}));
    }
    f.no("BAD_INPUT", "retry", json!({"token": token, "set": 3}));
    f.no("BAD_INPUT", "retry", json!({"set": {}}));
}

#[test]
fn a_rehearsed_retry_writes_nothing() {
    let (f, token) = refused(json!({}));
    let dry = f.ok("retry", json!({"token": token, "dry_run": true}));
    assert!(dry.contains("dry_run=yes") && body(&dry).contains("-y\n+z"), "{dry}");
    assert_eq!(f.get("a"), "x\ny\nx\n");
    f.retry(&dry);
    assert_eq!(f.get("a"), "x\nz\nx\n");
}

#[test]
fn a_slip_in_a_name_is_mended_without_sending_the_text_again() {
    let f = Fixture::new();
    let text = "y".repeat(3000);
    let refusal = f.no("BAD_INPUT", "write_file", json!({"path": "n", "content": text, "overwritten": true}));
    assert!(refusal.len() < 1200 && refusal.contains("Did you mean overwrite?"), "{refusal}");
    let done = f.follow(&refusal);
    assert!(done.text.contains("created=yes"), "{}", done.text);
    let tool = f.no("BAD_INPUT tool=raed_file", "raed_file", json!({"path": "n", "limit": 1}));
    assert!(f.follow(&tool).text.starts_with("path=n lines=1-1"), "{tool}");
    let typed = f.no("BAD_INPUT", "retry", json!({"token": "r1", "wait_s": "soon"}));
    assert!(typed.contains("whole number"), "{typed}");
}

#[test]
fn a_pending_token_collects_or_asks_anew_with_other_arguments() {
    let f = Fixture::careful();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let first = f.no(
        "APPROVAL_PENDING id=a1",
        "edit_file",
        json!({"path": "a", "old_text": "one", "new_text": "two"}),
    );
    let token = token(&first);
    f.no("APPROVAL_PENDING id=a1", "retry", json!({"token": token}));
    f.no("APPROVAL_PENDING id=a2", "retry", json!({"token": token, "set": {"new_text": "three"}}));
    let dry = f.ok("retry", json!({"token": token, "dry_run": true}));
    assert!(body(&dry).contains("-one\n+two"), "{dry}");
    let answer = std::thread::scope(|scope| {
        let waits = scope.spawn(|| f.call("retry", json!({"token": token, "wait_s": 50})));
        let question =
            f.toolbox.waiting().into_iter().find(|question| question.id.to_string() == "a1").unwrap();
        f.toolbox.deny(question.id, None, "use three").unwrap();
        waits.join().unwrap()
    });
    assert!(
        answer.text.starts_with("APPROVAL_DENIED id=a1 kind=edit_file path=a by=human"),
        "{}",
        answer.text
    );
    assert_eq!(f.get("a"), "one\n");
}

#[test]
fn a_handle_is_bound_to_its_session_and_time() {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "long", "content": "line\n".repeat(3000)}));
    let shown = f.ok("show_change", json!({"change": "c1", "max_bytes": 1000}));
    assert!(shown.len() < 1400, "{} bytes", shown.len());
    let handle = fact(&shown, "handle").unwrap();
    let other = f.session("agent-b");
    assert!(f.call_as(other, "read_more", json!({"handle": handle})).text.starts_with("HANDLE_EXPIRED"));
    for odd in ["h99", "", "h", "c1"] {
        f.no("HANDLE_EXPIRED", "read_more", json!({"handle": odd}));
    }
    let beyond = f.ok("read_more", json!({"handle": handle, "offset": 1_000_000}));
    assert!(fact(&beyond, "next_offset").is_none(), "{beyond}");
    f.pass(24 * 3_600_000);
    f.no("HANDLE_EXPIRED", "read_more", json!({"handle": handle}));
}

#[test]
fn only_the_matching_lines_with_what_stands_around_them() {
    let f = Fixture::new();
    let text: String = (1..=300).map(|n| format!("line {n}\n")).collect();
    f.ok("write_file", json!({"path": "long", "content": text}));
    let handle = fact(&f.ok("show_change", json!({"change": "c1", "max_bytes": 500})), "handle").unwrap();
    let more = |args: Value| {
        let mut call = json!({"handle": handle});
        call.as_object_mut().unwrap().extend(args.as_object().cloned().unwrap_or_default());
        f.ok("read_more", call)
    };
    let hits = more(json!({"pattern": "line 15\\d$", "context_lines": 1}));
    let lines: Vec<String> = body(&hits).lines().map(str::to_owned).collect();
    assert_eq!(fact(&hits, "matches").as_deref(), Some("10"));
    assert_eq!(lines.len(), 12, "{hits}");
    assert!(lines[0].contains("-+line 149") && lines[1].contains(":+line 150"), "{hits}");
    let page = more(json!({"pattern": "line", "limit": 7}));
    assert_eq!(fact(&page, "next_offset").as_deref(), Some("7"), "{page}");
    let next = more(json!({"pattern": "line", "limit": 7, "offset": 7}));
    assert!(
        body(&next).starts_with(&body(&page).lines().last().unwrap().replace("7", "8")[..2])
            || !body(&next).is_empty()
    );
    assert_eq!(fact(&more(json!({"pattern": "no such"})), "matches").as_deref(), Some("0"));
    let most = more(json!({"pattern": "line"}));
    assert_eq!(fact(&most, "shown").as_deref(), Some("200"), "{most}");
    f.no("PATTERN_TOO_LARGE", "read_more", json!({"handle": handle, "pattern": "(\\w{500}){500}"}));
    assert!(
        f.follow(&f.no("PATTERN_INVALID", "read_more", json!({"handle": handle, "pattern": "("})))
            .text
            .starts_with("handle=")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_a_handle_are_the_whole(lines in proptest::collection::vec("[a-zé😀]{1,60}", 10..60), limit in 1usize..400) {
        let f = Fixture::new();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        f.ok("write_file", json!({"path": "w", "content": text}));
        let whole = body(&f.ok("show_change", json!({"change": "c1"})));
        let cut = f.ok("show_change", json!({"change": "c1", "max_bytes": 256}));
        prop_assume!(fact(&cut, "handle").is_some());
        let handle = fact(&cut, "handle").unwrap();
        let mut pages = Vec::new();
        let mut offset = 0usize;
        loop {
            let page = f.ok("read_more", json!({"handle": handle, "offset": offset, "limit": limit}));
            pages.push(body(&page));
            match fact(&page, "next_offset") {
                Some(next) => {
                    let next: usize = next.parse().unwrap();
                    prop_assert!(next > offset);
                    offset = next;
                }
                None => break,
            }
        }
        prop_assert_eq!(pages.join("\n"), whole.clone());
        prop_assert!(whole.starts_with(&body(&cut)), "what came first is the beginning");
    }
}
