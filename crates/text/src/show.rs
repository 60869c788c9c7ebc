//! Lines as a reader sees them: plain and lossless for reading, with the invisible made visible for diagnosis.

use std::borrow::Cow;
use std::fmt::Write;

use crate::view::View;

/// A line (without its break) for plain reading: valid text as it is, every other byte as `\xNN`. Never U+FFFD.
pub fn shown(line: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(line) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(line.len() + 16);
    for chunk in line.utf8_chunks() {
        out.push_str(chunk.valid());
        push_bytes(&mut out, chunk.invalid());
    }
    Cow::Owned(out)
}

/// A line for diagnosis: `→` for a tab, `·` for a trailing space, `<U+202E>` for what has no glyph of its own or looks like
/// a plain space (control, bidirectional, zero-width and wide-space characters), `\xNN` for bytes that are no character.
pub fn visible(line: &[u8]) -> String {
    let mut out = String::with_capacity(line.len() + 16);
    let trailing = line.len() - line.iter().rev().take_while(|b| **b == b' ').count();
    for chunk in line[..trailing].utf8_chunks() {
        for ch in chunk.valid().chars() {
            match ch {
                '\t' => out.push('→'),
                _ if is_unseen(ch) => push_code(&mut out, ch),
                _ => out.push(ch),
            }
        }
        push_bytes(&mut out, chunk.invalid());
    }
    out.extend(std::iter::repeat_n('·', line.len() - trailing));
    out
}

/// `U+00A0` and the like.
pub(crate) fn code(ch: char) -> String {
    format!("U+{:04X}", u32::from(ch))
}

fn push_code(out: &mut String, ch: char) {
    let _ = write!(out, "<{}>", code(ch));
}

fn push_bytes(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02X}");
    }
}

/// Characters without a glyph, and spaces that look like the plain one.
pub(crate) fn is_unseen(ch: char) -> bool {
    ch.is_control() || is_ignorable(ch) || (ch != ' ' && ch.is_whitespace())
}

/// Characters that take no room: zero-width, joiners, bidirectional controls, soft hyphen, variation selectors, tags.
pub(crate) fn is_ignorable(ch: char) -> bool {
    matches!(ch,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The first part of a line that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip<'a> {
    /// The part, as [`shown`] shows it.
    pub text: Cow<'a, str>,
    /// Bytes of the line that the part stands for; the rest begins there.
    pub taken: usize,
    /// Bytes of the line left out.
    pub left: usize,
}

/// The longest first part of `line` that takes at most `max_bytes` when shown; never cut inside a character or a `\xNN`.
/// At least one character is taken, so that a caller who pages always gets on.
pub fn clip(line: &[u8], max_bytes: usize) -> Clip<'_> {
    let taken = match std::str::from_utf8(line) {
        Ok(text) if text.len() <= max_bytes => line.len(),
        Ok(text) => match text.floor_char_boundary(max_bytes) {
            0 => text.chars().next().map_or(0, char::len_utf8),
            at => at,
        },
        Err(_) => clip_mixed(line, max_bytes),
    };
    Clip { text: shown(&line[..taken]), taken, left: line.len() - taken }
}

fn clip_mixed(line: &[u8], max_bytes: usize) -> usize {
    let (mut taken, mut room) = (0, max_bytes);
    for chunk in line.utf8_chunks() {
        let pieces = chunk
            .valid()
            .chars()
            .map(|c| (c.len_utf8(), c.len_utf8()))
            .chain(chunk.invalid().iter().map(|_| (1, 4)));
        for (raw, cost) in pieces {
            if cost > room && taken > 0 {
                return taken;
            }
            taken += raw;
            room = room.saturating_sub(cost);
        }
    }
    taken
}

/// Lines `first` to `last` (from 1, cut to what exists) as `N|text`, each ended by LF, within `max_bytes` in all (but at least
/// 8 bytes of the first line). A line that
/// does not fit is clipped with `…`; what comes after is left out and said in a last line `…[lines A-B left out]…`.
pub fn window(view: &View<'_>, first: usize, last: usize, max_bytes: usize) -> String {
    numbered(view, first, last, max_bytes, |line, room| {
        let part = clip(line, room);
        (part.text.into_owned(), part.left > 0)
    })
}

/// [`window`] with the invisible made visible.
pub fn visible_window(view: &View<'_>, first: usize, last: usize, max_bytes: usize) -> String {
    numbered(view, first, last, max_bytes, |line, room| {
        let part = clip(line, room);
        let mut text = visible(&line[..part.taken]);
        let cut = part.left > 0 || text.len() > room;
        text.truncate(text.floor_char_boundary(room));
        (text, cut)
    })
}

/// Bytes for `…[lines A-B left out]…`.
const LEFT_OUT: usize = 40;

fn digits(n: usize) -> usize {
    n.checked_ilog10().map_or(1, |log| log as usize + 1)
}

fn numbered(
    view: &View<'_>,
    first: usize,
    last: usize,
    max_bytes: usize,
    text: impl Fn(&[u8], usize) -> (String, bool),
) -> String {
    let (first, last) = (first.max(1), last.min(view.line_count()));
    // Kept aside for the sentence about what is left out, unless all fits without.
    let all_fits = || {
        let mut sum = 0;
        (first..=last).all(|n| {
            let (text, cut) = text(view.line(n).unwrap_or_default(), max_bytes);
            sum += digits(n) + text.len() + 2;
            !cut && sum <= max_bytes
        })
    };
    let kept = if all_fits() { 0 } else { LEFT_OUT };
    let mut out = String::new();
    for n in first..=last {
        // Beside the text: the number, its bar, a break, and a cut mark where it is cut.
        let beside = digits(n) + 2 + if kept > 0 { '…'.len_utf8() } else { 0 };
        let room = max_bytes.saturating_sub(out.len() + beside + if n < last { kept } else { 0 });
        if room < 8 && n > first && kept > 0 {
            let _ = writeln!(out, "…[lines {n}-{last} left out]…");
            break;
        }
        let (text, cut) = text(view.line(n).unwrap_or_default(), if kept > 0 { room.max(8) } else { room });
        let _ = writeln!(out, "{n}|{text}{}", if cut { "…" } else { "" });
    }
    out
}
