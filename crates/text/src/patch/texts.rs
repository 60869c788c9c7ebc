//! The two texts of an edit as a hunk, so that what is proposed for hunks is proposed for edits too.

use crate::diagnose::{Miss, Suggestion};
use crate::edit::Level;
use crate::form::Form;
use crate::patch::body;
use crate::patch::miss::Suggested;
use crate::patch::model::Hunk;
use crate::patch::place::{Field, Problem, joined};
use crate::patch::suggest;

/// Texts that do what `old` and `new` (LF breaks) were meant to do where `old` is not in the file: with the last line break,
/// and without it. None of them need fit as text; none where nothing can be told.
pub(crate) fn proposed(raw: &[u8], form: &Form, old: &str, new: &str, found: &Miss) -> Vec<Suggestion> {
    let field = Field::new(raw, form);
    let unfenced = unfenced(old).map(|old| {
        let why = "the fences around the text were taken off".to_owned();
        (hunk(old, self::unfenced(new).unwrap_or(new)), why)
    });
    let plain = hunk(old, new);
    let suggested = suggest::sole(&field, unfenced)
        .or_else(|| suggest::suggestion(&field, &plain, &Problem::NotThere, Some(found)));
    suggested.map(|suggested| both(&suggested)).unwrap_or_default()
}

fn hunk(old: &str, new: &str) -> Hunk {
    let [old, new]: [Vec<&[u8]>; 2] = [old, new].map(|text| text.lines().map(str::as_bytes).collect());
    Hunk { ordinal: 1, lines: body::compared(&old, &new), ..Hunk::default() }
}

/// What stands between a fence on the first line and one on the last.
fn unfenced(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    let (inner, last) = rest.trim_end_matches('\n').rsplit_once('\n')?;
    let fence = |mark: &str| first.starts_with(mark) && last.trim_end() == mark;
    ["```", "~~~"].iter().any(|mark| fence(mark)).then_some(inner)
}

/// The texts of a hunk that fits.
fn both(suggested: &Suggested) -> Vec<Suggestion> {
    let text = |lines: Vec<u8>| String::from_utf8(lines).ok();
    let hunk = &suggested.hunk;
    let Some((old, new)) = text(joined(hunk.old_lines())).zip(text(joined(hunk.new_lines()))) else {
        return Vec::new();
    };
    let lines = (suggested.line, suggested.line + hunk.old_lines().count().saturating_sub(1));
    let one = |old: &str, new: &str| Suggestion {
        old: old.to_owned(),
        new: new.to_owned(),
        level: Level::Reading,
        levels: vec![Level::Reading],
        sole: true,
        lines,
        why: suggested.why.clone(),
    };
    let cut = |text: &'_ str| text.strip_suffix('\n').map(str::to_owned);
    let shorter = cut(&old).zip(cut(&new)).map(|(old, new)| one(&old, &new));
    std::iter::once(one(&old, &new)).chain(shorter).collect()
}
