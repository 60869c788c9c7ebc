//! Three-way merges: one change taken out of a file that has moved on.

use cotenant_text::merge3;

fn merged(base: &str, ours: &str, theirs: &str) -> Result<String, Vec<(usize, usize)>> {
    merge3(base.as_bytes(), ours.as_bytes(), theirs.as_bytes())
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .map_err(|conflict| conflict.clashes.iter().map(|clash| (clash.ours.start, clash.ours.end)).collect())
}

#[test]
fn undo_takes_back_one_changes_hunks_only() {
    let before = "a\nb\nc\nd\ne\nf\n";
    let after = "a\nB\nc\nd\ne\nnew\nf\n";
    let now = "top\na\nB\nc\nD\ne\nnew\nf\n";
    // D touches neither hunk of the change.
    assert_eq!(merged(after, now, before), Ok("top\na\nb\nc\nD\ne\nf\n".to_owned()));
    assert_eq!(merged(after, after, before), Ok(before.to_owned()));
    assert_eq!(merged(after, now, after), Ok(now.to_owned()));
}

#[test]
fn later_changes_on_the_same_or_touching_lines_conflict() {
    assert_eq!(merged("a\nB\nc\n", "a\nBB\nc\n", "a\nb\nc\n"), Err(vec![(2, 3)]));
    assert_eq!(merged("a\nB\nc\n", "a\nB\nC\n", "a\nb\nc\n"), Err(vec![(2, 4)]));
    assert_eq!(merged("a\nb\nc\n", "a\nb\nx\nc\n", "a\nb\ny\nc\n"), Err(vec![(3, 4)]));
    let conflict = merge3(b"1\n2\n3\n4\n5\n", b"0\n1\n2\nX\nx\n4\n5\n", b"1\n2\nY\n4\n").unwrap_err();
    let clash = &conflict.clashes[0];
    assert_eq!((clash.base.clone(), clash.ours.clone(), clash.theirs.clone()), (3..4, 4..6, 3..4));
    assert_eq!((&clash.our_bytes[..], &clash.their_bytes[..]), (&b"X\nx\n"[..], &b"Y\n"[..]));
    assert_eq!(conflict.to_string(), "1 place(s) were changed on both sides");
}

#[test]
fn the_same_change_on_both_sides_is_no_conflict() {
    assert_eq!(merged("a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n"), Ok("a\nX\nc\n".to_owned()));
}

#[test]
fn endings_are_kept_and_count() {
    assert_eq!(
        merged("a\r\nb\r\nc\nd\n", "a\r\nb\r\nc\nD\n", "A\r\nb\r\nc\nd\n"),
        Ok("A\r\nb\r\nc\nD\n".to_owned())
    );
    assert!(merged("a\nb", "a\nb\nc", "a\nB").is_err(), "b got a break, and another text");
    assert_eq!(merged("a\nb\nc", "a\nb\nC", "A\nb\nc"), Ok("A\nb\nC".to_owned()));
}

#[test]
fn any_bytes_are_merged_at_their_breaks() {
    assert_eq!(merge3(b"\xff\n\0\nx\n", b"\xff\n\0\ny\n", b"\xfe\n\0\nx\n").unwrap(), b"\xfe\n\0\ny\n");
    let wide =
        |text: &str| [vec![0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    let result = merge3(&wide("a\nb\n\u{a0a}\n"), &wide("a\nb\nz\n"), &wide("q\nb\n\u{a0a}\n")).unwrap();
    assert_eq!(result, wide("q\nb\nz\n"));
    assert_eq!(merge3(b"", b"a\n", b"").unwrap(), b"a\n");
    assert_eq!(merge3(b"", b"", b"b\n").unwrap(), b"b\n");
}
