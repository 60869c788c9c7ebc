//! Files that a command line only shows: what it prints is what they hold, so that it counts as a read.

use cotenant_model::RelPath;

use super::Surroundings;
use super::part::{Arg, Flow, Kind, Part};
use super::place::Place;
use super::walk::Walk;

/// A file that a command shows, and which of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFile {
    /// The file, relative to the workspace.
    pub path: RelPath,
    /// The lines.
    pub lines: ShownLines,
}

/// Lines of a file that a command shows, numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownLines {
    /// All of them.
    Whole,
    /// From the first to the last, both counted; the file may end before.
    Range(u64, u64),
    /// From this one to the end.
    From(u64),
    /// The last so many.
    Last(u64),
}

/// What the last list of a command line that changes nothing shows, if the whole exits with 0: that of a list before it
/// may have failed unseen.
pub(super) fn files(walk: &Walk, around: &Surroundings<'_>) -> Vec<ShownFile> {
    let Some(item) = walk.lines.last().map(|line| line.item) else { return Vec::new() };
    let mut lines = walk.lines.iter().filter(|line| line.item == item);
    if !lines.clone().all(|line| line.certain) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for line in lines.by_ref().filter(|line| line.plain) {
        let Some(parts) = walk.parts.get(line.parts.clone()) else { continue };
        found.extend(pipeline(parts, around).unwrap_or_default());
    }
    found
}

/// What a pipeline shows: files by its first command, of which the others may take lines.
fn pipeline(parts: &[Part], around: &Surroundings<'_>) -> Option<Vec<ShownFile>> {
    let (first, filters) = parts.split_first()?;
    let (lines, operands) = command(first)?;
    let place = |arg: &&Arg| match around.place(first.cwd.as_deref(), arg.literal()?) {
        Place::Inside(path) => Some(path),
        _ => None,
    };
    let paths =
        operands.iter().map(place).collect::<Option<Vec<RelPath>>>().filter(|paths| !paths.is_empty())?;
    let mut lines = lines;
    for filter in filters {
        let (taken, more) = command(filter)?;
        if !more.is_empty() || lines != ShownLines::Whole || paths.len() > 1 {
            return None;
        }
        lines = taken;
    }
    // `head` and `tail` put names between several files, `sed` takes them for one.
    if paths.len() > 1 && lines != ShownLines::Whole {
        return None;
    }
    Some(paths.into_iter().map(|path| ShownFile { path, lines }).collect())
}

/// Which lines a command shows of its operands, or of its input where it has none.
fn command(part: &Part) -> Option<(ShownLines, Vec<&Arg>)> {
    let kept = |flow, output: bool| flow != Flow::From && flow != Flow::Text && !(output && flow == Flow::To);
    if part.kind != Kind::Command
        || part.is_opaque()
        || part.is_function
        || !part.redirects.iter().all(|redirect| {
            kept(redirect.flow, redirect.output) || redirect.flow == Flow::Copy && !redirect.output
        })
        || part.args.iter().any(|arg| arg.globbed)
    {
        return None;
    }
    let rest = part.rest();
    let (options, operands): (Vec<&Arg>, Vec<&Arg>) = rest
        .iter()
        .filter(|arg| arg.text() != "--")
        .partition(|arg| arg.text().len() > 1 && arg.text().starts_with('-'));
    let options: Vec<&str> = options.into_iter().map(Arg::text).collect();
    match part.program()? {
        "cat" => {
            options.iter().all(|text| matches!(*text, "-n" | "-b")).then_some((ShownLines::Whole, operands))
        }
        "nl" => options
            .iter()
            .all(|text| matches!(*text, "-ba" | "-b" | "a"))
            .then_some((ShownLines::Whole, operands)),
        "head" => counted(rest).and_then(|(count, operands)| Some((first_lines(count)?, operands))),
        "tail" => counted(rest).and_then(|(count, operands)| Some((last_lines(count)?, operands))),
        "sed" => sed(&options, operands),
        _ => None,
    }
}

/// The count that `head` and `tail` are given (`-n 5`, `-n5`, `-5`, `--lines=5`; 10 without), and their files.
fn counted(rest: &[Arg]) -> Option<(&str, Vec<&Arg>)> {
    let mut count = "10";
    let mut operands = Vec::new();
    let mut words = rest.iter();
    while let Some(arg) = words.next() {
        let text = arg.text();
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if text == "-n" || text == "--lines" {
            count = words.next()?.text();
        } else if let Some(given) = text.strip_prefix("--lines=").or_else(|| text.strip_prefix("-n")) {
            count = given;
        } else if let Some(given) = text.strip_prefix('-') {
            count = Some(given).filter(|given| digits(given))?;
        } else {
            operands.push(arg);
        }
    }
    Some((count, operands))
}

fn first_lines(count: &str) -> Option<ShownLines> {
    let count: u64 = count.parse().ok().filter(|count| *count > 0)?;
    Some(ShownLines::Range(1, count))
}

fn last_lines(count: &str) -> Option<ShownLines> {
    if let Some(from) = count.strip_prefix('+') {
        return from.parse().ok().map(|from: u64| ShownLines::From(from.max(1)));
    }
    count.trim_start_matches('-').parse().ok().filter(|count| *count > 0).map(ShownLines::Last)
}

/// `sed -n 'A,Bp'`.
fn sed<'p>(options: &[&str], operands: Vec<&'p Arg>) -> Option<(ShownLines, Vec<&'p Arg>)> {
    let (script, files) = operands.split_first().filter(|_| options == ["-n"])?;
    let range = script.literal()?.trim().strip_suffix('p')?;
    let (from, to) = range.split_once(',').unwrap_or((range, range));
    let from: u64 = from.trim().parse().ok().filter(|from| *from > 0)?;
    let lines = match to.trim() {
        "$" => ShownLines::From(from),
        to => match to.strip_prefix('+') {
            Some(more) => ShownLines::Range(from, from.saturating_add(more.parse().ok()?)),
            // `sed` shows the first line even where the range ends before it.
            None => ShownLines::Range(from, to.parse::<u64>().ok()?.max(from)),
        },
    };
    Some((lines, files.to_vec()))
}
