//! The real files that are edited: found by walking, chosen by a seed, never copied anywhere but into scratch folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cotenant_testkit::Dice;

/// Sizes that are taken, in bytes.
const SIZES: std::ops::RangeInclusive<u64> = 1_000..=120_000;
/// Files of one language that are looked at.
const KNOWN: usize = 4_000;
/// Fewer lines leave no room for two places.
const LINES: usize = 30;

/// Languages by the ends of names.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("c", &["c", "h"]),
    ("css", &["css"]),
    ("go", &["go"]),
    ("html", &["html"]),
    ("javascript", &["js", "mjs", "cjs"]),
    ("json", &["json"]),
    ("markdown", &["md"]),
    ("perl", &["pl", "pm"]),
    ("python", &["py"]),
    ("rust", &["rs"]),
    ("shell", &["sh"]),
    ("toml", &["toml"]),
    ("typescript", &["ts"]),
    ("yaml", &["yml", "yaml"]),
];

/// A text file as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) lines: Vec<String>,
    pub(super) crlf: bool,
    /// Whether the last line has a break.
    pub(super) ended: bool,
}

impl Text {
    pub(super) fn of(content: &str) -> Text {
        let ended = content.ends_with('\n');
        let body = content.strip_suffix('\n').unwrap_or(content);
        Text { lines: body.split('\n').map(str::to_owned).collect(), crlf: false, ended }
    }

    /// As it stands on disk.
    pub(super) fn content(&self) -> String {
        let ending = if self.crlf { "\r\n" } else { "\n" };
        let mut content = self.lines.join(ending);
        if self.ended {
            content.push_str(ending);
        }
        content
    }

    /// With LF, whatever it has on disk.
    pub(super) fn plain(&self) -> String {
        Text { crlf: false, ..self.clone() }.content()
    }
}

/// A file of the corpus.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) language: &'static str,
    pub(super) extension: String,
    pub(super) text: Text,
}

/// Up to `each` files of every language below the directories.
pub(super) fn samples(directories: &[PathBuf], each: usize, dice: &mut Dice) -> Vec<Sample> {
    let mut found: BTreeMap<&'static str, Vec<PathBuf>> = BTreeMap::new();
    for directory in directories {
        walk(directory, &mut found);
    }
    let mut samples = Vec::new();
    for (language, mut paths) in found {
        let mut left = each;
        while left > 0 && !paths.is_empty() {
            let at = usize::try_from(dice.below(paths.len() as u64)).unwrap();
            let path = paths.swap_remove(at);
            if let Some(text) = read(&path) {
                let extension = path.extension().unwrap().to_str().unwrap().to_owned();
                samples.push(Sample { language, extension, text: varied(text, dice) });
                left -= 1;
            }
        }
    }
    samples
}

/// The files of each language, in the order of their names.
fn walk(directory: &Path, found: &mut BTreeMap<&'static str, Vec<PathBuf>>) {
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort_unstable();
        for path in paths {
            let Ok(stat) = std::fs::symlink_metadata(&path) else { continue };
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if stat.is_dir() && !name.starts_with('.') && name != "target" {
                waiting.push(path);
            } else if stat.is_file() && SIZES.contains(&stat.len()) {
                let Some(language) = language(&path) else { continue };
                let known = found.entry(language).or_default();
                if known.len() < KNOWN {
                    known.push(path);
                }
            }
        }
    }
}

fn language(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?;
    LANGUAGES.iter().find(|(_, ends)| ends.contains(&extension)).map(|(name, _)| *name)
}

/// A file with lines that are written by hand; what machines wrote in one line says nothing about edits.
fn read(path: &Path) -> Option<Text> {
    let content = std::fs::read_to_string(path).ok()?;
    let text = Text::of(&content);
    let by_hand = text.lines.len() >= LINES && text.lines.iter().all(|line| line.len() <= 300);
    let plain = !content.contains(['\r', '\0', '\u{feff}']) && !content.contains("<<<<<<<");
    (by_hand && plain).then_some(text)
}

/// Some with CRLF, some without a final newline.
fn varied(text: Text, dice: &mut Dice) -> Text {
    match dice.below(8) {
        0 => Text { crlf: true, ..text },
        1 => Text { ended: false, ..text },
        _ => text,
    }
}
