//! Short ways to write a test: one patch, one file, its new text or why not.

use cotenant_text::patch::{
    Applied, FilePatch, Hunk, Malformed, Misfit, Miss, Options, Patch, Suggested, apply, parse,
};

use crate::kit::form;

pub(crate) fn read(text: &str) -> Patch {
    parse(text, &Options::default()).unwrap_or_else(|bad| panic!("{bad}\n{text}"))
}

pub(crate) fn bad(text: &str) -> Malformed {
    match parse(text, &Options::default()) {
        Err(bad) => bad,
        Ok(patch) => panic!("expected a refusal, got {patch:?}"),
    }
}

/// The only file of a patch.
pub(crate) fn one(text: &str) -> FilePatch {
    let files = read(text).files;
    assert_eq!(files.len(), 1, "{files:?}");
    files.into_iter().next().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a hunk says, one character and text a line; `$` marks a line without a break, `^` one with CRLF.
pub(crate) fn shown(hunk: &Hunk) -> Vec<String> {
    use cotenant_text::{Break, Tag};
    let sign = |tag| match tag {
        Tag::Same => ' ',
        Tag::Old => '-',
        Tag::New => '+',
    };
    let end = |ending| match ending {
        Some(Break::Lf) => "",
        Some(Break::Crlf) => "^",
        None => "$",
    };
    hunk.lines.iter().map(|l| format!("{}{}{}", sign(l.tag), text(&l.text), end(l.ending))).collect()
}

pub(crate) fn try_on(raw: &[u8], patch: &str) -> Result<Applied, Misfit> {
    apply(raw, &form(raw), &one(patch).hunks, &[])
}

/// The file after the patch, as text.
pub(crate) fn on(raw: &str, patch: &str) -> String {
    match try_on(raw.as_bytes(), patch) {
        Ok(applied) => String::from_utf8(applied.bytes).unwrap(),
        Err(misfit) => panic!("{misfit:#?}"),
    }
}

/// The only miss of a patch that must not fit.
pub(crate) fn miss(raw: &[u8], patch: &str) -> Miss {
    let misfit = try_on(raw, patch).expect_err("a miss");
    assert_eq!(misfit.misses.len(), 1, "{:#?}", misfit.misses);
    misfit.misses.into_iter().next().unwrap()
}

/// The file after the suggestion of a miss was taken.
pub(crate) fn accept(raw: &[u8], miss: &Miss) -> String {
    let Suggested { hunk, line, .. } =
        miss.suggestion.clone().unwrap_or_else(|| panic!("no suggestion: {miss:#?}"));
    let applied = apply(raw, &form(raw), &[hunk], &[]).expect("a suggestion that works");
    assert_eq!(applied.landed[0].old.0, line, "where it was said to land");
    text(&applied.bytes)
}
