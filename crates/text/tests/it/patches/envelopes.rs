//! The envelope and its hunks, and the scenarios of its original.

use cotenant_text::patch::{Grammar, Op};

use super::kit::{bad, miss, on, one, read, shown, text};

fn update(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: x\n{body}*** End Patch\n")
}

#[test]
fn sections_add_delete_update_and_move() {
    let patch = read(
        "*** Begin Patch\n*** Add File: d/new.txt\n+one\n+\n+two\n*** Delete File: old file.txt\n\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Add File: empty\n*** Update File: only/moved\n*** Move to: moved\n*** End Patch\n",
    );
    assert_eq!(patch.grammar, Grammar::Envelope);
    let what: Vec<_> = patch.files.iter().map(|f| (text(&f.path), f.op.clone(), f.line)).collect();
    let moved = |from: &str| Op::Rename { from: from.into() };
    assert_eq!(
        what,
        [
            ("d/new.txt".to_owned(), Op::Add, 2),
            ("old file.txt".to_owned(), Op::Delete, 6),
            ("b".to_owned(), moved("a"), 8),
            ("empty".to_owned(), Op::Add, 13),
            ("moved".to_owned(), moved("only/moved"), 14),
        ]
    );
    assert_eq!(patch.files[0].content(), b"one\n\ntwo\n");
    assert!(patch.files[3].content().is_empty() && !patch.files[1].states_content);
}

#[test]
fn marks_may_stand_apart_from_the_margin() {
    let patch = " *** Begin Patch\n  *** Update File: x  \n@@ \n-one\n+two\n *** End Patch \n";
    assert_eq!(on("one\n", patch), "two\n");
}

#[test]
fn what_is_no_envelope_is_refused_by_name() {
    let what = |text: &str| bad(text).what;
    assert!(what("*** Begin Patch\n*** End Patch\n").contains("without a section"));
    assert!(
        what("*** Begin Patch\n*** Frobnicate File: x\n*** End Patch\n").contains("no section begins so")
    );
    assert!(what("*** Begin Patch\n*** Update File: x\n*** End Patch\n").contains("without a hunk"));
    assert!(what("*** Begin Patch\n*** Update File: x\n@@\n*** End Patch\n").contains("without lines"));
    assert!(what("*** Begin Patch\n*** Add File: x\nplain\n*** End Patch\n").contains("begins with `+`"));
    assert!(what("*** Begin Patch\n*** Delete File:  \n*** End Patch\n").contains("without a path"));
    assert!(what("*** Begin Patch\n*** Delete File: x\n").contains("cut off"));
    assert!(what("*** Update File: x\n@@\n-a\n+b\n").contains("outside of an envelope"));
    let refused = bad("*** Begin Patch\n*** Update File: x\n@@\n-a\n+b\n\nand then text\n*** End Patch\n");
    assert_eq!((refused.line, refused.seen.as_str()), (7, "and then text"));
}

#[test]
fn several_envelopes_and_text_around_them() {
    let one = "*** Begin Patch\n*** Delete File: x\n*** End Patch\n";
    assert_eq!(read(&format!("I will do this:\n{one}\nand\n{one}\n")).files.len(), 2);
}

#[test]
fn hunks_carry_anchors_numbers_and_the_end() {
    let file = one(&update(
        "@@ class A\n@@   def f():\n-a\n+b\n*** End of File\n@@ -3,2 +3,2 @@ def g\n c\n-d\n+e\n",
    ));
    let [first, second] = file.hunks.as_slice() else { panic!("{file:?}") };
    assert_eq!(first.anchors, [b"class A".to_vec(), b"  def f():".to_vec()]);
    assert!(first.eof && !second.eof);
    assert_eq!((second.old_start, second.counts, second.anchors.len()), (Some(3), Some((2, 2)), 0));
    assert_eq!(shown(second), [" c", "-d", "+e"]);
}

#[test]
fn a_bare_head_with_new_lines_only_means_the_end() {
    assert_eq!(on("a\nb\n", &update("@@\n+c\n+d\n")), "a\nb\nc\nd\n");
    assert_eq!(
        on("a\nb", &update("@@\n+c\n")),
        "a\nb\nc",
        "the file had no final newline and keeps having none"
    );
    assert_eq!(on("", &update("@@\n+c\n")), "c\n");
}

#[test]
fn an_insertion_stands_right_below_its_anchor() {
    let file = "def a():\n    pass\n\ndef b():\n    pass\n";
    assert_eq!(
        on(file, &update("@@ def b():\n+    log()\n")),
        "def a():\n    pass\n\ndef b():\n    log()\n    pass\n"
    );
    let found = miss(file.as_bytes(), &update("@@ def c():\n+    log()\n"));
    assert_eq!((found.cause.name(), found.detail.as_str()), ("anchor", "no line is `def c():`"));
    let twice = format!("{file}def a():\n    more\n");
    let found = miss(twice.as_bytes(), &update("@@ def a():\n+    log()\n"));
    assert_eq!((found.cause.name(), found.candidates), ("anchor", vec![1, 6]));
}

#[test]
fn anchors_in_a_row_narrow_step_by_step() {
    let file = "class A:\n    def f():\n        pass\nclass B:\n    def f():\n        pass\n";
    let patch = update("@@ class B:\n@@ def f():\n-        pass\n+        work()\n");
    assert_eq!(
        on(file, &patch),
        "class A:\n    def f():\n        pass\nclass B:\n    def f():\n        work()\n"
    );
    let first = update("@@ class A:\n@@ def f():\n-        pass\n+        work()\n");
    assert_eq!(
        on(file, &first),
        "class A:\n    def f():\n        work()\nclass B:\n    def f():\n        pass\n"
    );
}

#[test]
fn hunks_may_come_in_any_order() {
    let patch = update("@@\n-c\n+C\n@@\n-a\n+A\n");
    assert_eq!(on("a\nb\nc\n", &patch), "A\nb\nC\n");
}

#[test]
fn the_end_of_file_mark_ties_to_the_end() {
    let file = "x\ny\nx\n";
    assert_eq!(on(file, &update("@@\n-x\n+z\n*** End of File\n")), "x\ny\nz\n");
    let found = miss(file.as_bytes(), &update("@@\n-y\n+z\n*** End of File\n"));
    assert_eq!(found.cause.name(), "end-of-file");
    assert_eq!(super::kit::accept(file.as_bytes(), &found), "x\nz\nx\n");
}

#[test]
fn a_mark_behind_a_space_is_a_line_of_the_file() {
    let file = "a\n*** End Patch\nb\n";
    assert_eq!(on(file, &update("@@\n a\n *** End Patch\n-b\n+B\n")), "a\n*** End Patch\nB\n");
    // Where no other end follows, it is the end.
    let indented = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+A\n *** End Patch\n";
    assert_eq!(on("a\n", indented), "A\n");
}
