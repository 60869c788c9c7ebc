//! `.editorconfig`: which charset, line ending and final newline a project asks for at a path.

use crate::create::Want;
use crate::form::{Encoding, Eol};

/// The properties that matter for writing; `None` where no file says anything (or says `unset`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EditorConfig {
    /// `charset`.
    pub charset: Option<Encoding>,
    /// `charset` = `utf-8-bom` (true) or another UTF charset (false).
    pub bom: Option<bool>,
    /// `end_of_line`; `cr` is not supported and ignored.
    pub end_of_line: Option<Eol>,
    /// `insert_final_newline`.
    pub insert_final_newline: Option<bool>,
}

impl EditorConfig {
    /// As a wish for [`crate::compose`].
    pub fn want(&self) -> Want {
        Want { eol: self.end_of_line, encoding: self.charset, bom: self.bom, final_newline: self.insert_final_newline }
    }
}

/// The properties for `path` (relative to the workspace, `/` between parts). `files`: the `.editorconfig` texts with the directory
/// they stand in (relative, `""` = the root), nearest first; a file with `root = true` ends the search.
pub fn properties(files: &[(&str, &str)], path: &str) -> EditorConfig {
    let _ = (files, path);
    EditorConfig::default()
}
