//! Patches: three grammars, one model, one rule of placement.
//!
//! [`parse`] reads unified and git diffs, the `*** Begin Patch` envelope and SEARCH/REPLACE blocks, also inside a fence, a
//! heredoc or JSON, into a [`Patch`]. [`apply`] puts the hunks of one file into its bytes, or says of each why not.

mod align;
mod apply;
mod binary;
pub(crate) mod blob_id;
mod blocks;
mod body;
mod detect;
mod envelope;
mod headers;
mod miss;
mod model;
mod names;
mod place;
mod source;
mod suggest;
mod texts;
mod unified;
mod unwrap;

use std::collections::HashMap;

pub use apply::{Applied, Landed, Misfit, apply, check_deleted};
pub use binary::{BinaryMiss, apply_binary};
pub use blob_id::BlobId;
pub use miss::{Cause, Differs, Miss, Suggested};
pub(crate) use texts::proposed;

pub use model::{Binary, BinaryHunk, FilePatch, Grammar, Hunk, Malformed, Mode, Op, Patch};

use source::Source;

/// How a patch is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Folders to take off names in unified diffs; `None`: a pair like `a/` and `b/`, where it stands there.
    pub strip: Option<usize>,
}

/// Reads a patch in any of the three grammars, wrapped or not.
///
/// # Errors
/// [`Malformed`], with the line, what stands there and what may.
pub fn parse(input: &str, options: &Options) -> Result<Patch, Malformed> {
    parse_bytes(input.as_bytes(), options)
}

/// [`parse`] for a patch that is not UTF-8 throughout, as diffs of files in other encodings are.
///
/// # Errors
/// As [`parse`].
pub fn parse_bytes(input: &[u8], options: &Options) -> Result<Patch, Malformed> {
    const ACCEPTED: &str = "a unified diff (`--- a/P`, `+++ b/P`, `@@ … @@`), the envelope `*** Begin Patch` … `*** End Patch`, or blocks `<<<<<<< SEARCH` … `=======` … `>>>>>>> REPLACE` below a path";
    let text = unwrap::from_json(input);
    let wrapped = unwrap::unwrap(Source::new(&text))?;
    let source = &wrapped.source;
    let Some((at, grammar)) = (0..source.len()).find_map(|at| Some((at, detect::begins(source, at)?))) else {
        let first = (0..source.len()).find(|at| !source.trimmed(*at).is_empty());
        return Err(source.malformed(first.unwrap_or(0), "no line of this begins a patch", ACCEPTED));
    };
    let mut files = match grammar {
        Grammar::Unified => unified::parse(source, options.strip.or(wrapped.strip))?,
        Grammar::Envelope => envelope::parse(source, at)?,
        Grammar::Blocks => blocks::parse(source)?,
    };
    if files.is_empty() {
        return Err(source.malformed(at, "no file is changed by this", ACCEPTED));
    }
    number(&mut files);
    Ok(Patch { grammar, files, cd: wrapped.cd })
}

/// Numbers the hunks of each path through the whole patch.
fn number(files: &mut [FilePatch]) {
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    for file in files {
        let count = counts.entry(file.path.clone()).or_default();
        for hunk in &mut file.hunks {
            *count += 1;
            hunk.ordinal = *count;
        }
    }
}
