//! The lines of a hunk: read by its stated numbers where they fit, else by their first characters.

use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::diff::{DiffLine, Tag};
use crate::form::Break;
use crate::patch::model::Malformed;
use crate::patch::source::Source;

/// The lines of a hunk and where they end.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) lines: Vec<DiffLine>,
    /// Lines without a first character of their own were taken for context.
    pub(super) bare: bool,
    /// The index of the first line after it.
    pub(super) next: usize,
}

/// A line with its break: CRLF if it ends in CR.
pub(super) fn line(tag: Tag, text: &[u8]) -> DiffLine {
    match text.strip_suffix(b"\r") {
        Some(text) => DiffLine { tag, text: text.to_vec(), ending: Some(Break::Crlf) },
        None => DiffLine { tag, text: text.to_vec(), ending: Some(Break::Lf) },
    }
}

/// What a line of a hunk says; `None` for one without a first character that marks it.
fn marked(text: &[u8]) -> Option<(Tag, &[u8])> {
    match text.split_first() {
        None => Some((Tag::Same, text)),
        Some((b' ', rest)) => Some((Tag::Same, rest)),
        Some((b'-', rest)) => Some((Tag::Old, rest)),
        Some((b'+', rest)) => Some((Tag::New, rest)),
        Some((b'\r', [])) => Some((Tag::Same, text)),
        Some(_) => None,
    }
}

/// `\ No newline at end of file`, in whatever language.
fn is_marker(text: &[u8]) -> bool {
    text.starts_with(b"\\ ")
}

/// Exactly the stated lines from index `at` on; `None` where that does not fit, or where more lines of a hunk follow.
pub(super) fn counted(
    source: &Source<'_>,
    at: usize,
    counts: (usize, usize),
    ends: impl Fn(usize) -> bool,
) -> Option<Body> {
    let (mut old, mut new) = counts;
    let mut body = Body { next: at, ..Body::default() };
    while old > 0 || new > 0 {
        let text = source.text(body.next)?;
        if is_marker(text) {
            body.lines.last_mut()?.ending = None;
        } else {
            let (tag, rest) = marked(text)?;
            old = if tag == Tag::New { old } else { old.checked_sub(1)? };
            new = if tag == Tag::Old { new } else { new.checked_sub(1)? };
            body.lines.push(line(tag, rest));
        }
        body.next += 1;
    }
    if source.text(body.next).is_some_and(is_marker) {
        body.lines.last_mut()?.ending = None;
        body.next += 1;
    }
    // What follows must not be more of the hunk, also not behind empty lines.
    let follows = (body.next..source.len()).find(|n| !source.trimmed(*n).is_empty());
    let more = follows.is_some_and(|n| !ends(n) && source.text(n).is_some_and(|text| marked(text).is_some()));
    (!more).then_some(body)
}

/// The lines from index `at` to where `ends` says, by their first characters. Empty lines at the end are no part of it, nor
/// is text without marks that follows an empty line.
pub(super) fn uncounted(source: &Source<'_>, at: usize, ends: impl Fn(usize) -> bool) -> Body {
    let mut body = Body { next: at, ..Body::default() };
    let mut empty = 0;
    while let Some(text) = source.text(body.next).filter(|_| !ends(body.next)) {
        match marked(text) {
            _ if is_marker(text) => {
                if let Some(last) = body.lines.last_mut() {
                    last.ending = None;
                }
            }
            Some((tag, rest)) => {
                empty =
                    if text.trim_ascii_end().is_empty() && !text.starts_with(b" ") { empty + 1 } else { 0 };
                body.lines.push(line(tag, rest));
            }
            None if empty > 0 => break,
            None => {
                body.bare = true;
                body.lines.push(line(Tag::Same, text));
            }
        }
        body.next += 1;
    }
    body.lines.truncate(body.lines.len() - empty);
    body
}

/// Refuses a `\ No newline` marker that stands after a line which is not the last of its side.
pub(super) fn check_markers(
    source: &Source<'_>,
    at: usize,
    lines: &[DiffLine],
    accepted: &'static str,
) -> Result<(), Malformed> {
    let last = |skip: Tag| lines.iter().rposition(|line| line.tag != skip);
    let (last_old, last_new) = (last(Tag::New), last(Tag::Old));
    let wrong = lines.iter().enumerate().any(|(index, line)| {
        line.ending.is_none()
            && ((line.tag != Tag::New && last_old != Some(index))
                || (line.tag != Tag::Old && last_new != Some(index)))
    });
    if wrong {
        let what = "`\\ No newline at end of file` stands within this hunk, not after its last line";
        return Err(source.malformed(at, what, accepted));
    }
    Ok(())
}

/// Both texts as the lines of a hunk: what they share is context.
pub(super) fn compared(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffLine> {
    let mut lines = Vec::with_capacity(old.len() + new.len());
    for op in capture_diff_slices(Algorithm::Histogram, old, new) {
        let (olds, news) = (&old[op.old_range()], &new[op.new_range()]);
        if op.tag() == DiffTag::Equal {
            lines.extend(olds.iter().map(|text| line(Tag::Same, text)));
        } else {
            lines.extend(olds.iter().map(|text| line(Tag::Old, text)));
            lines.extend(news.iter().map(|text| line(Tag::New, text)));
        }
    }
    lines
}
