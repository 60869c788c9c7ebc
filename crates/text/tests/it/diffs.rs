//! Diffs as text, and how they keep to their bytes.

use cotenant_text::{Diff, Tag, stat, unified};

use crate::kit::form;

fn diff(old: &[u8], new: &[u8], context: usize) -> Diff {
    unified(old, &form(old), new, &form(new), context)
}

fn plain(old: &[u8], new: &[u8]) -> String {
    diff(old, new, 1).render(2000, false)
}

#[test]
fn hunks_are_numbered_like_a_unified_diff() {
    assert_eq!(plain(b"a\nb\nc\n", b"a\nB\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    assert_eq!(plain(b"", b"a\nb\n"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
    assert_eq!(plain(b"a\n", b""), "@@ -1,1 +0,0 @@\n-a\n");
    assert_eq!(diff(b"a\nb\n", b"a\nx\nb\n", 0).render(200, false), "@@ -1,0 +2,1 @@\n+x\n");
    assert_eq!(diff(b"a\nb\nc\n", b"a\nc\n", 0).render(200, false), "@@ -2,1 +1,0 @@\n-b\n");
    assert_eq!(plain(b"same\n", b"same\n"), "");
}

#[test]
fn far_changes_are_two_hunks() {
    let old: String = (1..=40).map(|n| format!("{n}\n")).collect();
    let new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\n");
    let found = diff(old.as_bytes(), new.as_bytes(), 3);
    let heads: Vec<_> =
        found.hunks.iter().map(|h| (h.old_start, h.old_len, h.new_start, h.new_len)).collect();
    assert_eq!(heads, [(2, 7, 2, 7), (27, 7, 27, 6)]);
    assert_eq!(found.stat(), (1, 2));
    assert_eq!(stat(old.as_bytes(), &form(old.as_bytes()), new.as_bytes(), &form(new.as_bytes())), (1, 2));
}

#[test]
fn a_change_among_equal_lines_has_its_context_below() {
    let old = b"x\nc\nc\nc\nd\n";
    let new = b"x\nc\nc\nc\nc\nd\n";
    assert_eq!(plain(old, new), "@@ -4,2 +4,3 @@\n c\n+c\n d\n");
    assert_eq!(
        plain(b"a\nc\nx\nc\nc\n", b"a\na\nc\nx\nc\nc\nc\n"),
        "@@ -1,2 +1,3 @@\n a\n+a\n c\n@@ -4,2 +5,3 @@\n c\n+c\n c\n"
    );
}

#[test]
fn a_missing_final_newline_is_said() {
    assert_eq!(plain(b"a\nb", b"a\nb\n"), "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
}

#[test]
fn changed_endings_are_visible() {
    assert_eq!(plain(b"a\nb\n", b"a\r\nb\n"), "@@ -1,2 +1,2 @@\n-a\n+a␍\n b\n");
    assert_eq!(
        plain(b"a\r\nb\r\n", b"A\r\nb\r\n"),
        "@@ -1,2 +1,2 @@\n-a\n+A\n b\n",
        "no noise where nothing mixes"
    );
}

#[test]
fn invisibles_are_visible_when_asked() {
    let found = diff("x = 1;\n".as_bytes(), "x\u{200b} =\t1; \n".as_bytes(), 0);
    assert_eq!(found.render(200, true), "@@ -1,1 +1,1 @@\n-x = 1;\n+x<U+200B> =→1;·\n");
    assert_eq!(found.render(200, false), "@@ -1,1 +1,1 @@\n-x = 1;\n+x\u{200b} =\t1; \n");
    assert_eq!(plain(b"\xff\n", b"\xfe\n"), "@@ -1,1 +1,1 @@\n-\\xFF\n+\\xFE\n");
}

#[test]
fn a_render_keeps_to_its_bytes() {
    let old: String = (1..=500).map(|n| format!("old line {n}\n")).collect();
    let new = old.replace("old", "new");
    let text = diff(old.as_bytes(), new.as_bytes(), 3).render(2048, false);
    assert!(text.len() <= 2048, "{}", text.len());
    assert!(text.ends_with(" of 1000 diff lines left out]…\n"), "{}", &text[text.len() - 60..]);
    assert!(text.starts_with("@@ -1,500 +1,500 @@\n-old line 1\n"));
    let long = "x".repeat(5000);
    let text = diff(b"", long.as_bytes(), 0).render(2048, false);
    assert_eq!(
        text,
        format!("@@ -0,0 +1,1 @@\n+{}…[4600 bytes]\n\\ No newline at end of file\n", "x".repeat(400))
    );
}

#[test]
fn a_new_form_is_said_though_no_line_changed() {
    let found = diff(b"a\n", b"\xef\xbb\xbfa\n", 3);
    assert_eq!((found.hunks.len(), found.render(200, false).as_str()), (0, "! a byte order mark is added\n"));
    let found = diff(b"a\nb\n", b"\xff\xfea\0\n\0c\0\n\0", 0);
    assert_eq!(
        found.render(300, false),
        "! encoding utf-8 becomes utf-16le\n! a byte order mark is added\n@@ -2,1 +2,1 @@\n-b\n+c\n"
    );
    assert_eq!(diff(b"\xef\xbb\xbfa\n", b"b\n", 0).notes, ["the byte order mark is taken off"]);
}

#[test]
fn utf16_lines_are_cut_at_their_own_breaks() {
    let wide =
        |text: &str| [vec![0xfe, 0xff], text.encode_utf16().flat_map(u16::to_be_bytes).collect()].concat();
    let (old, new) = (wide("a\u{a0a}\nb\nc\nd\n"), wide("a\u{a0a}\nb\nC\nd\n"));
    let found = diff(&old, &new, 1);
    assert_eq!(found.render(300, false), "@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n");
    assert_eq!(found.hunks[0].lines[1].tag, Tag::Old);
}

#[test]
fn only_the_middle_of_a_large_file_is_looked_at() {
    let line = "some line of a large file\n";
    let old = line.repeat(100_000);
    let at = line.len() * 60_000;
    let new = format!("{}changed\n{}", &old[..at], &old[at + line.len()..]);
    let found = diff(old.as_bytes(), new.as_bytes(), 2);
    assert_eq!(found.hunks.len(), 1);
    assert_eq!((found.hunks[0].old_start, found.hunks[0].old_len), (59_999, 5));
}
