//! Lines behind `@@`: where they lead, and where they lead to nothing.

use cotenant_text::patch::Cause;

use super::kit::{accept, miss, on};

/// Two classes with a method of the same name and body, a function like them, and a heading-like pair.
const FILE: &str = "\
class A:
    def run(self):
        start()
        stop()

    def end(self):
        stop()

class B:
    def run(self):
        start()
        stop()

def run(self):
    start()
    stop()

## One
text
## Two
text
";

fn update(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: x\n{body}*** End Patch\n")
}

/// The file with its `n`th (from 0) occurrence of a line replaced.
fn nth(line: &str, n: usize, with: &str) -> String {
    let mut seen = 0;
    FILE.lines()
        .map(|found| {
            let hit = found == line && seen == n;
            seen += usize::from(found == line);
            format!("{}\n", if hit { with } else { found })
        })
        .collect()
}

#[test]
fn a_class_and_a_method_lead_to_one_of_many_alike() {
    let change = "-        start()\n+        begin()\n";
    let a = update(&format!("@@ class A:\n@@     def run(self):\n{change}"));
    assert_eq!(on(FILE, &a), nth("        start()", 0, "        begin()"));
    let b = update(&format!("@@ class B:\n@@ def run(self):\n{change}"));
    assert_eq!(on(FILE, &b), nth("        start()", 1, "        begin()"));
}

#[test]
fn one_anchor_is_enough_where_its_scope_holds_one_place() {
    let change = "-        start()\n+        begin()\n";
    assert_eq!(
        on(FILE, &update(&format!("@@ class B:\n{change}"))),
        nth("        start()", 1, "        begin()")
    );
    let stops = update("@@ class A:\n-        stop()\n+        halt()\n");
    let found = miss(FILE.as_bytes(), &stops);
    assert_eq!((found.cause, found.candidates), (Cause::Ambiguous, vec![4, 7, 12]), "class A holds two");
}

#[test]
fn an_anchor_that_opens_nothing_leads_to_what_stands_below() {
    assert_eq!(on(FILE, &update("@@ ## Two\n-text\n+new\n")), nth("text", 1, "new"));
    assert_eq!(
        miss(FILE.as_bytes(), &update("@@ ## One\n-text\n+new\n")).cause,
        Cause::Ambiguous,
        "two stand below"
    );
}

#[test]
fn a_place_outside_of_the_scope_is_not_taken_for_one_that_went() {
    let gone = FILE.replacen("        start()\n        stop()\n\nclass", "        stop()\n\nclass", 1);
    let stale = update("@@ class A:\n@@     def end(self):\n-        start()\n+        begin()\n");
    assert_eq!(miss(gone.as_bytes(), &stale).cause, Cause::Ambiguous);
}

#[test]
fn an_anchor_must_be_one_line() {
    let found = miss(FILE.as_bytes(), &update("@@ def run(self):\n+    log()\n"));
    assert_eq!(
        (found.cause, found.candidates),
        (Cause::Anchor, vec![2, 10, 14]),
        "it may have lost its indent"
    );
    let found = miss(FILE.as_bytes(), &update("@@     def run(self):\n+        log()\n"));
    assert_eq!(found.candidates, [2, 10], "with its indent it is not the third");
    let end = FILE
        .replace("    def end(self):", "    def run(self, x):")
        .replace("def run(self):\n    start", "def go(self):\n    start");
    assert_eq!(on(&end, &update("@@     def run(self, x):\n+        log()\n")).matches("log()").count(), 1);
}

#[test]
fn an_anchor_may_be_the_first_line_of_the_hunk() {
    let patch = update("@@ class B:\n class B:\n-    def run(self):\n+    def go(self):\n");
    assert_eq!(on(FILE, &patch), nth("    def run(self):", 1, "    def go(self):"));
}

#[test]
fn a_unified_header_without_numbers_may_name_an_anchor() {
    let patch = "--- a/x\n+++ b/x\n@@ class B: @@\n-        start()\n+        begin()\n";
    assert_eq!(on(FILE, patch), nth("        start()", 1, "        begin()"));
}

#[test]
fn what_stands_behind_numbers_is_no_anchor() {
    let patch = "--- a/x\n+++ b/x\n@@ -3,1 +3,1 @@ class Elsewhere:\n-        start()\n+        begin()\n";
    assert_eq!(on(FILE, patch), nth("        start()", 0, "        begin()"));
}

#[test]
fn lines_below_an_anchor_are_not_put_in_twice() {
    let patch = update("@@ class B:\n+    name = \"b\"\n");
    let once = on(FILE, &patch);
    let found = miss(once.as_bytes(), &patch);
    assert_eq!((found.cause, found.candidates), (Cause::AlreadyApplied, vec![10]));
}

#[test]
fn an_anchor_of_another_spelling_is_offered() {
    let patch = update("@@ class B\n+    name = \"b\"\n");
    let found = miss(FILE.as_bytes(), &patch);
    assert_eq!(found.detail, "no line is `class B`");
    assert_eq!(accept(FILE.as_bytes(), &found), FILE.replace("class B:\n", "class B:\n    name = \"b\"\n"));
    assert!(miss(FILE.as_bytes(), &update("@@ class\n+x\n")).suggestion.is_none(), "two lines begin so");
    assert!(miss(FILE.as_bytes(), &update("@@ nothing like it\n+x\n")).suggestion.is_none());
}

#[test]
fn a_missing_anchor_does_not_hide_the_only_place() {
    assert_eq!(
        on(FILE, &update("@@ no such line\n-        stop()\n \n-class B:\n+class C:\n"))
            .matches("class C")
            .count(),
        1
    );
}

#[test]
fn anchors_hold_in_files_of_any_form() {
    let crlf = FILE.replace('\n', "\r\n");
    let changed = on(&crlf, &update("@@ class B:\n+    pass\n"));
    assert_eq!(changed, crlf.replace("class B:\r\n", "class B:\r\n    pass\r\n"));
    let tabs = FILE.replace("    ", "\t");
    let patch = update("@@ class B:\n@@ def run(self):\n-\t\tstart()\n+\t\tbegin()\n");
    assert_eq!(on(&tabs, &patch), nth("        start()", 1, "        begin()").replace("    ", "\t"));
}
