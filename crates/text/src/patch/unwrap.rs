//! What a patch may be wrapped in: a JSON string or object, a Markdown fence, a shell command that reads it from a heredoc.

use std::borrow::Cow;

use crate::json::{Scanner, decode};
use crate::patch::detect;
use crate::patch::model::{Grammar, Malformed};
use crate::patch::source::{Source, SourceLine};

/// The text of the patch: what it was in JSON, else as it is.
pub(super) fn from_json(text: &[u8]) -> Cow<'_, [u8]> {
    let mut now = Cow::Borrowed(text);
    // A JSON string within JSON, but not without end.
    for _ in 0..3 {
        match inside_json(now.trim_ascii()) {
            Some(inner) => now = Cow::Owned(inner.into_bytes()),
            None => break,
        }
    }
    match now.strip_prefix("\u{feff}".as_bytes()) {
        Some(rest) => Cow::Owned(rest.to_vec()),
        None => now,
    }
}

fn inside_json(text: &[u8]) -> Option<String> {
    let whole =
        |mut scanner: Scanner<'_>| (scanner.peek().is_none() && scanner.at() == text.len()).then_some(());
    let mut scanner = Scanner::new(text, 0);
    match text.first()? {
        b'"' => {
            let span = scanner.string()?;
            whole(scanner)?;
            decode(text.get(span)?)
        }
        b'{' => {
            let members = scanner.members()?;
            whole(scanner)?;
            let named = |name: &[u8]| members.iter().find(|(key, _)| text.get(key.clone()) == Some(name));
            let (_, value) =
                [b"\"patch\"".as_slice(), b"\"input\"", b"\"diff\""].into_iter().find_map(named)?;
            decode(text.get(value.clone())?)
        }
        b'[' => {
            let items = scanner.items()?;
            whole(scanner)?;
            let words: Option<Vec<String>> = items.into_iter().map(|span| decode(text.get(span)?)).collect();
            match words?.as_slice() {
                [command, patch] if is_apply_patch(command) => Some(patch.clone()),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_apply_patch(word: &str) -> bool {
    matches!(word, "apply_patch" | "applypatch")
}

/// What was found around a patch.
#[derive(Debug)]
pub(super) struct Wrapped<'s> {
    /// The lines of the patch itself.
    pub(super) source: Source<'s>,
    /// The folder of a `cd` before the command.
    pub(super) cd: Option<String>,
    /// The folders that the command takes off names.
    pub(super) strip: Option<usize>,
}

const ACCEPTED: &str = "`apply_patch`, `git apply [-pN]` or `patch [-pN]`, perhaps after `cd DIR &&`, with the patch as a heredoc";

/// Takes off a heredoc and fences, in whatever order they are nested.
pub(super) fn unwrap(source: Source<'_>) -> Result<Wrapped<'_>, Malformed> {
    let mut wrapped = Wrapped { source, cd: None, strip: None };
    for _ in 0..4 {
        let Some((at, kind)) = start(&wrapped.source) else {
            break;
        };
        if let Some(inside) = fenced(&wrapped.source, at, &kind) {
            wrapped.source = inside;
        } else if let Start::Command(command) = kind {
            wrapped.take(at, &command)?;
        } else {
            break;
        }
    }
    Ok(wrapped)
}

/// What the first telling line begins.
enum Start {
    Command(Heredoc),
    Patch(Grammar),
}

fn start(source: &Source<'_>) -> Option<(usize, Start)> {
    (0..source.len()).find_map(|at| {
        let command = || heredoc(source.trimmed(at)).map(Start::Command);
        Some((at, detect::begins(source, at).map(Start::Patch).or_else(command)?))
    })
}

impl Wrapped<'_> {
    /// Takes the lines between a heredoc's command and its last line.
    fn take(&mut self, at: usize, command: &Heredoc) -> Result<(), Malformed> {
        let lines = self.source.lines();
        let inside = lines.get(at + 1..).unwrap_or_default();
        let Some(length) = inside.iter().position(|line| line.text.trim_ascii() == command.end) else {
            let what = "the heredoc has no end: the patch may be cut off";
            return Err(self.source.malformed(lines.len(), what, ACCEPTED));
        };
        let words = command.words.as_deref();
        let words = words.ok_or_else(|| self.source.malformed(at, "quotes without an end", ACCEPTED))?;
        let (cd, strip) = command_of(words).map_err(|what| self.source.malformed(at, what, ACCEPTED))?;
        self.cd = cd.or(self.cd.take());
        self.strip = strip.or(self.strip);
        self.source = Source::of(inside.iter().take(length).copied().collect());
        Ok(())
    }
}

/// A command line that ends in `<<WORD`.
#[derive(Debug)]
struct Heredoc {
    /// The words before; `None` where a quote is left open.
    words: Option<Vec<String>>,
    /// The line that ends it.
    end: Vec<u8>,
}

fn heredoc(line: &[u8]) -> Option<Heredoc> {
    let text = std::str::from_utf8(line).ok()?;
    let (before, after) = text.split_once("<<")?;
    let quoted = after.strip_prefix('-').unwrap_or(after).trim_start();
    let end = [('\'', '\''), ('"', '"')]
        .into_iter()
        .find_map(|(open, close)| quoted.strip_prefix(open)?.strip_suffix(close))
        .unwrap_or(quoted);
    let plain = !end.is_empty() && end.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let words = words(before);
    let known = words.as_ref().is_none_or(|words| {
        let first = words.iter().map(String::as_str).find(|word| *word != "sudo");
        matches!(first, None | Some("cd" | "apply_patch" | "applypatch" | "git" | "patch"))
    });
    (plain && known).then(|| Heredoc { words, end: end.as_bytes().to_vec() })
}

/// The words of a command line, quotes taken off; `&&` and `;` are words.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '\'' | '"' => loop {
                match chars.next()? {
                    end if end == ch => {
                        word.get_or_insert_default();
                        break;
                    }
                    inner => word.get_or_insert_default().push(inner),
                }
            },
            ';' => {
                words.extend(word.take());
                words.push(";".to_owned());
            }
            _ if ch.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(ch),
        }
    }
    words.extend(word);
    Some(words)
}

type Command = (Option<String>, Option<usize>);

/// The folder and the `-pN` of a command line; words on what is not understood.
fn command_of(words: &[String]) -> Result<Command, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (cd, rest) = match words.as_slice() {
        ["cd", dir, "&&" | ";", rest @ ..] => (Some((*dir).to_owned()), rest),
        rest => (None, rest),
    };
    let options = match rest {
        [] => return Ok((cd, None)),
        [word, options @ ..] if is_apply_patch(word) => options,
        ["git", "apply", options @ ..] | ["patch", options @ ..] => options,
        _ => return Err(format!("`{}` is no command that takes a patch", rest.join(" "))),
    };
    let mut found: Command = (cd, None);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "-p" | "-d" | "--strip" | "--directory" => {
                let value = options.next().ok_or_else(|| format!("`{option}` without a value"))?;
                set(&mut found, option, value)?;
            }
            "-"
            | "-u"
            | "-v"
            | "-s"
            | "-N"
            | "-f"
            | "--verbose"
            | "--silent"
            | "--forward"
            | "--recount"
            | "--unidiff-zero"
            | "--index"
            | "--whitespace=nowarn"
            | "--whitespace=fix" => {}
            _ => match option.split_at_checked(2) {
                Some(("-p" | "-d", value)) => set(&mut found, &option[..2], value)?,
                _ => match option.split_once('=') {
                    Some((name @ ("--strip" | "--directory"), value)) => set(&mut found, name, value)?,
                    _ => return Err(format!("the option `{option}` is not understood here")),
                },
            },
        }
    }
    Ok(found)
}

fn set(found: &mut Command, option: &str, value: &str) -> Result<(), String> {
    if option.starts_with("-p") || option == "--strip" {
        let count = value.parse().map_err(|_| format!("`{option}` takes a number, not `{value}`"))?;
        found.1 = Some(count);
    } else {
        found.0 = Some(match found.0.take() {
            Some(dir) => format!("{dir}/{value}"),
            None => value.to_owned(),
        });
    }
    Ok(())
}

/// The lines inside the fences, where the patch at index `at` stands right below the opening of one. Blocks keep their
/// fences, which tell path and text apart.
fn fenced<'s>(source: &Source<'s>, at: usize, kind: &Start) -> Option<Source<'s>> {
    let is_blocks = |kind: &Start| matches!(kind, Start::Patch(Grammar::Blocks));
    if is_blocks(kind) {
        return None;
    }
    let mut inside: Vec<SourceLine<'s>> = Vec::new();
    let mut opening = (0..at).rev().find(|n| !source.trimmed(*n).is_empty());
    while let Some(open) = opening {
        let Some((mark, length)) = fence(source.trimmed(open)) else {
            break;
        };
        let closes = |n: &usize| {
            let text = source.trimmed(*n);
            fence(text).is_some_and(|(m, l)| m == mark && l >= length) && text.iter().all(|b| *b == mark)
        };
        let close = (open + 1..source.len()).find(closes).unwrap_or(source.len());
        inside.extend(source.lines().get(open + 1..close).unwrap_or_default());
        opening = (close + 1..source.len()).find(|n| {
            let below = (*n + 1..source.len()).find(|n| !source.trimmed(*n).is_empty());
            fence(source.trimmed(*n)).is_some() && below.is_some_and(|n| detect::begins(source, n).is_some())
        });
    }
    (!inside.is_empty()).then(|| Source::of(inside))
}

/// The character and length of a fence.
fn fence(text: &[u8]) -> Option<(u8, usize)> {
    let mark = *text.first().filter(|b| matches!(b, b'`' | b'~'))?;
    let length = text.iter().take_while(|b| **b == mark).count();
    (length >= 3).then_some((mark, length))
}
