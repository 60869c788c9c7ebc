//! Questions to the human: what waits, what lands, what does not.

use cotenant_tools::NotAnswered;
use serde_json::json;

use crate::fixture::{Fixture, fact};

fn asked(f: &Fixture) -> (cotenant_model::ApprovalId, String, String) {
    f.put("p.rs", "one\ntwo\n");
    f.ok("read_file", json!({"path": "p.rs"}));
    let pending = f.call("edit_file", json!({"path": "p.rs", "old_text": "two", "new_text": "2"}));
    assert!(!pending.is_error && pending.text.starts_with("APPROVAL_PENDING id=a"), "{}", pending.text);
    let id = fact(&pending.text, "id").unwrap().parse().unwrap();
    let digest = fact(&pending.text, "digest").unwrap();
    (id, digest, pending.text)
}

#[test]
fn what_was_approved_is_what_lands_and_retry_collects_it() {
    let f = Fixture::careful();
    let (id, digest, pending) = asked(&f);
    assert_eq!(f.get("p.rs"), "one\ntwo\n");
    assert!(f.retry(&pending.replace(",\"wait_s\":50", "")).text.starts_with("APPROVAL_PENDING"));
    f.toolbox.approve(id, &digest).unwrap();
    assert_eq!(f.get("p.rs"), "one\n2\n", "it lands without being asked for again");
    let collected = f.retry(&pending);
    assert!(collected.text.contains("match=exact change=c1"), "{}", collected.text);
    assert!(matches!(f.toolbox.approve(id, &digest), Err(NotAnswered::Gone)));
}

#[test]
fn a_denial_gives_its_reason_and_writes_nothing() {
    let f = Fixture::careful();
    let (id, digest, pending) = asked(&f);
    f.toolbox.deny(id, Some(&digest), "keep the old one").unwrap();
    let collected = f.retry(&pending);
    assert!(collected.is_error && collected.text.contains("keep the old one"), "{}", collected.text);
    assert_eq!(f.get("p.rs"), "one\ntwo\n");
}

#[test]
fn another_digest_approves_nothing() {
    let f = Fixture::careful();
    let (id, _, _) = asked(&f);
    assert!(matches!(f.toolbox.approve(id, "0123456789abcdef"), Err(NotAnswered::Other(_))));
    assert_eq!(f.get("p.rs"), "one\ntwo\n");
}

#[test]
fn a_file_that_changed_meanwhile_is_planned_anew_under_a_new_digest() {
    let f = Fixture::careful();
    let (id, digest, _) = asked(&f);
    f.put("p.rs", "zero\none\nmore\ntwo\n");
    // Two lines away from the change there is an unchanged one... which `two` itself is not: it was shown.
    match f.toolbox.approve(id, &digest) {
        Err(NotAnswered::Replanned(anew)) => {
            assert_ne!(anew, digest);
            assert!(
                matches!(f.toolbox.approve(id, &digest), Err(NotAnswered::Other(_))),
                "the old yes is void"
            );
            f.toolbox.approve(id, &anew).unwrap();
            assert_eq!(f.get("p.rs"), "zero\none\nmore\n2\n");
        }
        Err(NotAnswered::Stale) => assert_eq!(f.get("p.rs"), "zero\none\nmore\ntwo\n"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn creating_needs_no_question_and_instructions_always_do() {
    let f = Fixture::careful();
    f.ok("write_file", json!({"path": "new.txt", "content": "x"}));
    f.no("APPROVAL_PENDING", "write_file", json!({"path": "AGENTS.md", "content": "x"}));
    assert!(!f.has("AGENTS.md"));
}
