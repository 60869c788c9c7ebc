//! Jupyter notebooks, edited by the cell: every byte that is not part of the change stays, down to key order and escapes.

use std::ops::Range;

use thiserror::Error;

use crate::form::Encoding;
use crate::json::{self, Scanner};
use crate::patch::blob_id;

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Code, with outputs.
    Code,
    /// Markdown.
    Markdown,
    /// Neither.
    Raw,
}

impl Kind {
    /// The name in notebooks: `code`, `markdown`, `raw`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Code => "code",
            Kind::Markdown => "markdown",
            Kind::Raw => "raw",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        [Kind::Code, Kind::Markdown, Kind::Raw].into_iter().find(|kind| kind.name() == name)
    }
}

/// A cell of a notebook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its place, from 0.
    pub index: usize,
    /// Its id; notebooks before format 4.5 have none.
    pub id: Option<String>,
    /// What it holds.
    pub kind: Kind,
    /// Its text.
    pub source: String,
    /// The bytes of its object in the file.
    pub span: Range<usize>,
}

/// Why bytes are no notebook that can be edited.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no notebook: {what}")]
pub struct NotANotebook {
    /// What is wrong, in words.
    pub what: String,
}

/// Why a notebook was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotebookError {
    /// The bytes are no notebook.
    #[error(transparent)]
    NotANotebook(#[from] NotANotebook),
    /// There is no such cell.
    #[error("no cell {index}: there are {count}, counted from 0")]
    NoSuchCell {
        /// The cell that was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A code cell cannot hold attachments, which this cell has.
    #[error("cell {index} has attachments, which a code cell cannot hold")]
    Attachments {
        /// The cell.
        index: usize,
    },
}

/// The cells in order.
///
/// # Errors
/// [`NotANotebook`] for what is no JSON, or no notebook of format 4 or later.
pub fn cells(raw: &[u8]) -> Result<Vec<Cell>, NotANotebook> {
    Ok(Notebook::read(raw)?.cells.into_iter().map(|cell| cell.cell).collect())
}

/// The notebook with another text in one cell. The text keeps its form (a string, or a list of lines) and its escapes; lines
/// that stay at its beginning and end keep their very bytes.
///
/// # Errors
/// [`NotebookError`] for what is no notebook, or has no such cell.
pub fn with_source(raw: &[u8], index: usize, source: &str) -> Result<Vec<u8>, NotebookError> {
    let notebook = Notebook::read(raw)?;
    let value = notebook.cell(index)?.source.clone();
    let text = notebook.source_text(&value, source);
    Ok(replaced(raw, value, &text))
}

/// The notebook with a new cell before the one at `at`, or behind the last if `at` is their number.
///
/// # Errors
/// [`NotebookError`] for what is no notebook, or where `at` is beyond the end.
pub fn insert(raw: &[u8], at: usize, kind: Kind, source: &str) -> Result<Vec<u8>, NotebookError> {
    let notebook = Notebook::read(raw)?;
    let count = notebook.cells.len();
    let text = notebook.new_cell(kind, source);
    let gap = notebook.layout.gap(2);
    let span = |index: usize| notebook.cells.get(index).map(|cell| cell.cell.span.clone());
    match (span(at), at.checked_sub(1).and_then(span)) {
        (Some(next), _) => Ok(replaced(raw, next.start..next.start, &format!("{text},{gap}"))),
        (None, Some(last)) if at == count => Ok(replaced(raw, last.end..last.end, &format!(",{gap}{text}"))),
        (None, _) if count == 0 && at == 0 => {
            let close = notebook.layout.line(1);
            let open = notebook.layout.line(2);
            Ok(replaced(raw, notebook.list.clone(), &format!("[{open}{text}{close}]")))
        }
        _ => Err(NotebookError::NoSuchCell { index: at, count }),
    }
}

/// The notebook without one cell.
///
/// # Errors
/// [`NotebookError`] for what is no notebook, or has no such cell.
pub fn delete(raw: &[u8], index: usize) -> Result<Vec<u8>, NotebookError> {
    let notebook = Notebook::read(raw)?;
    notebook.cell(index)?;
    let spans: Vec<Range<usize>> = notebook.cells.iter().map(|cell| cell.cell.span.clone()).collect();
    Ok(replaced(raw, without(&spans, index, &notebook.list), ""))
}

/// The notebook with another kind for one cell. A cell that becomes code gets empty outputs; one that was code loses them.
///
/// # Errors
/// [`NotebookError`] for what is no notebook, has no such cell, or where attachments would have no place.
pub fn with_kind(raw: &[u8], index: usize, kind: Kind) -> Result<Vec<u8>, NotebookError> {
    let notebook = Notebook::read(raw)?;
    let cell = notebook.cell(index)?;
    let was_code = cell.cell.kind == Kind::Code;
    let Some(value) = cell.member(raw, "cell_type") else {
        return Ok(raw.to_vec());
    };
    if kind == Kind::Code && cell.member(raw, "attachments").is_some() {
        return Err(NotebookError::Attachments { index });
    }
    let mut text = format!("\"{}\"", kind.name());
    if kind == Kind::Code && !was_code {
        let (gap, colon) = (notebook.layout.gap(3), notebook.layout.colon);
        text += &format!(",{gap}\"execution_count\"{colon}null,{gap}\"outputs\"{colon}[]");
    }
    let mut now = replaced(raw, value, &text);
    if was_code && kind != Kind::Code {
        for name in ["execution_count", "outputs"] {
            now = without_member(&now, index, name)?;
        }
    }
    Ok(now)
}

fn without_member(raw: &[u8], index: usize, name: &str) -> Result<Vec<u8>, NotebookError> {
    let notebook = Notebook::read(raw)?;
    let cell = notebook.cell(index)?;
    let spans: Vec<Range<usize>> = cell.members.iter().map(|(key, value)| key.start..value.end).collect();
    let Some(at) = cell.position(raw, name) else {
        return Ok(raw.to_vec());
    };
    Ok(replaced(raw, without(&spans, at, &cell.cell.span), ""))
}

/// The bytes to take out so that of several items in brackets (`outer`) the one at `at` is gone, with one comma.
fn without(spans: &[Range<usize>], at: usize, outer: &Range<usize>) -> Range<usize> {
    let span = |index: usize| spans.get(index).cloned();
    match (span(at), span(at + 1), at.checked_sub(1).and_then(span)) {
        (Some(gone), Some(next), _) => gone.start..next.start,
        (Some(gone), None, Some(before)) => before.end..gone.end,
        _ => outer.start + 1..outer.end.saturating_sub(1),
    }
}

fn replaced(raw: &[u8], span: Range<usize>, text: &str) -> Vec<u8> {
    let (before, after) = (raw.get(..span.start), raw.get(span.end..));
    [before.unwrap_or_default(), text.as_bytes(), after.unwrap_or_default()].concat()
}

/// A member of an object: the spans of its key and its value.
type Member = (Range<usize>, Range<usize>);

/// A notebook as it stands in its bytes.
struct Notebook<'n> {
    raw: &'n [u8],
    /// The span of the list of cells.
    list: Range<usize>,
    cells: Vec<Placed>,
    layout: Layout,
    /// Whether cells must have ids.
    has_ids: bool,
}

/// A cell and where its parts are.
struct Placed {
    cell: Cell,
    members: Vec<Member>,
    /// The span of its text's value.
    source: Range<usize>,
}

impl Placed {
    /// Where a member stands among the others; of several of one name, the last counts, as JSON readers have it.
    fn position(&self, raw: &[u8], name: &str) -> Option<usize> {
        self.members.iter().rposition(|member| is_key(raw, member, name))
    }

    fn member(&self, raw: &[u8], name: &str) -> Option<Range<usize>> {
        member(raw, &self.members, name)
    }
}

fn is_key(raw: &[u8], member: &Member, name: &str) -> bool {
    raw.get(member.0.clone()).and_then(json::decode).is_some_and(|key| key == name)
}

fn member(raw: &[u8], members: &[Member], name: &str) -> Option<Range<usize>> {
    members.iter().rfind(|member| is_key(raw, member, name)).map(|(_, value)| value.clone())
}

fn wrong<T>(what: impl Into<String>) -> Result<T, NotANotebook> {
    Err(NotANotebook { what: what.into() })
}

impl<'n> Notebook<'n> {
    fn read(raw: &'n [u8]) -> Result<Notebook<'n>, NotANotebook> {
        let base = if raw.starts_with(Encoding::Utf8.bom()) { Encoding::Utf8.bom().len() } else { 0 };
        let valid =
            serde_json::from_slice::<&serde_json::value::RawValue>(raw.get(base..).unwrap_or_default());
        if let Err(error) = valid {
            return wrong(format!("not JSON: {error}"));
        }
        let Some(members) = Scanner::new(raw, base).members() else {
            return wrong("no object");
        };
        let number = |name: &str| -> Option<u64> {
            let digits = raw.get(member(raw, &members, name)?)?;
            std::str::from_utf8(digits).ok()?.parse().ok()
        };
        let version = (number("nbformat").unwrap_or(0), number("nbformat_minor").unwrap_or(0));
        if version.0 < 4 {
            return wrong("`nbformat` is not 4 or later");
        }
        let items = member(raw, &members, "cells")
            .and_then(|list| Some((Scanner::new(raw, list.start).items()?, list)));
        let Some((items, list)) = items else {
            return wrong("`cells` is no list");
        };
        let cells: Result<Vec<Placed>, NotANotebook> =
            items.into_iter().enumerate().map(|(index, span)| placed(raw, index, span)).collect();
        let layout = Layout::of(raw, base, &members);
        Ok(Notebook { raw, list, cells: cells?, layout, has_ids: version >= (4, 5) })
    }

    fn cell(&self, index: usize) -> Result<&Placed, NotebookError> {
        self.cells.get(index).ok_or(NotebookError::NoSuchCell { index, count: self.cells.len() })
    }

    /// The value for a cell's text, in the form that `value` has: a string, or a list of lines.
    fn source_text(&self, value: &Range<usize>, source: &str) -> String {
        let bytes = self.raw.get(value.clone()).unwrap_or_default();
        let escapes = Escapes::of(bytes).unwrap_or(self.layout.escapes);
        let Some(spans) = Scanner::new(self.raw, value.start).items() else {
            return escapes.literal(source);
        };
        let old: Vec<&str> =
            spans.iter().filter_map(|span| std::str::from_utf8(self.raw.get(span.clone())?).ok()).collect();
        let new: Vec<String> = source.split_inclusive('\n').map(|line| escapes.literal(line)).collect();
        let same = |old: &str, new: &str| json::decode(old.as_bytes()) == json::decode(new.as_bytes());
        let head = old.iter().zip(&new).take_while(|(old, new)| same(old, new)).count();
        let (old_rest, new_rest) = (&old[head..], &new[head..]);
        let tail =
            old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| same(old, new)).count();
        let middle = new_rest[..new_rest.len() - tail].iter().map(String::as_str);
        let lines: Vec<&str> = old[..head]
            .iter()
            .copied()
            .chain(middle)
            .chain(old_rest[old_rest.len() - tail..].iter().copied())
            .collect();
        self.list(&lines, value, &spans)
    }

    /// A list of literals, spaced as the list of these items was.
    fn list(&self, lines: &[&str], value: &Range<usize>, spans: &[Range<usize>]) -> String {
        let between =
            |range: Range<usize>| self.raw.get(range).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let (first, last) = (spans.first(), spans.last());
        let open = first.and_then(|first| between(value.start + 1..first.start));
        let close = last.and_then(|last| between(last.end..value.end.saturating_sub(1)));
        let open = open.map_or_else(|| self.layout.line(4), str::to_owned);
        let close = close.map_or_else(|| self.layout.line(3), str::to_owned);
        let comma = match spans {
            [one, two, ..] => between(one.end..two.start).map(str::to_owned),
            [_] => Some(format!(",{}", if open.is_empty() { self.layout.gap(4) } else { open.clone() })),
            [] => None,
        };
        let comma = comma.unwrap_or_else(|| format!(",{}", self.layout.gap(4)));
        match lines {
            [] => "[]".to_owned(),
            lines => format!("[{open}{}{close}]", lines.join(&comma)),
        }
    }

    /// The object of a new cell, its keys in the order in which notebooks are written.
    fn new_cell(&self, kind: Kind, source: &str) -> String {
        let (colon, escapes) = (self.layout.colon, self.layout.escapes);
        let lines: Vec<String> = source.split_inclusive('\n').map(|line| escapes.literal(line)).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut members = vec![format!("\"cell_type\"{colon}\"{}\"", kind.name())];
        members.extend((kind == Kind::Code).then(|| format!("\"execution_count\"{colon}null")));
        members.extend(self.has_ids.then(|| format!("\"id\"{colon}\"{}\"", self.new_id(source))));
        members.push(format!("\"metadata\"{colon}{{}}"));
        members.extend((kind == Kind::Code).then(|| format!("\"outputs\"{colon}[]")));
        members.push(format!("\"source\"{colon}{}", self.list(&lines, &(0..0), &[])));
        let (open, gap, close) = (self.layout.line(3), self.layout.gap(3), self.layout.line(2));
        format!("{{{open}{}{close}}}", members.join(&format!(",{gap}")))
    }

    /// An id that no cell has, the same for the same text in the same notebook.
    fn new_id(&self, source: &str) -> String {
        let taken = |id: &String| self.cells.iter().any(|cell| cell.cell.id.as_ref() == Some(id));
        let candidates = (0..=self.cells.len()).map(|round| {
            let id = blob_id::of(format!("{round}\n{source}").as_bytes());
            id.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
        });
        // One more candidate than there are cells: unless two of them are alike, one is free.
        candidates.into_iter().find(|id| !taken(id)).unwrap_or_else(|| format!("cell-{}", self.cells.len()))
    }
}

/// One cell, whose object has this span.
fn placed(raw: &[u8], index: usize, span: Range<usize>) -> Result<Placed, NotANotebook> {
    let Some(members) = Scanner::new(raw, span.start).members() else {
        return wrong(format!("cell {index} is no object"));
    };
    let text = |name: &str| member(raw, &members, name).and_then(|value| json::decode(raw.get(value)?));
    let Some(kind) = text("cell_type").and_then(|name| Kind::from_name(&name)) else {
        return wrong(format!("cell {index} has no `cell_type` code, markdown or raw"));
    };
    let value = member(raw, &members, "source");
    let Some((value, source)) = value.and_then(|value| Some((value.clone(), source_of(raw, &value)?))) else {
        return wrong(format!("cell {index} has no `source` of text"));
    };
    let cell = Cell { index, id: text("id"), kind, source, span };
    Ok(Placed { cell, members, source: value })
}

/// The text of a string or of a list of strings.
fn source_of(raw: &[u8], value: &Range<usize>) -> Option<String> {
    if let Some(items) = Scanner::new(raw, value.start).items() {
        return items.into_iter().map(|item| json::decode(raw.get(item)?)).collect();
    }
    json::decode(raw.get(value.clone())?)
}

/// How a notebook is spaced.
#[derive(Clone, Debug)]
struct Layout {
    /// The line break, and the indent of one level; `None` for all on one line.
    indent: Option<(&'static str, String)>,
    /// What stands between key and value.
    colon: &'static str,
    escapes: Escapes,
}

impl Layout {
    fn of(raw: &[u8], base: usize, members: &[Member]) -> Layout {
        let first = members.first();
        let space = first.and_then(|(key, _)| raw.get(..key.start)?.get(base..)).unwrap_or_default();
        let space = std::str::from_utf8(space).unwrap_or_default();
        let indent = space.rfind('\n').map(|at| {
            let end = if space[..at].ends_with('\r') { "\r\n" } else { "\n" };
            (end, space[at + 1..].to_owned())
        });
        let tight = first.and_then(|(key, value)| raw.get(key.end..value.start)) == Some(b":");
        let colon = if tight { ":" } else { ": " };
        Layout { indent, colon, escapes: Escapes::of(raw).unwrap_or(Escapes::None) }
    }

    /// What begins a line at this depth; nothing where all stands on one line.
    fn line(&self, depth: usize) -> String {
        self.indent.as_ref().map_or(String::new(), |(end, unit)| format!("{end}{}", unit.repeat(depth)))
    }

    /// What stands behind a comma at this depth.
    fn gap(&self, depth: usize) -> String {
        match &self.indent {
            Some(_) => self.line(depth),
            None if self.colon == ":" => String::new(),
            None => " ".to_owned(),
        }
    }
}

/// How characters beyond ASCII are written in strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    /// As they are.
    None,
    /// As `\u00e9`.
    Lower,
    /// As `\u00E9`.
    Upper,
}

impl Escapes {
    /// The way of these bytes; `None` where they hold no such character.
    fn of(bytes: &[u8]) -> Option<Escapes> {
        if !bytes.is_ascii() {
            return Some(Escapes::None);
        }
        let digits = memchr::memmem::find_iter(bytes, b"\\u").filter_map(|at| bytes.get(at + 2..at + 6));
        let mut beyond =
            digits.filter(|digits| !digits.starts_with(b"00") || digits.get(2).is_some_and(|d| *d > b'7'));
        let first = beyond.next()?;
        let upper =
            std::iter::once(first).chain(beyond).any(|digits| digits.iter().any(u8::is_ascii_uppercase));
        Some(if upper { Escapes::Upper } else { Escapes::Lower })
    }

    /// A string literal, quotes included.
    fn literal(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 2);
        out.push('"');
        for ch in text.chars() {
            match ch {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(ch))),
                '\u{80}'.. if self != Escapes::None => self.push_escaped(&mut out, ch),
                _ => out.push(ch),
            }
        }
        out.push('"');
        out
    }

    fn push_escaped(self, out: &mut String, ch: char) {
        for unit in ch.encode_utf16(&mut [0; 2]) {
            out.push_str(&match self {
                Escapes::Upper => format!("\\u{unit:04X}"),
                _ => format!("\\u{unit:04x}"),
            });
        }
    }
}
