//! Line diffs of two versions of a file, cheap for a small change in a large one, and the questions asked of them.

use std::borrow::Cow;
use std::fmt::Write;
use std::hash::Hash;
use std::ops::Range;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use crate::breaks::Breaks;
use crate::form::{Break, Form};
use crate::show::{clip, visible};
use crate::view::View;

/// Which side a line of a hunk stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// In both.
    Same,
    /// Only in the old version.
    Old,
    /// Only in the new version.
    New,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Its side.
    pub tag: Tag,
    /// Its content as the view has it, without break.
    pub text: Vec<u8>,
    /// Its break; `None` for a last line without one.
    pub ending: Option<Break>,
}

/// Changed lines with their context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// First line in the old version, from 1; with `old_len` 0 the line before.
    pub old_start: usize,
    /// Lines in the old version.
    pub old_len: usize,
    /// First line in the new version, from 1; with `new_len` 0 the line before.
    pub new_start: usize,
    /// Lines in the new version.
    pub new_len: usize,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// A diff of two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The hunks in file order; none when the versions are equal.
    pub hunks: Vec<Hunk>,
    /// What changed besides lines (encoding, byte order mark), one sentence each.
    pub notes: Vec<String>,
}

impl Diff {
    /// Lines (added, removed).
    pub fn stat(&self) -> (usize, usize) {
        let count = |tag| self.hunks.iter().flat_map(|h| &h.lines).filter(|l| l.tag == tag).count();
        (count(Tag::New), count(Tag::Old))
    }

    /// The diff as text within `max_bytes`, each line ended by LF; what does not fit is said in a last line.
    /// With `seen` the invisible is made visible, else lines are shown plainly. Where a hunk changes line endings, CRLF is `␍`.
    pub fn render(&self, max_bytes: usize, seen: bool) -> String {
        let mut out: String = self.notes.iter().map(|note| format!("! {note}\n")).collect();
        let total: usize = self.hunks.iter().map(|hunk| hunk.lines.len()).sum();
        let mut done = 0;
        for hunk in &self.hunks {
            let mut text =
                format!("@@ -{},{} +{},{} @@\n", hunk.old_start, hunk.old_len, hunk.new_start, hunk.new_len);
            let mixed = hunk.mixes_endings();
            for line in &hunk.lines {
                text.push_str(&line.render(mixed, seen));
                if out.len() + text.len() + LEFT_OUT > max_bytes && (done > 0 || total > 1) {
                    let _ = writeln!(out, "…[{} of {total} diff lines left out]…", total - done);
                    return out;
                }
                out.push_str(&std::mem::take(&mut text));
                done += 1;
            }
        }
        out
    }
}

/// Room for the sentence about what was left out.
const LEFT_OUT: usize = 64;

/// The longest line that a rendered diff shows in full, in bytes.
const LINE_BYTES: usize = 400;

impl Hunk {
    /// Whether changed lines differ in how they end.
    fn mixes_endings(&self) -> bool {
        let has = |ending| self.lines.iter().any(|l| l.tag != Tag::Same && l.ending == Some(ending));
        has(Break::Lf) && has(Break::Crlf)
    }
}

impl Hunk {
    /// Adds what context is missing below a change that slid down to where the common end was cut off.
    fn complete(&mut self, context: usize, after: &[Line<'_>]) {
        let below = self.lines.iter().rev().take_while(|line| line.tag == Tag::Same).count();
        for line in after.iter().take(context.saturating_sub(below)) {
            self.lines.push(line.with(Tag::Same));
            self.old_start += usize::from(self.old_len == 0);
            self.new_start += usize::from(self.new_len == 0);
            self.old_len += 1;
            self.new_len += 1;
        }
    }
}

impl DiffLine {
    fn render(&self, mark_crlf: bool, seen: bool) -> String {
        let sign = match self.tag {
            Tag::Same => ' ',
            Tag::Old => '-',
            Tag::New => '+',
        };
        let part = clip(&self.text, LINE_BYTES);
        let text = if seen { Cow::Owned(visible(&self.text[..part.taken])) } else { part.text };
        let cut = if part.left > 0 { format!("…[{} bytes]", part.left) } else { String::new() };
        let ending = match self.ending {
            Some(Break::Crlf) if mark_crlf => "␍\n",
            Some(_) => "\n",
            None => "\n\\ No newline at end of file\n",
        };
        format!("{sign}{text}{cut}{ending}")
    }
}

/// The line diff between two versions with `context` unchanged lines around each change.
pub fn unified(old: &[u8], old_form: &Form, new: &[u8], new_form: &Form, context: usize) -> Diff {
    let mut notes = Vec::new();
    if old_form.encoding != new_form.encoding {
        notes.push(format!("encoding {} becomes {}", old_form.encoding, new_form.encoding));
    }
    match (old_form.bom, new_form.bom) {
        (false, true) => notes.push("a byte order mark is added".to_owned()),
        (true, false) => notes.push("the byte order mark is taken off".to_owned()),
        _ => {}
    }
    let pair = Pair::new(old, old_form, new, new_form, context);
    let (olds, news) = (lines(&pair.old), lines(&pair.new));
    let ops = capture_diff_slices(Algorithm::Histogram, &olds, &news);
    let groups = group_diff_ops(ops, context)
        .into_iter()
        .filter(|group| group.iter().any(|op| op.tag() != DiffTag::Equal));
    let mut hunks: Vec<Hunk> = groups.map(|group| hunk(&group, &olds, &news, pair.skipped)).collect();
    if let Some(last) = hunks.last_mut() {
        last.complete(context, &lines(&pair.after));
    }
    Diff { hunks, notes }
}

fn hunk(group: &[DiffOp], olds: &[Line<'_>], news: &[Line<'_>], skipped: usize) -> Hunk {
    let mut lines = Vec::new();
    for op in group {
        let (old, new) = (&olds[op.old_range()], &news[op.new_range()]);
        if op.tag() == DiffTag::Equal {
            lines.extend(old.iter().map(|line| line.with(Tag::Same)));
        } else {
            lines.extend(old.iter().map(|line| line.with(Tag::Old)));
            lines.extend(new.iter().map(|line| line.with(Tag::New)));
        }
    }
    let span = |range: fn(&DiffOp) -> Range<usize>| {
        let start = group.first().map_or(0, |op| range(op).start);
        let len = group.last().map_or(0, |op| range(op).end) - start;
        (skipped + start + usize::from(len > 0), len)
    };
    let (old_start, old_len) = span(DiffOp::old_range);
    let (new_start, new_len) = span(DiffOp::new_range);
    Hunk { old_start, old_len, new_start, new_len, lines }
}

/// One line as it is compared: content and ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Line<'l> {
    text: &'l [u8],
    ending: Option<Break>,
}

impl Line<'_> {
    fn with(self, tag: Tag) -> DiffLine {
        DiffLine { tag, text: self.text.to_vec(), ending: self.ending }
    }
}

fn lines<'v>(view: &'v View<'_>) -> Vec<Line<'v>> {
    (1..=view.line_count())
        .map(|n| Line { text: view.line(n).unwrap_or_default(), ending: view.ending(n) })
        .collect()
}

/// The differing middle of two versions as views.
struct Pair<'p> {
    /// Lines before the middle, alike in both.
    skipped: usize,
    old: View<'p>,
    new: View<'p>,
    /// The first lines of what was cut off behind the middle.
    after: View<'p>,
}

impl<'p> Pair<'p> {
    /// Cuts off what is alike at both ends, but for `context` lines, before any line is looked at: a small change in a large file stays cheap.
    fn new(old: &'p [u8], old_form: &Form, new: &'p [u8], new_form: &Form, context: usize) -> Pair<'p> {
        let (old, new) =
            (&old[old_form.bom_len().min(old.len())..], &new[new_form.bom_len().min(new.len())..]);
        let (bare_old, bare_new) = (Form { bom: false, ..*old_form }, Form { bom: false, ..*new_form });
        if bare_old.encoding != bare_new.encoding {
            let (old, new) = (View::new(old, &bare_old), View::new(new, &bare_new));
            return Pair { skipped: 0, old, new, after: View::new(b"", &bare_old) };
        }
        let breaks = Breaks::of(old_form);
        let mut head = breaks.start_of_line(old, common_head(old, new));
        for _ in 0..context {
            head = breaks.start_of_line(old, head.saturating_sub(1));
        }
        let skipped = breaks.count(&old[..head]);
        let mut tail = common_tail(&old[head..], &new[head..]);
        let first = old.len() - tail;
        tail = old.len() - (0..=context).fold(first, |at, _| breaks.next_line(old, at));
        let (old, after) = old[head..].split_at(old.len() - tail - head);
        let new = &new[head..new.len() - tail];
        let after = &after[..(0..context).fold(0, |at, _| breaks.next_line(after, at))];
        let after = View::new(after, &bare_old);
        Pair { skipped, old: View::new(old, &bare_old), new: View::new(new, &bare_new), after }
    }
}

fn common_head(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 4096;
    let blocks = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(x, y)| x == y).count() * STEP;
    blocks + a[blocks..].iter().zip(&b[blocks..]).take_while(|(x, y)| x == y).count()
}

fn common_tail(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 4096;
    let blocks = a.rchunks_exact(STEP).zip(b.rchunks_exact(STEP)).take_while(|(x, y)| x == y).count() * STEP;
    let rest = a[..a.len() - blocks].iter().rev().zip(b[..b.len() - blocks].iter().rev());
    blocks + rest.take_while(|(x, y)| x == y).count()
}

/// The changed regions between two versions, in file order.
pub fn changed_regions(old: &[u8], old_form: &Form, new: &[u8], new_form: &Form) -> Vec<Region> {
    let pair = Pair::new(old, old_form, new, new_form, 0);
    let mut regions = regions(&lines(&pair.old), &lines(&pair.new));
    for region in &mut regions {
        for range in [&mut region.old, &mut region.new] {
            *range = range.start + pair.skipped + 1..range.end + pair.skipped + 1;
        }
    }
    regions
}

/// The differing index ranges (from 0) of two sequences, those that touch joined.
pub(crate) fn regions<T: Hash + Eq + Ord>(old: &[T], new: &[T]) -> Vec<Region> {
    let mut found: Vec<Region> = Vec::new();
    for op in capture_diff_slices(Algorithm::Histogram, old, new) {
        if op.tag() == DiffTag::Equal {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        match found.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => found.push(Region { old, new }),
        }
    }
    found
}

/// Lines (added, removed) between two versions.
pub fn stat(old: &[u8], old_form: &Form, new: &[u8], new_form: &Form) -> (usize, usize) {
    unified(old, old_form, new, new_form, 0).stat()
}

/// A change: lines of the old version that became lines of the new one. From 1, half open; an empty range lies before its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Lines in the old version.
    pub old: Range<usize>,
    /// Lines in the new version.
    pub new: Range<usize>,
}

/// Whether at least `margin` unchanged lines lie between every region and the lines `span` (from 1, inclusive) of the new version.
pub fn clear_of(regions: &[Region], span: (usize, usize), margin: usize) -> bool {
    regions.iter().all(|region| region.new.end + margin <= span.0 || span.1 + 1 + margin <= region.new.start)
}
