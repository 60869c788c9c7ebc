//! The lines of a patch with their numbers, and the refusal that shows one.

use crate::patch::model::Malformed;
use crate::show::{clip, visible};

/// One line of a patch without its LF, and its number from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceLine<'s> {
    pub(super) number: usize,
    pub(super) text: &'s [u8],
}

/// The lines of a patch.
#[derive(Clone, Debug)]
pub(super) struct Source<'s> {
    lines: Vec<SourceLine<'s>>,
}

impl<'s> Source<'s> {
    /// Splits at LF. Where every line ends in CRLF, that is how the patch was carried, and one CR is taken off each.
    pub(super) fn new(text: &'s [u8]) -> Source<'s> {
        let body = text.strip_suffix(b"\n").unwrap_or(text);
        let pieces = body.split(|b| *b == b'\n').enumerate();
        let mut lines: Vec<SourceLine<'s>> =
            pieces.map(|(index, text)| SourceLine { number: index + 1, text }).collect();
        let last = lines.len().saturating_sub(usize::from(body.len() == text.len()));
        let carried = last > 0 && lines.iter().take(last).all(|line| line.text.ends_with(b"\r"));
        if carried {
            lines.iter_mut().for_each(|line| line.text = line.text.strip_suffix(b"\r").unwrap_or(line.text));
        }
        Source { lines }
    }

    pub(super) fn of(lines: Vec<SourceLine<'s>>) -> Source<'s> {
        Source { lines }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn lines(&self) -> &[SourceLine<'s>] {
        &self.lines
    }

    /// The line at index `at`, from 0.
    pub(super) fn text(&self, at: usize) -> Option<&'s [u8]> {
        self.lines.get(at).map(|line| line.text)
    }

    /// The line at index `at` without spaces, tabs and CR at its ends; empty beyond the end.
    pub(super) fn trimmed(&self, at: usize) -> &'s [u8] {
        self.text(at).unwrap_or_default().trim_ascii()
    }

    /// The number of the line at index `at`; beyond the end, that of the last line.
    pub(super) fn number(&self, at: usize) -> usize {
        self.lines.get(at).or(self.lines.last()).map_or(1, |line| line.number)
    }

    /// A refusal that points to the line at index `at`.
    pub(super) fn malformed(&self, at: usize, what: impl Into<String>, accepted: &'static str) -> Malformed {
        let seen = match self.text(at) {
            Some(text) => seen(text),
            None => "the end of the patch".to_owned(),
        };
        Malformed { line: self.number(at), what: what.into(), seen, accepted }
    }
}

/// The beginning of a line, at most 80 bytes, as a reader can tell it.
pub(super) fn seen(text: &[u8]) -> String {
    const MOST: usize = 80;
    if text.is_empty() {
        return "an empty line".to_owned();
    }
    let mut out = visible(&text[..clip(text, MOST).taken]);
    out.truncate(out.floor_char_boundary(MOST));
    out
}
