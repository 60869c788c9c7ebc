//! Where a hunk belongs: the one rule of placement. Nothing here drops context or takes the first of several places.

use std::cell::OnceCell;
use std::hash::{DefaultHasher, Hasher};

use crate::diff::{DiffLine, Tag};
use crate::form::{Break, Encoding, Form};
use crate::patch::model::Hunk;
use crate::view::View;

/// Places of one hunk that are looked at.
const MOST: usize = 1000;

/// The file that hunks are placed in.
pub(super) struct Field<'f> {
    pub(super) raw: &'f [u8],
    pub(super) form: &'f Form,
    pub(super) view: View<'f>,
    /// The break of new lines, where it does not come from the lines around them: see [`Field::broken_at_cr`].
    pub(super) one_break: Option<&'static str>,
    /// The lines by what they hold, made when first asked.
    index: OnceCell<Index>,
}

/// Why a hunk has no place. Lines count from 1.
#[derive(Debug)]
pub(super) enum Problem {
    /// Its context or old lines are in doubt (see [`Hunk::bare`]).
    Bare,
    /// Its old lines are not there.
    NotThere,
    /// They stand at these lines, and nothing says which are meant.
    Several(Vec<usize>),
    /// What it would put there stands at this line already.
    Applied(usize),
    /// The anchor of this index is not there (no lines) or at several.
    Anchor(usize, Vec<usize>),
    /// The old lines stand only above the anchor.
    AboveAnchor { place: usize, anchor: usize },
    /// The old lines stand at these lines, but not at the end of the file as the hunk says.
    NotAtEnd(Vec<usize>),
    /// The old lines are there but for the line break at the end of the file.
    FinalNewline(usize),
    /// It only inserts, and nothing but a number says where.
    NoPlace,
    /// It changes what the hunk of this ordinal changes.
    Overlap(usize),
    /// It changes nothing.
    Same,
    /// This line of the file is not among those that are deleted.
    Left(usize),
    /// A line of the hunk (from 1) cannot be stored; the character (`None`: bytes that are no text) and its column.
    NotEncodable { ch: Option<char>, encoding: Encoding, line: usize, column: usize },
}

/// The lines of a file by their content, so that many hunks find their places in one pass over it.
#[derive(Debug)]
struct Index {
    /// Hash and number (from 1) of every line, in order.
    lines: Vec<(u64, usize)>,
}

impl Index {
    fn of(view: &View<'_>) -> Index {
        let numbers = 1..=view.line_count();
        let mut lines: Vec<(u64, usize)> =
            numbers.map(|n| (hash(view.line(n).unwrap_or_default()), n)).collect();
        lines.sort_unstable();
        Index { lines }
    }

    /// The lines that may hold `text`, and no other that does.
    fn lines(&self, text: &[u8]) -> &[(u64, usize)] {
        let wanted = hash(text);
        let first = self.lines.partition_point(|(hash, _)| *hash < wanted);
        let rest = self.lines.get(first..).unwrap_or_default();
        &rest[..rest.partition_point(|(hash, _)| *hash == wanted)]
    }
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}

/// The lines of one side, each ended by LF.
pub(super) fn joined<'l>(lines: impl Iterator<Item = &'l DiffLine>) -> Vec<u8> {
    lines.fold(Vec::new(), |mut text, line| {
        text.extend_from_slice(&line.text);
        text.push(b'\n');
        text
    })
}

impl<'f> Field<'f> {
    pub(super) fn new(raw: &'f [u8], form: &'f Form) -> Field<'f> {
        Field { raw, form, view: View::new(raw, form), one_break: None, index: OnceCell::new() }
    }

    /// The file with its lone carriage returns taken for line breaks; `None` where it has none. What the lines around a new
    /// one end with says little there, so new lines take the most frequent ending.
    pub(super) fn broken_at_cr(&self) -> Option<Field<'f>> {
        let lone = memchr::memchr_iter(b'\r', self.view.as_bytes()).count();
        if lone == 0 {
            return None;
        }
        let count =
            |kind| (1..=self.view.line_count()).filter(|n| self.view.ending(*n) == Some(kind)).count();
        let kinds = [("\r", lone), ("\n", count(Break::Lf)), ("\r\n", count(Break::Crlf))];
        let one_break = kinds.into_iter().max_by_key(|(_, count)| *count).map(|(text, _)| text);
        let view = View::new(self.raw, self.form).broken_at_cr();
        Some(Field { raw: self.raw, form: self.form, view, one_break, index: OnceCell::new() })
    }

    /// The first line (from 1) of the hunk's old lines, or the line before which it inserts. `drift` is how many lines the
    /// hunk before was found below where it said.
    pub(super) fn place(&self, hunk: &Hunk, drift: isize) -> Result<usize, Problem> {
        if hunk.bare {
            return Err(Problem::Bare);
        }
        let old = joined(hunk.old_lines());
        if old.is_empty() {
            return self.insertion(hunk);
        }
        let length = hunk.old_lines().count();
        let everywhere = self.places(&old, MOST);
        let fitting = self.ending_so(hunk, &everywhere, length)?;
        let stated = hunk.old_start.and_then(|line| line.checked_add_signed(drift));
        let line = match self.with_sent_breaks(hunk, fitting).as_slice() {
            [] => return Err(self.applied(hunk).map_or(Problem::NotThere, Problem::Applied)),
            [only] => self.below_anchor(hunk, *only)?,
            several => self.chosen(hunk, several, stated, length)?,
        };
        self.unless_applied(hunk, line)
    }

    /// The lines at which `text` (each line ended by LF) stands, up to `most`, also where the file lacks the last break.
    pub(super) fn places(&self, text: &[u8], most: usize) -> Vec<usize> {
        let index = self.index.get_or_init(|| Index::of(&self.view));
        let wanted = text.split_inclusive(|b| *b == b'\n').enumerate();
        let rarest = wanted.map(|(at, line)| (index.lines(line.strip_suffix(b"\n").unwrap_or(line)), at));
        let Some((lines, at)) = rarest.min_by_key(|(lines, _)| lines.len()) else {
            return Vec::new();
        };
        let starts = lines.iter().filter_map(|(_, line)| line.checked_sub(at));
        starts.filter(|start| self.stands(text, *start)).take(most).collect()
    }

    /// The line at which `text` without its last break stands at the end of a file that ends without one.
    fn unended(&self, text: &[u8]) -> Option<usize> {
        let bytes = self.view.as_bytes();
        let body = text.strip_suffix(b"\n").filter(|_| !bytes.is_empty() && !bytes.ends_with(b"\n"))?;
        let at = bytes.len().checked_sub(body.len())?;
        let whole = bytes.ends_with(body) && (at == 0 || bytes[at - 1] == b'\n');
        (whole && !body.is_empty()).then(|| self.view.line_of(at))
    }

    /// Whether `text` (each line ended by LF) stands at `line`.
    fn stands(&self, text: &[u8], line: usize) -> bool {
        let Some(range) = self.view.line_range(line) else {
            return false;
        };
        self.view.as_bytes()[range.start..].starts_with(text) || self.unended(text) == Some(line)
    }

    /// Of the places, those that end as the hunk says: at the end of the file, with or without a line break there.
    fn ending_so(&self, hunk: &Hunk, places: &[usize], length: usize) -> Result<Vec<usize>, Problem> {
        let at_end = |line: &usize| line + length == self.view.line_count() + 1;
        let unended = is_unended(hunk.old_lines().next_back());
        if !hunk.eof && !unended && !is_unended(hunk.new_lines().next_back()) {
            return Ok(places.to_vec());
        }
        let last = places.iter().copied().find(|line| at_end(line));
        match (last, places) {
            (Some(line), _) if unended && self.view.ending(self.view.line_count()).is_some() => {
                Err(Problem::FinalNewline(line))
            }
            (Some(line), _) => Ok(vec![line]),
            (None, []) => Ok(Vec::new()),
            (None, _) => Err(self.applied(hunk).map_or(Problem::NotAtEnd(places.to_vec()), Problem::Applied)),
        }
    }

    /// A hunk that states CRLF and stands somewhere just so means that place.
    fn with_sent_breaks(&self, hunk: &Hunk, places: Vec<usize>) -> Vec<usize> {
        if places.len() < 2 || !hunk.old_lines().any(|line| line.ending == Some(Break::Crlf)) {
            return places;
        }
        let same: Vec<usize> = places.iter().copied().filter(|line| self.has_breaks(hunk, *line)).collect();
        if same.is_empty() { places } else { same }
    }

    /// Whether the hunk's old lines, which stand at `line`, state the very breaks of the file.
    pub(super) fn has_breaks(&self, hunk: &Hunk, line: usize) -> bool {
        hunk.old_lines().zip(line..).all(|(old, number)| {
            let ours = self.view.ending(number);
            // A missing break at the end of the file may be left unsaid.
            ours.is_none() || old.ending == ours
        })
    }

    /// The only place, unless it stands above a line that it must stand below.
    fn below_anchor(&self, hunk: &Hunk, place: usize) -> Result<usize, Problem> {
        match self.anchor(hunk) {
            Ok(Some(anchor)) if place + hunk.old_lines().count() <= anchor => {
                Err(Problem::AboveAnchor { place, anchor })
            }
            _ => Ok(place),
        }
    }

    /// One of several places: the stated one, the one that the anchor leads to, or the only one at the end of the file for a
    /// hunk that diff cut short there.
    fn chosen(
        &self,
        hunk: &Hunk,
        places: &[usize],
        stated: Option<usize>,
        length: usize,
    ) -> Result<usize, Problem> {
        if let Some(line) = stated
            && (places.contains(&line)
                || (places.len() >= MOST && self.stands(&joined(hunk.old_lines()), line)))
        {
            return Ok(line);
        }
        if let Some(anchor) = self.anchor(hunk).ok().flatten() {
            let below: Vec<usize> = places.iter().copied().filter(|line| *line >= anchor).collect();
            let scope = self.scope(anchor);
            let inside: Vec<usize> =
                below.iter().copied().filter(|line| line + length - 1 <= scope).collect();
            match if scope > anchor { inside } else { below }.as_slice() {
                [only] => return Ok(*only),
                _ => return Err(Problem::Several(places.to_vec())),
            }
        }
        let end = self.view.line_count() + 1;
        let last = places.iter().copied().find(|line| line + length == end);
        last.filter(|_| is_cut_short(hunk)).ok_or_else(|| Problem::Several(places.to_vec()))
    }

    /// The line of the last anchor: each must be the only such line below the one before. `None` without anchors.
    fn anchor(&self, hunk: &Hunk) -> Result<Option<usize>, Problem> {
        let mut above: Option<usize> = None;
        for (index, text) in hunk.anchors.iter().enumerate() {
            match self.lines_like(text, above).as_slice() {
                [only] => above = Some(*only),
                lines => return Err(Problem::Anchor(index, lines.to_vec())),
            }
        }
        Ok(above)
    }

    /// The lines below `above` that are `text` but for spaces at their ends. Of several, those that belong to `above`, and of
    /// these the ones with the very indent, if `text` has one at all: many leave it away.
    fn lines_like(&self, text: &[u8], above: Option<usize>) -> Vec<usize> {
        let line = |n: usize| self.view.line(n).unwrap_or_default();
        let bare = text.trim_ascii();
        let below = above.map_or(1, |above| above + 1)..=self.view.line_count();
        let mut lines: Vec<usize> = below.filter(|n| line(*n).trim_ascii() == bare).collect();
        let narrow = |lines: &mut Vec<usize>, fits: &dyn Fn(usize) -> bool| {
            if lines.len() > 1 && lines.iter().any(|n| fits(*n)) {
                lines.retain(|n| fits(*n));
            }
        };
        let scope = above.map_or(0, |above| self.scope(above));
        narrow(&mut lines, &|n| n <= scope);
        narrow(&mut lines, &|n| bare.len() < text.len() && line(n) == text);
        lines
    }

    /// The last line that belongs to `line` by its indent; `line` itself where nothing below is indented more.
    fn scope(&self, line: usize) -> usize {
        let indent = |n: usize| {
            let text = self.view.line(n)?;
            let body = text.trim_ascii_start();
            (!body.is_empty()).then(|| text.len() - body.len())
        };
        let own = indent(line).unwrap_or(0);
        let below = line + 1..=self.view.line_count();
        let belongs = below.take_while(|n| indent(*n).is_none_or(|n| n > own));
        belongs.filter(|n| indent(*n).is_some()).last().unwrap_or(line)
    }

    /// The line before which a hunk without old lines inserts.
    fn insertion(&self, hunk: &Hunk) -> Result<usize, Problem> {
        let end = self.view.line_count() + 1;
        if hunk.eof || end == 1 {
            return Ok(end);
        }
        let Some(anchor) = self.anchor(hunk)? else {
            return Err(Problem::NoPlace);
        };
        match self.stands(&joined(hunk.new_lines()), anchor + 1) && is_telling(hunk.new_lines()) {
            true => Err(Problem::Applied(anchor + 1)),
            false => Ok(anchor + 1),
        }
    }

    /// The one line at which the new lines stand, where they say enough to be more than chance.
    fn applied(&self, hunk: &Hunk) -> Option<usize> {
        let changes = |tag: Tag| hunk.lines.iter().any(|line| line.tag == tag);
        let framed = || {
            let edges = [hunk.lines.first(), hunk.lines.last()];
            edges.iter().flatten().all(|line| line.tag == Tag::Same)
        };
        if !(changes(Tag::New) || (changes(Tag::Old) && framed())) || !is_telling(hunk.new_lines()) {
            return None;
        }
        match self.places(&joined(hunk.new_lines()), 2).as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// The place of a hunk that only adds lines above or below its context, unless these lines stand there already.
    fn unless_applied(&self, hunk: &Hunk, line: usize) -> Result<usize, Problem> {
        let is_new = |line: &&DiffLine| line.tag == Tag::New;
        let above = hunk.lines.iter().take_while(is_new).count();
        let below = hunk.lines.iter().rev().take_while(is_new).count();
        let added = hunk.lines.iter().filter(is_new);
        let at_edges =
            above + below > 0 && hunk.lines.iter().skip(above).rev().skip(below).all(|l| l.tag == Tag::Same);
        let blank = added.clone().all(|line| line.text.trim_ascii().is_empty());
        let Some(start) = line.checked_sub(above).filter(|start| *start > 0 && at_edges && !blank) else {
            return Ok(line);
        };
        if self.stands(&joined(hunk.new_lines()), start) { Err(Problem::Applied(start)) } else { Ok(line) }
    }
}

/// Whether a side of a hunk says that it ends without a line break.
pub(super) fn is_unended(last: Option<&DiffLine>) -> bool {
    last.is_some_and(|line| line.ending.is_none())
}

/// Whether lines hold enough to recognise them by.
fn is_telling<'l>(lines: impl Iterator<Item = &'l DiffLine>) -> bool {
    let (mut count, mut bytes) = (0, 0);
    for line in lines {
        count += 1;
        bytes += line.text.iter().filter(|b| !b.is_ascii_whitespace()).count();
    }
    bytes >= 8 || (count >= 2 && bytes > 0)
}

/// Whether a hunk has three lines of context above its change and fewer below, as diff writes it at the end of a file, and
/// counts its lines rightly.
fn is_cut_short(hunk: &Hunk) -> bool {
    let context = |line: &&DiffLine| line.tag == Tag::Same;
    let above = hunk.lines.iter().take_while(context).count();
    let below = hunk.lines.iter().rev().take_while(context).count();
    hunk.counts.is_some() && !hunk.is_miscounted() && above >= 3 && below < 3
}
