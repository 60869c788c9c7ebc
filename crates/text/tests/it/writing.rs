//! New files and overwrites.

use cotenant_text::{EditError, Encoding, Eol, Form, Want, compose, detect};

use crate::kit::form;

fn new(content: &str, want: Want) -> Vec<u8> {
    compose(content, None, &want).unwrap()
}

fn over(old: &[u8], content: &str) -> Vec<u8> {
    compose(content, Some(&form(old)), &Want::default()).unwrap()
}

#[test]
fn a_new_file_gets_a_final_newline_unless_told_otherwise() {
    assert_eq!(new("a", Want::default()), b"a\n");
    assert_eq!(new("a\n", Want::default()), b"a\n");
    assert_eq!(new("", Want::default()), b"");
    assert_eq!(new("a\r\nb", Want::default()), b"a\r\nb\r\n", "in the content's own way");
    let without = Want { final_newline: Some(false), ..Want::default() };
    assert_eq!(new("a", without), b"a");
    assert_eq!(new("a\n", without), b"a\n", "nothing is taken off");
}

#[test]
fn wishes_win() {
    let crlf = Want { eol: Some(Eol::Crlf), ..Want::default() };
    assert_eq!(new("a\nb\r\nc", crlf), b"a\r\nb\r\nc\r\n");
    assert_eq!(compose("a\nb", Some(&form(b"x\n")), &crlf).unwrap(), b"a\r\nb\r\n");
    let latin = Want { encoding: Encoding::from_label("latin1"), ..Want::default() };
    assert_eq!(new("é", latin), b"\xe9\n");
    let utf16 = Want { encoding: Some(Encoding::Utf16Le), ..Want::default() };
    assert_eq!(new("é\n", utf16), b"\xff\xfe\xe9\0\n\0", "with the mark that makes it readable");
    assert_eq!(new("a\n", Want { bom: Some(false), ..utf16 }), b"a\0\n\0");
    assert_eq!(new("\u{feff}a\n", Want { bom: Some(false), ..Want::default() }), b"a\n");
    assert_eq!(new("a\n", Want { bom: Some(true), ..Want::default() }), b"\xef\xbb\xbfa\n");
    assert_eq!(new("\u{feff}a\n", Want::default()), b"\xef\xbb\xbfa\n");
    let keeps = Want { eol: Some(Eol::Mixed), ..Want::default() };
    assert_eq!(new("a\r\nb\n", keeps), b"a\r\nb\n", "mixed is no wish");
}

#[test]
fn an_overwrite_keeps_the_old_form() {
    assert_eq!(over(b"x\r\ny\r\n", "a\nb\n"), b"a\r\nb\r\n");
    assert_eq!(over(b"x\ny\n", "a\r\nb\r\n"), b"a\nb\n");
    assert_eq!(over(b"x\r\ny\r\nz\n", "a\nb"), b"a\r\nb\r\n", "mixed: the more frequent");
    assert_eq!(over(b"x\ny", "a\nb"), b"a\nb", "no final newline before, none added");
    assert_eq!(over(b"x\ny", "a\n"), b"a\n", "nor taken off");
    assert_eq!(over(b"x\ny\n", "a"), b"a\n");
    assert_eq!(over(b"", "a\r\nb"), b"a\r\nb\r\n");
    assert_eq!(over(b"\xff\xfea\0\r\0\n\0", "b\n"), b"\xff\xfeb\0\r\0\n\0");
    assert_eq!(over(b"\xff\xfea\0\r\0\n\0", "\u{feff}b\n"), b"\xff\xfeb\0\r\0\n\0");
    assert_eq!(over(b"x\n", ""), b"");
}

#[test]
fn what_the_encoding_lacks_is_named() {
    let latin = detect(b"caf\xe9\n", Encoding::from_label("latin1")).unwrap();
    let error = compose("one\ntwo ✓\n", Some(&latin), &Want::default()).unwrap_err();
    assert!(
        matches!(error, EditError::NotEncodable { item: 0, ch: '✓', line: 2, column: 5, .. }),
        "{error:?}"
    );
    let unknown = form(b"caf\xe9\n");
    let error = compose("é\n", Some(&unknown), &Want::default()).unwrap_err();
    assert!(matches!(error, EditError::NotEncodable { ch: 'é', encoding: Encoding::UnknownAscii, .. }));
    assert_eq!(compose("plain\n", Some(&unknown), &Want::default()).unwrap(), b"plain\n");
    let told = Want { encoding: Some(Encoding::Utf8), ..Want::default() };
    assert_eq!(compose("é\n", Some(&unknown), &told).unwrap(), "é\n".as_bytes());
}

#[test]
fn what_is_composed_reads_back() {
    for label in ["utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be"] {
        for eol in [Eol::Lf, Eol::Crlf] {
            let encoding = Encoding::from_label(label);
            let bytes = new("é\n𝄞 \u{a0d}\n", Want { encoding, eol: Some(eol), ..Want::default() });
            let form = detect(&bytes, None).unwrap();
            assert_eq!((Some(form.encoding), form.eol, form.final_newline), (encoding, eol, true), "{label}");
            let again = compose("é\n𝄞 \u{a0d}\n", Some(&form), &Want::default()).unwrap();
            assert_eq!(again, bytes, "{label}");
        }
    }
    assert_eq!(Form::default().eol, Eol::Lf);
}
