//! Edits: finding the one place that is meant, all or nothing over several edits. Nothing here guesses: a doubt is an error.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr_iter, memmem};
use thiserror::Error;

use crate::breaks::Breaks;
use crate::diagnose::{self, Cause, Miss, Near, Suggestion};
use crate::form::{Break, Encoding, Eol, Form};
use crate::show::{clip, visible_window};
use crate::splice::{self, Patch, Span};
use crate::view::View;

/// One wanted replacement. Both texts are literal.
#[derive(Clone, Copy, Debug)]
pub struct EditSpec<'a> {
    /// The text that stands in the file, as the view shows it.
    pub old: &'a str,
    /// What shall stand there.
    pub new: &'a str,
    /// Every occurrence instead of the only one.
    pub replace_all: bool,
    /// Which of several exact matches: the one that starts on this line (from 1).
    pub line: Option<usize>,
}

/// Match levels weaker than exact that are applied without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// Spaces and tabs at line ends may differ.
    pub trailing_space: bool,
    /// Typographic quotes, dashes and spaces may stand for plain ones.
    pub punctuation: bool,
    /// Every line may be shifted by the same indent, or use tabs for spaces throughout.
    pub indent: bool,
}

impl Tolerance {
    /// From the names of `[edits] tolerant`: `trailing-space`, `punctuation`, `indent`.
    ///
    /// # Errors
    /// The first name that is none of these.
    pub fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Tolerance, &'n str> {
        let mut found = Tolerance::default();
        for name in names {
            match name {
                "trailing-space" => found.trailing_space = true,
                "punctuation" => found.punctuation = true,
                "indent" => found.indent = true,
                other => return Err(other),
            }
        }
        Ok(found)
    }

    fn allows(self, level: Level) -> bool {
        match level {
            Level::Exact | Level::Eol => true,
            Level::TrailingSpace => self.trailing_space,
            Level::Punctuation => self.punctuation,
            Level::Tabs | Level::Spaces | Level::Indent(_) => self.indent,
            Level::FinalNewline | Level::Reading => false,
        }
    }
}

/// How closely old text fits, from strict to weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Byte for byte.
    Exact,
    /// Exact but for LF against CRLF.
    Eol,
    /// Old text ends with a line break where the file ends without one.
    FinalNewline,
    /// But for spaces and tabs at line ends.
    TrailingSpace,
    /// But for typographic quotes, dashes and spaces.
    Punctuation,
    /// The file indents with tabs where old text has spaces.
    Tabs,
    /// The file indents with spaces where old text has tabs.
    Spaces,
    /// The file is indented by so many characters more (or less) on every line.
    Indent(i32),
    /// Old text is read otherwise: without fences, escapes or echoed numbers, or its unchanged lines as the file has them.
    Reading,
}

impl Level {
    /// The name on the wire: `exact`, `eol`, `final-newline`, `trailing-space`, `punctuation`, `indent(tabs)`, `indent(spaces)`, `indent(+4)`, `reading`.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Level::Exact => "exact",
            Level::Eol => "eol",
            Level::FinalNewline => "final-newline",
            Level::TrailingSpace => "trailing-space",
            Level::Punctuation => "punctuation",
            Level::Tabs => "indent(tabs)",
            Level::Spaces => "indent(spaces)",
            Level::Reading => "reading",
            Level::Indent(by) => return Cow::Owned(format!("indent({by:+})")),
        })
    }
}

/// The result of [`apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The new raw bytes of the whole file.
    pub bytes: Vec<u8>,
    /// What was replaced, in file order; every byte outside is as it was.
    pub spans: Vec<Span>,
    /// The weakest level that was needed.
    pub level: Level,
    /// Number of replacements of each edit.
    pub counts: Vec<usize>,
    /// What differs from what was sent, one sentence each.
    pub notes: Vec<String>,
}

/// One of several places where old text stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Lines of the match, from 1, inclusive.
    pub lines: (usize, usize),
    /// The first line of the match, as a reader sees it, clipped at 120 bytes.
    pub text: String,
    /// The line before that tells it apart (less indented, else the nearest that is not blank): number and text.
    pub before: Option<(usize, String)>,
}

/// Why nothing was changed. `item` is the index (from 0) of the edit at fault; the edits before it are dropped too.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// Old text is empty: creating a file is not an edit.
    #[error("old_text is empty")]
    EmptyOld {
        /// Index of the edit.
        item: usize,
    },
    /// Nothing would change.
    #[error("old_text and new_text are the same")]
    Same {
        /// Index of the edit.
        item: usize,
        /// They differ in line endings only, which an edit keeps.
        eol_only: bool,
    },
    /// Old text is not there.
    #[error("old_text is not there: {}", miss.detail)]
    NotFound {
        /// Index of the edit.
        item: usize,
        /// The diagnosis.
        miss: Box<Miss>,
    },
    /// Old text stands at several places.
    #[error("old_text occurs {count} times")]
    Ambiguous {
        /// Index of the edit.
        item: usize,
        /// How many places there are.
        count: usize,
        /// The first lines of up to 20 of them.
        lines: Vec<usize>,
        /// Up to 5 of them in detail.
        places: Vec<Place>,
    },
    /// The file's encoding has no such character.
    #[error("{encoding} has no {ch:?} (line {line}, column {column} of the new text)")]
    NotEncodable {
        /// Index of the edit.
        item: usize,
        /// The first such character.
        ch: char,
        /// The file's encoding.
        encoding: Encoding,
        /// Its line in the new text, from 1.
        line: usize,
        /// Its column in the new text in characters, from 1.
        column: usize,
    },
}

impl EditError {
    /// Index (from 0) of the edit at fault.
    pub fn item(&self) -> usize {
        match self {
            EditError::EmptyOld { item }
            | EditError::Same { item, .. }
            | EditError::NotFound { item, .. }
            | EditError::Ambiguous { item, .. }
            | EditError::NotEncodable { item, .. } => *item,
        }
    }
}

/// Applies `edits` in order to `raw`, each to the result of the one before. `form` is the form of `raw`.
/// Exact matches, also up to line endings, must be unique (or `replace_all`, or `line`); weaker ones only as `tolerance` allows.
///
/// # Errors
/// [`EditError`]; then nothing is changed at all.
pub fn apply(
    raw: &[u8],
    form: &Form,
    edits: &[EditSpec<'_>],
    tolerance: &Tolerance,
) -> Result<Edited, EditError> {
    let mut now = Cow::Borrowed(raw);
    let mut patches: Vec<Patch> = Vec::new();
    let (mut level, mut counts, mut notes) = (Level::Exact, Vec::new(), Vec::new());
    for (item, spec) in edits.iter().enumerate() {
        let step = step(&now, form, item, spec, *tolerance)?;
        level = level.max(step.level);
        counts.push(step.patches.len());
        notes.extend(step.notes);
        let next = splice::write(&now, &step.patches);
        patches = splice::compose(patches, step.patches, &now);
        now = Cow::Owned(next);
    }
    if *now == *raw {
        return Err(EditError::Same { item: edits.len().saturating_sub(1), eol_only: false });
    }
    let bytes = now.into_owned();
    if !raw.is_empty() && form.final_newline && !bytes.is_empty() && !ends_with_break(&bytes, form) {
        notes.push("the file no longer ends with a line break".to_owned());
    }
    let spans = splice::spans(patches, raw, &bytes, form);
    Ok(Edited { bytes, spans, level, counts, notes })
}

fn ends_with_break(bytes: &[u8], form: &Form) -> bool {
    let body = &bytes[form.bom_len().min(bytes.len())..];
    Breaks::of(form).start_of_line(body, body.len()) == body.len()
}

/// What one edit does to the bytes before it.
struct Step {
    patches: Vec<Patch>,
    level: Level,
    notes: Vec<String>,
}

fn step(
    now: &[u8],
    form: &Form,
    item: usize,
    spec: &EditSpec<'_>,
    tolerance: Tolerance,
) -> Result<Step, EditError> {
    if spec.old.is_empty() {
        return Err(EditError::EmptyOld { item });
    }
    if spec.old == spec.new {
        return Err(EditError::Same { item, eol_only: false });
    }
    let old = Needle::new(spec.old);
    let new = to_lf(spec.new);
    if old.lf == new {
        return Err(EditError::Same { item, eol_only: true });
    }
    let view = View::new(now, form);
    let target = Target { now, form, view: &view, item };
    if let Some(step) = target.exact(spec, &old, &new)? {
        return Ok(step);
    }
    if let Some(step) = target.echoed(spec)? {
        return Ok(step);
    }
    let miss = target.diagnose(spec, &old, &new);
    match &miss.suggestion {
        Some(s) if !spec.replace_all && s.sole && s.levels.iter().all(|level| tolerance.allows(*level)) => {
            target.tolerated(s)
        }
        _ => Err(EditError::NotFound { item, miss: Box::new(miss) }),
    }
}

/// Text with LF for every CRLF.
pub(crate) fn to_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// Old text, ready for the search.
struct Needle<'a> {
    lf: Cow<'a, str>,
    /// The breaks as sent, where at least one is CRLF.
    breaks: Option<Vec<Break>>,
}

impl<'a> Needle<'a> {
    fn new(sent: &'a str) -> Needle<'a> {
        let lf = to_lf(sent);
        let kind = |at: usize| if sent[..at].ends_with('\r') { Break::Crlf } else { Break::Lf };
        let breaks =
            matches!(lf, Cow::Owned(_)).then(|| memchr_iter(b'\n', sent.as_bytes()).map(kind).collect());
        Needle { lf, breaks }
    }
}

/// The file as one edit finds it.
struct Target<'t> {
    now: &'t [u8],
    form: &'t Form,
    view: &'t View<'t>,
    item: usize,
}

impl Target<'_> {
    /// The step for matches that are exact, or exact up to line endings; `None` where there is none.
    fn exact(&self, spec: &EditSpec<'_>, old: &Needle<'_>, new: &str) -> Result<Option<Step>, EditError> {
        let hits = match (spec.replace_all, spec.line) {
            (_, Some(line)) => self.hits_on(old.lf.as_bytes(), line),
            (true, None) => self.hits(old.lf.as_bytes()),
            (false, None) => self.with_overlapping(self.hits(old.lf.as_bytes()), old.lf.as_bytes()),
        };
        let hits = self.prefer_sent_breaks(hits, old);
        match hits.len() {
            0 => return Ok(None),
            1 => {}
            _ if spec.replace_all => {}
            _ => return Err(self.ambiguous(&hits)),
        }
        if let Some(doubtful) = hits.iter().find(|hit| !is_whole(self.view, self.form, hit)) {
            return Err(self.doubt(doubtful));
        }
        let level = hits.iter().map(|hit| self.exactness(hit, old)).max().unwrap_or(Level::Exact);
        let mut notes: Vec<String> =
            hits.iter().find_map(|hit| self.indent_note(hit, new)).into_iter().collect();
        let mut patches = Vec::with_capacity(hits.len());
        for hit in hits {
            patches.extend(self.patch(hit, &old.lf, new)?);
        }
        if spec.new.contains("\r\n") && self.form.eol != Eol::Crlf {
            notes.push("new_text has CRLF line breaks; they are stored as the file's own".to_owned());
        }
        Ok(Some(Step { patches, level, notes }))
    }

    /// Old text with less indent than the file fits inside the file's indent; the further lines of new text then stand too far left.
    fn indent_note(&self, hit: &Range<usize>, new: &str) -> Option<String> {
        let line = self.view.line_of(hit.start);
        let before = &self.view.as_bytes()[self.view.line_range(line)?.start..hit.start];
        let inside = !before.is_empty() && before.trim_ascii().is_empty();
        let indented = matches!(self.view.as_bytes().get(hit.start), Some(b' ' | b'\t'));
        (inside && indented && new.trim_end().contains('\n')).then(|| {
            let count = before.len();
            format!("old_text has {count} characters of indent less than line {line}; the lines of new_text after its first were not shifted")
        })
    }

    fn patch(&self, hit: Range<usize>, old: &str, new: &str) -> Result<Option<Patch>, EditError> {
        let Some(range) = self.view.raw_range(hit.clone()) else {
            return Ok(None);
        };
        let bytes = splice::rebuild(self.now, self.form, self.view, hit.start, old, new)
            .map_err(|bad| self.not_encodable(&bad, new))?;
        Ok(Some(Patch { range, bytes }))
    }

    fn not_encodable(&self, bad: &crate::codec::Unmappable, new: &str) -> EditError {
        let (line, column) = line_and_column(new, bad.at);
        EditError::NotEncodable { item: self.item, ch: bad.ch, encoding: self.form.encoding, line, column }
    }

    /// View ranges of the occurrences, from left to right without overlap.
    fn hits(&self, old: &[u8]) -> Vec<Range<usize>> {
        let all = memmem::find_iter(self.view.as_bytes(), old).map(|at| at..at + old.len());
        all.filter(|hit| self.view.raw_range(hit.clone()).is_some()).collect()
    }

    /// A single occurrence with one that overlaps it, if there is: that is ambiguous too.
    fn with_overlapping(&self, mut hits: Vec<Range<usize>>, old: &[u8]) -> Vec<Range<usize>> {
        if let [only] = hits.as_slice() {
            let from = only.start + 1;
            let to = (only.end + old.len() - 1).min(self.view.as_bytes().len());
            let at = self.view.as_bytes().get(from..to).and_then(|part| memmem::find(part, old));
            let overlapping = at.map(|at| from + at..from + at + old.len());
            hits.extend(overlapping.filter(|hit| self.view.raw_range(hit.clone()).is_some()));
        }
        hits
    }

    /// Occurrences that start on a line.
    fn hits_on(&self, old: &[u8], line: usize) -> Vec<Range<usize>> {
        let Some(range) = self.view.line_range(line) else {
            return Vec::new();
        };
        let bytes = self.view.as_bytes();
        let mut hits = Vec::new();
        let mut from = range.start;
        while from <= range.end {
            let to = (range.end + old.len()).min(bytes.len());
            let Some(at) = bytes.get(from..to).and_then(|part| memmem::find(part, old)) else { break };
            let hit = from + at..from + at + old.len();
            from = hit.start + 1;
            hits.extend(self.view.raw_range(hit.clone()).map(|_| hit));
            if hits.len() > 1 {
                break;
            }
        }
        hits
    }

    /// A caller who spells CRLF means the places that have it there, if there are any.
    fn prefer_sent_breaks(&self, hits: Vec<Range<usize>>, old: &Needle<'_>) -> Vec<Range<usize>> {
        if old.breaks.is_none() || hits.len() < 2 {
            return hits;
        }
        let same: Vec<_> =
            hits.iter().filter(|hit| self.exactness(hit, old) == Level::Exact).cloned().collect();
        if same.is_empty() { hits } else { same }
    }

    fn exactness(&self, hit: &Range<usize>, old: &Needle<'_>) -> Level {
        let bytes = &self.view.as_bytes()[hit.clone()];
        let mut sent = old.breaks.iter().flatten().copied();
        let breaks = memchr_iter(b'\n', bytes).count();
        let same = (self.view.line_of(hit.start)..).take(breaks).all(|line| {
            let wanted = if old.breaks.is_some() { sent.next() } else { Some(Break::Lf) };
            self.view.ending(line) == wanted
        });
        if same { Level::Exact } else { Level::Eol }
    }

    fn doubt(&self, hit: &Range<usize>) -> EditError {
        let lines = self.lines(hit);
        let detail = format!(
            "the file's encoding is unknown, and at line {} old_text begins right after a byte that is not ASCII, perhaps inside a character; \
             begin old_text elsewhere, or declare the encoding (charset in .editorconfig)",
            lines.0
        );
        let text = visible_window(self.view, lines.0, lines.1, 400);
        let near = Near { lines, alike: lines.1 - lines.0 + 1, of: lines.1 - lines.0 + 1, text };
        let miss = Miss { cause: Cause::Encoding, detail, nearest: vec![near], suggestion: None };
        EditError::NotFound { item: self.item, miss: Box::new(miss) }
    }

    fn lines(&self, hit: &Range<usize>) -> (usize, usize) {
        let last = hit.end.saturating_sub(1).max(hit.start);
        (self.view.line_of(hit.start), self.view.line_of(last))
    }

    fn ambiguous(&self, hits: &[Range<usize>]) -> EditError {
        let lines = hits.iter().take(20).map(|hit| self.lines(hit).0).collect();
        let places = hits.iter().take(5).map(|hit| self.place(hit)).collect();
        EditError::Ambiguous { item: self.item, count: hits.len(), lines, places }
    }

    fn place(&self, hit: &Range<usize>) -> Place {
        let lines = self.lines(hit);
        let text = |n: usize| clip(self.view.line(n).unwrap_or_default(), 120).text.into_owned();
        let indent =
            |n: usize| self.view.line(n).map_or(0, |line| line.len() - line.trim_ascii_start().len());
        let filled = |n: &usize| self.view.line(*n).is_some_and(|line| !line.trim_ascii().is_empty());
        let mut above = (lines.0.saturating_sub(200).max(1)..lines.0).rev().filter(filled);
        let nearest = above.clone().next();
        let outer = above.find(|n| indent(*n) < indent(lines.0));
        Place { lines, text: text(lines.0), before: outer.or(nearest).map(|n| (n, text(n))) }
    }

    /// Old text whose every line carries the `N|` of a read answer: taken off, if it then stands at the very lines that it names.
    fn echoed(&self, spec: &EditSpec<'_>) -> Result<Option<Step>, EditError> {
        let Some(echo) = Echo::of(spec) else {
            return Ok(None);
        };
        let Some(range) = self.view.line_range(echo.first) else {
            return Ok(None);
        };
        if spec.replace_all
            || spec.line.is_some_and(|line| line != echo.first)
            || !self.view.as_bytes()[range.start..].starts_with(echo.old.as_bytes())
        {
            return Ok(None);
        }
        let hit = range.start..range.start + echo.old.len();
        if echo.old == echo.new {
            return Err(EditError::Same { item: self.item, eol_only: false });
        }
        let level = self.exactness(&hit, &Needle::new(&echo.old));
        let patches = self.patch(hit, &echo.old, &echo.new)?.into_iter().collect();
        Ok(Some(Step { patches, level, notes: vec![echo.note()] }))
    }

    fn diagnose(&self, spec: &EditSpec<'_>, old: &Needle<'_>, new: &str) -> Miss {
        let mut miss = diagnose::diagnose(self.view, &old.lf, new);
        if let Some(line) = spec.line
            && let [hit, ..] = self.hits(old.lf.as_bytes()).as_slice()
        {
            let lines = self.lines(hit);
            miss.cause = Cause::Line;
            miss.detail = format!("old_text does not start on line {line}; it stands at line {}", lines.0);
            miss.suggestion = None;
            return miss;
        }
        miss.suggestion = miss.suggestion.filter(|suggestion| self.fits(suggestion));
        if miss.suggestion.is_none() && miss.cause != Cause::AlreadyApplied {
            let proposed = crate::patch::proposed(self.now, self.form, &old.lf, new, &miss);
            miss.suggestion = proposed.into_iter().find(|suggestion| self.fits(suggestion));
        }
        miss
    }

    /// Whether a suggestion would be applied as it stands.
    fn fits(&self, suggestion: &Suggestion) -> bool {
        let sure = EditSpec { old: &suggestion.old, new: &suggestion.new, replace_all: false, line: None };
        let (needle, new) = (Needle::new(sure.old), to_lf(sure.new));
        matches!(self.exact(&sure, &needle, &new), Ok(Some(_)))
    }

    /// Applies a suggestion that the settings allow unasked.
    fn tolerated(&self, suggestion: &Suggestion) -> Result<Step, EditError> {
        let spec = EditSpec { old: &suggestion.old, new: &suggestion.new, replace_all: false, line: None };
        let step = self.exact(&spec, &Needle::new(spec.old), &to_lf(spec.new))?;
        let Some(step) = step else {
            return Err(EditError::Same { item: self.item, eol_only: false });
        };
        let notes = vec![format!("not byte for byte what you sent: {}", suggestion.why)];
        Ok(Step { level: suggestion.level, patches: step.patches, notes })
    }
}

/// In a file of unknown encoding an ASCII byte right after a byte above 0x7F may be the second half of one character
/// (Shift_JIS, GBK, Big5 have such): a match that starts there is no proof.
pub(crate) fn is_whole(view: &View<'_>, form: &Form, hit: &Range<usize>) -> bool {
    if form.encoding != Encoding::UnknownAscii {
        return true;
    }
    let bytes = view.as_bytes();
    let could_be_second = bytes.get(hit.start).is_some_and(|b| *b >= 0x30);
    // A character of UTF-8 is told by its own bytes, whatever stands before it.
    let is_char = |len: usize| {
        hit.start.checked_sub(len).is_some_and(|from| std::str::from_utf8(&bytes[from..hit.start]).is_ok())
    };
    let after_odd_byte = hit.start > 0 && !(1..=4).any(is_char);
    !(could_be_second && after_odd_byte)
}

/// Line and column (in characters), both from 1, of a byte offset.
pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |n| n + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Texts whose lines were copied with the line numbers of a read answer.
struct Echo {
    first: usize,
    old: String,
    new: String,
    from_new: bool,
}

impl Echo {
    fn of(spec: &EditSpec<'_>) -> Option<Echo> {
        let (first, old) = without_numbers(&to_lf(spec.old), true)?;
        let new = to_lf(spec.new);
        match without_numbers(&new, false) {
            Some((_, new)) => Some(Echo { first, old, new, from_new: true }),
            // Numbers on some lines only are no echo that can be told from text.
            None if new.lines().any(|line| split_number(line).is_some()) => None,
            None => Some(Echo { first, old, new: new.into_owned(), from_new: false }),
        }
    }

    fn note(&self) -> String {
        let of = if self.from_new { "old_text and new_text" } else { "old_text" };
        format!("the line numbers `N|` were taken off every line of {of}")
    }
}

/// The first number and the text without its `N|` prefixes; `None` unless every line has one (and they count up, if `consecutive`).
fn without_numbers(text: &str, consecutive: bool) -> Option<(usize, String)> {
    let mut out = String::with_capacity(text.len());
    let mut first = None;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let (number, rest) = split_number(line)?;
        let start = *first.get_or_insert(number);
        if consecutive && number != start + index {
            return None;
        }
        out.push_str(rest);
    }
    first.map(|first| (first, out))
}

fn split_number(line: &str) -> Option<(usize, &str)> {
    let (number, rest) = line.split_once('|')?;
    let digits = number.trim_start_matches(' ');
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}
