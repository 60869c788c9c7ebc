//! What the area `stale` asks of text: which lines changed, and whether an edit keeps clear of them. The decision itself is coord's.

use cotenant_text::{Edited, Region, changed_regions, clear_of};

use crate::kit::{edit, form};

fn regions(old: &[u8], new: &[u8]) -> Vec<Region> {
    changed_regions(old, &form(old), new, &form(new))
}

fn lines(edited: &Edited) -> (usize, usize) {
    edited.spans[0].lines_before
}

#[test]
fn c038_a_change_on_the_next_line_is_too_near() {
    let now = b"A=1\nB=9\n";
    let found = regions(b"A=1\nB=1\n", now);
    assert_eq!(found, [Region { old: 2..3, new: 2..3 }]);
    let span = lines(&edit(now, "A=1", "A=2").unwrap());
    assert!(!clear_of(&found, span, 1));
}

#[test]
fn c041_a_change_on_the_line_itself_overlaps() {
    let now = b"k=7\n";
    let span = lines(&edit(now, "k=", "key=").unwrap());
    assert!(!clear_of(&regions(b"k=1\n", now), span, 1));
}

#[test]
fn c039_the_same_bytes_have_no_changed_region() {
    assert!(regions(b"same\n", b"same\n").is_empty());
}

#[test]
fn c045_changes_of_neighbouring_lines_do_not_pass_as_apart() {
    let now = b"left=1\nright=0\n";
    let found = regions(b"left=0\nright=0\n", now);
    assert!(!clear_of(&found, lines(&edit(now, "right=0", "right=1").unwrap()), 1));
}

#[test]
fn one_unchanged_line_between_is_enough() {
    let (old, now) = (b"a\nb\nc\nd\ne\n", b"a\nB\nc\nd\ne\n");
    let found = regions(old, now);
    assert!(!clear_of(&found, (3, 3), 1));
    assert!(clear_of(&found, (4, 4), 1));
    assert!(!clear_of(&found, (4, 4), 2));
    assert!(clear_of(&[], (1, 9), 1));
}

#[test]
fn a_deletion_counts_from_both_sides() {
    let found = regions(b"a\nb\nc\nd\n", b"a\nc\nd\n");
    assert_eq!(found, [Region { old: 2..3, new: 2..2 }]);
    assert!(!clear_of(&found, (1, 1), 1), "the line before the gap");
    assert!(!clear_of(&found, (2, 2), 1), "the line after the gap");
    assert!(clear_of(&found, (3, 3), 1));
}

#[test]
fn endings_count_as_content() {
    assert_eq!(regions(b"a\nb\n", b"a\r\nb\n").len(), 1);
    assert_eq!(regions(b"a\nb\n", b"a\nb").len(), 1);
}
