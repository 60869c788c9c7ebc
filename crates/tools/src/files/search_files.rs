//! `search_files`: names or contents, grouped by path, with totals and what was skipped.

use cotenant_model::{Refusal, ToolSet};
use cotenant_tree::{ContentHits, ContentQuery, FileHits, HitLine, NameQuery, Output, Place};

use crate::args::Args;
use crate::ctx::{Ctx, entry_name};
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "search_files",
    title: "Search files",
    set: ToolSet::Core,
    about: "Search inside files (content_search true) or file names (false). Use instead of grep, rg, find. Ignored files are skipped.",
    params: &[
        Param::required("pattern", Kind::Text, "Rust regex for content; glob or part of a name for names"),
        // The schema asks for it, so that a model decides; a call without it is still understood.
        Param::required("content_search", Kind::Flag, ""),
        Param::new("path", Kind::Path, "File or directory. ."),
        Param::new("glob", Kind::Text, "Only these files, e.g. *.{ts,tsx}"),
        Param::new("output", Kind::Choice(&["content", "files", "count"]), ""),
        Param::new("regex", Kind::Flag, "false: literal"),
        Param::new("ignore_case", Kind::Flag, ""),
        Param::new("multiline", Kind::Flag, ""),
        Param::new("context_lines", Kind::Number, ""),
        Param::new("limit", Kind::Number, "50 matches, 100 names"),
        Param::new("offset", Kind::Number, "From next_offset"),
        Param::new("include_ignored", Kind::Flag, ""),
    ],
    destructive: false,
    run: Run::Look(run),
};

/// Hits at most, whatever is asked for.
const MOST: usize = 20_000;
/// Arguments that only a content search has: one of them says what is meant where `content_search` is absent.
const CONTENT_ONLY: [&str; 6] = ["glob", "output", "regex", "ignore_case", "multiline", "context_lines"];

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Reply, Refusal> {
    let content = args
        .flag_given("content_search")
        .unwrap_or_else(|| CONTENT_ONLY.iter().any(|name| args.value(name).is_some()));
    let place = ctx.existing(args.text("path").unwrap_or("."))?;
    if content { contents(ctx, args, &place) } else { names(ctx, args, &place) }
}

fn names(ctx: &Ctx<'_>, args: &Args, place: &Place) -> Result<Reply, Refusal> {
    let query = NameQuery {
        pattern: args.need("pattern").to_owned(),
        limit: args.count("limit").unwrap_or(ctx.limits().names).clamp(1, MOST),
        offset: args.count("offset").unwrap_or(0),
        include_ignored: args.flag("include_ignored"),
    };
    let hits = ctx.search(|tree| tree.search_names(place, &query), &place.asked)?;
    let mut text = String::new();
    let mut shown = 0;
    for path in &hits.paths {
        let name = entry_name(ctx.show(path).as_bytes()).into_owned();
        if text.len() + name.len() > ctx.answer_bytes(args) {
            break;
        }
        if shown > 0 {
            text.push('\n');
        }
        text.push_str(&name);
        shown += 1;
    }
    let next = query.offset + shown;
    let mut reply = Reply::new().fact("pattern", query.pattern.as_str()).fact("matches", hits.total);
    if next < hits.total {
        reply = reply.fact("shown", shown).fact("next_offset", next);
    }
    reply = skipped(reply, &hits.skipped);
    if hits.total == 0 {
        text = format!("hint: {}", name_hint(ctx, args, place));
    }
    let idle: Vec<String> = CONTENT_ONLY
        .iter()
        .filter(|name| args.value(name).is_some())
        .map(|name| (*name).to_owned())
        .collect();
    Ok(reply.fact_if("ignored", (!idle.is_empty()).then_some(idle)).content(text))
}

/// What a content search for the same pattern would find.
fn name_hint(ctx: &Ctx<'_>, args: &Args, place: &Place) -> String {
    let mut query = content_query(ctx, args);
    query.regex = false;
    query.output = Output::Count;
    match ctx.search(|tree| tree.search_content(place, &query), &place.asked) {
        Ok(hits) if hits.total_matches > 0 => {
            format!("content_search=true finds {} in {} files", hits.total_matches, hits.total_files)
        }
        _ => "no file has it in its name or content; try a shorter part of it, or list_directory".to_owned(),
    }
}

fn content_query(ctx: &Ctx<'_>, args: &Args) -> ContentQuery {
    ContentQuery {
        pattern: args.need("pattern").to_owned(),
        regex: args.flag_given("regex").unwrap_or(true),
        ignore_case: args.flag("ignore_case"),
        multiline: args.flag("multiline"),
        glob: args.text("glob").map(str::to_owned),
        output: match args.text("output") {
            Some("files") => Output::Files,
            Some("count") => Output::Count,
            _ => Output::Content,
        },
        context_lines: args.count("context_lines").map(|lines| lines.min(ctx.limits().context)),
        limit: args.count("limit").unwrap_or(ctx.limits().matches).clamp(1, MOST),
        offset: args.count("offset").unwrap_or(0),
        include_ignored: args.flag("include_ignored"),
        regex_bytes: ctx.limits().regex_bytes,
    }
}

fn contents(ctx: &Ctx<'_>, args: &Args, place: &Place) -> Result<Reply, Refusal> {
    let query = content_query(ctx, args);
    let hits = ctx.search(|tree| tree.search_content(place, &query), &place.asked)?;
    let mut page = Page::default();
    let bytes = ctx.answer_bytes(args);
    for file in &hits.files {
        if !page.add(ctx, file, query.output, bytes) {
            break;
        }
    }
    let mut reply = Reply::new().fact("pattern", query.pattern.as_str());
    reply = match hits.exact {
        true => reply.fact("matches", hits.total_matches).fact("files", hits.total_files),
        false => {
            reply.fact("matches", format!("at_least:{}", hits.total_matches)).fact("files", hits.total_files)
        }
    };
    if hits.total_matches == 0 {
        reply = reply.fact("files_searched", hits.searched);
        let hint = content_hint(ctx, args, place);
        return Ok(skipped(reply, &hits.skipped).content(format!("hint: {hint}")));
    }
    let next = query.offset + page.units;
    let all = if query.output == Output::Content { hits.total_matches } else { hits.total_files };
    if next < all {
        reply = reply.fact("shown", page.units).fact("next_offset", next);
    }
    if hits.clipped_lines > 0 {
        reply = reply.fact("clipped_lines", hits.clipped_lines).notice(
            "long lines are cut around the match; read_file with start, limit 1 and column shows the rest",
        );
    }
    note_seen(ctx, &hits, &page);
    Ok(skipped(reply, &hits.skipped).content(page.text))
}

/// Lines shown of files whose digest is known count as read.
fn note_seen(ctx: &Ctx<'_>, hits: &ContentHits, page: &Page) {
    for file in hits.files.iter().take(page.files) {
        if let Some(digest) = file.digest {
            let number = |line: &HitLine| usize::try_from(line.number).unwrap_or(usize::MAX);
            let whole = file.lines.iter().filter(|line| line.len <= line.text.len());
            let lines: Vec<(usize, usize)> = whole.map(|line| (number(line), number(line))).collect();
            ctx.saw_lines(&file.path, digest, &lines);
        }
    }
}

/// What is shown of the hits.
#[derive(Default)]
struct Page {
    text: String,
    /// Matches shown, or files where only files are.
    units: usize,
    files: usize,
}

impl Page {
    /// Adds a file's hits; false where they do not fit any more.
    fn add(&mut self, ctx: &Ctx<'_>, file: &FileHits, output: Output, bytes: usize) -> bool {
        let path = ctx.show(&file.path);
        let path = entry_name(path.as_bytes());
        let block = match output {
            Output::Files => path.into_owned(),
            Output::Count => format!("{path}: {}", file.matches),
            Output::Content => format!("{path}\n{}", lines(file)),
        };
        if self.units > 0 && self.text.len() + block.len() > bytes {
            return false;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&block);
        self.files += 1;
        self.units += match output {
            Output::Content => file.lines.iter().filter(|line| line.is_match).count(),
            Output::Files | Output::Count => 1,
        };
        true
    }
}

/// `42:` a match, `43-` context, `--` between runs of lines.
fn lines(file: &FileHits) -> String {
    let mut text = String::new();
    let mut last = None;
    let with_context = file.lines.iter().any(|line| !line.is_match);
    for line in &file.lines {
        if let Some(last) = last {
            text.push('\n');
            if with_context && line.number > last + 1 {
                text.push_str("--\n");
            }
        }
        last = Some(line.number);
        let mark = if line.is_match { ':' } else { '-' };
        text.push_str(&format!("{}{mark}{}", line.number, cotenant_text::shown(&line.text)));
        if line.len > line.text.len() {
            text.push_str(&format!("…[line of {} bytes, cut at {}]", line.len, line.at));
        }
    }
    text
}

fn skipped(reply: Reply, skipped: &[(&'static str, usize)]) -> Reply {
    let list: Vec<String> = skipped.iter().map(|(reason, count)| format!("{reason}:{count}")).collect();
    if list.is_empty() { reply } else { reply.fact("skipped", list) }
}

/// What another mode would find.
fn content_hint(ctx: &Ctx<'_>, args: &Args, place: &Place) -> String {
    let asked = content_query(ctx, args);
    let count = |change: &dyn Fn(&mut ContentQuery)| {
        let mut query = content_query(ctx, args);
        query.output = Output::Count;
        change(&mut query);
        let hits = ctx.search(|tree| tree.search_content(place, &query), &place.asked).ok()?;
        (hits.total_matches > 0).then(|| format!("{} in {} files", hits.total_matches, hits.total_files))
    };
    let mut found = Vec::new();
    if !asked.ignore_case
        && let Some(what) = count(&|query| query.ignore_case = true)
    {
        found.push(format!("ignore_case=true finds {what}"));
    }
    if asked.regex
        && regex::escape(&asked.pattern) != asked.pattern
        && let Some(what) = count(&|query| query.regex = false)
    {
        found.push(format!("regex=false finds {what}"));
    }
    if asked.glob.is_some()
        && let Some(what) = count(&|query| query.glob = None)
    {
        found.push(format!("without glob {what}"));
    }
    let names = NameQuery { pattern: asked.pattern, limit: 1, offset: 0, include_ignored: false };
    let named =
        ctx.search(|tree| tree.search_names(place, &names), &place.asked).map_or(0, |hits| hits.total);
    if found.is_empty() && !asked.include_ignored {
        found.push("include_ignored=true searches what is skipped".to_owned());
    }
    found.push(format!("{named} file names match"));
    found.join("; ")
}
