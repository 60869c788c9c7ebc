//! Hunks that would fit where the one that was sent does not. They are offered, never applied unasked.

use crate::diagnose;
use crate::diff::{DiffLine, Tag};
use crate::escapes;
use crate::form::Break;
use crate::patch::align;
use crate::patch::body;
use crate::patch::miss::Suggested;
use crate::patch::model::Hunk;
use crate::patch::place::{Field, Problem, joined};

/// How far from its stated line one of several places may be to be offered.
const NEAR: usize = 20;

/// Lines of context that are put around a place until it is the only one of its kind.
const WIDEST: usize = 30;

/// A hunk that does what `hunk` was meant to do and has exactly one place, if one can be told.
pub(super) fn suggestion(
    field: &Field<'_>,
    hunk: &Hunk,
    problem: &Problem,
    found: Option<&diagnose::Miss>,
) -> Option<Suggested> {
    match problem {
        Problem::NotThere => match (sole(field, unmarked(hunk)), sole(field, loosened(hunk, found?))) {
            // Both readings fit where a hunk only inserts, and put other lines there.
            (Some(_), Some(_)) => None,
            (Some(fit), None) => Some(fit),
            (None, loosened) => {
                sole(field, rewritten(hunk)).or(loosened).or_else(|| realigned(field, hunk, found?))
            }
        },
        Problem::Bare => {
            let why = "lines that begin with neither a space, `-` nor `+` are context".to_owned();
            sole(field, [(Hunk { bare: false, ..hunk.clone() }, why)])
                .or_else(|| sole(field, unmarked(hunk)))
                .or_else(|| realigned(field, hunk, found?))
        }
        Problem::Several(lines) => nearest_stated(field, hunk, lines),
        Problem::NotAtEnd(lines) if lines.len() == 1 => {
            sole(field, [(unbound(hunk), "it does not say any more that the file ends there".to_owned())])
        }
        Problem::FinalNewline(_) => sole(
            field,
            [(unbound(hunk), "it does not say any more that the last line lacks its break".to_owned())],
        ),
        Problem::Anchor(index, lines) if lines.is_empty() => reanchored(field, hunk, *index),
        Problem::NoPlace => numbered(field, hunk),
        _ => None,
    }
}

/// The first of `hunks` that has one place by its lines alone, and changes something.
pub(super) fn sole(field: &Field<'_>, hunks: impl IntoIterator<Item = (Hunk, String)>) -> Option<Suggested> {
    hunks.into_iter().find_map(|(hunk, why)| {
        let hunk = Hunk { old_start: None, counts: None, ..hunk };
        let line = field.place(&hunk, 0).ok()?;
        joined(hunk.old_lines()).ne(&joined(hunk.new_lines())).then_some(Suggested { hunk, line, why })
    })
}

/// The hunk whose context lacks the space that marks it: what was taken for the mark is the line's own.
fn unmarked(hunk: &Hunk) -> Option<(Hunk, String)> {
    let lost = |line: &DiffLine| match hunk.bare {
        // Those that begin otherwise were seen to have none.
        true => line.text.starts_with(b" "),
        false => !line.text.is_empty(),
    };
    let mut lines = hunk.lines.clone();
    for line in lines.iter_mut().filter(|line| line.tag == Tag::Same && lost(line)) {
        line.text.insert(0, b' ');
    }
    let why = "its context lines lack the space that marks them".to_owned();
    hunk.marked.then(|| (Hunk { lines, bare: false, ..hunk.clone() }, why))
}

/// The hunk with every line read otherwise: without echoed line numbers, without escapes.
fn rewritten(hunk: &Hunk) -> impl Iterator<Item = (Hunk, String)> {
    let numbers = without_numbers(hunk).map(|hunk| (hunk, "the line numbers `N|` were taken off".to_owned()));
    let escapes = escapes::rewritings().into_iter().filter_map(|(rewrite, why)| {
        let mut lines = Vec::with_capacity(hunk.lines.len());
        for line in &hunk.lines {
            let text = rewrite(std::str::from_utf8(&line.text).ok()?);
            let parts =
                text.split('\n').map(|part| DiffLine { text: part.as_bytes().to_vec(), ..line.clone() });
            lines.extend(parts);
        }
        (lines != hunk.lines).then(|| (Hunk { lines, ..hunk.clone() }, why.to_owned()))
    });
    numbers.into_iter().chain(escapes)
}

/// The hunk without the numbers of a read answer; `None` unless each of its old lines has one.
fn without_numbers(hunk: &Hunk) -> Option<Hunk> {
    let bare = |text: &[u8]| -> Option<Vec<u8>> {
        let text = text.trim_ascii_start();
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let rest = text.get(digits..).filter(|_| digits > 0)?;
        let marks = [b"|".as_slice(), b"\t", "→".as_bytes()];
        marks.into_iter().find_map(|mark| rest.strip_prefix(mark)).map(<[u8]>::to_vec)
    };
    let mut lines = Vec::with_capacity(hunk.lines.len());
    for line in &hunk.lines {
        let text = match bare(&line.text) {
            Some(text) => text,
            None if line.tag == Tag::New => line.text.clone(),
            None => return None,
        };
        lines.push(DiffLine { text, ..line.clone() });
    }
    Some(Hunk { lines, ..hunk.clone() })
}

/// The hunk as the diagnosis would have it: with the file's spaces, punctuation or indent.
fn loosened(hunk: &Hunk, found: &diagnose::Miss) -> Option<(Hunk, String)> {
    let suggestion = found.suggestion.as_ref()?;
    let old: Vec<&[u8]> = suggestion.old.lines().map(str::as_bytes).collect();
    let new: Vec<&[u8]> = suggestion.new.lines().map(str::as_bytes).collect();
    let mut lines = body::compared(&old, &new);
    keep_end(hunk, &mut lines);
    Some((Hunk { lines, bare: false, ..hunk.clone() }, suggestion.why.clone()))
}

/// What the hunk says about the line break at the end of the file holds for its new form too.
fn keep_end(hunk: &Hunk, lines: &mut [DiffLine]) {
    for skip in [Tag::New, Tag::Old] {
        let unended =
            hunk.lines.iter().rev().find(|line| line.tag != skip).is_some_and(|line| line.ending.is_none());
        if let Some(last) = lines.iter_mut().rev().find(|line| line.tag != skip).filter(|_| unended) {
            last.ending = None;
        }
    }
}

/// The hunk without what it says about the end of the file.
fn unbound(hunk: &Hunk) -> Hunk {
    let mut hunk = Hunk { eof: false, ..hunk.clone() };
    hunk.lines.iter_mut().for_each(|line| line.ending = line.ending.or(Some(Break::Lf)));
    hunk
}

/// The hunk at that of several places which is nearest to its stated line, with as much context as tells it apart.
fn nearest_stated(field: &Field<'_>, hunk: &Hunk, lines: &[usize]) -> Option<Suggested> {
    let stated = hunk.old_start.filter(|line| *line <= field.view.line_count())?;
    let mut by_distance: Vec<(usize, usize)> =
        lines.iter().map(|line| (line.abs_diff(stated), *line)).collect();
    by_distance.sort_unstable();
    let (distance, line) = *by_distance.first()?;
    let alone = by_distance.get(1).is_none_or(|(next, _)| *next > distance);
    let why = format!("of its places, line {line} is the nearest to the stated line {stated}");
    widened(field, hunk, line, why).filter(|_| alone && distance <= NEAR)
}

/// A line of the file as context.
fn context(field: &Field<'_>, line: usize) -> Option<DiffLine> {
    let text = field.view.line(line)?.to_vec();
    Some(DiffLine { tag: Tag::Same, text, ending: Some(Break::Lf) })
}

/// The hunk at `line`, where it stands, with lines of the file around it until that is its only place.
fn widened(field: &Field<'_>, hunk: &Hunk, line: usize, why: String) -> Option<Suggested> {
    let length = hunk.old_lines().count();
    let file = |n: usize| context(field, n);
    let mut wider = Hunk { old_start: None, counts: None, anchors: Vec::new(), ..hunk.clone() };
    let (mut first, mut next) = (line, line + length);
    for _ in 0..=WIDEST {
        if let Ok(line) = field.place(&wider, 0) {
            return Some(Suggested { hunk: wider, line, why });
        }
        if let Some(above) = first.checked_sub(1).and_then(file) {
            wider.lines.insert(0, above);
            first -= 1;
        }
        if let Some(below) = file(next) {
            wider.lines.push(below);
            next += 1;
        }
    }
    None
}

/// The hunk with the one line of the file that begins with (or at least holds) what it names behind `@@`.
fn reanchored(field: &Field<'_>, hunk: &Hunk, index: usize) -> Option<Suggested> {
    let wanted = hunk.anchors.get(index)?.trim_ascii();
    let lines = || (1..=field.view.line_count()).filter_map(|n| field.view.line(n));
    let begins: Vec<&[u8]> = lines().filter(|line| line.trim_ascii().starts_with(wanted)).take(2).collect();
    let holds = || lines().filter(|line| memchr::memmem::find(line, wanted).is_some()).take(2).collect();
    let [only] = (if begins.is_empty() { holds() } else { begins })[..] else {
        return None;
    };
    let mut anchors = hunk.anchors.clone();
    *anchors.get_mut(index)? = only.to_vec();
    let why = format!("the line behind `@@` is `{}` in the file", crate::show::visible(only));
    sole(field, [(Hunk { anchors, ..hunk.clone() }, why)])
}

/// A pure insertion after its stated line, with the lines around it as context.
fn numbered(field: &Field<'_>, hunk: &Hunk) -> Option<Suggested> {
    let exact = hunk.counts.is_some_and(|(old, _)| old == 0);
    let after = hunk.old_start.filter(|line| exact && *line <= field.view.line_count())?;
    let why = match field.view.line(after) {
        Some(text) => format!(
            "it inserts after line {after}, `{}`",
            crate::show::visible(&text[..crate::show::clip(text, 80).taken])
        ),
        None => "it inserts before the first line".to_owned(),
    };
    let above = context(field, after);
    let first = after + usize::from(above.is_none());
    let lines = above.into_iter().chain(hunk.lines.clone()).chain(context(field, after + 1)).collect();
    widened(field, &Hunk { lines, ..hunk.clone() }, first, why)
}

/// The hunk at the one place that resembles it most, with the context that the file has there: its old lines must stand
/// there as they are.
fn realigned(field: &Field<'_>, hunk: &Hunk, found: &diagnose::Miss) -> Option<Suggested> {
    let olds: Vec<&[u8]> = hunk.old_lines().map(|line| line.text.as_slice()).collect();
    let about = align::about(field, &olds, found)?;
    let from = about.saturating_sub(WIDEST).max(1);
    let to = (about + olds.len() + WIDEST).min(field.view.line_count() + 1);
    let files: Vec<&[u8]> = (from..to).filter_map(|n| field.view.line(n)).collect();
    let stands: Vec<Option<usize>> =
        align::compact(&olds, &files)?.into_iter().map(|at| at.map(|at| from + at)).collect();
    if align::has_rival(field, &olds, &stands) {
        return None;
    }
    let (first, lines) = with_context(field, hunk, &align::trusted(field, &olds, &stands))?;
    let why = "the context is as the file has it now".to_owned();
    widened(field, &Hunk { lines, bare: false, ..hunk.clone() }, first, why)
}

/// The changes of a hunk at the lines where its old lines stand (`stands`, one for each), with the file's own lines between
/// and around them; the first line. `None` where a line that goes, or the point where lines come, cannot be told.
fn with_context(field: &Field<'_>, hunk: &Hunk, stands: &[Option<usize>]) -> Option<(usize, Vec<DiffLine>)> {
    const AROUND: usize = 3;
    let file = |n: usize| context(field, n);
    let mut out: Vec<DiffLine> = Vec::new();
    let (mut first, mut next) = (None, 0);
    let (mut old, mut follows) = (0, false);
    for line in &hunk.lines {
        let run = std::mem::replace(&mut follows, line.tag != Tag::Same);
        // The line of the file before which this change stands.
        let at = match line.tag {
            Tag::Same => {
                old += 1;
                continue;
            }
            Tag::Old => {
                old += 1;
                *stands.get(old - 1)?.as_ref()?
            }
            Tag::New => point(stands, old, next)?,
        };
        let begin = *first.get_or_insert_with(|| {
            next = at.saturating_sub(AROUND).max(1);
            next
        });
        // Between lines that go or come together the hunk knows of no others.
        if at < next.max(begin) || (run && at > next) {
            return None;
        }
        out.extend((next..at).filter_map(file));
        next = at + usize::from(line.tag == Tag::Old);
        out.push(line.clone());
    }
    out.extend((next..next + AROUND).filter_map(file));
    Some((first?, out))
}

/// Where new lines come in after `old` old lines: where a change just ended (`next`), else between the neighbours.
fn point(stands: &[Option<usize>], old: usize, next: usize) -> Option<usize> {
    let above = old.checked_sub(1).and_then(|index| *stands.get(index)?).map(|line| line + 1);
    let below = stands.get(old).copied().flatten();
    match (above, below) {
        (Some(above), Some(below)) if above != below => None,
        (Some(line), _) | (None, Some(line)) => Some(line),
        (None, None) => (next > 0).then_some(next),
    }
}
