//! What a patch says, whatever the grammar it was written in.

use std::fmt;

use thiserror::Error;

use crate::diff::{DiffLine, Tag};
use crate::form::Break;
use crate::patch::blob_id::BlobId;

/// How a patch was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// A unified diff, plain or git's.
    Unified,
    /// `*** Begin Patch` … `*** End Patch`.
    Envelope,
    /// `<<<<<<< SEARCH` … `=======` … `>>>>>>> REPLACE`.
    Blocks,
}

impl Grammar {
    /// The name in answers: `unified`, `envelope`, `blocks`.
    pub fn name(self) -> &'static str {
        match self {
            Grammar::Unified => "unified",
            Grammar::Envelope => "envelope",
            Grammar::Blocks => "blocks",
        }
    }
}

impl fmt::Display for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A parsed patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The grammar it was written in.
    pub grammar: Grammar,
    /// What it does to each file, in the order given. A path that occurs twice is changed twice, one after the other.
    pub files: Vec<FilePatch>,
    /// The folder of a `cd DIR &&` before the command that the patch was wrapped in, as written.
    pub cd: Option<String>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// The path after the change (before it, for a deletion), as written but for prefixes and quotes. Not checked in any way.
    pub path: Vec<u8>,
    /// What happens to the file as a whole.
    pub op: Op,
    /// The mode before, where stated.
    pub old_mode: Option<Mode>,
    /// The mode after, where stated.
    pub new_mode: Option<Mode>,
    /// The changed places, in the order given.
    pub hunks: Vec<Hunk>,
    /// The change of a file that is not text.
    pub binary: Option<Binary>,
    /// Whether a deletion says what is deleted, so that it must be compared: git does, the envelope does not.
    pub states_content: bool,
    /// The line of the patch on which this file begins, from 1.
    pub line: usize,
}

impl FilePatch {
    /// Whether the file is a symbolic link before or after, so that its hunks speak of the link's target.
    pub fn is_link(&self) -> bool {
        self.old_mode == Some(Mode::Link) || self.new_mode == Some(Mode::Link)
    }

    /// The path that is read: the old name of a rename or copy, else [`FilePatch::path`].
    pub fn source(&self) -> &[u8] {
        match &self.op {
            Op::Rename { from } | Op::Copy { from } => from,
            _ => &self.path,
        }
    }

    /// The bytes of an added file, exactly as stated. Empty for any other operation without hunks.
    pub fn content(&self) -> Vec<u8> {
        let lines = self.hunks.iter().flat_map(Hunk::new_lines);
        lines.fold(Vec::new(), |mut bytes, line| {
            bytes.extend_from_slice(&line.text);
            bytes.extend_from_slice(line.ending.map_or("", Break::as_str).as_bytes());
            bytes
        })
    }
}

/// What happens to a file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// It is created.
    Add,
    /// It is deleted.
    Delete,
    /// It stays where it is.
    Update,
    /// It is moved; hunks apply on the way.
    Rename {
        /// The path before.
        from: Vec<u8>,
    },
    /// A copy of another file is created; hunks apply to the copy.
    Copy {
        /// The path of the original.
        from: Vec<u8>,
    },
}

/// The kinds of file that a patch can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// 100644.
    Regular,
    /// 100755.
    Executable,
    /// 120000: the content is the target.
    Link,
}

/// One changed place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Its number among the hunks of this path in the whole patch, from 1.
    pub ordinal: usize,
    /// The line of the patch on which it begins, from 1.
    pub line: usize,
    /// The stated first line in the old file, from 1: a hint, never a place by itself.
    pub old_start: Option<usize>,
    /// The stated numbers of lines (old, new); what counts are the lines.
    pub counts: Option<(usize, usize)>,
    /// Lines of the file that stand before the place, outermost first.
    pub anchors: Vec<Vec<u8>>,
    /// What a numbered header says after its numbers.
    pub section: Vec<u8>,
    /// The lines. `ending` is what the patch states: CRLF where the line ends so, `None` before `\ No newline at end of file`.
    pub lines: Vec<DiffLine>,
    /// It ends where the file ends.
    pub eof: bool,
    /// Each of its lines begins with a mark, as they do in diffs and envelopes.
    pub marked: bool,
    /// Context lines without the space that marks them were found, so what they say is in doubt.
    pub bare: bool,
}

impl Hunk {
    /// The lines that must stand in the file: context and what is taken out.
    pub fn old_lines(&self) -> impl DoubleEndedIterator<Item = &DiffLine> {
        self.lines.iter().filter(|line| line.tag != Tag::New)
    }

    /// The lines that stand there then: context and what is put in.
    pub fn new_lines(&self) -> impl DoubleEndedIterator<Item = &DiffLine> {
        self.lines.iter().filter(|line| line.tag != Tag::Old)
    }

    /// Whether the stated numbers of lines are not those of the lines.
    pub fn is_miscounted(&self) -> bool {
        self.counts.is_some_and(|counts| counts != (self.old_lines().count(), self.new_lines().count()))
    }

    /// Whether it changes anything.
    pub fn is_change(&self) -> bool {
        self.lines.iter().any(|line| line.tag != Tag::Same)
    }
}

/// A change of a file that is not text, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// From the old content to the new.
    pub forward: BinaryHunk,
    /// From the new content to the old.
    pub reverse: Option<BinaryHunk>,
    /// Git's id of the old content, where given in full.
    pub old_id: Option<BlobId>,
    /// Git's id of the new content, where given in full.
    pub new_id: Option<BlobId>,
}

/// One direction of a [`Binary`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BinaryHunk {
    /// The content itself.
    Literal(Vec<u8>),
    /// Instructions in git's delta form that make the content from the other side's.
    Delta(Vec<u8>),
}

/// Why a text is no patch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {what} (there stands: {seen}); accepted: {accepted}")]
pub struct Malformed {
    /// The line of the patch (after JSON is unwrapped), from 1.
    pub line: usize,
    /// What is wrong, in words.
    pub what: String,
    /// The beginning of that line, at most 80 bytes, the invisible made visible.
    pub seen: String,
    /// What may stand there.
    pub accepted: &'static str,
}
