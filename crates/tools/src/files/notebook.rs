//! `edit_file` with `cell`: a notebook's cell edited, put in or taken out; key order, outputs and every other byte stay.

use cotenant_model::{Code, Refusal};
use cotenant_text::notebook::{self, Cell, Kind, NotebookError};
use cotenant_text::{EditError, EditSpec, Edited, Level, Region, Span, View};
use cotenant_tree::Place;
use serde_json::json;

use super::edit_file::{self, Edit, TOOL};
use crate::args::{Args, bad};
use crate::ctx::{Ctx, Loaded};
use crate::planned::Planned;

/// Bytes of a cell's text that a refusal shows.
const SHOWN: usize = 2000;

/// What is to be done with the cell.
enum Wanted {
    /// Texts in it replaced.
    Edit(Vec<Edit>),
    /// All of its text replaced.
    Source(String),
    /// A new cell behind it; before all others where `cell` is `start`.
    Insert(Kind, String),
    /// The cell taken out.
    Delete,
}

/// The plan for a call with `cell`.
pub(super) fn run(ctx: &Ctx<'_>, args: &Args, edits: Option<Vec<Edit>>) -> Result<Planned, Refusal> {
    let place = ctx.file(args.need("path"))?;
    ctx.writable(&place)?;
    let loaded = ctx.load(&place)?;
    let cells =
        notebook::cells(&loaded.bytes).map_err(|error| no_notebook(ctx, &place, &error.to_string()))?;
    let wanted = wanted(args, edits)?;
    let at = match (args.need("cell"), &wanted) {
        ("start", Wanted::Insert(..)) => 0,
        (given, Wanted::Insert(..)) => find(ctx, &place, &cells, given)? + 1,
        (given, _) => find(ctx, &place, &cells, given)?,
    };
    let (bytes, level) = changed(ctx, &place, &loaded, &cells, at, wanted)?;
    let regions = {
        let new = Loaded::known(bytes.as_slice().into(), &loaded.form);
        cotenant_text::changed_regions(&loaded.bytes, &loaded.form, &new.bytes, &new.form)
    };
    if regions.is_empty() {
        return Err(edit_file::same(&ctx.show(&place.asked), false, None));
    }
    let spans: Vec<Span> = regions.iter().map(span).collect();
    let touched: Vec<(usize, usize)> = spans.iter().map(|span| span.lines_before).collect();
    let may = ctx.may_edit(&place, &loaded, &touched)?;
    let edited = Edited { bytes, spans, level, counts: Vec::new(), notes: Vec::new() };
    let name = level.name().into_owned();
    let mut planned = edit_file::planned(ctx, &place, &loaded, edited, &name, may);
    let fact = cotenant_model::Fact { name: "cell".into(), value: at.into() };
    planned.reply.facts.insert(1, fact);
    planned.change_at += 1;
    Ok(planned)
}

fn wanted(args: &Args, edits: Option<Vec<Edit>>) -> Result<Wanted, Refusal> {
    let kind = match args.text("cell_type") {
        Some(name) => Kind::from_name(name)
            .ok_or_else(|| bad(&TOOL, "cell_type", "cell_type is code, markdown or raw"))?,
        None => Kind::Code,
    };
    let text = || args.text("new_text").map(str::to_owned);
    match (args.text("cell_op").unwrap_or("replace"), edits, text()) {
        ("delete", ..) => Ok(Wanted::Delete),
        ("insert", _, Some(text)) => Ok(Wanted::Insert(kind, text)),
        ("insert", ..) => Err(bad(&TOOL, "new_text", "a new cell needs new_text")),
        (_, Some(edits), _) => Ok(Wanted::Edit(edits)),
        (_, None, Some(text)) => Ok(Wanted::Source(text)),
        _ => Err(bad(&TOOL, "new_text", "cell needs old_text and new_text, or new_text for all of the cell")),
    }
}

/// The number of the cell that is meant: by its number from 0, or by its id.
fn find(ctx: &Ctx<'_>, place: &Place, cells: &[Cell], given: &str) -> Result<usize, Refusal> {
    let by_id = cells.iter().find(|cell| cell.id.as_deref() == Some(given)).map(|cell| cell.index);
    let number = given.strip_prefix("cell-").unwrap_or(given).parse::<usize>().ok();
    if let Some(at) = by_id.or(number.filter(|number| *number < cells.len())) {
        return Ok(at);
    }
    let path = ctx.show(&place.asked);
    let why =
        format!("{path} has no cell {given}; its {} cells count from 0. Nothing was written.", cells.len());
    let list: Vec<String> = cells.iter().map(named).collect();
    Err(Refusal::new(Code::NotFound, why)
        .fact("path", path.as_str())
        .fact("cells", cells.len())
        .block(cotenant_text::clip(list.join("\n").as_bytes(), SHOWN).text.into_owned())
        .next("send the edit again with one of these cells; cell_op=insert with cell=start puts one before them"))
}

/// `3 code id=ab12: first line`.
fn named(cell: &Cell) -> String {
    let id = cell.id.as_deref().map(|id| format!(" id={id}")).unwrap_or_default();
    let line =
        cotenant_text::clip(cell.source.lines().next().unwrap_or_default().as_bytes(), 60).text.into_owned();
    format!("{} {}{id}: {line}", cell.index, cell.kind.name())
}

fn changed(
    ctx: &Ctx<'_>,
    place: &Place,
    loaded: &Loaded,
    cells: &[Cell],
    at: usize,
    wanted: Wanted,
) -> Result<(Vec<u8>, Level), Refusal> {
    let failed = |error: NotebookError| no_notebook(ctx, place, &error.to_string());
    let raw = &loaded.bytes;
    match wanted {
        Wanted::Delete => Ok((notebook::delete(raw, at).map_err(failed)?, Level::Exact)),
        Wanted::Insert(kind, text) => {
            Ok((notebook::insert(raw, at, kind, &text).map_err(failed)?, Level::Exact))
        }
        Wanted::Source(text) => Ok((notebook::with_source(raw, at, &text).map_err(failed)?, Level::Exact)),
        Wanted::Edit(edits) => {
            let source = cells.get(at).map(|cell| cell.source.as_str()).unwrap_or_default();
            let (text, level) = in_cell(ctx, place, at, source, &edits)?;
            Ok((notebook::with_source(raw, at, &text).map_err(failed)?, level))
        }
    }
}

/// The edits within the text of one cell.
fn in_cell(
    ctx: &Ctx<'_>,
    place: &Place,
    at: usize,
    source: &str,
    edits: &[Edit],
) -> Result<(String, Level), Refusal> {
    let text = Loaded::fresh_or_binary(source.as_bytes().into());
    let specs: Vec<EditSpec<'_>> = edits.iter().map(Edit::spec).collect();
    let edited = cotenant_text::apply(&text.bytes, &text.form, &specs, &ctx.tolerance())
        .map_err(|error| unfit(ctx, place, at, &text, error))?;
    Ok((String::from_utf8_lossy(&edited.bytes).into_owned(), edited.level))
}

fn unfit(ctx: &Ctx<'_>, place: &Place, at: usize, text: &Loaded, error: EditError) -> Refusal {
    let path = ctx.show(&place.asked);
    let view = View::new(&text.bytes, &text.form);
    let shown = cotenant_text::visible_window(&view, 1, view.line_count(), SHOWN);
    let about = |code, why: String| Refusal::new(code, why).fact("path", path.as_str()).fact("cell", at);
    match error {
        EditError::NotFound { miss, .. } => {
            about(Code::TextNotFound, format!("old_text is not in cell {at}: {}. The cell is:", miss.detail))
                .fact("cause", miss.cause.name())
                .block(shown)
                .next("copy old_text anew from these lines; → is a tab, · a space at a line's end")
        }
        EditError::Ambiguous { count, lines, .. } => {
            let list: Vec<String> = lines.iter().map(usize::to_string).collect();
            let line = lines.first().copied().unwrap_or(1);
            let set = json!({"token": ctx.retry_token(), "set": {"line": line}});
            about(
                Code::TextAmbiguous,
                format!("old_text occurs {count} times in cell {at}; nothing was written."),
            )
            .fact("count", count)
            .fact("lines", list)
            .block(shown)
            .next(format!("{} takes the one at line {line} of the cell", ctx.call("retry", set)))
        }
        EditError::Same { eol_only, .. } => edit_file::same(&path, eol_only, None),
        other => about(Code::BadInput, format!("{other}; nothing was written."))
            .next("send new_text without old_text to replace all of the cell"),
    }
}

fn no_notebook(ctx: &Ctx<'_>, place: &Place, why: &str) -> Refusal {
    let path = ctx.show(&place.asked);
    Refusal::new(Code::BadInput, format!("{path}: {why}. Nothing was written."))
        .fact("tool", TOOL.name)
        .fact("argument", "cell")
        .fact("path", path.as_str())
        .next(format!("{}, and edit_file it without cell", ctx.call("read_file", json!({"path": path}))))
}

/// A changed region as a span of lines, from 1.
fn span(region: &Region) -> Span {
    let lines = |range: &std::ops::Range<usize>| (range.start, range.end.saturating_sub(1).max(range.start));
    Span {
        raw: 0..0,
        lines_before: lines(&region.old),
        lines_after: lines(&region.new),
        replacement: Vec::new(),
    }
}
