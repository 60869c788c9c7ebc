//! The names of files in the headers of unified diffs: quotes, time stamps, prefixes.

/// A name as a header gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// `/dev/null`, or the time stamp that means the same.
    Nothing,
    /// A path, prefixes included; whether its time stamp is that of a file that does not exist.
    Path(Vec<u8>, bool),
}

/// The name after `--- ` or `+++ `: quoted, or up to a TAB, or up to a date.
pub(super) fn header_name(rest: &[u8]) -> Option<Name> {
    let (name, after) = match rest.first() {
        Some(b'"') => unquote(rest)?,
        _ => {
            let end = rest.iter().position(|b| *b == b'\t').or_else(|| date_at(rest)).unwrap_or(rest.len());
            (rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]).to_vec(), &rest[end..])
        }
    };
    match name.as_slice() {
        b"/dev/null" => Some(Name::Nothing),
        b"" => None,
        _ => Some(Name::Path(name, is_epoch(after.trim_ascii()))),
    }
}

/// Where a space and a date (` 2026-11-30 `) begin, which some programs write without a TAB before it.
fn date_at(text: &[u8]) -> Option<usize> {
    const SHAPE: &[u8] = b" dddd-dd-dd dd:dd";
    let fits = |part: &[u8]| {
        part.iter().zip(SHAPE).all(|(b, want)| if *want == b'd' { b.is_ascii_digit() } else { b == want })
    };
    text.windows(SHAPE.len()).position(fits)
}

/// The time stamp that `diff -N` gives a file that does not exist.
fn is_epoch(stamp: &[u8]) -> bool {
    stamp.starts_with(b"1970-01-01 ") || stamp.starts_with(b"1969-12-31 ")
}

/// A name in C quotes at the start of `text`, and what follows it.
pub(super) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut out = Vec::new();
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' => return Some((out, rest)),
            b'\\' => {
                let (byte, after) = escape(rest)?;
                out.push(byte);
                rest = after;
            }
            byte => out.push(*byte),
        }
    }
}

/// The byte that stands for what follows a backslash.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    let (first, rest) = text.split_first()?;
    let byte = match first {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        b'"' | b'\\' => *first,
        b'0'..=b'3' => {
            let [second @ b'0'..=b'7', third @ b'0'..=b'7', after @ ..] = rest else {
                return None;
            };
            return Some(((first - b'0') << 6 | (second - b'0') << 3 | (third - b'0'), after));
        }
        _ => return None,
    };
    Some((byte, rest))
}

/// `name` without its first `count` folders; `None` where it has not so many.
pub(super) fn stripped(name: &[u8], count: usize) -> Option<&[u8]> {
    let mut rest = name;
    for _ in 0..count {
        let slash = rest.iter().position(|b| *b == b'/')?;
        let run = rest[slash..].iter().take_while(|b| **b == b'/').count();
        rest = &rest[slash + run..];
    }
    (!rest.is_empty()).then_some(rest)
}

/// The one path that two names mean. Without `strip`: the names if they are equal, else without their first folders (`a/`, `b/`)
/// if they are equal then, else the name that the other extends by `.orig` or the like.
pub(super) fn agreed(old: &[u8], new: &[u8], strip: Option<usize>) -> Option<Vec<u8>> {
    let (old, new) = match strip {
        Some(count) => (stripped(old, count)?, stripped(new, count)?),
        None if old == new => (old, new),
        None => match (stripped(old, 1), stripped(new, 1)) {
            (Some(old), Some(new)) if same_file(old, new).is_some() => (old, new),
            _ => (old, new),
        },
    };
    same_file(old, new).map(<[u8]>::to_vec)
}

fn same_file<'n>(old: &'n [u8], new: &'n [u8]) -> Option<&'n [u8]> {
    let saved = |long: &[u8], short: &[u8]| {
        long.strip_prefix(short).is_some_and(|end| matches!(end, b".orig" | b".old" | b".bak" | b"~"))
    };
    match () {
        () if old == new || saved(old, new) => Some(new),
        () if saved(new, old) => Some(old),
        () => None,
    }
}

/// The path of a name that stands alone, its other side being nothing. Without `strip`, `own` (`a/` or `b/`) is taken off.
pub(super) fn alone(name: &[u8], own: &[u8], strip: Option<usize>) -> Option<Vec<u8>> {
    match strip {
        Some(count) => stripped(name, count).map(<[u8]>::to_vec),
        None => Some(name.strip_prefix(own).filter(|rest| !rest.is_empty()).unwrap_or(name).to_vec()),
    }
}

/// The one path that both names of a `diff --git` line mean, found by trying where the first name may end.
pub(super) fn git_pair(rest: &[u8], strip: Option<usize>) -> Option<Vec<u8>> {
    let rest = rest.trim_ascii_end();
    if rest.starts_with(b"\"") {
        let (old, after) = unquote(rest)?;
        return agreed(&old, &plain_or_quoted(after.strip_prefix(b" ")?)?, strip);
    }
    let spaces = rest.iter().enumerate().filter(|(_, b)| **b == b' ').map(|(at, _)| at);
    spaces.into_iter().find_map(|at| exactly_agreed(&rest[..at], &plain_or_quoted(&rest[at + 1..])?, strip))
}

/// [`agreed`], but nothing that merely resembles: a space may be part of a name.
fn exactly_agreed(old: &[u8], new: &[u8], strip: Option<usize>) -> Option<Vec<u8>> {
    let pairs = match strip {
        Some(count) => vec![(stripped(old, count), stripped(new, count))],
        None => vec![(Some(old), Some(new)), (stripped(old, 1), stripped(new, 1))],
    };
    pairs
        .into_iter()
        .find_map(|(old, new)| (old.is_some() && old == new).then(|| old.unwrap_or_default().to_vec()))
}

fn plain_or_quoted(text: &[u8]) -> Option<Vec<u8>> {
    match text.first()? {
        b'"' => unquote(text).filter(|(_, after)| after.is_empty()).map(|(name, _)| name),
        _ => Some(text.to_vec()),
    }
}
