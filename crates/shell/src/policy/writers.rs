//! Which files a command is told to write, move away or delete, by its own words: redirections, and the operands of the
//! programs that every shell script writes with. Others are the kernel's business.

use super::part::{Arg, Flow, Part};

/// A file that a part is told to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'p> {
    pub(super) arg: &'p Arg,
    /// It is removed with all that is in it, or everything in it is changed.
    pub(super) whole_tree: bool,
}

/// Which operands of a program are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    All,
    /// The last of several.
    Last,
    /// All but the first.
    AfterFirst,
    First,
}

/// Programs, which operands they write, and their options that take the next word (letters, then long names).
const WRITERS: &[(&str, Written, &str, &[&str])] = &[
    ("touch", Written::All, "drt", &["--date", "--reference"]),
    ("tee", Written::All, "", &[]),
    ("mkdir", Written::All, "m", &["--mode"]),
    ("rmdir", Written::All, "", &[]),
    ("rm", Written::All, "", &[]),
    ("unlink", Written::All, "", &[]),
    ("truncate", Written::All, "sr", &["--size", "--reference"]),
    ("shred", Written::All, "ns", &["--iterations", "--size"]),
    ("mkfifo", Written::All, "m", &["--mode"]),
    ("mknod", Written::First, "m", &["--mode"]),
    ("mv", Written::All, "tS", &["--target-directory", "--suffix"]),
    ("cp", Written::Last, "tS", &["--target-directory", "--suffix"]),
    ("ln", Written::Last, "tS", &["--target-directory", "--suffix"]),
    ("install", Written::Last, "tSmog", &["--target-directory", "--suffix", "--mode", "--owner", "--group"]),
    ("rsync", Written::Last, "ef", &["--exclude", "--include", "--rsh", "--filter", "--exclude-from"]),
    ("chmod", Written::AfterFirst, "", &["--reference"]),
    ("chown", Written::AfterFirst, "", &["--reference", "--from"]),
    ("chgrp", Written::AfterFirst, "", &["--reference"]),
    ("chattr", Written::AfterFirst, "", &[]),
];

/// Options of other programs whose value is a file that they write: letters of their own, then long names.
const OUTPUTS: &[(&str, &str, &[&str])] = &[
    ("sort", "o", &["--output"]),
    ("curl", "o", &["--output"]),
    ("wget", "OP", &["--output-document", "--directory-prefix"]),
    ("patch", "o", &["--output"]),
    ("unzip", "d", &[]),
    ("tree", "o", &[]),
    ("gcc", "o", &[]),
    ("cc", "o", &[]),
    ("ld", "o", &[]),
];

/// Everything that a part is told to write.
pub(super) fn targets(part: &Part) -> Vec<Target<'_>> {
    let plain = |arg| Target { arg, whole_tree: false };
    let mut all: Vec<Target<'_>> = part
        .redirects
        .iter()
        .filter(|redirect| redirect.flow == Flow::To)
        .map(|redirect| plain(&redirect.target))
        .collect();
    let Some(program) = part.program().filter(|_| !part.is_function) else { return all };
    let rest = part.rest();
    if let Some((_, written, letters, long)) = WRITERS.iter().find(|(name, ..)| *name == program) {
        let whole_tree = is_recursive(part);
        let (operands, directory) = operands(rest, letters, long);
        let moved = program == "mv" && directory.is_some();
        let chosen: &[&Arg] = match written {
            // With `-t`, sources are all there is.
            Written::Last if directory.is_some() => &[],
            Written::Last if program == "install" && part.has(&["-d", "--directory"]) => &operands,
            Written::Last if operands.len() < 2 => &[],
            Written::Last => &operands[operands.len() - 1..],
            Written::AfterFirst if part.rest().iter().any(|arg| arg.text().starts_with("--reference")) => {
                &operands
            }
            Written::AfterFirst => operands.get(1..).unwrap_or_default(),
            Written::First => operands.get(..1).unwrap_or_default(),
            Written::All => &operands,
        };
        debug_assert!(!moved || chosen.len() == operands.len(), "what is moved away is written");
        all.extend(chosen.iter().map(|arg| Target { arg, whole_tree }));
        all.extend(directory.map(plain));
    }
    if let Some((_, letters, long)) = OUTPUTS.iter().find(|(name, ..)| *name == program) {
        all.extend(values(rest, letters, long).into_iter().filter(|arg| arg.text() != "-").map(plain));
    }
    match program {
        "sed" if edits_in_place(rest) => all.extend(sed_files(rest).into_iter().map(plain)),
        "tar" => all.extend(archive(rest).map(plain)),
        "find" if part.has(&["-delete"]) => {
            let starts = rest.iter().take_while(|arg| !arg.text().starts_with('-'));
            all.extend(starts.map(plain));
        }
        _ => {}
    }
    all
}

/// Whether the command goes through whole trees: `rm -r`, `chmod -R` and their like.
pub(super) fn is_recursive(part: &Part) -> bool {
    let letters: &[char] = match part.program() {
        Some("rm") => &['r', 'R'],
        Some("chmod" | "chown" | "chgrp" | "chattr") => &['R'],
        _ => return false,
    };
    part.rest().iter().take_while(|arg| arg.text() != "--").any(|arg| {
        let text = arg.text();
        text == "--recursive" || (text.starts_with('-') && !text.starts_with("--") && text.contains(letters))
    })
}

/// The operands, and the value of `-t` where there is one.
fn operands<'p>(rest: &'p [Arg], letters: &str, long: &[&str]) -> (Vec<&'p Arg>, Option<&'p Arg>) {
    let mut found = Vec::new();
    let mut directory = None;
    let mut words = rest.iter();
    while let Some(arg) = words.next() {
        let text = arg.text();
        if text == "--" {
            found.extend(words.by_ref());
        } else if long.contains(&text) || takes(text, letters) {
            let value = words.next();
            if text == "--target-directory"
                || (text.ends_with('t') && takes(text, letters) && letters.contains("tS"))
            {
                directory = value;
            }
        } else if !text.starts_with('-') || text == "-" {
            found.push(arg);
        }
    }
    (found, directory)
}

/// Whether it is a bundle of letters of which the first that takes a value is the last: it takes the next word.
fn takes(text: &str, letters: &str) -> bool {
    let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-')) else { return false };
    bundle.find(|ch| letters.contains(ch)).is_some_and(|at| bundle[at..].chars().count() == 1)
}

/// The words that options of these letters and names take.
fn values<'p>(rest: &'p [Arg], letters: &str, long: &[&str]) -> Vec<&'p Arg> {
    let pairs = rest.iter().zip(rest.iter().skip(1));
    pairs
        .filter(|(option, _)| long.contains(&option.text()) || takes(option.text(), letters))
        .map(|(_, value)| value)
        .collect()
}

/// Whether `sed` writes its files.
pub(super) fn edits_in_place(rest: &[Arg]) -> bool {
    rest.iter().any(|arg| {
        let text = arg.text();
        text.starts_with("--in-place")
            || (text.starts_with('-') && !text.starts_with("--") && {
                let bundle = text.split(['e', 'f', 'l']).next().unwrap_or_default();
                bundle.contains('i')
            })
    })
}

/// The files of `sed`: its operands, without a script that stands among them.
fn sed_files(rest: &[Arg]) -> Vec<&Arg> {
    let (found, _) = operands(rest, "efl", &["--expression", "--file", "--line-length"]);
    let given = |arg: &Arg| {
        let text = arg.text();
        text.starts_with("--expression")
            || text.starts_with("--file")
            || takes(text, "ef")
            || text.starts_with("-e")
    };
    let skip = usize::from(!rest.iter().any(given));
    found.into_iter().skip(skip).collect()
}

/// What `tar` writes: the archive it makes, or the directory it unpacks in.
fn archive(rest: &[Arg]) -> impl Iterator<Item = &Arg> {
    let first = rest.first().map(Arg::text).unwrap_or_default();
    let bundles = || {
        let later = rest
            .iter()
            .skip(1)
            .map(Arg::text)
            .filter(|text| text.starts_with('-') && !text.starts_with("--"));
        later.chain([first])
    };
    let long = |name| rest.iter().any(|arg| arg.text() == name);
    let unpacks = long("--extract") || bundles().any(|text| text.contains('x'));
    let lists = long("--list") || bundles().any(|text| text.contains('t'));
    let mut written = Vec::new();
    for (at, arg) in rest.iter().enumerate() {
        let text = arg.text();
        let bundle = at == 0 || (text.starts_with('-') && !text.starts_with("--"));
        let next = rest.get(at + 1);
        if unpacks && (text == "-C" || text == "--directory" || (bundle && text.ends_with('C'))) {
            written.extend(next);
        } else if !unpacks && !lists && (text == "--file" || (bundle && text.ends_with('f'))) {
            written.extend(next.filter(|arg| arg.text() != "-"));
        }
    }
    written.into_iter()
}
