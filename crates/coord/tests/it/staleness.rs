//! The three-way decision, as tables.

use cotenant_coord::{EditDecision, OverwriteDecision, Standing, decide_edit, decide_overwrite};
use cotenant_model::StalePolicy;
use cotenant_text::Region;

use crate::kit::{A, all, at, digest, pair, some};

use EditDecision::{Changed, Go, NeedsRead};

const SEEN: EditDecision = Go { unseen: false, stale_regions: false };
const UNSEEN: EditDecision = Go { unseen: true, stale_regions: false };
const STALE: EditDecision = Go { unseen: false, stale_regions: true };
const STALE_UNSEEN: EditDecision = Go { unseen: true, stale_regions: true };

fn current(whole: bool, ranges: &[(usize, usize)]) -> Standing {
    Standing::Current { whole, ranges: ranges.iter().copied().collect() }
}

fn stale(whole: bool, ranges: &[(usize, usize)]) -> Standing {
    Standing::Stale { shown: digest("v1"), whole, ranges: ranges.iter().copied().collect() }
}

fn region(old: std::ops::Range<usize>, new: std::ops::Range<usize>) -> Region {
    Region { old, new }
}

#[test]
fn a_file_that_was_never_shown_needs_a_read() {
    for policy in [StalePolicy::Region, StalePolicy::Strict] {
        assert_eq!(decide_edit(&Standing::NeverShown, policy, None, &[(1, 1)], true), NeedsRead);
        assert_eq!(decide_edit(&Standing::NeverShown, policy, Some(&[]), &[(1, 1)], true), NeedsRead);
    }
}

#[test]
fn any_read_licenses_an_edit_anywhere_and_says_where_it_was_blind() {
    for (standing, spans, decision) in [
        (current(true, &[]), &[(90, 95)][..], SEEN),
        (current(false, &[(1, 50)]), &[(3, 3)], SEEN),
        (current(false, &[(1, 50)]), &[(50, 51)], UNSEEN),
        (current(false, &[(1, 50)]), &[(3, 3), (80, 80)], UNSEEN),
        (current(false, &[(1, 50)]), &[(51, 50)], SEEN),
        (current(false, &[]), &[(1, 1)], UNSEEN),
    ] {
        for policy in [StalePolicy::Region, StalePolicy::Strict] {
            assert_eq!(decide_edit(&standing, policy, None, spans, true), decision, "{standing:?} {spans:?}");
        }
        // How often the target occurs is the matcher's concern while nothing changed.
        assert_eq!(decide_edit(&standing, StalePolicy::Region, None, spans, false), decision);
    }
}

#[test]
fn one_unchanged_line_must_lie_between_the_change_and_the_edit() {
    // Lines 10 to 12 of the present version are new.
    let changed = [region(10..12, 10..13)];
    for (span, decision) in [
        ((1, 8), STALE),
        ((8, 8), STALE),
        ((9, 9), Changed),
        ((5, 9), Changed),
        ((10, 10), Changed),
        ((11, 11), Changed),
        ((1, 40), Changed),
        ((13, 13), Changed),
        ((14, 14), STALE),
        ((14, 99), STALE),
        // Insertions before a line.
        ((9, 8), STALE),
        ((10, 9), Changed),
        ((13, 12), Changed),
        ((14, 13), STALE),
    ] {
        let standing = stale(true, &[(1, 100)]);
        let decided = decide_edit(&standing, StalePolicy::Region, Some(&changed), &[span], true);
        assert_eq!(decided, decision, "{span:?}");
    }
}

#[test]
fn lines_that_were_taken_out_count_where_they_stood() {
    // Two lines went from between 9 and 10.
    let changed = [region(10..12, 10..10)];
    for (span, decision) in
        [((8, 8), STALE), ((9, 9), Changed), ((9, 10), Changed), ((10, 10), Changed), ((11, 11), STALE)]
    {
        let standing = stale(true, &[(1, 100)]);
        let decided = decide_edit(&standing, StalePolicy::Region, Some(&changed), &[span], true);
        assert_eq!(decided, decision, "{span:?}");
    }
}

#[test]
fn every_span_must_be_clear_of_every_change() {
    let changed = [region(10..11, 10..11), region(20..21, 20..21)];
    let decide = |spans: &[(usize, usize)]| {
        decide_edit(&stale(true, &[(1, 100)]), StalePolicy::Region, Some(&changed), spans, true)
    };
    assert_eq!(decide(&[(1, 2), (15, 15), (30, 31)]), STALE);
    assert_eq!(decide(&[(1, 2), (15, 15), (19, 19)]), Changed);
    assert_eq!(decide(&[(12, 18)]), STALE);
    assert_eq!(decide(&[(12, 19)]), Changed);
}

#[test]
fn what_else_stops_a_stale_edit() {
    let standing = stale(true, &[(1, 100)]);
    let far = [region(50..51, 50..51)];
    let decide = |policy, changed, unique| decide_edit(&standing, policy, changed, &[(1, 1)], unique);
    assert_eq!(decide(StalePolicy::Region, Some(&far[..]), true), STALE);
    assert_eq!(decide(StalePolicy::Strict, Some(&far[..]), true), Changed, "strict refuses any change");
    assert_eq!(decide(StalePolicy::Region, Some(&far[..]), false), Changed, "the target is no longer unique");
    assert_eq!(decide(StalePolicy::Region, None, true), Changed, "the version shown is no longer kept");
    assert_eq!(decide(StalePolicy::Region, Some(&[]), true), STALE, "only the encoding changed, say");
}

#[test]
fn what_was_seen_of_the_old_version_is_looked_up_where_it_stands_now() {
    // Five lines came in at line 3; the session had seen 1 to 20 of the old version.
    let standing = stale(false, &[(1, 20)]);
    let changed = [region(3..3, 3..8)];
    let decide = |span| decide_edit(&standing, StalePolicy::Region, Some(&changed), &[span], true);
    assert_eq!(decide((25, 25)), STALE);
    assert_eq!(decide((26, 26)), STALE_UNSEEN);
    assert_eq!(decide((1, 1)), STALE);
}

#[test]
fn overwriting_wants_all_of_it_shown_or_its_digest() {
    let current = digest("now");
    let wire = current.to_string();
    let seen: &[(usize, usize)] = &[(1, 100)];
    for (standing, expected, decision) in [
        (Standing::NeverShown, None, OverwriteDecision::NeedsRead),
        (
            Standing::Current { whole: true, ranges: seen.iter().copied().collect() },
            None,
            OverwriteDecision::Go,
        ),
        (
            Standing::Current { whole: false, ranges: seen.iter().copied().collect() },
            None,
            OverwriteDecision::NotWhole { seen: seen.iter().copied().collect() },
        ),
        (stale(true, seen), None, OverwriteDecision::Changed),
        (Standing::NeverShown, Some(wire.as_str()), OverwriteDecision::Go),
        (stale(true, seen), Some(wire.as_str()), OverwriteDecision::Go),
        (Standing::NeverShown, Some("0000000000000000"), OverwriteDecision::Changed),
        (
            Standing::Current { whole: true, ranges: seen.iter().copied().collect() },
            Some("0000000000000000"),
            OverwriteDecision::Changed,
        ),
        (Standing::NeverShown, Some(&wire[..8]), OverwriteDecision::Changed),
        (Standing::NeverShown, Some(""), OverwriteDecision::Changed),
    ] {
        assert_eq!(decide_overwrite(&standing, expected, current), decision, "{standing:?} {expected:?}");
    }
}

/// C039: what counts is content, so a touched or re-saved file is not stale.
#[test]
fn c039_the_same_bytes_are_never_stale() {
    let mut coord = pair();
    coord.shown(A, &at("t.txt"), all("same\n", 1), cotenant_model::Millis(1));
    let standing = coord.standing(A, &at("t.txt"), digest("same\n"));
    assert_eq!(decide_edit(&standing, StalePolicy::Strict, None, &[(1, 1)], true), SEEN);
}

/// C041: a replacement of the same size with an older time is a change like any other.
#[test]
fn c041_another_content_is_always_stale() {
    let mut coord = pair();
    coord.shown(A, &at("b.txt"), all("k=1\n", 1), cotenant_model::Millis(1));
    let standing = coord.standing(A, &at("b.txt"), digest("k=7\n"));
    let changed = [region(1..2, 1..2)];
    assert_eq!(decide_edit(&standing, StalePolicy::Region, Some(&changed), &[(1, 1)], true), Changed);
    assert_eq!(decide_overwrite(&standing, None, digest("k=7\n")), OverwriteDecision::Changed);
}

/// C042: neither writing nor editing what was never read; C047: a page is no licence for the whole.
#[test]
fn c042_c047_a_file_that_was_not_read_in_full_is_not_overwritten() {
    let mut coord = pair();
    let big = at("big.txt");
    let now = digest("1..5000");
    assert_eq!(decide_overwrite(&coord.standing(A, &big, now), None, now), OverwriteDecision::NeedsRead);
    coord.shown(A, &big, some("1..5000", 5000, &[(1, 100)]), cotenant_model::Millis(1));
    let standing = coord.standing(A, &big, now);
    let seen = [(1, 100)].into_iter().collect();
    assert_eq!(decide_overwrite(&standing, None, now), OverwriteDecision::NotWhole { seen });
    assert_eq!(decide_edit(&standing, StalePolicy::Region, None, &[(7, 7)], true), SEEN);
}
