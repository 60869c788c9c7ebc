//! The commands that are carried out without a shell: each as what it means.

use super::environment::Environment;
use super::lex::{Redirect, Simple};
use super::sed_call::{self, SedCall};

/// The largest size that `truncate` may ask for, in bytes.
const TRUNCATE_MAX: u64 = 10 << 20;

/// One command. Paths are as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// `cd`.
    Enter(String),
    /// `sed -i`.
    Sed(SedCall),
    /// Text into files: by a redirection, or by `tee`, which may show it too.
    Write { to: Vec<String>, append: bool, text: String, shown: bool },
    /// `echo` to standard output.
    Say(String),
    /// `rm`; forced, what is absent is no error.
    Remove { paths: Vec<String>, forced: bool },
    /// `mv`; the last path is where to.
    Move(Vec<String>),
    /// `cp`; the last path is where to.
    Copy(Vec<String>),
    /// `mkdir`, `-p` or not.
    MakeDirs { paths: Vec<String>, parents: bool },
    /// `touch`.
    Touch(Vec<String>),
    /// `truncate -s`.
    Truncate { size: usize, paths: Vec<String> },
    /// `apply_patch` with a patch as its input or argument.
    Patch(String),
}

impl Step {
    /// What it means, or nothing where that is left to the shell.
    pub(super) fn of(command: Simple, environment: &Environment) -> Option<Step> {
        let Simple { words, out, document } = command;
        let Some((name, arguments)) = words.split_first() else {
            return document.is_none().then_some(write(out?, String::new()));
        };
        match (name.as_str(), out, document) {
            ("cat", Some(out), Some(text)) => matches!(arguments, []).then(|| write(out, text)),
            ("tee", out, Some(text)) => tee(arguments, out, text),
            ("apply_patch", None, Some(patch)) => arguments.is_empty().then_some(Step::Patch(patch)),
            (_, _, Some(_)) => None,
            (":" | "true", Some(out), None) => arguments.is_empty().then(|| write(out, String::new())),
            ("echo", out, None) => {
                let text = echo(arguments)?;
                Some(out.map_or(Step::Say(text.clone()), |out| write(out, text)))
            }
            (_, Some(_), None) => None,
            ("cd", None, None) => enter(arguments, environment),
            ("sed", None, None) => {
                Some(Step::Sed(sed_call::parse(arguments, environment.is_posixly_correct())?))
            }
            ("apply_patch", None, None) => match arguments {
                [patch] => Some(Step::Patch(patch.clone())),
                _ => None,
            },
            (name, None, None) => file_command(name, arguments),
        }
    }

    /// Whether it can leave anything behind.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Step::Enter(_) | Step::Say(_))
    }

    /// The paths that it names.
    pub(super) fn paths(&self) -> &[String] {
        match self {
            Step::Enter(path) => std::slice::from_ref(path),
            Step::Sed(call) => &call.files,
            Step::Write { to: paths, .. }
            | Step::Remove { paths, .. }
            | Step::Move(paths)
            | Step::Copy(paths)
            | Step::MakeDirs { paths, .. }
            | Step::Touch(paths)
            | Step::Truncate { paths, .. } => paths,
            Step::Say(_) | Step::Patch(_) => &[],
        }
    }
}

fn write(out: Redirect, text: String) -> Step {
    Step::Write { to: vec![out.to], append: out.append, text, shown: false }
}

/// `-` is the directory before, a leading `-` an option, and with `CDPATH` only a path that begins so is itself.
fn enter(arguments: &[String], environment: &Environment) -> Option<Step> {
    let [to] = arguments else { return None };
    let itself = !environment.has_cdpath() || to.starts_with(['/', '.']);
    (itself && !to.is_empty() && !to.starts_with('-')).then(|| Step::Enter(to.clone()))
}

/// The line, where every `echo` prints the same.
fn echo(words: &[String]) -> Option<String> {
    let option = words.first().is_some_and(|word| word.starts_with('-'));
    let plain = !option && words.iter().all(|word| !word.contains('\\'));
    plain.then(|| words.join(" ") + "\n")
}

fn tee(arguments: &[String], out: Option<Redirect>, text: String) -> Option<Step> {
    let shown = match out {
        None => true,
        Some(out) if out.to == "/dev/null" => false,
        Some(_) => return None,
    };
    let (append, to) = options(arguments, &["-a", "--append"])?;
    Some(Step::Write { to, append, text, shown })
}

/// The commands of coreutils that only name files.
fn file_command(name: &str, arguments: &[String]) -> Option<Step> {
    let pair = |paths: Vec<String>| (paths.len() >= 2).then_some(paths);
    Some(match name {
        "rm" => {
            let (forced, paths) = options(arguments, &["-f", "--force"])?;
            Step::Remove { paths, forced }
        }
        "mv" => Step::Move(pair(options(arguments, &["-f", "--force"])?.1)?),
        "cp" => Step::Copy(pair(options(arguments, &["-f", "--force"])?.1)?),
        "mkdir" => {
            let (parents, paths) = options(arguments, &["-p", "--parents"])?;
            Step::MakeDirs { paths, parents }
        }
        "touch" => Step::Touch(options(arguments, &[])?.1),
        "truncate" => truncate(arguments)?,
        _ => return None,
    })
}

fn truncate(arguments: &[String]) -> Option<Step> {
    let (size, rest) = match arguments {
        [option, size, rest @ ..] if option == "-s" || option == "--size" => (size.as_str(), rest),
        [option, rest @ ..] => (option.strip_prefix("--size=").or(option.strip_prefix("-s"))?, rest),
        [] => return None,
    };
    let digits = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
    let size: u64 = digits.then(|| size.parse().ok())??;
    let size = usize::try_from(size).ok().filter(|_| size <= TRUNCATE_MAX)?;
    Some(Step::Truncate { size, paths: options(rest, &[])?.1 })
}

/// Whether one of `known` stands before the operands, and those; at least one, none of them empty or `-`.
fn options(arguments: &[String], known: &[&str]) -> Option<(bool, Vec<String>)> {
    let mut rest = arguments;
    let mut given = false;
    let mut ended = false;
    while let Some((word, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
        rest = after;
        if word == "--" {
            ended = true;
            break;
        }
        known.contains(&word.as_str()).then_some(())?;
        given = true;
    }
    let operand = |word: &String| !word.is_empty() && word != "-" && (ended || !word.starts_with('-'));
    (!rest.is_empty() && rest.iter().all(operand)).then(|| (given, rest.to_vec()))
}
