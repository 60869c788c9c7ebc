//! Which commands provably change nothing: tables of the options that are known to be harmless. What a table does not name
//! is not read-only, abbreviations of long options included.

mod finders;
mod git;
mod sed;
mod tools;

use cotenant_model::PathClass;

use super::Surroundings;
use super::part::{Arg, Flow, Kind, Part};
use super::place::Place;

/// The options of a program, or of one of its sub-commands.
pub(super) struct Options {
    /// Letters that take nothing.
    flags: &'static str,
    /// Letters that take the rest of their word, or the next.
    valued: &'static str,
    /// Long options, separated by blanks: `name`, `name=` (takes a value), `name?` (takes one only behind `=`).
    long: &'static str,
}

/// Whether a part changes nothing. What the parts do that make its words is judged apart.
pub(super) fn is_read_only(part: &Part, around: &Surroundings<'_>) -> bool {
    if !part.redirects.iter().all(|redirect| reads(redirect.flow, &redirect.target, part, around)) {
        return false;
    }
    match part.kind {
        Kind::Bare(own) | Kind::Test(own) => own,
        Kind::Wrapper => true,
        Kind::Command => {
            part.assigns.iter().all(|(name, value)| is_harmless(name, value.as_deref()))
                && command(part, around)
        }
    }
}

/// A redirection that reads, copies a descriptor, or throws away.
fn reads(flow: Flow, target: &Arg, part: &Part, around: &Surroundings<'_>) -> bool {
    match flow {
        Flow::Copy => target.literal().is_some(),
        Flow::Text => target.word.is_tame(),
        Flow::To => matches!(target.literal(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr")),
        Flow::From => target.literal().is_some_and(|path| {
            matches!(around.place(part.cwd.as_deref(), path), Place::Inside(_) | Place::Free)
        }),
    }
}

/// Assignments before a command that only change language and colours.
fn is_harmless(name: &str, value: Option<&str>) -> bool {
    let named = name.starts_with("LC_")
        || matches!(
            name,
            "LANG"
                | "LANGUAGE"
                | "NO_COLOR"
                | "COLUMNS"
                | "RUST_BACKTRACE"
                | "CARGO_TERM_COLOR"
                | "FORCE_COLOR"
        );
    let plain = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-' | '.' | '@');
    named && value.is_some_and(|value| value.chars().all(plain))
}

/// Whether a program with these words changes nothing.
fn command(part: &Part, around: &Surroundings<'_>) -> bool {
    // The name as written: what is only known may be a function's, and `./ls` is anybody's.
    let Some(name) = part.args.first().and_then(Arg::literal).filter(|_| !part.is_function) else {
        return false;
    };
    let name = ["/bin/", "/usr/bin/"].iter().find_map(|dir| name.strip_prefix(dir)).unwrap_or(name);
    let rest = part.rest();
    if tools::named(tools::TAME, name) {
        return rest.iter().all(|arg| arg.word.is_tame());
    }
    match name {
        "git" => git::is_read_only(part, around),
        "find" | "fd" | "fdfind" | "rg" => !part.more && finders::is_read_only(name, rest),
        "sed" => !part.more && sed::is_read_only(rest),
        "awk" | "gawk" | "mawk" | "nawk" => !part.more && tools::awk(rest),
        "test" | "[" => !part.more && super::test::is_safe(rest),
        _ => !part.more && tools::is_read_only(name, rest),
    }
}

/// The operands of a command whose options are all in the table; `None` where one is not, or a word may become one.
pub(super) fn operands<'p>(rest: &'p [Arg], options: &Options) -> Option<Vec<&'p Arg>> {
    let mut found = Vec::new();
    let mut words = rest.iter();
    while let Some(arg) = words.next() {
        let Some(text) = arg.literal() else {
            if !arg.word.is_operand() {
                return None;
            }
            found.push(arg);
            continue;
        };
        if text == "--" {
            found.extend(words.by_ref());
        } else if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
            let takes =
                options.long.split_whitespace().find_map(|known| match known.strip_prefix(name)? {
                    "" if !value => Some(false),
                    "=" => Some(!value),
                    "?" => Some(false),
                    _ => None,
                })?;
            if takes {
                words.next().filter(|arg| arg.word.is_tame())?;
            }
        } else if text.len() > 1 && text.starts_with('-') {
            if bundle(&text[1..], options)? {
                words.next().filter(|arg| arg.word.is_tame())?;
            }
        } else {
            found.push(arg);
        }
    }
    found.iter().all(|arg| arg.word.is_tame()).then_some(found)
}

/// Whether a bundle of letters takes the next word; `None` where a letter is not in the table. `-5` is a number.
fn bundle(letters: &str, options: &Options) -> Option<bool> {
    if options.flags.contains('#') && letters.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(false);
    }
    for (at, letter) in letters.char_indices() {
        if options.valued.contains(letter) {
            return Some(at + letter.len_utf8() == letters.len());
        }
        if !options.flags.contains(letter) || letter == '#' {
            return None;
        }
    }
    Some(false)
}

/// A secret that a part would show: a protected file that it reads by name.
pub(super) fn secret_read<'p>(part: &'p Part, around: &Surroundings<'_>) -> Option<&'p str> {
    let shows = |name: &str| tools::named(tools::SHOWS, name);
    let operands = part.rest().iter().filter(|_| part.program().is_some_and(shows) && !part.is_function);
    let inputs =
        part.redirects.iter().filter(|redirect| redirect.flow == Flow::From).map(|redirect| &redirect.target);
    operands.chain(inputs).find_map(|arg| {
        let text = arg.known.as_deref().filter(|text| !text.starts_with('-'))?;
        let Place::Inside(path) = around.place(part.cwd.as_deref(), text) else { return None };
        // Git's own files are no secret, and `.venv` may be read.
        let open = |name: &[u8]| name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b".venv");
        let secret = (around.class)(&path) == PathClass::Protected && !path.components().any(open);
        secret.then_some(text)
    })
}
