//! The cases of area `match`, by id.

use cotenant_text::{EditError, EditSpec, Level};

use crate::kit::{accept, edit, edits, miss, spec};

#[test]
fn c023_tabs_against_spaces_are_diagnosed_and_offered() {
    let raw = b"func f() {\n\tif ok {\n\t\treturn 1\n\t}\n}\n";
    let wanted = b"func f() {\n\tif ok {\n\t\treturn 2\n\t}\n}\n";
    let found = miss(raw, "    if ok {\n        return 1", "    if ok {\n        return 2");
    assert_eq!(found.cause.name(), "tabs");
    assert_eq!(found.detail, "the file indents with tabs, old_text with 4 spaces");
    assert_eq!(found.nearest[0].lines, (2, 3));
    assert_eq!(found.nearest[0].text, "2|→if ok {\n3|→→return 1\n");
    assert_eq!(found.suggestion.as_ref().unwrap().level, Level::Tabs);
    assert_eq!(accept(raw, &found), wanted);
    assert_eq!(edit(raw, "\tif ok {\n\t\treturn 1", "\tif ok {\n\t\treturn 2").unwrap().bytes, wanted);
}

#[test]
fn c024_a_literal_backslash_t_is_no_tab() {
    let found = miss(b"\tvalue = 1\n", "\\tvalue = 1", "\\tvalue = 2");
    assert_eq!(found.cause.name(), "escapes");
    assert!(found.detail.contains("\\t") && found.detail.ends_with("at line 1"), "{}", found.detail);
    let offered = found.suggestion.as_ref().unwrap();
    assert_eq!(offered.level.name(), "reading", "no setting applies it unasked");
    assert_eq!(accept(b"\tvalue = 1\n", &found), b"\tvalue = 2\n");
}

#[test]
fn c026_another_indent_is_refused_and_offered_as_the_file_has_it() {
    let raw = b"top\n   three_sp\nend\n";
    let found = miss(raw, "    three_sp", "    four_sp");
    assert_eq!(found.cause.name(), "indent");
    assert_eq!(found.suggestion.as_ref().unwrap().level.name(), "indent(-1)");
    assert_eq!(accept(raw, &found), b"top\n   four_sp\nend\n");
}

#[test]
fn c027_two_near_places_are_both_listed() {
    let found = miss(b"left   right\nmid\nleft\tright\n", "left right", "X");
    let lines: Vec<_> = found.nearest.iter().map(|near| near.lines.0).collect();
    assert_eq!(lines, [1, 3]);
    assert_eq!(found.suggestion, None);
}

#[test]
fn c029_blank_old_text_matches_nothing() {
    let raw = b"p\tq\nr\ts\n";
    assert!(matches!(edit(raw, " ", "Z"), Err(EditError::NotFound { .. })));
    assert!(matches!(edit(raw, "", "Z"), Err(EditError::EmptyOld { item: 0 })));
    let all = EditSpec { replace_all: true, ..spec("", "Z") };
    assert!(matches!(edits(raw, &[all]), Err(EditError::EmptyOld { item: 0 })));
}

#[test]
fn c030_new_text_is_never_trimmed() {
    let raw = b"line one\nline two\n";
    let first = edit(raw, "line one", "line one  ").unwrap().bytes;
    assert_eq!(first, b"line one  \nline two\n");
    let found = miss(&first, "\nline two\n\n", "\n  line 2  \n\n");
    assert_eq!(found.cause.name(), "spacing");
    assert_eq!(found.nearest[0].lines, (2, 2));
}

#[test]
fn c032_replace_all_counts_what_it_replaces() {
    let all = EditSpec { replace_all: true, ..spec("ab", "abab") };
    let edited = edits(b"ab ab\nab\n  ab\n", &[all]).unwrap();
    assert_eq!(edited.bytes, b"abab abab\nabab\n  abab\n");
    assert_eq!((edited.counts, edited.spans.len()), (vec![4], 4));
}

#[test]
fn c033_a_batch_is_all_or_nothing() {
    let raw = b"let low = 4;\nlet high = 8;\n";
    let error = edits(raw, &[spec("let low = 4;", "let low = 40;"), spec("let gone = 3;", "x")]).unwrap_err();
    assert!(matches!(error, EditError::NotFound { .. }));
    assert_eq!(error.item(), 1);
}

#[test]
fn c035_each_item_sees_the_one_before() {
    let raw = b"stage = red\n";
    let edited = edits(raw, &[spec("red", "green"), spec("green", "blue")]).unwrap();
    assert_eq!(edited.bytes, b"stage = blue\n");
    assert_eq!(edited.spans.len(), 1);
    let error = edits(&edited.bytes, &[spec("blue", "a a"), spec("a", "z")]).unwrap_err();
    assert!(matches!(error, EditError::Ambiguous { item: 1, .. }), "{error:?}");
}

#[test]
fn c036_an_empty_old_text_in_a_batch_is_the_callers_business() {
    let error = edits(b"", &[spec("", "hello\n"), spec("absent", "x")]).unwrap_err();
    assert_eq!(error, EditError::EmptyOld { item: 0 });
}
