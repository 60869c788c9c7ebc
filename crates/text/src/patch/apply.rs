//! Hunks put into the bytes of a file: all of them, or none and for each that does not fit the reason.

use std::ops::Range;

use crate::codec::Unmappable;
use crate::diff::{DiffLine, Tag};
use crate::edit::Level;
use crate::form::{Break, Encoding, Eol, Form};
use crate::patch::miss::{self, Miss};
use crate::patch::model::Hunk;
use crate::patch::place::{Field, Problem, is_unended};
use crate::splice::Out;

/// A file with hunks applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The new raw bytes of the whole file; every byte outside the changed lines is as it was.
    pub bytes: Vec<u8>,
    /// Where each hunk landed, in the order given.
    pub landed: Vec<Landed>,
    /// What differs from what was sent, one sentence each.
    pub notes: Vec<String>,
}

/// Where a hunk landed. Lines count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// Its [`Hunk::ordinal`].
    pub hunk: usize,
    /// First line in the old file, and number of lines, context included; with 0 lines, the line before which it inserts.
    pub old: (usize, usize),
    /// The same in the new file.
    pub new: (usize, usize),
    /// How many lines below its stated one it stands (above: negative); 0 where none is stated.
    pub drift: isize,
    /// How closely it fits: [`Level::Exact`], [`Level::Eol`] or [`Level::FinalNewline`].
    pub level: Level,
}

/// Hunks do not fit; nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} hunk(s) do not fit", misses.len())]
pub struct Misfit {
    /// One for each hunk that does not fit, in the order given.
    pub misses: Vec<Miss>,
    /// How many would have fitted.
    pub fit: usize,
}

impl Misfit {
    /// Whether the file has everything already.
    pub fn is_applied(&self) -> bool {
        self.fit == 0 && self.misses.iter().all(|miss| miss.cause == miss::Cause::AlreadyApplied)
    }
}

/// Applies the hunks of one file to `raw`, whose form is `form`, leaving out those whose ordinals are in `skip`.
///
/// A hunk goes where its context and old lines stand exactly (but for LF against CRLF) if that is one place. Of several, the one
/// at its stated line, corrected by how far the hunk before was off, is taken, or the only one that belongs to its anchor;
/// else it is refused. Lone carriage returns are line breaks only where nothing fits otherwise. All hunks are placed in the file as it was, in any order; changes that overlap are refused. Lines that
/// state the very breaks of the file are stored as stated; where the hunk fits only up to line endings, a new line takes the
/// ending of the line it replaces, else of its neighbour. A file without a final newline keeps having none, unless the hunk
/// says otherwise. A pure insertion needs an anchor, an empty file, or to say that it belongs at the end; a number alone,
/// as in a diff without context, is no place that could be verified.
///
/// # Errors
/// [`Misfit`], with a [`Miss`] for each hunk that does not fit.
pub fn apply(raw: &[u8], form: &Form, hunks: &[Hunk], skip: &[usize]) -> Result<Applied, Misfit> {
    let wanted: Vec<&Hunk> = hunks.iter().filter(|hunk| !skip.contains(&hunk.ordinal)).collect();
    let form = &told_with_bom(form, &wanted);
    let mut field = Field::new(raw, form);
    let mut results = placed(&field, &wanted);
    if results.iter().any(|result| matches!(result, Err(Problem::NotThere)))
        && let Some(broken) = field.broken_at_cr()
    {
        let found = placed(&broken, &wanted);
        if found.iter().all(Result::is_ok) {
            (field, results) = (broken, found);
        }
    }
    refuse_overlaps(&wanted, &mut results);
    if results.iter().all(Result::is_ok) {
        let lines: Vec<usize> = results.iter().flatten().copied().collect();
        let applied = build(&field, &wanted, &lines);
        match applied {
            Ok(applied) if applied.bytes != raw => return Ok(applied),
            Ok(_) => results.iter_mut().for_each(|result| *result = Err(Problem::Same)),
            Err((index, problem)) => {
                if let Some(result) = results.get_mut(index) {
                    *result = Err(problem);
                }
            }
        }
    }
    let fit = results.iter().filter(|result| result.is_ok()).count();
    let failed = wanted.into_iter().zip(results).filter_map(|(hunk, result)| Some((hunk, result.err()?)));
    Err(Misfit { misses: miss::explain(&field, failed.collect()), fit })
}

/// The form as the hunks see it: git shows a byte order mark as part of the first line, and so a patch may take it away.
fn told_with_bom(form: &Form, hunks: &[&Hunk]) -> Form {
    let told = |hunk: &&Hunk| {
        hunk.old_lines().next().is_some_and(|line| line.text.starts_with("\u{feff}".as_bytes()))
    };
    let as_text = form.bom && form.encoding == Encoding::Utf8 && hunks.iter().any(told);
    Form { bom: form.bom && !as_text, ..*form }
}

/// The line of each hunk, or why it has none.
fn placed(field: &Field<'_>, hunks: &[&Hunk]) -> Vec<Result<usize, Problem>> {
    let mut drift = 0;
    let place = |hunk: &&Hunk| {
        let found = field.place(hunk, drift);
        if let Ok(line) = found {
            drift = stated_drift(hunk, line).unwrap_or(drift);
        }
        found
    };
    hunks.iter().map(place).collect()
}

/// How far below its stated line a hunk with old lines stands.
fn stated_drift(hunk: &Hunk, line: usize) -> Option<isize> {
    hunk.old_lines().next()?;
    Some(isize::try_from(line).ok()? - isize::try_from(hunk.old_start?).ok()?)
}

/// Changed lines of a hunk that follow each other.
struct Edit<'h> {
    /// Index of the hunk.
    hunk: usize,
    /// The lines that are replaced, half open; an empty range inserts before its start.
    old: Range<usize>,
    /// The lines that stand there then.
    new: Vec<&'h DiffLine>,
}

/// The edits of all placed hunks in file order.
fn edits<'h>(hunks: &[&'h Hunk], lines: impl Iterator<Item = (usize, usize)>) -> Vec<Edit<'h>> {
    let mut edits: Vec<Edit<'h>> = Vec::new();
    for (index, first) in lines {
        let Some(hunk) = hunks.get(index) else { continue };
        let (mut at, mut open) = (first, false);
        for line in &hunk.lines {
            if line.tag != Tag::Same && !open {
                edits.push(Edit { hunk: index, old: at..at, new: Vec::new() });
            }
            open = line.tag != Tag::Same;
            at += usize::from(line.tag != Tag::New);
            match (line.tag, edits.last_mut()) {
                (Tag::Old, Some(edit)) => edit.old.end = at,
                (Tag::New, Some(edit)) => edit.new.push(line),
                _ => {}
            }
        }
    }
    edits.sort_by_key(|edit| (edit.old.start, edit.old.end));
    edits
}

/// Refuses, of two hunks that change the same lines or insert at the same point, the later one.
fn refuse_overlaps(hunks: &[&Hunk], results: &mut [Result<usize, Problem>]) {
    let lines =
        results.iter().enumerate().filter_map(|(index, result)| Some((index, *result.as_ref().ok()?)));
    let edits = edits(hunks, lines);
    for pair in edits.windows(2) {
        let [above, below] = pair else { continue };
        let same_point = above.old == below.old && above.old.is_empty();
        if above.hunk != below.hunk && (above.old.end > below.old.start || same_point) {
            let (first, second) = (above.hunk.min(below.hunk), above.hunk.max(below.hunk));
            let ordinal = hunks.get(first).map_or(0, |hunk| hunk.ordinal);
            if let Some(result) = results.get_mut(second) {
                *result = Err(Problem::Overlap(ordinal));
            }
        }
    }
}

/// The new bytes, all hunks being placed; the index of a hunk that cannot be stored, and why.
fn build(field: &Field<'_>, hunks: &[&Hunk], lines: &[usize]) -> Result<Applied, (usize, Problem)> {
    let mut writer = Writer { field, out: Out::new(field.raw, field.form, &field.view), from: 0 };
    for edit in edits(hunks, lines.iter().copied().enumerate()) {
        let (Some(hunk), Some(first)) = (hunks.get(edit.hunk), lines.get(edit.hunk)) else { continue };
        writer.edit(hunk, *first, &edit).map_err(|problem| (edit.hunk, problem))?;
    }
    writer.out.bytes.extend_from_slice(field.raw.get(writer.from..).unwrap_or_default());
    let notes = hunks.iter().zip(lines).flat_map(|(hunk, line)| notes(field, hunk, *line));
    Ok(Applied { bytes: writer.out.bytes, notes: notes.collect(), landed: landed(field, hunks, lines) })
}

/// What is odd about a hunk at `line`, though it fits.
fn notes(field: &Field<'_>, hunk: &Hunk, line: usize) -> impl Iterator<Item = String> {
    let (number, old, new) = (hunk.ordinal, hunk.old_lines().count(), hunk.new_lines().count());
    let miscounted = hunk.is_miscounted().then(|| {
        format!(
            "the numbers of lines that hunk {number} states are wrong; it has {old} old and {new} new ones"
        )
    });
    let repeats = |edge: Option<&DiffLine>, beside: usize| {
        let text = &edge.filter(|line| line.tag == Tag::New)?.text;
        let telling = text.iter().filter(|b| b.is_ascii_alphanumeric()).count() > 3;
        (telling && field.view.line(beside) == Some(text)).then(|| {
            format!("hunk {number} puts in a line beside line {beside}, which is the same: was it meant as context?")
        })
    };
    let above = line.checked_sub(1).and_then(|above| repeats(hunk.lines.first(), above));
    [miscounted, above, repeats(hunk.lines.last(), line + old)].into_iter().flatten()
}

fn landed(field: &Field<'_>, hunks: &[&Hunk], lines: &[usize]) -> Vec<Landed> {
    let growth = |hunk: &Hunk| hunk.new_lines().count() as isize - hunk.old_lines().count() as isize;
    let mut order: Vec<(usize, usize)> =
        lines.iter().copied().enumerate().map(|(index, line)| (line, index)).collect();
    order.sort_unstable();
    let (mut shift, mut found) = (0isize, Vec::with_capacity(hunks.len()));
    for (line, index) in order {
        let Some(hunk) = hunks.get(index) else { continue };
        let new = line.saturating_add_signed(shift);
        shift += growth(hunk);
        let landed = Landed {
            hunk: hunk.ordinal,
            old: (line, hunk.old_lines().count()),
            new: (new, hunk.new_lines().count()),
            drift: stated_drift(hunk, line).unwrap_or(0),
            level: level(field, hunk, line),
        };
        found.push((index, landed));
    }
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, landed)| landed).collect()
}

fn level(field: &Field<'_>, hunk: &Hunk, line: usize) -> Level {
    let last = hunk.old_lines().next_back();
    let end = line + hunk.old_lines().count();
    match () {
        () if field.one_break.is_some() || !field.has_breaks(hunk, line) => Level::Eol,
        () if last.is_some() && field.is_unended_at(end) && !is_unended(last) => Level::FinalNewline,
        () => Level::Exact,
    }
}

/// Copies what stays and writes what is new.
struct Writer<'w> {
    field: &'w Field<'w>,
    out: Out<'w>,
    /// Raw offset up to which the file is done.
    from: usize,
}

impl Writer<'_> {
    /// Writes one edit of a hunk whose first line stands at `first`.
    fn edit(&mut self, hunk: &Hunk, first: usize, edit: &Edit<'_>) -> Result<(), Problem> {
        let field = self.field;
        let start = field.raw_start(edit.old.start);
        // The file ends here without a break, and the hunk does not say whether it shall.
        let keeps_end = field.is_unended_at(edit.old.end) && !is_unended(hunk.old_lines().next_back());
        let drops_break = keeps_end && edit.new.is_empty() && edit.old.start > first;
        let upto = if drops_break { field.raw_end(edit.old.start - 1) } else { start };
        self.out.bytes.extend_from_slice(field.raw.get(self.from..upto).unwrap_or_default());
        self.from = field.raw_start(edit.old.end);
        if field.is_unended_at(edit.old.start) && edit.old.is_empty() && !edit.new.is_empty() {
            self.out.push_break(field.view.as_bytes().len());
        }
        let verbatim = field.states_breaks(hunk, first);
        let last = edit.new.len().saturating_sub(1);
        for (index, line) in edit.new.iter().enumerate() {
            let twin = edit.old.start + index;
            let twin = edit.old.contains(&twin).then_some(twin);
            self.text(line, twin).map_err(|(ch, at)| unstorable(hunk, line, ch, at, field.form.encoding))?;
            match line.ending {
                _ if index == last && keeps_end => {}
                None if index == last && edit.old.end > field.view.line_count() => {}
                Some(kind) if verbatim => self.out.push_break_as(kind.as_str()),
                _ if let Some(text) = field.one_break => self.out.push_break_as(text),
                _ => self.out.push_break(field.start(twin.unwrap_or(edit.old.end.saturating_sub(1)))),
            }
        }
        Ok(())
    }

    /// The text of a new line, `twin` being the line that it replaces.
    fn text(&mut self, line: &DiffLine, twin: Option<usize>) -> Result<(), (Option<char>, usize)> {
        let unmappable = |bad: Unmappable| (Some(bad.ch), bad.at);
        let Ok(text) = std::str::from_utf8(&line.text) else {
            if !matches!(self.field.form.encoding, Encoding::Utf8 | Encoding::UnknownAscii) {
                return Err((None, 0));
            }
            self.out.bytes.extend_from_slice(&line.text);
            return Ok(());
        };
        let old = twin.and_then(|n| Some((n, std::str::from_utf8(self.field.view.line(n)?).ok()?)));
        match old {
            Some((n, old)) => self.out.text_over(self.field.start(n), old, text).map_err(unmappable),
            None => self.out.push(text).map_err(unmappable),
        }
    }
}

/// The refusal for a line that the file's encoding cannot store.
fn unstorable(hunk: &Hunk, line: &DiffLine, ch: Option<char>, at: usize, encoding: Encoding) -> Problem {
    let index = hunk.lines.iter().position(|other| std::ptr::eq(other, line)).unwrap_or(0);
    let before = line.text.get(..at).unwrap_or_default();
    let column = String::from_utf8_lossy(before).chars().count() + 1;
    Problem::NotEncodable { ch, encoding, line: index + 1, column }
}

impl Field<'_> {
    /// View offset of the start of a line; of the last line beyond the end.
    fn start(&self, line: usize) -> usize {
        let last = line.clamp(1, self.view.line_count().max(1));
        self.view.line_range(last).map_or(0, |range| range.start)
    }

    /// Raw offset of the start of a line; the end of the file beyond the last.
    fn raw_start(&self, line: usize) -> usize {
        let start = self.view.line_range(line).and_then(|range| self.view.raw_at(range.start));
        start.unwrap_or(self.raw.len())
    }

    /// Raw offset of the end of a line, before its break.
    fn raw_end(&self, line: usize) -> usize {
        let end = self.view.line_range(line).and_then(|range| self.view.raw_at(range.end));
        end.unwrap_or(self.raw.len())
    }

    /// Whether `line` is the one after the last, and the last has no break.
    fn is_unended_at(&self, line: usize) -> bool {
        let count = self.view.line_count();
        count > 0 && line == count + 1 && self.view.ending(count).is_none()
    }

    /// Whether the breaks of the hunk's lines are meant as they stand: those of its old lines are the file's own. Where there are
    /// none to compare, it must state CRLF, or know a file of mixed breaks down to its missing last one.
    fn states_breaks(&self, hunk: &Hunk, first: usize) -> bool {
        let old = hunk.old_lines().count();
        let comparable = (first..first + old).any(|line| self.view.ending(line).is_some());
        if self.one_break.is_some() || comparable {
            return self.one_break.is_none() && self.has_breaks(hunk, first);
        }
        let knows_end = self.form.eol == Eol::Mixed && is_unended(hunk.old_lines().next_back());
        knows_end || hunk.lines.iter().any(|line| line.ending == Some(Break::Crlf))
    }
}

/// Whether a file that is to be deleted holds exactly what the hunks of the deletion say; nothing, where there are none.
///
/// # Errors
/// [`Misfit`] where they do not fit, or where lines would be left over.
pub fn check_deleted(raw: &[u8], form: &Form, hunks: &[Hunk]) -> Result<(), Misfit> {
    if hunks.is_empty() && raw.len() <= form.bom_len() {
        return Ok(());
    }
    let field = Field::new(raw, form);
    let left = |hunk: &Hunk, line| Misfit {
        misses: miss::explain(&field, vec![(hunk, Problem::Left(line))]),
        fit: 0,
    };
    let Some(hunk) = hunks.first() else {
        return Err(left(&Hunk { ordinal: 1, ..Hunk::default() }, 1));
    };
    let applied = apply(raw, form, hunks, &[])?;
    if applied.bytes.len() <= form.bom_len() {
        return Ok(());
    }
    let first = applied.landed.first().map_or((1, 0), |landed| landed.old);
    Err(left(hunk, if first.0 > 1 { 1 } else { first.0 + first.1 }))
}
