//! `edit_file`: text replaced in one file that the session has seen; every other byte stays.

use cotenant_coord::LineMap;
use cotenant_model::{Body, Code, Entry, FileOp, Op, Refusal, ToolSet};
use cotenant_text::{EditSpec, Edited, Level, Region, Span, View};
use cotenant_tree::Place;
use serde_json::{Map, Value, json};

use super::edit_refusals as refuse;
use super::{notebook, overwrite, write_file};
use crate::args::{Args, bad};
use crate::ctx::{Ctx, Loaded, MayEdit};
use crate::planned::{After, Planned};
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "edit_file",
    title: "Edit file",
    set: ToolSet::Core,
    about: "Replace text in one file that you have seen. old_text must occur exactly once (or set replace_all): copy it without the `N|` prefix, with enough lines to be unique. Several changes at once: edits, all or nothing. Line endings and encoding are kept; write plain \\n. For many files use replace_text.",
    params: &[
        Param::required("path", Kind::Path, ""),
        Param::new("old_text", Kind::Text, ""),
        Param::new("new_text", Kind::Text, ""),
        Param::new("replace_all", Kind::Flag, ""),
        Param::new("edits", Kind::Edits, ""),
        Param::new("suggestion", Kind::Text, "Token from a refusal: apply what it proposed"),
        Param::hidden("line", Kind::Number),
        Param::hidden("cell", Kind::Text),
        Param::hidden("cell_op", Kind::Choice(&["replace", "insert", "delete"])),
        Param::hidden("cell_type", Kind::Text),
    ],
    destructive: true,
    run: Run::Change(run),
};

/// Lines of the result that an answer shows.
const SHOWN: usize = 12;
/// Ranges of lines that an answer names one by one.
const RANGES: usize = 8;

/// One wanted replacement, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What stands there.
    pub old: String,
    /// What shall stand there.
    pub new: String,
    /// Every occurrence.
    pub all: bool,
    /// The line (from 1) of the one that is meant.
    pub line: Option<usize>,
}

impl Edit {
    pub(super) fn spec(&self) -> EditSpec<'_> {
        EditSpec { old: &self.old, new: &self.new, replace_all: self.all, line: self.line }
    }

    /// As an argument of the tool.
    pub fn json(&self) -> Value {
        let mut map = Map::new();
        map.insert("old_text".to_owned(), self.old.as_str().into());
        map.insert("new_text".to_owned(), self.new.as_str().into());
        if self.all {
            map.insert("replace_all".to_owned(), true.into());
        }
        if let Some(line) = self.line {
            map.insert("line".to_owned(), line.into());
        }
        map.into()
    }
}

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    if args.text("cell").is_some() {
        let given = ["old_text", "edits"].iter().any(|name| args.value(name).is_some());
        let edits = if given { Some(wanted(ctx, args)?.0) } else { None };
        return notebook::run(ctx, args, edits);
    }
    let (edits, suggested) = wanted(ctx, args)?;
    let named = args.need("path");
    let place = ctx.place(named).map_err(|refusal| refuse::misnamed(ctx, named, &edits, refusal))?;
    let creates = edits.first().is_some_and(|edit| edit.old.is_empty());
    if place.is_absent() {
        return match creates {
            true => create(ctx, &place, &edits),
            false => Err(refuse::misnamed(ctx, named, &edits, ctx.not_found(&place))),
        };
    }
    ctx.require_file(&place)?;
    if creates {
        return Err(overwrite::already_exists(ctx, &place, "old_text is empty, which creates a file"));
    }
    ctx.writable(&place)?;
    let loaded = ctx.load(&place)?;
    let specs: Vec<EditSpec<'_>> = edits.iter().map(Edit::spec).collect();
    let edited = cotenant_text::apply(&loaded.bytes, &loaded.form, &specs, &ctx.tolerance())
        .map_err(|error| refuse::unfit(ctx, &place, &loaded, &edits, error))?;
    let spans: Vec<(usize, usize)> = edited.spans.iter().map(|span| span.lines_before).collect();
    let may = ctx.may_edit(&place, &loaded, &spans)?;
    let level = if edited.level == Level::Exact {
        suggested.unwrap_or(edited.level.name().into_owned())
    } else {
        edited.level.name().into_owned()
    };
    Ok(planned(ctx, &place, &loaded, edited, &level, may))
}

/// The edits that are wanted, and the match level of an accepted suggestion.
fn wanted(ctx: &Ctx<'_>, args: &Args) -> Result<(Vec<Edit>, Option<String>), Refusal> {
    if let Some(token) = args.text("suggestion") {
        let (edits, level) = ctx.suggestion(token, args.need("path"))?;
        return Ok((parse(&edits)?, Some(level)));
    }
    let single = args.text("old_text").zip(args.text("new_text"));
    match (args.value("edits"), single) {
        (Some(_), Some(_)) => {
            Err(bad(&TOOL, "edits", "edit_file takes either edits or old_text and new_text"))
        }
        (Some(edits), None) => parse(edits).map(|edits| (edits, None)),
        (None, Some((old, new))) => {
            let line = args.count("line").filter(|line| *line > 0);
            Ok((
                vec![Edit { old: old.to_owned(), new: new.to_owned(), all: args.flag("replace_all"), line }],
                None,
            ))
        }
        (None, None) => Err(bad(&TOOL, "old_text", "edit_file needs old_text and new_text, or edits")),
    }
}

/// `[{old_text, new_text, replace_all}]`, by any of the names that clients use.
fn parse(edits: &Value) -> Result<Vec<Edit>, Refusal> {
    let Some(list) = edits.as_array().filter(|list| !list.is_empty()) else {
        return Err(bad(&TOOL, "edits", "edits must be an array of {old_text, new_text}"));
    };
    list.iter().enumerate().map(|(index, item)| parse_one(index, item)).collect()
}

fn parse_one(index: usize, item: &Value) -> Result<Edit, Refusal> {
    let text = |names: [&str; 5]| names.iter().find_map(|name| item.get(name)?.as_str()).map(str::to_owned);
    let old = text(["old_text", "old_string", "old_str", "oldText", "oldString"]);
    let new = text(["new_text", "new_string", "new_str", "newText", "newString"]);
    let (Some(old), Some(new)) = (old, new) else {
        return Err(bad(&TOOL, "edits", &format!("edits[{index}] needs the texts old_text and new_text")));
    };
    let all = ["replace_all", "replaceAll", "allow_multiple"]
        .iter()
        .any(|name| item.get(name) == Some(&true.into()));
    let line = item.get("line").and_then(Value::as_u64).and_then(|line| usize::try_from(line).ok());
    Ok(Edit { old, new, all, line })
}

/// A new file: the first edit is its content, the others apply to that.
fn create(ctx: &Ctx<'_>, place: &Place, edits: &[Edit]) -> Result<Planned, Refusal> {
    let Some((first, rest)) = edits.split_first() else { return Err(ctx.not_found(place)) };
    let mut planned = write_file::create(ctx, place, &first.new, &cotenant_text::Want::default())?;
    if rest.is_empty() {
        return Ok(planned);
    }
    let Some(FileOp { op: Op::Create { new, .. }, .. }) = planned.ops.last_mut() else {
        return Ok(planned);
    };
    let loaded =
        Loaded::fresh(new.content.clone()).map_err(|_| bad(&TOOL, "edits", "the new file is not text"))?;
    let specs: Vec<EditSpec<'_>> = rest.iter().map(Edit::spec).collect();
    let edited = cotenant_text::apply(&loaded.bytes, &loaded.form, &specs, &ctx.tolerance())
        .map_err(|error| refuse::unfit(ctx, place, &loaded, rest, error))?;
    new.content = edited.bytes.into();
    Ok(write_file::created(ctx, place, planned))
}

/// The plan of an edit that fits, and its answer.
pub fn planned(
    ctx: &Ctx<'_>,
    place: &Place,
    loaded: &Loaded,
    edited: Edited,
    level: &str,
    may: MayEdit,
) -> Planned {
    let new = Loaded::known(edited.bytes.into(), &loaded.form);
    let view = View::new(&new.bytes, &new.form);
    let mut reply = Reply::new()
        .fact("path", ctx.show(&place.asked))
        .fact_if("resolved", place.through_link.then(|| ctx.show(&place.real)))
        .fact("edited", ranges(&edited.spans, |span| span.lines_after))
        .fact("was", ranges(&edited.spans, |span| span.lines_before));
    if edited.counts.iter().any(|count| *count > 1) {
        reply = reply.fact("replaced", edited.counts.iter().sum::<usize>());
    }
    reply = reply.fact("match", level);
    let change_at = reply.facts.len();
    reply = reply.fact("digest", new.digest.to_string()).fact_if("unseen", may.unseen.then_some(true));
    for note in edited.notes {
        reply = reply.notice(format!("not byte for byte what you sent: {note}"));
    }
    let seen: Vec<(usize, usize)> = edited.spans.iter().map(|span| span.lines_after).collect();
    if let Some((_, regions)) = &may.since {
        let changed: Vec<String> = regions.iter().take(RANGES).map(told).collect();
        let who = ctx.who_changed(&place.real);
        reply = reply.notice(format!(
            "the file changed since you read it, not where you edited: line {} ({who}); read them before you edit there",
            changed.join(", ")
        ));
    }
    Planned {
        ops: vec![FileOp {
            at: place.real.clone(),
            op: Op::Replace { old: Entry::file(loaded.digest), new: Body::file(new.bytes.clone()) },
        }],
        classes: vec![place.class.clone()],
        before: vec![Some(loaded.bytes.clone())],
        reply: reply.content(result_lines(&view, &seen)),
        change_at,
        after: vec![After {
            at: place.real.clone(),
            old: Some(loaded.digest),
            new: Some(new.digest),
            map: ctx.line_map(loaded, &new),
            since: may.since.map(|(shown, regions)| (shown, LineMap { regions, ..LineMap::default() })),
            whole: None,
        }],
        ..Planned::default()
    }
}

/// A region as lines of the present version.
fn told(region: &Region) -> String {
    match region.new.end.saturating_sub(region.new.start) {
        0 => format!("{} (taken out there)", region.new.start),
        1 => region.new.start.to_string(),
        _ => format!("{}-{}", region.new.start, region.new.end - 1),
    }
}

fn ranges(spans: &[Span], side: impl Fn(&Span) -> (usize, usize)) -> String {
    let mut text = String::new();
    for (index, span) in spans.iter().take(RANGES).enumerate() {
        let (first, last) = side(span);
        let comma = if index > 0 { "," } else { "" };
        text.push_str(&format!("{comma}{first}-{last}"));
    }
    if spans.len() > RANGES {
        text.push_str(&format!(",+{}", spans.len() - RANGES));
    }
    text
}

/// The new lines with one of context on each side, [`SHOWN`] at most.
fn result_lines(view: &View<'_>, spans: &[(usize, usize)]) -> String {
    let mut text = String::new();
    let (mut left, mut next) = (SHOWN, 1);
    for (first, last) in spans {
        let from = first.saturating_sub(1).max(next);
        let to = (last + 1).min(view.line_count()).min(from.saturating_add(left.saturating_sub(1)));
        if left == 0 || from > to {
            continue;
        }
        if !text.is_empty() && from > next {
            text.push_str("--\n");
        }
        text.push_str(&cotenant_text::window(view, from, to, 4000));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        left -= (to + 1 - from).min(left);
        next = to + 1;
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// The call that applies a suggestion.
pub fn suggestion_call(path: &str, token: impl std::fmt::Display) -> Value {
    json!({"path": path, "suggestion": token.to_string()})
}

/// `NOTHING_TO_CHANGE` for a text that is replaced by itself.
pub fn same(shown: &str, eol_only: bool, item: Option<usize>) -> Refusal {
    let message = if eol_only {
        "old_text and new_text differ in line endings only, which an edit keeps; nothing was written."
    } else {
        "old_text and new_text are the same; nothing was written."
    };
    let refusal = Refusal::new(Code::NothingToChange, message).fact("path", shown);
    let refusal = match item {
        Some(item) => refusal.fact("item", item),
        None => refusal,
    };
    refusal.next("send the new_text you mean; to change the endings of the whole file: write_file with eol")
}
