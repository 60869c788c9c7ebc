//! Reading some lines of a file of any size, in bounded memory.

use crate::dir::Stat;
use crate::error::TreeError;
use crate::place::Place;
use crate::tree::Tree;

/// A line as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawLine {
    /// Its bytes with its ending; of a long line only the first ones.
    pub bytes: Vec<u8>,
    /// Its length in bytes with its ending; where `bytes` is shorter, it was clipped. `None`: its end was not looked for.
    pub len: Option<u64>,
}

/// Some consecutive lines of a file.
#[derive(Clone, Debug)]
pub struct LineWindow {
    /// The file.
    pub stat: Stat,
    /// The number of the first line: from 1, or negative, counted from the end, where the file is too large to count.
    pub first: i64,
    /// The lines; none where `start` is past the end.
    pub lines: Vec<RawLine>,
    /// Whether the file goes on after them.
    pub more: bool,
    /// How many lines the file has, where that came to light.
    pub total: Option<u64>,
    /// The file changed meanwhile: no receipt (R18).
    pub unstable: bool,
}

impl Tree {
    /// Reads up to `limit` lines from line `start` (from 1; negative from the end, -1 being the last), stopping at about
    /// `max_bytes` kept bytes. Memory is bounded by `max_bytes`, time by a fixed number of scanned bytes, beyond which the
    /// answer is `TooLarge`.
    pub fn read_lines(
        &self,
        _place: &Place,
        _start: i64,
        _limit: usize,
        _max_bytes: usize,
    ) -> Result<LineWindow, TreeError> {
        Err(TreeError::NotFound)
    }
}
