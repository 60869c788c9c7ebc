//! `read_file`: numbered lines of a text file under a header that says what was left out.

use cotenant_model::{Code, Refusal, ToolSet};
use cotenant_text::{Form, View};
use cotenant_tree::{Place, RawLine};
use serde_json::json;

use crate::args::Args;
use crate::ctx::{Ctx, Loaded};
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "read_file",
    title: "Read file",
    set: ToolSet::Core,
    about: "Read a text file. Use instead of cat, head, tail, sed -n. Answers `N|text` lines under a header with digest and, if more is left, next_start. Lines seen here or in a content search may be edited.",
    params: &[
        Param::required("path", Kind::Path, "Relative to the root; NAME:path in another folder"),
        Param::new("start", Kind::Number, "First line; negative counts from the end. 1"),
        Param::new("limit", Kind::Number, "Default: all up to 600 lines, else 200; at most 2000"),
        Param::new("line_numbers", Kind::Flag, ""),
        Param::hidden("column", Kind::Number),
    ],
    destructive: false,
    run: Run::Look(run),
};

/// Lines of a page when a file is too long to be shown whole.
const PAGE: usize = 200;
/// Lines at most, whatever is asked for.
const MOST: usize = 2000;
/// Bytes of one line before it is clipped; more where the page has room for one line only.
const LINE: usize = 2000;

/// What part of a file was asked for.
struct Asked {
    start: i64,
    limit: Option<usize>,
    bytes: usize,
    numbers: bool,
    column: usize,
}

impl Asked {
    fn of(ctx: &Ctx<'_>, args: &Args) -> Asked {
        Asked {
            start: args.number("start").unwrap_or(1),
            limit: args.count("limit"),
            bytes: ctx.answer_bytes(args),
            numbers: args.flag_given("line_numbers").unwrap_or(true),
            column: args.count("column").unwrap_or(0),
        }
    }
}

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Reply, Refusal> {
    let place = ctx.file(args.need("path"))?;
    let asked = Asked::of(ctx, args);
    if ctx.size(&place) > ctx.limits().text_bytes {
        return window(ctx, &place, &asked);
    }
    let loaded = ctx.load(&place)?;
    let view = View::new(&loaded.bytes, &loaded.form);
    if view.line_count() == 0 {
        ctx.saw(&place, &loaded, &[], true);
        return Ok(head(ctx, &place, &loaded, "0-0").fact("empty", true).content("(empty file, 0 bytes)"));
    }
    let first = first_line(asked.start, view.line_count()).ok_or_else(|| past_the_end(ctx, &place, &view))?;
    let page = Page::cut(&view, first, &asked, ctx);
    let told = first_look(ctx, &place, &loaded, &view);
    ctx.saw(&place, &loaded, &page.seen(asked.column), false);
    let reply = page.reply(ctx, &place, &loaded, &view);
    Ok(told.into_iter().fold(reply, Reply::notice))
}

/// The 1-based first line that `start` means; `None` past the end. 0 is 1.
fn first_line(start: i64, lines: usize) -> Option<usize> {
    let first = if start < 0 {
        lines.saturating_sub(usize::try_from(-start).unwrap_or(usize::MAX)) + 1
    } else {
        usize::try_from(start).unwrap_or(usize::MAX).max(1)
    };
    (first <= lines).then_some(first)
}

fn past_the_end(ctx: &Ctx<'_>, place: &Place, view: &View<'_>) -> Refusal {
    let (shown, lines) = (ctx.show(&place.asked), view.line_count());
    Refusal::new(Code::BadInput, format!("start is past the end: {shown} has {lines} lines."))
        .fact("path", shown.as_str())
        .fact("lines", lines)
        .next(ctx.call("read_file", json!({"path": shown, "start": -(PAGE.min(lines) as i64)})))
}

/// The lines that one answer carries.
struct Page {
    first: usize,
    last: usize,
    text: String,
    /// Lines that were cut: number, column reached, bytes left.
    clipped: Vec<(usize, usize, usize)>,
}

impl Page {
    fn cut(view: &View<'_>, first: usize, asked: &Asked, ctx: &Ctx<'_>) -> Page {
        let total = view.line_count();
        let limits = ctx.limits();
        let (lines, bytes) = match asked.limit {
            Some(0) => (total, asked.bytes),
            Some(limit) => (limit.min(MOST), asked.bytes),
            None if total <= limits.read_lines && view.as_bytes().len() <= limits.read_bytes => {
                (total, asked.bytes)
            }
            None => (PAGE, limits.read_bytes.min(asked.bytes)),
        };
        let line_bytes = if lines == 1 { bytes } else { LINE.min(bytes) };
        let mut page = Page { first, last: first, text: String::new(), clipped: Vec::new() };
        for number in first..=total.min(first.saturating_add(lines - 1)) {
            let line = view.line(number).unwrap_or_default();
            let column = if number == first { boundary(line, asked.column) } else { 0 };
            let clip = cotenant_text::clip(&line[column..], line_bytes);
            if number > first && page.text.len() + clip.text.len() + 8 > bytes {
                break;
            }
            if number > first {
                page.text.push('\n');
            }
            if asked.numbers {
                page.text.push_str(&format!("{number}|"));
            }
            page.text.push_str(&clip.text);
            if clip.left > 0 {
                page.text.push_str(&format!("…[{} bytes left out]", clip.left));
                page.clipped.push((number, column + clip.taken, clip.left));
            }
            page.last = number;
        }
        page
    }

    /// The lines that were shown whole, as runs: of a line that was cut, or entered in the middle, a part is no proof.
    fn seen(&self, column: usize) -> Vec<(usize, usize)> {
        let mut runs = Vec::new();
        let mut from = if column > 0 { self.first + 1 } else { self.first };
        for (cut, ..) in &self.clipped {
            if *cut > from {
                runs.push((from, cut - 1));
            }
            from = cut + 1;
        }
        if from <= self.last {
            runs.push((from, self.last));
        }
        runs
    }

    fn reply(self, ctx: &Ctx<'_>, place: &Place, loaded: &Loaded, view: &View<'_>) -> Reply {
        let total = view.line_count();
        let mut reply = head(ctx, place, loaded, &format!("{}-{}", self.first, self.last));
        reply.facts.insert(2, cotenant_model::Fact { name: "of".into(), value: total.into() });
        if let Some((line, column, _)) = self.clipped.first() {
            let way_on = json!({"path": ctx.show(&place.asked), "start": line, "limit": 1, "column": column});
            reply = reply.fact("clipped_lines", self.clipped.len()).notice(format!(
                "long lines are cut; the rest of line {line}: {}",
                ctx.call("read_file", way_on)
            ));
        }
        if self.last < total {
            reply = reply.fact("next_start", self.last + 1);
        }
        reply.content(self.text)
    }
}

/// The nearest character boundary at or before `column`.
fn boundary(line: &[u8], column: usize) -> usize {
    let mut at = column.min(line.len());
    while at > 0 && at < line.len() && (line[at] & 0xc0) == 0x80 && column - at < 4 {
        at -= 1;
    }
    at
}

/// The header without `of`, which stands third.
fn head(ctx: &Ctx<'_>, place: &Place, loaded: &Loaded, lines: &str) -> Reply {
    let reply = Reply::new()
        .fact("path", ctx.show(&place.asked))
        .fact("lines", lines)
        .fact("bytes", loaded.bytes.len())
        .fact_if("resolved", place.through_link.then(|| ctx.show(&place.real)));
    form_facts(reply, &loaded.form, !loaded.bytes.is_empty())
        .fact("digest", loaded.digest.to_string())
        .fact_if("generated", ctx.generated(place))
        .fact_if("unstable", loaded.unstable.then_some(true))
}

/// The form's facts that are not the default.
fn form_facts(mut reply: Reply, form: &Form, has_text: bool) -> Reply {
    let (eol, encoding) = (form.eol.name(), form.encoding.name());
    if eol != "lf" && eol != "none" {
        reply = reply.fact("eol", eol);
    }
    if encoding != "utf-8" {
        reply = reply.fact("encoding", encoding.to_string());
    }
    if form.bom {
        reply = reply.fact("bom", true);
    }
    if has_text && !form.final_newline {
        reply = reply.fact("final_newline", false);
    }
    reply
}

/// What a model must know of a file's form, told once a session: before the look is noted.
fn first_look(ctx: &Ctx<'_>, place: &Place, loaded: &Loaded, view: &View<'_>) -> Option<String> {
    let eol = loaded.form.eol.name();
    let utf8 = loaded.form.encoding.name() == "utf-8";
    if (eol != "crlf" && eol != "mixed" && utf8) || !ctx.first_time(&place.real) {
        return None;
    }
    let mut said = match eol {
        "crlf" => "eol=crlf: write plain newlines, they are stored as CRLF".to_owned(),
        "mixed" => {
            "eol=mixed: write plain newlines, each new line takes the ending of its neighbour".to_owned()
        }
        _ => format!(
            "encoding={}: write plain text, it is stored in that encoding",
            loaded.form.encoding.name()
        ),
    };
    if !utf8 {
        let odd: Vec<usize> =
            (1..=view.line_count()).filter(|n| view.line(*n).is_some_and(|line| !line.is_ascii())).collect();
        match odd[..] {
            [] => {}
            [line] => said.push_str(&format!("; the 1 non-ASCII line is {line}")),
            [first, ..] => {
                said.push_str(&format!("; {} lines are not ASCII, the first is {first}", odd.len()))
            }
        }
    }
    Some(said)
}

/// A range of a file too large to be read as a whole: no digest, no total.
fn window(ctx: &Ctx<'_>, place: &Place, asked: &Asked) -> Result<Reply, Refusal> {
    let limit = match asked.limit {
        None => PAGE,
        Some(0) => MOST,
        Some(limit) => limit.min(MOST),
    };
    let window = ctx.window(place, asked.start, limit, asked.bytes)?;
    if window.lines.iter().any(|line| line.bytes.contains(&0)) {
        return Err(binary(ctx, place));
    }
    let mut text = String::new();
    for (number, line) in (window.first..).zip(&window.lines) {
        if number != window.first {
            text.push('\n');
        }
        if asked.numbers {
            text.push_str(&format!("{number}|"));
        }
        text.push_str(&cotenant_text::shown(content(&line.bytes)));
        match left_out(line) {
            Some(0) => {}
            Some(bytes) => text.push_str(&format!("…[{bytes} bytes left out]")),
            None => text.push_str("…[the line goes on for over 16 MiB]"),
        }
    }
    let last = window.first + i64::try_from(window.lines.len()).unwrap_or(0) - 1;
    let lines = if window.lines.is_empty() { "0-0".to_owned() } else { format!("{}-{last}", window.first) };
    let mut reply = Reply::new().fact("path", ctx.show(&place.asked)).fact("lines", lines);
    reply = match window.total {
        Some(total) => reply.fact("of", total),
        None => reply.fact("of", "?"),
    };
    reply = reply.fact("bytes", window.stat.size).fact_if("unstable", window.unstable.then_some(true));
    let clipped = window.lines.iter().filter(|line| left_out(line) != Some(0)).count();
    if clipped > 0 {
        reply = reply
            .fact("clipped_lines", clipped)
            .notice("long lines are cut; look for a part with search_files and its pattern");
    }
    if window.more && last != -1 {
        reply = reply.fact("next_start", last + 1);
    }
    Ok(reply.content(text))
}

/// A line without its ending.
fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Bytes of a line that are not in the window; `None` where nobody looked for its end.
fn left_out(line: &RawLine) -> Option<u64> {
    line.len.map(|len| len.saturating_sub(line.bytes.len() as u64))
}

/// `NOT_TEXT` of a part of a large file.
fn binary(ctx: &Ctx<'_>, place: &Place) -> Refusal {
    let shown = ctx.show(&place.asked);
    Refusal::new(Code::NotText, format!("{shown} is not text where you look: it has NUL bytes there."))
        .fact("path", shown.as_str())
        .fact("bytes", ctx.size(place))
        .next(ctx.call("search_files", json!({"pattern": "TEXT", "content_search": true, "path": shown})))
}
