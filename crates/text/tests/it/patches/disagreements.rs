//! Patches on which git, patch and the envelope's original disagree: what happens to each here.

use cotenant_text::patch::{Cause, Op};

use super::kit::{accept, bad, miss, on, one, read, text, try_on};

const FILE: &str = "a\nb\nc\nd\ne\n";

fn diff(hunks: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunks}")
}

#[test]
fn counts_too_large_are_recounted() {
    assert_eq!(on(FILE, &diff("@@ -2,7 +2,7 @@\n b\n-c\n+C\n d\n")), "a\nb\nC\nd\ne\n");
}

#[test]
fn counts_too_small_are_recounted_and_no_line_is_lost() {
    assert_eq!(on(FILE, &diff("@@ -2,1 +2,1 @@\n b\n-c\n+C\n d\n")), "a\nb\nC\nd\ne\n");
    assert_eq!(on(FILE, &diff("@@ -2,2 +2,1 @@\n b\n-c\n+C\n-d\n")), "a\nb\nC\ne\n");
}

#[test]
fn a_wrong_line_number_does_no_harm() {
    assert_eq!(on(FILE, &diff("@@ -4,3 +4,3 @@\n b\n-c\n+C\n d\n")), "a\nb\nC\nd\ne\n");
}

#[test]
fn headers_without_numbers_are_no_ed_script() {
    for header in ["@@", "@@ ... @@", "@@ -1,2 +1,2 @@"] {
        assert_eq!(on(FILE, &diff(&format!("{header}\n-c\n+C\n d\n"))), "a\nb\nC\nd\ne\n", "{header}");
        let envelope = format!("*** Begin Patch\n*** Update File: f\n{header}\n-c\n+C\n d\n*** End Patch\n");
        assert_eq!(on(FILE, &envelope), "a\nb\nC\nd\ne\n", "{header}");
    }
}

#[test]
fn one_wrong_context_line_is_refused_and_shown() {
    let found = miss(FILE.as_bytes(), &diff("@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n WRONG\n"));
    let differs = found.differs.unwrap();
    assert_eq!((differs.line, differs.file.as_deref(), differs.patch.as_str()), (4, Some("d"), "WRONG"));
}

#[test]
fn without_context_old_lines_are_found_and_numbers_alone_are_not_believed() {
    assert_eq!(on(FILE, &diff("@@ -4 +4 @@\n-c\n+C\n")), "a\nb\nC\nd\ne\n", "off by one, but c stands once");
    assert_eq!(miss(FILE.as_bytes(), &diff("@@ -4,0 +5 @@\n+new\n")).cause, Cause::NoPlace);
}

#[test]
fn the_patch_may_lack_its_last_line_break() {
    assert_eq!(on(FILE, &diff("@@ -2,3 +2,3 @@\n b\n-c\n+C\n d")), "a\nb\nC\nd\ne\n");
}

#[test]
fn the_file_may_lack_its_last_line_break_and_keeps_lacking_it() {
    assert_eq!(on("a\nb\nc", &diff("@@ -2,2 +2,2 @@\n b\n-c\n+C\n")), "a\nb\nC");
}

#[test]
fn a_crlf_file_takes_a_patch_with_lf() {
    assert_eq!(on("a\r\nb\r\nc\r\n", &diff("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")), "a\r\nB\r\nc\r\n");
}

#[test]
fn an_lf_file_takes_a_patch_with_crlf() {
    let patch = diff("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n").replace('\n', "\r\n");
    assert_eq!(on("a\nb\nc\n", &patch), "a\nB\nc\n");
}

#[test]
fn what_is_applied_already_is_said() {
    let patch = diff("@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n");
    let misfit = try_on(b"a\nb\nC\nd\ne\n", &patch).unwrap_err();
    assert!(misfit.is_applied());
    assert_eq!(misfit.misses[0].detail, "what it makes of the file already stands at line 2");
}

#[test]
fn of_duplicates_the_numbered_one_is_taken() {
    let twice = "x\ny\n-\nx\ny\n";
    assert_eq!(on(twice, &diff("@@ -4,2 +4,2 @@\n x\n-y\n+Y\n")), "x\ny\n-\nx\nY\n");
    let found = miss(twice.as_bytes(), &diff("@@\n x\n-y\n+Y\n"));
    assert_eq!((found.cause, found.candidates), (Cause::Ambiguous, vec![1, 4]));
}

#[test]
fn a_second_file_that_fails_leaves_the_first_to_the_caller_unapplied() {
    let patch = read(&(diff("@@ -2 +2 @@\n-b\n+B\n") + "--- a/g\n+++ b/g\n@@ -1 +1 @@\n-gone\n+x\n"));
    let apply = |n: usize| {
        let raw = FILE.as_bytes();
        cotenant_text::patch::apply(raw, &crate::kit::form(raw), &patch.files[n].hunks, &[])
    };
    assert!(apply(0).is_ok() && apply(1).is_err(), "each file's outcome is known before anything is written");
}

#[test]
fn paths_are_given_as_they_are_written_for_the_caller_to_judge() {
    assert_eq!(text(&one("--- a/../evil\n+++ b/../evil\n@@ -1 +1 @@\n-a\n+b\n").path), "../evil");
    assert_eq!(text(&one("--- /dev/null\n+++ /etc/x\n@@ -0,0 +1 @@\n+b\n").path), "/etc/x");
    assert_eq!(text(&one("*** Begin Patch\n*** Add File: ../evil\n+x\n*** End Patch\n").path), "../evil");
}

#[test]
fn a_creation_is_told_from_an_update() {
    assert_eq!(one("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n").op, Op::Add, "so that it never overwrites");
    assert_eq!(one(&diff("@@ -0,0 +1 @@\n+b\n")).op, Op::Update);
}

#[test]
fn a_deletion_with_other_content_is_refused() {
    let gone = one("--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n");
    let raw = FILE.as_bytes();
    let misfit = cotenant_text::patch::check_deleted(raw, &crate::kit::form(raw), &gone.hunks).unwrap_err();
    assert_eq!(misfit.misses[0].detail, "line 3 is not among the lines that the patch deletes with the file");
}

#[test]
fn bytes_that_are_no_text_elsewhere_are_kept() {
    let applied = try_on(b"\xff\x01\nb\nc\n", &diff("@@ -2,2 +2,2 @@\n-b\n+B\n c\n")).unwrap();
    assert_eq!(applied.bytes, b"\xff\x01\nB\nc\n");
}

#[test]
fn a_rename_keeps_the_mode_it_states() {
    let moved = one(
        "diff --git a/f b/g\nold mode 100644\nnew mode 100755\nsimilarity index 80%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+A\n",
    );
    assert_eq!(moved.new_mode, Some(cotenant_text::patch::Mode::Executable));
    assert_eq!((moved.source(), moved.path.as_slice()), (b"f".as_slice(), b"g".as_slice()));
}

#[test]
fn a_space_in_a_name_needs_no_git_header() {
    assert_eq!(text(&one("--- a/my file\n+++ b/my file\n@@ -1 +1 @@\n-a\n+b\n").path), "my file");
}

#[test]
fn an_anchored_insertion_does_not_go_to_the_end() {
    let patch = "*** Begin Patch\n*** Update File: f\n@@ b\n+new\n*** End Patch\n";
    assert_eq!(on(FILE, patch), "a\nb\nnew\nc\nd\ne\n");
}

#[test]
fn a_lone_cr_decides_no_line_ending() {
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** End Patch\n";
    assert_eq!(on("log \r 50%\nb\n", patch), "log \r 50%\nB\n");
    let more = "*** Begin Patch\n*** Update File: f\n@@\n log \n-b\n+B\n*** End Patch\n";
    assert!(try_on(b"log \r 50%\nb\n", more).is_err());
}

#[test]
fn lone_crs_are_line_breaks_where_nothing_fits_otherwise() {
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+B\n+x\n c\n*** End Patch\n";
    assert_eq!(on("a\rb\rc\r", patch), "a\rB\rx\rc\r", "a file of an old kind");
    let applied = try_on(b"z\r\na\rb\nc\r\n", patch).unwrap();
    assert_eq!(text(&applied.bytes), "z\r\na\rB\r\nx\r\nc\r\n", "new lines take the most frequent ending");
    assert_eq!(applied.landed[0].level, cotenant_text::Level::Eol);
}

#[test]
fn another_indent_is_offered_with_the_files_own_never_applied() {
    let raw = b"def f():\n        bar()\n";
    let found = miss(raw, "*** Begin Patch\n*** Update File: f\n@@\n-    bar()\n+    baz()\n*** End Patch\n");
    assert_eq!(found.cause.name(), "indent");
    assert_eq!(accept(raw, &found), "def f():\n        baz()\n");
}

#[test]
fn a_patch_that_changes_nothing_is_no_success() {
    assert_eq!(miss(FILE.as_bytes(), &diff("@@ -1,2 +1,2 @@\n a\n-b\n+b\n")).cause, Cause::Same);
    assert_eq!(miss(FILE.as_bytes(), &diff("@@ -1,2 +1,2 @@\n a\n b\n")).cause, Cause::Same);
}

#[test]
fn a_first_line_behind_a_bom_can_be_changed() {
    assert_eq!(on("\u{feff}a\nb\n", &diff("@@ -1,2 +1,2 @@\n-a\n+A\n b\n")), "\u{feff}A\nb\n");
}

#[test]
fn content_that_looks_like_ed_commands_is_content() {
    assert_eq!(on("1d\n2c\nx\n", &diff("@@ -1,3 +1,3 @@\n 1d\n 2c\n-x\n+y\n")), "1d\n2c\ny\n");
    assert!(bad(" 1d\n 2c\n-x\n+y\n").what.contains("no line of this begins a patch"));
}
