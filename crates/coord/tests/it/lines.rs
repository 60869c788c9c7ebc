//! Line sets and their way through an edit, against the naive set of single lines.

use std::collections::BTreeSet;

use cotenant_coord::{LineMap, LineSet};
use cotenant_text::Region;
use proptest::prelude::*;

const MAX: usize = 40;

fn naive(ranges: &[(usize, usize)]) -> BTreeSet<usize> {
    ranges.iter().flat_map(|(first, last)| *first..=*last).collect()
}

fn flat(set: &LineSet) -> BTreeSet<usize> {
    naive(set.ranges())
}

fn ranges() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((1..MAX, 0..MAX), 0..12)
}

/// Regions as a diff gives them: in order, with at least one unchanged line between, either side maybe empty.
fn regions() -> impl Strategy<Value = Vec<Region>> {
    prop::collection::vec((1..6usize, 0..4usize, 0..4usize), 0..5).prop_map(|steps| {
        let (mut old, mut new) = (1, 1);
        let mut regions = Vec::new();
        for (gap, gone, come) in steps {
            (old, new) = (old + gap, new + gap);
            if gone + come > 0 {
                regions.push(Region { old: old..old + gone, new: new..new + come });
            }
            (old, new) = (old + gone, new + come);
        }
        regions
    })
}

/// The lines of the new version, each with the old line it was, or with `None` where a region brought it.
fn walked(regions: &[Region], old_total: usize) -> Vec<Option<usize>> {
    let mut lines = Vec::new();
    let mut old = 1;
    for region in regions {
        lines.extend((old..region.old.start).map(Some));
        lines.extend(region.new.clone().map(|_| None));
        old = region.old.end;
    }
    lines.extend((old..=old_total).map(Some));
    lines
}

proptest! {
    #[test]
    fn a_set_holds_the_lines_that_were_added(given in ranges(), probe in (1..MAX, 1..MAX)) {
        let set: LineSet = given.iter().copied().collect();
        let lines = naive(&given);
        prop_assert_eq!(flat(&set), lines.clone());
        prop_assert_eq!(set.covers(probe.0, probe.1), (probe.0..=probe.1).all(|line| lines.contains(&line)));
        prop_assert_eq!(set.is_empty(), lines.is_empty());
        // In order, and nothing that could be one range is two.
        prop_assert!(set.ranges().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", set);
        prop_assert!(set.ranges().iter().all(|range| range.0 <= range.1));
    }

    #[test]
    fn lines_are_carried_as_a_walk_over_the_file_carries_them(
        given in ranges(), regions in regions(), known in any::<bool>(),
    ) {
        let set: LineSet = given.iter().copied().collect();
        let old_total = MAX * 2 + 20;
        let seen = naive(&given);
        let expected: BTreeSet<usize> = (1..)
            .zip(walked(&regions, old_total))
            .filter(|(_, old)| old.map_or(known, |old| seen.contains(&old)))
            .map(|(new, _)| new)
            .collect();
        let map = LineMap { regions, total_lines: None, known };
        prop_assert_eq!(flat(&map.carry(&set)), expected);
    }
}

#[test]
fn nothing_and_the_far_end() {
    let mut set = LineSet::new();
    set.add(5, 4);
    assert!(set.is_empty() && set.covers(9, 8) && !set.covers(1, 1));
    set.add(usize::MAX, usize::MAX);
    set.add(1, 1);
    assert_eq!(set.ranges(), [(1, 1), (usize::MAX, usize::MAX)]);
}
