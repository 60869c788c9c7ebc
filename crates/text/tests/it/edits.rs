//! Edits one by one: line endings of new lines, choices among places, echoed numbers, batches, spans, tolerance.

use cotenant_text::{EditError, EditSpec, Edited, Level, Span, Tolerance, apply};

use crate::kit::{accept, assert_outside_untouched, declared, edit, edits, form, miss, spec};

fn text(edited: &Edited) -> String {
    String::from_utf8(edited.bytes.clone()).unwrap()
}

#[test]
fn a_new_line_takes_the_ending_of_the_line_it_replaces_else_of_its_neighbour() {
    let cases: &[(&str, &str, &str, &str)] = &[
        // Replaced one by one: each keeps its own.
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "A\nB\nC\n", "A\r\nB\nC\r\n"),
        // A changed middle line; the equal ones keep theirs.
        ("a\r\nb\nc", "a\nb\nc", "a\nB\nc", "a\r\nB\nc"),
        // Inserted after a CRLF line and after an LF line of the same file.
        ("a\r\nb\n", "a\n", "a\nnew\n", "a\r\nnew\r\nb\n"),
        ("a\r\nb\nc\r\n", "b\n", "b\nnew\n", "a\r\nb\nnew\nc\r\n"),
        // Inserted before: the line it stands before.
        ("a\r\nb\r\n", "a", "zero\na", "zero\r\na\r\nb\r\n"),
        // Extra lines take the ending of the last line replaced.
        ("a\nb\r\nc\n", "b", "x\ny\nz", "a\nx\r\ny\r\nz\r\nc\n"),
        // At the end of a file without a final newline: the neighbour above; nothing is added after.
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("only", "only", "one\ntwo", "one\ntwo"),
        // Lines taken out take their endings along.
        ("a\r\nb\nc\r\n", "a\nb\n", "a\n", "a\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "\nb\nc", "", "a\r\n"),
        // The caller's CRLF is a line break like any other.
        ("a\nb\n", "a", "a\r\nz", "a\nz\nb\n"),
        // A new final newline is wanted literally.
        ("a\nb", "b", "b\n", "a\nb\n"),
    ];
    for (raw, old, new, wanted) in cases {
        let edited = edit(raw.as_bytes(), old, new).unwrap_or_else(|e| panic!("{raw:?} {old:?}: {e:?}"));
        assert_eq!(text(&edited), *wanted, "{raw:?}: {old:?} to {new:?}");
    }
}

#[test]
fn new_text_is_literal() {
    for new in ["$& $1 ${0} \\1 \\n", "%s {} <U+00A0>", "→·", "a  \t", "\u{feff}", "\u{0}"] {
        let edited = edit(b"x = [here];\n", "[here]", new).unwrap();
        assert_eq!(text(&edited), format!("x = {new};\n"));
        assert!(edited.notes.is_empty());
    }
    assert_eq!(text(&edit(b"x = [here];\n", "[here]", "").unwrap()), "x = ;\n");
}

#[test]
fn crlf_in_new_text_is_stored_as_the_files_own_and_said() {
    let edited = edit(b"a\nb\n", "a", "a\r\nz").unwrap();
    assert_eq!(edited.notes, ["new_text has CRLF line breaks; they are stored as the file's own"]);
    assert!(edit(b"a\r\nb\r\n", "a", "a\r\nz").unwrap().notes.is_empty());
}

#[test]
fn a_caller_who_spells_crlf_means_the_place_that_has_it() {
    let raw = b"x\ny\n--\nx\r\ny\r\n";
    assert!(matches!(edit(raw, "x\ny", "z"), Err(EditError::Ambiguous { count: 2, .. })));
    let edited = edit(raw, "x\r\ny", "z").unwrap();
    assert_eq!(text(&edited), "x\ny\n--\nz\r\n");
    assert_eq!(edited.level, Level::Exact);
    assert_eq!(edit(b"x\ny\n", "x\r\ny", "z").unwrap().level, Level::Eol);
}

#[test]
fn ambiguity_shows_what_stands_before_each_place() {
    let raw = b"impl Reader {\n    fn close(&mut self) {\n    }\n}\n\nimpl Writer {\n    // say goodbye\n\n    fn close(&mut self) {\n    }\n}\n";
    let Err(EditError::Ambiguous { count, lines, places, item }) =
        edit(raw, "    fn close(&mut self) {", "x")
    else {
        panic!("two places");
    };
    assert_eq!((count, lines, item), (2, vec![2, 9], 0));
    let before: Vec<_> = places.iter().map(|place| place.before.clone().unwrap()).collect();
    assert_eq!(before, [(1, "impl Reader {".to_owned()), (6, "impl Writer {".to_owned())]);
    assert_eq!(places[1].text, "    fn close(&mut self) {");
    assert_eq!(places[1].lines, (9, 9));
}

#[test]
fn many_places_are_counted_and_few_are_shown() {
    let raw = "x = 1;\n".repeat(1000);
    let Err(EditError::Ambiguous { count, lines, places, .. }) = edit(raw.as_bytes(), "x", "y") else {
        panic!()
    };
    assert_eq!((count, lines.len(), places.len()), (1000, 20, 5));
    assert_eq!(places[0].before, None);
    assert_eq!(places[1].before, Some((1, "x = 1;".to_owned())), "without an outer line, the one above");
}

#[test]
fn line_picks_one_of_several_exact_matches() {
    let raw = b"one\nx\ntwo\nx\nx x\n";
    let at = |line| edits(raw, &[EditSpec { line: Some(line), ..spec("x", "y") }]);
    assert_eq!(text(&at(4).unwrap()), "one\nx\ntwo\ny\nx x\n");
    assert!(matches!(at(5), Err(EditError::Ambiguous { count: 2, .. })), "two on that line");
    let Err(EditError::NotFound { miss, .. }) = at(3) else { panic!() };
    assert_eq!(
        (miss.cause.name(), miss.detail.as_str()),
        ("line", "old_text does not start on line 3; it stands at line 2")
    );
    assert!(matches!(at(99), Err(EditError::NotFound { .. })));
    assert!(matches!(at(0), Err(EditError::NotFound { .. })));
    let multi = EditSpec { line: Some(2), ..spec("x\ntwo\nx", "z") };
    assert_eq!(text(&edits(raw, &[multi]).unwrap()), "one\nz\nx x\n");
}

#[test]
fn line_counts_from_the_start_of_the_match() {
    let raw = b"a\n\nb\n\nb\n";
    let second = EditSpec { line: Some(4), ..spec("\nb", "\nc") };
    assert_eq!(text(&edits(raw, &[second]).unwrap()), "a\n\nb\n\nc\n");
}

#[test]
fn echoed_line_numbers_are_taken_off_where_they_fit() {
    let raw = b"fn a() {\n    one();\n    two();\n}\n";
    let edited = edit(raw, "2|    one();\n3|    two();", "2|    one();\n3|    three();").unwrap();
    assert_eq!(text(&edited), "fn a() {\n    one();\n    three();\n}\n");
    assert_eq!(edited.notes, ["the line numbers `N|` were taken off every line of old_text and new_text"]);
    let edited = edit(raw, " 2|    one();\n", "    uno();\n").unwrap();
    assert_eq!(text(&edited), "fn a() {\n    uno();\n    two();\n}\n");
    assert_eq!(edited.notes, ["the line numbers `N|` were taken off every line of old_text"]);
    assert_eq!(edit(raw, "2|    one();", "2|    one();"), Err(EditError::Same { item: 0, eol_only: false }));
    assert_eq!(edit(raw, "2|    one();", "    one();"), Err(EditError::Same { item: 0, eol_only: false }));
}

#[test]
fn numbers_that_are_no_echo_stay_text() {
    let raw = b"1|2\n3\n4|x\n";
    assert_eq!(text(&edit(raw, "1|2", "1|5").unwrap()), "1|5\n3\n4|x\n", "the file has them");
    for (old, new, why) in [
        ("9|3", "z", "stands at another line"),
        ("2|3\n4|4|x", "z", "numbers do not count up"),
        ("2|3\n4|x", "z", "the second line has none"),
        ("2|3", "2|z\nw", "only some lines of new text have them"),
        ("3|x", "z", "not the start of its line"),
    ] {
        assert!(matches!(edit(raw, old, new), Err(EditError::NotFound { .. })), "{old:?}: {why}");
    }
}

#[test]
fn echo_respects_line_endings() {
    let edited = edit(b"a\r\nb\r\nc\r\n", "1|a\n2|b", "1|a\n2|B\n3|new").unwrap();
    assert_eq!(text(&edited), "a\r\nB\r\nnew\r\nc\r\n");
    assert_eq!(edited.level, Level::Eol);
}

#[test]
fn spans_name_bytes_and_lines_before_and_after() {
    let edited = edit(b"a\nb\nc\nd\n", "b\nc\n", "B1\nB2\nB3\n").unwrap();
    assert_eq!(
        edited.spans,
        [Span {
            raw: 2..6,
            lines_before: (2, 3),
            lines_after: (2, 4),
            replacement: b"B1\nB2\nB3\n".to_vec()
        }]
    );
    let gone = edit(b"a\nb\nc\n", "b\n", "").unwrap();
    assert_eq!(
        (gone.spans[0].lines_before, gone.spans[0].lines_after),
        ((2, 2), (2, 2)),
        "what now stands there"
    );
    let tail = edit(b"a\nb\n", "b\n", "").unwrap();
    assert_eq!(tail.spans[0].lines_after, (1, 1), "the last line");
    let all = edit(b"a", "a", "").unwrap();
    assert_eq!((all.bytes.len(), all.spans[0].lines_after), (0, (1, 1)));
}

#[test]
fn a_batch_reports_spans_of_the_first_bytes() {
    let raw = b"one\ntwo\nthree\nfour\nfive\n";
    let edited = edits(raw, &[spec("four", "4\n4\n4"), spec("one\n", ""), spec("five", "5")]).unwrap();
    assert_eq!(text(&edited), "two\nthree\n4\n4\n4\n5\n");
    let spans: Vec<_> = edited.spans.iter().map(|s| (s.raw.clone(), s.lines_before, s.lines_after)).collect();
    assert_eq!(spans, [(0..4, (1, 1), (1, 1)), (14..18, (4, 4), (3, 5)), (19..23, (5, 5), (6, 6))]);
    assert_eq!(edited.counts, [1, 1, 1]);
}

#[test]
fn edits_of_what_an_edit_wrote_become_one_span() {
    let raw = b"aaa bbb ccc\n";
    let edited = edits(raw, &[spec("bbb", "xyz"), spec("a xyz c", "a-Q-c"), spec("Q", "qq")]).unwrap();
    assert_eq!(text(&edited), "aaa-qq-ccc\n");
    assert_eq!(edited.spans.len(), 1);
    assert_eq!(edited.spans[0].raw, 2..9);
    assert_outside_untouched(raw, &edited);
}

#[test]
fn a_batch_that_leads_back_changes_nothing() {
    assert_eq!(
        edits(b"a\n", &[spec("a", "b"), spec("b", "a")]),
        Err(EditError::Same { item: 1, eol_only: false })
    );
    assert_eq!(edits(b"a\n", &[]), Err(EditError::Same { item: 0, eol_only: false }));
}

#[test]
fn each_error_names_its_item() {
    let raw = b"a\nb\nb\n";
    let with = |bad| edits(raw, &[spec("a", "A"), bad]).unwrap_err();
    assert_eq!(with(spec("", "x")), EditError::EmptyOld { item: 1 });
    assert_eq!(with(spec("b", "b")), EditError::Same { item: 1, eol_only: false });
    assert_eq!(with(spec("b", "c")).item(), 1);
    assert_eq!(with(spec("nothing", "c")).item(), 1);
    let latin = declared(raw, "latin1");
    let error =
        apply(raw, &latin, &[spec("a", "A"), spec("A\nb", "ok\nb中")], &Tolerance::default()).unwrap_err();
    assert!(
        matches!(error, EditError::NotEncodable { item: 1, ch: '中', line: 2, column: 2, .. }),
        "{error:?}"
    );
    assert_eq!(error.to_string(), "windows-1252 has no '中' (line 2, column 2 of the new text)");
}

#[test]
fn characters_that_stay_need_no_encoding() {
    let raw = b"\xff\nna\xc3\xafve x\n";
    let edited = edit(raw, "naïve x", "naïve y").unwrap();
    assert_eq!(edited.bytes, b"\xff\nna\xc3\xafve y\n");
    assert!(matches!(edit(raw, "naïve x", "ïx"), Err(EditError::NotEncodable { ch: 'ï', .. })));
}

#[test]
fn two_stored_spellings_of_one_character_stay_as_they_are() {
    // NEC and IBM rows of Shift_JIS both hold U+7E8A; only the second is what an encoder writes.
    let raw = b"\xed\x40 = 1\nx\n";
    let sjis = declared(raw, "shift_jis");
    let edited = apply(raw, &sjis, &[spec("纊 = 1\nx", "纊 = 2\ny")], &Tolerance::default()).unwrap();
    assert_eq!(edited.bytes, b"\xed\x40 = 2\ny\n");
}

#[test]
fn replace_all_skips_what_it_wrote_and_keeps_every_ending() {
    let all = |old, new| EditSpec { replace_all: true, ..spec(old, new) };
    let edited = edits(b"aaa\r\naa\n", &[all("aa", "a")]).unwrap();
    assert_eq!(text(&edited), "aa\r\na\n");
    let edited = edits(b"x\r\ny\nx\ny\r\n", &[all("x\ny", "z\nw")]).unwrap();
    assert_eq!(text(&edited), "z\r\nw\nz\nw\r\n");
    assert_eq!(edited.level, Level::Eol);
    assert!(matches!(edits(b"a\n", &[all("b", "c")]), Err(EditError::NotFound { .. })));
    let both = edits(b"1 2 1\n", &[all("1", "22"), all("2", "3")]).unwrap();
    assert_eq!((text(&both).as_str(), both.counts), ("33 3 33\n", vec![2, 5]));
}

#[test]
fn bom_is_outside_and_the_first_line_can_be_edited() {
    let edited = edit(b"\xef\xbb\xbfa\nb\n", "a\n", "first\n").unwrap();
    assert_eq!(edited.bytes, b"\xef\xbb\xbffirst\nb\n");
    assert_eq!(edited.spans[0].raw, 3..5);
    assert!(matches!(edit(b"\xef\xbb\xbfa\n", "\u{feff}a", "b"), Err(EditError::NotFound { .. })));
}

fn tolerant(raw: &[u8], old: &str, new: &str, names: &[&str]) -> Result<Edited, EditError> {
    let tolerance = Tolerance::from_names(names.iter().copied()).unwrap();
    apply(raw, &form(raw), &[spec(old, new)], &tolerance)
}

#[test]
fn a_tolerated_level_is_applied_and_named() {
    let raw = b"if a:\n        one\n        two\n";
    let edited = tolerant(raw, "\n    one\n    two\n", "\n    one\n    three\n", &["indent"]).unwrap();
    assert_eq!(text(&edited), "if a:\n        one\n        three\n");
    assert_eq!(edited.level.name(), "indent(+4)");
    assert_eq!(
        edited.notes,
        ["not byte for byte what you sent: old_text had 4 spaces less, so new_text was shifted by 4"]
    );
    assert!(matches!(
        tolerant(raw, "\n    one\n    two\n", "x", &["punctuation"]),
        Err(EditError::NotFound { .. })
    ));
}

#[test]
fn an_exact_match_inside_an_indent_is_applied_with_a_warning() {
    let raw = b"class A:\n        total = rate\n";
    let edited = edit(raw, "    total = rate", "    total = rate\n    log(total)").unwrap();
    assert_eq!(text(&edited), "class A:\n        total = rate\n    log(total)\n");
    assert_eq!(
        edited.notes,
        [
            "old_text has 4 characters of indent less than line 2; the lines of new_text after its first were not shifted"
        ]
    );
    assert!(edit(raw, "    total = rate", "    total = 1").unwrap().notes.is_empty(), "one line lands right");
    assert!(
        edit(raw, "total = rate", "total = 1\n        x").unwrap().notes.is_empty(),
        "no indent was sent"
    );
    assert!(
        edit(raw, "        total", "        x\n        total").unwrap().notes.is_empty(),
        "the whole indent"
    );
    assert!(
        tolerant(raw, "class A:\n    total = rate", "class A:\n    x = 1", &["indent"]).is_err(),
        "not the same shift on every line"
    );
}

#[test]
fn every_level_needed_must_be_tolerated() {
    let raw = "say “yes”  \nend\n".as_bytes();
    let (old, new) = ("say \"yes\"\nend", "say \"no\"\nend");
    assert!(tolerant(raw, old, new, &["punctuation"]).is_err());
    assert!(tolerant(raw, old, new, &["trailing-space"]).is_err());
    let edited = tolerant(raw, old, new, &["trailing-space", "punctuation"]).unwrap();
    assert_eq!(text(&edited), "say “no”  \nend\n");
    assert_eq!(edited.level, Level::Punctuation);
    assert_outside_untouched(raw, &edited);
}

#[test]
fn a_tolerated_match_must_be_the_only_one() {
    let raw = "a “b”\n--\na „b“\n".as_bytes();
    assert!(tolerant(raw, "a \"b\"", "x", &["punctuation"]).is_err());
    assert_eq!(Tolerance::from_names(["indent", "fuzzy"]), Err("fuzzy"));
}

#[test]
fn a_tolerated_level_still_only_writes_what_can_be_stored() {
    let raw = b"\xff\n\tone\n\ttwo\n";
    let result = tolerant(raw, "    one\n    two", "    one\n    zw\u{f6}lf", &["indent"]);
    assert!(result.is_err(), "{result:?}");
}

#[test]
fn a_missing_final_newline_is_offered_not_assumed() {
    let raw = b"a\nb";
    let found = miss(raw, "b\n", "c\n");
    assert_eq!(found.cause.name(), "eol");
    assert_eq!(found.detail, "old_text ends with a line break, the file ends without one");
    assert_eq!(found.suggestion.as_ref().unwrap().level.name(), "final-newline");
    assert_eq!(accept(raw, &found), b"a\nc");
}

#[test]
fn a_lost_final_newline_is_said() {
    assert_eq!(edit(b"a\nb\n", "b\n", "c").unwrap().notes, ["the file no longer ends with a line break"]);
    assert!(edit(b"a\nb\n", "b", "c").unwrap().notes.is_empty());
    assert!(edit(b"a\nb", "b", "c").unwrap().notes.is_empty());
    assert!(edit(b"b\n", "b\n", "").unwrap().notes.is_empty(), "an empty file lacks nothing");
    let utf16 = b"\xff\xfea\0\n\0";
    assert_eq!(edit(utf16, "a\n", "b").unwrap().notes.len(), 1);
    assert!(edit(utf16, "a\n", "b\n").unwrap().notes.is_empty());
}

#[test]
fn one_line_of_a_megabyte_is_edited_and_diagnosed() {
    let raw = format!("{}needle  here;{}", "var a=1;".repeat(60_000), "var b = 2;".repeat(60_000));
    let edited = edit(raw.as_bytes(), "needle  here", "found").unwrap();
    assert_eq!(edited.bytes.len(), raw.len() - 7);
    let found = miss(raw.as_bytes(), "needle here", "found");
    assert_eq!(found.cause.name(), "spacing");
    assert!(found.nearest[0].text.len() < 500);
    let found = miss(raw.as_bytes(), "var  b = 2;", "x");
    assert_eq!((found.cause.name(), found.suggestion), ("spacing", None));
}
