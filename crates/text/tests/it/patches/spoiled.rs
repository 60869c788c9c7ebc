//! What models do to a patch: right all the same, or refused with a hunk that is right, or refused. Never wrong.

use cotenant_text::patch::{Cause, apply};

use super::kit::{accept, bad, miss, on, one, try_on};
use crate::kit::form;

/// A file in which every line stands once.
const FILE: &str = "use std::fmt;\n\n/// A point.\npub struct Point {\n    x: i32, // “left”\n    y: i32,\n}\n\nimpl Point {\n\tfn sum(&self) -> i32 {\n\t\tself.x + self.y\n\t}\n}\n";

fn diff(hunk: &str) -> String {
    format!("--- a/f\n+++ b/f\n@@ -9,4 +9,4 @@\n{hunk}")
}

fn envelope(hunk: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n@@\n{hunk}*** End Patch\n")
}

/// The hunk is refused as a diff and in an envelope alike, and what is offered leads to `wanted`.
fn offered(hunk: &str, cause: &str, from: &str, to: &str) {
    let wanted = FILE.replacen(from, to, 1);
    assert_ne!(wanted, FILE, "the wanted change is one");
    for patch in [diff(hunk), envelope(hunk)] {
        let found = miss(FILE.as_bytes(), &patch);
        assert_eq!(found.cause.name(), cause, "{patch}{found:#?}");
        assert_eq!(accept(FILE.as_bytes(), &found), wanted, "{patch}");
    }
}

#[test]
fn spaces_for_tabs() {
    offered(
        " impl Point {\n     fn sum(&self) -> i32 {\n-        self.x + self.y\n+        self.x - self.y\n     }\n",
        "tabs",
        "x + self",
        "x - self",
    );
}

#[test]
fn a_lost_indent() {
    offered(
        "-x: i32, // “left”\n-y: i32,\n+x: i64, // “left”\n+y: i64,\n",
        "indent",
        "x: i32, // “left”\n    y: i32",
        "x: i64, // “left”\n    y: i64",
    );
}

#[test]
fn straight_quotes_for_curly_ones() {
    offered(
        "-    x: i32, // \"left\"\n+    x: i64, // \"left\"\n     y: i32,\n",
        "lookalike",
        "x: i32",
        "x: i64",
    );
}

#[test]
fn trailing_spaces() {
    offered(
        " pub struct Point {  \n-    x: i32, // “left” \n+    x: u8,\n",
        "trailing-space",
        "x: i32, // “left”",
        "x: u8,",
    );
}

#[test]
fn echoed_line_numbers() {
    offered("-6|    y: i32,\n+6|    y: i64,\n 7|}\n", "unknown", "y: i32", "y: i64");
    offered("-     6\t    y: i32,\n+     6\t    y: i64,\n      7\t}\n", "unknown", "y: i32", "y: i64");
}

#[test]
fn too_many_escapes() {
    offered(
        " impl Point {\n-\\tfn sum(&self) -> i32 {\n+\\tfn sum(&self) -> i64 {\n",
        "escapes",
        "-> i32",
        "-> i64",
    );
    offered(
        "-\tfn sum(&amp;self) -&gt; i32 {\n+\tfn sum(&amp;self) -&gt; i64 {\n",
        "escapes",
        "-> i32",
        "-> i64",
    );
}

#[test]
fn the_signs_of_an_answer_for_tabs() {
    offered("-→→self.x + self.y\n+→→self.x - self.y\n", "escapes", "x + self", "x - self");
}

#[test]
fn context_without_its_space() {
    offered(
        "pub struct Point {\n-    x: i32, // “left”\n+    x: i64, // “left”\n     y: i32,\n",
        "spacing",
        "x: i32",
        "x: i64",
    );
}

#[test]
fn indented_context_without_its_space() {
    offered(
        "-    x: i32, // “left”\n+    x: i64, // “left”\n    y: i32,\n }\n",
        "indent",
        "x: i32",
        "x: i64",
    );
}

#[test]
fn stale_context() {
    offered(
        " /// A point.\n pub struct Dot {\n-    x: i32, // “left”\n+    x: i64, // “left”\n     y: i32,\n }\n",
        "unknown",
        "x: i32",
        "x: i64",
    );
}

#[test]
fn a_context_line_left_out() {
    offered(
        " use std::fmt;\n pub struct Point {\n-    x: i32, // “left”\n+    x: i64, // “left”\n     y: i32,\n }\n",
        "unknown",
        "x: i32",
        "x: i64",
    );
}

#[test]
fn an_ellipsis_for_lines() {
    offered(" pub struct Point {\n ...\n-    y: i32,\n+    y: i64,\n }\n", "unknown", "y: i32", "y: i64");
}

#[test]
fn stale_old_lines_are_refused_without_an_offer() {
    let found = miss(FILE.as_bytes(), &diff("     x: i32, // “left”\n-    z: i32,\n+    z: i64,\n }\n"));
    assert!(found.suggestion.is_none(), "{found:#?}");
    let differs = found.differs.unwrap();
    assert_eq!(
        (differs.line, differs.file.as_deref(), differs.patch.as_str()),
        (6, Some("    y: i32,"), "    z: i32,")
    );
}

#[test]
fn wrong_counts_and_numbers() {
    let wanted = FILE.replace("y: i32", "y: i64");
    for header in ["-1,1 +1,1", "-900,90 +900,90", "-6,0 +6,0"] {
        assert_eq!(
            on(FILE, &format!("--- a/f\n+++ b/f\n@@ {header} @@\n-    y: i32,\n+    y: i64,\n }}\n")),
            wanted
        );
    }
}

#[test]
fn a_duplicated_target() {
    let twice = format!("{FILE}{FILE}");
    let found = miss(twice.as_bytes(), &envelope("-    y: i32,\n+    y: i64,\n"));
    assert_eq!((found.cause, found.candidates.as_slice()), (Cause::Ambiguous, [6, 19].as_slice()));
    assert!(found.suggestion.is_none());
    let numbered = miss(twice.as_bytes(), "--- a/f\n+++ b/f\n@@ -7 +7 @@\n-    y: i32,\n+    y: i64,\n");
    assert_eq!(accept(twice.as_bytes(), &numbered), twice.replacen("y: i32", "y: i64", 1));
}

#[test]
fn hunks_out_of_order() {
    let hunks = "-\t\tself.x + self.y\n+\t\tself.x - self.y\n@@\n-use std::fmt;\n+use core::fmt;\n";
    assert_eq!(on(FILE, &envelope(hunks)), FILE.replace("x + self", "x - self").replace("std", "core"));
}

#[test]
fn a_boundary_line_repeated_among_the_new_lines_is_said() {
    let hunk = "-use std::fmt;\n+use core::fmt;\n+\n+/// A point.\n";
    let applied = try_on(FILE.as_bytes(), &envelope(hunk)).unwrap();
    assert_eq!(applied.notes, [] as [&str; 0], "the line beside is empty");
    let below =
        try_on(FILE.as_bytes(), &envelope("-    x: i32, // “left”\n+    x: i64,\n+    y: i32,\n")).unwrap();
    assert_eq!(
        below.notes,
        ["hunk 1 puts in a line beside line 6, which is the same: was it meant as context?"]
    );
    let above = try_on(
        FILE.as_bytes(),
        &envelope("+pub struct Point {\n+    id: u8,\n-    x: i32, // “left”\n     y: i32,\n"),
    )
    .unwrap();
    assert_eq!(
        above.notes,
        ["hunk 1 puts in a line beside line 4, which is the same: was it meant as context?"]
    );
    let brace = try_on(FILE.as_bytes(), &envelope("-    y: i32,\n+    y: i64,\n+}\n")).unwrap();
    assert!(brace.notes.is_empty(), "a brace beside a brace is nothing odd");
    let context = try_on(
        FILE.as_bytes(),
        &envelope("-    x: i32, // “left”\n+    x: i64,\n+    y: i32,\n     y: i32,\n"),
    )
    .unwrap();
    assert!(context.notes.is_empty(), "with the context below, it is what was asked for");
}

#[test]
fn markers_in_content_are_content_behind_their_sign() {
    let hunk = "-    y: i32,\n+*** End Patch\n+@@ -1 +1 @@\n }\n";
    assert_eq!(on(FILE, &envelope(hunk)), FILE.replace("    y: i32,\n", "*** End Patch\n@@ -1 +1 @@\n"));
}

#[test]
fn a_search_mark_with_a_stray_sign() {
    let block = "f\n<<<<<<< SEARCH>\n    y: i32,\n=======\n    y: i64,\n>>>>>>> REPLACE\n";
    assert_eq!(on(FILE, block), FILE.replace("y: i32", "y: i64"));
}

#[test]
fn a_misspelt_or_shortened_anchor() {
    let patch = "*** Begin Patch\n*** Update File: f\n@@ pub struct Point\n+    id: u32,\n*** End Patch\n";
    let found = miss(FILE.as_bytes(), patch);
    assert_eq!(found.cause.name(), "anchor");
    assert_eq!(
        accept(FILE.as_bytes(), &found),
        FILE.replace("Point {\n    x", "Point {\n    id: u32,\n    x")
    );
    let twice = patch.replace("pub struct Point", "Point {");
    assert!(miss(FILE.as_bytes(), &twice).suggestion.is_none(), "two lines hold it");
}

#[test]
fn an_anchor_below_the_only_place_contradicts_it() {
    let patch =
        "*** Begin Patch\n*** Update File: f\n@@ impl Point {\n-    y: i32,\n+    y: i64,\n*** End Patch\n";
    let found = miss(FILE.as_bytes(), patch);
    assert_eq!(found.detail, "its old lines stand only at line 6, above line 9, which it names behind `@@`");
}

#[test]
fn already_applied_is_no_miss_of_text() {
    let applied = FILE.replace("y: i32", "y: i64");
    let hunk = "-    y: i32,\n+    y: i64,\n }\n";
    for patch in [diff(hunk), envelope(hunk)] {
        assert!(try_on(applied.as_bytes(), &patch).unwrap_err().is_applied());
    }
}

#[test]
fn a_cut_off_patch_is_never_applied() {
    let whole = envelope("-    y: i32,\n+    y: i64,\n");
    assert!(bad(whole.strip_suffix("*** End Patch\n").unwrap()).what.contains("cut off"));
    let block = "f\n<<<<<<< SEARCH\n    y: i32,\n=======\n    y: i64,\n";
    assert!(bad(block).what.contains("cut off"));
}

#[test]
fn only_the_first_misses_are_diagnosed_in_full() {
    let hunks: String = (0..8).map(|n| format!("@@\n-    y:  i32,\n+    y: i6{n},\n }}\n")).collect();
    let file = one(&format!("--- a/f\n+++ b/f\n{hunks}"));
    let misfit = apply(FILE.as_bytes(), &form(FILE.as_bytes()), &file.hunks, &[]).unwrap_err();
    assert_eq!(misfit.misses.len(), 8);
    assert_eq!(misfit.misses.iter().filter(|miss| !miss.nearest.is_empty()).count(), 5);
}

/// The mark of context lines is left out, so that their indent seems one less.
#[test]
fn context_without_its_marks_is_read_so() {
    offered(
        "pub struct Point {\n-    x: i32, // “left”\n+    x: i64, // “left”\n    y: i32,\n",
        "spacing",
        "x: i32",
        "x: i64",
    );
    let file = "a:\n    one\n    two\n    three\n";
    let found = miss(file.as_bytes(), &diff("    one\n-    two\n+    2\n    three\n"));
    assert_eq!(accept(file.as_bytes(), &found), "a:\n    one\n    2\n    three\n");
    // A hunk that only inserts may as well have lost one space throughout: which is meant decides where its lines stand.
    let inserts = miss(file.as_bytes(), &diff("    one\n+    more\n    two\n"));
    assert!(inserts.suggestion.is_none(), "{inserts:#?}");
}

/// Of equal lines nearby those are meant that stand closest together.
#[test]
fn an_alignment_is_compact() {
    let entry = |name: &str| format!("{name}: {{\n  size: 1\n}}\nurl {{\n  to: home\n}}\n");
    let file = [entry("alpha"), entry("beta"), entry("gamma")].concat();
    let patch = diff(" beta: {\n   size: 1\n ...\n url {\n+  by: hand\n   to: home\n }\n");
    let found = miss(file.as_bytes(), &patch);
    let wanted = file.replacen(&entry("beta"), &entry("beta").replace("  to", "  by: hand\n  to"), 1);
    assert_eq!(accept(file.as_bytes(), &found), wanted);
}

/// The line that goes was changed; an equal one further down is not it.
#[test]
fn an_equal_line_apart_from_the_context_is_no_place() {
    let file =
        "fn first() {\n    open();\n    close(now);\n}\n\nfn second() {\n    other();\n    close();\n}\n";
    let found =
        miss(file.as_bytes(), &diff(" fn first() {\n     open();\n-    close();\n+    finish();\n }\n"));
    assert!(found.suggestion.is_none(), "{found:#?}");
}

/// Lines that go together have none between them.
#[test]
fn what_stands_between_lines_that_go_is_not_known_to_the_hunk() {
    let file = "top line\nalpha one\nin between\nbeta two\nlast line\n";
    let found = miss(file.as_bytes(), &diff(" top line\n-alpha one\n-beta two\n last line\n"));
    assert!(found.suggestion.is_none(), "{found:#?}");
}

/// Blocks that are nearly equal: the one that the hunk means has changed, so the other is not offered for it.
#[test]
fn a_hunk_is_not_aligned_where_its_lines_stand_better_elsewhere() {
    let block =
        |name: &str| format!("pre {name} {{\n  display: block;\n  overflow: auto;\n  padding: 1em;\n}}\n");
    let file = format!(
        "{}\n{}",
        block("code").replace("}\n", "}\ncode {\n"),
        block("code").replace("display: block", "display: none")
    );
    let hunk = " pre code {\n   display: block;\n-  overflow: auto;\n   padding: 1em;\n }\n end {\n";
    let found = miss(file.as_bytes(), &diff(hunk));
    assert!(found.suggestion.is_none(), "{found:#?}");
}
