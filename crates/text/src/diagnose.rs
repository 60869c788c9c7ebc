//! Why old text was not found: the cause, the nearest places, and a suggestion that would work.

use std::collections::{HashMap, HashSet};

use memchr::memmem;

use crate::adapt::adapt;
use crate::edit::Level;
use crate::escapes;
use crate::fit::{Differences, Fit, Shift, parts};
use crate::loose::Loose;
use crate::nearest::nearest;
use crate::show::{code, is_unseen, visible_window};
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
    Diagnosis::new(view).of(old, new, false)
}

/// A file made ready for the diagnosis of several misses.
pub(crate) struct Diagnosis<'v> {
    view: &'v View<'v>,
    loose: Loose,
}

impl<'v> Diagnosis<'v> {
    pub(crate) fn new(view: &'v View<'v>) -> Diagnosis<'v> {
        let mut loose = Loose::of(view.as_bytes());
        if !loose.bytes.is_empty() && !view.as_bytes().ends_with(b"\n") {
            // A break that old text may end with.
            loose.bytes.push(b'\n');
            loose.starts.push(loose.bytes.len());
        }
        Diagnosis { view, loose }
    }

    /// The diagnosis of one text; with `whole_lines`, only places that begin at the start of a line come into question.
    pub(crate) fn of(&self, old: &str, new: &str, whole_lines: bool) -> Miss {
        let key = Loose::of(old.as_bytes());
        let search = Search { view: self.view, loose: &self.loose, key: &key, old, new, whole_lines };
        search
            .fitting()
            .or_else(|| search.escaped())
            .or_else(|| search.applied())
            .or_else(|| search.respaced())
            .unwrap_or_else(|| search.unknown())
    }
}

/// Places that are compared closely.
const CLOSE: usize = 64;

/// Places are compared closely until their lines come to so many bytes (a line may be the whole file).
const CLOSE_BYTES: usize = 1 << 20;

/// Places that are shown.
const SHOWN: usize = 5;

/// Bytes of the text of one place.
const NEAR_BYTES: usize = 400;

struct Search<'s> {
    view: &'s View<'s>,
    loose: &'s Loose,
    key: &'s Loose,
    old: &'s str,
    new: &'s str,
    whole_lines: bool,
}

impl Search<'_> {
    /// Places where the loose form of old text stands.
    fn fitting(&self) -> Option<Miss> {
        if self.key.bytes.iter().all(|b| *b == b'\n') {
            return None;
        }
        let mut read = 0;
        let begins = |at: &usize| !self.whole_lines || self.loose.starts.binary_search(at).is_ok();
        let mut fits: Vec<Fit> = memmem::find_iter(&self.loose.bytes, &self.key.bytes)
            .filter(begins)
            .take(CLOSE)
            .take_while(|at| {
                let before = read;
                read += self.loose.line(self.loose.line_at(*at)).len();
                before < CLOSE_BYTES
            })
            .filter_map(|at| Fit::at(self.view, self.loose, &self.key.bytes, self.old, self.new, at))
            .collect();
        fits.sort_by_key(|fit| (rank(fit), fit.lines));
        let best = fits.first()?;
        let mut suggestion = self
            .suggestion(best, fits.len() == 1)
            .filter(|_| fits.get(1).is_none_or(|next| rank(next) > rank(best)))
            .filter(|_| !self.has_rival(best.lines.0));
        let nearest =
            fits.iter().take(SHOWN).map(|fit| self.near(fit.lines, fit.lines.1 - fit.lines.0 + 1)).collect();
        let (mut cause, mut detail) = match &best.differences {
            Some(differences) => (cause_of(differences), words_of(differences, self.old)),
            None => (
                Cause::Encoding,
                format!(
                    "the lines from {} on hold bytes that are not text in the file's encoding",
                    best.lines.0
                ),
            ),
        };
        if suggestion.as_ref().is_some_and(|s| s.old == s.new) {
            suggestion = None;
            cause = Cause::AlreadyApplied;
            detail = format!("what new_text asks for already stands at line {}", best.lines.0);
        }
        Some(Miss { cause, detail, nearest, suggestion })
    }

    /// Whether at another place most lines of old text stand exactly, and more than at `first`: then that may be the one that
    /// was meant, and has changed.
    fn has_rival(&self, first: usize) -> bool {
        let mut wanted: HashMap<&[u8], Vec<usize>> = HashMap::new();
        let lines = self.old.lines().map(str::as_bytes).enumerate();
        for (index, line) in lines.filter(|(_, line)| !line.trim_ascii().is_empty()) {
            wanted.entry(line).or_default().push(index);
        }
        let count: usize = wanted.values().map(Vec::len).sum();
        let mut exact: HashMap<usize, usize> = HashMap::new();
        for number in 1..=self.view.line_count() {
            let indices = self.view.line(number).and_then(|line| wanted.get(line)).into_iter().flatten();
            for start in indices.filter_map(|index| number.checked_sub(*index)) {
                *exact.entry(start).or_default() += 1;
            }
        }
        let here = exact.get(&first).copied().unwrap_or(0);
        exact.iter().any(|(start, lines)| *start != first && *lines > here && *lines > 1 && lines * 2 > count)
    }

    fn suggestion(&self, fit: &Fit, sole: bool) -> Option<Suggestion> {
        let differences = fit.differences.as_ref()?;
        let levels = differences.levels()?;
        let level = levels.iter().copied().max()?;
        let file = fit.text(self.view)?;
        let new = adapt(file, self.old, self.new, differences, fit.whole_first)?;
        let why = shift_note(&differences.shift).unwrap_or_else(|| words_of(differences, self.old));
        Some(Suggestion { old: file.to_owned(), new, level, levels, sole, lines: fit.lines, why })
    }

    /// Old text with escapes for the characters themselves, or the other way round.
    fn escaped(&self) -> Option<Miss> {
        let found = escapes::readings(self.old).into_iter().find_map(|reading| {
            let at = memmem::find(self.view.as_bytes(), &reading.text)?;
            Some((at, reading))
        });
        let (at, reading) = found?;
        let lines = self.lines(at, reading.text.len());
        let detail = format!("{}, at line {}", reading.what, lines.0);
        Some(Miss {
            cause: reading.cause,
            detail,
            nearest: vec![self.near(lines, lines.1 - lines.0 + 1)],
            suggestion: None,
        })
    }

    /// New text that stands there once, and says enough to be more than chance.
    fn applied(&self) -> Option<Miss> {
        let (new, bytes) = (self.new.as_bytes(), self.view.as_bytes());
        let telling = new.iter().filter(|b| !b.is_ascii_whitespace()).count();
        if telling < 8 || self.old.contains(self.new) {
            return None;
        }
        let at = memmem::find(bytes, new)?;
        let end = at + new.len();
        let word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let glued = (word(new.first()) && at > 0 && word(bytes.get(at - 1)))
            || (word(new.last()) && word(bytes.get(end)));
        if glued || memmem::find(&bytes[at + 1..], new).is_some() {
            return None;
        }
        let lines = self.lines(at, new.len());
        let detail = format!("old_text is not in this file, and new_text already stands at line {}", lines.0);
        Some(Miss {
            cause: Cause::AlreadyApplied,
            detail,
            nearest: vec![self.near(lines, 0)],
            suggestion: None,
        })
    }

    /// The same text with other line breaks or blank lines.
    fn respaced(&self) -> Option<Miss> {
        let bare = |text: &Loose| {
            text.bytes.split(|b| *b == b'\n').fold(Vec::with_capacity(text.bytes.len()), |mut all, line| {
                all.extend_from_slice(line);
                all
            })
        };
        let (text, key) = (bare(self.loose), bare(self.key));
        if key.len() < 4 {
            return None;
        }
        // Without breaks, every line starts one byte earlier per line before it.
        let starts: Vec<usize> =
            self.loose.starts.iter().enumerate().map(|(index, start)| start - index).collect();
        let line =
            |at: usize| starts.partition_point(|start| *start <= at).clamp(1, self.view.line_count().max(1));
        let places: Vec<(usize, usize)> = memmem::find_iter(&text, &key)
            .take(SHOWN)
            .map(|at| (line(at), line(at + key.len() - 1)))
            .collect();
        let first = places.first()?;
        let cr = self.view.as_bytes().contains(&b'\r')
            && memmem::find(self.view.as_bytes(), self.old.replace('\n', "\r").as_bytes()).is_some();
        let (cause, detail) = if cr {
            (
                Cause::Eol,
                format!(
                    "line {} holds lone carriage returns, which are no line breaks, where old_text has line breaks",
                    first.0
                ),
            )
        } else {
            let of = if first.0 == first.1 {
                format!("line {}", first.0)
            } else {
                format!("lines {}-{}", first.0, first.1)
            };
            (Cause::Spacing, format!("{of} hold the same text with other line breaks or blank lines"))
        };
        let nearest = places.iter().map(|lines| self.near(*lines, self.old_lines())).collect();
        Some(Miss { cause, detail, nearest, suggestion: None })
    }

    fn unknown(&self) -> Miss {
        let lines = self.old_lines();
        let blocks = nearest(self.view, self.loose, self.old, self.key);
        let detail = match blocks.first() {
            Some(best) if best.alike > 0 => {
                format!("nearest: line {} ({} of {lines} lines alike)", best.first, best.alike)
            }
            Some(best) => format!("nearest: line {}, which is not the same", best.first),
            None => "nothing like old_text is in this file".to_owned(),
        };
        let nearest = blocks
            .iter()
            .map(|block| self.near((block.first, block.first + lines - 1), block.alike))
            .collect();
        Miss { cause: Cause::Unknown, detail, nearest, suggestion: None }
    }

    fn old_lines(&self) -> usize {
        self.old.split_inclusive('\n').count()
    }

    fn lines(&self, at: usize, len: usize) -> (usize, usize) {
        (self.view.line_of(at), self.view.line_of(at + len.saturating_sub(1)))
    }

    fn near(&self, lines: (usize, usize), alike: usize) -> Near {
        let lines = (lines.0, lines.1.min(self.view.line_count()).max(lines.0));
        Near {
            lines,
            alike,
            of: self.old_lines(),
            text: visible_window(self.view, lines.0, lines.1, NEAR_BYTES),
        }
    }
}

/// How far a fit is from exact; fits that no level bridges come last.
fn rank(fit: &Fit) -> (bool, Option<Level>, usize) {
    let levels = fit.differences.as_ref().and_then(Differences::levels);
    let kind = levels.as_ref().and_then(|levels| levels.iter().copied().max()).map(|level| match level {
        Level::Indent(_) => Level::Indent(0),
        other => other,
    });
    (levels.is_none(), kind, levels.map_or(0, |levels| levels.len()))
}

fn cause_of(found: &Differences) -> Cause {
    let tabs = matches!(found.shift, Shift::Tabs(..) | Shift::Spaces(..) | Shift::Uneven(true))
        || matches!(found.spacing, Some((_, true)));
    let order = [
        (tabs, Cause::Tabs),
        (found.invisible.is_some(), Cause::Invisible),
        (found.lookalike.is_some() || !found.punctuation.is_empty(), Cause::Lookalike),
        (found.shift != Shift::None, Cause::Indent),
        (found.spacing.is_some(), Cause::Spacing),
        (found.trailing.is_some(), Cause::TrailingSpace),
        (found.final_newline, Cause::Eol),
    ];
    order.into_iter().find(|(applies, _)| *applies).map_or(Cause::Unknown, |(_, cause)| cause)
}

/// The differences in words, the telling ones first.
fn words_of(found: &Differences, old: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    all.extend(shift_words(&found.shift, old));
    all.extend(found.invisible.map(|(line, ch, ours)| match ours {
        true => format!("line {line} has an invisible {} that old_text lacks", code(ch)),
        false => format!("old_text has an invisible {} that line {line} lacks", code(ch)),
    }));
    all.extend(
        found
            .lookalike
            .as_ref()
            .map(|(line, ours, sent)| format!("line {line} has {ours} where old_text has {sent}")),
    );
    let mut pairs = found.punctuation.clone();
    let mut seen = HashSet::new();
    pairs.retain(|(_, ours, sent)| seen.insert((*ours, *sent)));
    all.extend(pairs.iter().take(3).map(|(line, ours, sent)| {
        format!("line {line} has {} where old_text has {}", named(*ours), named(*sent))
    }));
    all.extend(found.spacing.map(|(line, tab)| match tab {
        true => format!("line {line} has tabs and spaces otherwise than old_text"),
        false => format!("line {line} has other spaces between its words"),
    }));
    all.extend(found.trailing.map(|line| format!("line {line} ends with other spaces or tabs")));
    all.extend(
        found.final_newline.then(|| "old_text ends with a line break, the file ends without one".to_owned()),
    );
    all.truncate(4);
    all.join("; ")
}

fn named(ch: char) -> String {
    if is_unseen(ch) || ch == ' ' { code(ch) } else { format!("{ch} ({})", code(ch)) }
}

fn shift_words(shift: &Shift, old: &str) -> Option<String> {
    Some(match shift {
        Shift::None => return None,
        Shift::Tabs(..) => {
            let least = old.split('\n').map(|line| parts(line).0.len()).filter(|n| *n > 0).min().unwrap_or(0);
            format!("the file indents with tabs, old_text with {least} spaces")
        }
        Shift::Spaces(width, _) => format!("the file indents with {width} spaces, old_text with tabs"),
        Shift::Add(lead) => format!("the file's indent is {} more than old_text's", amount(lead)),
        Shift::Remove(lead) => format!("the file's indent is {} less than old_text's", amount(lead)),
        Shift::Uneven(true) => {
            "tabs and spaces in the indent differ from old_text's, not in the same way on every line"
                .to_owned()
        }
        Shift::Uneven(false) => {
            "the indent differs from old_text's, not by the same on every line".to_owned()
        }
    })
}

/// What was done to new text, for the answer of an edit.
fn shift_note(shift: &Shift) -> Option<String> {
    Some(match shift {
        Shift::None | Shift::Uneven(_) => return None,
        Shift::Tabs(..) => "the file indents with tabs, so new_text got tabs".to_owned(),
        Shift::Spaces(..) => "the file indents with spaces, so new_text got spaces".to_owned(),
        Shift::Add(lead) => {
            format!("old_text had {} less, so new_text was shifted by {}", amount(lead), lead.chars().count())
        }
        Shift::Remove(lead) => format!(
            "old_text had {} more, so new_text was shifted by -{}",
            amount(lead),
            lead.chars().count()
        ),
    })
}

fn amount(lead: &str) -> String {
    let count = lead.chars().count();
    let unit = match (lead.contains('\t'), lead.contains(' ')) {
        (true, false) => "tab",
        (false, _) => "space",
        _ => "character",
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
