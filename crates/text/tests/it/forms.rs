//! Forms: which bytes are text, and in what form.

use cotenant_text::{Break, Encoding, Eol, Form, NotText, View, detect, detect_as_git};

use crate::kit::{declared, form};

#[test]
fn encodings_are_told_by_bom_then_declaration_then_validity() {
    let name = |raw: &[u8], label: &str| match detect(raw, Encoding::from_label(label)) {
        Ok(form) => format!("{}{}", form.encoding, if form.bom { "+bom" } else { "" }),
        Err(error) => error.to_string(),
    };
    let rows: &[(&[u8], &str, &str)] = &[
        (b"", "", "utf-8"),
        (b"plain\n", "", "utf-8"),
        ("é\n".as_bytes(), "", "utf-8"),
        (b"\xef\xbb\xbfx", "", "utf-8+bom"),
        (b"\xef\xbb\xbf", "", "utf-8+bom"),
        (b"\xef\xbb\xbfx", "latin1", "utf-8+bom"),
        (b"\xef\xbb\xbfx\xff", "", "unknown-ascii+bom"),
        (b"caf\xe9\n", "", "unknown-ascii"),
        (b"caf\xe9\n", "utf-8", "unknown-ascii"),
        (b"caf\xe9\n", "latin1", "windows-1252"),
        ("é".as_bytes(), "iso-8859-1", "windows-1252"),
        (b"\xff\xfea\0", "", "utf-16le+bom"),
        (b"\xfe\xff\0a", "", "utf-16be+bom"),
        (b"\xff\xfea\0", "latin1", "utf-16le+bom"),
        (b"\xff\xfe", "", "utf-16le+bom"),
        (b"a\0b\0", "utf-16le", "utf-16le"),
        (b"a\0b\0", "", "binary: a NUL byte at offset 1"),
        (b"a\0b", "utf-16le", "not utf-16le: bytes at offset 2 have no meaning in it"),
        (b"\0\xd8a\0", "utf-16le", "not utf-16le: bytes at offset 0 have no meaning in it"),
        (b"\xff\xfe\0\xd8a\0", "", "utf-16le+bom"),
        (b"\xff\xfea", "", "utf-16le+bom"),
        (b"\xff\xfea\0\0\0b\0", "", "binary: a NUL byte at offset 4"),
        (b"\xff\xfe\0\0a\0\0\0", "", "utf-32le+bom"),
        (b"\0\0\xfe\xff\0\0\0a", "", "utf-32be+bom"),
        (b"\0\0\0a", "utf-32be", "utf-32be"),
        (b"v\0x\n", "latin1", "binary: a NUL byte at offset 1"),
        (b"\x95\x5c\x81", "shift_jis", "not shift_jis: bytes at offset 2 have no meaning in it"),
        (b"\x1b$B\x1b(B", "", "utf-8"),
    ];
    for (raw, label, wanted) in rows {
        assert_eq!(name(raw, label), *wanted, "{raw:?} declared {label:?}");
    }
}

#[test]
fn what_has_many_control_bytes_is_binary() {
    let noise: Vec<u8> = (0..4000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 | 1).collect();
    assert!(matches!(detect(&noise, None), Err(NotText::Controls { .. })));
    assert!(matches!(detect(&[1; 40], None), Err(NotText::Controls { at: 0 })));
    let colours = "\u{1b}[31mred\u{1b}[0m\n".repeat(50);
    assert!(detect(colours.as_bytes(), None).is_ok(), "terminal colours are text");
    assert!(detect(b"a\x0cb\x0b\x08\x07\n", None).is_ok(), "a few are no proof");
}

#[test]
fn endings_are_counted() {
    let facts = |raw: &[u8]| {
        let Form { eol, majority, final_newline, .. } = form(raw);
        (eol.name(), majority, final_newline)
    };
    assert_eq!(facts(b""), ("none", Break::Lf, true));
    assert_eq!(facts(b"a"), ("none", Break::Lf, false));
    assert_eq!(facts(b"a\n"), ("lf", Break::Lf, true));
    assert_eq!(facts(b"a\r\nb"), ("crlf", Break::Crlf, false));
    assert_eq!(facts(b"a\r\nb\n"), ("mixed", Break::Lf, true));
    assert_eq!(facts(b"a\r\nb\r\nc\n"), ("mixed", Break::Crlf, true));
    assert_eq!(facts(b"a\rb\r"), ("none", Break::Lf, false), "lone CRs");
    assert_eq!(facts(b"\xff\xfea\0\r\0\n\0"), ("crlf", Break::Crlf, true));
    assert_eq!(facts(b"\xff\xfe\r\x0a\n\0"), ("lf", Break::Lf, true), "U+0A0D is no CR");
    assert_eq!(facts(b"\xff\xfe"), ("none", Break::Lf, true));
}

#[test]
fn labels_lead_to_names() {
    let rows = [
        ("UTF-8", "utf-8"),
        ("utf8", "utf-8"),
        ("utf-8-bom", "utf-8"),
        (" latin1 ", "windows-1252"),
        ("cp1252", "windows-1252"),
        ("sjis", "shift_jis"),
        ("gb2312", "gbk"),
        ("utf-16", "utf-16le"),
        ("UTF-32BE", "utf-32be"),
        ("koi8-r", "koi8-r"),
        ("unknown-ascii", "unknown-ascii"),
    ];
    for (label, name) in rows {
        assert_eq!(Encoding::from_label(label).unwrap().name(), name);
        assert_eq!(Encoding::from_label(name), Encoding::from_label(label), "a name is a label");
    }
    for label in ["", "latin", "iso-2022-jp", "hz-gb-2312", "x-user-defined", "replacement"] {
        assert_eq!(Encoding::from_label(label), None, "{label}");
    }
    assert_eq!(
        (Eol::from_label("CRLF"), Eol::from_label("cr"), Eol::from_label("mixed")),
        (Some(Eol::Crlf), None, None)
    );
}

#[test]
fn a_plain_view_is_borrowed_and_offsets_are_direct() {
    let raw = b"\xef\xbb\xbfab\ncd";
    let form = form(raw);
    let view = View::new(raw, &form);
    assert_eq!(view.as_bytes().as_ptr(), raw[3..].as_ptr());
    assert_eq!(view.raw_range(0..2), Some(3..5));
    assert_eq!(view.raw_range(3..5), Some(6..8));
    assert_eq!((view.raw_at(6), view.view_at(0), view.view_at(4), view.view_at(99)), (None, 0, 1, 5));
}

#[test]
fn lines_of_a_view() {
    let raw = b"a\r\n\nlast";
    let form = form(raw);
    let view = View::new(raw, &form);
    assert_eq!(view.as_bytes(), b"a\n\nlast");
    assert_eq!(view.line_count(), 3);
    let lines: Vec<_> = (0..5).map(|n| view.line_range(n)).collect();
    assert_eq!(lines, [None, Some(0..1), Some(2..2), Some(3..7), None]);
    let endings: Vec<_> = (0..5).map(|n| view.ending(n)).collect();
    assert_eq!(endings, [None, Some(Break::Crlf), Some(Break::Lf), None, None]);
    let of: Vec<_> = (0..=7).map(|at| view.line_of(at)).collect();
    assert_eq!(of, [1, 1, 2, 3, 3, 3, 3, 3]);
    assert_eq!(view.raw_range(0..3), Some(0..4));
    let empty = View::new(b"", &Form::default());
    assert_eq!((empty.line_count(), empty.line_of(0), empty.line_range(1)), (0, 1, None));
    let ended = View::new(b"a\n", &Form::default());
    assert_eq!((ended.line_count(), ended.line_of(2), ended.line_range(1)), (1, 1, Some(0..1)));
}

#[test]
fn a_decoded_view_maps_whole_characters_only() {
    let raw = b"a\x95\x5cb\r\n";
    let sjis = declared(raw, "shift_jis");
    let view = View::new(raw, &sjis);
    assert_eq!(view.as_bytes(), "a表b\n".as_bytes());
    let offsets: Vec<_> = (0..=7).map(|at| view.raw_at(at)).collect();
    assert_eq!(offsets, [Some(0), Some(1), None, None, Some(3), Some(4), Some(6), None]);
    assert_eq!((view.view_at(1), view.view_at(2), view.view_at(5)), (1, 1, 5));
}

#[test]
fn damaged_utf16_can_be_read_and_edited_around() {
    let raw = b"\xff\xfea\0\0\xd8b\0\n\0c";
    assert_eq!(crate::kit::lines(raw), ["a\\xED\\xA0\\x80b", "\\xFF"]);
    assert_eq!(crate::kit::edit(raw, "b\n", "B\n").unwrap().bytes, b"\xff\xfea\0\0\xd8B\0\n\0c");
}

/// Git looks for a NUL in the first 8,000 bytes only.
#[test]
fn what_git_calls_text_has_a_form_for_patches() {
    let far = [&b"line\n"[..]].repeat(2000).concat();
    let with_nul = [&far[..], b"a\0b\nlast"].concat();
    assert!(detect(&with_nul, None).is_err());
    let form = detect_as_git(&with_nul).unwrap();
    assert_eq!((form.encoding, form.final_newline, form.eol.name()), (Encoding::Utf8, false, "lf"));
    let latin = [&far[..], b"caf\xe9\0\r\n"].concat();
    assert_eq!(detect_as_git(&latin).unwrap().encoding, Encoding::UnknownAscii);
    assert_eq!(detect_as_git(b"a\0b\n"), None);
    for bytes in [&b""[..], b"x\n", b"\xef\xbb\xbfx\r\n"] {
        assert_eq!(detect_as_git(bytes), detect(bytes, None).ok());
    }
}
