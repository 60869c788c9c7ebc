//! Receipts: what a session was shown, whom its own changes follow, and whom they do not.

use std::collections::BTreeSet;

use cotenant_coord::{Coord, LineMap, Lines, Shown, Standing};
use cotenant_model::{ChangeId, Millis, SessionId};
use cotenant_text::Region;
use proptest::prelude::*;

use crate::kit::{A, B, all, at, digest, docs, pair, some, who};

const NOW: Millis = Millis(1000);

fn seen(coord: &Coord, id: SessionId, path: &str) -> Vec<(usize, usize)> {
    coord.receipt(id, &at(path)).map(|receipt| receipt.ranges.ranges().to_vec()).unwrap_or_default()
}

/// Lines `old` became lines `new`; the session knows them.
fn own(old: std::ops::Range<usize>, new: std::ops::Range<usize>, total: usize) -> LineMap {
    LineMap { regions: vec![Region { old, new }], total_lines: Some(total), known: true }
}

#[test]
fn pages_of_one_version_add_up_until_they_are_the_whole() {
    let mut coord = pair();
    let f = at("f");
    assert_eq!(coord.standing(A, &f, digest("v1")), Standing::NeverShown);
    coord.shown(A, &f, some("v1", 30, &[(1, 10)]), Millis(5));
    coord.shown(A, &f, some("v1", 30, &[(21, 30)]), Millis(6));
    assert_eq!(seen(&coord, A, "f"), [(1, 10), (21, 30)]);
    assert!(!coord.receipt(A, &f).unwrap().whole);
    coord.shown(A, &f, some("v1", 30, &[(8, 20)]), Millis(7));
    let receipt = coord.receipt(A, &f).unwrap();
    assert!(receipt.whole && receipt.ranges.ranges() == [(1, 30)] && receipt.at == Millis(7));
    assert!(matches!(coord.standing(A, &f, digest("v1")), Standing::Current { whole: true, .. }));
    assert_eq!(coord.standing(B, &f, digest("v1")), Standing::NeverShown, "another session saw nothing");
}

#[test]
fn another_version_replaces_what_was_known() {
    let mut coord = pair();
    coord.shown(A, &at("f"), all("v1", 30), NOW);
    coord.shown(A, &at("f"), some("v2", 31, &[(4, 6)]), NOW);
    let receipt = coord.receipt(A, &at("f")).unwrap();
    assert!(!receipt.whole && receipt.ranges.ranges() == [(4, 6)] && receipt.digest == digest("v2"));
}

#[test]
fn an_empty_file_and_one_without_lines_can_be_whole() {
    let mut coord = pair();
    coord.shown(A, &at("empty"), some("", 0, &[]), NOW);
    assert!(coord.receipt(A, &at("empty")).unwrap().whole);
    let picture = Shown { digest: digest("\0"), total_lines: None, lines: Lines::All };
    coord.shown(A, &at("picture"), picture, NOW);
    assert!(coord.receipt(A, &at("picture")).unwrap().whole);
    let part = Shown { digest: digest("big"), total_lines: None, lines: Lines::Ranges(vec![(1, 9)]) };
    coord.shown(A, &at("big"), part, NOW);
    assert!(!coord.receipt(A, &at("big")).unwrap().whole, "of unknown length, a part is never the whole");
}

#[test]
fn a_sessions_own_change_renews_its_receipt_and_no_other() {
    let mut coord = pair();
    let f = at("f");
    coord.shown(A, &f, all("v1", 10), NOW);
    coord.shown(B, &f, all("v1", 10), NOW);
    coord.renewed(A, &f, digest("v1"), Some(digest("v2")), &own(3..4, 3..6, 12), Millis(2000));
    let receipt = coord.receipt(A, &f).unwrap();
    assert!(receipt.whole && receipt.ranges.ranges() == [(1, 12)] && receipt.at == Millis(2000));
    assert!(matches!(coord.standing(A, &f, digest("v2")), Standing::Current { whole: true, .. }));
    match coord.standing(B, &f, digest("v2")) {
        Standing::Stale { shown, whole: true, ranges } => {
            assert_eq!((shown, ranges.ranges()), (digest("v1"), &[(1, 10)][..]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ranges_move_with_the_lines_around_an_own_change() {
    let mut coord = pair();
    let f = at("f");
    coord.shown(A, &f, some("v1", 100, &[(10, 20), (40, 50)]), NOW);
    // Lines 15 and 16 go, 45 becomes three lines.
    let map = LineMap {
        regions: vec![Region { old: 15..17, new: 15..15 }, Region { old: 45..46, new: 43..46 }],
        total_lines: Some(100),
        known: true,
    };
    coord.renewed(A, &f, digest("v1"), Some(digest("v2")), &map, NOW);
    assert_eq!(seen(&coord, A, "f"), [(10, 18), (38, 50)]);
    assert!(!coord.receipt(A, &f).unwrap().whole);
}

#[test]
fn who_wrote_without_reading_knows_what_it_wrote() {
    let mut coord = pair();
    let f = at("f");
    coord.renewed(A, &f, digest("v1"), Some(digest("v2")), &own(5..6, 5..8, 50), NOW);
    assert_eq!(seen(&coord, A, "f"), [(5, 7)]);
    // The same where it had seen an older version: own work is never called stale.
    coord.shown(B, &f, all("v0", 40), NOW);
    coord.renewed(B, &f, digest("v2"), Some(digest("v3")), &own(9..10, 9..10, 50), NOW);
    assert_eq!(seen(&coord, B, "f"), [(9, 9)]);
    assert!(matches!(coord.standing(B, &f, digest("v3")), Standing::Current { whole: false, .. }));
}

#[test]
fn a_change_that_was_not_shown_leaves_a_gap() {
    let mut coord = pair();
    let f = at("f");
    coord.shown(A, &f, all("v1", 10), NOW);
    let unknown = LineMap { known: false, ..own(4..5, 4..7, 12) };
    coord.renewed(A, &f, digest("v1"), Some(digest("v2")), &unknown, NOW);
    assert_eq!(seen(&coord, A, "f"), [(1, 3), (7, 12)]);
    assert!(!coord.receipt(A, &f).unwrap().whole);
    // Nobody who saw nothing, or another version, learns anything from it.
    coord.renewed(B, &f, digest("v1"), Some(digest("v2")), &unknown, NOW);
    assert!(coord.receipt(B, &f).is_none());
    coord.renewed(A, &f, digest("v7"), Some(digest("v8")), &unknown, NOW);
    assert_eq!(coord.receipt(A, &f).unwrap().digest, digest("v2"));
}

#[test]
fn deleted_forgotten_moved_and_void() {
    let mut coord = pair();
    for path in ["d/f", "d/sub/g", "dx", "e/f", "e/replaced"] {
        coord.shown(A, &at(path), all(path, 3), NOW);
        coord.shown(B, &at(path), all(path, 3), NOW);
    }
    coord.renewed(A, &at("dx"), digest("dx"), None, &LineMap::default(), NOW);
    assert!(coord.receipt(A, &at("dx")).is_none() && coord.receipt(B, &at("dx")).is_some());

    coord.moved(Some(A), ChangeId(1), &at("d"), &at("e"), NOW);
    for (path, digest_of) in [("e/f", "d/f"), ("e/sub/g", "d/sub/g")] {
        assert_eq!(coord.receipt(B, &at(path)).unwrap().digest, digest(digest_of), "{path}");
    }
    assert!(coord.receipt(A, &at("d/f")).is_none());
    assert!(coord.receipt(A, &at("e/replaced")).is_none(), "what lay below the target is gone");

    coord.forget_path(&at("e/sub"));
    assert!(coord.receipt(A, &at("e/sub/g")).is_none() && coord.receipt(A, &at("e/f")).is_some());

    coord.void_all(NOW);
    assert!(coord.receipt(A, &at("e/f")).is_none() && coord.receipt(B, &at("dx")).is_none());
}

#[test]
fn a_move_to_another_folder_and_into_a_longer_name() {
    let mut coord = pair();
    coord.shown(A, &at("a"), all("a", 1), NOW);
    coord.shown(A, &at("ab"), all("ab", 1), NOW);
    coord.moved(Some(A), ChangeId(1), &at("a"), &docs("x/y/a"), NOW);
    assert_eq!(coord.receipt(A, &docs("x/y/a")).unwrap().digest, digest("a"));
    assert!(coord.receipt(A, &at("ab")).is_some(), "a longer name is no path below");
    // Into itself, deeper: what lay there is not lost on the way.
    coord.moved(Some(A), ChangeId(1), &docs("x"), &docs("x2"), NOW);
    coord.moved(Some(A), ChangeId(1), &docs("x2"), &docs("x2/in"), NOW);
    assert!(coord.receipt(A, &docs("x2/in/y/a")).is_some());
}

#[test]
fn a_session_that_is_not_open_learns_nothing() {
    let mut coord = pair();
    coord.end_session(A, NOW);
    coord.shown(A, &at("f"), all("v1", 1), NOW);
    coord.renewed(A, &at("f"), digest("v1"), Some(digest("v2")), &own(1..2, 1..2, 1), NOW);
    assert!(coord.receipt(A, &at("f")).is_none());
}

#[test]
fn beyond_the_bound_the_oldest_are_forgotten_first() {
    let mut coord = Coord::new();
    coord.open_session(A, who("a"), Millis(0));
    for n in 0..20_001u64 {
        coord.shown(A, &at(&format!("f{n}")), all("x", 1), Millis(n));
    }
    assert!(coord.receipt(A, &at("f0")).is_none() && coord.receipt(A, &at("f4999")).is_none());
    assert!(coord.receipt(A, &at("f5000")).is_some() && coord.receipt(A, &at("f20000")).is_some());
}

proptest! {
    /// Whatever was shown in whatever order: the receipt is of the version shown last, with the lines shown since that
    /// version was first shown without another between.
    #[test]
    fn showing_is_a_union_per_run_of_a_version(
        steps in prop::collection::vec((0..3usize, 1..12usize, 0..12usize), 1..30),
    ) {
        let mut coord = pair();
        let mut model: (usize, BTreeSet<usize>) = (usize::MAX, BTreeSet::new());
        for (version, first, last) in steps {
            coord.shown(A, &at("f"), some(&version.to_string(), 10, &[(first, last.min(10))]), NOW);
            if model.0 != version {
                model = (version, BTreeSet::new());
            }
            model.1.extend(first..=last.min(10));
            let receipt = coord.receipt(A, &at("f")).unwrap();
            let lines: BTreeSet<usize> =
                receipt.ranges.ranges().iter().flat_map(|(first, last)| *first..=*last).collect();
            prop_assert_eq!(receipt.digest, digest(&version.to_string()));
            prop_assert_eq!(receipt.whole, (1..=10).all(|line| lines.contains(&line)));
            prop_assert_eq!(lines, model.1.clone());
        }
    }
}
