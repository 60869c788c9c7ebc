//! The cases of area `encoding` that bytes alone decide. C016 (chunks of a request) belongs to the transport, C022 (file names) to the tree.

use cotenant_text::{
    EditError, Encoding, Eol, Level, View, Want, clip, compose, detect, shown, unified, visible,
};

use crate::kit::{declared, edit, form, lines, miss};

#[test]
fn c001_crlf_file_is_edited_with_lf_text() {
    let raw = b"alpha\r\nbeta\r\ngamma\r\n";
    assert_eq!(lines(raw), ["alpha", "beta", "gamma"], "no stray CR in the view");
    let edited = edit(raw, "alpha\nbeta", "ALPHA\nBETA").unwrap();
    assert_eq!(edited.bytes, b"ALPHA\r\nBETA\r\ngamma\r\n");
    assert_eq!(edited.level, Level::Eol);
}

#[test]
fn c002_mixed_endings_stay_where_they_are() {
    let raw = b"one\r\ntwo\nthree";
    let edited = edit(raw, "three", "THREE").unwrap();
    assert_eq!(edited.bytes, b"one\r\ntwo\nTHREE");
    assert_eq!(edited.level, Level::Exact);
    assert_eq!(edited.spans[0].raw, 9..14);
    let diff = unified(raw, &form(raw), &edited.bytes, &form(&edited.bytes), 3);
    assert_eq!(diff.stat(), (1, 1));
}

#[test]
fn c004_overwrite_keeps_crlf_unless_told() {
    let old = form(b"unit A;\r\nbegin\r\nend.\r\n");
    let content = "unit B;\nbegin\nend.\n";
    assert_eq!(compose(content, Some(&old), &Want::default()).unwrap(), b"unit B;\r\nbegin\r\nend.\r\n");
    let told = Want { eol: Some(Eol::Lf), ..Want::default() };
    assert_eq!(compose(content, Some(&old), &told).unwrap(), content.as_bytes());
}

#[test]
fn c005_a_new_file_is_what_was_sent() {
    assert_eq!(compose("all:\n\techo ok\n", None, &Want::default()).unwrap(), b"all:\n\techo ok\n");
}

#[test]
fn c007_overwrite_keeps_the_bom_once() {
    let old = form(b"\xef\xbb\xbf<p>s\xc3\xa9curis\xc3\xa9</p>\n");
    let wanted = "\u{feff}<p>vérifié</p>\n".as_bytes();
    assert_eq!(compose("<p>vérifié</p>\n", Some(&old), &Want::default()).unwrap(), wanted);
    assert_eq!(compose("\u{feff}<p>vérifié</p>\n", Some(&old), &Want::default()).unwrap(), wanted);
}

#[test]
fn c008_a_legacy_byte_survives_an_ascii_edit() {
    let raw = b"// \xa9 Acme\r\nint x = 1;\r\n";
    assert_eq!(form(raw).encoding, Encoding::UnknownAscii);
    assert_eq!(lines(raw)[0], "// \\xA9 Acme");
    let edited = edit(raw, "x = 1", "x = 2").unwrap();
    assert_eq!(edited.bytes, b"// \xa9 Acme\r\nint x = 2;\r\n");
    match edit(raw, "x = 1", "x = ©").unwrap_err() {
        EditError::NotEncodable { ch, encoding, line, column, item } => {
            assert_eq!((ch, encoding, line, column, item), ('©', Encoding::UnknownAscii, 1, 5, 0));
        }
        other => panic!("{other:?}"),
    }
    let latin = declared(raw, "latin1");
    let spec = crate::kit::spec("x = 1", "x = ©");
    let edited = cotenant_text::apply(raw, &latin, &[spec], &Default::default()).unwrap();
    assert_eq!(edited.bytes, b"// \xa9 Acme\r\nint x = \xa9;\r\n");
}

#[test]
fn c010_utf16_is_text_and_stays_utf16() {
    let utf16 =
        |text: &str| [vec![0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    let raw = utf16("[Key]\r\n\"a\"=dword:1\r\n");
    assert_eq!(form(&raw).encoding, Encoding::Utf16Le);
    assert_eq!(form(&raw).eol, Eol::Crlf);
    assert_eq!(lines(&raw), ["[Key]", "\"a\"=dword:1"]);
    let edited = edit(&raw, "dword:1", "dword:2").unwrap();
    assert_eq!(edited.bytes, utf16("[Key]\r\n\"a\"=dword:2\r\n"));
    let edited = edit(&raw, "[Key]\n", "[Key]\n\"é\"=\"𝄞\"\n").unwrap();
    assert_eq!(edited.bytes, utf16("[Key]\r\n\"é\"=\"𝄞\"\r\n\"a\"=dword:1\r\n"));
}

#[test]
fn c011_straight_quotes_do_not_match_curly_ones() {
    let raw = "Ana: “Yes.”\nBob: \"No.\"\n".as_bytes();
    let miss = miss(raw, "Ana: \"Yes.\"", "Ana: \"Sure.\"");
    assert_eq!(miss.cause.name(), "lookalike");
    assert_eq!(
        miss.detail,
        "line 1 has “ (U+201C) where old_text has \" (U+0022); line 1 has ” (U+201D) where old_text has \" (U+0022)"
    );
    assert_eq!(crate::kit::accept(raw, &miss), "Ana: “Sure.”\nBob: \"No.\"\n".as_bytes());
    let edited = edit(raw, "Ana: “Yes.”", "Ana: “Sure.”").unwrap();
    assert_eq!(edited.bytes, "Ana: “Sure.”\nBob: \"No.\"\n".as_bytes());
}

#[test]
fn c013_an_apostrophe_may_become_a_curly_one() {
    assert_eq!(edit(b"l'eau\n", "l'eau", "l’eau").unwrap().bytes, b"l\xe2\x80\x99eau\n");
}

#[test]
fn c014_entities_are_literal() {
    let raw = compose("<code>a &amp;&amp; b &lt; c</code>\n", None, &Want::default()).unwrap();
    assert_eq!(raw, b"<code>a &amp;&amp; b &lt; c</code>\n");
    assert_eq!(edit(&raw, "&lt;", "&gt;").unwrap().bytes, b"<code>a &amp;&amp; b &gt; c</code>\n");
}

#[test]
fn c017_tabs_elsewhere_stay() {
    let edited = edit(b"all:\n\tcc one.c\n\tcc two.c\n", "two.c", "deux.c").unwrap();
    assert_eq!(edited.bytes, b"all:\n\tcc one.c\n\tcc deux.c\n");
}

#[test]
fn c019_only_lf_and_crlf_break_lines() {
    let raw = b"a\x0cb\x0bc\xc2\x85d\xe2\x80\xa8e\nlast\n";
    assert_eq!(lines(raw).len(), 2);
    assert_eq!(lines(raw)[1], "last");
    let form = form(raw);
    let view = View::new(raw, &form);
    assert_eq!(visible(view.line(1).unwrap()), "a<U+000C>b<U+000B>c<U+0085>d<U+2028>e");
    assert_eq!(edit(raw, "last", "LAST").unwrap().bytes, b"a\x0cb\x0bc\xc2\x85d\xe2\x80\xa8e\nLAST\n");
}

#[test]
fn c020_a_clip_never_cuts_a_character() {
    let raw = "A🧪B한C".as_bytes();
    for size in 1..=10 {
        let (mut at, mut joined) = (0, Vec::new());
        while at < raw.len() {
            let part = clip(&raw[at..], size);
            assert!(!part.text.contains('\u{fffd}') && part.taken > 0);
            assert_eq!(part.taken + part.left, raw.len() - at);
            assert!(part.text.len() <= size.max(4));
            joined.extend_from_slice(part.text.as_bytes());
            at += part.taken;
        }
        assert_eq!(joined, raw, "size {size}");
    }
    let long = "🧪".repeat(5000);
    let part = clip(long.as_bytes(), 2001);
    assert_eq!((part.taken, part.left), (2000, 18000));
}

#[test]
fn a_lone_cr_is_content_and_survives() {
    let raw = b"log\rprogress\nnext\r\nlast";
    assert_eq!(lines(raw), ["log\rprogress", "next", "last"]);
    assert_eq!(edit(raw, "next", "then").unwrap().bytes, b"log\rprogress\nthen\r\nlast");
    assert_eq!(
        edit(raw, "log\rprogress\nnext", "log\rdone\nnext").unwrap().bytes,
        b"log\rdone\nnext\r\nlast"
    );
}

#[test]
fn multi_byte_legacy_is_never_matched_inside_a_character() {
    // In Shift_JIS the second byte of 表 is a backslash.
    let raw = b"path = \x95\x5c\nkey\\value\n";
    let sjis = declared(raw, "shift_jis");
    let spec = crate::kit::spec("\\", "/");
    let edited = cotenant_text::apply(raw, &sjis, &[spec], &Default::default()).unwrap();
    assert_eq!(edited.bytes, b"path = \x95\x5c\nkey/value\n");
    let spec = crate::kit::spec("表", "裏");
    let edited = cotenant_text::apply(raw, &sjis, &[spec], &Default::default()).unwrap();
    assert_eq!(edited.bytes, b"path = \x97\xa0\nkey\\value\n");
    assert!(matches!(
        cotenant_text::apply(raw, &sjis, &[crate::kit::spec("key", "é")], &Default::default()),
        Err(EditError::NotEncodable { ch: 'é', .. })
    ));
}

#[test]
fn in_an_unknown_encoding_a_doubtful_start_is_refused() {
    let raw = b"path = \x95\x5c\nend\n";
    let found = miss(raw, "\\\nend", "/\nend");
    assert_eq!(found.cause.name(), "encoding");
    assert!(found.detail.contains("line 1"), "{}", found.detail);
    // A space can be no second byte; after a whole UTF-8 character there is no doubt either.
    assert_eq!(edit(b"caf\xe9 au\n", " au", " du").unwrap().bytes, b"caf\xe9 du\n");
    assert_eq!(edit("é\u{e9}x\n".as_bytes(), "x", "y").unwrap().bytes, "ééy\n".as_bytes());
}

#[test]
fn yen_is_not_silently_a_backslash() {
    let raw = b"\x95\x5c cost 1\n";
    let sjis = declared(raw, "shift_jis");
    let result = cotenant_text::apply(raw, &sjis, &[crate::kit::spec("cost 1", "¥1")], &Default::default());
    assert!(matches!(result, Err(EditError::NotEncodable { ch: '¥', .. })), "{result:?}");
}

#[test]
fn a_declared_encoding_is_strict() {
    let bad = detect(b"ok\n\x81\n", Encoding::from_label("shift_jis")).unwrap_err();
    assert!(bad.to_string().starts_with("not shift_jis: bytes at offset 3"), "{bad}");
    assert!(detect(b"a", Encoding::from_label("utf-16le")).is_err());
    assert_eq!(shown(b"\xff\xfe"), "\\xFF\\xFE");
}
