//! Other readings of old text: escapes that stand for characters, and characters that stand for what an answer showed.
//! They serve the diagnosis and what it offers; nothing is ever unescaped unasked.

use crate::diagnose::Cause;

/// Old text read otherwise.
pub(crate) struct Reading {
    /// The bytes to look for.
    pub(crate) text: Vec<u8>,
    /// What differs, in words.
    pub(crate) what: &'static str,
    /// The cause that it would be.
    pub(crate) cause: Cause,
}

/// A way to read a line otherwise, and what it means for the text, in words.
pub(crate) type Rewriting = (fn(&str) -> String, &'static str);

/// The ways to read a line otherwise that a whole patch may need.
pub(crate) fn rewritings() -> [Rewriting; 5] {
    [
        (unescaped, r"backslash escapes (\t, \n, \) became the characters themselves"),
        (entities, "HTML entities (&lt;, &amp;) became the characters themselves"),
        (to_entities, "characters became the HTML entities (&lt;, &amp;) that the file has"),
        (|text| text.replace('\\', r"\\"), "each backslash became two, as in the file"),
        (unshown, "the signs for unseen characters (→ for a tab, · for a space, <U+00A0>) became these"),
    ]
}

/// The readings of `old` that differ from it.
pub(crate) fn readings(old: &str) -> Vec<Reading> {
    let escapes = |text: String, what| Reading { text: text.into_bytes(), what, cause: Cause::Escapes };
    let shown = unshown(old);
    let all = [
        escapes(
            unescaped(old),
            r"old_text has backslash escapes (\t for a tab, \n, \) where the file has the characters themselves",
        ),
        escapes(
            doubled(old),
            r"the file has backslash escapes (\t for a tab, \n, \) where old_text has the characters themselves",
        ),
        escapes(old.replace('\\', r"\\"), r"the file has two backslashes where old_text has one"),
        escapes(
            entities(old),
            "old_text has HTML entities (&lt;, &amp;) where the file has the characters themselves",
        ),
        escapes(
            to_entities(old),
            "the file has HTML entities (&lt;, &amp;) where old_text has the characters themselves",
        ),
        escapes(
            shown,
            "old_text has the signs that answers use for unseen characters (→ for a tab, · for a space, <U+00A0>)",
        ),
        Reading {
            text: raw_bytes(old),
            what: r"old_text has \xNN, which stands for a byte that is not text: choose old_text beside it",
            cause: Cause::Encoding,
        },
    ];
    all.into_iter().filter(|reading| reading.text != old.as_bytes() && !reading.text.is_empty()).collect()
}

/// `\t`, `\n`, `\r`, `\"`, `\'`, `\/`, `\\` as the characters.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        let meant = match (ch, chars.peek()) {
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('r')) => Some('\r'),
            ('\\', Some(same @ ('"' | '\'' | '/' | '\\' | '`' | '$'))) => Some(*same),
            _ => None,
        };
        if meant.is_some() {
            chars.next();
        }
        out.push(meant.unwrap_or(ch));
    }
    out
}

/// Tabs and breaks as `\t` and `\n`.
fn doubled(text: &str) -> String {
    text.replace('\t', r"\t").replace('\n', r"\n")
}

const ENTITIES: [(&str, &str); 6] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&apos;", "'"), ("&amp;", "&")];

fn entities(text: &str) -> String {
    ENTITIES.iter().fold(text.to_owned(), |text, (entity, meant)| text.replace(entity, meant))
}

fn to_entities(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The signs of [`crate::visible`] as the characters they stand for.
fn unshown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        let (meant, len) = match ch {
            '→' => (Some('\t'), ch.len_utf8()),
            '·' => (Some(' '), ch.len_utf8()),
            '<' => code_point(rest).map_or((None, 1), |(meant, len)| (Some(meant), len)),
            _ => (None, ch.len_utf8()),
        };
        out.push(meant.unwrap_or(ch));
        rest = &rest[len..];
    }
    out
}

/// The character of `<U+00A0>` at the start of a text, and the length of that.
fn code_point(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix("<U+")?.split_once('>')?.0;
    if !(4..=6).contains(&digits.len()) {
        return None;
    }
    Some((char::from_u32(u32::from_str_radix(digits, 16).ok()?)?, digits.len() + 4))
}

/// `\xNN` (two upper-case digits, as answers show it) as the byte.
fn raw_bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let byte = match rest {
            [b'\\', b'x', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &rest[4..] } else { after };
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
