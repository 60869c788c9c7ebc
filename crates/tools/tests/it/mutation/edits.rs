//! The edits that are meant: what they change, and the bytes that come of it.

use cotenant_testkit::Dice;

use super::corpus::Text;

/// Lines of context on each side.
const AROUND: usize = 3;
/// Lines that two places are apart at least.
const APART: usize = 14;
/// Lines of context above until a place is given up.
const MOST: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Same,
    Old,
    New,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) tag: Tag,
    pub(super) text: String,
}

impl Row {
    pub(super) fn new(tag: Tag, text: impl Into<String>) -> Row {
        Row { tag, text: text.into() }
    }
}

/// One changed place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The line (from 1) of its first row.
    pub(super) first: usize,
    pub(super) rows: Vec<Row>,
}

impl Hunk {
    pub(super) fn before(&self) -> Vec<&str> {
        self.side(Tag::New)
    }

    pub(super) fn after(&self) -> Vec<&str> {
        self.side(Tag::Old)
    }

    fn side(&self, without: Tag) -> Vec<&str> {
        self.rows.iter().filter(|row| row.tag != without).map(|row| row.text.as_str()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Change,
    Insert,
    Delete,
    Two,
    /// A line of which the file has several.
    Twin,
}

pub(super) const KINDS: [Kind; 5] = [Kind::Change, Kind::Insert, Kind::Delete, Kind::Two, Kind::Twin];

/// The hunks of a seeded edit, each the only one of its kind in the file; `None` where the file has no place for one.
pub(super) fn edit(text: &Text, kind: Kind, dice: &mut Dice) -> Option<Vec<Hunk>> {
    for _ in 0..40 {
        let line = 1 + below(dice, text.lines.len());
        let hunks = match kind {
            Kind::Change => vec![changed(text, line)],
            Kind::Insert => vec![inserted(text, line)],
            Kind::Delete => vec![deleted(text, line)],
            Kind::Two => vec![changed(text, line), changed(text, line + APART + below(dice, 30))],
            Kind::Twin => vec![twin(text, line)],
        };
        let hunks: Option<Vec<Hunk>> = hunks.into_iter().map(|hunk| widened(text, hunk?)).collect();
        if let Some(hunks) = hunks.filter(|hunks| hunks.iter().all(|hunk| stands_once(text, hunk))) {
            return Some(hunks);
        }
    }
    None
}

pub(super) fn below(dice: &mut Dice, bound: usize) -> usize {
    usize::try_from(dice.below(bound.max(1) as u64)).unwrap()
}

/// The line with one of its words replaced.
fn changed(text: &Text, line: usize) -> Option<Hunk> {
    let old = text.lines.get(line - 1)?;
    let new = renamed(old)?;
    Some(Hunk { first: line, rows: vec![Row::new(Tag::Old, old), Row::new(Tag::New, new)] })
}

/// The longest word otherwise; the line must say enough to be recognised.
pub(super) fn renamed(line: &str) -> Option<String> {
    let word = line.split(|c: char| !c.is_ascii_alphanumeric()).max_by_key(|word| word.len())?;
    let telling = line.bytes().filter(u8::is_ascii_alphanumeric).count() >= 8;
    (word.len() >= 4 && telling).then(|| line.replacen(word, &format!("other{word}"), 1))
}

/// Two lines, the second indented more, below a line with text.
fn inserted(text: &Text, line: usize) -> Option<Hunk> {
    let above = text.lines.get(line - 1)?;
    let indent = &above[..above.len() - above.trim_start().len()];
    let unit = if indent.starts_with('\t') { "\t" } else { "    " };
    let new = [format!("{indent}added_here(alpha)"), format!("{indent}{unit}and_below(beta)")];
    let filled = !above.trim().is_empty() && line < text.lines.len();
    filled.then(|| Hunk { first: line + 1, rows: new.map(|text| Row::new(Tag::New, text)).into() })
}

/// Two or three lines gone.
fn deleted(text: &Text, line: usize) -> Option<Hunk> {
    let lines = text.lines.get(line - 1..line + 1 + line % 2)?;
    let telling = lines.iter().any(|line| renamed(line).is_some());
    let inside = line > 1 && line + lines.len() <= text.lines.len();
    let rows = lines.iter().map(|line| Row::new(Tag::Old, line)).collect();
    (telling && inside).then_some(Hunk { first: line, rows })
}

/// A change of a line that stands elsewhere, too.
fn twin(text: &Text, line: usize) -> Option<Hunk> {
    let wanted = text.lines.get(line - 1)?;
    let equal = |n: &usize| text.lines.get(n - 1) == Some(wanted);
    let count = (1..=text.lines.len()).filter(equal).count();
    changed(text, line).filter(|_| count > 1)
}

/// The hunk with context: three lines on each side, and more above until its old lines stand once.
fn widened(text: &Text, hunk: Hunk) -> Option<Hunk> {
    let lines = hunk.before().len();
    let above = (AROUND..=MOST).map(|above| with_context(text, &hunk, lines, above));
    above.into_iter().find(|wide| wide.rows.len() > hunk.rows.len() && stands_once(text, wide))
}

fn with_context(text: &Text, hunk: &Hunk, lines: usize, above: usize) -> Hunk {
    let first = hunk.first.saturating_sub(above).max(1);
    let same = |n: usize| text.lines.get(n - 1).map(|line| Row::new(Tag::Same, line));
    let before = (first..hunk.first).filter_map(same);
    let after = (hunk.first + lines..hunk.first + lines + AROUND).filter_map(same);
    Hunk { first, rows: before.chain(hunk.rows.clone()).chain(after).collect() }
}

/// Whether the old text stands once, also as a part of lines.
pub(super) fn stands_once(text: &Text, hunk: &Hunk) -> bool {
    let (plain, old) = (text.plain(), hunk.before().join("\n"));
    !old.trim().is_empty() && occurrences(&plain, &old) == 1
}

/// Occurrences, overlapping ones too.
pub(super) fn occurrences(text: &str, part: &str) -> usize {
    let mut from = 0;
    let mut count = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(part)) {
        count += 1;
        from += at + 1;
        while !text.is_char_boundary(from) {
            from += 1;
        }
    }
    count
}

/// The text with the hunks put in at their lines; `None` where they do not stand there.
pub(super) fn applied(text: &Text, hunks: &[Hunk]) -> Option<Text> {
    let mut text = text.clone();
    let mut order: Vec<&Hunk> = hunks.iter().collect();
    order.sort_by_key(|hunk| std::cmp::Reverse(hunk.first));
    for hunk in order {
        let range = hunk.first - 1..hunk.first - 1 + hunk.before().len();
        let stands = text.lines.get(range.clone())?.iter().map(String::as_str).eq(hunk.before());
        if !stands {
            return None;
        }
        text.lines.splice(range, hunk.after().into_iter().map(str::to_owned));
    }
    Some(text)
}
