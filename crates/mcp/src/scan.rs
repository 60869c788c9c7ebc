//! Finds what a JSON-RPC line is about (id, method, where its params lie) without parsing it: in one pass, in chunks,
//! in bounded memory. For lines that are only passed on, and for lines that are too long to be kept.

use memchr::memchr2;

/// Longest id or method that is kept, in bytes; longer ones count as absent.
const WORD: usize = 512;

/// What is known of the line so far. Feed it in order, in chunks of any size; what is no JSON gives nonsense, not harm.
#[derive(Debug, Default)]
pub struct Scan {
    at: usize,
    depth: usize,
    /// Whether the container at depth 2 is the object of `params`.
    in_params: bool,
    string: Option<Escape>,
    expect: Expect,
    key: Key,
    word: Vec<u8>,
    keeps: bool,
    id: Option<Vec<u8>>,
    method: Option<Vec<u8>>,
    answers: bool,
    params: Option<usize>,
    meta: Option<usize>,
    request: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    No,
    Next,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Expect {
    #[default]
    Nothing,
    Key,
    Value,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Key {
    #[default]
    Other,
    Id,
    Method,
    Params,
    Meta,
    Request,
}

impl Scan {
    /// The scan of a whole line.
    pub fn of(line: &[u8]) -> Scan {
        let mut scan = Scan::default();
        scan.feed(line);
        scan
    }

    /// The raw JSON of the top-level `id`, such as `7` or `"a"`; `None` where there is none, or it is `null`.
    pub fn id(&self) -> Option<&[u8]> {
        self.id.as_deref()
    }

    /// The top-level `method`, between its quotes.
    pub fn method(&self) -> Option<&[u8]> {
        self.method.as_deref()
    }

    /// Whether it carries a `result` or an `error`: an answer.
    pub fn answers(&self) -> bool {
        self.answers
    }

    /// Offset of the first byte inside the object of `params`.
    pub fn params(&self) -> Option<usize> {
        self.params
    }

    /// Offset of the first byte inside the object of `params._meta`.
    pub fn meta(&self) -> Option<usize> {
        self.meta
    }

    /// The raw JSON of `params.requestId`: what `notifications/cancelled` cancels.
    pub fn request(&self) -> Option<&[u8]> {
        self.request.as_deref()
    }

    /// Takes the next bytes of the line.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            let used = match self.string {
                Some(escape) => self.in_string(escape, rest),
                None => {
                    self.structure(byte);
                    1
                }
            };
            self.at += used;
            rest = &rest[used..];
        }
    }

    /// Passes over a string's bytes; how many.
    fn in_string(&mut self, escape: Escape, bytes: &[u8]) -> usize {
        if escape == Escape::Next {
            self.keep(&bytes[..1]);
            self.string = Some(Escape::No);
            return 1;
        }
        let Some(end) = memchr2(b'"', b'\\', bytes) else {
            self.keep(bytes);
            return bytes.len();
        };
        self.keep(&bytes[..=end]);
        if bytes[end] == b'\\' {
            self.string = Some(Escape::Next);
        } else {
            self.string = None;
            self.word_ended();
        }
        end + 1
    }

    /// One byte outside of strings.
    fn structure(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.string = Some(Escape::No);
                self.begin_word(byte);
            }
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => {
                self.bare_ended();
                self.depth = self.depth.saturating_sub(1);
                self.in_params &= self.depth >= 2;
                self.expect = Expect::Nothing;
            }
            b',' if self.watched() => {
                self.bare_ended();
                self.expect = Expect::Key;
            }
            b':' if self.watched() => self.expect = Expect::Value,
            b' ' | b'\t' | b'\r' | b'\n' => self.bare_ended(),
            _ if self.keeps => self.keep(&[byte]),
            _ if self.expect == Expect::Value => self.begin_word(byte),
            _ => {}
        }
    }

    /// Whether keys are looked at here: in the message itself, and in its params.
    fn watched(&self) -> bool {
        self.depth == 1 || (self.depth == 2 && self.in_params)
    }

    fn open(&mut self, byte: u8) {
        let value = self.watched() && self.expect == Expect::Value;
        let object = byte == b'{';
        if value && object {
            match (self.depth, self.key) {
                (1, Key::Params) => {
                    self.params = Some(self.at + 1);
                    self.in_params = true;
                }
                (2, Key::Meta) => self.meta = Some(self.at + 1),
                _ => {}
            }
        }
        self.depth += 1;
        self.expect = if object && self.watched() { Expect::Key } else { Expect::Nothing };
    }

    fn begin_word(&mut self, byte: u8) {
        self.keeps = match self.expect {
            Expect::Key => self.watched(),
            Expect::Value => self.watched() && matches!(self.key, Key::Id | Key::Method | Key::Request),
            Expect::Nothing => false,
        };
        self.word.clear();
        self.keep(&[byte]);
        if self.expect == Expect::Value && !self.keeps {
            self.expect = Expect::Nothing;
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.keeps && self.word.len() <= WORD {
            self.word.extend_from_slice(&bytes[..bytes.len().min(WORD + 1)]);
        }
    }

    /// A number or a literal ends where its container or the next entry begins.
    fn bare_ended(&mut self) {
        if self.keeps {
            self.word_ended();
        }
    }

    fn word_ended(&mut self) {
        if !std::mem::take(&mut self.keeps) {
            return;
        }
        let fits = self.word.len() <= WORD;
        match self.expect {
            Expect::Key => self.key = if fits { self.key_of_word() } else { Key::Other },
            Expect::Value if fits => self.value_of_word(),
            _ => {}
        }
        self.expect = Expect::Nothing;
    }

    fn key_of_word(&mut self) -> Key {
        match (self.depth, self.word.as_slice()) {
            (1, b"\"id\"") => Key::Id,
            (1, b"\"method\"") => Key::Method,
            (1, b"\"params\"") => Key::Params,
            (1, b"\"result\"" | b"\"error\"") => {
                self.answers = true;
                Key::Other
            }
            (2, b"\"_meta\"") => Key::Meta,
            (2, b"\"requestId\"") => Key::Request,
            _ => Key::Other,
        }
    }

    fn value_of_word(&mut self) {
        let word = || self.word.clone();
        match (self.depth, self.key) {
            (1, Key::Id) if self.word != b"null" => self.id = Some(word()),
            (1, Key::Method) => {
                let quoted = self.word.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
                self.method = quoted.map(<[u8]>::to_vec);
            }
            (2, Key::Request) => self.request = Some(word()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Option<&[u8]>) -> Option<&str> {
        bytes.map(|bytes| std::str::from_utf8(bytes).unwrap())
    }

    #[test]
    fn the_top_level_counts_and_nothing_else() {
        let line = br#"{"jsonrpc":"2.0","params":{"name":"x","arguments":{"id":9,"method":"no","s":"\"id\":8,{[\\"},"list":[{"id":5}]},"id" : 7 ,"method":"tools/call"}"#;
        let scan = Scan::of(line);
        assert_eq!(text(scan.id()), Some("7"));
        assert_eq!(text(scan.method()), Some("tools/call"));
        assert!(!scan.answers());
        assert_eq!(&line[scan.params().unwrap()..][..6], b"\"name\"");
        assert_eq!(scan.meta(), None);
    }

    #[test]
    fn ids_of_every_kind() {
        for (line, id) in [
            (r#"{"id":"a\"b","result":{}}"#, Some(r#""a\"b""#)),
            (r#"{"id":-3}"#, Some("-3")),
            (r#"{"id":null,"method":"x"}"#, None),
            (r#"{"id":{"id":1}}"#, None),
            (r#"{"a":["id",{"id":1}]}"#, None),
            (r#"[{"id":1}]"#, None),
            ("{\"id\":12\n", Some("12")),
            ("", None),
            ("\"id\":4", None),
        ] {
            assert_eq!(text(Scan::of(line.as_bytes()).id()), id, "{line}");
        }
        assert!(Scan::of(br#"{"id":1,"error":{}}"#).answers());
        let long = format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(600));
        assert_eq!(Scan::of(long.as_bytes()).id(), None);
        assert_eq!(text(Scan::of(long.as_bytes()).method()), Some("m"));
    }

    #[test]
    fn meta_and_the_cancelled_request_are_found_in_params_only() {
        let line = br#"{"params":{"a":{"_meta":{"x":1}},"_meta":{"k":2},"requestId":"q"},"x":{"_meta":{}}}"#;
        let scan = Scan::of(line);
        assert_eq!(&line[scan.meta().unwrap()..][..3], b"\"k\"");
        assert_eq!(text(scan.request()), Some("\"q\""));
    }

    #[test]
    fn chunks_of_any_size_give_the_same() {
        let line = br#"{"jsonrpc":"2.0","id":"a\\\"","method":"tools/call","params":{"_meta":{"p":"}"},"b":[1,"]"]}}"#;
        let whole = Scan::of(line);
        for size in 1..line.len() {
            let mut scan = Scan::default();
            line.chunks(size).for_each(|chunk| scan.feed(chunk));
            assert_eq!((scan.id(), scan.method(), scan.meta()), (whole.id(), whole.method(), whole.meta()));
        }
    }
}
