//! The lines of a hunk beside those of the file, where the hunk as a whole stands nowhere.

use std::collections::HashMap;

use crate::diagnose::Miss;
use crate::patch::place::Field;

/// Lines that one matching line is worth: no gap is wider than what is looked at.
const WORTH: i64 = 1_000;
/// Equal lines that are looked at.
const TWINS: usize = 200;
/// Pairs of lines that are compared at most.
const PAIRS: usize = 100_000;

/// The line of the file (from 1) at which the hunk would begin: told by its lines that the file has once, if they agree, else
/// by the one place that resembles it most.
pub(super) fn about(field: &Field<'_>, olds: &[&[u8]], found: &Miss) -> Option<usize> {
    let sole = |(index, text): (usize, &&[u8])| {
        let line = sole(field, text)?;
        Some((line + 1).saturating_sub(index + 1).max(1))
    };
    let starts: Vec<usize> = olds.iter().enumerate().filter_map(sole).collect();
    if let (Some(first), Some(last)) = (starts.iter().min(), starts.iter().max()) {
        return (last - first <= olds.len()).then_some(*first);
    }
    let [best, others @ ..] = found.nearest.as_slice() else {
        return None;
    };
    let alone = best.alike > 0 && others.iter().all(|other| other.alike < best.alike);
    alone.then_some(best.lines.0)
}

/// The line that holds `text`, if it is the only one and says something.
fn sole(field: &Field<'_>, text: &[u8]) -> Option<usize> {
    if text.trim_ascii().is_empty() {
        return None;
    }
    let line = [text, b"\n"].concat();
    match field.places(&line, 2).as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// Whether, further than the hunk is long from where its lines were found, all of these but one stand as they do in the hunk:
/// then that may be the place that is meant.
pub(super) fn has_rival(field: &Field<'_>, olds: &[&[u8]], stands: &[Option<usize>]) -> bool {
    let filled = || olds.iter().enumerate().filter(|(_, text)| !text.trim_ascii().is_empty());
    let found: Vec<usize> =
        filled().filter_map(|(index, _)| Some(stands.get(index)?.as_ref()?.saturating_sub(index))).collect();
    let Some(first) = found.first() else { return true };
    let mut starts: HashMap<usize, usize> = HashMap::new();
    for (index, text) in filled() {
        let line = [text, b"\n".as_slice()].concat();
        for start in field.places(&line, TWINS).into_iter().filter_map(|line| line.checked_sub(index)) {
            *starts.entry(start).or_default() += 1;
        }
    }
    let apart = |start: usize| start.abs_diff(*first) > olds.len();
    starts.into_iter().any(|(start, lines)| apart(start) && lines > 1 && lines + 1 >= found.len())
}

/// For each of `olds` its equal among `files` (both in order): as many as can be, and of these choices the one with the
/// fewest lines of the file between them. `None` where that is too much to compare.
pub(super) fn compact(olds: &[&[u8]], files: &[&[u8]]) -> Option<Vec<Option<usize>>> {
    let width = files.len() + 1;
    if olds.len().saturating_mul(width) > PAIRS {
        return None;
    }
    // What the best choice is worth that ends with this pair, and with this pair or one before it.
    let mut ends = vec![0i64; (olds.len() + 1) * width];
    let mut best = ends.clone();
    for (i, old) in olds.iter().enumerate() {
        for (j, file) in files.iter().enumerate() {
            let (here, before) = ((i + 1) * width + j + 1, i * width + j);
            if old == file {
                ends[here] = WORTH + best[before].max(0);
            }
            best[here] = ends[here].max(best[here - width]).max(best[here - 1] - 1);
        }
    }
    let mut chosen = vec![None; olds.len()];
    let mut at =
        (0..best.len()).max_by_key(|at| (ends[*at], std::cmp::Reverse(*at))).filter(|at| ends[*at] > 0)?;
    loop {
        let (i, j) = (at / width, at % width);
        chosen[i - 1] = Some(j - 1);
        let wanted = ends[at] - WORTH;
        if wanted <= 0 {
            return Some(chosen);
        }
        at = before(&ends, width, (i - 1, j - 1), wanted)?;
    }
}

/// The pair that a choice worth `wanted` up to the pair (`i`, `j`) ends with.
fn before(ends: &[i64], width: usize, (i, j): (usize, usize), wanted: i64) -> Option<usize> {
    let gap = |column: usize| i64::try_from(j - column).unwrap_or(i64::MAX);
    let pairs = (1..=j).rev().flat_map(|column| (1..=i).rev().map(move |row| (row, column)));
    let mut fitting = pairs.filter(|(row, column)| {
        let end = ends.get(row * width + column).copied().unwrap_or(0);
        end > 0 && end - gap(*column) == wanted
    });
    fitting.next().map(|(row, column)| row * width + column)
}

/// What can be relied on: lines that stand beside another of the hunk as they do in the hunk, or that the file has once.
pub(super) fn trusted(field: &Field<'_>, olds: &[&[u8]], stands: &[Option<usize>]) -> Vec<Option<usize>> {
    let at = |index: Option<usize>| index.and_then(|index| stands.get(index).copied().flatten());
    let beside = |index: usize, line: usize| {
        at(index.checked_sub(1)).is_some_and(|above| above + 1 == line)
            || at(Some(index + 1)).is_some_and(|below| below == line + 1)
    };
    let relied = |(index, (line, text)): (usize, (&Option<usize>, &&[u8]))| {
        line.filter(|line| beside(index, *line) || sole(field, text).is_some())
    };
    stands.iter().zip(olds).enumerate().map(relied).collect()
}
