//! Every character of every multi-byte encoding (and some single-byte ones): read, mapped back and written as the tables say.

use std::collections::BTreeSet;

use cotenant_text::{EditSpec, Encoding, Tolerance, View, Want, apply, compose, detect};

const LABELS: [&str; 12] = [
    "gbk",
    "gb18030",
    "big5",
    "euc-jp",
    "shift_jis",
    "euc-kr",
    "windows-1252",
    "windows-1251",
    "koi8-r",
    "ibm866",
    "macintosh",
    "iso-8859-15",
];

/// The characters beyond ASCII that an encoding stores and reads back as the same, 40 to a line.
fn repertoire(encoding: &'static encoding_rs::Encoding) -> String {
    let mut text = String::new();
    let chars = (0x80..0x10000).chain(0x1f600..0x1f610).filter_map(char::from_u32);
    let stored = chars.filter(|ch| {
        let alone = ch.to_string();
        let (bytes, _, lossy) = encoding.encode(&alone);
        !lossy && encoding.decode_without_bom_handling(&bytes).0 == alone
    });
    for (index, ch) in stored.enumerate() {
        text.push(ch);
        if index % 40 == 39 {
            text.push_str(" mark\r\n");
        }
    }
    text + " end\n"
}

#[test]
fn every_legacy_character_is_read_mapped_and_written() {
    for label in LABELS {
        let table = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        let encoding = Encoding::from_label(label);
        let text = repertoire(table);
        let raw = table.encode(&text).0.into_owned();
        let composed = compose(&text, None, &Want { encoding, ..Want::default() });
        assert_eq!(composed.unwrap(), raw, "{label}");
        let form = detect(&raw, encoding).unwrap();
        let view = View::new(&raw, &form);
        assert_eq!(view.as_bytes(), text.replace("\r\n", "\n").as_bytes(), "{label}");
        for n in 1..=view.line_count() {
            let range = view.raw_range(view.line_range(n).unwrap()).unwrap();
            let line = table.decode_without_bom_handling(&raw[range]).0;
            assert_eq!(line.as_bytes(), view.line(n).unwrap(), "{label} line {n}");
        }
    }
}

#[test]
fn every_legacy_character_survives_an_edit_beside_it() {
    for label in LABELS {
        let table = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        let raw = table.encode(&repertoire(table)).0.into_owned();
        let form = detect(&raw, Encoding::from_label(label)).unwrap();
        let view = View::new(&raw, &form);
        // Each line is sent as it was read, with another last word.
        let lines: Vec<&str> =
            (1..=view.line_count()).map(|n| std::str::from_utf8(view.line(n).unwrap()).unwrap()).collect();
        let news: Vec<String> = lines.iter().map(|line| line.replace(" mark", " MARK!")).collect();
        let edits: Vec<EditSpec<'_>> = BTreeSet::from([0, lines.len() / 2, lines.len().saturating_sub(2)])
            .into_iter()
            .filter(|at| lines[*at] != news[*at])
            .map(|at| EditSpec { old: lines[at], new: &news[at], replace_all: false, line: Some(at + 1) })
            .collect();
        let expected = edits.iter().fold(view_text(&view), |text, edit| text.replacen(edit.old, edit.new, 1));
        let edited = apply(&raw, &form, &edits, &Tolerance::default()).unwrap();
        let after = View::new(&edited.bytes, &form);
        assert_eq!(view_text(&after), expected, "{label}");
        assert_eq!(edited.bytes.len(), raw.len() + edits.len(), "{label}");
        for span in &edited.spans {
            assert!(span.replacement.ends_with(b" MARK!"), "{label}");
            assert!(
                span.replacement.starts_with(&raw[span.raw.start..span.raw.end - 5]),
                "{label}: stored bytes are copied"
            );
        }
    }
}

fn view_text(view: &View<'_>) -> String {
    String::from_utf8(view.as_bytes().to_vec()).unwrap()
}

#[test]
fn every_character_fits_into_the_wide_encodings() {
    let text: String = (1..0x11_0000u32)
        .step_by(7)
        .filter_map(char::from_u32)
        .filter(|ch| !matches!(ch, '\r' | '\n' | '\u{feff}'))
        .collect::<String>()
        + "\nend\r\n";
    for label in ["utf-16le", "utf-16be", "utf-32le", "utf-32be"] {
        let raw =
            compose(&text, None, &Want { encoding: Encoding::from_label(label), ..Want::default() }).unwrap();
        let form = detect(&raw, None).unwrap();
        assert_eq!(Some(form.encoding), Encoding::from_label(label));
        let view = View::new(&raw, &form);
        assert_eq!(view_text(&view), text.replace("\r\n", "\n"), "{label}");
        let spec = EditSpec { old: "\nend\n", new: "\nEND 𝄞\n", replace_all: false, line: None };
        let edited = apply(&raw, &form, &[spec], &Tolerance::default()).unwrap();
        let wanted = text.replace("end", "END 𝄞");
        let again =
            compose(&wanted, None, &Want { encoding: Some(form.encoding), ..Want::default() }).unwrap();
        assert!(edited.bytes == again, "{label}");
    }
}
