//! The loose form of text, for diagnosis only: without spaces and invisible characters, look-alikes folded together.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::show::is_ignorable;

/// A text without what people overlook. Lines stay apart by LF.
pub(crate) struct Loose {
    pub(crate) bytes: Vec<u8>,
    /// Offset of every line's start.
    pub(crate) starts: Vec<usize>,
}

impl Loose {
    pub(crate) fn of(text: &[u8]) -> Loose {
        let mut out = Loose { bytes: Vec::with_capacity(text.len()), starts: vec![0] };
        let mut at = 0;
        while at < text.len() {
            // Most text is runs of plain ASCII, which stays as it is.
            let run = text[at..].iter().position(|b| !(0x21..0x7f).contains(b)).unwrap_or(text.len() - at);
            out.bytes.extend_from_slice(&text[at..at + run]);
            at += run;
            if text.get(at) == Some(&b'\n') {
                out.bytes.push(b'\n');
                out.starts.push(out.bytes.len());
                at += 1;
            } else if at < text.len() {
                at = step(text, at, &mut |folded: &[u8], _| out.bytes.extend_from_slice(folded));
            }
        }
        out
    }

    /// Line `index` (from 0) without its break.
    pub(crate) fn line(&self, index: usize) -> &[u8] {
        let (Some(start), end) = (self.starts.get(index), self.starts.get(index + 1)) else {
            return &[];
        };
        &self.bytes[*start..end.map_or(self.bytes.len(), |next| next - 1)]
    }

    /// The line (from 0) that holds an offset.
    pub(crate) fn line_at(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }
}

/// A line's loose form, and for each of its bytes the range of the character it comes from.
pub(crate) fn mapped(line: &[u8]) -> (Vec<u8>, Vec<Range<usize>>) {
    let (mut bytes, mut sources) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < line.len() {
        at = step(line, at, &mut |folded: &[u8], source: Range<usize>| {
            bytes.extend_from_slice(folded);
            sources.extend(std::iter::repeat_n(source, folded.len()));
        });
    }
    (bytes, sources)
}

/// Calls `emit` with the loose form of the character at `at`, if it has one, and its byte range. The offset of the next character.
fn step(text: &[u8], at: usize, emit: &mut impl FnMut(&[u8], Range<usize>)) -> usize {
    match text[at] {
        b'\t' | 0x0b | 0x0c | b'\r' | b' ' => {}
        0..0x80 => emit(&text[at..at + 1], at..at + 1),
        _ => match first_char(&text[at..]) {
            Some(ch) => {
                let source = at..at + ch.len_utf8();
                fold(ch, |part| {
                    let mut utf8 = [0; 4];
                    emit(part.encode_utf8(&mut utf8).as_bytes(), source.clone());
                });
                return source.end;
            }
            None => emit(&text[at..at + 1], at..at + 1),
        },
    }
    at + 1
}

fn first_char(bytes: &[u8]) -> Option<char> {
    let len = match bytes.first()? {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    std::str::from_utf8(bytes.get(..len)?).ok()?.chars().next()
}

fn fold(ch: char, mut emit: impl FnMut(char)) {
    // Most text beyond ASCII is ideographs, kana and syllables: nothing to fold, and the tables are slow.
    if matches!(ch, '\u{3040}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}') {
        return emit(ch);
    }
    if is_ignorable(ch) || ch.is_whitespace() {
        return;
    }
    if let Some(twin) = plain(ch).or_else(|| latin_twin(ch)) {
        return emit(twin);
    }
    for part in std::iter::once(ch).nfkd().filter(|part| !part.is_whitespace()) {
        emit(plain(part).unwrap_or(part));
    }
}

/// The plain character that typographic punctuation or a wide space stands for; the fold of the `punctuation` level.
pub(crate) fn plain(ch: char) -> Option<char> {
    Some(match ch {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2bc}' | '\u{ff07}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        _ => return None,
    })
}

/// The Latin letter that a Greek or Cyrillic one looks like.
fn latin_twin(ch: char) -> Option<char> {
    const TWINS: &str =
        "АAВBЕEЅSІIЈJКKМMНHОOРPСCТTХXаaеeоoрpсcуyхxіiјjѕsԁdһhԛqԝwΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοoνvρpαa";
    if !matches!(ch, '\u{370}'..='\u{52f}') {
        return None;
    }
    let mut pairs = TWINS.chars();
    while let (Some(odd), Some(latin)) = (pairs.next(), pairs.next()) {
        if odd == ch {
            return Some(latin);
        }
    }
    None
}
