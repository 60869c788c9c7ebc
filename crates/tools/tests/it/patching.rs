//! `apply_patch`: three grammars through the pipeline; what does not fit says why, and its next call works.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::fixture::{Fixture, body, fact, notices};

/// Every file below a directory, by its path.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path);
            } else if !path.file_name().unwrap().to_str().unwrap().starts_with(".cotenant-") {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Another project's scenarios of the envelope: `input/`, `patch.txt`, `expected/`. Declared deviations: nothing is
/// overwritten unasked (010, 011), nothing is applied in part (015). That no final newline is forced on a file (declared of
/// 014) has a test of its own: the file there has one.
#[test]
fn the_envelopes_own_scenarios() {
    let Some(shared) = cotenant_testkit::shared("codex-scenarios") else { return };
    let mut count = 0;
    for scenario in std::fs::read_dir(shared).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(patch) = std::fs::read_to_string(scenario.join("patch.txt")) else { continue };
        count += 1;
        let name = scenario.file_name().unwrap().to_str().unwrap().to_owned();
        let f = Fixture::new();
        let input = scenario.join("input");
        let before = if input.is_dir() { files(&input) } else { BTreeMap::new() };
        for (path, bytes) in &before {
            f.put(path.to_str().unwrap(), bytes);
        }
        let answer = f.call("apply_patch", json!({"patch": patch}));
        let after = files(&f.path(""));
        let expected = files(&scenario.join("expected"));
        match &name[..3] {
            "010" | "011" => {
                assert!(answer.text.starts_with("ALREADY_EXISTS"), "{name}: {}", answer.text);
                assert_eq!(after, before, "{name}");
                continue;
            }
            "015" => {
                assert!(answer.is_error && after == before, "{name}: {}", answer.text);
                continue;
            }
            _ => {}
        }
        assert_eq!(after, expected, "{name}: {}", answer.text);
        assert_eq!(answer.is_error, after == before, "{name}: {}", answer.text);
    }
    assert_eq!(count, 25);
}

#[test]
fn one_patch_of_every_kind_lands_as_one_change_and_is_undone_as_one() {
    let f = Fixture::new();
    f.put("edit", "one\ntwo\nthree\n");
    f.put("gone", "bye\n");
    f.put("old/name", "a\nb\nc\n");
    f.put("run.sh", "#!/bin/sh\n");
    f.put("pure", "same\n");
    let before = files(&f.path(""));
    let patch = "\
diff --git a/edit b/edit
--- a/edit
+++ b/edit
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/new/deep/file b/new/deep/file
new file mode 100755
--- /dev/null
+++ b/new/deep/file
@@ -0,0 +1 @@
+fresh
\\ No newline at end of file
diff --git a/old/name b/new/name
similarity index 60%
rename from old/name
rename to new/name
--- a/old/name
+++ b/new/name
@@ -1,3 +1,3 @@
 a
-b
+B
 c
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/pure b/moved
similarity index 100%
rename from pure
rename to moved
diff --git a/link b/link
new file mode 120000
--- /dev/null
+++ b/link
@@ -0,0 +1 @@
+edit
\\ No newline at end of file
";
    let landed = f.ok("apply_patch", json!({"patch": patch}));
    assert_eq!(landed.lines().next().unwrap(), "patch=unified files=7 hunks=2 change=c1", "{landed}");
    let expected = "M edit +1 -1 lines=1-3\nD gone +0 -1\nA new/deep/file +1 -0\nR old/name -> new/name +1 -1 lines=1-3\n\
                    M run.sh 644->755\nR pure -> moved\nA link +1 -0";
    assert_eq!(body(&landed), expected);
    assert_eq!(
        (f.get("edit"), f.get("new/deep/file"), f.get("new/name")),
        ("one\n2\nthree\n".into(), "fresh".into(), "a\nB\nc\n".into())
    );
    assert!(!f.has("gone") && !f.has("old/name") && !f.has("pure"));
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(f.path(path)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("run.sh"), mode("new/deep/file")), (0o755, 0o755));
    assert_eq!(std::fs::read_link(f.path("link")).unwrap(), Path::new("edit"));
    assert_eq!(f.changes(), ["c1"]);
    let again = "--- a/edit\n+++ b/edit\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    let again = f.no("ALREADY_APPLIED", "apply_patch", json!({"patch": again}));
    assert!(again.contains("next: go on"), "{again}");
    f.ok("undo", json!({"change": "c1"}));
    assert_eq!(files(&f.path("")), before);
    assert_eq!(mode("run.sh"), 0o644);
}

#[test]
fn all_files_or_none() {
    let f = Fixture::new();
    f.put("a", "1\n2\n3\n");
    f.put("b", "x\ny\nz\n");
    let patch = "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n--- a/b\n+++ b/b\n@@ -1,3 +1,3 @@\n x\n-Y\n+why\n z\n";
    let refused = f.no(
        "PATCH_CONFLICT files=2 hunks=2 fit=1 failed=1 written=0",
        "apply_patch",
        json!({"patch": patch}),
    );
    assert!(refused.contains("b hunk 1: ") && refused.contains("2 file:  y\n2 patch: Y\n"), "{refused}");
    assert_eq!((f.get("a"), f.get("b")), ("1\n2\n3\n".into(), "x\ny\nz\n".into()));
    assert!(refused.contains(r#""skip":["b#1"]"#), "{refused}");
    let landed = f.retry(&refused);
    assert!(!landed.is_error, "{}", landed.text);
    assert_eq!((f.get("a"), f.get("b")), ("1\ntwo\n3\n".into(), "x\ny\nz\n".into()));
    // The place that was shown counts as read.
    f.ok("edit_file", json!({"path": "b", "old_text": "y", "new_text": "why"}));
}

/// What a model got slightly wrong is proposed right, and one short call applies the whole patch so.
#[test]
fn a_proposal_is_accepted_by_one_short_call() {
    let f = Fixture::new();
    f.put("src/a.py", "def f():\n\tif x:\n\t\treturn 1\n");
    let patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n def f():\n     if x:\n-        return 1\n+        return 2\n*** End Patch\n";
    let refused = f.no("PATCH_CONFLICT", "apply_patch", json!({"patch": patch}));
    assert!(refused.contains(r#""accept":["src/a.py#1@1"]"#), "{refused}");
    let landed = f.retry(&refused);
    assert!(!landed.is_error, "{}", landed.text);
    assert_eq!(f.get("src/a.py"), "def f():\n\tif x:\n\t\treturn 2\n");
}

#[test]
fn a_wrong_name_is_answered_with_the_right_one() {
    let f = Fixture::new();
    f.put("src/Parser.rs", "one\ntwo\n");
    for name in ["src/parser.rs", "a/src/Parser.rs", "src/Parser.r"] {
        let patch = format!("*** Begin Patch\n*** Update File: {name}\n@@\n one\n-two\n+2\n*** End Patch\n");
        let refused = f.no("PATCH_CONFLICT", "apply_patch", json!({"patch": patch}));
        assert!(refused.contains("there is no such file") && refused.contains(r#""paths":{"#), "{refused}");
        let landed = f.retry(&refused);
        assert!(!landed.is_error, "{}", landed.text);
        assert_eq!(f.get("src/Parser.rs"), "one\n2\n");
        f.put("src/Parser.rs", "one\ntwo\n");
    }
}

#[test]
fn the_tree_is_confined_for_every_grammar_and_every_name() {
    let f = Fixture::new();
    f.put("a", "x\n");
    f.put(".env", "x\n");
    std::fs::create_dir(f.path("../out")).unwrap();
    std::os::unix::fs::symlink("../out", f.path("link")).unwrap();
    for (name, code) in [
        ("../evil", "PATH_OUTSIDE"),
        ("/etc/evil", "PATH_OUTSIDE"),
        ("link/evil", "PATH_OUTSIDE"),
        (".git/hooks/pre-commit", "PATH_PROTECTED"),
        ("sub/.env", "PATH_PROTECTED"),
        ("cotenant.toml", "PATH_PROTECTED"),
    ] {
        for patch in [
            format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n"),
            format!("*** Begin Patch\n*** Update File: a\n*** Move to: {name}\n@@\n-x\n+y\n*** End Patch\n"),
            format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"),
            format!("diff --git a/a b/{name}\nsimilarity index 100%\nrename from a\nrename to {name}\n"),
            format!("diff --git a/a b/{name}\nsimilarity index 100%\ncopy from a\ncopy to {name}\n"),
            format!("{name}\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n"),
        ] {
            f.no(code, "apply_patch", json!({"patch": patch}));
        }
    }
    assert_eq!(f.get("a"), "x\n");
    assert!(std::fs::read_dir(f.path("../out")).unwrap().next().is_none());
}

#[test]
fn line_endings_encodings_and_the_missing_newline_stay() {
    let f = Fixture::new();
    f.put("crlf", "one\r\ntwo\r\nthree\r\n");
    f.put("bom", "\u{feff}one\ntwo");
    f.put(".editorconfig", "root = true\n[latin]\ncharset = latin1\n[new.bat]\nend_of_line = crlf\n");
    f.put("latin", b"caf\xe9\nx\n");
    let patch = "*** Begin Patch\n*** Update File: crlf\n@@\n one\n-two\n+2\n+2b\n*** Update File: bom\n@@\n-one\n+1\n*** Update File: latin\n@@\n café\n-x\n+é\n*** Add File: new.bat\n+a\n+b\n*** End Patch\n";
    f.ok("apply_patch", json!({"patch": patch}));
    assert_eq!(f.get("crlf"), "one\r\n2\r\n2b\r\nthree\r\n");
    assert_eq!(f.get("bom"), "\u{feff}1\ntwo");
    assert_eq!(f.bytes("latin"), b"caf\xe9\n\xe9\n");
    assert_eq!(f.get("new.bat"), "a\r\nb\r\n");
    let refused =
        f.call("apply_patch", json!({"patch": "--- a/latin\n+++ b/latin\n@@ -1,2 +1,2 @@\n café\n-é\n+→\n"}));
    assert!(
        refused.is_error && refused.text.starts_with("NOT_ENCODABLE") && refused.text.contains('→'),
        "{}",
        refused.text
    );
}

#[test]
fn a_dry_run_shows_the_diff_and_its_retry_applies_it() {
    let f = Fixture::new();
    f.put("a", "x\n");
    let dry =
        f.ok("apply_patch", json!({"patch": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n", "dry_run": true}));
    assert!(dry.contains("dry_run=yes") && dry.contains("\n-x\n+y"), "{dry}");
    assert_eq!((f.get("a"), f.changes().len()), ("x\n".to_owned(), 0));
    assert!(!f.retry(&dry).is_error);
    assert_eq!(f.get("a"), "y\n");
}

#[test]
fn what_is_no_patch_says_what_was_received() {
    let f = Fixture::new();
    let refused = f.no("PATCH_MALFORMED line=1", "apply_patch", json!({"patch": "please change a"}));
    assert!(
        refused.contains("please change a") && refused.contains("next: send a unified diff"),
        "{refused}"
    );
    f.no(
        "BAD_INPUT",
        "apply_patch",
        json!({"patch": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n", "paths": {"a": 1}}),
    );
    f.no("BAD_INPUT", "apply_patch", json!({}));
}

#[test]
fn wrapped_in_what_models_send_it_is_understood() {
    let f = Fixture::new();
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch";
    let json_string = serde_json::to_string(patch).unwrap();
    for wrapped in [
        format!("```diff\n{patch}\n```\n"),
        format!("apply_patch <<'EOF'\n{patch}\nEOF\n"),
        json_string,
        json!({"input": patch}).to_string(),
    ] {
        f.put("a", "x\n");
        f.ok("apply_patch", json!({"patch": wrapped}));
        assert_eq!(f.get("a"), "y\n", "{wrapped}");
    }
    f.put("sub/dir/a", "x\n");
    f.ok(
        "apply_patch",
        json!({"patch": format!("cd dir && apply_patch <<'EOF'\n{patch}\nEOF"), "cwd": "sub"}),
    );
    assert_eq!(f.get("sub/dir/a"), "y\n");
}

#[test]
fn a_hunk_that_stands_elsewhere_is_told() {
    let f = Fixture::new();
    f.put("a", "0\n".repeat(30) + "one\ntwo\nthree\n");
    let landed =
        f.ok("apply_patch", json!({"patch": "--- a/a\n+++ b/a\n@@ -1,9 +1,9 @@\n one\n-two\n+2\n three\n"}));
    let told = notices(&landed);
    assert!(told.iter().any(|note| note.contains("hunk 1 stands 30 lines below its stated one")), "{landed}");
    assert!(fact(&landed, "hunks").is_some());
}

/// What stood in the way of a rename is refused; names that change places are no obstacle.
#[test]
fn names_may_change_places() {
    let f = Fixture::new();
    f.put("a", "A\n");
    f.put("b", "B\n");
    let swap = "diff --git a/a b/t\nsimilarity index 100%\nrename from a\nrename to t\ndiff --git a/b b/a\nsimilarity index 100%\nrename from b\nrename to a\ndiff --git a/t b/b\nsimilarity index 100%\nrename from t\nrename to b\n";
    f.ok("apply_patch", json!({"patch": swap}));
    assert_eq!((f.get("a"), f.get("b"), f.has("t")), ("B\n".into(), "A\n".into(), false));
}

#[test]
fn binary_patches_of_git_are_proven_before_they_land() {
    let f = Fixture::new();
    let root = f.path("");
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"])
            .args(args)
            .current_dir(&root)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    f.put("bin", (0..=255u8).collect::<Vec<_>>().repeat(8));
    git(&["init", "-q"]);
    git(&["add", "bin"]);
    git(&["commit", "-qm", "one"]);
    let mut changed = (0..=255u8).collect::<Vec<_>>().repeat(8);
    changed[700] = 0;
    f.put("bin", &changed);
    f.put("fresh", b"\0\x01\x02");
    git(&["add", "-A"]);
    let patch = git(&["diff", "--cached", "--binary", "--full-index"]);
    git(&["reset", "-q", "--hard"]);
    assert!(!f.has("fresh"));
    f.ok("apply_patch", json!({"patch": patch}));
    assert_eq!((f.bytes("bin"), f.bytes("fresh")), (changed, b"\0\x01\x02".to_vec()));
    f.no("ALREADY_APPLIED", "apply_patch", json!({"patch": patch}));
    f.put("bin", b"\0other");
    let refused = f.no("PATCH_CONFLICT", "apply_patch", json!({"patch": patch}));
    assert!(refused.contains("not the one that this binary patch was made for"), "{refused}");
}

/// A NUL far into a file makes it no text for an edit, but git diffs it by lines, and such a patch names them exactly.
#[test]
fn what_git_diffs_by_lines_is_patched_by_lines() {
    let f = Fixture::new();
    let lines: String = (0..2000).map(|number| format!("line {number}\n")).collect();
    f.put("nul.txt", [lines.as_bytes(), b"a\0b\nend\n"].concat());
    let patch = "--- a/nul.txt\n+++ b/nul.txt\n@@ -1,3 +1,3 @@\n line 0\n-line 1\n+LINE 1\n line 2\n";
    f.ok("apply_patch", json!({"patch": patch}));
    let expected = [lines.replacen("line 1\n", "LINE 1\n", 1).as_bytes(), b"a\0b\nend\n"].concat();
    assert_eq!(f.bytes("nul.txt"), expected);
    f.put("early.txt", b"a\0b\nline\n");
    let early = "--- a/early.txt\n+++ b/early.txt\n@@ -2 +2 @@\n-line\n+LINE\n";
    f.no("NOT_TEXT", "apply_patch", json!({"patch": early}));
}

#[test]
fn a_copy_that_can_be_run_is_asked_about() {
    let f = Fixture::careful();
    f.put("run", "#!/bin/sh\n");
    f.put("plain", "text\n");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(f.path("run"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |from: &str| {
        let patch = format!(
            "diff --git a/{from} b/{from}2\nsimilarity index 100%\ncopy from {from}\ncopy to {from}2\n"
        );
        f.call("apply_patch", json!({"patch": patch})).text
    };
    assert!(copy("run").starts_with("APPROVAL_PENDING"));
    assert!(copy("plain").starts_with("patch=unified"));
    assert!(!f.has("run2") && f.get("plain2") == "text\n");
}

#[test]
fn a_patch_for_another_file_is_offered_there() {
    let f = Fixture::new();
    f.put("src/named.rs", "nothing of it\n");
    f.put("src/meant.rs", "fn one() {\n    first_call();\n    second_call();\n}\n");
    let hunk = " fn one() {\n     first_call();\n-    second_call();\n+    third_call();\n }\n";
    for patch in [
        format!("--- a/src/named.rs\n+++ b/src/named.rs\n@@ -1,4 +1,4 @@\n{hunk}"),
        format!("*** Begin Patch\n*** Update File: src/named.rs\n@@\n{hunk}*** End Patch\n"),
    ] {
        f.put("src/meant.rs", "fn one() {\n    first_call();\n    second_call();\n}\n");
        let refused = f.no("PATCH_CONFLICT", "apply_patch", json!({"patch": patch}));
        assert!(refused.contains("its first lines stand in src/meant.rs:1"), "{refused}");
        let landed = f.follow(&refused);
        assert!(!landed.is_error, "{}", landed.text);
        assert_eq!(f.get("src/meant.rs"), "fn one() {\n    first_call();\n    third_call();\n}\n");
        assert_eq!(f.get("src/named.rs"), "nothing of it\n");
    }
}
