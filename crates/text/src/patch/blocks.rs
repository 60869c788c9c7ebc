//! SEARCH/REPLACE blocks: a path, the text that stands there, and the text that shall stand there.

use crate::patch::body;
use crate::patch::envelope;
use crate::patch::headers;
use crate::patch::model::{FilePatch, Hunk, Malformed, Op};
use crate::patch::source::Source;

pub(super) const ACCEPTED: &str = "a line with the path, then `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`, each mark once a block";

/// The marks of one block: what its first line looks like decides the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    open: u8,
    close: u8,
    length: usize,
}

/// How often a mark's character stands at the start of a line, and what follows.
fn run(text: &[u8], mark: u8) -> Option<(usize, &[u8])> {
    let length = text.iter().take_while(|b| **b == mark).count();
    (5..=9).contains(&length).then(|| (length, text[length..].trim_ascii()))
}

fn opening(text: &[u8]) -> Option<Marks> {
    [(b'<', b'>'), (b'-', b'+')].into_iter().find_map(|(open, close)| {
        let (length, word) = run(text.trim_ascii_end(), open)?;
        let fits = word == b"SEARCH" || (open == b'<' && word == b"SEARCH>");
        fits.then_some(Marks { open, close, length })
    })
}

/// Whether a line opens a block.
pub(super) fn opens(text: &[u8]) -> bool {
    opening(text).is_some()
}

/// What a line within a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Open,
    Middle,
    Close,
}

impl Marks {
    /// The kind of a line; `strict` asks for marks as long as the first one.
    fn kind(self, text: &[u8], strict: bool) -> Kind {
        let text = text.trim_ascii_end();
        let long = |length: usize| !strict || length == self.length;
        let is = |mark: u8, word: &[u8]| {
            run(text, mark).is_some_and(|(length, rest)| long(length) && rest == word)
        };
        if opening(text).is_some_and(|marks| marks.open == self.open && long(marks.length)) {
            Kind::Open
        } else if is(b'=', b"") {
            Kind::Middle
        } else if is(self.close, b"REPLACE") {
            Kind::Close
        } else {
            Kind::Text
        }
    }

    /// Whether a line is a mark behind a backslash, which keeps it from being one.
    fn is_escaped(self, text: &[u8]) -> bool {
        text.strip_prefix(b"\\").is_some_and(|text| self.kind(text, false) != Kind::Text)
    }
}

/// The file patches of all blocks, in order; each block is one, because it sees what the one before left.
pub(super) fn parse(source: &Source<'_>) -> Result<Vec<FilePatch>, Malformed> {
    let mut files: Vec<FilePatch> = Vec::new();
    let (mut at, mut after) = (0, 0);
    while let Some(text) = source.text(at) {
        if let Some(marks) = opening(text) {
            let before = files.last().map(|file| file.path.clone());
            let Some(path) = path_above(source, after, at).or(before) else {
                return Err(source.malformed(at, "no path stands above this block", ACCEPTED));
            };
            let (file, next) = block(source, at, marks, path)?;
            files.push(file);
            (at, after) = (next, next);
            continue;
        }
        if envelope::is_mark(text) || headers::begins(source, at) {
            return Err(source.malformed(
                at,
                "another grammar among blocks: one patch, one grammar",
                ACCEPTED,
            ));
        }
        at += 1;
    }
    Ok(files)
}

/// The path in the nearest line above that is neither empty nor a fence, within what follows the block before.
fn path_above(source: &Source<'_>, from: usize, at: usize) -> Option<Vec<u8>> {
    let fence = |text: &[u8]| text.starts_with(b"```") || text.starts_with(b"~~~");
    let line = (from..at).rev().map(|n| source.trimmed(n)).find(|text| !text.is_empty() && !fence(text))?;
    let decoration = |b: &u8| matches!(b, b'`' | b'*' | b'#' | b' ' | b'"' | b'\'');
    let start = line.iter().position(|b| !decoration(b))?;
    let end = line.iter().rposition(|b| !decoration(b) && *b != b':')? + 1;
    let path = line.get(start..end)?;
    // Words are no path unless they hold a sign of one.
    let words = path.contains(&b' ') && !path.contains(&b'/') && !path.contains(&b'.');
    let sentence = path.ends_with(b".") || path.windows(2).any(|pair| pair == b". ");
    (!words && !sentence).then(|| path.to_vec())
}

fn block(
    source: &Source<'_>,
    at: usize,
    marks: Marks,
    path: Vec<u8>,
) -> Result<(FilePatch, usize), Malformed> {
    let strict = middles(source, at, marks, true) == 1;
    let (mut middle, mut next) = (None, at + 1);
    loop {
        let Some(text) = source.text(next) else {
            return Err(source.malformed(next, "this block has no end: the patch may be cut off", ACCEPTED));
        };
        match marks.kind(text, strict) {
            Kind::Text => {}
            Kind::Middle if middle.is_none() => middle = Some(next),
            Kind::Close if middle.is_some() => break,
            _ => {
                let what = "this mark stands where none may; if it is text of the file, use the envelope or a unified diff";
                return Err(source.malformed(next, what, ACCEPTED));
            }
        }
        next += 1;
    }
    let middle = middle.unwrap_or(next);
    let mut hunk = Hunk { line: source.number(at), ..Hunk::default() };
    let first = at + 1 + start_line(source, at + 1, &mut hunk);
    let text = |range: std::ops::Range<usize>| -> Vec<&[u8]> {
        let lines = range.filter_map(|n| source.text(n));
        lines.map(|line| if marks.is_escaped(line) { &line[1..] } else { line }).collect()
    };
    let (old, new) = (text(first..middle), text(middle + 1..next));
    hunk.lines = body::compared(&old, &new);
    let op = if old.is_empty() { Op::Add } else { Op::Update };
    let file = FilePatch {
        path,
        op,
        old_mode: None,
        new_mode: None,
        hunks: vec![hunk],
        binary: None,
        states_content: false,
        line: source.number(at),
    };
    Ok((file, next + 1))
}

/// How many lines up to the end of the block could be its middle.
fn middles(source: &Source<'_>, at: usize, marks: Marks, strict: bool) -> usize {
    let lines = (at + 1..source.len()).filter_map(|n| source.text(n));
    let kinds = lines.map(|text| marks.kind(text, strict));
    kinds.take_while(|kind| *kind != Kind::Close).filter(|kind| *kind == Kind::Middle).count()
}

/// Takes up `:start_line:N` (and the `-------` after it) at index `at`; how many lines that were.
fn start_line(source: &Source<'_>, at: usize, hunk: &mut Hunk) -> usize {
    let Some(number) = source.trimmed(at).strip_prefix(b":start_line:") else {
        return 0;
    };
    let number = std::str::from_utf8(number.trim_ascii()).ok().and_then(|text| text.parse::<usize>().ok());
    hunk.old_start = number.filter(|n| (1..1 << 40).contains(n));
    let ruled = run(source.trimmed(at + 1), b'-').is_some_and(|(_, rest)| rest.is_empty());
    1 + usize::from(ruled)
}
