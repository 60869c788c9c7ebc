//! Reading shell text: where words and operators begin and end, exactly as bash has it, or an error.
//!
//! The grammar is brush-parser's; its own tokens are not taken, because a word that it ends later than bash does hides the
//! commands after it (`\$'a\'; touch x #'`). What is written here in an unusual way is an error, never a guess. Linear, and
//! nested no deeper than [`DEPTH`].

/// Levels of quotes, substitutions and expansions in one another.
pub(super) const DEPTH: usize = 12;

/// Why a text cannot be read.
pub(super) type Unread = &'static str;

/// A word or an operator, with its place in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lexeme {
    pub(super) text: String,
    pub(super) operator: bool,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What ends a word.
pub(super) fn is_meta(ch: char) -> bool {
    matches!(ch, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

/// The operators, longest first.
const OPERATORS: &[&str] = &[
    "<<<", "<<-", "&>>", ";;&", "&&", "||", ";;", ";&", "|&", "<<", ">>", "<&", ">&", "<>", ">|", "&>", "&",
    ";", "|", "<", ">", "(", ")", "\n",
];

/// The words and operators of a whole script. A here-document is four in a row: operator, tag, body, tag.
pub(super) fn lexemes(text: &str) -> Result<Vec<Lexeme>, Unread> {
    let mut reader = Reader::new(text);
    let mut all: Vec<Lexeme> = Vec::new();
    let mut bodies: Vec<(usize, Tag)> = Vec::new();
    loop {
        reader.skip_blanks();
        let start = reader.at;
        let Some(ch) = reader.peek() else { break };
        if ch == '#' {
            reader.skip_comment();
        } else if is_meta(ch) {
            let operator = reader.operator();
            let lexeme = |text: &str, operator, end| Lexeme { text: text.to_owned(), operator, start, end };
            all.push(lexeme(operator, true, reader.at));
            if operator == "\n" {
                for (place, tag) in bodies.drain(..) {
                    all[place].text = reader.here_document(&tag)?.0;
                }
            } else if operator == "<<" || operator == "<<-" {
                let tag = reader.tag(operator == "<<-")?;
                let end = reader.at;
                all.push(lexeme(&tag.raw, false, end));
                bodies.push((all.len(), tag.clone()));
                all.push(lexeme("", false, end));
                all.push(lexeme(&tag.raw, false, end));
            }
        } else {
            let mut text = String::new();
            reader.word(&mut text, 0)?;
            all.push(Lexeme { text, operator: false, start, end: reader.at });
        }
    }
    if bodies.is_empty() { Ok(all) } else { Err("a here-document does not end") }
}

/// The tag of a here-document.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    /// As written.
    raw: String,
    /// The line that ends the body.
    line: String,
    /// Leading tabs do not count.
    tabs: bool,
    /// The body is expanded.
    expands: bool,
}

/// A place in a text.
pub(super) struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    pub(super) fn new(text: &str) -> Reader {
        Reader { chars: text.chars().collect(), at: 0 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn ahead(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let ch = self.peek()?;
        self.at += 1;
        Some(ch)
    }

    /// Whether the text goes on with `what`.
    pub(super) fn sees(&self, what: &str) -> bool {
        what.chars().enumerate().all(|(by, ch)| self.ahead(by) == Some(ch))
    }

    pub(super) fn skip(&mut self, by: usize) {
        self.at = (self.at + by).min(self.chars.len());
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.ahead(1) == Some('\n') => self.at += 2,
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|ch| ch != '\n') {
            self.at += 1;
        }
    }

    /// The operator here; the caller has seen a character that begins one.
    fn operator(&mut self) -> &'static str {
        let found = OPERATORS.iter().find(|operator| self.sees(operator)).copied().unwrap_or(" ");
        self.skip(found.len());
        found
    }

    /// Copies a word to `out` as it is written, without continued lines, up to what ends it.
    fn word(&mut self, out: &mut String, depth: usize) -> Result<(), Unread> {
        while let Some(ch) = self.peek() {
            match ch {
                _ if is_meta(ch) => break,
                '\\' if self.ahead(1) == Some('\n') => self.skip(2),
                '\\' => self.escaped(out)?,
                '\'' => self.single(out)?,
                '"' => self.double(out, depth)?,
                '$' if self.ahead(1) == Some('\'') => self.ansi(out)?,
                '$' => self.dollar(out, false, depth)?,
                '`' => self.backquoted(out)?,
                _ => {
                    out.push(ch);
                    self.at += 1;
                }
            }
        }
        Ok(())
    }

    /// A backslash and what follows.
    fn escaped(&mut self, out: &mut String) -> Result<(), Unread> {
        let after = self.ahead(1).ok_or("it ends in a backslash")?;
        out.extend(['\\', after]);
        self.skip(2);
        Ok(())
    }

    /// `'…'`.
    pub(super) fn single(&mut self, out: &mut String) -> Result<(), Unread> {
        out.extend(self.next());
        loop {
            let ch = self.next().ok_or("a single quote does not end")?;
            out.push(ch);
            if ch == '\'' {
                return Ok(());
            }
        }
    }

    /// `$'…'`, where a backslash hides a quote.
    pub(super) fn ansi(&mut self, out: &mut String) -> Result<(), Unread> {
        out.extend(self.next());
        out.extend(self.next());
        loop {
            let ch = self.next().ok_or("a single quote does not end")?;
            out.push(ch);
            match ch {
                '\'' => return Ok(()),
                '\\' => out.extend(self.next()),
                _ => {}
            }
        }
    }

    /// `"…"`.
    fn double(&mut self, out: &mut String, depth: usize) -> Result<(), Unread> {
        out.extend(self.next());
        loop {
            match self.peek().ok_or("a double quote does not end")? {
                '"' => {
                    out.extend(self.next());
                    return Ok(());
                }
                '\\' if self.ahead(1) == Some('\n') => self.skip(2),
                '\\' => self.escaped(out)?,
                '$' => self.dollar(out, true, depth)?,
                '`' => self.backquoted(out)?,
                ch => {
                    out.push(ch);
                    self.at += 1;
                }
            }
        }
    }

    /// What begins with `$`; `quoted` is within double quotes.
    pub(super) fn dollar(&mut self, out: &mut String, quoted: bool, depth: usize) -> Result<(), Unread> {
        if depth >= DEPTH {
            return Err("it is nested too deeply");
        }
        out.extend(self.next());
        match self.peek() {
            Some('(') if self.ahead(1) == Some('(') => self.sum(out, depth + 1),
            Some('(') => {
                out.extend(self.next());
                self.command(out, depth + 1)
            }
            Some('{') => self.braced(out, quoted, depth + 1),
            Some('[') => self.bracketed(out, depth + 1),
            Some('"') if !quoted => self.double(out, depth + 1),
            // A second `$` is the process number: what follows it is no `$'…'` or `$(…)`.
            Some('$') => {
                out.extend(self.next());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `` `…` ``.
    pub(super) fn backquoted(&mut self, out: &mut String) -> Result<(), Unread> {
        out.extend(self.next());
        loop {
            let ch = self.next().ok_or("a backquote does not end")?;
            out.push(ch);
            match ch {
                '`' => return Ok(()),
                '\\' => out.extend(self.next()),
                _ => {}
            }
        }
    }

    /// `((…))` after a `$`.
    fn sum(&mut self, out: &mut String, depth: usize) -> Result<(), Unread> {
        let mut open = 0usize;
        loop {
            match self.peek().ok_or("an arithmetic expansion does not end")? {
                '$' => self.dollar(out, true, depth)?,
                '`' => self.backquoted(out)?,
                '"' => self.double(out, depth)?,
                '\'' | '\\' => return Err("an arithmetic expansion has quotes"),
                ch => {
                    match ch {
                        '(' => open += 1,
                        ')' => open -= 1,
                        _ => {}
                    }
                    if open == 1 && ch == ')' && self.ahead(1) != Some(')') {
                        return Err("`$((` is ended by no `))`; write `$( (`");
                    }
                    out.push(ch);
                    self.at += 1;
                    if open == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// `[…]` after a `$`.
    fn bracketed(&mut self, out: &mut String, depth: usize) -> Result<(), Unread> {
        let mut open = 0usize;
        loop {
            match self.peek().ok_or("an arithmetic expansion does not end")? {
                '$' => self.dollar(out, true, depth)?,
                '`' => self.backquoted(out)?,
                '\'' => self.single(out)?,
                '"' => self.double(out, depth)?,
                '\\' => return Err("an arithmetic expansion has quotes"),
                ch => {
                    open = if ch == '[' { open + 1 } else { open - usize::from(ch == ']') };
                    out.push(ch);
                    self.at += 1;
                    if open == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// `{…}` after a `$`.
    fn braced(&mut self, out: &mut String, quoted: bool, depth: usize) -> Result<(), Unread> {
        out.extend(self.next());
        loop {
            match self.peek().ok_or("a `${` does not end")? {
                '}' => {
                    out.extend(self.next());
                    return Ok(());
                }
                // Whether it quotes depends on what stands before it; nobody needs it.
                '\'' if quoted => return Err("a single quote in a quoted `${…}`"),
                '\'' => self.single(out)?,
                '"' => self.double(out, depth)?,
                '\\' => self.escaped(out)?,
                '$' if !quoted && self.ahead(1) == Some('\'') => return Err("a `$'` in a `${…}`"),
                '$' => self.dollar(out, quoted, depth)?,
                '`' => self.backquoted(out)?,
                '{' => return Err("a brace in a `${…}`"),
                ch => {
                    out.push(ch);
                    self.at += 1;
                }
            }
        }
    }

    /// The commands of `$(…)`, the bracket behind them too; the reader stands behind `$(`. Comments are left out.
    pub(super) fn command(&mut self, out: &mut String, depth: usize) -> Result<(), Unread> {
        let mut open = 0usize;
        let mut fresh = true;
        let mut tags: Vec<Tag> = Vec::new();
        loop {
            match self.peek().ok_or("a command substitution does not end")? {
                ')' if open == 0 => {
                    out.extend(self.next());
                    return if tags.is_empty() { Ok(()) } else { Err("a here-document does not end") };
                }
                '#' if fresh => self.skip_comment(),
                '\\' if self.ahead(1) == Some('\n') => self.skip(2),
                ch if is_meta(ch) => {
                    fresh = true;
                    if matches!(ch, ' ' | '\t') {
                        out.extend(self.next());
                        continue;
                    }
                    let operator = self.operator();
                    out.push_str(operator);
                    match operator {
                        "(" => open += 1,
                        ")" => open -= 1,
                        "<<" | "<<-" => {
                            let tag = self.tag(operator == "<<-")?;
                            out.push_str(&tag.raw);
                            tags.push(tag);
                        }
                        "\n" => {
                            for tag in tags.drain(..) {
                                let (body, end) = self.here_document(&tag)?;
                                out.push_str(&body);
                                out.push_str(&end);
                            }
                        }
                        _ => {}
                    }
                }
                _ => {
                    fresh = false;
                    self.word(out, depth)?;
                }
            }
        }
    }

    /// The tag behind `<<`: a plain name, bare or quoted in one of the three ways.
    fn tag(&mut self, tabs: bool) -> Result<Tag, Unread> {
        self.skip_blanks();
        let mut raw = String::new();
        self.word(&mut raw, DEPTH).map_err(|_| "a here-document has an unusual tag")?;
        let unquoted = |quote| raw.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
        let bare = unquoted('\'').or_else(|| unquoted('"')).or_else(|| raw.strip_prefix('\\'));
        let line = bare.unwrap_or(&raw).to_owned();
        let named = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-' | '.');
        if line.is_empty() || !line.chars().all(named) {
            return Err("a here-document has an unusual tag");
        }
        Ok(Tag { expands: bare.is_none(), raw, line, tabs })
    }

    /// The body of a here-document, and the line that ends it; the reader stands at the start of a line.
    fn here_document(&mut self, tag: &Tag) -> Result<(String, String), Unread> {
        let mut body = String::new();
        loop {
            if self.peek().is_none() {
                return Err("a here-document does not end");
            }
            let line = self.logical_line(tag);
            if line.trim_end_matches('\n') == tag.line {
                return Ok((body, line));
            }
            body.push_str(&line);
        }
    }

    /// A line with its end; where the body is expanded, with those that a backslash joins to it.
    fn logical_line(&mut self, tag: &Tag) -> String {
        let mut line = String::new();
        while tag.tabs && self.peek() == Some('\t') {
            self.at += 1;
        }
        while let Some(ch) = self.next() {
            line.push(ch);
            if ch == '\\' && tag.expands {
                match self.next() {
                    Some('\n') => drop(line.pop()),
                    Some(after) => line.push(after),
                    None => {}
                }
            } else if ch == '\n' {
                break;
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words as they are, operators in `«»`, an end of line as `«⏎»`.
    fn read(text: &str) -> String {
        match lexemes(text) {
            Err(why) => format!("error: {why}"),
            Ok(all) => {
                let told = |lexeme: &Lexeme| match (lexeme.operator, lexeme.text.replace('\n', "⏎")) {
                    (true, text) => format!("«{text}»"),
                    (false, text) => text,
                };
                all.iter().map(told).collect::<Vec<_>>().join("|")
            }
        }
    }

    #[test]
    fn words_and_operators() {
        for (text, expected) in [
            ("", ""),
            (" a\t b ", "a|b"),
            ("a;b&&c||d|e&f", "a|«;»|b|«&&»|c|«||»|d|«|»|e|«&»|f"),
            ("a>b>>c<d 2>&1 &>e &>>f <>g >|h", "a|«>»|b|«>>»|c|«<»|d|2|«>&»|1|«&>»|e|«&>>»|f|«<>»|g|«>|»|h"),
            ("a;;b;&c;;&d", "a|«;;»|b|«;&»|c|«;;&»|d"),
            ("a # b ; c\nd#e", "a|«⏎»|d#e"),
            ("a\\\nb \\\n c", "ab|c"),
            ("a\\ b \\; '\\' \"\\\"\"", "a\\ b|\\;|'\\'|\"\\\"\""),
            ("'a b'\"c d\"e", "'a b'\"c d\"e"),
            ("$'a\\'b' c", "$'a\\'b'|c"),
            ("\\$'a\\' b", "\\$'a\\'|b"),
            ("$$'a\\' b", "$$'a\\'|b"),
            ("$\"a b\" c", "$\"a b\"|c"),
            ("\"a 'b\" c'd'", "\"a 'b\"|c'd'"),
            ("$(a b; c) d", "$(a b; c)|d"),
            ("$(a # )\nb) c", "$(a ⏎b)|c"),
            ("$(a '(' \")\" \\) (b)) c", "$(a '(' \")\" \\) (b))|c"),
            ("\"$(a \"b c\")\" d", "\"$(a \"b c\")\"|d"),
            ("`a \\` b` c", "`a \\` b`|c"),
            ("$((1 + (2))) $[a[1]] c", "$((1 + (2)))|$[a[1]]|c"),
            ("${a:-b c} ${a:-\"}\"} d", "${a:-b c}|${a:-\"}\"}|d"),
            ("a(b)", "a|«(»|b|«)»"),
            ("a<<<b", "a|«<<<»|b"),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn here_documents_are_tag_body_tag() {
        for (text, expected) in [
            ("a <<E b\nx y\nE\nc", "a|«<<»|E|x y⏎|E|b|«⏎»|c"),
            ("a <<E\nE", "a|«<<»|E||E|«⏎»"),
            ("a <<-'E'\n\tx\n\tE", "a|«<<-»|'E'|x⏎|'E'|«⏎»"),
            ("a <<A <<\"B\"\n1\nA\n2\nB", "a|«<<»|A|1⏎|A|«<<»|\"B\"|2⏎|\"B\"|«⏎»"),
            ("a <<\\E\n$(x\nE", "a|«<<»|\\E|$(x⏎|\\E|«⏎»"),
            ("a <<E\n E\nE \nE", "a|«<<»|E| E⏎E ⏎|E|«⏎»"),
            ("$(a <<E\nit's )\nE\n) b", "$(a <<E⏎it's )⏎E⏎)|b"),
            ("a <<E", "error: a here-document does not end"),
            ("a <<E\nx", "error: a here-document does not end"),
            ("$(a <<E)\nE\n", "error: a here-document does not end"),
            ("a <<$E\n", "error: a here-document has an unusual tag"),
            ("a <<E'F'\n", "error: a here-document has an unusual tag"),
            ("a <<\n", "error: a here-document has an unusual tag"),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        for (text, why) in [
            ("'a", "a single quote does not end"),
            ("$'a\\'", "a single quote does not end"),
            ("\"a", "a double quote does not end"),
            ("\"$(a)", "a double quote does not end"),
            ("$(a", "a command substitution does not end"),
            ("$(a # )", "a command substitution does not end"),
            ("`a\\`", "a backquote does not end"),
            ("$((1", "an arithmetic expansion does not end"),
            ("$((a); b)", "`$((` is ended by no `))`; write `$( (`"),
            ("$[1", "an arithmetic expansion does not end"),
            ("${a", "a `${` does not end"),
            ("\"${a:-'}\"}", "a single quote in a quoted `${…}`"),
            ("a\\", "it ends in a backslash"),
        ] {
            assert_eq!(read(text), format!("error: {why}"), "{text:?}");
        }
        let nested = |depth: usize| format!("{}a{}", "$(".repeat(depth), ")".repeat(depth));
        assert!(lexemes(&nested(DEPTH)).is_ok());
        assert_eq!(lexemes(&nested(DEPTH + 1)), Err("it is nested too deeply"));
    }

    #[test]
    fn places_are_those_of_characters() {
        let all = lexemes("é 2>x").unwrap();
        let places: Vec<(usize, usize)> = all.iter().map(|lexeme| (lexeme.start, lexeme.end)).collect();
        assert_eq!(places, [(0, 1), (2, 3), (3, 4), (4, 5)]);
    }
}
