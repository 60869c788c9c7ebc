//! Moves are taken back where things are now, with directories above followed; and what a change did is shown whole.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::fixture::{Fixture, fact};

fn moved(f: &Fixture, from: &str, to: &str) -> String {
    fact(&f.ok("move_path", json!({"from": from, "to": to})), "change").unwrap()
}

#[test]
fn an_edit_is_taken_back_under_the_name_that_the_file_has_by_now() {
    let f = Fixture::new();
    f.put("d/a", "one\ntwo\n");
    f.ok("read_file", json!({"path": "d/a"}));
    let edit =
        fact(&f.ok("edit_file", json!({"path": "d/a", "old_text": "one", "new_text": "ONE"})), "change");
    moved(&f, "d/a", "d/b");
    moved(&f, "d", "e");
    f.put("d/a", "another file\n");
    f.ok("undo", json!({"change": edit}));
    assert_eq!((f.get("e/b").as_str(), f.get("d/a").as_str()), ("one\ntwo\n", "another file\n"));
}

#[test]
fn a_directory_goes_back_whole_with_all_that_came_into_it() {
    let f = Fixture::new();
    f.put("d/a", "a\n");
    f.put("d/deep/b", "b\n");
    let change = moved(&f, "d", "x/e");
    f.put("x/e/new", "n\n");
    let done = f.ok("undo", json!({"change": change}));
    assert!(done.contains("move x/e -> d") && done.contains("rmdir x"), "{done}");
    assert_eq!(
        (f.get("d/a").as_str(), f.get("d/deep/b").as_str(), f.get("d/new").as_str()),
        ("a\n", "b\n", "n\n")
    );
    assert!(!f.has("x"));
    // What is closed to the tools does not go along unseen.
    let change = moved(&f, "d", "e");
    f.put("e/.env", "K=1\n");
    let closed = f.no("PATH_PROTECTED", "undo", json!({"change": change}));
    assert!(f.has("e/.env") && f.has("e/a"), "{closed}");
}

#[test]
fn what_was_moved_on_or_covered_is_a_conflict_that_names_the_change() {
    let f = Fixture::new();
    f.put("a", "x\n");
    let first = moved(&f, "a", "b");
    let second = moved(&f, "b", "c");
    let on = f.no("UNDO_CONFLICT", "undo", json!({"change": first}));
    assert!(on.contains(&format!("b: it was moved on to c ({second} (you")), "{on}");
    f.put("b", "someone's\n");
    let covered = f.no("UNDO_CONFLICT", "undo", json!({"change": second}));
    assert!(covered.contains("b: something else stands there now"), "{covered}");
    std::fs::remove_file(f.path("b")).unwrap();
    f.ok("undo", json!({"change": second}));
    f.ok("undo", json!({"change": first}));
    assert_eq!(f.get("a"), "x\n");
}

#[test]
fn a_change_shows_modes_links_and_moves() {
    let f = Fixture::new();
    f.put("run.sh", "x\n");
    std::fs::set_permissions(f.path("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("no/where", f.path("link")).unwrap();
    f.put("logo.png", b"\0png");
    let show = |change: &str| f.ok("show_change", json!({"change": change}));
    let change = moved(&f, "run.sh", "bin/run.sh");
    assert!(show(&change).contains("rename from run.sh\nrename to bin/run.sh"), "{}", show(&change));
    let gone = fact(&f.ok("delete_file", json!({"path": "link"})), "change").unwrap();
    assert!(show(&gone).contains("deleted file mode 120000\n"), "{}", show(&gone));
    f.ok("read_file", json!({"path": "bin/run.sh"}));
    let patch = "diff --git a/bin/run.sh b/bin/run.sh\nold mode 100755\nnew mode 100644\n";
    let mode = fact(&f.ok("apply_patch", json!({"patch": patch})), "change").unwrap();
    assert!(show(&mode).contains("old mode 100755\nnew mode 100644"), "{}", show(&mode));
    f.ok("undo", json!({"change": mode}));
    let back = std::fs::metadata(f.path("bin/run.sh")).unwrap().permissions().mode() & 0o777;
    assert_eq!(back, 0o755);
    let refusal = f.no("EDIT_REQUIRES_PRIOR_READ", "delete_file", json!({"path": "logo.png"}));
    let done = f.retry(&refusal);
    assert!(
        show(&fact(&done.text, "change").unwrap()).contains("binary: 4 bytes before, 0 after"),
        "{}",
        done.text
    );
}

#[test]
fn history_of_a_path_knows_both_ends_of_a_move() {
    let f = Fixture::new();
    f.put("a", "x\n");
    let change = moved(&f, "a", "d/b");
    for path in ["a", "d/b", "d"] {
        let listed = f.ok("history", json!({"path": path}));
        assert!(listed.contains(&format!("{change} ")), "{path}: {listed}");
    }
}
