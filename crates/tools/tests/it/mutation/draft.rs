//! One case: a file, what is meant, what is sent instead, and the right answer to it.

use super::corpus::Text;
use super::edits::{Hunk, Row, applied, occurrences};
use super::formats::{Format, Heads, Sent, Style};

/// What is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// These bytes; or a refusal, best with a call that gives them.
    Bytes(String),
    /// Nothing is to be done: the file stays, and that is said.
    Nothing,
    /// The words say each of these equally: a refusal, whose call may give one of them.
    Either(Vec<String>),
    /// None: a refusal without a call that writes.
    Refusal,
}

#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) format: Format,
    /// The file's path.
    pub(super) path: String,
    /// As the session read it.
    pub(super) read: Text,
    /// As it is when the call comes.
    pub(super) disk: Text,
    /// What is meant, in the file as it is when the call comes.
    pub(super) meant: Vec<Hunk>,
    pub(super) sent: Sent,
    /// Other files: path and content.
    pub(super) others: Vec<(String, String)>,
    /// The right answer, where it is not the bytes that are meant.
    pub(super) answer: Option<Answer>,
}

impl Draft {
    pub(super) fn new(format: Format, path: String, text: &Text, hunks: &[Hunk]) -> Draft {
        let diff = format.is_diff();
        let style = Style {
            cr_rows: text.crlf && diff,
            unended: if diff && !text.ended { text.lines.len() } else { 0 },
            ..Style::default()
        };
        Draft {
            format,
            sent: Sent { path: path.clone(), hunks: hunks.to_vec(), style },
            path,
            read: text.clone(),
            disk: text.clone(),
            meant: hunks.to_vec(),
            others: Vec::new(),
            answer: None,
        }
    }

    /// Writes every line otherwise, in the file and in all that is meant and sent.
    pub(super) fn everywhere(&mut self, rewrite: impl Fn(&str) -> String) {
        for line in self.disk.lines.iter_mut().chain(self.read.lines.iter_mut()) {
            *line = rewrite(line);
        }
        let hunks = self.meant.iter_mut().chain(self.sent.hunks.iter_mut());
        for row in hunks.flat_map(|hunk| &mut hunk.rows) {
            row.text = rewrite(&row.text);
        }
    }

    /// Writes every line of what is sent otherwise; whether any came to be another.
    pub(super) fn sent_rows(&mut self, rewrite: impl Fn(&Row) -> String) -> Option<()> {
        let mut some = None;
        for row in self.sent.hunks.iter_mut().flat_map(|hunk| &mut hunk.rows) {
            let text = rewrite(row);
            if text != row.text {
                some = Some(());
                row.text = text;
            }
        }
        some
    }

    /// The lines of what is sent.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sent.hunks.iter().flat_map(|hunk| &hunk.rows)
    }

    /// The bytes that are meant; `None` where the hunks do not stand in the file.
    pub(super) fn bytes(&self) -> Option<String> {
        applied(&self.disk, &self.meant).map(|text| text.content())
    }

    /// What each of several hunks alone would make of the file.
    pub(super) fn parts(&self) -> Vec<String> {
        let alone = self.meant.iter().filter_map(|hunk| applied(&self.disk, std::slice::from_ref(hunk)));
        alone.map(|text| text.content()).collect()
    }

    /// The right answer.
    pub(super) fn right(&self) -> Option<Answer> {
        self.answer.clone().or_else(|| self.bytes().map(Answer::Bytes))
    }

    /// Whether the old lines stand once also for a reader who overlooks spaces and kinds of quotes: then the sender can
    /// only have meant that place.
    pub(super) fn is_sole(&self) -> bool {
        let file: Vec<String> = self.disk.lines.iter().map(|line| folded(line)).collect();
        self.meant.iter().all(|hunk| {
            let old: Vec<String> = hunk.before().into_iter().map(folded).collect();
            file.windows(old.len().max(1)).filter(|window| *window == old).count() == 1
        })
    }

    /// What the file becomes if the words are taken as they are, all of them being unique: then they are no error, whatever
    /// was meant.
    pub(super) fn literally(&self) -> Option<String> {
        if self.sent.path != self.path {
            return None;
        }
        match self.format {
            Format::Edit => self.replaced(),
            _ => self.spliced(),
        }
    }

    fn replaced(&self) -> Option<String> {
        let (_, args) = self.sent.call(self.format);
        let one = [args.clone()];
        let edits =
            args.get("edits").and_then(|edits| edits.as_array()).map_or(one.as_slice(), Vec::as_slice);
        let mut text = self.disk.plain();
        for edit in edits {
            let part = |name: &str| edit[name].as_str().unwrap().replace("\r\n", "\n");
            let old = part("old_text");
            if occurrences(&text, &old) != 1 {
                return None;
            }
            text = text.replacen(&old, &part("new_text"), 1);
        }
        Some(if self.disk.crlf { text.replace('\n', "\r\n") } else { text })
    }

    fn spliced(&self) -> Option<String> {
        let style = &self.sent.style;
        if style.bare || style.one_line || matches!(style.heads, Heads::None) && self.sent.hunks.len() > 1 {
            return None;
        }
        let mut hunks = self.sent.hunks.clone();
        for hunk in &mut hunks {
            let old = hunk.before();
            let stands = |first: &usize| {
                let lines = self.disk.lines.get(first - 1..first - 1 + old.len());
                lines.is_some_and(|lines| lines.iter().map(String::as_str).eq(old.iter().copied()))
            };
            let mut places = (1..=self.disk.lines.len()).filter(stands);
            let (only, None) = (places.next()?, places.next()) else { return None };
            drop(places);
            hunk.first = only;
        }
        applied(&self.disk, &hunks).map(|text| text.content())
    }
}

/// A line for a reader who overlooks spaces and kinds of quotes.
fn folded(line: &str) -> String {
    let plain = |ch: char| match ch {
        '“' | '”' => '"',
        '‘' | '’' => '\'',
        '—' | '–' => '-',
        other => other,
    };
    line.chars().filter(|ch| !ch.is_whitespace()).map(plain).collect()
}
