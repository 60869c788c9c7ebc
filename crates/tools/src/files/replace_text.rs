//! `replace_text`: a text or an expression in one file or in many, as one change; every other byte stays.

use std::collections::BTreeMap;

use cotenant_coord::{LineMap, Standing};
use cotenant_model::{Body, Entry, FileOp, Op, PathClass, Refusal, ToolSet, WirePath, WsPath};
use cotenant_text::{Substituted, Unfit, View};
use cotenant_tree::{Kind as Found, Place};
use serde_json::{Value, json};

use super::edit_refusals::not_encodable;
use super::pattern::{Bounds, Pattern, Stop};
use super::replace_refusals as refuse;
use crate::args::{Args, bad};
use crate::ctx::{Ctx, Loaded};
use crate::planned::{After, Planned};
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "replace_text",
    title: "Replace in files",
    set: ToolSet::Core,
    about: "Replace a text or regex in a file or directory as one change, e.g. rename a symbol. Use instead of sed -i; no prior read needed. Look with dry_run, then give expected so that a surprise is refused.",
    params: &[
        Param::required("path", Kind::Path, "File or directory"),
        Param::required("pattern", Kind::Text, ""),
        Param::required("replacement", Kind::Text, "$1 and ${name} only with regex"),
        Param::new("regex", Kind::Flag, "false"),
        Param::new("glob", Kind::Text, ""),
        Param::new("expected", Kind::Number, "Total replacements"),
        Param::new("dry_run", Kind::Flag, ""),
        Param::hidden("ignore_case", Kind::Flag),
    ],
    destructive: true,
    run: Run::Change(run),
};

/// Bytes that the files of one change have, before and after together.
const MOST: usize = 512 << 20;
/// So long the matches are looked for: the rest of what a call may take is for landing them.
const TIME_MS: u64 = 25_000;
/// Bytes of the list of files that an answer shows.
const LISTED: usize = 4000;
/// Ranges of lines that are named of a file.
const RANGES: usize = 8;

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let pattern = Pattern::of(ctx, args)?;
    let expected = expected(args)?;
    let place = ctx.existing(args.need("path"))?;
    ctx.writable(&place)?;
    let mut search = Search { ctx, pattern: &pattern, hits: Vec::new(), skipped: BTreeMap::new(), bytes: 0 };
    search.all(&place, args.text("glob"))?;
    let count = search.count();
    if count == 0 {
        return Err(refuse::not_found(ctx, args, &place, &search.skipped));
    }
    if let Some(expected) = expected.filter(|expected| *expected != count) {
        return Err(refuse::surprise(ctx, args, expected, count, &search.listed()));
    }
    if search.hits.iter().all(|hit| hit.new.digest == hit.old.digest) {
        return Err(refuse::same(&ctx.show(&place.asked), count));
    }
    Ok(search.planned(&place))
}

/// How many replacements there must be.
fn expected(args: &Args) -> Result<Option<usize>, Refusal> {
    let Some(number) = args.number("expected") else { return Ok(None) };
    match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(bad(&TOOL, "expected", "expected is a count, at least 1")),
    }
}

/// A file in which the pattern occurs.
struct Hit {
    place: Place,
    old: Loaded,
    new: Loaded,
    /// How often.
    count: usize,
    /// The lines touched, in the new version.
    lines: Vec<(usize, usize)>,
}

/// The files that are looked into, and what is found there.
struct Search<'a> {
    ctx: &'a Ctx<'a>,
    pattern: &'a Pattern,
    hits: Vec<Hit>,
    /// How many files were passed over, by reason.
    skipped: BTreeMap<&'static str, usize>,
    bytes: usize,
}

impl Search<'_> {
    fn all(&mut self, place: &Place, glob: Option<&str>) -> Result<(), Refusal> {
        let ctx = self.ctx;
        if place.kind != Found::Dir {
            let loaded = ctx.load(place)?;
            return self.file(place.clone(), loaded);
        }
        let files = ctx.search(|tree| tree.files(place, glob), &place.asked)?;
        self.skipped.extend(files.skipped);
        for at in files.paths {
            if ctx.elapsed_ms() >= TIME_MS {
                return Err(self.slow());
            }
            match self.readable(at) {
                Ok((place, loaded)) => self.file(place, loaded)?,
                Err(reason) => *self.skipped.entry(reason).or_default() += 1,
            }
        }
        Ok(())
    }

    /// A file below the directory, or the reason why it is passed over.
    fn readable(&self, at: WsPath) -> Result<(Place, Loaded), &'static str> {
        let ctx = self.ctx;
        let place = ctx.place_at(&WirePath { at, dir_only: false }).map_err(|_| "unreadable")?;
        if place.class.class == PathClass::Generated {
            return Err("generated");
        }
        if ctx.size(&place) > ctx.limits().text_bytes {
            return Err("large");
        }
        let loaded = ctx.load_any(&place).map_err(|_| "unreadable")?;
        if loaded.text { Ok((place, loaded)) } else { Err("binary") }
    }

    /// Replaces in one file, in memory.
    fn file(&mut self, place: Place, old: Loaded) -> Result<(), Refusal> {
        let view = View::new(&old.bytes, &old.form);
        let room = MOST.saturating_sub(self.bytes + 2 * old.bytes.len());
        let in_time = || self.ctx.elapsed_ms() < TIME_MS;
        let swaps = match self.pattern.swaps(&view, &Bounds { room, in_time: &in_time }) {
            Ok(swaps) if swaps.is_empty() => return Ok(()),
            Ok(swaps) => swaps,
            Err(Stop::Empty) => return Err(refuse::empty(self.ctx, self.pattern)),
            Err(Stop::Full) => {
                let why = format!("The files of this change, before and after, have over {} MB", MOST >> 20);
                return Err(refuse::too_much(self.ctx, &why));
            }
            Err(Stop::Slow) => return Err(self.slow()),
        };
        let done = cotenant_text::substitute(&old.bytes, &old.form, &view, &swaps);
        let Substituted { bytes, spans } = done.map_err(|unfit| self.unfit(&place, unfit))?;
        self.bytes += old.bytes.len() + bytes.len();
        let new = Loaded::known(bytes.into(), &old.form);
        let lines = spans.iter().map(|span| span.lines_after).collect();
        self.hits.push(Hit { place, old, new, count: swaps.len(), lines });
        Ok(())
    }

    fn slow(&self) -> Refusal {
        refuse::too_much(self.ctx, &format!("Finding all matches took over {} s", TIME_MS / 1000))
    }

    fn unfit(&self, place: &Place, unfit: Unfit) -> Refusal {
        let shown = self.ctx.show(&place.asked);
        match unfit {
            Unfit::NotEncodable { ch, encoding, line, place } => {
                let refusal = not_encodable(&shown, ch, &encoding.name(), place.0, place.1);
                refusal.fact("line", line)
            }
            Unfit::Cut { line } => refuse::cut(&shown, line),
        }
    }

    fn count(&self) -> usize {
        self.hits.iter().map(|hit| hit.count).sum()
    }

    /// Each file with its count and lines, one a line.
    fn listed(&self) -> String {
        let line = |hit: &Hit| {
            let path = self.ctx.show(&hit.place.real);
            format!(
                "{}: {}, lines {}",
                crate::ctx::entry_name(path.as_bytes()),
                hit.count,
                ranges(&hit.lines)
            )
        };
        self.hits.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn planned(self, place: &Place) -> Planned {
        let (ctx, count, listed) = (self.ctx, self.count(), self.listed());
        let one =
            self.hits.first().filter(|_| place.kind != Found::Dir).map(|hit| hit.new.digest.to_string());
        let skipped: Vec<String> =
            self.skipped.iter().map(|(reason, count)| format!("{reason}:{count}")).collect();
        let mut reply = Reply::new()
            .fact("path", ctx.show(&place.asked))
            .fact_if("resolved", place.through_link.then(|| ctx.show(&place.real)))
            .fact("replaced", count)
            .fact("files", self.hits.len());
        let change_at = reply.facts.len();
        reply = reply.fact_if("digest", one).fact_if("skipped", (!skipped.is_empty()).then_some(skipped));
        let per_file: Vec<Value> = self
            .hits
            .iter()
            .map(|hit| json!({"path": ctx.show(&hit.place.real), "count": hit.count}))
            .collect();
        let mut planned = Planned { change_at, listing: true, ..Planned::default() };
        planned.pinned.insert("expected".to_owned(), count.into());
        planned.reply = ctx.capped(reply, TOOL.name, &listed, LISTED).field("per_file", per_file);
        // What is replaced by itself is counted, but is no change.
        for hit in self.hits.into_iter().filter(|hit| hit.new.digest != hit.old.digest) {
            planned.after.push(after(ctx, &hit));
            let op = Op::Replace { old: Entry::file(hit.old.digest), new: Body::file(hit.new.bytes.clone()) };
            planned.ops.push(FileOp { at: hit.place.real.clone(), op });
            planned.classes.push(hit.place.class);
            planned.before.push(Some(hit.old.bytes));
        }
        planned
    }
}

/// What the session knows of a file that it need not have seen: only what it saw before, carried on.
fn after(ctx: &Ctx<'_>, hit: &Hit) -> After {
    let standing = ctx.standing(&hit.place.real, hit.old.digest);
    let since = match &standing {
        Standing::Stale { shown, .. } => ctx
            .regions_since(*shown, &hit.old)
            .map(|regions| (*shown, LineMap { regions, ..LineMap::default() })),
        _ => None,
    };
    let known = since.is_some() || matches!(standing, Standing::Current { .. });
    After {
        at: hit.place.real.clone(),
        old: Some(hit.old.digest),
        new: Some(hit.new.digest),
        map: LineMap { known, ..ctx.line_map(&hit.old, &hit.new) },
        since,
        whole: None,
    }
}

/// `4,9-10,20`, a few of them.
fn ranges(lines: &[(usize, usize)]) -> String {
    let mut lines = lines.to_vec();
    lines.dedup();
    let range = |(first, last): &(usize, usize)| match first >= last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let mut shown: Vec<String> = lines.iter().take(RANGES).map(range).collect();
    if lines.len() > RANGES {
        shown.push(format!("+{}", lines.len() - RANGES));
    }
    shown.join(",")
}
