//! Sets of line numbers, and how they move when a file is edited.

use std::ops::Range;

use cotenant_text::Region;

/// Lines from 1, as disjoint inclusive ranges in rising order that do not touch each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineSet(Vec<(usize, usize)>);

impl LineSet {
    /// No line.
    pub fn new() -> LineSet {
        LineSet::default()
    }

    /// The inclusive ranges, rising.
    pub fn ranges(&self) -> &[(usize, usize)] {
        &self.0
    }

    /// Whether there is no line in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the lines `first` to `last`; nothing where `last` is before `first`.
    pub fn add(&mut self, first: usize, last: usize) {
        if last < first {
            return;
        }
        // Ranges that overlap the new one or touch it become part of it.
        let start = self.0.partition_point(|range| range.1.saturating_add(1) < first);
        let end = self.0.partition_point(|range| range.0 <= last.saturating_add(1));
        let merged = self.0[start..end]
            .iter()
            .fold((first, last), |all, range| (all.0.min(range.0), all.1.max(range.1)));
        self.0.splice(start..end, [merged]);
    }

    /// Whether every line from `first` to `last` is in it; true where `last` is before `first`.
    pub fn covers(&self, first: usize, last: usize) -> bool {
        last < first || self.0.iter().any(|range| range.0 <= first && last <= range.1)
    }
}

impl FromIterator<(usize, usize)> for LineSet {
    fn from_iter<I: IntoIterator<Item = (usize, usize)>>(ranges: I) -> LineSet {
        let mut set = LineSet::new();
        ranges.into_iter().for_each(|(first, last)| set.add(first, last));
        set
    }
}

/// How lines moved from one version of a file to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineMap {
    /// What was replaced by what, in file order, as [`cotenant_text::changed_regions`] gives it: half-open, and empty
    /// where lines only came or went. Every other line stays and only shifts.
    pub regions: Vec<Region>,
    /// The new version's number of lines, where it is known.
    pub total_lines: Option<usize>,
    /// The session knows the new lines of the regions: it wrote them, or a whole diff was shown to it.
    pub known: bool,
}

impl LineMap {
    /// Where the lines of `set` stand in the new version. Lines inside a region are gone; its new lines count where
    /// they are known.
    pub fn carry(&self, set: &LineSet) -> LineSet {
        let mut carried = LineSet::new();
        let mut kept_from = 1;
        let mut next = 1;
        for region in &self.regions {
            stretch(set, kept_from..region.old.start, next, &mut carried);
            if self.known {
                carried.add(region.new.start, region.new.end.saturating_sub(1));
            }
            (kept_from, next) = (region.old.end, region.new.end);
        }
        stretch(set, kept_from..usize::MAX, next, &mut carried);
        carried
    }
}

/// Adds to `carried` what `set` has of the old lines `kept`, the first of which now is line `next`.
fn stretch(set: &LineSet, kept: Range<usize>, next: usize, carried: &mut LineSet) {
    for &(first, last) in set.ranges() {
        let (first, last) = (first.max(kept.start), last.min(kept.end.saturating_sub(1)));
        if first <= last {
            let moved = next + (first - kept.start);
            carried.add(moved, moved + (last - first));
        }
    }
}
