//! Refusals: what is quoted is read back, and nothing that is quoted can end a line or fake a fact.

use cotenant_model::{Code, Fact, FactValue, Refusal, needs_escape};
use proptest::prelude::*;

/// Reads a JSON string at the start of `text`: its value, and what follows. A small reader of its own, so that the form is
/// JSON's and not only ours.
fn string(text: &str) -> Option<(String, &str)> {
    let mut chars = text.strip_prefix('"')?.chars();
    let mut units: Vec<u16> = Vec::new();
    loop {
        match chars.next()? {
            '"' => return Some((String::from_utf16(&units).ok()?, chars.as_str())),
            '\\' => match chars.next()? {
                'n' => units.push(10),
                'r' => units.push(13),
                't' => units.push(9),
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).ok()?);
                }
                ch @ ('"' | '\\') => units.push(ch as u16),
                _ => return None,
            },
            // JSON allows no bare control character.
            ch if (ch as u32) < 0x20 => return None,
            ch => units.extend(ch.encode_utf16(&mut [0; 2]).iter()),
        }
    }
}

/// One value of a list, or of a fact: bare up to `ends`, or quoted.
fn value<'a>(text: &'a str, ends: &[char]) -> Option<(String, &'a str)> {
    if text.starts_with('"') {
        return string(text);
    }
    let end = text.find(ends).unwrap_or(text.len());
    (end > 0).then(|| (text[..end].to_owned(), &text[end..]))
}

/// A fact's name and its value, a list of texts.
type Named = (String, Vec<String>);

/// Line 1 read back: the code and the facts.
fn facts(line: &str) -> Option<(String, Vec<Named>)> {
    let (code, mut rest) = line.split_at(line.find(' ').unwrap_or(line.len()));
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest.strip_prefix(' ')?.split_once('=')?;
        let mut values = Vec::new();
        rest = after;
        if !(rest.is_empty() || rest.starts_with(' ')) {
            loop {
                let (one, after) = value(rest, &[' ', ','])?;
                values.push(one);
                match after.strip_prefix(',') {
                    Some(more) => rest = more,
                    None => {
                        rest = after;
                        break;
                    }
                }
            }
        }
        all.push((name.to_owned(), values));
    }
    Some((code.to_owned(), all))
}

/// Texts of all that is awkward: spaces, quotes, commas, line ends, what hides or reorders, what takes two UTF-16 units.
fn awkward() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z/.=]{1,5}",
        1 => Just(" ".to_owned()),
        1 => prop_oneof![Just("\""), Just("\\"), Just(","), Just("\n"), Just("\r"), Just("\t"), Just("\u{0}"), Just("\u{1b}[2K"), Just("\u{7f}"), Just("\u{85}")].prop_map(str::to_owned),
        1 => prop_oneof![Just("\u{202e}"), Just("\u{200b}"), Just("\u{feff}"), Just("\u{2028}"), Just("\u{2029}"), Just("\u{ad}"), Just("\u{e0041}"), Just("\u{61c}")].prop_map(str::to_owned),
        1 => "[é→😀]",
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_quoted_value_is_read_back(text in awkward()) {
        let shown = FactValue::from(text.as_str()).to_string();
        if shown.starts_with('"') {
            prop_assert_eq!(string(&shown), Some((text, "")));
        } else {
            prop_assert_eq!(shown, text);
        }
    }

    #[test]
    fn line_one_is_read_back_and_stays_one_line(path in awkward(), near in proptest::collection::vec(awkward(), 0..4), tries in any::<i64>(), seen in any::<bool>(), rest in "[a-z ]{0,20}") {
        let refusal = Refusal::new(Code::NotFound, rest.as_str())
            .fact("path", FactValue::List(vec![path.clone()]))
            .fact("near", near.clone())
            .fact("tries", tries)
            .fact("seen", seen);
        let text = refusal.to_string();
        let line = text.split('\n').next().unwrap_or_default();
        prop_assert!(!line.chars().any(needs_escape), "{:?}", line);
        let flag = if seen { "yes" } else { "no" };
        let wanted = vec![
            ("path".to_owned(), vec![path]),
            ("near".to_owned(), near),
            ("tries".to_owned(), vec![tries.to_string()]),
            ("seen".to_owned(), vec![flag.to_owned()]),
        ];
        prop_assert_eq!(facts(line), Some(("NOT_FOUND".to_owned(), wanted)), "{}", line);
        prop_assert_eq!(text.matches('\n').count(), usize::from(!rest.is_empty()), "nothing quoted ends the line: {:?}", text);
    }
}

#[test]
fn what_hides_is_known_by_name() {
    for hidden in [
        '\0',
        '\n',
        '\u{1b}',
        '\u{7f}',
        '\u{9b}',
        '\u{ad}',
        '\u{61c}',
        '\u{180e}',
        '\u{200b}',
        '\u{200f}',
        '\u{2028}',
        '\u{2029}',
        '\u{202a}',
        '\u{202e}',
        '\u{2060}',
        '\u{2066}',
        '\u{2069}',
        '\u{206f}',
        '\u{feff}',
        '\u{fff9}',
        '\u{e0001}',
        '\u{e007f}',
    ] {
        assert!(needs_escape(hidden), "U+{:04X}", hidden as u32);
        let shown = FactValue::from(format!("a{hidden}b")).to_string();
        assert!(shown.is_ascii() && shown.starts_with('"'), "{shown}");
    }
    for plain in ['a', ' ', '"', '\\', ',', 'é', '→', '😀', '\u{a0}', '\u{300}', '中', '\u{fe0f}'] {
        assert!(!needs_escape(plain), "U+{:04X}", plain as u32);
    }
}

#[test]
fn a_comma_splits_a_list_and_nothing_else() {
    assert_eq!(FactValue::from("1-2,5-6").to_string(), "1-2,5-6");
    let list =
        |items: &[&str]| FactValue::List(items.iter().map(|item| (*item).to_owned()).collect()).to_string();
    assert_eq!(list(&["a", "b"]), "a,b");
    assert_eq!(list(&["a,b", "c d", ""]), "\"a,b\",\"c d\",\"\"");
    assert_eq!(list(&[]), "");
}

#[test]
fn numbers_of_every_size_are_facts() {
    for (value, text) in [
        (FactValue::from(7u16), "7"),
        (FactValue::from(7u32), "7"),
        (FactValue::from(-7i32), "-7"),
        (FactValue::from(i64::MIN), "-9223372036854775808"),
        (FactValue::from(usize::MAX), "9223372036854775807"),
        (FactValue::from(u64::MAX), "9223372036854775807"),
        (FactValue::from(true), "yes"),
        (FactValue::from(false), "no"),
    ] {
        assert_eq!(value.to_string(), text);
        assert_eq!(Fact { name: "n".into(), value }.to_string(), format!("n={text}"));
    }
}

#[test]
fn the_parts_stand_in_their_order_and_empty_ones_leave_no_line() {
    let bare = Refusal::new(Code::Busy, "");
    assert_eq!(bare.to_string(), "BUSY");
    assert_eq!(bare.clone().next("whoami {}").to_string(), "BUSY\nnext: whoami {}");
    let full = Refusal::new(Code::TextNotFound, "No.\n").block("1|a\n\n2|b\n\n").fact("a", 1u16).next("x");
    assert_eq!(full.to_string(), "TEXT_NOT_FOUND a=1\nNo.\n1|a\n\n2|b\nnext: x");
    assert_eq!(full.get("a"), Some(&FactValue::Number(1)));
    assert_eq!(full.get("b"), None);
}

#[test]
fn codes_are_words_of_the_wire_and_few_are_passing() {
    for code in Code::ALL {
        let name = code.name();
        assert!(name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{name}");
        assert_eq!(code.to_string(), name);
        assert_eq!(code.is_error(), name != "APPROVAL_PENDING");
    }
    let passing: Vec<&str> =
        Code::ALL.iter().filter(|code| code.is_passing()).map(|code| code.name()).collect();
    assert_eq!(passing, ["LEASE_HELD", "APPROVAL_PENDING", "STOPPED", "OUT_OF_SPACE", "IO_ERROR", "BUSY"]);
    assert!(Code::ALL.windows(2).all(|pair| pair[0] < pair[1]), "the order is the contract's");
}
