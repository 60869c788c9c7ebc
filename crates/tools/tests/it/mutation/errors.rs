//! The errors that models make when they send an edit. Each spoils a case and leaves its right answer known.

use cotenant_testkit::Dice;

use super::draft::{Answer, Draft};
use super::edits::{Hunk, Row, Tag, applied, below, occurrences, renamed};
use super::formats::{Format, Heads, Wrap};

/// Spoils a case; `None` where this error cannot be made in it.
type Spoil = fn(&mut Draft, &mut Dice) -> Option<()>;

pub(super) struct Error {
    pub(super) name: &'static str,
    pub(super) spoil: Spoil,
}

const fn error(name: &'static str, spoil: Spoil) -> Error {
    Error { name, spoil }
}

/// All of them; the first is none.
pub(super) const ERRORS: &[Error] = &[
    error("none", |_, _| Some(())),
    error("tabs sent as spaces", tabs_as_spaces),
    error("spaces sent as tabs", spaces_as_tabs),
    error("indent lost", indent_lost),
    error("indent shifted", indent_shifted),
    error("curly quotes straightened", quotes),
    error("no-break spaces as spaces", no_break_spaces),
    error("dashes as hyphens", dashes),
    error("CRLF sent to an LF file", crlf_sent),
    error("LF sent to a CRLF file", lf_sent),
    error("quotes and tabs escaped", escaped),
    error("line breaks escaped", breaks_escaped),
    error("HTML entities", entities),
    error("trailing spaces added", trailing_added),
    error("trailing spaces lost", trailing_lost),
    error("line numbers echoed", echoed),
    error("lines left out as ...", ellipsis),
    error("context line dropped", dropped),
    error("comment line misremembered", misremembered),
    error("boundary line repeated", repeated),
    error("blank line lost", blank_lost),
    error("old and new the same", same),
    error("already applied", already),
    error("stale: changed far away", stale_far),
    error("stale: context changed", stale_near),
    error("stale: the lines themselves changed", stale_over),
    error("duplicate target", duplicate),
    error("duplicate target, wrong number", duplicate_numbered),
    error("wrong counts", counts),
    error("wrong line numbers", numbers),
    error("context without its space", bare),
    error("no final line break", |draft, _| {
        draft.sent.style.cut = draft.format != Format::Edit;
        draft.sent.style.cut.then_some(())
    }),
    error("prefix a/ on the path", |draft, _| renamed_path(draft, |path| format!("a/{path}"))),
    error("path in wrong case", |draft, _| renamed_path(draft, str::to_lowercase)),
    error("path of another file", other_file),
    error("hunks out of order", |draft, _| {
        draft.sent.hunks.reverse();
        (draft.sent.hunks.len() > 1).then_some(())
    }),
    error("marks in the content", marks),
    error("in a Markdown fence", |draft, _| wrapped(draft, Wrap::Fence)),
    error("in a JSON string", |draft, _| wrapped(draft, Wrap::Json)),
    error("in a heredoc", |draft, _| wrapped(draft, Wrap::Heredoc)),
    error("@@ without numbers", |draft, _| headed(draft, Heads::Bare, Format::is_diff)),
    error("@@ missing", |draft, _| headed(draft, Heads::None, |format| format == Format::Envelope)),
    error("@@ names what is not there", |draft, _| {
        headed(draft, Heads::Named("fn of_another_file() {".to_owned()), |format| format == Format::Envelope)
    }),
    error("other mark: SEARCH>", |draft, _| {
        draft.sent.style.mark = Some("<<<<<<< SEARCH>");
        (draft.format == Format::Blocks).then_some(())
    }),
];

/// Its indent and the rest.
fn split(line: &str) -> (&str, &str) {
    line.split_at(line.len() - line.trim_start_matches([' ', '\t']).len())
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn tabs_as_spaces(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.everywhere(|line| {
        let (indent, rest) = split(line);
        format!("{}{rest}", indent.replace("    ", "\t"))
    });
    draft.sent_rows(|row| {
        let (indent, rest) = split(&row.text);
        format!("{}{rest}", indent.replace('\t', "    "))
    })
}

fn spaces_as_tabs(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.sent_rows(|row| {
        let (indent, rest) = split(&row.text);
        format!("{}{rest}", indent.replace("    ", "\t"))
    })
}

/// The indent that all lines with text share.
fn shared_indent(hunk: &Hunk) -> usize {
    let filled = hunk.rows.iter().filter(|row| !is_blank(&row.text));
    filled.map(|row| split(&row.text).0.len()).min().unwrap_or(0)
}

fn indent_lost(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let mut some = None;
    for hunk in &mut draft.sent.hunks {
        let shared = shared_indent(hunk);
        some = some.or((shared > 0).then_some(()));
        for row in &mut hunk.rows {
            row.text = row.text.get(shared..).unwrap_or_default().to_owned();
        }
    }
    some
}

fn indent_shifted(draft: &mut Draft, dice: &mut Dice) -> Option<()> {
    let by = " ".repeat(2 + 2 * below(dice, 2));
    draft.sent_rows(|row| if is_blank(&row.text) { row.text.clone() } else { format!("{by}{}", row.text) })
}

fn quotes(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.everywhere(|line| {
        let mut open = false;
        let curly = line.chars().map(|ch| match ch {
            '"' => {
                open = !open;
                if open { '“' } else { '”' }
            }
            '\'' => '’',
            other => other,
        });
        curly.collect()
    });
    draft.sent_rows(|row| row.text.replace(['“', '”'], "\"").replace('’', "'"))
}

/// The first space within the text of a line.
fn no_break_spaces(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.everywhere(|line| {
        let (indent, rest) = split(line);
        format!("{indent}{}", rest.replacen(' ', "\u{a0}", 1))
    });
    draft.sent_rows(|row| row.text.replace('\u{a0}', " "))
}

/// A dash behind the first word of a line.
fn dashes(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.everywhere(|line| {
        let (indent, rest) = split(line);
        format!("{indent}{}", rest.replacen(' ', " – ", 1))
    });
    draft.sent_rows(|row| row.text.replace('–', "-"))
}

fn crlf_sent(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.sent.style.crlf = true;
    (!draft.disk.crlf).then_some(())
}

fn lf_sent(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    (draft.disk.crlf, draft.read.crlf) = (true, true);
    draft.sent.style.cr_rows = false;
    Some(())
}

fn escaped(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.sent_rows(|row| row.text.replace('\\', r"\\").replace('"', r#"\""#).replace('\t', r"\t"))
}

fn breaks_escaped(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.sent.style.one_line = true;
    let plain = draft.rows().all(|row| !row.text.contains('\\'));
    (plain && matches!(draft.format, Format::Edit | Format::Blocks)).then_some(())
}

fn entities(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.sent_rows(|row| row.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

fn trailing_added(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.sent_rows(|row| if row.tag == Tag::New { row.text.clone() } else { format!("{}  ", row.text) })
}

/// About half of the lines end in spaces; a changed line ends as it did.
fn trailing_lost(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let spaced =
        |line: &str| line.bytes().next_back().is_some_and(|last| last.is_multiple_of(2) && last != b' ');
    draft.everywhere(|line| if spaced(line) { format!("{line}  ") } else { line.to_owned() });
    draft.sent_rows(|row| row.text.trim_end_matches(' ').to_owned())
}

/// Every line as a read answer shows it, in the new text too.
fn echoed(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    for hunk in &mut draft.sent.hunks {
        let (mut old, mut new) = (hunk.first, hunk.first);
        for row in &mut hunk.rows {
            let number = if row.tag == Tag::New { new } else { old };
            row.text = format!("{number}|{}", row.text);
            old += usize::from(row.tag != Tag::New);
            new += usize::from(row.tag != Tag::Old);
        }
    }
    // Both sides of the texts count up, so kept lines below an insertion would be two different ones.
    let grows = draft.sent.hunks.iter().any(|hunk| hunk.before().len() != hunk.after().len());
    (!grows).then_some(())
}

/// A place between two context lines above the change.
fn within_context(hunk: &Hunk) -> Option<usize> {
    let above = hunk.rows.iter().take_while(|row| row.tag == Tag::Same).count();
    (above >= 3).then(|| above - 2)
}

fn ellipsis(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    for hunk in &mut draft.sent.hunks {
        let at = within_context(hunk)?;
        let row = hunk.rows.get_mut(at)?;
        if row.text.contains("...") {
            return None;
        }
        row.text = "...".to_owned();
    }
    Some(())
}

fn dropped(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let hunk = draft.sent.hunks.first_mut()?;
    let at = within_context(hunk)?;
    hunk.rows.remove(at);
    Some(())
}

fn misremembered(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let hunk = draft.sent.hunks.first_mut()?;
    let at = within_context(hunk)?;
    let row = hunk.rows.get_mut(at)?;
    row.text = renamed(&row.text)?;
    Some(())
}

fn repeated(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let hunk = draft.sent.hunks.last_mut()?;
    let last = hunk.rows.last().filter(|row| row.tag == Tag::Same && !is_blank(&row.text))?.clone();
    hunk.rows.push(last);
    Some(())
}

fn blank_lost(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let hunk = draft.sent.hunks.first_mut()?;
    let inside = 1..hunk.rows.len().saturating_sub(1);
    let at =
        inside.into_iter().find(|at| hunk.rows[*at].tag == Tag::Same && hunk.rows[*at].text.is_empty())?;
    hunk.rows.remove(at);
    Some(())
}

fn same(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    for hunk in &mut draft.sent.hunks {
        hunk.rows.retain(|row| row.tag != Tag::New);
        let doubled = hunk.rows.iter().flat_map(|row| match row.tag {
            Tag::Old => vec![row.clone(), Row::new(Tag::New, &row.text)],
            _ => vec![row.clone()],
        });
        hunk.rows = doubled.collect();
    }
    draft.answer = Some(Answer::Nothing);
    draft.rows().any(|row| row.tag != Tag::Same).then_some(())
}

fn already(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.disk = applied(&draft.disk, &draft.meant)?;
    draft.answer = Some(Answer::Nothing);
    Some(())
}

/// Two lines more at the top: far from every hunk.
fn stale_far(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let far = draft.meant.iter().all(|hunk| hunk.first > 20);
    let lines = ["first line that another wrote", "second line that another wrote"];
    draft.disk.lines.splice(2..2, lines.map(str::to_owned));
    draft.meant.iter_mut().for_each(|hunk| hunk.first += 2);
    far.then_some(())
}

/// Another changed a line of the context, but not the one next to the change.
fn stale_near(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let hunk = draft.meant.first_mut()?;
    let at = within_context(hunk)?;
    let theirs = renamed(&hunk.rows.get(at)?.text)?;
    *draft.disk.lines.get_mut(hunk.first - 1 + at)? = theirs.clone();
    hunk.rows.get_mut(at)?.text = theirs;
    Some(())
}

/// Another changed the very line that goes.
fn stale_over(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let hunk = draft.meant.first()?;
    let at = hunk.rows.iter().position(|row| row.tag == Tag::Old && !is_blank(&row.text))?;
    let line = draft.disk.lines.get_mut(hunk.first - 1 + at)?;
    line.push_str(" // as another has it");
    draft.answer = Some(Answer::Refusal);
    Some(())
}

/// The places of a single line, and what a change of each gives.
fn twins(draft: &Draft) -> Option<(Row, Row, Vec<usize>, Vec<String>)> {
    let [hunk] = draft.meant.as_slice() else { return None };
    let changed: Vec<&Row> = hunk.rows.iter().filter(|row| row.tag != Tag::Same).collect();
    let [old, new] = changed[..] else { return None };
    if (old.tag, new.tag) != (Tag::Old, Tag::New) {
        return None;
    }
    let places: Vec<usize> =
        (1..=draft.disk.lines.len()).filter(|n| draft.disk.lines[n - 1] == old.text).collect();
    let each = places.iter().filter_map(|first| {
        applied(&draft.disk, &[Hunk { first: *first, rows: vec![old.clone(), new.clone()] }])
    });
    let each: Vec<String> = each.map(|text| text.content()).collect();
    let whole = occurrences(&draft.disk.plain(), &old.text) == places.len();
    (places.len() > 1 && whole).then(|| (old.clone(), new.clone(), places, each))
}

/// The line alone, where the file has several of them. What a number states exactly is no error.
fn duplicate(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let (old, new, _, each) = twins(draft)?;
    let first = draft.meant[0].first + draft.meant[0].rows.iter().position(|row| row.tag == Tag::Old)?;
    if !draft.format.is_diff() {
        draft.answer = Some(Answer::Either(each));
    }
    draft.sent.hunks = vec![Hunk { first, rows: vec![old, new] }];
    Some(())
}

/// The same with a number that is none of the places.
fn duplicate_numbered(draft: &mut Draft, dice: &mut Dice) -> Option<()> {
    let (old, new, places, each) = twins(draft)?;
    let first = 1 + below(dice, draft.disk.lines.len());
    draft.answer = Some(Answer::Either(each));
    draft.sent.hunks = vec![Hunk { first, rows: vec![old, new] }];
    (draft.format.is_diff() && !places.contains(&first)).then_some(())
}

fn counts(draft: &mut Draft, dice: &mut Dice) -> Option<()> {
    draft.sent.style.counts = [-2, -1, 1, 3][below(dice, 4)];
    draft.format.is_diff().then_some(())
}

fn numbers(draft: &mut Draft, dice: &mut Dice) -> Option<()> {
    draft.sent.style.numbers = [-40, -7, -1, 2, 9, 300][below(dice, 6)];
    draft.format.is_diff().then_some(())
}

fn bare(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    draft.sent.style.bare = true;
    (draft.format.is_diff() || draft.format == Format::Envelope).then_some(())
}

fn renamed_path(draft: &mut Draft, rename: impl Fn(&str) -> String) -> Option<()> {
    draft.sent.path = rename(&draft.path);
    Some(())
}

/// The path of another file, which has nothing like it.
fn other_file(draft: &mut Draft, _: &mut Dice) -> Option<()> {
    let other = format!("src/Other{}", draft.path.trim_start_matches("src/Case"));
    draft.others.push((other.clone(), "nothing of this\nstands in the file\nthat is meant\n".to_owned()));
    draft.sent.path = other;
    Some(())
}

/// A line of the context is one that formats use for themselves.
fn marks(draft: &mut Draft, dice: &mut Dice) -> Option<()> {
    let mark = ["=======", "*** End Patch", "@@ -1,2 +1,2 @@", "--- a/x", ">>>>>>> REPLACE"][below(dice, 5)];
    let hunk = draft.meant.first()?;
    let at = within_context(hunk)?;
    let line = hunk.first - 1 + at;
    for text in [&mut draft.disk, &mut draft.read] {
        *text.lines.get_mut(line)? = mark.to_owned();
    }
    for hunks in [&mut draft.meant, &mut draft.sent.hunks] {
        hunks.first_mut()?.rows.get_mut(at)?.text = mark.to_owned();
    }
    // A block with two middles or ends can be read in two ways.
    if draft.format == Format::Blocks && (mark == "=======" || mark == ">>>>>>> REPLACE") {
        draft.answer = Some(Answer::Refusal);
    }
    Some(())
}

fn wrapped(draft: &mut Draft, wrap: Wrap) -> Option<()> {
    draft.sent.style.wrap = wrap;
    (draft.format != Format::Edit || wrap == Wrap::Fence).then_some(())
}

fn headed(draft: &mut Draft, heads: Heads, fits: fn(Format) -> bool) -> Option<()> {
    draft.sent.style.heads = heads;
    fits(draft.format).then_some(())
}
