//! What the area `stale` asks of text: which lines changed, and whether an edit keeps clear of them. The decision itself is coord's.

use cotenant_text::{Edited, Region, changed_regions, clear_of};
use proptest::prelude::*;

use crate::kit::{edit, form};
use crate::pairs::for_all;

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

/// The rule line by line: no changed line and no gap of deleted lines among the lines of the span and `margin` lines beside it.
fn is_clear(regions: &[Region], span: (usize, usize), margin: usize) -> bool {
    let near = span.0.saturating_sub(margin)..=span.1 + margin;
    let changed = |line: &usize| regions.iter().any(|r| r.new.contains(line));
    // A gap lies between its line and the line before.
    let gap = |line: &usize| regions.iter().any(|r| r.new.is_empty() && r.new.start == *line);
    let gaps = near.start() + 1..=*near.end();
    !near.clone().any(|line| changed(&line)) && !gaps.clone().any(|line| gap(&line))
}

#[test]
fn keeping_clear_is_what_it_says_line_by_line() {
    let file =
        || prop::collection::vec(prop_oneof![Just("a\n"), Just("b\n"), Just("c\n"), Just("d\n")], 1..14);
    for_all((file(), file(), 1..14usize, 0..3usize, 1..3usize), 1, |(old, new, first, len, margin)| {
        let found = regions(old.concat().as_bytes(), new.concat().as_bytes());
        let span = (first.min(new.len()), (first + len).min(new.len()));
        prop_assert_eq!(
            clear_of(&found, span, margin),
            is_clear(&found, span, margin),
            "{:?} {:?}",
            found,
            span
        );
        Ok(())
    });
}

#[test]
fn regions_of_a_long_file_are_numbered_from_its_start() {
    let old: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
    let new = old
        .replace("line 10\n", "")
        .replace("line 4000\n", "line 4000\nmore\n")
        .replace("line 4999\n", "x\ny\n");
    assert_eq!(
        regions(old.as_bytes(), new.as_bytes()),
        [
            Region { old: 10..11, new: 10..10 },
            Region { old: 4001..4001, new: 4000..4001 },
            Region { old: 4999..5000, new: 4999..5001 },
        ]
    );
    let wide = |text: &str| -> Vec<u8> {
        [&b"\0\0\xfe\xff"[..], &text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect::<Vec<u8>>()]
            .concat()
    };
    assert_eq!(regions(&wide(&old), &wide(&new)), regions(old.as_bytes(), new.as_bytes()), "in UTF-32");
}

#[test]
fn c048_c050_lean_on_these_facts() {
    // An edit's own change is the region between the bytes before and after it, and a CRLF file is compared as it is stored.
    let raw = b"x = 1\r\ny = 2\r\n";
    let first = edit(raw, "y = 2", "y = 3").unwrap();
    assert_eq!(regions(raw, &first.bytes), [Region { old: 2..3, new: 2..3 }]);
    let second = edit(&first.bytes, "x = 1", "x = 0").unwrap();
    assert_eq!(second.bytes, b"x = 0\r\ny = 3\r\n");
    let approved = regions(b"mode=a\n", b"mode=a\nextra\n");
    assert_eq!(approved, [Region { old: 2..2, new: 2..3 }]);
    assert!(!clear_of(&approved, (1, 1), 1), "an appended neighbour is too near");
}
