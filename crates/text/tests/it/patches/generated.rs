//! Random files and edits for the property tests, and the text of a patch made from a diff.

use cotenant_text::patch::{FilePatch, Hunk};
use cotenant_text::{Break, Diff, Encoding, Form, Tag, Want, compose, detect};
use proptest::prelude::*;

/// A line and its break; an empty break only at the end of a file.
pub(crate) type Lines = Vec<(String, &'static str)>;

/// A file before and after an edit.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) encoding: Option<Encoding>,
    pub(crate) bom: bool,
    pub(crate) old: Lines,
    pub(crate) new: Lines,
    pub(crate) context: usize,
}

impl Pair {
    pub(crate) fn bytes(&self, lines: &Lines) -> Vec<u8> {
        let text: String = lines.iter().map(|(text, end)| format!("{text}{end}")).collect();
        let want =
            Want { encoding: self.encoding, bom: Some(self.bom), final_newline: Some(false), eol: None };
        compose(&text, None, &want).unwrap()
    }

    pub(crate) fn form(&self, bytes: &[u8]) -> Form {
        detect(bytes, self.encoding).unwrap()
    }
}

fn encodings() -> impl Strategy<Value = (Option<Encoding>, &'static [&'static str])> {
    let label = |label: &str| Encoding::from_label(label);
    const PLAIN: &[&str] = &["a", "b", "", "  c", "\td x", "é", "-- x", "++ y", "@@ z", "\\ w"];
    prop_oneof![
        6 => Just((None, PLAIN)),
        1 => Just((label("utf-16le"), PLAIN)),
        1 => Just((label("windows-1252"), PLAIN)),
        1 => Just((label("shift_jis"), &["a", "b", "", "表", "ソ c"] as &[&str])),
    ]
}

/// One step of an edit: where (modulo the length), what, and which line.
type Step = (usize, u8, usize, bool);

pub(crate) fn pairs(contexts: std::ops::Range<usize>) -> impl Strategy<Value = Pair> {
    let line = (any::<prop::sample::Index>(), any::<bool>());
    let old = prop::collection::vec(line, 0..14);
    let steps = prop::collection::vec((0usize..16, 0u8..4, 0usize..16, any::<bool>()), 1..5);
    (encodings(), any::<bool>(), 0u8..3, old, steps, any::<(bool, bool)>(), contexts).prop_map(
        |((encoding, words), bom, style, old, steps, (old_ends, new_ends), context)| {
            let end = |crlf: bool| match style {
                0 => "\n",
                1 => "\r\n",
                _ if crlf => "\r\n",
                _ => "\n",
            };
            let old: Lines =
                old.iter().map(|(word, crlf)| ((*word.get(words)).to_owned(), end(*crlf))).collect();
            let mut new = old.clone();
            steps.iter().for_each(|step: &Step| edit(&mut new, step, words, end(step.3)));
            let bom = bom && !matches!(encoding, Some(Encoding::Legacy(_)));
            let bom = bom || encoding.is_some_and(|encoding| encoding.unit() > 1);
            Pair { encoding, bom, old: ended(old, old_ends), new: ended(new, new_ends), context }
        },
    )
}

fn edit(lines: &mut Lines, step: &Step, words: &[&str], end: &'static str) {
    let line = (words[step.2 % words.len()].to_owned(), end);
    match step.1 {
        0 | 1 => lines.insert(step.0 % (lines.len() + 1), line),
        _ if lines.is_empty() => {}
        2 => {
            let at = step.0 % lines.len();
            lines.remove(at);
        }
        _ => {
            let at = step.0 % lines.len();
            lines[at] = line;
        }
    }
}

/// Takes the last break off, unless that would leave an empty last line, which is no line.
fn ended(mut lines: Lines, ends: bool) -> Lines {
    if let Some(last) = lines.last_mut().filter(|last| !ends && !last.0.is_empty()) {
        last.1 = "";
    }
    lines
}

/// A diff as a patch for a file named `f`.
pub(crate) fn patch_of(diff: &Diff) -> Vec<u8> {
    let mut out = b"--- a/f\n+++ b/f\n".to_vec();
    for hunk in &diff.hunks {
        let head = (hunk.old_start, hunk.old_len, hunk.new_start, hunk.new_len);
        out.extend(format!("@@ -{},{} +{},{} @@\n", head.0, head.1, head.2, head.3).bytes());
        for line in &hunk.lines {
            out.push(match line.tag {
                Tag::Same => b' ',
                Tag::Old => b'-',
                Tag::New => b'+',
            });
            out.extend_from_slice(&line.text);
            out.extend_from_slice(match line.ending {
                Some(Break::Lf) => b"\n",
                Some(Break::Crlf) => b"\r\n",
                None => b"\n\\ No newline at end of file\n",
            });
        }
    }
    out
}

/// The only file of a patch, if it has one and is one.
pub(crate) fn only(patch: &[u8]) -> Option<FilePatch> {
    let patch = cotenant_text::patch::parse_bytes(patch, &Default::default()).ok()?;
    patch.files.into_iter().next()
}

pub(crate) fn hunks(patch: &[u8]) -> Vec<Hunk> {
    only(patch).map(|file| file.hunks).unwrap_or_default()
}
