//! Many places of one file replaced at once, each by a text of its own; every other byte stays.

use std::ops::Range;

use memchr::memmem;
use thiserror::Error;

use crate::edit::{is_whole, line_and_column, to_lf};
use crate::form::{Encoding, Form};
use crate::splice::{self, Patch, Span};
use crate::view::View;

/// What stands at a place of the view, and what shall stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// Bytes of the view.
    pub at: Range<usize>,
    /// The new text; its line breaks are stored as the file's own.
    pub new: String,
}

/// The result of [`substitute`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substituted {
    /// The new raw bytes of the whole file.
    pub bytes: Vec<u8>,
    /// What was replaced, in file order, one span a swap; every byte outside is as it was.
    pub spans: Vec<Span>,
}

/// Why nothing was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// The file's encoding has no such character.
    #[error("{encoding} has no {ch:?}, which is to stand in line {line}")]
    NotEncodable {
        /// The first such character.
        ch: char,
        /// The file's encoding.
        encoding: Encoding,
        /// The line of the file, from 1, in which the match begins.
        line: usize,
        /// The line and the column in the new text, from 1.
        place: (usize, usize),
    },
    /// The match is, or may be, a part of a stored character.
    #[error("the match in line {line} may begin or end inside a character of the file's encoding")]
    Cut {
        /// The line of the file, from 1.
        line: usize,
    },
}

/// Where a text stands in the view, from left to right without overlap. An empty text stands nowhere.
pub fn occurrences<'v>(view: &'v View<'_>, text: &'v str) -> impl Iterator<Item = Range<usize>> + 'v {
    let text = text.as_bytes();
    let bytes = if text.is_empty() { &[] } else { view.as_bytes() };
    memmem::find_iter(bytes, text).filter(|_| !text.is_empty()).map(|at| at..at + text.len())
}

/// Replaces `swaps` (in order, not overlapping) in the file `raw`, whose form is `form` and whose view is `view`.
///
/// # Errors
/// [`Unfit`] for the first swap that cannot be stored; then nothing is changed at all.
pub fn substitute(raw: &[u8], form: &Form, view: &View<'_>, swaps: &[Swap]) -> Result<Substituted, Unfit> {
    let patches = swaps.iter().map(|swap| patch(raw, form, view, swap)).collect::<Result<Vec<_>, _>>()?;
    let bytes = splice::write(raw, &patches);
    let spans = splice::spans(patches, raw, &bytes, form);
    Ok(Substituted { bytes, spans })
}

fn patch(raw: &[u8], form: &Form, view: &View<'_>, swap: &Swap) -> Result<Patch, Unfit> {
    let line = view.line_of(swap.at.start);
    let cut = || Unfit::Cut { line };
    let range = view.raw_range(swap.at.clone()).ok_or_else(cut)?;
    let old = view.as_bytes().get(swap.at.clone()).and_then(|old| std::str::from_utf8(old).ok());
    let old = old.filter(|_| is_whole(view, form, &swap.at)).ok_or_else(cut)?;
    let new = to_lf(&swap.new);
    let bytes = splice::rebuild(raw, form, view, swap.at.start, old, &new).map_err(|bad| {
        let place = line_and_column(&new, bad.at);
        Unfit::NotEncodable { ch: bad.ch, encoding: form.encoding, line, place }
    })?;
    Ok(Patch { range, bytes })
}
