//! Why a hunk does not fit, in words, with what the file has instead, and a hunk that would fit.

use std::fmt;

use crate::diagnose::{self, Diagnosis, Near};
use crate::patch::model::Hunk;
use crate::patch::place::{Field, Problem, joined};
use crate::patch::suggest;
use crate::show::{clip, visible};

/// The cause of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The old lines are not there; how they differ from what is there.
    Text(diagnose::Cause),
    /// They stand at several places.
    Ambiguous,
    /// What the hunk would do is done already.
    AlreadyApplied,
    /// A line behind `@@` is not there, stands at several places, or below the old lines.
    Anchor,
    /// The hunk says that it ends where the file ends, but does not.
    End,
    /// It only inserts, and nothing says where.
    NoPlace,
    /// It changes what another hunk changes.
    Overlap,
    /// It changes nothing.
    Same,
    /// Lines of a deleted file are left over.
    Left,
    /// The file's encoding has no such character.
    NotEncodable,
}

impl Cause {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Text(cause) => cause.name(),
            Cause::Ambiguous => "ambiguous",
            Cause::AlreadyApplied => "already-applied",
            Cause::Anchor => "anchor",
            Cause::End => "end-of-file",
            Cause::NoPlace => "no-place",
            Cause::Overlap => "overlap",
            Cause::Same => "same",
            Cause::Left => "left-over",
            Cause::NotEncodable => "not-encodable",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A hunk that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Its [`Hunk::ordinal`].
    pub hunk: usize,
    /// Why.
    pub cause: Cause,
    /// One sentence (without a final period) that says what differs and where.
    pub detail: String,
    /// The first line that differs from the file.
    pub differs: Option<Differs>,
    /// First lines (from 1) of the places that come into question, at most 20.
    pub candidates: Vec<usize>,
    /// Up to 5 places that resemble the old lines, nearest first.
    pub nearest: Vec<Near>,
    /// A hunk that would apply, for the caller to accept.
    pub suggestion: Option<Suggested>,
}

/// A line of a hunk that is not as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// The line of the file, from 1.
    pub line: usize,
    /// What the file has there, the invisible made visible, at most 200 bytes; `None` after its last line.
    pub file: Option<String>,
    /// What the hunk has there, in the same way.
    pub patch: String,
}

/// A hunk that fits where the one that was sent does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggested {
    /// The hunk; it applies to the file as it is.
    pub hunk: Hunk,
    /// The first line (from 1) where it applies.
    pub line: usize,
    /// What was changed in it, in words.
    pub why: String,
}

/// Places that are listed.
const LISTED: usize = 20;

/// Bytes of a line that are shown.
const SHOWN: usize = 200;

/// Misses of one file that are diagnosed in full: the first tell what is wrong with the others.
const DIAGNOSED: usize = 5;

/// The misses of hunks that have no place.
pub(super) fn explain(field: &Field<'_>, failed: Vec<(&Hunk, Problem)>) -> Vec<Miss> {
    let mut diagnosis = None;
    let explained = failed.into_iter().enumerate().map(|(index, (hunk, problem))| {
        let diagnosis =
            (index < DIAGNOSED).then(|| &*diagnosis.get_or_insert_with(|| Diagnosis::new(&field.view)));
        explain_one(field, diagnosis, hunk, problem)
    });
    explained.collect()
}

fn explain_one(field: &Field<'_>, diagnosis: Option<&Diagnosis<'_>>, hunk: &Hunk, problem: Problem) -> Miss {
    let found = match (&problem, diagnosis) {
        (Problem::NotThere | Problem::Bare, Some(diagnosis)) => told(diagnosis, hunk),
        _ => None,
    };
    let suggestion = diagnosis.and_then(|_| suggest::suggestion(field, hunk, &problem, found.as_ref()));
    let (cause, detail, mut candidates) = words(hunk, problem);
    candidates.truncate(LISTED);
    let mut miss = Miss {
        hunk: hunk.ordinal,
        cause,
        detail,
        differs: None,
        candidates,
        nearest: Vec::new(),
        suggestion,
    };
    if let Some(found) = found {
        let near = found.nearest.first().map(|near| near.lines.0).or(hunk.old_start);
        miss.differs = near.and_then(|line| differs(field, hunk, line));
        if miss.cause == Cause::Text(diagnose::Cause::Unknown) {
            (miss.cause, miss.detail) = (Cause::Text(found.cause), found.detail);
        }
        miss.nearest = found.nearest;
    }
    miss
}

/// The diagnosis of a hunk's lines; `None` where they are no text.
fn told(diagnosis: &Diagnosis<'_>, hunk: &Hunk) -> Option<diagnose::Miss> {
    let old = String::from_utf8(joined(hunk.old_lines())).ok()?;
    let new = String::from_utf8(joined(hunk.new_lines())).ok()?;
    let mut found = diagnosis.of(&old, &new, true);
    // The diagnosis speaks of an edit's arguments.
    for text in
        [&mut found.detail].into_iter().chain(found.suggestion.as_mut().map(|suggestion| &mut suggestion.why))
    {
        *text = text.replace("old_text", "the hunk").replace("new_text", "its new lines");
    }
    Some(found)
}

/// The first line at which a hunk differs from the file, if its first old line stood at `first`.
fn differs(field: &Field<'_>, hunk: &Hunk, first: usize) -> Option<Differs> {
    let mut olds = hunk.old_lines();
    for line in first.max(1).. {
        let (file, old) = (field.view.line(line), olds.next());
        if old.is_none() || file != old.map(|old| old.text.as_slice()) {
            let patch = shown(&old?.text);
            return Some(Differs { line, file: file.map(shown), patch });
        }
    }
    None
}

/// Cause, sentence and places of a problem.
fn words(hunk: &Hunk, problem: Problem) -> (Cause, String, Vec<usize>) {
    match problem {
        Problem::NotThere => {
            (Cause::Text(diagnose::Cause::Unknown), "its old lines are not there".to_owned(), Vec::new())
        }
        Problem::Bare => {
            let detail =
                "some of its lines begin with neither a space, `-` nor `+`, so what stands there is in doubt";
            (Cause::Text(diagnose::Cause::Spacing), detail.to_owned(), Vec::new())
        }
        Problem::Several(lines) => {
            let stated =
                hunk.old_start.map_or(String::new(), |line| format!(", but not at its stated line {line}"));
            let detail =
                format!("its old lines stand at {} places (lines {}){stated}", lines.len(), listed(&lines));
            (Cause::Ambiguous, detail, lines)
        }
        Problem::Applied(line) => {
            let detail = format!("what it makes of the file already stands at line {line}");
            (Cause::AlreadyApplied, detail, vec![line])
        }
        Problem::NotAtEnd(lines) => {
            let detail =
                format!("its old lines stand at line {}, not at the end of the file", listed(&lines));
            (Cause::End, detail, lines)
        }
        Problem::FinalNewline(line) => {
            let detail = "it says that the file ends without a line break, but it ends with one";
            (Cause::End, detail.to_owned(), vec![line])
        }
        Problem::NoPlace => {
            let detail = "it only inserts, and neither context nor a line behind `@@` says where";
            (Cause::NoPlace, detail.to_owned(), hunk.old_start.into_iter().collect())
        }
        Problem::Overlap(other) => {
            (Cause::Overlap, format!("it changes lines that hunk {other} changes too"), Vec::new())
        }
        Problem::Same => (Cause::Same, "it changes nothing".to_owned(), Vec::new()),
        Problem::Left(line) => {
            let detail = format!("line {line} is not among the lines that the patch deletes with the file");
            (Cause::Left, detail, vec![line])
        }
        Problem::Anchor(index, lines) => (Cause::Anchor, anchor_words(hunk, index, &lines), lines),
        Problem::AboveAnchor { place, anchor } => {
            let detail = format!(
                "its old lines stand only at line {place}, above line {anchor}, which it names behind `@@`"
            );
            (Cause::Anchor, detail, vec![place])
        }
        Problem::NotEncodable { ch, encoding, line, column } => {
            let lacks = match ch {
                Some(ch) => format!("{encoding} has no {ch:?}"),
                None => format!("bytes that are not UTF-8 cannot be stored as {encoding}"),
            };
            let detail = format!("{lacks} (line {line} of the hunk, column {column})");
            (Cause::NotEncodable, detail, Vec::new())
        }
    }
}

/// What is wrong with the anchor of this index, which stands at these lines.
fn anchor_words(hunk: &Hunk, index: usize, lines: &[usize]) -> String {
    let text = hunk.anchors.get(index).map(|text| shown(text)).unwrap_or_default();
    match lines {
        [] => format!("no line is `{text}`"),
        lines => format!("`{text}` stands at {} lines ({})", lines.len(), listed(lines)),
    }
}

/// The first five numbers.
fn listed(lines: &[usize]) -> String {
    let some: Vec<String> = lines.iter().take(5).map(usize::to_string).collect();
    format!("{}{}", some.join(", "), if lines.len() > some.len() { ", …" } else { "" })
}

/// A line of the file or the hunk, as a reader can tell it.
fn shown(text: &[u8]) -> String {
    visible(&text[..clip(text, SHOWN).taken])
}
