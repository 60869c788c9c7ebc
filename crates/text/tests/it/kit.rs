//! Short ways to write a test: one edit, its result or its error.

use cotenant_text::{EditError, EditSpec, Edited, Encoding, Form, Miss, Tolerance, View, apply, detect};

pub(crate) fn spec<'a>(old: &'a str, new: &'a str) -> EditSpec<'a> {
    EditSpec { old, new, replace_all: false, line: None }
}

pub(crate) fn form(raw: &[u8]) -> Form {
    detect(raw, None).expect("text")
}

pub(crate) fn declared(raw: &[u8], label: &str) -> Form {
    detect(raw, Encoding::from_label(label)).expect("text of the declared encoding")
}

/// One strict edit of a file whose form is found out.
pub(crate) fn edit(raw: &[u8], old: &str, new: &str) -> Result<Edited, EditError> {
    edits(raw, &[spec(old, new)])
}

pub(crate) fn edits(raw: &[u8], specs: &[EditSpec<'_>]) -> Result<Edited, EditError> {
    let edited = apply(raw, &form(raw), specs, &Tolerance::default());
    if let Ok(edited) = &edited {
        assert_outside_untouched(raw, edited);
    }
    edited
}

/// The miss of an edit that must not fit.
pub(crate) fn miss(raw: &[u8], old: &str, new: &str) -> Miss {
    match edit(raw, old, new) {
        Err(EditError::NotFound { miss, .. }) => *miss,
        other => panic!("expected a miss, got {other:?}"),
    }
}

/// Every byte outside the reported spans is as it was, and the spans are in order.
pub(crate) fn assert_outside_untouched(raw: &[u8], edited: &Edited) {
    let mut rebuilt = Vec::new();
    let mut from = 0;
    for span in &edited.spans {
        assert!(from <= span.raw.start && span.raw.end <= raw.len(), "spans in order: {:?}", edited.spans);
        rebuilt.extend_from_slice(&raw[from..span.raw.start]);
        rebuilt.extend_from_slice(&span.replacement);
        from = span.raw.end;
    }
    rebuilt.extend_from_slice(&raw[from..]);
    assert_eq!(rebuilt, edited.bytes, "bytes outside the spans");
}

/// Applying a miss's suggestion must succeed; the result.
pub(crate) fn accept(raw: &[u8], miss: &Miss) -> Vec<u8> {
    let suggestion = miss.suggestion.as_ref().expect("a suggestion");
    edit(raw, &suggestion.old, &suggestion.new).expect("a suggestion that works").bytes
}

pub(crate) fn lines(raw: &[u8]) -> Vec<String> {
    let form = form(raw);
    let view = View::new(raw, &form);
    (1..=view.line_count()).map(|n| cotenant_text::shown(view.line(n).unwrap()).into_owned()).collect()
}
