//! Programs that start others: what they start, as parts of their own.

use super::lex::Unread;
use super::part::{Arg, Flow, Kind, Part, State};
use super::walk::Walk;
use super::word::Word;

/// Wrappers around wrappers.
const WRAPPED: usize = 8;

/// A program whose operands are a command.
struct Wrapper {
    name: &'static str,
    /// Letters of options that take the next word.
    valued: &'static str,
    /// Long options that take the next word.
    long: &'static [&'static str],
    /// Operands before the command.
    skip: usize,
    /// It does nothing by itself.
    mere: bool,
    /// Further words come at the end.
    more: bool,
}

const fn wrapper(name: &'static str, valued: &'static str, skip: usize, mere: bool) -> Wrapper {
    Wrapper { name, valued, long: &[], skip, mere, more: false }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper { long: &["--adjustment"], ..wrapper("nice", "n", 0, true) },
    Wrapper { long: &["--signal", "--kill-after"], ..wrapper("timeout", "sk", 1, true) },
    wrapper("setsid", "", 0, true),
    Wrapper { long: &["--input", "--output", "--error"], ..wrapper("stdbuf", "ioe", 0, true) },
    wrapper("builtin", "", 0, true),
    wrapper("nohup", "", 0, false),
    wrapper("exec", "a", 0, false),
    wrapper("time", "of", 0, false),
    Wrapper { long: &["--class", "--classdata"], ..wrapper("ionice", "cn", 0, true) },
    wrapper("chrt", "", 1, false),
    wrapper("taskset", "", 1, false),
    wrapper("setarch", "", 1, false),
    Wrapper { more: true, ..wrapper("parallel", "jNnIaS", 0, false) },
    Wrapper { more: true, ..wrapper("entr", "", 0, false) },
    Wrapper { long: &["--wait", "--timeout"], ..wrapper("flock", "wE", 1, false) },
    wrapper("strace", "oepsPua", 0, false),
    wrapper("ltrace", "oepsnua", 0, false),
    wrapper("unshare", "", 0, false),
    wrapper("nsenter", "t", 0, false),
    wrapper("chroot", "", 1, false),
    wrapper("fakeroot", "", 0, false),
    wrapper("unbuffer", "", 0, false),
    wrapper("xvfb-run", "aens", 0, false),
    wrapper("dbus-run-session", "", 0, false),
    wrapper("systemd-run", "pu", 0, false),
    wrapper("busybox", "", 0, false),
    wrapper("toybox", "", 0, false),
    wrapper("npx", "", 0, false),
    wrapper("bunx", "", 0, false),
    wrapper("uvx", "", 0, false),
];

/// `uv run CMD` and the like: the two words that stand before a command.
const RUNNERS: &[(&str, &[&str])] = &[
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("bundle", &["exec"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("npm", &["exec", "x"]),
    ("direnv", &["exec"]),
    ("git", &["bisect"]),
];

/// Adds a command and whatever it starts.
pub(super) fn push(walk: &mut Walk, mut part: Part, state: &mut State) -> Result<(), Unread> {
    let started = started(&part, state);
    let mere = match &started {
        // A variable before the command may bring another along.
        Started::Command { args, mere, .. } => {
            let own = &part.args[..part.args.len().saturating_sub(args.len())];
            *mere && own.iter().all(|arg| arg.literal().is_some())
        }
        Started::Script { mere, .. } => *mere,
        _ => false,
    };
    let mere = mere && part.assigns.is_empty() && !part.is_function && is_the_systems(&part);
    part.kind = if mere { Kind::Wrapper } else { Kind::Command };
    let quiet = Part { assigns: Vec::new(), redirects: Vec::new(), shown: String::new(), ..part.clone() };
    walk.push(part)?;
    if walk.flat {
        return Ok(());
    }
    match started {
        Started::Nothing => Ok(()),
        Started::Unseen => {
            walk.unseen = true;
            Ok(())
        }
        Started::Command { args, more, here, .. } => command(walk, Part { args, more, ..quiet }, here, state),
        Started::Several(commands) => {
            for args in commands {
                command(walk, Part { args, more: true, ..quiet.clone() }, false, state)?;
            }
            Ok(())
        }
        Started::Script { text, here: true, .. } => walk.script(&text, state),
        Started::Script { text, .. } => walk.apart(&text, state),
    }
}

/// Whether the program is the system's by its name as written: `./bash` is anybody's.
fn is_the_systems(part: &Part) -> bool {
    let name = part.args.first().and_then(Arg::literal);
    let bare =
        name.map(|name| ["/bin/", "/usr/bin/"].iter().find_map(|dir| name.strip_prefix(dir)).unwrap_or(name));
    bare.is_some_and(|name| !name.contains('/'))
}

/// A command that another starts; `here` is in the shell itself.
fn command(walk: &mut Walk, mut part: Part, here: bool, state: &mut State) -> Result<(), Unread> {
    if part.args.is_empty() {
        return Ok(());
    }
    if walk.wrapped >= WRAPPED {
        return Err("it is nested too deeply");
    }
    let words: Vec<&str> = part.args.iter().map(|arg| arg.word.raw.as_str()).collect();
    part.shown = words.join(" ");
    part.is_function =
        here && part.program().is_some_and(|name| state.functions.iter().any(|known| known == name));
    walk.wrapped += 1;
    let done = if here {
        super::builtin::apply(&part, state);
        push(walk, part, state)
    } else {
        push(walk, part, &mut state.clone())
    };
    walk.wrapped -= 1;
    done
}

/// What a command starts.
enum Started {
    Nothing,
    /// Text that cannot be read here.
    Unseen,
    Command {
        args: Vec<Arg>,
        more: bool,
        mere: bool,
        here: bool,
    },
    Several(Vec<Vec<Arg>>),
    Script {
        text: String,
        mere: bool,
        here: bool,
    },
}

fn started(part: &Part, state: &State) -> Started {
    let rest = part.rest();
    let Some(name) = part.program().filter(|_| !part.is_function) else { return Started::Nothing };
    let words = |args: &[Arg], mere: bool, here: bool| {
        let more = part.more;
        Started::Command { args: args.to_vec(), more, mere, here }
    };
    match name {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "rbash" => shell(part),
        "eval" => eval(rest),
        "env" => env(rest, state),
        "xargs" => xargs(rest),
        // Before the command's name alone: behind it the letter is the command's own.
        "command" if rest.first().is_some_and(|arg| matches!(arg.text(), "-v" | "-V")) => Started::Nothing,
        "command" => words(after(rest, "", &[], 0), true, true),
        "find" => find(rest),
        "trap" | "watch" | "script" => quoted(name, rest),
        "." | "source" => Started::Unseen,
        name if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            words(after(rest, "", &[], 0), false, false)
        }
        name => {
            if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
                let args = after(rest, wrapper.valued, wrapper.long, wrapper.skip);
                if let Some(at) = rest.iter().position(|arg| name == "flock" && arg.text() == "-c") {
                    return script(rest.get(at + 1), false);
                }
                let (more, here) = (wrapper.more || part.more, matches!(name, "builtin" | "exec"));
                return Started::Command { args: args.to_vec(), more, mere: wrapper.mere, here };
            }
            let runs = |(runner, verbs): &(&str, &[&str])| {
                *runner == name && rest.first().is_some_and(|arg| verbs.contains(&arg.text()))
            };
            if !RUNNERS.iter().any(runs) {
                return Started::Nothing;
            }
            let bisects = usize::from(name == "git");
            if bisects == 1 && rest.get(1).is_none_or(|arg| arg.text() != "run") {
                return Started::Nothing;
            }
            words(after(&rest[1..], "", &[], bisects), false, false)
        }
    }
}

/// The words after options and `skip` operands.
fn after<'a>(rest: &'a [Arg], valued: &str, long: &[&str], skip: usize) -> &'a [Arg] {
    let (mut at, mut skip) = (0, skip);
    while let Some(arg) = rest.get(at) {
        let text = arg.text();
        if text == "--" {
            at += 1 + skip;
            break;
        }
        if text.len() > 1 && text.starts_with('-') {
            // `-n 5` takes the next word, `-n5` does not.
            let letter = text.len() == 2 && valued.contains(&text[1..]);
            at += 1 + usize::from(letter || long.contains(&text));
        } else if skip > 0 {
            at += 1;
            skip -= 1;
        } else {
            break;
        }
    }
    rest.get(at..).unwrap_or_default()
}

/// A script in one word.
fn script(arg: Option<&Arg>, mere: bool) -> Started {
    match arg.and_then(Arg::literal) {
        Some(text) => Started::Script { text: text.to_owned(), mere, here: false },
        None => match arg.and_then(|arg| arg.known.clone()).filter(|_| arg.is_some_and(|arg| !arg.globbed)) {
            Some(text) => Started::Script { text, mere: false, here: false },
            None => Started::Unseen,
        },
    }
}

/// A shell: `-c TEXT`, a script's file, or what stands in a here-document.
fn shell(part: &Part) -> Started {
    let rest = part.rest();
    let mut at = 0;
    let (mut text, mut mere) = (false, true);
    while let Some(arg) = rest.get(at).filter(|arg| arg.text().starts_with(['-', '+'])) {
        let option = arg.text();
        at += 1;
        if matches!(option, "--" | "-") {
            break;
        }
        if option.starts_with("--") {
            mere = false;
            at += usize::from(matches!(option, "--rcfile" | "--init-file"));
            continue;
        }
        text |= option.starts_with('-') && option.contains('c');
        mere &= option[1..].chars().all(|ch| "ceuxo".contains(ch));
        if option.contains(['o', 'O']) {
            mere &= rest.get(at).is_some_and(|arg| arg.text() == "pipefail");
            at += 1;
        }
    }
    if text {
        return script(rest.get(at), mere);
    }
    let document = part.redirects.iter().rev().find(|redirect| redirect.flow == Flow::Text);
    match document {
        _ if rest.get(at).is_some() => Started::Nothing,
        Some(document) => script(Some(&document.target), false),
        None => Started::Unseen,
    }
}

/// `eval`: its words joined.
fn eval(rest: &[Arg]) -> Started {
    let literal: Option<Vec<&str>> = rest.iter().map(Arg::literal).collect();
    let known = || rest.iter().map(|arg| arg.known.as_deref()).collect::<Option<Vec<&str>>>();
    match literal {
        Some(words) => Started::Script { text: words.join(" "), mere: true, here: true },
        None => known().filter(|_| !rest.iter().any(|arg| arg.globbed)).map_or(Started::Unseen, |words| {
            Started::Script { text: words.join(" "), mere: false, here: true }
        }),
    }
}

/// `env`: after its options and assignments, a command; `-S` is one in one word.
fn env(rest: &[Arg], state: &State) -> Started {
    let mut at = 0;
    let mut mere = true;
    while let Some(arg) = rest.get(at) {
        let text = arg.text();
        let split = text
            .strip_prefix("--split-string=")
            .or_else(|| text.strip_prefix("-S").filter(|text| !text.is_empty()));
        if let Some(text) = split {
            let mut args = vec![Arg::new(Word::exactly(text), state)];
            args.extend_from_slice(&rest[at + 1..]);
            return split_string(&args);
        }
        match text {
            "-S" | "--split-string" => return split_string(&rest[at + 1..]),
            "-u" | "--unset" | "-C" | "--chdir" => at += 2,
            _ if text.starts_with('-') || arg.word.start().contains('=') => at += 1,
            _ => break,
        }
        mere = false;
    }
    Started::Command {
        args: rest[at.min(rest.len())..].to_vec(),
        more: false,
        mere: mere && at < rest.len(),
        here: false,
    }
}

/// `env -S`: close enough to the shell's words to be read as a script.
fn split_string(args: &[Arg]) -> Started {
    match args.iter().map(|arg| arg.known.as_deref()).collect::<Option<Vec<&str>>>() {
        Some(words) => Started::Script { text: words.join(" "), mere: false, here: false },
        None => Started::Unseen,
    }
}

/// `xargs`: its command, with words at the end that come from elsewhere.
fn xargs(rest: &[Arg]) -> Started {
    const LONG: &[&str] = &[
        "--max-args",
        "--max-procs",
        "--max-lines",
        "--delimiter",
        "--arg-file",
        "--max-chars",
        "--process-slot-var",
    ];
    let args = after(rest, "IRnPLdEsa", LONG, 0);
    Started::Command { args: args.to_vec(), more: true, mere: !args.is_empty(), here: false }
}

/// The commands of `find`.
fn find(rest: &[Arg]) -> Started {
    let mut commands = Vec::new();
    let mut words = rest.iter();
    while let Some(arg) = words.next() {
        if matches!(arg.text(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            let args: Vec<Arg> =
                words.by_ref().take_while(|arg| !matches!(arg.text(), ";" | "+")).cloned().collect();
            commands.push(args);
        }
    }
    if commands.is_empty() { Started::Nothing } else { Started::Several(commands) }
}

/// Programs that take a script in a word: `trap 'CMD' EXIT`, `script -c CMD`, `watch CMD …`.
fn quoted(name: &str, rest: &[Arg]) -> Started {
    match name {
        "trap" if rest.len() < 2 || rest[0].text() == "-" || rest[0].text().is_empty() => Started::Nothing,
        "trap" => script(rest.first(), false),
        "watch" => match eval(after(rest, "n", &["--interval"], 0)) {
            Started::Script { text, .. } => Started::Script { text, mere: false, here: false },
            other => other,
        },
        _ => {
            let at = rest.iter().position(|arg| {
                let text = arg.text();
                text == "--command"
                    || (text.starts_with('-') && !text.starts_with("--") && text.ends_with('c'))
            });
            at.map_or(Started::Nothing, |at| script(rest.get(at + 1), false))
        }
    }
}
