//! Replacements as raw bytes: what is new is encoded, what stays is copied, and every line break comes from the file.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::breaks::Breaks;
use crate::codec::{self, Unmappable};
use crate::form::{Encoding, Form};
use crate::view::View;

/// One replacement in raw bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    /// What is replaced, in the bytes that the patch was made for.
    pub(crate) range: Range<usize>,
    /// What stands there then.
    pub(crate) bytes: Vec<u8>,
}

/// A replaced stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Byte range in the old file.
    pub raw: Range<usize>,
    /// Lines touched in the old file, from 1, inclusive.
    pub lines_before: (usize, usize),
    /// Lines touched in the new file, from 1, inclusive; where all was taken out, the line that now stands there (the last line at the end).
    pub lines_after: (usize, usize),
    /// The new bytes.
    pub replacement: Vec<u8>,
}

/// The raw bytes for `new` in the place of `old`, which stands in the view at `at` (both with LF breaks). Lines and parts of
/// lines that `old` and `new` share are copied from the file; a new line takes the ending of the line it replaces, else of its neighbour.
pub(crate) fn rebuild(
    raw: &[u8],
    form: &Form,
    view: &View<'_>,
    at: usize,
    old: &str,
    new: &str,
) -> Result<Vec<u8>, Unmappable> {
    if form.encoding == Encoding::Utf8 && !old.contains('\n') && !new.contains('\n') {
        return Ok(new.as_bytes().to_vec());
    }
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut offsets = Vec::with_capacity(old_lines.len() + 1);
    offsets.push(at);
    offsets.extend(old_lines.iter().scan(at, |sum, line| {
        *sum += line.len();
        Some(*sum)
    }));
    let mut out = Out::new(raw, form, view);
    let mut new_at = 0;
    for op in capture_diff_slices(Algorithm::Histogram, &old_lines, &new_lines) {
        let (olds, news) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            out.copy(offsets[olds.start]..offsets[olds.end]);
            new_at += new_lines[news].iter().map(|line| line.len()).sum::<usize>();
            continue;
        }
        for (index, line) in new_lines[news].iter().enumerate() {
            let twin = olds.start + index;
            let result = if twin < olds.end {
                out.replace(offsets[twin], old_lines[twin], line)
            } else {
                let above = twin.min(olds.end).checked_sub(1);
                out.insert(line, above.map_or(at, |n| offsets[n]))
            };
            result.map_err(|bad| Unmappable { ch: bad.ch, at: new_at + bad.at })?;
            new_at += line.len();
        }
    }
    Ok(out.bytes)
}

/// Raw bytes in the making, for a file whose view is `view`.
pub(crate) struct Out<'o> {
    raw: &'o [u8],
    form: &'o Form,
    view: &'o View<'o>,
    pub(crate) bytes: Vec<u8>,
}

impl<'o> Out<'o> {
    pub(crate) fn new(raw: &'o [u8], form: &'o Form, view: &'o View<'o>) -> Out<'o> {
        Out { raw, form, view, bytes: Vec::new() }
    }

    /// Copies the stored bytes of a view range.
    fn copy(&mut self, range: Range<usize>) {
        if let Some(range) = self.view.raw_range(range) {
            self.bytes.extend_from_slice(&self.raw[range]);
        }
    }

    /// A new line for the old line at view offset `at`: what both begin and end with is copied.
    fn replace(&mut self, at: usize, old: &str, new: &str) -> Result<(), Unmappable> {
        let (old_text, new_text) = (old.trim_end_matches('\n'), new.trim_end_matches('\n'));
        self.text_over(at, old_text, new_text)?;
        match (old.len() > old_text.len(), new.len() > new_text.len()) {
            (true, true) => self.copy(at + old_text.len()..at + old.len()),
            (false, true) => self.push_break(at),
            _ => {}
        }
        Ok(())
    }

    /// `new` for `old`, which stands at view offset `at`; both lie within a line. What both begin and end with is copied.
    pub(crate) fn text_over(&mut self, at: usize, old: &str, new: &str) -> Result<(), Unmappable> {
        let whole = |offset: usize| self.view.raw_at(at + offset).is_some();
        let mut head = common(old.chars().zip(new.chars()));
        while !whole(head) {
            head -= old[..head].chars().next_back().map_or(head, char::len_utf8);
        }
        let mut tail = common(old[head..].chars().rev().zip(new[head..].chars().rev()));
        while !whole(old.len() - tail) {
            tail -= old[old.len() - tail..].chars().next().map_or(tail, char::len_utf8);
        }
        let middle = codec::encode(&new[head..new.len() - tail], self.form.encoding)
            .map_err(|bad| Unmappable { ch: bad.ch, at: head + bad.at })?;
        self.copy(at..at + head);
        self.bytes.extend_from_slice(&middle);
        self.copy(at + old.len() - tail..at + old.len());
        Ok(())
    }

    /// A line without a twin; its break is that of the line at view offset `near`.
    fn insert(&mut self, new: &str, near: usize) -> Result<(), Unmappable> {
        let text = new.trim_end_matches('\n');
        self.push(text)?;
        if text.len() < new.len() {
            self.push_break(near);
        }
        Ok(())
    }

    /// Text that the file has not yet.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), Unmappable> {
        self.bytes.extend(codec::encode(text, self.form.encoding)?);
        Ok(())
    }

    /// A break like that of the line at view offset `near`, or of its neighbours.
    pub(crate) fn push_break(&mut self, near: usize) {
        let line = self.view.line_of(near);
        let found = [line, line.saturating_sub(1), line + 1].into_iter().find_map(|n| self.view.ending(n));
        self.push_break_as(found.unwrap_or(self.form.majority).as_str());
    }

    /// This break, which has a meaning in every encoding.
    pub(crate) fn push_break_as(&mut self, text: &'static str) {
        self.bytes.extend(codec::encode(text, self.form.encoding).unwrap_or_default());
    }
}

/// Bytes of the equal characters at the start of two character sequences.
fn common(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

/// `raw` with `patches` (in order, not overlapping) applied.
pub(crate) fn write(raw: &[u8], patches: &[Patch]) -> Vec<u8> {
    let (gone, come) = patches.iter().fold((0, 0), |(g, c), p| (g + p.range.len(), c + p.bytes.len()));
    let mut out = Vec::with_capacity(raw.len() - gone + come);
    let mut from = 0;
    for patch in patches {
        out.extend_from_slice(&raw[from..patch.range.start]);
        out.extend_from_slice(&patch.bytes);
        from = patch.range.end;
    }
    out.extend_from_slice(&raw[from..]);
    out
}

/// One list of patches to the first bytes for `first`, then `second` made for the bytes `between` that `first` leads to.
pub(crate) fn compose(first: Vec<Patch>, second: Vec<Patch>, between: &[u8]) -> Vec<Patch> {
    if first.is_empty() {
        return second;
    }
    // Cut marks: both lists as pieces of the bytes between; what touches becomes one piece.
    let mut shift = 0isize;
    let firsts = first.into_iter().map(|patch| {
        let start = patch.range.start.saturating_add_signed(shift);
        shift += patch.bytes.len() as isize - patch.range.len() as isize;
        Piece { between: start..start + patch.bytes.len(), before: Some(patch.range), after: None }
    });
    let seconds = second.into_iter().map(|patch| Piece {
        between: patch.range,
        before: None,
        after: Some(patch.bytes),
    });
    let mut pieces: Vec<Piece> = firsts.chain(seconds).collect();
    pieces.sort_by_key(|piece| (piece.between.start, piece.between.end));
    let mut out: Vec<Patch> = Vec::new();
    let mut shift = 0isize;
    let mut group: Vec<Piece> = Vec::new();
    let mut end = 0;
    for piece in pieces {
        if !group.is_empty() && piece.between.start > end {
            out.push(merge(std::mem::take(&mut group), between, &mut shift));
        }
        end = if group.is_empty() { piece.between.end } else { end.max(piece.between.end) };
        group.push(piece);
    }
    if !group.is_empty() {
        out.push(merge(group, between, &mut shift));
    }
    out
}

/// A patch of either list, placed in the bytes between.
struct Piece {
    between: Range<usize>,
    /// Of the first list: the range in the first bytes.
    before: Option<Range<usize>>,
    /// Of the second list: the last bytes.
    after: Option<Vec<u8>>,
}

/// One patch for pieces that touch. `shift` is what leads from the bytes between back to the first bytes before the group.
fn merge(group: Vec<Piece>, between: &[u8], shift: &mut isize) -> Patch {
    let start = group.iter().map(|p| p.between.start).min().unwrap_or(0);
    let end = group.iter().map(|p| p.between.end).max().unwrap_or(start);
    let first_start = start.saturating_add_signed(*shift);
    for piece in &group {
        if let Some(before) = &piece.before {
            *shift += before.len() as isize - piece.between.len() as isize;
        }
    }
    let range = first_start..end.saturating_add_signed(*shift);
    let mut bytes = Vec::new();
    let mut from = start;
    for piece in group {
        if let Some(after) = piece.after {
            bytes.extend_from_slice(&between[from..piece.between.start]);
            bytes.extend(after);
            from = piece.between.end;
        }
    }
    bytes.extend_from_slice(&between[from..end]);
    Patch { range, bytes }
}

/// Patches of `raw`, of which `bytes` came, as spans with line numbers.
pub(crate) fn spans(patches: Vec<Patch>, raw: &[u8], bytes: &[u8], form: &Form) -> Vec<Span> {
    let (mut old, mut new) = (Lines::of(raw, form), Lines::of(bytes, form));
    let mut shift = 0isize;
    patches
        .into_iter()
        .map(|patch| {
            let start = patch.range.start.saturating_add_signed(shift);
            shift += patch.bytes.len() as isize - patch.range.len() as isize;
            let lines_after = new.touched(start..start + patch.bytes.len());
            let lines_before = old.touched(patch.range.clone());
            Span { raw: patch.range, lines_before, lines_after, replacement: patch.bytes }
        })
        .collect()
}

/// Counts lines along rising ranges, each byte once.
struct Lines<'l> {
    bytes: &'l [u8],
    bom: usize,
    breaks: Breaks,
    /// Up to here `count` breaks were seen.
    at: usize,
    count: usize,
}

impl<'l> Lines<'l> {
    fn of(raw: &'l [u8], form: &Form) -> Lines<'l> {
        let bom = form.bom_len().min(raw.len());
        Lines { bytes: &raw[bom..], bom, breaks: Breaks::of(form), at: 0, count: 0 }
    }

    /// The first and last line that a range (of the whole file, not before the one asked last) touches.
    fn touched(&mut self, range: Range<usize>) -> (usize, usize) {
        let (start, end) = (range.start.saturating_sub(self.bom), range.end.saturating_sub(self.bom));
        self.count += self.breaks.count(&self.bytes[self.at..start]);
        self.at = start;
        // After the last break there is no further line.
        let beyond = start == self.bytes.len() && self.breaks.start_of_line(self.bytes, start) == start;
        let first = (self.count + usize::from(!beyond)).max(1);
        let inner = &self.bytes[start..end];
        let last_break =
            usize::from(!inner.is_empty() && self.breaks.start_of_line(inner, inner.len()) == inner.len());
        (first, first + self.breaks.count(inner) - last_break)
    }
}
