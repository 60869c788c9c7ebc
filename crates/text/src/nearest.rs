//! The places that resemble old text most where nothing of it fits as a whole.

use std::collections::HashMap;

use similar::{Algorithm, capture_diff_slices, diff_ratio};

use crate::loose::Loose;
use crate::view::View;

/// A block of lines that resembles old text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alike {
    /// Its first line, from 1.
    pub(crate) first: usize,
    /// Lines that are alike.
    pub(crate) alike: usize,
}

/// Loose lines shorter than this (`}`, `else`) say nothing about a place.
const TELLING: usize = 6;

/// Single lines below this similarity are no help.
const SIMILAR: f32 = 0.5;

/// Up to 5 blocks, the most alike first. `old` is old text, `key` its loose form.
pub(crate) fn nearest(view: &View<'_>, loose: &Loose, old: &str, key: &Loose) -> Vec<Alike> {
    let lines = old.split_inclusive('\n').count();
    let found = by_equal_lines(loose, key, lines);
    if found.is_empty() { by_similar_line(view, old, lines) } else { found }
}

/// Blocks that share whole lines with old text at the same distances.
fn by_equal_lines(loose: &Loose, key: &Loose, lines: usize) -> Vec<Alike> {
    let mut wanted: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for index in 0..lines {
        let line = key.line(index);
        if line.len() >= TELLING {
            wanted.entry(line).or_default().push(index);
        }
    }
    let longest = wanted.keys().map(|line| line.len()).max().unwrap_or(0);
    let mut possible = vec![false; longest + 1];
    wanted.keys().for_each(|line| possible[line.len()] = true);
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for number in 0..loose.starts.len() {
        let line = loose.line(number);
        if !possible.get(line.len()).copied().unwrap_or(false) {
            continue;
        }
        for start in wanted.get(line).into_iter().flatten().filter_map(|index| number.checked_sub(*index)) {
            *votes.entry(start).or_default() += 1;
        }
    }
    let mut starts: Vec<(usize, usize)> = votes.into_iter().collect();
    starts.sort_by_key(|(start, votes)| (std::cmp::Reverse(*votes), *start));
    let alike = |start: usize| {
        (0..lines).filter(|i| !key.line(*i).is_empty() && loose.line(start + i) == key.line(*i)).count()
    };
    starts.into_iter().take(5).map(|(start, _)| Alike { first: start + 1, alike: alike(start) }).collect()
}

/// The lines that share most words with the longest line of old text, then most characters.
fn by_similar_line(view: &View<'_>, old: &str, lines: usize) -> Vec<Alike> {
    let Some((index, telling)) =
        old.split('\n').map(str::trim).enumerate().max_by_key(|(_, line)| line.len())
    else {
        return Vec::new();
    };
    let words: Vec<&[u8]> = words(telling.as_bytes()).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let hash = |word: &[u8]| word[0].wrapping_mul(31).wrapping_add(word.len() as u8);
    let mut possible = [false; 256];
    words.iter().for_each(|word| possible[usize::from(hash(word))] = true);
    let wanted = |word: &&[u8]| possible[usize::from(hash(word))] && words.contains(word);
    let mut best: Vec<(usize, usize)> = Vec::new();
    for number in 1..=view.line_count() {
        let line = view.line(number).unwrap_or_default();
        let shared = self::words(&line[..line.len().min(LINE)]).filter(wanted).count().min(words.len());
        if shared > 0 && best.last().is_none_or(|(least, _)| best.len() < KEPT || shared > *least) {
            let at = best.partition_point(|(score, _)| *score >= shared);
            best.insert(at, (shared, number));
            best.truncate(KEPT);
        }
    }
    let mut rated: Vec<(f32, usize)> = best
        .into_iter()
        .map(|(_, number)| (similarity(view.line(number).unwrap_or_default(), telling.as_bytes()), number))
        .filter(|(ratio, _)| *ratio >= SIMILAR)
        .collect();
    rated.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let first = |number: usize| if lines > 1 { number.saturating_sub(index).max(1) } else { number };
    rated.into_iter().take(5).map(|(_, number)| Alike { first: first(number), alike: 0 }).collect()
}

/// Lines that are compared character by character.
const KEPT: usize = 32;

/// Bytes of a line that are looked at.
const LINE: usize = 500;

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| b.is_ascii() && !b.is_ascii_alphanumeric() && *b != b'_').filter(|word| word.len() > 1)
}

fn similarity(line: &[u8], wanted: &[u8]) -> f32 {
    let (line, wanted) = (line.trim_ascii(), &wanted[..wanted.len().min(LINE)]);
    let line = &line[..line.len().min(LINE)];
    diff_ratio(&capture_diff_slices(Algorithm::Myers, line, wanted), line.len(), wanted.len())
}
