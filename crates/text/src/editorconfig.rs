//! `.editorconfig`: which charset, line ending and final newline a project asks for at a path.

use crate::create::Want;
use crate::form::{Encoding, Eol};
use crate::glob;

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
        Want {
            eol: self.end_of_line,
            encoding: self.charset,
            bom: self.bom,
            final_newline: self.insert_final_newline,
        }
    }
}

/// The properties for `path` (relative to the workspace, `/` between parts). `files`: the `.editorconfig` texts with the directory
/// they stand in (relative, `""` = the root), nearest first; a file with `root = true` ends the search.
pub fn properties(files: &[(&str, &str)], path: &str) -> EditorConfig {
    let mut found = EditorConfig::default();
    let parsed: Vec<(&str, File<'_>)> = files.iter().map(|(dir, text)| (*dir, File::parse(text))).collect();
    let reach = parsed.iter().position(|(_, file)| file.root).map_or(parsed.len(), |at| at + 1);
    for (dir, file) in parsed[..reach].iter().rev() {
        let Some(relative) = below(path, dir) else { continue };
        for section in file.sections.iter().filter(|section| glob::matches(section.pattern, relative)) {
            for (key, value) in &section.pairs {
                found.set(key, value);
            }
        }
    }
    found
}

/// The path relative to `dir`, if it lies below.
fn below<'p>(path: &'p str, dir: &str) -> Option<&'p str> {
    match dir.trim_matches('/') {
        "" | "." => Some(path),
        dir => path.strip_prefix(dir)?.strip_prefix('/'),
    }
}

impl EditorConfig {
    fn set(&mut self, key: &str, value: &str) {
        let value = value.to_ascii_lowercase();
        let unset = value == "unset";
        match key {
            "charset" if unset => (self.charset, self.bom) = (None, None),
            "charset" => {
                if let Some(encoding) = Encoding::from_label(&value) {
                    self.charset = Some(encoding);
                    // Only the UTF-8 names say anything about the mark; UTF-16 keeps its default.
                    self.bom = (encoding == Encoding::Utf8).then_some(value == "utf-8-bom");
                }
            }
            "end_of_line" if unset => self.end_of_line = None,
            "end_of_line" => self.end_of_line = Eol::from_label(&value).or(self.end_of_line),
            "insert_final_newline" if unset => self.insert_final_newline = None,
            "insert_final_newline" => {
                self.insert_final_newline = value.parse().ok().or(self.insert_final_newline)
            }
            _ => {}
        }
    }
}

/// One parsed file.
struct File<'f> {
    root: bool,
    sections: Vec<Section<'f>>,
}

struct Section<'f> {
    pattern: &'f str,
    pairs: Vec<(String, &'f str)>,
}

impl<'f> File<'f> {
    fn parse(text: &'f str) -> File<'f> {
        let mut file = File { root: false, sections: Vec::new() };
        for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(pattern) = line.strip_prefix('[').and_then(|rest| Some(rest.rsplit_once(']')?.0)) {
                file.sections.push(Section { pattern, pairs: Vec::new() });
                continue;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.split([' ', '\t']).find(|word| !word.is_empty()).unwrap_or_default();
            let key = key.trim().to_ascii_lowercase();
            match file.sections.last_mut() {
                Some(section) => section.pairs.push((key, value)),
                None => file.root |= key == "root" && value.eq_ignore_ascii_case("true"),
            }
        }
        file
    }
}
