//! The envelope `*** Begin Patch` … `*** End Patch`, with sections that add, delete, update and move files.

use crate::diff::Tag;
use crate::patch::blocks;
use crate::patch::body::{self, Body};
use crate::patch::headers;
use crate::patch::model::{FilePatch, Hunk, Malformed, Op};
use crate::patch::source::Source;
use crate::patch::unified::hint;

pub(super) const ACCEPTED: &str = "`*** Begin Patch`, then `*** Add File: P`, `*** Delete File: P` or `*** Update File: P` (then perhaps `*** Move to: Q`) with hunks of `@@ [a line above]` and lines that begin with a space, `-` or `+`, last `*** End Patch`";

const BEGIN: &[u8] = b"*** Begin Patch";
const END: &[u8] = b"*** End Patch";
const EOF: &[u8] = b"*** End of File";
const ADD: &[u8] = b"*** Add File:";
const DELETE: &[u8] = b"*** Delete File:";
const UPDATE: &[u8] = b"*** Update File:";
const MOVE: &[u8] = b"*** Move to:";

/// Whether a line can only be one of an envelope.
pub(super) fn is_mark(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text == BEGIN || text == END || [ADD, DELETE, UPDATE].iter().any(|mark| text.starts_with(mark))
}

/// The file patches of all envelopes, the first of which begins at index `at`.
pub(super) fn parse(source: &Source<'_>, at: usize) -> Result<Vec<FilePatch>, Malformed> {
    let mut files = Vec::new();
    let mut at = at;
    while let Some(text) = source.text(at) {
        if text.trim_ascii() == BEGIN {
            at = envelope(source, at + 1, &mut files)?;
        } else if is_mark(text) {
            return Err(source.malformed(at, "a section outside of an envelope", ACCEPTED));
        } else if headers::begins(source, at) || blocks::opens(text) {
            return Err(source.malformed(
                at,
                "another grammar after an envelope: one patch, one grammar",
                ACCEPTED,
            ));
        } else {
            at += 1;
        }
    }
    Ok(files)
}

/// One envelope from the line after its first; the index after its last.
fn envelope(source: &Source<'_>, at: usize, files: &mut Vec<FilePatch>) -> Result<usize, Malformed> {
    let before = files.len();
    let mut at = at;
    loop {
        if source.text(at).is_none() {
            return Err(source.malformed(
                at,
                "`*** End Patch` is missing: the patch may be cut off",
                ACCEPTED,
            ));
        }
        let text = source.trimmed(at);
        if text == END && files.len() == before {
            return Err(source.malformed(at, "an envelope without a section", ACCEPTED));
        } else if text == END {
            return Ok(at + 1);
        } else if text.is_empty() {
            at += 1;
        } else {
            let (file, next) = section(source, at)?;
            files.push(file);
            at = next;
        }
    }
}

/// The path behind a section's mark.
fn path_of(source: &Source<'_>, at: usize, mark: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    match source.trimmed(at).strip_prefix(mark).map(<[u8]>::trim_ascii) {
        Some(b"") => Err(source.malformed(at, "a section without a path", ACCEPTED)),
        path => Ok(path.map(<[u8]>::to_vec)),
    }
}

fn section(source: &Source<'_>, at: usize) -> Result<(FilePatch, usize), Malformed> {
    let file = |path: Vec<u8>, op: Op, hunks: Vec<Hunk>| FilePatch {
        path,
        op,
        old_mode: None,
        new_mode: None,
        hunks,
        binary: None,
        states_content: false,
        line: source.number(at),
    };
    if let Some(path) = path_of(source, at, ADD)? {
        let (hunk, next) = added(source, at)?;
        return Ok((file(path, Op::Add, vec![hunk]), next));
    }
    if let Some(path) = path_of(source, at, DELETE)? {
        return Ok((file(path, Op::Delete, Vec::new()), at + 1));
    }
    if let Some(path) = path_of(source, at, UPDATE)? {
        let to = path_of(source, at + 1, MOVE)?;
        let (hunks, next) = hunks(source, at + 1 + usize::from(to.is_some()))?;
        return match to {
            Some(to) => Ok((file(to, Op::Rename { from: path }, hunks), next)),
            None if hunks.is_empty() => Err(source.malformed(at, "an update without a hunk", ACCEPTED)),
            None => Ok((file(path, Op::Update, hunks), next)),
        };
    }
    let what = match headers::begins(source, at) {
        true => "a unified diff inside an envelope: one patch, one grammar",
        false => "no section begins so",
    };
    Err(source.malformed(at, what, ACCEPTED))
}

/// The lines of a new file.
fn added(source: &Source<'_>, at: usize) -> Result<(Hunk, usize), Malformed> {
    let mut hunk = Hunk { line: source.number(at), ..Hunk::default() };
    let mut next = at + 1;
    while let Some(text) = source.text(next) {
        match text.strip_prefix(b"+") {
            Some(text) => hunk.lines.push(body::line(Tag::New, text)),
            None if is_section_end(source, next) => break,
            None => {
                return Err(source.malformed(next, "every line of a new file begins with `+`", ACCEPTED));
            }
        }
        next += 1;
    }
    Ok((hunk, next))
}

/// Whether nothing but empty lines stands before the next `*** ` or the end.
fn is_section_end(source: &Source<'_>, at: usize) -> bool {
    let next = (at..source.len()).map(|n| source.trimmed(n)).find(|text| !text.is_empty());
    next.is_none_or(|text| text.starts_with(b"*** "))
}

/// The hunks of an update.
fn hunks(source: &Source<'_>, at: usize) -> Result<(Vec<Hunk>, usize), Malformed> {
    let mut hunks = Vec::new();
    let mut at = at;
    loop {
        while at < source.len() && source.trimmed(at).is_empty() {
            at += 1;
        }
        let is_head = source.trimmed(at).starts_with(b"@@");
        if at >= source.len() || (ends(source, at) && !is_head) {
            return Ok((hunks, at));
        }
        if !is_head && !hunks.is_empty() {
            return Err(source.malformed(at, "a further hunk begins with `@@`", ACCEPTED));
        }
        if headers::begins(source, at) {
            return Err(source.malformed(
                at,
                "a unified diff inside an envelope: one patch, one grammar",
                ACCEPTED,
            ));
        }
        let (hunk, next) = hunk(source, at)?;
        hunks.push(hunk);
        at = next;
    }
}

fn hunk(source: &Source<'_>, at: usize) -> Result<(Hunk, usize), Malformed> {
    let mut hunk = Hunk { line: source.number(at), ..Hunk::default() };
    let mut next = at;
    while let Some(rest) = source.trimmed(next).strip_prefix(b"@@") {
        hint(source, next, rest, &mut hunk, ACCEPTED)?;
        next += 1;
    }
    let Body { lines, bare, next } = body::uncounted(source, next, |n| ends(source, n));
    if lines.is_empty() {
        return Err(source.malformed(next, "a hunk without lines", ACCEPTED));
    }
    body::check_markers(source, at, &lines, ACCEPTED)?;
    hunk.eof = source.trimmed(next) == EOF;
    let next = next + usize::from(hunk.eof);
    (hunk.lines, hunk.bare, hunk.marked) = (lines, bare, true);
    let insertion = hunk.old_lines().next().is_none();
    hunk.eof |= insertion && hunk.anchors.is_empty() && hunk.old_start.is_none();
    Ok((hunk, next))
}

/// Whether the line at index `at` is not part of a hunk.
fn ends(source: &Source<'_>, at: usize) -> bool {
    let text = source.text(at).unwrap_or_default();
    let mark =
        text.starts_with(b"@@") || text.starts_with(b"*** ") || is_mark(text) || text.trim_ascii() == EOF;
    // Behind a space it is a line of the file, if the envelope has an end further down.
    let end = |n: usize| source.text(n).is_some_and(|text| text.trim_ascii_end() == END);
    mark && !(text.starts_with(b" ") && (at + 1..source.len()).any(end))
}
