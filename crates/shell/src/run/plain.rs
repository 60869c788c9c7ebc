//! Output as a model or a human reads it: no escape sequences, no overwritten progress, no bytes that are no text.

/// The text that a terminal would have ended up with, roughly: escape sequences are gone, of a line that was written over
/// (`\r`) the last version stands, a backspace takes back. Bytes that are not UTF-8 and control characters are shown
/// as `\xNN`.
pub fn plain(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let line = without_escapes(line);
        show(last_version(&line), &mut text);
        if lines.peek().is_some() {
            text.push('\n');
        }
    }
    text
}

/// The line without terminal sequences: CSI, OSC and the other strings, and those of one character.
fn without_escapes(line: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        if *byte == 0x1b {
            at += 1 + sequence(&line[at + 1..]);
        } else {
            kept.push(*byte);
            at += 1;
        }
    }
    kept
}

/// How many bytes after ESC belong to the sequence.
fn sequence(rest: &[u8]) -> usize {
    match rest.first() {
        None => 0,
        Some(b'[') => {
            let end = rest[1..].iter().position(|byte| !(0x20..=0x3f).contains(byte));
            // A byte that cannot end it is not part of it.
            end.map_or(rest.len(), |at| 1 + at + usize::from((0x40..=0x7e).contains(&rest[1 + at])))
        }
        Some(b']' | b'P' | b'X' | b'^' | b'_') => string_end(rest),
        Some(0x20..=0x2f) => {
            rest.iter().position(|byte| !(0x20..=0x2f).contains(byte)).map_or(rest.len(), |at| at + 1)
        }
        Some(0x30..=0x7e) => 1,
        Some(_) => 0,
    }
}

/// Such a string ends with BEL or `ESC \`; one without an end goes to the end of the line.
fn string_end(rest: &[u8]) -> usize {
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            0x07 => return at + 1,
            0x1b if rest.get(at + 1) == Some(&b'\\') => return at + 2,
            _ => {}
        }
    }
    rest.len()
}

/// What stands after the last `\r` that was followed by anything.
fn last_version(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |at| at + 1);
    let line = &line[..end];
    line.iter().rposition(|byte| *byte == b'\r').map_or(line, |at| &line[at + 1..])
}

fn show(line: &[u8], text: &mut String) {
    let start = text.len();
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => text.push(c),
                // As in a manual page, where a bold letter is written twice.
                '\u{8}' if text.len() > start => drop(text.pop()),
                '\u{8}' => {}
                c if (c as u32) < 0x20 || (0x7f..0xa0).contains(&(c as u32)) => escape(c as u8, text),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(*byte, text));
    }
}

fn escape(byte: u8, text: &mut String) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    text.push_str("\\x");
    text.push(char::from(HEX[usize::from(byte >> 4)]));
    text.push(char::from(HEX[usize::from(byte & 15)]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sequences_are_gone() {
        for (raw, shown) in [
            ("\x1b[31;1mred\x1b[0m", "red"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b(Bplain\x1b=\x1bc", "plain"),
            ("a\x1b[2K\x1b[1Gb", "ab"),
            ("open\x1b[31", "open"),
            ("open\x1b]0;title", "open"),
            ("end\x1b", "end"),
        ] {
            assert_eq!(plain(raw.as_bytes()), shown, "{raw:?}");
        }
    }

    #[test]
    fn of_a_line_written_over_the_last_version_stands() {
        assert_eq!(plain(b" 10%\r 50%\r100%\ndone\r\n"), "100%\ndone\n");
        assert_eq!(plain(b"a\rb\r\r\n\r\n"), "b\n\n");
    }

    #[test]
    fn what_is_no_text_is_shown_as_bytes() {
        assert_eq!(plain(b"a\xffb\0\x07\tc\xc3"), "a\\xffb\\x00\\x07\tc\\xc3");
        assert_eq!(plain("ü€\u{85}".as_bytes()), "ü€\\x85");
        assert_eq!(plain(b"N\x08NA\x08A_\x08x"), "NAx");
        assert_eq!(plain(b"\x08a"), "a");
    }

    proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_is_left(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = plain(&bytes);
            prop_assert!(text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
            prop_assert_eq!(text.matches('\n').count(), bytes.iter().filter(|byte| **byte == b'\n').count());
        }

        #[test]
        fn plain_text_stays_as_it_is(text in "[a-zäß€ \t\n]{0,100}") {
            prop_assert_eq!(plain(text.as_bytes()), text);
        }
    }
}
