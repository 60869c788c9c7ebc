//! Unified diffs, plain and git's: names, headers, hunks, and what they are wrapped in.

use cotenant_text::patch::{Grammar, Mode, Op, Options, parse};

use super::kit::{bad, one, read, shown, text};

#[test]
fn a_plain_diff_names_its_file_and_its_lines() {
    let patch = read("--- a/src/x.rs\n+++ b/src/x.rs\n@@ -3,2 +3,3 @@ fn x() {\n a\n-b\n+B\n+c\n");
    assert_eq!(patch.grammar, Grammar::Unified);
    let file = &patch.files[0];
    assert_eq!((text(&file.path).as_str(), &file.op), ("src/x.rs", &Op::Update));
    let hunk = &file.hunks[0];
    assert_eq!((hunk.old_start, hunk.counts, hunk.ordinal, hunk.line), (Some(3), Some((2, 3)), 1, 3));
    assert_eq!((text(&hunk.section).as_str(), hunk.is_miscounted()), ("fn x() {", false));
    assert_eq!(shown(hunk), [" a", "-b", "+B", "+c"]);
}

#[test]
fn prefixes_are_taken_off_where_they_are_prefixes() {
    let path = |old: &str, new: &str, strip| {
        let patch = format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n");
        parse(&patch, &Options { strip }).map(|patch| text(&patch.files[0].path)).map_err(|bad| bad.line)
    };
    let cases = [
        ("a/x", "b/x", None, Ok("x")),
        ("i/d/x", "w/d/x", None, Ok("d/x")),
        ("old/x", "new/x", None, Ok("x")),
        ("src/x", "src/x", None, Ok("src/x")),
        ("a/x", "a/x", None, Ok("a/x")),
        ("x.orig", "x", None, Ok("x")),
        ("a/x", "b/x", Some(0), Err(1)),
        ("p/q/x", "r/s/x", Some(2), Ok("x")),
        ("p//q/x", "p//q/x", Some(1), Ok("q/x")),
        ("a/x", "b/x", Some(2), Err(1)),
        ("a/x", "b/y", None, Err(1)),
        ("x\t2026-11-30 10:00:00.0 +0000", "x\t2026-11-30 10:00:01.0 +0000", None, Ok("x")),
        ("x 2026-11-30 10:00:00", "x 2026-11-30 10:00:01", None, Ok("x")),
        ("a/my file", "b/my file", None, Ok("my file")),
        ("\"a/t\\tab \\303\\244\"", "\"b/t\\tab \\303\\244\"", None, Ok("t\tab ä")),
    ];
    for (old, new, strip, wanted) in cases {
        assert_eq!(path(old, new, strip), wanted.map(str::to_owned), "{old} {new} {strip:?}");
    }
}

#[test]
fn a_quoted_name_may_hold_bytes_that_are_no_text() {
    let file = one("--- \"a/\\377\\001x\"\n+++ \"b/\\377\\001x\"\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!(file.path, b"\xff\x01x");
    for broken in ["\"a/\\9\"", "\"a/\\40\"", "\"a/x", "\"a/\\q\""] {
        bad(&format!("--- {broken}\n+++ {broken}\n@@ -1 +1 @@\n-a\n+b\n"));
    }
}

#[test]
fn git_headers_say_what_happens_to_the_file() {
    let added = one("diff --git a/n b/n\nnew file mode 100755\nindex 0000000..e69de29\n");
    assert_eq!((added.op, added.new_mode, added.hunks.len()), (Op::Add, Some(Mode::Executable), 0));
    let gone =
        one("diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    assert_eq!((gone.op, gone.old_mode, text(&gone.path)), (Op::Delete, Some(Mode::Regular), "n".to_owned()));
    let mode = one("diff --git a/a b c b/a b c\nold mode 100644\nnew mode 100755\n");
    assert_eq!((mode.op, text(&mode.path)), (Op::Update, "a b c".to_owned()));
    let link = one(
        "diff --git a/l b/l\nindex 123..456 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n",
    );
    assert!(link.is_link());
    let from = b"o/x".to_vec();
    let moved = one("diff --git a/o/x b/n/x\nsimilarity index 100%\nrename from o/x\nrename to n/x\n");
    assert_eq!(
        (moved.op.clone(), moved.source(), moved.path.as_slice()),
        (Op::Rename { from: from.clone() }, b"o/x".as_slice(), b"n/x".as_slice())
    );
    let copied = one(
        "diff --git a/o/x b/n/x\nsimilarity index 90%\ncopy from o/x\ncopy to n/x\n--- a/o/x\n+++ b/n/x\n@@ -1 +1 @@\n-a\n+b\n",
    );
    assert_eq!((copied.op, copied.hunks.len()), (Op::Copy { from }, 1));
}

#[test]
fn nothing_and_the_epoch_are_files_that_do_not_exist() {
    let added = one("--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    assert_eq!((added.op.clone(), added.content()), (Op::Add, b"a\nb\n".to_vec()));
    let epoch = "1970-01-01 00:00:00.000000000 +0000";
    let added = one(&format!(
        "--- old/x\t{epoch}\n+++ new/x\t2026-11-30 10:00:00.0 +0000\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"
    ));
    assert_eq!(
        (added.op.clone(), added.content(), text(&added.path)),
        (Op::Add, b"a".to_vec(), "x".to_owned())
    );
    let gone = one(&format!("--- x\t2026-11-30 10:00:00.0 +0000\n+++ x\t{epoch}\n@@ -1 +0,0 @@\n-a\n"));
    assert_eq!(gone.op, Op::Delete);
    let touched = one(&format!("--- x\t{epoch}\n+++ x\t{epoch}\n@@ -1 +1 @@\n-a\n+b\n"));
    assert_eq!(touched.op, Op::Update);
    bad("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n");
}

#[test]
fn what_no_patch_can_do_is_refused_by_name() {
    let what = |text: &str| bad(text).what;
    assert!(what("diff --git a/s b/s\nindex 12..34 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n").contains("submodule"));
    assert!(
        what("diff --cc x\nindex 1,2..3\n--- a/x\n+++ b/x\n@@@ -1,1 -1,1 +1,1 @@@\n--a\n++b\n")
            .contains("combined diff")
    );
    assert!(
        what("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n")
            .contains("not in this patch")
    );
    assert!(what("@@ -1 +1 @@\n-a\n+b\n").contains("without the name of its file"));
    assert!(what("--- a/x\n+++ b/x\n").contains("no hunks"));
    assert!(what("--- a/x\n+++ b/x\n@@ -1 +1 @@\n").contains("without lines"));
    assert!(what("--- a/x\n+++ b/x\n@@ -99999999999999999999999 +1 @@\n-a\n").contains("too large"));
    assert!(what("diff --git a/x b/x\nrename from x\n").contains("one name only"));
    assert!(what("diff --git a/x b/x\nold mode 100644\nnew mode 777\n").contains("mode that no file has"));
    assert!(what("diff --git a/x b/x\nold mode 100644\nnew mode 120000\n").contains("a file a link"));
    assert!(
        what("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n\\ No newline at end of file\n-b\n+c\n d\n")
            .contains("not after its last line")
    );
    assert!(
        what("--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
            .contains("a new file whose hunks hold old lines")
    );
}

#[test]
fn a_refusal_shows_the_line_and_what_may_stand_there() {
    let refused = bad("hello\tworld\nno patch here\n");
    assert_eq!((refused.line, refused.seen.as_str()), (1, "hello→world"));
    assert!(refused.accepted.contains("*** Begin Patch") && refused.accepted.contains("SEARCH"));
    assert_eq!(bad("").seen, "an empty line");
    assert_eq!(bad(&"é".repeat(90)).seen, "é".repeat(40));
}

#[test]
fn wrong_counts_are_noticed_and_recounted() {
    for (header, miscounted) in
        [("-1,3 +1,3", false), ("-1,9 +1,9", true), ("-1,1 +1,1", true), ("-1 +1", true)]
    {
        let file = one(&format!("--- a/x\n+++ b/x\n@@ {header} @@\n a\n-b\n+B\n c\n@@ -9 +9 @@\n-y\n+z\n"));
        assert_eq!(shown(&file.hunks[0]), [" a", "-b", "+B", " c"], "{header}");
        assert_eq!(file.hunks[0].is_miscounted(), miscounted, "{header}");
        assert_eq!(
            (file.hunks[1].ordinal, shown(&file.hunks[1])),
            (2, vec!["-y".to_owned(), "+z".to_owned()])
        );
    }
}

#[test]
fn counts_tell_headers_from_lines_that_look_like_them() {
    let sql = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n select 1\n--- old remark\n+++ new remark\n@@ -9 +9 @@\n-y\n+z\n";
    let file = one(sql);
    assert_eq!(shown(&file.hunks[0]), [" select 1", "--- old remark", "+++ new remark"]);
    let two = read("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n");
    assert_eq!(
        two.files.iter().map(|f| text(&f.path)).collect::<Vec<_>>(),
        ["x", "y"],
        "wrong counts, so the header is one"
    );
}

#[test]
fn headers_without_numbers_are_accepted() {
    for (header, anchor) in
        [("@@", None), ("@@ ... @@", None), ("@@ fn x() @@", Some("fn x()")), ("@@ fn x()", Some("fn x()"))]
    {
        let hunk = &one(&format!("--- a/x\n+++ b/x\n{header}\n-a\n+b\n")).hunks[0];
        assert_eq!((hunk.old_start, hunk.counts), (None, None), "{header}");
        assert_eq!(hunk.anchors.iter().map(|a| text(a)).next().as_deref(), anchor, "{header}");
    }
}

#[test]
fn mail_and_logs_around_sections_are_passed_over() {
    let mail = "From 1a2b Mon Sep 17 00:00:00 2001\nFrom: A <a@b.c>\nSubject: [PATCH] x\n\n- a list\n+ of things\n---\n x | 2 +-\n 1 file changed\n\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n-- \n2.43.0\n\n";
    assert_eq!(shown(&one(mail).hunks[0]), ["-a", "+b", " c"]);
    let miscounted = mail.replace("-1,2 +1,2", "-1,5 +1,5");
    assert_eq!(
        shown(&one(&miscounted).hunks[0]),
        ["-a", "+b", " c"],
        "the signature is no line, whatever the counts"
    );
    let log = "commit 1\nAuthor: A\n\n    message\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\ncommit 2\n\n    more\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\n";
    let files = read(log).files;
    assert_eq!(
        files.iter().map(|f| (text(&f.path), f.hunks[0].ordinal)).collect::<Vec<_>>(),
        [("x".to_owned(), 1), ("x".to_owned(), 2)],
        "the same file twice, one after the other"
    );
}

#[test]
fn empty_lines_are_empty_context_or_nothing_at_all() {
    let counted = one("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a\n+b\n\n\n\n");
    assert_eq!(shown(&counted.hunks[0]), ["-a", "+b", " ", " "]);
    let uncounted = one("--- a/x\n+++ b/x\n@@\n-a\n+b\n\n c\n\n\n");
    assert_eq!(shown(&uncounted.hunks[0]), ["-a", "+b", " ", " c"]);
    let apart = one("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\n@@ -5 +5 @@\n-c\n+d\n");
    assert_eq!(apart.hunks.len(), 2, "an empty line between hunks");
}

#[test]
fn no_line_of_a_hunk_is_passed_over_because_its_counts_are_too_small() {
    let body = " a\n-b\n+B\n\n-c\n+C\n";
    let hunk = one(&format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n{body}"));
    assert_eq!(shown(&hunk.hunks[0]), [" a", "-b", "+B", " ", "-c", "+C"]);
    let more = one(&format!("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n{body}\n\n-- \n2.43.0\n"));
    assert_eq!(more.hunks, hunk.hunks);
    let text = one("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+B\n\nThat is all:\n- one change\n");
    assert_eq!(shown(&text.hunks[0]), ["-b", "+B"], "text behind is text");
}

#[test]
fn a_missing_last_line_break_is_no_matter() {
    assert_eq!(shown(&one("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b").hunks[0]), ["-a", "+b"]);
}

#[test]
fn a_patch_carried_with_crlf_is_one_with_lf() {
    let lf = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n";
    assert_eq!(read(lf), read(&lf.replace('\n', "\r\n")));
    let content = one("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\r\n+b\r\n c\n");
    assert_eq!(shown(&content.hunks[0]), ["-a^", "+b^", " c"], "CR in lines alone is content");
}

const DIFF: &str = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";

#[test]
fn wrappings_are_taken_off() {
    let plain = read(DIFF);
    let quoted = DIFF.replace('\n', "\\n");
    let cases = [
        format!("```diff\n{DIFF}```\n"),
        format!("Here it is:\n\n~~~\n{DIFF}~~~\nDone.\n"),
        format!("```\n{DIFF}"),
        format!("\"{quoted}\""),
        format!("{{\"patch\": \"{quoted}\"}}"),
        format!("{{\"note\": [1, {{\"a\": null}}], \"input\": \"{quoted}\", \"x\": true}}"),
        format!("{{\"diff\": \"{}\"}}", quoted.replace('+', "\\u002b")),
        format!("[\"apply_patch\", \"{quoted}\"]"),
        format!("git apply <<'EOF'\n{DIFF}EOF\n"),
        format!("$ true\n```bash\napply_patch <<EOF\n{DIFF}EOF\n```\n"),
        format!("\u{feff}{DIFF}"),
    ];
    for wrapped in cases {
        let patch = read(&wrapped);
        assert_eq!(patch.files[0].hunks[0].lines, plain.files[0].hunks[0].lines, "{wrapped}");
        assert_eq!(patch.files[0].path, b"x", "{wrapped}");
    }
    let two = read(&format!("First:\n```diff\n{DIFF}```\nand\n```diff\n{}```\n", DIFF.replace("/x", "/y")));
    assert_eq!(two.files.len(), 2);
}

#[test]
fn a_command_gives_its_folder_and_its_strip() {
    let wrap = |command: &str| parse(&format!("{command} <<'PATCH'\n{DIFF}PATCH\n"), &Options::default());
    let got = |command: &str| wrap(command).map(|p| (p.cd, text(&p.files[0].path))).map_err(|bad| bad.what);
    let yes = |cd: Option<&str>, path: &str| Ok((cd.map(str::to_owned), path.to_owned()));
    assert_eq!(got("cd sub && apply_patch"), yes(Some("sub"), "x"));
    assert_eq!(got("cd 'my dir' && git apply -p1 --recount -"), yes(Some("my dir"), "x"));
    assert_eq!(got("patch -p1 -d sub"), yes(Some("sub"), "x"));
    assert_eq!(got("patch --strip=1"), yes(None, "x"));
    assert!(got("git apply -p0").unwrap_err().contains("cannot be made one path"));
    assert!(got("git apply -R").unwrap_err().contains("`-R` is not understood"));
    assert!(got("git commit").unwrap_err().contains("no command that takes a patch"));
    assert!(got("patch -p one").unwrap_err().contains("takes a number"));
    assert!(got("cd 'x && apply_patch").unwrap_err().contains("quotes without an end"));
    let cut = parse(&format!("apply_patch <<'EOF'\n{DIFF}"), &Options::default()).unwrap_err();
    assert!(cut.what.contains("cut off"), "{cut}");
    let both = parse(&format!("git apply -p0 <<EOF\n{DIFF}EOF\n"), &Options { strip: Some(1) }).unwrap();
    assert_eq!(both.files[0].path, b"x", "what the caller says goes before the command");
}

#[test]
fn grammars_are_not_mixed() {
    let envelope = "*** Begin Patch\n*** Delete File: y\n*** End Patch\n";
    let block = "y\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
    for (one, other) in [
        (DIFF, envelope),
        (DIFF, block),
        (envelope, DIFF),
        (envelope, block),
        (block, DIFF),
        (block, envelope),
    ] {
        let refused = bad(&format!("{one}{other}"));
        assert!(refused.what.contains("one patch, one grammar"), "{refused}");
    }
    let inside =
        bad("*** Begin Patch\n*** Update File: x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n*** End Patch\n");
    assert!(inside.what.contains("unified diff inside an envelope"), "{inside}");
}
