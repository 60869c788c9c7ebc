//! New text adapted to the file in the way in which old text differs from it: only what the caller changed is taken from new text.

use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::fit::{Differences, Shift, parts};

/// `new`, written as the file is. `file` is what stands for `old`; both have the same number of lines. `None` where an indent
/// of new text cannot be shifted along.
pub(crate) fn adapt(
    file: &str,
    old: &str,
    new: &str,
    differences: &Differences,
    whole_first: bool,
) -> Option<String> {
    let files: Vec<&str> = file.split('\n').chain(differences.final_newline.then_some("")).collect();
    let (olds, news): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut out: Vec<String> = Vec::with_capacity(news.len());
    for op in capture_diff_slices(Algorithm::Histogram, &olds, &news) {
        let (old_range, new_range) = (op.old_range(), op.new_range());
        if op.tag() == DiffTag::Equal {
            out.extend(files.get(old_range)?.iter().map(|line| (*line).to_owned()));
            continue;
        }
        for (index, line) in news[new_range].iter().enumerate() {
            let twin = Some(old_range.start + index).filter(|n| old_range.contains(n));
            let shift = if out.is_empty() && !whole_first { &Shift::None } else { &differences.shift };
            out.push(match twin {
                Some(n) => adapt_line(files.get(n)?, olds[n], line, shift)?,
                None => shifted(line, shift)?,
            });
        }
    }
    let text = out.join("\n");
    Some(match text.strip_suffix('\n') {
        Some(body) if differences.final_newline => body.to_owned(),
        _ => text,
    })
}

/// A changed line: its indent, body and end follow the file's line as far as new text left old text alone.
fn adapt_line(file: &str, old: &str, new: &str, shift: &Shift) -> Option<String> {
    let ((lead, body, end), (old_lead, old_body, old_end), (new_lead, new_body, new_end)) =
        (parts(file), parts(old), parts(new));
    if new_body.is_empty() || old_body.is_empty() {
        return shifted(new, shift);
    }
    let lead = if new_lead == old_lead { lead.to_owned() } else { shifted_lead(new_lead, shift)? };
    let end = if new_end == old_end { end } else { new_end };
    Some(format!("{lead}{}{end}", woven(body, old_body, new_body)?))
}

/// Lines longer than this (both texts together, in bytes) are not compared character by character.
const LONG: usize = 20_000;

/// `new` with the file's own characters where it kept those of `old`. File and old text correspond character by character.
fn woven(file: &str, old: &str, new: &str) -> Option<String> {
    if file == old {
        return Some(new.to_owned());
    }
    if old.len() + new.len() > LONG {
        return None;
    }
    let [file, old, new]: [Vec<char>; 3] = [file, old, new].map(|text| text.chars().collect());
    let mut out = String::with_capacity(new.len());
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let kept = (op.tag() == DiffTag::Equal).then(|| file.get(op.old_range())).flatten();
        out.extend(kept.unwrap_or(&new[op.new_range()]));
    }
    Some(out)
}

/// A line with its indent shifted; blank lines stay.
fn shifted(line: &str, shift: &Shift) -> Option<String> {
    let (lead, body, end) = parts(line);
    if body.is_empty() {
        return Some(line.to_owned());
    }
    Some(format!("{}{body}{end}", shifted_lead(lead, shift)?))
}

fn shifted_lead(lead: &str, shift: &Shift) -> Option<String> {
    let only = |c: char| lead.chars().all(|found| found == c);
    match shift {
        Shift::None => Some(lead.to_owned()),
        Shift::Add(more) => Some(format!("{more}{lead}")),
        Shift::Remove(less) => lead.strip_prefix(less.as_str()).map(str::to_owned),
        Shift::Tabs(width, by) if only(' ') => {
            let tabs = (lead.len() / width).checked_add_signed(*by)?;
            Some("\t".repeat(tabs) + &" ".repeat(lead.len() % width))
        }
        Shift::Spaces(width, by) => {
            let rest = lead.trim_start_matches('\t');
            let tabs = (lead.len() - rest.len()).checked_add_signed(*by)?;
            rest.bytes().all(|b| b == b' ').then(|| " ".repeat(tabs * width + rest.len()))
        }
        _ => None,
    }
}
