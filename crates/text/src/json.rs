//! Just enough of JSON to find values in bytes and leave everything around them alone: spans, and the text of a string.

use std::ops::Range;

/// Reads forward through JSON text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'j> {
    bytes: &'j [u8],
    at: usize,
}

impl<'j> Scanner<'j> {
    pub(crate) fn new(bytes: &'j [u8], at: usize) -> Scanner<'j> {
        Scanner { bytes, at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is no space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let rest = self.bytes.get(self.at..)?;
        self.at += rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.bytes.get(self.at).copied()
    }

    /// Takes the next byte if it is `wanted`.
    pub(crate) fn eat(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// The span of the string that comes next, quotes included.
    pub(crate) fn string(&mut self) -> Option<Range<usize>> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at;
        let mut at = start + 1;
        loop {
            match self.bytes.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        Some(start..self.at)
    }

    /// The span of the value that comes next, whatever it is.
    pub(crate) fn value(&mut self) -> Option<Range<usize>> {
        self.peek()?;
        let start = self.at;
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                bracket @ (b'{' | b'[') => {
                    open.push(bracket);
                    self.at += 1;
                    continue;
                }
                close @ (b'}' | b']') => {
                    let fits = matches!((open.pop()?, close), (b'{', b'}') | (b'[', b']'));
                    self.at += usize::from(fits);
                    fits.then_some(())?;
                }
                b',' | b':' if !open.is_empty() => {
                    self.at += 1;
                    continue;
                }
                _ => self.word()?,
            }
            if open.is_empty() {
                return Some(start..self.at);
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest
            .iter()
            .take_while(|b| matches!(b, b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.'))
            .count();
        self.at += length;
        (length > 0).then_some(())
    }

    /// The members of the object that comes next: spans of key and value.
    pub(crate) fn members(&mut self) -> Option<Vec<(Range<usize>, Range<usize>)>> {
        self.eat(b'{')?;
        let mut members = Vec::new();
        if self.eat(b'}').is_some() {
            return Some(members);
        }
        loop {
            let key = self.string()?;
            self.eat(b':')?;
            members.push((key, self.value()?));
            if self.eat(b',').is_none() {
                return self.eat(b'}').map(|()| members);
            }
        }
    }

    /// The spans of the items of the array that comes next.
    pub(crate) fn items(&mut self) -> Option<Vec<Range<usize>>> {
        self.eat(b'[')?;
        let mut items = Vec::new();
        if self.eat(b']').is_some() {
            return Some(items);
        }
        loop {
            items.push(self.value()?);
            if self.eat(b',').is_none() {
                return self.eat(b']').map(|()| items);
            }
        }
    }
}

/// The text of a string, given with its quotes. `None` for what is no string, or half a surrogate pair.
pub(crate) fn decode(literal: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(literal).ok()?.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (ch, used) = escape(&rest[at..])?;
        out.push(ch);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    Some(out)
}

/// The character that an escape at the start of `text` means, and the bytes it takes.
fn escape(text: &str) -> Option<(char, usize)> {
    let plain = |ch| Some((ch, 2));
    match text.as_bytes().get(1)? {
        b'n' => plain('\n'),
        b't' => plain('\t'),
        b'r' => plain('\r'),
        b'b' => plain('\u{8}'),
        b'f' => plain('\u{c}'),
        b'/' => plain('/'),
        b'\\' => plain('\\'),
        b'"' => plain('"'),
        b'u' => {
            let unit = |at: usize| u16::from_str_radix(text.get(at..at + 4)?, 16).ok();
            let first = unit(2)?;
            if let Some(ch) = char::from_u32(u32::from(first)) {
                return Some((ch, 6));
            }
            let second = text.get(6..8).filter(|mark| *mark == "\\u").and_then(|_| unit(8))?;
            char::decode_utf16([first, second]).next()?.ok().map(|ch| (ch, 12))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Scanner, decode};

    fn spans(text: &str, found: Option<Vec<std::ops::Range<usize>>>) -> Option<Vec<&str>> {
        found.map(|spans| spans.into_iter().map(|span| &text[span]).collect())
    }

    #[test]
    fn items_are_found_whatever_stands_between() {
        let items = |text: &'static str| spans(text, Scanner::new(text.as_bytes(), 0).items());
        assert_eq!(
            items(" [ 1 ,\"a]\\\"\", {\"b\": [2, 3]},null ]"),
            Some(vec!["1", "\"a]\\\"\"", "{\"b\": [2, 3]}", "null"])
        );
        assert_eq!(items("[]"), Some(vec![]));
        for broken in ["", "[", "[1", "[1,", "[1 2]", "[1,]", "{}", "[\"a]", "[[1}]", "[}"] {
            assert_eq!(items(broken), None, "{broken}");
        }
    }

    #[test]
    fn members_are_found_with_their_keys() {
        let members = |text: &'static str| {
            let found = Scanner::new(text.as_bytes(), 0).members()?;
            Some(found.into_iter().map(|(key, value)| (&text[key], &text[value])).collect::<Vec<_>>())
        };
        assert_eq!(
            members("{ \"a\" : 1, \"b\":{\"c\":[true]} }"),
            Some(vec![("\"a\"", "1"), ("\"b\"", "{\"c\":[true]}")])
        );
        assert_eq!(members("{}"), Some(vec![]));
        for broken in ["{", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{a:1}", "{\"a\":1,}", "[]"] {
            assert_eq!(members(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_scanner_goes_on_behind_what_it_took() {
        let text = b" \"x\" true -1.5e+3 ";
        let mut scanner = Scanner::new(text, 0);
        assert_eq!(scanner.string().map(|span| &text[span]), Some(b"\"x\"".as_slice()));
        assert_eq!(scanner.value().map(|span| &text[span]), Some(b"true".as_slice()));
        assert_eq!(scanner.value().map(|span| &text[span]), Some(b"-1.5e+3".as_slice()));
        assert_eq!((scanner.peek(), scanner.at()), (None, text.len()));
        assert_eq!(Scanner::new(b"x", 9).value(), None);
    }

    #[test]
    fn strings_are_decoded_or_refused() {
        let yes = [
            (r#""""#, ""),
            (r#""a\"\\\/\b\f\n\r\t""#, "a\"\\/\u{8}\u{c}\n\r\t"),
            (r#""\u00e9\u4e2d""#, "é中"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""é😀""#, "é😀"),
        ];
        for (literal, text) in yes {
            assert_eq!(decode(literal.as_bytes()).as_deref(), Some(text), "{literal}");
        }
        for literal in [
            "",
            "\"",
            "a",
            r#""\x""#,
            r#""\u12""#,
            r#""\ud83d""#,
            r#""\ud83dx""#,
            r#""\ude00""#,
            r#""\ud83d\u0041""#,
            r#""\"#,
        ] {
            assert_eq!(decode(literal.as_bytes()), None, "{literal}");
        }
        assert_eq!(decode(b"\"\xff\""), None);
    }
}
