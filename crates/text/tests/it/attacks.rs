//! The attacks of kind `edit` that bytes alone decide. E138 and E139 are told apart by digests (coord), E146 by the terminal.

use cotenant_text::{EditError, NotText, detect, unified, visible};

use crate::kit::{edit, form, miss};

#[test]
fn e132_crlf_is_kept_and_the_diff_touches_one_line() {
    let raw = b"a\r\nb\r\n";
    let edited = edit(raw, "a\nb", "A\nb").unwrap();
    assert_eq!(edited.bytes, b"A\r\nb\r\n");
    assert_eq!(unified(raw, &form(raw), &edited.bytes, &form(&edited.bytes), 0).stat(), (1, 1));
}

#[test]
fn e134_no_newline_is_added_at_the_end() {
    assert_eq!(edit(b"a\nb", "b", "c").unwrap().bytes, b"a\nc");
}

#[test]
fn e135_invalid_bytes_are_kept() {
    assert_eq!(edit(b"x\xff\n", "x", "y").unwrap().bytes, b"y\xff\n");
}

#[test]
fn e136_a_nul_is_binary() {
    assert_eq!(detect(b"v\0x\n", None), Err(NotText::Binary { nul_at: 1 }));
}

#[test]
fn e140_two_occurrences_are_refused_even_when_they_overlap() {
    assert!(matches!(edit(b"aa\n", "a", "b"), Err(EditError::Ambiguous { count: 2, .. })));
    assert!(matches!(edit(b"xaaax\n", "aa", "b"), Err(EditError::Ambiguous { count: 2, .. })));
}

#[test]
fn e142_empty_old_text_is_refused() {
    assert_eq!(edit(b"x\n", "", "y"), Err(EditError::EmptyOld { item: 0 }));
}

#[test]
fn e143_no_change_is_refused() {
    assert_eq!(edit(b"x\n", "x", "x"), Err(EditError::Same { item: 0, eol_only: false }));
    assert_eq!(edit(b"x\r\ny", "x\r\ny", "x\ny"), Err(EditError::Same { item: 0, eol_only: true }));
}

#[test]
fn e144_composed_and_decomposed_accents_are_reported() {
    let found = miss("caf\u{e9}\n".as_bytes(), "cafe\u{301}", "the");
    assert_eq!(found.cause.name(), "lookalike");
    assert_eq!(found.detail, "line 1 has é (U+00E9) where old_text has e\u{301} (U+0065 U+0301)");
    assert_eq!(found.suggestion, None);
}

#[test]
fn e146_terminal_escapes_are_made_visible() {
    assert_eq!(visible(b"\x1b]0;x\x07\x1b[2K"), "<U+001B>]0;x<U+0007><U+001B>[2K");
    assert_eq!(visible("if \u{202e}x\t ".as_bytes()), "if <U+202E>x→·");
}
