//! Reads a `sed` script as far as it must be known before GNU sed may be trusted with it on a private copy: where each
//! command begins, which ones they are, and the regular expressions in them.

/// What a script holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script<'a> {
    /// Its regular expressions, as written.
    pub(super) patterns: Vec<&'a str>,
    /// Its replacements, as written.
    pub(super) replacements: Vec<&'a str>,
    /// Something is printed even with `-n`.
    pub(super) prints: bool,
    /// `q` or `Q`: what follows is not read.
    pub(super) quits: bool,
    /// Lines are joined, kept or jumped over: with several files, one could depend on the one before it.
    pub(super) carries: bool,
}

/// `None` for a script with a syntax error, and for commands that run, read or write anything (`e`, `r`, `R`, `w`, `W`),
/// name the file (`F`), depend on a screen (`l`), or are not known.
pub(super) fn read(text: &str) -> Option<Script<'_>> {
    let mut reader = Reader { text, at: 0, script: Script::default() };
    let mut depth = 0usize;
    loop {
        reader.skip(|byte| byte.is_ascii_whitespace() || byte == b';');
        if reader.peek() == Some(b'#') {
            reader.skip(|byte| byte != b'\n');
            continue;
        }
        if reader.peek().is_none() {
            return (depth == 0).then_some(reader.script);
        }
        reader.addresses()?;
        match reader.next()? {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                reader.end()?;
            }
            command => reader.command(command)?,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    script: Script<'a>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, of: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&of) {
            self.at += 1;
        }
    }

    fn blanks(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
    }

    fn digits(&mut self) {
        self.skip(|byte| byte.is_ascii_digit());
    }

    /// `A`, `A,B`, `A!`, or nothing, and the blanks after it.
    fn addresses(&mut self) -> Option<()> {
        if self.address(false)? {
            self.blanks();
            if self.peek() == Some(b',') {
                self.at += 1;
                self.blanks();
                self.address(true)?.then_some(())?;
            }
        }
        self.blanks();
        if self.peek() == Some(b'!') {
            self.at += 1;
            self.blanks();
        }
        Some(())
    }

    /// Whether an address stood here.
    fn address(&mut self, second: bool) -> Option<bool> {
        match self.peek() {
            Some(b'/') => self.pattern_address(1)?,
            Some(b'\\') => self.pattern_address(2)?,
            Some(b'$') => self.at += 1,
            Some(b'0'..=b'9') => {
                self.digits();
                if self.peek() == Some(b'~') {
                    self.at += 1;
                    self.digits();
                }
            }
            Some(b'+' | b'~') if second => {
                self.at += 1;
                self.digits();
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// `/RE/` or `\cREc`, whose delimiter is the last of `lead` bytes.
    fn pattern_address(&mut self, lead: usize) -> Option<()> {
        self.at += lead - 1;
        let delimiter = self.delimiter()?;
        self.pattern(delimiter)?;
        self.skip(|byte| matches!(byte, b'I' | b'M' | b' ' | b'\t'));
        Some(())
    }

    fn delimiter(&mut self) -> Option<u8> {
        self.next().filter(|byte| byte.is_ascii_graphic() && !matches!(byte, b'[' | b']' | b'\\'))
    }

    /// A regular expression up to its delimiter; in brackets the delimiter is a character like others.
    fn pattern(&mut self, delimiter: u8) -> Option<()> {
        let begin = self.at;
        loop {
            match self.next()? {
                byte if byte == delimiter => break,
                b'\n' => return None,
                b'\\' => self.character()?,
                b'[' => self.bracket()?,
                _ => {}
            }
        }
        self.script.patterns.push(self.text.get(begin..self.at - 1)?);
        Some(())
    }

    /// The rest of a bracket expression: a leading `^` and `]` are ordinary, `[:…:]` and its like are one.
    fn bracket(&mut self) -> Option<()> {
        self.at += usize::from(self.peek() == Some(b'^'));
        self.at += usize::from(self.peek() == Some(b']'));
        loop {
            match self.next()? {
                b']' => return Some(()),
                b'\n' => return None,
                b'[' => {
                    if let Some(kind @ (b':' | b'.' | b'=')) = self.peek() {
                        self.at += 1;
                        let close = [kind, b']'];
                        let rest = &self.text.as_bytes()[self.at..];
                        self.at += rest.windows(2).position(|pair| pair == close)? + 2;
                    }
                }
                _ => {}
            }
        }
    }

    /// A whole character, after a backslash.
    fn character(&mut self) -> Option<()> {
        self.at += self.text.get(self.at..)?.chars().next()?.len_utf8();
        Some(())
    }

    /// Text up to a delimiter, with escapes and no brackets.
    fn part(&mut self, delimiter: u8) -> Option<&'a str> {
        let begin = self.at;
        loop {
            match self.next()? {
                byte if byte == delimiter => return self.text.get(begin..self.at - 1),
                b'\n' => return None,
                b'\\' => self.character()?,
                _ => {}
            }
        }
    }

    fn command(&mut self, command: u8) -> Option<()> {
        match command {
            b'd' => self.end(),
            b'p' | b'=' => {
                self.script.prints = true;
                self.end()
            }
            b's' => self.substitute(),
            b'y' => {
                let delimiter = self.delimiter()?;
                self.part(delimiter)?;
                self.part(delimiter)?;
                self.end()
            }
            b'a' | b'i' | b'c' => self.text_argument(),
            b'q' | b'Q' => {
                (self.script.quits, self.script.carries) = (true, true);
                self.blanks();
                self.digits();
                self.end()
            }
            b'D' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N' | b'P' | b'x' | b'z' => {
                self.script.carries = true;
                self.script.prints |= command == b'P';
                self.end()
            }
            b':' | b'b' | b't' | b'T' => {
                self.script.carries = true;
                self.label(command == b':')
            }
            _ => None,
        }
    }

    fn substitute(&mut self) -> Option<()> {
        let delimiter = self.delimiter()?;
        self.pattern(delimiter)?;
        let replacement = self.part(delimiter)?;
        self.script.replacements.push(replacement);
        loop {
            match self.peek() {
                Some(b'g' | b'i' | b'I' | b'm' | b'M' | b'0'..=b'9' | b' ' | b'\t') => self.at += 1,
                Some(b'p') => {
                    self.script.prints = true;
                    self.at += 1;
                }
                _ => return self.end(),
            }
        }
    }

    /// The text of `a`, `i`, `c`: up to a new line that is not escaped.
    fn text_argument(&mut self) -> Option<()> {
        self.script.prints = true;
        loop {
            match self.next() {
                None | Some(b'\n') => return Some(()),
                Some(b'\\') if self.peek().is_some() => self.character()?,
                Some(_) => {}
            }
        }
    }

    /// A label: a name, needed where it is set, and what may follow it.
    fn label(&mut self, needed: bool) -> Option<()> {
        self.blanks();
        let begin = self.at;
        self.skip(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if needed && (self.at == begin || self.peek() == Some(b'}')) {
            return None;
        }
        self.end()
    }

    /// The end of a command.
    fn end(&mut self) -> Option<()> {
        self.blanks();
        match self.peek() {
            None | Some(b'}' | b'#') => Some(()),
            Some(b';' | b'\n') => {
                self.at += 1;
                Some(())
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_touch_more_than_the_lines_are_not_taken() {
        let kinds = [
            "e touch x",
            "w out",
            "W out",
            "r in",
            "R in",
            "F",
            "l",
            "v",
            "s/a/b/e",
            "s/a/b/w out",
            "s/a/b/gpw out",
        ];
        let around: [fn(&str) -> String; 7] = [
            |it| it.to_owned(),
            |it| format!("1{it}"),
            |it| format!("  /x/ ! {it}"),
            |it| format!("p;{it}"),
            |it| format!("2,$ {{ p\n{it}\n}}"),
            |it| format!("s/;/[/]/;s,[,],x,g;{it}"),
            |it| format!("a text\\\nmore\n\\|a[|]b|I{it}"),
        ];
        for kind in kinds {
            for frame in around {
                assert_eq!(read(&frame(kind)), None, "{}", frame(kind));
            }
        }
    }

    #[test]
    fn letters_in_text_are_text() {
        for text in [
            "s/text/e/g",
            "s/file/w x/",
            "s/[/]e/w/",
            "a e w r",
            "1i\\\nw out\\\ne x",
            "y/ew/we/",
            "/e/d # w x",
            "s,a,e;w x,",
        ] {
            assert!(read(text).is_some(), "{text}");
        }
    }

    #[test]
    fn patterns_end_where_sed_ends_them() {
        for (text, patterns) in [
            ("s/[/]/X/", vec!["[/]"]),
            ("s/[]/]/X/;/[^]/]/d", vec!["[]/]", "[^]/]"]),
            (r"s/[[:alpha:]/]\/b/X/", vec![r"[[:alpha:]/]\/b"]),
            (r"\,a\,b,I,/é\é/ s|x\|y||2 g", vec![r"a\,b", r"é\é", r"x\|y"]),
        ] {
            assert_eq!(read(text).map(|script| script.patterns), Some(patterns), "{text}");
        }
    }

    #[test]
    fn syntax_errors_are_not_taken() {
        for text in [
            "s/a/b",
            "s/a[/b/",
            "s/[a\\]/]/X/",
            "p x",
            "2{d",
            "d}",
            "s/a/b/q",
            "2,d",
            "y/a/b",
            "k",
            ":",
            ":a}",
            "s/a\nb/c/",
            "\\",
            "1~",
            "s",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_script_does_is_told() {
        let told = |text| {
            let script = read(text).unwrap();
            (script.prints, script.quits, script.carries)
        };
        assert_eq!(told("s/a/b/"), (false, false, false));
        assert_eq!(told("s/a/b/gp"), (true, false, false));
        assert_eq!(told("/x/q"), (false, true, true));
        assert_eq!(told(":a;N;$!ba;s/\\n/,/g"), (false, false, true));
        assert_eq!(told("$!{h;d};x;G"), (false, false, true));
    }
}
