//! Three-way merge by lines with their endings: takes one change out of (or into) a file that has moved on.

use std::ops::Range;

use thiserror::Error;

use crate::breaks::Breaks;
use crate::diff::{Region, regions};
use crate::form::{Encoding, Form};

/// One place where both sides changed the same or touching lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// Lines of the base, from 1, half open.
    pub base: Range<usize>,
    /// Lines of our side, from 1, half open.
    pub ours: Range<usize>,
    /// Lines of their side, from 1, half open.
    pub theirs: Range<usize>,
    /// The bytes of the base.
    pub base_bytes: Vec<u8>,
    /// The bytes of our side.
    pub our_bytes: Vec<u8>,
    /// The bytes of their side.
    pub their_bytes: Vec<u8>,
}

/// The sides cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} place(s) were changed on both sides", clashes.len())]
pub struct Conflict {
    /// The places, in file order.
    pub clashes: Vec<Clash>,
}

/// Merges the changes from `base` to `theirs` into `ours`. To take a change back: `base` = the file after it, `ours` = the file
/// now, `theirs` = the file before it. Any bytes will do; lines keep the endings they have.
///
/// # Errors
/// [`Conflict`] where both sides changed the same or touching lines differently.
pub fn merge3(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Conflict> {
    let breaks = Breaks::of(&marked_form(base));
    let (base, ours, theirs) = (breaks.split(base), breaks.split(ours), breaks.split(theirs));
    let mut groups = groups(Side::of(&base, &ours), Side::of(&base, &theirs));
    let mut out = Vec::new();
    let mut clashes = Vec::new();
    let mut from = 0;
    for group in &mut groups {
        out.extend(base[from..group.base.start].concat());
        from = group.base.end;
        let (our_lines, their_lines) = (group.ours.lines(&group.base), group.theirs.lines(&group.base));
        let (our_bytes, their_bytes) =
            (ours[our_lines.clone()].concat(), theirs[their_lines.clone()].concat());
        if group.theirs.regions.is_empty() || our_bytes == their_bytes {
            out.extend(our_bytes);
        } else if group.ours.regions.is_empty() {
            out.extend(their_bytes);
        } else {
            let base_bytes = base[group.base.clone()].concat();
            let (base, ours, theirs) = (from_one(&group.base), from_one(&our_lines), from_one(&their_lines));
            clashes.push(Clash { base, ours, theirs, base_bytes, our_bytes, their_bytes });
        }
    }
    out.extend(base[from..].concat());
    if clashes.is_empty() { Ok(out) } else { Err(Conflict { clashes }) }
}

/// The form as far as a BOM tells: enough to find the breaks.
fn marked_form(bytes: &[u8]) -> Form {
    let marked = [Encoding::Utf32Le, Encoding::Utf32Be, Encoding::Utf16Le, Encoding::Utf16Be];
    let encoding =
        marked.into_iter().find(|e| bytes.starts_with(e.bom()) && bytes.len().is_multiple_of(e.unit()));
    Form { encoding: encoding.unwrap_or(Encoding::Utf8), ..Form::default() }
}

fn from_one(range: &Range<usize>) -> Range<usize> {
    range.start + 1..range.end + 1
}

/// The regions of one side within a group, and how far its lines are shifted before them.
#[derive(Clone, Debug, Default)]
struct Side {
    regions: Vec<Region>,
    shift: isize,
}

impl Side {
    fn of(base: &[&[u8]], side: &[&[u8]]) -> Side {
        Side { regions: regions(base, side), shift: 0 }
    }

    /// The side's lines for a range of base lines that its regions lie in.
    fn lines(&self, base: &Range<usize>) -> Range<usize> {
        base.start.saturating_add_signed(self.shift)
            ..base.end.saturating_add_signed(self.shift + self.growth())
    }

    fn growth(&self) -> isize {
        self.regions.iter().map(|r| r.new.len() as isize - r.old.len() as isize).sum()
    }
}

/// Regions of either side that overlap or touch.
struct Group {
    base: Range<usize>,
    ours: Side,
    theirs: Side,
}

fn groups(ours: Side, theirs: Side) -> Vec<Group> {
    let tagged = |side: Side, is_ours| side.regions.into_iter().map(move |region| (region, is_ours));
    let mut all: Vec<(Region, bool)> = tagged(ours, true).chain(tagged(theirs, false)).collect();
    all.sort_by_key(|(region, _)| (region.old.start, region.old.end));
    let mut found: Vec<Group> = Vec::new();
    let (mut our_shift, mut their_shift) = (0, 0);
    for (region, is_ours) in all {
        let joins = found.last().is_some_and(|group| region.old.start <= group.base.end);
        if !joins {
            let side = |shift| Side { regions: Vec::new(), shift };
            found.push(Group { base: region.old.clone(), ours: side(our_shift), theirs: side(their_shift) });
        }
        let Some(group) = found.last_mut() else { continue };
        group.base.end = group.base.end.max(region.old.end);
        let growth = region.new.len() as isize - region.old.len() as isize;
        let (side, shift) =
            if is_ours { (&mut group.ours, &mut our_shift) } else { (&mut group.theirs, &mut their_shift) };
        *shift += growth;
        side.regions.push(region);
    }
    found
}
