//! An edit in words: the five ways in which a model can send it.

use serde_json::{Value, json};

use super::edits::{Hunk, Row, Tag};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    Edit,
    Unified,
    Git,
    Envelope,
    Blocks,
}

pub(super) const FORMATS: [Format; 5] =
    [Format::Edit, Format::Unified, Format::Git, Format::Envelope, Format::Blocks];

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Edit => "edit_file",
            Format::Unified => "unified diff",
            Format::Git => "git diff",
            Format::Envelope => "envelope",
            Format::Blocks => "SEARCH/REPLACE",
        }
    }

    pub(super) fn is_diff(self) -> bool {
        matches!(self, Format::Unified | Format::Git)
    }
}

/// What is sent, and how it is written.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) path: String,
    pub(super) hunks: Vec<Hunk>,
    pub(super) style: Style,
}

/// Deviations from the plain form.
#[derive(Clone, Debug, Default)]
pub(super) struct Style {
    /// Lines of the file end in CR, as a diff of such a file says.
    pub(super) cr_rows: bool,
    /// All line breaks are CRLF.
    pub(super) crlf: bool,
    /// The number of the file's last line where that has no break, as a diff says; else 0.
    pub(super) unended: usize,
    /// What is added to the stated numbers of lines.
    pub(super) counts: isize,
    /// What is added to the stated first lines.
    pub(super) numbers: isize,
    /// Context without the space before it.
    pub(super) bare: bool,
    /// No break at the end.
    pub(super) cut: bool,
    /// Headers of hunks without numbers, or none.
    pub(super) heads: Heads,
    /// The first mark of a block, where it is another.
    pub(super) mark: Option<&'static str>,
    pub(super) wrap: Wrap,
    /// Line breaks within texts are written `\n`.
    pub(super) one_line: bool,
}

/// The `@@` lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Heads {
    #[default]
    Usual,
    Bare,
    None,
    Named(String),
}

/// What is around a patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wrap {
    #[default]
    Nothing,
    Fence,
    Json,
    Heredoc,
}

impl Sent {
    /// The tool and its arguments.
    pub(super) fn call(&self, format: Format) -> (&'static str, Value) {
        if format != Format::Edit {
            return ("apply_patch", json!({"patch": self.patch(format)}));
        }
        let edits: Vec<Value> = self.hunks.iter().map(|hunk| self.pair(hunk)).collect();
        let mut args = match edits.as_slice() {
            [one] => one.clone(),
            _ => json!({"edits": edits}),
        };
        args["path"] = self.path.as_str().into();
        ("edit_file", args)
    }

    fn pair(&self, hunk: &Hunk) -> Value {
        let text = |lines: Vec<&str>| {
            let ending = if self.style.crlf { "\r\n" } else { "\n" };
            let text = lines.join(if self.style.one_line { r"\n" } else { ending });
            match self.style.wrap {
                Wrap::Fence => format!("```\n{text}\n```"),
                _ => text,
            }
        };
        json!({"old_text": text(hunk.before()), "new_text": text(hunk.after())})
    }

    /// The patch as text.
    pub(super) fn patch(&self, format: Format) -> String {
        let mut text = match format {
            Format::Edit => unreachable!("edit_file takes no patch"),
            Format::Unified => self.diff(""),
            Format::Git => self.diff(&format!("diff --git a/{0} b/{0}\n", self.path)),
            Format::Envelope => self.envelope(),
            Format::Blocks => self.blocks(),
        };
        if self.style.crlf {
            text = text.replace('\n', "\r\n");
        }
        if self.style.cut {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        match self.style.wrap {
            Wrap::Nothing => text,
            Wrap::Fence => format!("Here is the change:\n\n```diff\n{text}```\n"),
            Wrap::Json => json!({"patch": text}).to_string(),
            Wrap::Heredoc => format!("apply_patch <<'EOF'\n{text}EOF\n"),
        }
    }

    fn diff(&self, before: &str) -> String {
        let mut text = format!("{before}--- a/{0}\n+++ b/{0}\n", self.path);
        let mut drift = 0isize;
        for hunk in &self.hunks {
            let (old, new) = (hunk.before().len(), hunk.after().len());
            let counted = |count: usize| count.saturating_add_signed(self.style.counts);
            let at = |by: isize| hunk.first.saturating_add_signed(by + self.style.numbers).max(1);
            text.push_str(&match &self.style.heads {
                Heads::Usual => {
                    format!("@@ -{},{} +{},{} @@\n", at(0), counted(old), at(drift), counted(new))
                }
                Heads::Bare => "@@ ... @@\n".to_owned(),
                Heads::None => String::new(),
                Heads::Named(name) => format!("@@ {name}\n"),
            });
            drift += new as isize - old as isize;
            self.rows(hunk, &mut text);
        }
        text
    }

    fn rows(&self, hunk: &Hunk, text: &mut String) {
        let last = |without: Tag| hunk.rows.iter().rposition(|row| row.tag != without);
        let (last_old, last_new) = (last(Tag::New), last(Tag::Old));
        let ends = hunk.first + hunk.before().len() == self.style.unended + 1;
        for (index, row) in hunk.rows.iter().enumerate() {
            let unended = ends && (last_old == Some(index) || last_new == Some(index));
            self.row(row, text, unended);
        }
    }

    fn row(&self, row: &Row, text: &mut String, unended: bool) {
        match row.tag {
            Tag::Same if self.style.bare => {}
            Tag::Same => text.push(' '),
            Tag::Old => text.push('-'),
            Tag::New => text.push('+'),
        }
        text.push_str(&row.text);
        match unended {
            true => text.push_str("\n\\ No newline at end of file"),
            false if self.style.cr_rows => text.push('\r'),
            false => {}
        }
        text.push('\n');
    }

    fn envelope(&self) -> String {
        let mut text = format!("*** Begin Patch\n*** Update File: {}\n", self.path);
        for hunk in &self.hunks {
            match &self.style.heads {
                Heads::Usual | Heads::Bare => text.push_str("@@\n"),
                Heads::None => {}
                Heads::Named(name) => text.push_str(&format!("@@ {name}\n")),
            }
            self.rows(hunk, &mut text);
        }
        text + "*** End Patch\n"
    }

    fn blocks(&self) -> String {
        let mark = self.style.mark.unwrap_or("<<<<<<< SEARCH");
        let mut text = format!("{}\n", self.path);
        for hunk in &self.hunks {
            let side = |lines: Vec<&str>| lines.join(if self.style.one_line { r"\n" } else { "\n" });
            text.push_str(&format!(
                "{mark}\n{}\n=======\n{}\n>>>>>>> REPLACE\n",
                side(hunk.before()),
                side(hunk.after())
            ));
        }
        text
    }
}
