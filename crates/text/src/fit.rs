//! A place where old text fits loosely: where exactly it stands, and in what the file differs from what was sent.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use crate::edit::Level;
use crate::loose::{self, Loose};
use crate::show::{code, is_ignorable};
use crate::view::View;

/// A place where the loose form of old text stands.
pub(crate) struct Fit {
    /// The place in the view.
    pub(crate) range: Range<usize>,
    /// Its lines, from 1, inclusive.
    pub(crate) lines: (usize, usize),
    /// Whether it begins at the start of its line, so that the first line's indent counts.
    pub(crate) whole_first: bool,
    /// What differs; `None` where the file's bytes are not text.
    pub(crate) differences: Option<Differences>,
}

/// How the file differs from old text, line by line.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) shift: Shift,
    /// First line whose end differs in spaces or tabs.
    pub(crate) trailing: Option<usize>,
    /// Typographic characters of the file for plain ones of old text, or the other way: line, file's, old text's.
    pub(crate) punctuation: Vec<(usize, char, char)>,
    /// First line with other spaces inside, and whether a tab is involved.
    pub(crate) spacing: Option<(usize, bool)>,
    /// First line with an invisible character, which, and whether the file has it (else old text).
    pub(crate) invisible: Option<(usize, char, bool)>,
    /// First line with another look-alike: line, file's, old text's.
    pub(crate) lookalike: Option<(usize, String, String)>,
    /// Old text ends with a break that the file lacks at its end.
    pub(crate) final_newline: bool,
}

/// How the indent of the file's lines differs from old text's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shift {
    /// Not at all.
    #[default]
    None,
    /// The file has this much more on every line.
    Add(String),
    /// The file has this much less on every line.
    Remove(String),
    /// The file has tabs for so many spaces each, and so many tabs more.
    Tabs(usize, isize),
    /// The file has so many spaces for each tab, and so many steps more.
    Spaces(usize, isize),
    /// Not in the same way on every line; whether tabs meet spaces.
    Uneven(bool),
}

/// A line in three parts: indent, body, spaces at the end. A blank line is all end.
pub(crate) fn parts(line: &str) -> (&str, &str, &str) {
    let body = line.trim();
    let lead = if body.is_empty() { 0 } else { line.len() - line.trim_start().len() };
    (&line[..lead], body, &line[lead + body.len()..])
}

impl Fit {
    /// The fit at an offset of the loose text, where `key` (the loose form of `old`) stands.
    pub(crate) fn at(
        view: &View<'_>,
        loose: &Loose,
        key: &[u8],
        old: &str,
        new: &str,
        at: usize,
    ) -> Option<Fit> {
        let first = loose.line_at(at);
        let line = view.line_range(first + 1)?;
        let mut start = source_start(view, &line, at - loose.starts[first])?;
        let blank_before = view.as_bytes()[line.start..start].trim_ascii().is_empty();
        let old_indented = old.starts_with(|c: char| c != '\n' && c.is_whitespace());
        if old_indented {
            start = if blank_before {
                line.start
            } else {
                start - space_before(&view.as_bytes()[line.start..start])
            };
        }
        let end = end_of(view, loose, old, at + key.len())?;
        let last_line = view.line_of(end.saturating_sub(1).max(start));
        let mut fit = Fit {
            range: start..end,
            lines: (first + 1, last_line),
            whole_first: start == line.start,
            differences: None,
        };
        let final_newline = key.ends_with(b"\n") && !view.as_bytes()[..end].ends_with(b"\n");
        fit.compare(view, old, new, final_newline);
        if !fit.whole_first && blank_before && !old_indented {
            fit.take_whole_line(view, old, new, line.start, final_newline);
        }
        Some(fit)
    }

    /// The file's text at this place.
    pub(crate) fn text<'v>(&self, view: &'v View<'_>) -> Option<&'v str> {
        std::str::from_utf8(view.as_bytes().get(self.range.clone())?).ok()
    }

    fn compare(&mut self, view: &View<'_>, old: &str, new: &str, final_newline: bool) {
        self.differences = self.text(view).map(|file| {
            let (first, whole) = (self.lines.0, self.whole_first);
            Differences { final_newline, ..Differences::between(file, old, new, first, whole) }
        });
    }

    /// Old text without the indent of its first line: if the other lines are shifted and the first is too, in the same way, then its whole line is meant.
    fn take_whole_line(
        &mut self,
        view: &View<'_>,
        old: &str,
        new: &str,
        line_start: usize,
        final_newline: bool,
    ) {
        let shifted = |d: &Option<Differences>| matches!(&d, Some(d) if !matches!(d.shift, Shift::None | Shift::Uneven(_)));
        if !shifted(&self.differences) {
            return;
        }
        let mut whole = Fit {
            range: line_start..self.range.end,
            lines: self.lines,
            whole_first: true,
            differences: None,
        };
        whole.compare(view, old, new, final_newline);
        if shifted(&whole.differences) {
            *self = whole;
        }
    }
}

/// The view offset of the character that gave the loose byte at `offset` of a line; the line's end for the offset after the last.
fn source_start(view: &View<'_>, line: &Range<usize>, offset: usize) -> Option<usize> {
    let (_, sources) = loose::mapped(&view.as_bytes()[line.clone()]);
    match sources.get(offset) {
        None => Some(line.end),
        Some(source) if offset > 0 && sources[offset - 1] == *source => None,
        Some(source) => Some(line.start + source.start),
    }
}

/// The view offset after the character that gave the loose byte before `at`, and after the spaces that old text ends with.
fn end_of(view: &View<'_>, loose: &Loose, old: &str, at: usize) -> Option<usize> {
    let index = loose.line_at(at);
    let offset = at - loose.starts[index];
    let bytes = view.as_bytes();
    let Some(line) = view.line_range(index + 1) else {
        return Some(bytes.len());
    };
    let end = if offset == 0 {
        line.start
    } else {
        let (_, sources) = loose::mapped(&bytes[line.clone()]);
        let last = sources.get(offset - 1)?;
        if sources.get(offset) == Some(last) {
            return None;
        }
        line.start + last.end
    };
    let spaces = bytes[end..line.end].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    Some(if old.ends_with([' ', '\t']) { end + spaces } else { end })
}

fn space_before(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

impl Differences {
    fn between(file: &str, old: &str, new: &str, first: usize, whole_first: bool) -> Differences {
        let mut found = Differences::default();
        let mut leads = Vec::new();
        for (index, (file_line, old_line)) in file.split('\n').zip(old.split('\n')).enumerate() {
            let (number, (lead, body, end), (old_lead, old_body, old_end)) =
                (first + index, parts(file_line), parts(old_line));
            found.compare_bodies(number, body, old_body);
            if end != old_end {
                found.trailing.get_or_insert(number);
            }
            if body.is_empty() || old_body.is_empty() {
                continue;
            }
            if index > 0 || whole_first {
                let folded: String = lead.chars().map(|c| loose::plain(c).unwrap_or(c)).collect();
                found
                    .punctuation
                    .extend(lead.chars().find(|c| loose::plain(*c).is_some()).map(|c| (number, c, ' ')));
                leads.push((folded, old_lead));
            } else if lead != old_lead {
                found.spacing.get_or_insert((number, lead.contains('\t') != old_lead.contains('\t')));
            }
        }
        let new_leads: Vec<&str> = new.split('\n').map(|line| parts(line).0).collect();
        found.shift = Shift::of(&leads, &new_leads);
        found
    }

    fn compare_bodies(&mut self, number: usize, file: &str, old: &str) {
        let (mut file, mut old) = (file, old);
        while let (Some(ours), Some(sent)) = (file.chars().next(), old.chars().next()) {
            if ours == sent || loose::plain(ours).unwrap_or(ours) == loose::plain(sent).unwrap_or(sent) {
                if ours != sent {
                    self.punctuation.push((number, ours, sent));
                }
                (file, old) = (&file[ours.len_utf8()..], &old[sent.len_utf8()..]);
            } else if is_ignorable(ours) {
                self.invisible.get_or_insert((number, ours, true));
                file = &file[ours.len_utf8()..];
            } else if is_ignorable(sent) {
                self.invisible.get_or_insert((number, sent, false));
                old = &old[sent.len_utf8()..];
            } else if ours.is_whitespace() || sent.is_whitespace() {
                let (rest, old_rest) = (file.trim_start(), old.trim_start());
                let tab = |text: &str, rest: &str| text[..text.len() - rest.len()].contains('\t');
                self.spacing.get_or_insert((number, tab(file, rest) != tab(old, old_rest)));
                (file, old) = (rest, old_rest);
            } else {
                self.lookalike.get_or_insert_with(|| (number, named_cluster(file), named_cluster(old)));
                return;
            }
        }
        let rest = file
            .chars()
            .map(|c| (c, true))
            .chain(old.chars().map(|c| (c, false)))
            .find(|(c, _)| is_ignorable(*c));
        if let Some((ch, ours)) = rest {
            self.invisible.get_or_insert((number, ch, ours));
        }
    }

    /// The levels that would bridge the differences; `None` if no level does.
    pub(crate) fn levels(&self) -> Option<Vec<Level>> {
        if self.spacing.is_some() || self.invisible.is_some() || self.lookalike.is_some() {
            return None;
        }
        let mut levels = Vec::new();
        levels.extend(self.final_newline.then_some(Level::FinalNewline));
        levels.extend(self.trailing.map(|_| Level::TrailingSpace));
        levels.extend((!self.punctuation.is_empty()).then_some(Level::Punctuation));
        let signed = |lead: &str| i32::try_from(lead.chars().count()).unwrap_or(i32::MAX);
        match &self.shift {
            Shift::None => {}
            Shift::Add(lead) => levels.push(Level::Indent(signed(lead))),
            Shift::Remove(lead) => levels.push(Level::Indent(-signed(lead))),
            Shift::Tabs(..) => levels.push(Level::Tabs),
            Shift::Spaces(..) => levels.push(Level::Spaces),
            Shift::Uneven(_) => return None,
        }
        Some(levels)
    }
}

/// The first character with the marks on it, and its code points: `é (U+0065 U+0301)`.
fn named_cluster(text: &str) -> String {
    let marks =
        text.char_indices().skip(1).find(|(_, c)| !is_combining_mark(*c)).map_or(text.len(), |(at, _)| at);
    let cluster = &text[..marks];
    let codes: Vec<String> = cluster.chars().map(code).collect();
    format!("{cluster} ({})", codes.join(" "))
}

impl Shift {
    /// The shift that leads from old text's indents to the file's: pairs (file's, old text's). The indents of new text help where several would do.
    fn of(leads: &[(String, &str)], new_leads: &[&str]) -> Shift {
        let Some((first, old_first)) = leads.first() else {
            return Shift::None;
        };
        if leads.iter().all(|(lead, old)| lead == old) {
            return Shift::None;
        }
        if let Some(more) = first.strip_suffix(old_first)
            && !more.is_empty()
            && leads.iter().all(|(lead, old)| lead.strip_prefix(more) == Some(*old))
        {
            return Shift::Add(more.to_owned());
        }
        if let Some(less) = old_first.strip_suffix(first.as_str())
            && !less.is_empty()
            && leads.iter().all(|(lead, old)| old.strip_prefix(less) == Some(lead.as_str()))
        {
            return Shift::Remove(less.to_owned());
        }
        let only = |text: &str, c: char| text.chars().all(|found| found == c);
        if leads.iter().all(|(lead, old)| only(lead, '\t') && only(old, ' ')) {
            let steps: Vec<(usize, usize)> =
                leads.iter().map(|(lead, old)| (lead.len(), old.len())).collect();
            let new: Vec<usize> = new_leads.iter().map(|lead| lead.len()).collect();
            return steady(&steps, &new).map_or(Shift::Uneven(true), |(width, by)| Shift::Tabs(width, by));
        }
        if leads.iter().all(|(lead, old)| only(lead, ' ') && only(old, '\t')) {
            let steps: Vec<(usize, usize)> =
                leads.iter().map(|(lead, old)| (old.len(), lead.len())).collect();
            return steady(&steps, &[]).map_or(Shift::Uneven(true), |(width, by)| Shift::Spaces(width, -by));
        }
        // Tabs, and spaces for what is less than one.
        let fits = |spaces: &str, mixed: &str, width: usize| {
            only(spaces, ' ') && mixed == tabbed(spaces.len(), width)
        };
        let widths = [4, 2, 8];
        if let Some(width) =
            widths.iter().find(|width| leads.iter().all(|(lead, old)| fits(old, lead, **width)))
        {
            return Shift::Tabs(*width, 0);
        }
        if let Some(width) =
            widths.iter().find(|width| leads.iter().all(|(lead, old)| fits(lead, old, **width)))
        {
            return Shift::Spaces(*width, 0);
        }
        Shift::Uneven(leads.iter().any(|(lead, old)| lead.contains('\t') != old.contains('\t')))
    }
}

/// An indent of so many columns in tabs of this width, the rest in spaces.
pub(crate) fn tabbed(columns: usize, width: usize) -> String {
    "\t".repeat(columns / width) + &" ".repeat(columns % width)
}

/// The width of a tab for which (tabs, spaces) differ by the same number of tabs on every line, and that number. Prefers no
/// difference, then a width that new text's indents are multiples of.
fn steady(steps: &[(usize, usize)], new: &[usize]) -> Option<(usize, isize)> {
    let by = |width: usize| {
        let mut all = steps.iter().map(|(tabs, spaces)| {
            spaces.is_multiple_of(width).then(|| *tabs as isize - (*spaces / width) as isize)
        });
        let first = all.next()??;
        all.all(|by| by == Some(first)).then_some(first)
    };
    [4, 2, 8, 3, 6, 5, 7, 1]
        .into_iter()
        .filter_map(|width| Some((width, by(width)?)))
        .min_by_key(|(width, by)| (*by != 0, !new.iter().all(|spaces| spaces.is_multiple_of(*width))))
}
