//! Windows of lines.

use std::time::{Duration, Instant};

use cotenant_testkit::Dice;
use cotenant_tree::{LineWindow, TreeError};

use crate::fixture::{Ws, ws};

fn window(ws: &Ws, start: i64, limit: usize) -> LineWindow {
    ws.tree.read_lines(&ws.at("f"), start, limit, 1 << 20).unwrap()
}

fn text(window: &LineWindow) -> String {
    window.lines.iter().map(|line| String::from_utf8_lossy(&line.bytes).into_owned()).collect()
}

#[test]
fn c083_past_the_end_and_empty_are_three_different_things() {
    let ws = ws("printf 'a\\nb\\nc' > f; : > e");
    let third = window(&ws, 3, 10);
    assert_eq!((text(&third).as_str(), third.first, third.total, third.more), ("c", 3, Some(3), false));
    for start in [4, 100] {
        let past = window(&ws, start, 10);
        assert_eq!((past.lines.len(), past.total, past.more), (0, Some(3), false), "{start}");
    }
    let empty = ws.tree.read_lines(&ws.at("e"), 1, 10, 100).unwrap();
    assert_eq!((empty.lines.len(), empty.total, empty.stat.size), (0, Some(0), 0));
}

#[test]
fn negative_starts_count_from_the_end() {
    let ws = ws("seq 1 1000 > f");
    for (start, limit, first, lines) in [
        (-1, 10, 1000, "1000\n"),
        (-3, 2, 998, "998\n999\n"),
        (-1000, 1, 1, "1\n"),
        (-5000, 1, 1, "1\n"),
        (0, 1, 1, "1\n"),
    ] {
        let window = window(&ws, start, limit);
        assert_eq!((window.first, text(&window).as_str()), (first, lines), "{start}");
        assert_eq!(window.total, Some(1000));
    }
}

#[test]
fn a_line_far_into_a_file_is_the_one_of_that_number() {
    let ws = ws("seq 1 10000000 > f; printf end >> f");
    for start in [1, 1_000_000, 2_222_222, 4_567_891, 9_999_999, 10_000_000] {
        assert_eq!(text(&window(&ws, start, 1)), format!("{start}\n"), "{start}");
    }
    let last = window(&ws, 10_000_001, 5);
    assert_eq!((text(&last).as_str(), last.total, last.more), ("end", Some(10_000_001), false));
    let past = window(&ws, 10_000_002, 5);
    assert_eq!((past.lines.len(), past.total, past.more), (0, Some(10_000_001), false));
}

#[test]
fn endings_stay_and_only_lf_ends_a_line() {
    let ws = ws("printf 'a\\r\\nb\\rc\\n\\nd' > f");
    let all = window(&ws, 1, 10);
    let lines: Vec<&[u8]> = all.lines.iter().map(|line| &line.bytes[..]).collect();
    assert_eq!(lines, [&b"a\r\n"[..], b"b\rc\n", b"\n", b"d"]);
}

#[test]
fn the_budget_in_bytes_ends_a_window_between_lines() {
    let ws = ws("seq 100 999 > f");
    let read = |start, bytes| ws.tree.read_lines(&ws.at("f"), start, 500, bytes).unwrap();
    let first = read(1, 10);
    assert_eq!((first.lines.len(), first.more), (2, true));
    assert_eq!(read(1, 1).lines.len(), 1, "never nothing");
    assert_eq!(text(&read(3, 8)), "102\n103\n");
}

#[test]
fn a_long_line_is_clipped_and_says_how_long_it_is() {
    let ws = ws("{ head -c 5000000 /dev/zero | tr '\\0' x; printf '\\nnext\\n'; } > f");
    let both = window(&ws, 1, 2);
    assert_eq!(both.lines[0].len, Some(5_000_001));
    assert!(both.lines[0].bytes.len() < 20_000);
    assert_eq!(both.lines[1].bytes, b"next\n");
    assert_eq!(text(&window(&ws, 2, 5)), "next\n");
}

#[test]
fn p079_a_sparse_giant_neither_hangs_nor_allocates() {
    let ws = ws("truncate -s 100G f");
    let begun = Instant::now();
    let first = window(&ws, 1, 200);
    assert_eq!((first.lines.len(), first.lines[0].len, first.more), (1, None, true));
    assert!(first.lines[0].bytes.len() < 20_000);
    assert!(matches!(
        ws.tree.read_lines(&ws.at("f"), -5, 5, 1000).unwrap_err(),
        TreeError::TooLarge { size, .. } if size == 100 << 30
    ));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_file_too_large_to_count_is_read_from_both_ends() {
    let ws =
        ws("yes 0123456789012345678901234567890123456789012345678 | head -n 1500000 > f; echo last >> f");
    let tail = window(&ws, -2, 5);
    assert_eq!((tail.first, tail.lines.len(), tail.more, tail.total), (-2, 2, false, None));
    assert_eq!(tail.lines[1].bytes, b"last\n");
    let deep = window(&ws, 1_500_000, 5);
    assert_eq!((deep.first, deep.lines.len(), deep.total), (1_500_000, 2, Some(1_500_001)));
    assert!(window(&ws, 1_400_000, 5).more);
}

/// Every window of random texts is what splitting the text by hand gives, over the edges of the buffer too.
#[test]
fn windows_are_what_splitting_by_hand_gives() {
    let ws = ws("true");
    let mut dice = Dice::thrown();
    for round in 0..40 {
        let mut text = Vec::new();
        for _ in 0..dice.below(400) {
            let long = if dice.below(20) == 0 { 30_000 } else { 60 };
            text.extend(std::iter::repeat_n(b'x', usize::try_from(dice.below(long)).unwrap()));
            text.extend_from_slice([&b"\n"[..], b"\r\n", b"\n\n"][usize::try_from(dice.below(3)).unwrap()]);
        }
        text.extend_from_slice(if dice.below(2) == 0 { b"" } else { b"end" });
        ws.scratch.put("f", &text);
        let all: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let count = i64::try_from(all.len()).unwrap();
        for _ in 0..20 {
            let start = i64::try_from(dice.below(u64::try_from(2 * count + 9).unwrap())).unwrap() - count - 4;
            let limit = usize::try_from(dice.below(300)).unwrap();
            let got = window(&ws, start, limit);
            let first = if start < 0 { (count + start + 1).max(1) } else { start.max(1) };
            let from = usize::try_from(first - 1).unwrap().min(all.len());
            let want = &all[from..(from + limit).min(all.len())];
            assert_eq!(got.total, Some(all.len() as u64), "round {round}");
            assert_eq!(got.first, first, "round {round} start {start}");
            let fits = |(line, want): (&cotenant_tree::RawLine, &&[u8])| {
                line.len == Some(want.len() as u64) && want.starts_with(&line.bytes)
            };
            // The budget of 1 MiB may end it before the limit.
            assert!(got.lines.iter().zip(want).all(fits), "round {round} start {start} limit {limit}");
            let cut = got.lines.len() < want.len();
            assert_eq!(got.more, from + got.lines.len() < all.len(), "round {round}");
            assert!(!cut || got.lines.iter().map(|line| line.bytes.len()).sum::<usize>() > 900_000);
        }
    }
}
