//! Unified diffs, plain and git's: sections of files, each with headers and hunks. Other text around them is ignored.

use crate::patch::binary;
use crate::patch::body::{self, Body};
use crate::patch::detect;
use crate::patch::headers::{self, Headers};
use crate::patch::model::{FilePatch, Hunk, Malformed, Mode, Op};
use crate::patch::names::Name;
use crate::patch::source::Source;

pub(super) const ACCEPTED: &str = "`diff --git a/P b/P`, or `--- a/P` and `+++ b/P`, then hunks: `@@ -L,N +L,N @@` and lines that begin with a space, `-` or `+`";

/// The file patches of a unified diff.
pub(super) fn parse(source: &Source<'_>, strip: Option<usize>) -> Result<Vec<FilePatch>, Malformed> {
    let mut files: Vec<FilePatch> = Vec::new();
    let mut at = 0;
    while let Some(text) = source.text(at) {
        if headers::begins(source, at) {
            let (file, next) = Section { source, strip }.read(at)?;
            files.push(file);
            at = next;
            continue;
        }
        refuse(source, at, text, &files)?;
        at += 1;
    }
    Ok(files)
}

/// Refuses a line between the sections that is more than text around them.
fn refuse(source: &Source<'_>, at: usize, text: &[u8], files: &[FilePatch]) -> Result<(), Malformed> {
    if detect::is_combined(text) {
        let what = "this is a combined diff of a merge, which names no single old version";
        return Err(source.malformed(
            at,
            what,
            "a diff against one parent (`git show -m --first-parent`, `git diff A B`)",
        ));
    }
    if let Some(other) = detect::foreign(text) {
        let what = format!("{other} inside a unified diff: one patch, one grammar");
        return Err(source.malformed(at, what, ACCEPTED));
    }
    if text.starts_with(b"@@") {
        let what = match files.is_empty() {
            true => "a hunk without the name of its file",
            false => "a hunk apart from its file: other lines stand between",
        };
        return Err(source.malformed(at, what, ACCEPTED));
    }
    Ok(())
}

struct Section<'s> {
    source: &'s Source<'s>,
    strip: Option<usize>,
}

impl Section<'_> {
    /// The section that begins at index `at`, and the index after it.
    fn read(&self, at: usize) -> Result<(FilePatch, usize), Malformed> {
        let source = self.source;
        let (headers, mut next) = headers::read(source, at)?;
        let mut file = FilePatch {
            path: Vec::new(),
            op: Op::Update,
            old_mode: headers.old_mode,
            new_mode: headers.new_mode,
            hunks: Vec::new(),
            binary: None,
            states_content: true,
            line: source.number(at),
        };
        if source.trimmed(next) == b"GIT binary patch" {
            let (binary, after) = binary::read(source, next + 1, headers.ids)?;
            file.binary = Some(binary);
            next = after;
        } else {
            next = self.hunks(next, &mut file.hunks)?;
        }
        (file.path, file.op) = self.resolve(at, &headers, &file.hunks)?;
        self.check(at, next, &file, &headers)?;
        Ok((file, next))
    }

    fn hunks(&self, mut at: usize, hunks: &mut Vec<Hunk>) -> Result<usize, Malformed> {
        loop {
            let blank = (at..self.source.len()).take_while(|n| self.source.trimmed(*n).is_empty()).count();
            if !self.source.trimmed(at + blank).starts_with(b"@@") || self.is_combined(at + blank) {
                return Ok(at);
            }
            let (hunk, next) = self.hunk(at + blank)?;
            hunks.push(hunk);
            at = next;
        }
    }

    fn is_combined(&self, at: usize) -> bool {
        self.source.text(at).is_some_and(detect::is_combined)
    }

    fn hunk(&self, at: usize) -> Result<(Hunk, usize), Malformed> {
        let source = self.source;
        let mut hunk = head(source, at)?;
        let ends = |n: usize| ends(source, n);
        let counted = hunk.counts.and_then(|counts| body::counted(source, at + 1, counts, ends));
        let Body { lines, bare, next } = counted.unwrap_or_else(|| body::uncounted(source, at + 1, ends));
        if lines.is_empty() {
            return Err(source.malformed(at, "a hunk without lines", ACCEPTED));
        }
        body::check_markers(source, at, &lines, ACCEPTED)?;
        (hunk.lines, hunk.bare, hunk.marked) = (lines, bare, true);
        Ok((hunk, next))
    }

    /// Path and operation.
    fn resolve(&self, at: usize, headers: &Headers, hunks: &[Hunk]) -> Result<(Vec<u8>, Op), Malformed> {
        let wrong = |what: String| self.source.malformed(at, what, ACCEPTED);
        let few = || {
            wrong("the names of this file cannot be made one path: they differ, or have fewer folders than `strip`".to_owned())
        };
        let moved = self.strip.map_or(0, |count| count.saturating_sub(1));
        let short = |name: &[u8]| crate::patch::names::stripped(name, moved).map(<[u8]>::to_vec);
        if let Some((from, to)) = &headers.rename {
            return Ok((short(to).ok_or_else(few)?, Op::Rename { from: short(from).ok_or_else(few)? }));
        }
        if let Some((from, to)) = &headers.copy {
            return Ok((short(to).ok_or_else(few)?, Op::Copy { from: short(from).ok_or_else(few)? }));
        }
        let of_nothing = |start: fn(&Hunk) -> bool| hunks.len() == 1 && hunks.iter().all(start);
        let absent = |name: &Option<Name>, empty: bool| match name {
            Some(Name::Nothing) => true,
            Some(Name::Path(_, epoch)) => *epoch && empty,
            None => false,
        };
        let no_old = absent(&headers.old, of_nothing(|hunk| hunk.old_lines().next().is_none()));
        let no_new = absent(&headers.new, of_nothing(|hunk| hunk.new_lines().next().is_none()));
        let op = match (headers.created || no_old, headers.deleted || no_new) {
            (true, true) => return Err(wrong("both names are /dev/null".to_owned())),
            (true, false) => Op::Add,
            (false, true) => Op::Delete,
            (false, false) => Op::Update,
        };
        Ok((headers.path(self.strip).ok_or_else(few)?, op))
    }

    /// Refuses a section that says nothing, or two things at once.
    fn check(&self, at: usize, next: usize, file: &FilePatch, headers: &Headers) -> Result<(), Malformed> {
        let wrong = |at: usize, what: &str| Err(self.source.malformed(at, what, ACCEPTED));
        let has_old = |hunk: &Hunk| hunk.old_lines().next().is_some();
        let has_new = |hunk: &Hunk| hunk.new_lines().next().is_some();
        match &file.op {
            Op::Add if file.hunks.iter().any(has_old) || file.hunks.len() > 1 => {
                return wrong(at, "a new file whose hunks hold old lines, or more than one hunk");
            }
            Op::Delete if file.hunks.iter().any(has_new) || file.hunks.len() > 1 => {
                return wrong(at, "a deleted file whose hunks hold new lines, or more than one hunk");
            }
            _ => {}
        }
        let silent = file.hunks.is_empty() && file.binary.is_none();
        let modes = file.old_mode.is_some() && file.new_mode.is_some() && file.old_mode != file.new_mode;
        if silent && file.op == Op::Update && !modes {
            return wrong(next, "this file has no hunks");
        }
        let named_only = headers.old.is_some() && headers.new.is_some();
        if silent && named_only {
            return wrong(next, "this file has no hunks");
        }
        let is_link = |mode: Option<Mode>| mode.map(|mode| mode == Mode::Link);
        if is_link(file.old_mode).zip(is_link(file.new_mode)).is_some_and(|(old, new)| old != new) {
            return wrong(
                at,
                "a link that becomes a file, or a file a link: delete the one and add the other",
            );
        }
        Ok(())
    }
}

/// The header of a hunk: `@@ -L[,N] +L[,N] @@[ section]`, or without numbers.
fn head(source: &Source<'_>, at: usize) -> Result<Hunk, Malformed> {
    let mut hunk = Hunk { line: source.number(at), ..Hunk::default() };
    let text = source.trimmed(at);
    hint(source, at, text.strip_prefix(b"@@").unwrap_or(text), &mut hunk, ACCEPTED)?;
    Ok(hunk)
}

/// What stands behind `@@`: numbers are a hint where the hunk goes, everything else is a line above it.
pub(super) fn hint(
    source: &Source<'_>,
    at: usize,
    rest: &[u8],
    hunk: &mut Hunk,
    accepted: &'static str,
) -> Result<(), Malformed> {
    match numbers(rest.trim_ascii_start()) {
        Numbers::Given { old_start, counts, section } => {
            hunk.old_start = Some(old_start);
            hunk.counts = Some(counts);
            hunk.section = section.to_vec();
        }
        Numbers::TooLarge => {
            return Err(source.malformed(at, "a number in this header is too large", accepted));
        }
        Numbers::None => hunk.anchors.extend(anchor(rest)),
    }
    Ok(())
}

/// What stands behind `@@` in a header without numbers, unless it is only filling. Its indent, behind one space, is kept.
fn anchor(rest: &[u8]) -> Option<Vec<u8>> {
    let rest = rest.strip_prefix(b" ").unwrap_or(rest).trim_ascii_end();
    let rest = rest.strip_suffix(b"@@").unwrap_or(rest).trim_ascii_end();
    let filling = rest.iter().all(|b| matches!(b, b'.' | b'-' | b'+' | b',' | b' '));
    (!filling && rest != "…".as_bytes()).then(|| rest.to_vec())
}

/// The numbers of a header.
enum Numbers<'n> {
    /// As stated.
    Given { old_start: usize, counts: (usize, usize), section: &'n [u8] },
    /// One of them is beyond what a file can have.
    TooLarge,
    /// There are none.
    None,
}

/// Reads `-L[,N] +L[,N][ @@[ section]]`.
fn numbers(text: &[u8]) -> Numbers<'_> {
    let side = |text: &'_ [u8], sign: u8| -> Option<(Option<usize>, Option<usize>, usize)> {
        let body = text.strip_prefix(&[sign])?;
        let (start, mut used) = number(body)?;
        let mut count = Some(1);
        if let Some((n, more)) = body[used..].strip_prefix(b",").and_then(number) {
            count = n;
            used += 1 + more;
        }
        Some((start, count, 1 + used))
    };
    let Some((old_start, old_count, used)) = side(text, b'-') else {
        return Numbers::None;
    };
    let text = text[used..].trim_ascii_start();
    let Some((new_start, new_count, used)) = side(text, b'+') else {
        return Numbers::None;
    };
    let rest = text[used..].trim_ascii();
    let section = rest.strip_prefix(b"@@").unwrap_or(rest).trim_ascii_start();
    match (old_start, old_count, new_start, new_count) {
        (Some(old_start), Some(old), Some(_), Some(new)) => {
            Numbers::Given { old_start, counts: (old, new), section }
        }
        _ => Numbers::TooLarge,
    }
}

/// The number at the start of a text (`None` in it where it is too large) and its length.
fn number(text: &[u8]) -> Option<(Option<usize>, usize)> {
    const MOST: usize = 1 << 40;
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let value = std::str::from_utf8(text.get(..digits)?).ok().and_then(|digits| digits.parse().ok());
    (digits > 0).then_some((value.filter(|n| *n <= MOST), digits))
}

/// Whether the line at index `at` cannot belong to the hunk before it.
fn ends(source: &Source<'_>, at: usize) -> bool {
    let text = source.text(at).unwrap_or_default();
    text.starts_with(b"@@")
        || headers::begins(source, at)
        || text.starts_with(b"Index: ")
        || detect::foreign(text).is_some()
        || is_signature(source, at)
}

/// The `-- ` and the version with which mail from git ends.
fn is_signature(source: &Source<'_>, at: usize) -> bool {
    let version = |text: &[u8]| {
        let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
        digits > 0 && text.get(digits) == Some(&b'.')
    };
    let sign = source.text(at).is_some_and(|text| matches!(text.trim_ascii_end(), b"--"));
    sign && version(source.trimmed(at + 1)) && source.trimmed(at + 2).is_empty()
}
