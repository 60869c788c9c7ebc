//! Many places replaced at once: every other byte stays, in every encoding and with every ending; what cannot be stored
//! is refused as a whole.

use cotenant_text::{Form, Substituted, Swap, Unfit, View, occurrences, substitute};
use proptest::prelude::*;

use crate::kit::{declared, form};
use crate::pairs::for_all;

/// Swaps every occurrence of `old`, found the slow way.
fn swaps(view: &View<'_>, old: &str, new: &str) -> Vec<Swap> {
    let (bytes, mut at, mut found) = (view.as_bytes(), 0, Vec::new());
    while at + old.len() <= bytes.len() {
        if bytes[at..].starts_with(old.as_bytes()) {
            found.push(Swap { at: at..at + old.len(), new: new.to_owned() });
            at += old.len();
        } else {
            at += 1;
        }
    }
    found
}

#[test]
fn occurrences_are_those_of_a_slow_search() {
    for (raw, text, at) in [
        (&b"aaa"[..], "aa", vec![(0, 2)]),
        (b"a\r\nb a\nb", "a\nb", vec![(0, 3), (4, 7)]),
        (b"abc", "", vec![]),
        (b"", "a", vec![]),
        (b"\xef\xbb\xbfa", "a", vec![(0, 1)]),
        (b"a\xff a", "a", vec![(0, 1), (3, 4)]),
    ] {
        let form = form(raw);
        let view = View::new(raw, &form);
        let found: Vec<_> = occurrences(&view, text).map(|at| (at.start, at.end)).collect();
        assert_eq!(found, at, "{text:?}");
        if !text.is_empty() {
            let slow: Vec<_> =
                swaps(&view, text, "").into_iter().map(|swap| (swap.at.start, swap.at.end)).collect();
            assert_eq!(slow, at);
        }
    }
}

fn all(raw: &[u8], form: &Form, old: &str, new: &str) -> Result<Substituted, Unfit> {
    let view = View::new(raw, form);
    substitute(raw, form, &view, &swaps(&view, old, new))
}

fn replaced(raw: &[u8], old: &str, new: &str) -> Vec<u8> {
    all(raw, &form(raw), old, new).expect("fits").bytes
}

#[test]
fn nothing_to_swap_is_the_file_itself() {
    for raw in [&b""[..], b"a\r\nb", b"\xef\xbb\xbfx\n"] {
        let done = all(raw, &form(raw), "zzz", "y").unwrap();
        assert_eq!((done.bytes.as_slice(), done.spans.len()), (raw, 0));
    }
}

#[test]
fn each_line_keeps_its_own_ending() {
    assert_eq!(replaced(b"a\r\nb\nab\r\n", "a", "c"), b"c\r\nb\ncb\r\n");
    assert_eq!(replaced(b"a\r\nb\r\n", "a\nb", "b\na"), b"b\r\na\r\n");
    assert_eq!(replaced(b"a\r\nb\nc", "b\n", ""), b"a\r\nc");
    assert_eq!(replaced(b"a\r\nb\r\n", "b", "b\nc"), b"a\r\nb\r\nc\r\n");
    assert_eq!(replaced(b"a\r\nb\r\n", "b", "b\r\nc"), b"a\r\nb\r\nc\r\n", "CRLF sent is not doubled");
    assert_eq!(replaced(b"a\nb\n", "b", "b\r\nc"), b"a\nb\nc\n");
    assert_eq!(replaced(b"\xef\xbb\xbfa", "a", ""), b"\xef\xbb\xbf");
}

#[test]
fn spans_tell_the_lines_before_and_after() {
    let raw = b"x\ny\nx\nz\nx";
    let done = all(raw, &form(raw), "x\n", "1\n2\n").unwrap();
    assert_eq!(done.bytes, b"1\n2\ny\n1\n2\nz\nx");
    let lines: Vec<_> = done.spans.iter().map(|span| (span.lines_before, span.lines_after)).collect();
    assert_eq!(lines, [((1, 1), (1, 2)), ((3, 3), (4, 5))]);
}

#[test]
fn what_the_encoding_has_not_is_named_with_its_line() {
    let raw = b"caf\xe9\nplain\nplain\n";
    let latin = declared(raw, "windows-1252");
    assert_eq!(all(raw, &latin, "plain", "\u{fc}").unwrap().bytes, b"caf\xe9\n\xfc\n\xfc\n");
    let Err(Unfit::NotEncodable { ch, line, place, .. }) = all(raw, &latin, "plain", "ok\no \u{2192}") else {
        panic!("an arrow in windows-1252");
    };
    assert_eq!((ch, line, place), ('\u{2192}', 2, (2, 3)));
    let unknown = form(raw);
    assert!(matches!(all(raw, &unknown, "plain", "\u{e9}"), Err(Unfit::NotEncodable { line: 2, .. })));
    assert_eq!(all(raw, &unknown, "plain", "x").unwrap().bytes, b"caf\xe9\nx\nx\n");
}

#[test]
fn a_place_inside_a_character_is_refused() {
    // 0x5c is a backslash in ASCII and the second half of a character in Shift_JIS.
    let raw = b"ok\n\x83\x5c tail\n";
    assert_eq!(all(raw, &form(raw), "\\", "/"), Err(Unfit::Cut { line: 2 }));
    let sjis = declared(raw, "shift_jis");
    assert_eq!(all(raw, &sjis, "\\", "/").unwrap().bytes, raw, "declared, there is no backslash in it");
    let view = View::new(raw, &sjis);
    let half = Swap { at: 4..6, new: String::new() };
    assert_eq!(substitute(raw, &sjis, &view, &[half]), Err(Unfit::Cut { line: 2 }));
    let beyond = Swap { at: 4..4000, new: String::new() };
    assert_eq!(substitute(raw, &sjis, &view, &[beyond]), Err(Unfit::Cut { line: 2 }));
}

/// Encodings with a character of each width, and how the model stores a text in them.
const KINDS: [(&str, &[u8], &str); 6] = [
    ("utf-8", b"", "ab\u{e9}\u{2713}\u{1d11e}"),
    ("utf-8", b"\xef\xbb\xbf", "ab\u{e9}"),
    ("utf-16le", b"\xff\xfe", "ab\u{e9}\u{4e2d}\u{1d11e}"),
    ("utf-16be", b"\xfe\xff", "ab\u{4e2d}"),
    ("windows-1252", b"", "ab\u{e9}\u{20ac}"),
    ("shift_jis", b"", "ab\\|\u{8868}\u{80fd}"),
];

fn store(label: &str, text: &str) -> Vec<u8> {
    match label {
        "utf-8" => text.as_bytes().to_vec(),
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => encoding_rs::Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned(),
    }
}

/// Pieces of a file: each is kept, or swapped for a text.
fn pieces() -> impl Strategy<Value = (usize, bool, Vec<(String, Option<String>)>)> {
    (0..KINDS.len(), any::<bool>()).prop_flat_map(|(kind, crlf)| {
        let chars: Vec<char> = KINDS[kind].2.chars().chain("\n".chars()).collect();
        let text = |most: usize| {
            prop::collection::vec(prop::sample::select(chars.clone()), 0..most).prop_map(String::from_iter)
        };
        let piece = (text(6).boxed(), prop::option::of(text(5).boxed()));
        (Just(kind), Just(crlf), prop::collection::vec(piece, 1..8))
    })
}

#[test]
fn random_pieces_are_what_a_naive_join_says() {
    for_all(pieces(), 1, |(kind, crlf, pieces)| {
        let (label, bom, _) = KINDS[kind];
        let ending = if crlf { "\r\n" } else { "\n" };
        let stored = |text: &str| store(label, &text.replace('\n', ending));
        let mut raw = bom.to_vec();
        let mut wanted = bom.to_vec();
        let mut list = Vec::new();
        let mut at = 0;
        for (old, new) in &pieces {
            raw.extend(stored(old));
            wanted.extend(stored(new.as_ref().unwrap_or(old)));
            if let Some(new) = new {
                list.push(Swap { at: at..at + old.len(), new: new.clone() });
            }
            at += old.len();
        }
        let form = if label == "utf-8" { form(&raw) } else { declared(&raw, label) };
        let view = View::new(&raw, &form);
        let done = substitute(&raw, &form, &view, &list);
        // A file without any break has no ending of its own: LF is put in.
        let has_break = pieces.iter().any(|(old, _)| old.contains('\n'));
        if crlf && !has_break && list.iter().any(|swap| swap.new.contains('\n')) {
            return Ok(());
        }
        prop_assert_eq!(&done.unwrap().bytes, &wanted, "{} crlf={} {:?}", label, crlf, pieces);
        Ok(())
    });
}
