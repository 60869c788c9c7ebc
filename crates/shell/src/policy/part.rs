//! The parts of a command line: every command in it, wherever it stands, with what is known of its words.

use std::collections::HashMap;

use super::word::{Piece, Word};

/// What the shell knows at one place of a script, as far as its text tells.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The working directory, absolute; `None` once it cannot be known.
    pub(super) cwd: Option<String>,
    /// The home directory.
    pub(super) home: Option<String>,
    /// What the script has assigned; `None` where the value cannot be known.
    pub(super) vars: HashMap<String, Option<String>>,
    /// Functions of the script.
    pub(super) functions: Vec<String>,
    /// The function whose body this is.
    pub(super) function: Option<String>,
}

impl State {
    /// The value of a variable: outer `None` where the script never set it, inner where it is not known.
    fn value(&self, name: &str) -> Option<Option<&str>> {
        match (self.vars.get(name), name) {
            (Some(value), _) => Some(value.as_deref()),
            (None, "PWD") => Some(self.cwd.as_deref()),
            (None, "HOME") => Some(self.home.as_deref()),
            (None, "TMPDIR" | "OLDPWD") => Some(None),
            // What a function is called with.
            (None, name)
                if self.function.is_some()
                    && !name.starts_with(|ch: char| ch.is_ascii_alphabetic() || ch == '_') =>
            {
                Some(None)
            }
            (None, _) => None,
        }
    }

    /// After commands that may have run or not: what they changed is not known.
    pub(super) fn doubt(&mut self, other: &State) {
        if self.cwd != other.cwd {
            self.cwd = None;
        }
        for (name, value) in &other.vars {
            if self.vars.get(name) != Some(value) {
                self.vars.insert(name.clone(), None);
            }
        }
        self.vars
            .iter_mut()
            .filter(|(name, _)| !other.vars.contains_key(*name))
            .for_each(|(_, value)| *value = None);
        self.functions.clone_from(&other.functions);
    }
}

/// A word with what the state tells of it.
#[derive(Clone, Debug)]
pub(super) struct Arg {
    pub(super) word: Word,
    /// The text with what is known put in, patterns of file names as written; `None` where something is not known.
    pub(super) known: Option<String>,
    /// It is a pattern of file names.
    pub(super) globbed: bool,
    /// A variable that nobody set stands at the start: its name, and whether a `/` follows.
    pub(super) unset: Option<(String, bool)>,
}

impl Arg {
    pub(super) fn new(word: Word, state: &State) -> Arg {
        let known = known(&word, state);
        let globbed = word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)));
        let unset = match word.pieces.as_slice() {
            [Piece::Var(var), rest @ ..] if !var.guarded && state.value(&var.name).is_none() => {
                let slash =
                    |piece: Option<&Piece>| matches!(piece, Some(Piece::Text(text)) if text.starts_with('/'));
                (rest.is_empty() || slash(rest.first())).then(|| (var.name.clone(), !rest.is_empty()))
            }
            _ => None,
        };
        Arg { word, known, globbed, unset }
    }

    /// The literal text.
    pub(super) fn literal(&self) -> Option<&str> {
        self.word.literal()
    }

    /// The literal text, or what is known of it, or nothing.
    pub(super) fn text(&self) -> &str {
        self.known.as_deref().unwrap_or_default()
    }
}

/// The text of a word with variables, home and patterns put in.
fn known(word: &Word, state: &State) -> Option<String> {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Glob(ch) => text.push(*ch),
            Piece::Tilde(user) if user.is_empty() => text.push_str(state.home.as_deref()?),
            Piece::Tilde(user) if user == "+" => text.push_str(state.cwd.as_deref()?),
            Piece::Var(var) if var.whole => {
                let value = state.value(&var.name)??;
                let splits = |ch: char| ch.is_whitespace() || matches!(ch, '*' | '?' | '[');
                if !var.quoted && value.contains(splits) {
                    return None;
                }
                text.push_str(value);
            }
            _ => return None,
        }
    }
    Some(text)
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Reads a file.
    From,
    /// Writes a file.
    To,
    /// Makes one descriptor another, or closes it.
    Copy,
    /// Text of the script itself.
    Text,
}

/// A redirection.
#[derive(Clone, Debug)]
pub(super) struct Redirect {
    pub(super) flow: Flow,
    pub(super) target: Arg,
    /// It is about the output that others read: descriptor 1.
    pub(super) output: bool,
}

/// What kind of command a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A program, a builtin or a function with its words.
    Command,
    /// It only starts the parts that follow it, and does nothing else.
    Wrapper,
    /// Assignments, redirections, or both, without a command. `true`: they change nothing that outlives the line.
    Bare(bool),
    /// `[[ … ]]` or `(( … ))`; `true` where evaluating it runs nothing.
    Test(bool),
}

/// One command.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// As a human is shown it.
    pub(super) shown: String,
    pub(super) kind: Kind,
    /// The names of the assignments before the command, with their values.
    pub(super) assigns: Vec<(String, Option<String>)>,
    /// The program and its words.
    pub(super) args: Vec<Arg>,
    pub(super) redirects: Vec<Redirect>,
    /// Further words will stand at the end, as after `xargs`.
    pub(super) more: bool,
    /// The working directory, where it is known.
    pub(super) cwd: Option<String>,
    /// It is a function of the script itself.
    pub(super) is_function: bool,
    /// Commands run to make its words.
    pub(super) substitutes: bool,
}

impl Part {
    /// Adds what a human is shown next.
    pub(super) fn show(&mut self, text: &str) {
        if !self.shown.is_empty() {
            self.shown.push(' ');
        }
        self.shown.push_str(text);
    }

    /// The program's name without its directories, as far as it is known.
    pub(super) fn program(&self) -> Option<&str> {
        let text = self.args.first()?.known.as_deref()?;
        Some(text.rsplit('/').next().unwrap_or(text))
    }

    /// The words after the program.
    pub(super) fn rest(&self) -> &[Arg] {
        self.args.get(1..).unwrap_or_default()
    }

    /// Whether a word after the program is exactly one of `words`.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.rest().iter().any(|arg| words.contains(&arg.text()))
    }

    /// Something in it cannot be seen: a variable, commands within, braces.
    pub(super) fn is_opaque(&self) -> bool {
        self.kind == Kind::Test(false)
            || self.more
            || self.args.iter().any(|arg| !arg.word.is_plain())
            || self.redirects.iter().any(|redirect| !redirect.target.word.is_plain())
    }
}
