//! The view: what a model reads of a file (UTF-8, every line break shown as LF, no BOM), with a map back to raw byte offsets.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

use crate::codec::{self, Legacy};
use crate::form::{Break, Encoding, Form};

/// Stands in a view for stored bytes that are no character; never part of UTF-8, so nothing that a caller sends can match it.
const NO_CHARACTER: u8 = 0xff;

/// A stretch of the view in which every character takes the same number of bytes in the view and in the file.
#[derive(Clone, Copy, Debug)]
struct Run {
    view: usize,
    raw: usize,
    view_step: usize,
    raw_step: usize,
}

/// A decoded file. Plain UTF-8 with LF endings is borrowed, everything else is built once.
#[derive(Debug)]
pub struct View<'a> {
    bytes: Cow<'a, [u8]>,
    /// Raw bytes before the text: the BOM.
    base: usize,
    /// Empty: view and raw differ by `base` only.
    runs: Vec<Run>,
    /// View offset of the start of every line.
    starts: Vec<usize>,
    raw_len: usize,
    /// Bytes of a stored code unit.
    unit: usize,
}

impl<'a> View<'a> {
    /// The view of `raw`, whose form is `form` (from [`crate::detect`]; a form of other bytes gives a harmless but odd view).
    pub fn new(raw: &'a [u8], form: &Form) -> View<'a> {
        let base = form.bom_len().min(raw.len());
        let body = &raw[base..];
        let (bytes, runs) = match form.encoding {
            Encoding::Utf8 | Encoding::UnknownAscii if !has_crlf(body) => (Cow::Borrowed(body), Vec::new()),
            Encoding::Utf8 | Encoding::UnknownAscii => Builder::narrow(body, base),
            Encoding::Legacy(e) => Builder::legacy(body, base, e),
            wide => Builder::wide(body, base, wide),
        };
        let starts = line_starts(&bytes);
        View { bytes, base, runs, starts, raw_len: raw.len(), unit: form.encoding.unit() }
    }

    /// The same view with a line break for every lone carriage return, which is none anywhere else.
    pub(crate) fn broken_at_cr(mut self) -> View<'a> {
        self.bytes.to_mut().iter_mut().filter(|b| **b == b'\r').for_each(|b| *b = b'\n');
        self.starts = line_starts(&self.bytes);
        self
    }

    /// The whole view. Valid UTF-8, but for bytes of a file of unknown encoding and for damaged UTF-16.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of lines; a last line without a break counts, nothing after the last break does.
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// The view range of line `n` (from 1), without its break.
    pub fn line_range(&self, n: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(n.checked_sub(1)?)?;
        let end = match self.starts.get(n) {
            Some(next) => next - 1,
            None => self.bytes.len() - usize::from(self.bytes.last() == Some(&b'\n')),
        };
        Some(start..end)
    }

    /// The bytes of line `n` (from 1), without its break.
    pub fn line(&self, n: usize) -> Option<&[u8]> {
        self.line_range(n).map(|range| &self.bytes[range])
    }

    /// The line (from 1) in which the view offset lies; the last line for the end of the view, 1 in an empty file.
    pub fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at).max(1)
    }

    /// How line `n` (from 1) ends; `None` for a last line without a break and beyond the end.
    pub fn ending(&self, n: usize) -> Option<Break> {
        let end = self.line_range(n)?.end;
        if self.bytes.get(end) != Some(&b'\n') {
            return None;
        }
        let crlf = self
            .runs
            .get(self.run_at(end))
            .is_some_and(|run| run.view_step == 1 && run.raw_step == 2 * self.unit);
        Some(if crlf { Break::Crlf } else { Break::Lf })
    }

    /// The raw byte range of a view range; `None` if an end lies inside a stored character.
    pub fn raw_range(&self, view: Range<usize>) -> Option<Range<usize>> {
        Some(self.raw_at(view.start)?..self.raw_at(view.end)?)
    }

    /// The raw offset of a view offset; `None` inside a stored character and beyond the end.
    pub fn raw_at(&self, view: usize) -> Option<usize> {
        if view >= self.bytes.len() {
            return (view == self.bytes.len()).then_some(self.raw_len);
        }
        let Some(run) = self.runs.get(self.run_at(view)) else {
            return Some(self.base + view);
        };
        let into = view - run.view;
        into.is_multiple_of(run.view_step).then(|| run.raw + into / run.view_step * run.raw_step)
    }

    /// The view offset at which the character that covers the raw offset begins (the BOM belongs to offset 0).
    pub fn view_at(&self, raw: usize) -> usize {
        if raw >= self.raw_len {
            return self.bytes.len();
        }
        let next = self.runs.partition_point(|run| run.raw <= raw);
        match next.checked_sub(1).map(|i| self.runs[i]) {
            Some(run) => run.view + (raw - run.raw) / run.raw_step * run.view_step,
            None => raw.saturating_sub(self.base).min(self.bytes.len()),
        }
    }

    fn run_at(&self, view: usize) -> usize {
        self.runs.partition_point(|run| run.view <= view).wrapping_sub(1)
    }
}

/// Lines of `raw`, as its view would count them, without making one where the lines can be told from the bytes.
pub fn line_count(raw: &[u8], form: &Form) -> usize {
    match form.encoding {
        Encoding::Utf8 | Encoding::UnknownAscii => {
            let body = &raw[form.bom_len().min(raw.len())..];
            memchr_iter(b'\n', body).count() + usize::from(body.last().is_some_and(|last| *last != b'\n'))
        }
        _ => View::new(raw, form).line_count(),
    }
}

/// Most files have no CR at all, which one fast pass tells.
fn has_crlf(bytes: &[u8]) -> bool {
    memchr(b'\r', bytes).is_some_and(|at| memmem::find(&bytes[at..], b"\r\n").is_some())
}

fn line_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = Vec::with_capacity(memchr_iter(b'\n', bytes).count() + 1);
    starts.extend((!bytes.is_empty()).then_some(0));
    starts.extend(memchr_iter(b'\n', bytes).map(|at| at + 1).filter(|at| *at < bytes.len()));
    starts
}

/// Collects view bytes and the runs that map them back.
struct Builder {
    bytes: Vec<u8>,
    runs: Vec<Run>,
    raw: usize,
}

impl Builder {
    fn new(base: usize, capacity: usize) -> Builder {
        Builder { bytes: Vec::with_capacity(capacity), runs: Vec::new(), raw: base }
    }

    /// Adds one character, or (with both steps 1) a stretch of bytes that stand in the file as they do in the view.
    fn push(&mut self, view: &[u8], view_step: usize, raw_step: usize) {
        if self.runs.last().is_none_or(|run| (run.view_step, run.raw_step) != (view_step, raw_step)) {
            self.runs.push(Run { view: self.bytes.len(), raw: self.raw, view_step, raw_step });
        }
        self.bytes.extend_from_slice(view);
        self.raw += view.len() / view_step * raw_step;
    }

    fn finish<'a>(self) -> (Cow<'a, [u8]>, Vec<Run>) {
        (Cow::Owned(self.bytes), self.runs)
    }

    fn narrow<'a>(body: &[u8], base: usize) -> (Cow<'a, [u8]>, Vec<Run>) {
        let mut out = Builder::new(base, body.len());
        let mut from = 0;
        for at in memmem::find_iter(body, b"\r\n") {
            if from < at {
                out.push(&body[from..at], 1, 1);
            }
            out.push(b"\n", 1, 2);
            from = at + 2;
        }
        if from < body.len() {
            out.push(&body[from..], 1, 1);
        }
        out.finish()
    }

    fn legacy<'a>(
        body: &[u8],
        base: usize,
        encoding: &'static encoding_rs::Encoding,
    ) -> (Cow<'a, [u8]>, Vec<Run>) {
        let mut out = Builder::new(base, body.len() + body.len() / 2);
        let mut decoder = Legacy::new(encoding);
        let mut at = 0;
        while at < body.len() {
            let plain =
                body[at..].iter().position(|b| !b.is_ascii() || *b == b'\r').unwrap_or(body.len() - at);
            if plain > 0 {
                out.push(&body[at..at + plain], 1, 1);
                at += plain;
            } else if body[at..].starts_with(b"\r\n") {
                out.push(b"\n", 1, 2);
                at += 2;
            } else if let Some((utf8, taken)) = decoder.next(&body[at..]) {
                out.push(utf8, utf8.len(), taken);
                at += taken;
            } else {
                out.push(&[NO_CHARACTER], 1, 1);
                at += 1;
            }
        }
        out.finish()
    }

    fn wide<'a>(body: &[u8], base: usize, encoding: Encoding) -> (Cow<'a, [u8]>, Vec<Run>) {
        let mut out = Builder::new(base, body.len());
        let mut units = codec::wide_chars(body, encoding).peekable();
        while let Some(unit) = units.next() {
            let next_is_lf = units.peek().is_some_and(|next| next.ch == Some('\n'));
            match (unit.ch, unit.surrogate) {
                (Some('\r'), _) if next_is_lf => {
                    units.next();
                    out.push(b"\n", 1, 2 * unit.len);
                }
                (Some(ch), _) => {
                    let mut utf8 = [0; 4];
                    let utf8 = ch.encode_utf8(&mut utf8).as_bytes();
                    out.push(utf8, utf8.len(), unit.len);
                }
                (None, Some(lone)) => {
                    // The generalised UTF-8 of a surrogate: three bytes that are never valid UTF-8.
                    let [high, low] = lone.to_be_bytes();
                    let wtf8 = [0xed, 0x80 | (high & 0x0f) << 2 | low >> 6, 0x80 | low & 0x3f];
                    out.push(&wtf8, 3, unit.len);
                }
                (None, None) => out.push(&[NO_CHARACTER], 1, unit.len),
            }
        }
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_the_view_counts_them() {
        let narrow: [&[u8]; 8] =
            [b"", b"\n", b"a", b"a\n", b"a\n\nb", b"a\r\nb\r\n", b"\r\n\n", b"\xef\xbb\xbfa\nb"];
        let wide: [&[u8]; 3] = [b"\xff\xfea\0\n\0b\0", b"\xfe\xff\0a\0\n", b"\xff\xfe"];
        for raw in narrow.into_iter().chain(wide) {
            let form = crate::detect(raw, None).unwrap();
            assert_eq!(line_count(raw, &form), View::new(raw, &form).line_count(), "{raw:?}");
        }
    }
}
