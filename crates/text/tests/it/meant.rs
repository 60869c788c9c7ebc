//! Random blocks of code sent otherwise than the file has them: the suggestion must do what was meant.

use std::cell::Cell;

use cotenant_text::{EditError, EditSpec, Tolerance, apply, detect};
use proptest::prelude::*;

use crate::kit::assert_outside_untouched;
use crate::pairs::for_all;

/// Lines of code: depth, which words, whether it ends with spaces.
fn code() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    prop::collection::vec((0..4usize, 0..3usize, any::<bool>()), 4..12)
}

fn line(number: usize, (depth, words, spaces): (usize, usize, bool)) -> String {
    let body = match words {
        0 => format!("call_{number}(x, y);"),
        1 => format!("say “word {number}” – now"),
        _ => format!("let\u{a0}v{number} = 1;"),
    };
    format!("{}{body}{}", "\t".repeat(depth + 1), if spaces { "  " } else { "" })
}

/// A text as a caller may send it: spaces for tabs, one step to the left or right, without spaces at line ends, with plain punctuation.
fn misspelled(way: u8, text: &str) -> String {
    let respell = |line: &str| match way {
        0 => line.replace('\t', "    "),
        1 => line.strip_prefix('\t').unwrap_or(line).to_owned(),
        2 => line.trim_end().to_owned(),
        3 => line.replace(['“', '”'], "\"").replace('–', "-").replace('\u{a0}', " "),
        _ if line.is_empty() => String::new(),
        _ => format!("\t{line}"),
    };
    text.split('\n').map(respell).collect::<Vec<_>>().join("\n")
}

/// A file, what was meant, and what was sent.
struct Sent {
    file: String,
    wanted: String,
    old: String,
    new: String,
}

impl Sent {
    /// The block's first line changes; perhaps a line is added below it, one step deeper.
    fn new(code: &[(usize, usize, bool)], way: u8, at: usize, len: usize, insert: bool, crlf: bool) -> Sent {
        let lines: Vec<String> =
            code.iter().enumerate().map(|(number, facts)| line(number, *facts)).collect();
        let at = at % (lines.len() - len);
        let block = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let indent = "\t".repeat(code[at].0 + 1);
        let end = if code[at].2 { "  " } else { "" };
        let added = if insert { format!("{indent}\tadded\n") } else { String::new() };
        let old = block(&lines[at..at + len]);
        let new = format!("{indent}changed here{end}\n{added}{}", block(&lines[at + 1..at + len]));
        let stored = |text: String| if crlf { text.replace('\n', "\r\n") } else { text };
        Sent {
            wanted: stored(block(&lines).replacen(&old, &new, 1)),
            file: stored(block(&lines)),
            old: misspelled(way, &old),
            new: misspelled(way, &new),
        }
    }
}

#[test]
fn a_suggestion_does_what_was_meant() {
    let (tried, offered) = (Cell::new(0), Cell::new(0));
    let blocks = (code(), 0..5u8, 0..8usize, 1..4usize, any::<bool>(), any::<bool>());
    for_all(blocks, 3, |(code, way, at, len, insert, crlf)| {
        let sent = Sent::new(&code, way, at, len, insert, crlf);
        let raw = sent.file.as_bytes();
        let form = detect(raw, None).unwrap();
        let spec = EditSpec { old: &sent.old, new: &sent.new, replace_all: false, line: None };
        tried.set(tried.get() + 1);
        let miss = match apply(raw, &form, &[spec], &Tolerance::default()) {
            // Nothing was misspelled, or old text fits inside an indent.
            Ok(_) => return Ok(()),
            Err(EditError::NotFound { miss, .. }) => miss,
            Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        offered.set(offered.get() + 1);
        let Some(suggestion) = &miss.suggestion else {
            return Err(TestCaseError::fail(format!("none in {miss:?}")));
        };
        let sure = EditSpec { old: &suggestion.old, new: &suggestion.new, ..spec };
        let edited = apply(raw, &form, &[sure], &Tolerance::default()).expect("a suggestion that works");
        assert_outside_untouched(raw, &edited);
        prop_assert_eq!(String::from_utf8_lossy(&edited.bytes), &*sent.wanted, "{:?}", miss);
        let all = Tolerance { trailing_space: true, punctuation: true, indent: true };
        let tolerated = apply(raw, &form, &[spec], &all).expect("a tolerated level");
        prop_assert_eq!(&tolerated.bytes, &edited.bytes);
        prop_assert_eq!(tolerated.level, suggestion.level);
        Ok(())
    });
    assert!(offered.get() * 2 > tried.get(), "{} of {} were misses", offered.get(), tried.get());
}
