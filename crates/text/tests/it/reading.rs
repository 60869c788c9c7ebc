//! Lines as a reader sees them.

use cotenant_text::{Form, View, clip, shown, visible, visible_window, window};

fn numbered(text: &str, first: usize, last: usize, bytes: usize) -> String {
    window(&View::new(text.as_bytes(), &Form::default()), first, last, bytes)
}

#[test]
fn plain_lines_are_shown_as_they_are() {
    assert_eq!(shown("\té 中\u{200b}".as_bytes()), "\té 中\u{200b}");
    assert!(matches!(shown(b"abc"), std::borrow::Cow::Borrowed(_)));
    assert_eq!(shown(b"caf\xe9 \xc3\xa9 \xe2\x82"), "caf\\xE9 é \\xE2\\x82");
    assert_eq!(shown("\u{fffd}".as_bytes()), "\u{fffd}", "a real one is content");
}

#[test]
fn the_invisible_is_made_visible() {
    let rows = [
        ("\tif x \t", "→if x →"),
        ("two  ", "two··"),
        ("  lead", "  lead"),
        ("a\u{a0}b\u{2003}c\u{3000}", "a<U+00A0>b<U+2003>c<U+3000>"),
        ("\u{feff}x\u{200d}\u{ad}", "<U+FEFF>x<U+200D><U+00AD>"),
        ("bidi \u{202e}\u{2066}x", "bidi <U+202E><U+2066>x"),
        ("lone\r", "lone<U+000D>"),
        ("tag \u{e0041}", "tag <U+E0041>"),
        ("“quotes” – é 中", "“quotes” – é 中"),
        ("", ""),
    ];
    for (line, wanted) in rows {
        assert_eq!(visible(line.as_bytes()), wanted);
    }
    assert_eq!(visible(b"\xe9\t"), "\\xE9→");
}

#[test]
fn clips_fit_and_get_on() {
    let facts = |line: &[u8], max| {
        let part = clip(line, max);
        (part.text.into_owned(), part.taken, part.left)
    };
    assert_eq!(facts(b"short", 10), ("short".into(), 5, 0));
    assert_eq!(facts(b"exact", 5), ("exact".into(), 5, 0));
    assert_eq!(facts(b"longer", 4), ("long".into(), 4, 2));
    assert_eq!(facts("aé".as_bytes(), 2), ("a".into(), 1, 2));
    assert_eq!(facts("é".as_bytes(), 1), ("é".into(), 2, 0), "one character at least");
    assert_eq!(facts(b"a\xffb", 4), ("a".into(), 1, 2), "no half of a \\xNN");
    assert_eq!(facts(b"a\xffb", 5), ("a\\xFF".into(), 2, 1));
    assert_eq!(facts(b"\xff", 0), ("\\xFF".into(), 1, 0));
    assert_eq!(facts(b"", 0), (String::new(), 0, 0));
}

#[test]
fn windows_are_numbered_and_cut_to_the_file() {
    assert_eq!(numbered("a\nb\nc\n", 2, 9, 100), "2|b\n3|c\n");
    assert_eq!(numbered("a\n\nc", 0, 3, 100), "1|a\n2|\n3|c\n");
    assert_eq!(numbered("a\n", 5, 9, 100), "");
    assert_eq!(numbered("", 1, 1, 100), "");
    let crlf = View::new(b"a\r\nb", &Form::default());
    assert_eq!(window(&crlf, 1, 2, 100), "1|a\n2|b\n");
    assert_eq!(visible_window(&crlf, 2, 2, 100), "2|b\n");
}

#[test]
fn windows_keep_to_their_bytes_and_say_what_is_left_out() {
    let text = "0123456789\n".repeat(100);
    let shown = numbered(&text, 1, 100, 80);
    assert_eq!(shown, "1|0123456789\n2|0123456789\n3|01234567…\n…[lines 4-100 left out]…\n");
    for bytes in 60..600 {
        let shown = numbered(&text, 1, 100, bytes);
        assert!(shown.len() <= bytes, "{bytes}: {}", shown.len());
    }
    assert_eq!(numbered(&text, 1, 2, 26), "1|0123456789\n2|0123456789\n", "what fits exactly is shown whole");
    assert_eq!(numbered(&text, 1, 2, 25), "1|01234567…\n…[lines 2-2 left out]…\n");
    let long = numbered(&"x".repeat(1000), 1, 1, 50);
    assert_eq!(long, format!("1|{}…\n", "x".repeat(44)));
    let wide = "→".repeat(50);
    assert!(visible_window(&View::new(wide.as_bytes(), &Form::default()), 1, 1, 40).ends_with("→…\n"));
}
