//! Which grammar a patch is written in: told by the first line that begins one.

use crate::patch::blocks;
use crate::patch::envelope;
use crate::patch::headers;
use crate::patch::model::Grammar;
use crate::patch::source::Source;

/// The grammar that the line at index `at` begins.
pub(super) fn begins(source: &Source<'_>, at: usize) -> Option<Grammar> {
    let text = source.text(at)?;
    if envelope::is_mark(text) {
        Some(Grammar::Envelope)
    } else if blocks::opens(text) {
        Some(Grammar::Blocks)
    } else if headers::begins(source, at) || is_combined(text) || text.starts_with(b"@@ -") {
        Some(Grammar::Unified)
    } else {
        None
    }
}

/// A line of a merge's combined diff.
pub(super) fn is_combined(text: &[u8]) -> bool {
    [b"diff --cc ".as_slice(), b"diff --combined ", b"@@@ "].iter().any(|mark| text.starts_with(mark))
}

/// What a line is, where it belongs to another grammar than unified diffs.
pub(super) fn foreign(text: &[u8]) -> Option<&'static str> {
    if envelope::is_mark(text) {
        Some("a line of the `*** Begin Patch` envelope")
    } else if blocks::opens(text) {
        Some("a SEARCH/REPLACE block")
    } else {
        None
    }
}
