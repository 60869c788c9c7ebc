//! Receipts: what a session must have been shown before it may edit or replace, and what stands of it when others write.

use cotenant_model::{Edits, Profile, Settings, StalePolicy};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact, notices};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_text": old, "new_text": new})
}

fn with(edits: Edits) -> Fixture {
    Fixture::with(Settings { profile: Profile::Trusting, edits, ..Settings::default() })
}

/// `count` lines `l1`, `l2` …
fn numbered(count: usize) -> String {
    (1..=count).map(|n| format!("l{n}\n")).collect()
}

#[test]
fn an_edit_outside_of_what_was_shown_says_so() {
    let f = Fixture::new();
    f.put("a", numbered(30));
    f.ok("read_file", json!({"path": "a", "limit": 10}));
    let seen = f.ok("edit_file", edit("a", "l5\n", "L5\n"));
    assert_eq!(fact(&seen, "unseen"), None, "{seen}");
    let unseen = f.ok("edit_file", edit("a", "l25\n", "L25\n"));
    assert_eq!(fact(&unseen, "unseen").as_deref(), Some("yes"), "{unseen}");
    let now_seen = f.ok("edit_file", edit("a", "L25\n", "l25\n"));
    assert_eq!(fact(&now_seen, "unseen"), None, "an edit's own lines count as read: {now_seen}");
}

#[test]
fn a_session_knows_what_another_was_shown_only_if_it_was_shown_too() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.put("a", "x\n");
    f.ok_as(other, "read_file", json!({"path": "a"}));
    f.no("EDIT_REQUIRES_PRIOR_READ", "edit_file", edit("a", "x", "y"));
    let twin = f.session("agent-a");
    let answer = f.call_as(twin, "edit_file", edit("a", "x", "y"));
    assert!(
        answer.text.starts_with("EDIT_REQUIRES"),
        "the same agent's other session is another: {}",
        answer.text
    );
}

#[test]
fn never_shown_shows_each_place_and_then_takes_it() {
    let f = Fixture::new();
    f.put("a", "x = 1\n".repeat(2) + &numbered(20) + "x = 1\n");
    let refusal = f.no(
        "EDIT_REQUIRES_PRIOR_READ path=a",
        "edit_file",
        json!({"path": "a", "old_text": "x = 1", "new_text": "x = 2", "replace_all": true}),
    );
    assert!(refusal.contains("at 3 places, the first at line 1"), "{refusal}");
    assert!(refusal.contains("1|x = 1\n2|x = 1\n3|l1\n4|l2\n--\n21|l19\n22|l20\n23|x = 1"), "{refusal}");
    let done = f.follow(&refusal);
    assert_eq!(fact(&done.text, "replaced").as_deref(), Some("3"), "{}", done.text);
    assert_eq!(fact(&done.text, "unseen"), None, "{}", done.text);
}

#[test]
fn where_the_text_does_not_fit_what_is_shown_counts_as_read() {
    let f = Fixture::new();
    f.put("a", "fn compute_total(items: &[u32]) -> u32 {\n    items.iter().sum()\n}\n");
    let refusal =
        f.no("TEXT_NOT_FOUND path=a", "edit_file", edit("a", "fn compute_total(item: &[u32]) -> u64 {", "x"));
    assert!(refusal.contains("1|fn compute_total(items"), "{refusal}");
    f.ok("edit_file", edit("a", "items: &[u32]", "all: &[u32]"));
}

#[test]
fn a_change_of_someone_outside_is_told_and_spares_what_it_does_not_touch() {
    let f = Fixture::new();
    f.put("a", numbered(10));
    f.ok("read_file", json!({"path": "a"}));
    f.put("a", numbered(10).replace("l2\n", "l2\nnew\nnew\n"));
    let edited = f.ok("edit_file", edit("a", "l8", "L8"));
    assert_eq!(fact(&edited, "edited").as_deref(), Some("10-10"), "{edited}");
    assert!(
        notices(&edited)[0].contains("not where you edited: line 3-4 (someone outside cotenant)"),
        "{edited}"
    );
    // Afterwards it is the session's own version; what others put in was still not shown.
    let unseen = f.ok("edit_file", edit("a", "l2\nnew\nnew", "l2"));
    assert_eq!(fact(&unseen, "unseen").as_deref(), Some("yes"), "{unseen}");
    assert_eq!(f.get("a"), numbered(10).replace("l8", "L8"));
}

#[test]
fn a_change_of_another_session_is_told_by_name_and_number() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.put("a", numbered(10));
    f.ok("read_file", json!({"path": "a"}));
    f.ok_as(other, "read_file", json!({"path": "a"}));
    f.ok_as(other, "edit_file", edit("a", "l5", "five"));
    f.pass(12_000);
    let refusal = f.no(
        "FILE_CHANGED_SINCE_READ path=a by=agent-b change=c1 age_s=12",
        "edit_file",
        edit("a", "l6", "six"),
    );
    assert!(refusal.contains("-l5\n+five\nThey count as read now; nothing was written."), "{refusal}");
    let now = f.ok("edit_file", edit("a", "five\nl6", "five\nsix"));
    assert_eq!(fact(&now, "unseen").as_deref(), Some("yes"), "line 6 itself was not in the diff: {now}");
    assert_eq!(f.get("a"), numbered(10).replace("l5", "five").replace("l6", "six"));
}

#[test]
fn text_that_another_took_away_is_stale_not_unknown() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.put("a", numbered(10));
    f.ok("read_file", json!({"path": "a"}));
    f.ok_as(other, "read_file", json!({"path": "a"}));
    f.ok_as(other, "edit_file", edit("a", "l5\nl6", "between"));
    let refusal = f.no("TEXT_NOT_FOUND path=a cause=stale", "edit_file", edit("a", "l4\nl5", "x"));
    assert!(
        refusal.contains("stood at lines 4-5") && refusal.contains("agent-b") && refusal.contains("c1"),
        "{refusal}"
    );
    assert!(refusal.contains("4|l4\n5|between\n6|l7"), "{refusal}");
    let shown = f.follow(&refusal);
    assert!(shown.text.contains("-l5\n-l6\n+between"), "{}", shown.text);
    f.ok("edit_file", edit("a", "l4\nbetween", "x"));
}

#[test]
fn strict_settings_refuse_any_change() {
    let f = with(Edits { tolerant: Vec::new(), stale: StalePolicy::Strict });
    f.put("a", numbered(30));
    f.ok("read_file", json!({"path": "a"}));
    f.put("a", numbered(30).replace("l1\n", "L1\n"));
    let refusal = f.no("FILE_CHANGED_SINCE_READ path=a", "edit_file", edit("a", "l30", "L30"));
    assert!(refusal.contains("-l1\n+L1"), "{refusal}");
    f.ok("edit_file", edit("a", "l30", "L30"));
}

#[test]
fn own_work_is_never_stale() {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "a", "content": numbered(6)}));
    for n in 1..=6 {
        let edited = f.ok("edit_file", edit("a", &format!("l{n}\n"), &format!("a{n}\nb{n}\n")));
        assert_eq!((fact(&edited, "unseen"), fact(&edited, "notices")), (None, None), "{edited}");
    }
    f.ok("write_file", json!({"path": "a", "content": "new\n", "overwrite": true}));
    f.ok("undo", json!({}));
    f.ok("edit_file", edit("a", "a1", "A1"));
    f.ok("write_file", json!({"path": "a", "content": "newer\n", "overwrite": true}));
}

#[test]
fn overwriting_needs_all_of_it_and_pages_add_up() {
    let f = Fixture::new();
    f.put("a", numbered(700));
    let over = json!({"path": "a", "content": "new\n", "overwrite": true});
    f.ok("read_file", json!({"path": "a"}));
    let part = f.no("EDIT_REQUIRES_PRIOR_READ path=a lines=700 seen=1-200", "write_file", over.clone());
    assert!(part.contains("only 1-200 of the 700 lines"), "{part}");
    for start in [201, 401] {
        f.ok("read_file", json!({"path": "a", "start": start}));
    }
    let still = f.no("EDIT_REQUIRES_PRIOR_READ", "write_file", over.clone());
    assert!(still.contains("seen=1-600"), "{still}");
    f.ok("read_file", json!({"path": "a", "start": -100}));
    f.ok("write_file", over);
    assert_eq!(f.get("a"), "new\n");
}

#[test]
fn a_digest_stands_for_a_look_and_a_wrong_one_for_none() {
    let f = Fixture::new();
    f.put("bin", b"\0\x01");
    let unseen = f.no(
        "EDIT_REQUIRES_PRIOR_READ",
        "write_file",
        json!({"path": "bin", "content": "x", "overwrite": true}),
    );
    let digest = fact(&unseen, "digest").unwrap();
    f.put("bin", b"\0\x02");
    let moved = json!({"path": "bin", "content": "x", "overwrite": true, "expected_digest": digest});
    f.no("FILE_CHANGED_SINCE_READ path=bin", "write_file", moved);
    f.put("bin", b"\0\x01");
    for wrong in [&digest[..8], "0123456789abcdef", ""] {
        f.no(
            "FILE_CHANGED",
            "write_file",
            json!({"path": "bin", "content": "x", "overwrite": true, "expected_digest": wrong}),
        );
    }
    let done = f.ok(
        "write_file",
        json!({"path": "bin", "content": "x", "overwrite": true, "expected_digest": digest}),
    );
    assert!(done.contains("overwritten=yes"), "{done}");
}

#[test]
fn a_whole_file_that_changed_wants_a_new_look_not_a_diff() {
    let f = Fixture::new();
    f.put("a", numbered(5));
    f.ok("read_file", json!({"path": "a"}));
    f.put("a", numbered(6));
    let over = json!({"path": "a", "content": "new\n", "overwrite": true});
    let refusal = f.no("FILE_CHANGED_SINCE_READ", "write_file", over.clone());
    assert!(refusal.contains("+l6"), "{refusal}");
    f.no("FILE_CHANGED_SINCE_READ", "write_file", over.clone());
    assert!(f.follow(&refusal).text.contains("6|l6"));
    f.ok("write_file", over);
}

#[test]
fn a_change_that_is_shown_counts_as_read() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.ok_as(other, "write_file", json!({"path": "a", "content": numbered(40)}));
    f.ok_as(other, "edit_file", edit("a", "l20\n", "L20\n"));
    f.no("EDIT_REQUIRES_PRIOR_READ", "write_file", json!({"path": "a", "content": "x", "overwrite": true}));
    let shown = f.ok("show_change", json!({"change": "c2"}));
    assert!(shown.contains("-l20\n+L20"), "{shown}");
    let near = f.ok("edit_file", edit("a", "L20", "twenty"));
    assert_eq!(fact(&near, "unseen"), None, "{near}");
    let far = f.ok("edit_file", edit("a", "l40", "forty"));
    assert_eq!(fact(&far, "unseen").as_deref(), Some("yes"), "only what the diff shows: {far}");
    // The creation shows every line.
    let third = f.session("agent-c");
    f.ok_as(other, "write_file", json!({"path": "b", "content": "1\n2\n"}));
    f.ok_as(third, "show_change", json!({"change": "c5"}));
    f.ok_as(third, "write_file", json!({"path": "b", "content": "3\n", "overwrite": true}));
}

#[test]
fn looking_at_an_old_change_takes_nothing_from_what_is_known() {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "a", "content": numbered(9)}));
    f.ok("edit_file", edit("a", "l5", "five"));
    f.ok("show_change", json!({"change": "c1"}));
    let over = f.ok("write_file", json!({"path": "a", "content": "x\n", "overwrite": true}));
    assert!(over.contains("overwritten=yes"), "{over}");
}

#[test]
fn the_third_miss_in_a_row_carries_the_region() {
    let f = Fixture::new();
    let text: String = (1..=40).map(|n| format!("    let value_{n} = compute({n});\n")).collect();
    f.put("a", text);
    f.ok("read_file", json!({"path": "a"}));
    let wrong = edit("a", "    let value_20 = compute(20) + rest(99);\n    other_thing();", "x");
    let first = f.no("TEXT_NOT_FOUND", "edit_file", wrong.clone());
    assert_eq!(fact(&first, "tries"), None, "{first}");
    f.no("TEXT_NOT_FOUND", "edit_file", wrong.clone());
    let third = f.no("TEXT_NOT_FOUND", "edit_file", wrong.clone());
    assert_eq!(fact(&third, "tries").as_deref(), Some("3"), "{third}");
    assert!(third.contains("do not send the same text again"), "{third}");
    assert!(third.lines().filter(|line| line.contains("compute(")).count() >= 8, "{third}");
    // An edit that lands ends the row.
    f.ok("edit_file", edit("a", "value_1 =", "value_one ="));
    assert_eq!(fact(&f.no("TEXT_NOT_FOUND", "edit_file", wrong), "tries"), None);
}

#[test]
fn a_text_that_stands_in_another_file_is_offered_there() {
    let f = Fixture::new();
    f.put("src/parser.rs", "fn unrelated() {}\n");
    f.put("src/old/parser.rs", "a\nfn very_special_function() {}\nb\n");
    f.ok("read_file", json!({"path": "src/parser.rs"}));
    let refusal = f.no(
        "TEXT_NOT_FOUND path=src/parser.rs cause=other-file",
        "edit_file",
        edit("src/parser.rs", "fn very_special_function() {}", "fn renamed() {}"),
    );
    assert!(refusal.contains("src/old/parser.rs:2"), "{refusal}");
    let done = f.follow(&refusal);
    assert!(!done.is_error, "{}", done.text);
    assert_eq!(f.get("src/old/parser.rs"), "a\nfn renamed() {}\nb\n");
    // In two others it is not offered: which one is meant?
    f.put("x1", "one of two places\n");
    f.put("x2", "one of two places\n");
    let two = f.no("TEXT_NOT_FOUND", "edit_file", edit("src/parser.rs", "one of two places", "x"));
    assert!(!two.contains("other-file") && !two.contains("x1"), "{two}");
}

#[test]
fn a_level_that_the_settings_allow_is_applied_and_named() {
    let text = "fn a() {\n    let s = \u{201c}q\u{201d};   \n    done();\n}\n";
    for (level, old, new, named) in [
        ("trailing-space", "    let s = \u{201c}q\u{201d};\n    done();", "    done(1);", "trailing-space"),
        ("punctuation", "let s = \"q\";", "let s = 1;", "punctuation"),
        ("indent", "  done();\n", "  done(2);\n", "exact"),
        ("indent", "fn a() {\n        let s = \u{201c}q\u{201d};   \n        done();", "x", ""),
    ] {
        let f = with(Edits { tolerant: vec![level.to_owned()], stale: StalePolicy::Region });
        f.put("t", text);
        f.ok("read_file", json!({"path": "t"}));
        let answer = f.call("edit_file", edit("t", old, new));
        if named.is_empty() {
            assert!(answer.is_error, "an uneven shift is never applied: {}", answer.text);
            continue;
        }
        assert!(!answer.is_error, "{level}: {}", answer.text);
        let matched = fact(&answer.text, "match").unwrap();
        assert!(matched.starts_with(named), "{level}: {}", answer.text);
        assert_eq!(matched == "exact", notices(&answer.text).is_empty(), "{}", answer.text);
        // The same is only suggested where the settings do not allow it.
        let plain = Fixture::new();
        plain.put("t", text);
        plain.ok("read_file", json!({"path": "t"}));
        assert_eq!(plain.call("edit_file", edit("t", old, new)).is_error, named != "exact", "{level}");
    }
}

#[test]
fn a_suggestion_is_bound_to_file_session_and_time() {
    let f = Fixture::new();
    f.put("m.go", "func f() {\n\tdoIt()\n\treturn\n}\n");
    f.put("n.go", "func f() {\n\tdoIt()\n\treturn\n}\n");
    f.ok("read_file", json!({"path": "m.go"}));
    f.ok("read_file", json!({"path": "n.go"}));
    let refusal =
        f.no("TEXT_NOT_FOUND", "edit_file", edit("m.go", "    doIt()\n    return", "    return nil"));
    let token = refusal.split("\"suggestion\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let other = f.session("agent-b");
    f.no("HANDLE_EXPIRED", "edit_file", json!({"path": "n.go", "suggestion": token}));
    f.no("HANDLE_EXPIRED", "edit_file", json!({"path": "m.go", "suggestion": "s99"}));
    f.no("HANDLE_EXPIRED", "edit_file", json!({"path": "m.go", "suggestion": "nonsense"}));
    f.no("NOT_FOUND", "edit_file", json!({"path": "zz/q.go", "suggestion": token}));
    assert!(
        f.call_as(other, "edit_file", json!({"path": "m.go", "suggestion": token}))
            .text
            .starts_with("HANDLE")
    );
    f.pass(600_001);
    f.no("HANDLE_EXPIRED", "edit_file", json!({"path": "m.go", "suggestion": token}));
    assert_eq!(f.get("m.go"), f.get("n.go"), "nothing was written by any of them");
}

#[test]
fn a_suggestion_for_one_of_several_edits_applies_them_all() {
    let f = Fixture::new();
    f.put("m.go", "one\n\tdoIt()\n\treturn\nlast\n");
    f.ok("read_file", json!({"path": "m.go"}));
    let edits = json!({"path": "m.go", "edits": [
        {"old_text": "one", "new_text": "ONE"},
        {"old_text": "    doIt()\n    return", "new_text": "    return nil"},
        {"old_text": "last", "new_text": "LAST"},
    ]});
    let refusal = f.no("TEXT_NOT_FOUND path=m.go cause=tabs item=2", "edit_file", edits);
    assert_eq!(f.get("m.go"), "one\n\tdoIt()\n\treturn\nlast\n", "all or nothing");
    let done = f.follow(&refusal);
    assert!(!done.is_error, "{}", done.text);
    assert_eq!(f.get("m.go"), "ONE\n\treturn nil\nLAST\n");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whether a stale edit applies is a matter of one unchanged line between; and either way only the wanted bytes move.
    #[test]
    fn an_edit_beside_a_foreign_change(theirs in 1usize..=12, mine in 1usize..=12) {
        let f = Fixture::new();
        f.put("a", numbered(12));
        f.ok("read_file", json!({"path": "a"}));
        let changed = numbered(12).replace(&format!("l{theirs}\n"), &format!("L{theirs}\n"));
        f.put("a", &changed);
        let answer = f.call("edit_file", edit("a", &format!("l{mine}\n"), &format!("M{mine}\n")));
        if mine == theirs {
            prop_assert!(answer.text.starts_with("TEXT_NOT_FOUND path=a cause=stale"), "{}", answer.text);
        } else if mine.abs_diff(theirs) == 1 {
            prop_assert!(answer.text.starts_with("FILE_CHANGED_SINCE_READ"), "{}", answer.text);
        } else {
            prop_assert!(!answer.is_error, "{}", answer.text);
        }
        let wanted = if answer.is_error { changed } else { changed.replace(&format!("l{mine}\n"), &format!("M{mine}\n")) };
        prop_assert_eq!(f.get("a"), wanted);
    }

    /// What pages showed is a set of lines; a file may be replaced exactly when the set is all of it.
    #[test]
    fn pages_seen_add_up_to_the_whole(pages in proptest::collection::vec((1i64..=20, 1usize..=8), 0..7)) {
        let f = Fixture::new();
        f.put("a", numbered(20));
        let mut seen = [false; 20];
        for (start, limit) in &pages {
            let page = f.ok("read_file", json!({"path": "a", "start": start, "limit": limit}));
            for line in body(&page).lines() {
                let number: usize = line.split('|').next().unwrap().parse().unwrap();
                seen[number - 1] = true;
            }
        }
        let answer = f.call("write_file", json!({"path": "a", "content": "x", "overwrite": true}));
        prop_assert_eq!(!answer.is_error, seen.iter().all(|line| *line), "{}", answer.text);
    }
}

/// Another changed a line that the edit only shows: its own change is offered on top of theirs.
#[test]
fn an_edit_whose_context_was_changed_is_offered_with_the_context_as_it_is() {
    let f = Fixture::new();
    let text = "zero\nfirst line\nsecond line\nthird line\nfourth line\nlast\n";
    f.put("a", text);
    f.ok("read_file", json!({"path": "a"}));
    f.put("a", text.replace("second", "2nd"));
    let (old, new) =
        ("first line\nsecond line\nthird line\nfourth line", "first line\nsecond line\nthird line\n4th line");
    let refused = f.no("TEXT_NOT_FOUND path=a cause=stale", "edit_file", edit("a", old, new));
    assert!(!f.follow(&refused).is_error, "{refused}");
    assert_eq!(f.get("a"), "zero\nfirst line\n2nd line\nthird line\n4th line\nlast\n");
    // What the edit itself changes was changed: nothing is offered.
    f.ok("read_file", json!({"path": "a"}));
    f.put("a", f.get("a").replace("4th line", "line 4"));
    let over = f.no(
        "TEXT_NOT_FOUND path=a cause=stale",
        "edit_file",
        edit("a", "third line\n4th line", "third line\nIV line"),
    );
    assert!(!over.contains("suggestion"), "{over}");
}
