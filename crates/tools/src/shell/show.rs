//! What of a command's output an answer shows: its beginning and its end, whole lines, and how to get the rest.

use std::collections::HashMap;

use cotenant_shell::run::{Output, Snapshot, plain};

/// Bytes of a running command's output that an answer shows.
pub(super) const RUNNING: usize = 2000;
/// Bytes of the output of a command that was ended.
pub(super) const ENDED: usize = 3000;
/// Lines of an output that are compared with those of the run before, at most in so many bytes.
const COMPARED: usize = 1 << 20;
/// Lines that came new which an answer names.
const NEW_LINES: usize = 3;

/// Part of an output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// For the fact `shown`; `None` where all is there.
    pub(super) shown: Option<String>,
    /// The text, without a final newline.
    pub(super) text: String,
}

/// How the bytes of an answer are divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) head: usize,
    pub(super) tail: usize,
}

impl Share {
    /// What went well is told by how it began and ended, what did not by its end.
    pub(super) fn of(bytes: usize, well: bool) -> Share {
        let head = if well { bytes * 3 / 8 } else { bytes / 6 };
        Share { head, tail: bytes - head }
    }

    /// The end alone.
    pub(super) fn tail(bytes: usize) -> Share {
        Share { head: 0, tail: bytes }
    }
}

/// The beginning and the end of an output; `handle` is where the rest is to be had.
pub(super) fn excerpt(output: &Output, share: Share, handle: &str) -> Excerpt {
    let Snapshot { head, tail, counts, .. } = output.snapshot(share.head, share.tail);
    arranged(counts.total(), &head, &tail, share, handle)
}

/// `head` is all of it where nothing is left out.
fn arranged(total: u64, head: &[u8], tail: &[u8], share: Share, handle: &str) -> Excerpt {
    if (head.len() + tail.len()) as u64 >= total {
        let text = plain(&[head, tail].concat());
        return Excerpt { shown: None, text: text.trim_end_matches('\n').to_owned() };
    }
    let head = &head[..whole_lines(head)];
    let tail = &tail[from_whole_line(tail)..];
    let left = total - (head.len() + tail.len()) as u64;
    let gap = format!("…[{left} bytes left out; read_more handle={handle}, or with pattern=…]…\n");
    let text = plain(head) + &gap + &plain(tail);
    let shown = match share.head {
        0 => format!("tail:{}", tail.len()),
        _ => format!("head:{},tail:{}", head.len(), tail.len()),
    };
    Excerpt { shown: Some(shown), text: text.trim_end_matches('\n').to_owned() }
}

/// Up to where there are whole lines; a line that is longer than all of it stays cut.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1)
}

/// Where the first whole line begins, unless that would leave little of it.
fn from_whole_line(bytes: &[u8]) -> usize {
    let first = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if first < bytes.len() / 2 { first } else { 0 }
}

/// Bytes of an output from a place on, and where they begin: behind what was not kept, where that is asked for.
pub(crate) fn from(output: &Output, offset: u64, most: usize) -> (u64, Vec<u8>) {
    let offset = offset.min(output.len());
    let bytes = output.read(offset, most);
    match output.gap() {
        Some((start, end)) if bytes.is_empty() && (start..end).contains(&offset) => {
            (end, output.read(end, most))
        }
        _ => (offset, bytes),
    }
}

/// The lines of an output, counted, to be compared with those of another run of the same command.
pub(super) fn counted(output: &Output) -> HashMap<String, usize> {
    let mut lines = HashMap::new();
    for line in plain(&output.read(0, COMPARED)).lines() {
        *lines.entry(line.to_owned()).or_insert(0) += 1;
    }
    lines
}

/// What a repeated command says that it did not say before, in one line; `None` where there is nothing new.
pub(super) fn news(before: &HashMap<String, usize>, now: &HashMap<String, usize>) -> String {
    let more = |a: &HashMap<String, usize>, b: &HashMap<String, usize>| -> usize {
        a.iter().map(|(line, count)| count.saturating_sub(*b.get(line).unwrap_or(&0))).sum()
    };
    let (new, gone) = (more(now, before), more(before, now));
    if new == 0 && gone == 0 {
        return "same output as before".to_owned();
    }
    let mut named: Vec<&str> =
        now.keys().filter(|line| !before.contains_key(*line)).map(String::as_str).collect();
    named.sort_unstable();
    let named: Vec<String> = named
        .iter()
        .filter(|line| !line.trim().is_empty())
        .take(NEW_LINES)
        .map(|line| format!("`{}`", line.trim().chars().take(100).collect::<String>()))
        .collect();
    let such = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    format!("{new} lines are new, {gone} are gone{such}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_where_it_fits() {
        let share = Share::of(100, true);
        let all = arranged(6, b"a\nb\nc\n", b"", share, "h1");
        assert_eq!(all, Excerpt { shown: None, text: "a\nb\nc".to_owned() });
    }

    #[test]
    fn whole_lines_of_both_ends_and_the_way_to_the_rest() {
        let share = Share { head: 5, tail: 10 };
        let cut = arranged(1000, b"one\ntw", b"th\nfour\nsix\n", share, "h7");
        let gap = "…[987 bytes left out; read_more handle=h7, or with pattern=…]…";
        assert_eq!(cut.text, format!("one\n{gap}\nfour\nsix"));
        assert_eq!(cut.shown.as_deref(), Some("head:4,tail:9"));
    }

    #[test]
    fn a_line_that_is_longer_than_the_room_is_cut() {
        let cut = arranged(1000, b"", b"aaaaaaaaaa", Share::tail(10), "h7");
        assert!(cut.text.ends_with("…\naaaaaaaaaa"), "{}", cut.text);
        assert_eq!(cut.shown.as_deref(), Some("tail:10"));
    }

    #[test]
    fn what_is_new_since_the_last_run_is_counted_and_named() {
        let lines = |text: &str| {
            let mut lines = HashMap::new();
            text.lines().for_each(|line| *lines.entry(line.to_owned()).or_insert(0) += 1);
            lines
        };
        let before = lines("ok\nok\nfail a");
        assert_eq!(news(&before, &before), "same output as before");
        assert_eq!(news(&before, &lines("ok\nfail b")), "1 lines are new, 2 are gone: `fail b`");
    }
}
