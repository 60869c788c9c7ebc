//! A tool's answer, read the way a model reads it: line 1 is facts, then notices, then content; a refusal ends in `next:`.

use serde_json::Value;

/// A refusal's own text; more only with one block of fresh content (8 KB) or a diff.
const REFUSAL_BYTES: usize = 1200 + 8 * 1024;

/// One tool result.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The one text block.
    pub text: String,
    /// `isError`.
    pub is_error: bool,
    /// `_meta`, or null.
    pub meta: Value,
    /// The result as it came.
    pub raw: Value,
}

impl Reply {
    /// Reads a `tools/call` result, and checks what holds for every answer of every tool.
    pub fn read(result: &Value) -> Reply {
        let blocks = result["content"].as_array().unwrap_or_else(|| panic!("no content: {result}"));
        let [block] = blocks.as_slice() else { panic!("{} blocks, not one: {result}", blocks.len()) };
        assert_eq!(block["type"], "text", "not a text block: {result}");
        let reply = Reply {
            text: block["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned(),
            is_error: result["isError"].as_bool().unwrap_or(false),
            meta: result["_meta"].clone(),
            raw: result.clone(),
        };
        reply.assert_form();
        reply
    }

    fn assert_form(&self) {
        let text = &self.text;
        let announced = self.fact("notices").map_or(0, |count| count.parse::<usize>().unwrap());
        let notices = text.lines().skip(1).take_while(|line| line.starts_with("! ")).count();
        assert!(notices >= announced, "announces {announced} notices, has {notices}:\n{text}");
        if self.is_error {
            assert!(self.code().is_some(), "an error without a code:\n{text}");
        }
        let Some(code) = self.code() else { return };
        assert!(self.is_error || code == "APPROVAL_PENDING", "{code} is not flagged as an error:\n{text}");
        assert!(text.len() <= REFUSAL_BYTES, "a refusal of {} bytes:\n{text}", text.len());
        assert!(!self.next().is_empty(), "a refusal without a next step:\n{text}");
        assert_eq!(self.meta["cotenant/refusal"]["code"], code, "_meta names another code: {}", self.raw);
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<&str> {
        let word = self.text.split([' ', '\n']).next()?;
        let is_code = word.len() > 3 && word.chars().all(|ch| ch.is_ascii_uppercase() || ch == '_');
        is_code.then_some(word)
    }

    /// Fails unless the call was carried out.
    #[track_caller]
    pub fn ok(&self) -> &Reply {
        assert!(!self.is_error && self.code().is_none(), "refused:\n{}", self.text);
        self
    }

    /// Fails unless the call was refused with that code.
    #[track_caller]
    pub fn refused(&self, code: &str) -> &Reply {
        self.refused_as(&[code])
    }

    /// Fails unless the call was refused with one of these codes; with none given, with any.
    #[track_caller]
    pub fn refused_as(&self, codes: &[&str]) -> &Reply {
        let got = self.code().unwrap_or_else(|| panic!("not refused ({codes:?} expected):\n{}", self.text));
        assert!(codes.is_empty() || codes.contains(&got), "refused, but not as {codes:?}:\n{}", self.text);
        self
    }

    /// Fails if the call was refused with another code than these.
    #[track_caller]
    pub fn refused_as_or_ok(&self, codes: &[&str]) -> &Reply {
        if self.code().is_some() { self.refused_as(codes) } else { self.ok() }
    }

    /// Fails unless the text holds `part`.
    #[track_caller]
    pub fn says(&self, part: &str) -> &Reply {
        assert!(self.text.contains(part), "does not say {part:?}:\n{}", self.text);
        self
    }

    /// Fails unless the text holds one of these.
    #[track_caller]
    pub fn says_one_of(&self, parts: &[&str]) -> &Reply {
        assert!(parts.iter().any(|part| self.text.contains(part)), "says none of {parts:?}:\n{}", self.text);
        self
    }

    /// Fails if the text holds `part`.
    #[track_caller]
    pub fn never_says(&self, part: &str) -> &Reply {
        assert!(!self.text.contains(part), "says {part:?}:\n{}", self.text);
        self
    }

    /// A fact of line 1: bare, or a JSON string without its quotes.
    pub fn fact(&self, name: &str) -> Option<String> {
        let line = self.text.lines().next()?;
        tokens(line).into_iter().find_map(|token| {
            let (key, value) = token.split_once('=')?;
            (key == name)
                .then(|| serde_json::from_str(value).ok().filter(|_| value.starts_with('"')))?
                .or_else(|| Some(value.to_owned()))
        })
    }

    /// A fact that must be there.
    #[track_caller]
    pub fn get(&self, name: &str) -> String {
        self.fact(name).unwrap_or_else(|| panic!("no {name}= in line 1:\n{}", self.text))
    }

    /// A fact that must be a number.
    #[track_caller]
    pub fn number(&self, name: &str) -> u64 {
        let value = self.get(name);
        value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number:\n{}", self.text))
    }

    /// The announced notices, without their `! `.
    pub fn notices(&self) -> Vec<&str> {
        let count = self.fact("notices").map_or(0, |count| count.parse().unwrap());
        self.text.lines().skip(1).take(count).map(|line| line.trim_start_matches("! ")).collect()
    }

    /// What follows line 1 and the notices.
    pub fn content(&self) -> &str {
        let lines = 1 + self.notices().len();
        self.text.splitn(lines + 1, '\n').nth(lines).unwrap_or("")
    }

    /// The lines of the content that `N|` numbers, without the number.
    pub fn numbered(&self) -> Vec<(u64, &str)> {
        self.content()
            .lines()
            .filter_map(|line| {
                let (number, text) = line.split_once('|')?;
                Some((number.trim().parse().ok()?, text))
            })
            .collect()
    }

    /// The last `next:` of the answer, or "".
    pub fn next(&self) -> &str {
        let from = if self.text.starts_with("next: ") {
            Some(0)
        } else {
            self.text.rfind("\nnext: ").map(|at| at + 1)
        };
        from.map_or("", |at| &self.text[at + "next: ".len()..])
    }

    /// The first call that `next:` spells out: a tool and its arguments.
    pub fn next_call(&self) -> Option<(String, Value)> {
        call_in(self.next())
    }

    /// The first call that a notice spells out.
    pub fn noticed_call(&self) -> Option<(String, Value)> {
        self.notices().into_iter().find_map(call_in)
    }

    /// The value of `"name":"…"` in the next step: a retry token, a suggestion.
    #[track_caller]
    pub fn offered(&self, name: &str) -> String {
        let key = format!("\"{name}\":\"");
        let found = self.next().split(&key).nth(1).and_then(|rest| rest.split('"').next());
        found.unwrap_or_else(|| panic!("offers no {name}:\n{}", self.text)).to_owned()
    }
}

/// `TOOL {…}` in a text.
fn call_in(text: &str) -> Option<(String, Value)> {
    let (at, _) = text.match_indices(" {").next()?;
    let tool = text[..at].rsplit(|ch: char| !(ch.is_ascii_alphanumeric() || ch == '_')).next()?;
    let arguments = serde_json::Deserializer::from_str(&text[at + 1..]).into_iter::<Value>().next()?.ok()?;
    Some((tool.to_owned(), arguments))
}

/// The words of a line; a space inside a JSON string does not end one.
fn tokens(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for ch in line.chars() {
        if ch == ' ' && !quoted {
            words.push(std::mem::take(&mut word));
            continue;
        }
        quoted ^= ch == '"' && !escaped;
        escaped = ch == '\\' && !escaped;
        word.push(ch);
    }
    words.push(word);
    words
}
