//! Line diffs of two versions of a file, cheap for a small change in a large one, and the questions asked of them.

use std::ops::Range;

use crate::form::{Break, Form};

/// Which side a line of a hunk stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// In both.
    Same,
    /// Only in the old version.
    Old,
    /// Only in the new version.
    New,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Its side.
    pub tag: Tag,
    /// Its content as the view has it, without break.
    pub text: Vec<u8>,
    /// Its break; `None` for a last line without one.
    pub ending: Option<Break>,
}

/// Changed lines with their context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// First line in the old version, from 1; with `old_len` 0 the line before.
    pub old_start: usize,
    /// Lines in the old version.
    pub old_len: usize,
    /// First line in the new version, from 1; with `new_len` 0 the line before.
    pub new_start: usize,
    /// Lines in the new version.
    pub new_len: usize,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// A diff of two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The hunks in file order; none when the versions are equal.
    pub hunks: Vec<Hunk>,
}

impl Diff {
    /// Lines (added, removed).
    pub fn stat(&self) -> (usize, usize) {
        let count = |tag| self.hunks.iter().flat_map(|h| &h.lines).filter(|l| l.tag == tag).count();
        (count(Tag::New), count(Tag::Old))
    }

    /// The diff as text within `max_bytes`, each line ended by LF; what does not fit is said in a last line.
    /// `visible` shows the invisible (also differing line ends, as `␍␊` and `␊`); else lines are shown plainly.
    pub fn render(&self, max_bytes: usize, visible: bool) -> String {
        let _ = (max_bytes, visible);
        String::new()
    }
}

/// The line diff between two versions with `context` unchanged lines around each change.
pub fn unified(old: &[u8], old_form: &Form, new: &[u8], new_form: &Form, context: usize) -> Diff {
    let _ = (old, old_form, new, new_form, context);
    Diff::default()
}

/// Lines (added, removed) between two versions.
pub fn stat(old: &[u8], old_form: &Form, new: &[u8], new_form: &Form) -> (usize, usize) {
    unified(old, old_form, new, new_form, 0).stat()
}

/// A change: lines of the old version that became lines of the new one. From 1, half open; an empty range lies before its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Lines in the old version.
    pub old: Range<usize>,
    /// Lines in the new version.
    pub new: Range<usize>,
}

/// The changed regions between two versions, in file order.
pub fn changed_regions(old: &[u8], old_form: &Form, new: &[u8], new_form: &Form) -> Vec<Region> {
    let _ = (old, old_form, new, new_form);
    Vec::new()
}

/// Whether at least `margin` unchanged lines lie between every region and the lines `span` (from 1, inclusive) of the new version.
pub fn clear_of(regions: &[Region], span: (usize, usize), margin: usize) -> bool {
    regions.iter().all(|region| region.new.end + margin <= span.0 || span.1 + 1 + margin <= region.new.start)
}
