//! Why old text was not found: the cause, the nearest places, and a suggestion that would work.

use crate::edit::Level;
use crate::view::View;

/// The cause of a miss as far as the file itself tells. That the file changed, or that the text stands in another file, is for callers to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Tabs against spaces.
    Tabs,
    /// Line breaks: a missing one at the end of the file, lone CRs.
    Eol,
    /// Characters without a glyph.
    Invisible,
    /// Characters that look alike: typographic punctuation, other alphabets, composed and decomposed accents.
    Lookalike,
    /// Spaces or tabs at line ends.
    TrailingSpace,
    /// Another indent.
    Indent,
    /// Other spaces inside lines, other line breaks or blank lines.
    Spacing,
    /// Escapes (`\t`, `\n`, `&lt;`) for the characters themselves or the other way round.
    Escapes,
    /// The text stands there, but does not start on the given line.
    Line,
    /// Bytes that are not text, or an undeclared encoding.
    Encoding,
    /// New text already stands there.
    AlreadyApplied,
    /// None of these.
    Unknown,
}

impl Cause {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Tabs => "tabs",
            Cause::Eol => "eol",
            Cause::Invisible => "invisible",
            Cause::Lookalike => "lookalike",
            Cause::TrailingSpace => "trailing-space",
            Cause::Indent => "indent",
            Cause::Spacing => "spacing",
            Cause::Escapes => "escapes",
            Cause::Line => "line",
            Cause::Encoding => "encoding",
            Cause::AlreadyApplied => "already-applied",
            Cause::Unknown => "unknown",
        }
    }
}

/// A place that resembles old text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// Its lines, from 1, inclusive.
    pub lines: (usize, usize),
    /// How many of its lines are alike (but for spaces and look-alikes).
    pub alike: usize,
    /// Lines of old text.
    pub of: usize,
    /// The lines as `N|text` with the invisible made visible, each ended by LF; at most 400 bytes.
    pub text: String,
}

/// Texts that fit exactly, made from what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Old text exactly as the view has it; it stands in the file once.
    pub old: String,
    /// New text, adapted in the same way.
    pub new: String,
    /// The weakest level that was needed.
    pub level: Level,
    /// All levels that were needed.
    pub levels: Vec<Level>,
    /// Whether no other place comes as near.
    pub sole: bool,
    /// The lines of the place, from 1, inclusive.
    pub lines: (usize, usize),
    /// What differs, in words.
    pub why: String,
}

/// The diagnosis of old text that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The likely cause.
    pub cause: Cause,
    /// One sentence (without a final period) that says what differs and where.
    pub detail: String,
    /// Up to 5 places, nearest first.
    pub nearest: Vec<Near>,
    /// An edit that would work, for the caller to accept.
    pub suggestion: Option<Suggestion>,
}

/// Finds out why `old` is not in the view. Both texts have LF breaks.
pub(crate) fn diagnose(view: &View<'_>, old: &str, new: &str) -> Miss {
    let _ = (view, old, new);
    Miss { cause: Cause::Unknown, detail: "nothing like old_text is in this file".to_owned(), nearest: Vec::new(), suggestion: None }
}
