//! The strict reader of a command line: simple commands one after the other, of literal words, output redirections and
//! here-documents. It alone may say that a line is understood; whatever it does not know makes it say nothing.

/// The words and escapes that a line may have: a longer one is not worth the time of a second reading.
const PIECES_MAX: usize = 128;

/// A simple command, every word of it known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Name and arguments, quotes and escapes taken off. May be empty where there is a redirection.
    pub(super) words: Vec<String>,
    /// Where standard output goes.
    pub(super) out: Option<Redirect>,
    /// The here-document that is standard input.
    pub(super) document: Option<String>,
}

/// `> to` or `>> to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Written at the end of what is there.
    pub(super) append: bool,
    /// The file.
    pub(super) to: String,
}

/// The commands of `text`, in order, each to be run if the one before it succeeded (`;` and a new line are taken too:
/// they only differ after a failure, and then nothing is carried out).
///
/// `None` for anything but literal words, `>`, `>>`, `<<`, `<<-`, `&&`, `;`, comments and new lines.
pub(super) fn lex(text: &str) -> Option<Vec<Simple>> {
    let known = |byte: u8| matches!(byte, b'\n' | b'\t') || (byte >= 0x20 && byte != 0x7f);
    if !text.bytes().all(known) {
        return None;
    }
    let mut lexer = Lexer { text, at: 0, commands: Vec::new(), open: Vec::new(), pieces: 0 };
    lexer.list()?;
    (lexer.pieces <= PIECES_MAX).then_some(lexer.commands)
}

/// A here-document whose text is still to come.
struct Open {
    command: usize,
    end: String,
    strip_tabs: bool,
    literal: bool,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    commands: Vec<Simple>,
    open: Vec<Open>,
    pieces: usize,
}

impl Lexer<'_> {
    fn list(&mut self) -> Option<()> {
        let mut more = true;
        loop {
            self.skip_blanks();
            match self.peek() {
                None if more && !self.commands.is_empty() => return None,
                None => return self.open.is_empty().then_some(()),
                Some(b'\n') => self.new_line()?,
                Some(_) => {
                    self.command()?;
                    more = self.separator()?;
                }
            }
        }
    }

    /// What stands between two commands; whether another one must follow.
    fn separator(&mut self) -> Option<bool> {
        let rest = &self.text.as_bytes()[self.at..];
        match rest {
            [] | [b'\n', ..] => Some(false),
            [b'&', b'&', ..] => {
                self.at += 2;
                Some(true)
            }
            [b';', ..] => {
                self.at += 1;
                Some(false)
            }
            _ => None,
        }
    }

    /// Words and redirections up to a separator.
    fn command(&mut self) -> Option<()> {
        let index = self.commands.len();
        let mut command = Simple::default();
        let mut reads = false;
        loop {
            self.skip_blanks();
            let before = self.at;
            match self.peek() {
                None | Some(b'\n' | b'&' | b';') => break,
                Some(b'>') => {
                    self.at += 1;
                    let append = self.take(b'>');
                    let (to, _) = self.operand()?;
                    let first = command.out.replace(Redirect { append, to }).is_none();
                    first.then_some(())?;
                }
                Some(b'<') => {
                    let first = !std::mem::replace(&mut reads, true);
                    first.then_some(())?;
                    self.document(index)?;
                }
                Some(_) => {
                    let (word, _) = self.word()?;
                    // Digits that touch a redirection are a descriptor.
                    let touches = matches!(self.peek(), Some(b'<' | b'>'));
                    let digits = self.text[before..self.at].bytes().all(|byte| byte.is_ascii_digit());
                    (!(touches && digits)).then_some(())?;
                    command.words.push(word);
                }
            }
        }
        let says_something = !command.words.is_empty() || command.out.is_some();
        self.commands.push(command);
        says_something.then_some(())
    }

    /// `<<END` or `<<-END`.
    fn document(&mut self, command: usize) -> Option<()> {
        (self.take(b'<') && self.take(b'<')).then_some(())?;
        let strip_tabs = self.take(b'-');
        let (end, literal) = self.operand()?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        (!end.is_empty() && end.bytes().all(plain)).then_some(())?;
        self.open.push(Open { command, end, strip_tabs, literal });
        Some(())
    }

    /// The word after a redirection, and whether any of it was quoted.
    fn operand(&mut self) -> Option<(String, bool)> {
        self.skip_blanks();
        self.word()
    }

    /// The end of a line, after which the here-documents that it opened stand.
    fn new_line(&mut self) -> Option<()> {
        self.at += 1;
        for open in std::mem::take(&mut self.open) {
            let body = self.body(&open)?;
            self.commands.get_mut(open.command)?.document = Some(body);
        }
        Some(())
    }

    /// The lines of a here-document. `None` where its end is missing or something in it would be expanded.
    fn body(&mut self, open: &Open) -> Option<String> {
        let mut body = String::new();
        loop {
            let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
            let (line, ended) = rest.split_once('\n').map_or((rest, false), |(line, _)| (line, true));
            self.at += line.len() + usize::from(ended);
            let line = if open.strip_tabs { line.trim_start_matches('\t') } else { line };
            if line == open.end {
                // The next command begins as after a new line.
                return Some(body);
            }
            if !open.literal && line.contains(['$', '`', '\\']) {
                return None;
            }
            body.push_str(line);
            body.push('\n');
        }
    }

    /// One word with quotes and escapes taken off, and whether there were any. `None` where none begins or it is not
    /// literal.
    fn word(&mut self) -> Option<(String, bool)> {
        self.pieces += 1;
        let begin = self.at;
        let (mut word, mut quoted) = (String::new(), false);
        while let Some(ch) = self.text[self.at..].chars().next() {
            match ch {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => self.escaped(&mut word)?,
                ch if is_safe(ch) => {
                    word.push(ch);
                    self.at += ch.len_utf8();
                    continue;
                }
                ' ' | '\t' | '\n' | '&' | ';' | '<' | '>' => break,
                _ => return None,
            }
            quoted = true;
        }
        (self.at > begin).then_some((word, quoted))
    }

    fn single_quoted(&mut self, word: &mut String) -> Option<()> {
        let (inside, _) = self.text[self.at + 1..].split_once('\'')?;
        word.push_str(inside);
        self.at += inside.len() + 2;
        Some(())
    }

    fn double_quoted(&mut self, word: &mut String) -> Option<()> {
        self.at += 1;
        loop {
            let mut chars = self.text[self.at..].chars();
            let ch = chars.next()?;
            let next = chars.next();
            match (ch, next) {
                ('"', _) => {
                    self.at += 1;
                    return Some(());
                }
                ('\\', Some(escaped @ ('$' | '`' | '"' | '\\'))) => {
                    word.push(escaped);
                    self.pieces += 1;
                    self.at += 1;
                }
                ('\\', Some('\n')) => self.at += 1,
                // A `$` that can begin nothing stands for itself.
                ('$', Some('/' | '"' | ' ' | '\t')) => word.push('$'),
                ('$' | '`' | '!', _) => return None,
                (ch, _) => word.push(ch),
            }
            self.at += ch.len_utf8();
        }
    }

    fn escaped(&mut self, word: &mut String) -> Option<()> {
        let ch = self.text[self.at + 1..].chars().next()?;
        self.pieces += 1;
        if ch != '\n' {
            word.push(ch);
        }
        self.at += 1 + ch.len_utf8();
        Some(())
    }

    /// Over blanks, lines that are joined, and a comment.
    fn skip_blanks(&mut self) {
        let bytes = self.text.as_bytes();
        let mut begins_word =
            self.at == 0 || matches!(bytes.get(self.at - 1), Some(b' ' | b'\t' | b'\n' | b';'));
        loop {
            match &bytes[self.at..] {
                [b' ' | b'\t', ..] => {
                    self.at += 1;
                    begins_word = true;
                }
                [b'\\', b'\n', ..] => self.at += 2,
                [b'#', ..] if begins_word => {
                    let rest = &bytes[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }
}

/// Characters that mean nothing to a shell wherever they stand in a word.
pub(super) fn is_safe(ch: char) -> bool {
    ch.is_ascii_alphanumeric()
        || matches!(ch, '_' | '.' | '/' | ':' | ',' | '=' | '@' | '%' | '+' | '-')
        || !ch.is_ascii()
}
