//! What a word says: its literal text, and the places where only the shell knows what will stand there.

use super::lex::{Reader, Unread, is_meta};

/// A piece of a word, quotes taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Literal text.
    Text(String),
    /// An unquoted `*`, `?` or `[`.
    Glob(char),
    /// Unquoted braces that make several words.
    Braces,
    /// `~` or `~user`, without what follows; the name without `~`.
    Tilde(String),
    /// A variable.
    Var(Var),
    /// Commands whose output stands there. `quoted`: it stays one word.
    Run { script: String, quoted: bool },
    /// Arithmetic; `simple` where it is made of numbers alone.
    Sum { simple: bool },
}

/// A variable in a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Var {
    /// Its name; a digit or a sign for the shell's own.
    pub(super) name: String,
    /// `$name` or `${name}`, its value unchanged.
    pub(super) whole: bool,
    /// Expanding it runs nothing, sets nothing and counts nothing.
    pub(super) tame: bool,
    /// Where it is unset or empty, the command does not run (`${x:?}`), or another text stands there (`${x:-y}`).
    pub(super) guarded: bool,
    /// In double quotes: it stays one word.
    pub(super) quoted: bool,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// As written.
    pub(super) raw: String,
    pub(super) pieces: Vec<Piece>,
}

impl Word {
    /// Reads a word as the lexer has cut it.
    pub(super) fn read(raw: &str) -> Result<Word, Unread> {
        // The test command: a bracket that is never closed is no pattern.
        if raw == "[" {
            return Ok(Word::exactly(raw));
        }
        Ok(Word { raw: raw.to_owned(), pieces: Scan::of(raw).word()? })
    }

    /// A word that is exactly this text.
    pub(super) fn exactly(text: &str) -> Word {
        Word { raw: text.to_owned(), pieces: vec![Piece::Text(text.to_owned())] }
    }

    /// What the body of an expanded here-document says.
    pub(super) fn of_body(body: &str) -> Result<Word, Unread> {
        let mut scan = Scan::of(body);
        scan.expanded(None)?;
        Ok(Word { raw: String::new(), pieces: scan.pieces })
    }

    /// The text, where it is known to the last byte.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The literal text before the first piece that is none.
    pub(super) fn start(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }

    /// Nothing in it hides what it is, but a pattern of file names.
    pub(super) fn is_plain(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_) | Piece::Glob(_) | Piece::Tilde(_)))
    }

    /// Whatever stands there in the end, it is one word or several that are no options.
    pub(super) fn is_operand(&self) -> bool {
        let whole = |piece: &Piece| match piece {
            Piece::Text(_) | Piece::Glob(_) | Piece::Tilde(_) => true,
            Piece::Var(var) => var.quoted && var.tame,
            Piece::Run { quoted, .. } => *quoted,
            Piece::Sum { simple } => *simple,
            Piece::Braces => false,
        };
        let begins = match self.pieces.first() {
            Some(Piece::Text(text)) => !text.starts_with('-'),
            Some(Piece::Tilde(_)) => true,
            _ => false,
        };
        begins && self.pieces.iter().all(whole)
    }

    /// Expanding it does nothing but put some text there (what its own commands do apart).
    pub(super) fn is_tame(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Var(var) => var.tame,
            Piece::Sum { simple } => *simple,
            _ => true,
        })
    }

    /// Whatever stands for it, it stays one word.
    pub(super) fn stays_one(&self) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Text(_) | Piece::Tilde(_) | Piece::Sum { .. } => true,
            Piece::Var(var) => var.quoted && var.name != "@",
            Piece::Run { quoted, .. } => *quoted,
            _ => false,
        })
    }

    /// The scripts that run to make it.
    pub(super) fn runs(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Run { script, .. } => Some(script.as_str()),
            _ => None,
        })
    }
}

/// A reader of words: the pieces so far, and the text that is gathered for the next.
struct Scan {
    reader: Reader,
    pieces: Vec<Piece>,
    /// Where an unquoted brace is open: whether it has a `,` or `..`.
    brace: Option<bool>,
}

impl Scan {
    fn of(raw: &str) -> Scan {
        Scan { reader: Reader::new(raw), pieces: Vec::new(), brace: None }
    }

    fn text(&mut self, ch: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(ch),
            _ => self.pieces.push(Piece::Text(ch.to_string())),
        }
    }

    /// Text that was quoted; what is empty leaves no piece, so that a variable behind it still stands at the start.
    fn quote(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    fn word(mut self) -> Result<Vec<Piece>, Unread> {
        self.tilde();
        while let Some(ch) = self.reader.peek() {
            match ch {
                _ if is_meta(ch) => return Err("a word is read in two ways"),
                '\\' => {
                    self.reader.skip(1);
                    self.reader.next().into_iter().for_each(|ch| self.text(ch));
                }
                '\'' => {
                    let quoted = self.taken(Reader::single)?;
                    self.quote(&quoted[1..quoted.len() - 1]);
                }
                '"' => self.double()?,
                '$' if self.reader.ahead(1) == Some('\'') => {
                    let quoted = self.taken(Reader::ansi)?;
                    self.quote(&ansi(&quoted[2..quoted.len() - 1]));
                }
                '$' if self.reader.ahead(1) == Some('"') => {
                    self.reader.skip(1);
                    self.double()?;
                }
                '$' => self.dollar(false)?,
                '`' => self.backquoted(false)?,
                _ => {
                    self.reader.skip(1);
                    self.unquoted(ch);
                }
            }
        }
        Ok(self.pieces)
    }

    /// What a function of the reader copies.
    fn taken(
        &mut self,
        copy: impl FnOnce(&mut Reader, &mut String) -> Result<(), Unread>,
    ) -> Result<String, Unread> {
        let mut out = String::new();
        copy(&mut self.reader, &mut out)?;
        Ok(out)
    }

    /// A `~` at the start, with the name behind it.
    fn tilde(&mut self) {
        if self.reader.peek() != Some('~') {
            return;
        }
        let mut name = String::new();
        while let Some(ch) = self.reader.ahead(1 + name.len()).filter(|ch| *ch != '/') {
            if !ch.is_ascii_alphanumeric() && !matches!(ch, '_' | '-' | '+' | '.') {
                return;
            }
            name.push(ch);
        }
        self.reader.skip(1 + name.len());
        self.pieces.push(Piece::Tilde(name));
    }

    /// A character that stands for itself, or makes several words.
    fn unquoted(&mut self, ch: char) {
        match ch {
            '*' | '?' | '[' => self.pieces.push(Piece::Glob(ch)),
            '{' => {
                self.brace = Some(false);
                self.text(ch);
            }
            '}' if self.brace == Some(true) => {
                self.brace = None;
                self.pieces.push(Piece::Braces);
            }
            _ => {
                if ch == ',' || (ch == '.' && self.reader.peek() == Some('.')) {
                    self.brace = self.brace.map(|_| true);
                }
                self.text(ch);
            }
        }
    }

    fn double(&mut self) -> Result<(), Unread> {
        self.reader.skip(1);
        self.expanded(Some('"'))
    }

    /// Text in which only `$`, backquotes and backslashes mean something, up to `end`.
    fn expanded(&mut self, end: Option<char>) -> Result<(), Unread> {
        while let Some(ch) = self.reader.peek() {
            match ch {
                _ if Some(ch) == end => {
                    self.reader.skip(1);
                    return Ok(());
                }
                '\\' => {
                    self.reader.skip(1);
                    match self.reader.peek() {
                        Some('\n') => self.reader.skip(1),
                        Some(after) if matches!(after, '$' | '`' | '\\') || Some(after) == end => {
                            self.reader.skip(1);
                            self.text(after);
                        }
                        _ => self.text('\\'),
                    }
                }
                '$' => self.dollar(true)?,
                '`' => self.backquoted(true)?,
                _ => {
                    self.reader.skip(1);
                    self.text(ch);
                }
            }
        }
        if end.is_some() { Err("a double quote does not end") } else { Ok(()) }
    }

    fn backquoted(&mut self, quoted: bool) -> Result<(), Unread> {
        let raw = self.taken(Reader::backquoted)?;
        let mut script = String::new();
        let mut chars = raw[1..raw.len() - 1].chars().peekable();
        while let Some(ch) = chars.next() {
            let hidden = |next: &char| matches!(next, '`' | '\\' | '$') || (quoted && *next == '"');
            match chars.next_if(|next| ch == '\\' && hidden(next)) {
                Some(next) => script.push(next),
                None => script.push(ch),
            }
        }
        self.pieces.push(Piece::Run { script, quoted });
        Ok(())
    }

    /// What begins with `$`.
    fn dollar(&mut self, quoted: bool) -> Result<(), Unread> {
        let after = self.reader.ahead(1);
        match after {
            Some('(') if !self.reader.sees("$((") => {
                self.reader.skip(2);
                let mut script = self.taken(|reader, out| reader.command(out, 0))?;
                script.pop();
                self.pieces.push(Piece::Run { script, quoted });
            }
            Some('(' | '[') => {
                let raw = self.taken(|reader, out| reader.dollar(out, quoted, 0))?;
                let cut = if raw.starts_with("$((") { 2 } else { 1 };
                let inner = &raw[cut + 1..raw.len() - cut];
                let number = |ch: char| ch.is_ascii_digit() || " +-*/%()<>=!&|^~?:,".contains(ch);
                self.pieces.push(Piece::Sum { simple: inner.chars().all(number) });
                self.nested(inner)?;
            }
            Some('{') => {
                let raw = self.taken(|reader, out| reader.dollar(out, quoted, 0))?;
                self.braced(&raw[2..raw.len() - 1], quoted)?;
            }
            Some(ch) if ch.is_ascii_alphabetic() || ch == '_' => {
                self.reader.skip(1);
                let mut name = String::new();
                while let Some(ch) = self.reader.peek().filter(|ch| ch.is_ascii_alphanumeric() || *ch == '_')
                {
                    self.reader.skip(1);
                    name.push(ch);
                }
                self.pieces.push(Piece::Var(Var { name, whole: true, tame: true, guarded: false, quoted }));
            }
            Some(ch) if ch.is_ascii_digit() || "?#$!@*-".contains(ch) => {
                self.reader.skip(2);
                let name = ch.to_string();
                self.pieces.push(Piece::Var(Var { name, whole: true, tame: true, guarded: false, quoted }));
            }
            _ => {
                self.reader.skip(1);
                self.text('$');
            }
        }
        Ok(())
    }

    /// What runs or is expanded within an expansion.
    fn nested(&mut self, inner: &str) -> Result<(), Unread> {
        let mut scan = Scan::of(inner);
        scan.expanded(None)?;
        self.pieces.extend(scan.pieces.into_iter().filter(|piece| !matches!(piece, Piece::Text(_))));
        Ok(())
    }

    /// `${…}`, without its braces.
    fn braced(&mut self, inner: &str, quoted: bool) -> Result<(), Unread> {
        let counted = inner.len() > 1 && inner.starts_with('#');
        let rest = if counted { &inner[1..] } else { inner };
        let named = |ch: char| ch.is_ascii_alphanumeric() || ch == '_';
        let cut = match rest.find(|ch| !named(ch)) {
            Some(0) => rest.chars().next().filter(|ch| "?#$!@*-".contains(*ch)).map_or(0, char::len_utf8),
            Some(cut) => cut,
            None => rest.len(),
        };
        let (name, change) = rest.split_at(cut);
        let tame_change = change.is_empty()
            || change.starts_with(['#', '%', '/', '^', ',', '-', '+', '?'])
            || [":-", ":+", ":?"].iter().any(|sign| change.starts_with(sign));
        let guarded = change.starts_with(":?") || (change.starts_with(":-") && change.len() > 2);
        self.pieces.push(Piece::Var(Var {
            name: name.to_owned(),
            whole: change.is_empty() && !counted,
            // `${!x}` reads another variable, with what stands in its brackets.
            tame: tame_change && !name.is_empty() && (name != "!" || change.is_empty()),
            guarded,
            quoted,
        }));
        self.nested(change)
    }
}

/// `$'…'`, decoded.
fn ansi(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        if ch != '\\' {
            out.push(ch);
            continue;
        }
        // An octal escape begins with its first digit; the others with a letter.
        if let Some(octal) = number(&mut chars, 8, 3) {
            out.extend(char::from_u32(octal & 0xff));
            continue;
        }
        let Some(letter) = chars.next() else { break };
        match letter {
            'x' | 'u' | 'U' => {
                let most = if letter == 'x' { 2 } else { 8 };
                match number(&mut chars, 16, if letter == 'u' { 4 } else { most }) {
                    Some(value) => out.extend(char::from_u32(value)),
                    None => out.extend(['\\', letter]),
                }
            }
            'c' => out.extend(chars.next().map(|ch| char::from((ch as u32 & 0x1f) as u8))),
            _ => match "nrtabeEfv\\'\"?".find(letter) {
                Some(at) => out.extend("\n\r\t\u{7}\u{8}\u{1b}\u{1b}\u{c}\u{b}\\'\"?".chars().nth(at)),
                None => out.extend(['\\', letter]),
            },
        }
    }
    // What follows a NUL does not reach the word.
    out.split('\0').next().unwrap_or_default().to_owned()
}

/// The number that the next characters write, `most` of them; `None` where there is no digit.
fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, radix: u32, most: usize) -> Option<u32> {
    let mut value: Option<u32> = None;
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|ch| ch.to_digit(radix)) else { break };
        chars.next();
        value = Some(value.unwrap_or(0).wrapping_mul(radix).wrapping_add(digit));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn word(raw: &str) -> Word {
        Word::read(raw).unwrap_or_else(|why| panic!("{raw}: {why}"))
    }

    #[test]
    fn quotes_come_off() {
        for (raw, text) in [
            ("a", "a"),
            ("''", ""),
            ("\"\"''", ""),
            ("a'b c'\"d e\"\\ f", "ab cd e f"),
            ("'a\\b'", "a\\b"),
            ("\"a\\b \\$ \\` \\\\ \\\" '\"", "a\\b $ ` \\ \" '"),
            ("$'a\\n\\t\\\\\\'\\x41\\102\\u00e9\\cA'", "a\n\t\\'AB\u{e9}\u{1}"),
            ("$'\\x74\\x6f\\x75\\x63\\x68'", "touch"),
            ("$'a\\0b'c", "ac"),
            ("$'\\q\\x'", "\\q\\x"),
            ("$\"a\"", "a"),
            ("a{b}c", "a{b}c"),
            ("{}", "{}"),
            ("a~", "a~"),
            ("$", "$"),
            ("a$", "a$"),
            ("[", "["),
            ("'*'\\?", "*?"),
        ] {
            assert_eq!(word(raw).literal(), Some(text), "{raw}");
        }
    }

    #[test]
    fn what_the_shell_makes_is_not_literal() {
        for raw in [
            "$a", "a\"$b\"", "${a}", "*", "a?", "[ab]", "~", "~/x", "{a,b}", "{1..3}", "`a`", "$(a)",
            "$((1))", "$[1]", "$?",
        ] {
            assert_eq!(word(raw).literal(), None, "{raw}");
        }
        let plain = |raw: &str| word(raw).is_plain();
        assert!(plain("*.rs") && plain("~/x") && plain("'$a'") && plain("~user"));
        assert!(!plain("$a") && !plain("{a,b}") && !plain("$((1))"));
    }

    #[test]
    fn an_operand_can_become_no_option() {
        for raw in ["a", "./*.rs", "src/*", "a\"$b\"", "a/\"$(b)\"", "~/x", "a$((1))", "'a b'"] {
            assert!(word(raw).is_operand(), "{raw}");
        }
        for raw in [
            "-a",
            "'-a'",
            "*",
            "$a",
            "\"$a\"",
            "''\"$a\"",
            "a$b",
            "a$(b)",
            "{a,-b}",
            "a{b,c}",
            "\"${a@P}\"",
            "",
        ] {
            assert!(!word(raw).is_operand(), "{raw}");
        }
    }

    #[test]
    fn an_expansion_that_runs_or_sets_is_not_tame() {
        for raw in [
            "$a", "${a}", "${#a}", "${a%.rs}", "${a##*/}", "${a/b/c}", "${a:-b}", "${a:+b}", "${a:?}",
            "${a^^}", "$1", "$@", "$#", "${10}", "$$", "$((1+2))",
        ] {
            assert!(word(raw).is_tame(), "{raw}");
        }
        for raw in [
            "${a@P}",
            "${!a}",
            "${a[1]}",
            "${a:=b}",
            "${a=b}",
            "${a:1}",
            "${a:b[1]:2}",
            "$((a))",
            "$[a]",
            "${!a*}",
            "${a:-$((b))}",
        ] {
            assert!(!word(raw).is_tame(), "{raw}");
        }
    }

    #[test]
    fn scripts_in_a_word_are_found() {
        let runs = |raw: &str| word(raw).runs().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(runs("$(a)\"$(b \"c\")\"`d`"), ["a", "b \"c\"", "d"]);
        assert_eq!(runs("${a:-$(b)}$(($(c)))$[`d`]"), ["b", "c", "d"]);
        assert_eq!(runs("\"`a \\\"b\\\" \\`c\\``\""), ["a \"b\" `c`"]);
        assert_eq!(runs("'$(a)'\\$b\"\\$(c)\""), [""; 0]);
        assert_eq!(runs("$(a $(b))"), ["a $(b)"]);
    }

    #[test]
    fn variables_are_named() {
        let var = |raw: &str| match word(raw).pieces.first() {
            Some(Piece::Var(var)) => (var.name.clone(), var.whole, var.guarded, var.quoted),
            other => panic!("{raw}: {other:?}"),
        };
        assert_eq!(var("$ab-c"), ("ab".to_owned(), true, false, false));
        assert_eq!(var("\"${ab}\""), ("ab".to_owned(), true, false, true));
        assert_eq!(var("${a:?no}"), ("a".to_owned(), false, true, false));
        assert_eq!(var("${a:-b}"), ("a".to_owned(), false, true, false));
        assert_eq!(var("${a:-}"), ("a".to_owned(), false, false, false));
        assert_eq!(var("$12"), ("1".to_owned(), true, false, false));
        assert_eq!(var("${#a}"), ("a".to_owned(), false, false, false));
    }

    #[test]
    fn a_body_is_expanded_but_not_unquoted() {
        let body = Word::of_body("it's \"$(a)\" \\$b `c` \\\\").unwrap();
        assert_eq!(body.runs().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(Word::of_body("a 'b' \"c\"\n").unwrap().literal(), Some("a 'b' \"c\"\n"));
    }

    #[test]
    fn what_is_no_single_word_is_an_error() {
        for raw in ["a b", "a;b", "(a)", "a>b", "a\nb", "'a", "\"a", "$(a", "`a", "${a"] {
            assert!(Word::read(raw).is_err(), "{raw}");
        }
    }
}
