//! Patterns over paths, as search takes them.

use std::borrow::Cow;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::content::SearchError;
use crate::ignores::as_path;

/// A glob over paths below a searched directory. Without `/` it is held against the name alone; with one, against the path
/// below the searched directory and the path below the folder. `dir/` means all below `dir`.
#[derive(Debug)]
pub(crate) struct PathGlob {
    set: GlobSet,
    by_name: bool,
    excludes: bool,
}

impl PathGlob {
    /// A leading `!` turns it round.
    pub(crate) fn new(text: &str) -> Result<PathGlob, SearchError> {
        let invalid = |reason: String| SearchError::PatternInvalid { pattern: text.to_owned(), reason };
        let (excludes, pattern) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern).trim_start_matches('/');
        let pattern = composed(pattern.as_bytes());
        let mut pattern = String::from_utf8_lossy(&pattern).into_owned();
        if pattern.ends_with('/') {
            pattern.push_str("**");
        }
        let glob = GlobBuilder::new(&pattern).literal_separator(true).empty_alternates(true).build();
        let glob =
            glob.map_err(|error| invalid(format!("The glob {text} does not parse: {}.", error.kind())))?;
        let set = GlobSetBuilder::new().add(glob).build();
        let set = set.map_err(|error| invalid(format!("The glob {text} is too large: {error}.")))?;
        Ok(PathGlob { set, by_name: !pattern.contains('/'), excludes })
    }

    /// Whether `path` (relative to the folder) fits; `start` is the length of the searched directory's path.
    pub(crate) fn fits(&self, path: &[u8], start: usize) -> bool {
        let is_match = |path: &[u8]| self.set.is_match(as_path(&composed(path)));
        let fits = if self.by_name {
            is_match(name_of(path))
        } else {
            is_match(path) || (start > 0 && is_match(path.get(start + 1..).unwrap_or(path)))
        };
        fits != self.excludes
    }
}

/// The last name of a path.
pub(crate) fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The composed Unicode form (NFC), in which two spellings of one name are equal.
pub(crate) fn composed(name: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_ascii() && is_nfc_quick(text.chars()) != IsNormalized::Yes => {
            Cow::Owned(text.nfc().collect::<String>().into_bytes())
        }
        _ => Cow::Borrowed(name),
    }
}
