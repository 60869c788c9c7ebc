//! `undo`: one change's own hunks, whatever came after; conflicts with both sides; and nothing else is touched.

use cotenant_model::Profile;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact};

fn edit(f: &Fixture, path: &str, old: &str, new: &str) -> String {
    let done = f.ok("edit_file", json!({"path": path, "old_text": old, "new_text": new}));
    fact(&done, "change").unwrap()
}

fn numbered(count: usize) -> String {
    (1..=count).map(|n| format!("l{n}\n")).collect()
}

/// A file of `count` lines that the session wrote, as c1.
fn written(count: usize) -> Fixture {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "a", "content": numbered(count)}));
    f
}

#[test]
fn only_its_own_hunks_go_and_later_ones_stay() {
    let f = written(20);
    let first = edit(&f, "a", "l2\n", "two\n");
    edit(&f, "a", "l10\n", "ten\n");
    f.put("a", f.get("a").replace("l18\n", "eighteen\n"));
    let undone = f.ok("undo", json!({"change": first}));
    assert!(undone.starts_with("undone=c2 change=c"), "{undone}");
    assert_eq!(f.get("a"), numbered(20).replace("l10\n", "ten\n").replace("l18\n", "eighteen\n"));
}

#[test]
fn an_overlap_is_refused_with_both_sides() {
    let f = written(5);
    let first = edit(&f, "a", "l3", "three");
    edit(&f, "a", "three", "drei");
    let before = f.get("a");
    let refusal = f.no("UNDO_CONFLICT change=c2 files=1 clean=0 overlap=1", "undo", json!({"change": first}));
    assert_eq!(
        body(&refusal).lines().skip(1).take(3).collect::<Vec<_>>(),
        [
            "Later changes stand on lines of c2 in a:",
            "c3 (you, 0 s ago) line 3:  -three  +drei",
            "Taking c2 back would need: -three  +l3",
        ]
    );
    assert_eq!(f.get("a"), before);
    assert_eq!(
        fact(&f.follow(&refusal).text, "undone").as_deref(),
        Some("c3"),
        "the way on works: {refusal}"
    );
    f.ok("undo", json!({"change": first}));
    assert_eq!(f.get("a"), numbered(5));
}

#[test]
fn the_clean_files_of_a_conflict_go_alone() {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "d/e/a", "content": "x\n"}));
    f.put("d/e/a", "y\n");
    let refusal = f.no("UNDO_CONFLICT change=c1", "undo", json!({}));
    assert_eq!(f.get("d/e/a"), "y\n", "another's bytes are nobody's to delete: {refusal}");
    assert!(f.has("d/e"));
}

#[test]
fn an_undo_is_a_change_that_can_be_undone_and_the_next_goes_further_back() {
    let f = written(3);
    edit(&f, "a", "l1", "one");
    edit(&f, "a", "l2", "two");
    for (undone, text) in [("c3", "one\nl2\nl3\n"), ("c2", "l1\nl2\nl3\n")] {
        let answer = f.ok("undo", json!({}));
        assert_eq!(fact(&answer, "undone").as_deref(), Some(undone), "{answer}");
        assert_eq!(f.get("a"), text);
    }
    let gone = f.ok("undo", json!({}));
    assert_eq!((fact(&gone, "undone").as_deref(), f.has("a")), (Some("c1"), false));
    let nothing = f.no("NOTHING_TO_CHANGE", "undo", json!({}));
    assert!(!f.follow(&nothing).is_error, "{nothing}");
    f.ok("undo", json!({"change": "c6"}));
    assert_eq!(f.get("a"), numbered(3), "the undo of the creation is undone");
}

#[test]
fn directories_go_with_the_change_that_made_them_only_if_nothing_else_is_in_them() {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "d/e/a", "content": "x\n"}));
    f.put("d/other", "kept\n");
    f.put("d/.env", "K=1\n");
    let answer = f.ok("undo", json!({}));
    assert!(!f.has("d/e") && f.get("d/other") == "kept\n", "{answer}");
    let g = Fixture::new();
    g.ok("write_file", json!({"path": "d/e/a", "content": "x\n"}));
    g.put("d/e/.env", "K=1\n");
    g.ok("undo", json!({}));
    assert!(!g.has("d/e/a") && g.has("d/e/.env"), "what is protected holds its directory, too");
    let h = Fixture::new();
    h.ok("write_file", json!({"path": "d/e/a", "content": "x\n"}));
    h.put("d/.gitignore", "*.log\n");
    h.put("d/e/x.log", "ignored\n");
    h.ok("undo", json!({}));
    assert!(h.has("d/e/x.log") && !h.has("d/e/a"));
    let k = Fixture::new();
    k.ok("create_path", json!({"path": "p/q/"}));
    k.ok("undo", json!({}));
    assert!(!k.has("p"));
    k.ok("undo", json!({"change": "c2"}));
    assert!(k.path("p/q").is_dir());
}

#[test]
fn a_part_is_named_by_path() {
    let f = Fixture::new();
    f.ok("create_path", json!({"path": "p/q/"}));
    let stray = f.no("BAD_INPUT", "undo", json!({"change": "c1", "paths": ["p/z"]}));
    assert!(stray.contains("p/z is not in c1"), "{stray}");
    assert!(!f.follow(&stray).is_error, "{stray}");
    f.no("PATH_OUTSIDE", "undo", json!({"change": "c1", "paths": ["../p"]}));
    let part = f.ok("undo", json!({"change": "c1", "paths": ["./p//q"]}));
    assert_eq!(body(&part), "rmdir p/q", "{part}");
    assert!(f.has("p") && !f.has("p/q"));
}

#[test]
fn the_mode_of_a_file_comes_back_with_it() {
    use std::os::unix::fs::PermissionsExt;
    let f = Fixture::new();
    f.put("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(f.path("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    f.ok("read_file", json!({"path": "run.sh"}));
    edit(&f, "run.sh", "sh", "bash");
    f.ok("undo", json!({}));
    let mode = |f: &Fixture| std::fs::metadata(f.path("run.sh")).unwrap().permissions().mode() & 0o7777;
    assert_eq!((f.get("run.sh").as_str(), mode(&f)), ("#!/bin/sh\n", 0o755));
    // A created file that was made executable, taken back and brought again.
    f.ok("write_file", json!({"path": "new.sh", "content": "x\n"}));
    std::fs::set_permissions(f.path("new.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    f.ok("undo", json!({}));
    assert!(!f.has("new.sh"));
    f.ok("undo", json!({"change": "c4"}));
    let back = std::fs::metadata(f.path("new.sh")).unwrap().permissions().mode() & 0o7777;
    assert_eq!(back, 0o750, "the mode it had when it went");
}

#[test]
fn what_was_deleted_or_replaced_since_is_no_ground_for_a_write() {
    let f = written(3);
    edit(&f, "a", "l1", "one");
    std::fs::remove_file(f.path("a")).unwrap();
    let gone = f.no("UNDO_CONFLICT change=c2", "undo", json!({}));
    assert!(gone.contains("deleted since"), "{gone}");
    std::fs::create_dir(f.path("a")).unwrap();
    let directory = f.no("UNDO_CONFLICT change=c2", "undo", json!({}));
    assert!(directory.contains("a directory stands there now"), "{directory}");
    std::fs::remove_dir(f.path("a")).unwrap();
    f.put("a", b"\0binary");
    let binary = f.no("UNDO_CONFLICT change=c2", "undo", json!({}));
    assert!(binary.contains("not text"), "{binary}");
    f.put("a", numbered(3));
    f.no("NOTHING_TO_CHANGE", "undo", json!({"change": "c2"}));
}

#[test]
fn anothers_work_is_asked_about_in_every_profile() {
    for profile in [Profile::Careful, Profile::Trusting] {
        let f = Fixture::with(cotenant_model::Settings { profile, ..cotenant_model::Settings::default() });
        let other = f.session("agent-b");
        f.ok_as(other, "write_file", json!({"path": "theirs", "content": "x\n"}));
        let asked = f.no("APPROVAL_PENDING", "undo", json!({"change": "c1"}));
        assert!(f.has("theirs"), "{asked}");
        let id = fact(&asked, "id").unwrap().parse().unwrap();
        f.toolbox.approve(id, &fact(&asked, "digest").unwrap()).unwrap();
        assert!(!f.has("theirs"));
        let again = f.session("agent-b");
        let mine = f.call_as(again, "undo", json!({"change": "c2"}));
        assert!(mine.text.starts_with("APPROVAL_PENDING"), "{} undid it: {}", "agent-a", mine.text);
    }
    // One name is one agent, whatever the session.
    let f = written(2);
    let twin = f.session("agent-a");
    assert!(!f.call_as(twin, "undo", json!({"change": "c1"})).is_error);
    assert!(f.call_as(twin, "undo", json!({})).text.starts_with("NOTHING_TO_CHANGE"), "its own last is none");
}

#[test]
fn what_is_no_change_is_said_to_be_none() {
    let f = written(2);
    f.no("NOT_FOUND change=c9", "undo", json!({"change": "c9"}));
    for odd in ["9", "a1", "", "c"] {
        f.no("BAD_INPUT", "undo", json!({"change": odd}));
    }
}

#[test]
fn a_conflict_of_any_size_stays_within_its_bounds() {
    let f = Fixture::new();
    let long = |ch: char| ch.to_string().repeat(5000);
    f.ok("write_file", json!({"path": "a", "content": format!("{}\n", long('a'))}));
    f.ok("write_file", json!({"path": "a", "content": format!("{}\n", long('b')), "overwrite": true}));
    f.ok("write_file", json!({"path": "a", "content": format!("{}\n", long('c')), "overwrite": true}));
    let refusal = f.no("UNDO_CONFLICT", "undo", json!({"change": "c2"}));
    assert!(refusal.len() <= 1200 + 2048, "{} bytes", refusal.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Edits of lines far from each other commute: any of them can be taken back, in any order, without the others.
    #[test]
    fn edits_apart_are_taken_back_in_any_order(order in Just([2usize, 6, 10, 14, 18].to_vec()).prop_shuffle(), back in 0usize..5) {
        let f = written(20);
        let mut changes = Vec::new();
        for line in &order {
            changes.push((*line, edit(&f, "a", &format!("l{line}\n"), &format!("L{line}\nmore\n"))));
        }
        let model = |gone: &[usize]| -> String {
            (1..=20).map(|n| if order.contains(&n) && !gone.contains(&n) { format!("L{n}\nmore\n") } else { format!("l{n}\n") }).collect()
        };
        let mut gone = Vec::new();
        for step in 0..order.len() {
            let (line, change) = &changes[(step + back) % order.len()];
            f.ok("undo", json!({"change": change}));
            gone.push(*line);
            prop_assert_eq!(f.get("a"), model(&gone));
        }
    }

    /// Whatever was done, undoing the last over and over ends where it began.
    #[test]
    fn all_the_way_back(steps in proptest::collection::vec((0usize..3, 1usize..6), 1..7)) {
        let f = Fixture::new();
        f.put("a", numbered(6));
        f.ok("read_file", json!({"path": "a"}));
        let mut states = vec![f.get("a")];
        for (n, (kind, line)) in steps.iter().enumerate() {
            let lines: Vec<String> = f.get("a").lines().map(str::to_owned).collect();
            let at = &lines[line.min(&lines.len()) - 1];
            let args: Value = match kind {
                0 => json!({"path": "a", "edits": [{"old_text": format!("{at}\n"), "new_text": format!("{n}-{at}\n"), "line": line.min(&lines.len())}]}),
                1 => json!({"path": "a", "edits": [{"old_text": format!("{at}\n"), "new_text": format!("{at}\nnew-{n}\n"), "line": line.min(&lines.len())}]}),
                _ => json!({"path": "a", "content": format!("whole-{n}\nnext\n"), "overwrite": true}),
            };
            f.ok(if *kind == 2 { "write_file" } else { "edit_file" }, args);
            states.push(f.get("a"));
        }
        while let Some(state) = states.pop() {
            prop_assert_eq!(f.get("a"), state);
            let answer = f.call("undo", json!({}));
            prop_assert_eq!(answer.is_error, states.is_empty(), "{}", answer.text);
        }
    }
}
