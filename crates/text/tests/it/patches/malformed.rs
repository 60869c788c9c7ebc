//! Every refusal of a parser: the line it names, what it says, and what it shows.

use super::kit::bad;

/// Input, the line that is named, part of what is said, part of what is shown.
type Case = (&'static str, usize, &'static str, &'static str);

fn check(cases: &[Case], accepted: &str) {
    for (input, line, what, seen) in cases {
        let refused = bad(input);
        assert!(refused.what.contains(what), "{input}\n{refused}");
        assert_eq!(refused.line, *line, "{input}\n{refused}");
        assert!(refused.seen.contains(seen), "{input}\n{refused}");
        assert!(refused.accepted.contains(accepted), "{input}\n{refused}");
    }
}

#[test]
fn of_unified_diffs() {
    let cases: [Case; 16] = [
        ("@@ -1 +1 @@\n-a\n+b\n", 1, "without the name of its file", "@@ -1"),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ntext\n@@ -5 +5 @@\n-c\n+d\n",
            7,
            "lines stand between",
            "@@ -5",
        ),
        ("--- a/x\n+++ b/x\n", 2, "no hunks", "the end of the patch"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", 1, "cannot be made one path", "--- a/x"),
        ("--- \t\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", 1, "name that cannot be read", "---"),
        ("--- a/x\n+++ \"b/x\n@@ -1 +1 @@\n-a\n+b\n", 2, "name that cannot be read", "+++ \"b/x"),
        ("--- a/x\n+++ b/x\n@@ -1,99999999999999 +1 @@\n-a\n", 3, "too large", "@@"),
        ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+b\n", 1, "both names are /dev/null", "---"),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n@@ -0,0 +3 @@\n+c\n", 1, "more than one hunk", "---"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", 1, "hunks hold new lines", "---"),
        ("diff --git a/x b/x\nindex 1..2 100644\n", 2, "no hunks", "the end of the patch"),
        ("diff --git a/x b/x\ncopy to y\n", 1, "one name only", "diff --git"),
        (
            "diff --git a/x b/x\nrename from \"\\q\"\nrename to y\n",
            2,
            "name that cannot be read",
            "rename from",
        ),
        ("diff --git a/x b/x\nnew file mode 40000\n", 2, "no file has", "new file mode 40000"),
        ("diff --git a/x b/x\nnew file mode 160000\n", 2, "submodule", "160000"),
        (
            "diff --git a/x b/y\nold mode 100644\nnew mode 100755\n",
            1,
            "cannot be made one path",
            "diff --git",
        ),
    ];
    let (modes, rest) = ([cases[13], cases[14]], [&cases[..13], &cases[15..]].concat());
    check(&rest, "`@@ -L,N +L,N @@`");
    check(&modes, "modes 100644, 100755 and 120000");
    check(
        &[("diff --git a/x b/x\nBinary files a/x and b/x differ\n", 2, "not in this patch", "Binary files")],
        "--binary",
    );
    check(&[("diff --combined x\n", 1, "combined diff", "diff --combined x")], "one parent");
}

#[test]
fn of_envelopes() {
    let cases: [Case; 12] = [
        ("*** Begin Patch\n*** End Patch\n", 2, "without a section", "*** End Patch"),
        ("*** Begin Patch\n*** Add File: x\n+a\n", 3, "cut off", "the end of the patch"),
        ("*** Begin Patch\nhello\n*** End Patch\n", 2, "no section begins so", "hello"),
        ("*** Begin Patch\n*** Add File:\n*** End Patch\n", 2, "without a path", "*** Add File:"),
        (
            "*** Begin Patch\n*** Update File: x\n*** Move to:  \n*** End Patch\n",
            3,
            "without a path",
            "*** Move to:",
        ),
        ("*** Begin Patch\n*** Add File: x\n+a\n\nb\n*** End Patch\n", 4, "begins with `+`", "an empty line"),
        ("*** Begin Patch\n*** Update File: x\n*** End Patch\n", 2, "without a hunk", "*** Update File: x"),
        (
            "*** Begin Patch\n*** Update File: x\n@@ f\n@@ g\n*** End Patch\n",
            5,
            "without lines",
            "*** End Patch",
        ),
        ("*** Begin Patch\n*** Update File: x\n@@\n-a\n\nb\n*** End Patch\n", 6, "begins with `@@`", "b"),
        (
            "*** Begin Patch\n*** Update File: x\n@@ -99999999999999999 +1 @@\n-a\n*** End Patch\n",
            3,
            "too large",
            "@@",
        ),
        ("*** Delete File: x\n*** End Patch\n", 1, "outside of an envelope", "*** Delete File: x"),
        (
            "*** Begin Patch\n*** Begin Patch\n*** Delete File: x\n*** End Patch\n",
            2,
            "no section begins so",
            "*** Begin Patch",
        ),
    ];
    check(&cases, "`*** Begin Patch`");
}

#[test]
fn of_blocks() {
    let cases: [Case; 6] = [
        ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", 1, "no path stands above", "<<<<<<< SEARCH"),
        ("x\n<<<<<<< SEARCH\na\n", 3, "cut off", "the end of the patch"),
        ("x\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", 4, "where none may", ">>>>>>> REPLACE"),
        ("x\n<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n", 6, "where none may", "======="),
        (
            "x\n<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n",
            4,
            "where none may",
            "<<<<<<< SEARCH",
        ),
        ("x\n<<<<<<< SEARCH\na\n=======\n=======\n>>>>>>> REPLACE\n", 5, "where none may", "======="),
    ];
    check(&cases, "`<<<<<<< SEARCH`");
}

#[test]
fn of_what_is_none_of_these() {
    let cases: [Case; 6] = [
        ("", 1, "no line of this begins a patch", "an empty line"),
        ("\n\n  hello\tyou \n", 3, "no line of this begins a patch", "  hello→you·"),
        ("@@\n-a\n+b\n", 1, "no line of this begins a patch", "@@"),
        ("*** x.c\n--- y.c\n***************\n*** 1,2 ****\n", 1, "no line of this begins a patch", "*** x.c"),
        ("1,2c\na\n.\n", 1, "no line of this begins a patch", "1,2c"),
        ("--- a/x\ntext\n", 1, "no line of this begins a patch", "--- a/x"),
    ];
    check(&cases, "a unified diff");
    assert!(bad(&"x".repeat(500)).seen.len() == 80 && bad(&"\u{200b}".repeat(90)).seen.len() <= 80);
}
