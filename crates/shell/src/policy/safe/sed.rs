//! `sed` whose script only shows: no command that runs a program or names a file, and no edit in place.

use super::{Options, operands};
use crate::policy::part::Arg;

const OPTIONS: Options = Options {
    flags: "nErusz",
    valued: "el",
    long: "quiet silent regexp-extended separate unbuffered null-data expression= line-length= posix sandbox debug help version",
};

/// Whether the call neither runs nor writes.
pub(super) fn is_read_only(rest: &[Arg]) -> bool {
    let Some(found) = operands(rest, &OPTIONS) else { return false };
    let Some(given) = expressions(rest) else { return false };
    let script = match (given.as_slice(), found.first()) {
        ([], Some(first)) => first.literal().map(str::to_owned),
        ([], None) => return rest.iter().all(|arg| matches!(arg.text(), "--version" | "--help")),
        (given, _) => Some(given.join("\n")),
    };
    script.is_some_and(|script| only_shows(&script))
}

/// The scripts of `-e` and `--expression`; `None` where one is not literal.
fn expressions(rest: &[Arg]) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let mut words = rest.iter().take_while(|arg| arg.literal() != Some("--"));
    while let Some(arg) = words.next() {
        let Some(text) = arg.literal() else { continue };
        if let Some(script) = text.strip_prefix("--expression=") {
            found.push(script);
        } else if text == "--expression" {
            found.push(words.next()?.literal()?);
        } else if text.starts_with('-') && !text.starts_with("--") {
            match text.split_once('e') {
                // `-l5e…` would be a length of lines.
                Some((before, _)) if before.contains('l') => return None,
                Some((_, "")) => found.push(words.next()?.literal()?),
                Some((_, script)) => found.push(script),
                None => {}
            }
        }
    }
    Some(found)
}

/// Whether every command of a script is one that neither runs a program nor names a file.
pub(super) fn only_shows(script: &str) -> bool {
    let mut scan = Scan { chars: script.chars().collect(), at: 0 };
    while let Some(done) = scan.command() {
        if done {
            return true;
        }
    }
    false
}

struct Scan {
    chars: Vec<char>,
    at: usize,
}

impl Scan {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let ch = self.peek()?;
        self.at += 1;
        Some(ch)
    }

    fn skip(&mut self, what: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&what) {
            self.at += 1;
        }
    }

    /// Reads one command: `Some(true)` at the end of the script, `None` where it is not known to be harmless.
    fn command(&mut self) -> Option<bool> {
        self.skip(|ch| ch.is_ascii_whitespace() || ch == ';');
        if self.peek().is_none() {
            return Some(true);
        }
        self.address()?;
        self.skip(|ch| matches!(ch, ' ' | '\t' | '!'));
        match self.next()? {
            '#' => self.skip(|ch| ch != '\n'),
            '{' => return Some(false),
            '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => {
                self.end()?
            }
            'q' | 'Q' | 'l' => {
                self.skip(|ch| ch == ' ' || ch.is_ascii_digit());
                self.end()?;
            }
            'a' | 'i' | 'c' => self.text(),
            ':' | 'b' | 't' | 'T' => {
                self.skip(|ch| ch == ' ');
                self.skip(|ch| ch.is_ascii_alphanumeric() || ch == '_');
                self.end()?;
            }
            's' => {
                let delimiter = self.next().filter(|ch| !matches!(ch, '\n' | '\\'))?;
                self.until(delimiter, false)?;
                self.until(delimiter, true)?;
                self.skip(|ch| matches!(ch, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || ch.is_ascii_digit());
                self.end()?;
            }
            'y' => {
                let delimiter = self.next().filter(|ch| !matches!(ch, '\n' | '\\'))?;
                self.until(delimiter, false)?;
                self.until(delimiter, false)?;
                self.end()?;
            }
            _ => return None,
        }
        Some(false)
    }

    /// An address or two, or none.
    fn address(&mut self) -> Option<()> {
        loop {
            match self.peek() {
                Some('/') => {
                    self.at += 1;
                    self.until('/', false)?;
                    self.skip(|ch| matches!(ch, 'I' | 'M'));
                }
                Some('\\') => {
                    self.at += 1;
                    let delimiter = self.next().filter(|ch| !matches!(ch, '\n' | '\\'))?;
                    self.until(delimiter, false)?;
                    self.skip(|ch| matches!(ch, 'I' | 'M'));
                }
                _ => self.skip(|ch| ch.is_ascii_digit() || matches!(ch, '$' | '~' | '+')),
            }
            self.skip(|ch| matches!(ch, ' ' | '\t'));
            if self.peek() != Some(',') {
                return Some(());
            }
            self.at += 1;
            self.skip(|ch| matches!(ch, ' ' | '\t'));
        }
    }

    /// Skips to behind the next unescaped `delimiter`.
    fn until(&mut self, delimiter: char, lines: bool) -> Option<()> {
        loop {
            match self.next()? {
                ch if ch == delimiter => return Some(()),
                '\\' => drop(self.next()?),
                '\n' if !lines => return None,
                _ => {}
            }
        }
    }

    /// What may stand behind a command.
    fn end(&mut self) -> Option<()> {
        self.skip(|ch| matches!(ch, ' ' | '\t'));
        matches!(self.peek(), None | Some(';' | '\n' | '}' | '#')).then_some(())
    }

    /// The text of `a`, `i` and `c`: to the end of a line that no backslash continues.
    fn text(&mut self) {
        while let Some(ch) = self.next() {
            match ch {
                '\\' => drop(self.next()),
                '\n' => return,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_only_show() {
        for script in [
            "5,10p",
            "$p",
            "/a/,/b/p",
            "/a/I,+3p",
            "s/x/e/g",
            "s/file/w x/",
            "s|a\\|b|c|2gp; p",
            "/x/{s/a/b/;p}",
            "1!G;h;$!d",
            ":a;N;$!ba;s/\\n/,/g",
            "y/abc/xyz/",
            "a\\\nw out",
            "i w out",
            "\\,w x,p",
            "s,a\\,w,b,",
            "# e\np",
            "5q",
            "0~3p",
            "s/[/]/x/",
        ] {
            // The last is what sed makes of it: a bracket does not hide the delimiter, and `]/x/` are bad flags.
            assert_eq!(only_shows(script), script != "s/[/]/x/", "{script}");
        }
    }

    #[test]
    fn scripts_that_run_or_write() {
        for script in [
            "1e touch x",
            "e",
            "s/a/b/e",
            "s/a/b/ge",
            "s/a/b/w out",
            "w out",
            "/x/w out",
            "W out",
            "r in",
            "R in",
            "/x/{e ls\n}",
            "s/a/b/;1e ls",
            "s/a/b/\ne ls",
            "{w out\n}",
            "$!{$!N;w out",
            "s/a\\/b/c/e",
            "a text\ne ls",
            "y/a/b/;e",
            "1!e ls",
            "b x;e ls",
            ": x\ne ls",
            "p;;e ls",
            "F",
            "s/a/b/ w out",
            "s/a/b/M e",
            "\\/x/e ls",
            "/a/,/b/e ls",
            "0,/x/ ! e ls",
            "v",
        ] {
            assert!(!only_shows(script), "{script}");
        }
    }
}
