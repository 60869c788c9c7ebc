//! Where hunks land and what they leave alone.

use cotenant_text::Level;
use cotenant_text::patch::{Cause, apply, check_deleted};

use super::kit::{accept, miss, on, one, text, try_on};
use crate::kit::{declared, form};

fn diff(hunks: &str) -> String {
    format!("--- a/x\n+++ b/x\n{hunks}")
}

#[test]
fn one_exact_place_is_taken_whatever_the_numbers_say() {
    for header in ["-1,3 +1,3", "-40,3 +40,3", "-0,3 +0,3", "-2,9 +2,7"] {
        let applied =
            try_on(b"a\nb\nc\nd\ne\n", &diff(&format!("@@ {header} @@\n b\n-c\n+C\n d\n"))).unwrap();
        assert_eq!(text(&applied.bytes), "a\nb\nC\nd\ne\n", "{header}");
        assert_eq!((applied.landed[0].old, applied.landed[0].new), ((2, 3), (2, 3)));
        assert_eq!(applied.notes.len(), usize::from(header == "-2,9 +2,7"), "{:?}", applied.notes);
    }
}

#[test]
fn of_several_places_the_stated_one_is_taken_or_none() {
    let file = "x\n1\nx\n2\nx\n3\n";
    assert_eq!(on(file, &diff("@@ -3 +3 @@\n-x\n+y\n")), "x\n1\ny\n2\nx\n3\n");
    let found = miss(file.as_bytes(), &diff("@@ -2 +2 @@\n-x\n+y\n"));
    assert_eq!((found.cause, found.candidates), (Cause::Ambiguous, vec![1, 3, 5]));
    assert!(found.suggestion.is_none(), "two places are equally near");
    let found = miss(file.as_bytes(), &diff("@@ -6 +6 @@\n-x\n+y\n"));
    assert_eq!(accept(file.as_bytes(), &found), "x\n1\nx\n2\ny\n3\n");
}

#[test]
fn the_stated_line_is_corrected_by_the_drift_of_the_hunk_before() {
    let file = "new\nnew\na\nx\nb\nx\nc\nx\n";
    let patch = diff("@@ -1 +1 @@\n-a\n+A\n@@ -4 +4 @@\n-x\n+y\n");
    let applied = try_on(file.as_bytes(), &patch).unwrap();
    assert_eq!(text(&applied.bytes), "new\nnew\nA\nx\nb\ny\nc\nx\n");
    assert_eq!(applied.landed.iter().map(|l| (l.old.0, l.drift)).collect::<Vec<_>>(), [(3, 2), (6, 2)]);
}

#[test]
fn hunks_report_where_they_landed() {
    let patch = diff("@@ -1,2 +1,3 @@\n a\n+n\n b\n@@ -4,2 +5 @@\n d\n-e\n");
    let applied = try_on(b"a\nb\nc\nd\ne\nf\n", &patch).unwrap();
    assert_eq!(text(&applied.bytes), "a\nn\nb\nc\nd\nf\n");
    let found: Vec<_> = applied.landed.iter().map(|l| (l.hunk, l.old, l.new, l.drift, l.level)).collect();
    assert_eq!(found, [(1, (1, 2), (1, 3), 0, Level::Exact), (2, (4, 2), (5, 1), 0, Level::Exact)]);
}

#[test]
fn context_is_never_dropped() {
    let found = miss(b"a\nb\nc\nd\ne\n", &diff("@@ -2,3 +2,3 @@\n b\n-c\n+C\n WRONG\n"));
    let differs = found.differs.clone().unwrap();
    assert_eq!((differs.line, differs.file.as_deref(), differs.patch.as_str()), (4, Some("d"), "WRONG"));
}

#[test]
fn hunks_may_share_context_but_not_changes() {
    let shared = diff("@@ -1,3 +1,3 @@\n-a\n+A\n b\n c\n@@ -2,3 +2,3 @@\n b\n c\n-d\n+D\n");
    assert_eq!(on("a\nb\nc\nd\n", &shared), "A\nb\nc\nD\n");
    let clash = diff("@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -2,2 +2,2 @@\n-b\n+x\n c\n");
    let found = miss(b"a\nb\nc\n", &clash);
    assert_eq!(
        (found.hunk, found.cause, found.detail.as_str()),
        (2, Cause::Overlap, "it changes lines that hunk 1 changes too")
    );
    let twice = diff("@@ -1,2 +1,3 @@\n a\n+n\n b\n@@ -1,2 +1,3 @@\n a\n+n\n b\n");
    assert_eq!(miss(b"a\nb\n", &twice).cause, Cause::Overlap);
}

#[test]
fn skipped_hunks_are_left_out() {
    let file = one(&diff("@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-gone\n+x\n"));
    let raw = b"a\nb\nc\n";
    let misfit = apply(raw, &form(raw), &file.hunks, &[]).unwrap_err();
    assert_eq!((misfit.fit, misfit.misses.len(), misfit.misses[0].hunk), (1, 1, 2));
    assert_eq!(apply(raw, &form(raw), &file.hunks, &[2]).unwrap().bytes, b"A\nb\nc\n");
    assert_eq!(apply(raw, &form(raw), &file.hunks, &[1, 2]).unwrap_err().fit, 0, "nothing is no change");
}

#[test]
fn an_applied_hunk_is_told_from_a_stale_one() {
    let patch = diff("@@ -1,3 +1,3 @@\n first\n-second\n+2nd line\n third\n");
    let misfit = try_on(b"first\n2nd line\nthird\n", &patch).unwrap_err();
    assert!(misfit.is_applied());
    assert_eq!(
        (misfit.misses[0].cause, misfit.misses[0].candidates.as_slice()),
        (Cause::AlreadyApplied, [1].as_slice())
    );
    let stale = try_on(b"first\nother\nthird\n", &patch).unwrap_err();
    assert!(!stale.is_applied());
    let twice = try_on(b"first\n2nd line\nthird\nfirst\n2nd line\nthird\n", &patch).unwrap_err();
    assert!(!twice.is_applied(), "which of the two would it be?");
    let removed = diff("@@ -1,3 +1,2 @@\n first\n-second\n third\n");
    assert!(try_on(b"first\nthird\n", &removed).unwrap_err().is_applied());
    let edge = diff("@@ -1,2 +1 @@\n first\n-second\n");
    assert!(!try_on(b"first\nother\n", &edge).unwrap_err().is_applied());
}

#[test]
fn lines_that_were_added_below_their_context_are_not_added_again() {
    let patch = diff("@@ -1 +1,2 @@\n use a;\n+use b;\n");
    assert_eq!(on("use a;\n", &patch), "use a;\nuse b;\n");
    let found = miss(b"use a;\nuse b;\n", &patch);
    assert_eq!((found.cause, found.candidates), (Cause::AlreadyApplied, vec![1]));
    assert_eq!(on("a\n\nb\n", &diff("@@ -1 +1,2 @@\n a\n+\n")), "a\n\n\nb\n", "an empty line says nothing");
}

#[test]
fn a_number_alone_is_no_place_for_an_insertion() {
    let patch = diff("@@ -2,0 +3 @@\n+new\n");
    let raw = b"a\nb\nc\n";
    let found = miss(raw, &patch);
    assert_eq!(found.cause, Cause::NoPlace);
    assert_eq!(accept(raw, &found), "a\nb\nnew\nc\n");
    assert_eq!(on("", &diff("@@ -0,0 +1 @@\n+new\n")), "new\n", "an empty file has one place only");
    let top = miss(raw, &diff("@@ -0,0 +1 @@\n+new\n"));
    assert_eq!(accept(raw, &top), "new\na\nb\nc\n");
    assert!(miss(raw, &diff("@@ -9,0 +10 @@\n+new\n")).suggestion.is_none());
}

#[test]
fn the_end_breaks_a_tie_only_for_a_hunk_that_diff_cut_short_there() {
    let file = "1\n2\n3\nx\n-\n1\n2\n3\nx\n";
    assert_eq!(on(file, &diff("@@ -40,4 +40,4 @@\n 1\n 2\n 3\n-x\n+y\n")), "1\n2\n3\nx\n-\n1\n2\n3\ny\n");
    assert_eq!(miss(file.as_bytes(), &diff("@@ -40,2 +40,2 @@\n 3\n-x\n+y\n")).cause, Cause::Ambiguous);
    assert_eq!(
        miss(file.as_bytes(), &diff("@@ -40,9 +40,4 @@\n 1\n 2\n 3\n-x\n+y\n")).cause,
        Cause::Ambiguous
    );
}

#[test]
fn a_file_keeps_its_line_endings() {
    let patch = diff("@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n+more\n three\n");
    assert_eq!(on("one\r\ntwo\r\nthree\r\n", &patch), "one\r\nTWO\r\nmore\r\nthree\r\n");
    assert_eq!(on("one\ntwo\r\nthree\n", &patch), "one\nTWO\r\nmore\r\nthree\n");
    assert_eq!(try_on(b"one\r\ntwo\r\nthree\r\n", &patch).unwrap().landed[0].level, Level::Eol);
    let crlf = patch.replace('\n', "\r\n");
    assert_eq!(on("one\ntwo\nthree\n", &crlf), "one\nTWO\nmore\nthree\n");
    assert_eq!(on("one\r\ntwo\r\nthree\r\n", &crlf), "one\r\nTWO\r\nmore\r\nthree\r\n");
}

#[test]
fn line_endings_that_the_patch_states_rightly_are_changed_as_it_says() {
    assert_eq!(on("a\r\nb\r\n", &diff("@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n")), "a\nb\r\n");
    assert_eq!(on("a\nb\n", &diff("@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n")), "a\r\nb\n");
    assert_eq!(
        on("a\r\nz\na\n", &diff("@@ -9 +9 @@\n-a\r\n+b\r\n")),
        "b\r\nz\na\n",
        "CRLF tells the places apart"
    );
}

#[test]
fn the_final_newline_is_kept_unless_the_patch_says_otherwise() {
    let change = diff("@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    let applied = try_on(b"a\nb", &change).unwrap();
    assert_eq!((text(&applied.bytes).as_str(), applied.landed[0].level), ("a\nc", Level::FinalNewline));
    assert_eq!(on("a\nb", &diff("@@ -1,2 +1,3 @@\n a\n b\n+c\n")), "a\nb\nc");
    assert_eq!(on("a\r\nb", &diff("@@ -1,2 +1,3 @@\n a\n b\n+c\n")), "a\r\nb\r\nc");
    assert_eq!(on("a\nb", &diff("@@ -1,2 +1 @@\n a\n-b\n")), "a");
    let no = "\\ No newline at end of file\n";
    assert_eq!(on("a\nb", &diff(&format!("@@ -1,2 +1,2 @@\n a\n-b\n{no}+b\n"))), "a\nb\n");
    assert_eq!(on("a\nb\n", &diff(&format!("@@ -1,2 +1,2 @@\n a\n-b\n+b\n{no}"))), "a\nb");
    assert_eq!(on("a\nb", &diff(&format!("@@ -1,2 +1,2 @@\n a\n-b\n{no}+c\n{no}"))), "a\nc");
    assert_eq!(on("a\nb", &diff(&format!("@@ -1,2 +1,2 @@\n-a\n+A\n b\n{no}"))), "A\nb");
    assert_eq!(on("a\nb", &diff(&format!("@@ -1,2 +1 @@\n a\n-b\n{no}"))), "a\n");
    let found = miss(b"a\nb\n", &diff(&format!("@@ -1,2 +1,2 @@\n a\n-b\n{no}+c\n{no}")));
    assert_eq!(found.cause, Cause::End);
    assert_eq!(accept(b"a\nb\n", &found), "a\nc\n");
}

#[test]
fn bom_and_encodings_stay() {
    assert_eq!(on("\u{feff}a\nb\n", &diff("@@ -1,2 +1,2 @@\n-a\n+A\n b\n")), "\u{feff}A\nb\n");
    let raw = b"caf\xe9\nd\xe9j\xe0\nend\n";
    let latin = declared(raw, "windows-1252");
    let hunks = one(&diff("@@ -1,3 +1,3 @@\n café\n-déjà\n+déjà vu €\n end\n")).hunks;
    assert_eq!(apply(raw, &latin, &hunks, &[]).unwrap().bytes, b"caf\xe9\nd\xe9j\xe0 vu \x80\nend\n");
    let hunks = one(&diff("@@ -1,3 +1,3 @@\n café\n-déjà\n+語\n end\n")).hunks;
    let misfit = apply(raw, &latin, &hunks, &[]).unwrap_err();
    assert_eq!(misfit.misses[0].cause, Cause::NotEncodable);
    assert_eq!(misfit.misses[0].detail, "windows-1252 has no '語' (line 3 of the hunk, column 1)");
    let plain = one(&diff("@@ -3 +3 @@\n-end\n+END\n")).hunks;
    assert_eq!(
        apply(raw, &form(raw), &plain, &[]).unwrap().bytes,
        b"caf\xe9\nd\xe9j\xe0\nEND\n",
        "unknown bytes stay"
    );
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("a\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let applied = apply(&wide, &form(&wide), &one(&diff("@@ -2 +2 @@\n-b\n+ü\n+c\n")).hunks, &[]).unwrap();
    let wanted: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("a\r\nü\r\nc\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(applied.bytes, wanted);
}

#[test]
fn a_deletion_must_name_the_whole_file() {
    let gone = |hunk: &str| one(&format!("--- a/x\n+++ /dev/null\n{hunk}")).hunks;
    let check = |raw: &[u8], hunk: &str| {
        check_deleted(raw, &form(raw), &gone(hunk))
            .map_err(|m| (m.misses[0].cause, m.misses[0].candidates.clone()))
    };
    assert_eq!(check(b"a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n"), Ok(()));
    assert_eq!(check(b"a\nb", "@@ -1,2 +0,0 @@\n-a\n-b\n"), Ok(()));
    assert_eq!(check(b"a\r\nb\r\n", "@@ -1,2 +0,0 @@\n-a\n-b\n"), Ok(()));
    assert_eq!(check(b"a\nb\nc\n", "@@ -1,2 +0,0 @@\n-a\n-b\n"), Err((Cause::Left, vec![3])));
    assert_eq!(check(b"z\na\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n"), Err((Cause::Left, vec![1])));
    assert!(check(b"a\nX\n", "@@ -1,2 +0,0 @@\n-a\n-b\n").is_err());
    assert_eq!(check_deleted(b"", &form(b""), &[]), Ok(()));
    assert_eq!(check_deleted(b"x\n", &form(b"x\n"), &[]).unwrap_err().misses[0].cause, Cause::Left);
}

#[test]
fn a_file_of_many_like_lines_is_searched_to_a_bound() {
    let raw = "x\n".repeat(5000);
    let found = miss(raw.as_bytes(), &diff("@@ -9000 +9000 @@\n-x\n+y\n"));
    assert_eq!((found.cause, found.candidates.len()), (Cause::Ambiguous, 20));
    let wanted = format!("{}y\n{}", "x\n".repeat(3999), "x\n".repeat(1000));
    assert_eq!(
        on(&raw, &diff("@@ -4000 +4000 @@\n-x\n+y\n")),
        wanted,
        "the stated line is looked at all the same"
    );
}

#[test]
fn drift_may_go_up_and_comes_from_the_hunk_just_before() {
    let file = "a\nx\nb\nx\nc\nx\n";
    let patch =
        diff("@@ -11 +11 @@\n-a\n+A\n@@ -14 +14 @@\n-x\n+y\n@@ -15 +15 @@\n-c\n+C\n@@ -16 +16 @@\n-x\n+z\n");
    let applied = try_on(file.as_bytes(), &patch).unwrap();
    assert_eq!(text(&applied.bytes), "A\nx\nb\ny\nC\nz\n");
    assert_eq!(applied.landed.iter().map(|l| l.drift).collect::<Vec<_>>(), [-10; 4]);
}

#[test]
fn a_skipped_hunk_gives_no_drift() {
    let file = one(&diff("@@ -1 +1 @@\n-b\n+B\n@@ -3 +3 @@\n-x\n+y\n"));
    let raw = b"a\nb\nx\nx\n";
    let run = |skip: &[usize]| apply(raw, &form(raw), &file.hunks, skip).map(|applied| text(&applied.bytes));
    assert_eq!(run(&[]), Ok("a\nB\nx\ny\n".to_owned()));
    assert_eq!(run(&[1]), Ok("a\nb\ny\nx\n".to_owned()));
}

#[test]
fn a_shift_jis_trail_byte_is_no_backslash() {
    let raw = b"\x83\x5c = 1\n\x95\x5c = 2\n";
    let known = declared(raw, "shift_jis");
    let hunks = one(&diff("@@ -1,2 +1,2 @@\n ソ = 1\n-表 = 2\n+表 = 3 能\n")).hunks;
    assert_eq!(apply(raw, &known, &hunks, &[]).unwrap().bytes, b"\x83\x5c = 1\n\x95\x5c = 3 \x94\x5c\n");
    let slash = one(&diff("@@ -1 +1 @@\n-\\ = 1\n+x\n")).hunks;
    assert!(apply(raw, &known, &slash, &[]).is_err());
}

#[test]
fn lines_of_no_known_encoding_go_in_as_they_are() {
    let patch = [b"--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\xe9\n+b\xe9\n+\xff\n".as_slice()].concat();
    let file = &cotenant_text::patch::parse_bytes(&patch, &Default::default()).unwrap().files[0];
    let raw = b"a\xe9\nz\n";
    assert_eq!(apply(raw, &form(raw), &file.hunks, &[]).unwrap().bytes, b"b\xe9\n\xff\nz\n");
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("a\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let patch = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+\xff\n";
    let file = &cotenant_text::patch::parse_bytes(patch, &Default::default()).unwrap().files[0];
    let misfit = apply(&wide, &form(&wide), &file.hunks, &[]).unwrap_err();
    assert_eq!(
        misfit.misses[0].detail,
        "bytes that are not UTF-8 cannot be stored as utf-16le (line 2 of the hunk, column 1)"
    );
}

#[test]
fn a_file_that_is_only_a_mark_or_empty_takes_lines() {
    let patch = diff("@@ -0,0 +1,2 @@\n+a\n+b\n");
    assert_eq!(on("\u{feff}", &patch), "\u{feff}a\nb\n");
    assert_eq!(on("", &diff("@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n")), "a");
    assert_eq!(on("", &diff("@@ -0,0 +1,2 @@\n+a\r\n+b\r\n")), "a\r\nb\r\n");
    assert_eq!(on("a\n", &diff("@@ -1 +0,0 @@\n-a\n")), "");
    assert_eq!(on("\u{feff}a", &diff("@@ -1 +0,0 @@\n-a\n")), "\u{feff}");
}

#[test]
fn an_insertion_at_either_end_of_a_crlf_file_takes_its_ending() {
    assert_eq!(on("a\r\nb\r\n", &diff("@@ -1 +1,2 @@\n+new\n a\n")), "new\r\na\r\nb\r\n");
    assert_eq!(on("a\r\nb\r\n", &diff("@@ -2 +2,2 @@\n b\n+new\n")), "a\r\nb\r\nnew\r\n");
    let end = "*** Begin Patch\n*** Update File: x\n@@\n+new\n*** End of File\n*** End Patch\n";
    assert_eq!(on("a\r\nb\r\n", end), "a\r\nb\r\nnew\r\n");
    assert_eq!(on("a\r\nb", end), "a\r\nb\r\nnew");
}

#[test]
fn a_miss_says_what_stands_there_and_where_else_it_may_belong() {
    let raw = b"fn a() {\n\tone();\n}\n\nfn b() {\n    two();\n}\n";
    let found = miss(raw, &diff("@@ -1,3 +1,3 @@\n fn a() {\n-    one();\n+    uno();\n }\n"));
    assert_eq!(found.detail, "the file indents with tabs, the hunk with 4 spaces");
    assert_eq!(
        (found.nearest[0].lines, found.nearest[0].text.as_str()),
        ((1, 3), "1|fn a() {\n2|→one();\n3|}\n")
    );
    let offered = found.suggestion.as_ref().unwrap();
    assert_eq!(
        (offered.line, offered.why.as_str()),
        (1, "the file indents with tabs, so its new lines got tabs")
    );
    assert_eq!(accept(raw, &found), "fn a() {\n\tuno();\n}\n\nfn b() {\n    two();\n}\n");
    let unlike = miss(raw, &diff("@@ -1 +1 @@\n-%%%\n+x\n"));
    assert_eq!((unlike.detail.as_str(), unlike.nearest.len()), ("nothing like the hunk is in this file", 0));
    assert_eq!(unlike.differs.unwrap().line, 1, "shown at the stated line");
}

#[test]
fn every_cause_has_a_word_of_its_own() {
    use cotenant_text::Cause as Text;
    let causes = [
        Cause::Text(Text::Tabs),
        Cause::Ambiguous,
        Cause::AlreadyApplied,
        Cause::Anchor,
        Cause::End,
        Cause::NoPlace,
        Cause::Overlap,
        Cause::Same,
        Cause::Left,
        Cause::NotEncodable,
    ];
    let mut words: Vec<String> = causes.iter().map(ToString::to_string).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), causes.len());
}
