//! What `replace_text` says when it replaces nothing: what would be found otherwise, and what is in the way.

use std::collections::BTreeMap;

use cotenant_model::{Code, Refusal};
use cotenant_tree::{ContentQuery, Output, Place};
use serde_json::{Map, Value, json};

use super::pattern::Pattern;
use crate::args::Args;
use crate::ctx::Ctx;

/// Bytes of the list of files that a refusal shows.
const SHOWN: usize = 1500;

/// `TEXT_NOT_FOUND`, with what another way to ask would find.
pub fn not_found(
    ctx: &Ctx<'_>,
    args: &Args,
    place: &Place,
    skipped: &BTreeMap<&'static str, usize>,
) -> Refusal {
    let shown = ctx.show(&place.asked);
    let ways = Ways { ctx, args, place };
    let found = ways.all();
    let applied = args.text("replacement").filter(|new| !new.is_empty() && !args.flag("regex"));
    let applied = applied.and_then(|new| ways.count(new, |_| {}));
    let cause = if applied.is_some() && found.is_empty() { "already-applied" } else { "unknown" };
    let mut message = format!("The pattern is nowhere in {shown}; nothing was written.");
    for (what, _, finds) in &found {
        message.push_str(&format!(" {what} finds {finds}."));
    }
    if let Some(finds) = applied {
        message.push_str(&format!(" The replacement stands there already: {finds}."));
    }
    if args.flag("regex") && args.need("pattern").contains("\\r") {
        message.push_str(" Every line break is a plain \\n here, also where a file has CRLF.");
    }
    let list: Vec<String> = skipped.iter().map(|(reason, count)| format!("{reason}:{count}")).collect();
    let mut refusal = Refusal::new(Code::TextNotFound, message).fact("path", shown).fact("cause", cause);
    if !list.is_empty() {
        refusal = refusal.fact("skipped", list);
    }
    match found.into_iter().next() {
        Some((_, set, _)) => {
            let call = ctx.call("retry", json!({"token": ctx.retry_token(), "set": set}));
            refusal.next(format!("{call}, if those are meant"))
        }
        None => refusal.next(format!("{}, and copy the pattern from what it shows", ways.look())),
    }
}

/// The same question put otherwise.
struct Ways<'a> {
    ctx: &'a Ctx<'a>,
    args: &'a Args,
    place: &'a Place,
}

impl Ways<'_> {
    /// Those that find something: what is changed, as words and as arguments, and what that finds.
    fn all(&self) -> Vec<(&'static str, Map<String, Value>, String)> {
        let (regex, pattern) = (self.args.flag("regex"), self.args.need("pattern"));
        let mut found = Vec::new();
        let mut try_one = |what: &'static str, name: &str, value: Value, finds: Option<String>| {
            if let Some(finds) = finds {
                found.push((what, Map::from_iter([(name.to_owned(), value)]), finds));
            }
        };
        if !self.args.flag("ignore_case") {
            let finds = self.count(pattern, |query| query.ignore_case = true);
            try_one("ignore_case=true", "ignore_case", true.into(), finds);
        }
        if regex {
            let finds = self.count(pattern, |query| query.regex = false);
            try_one("regex=false", "regex", false.into(), finds);
        } else if regex::escape(pattern) != pattern {
            let finds = self.count(pattern, |query| query.regex = true);
            try_one("regex=true", "regex", true.into(), finds);
        }
        if self.args.text("glob").is_some() {
            try_one("Without glob it", "glob", Value::Null, self.count(pattern, |query| query.glob = None));
        }
        found
    }

    /// `3 lines in 2 files`, where there are any.
    fn count(&self, pattern: &str, change: impl Fn(&mut ContentQuery)) -> Option<String> {
        let mut query = ContentQuery {
            pattern: pattern.to_owned(),
            regex: self.args.flag("regex"),
            ignore_case: self.args.flag("ignore_case"),
            multiline: true,
            glob: self.args.text("glob").map(str::to_owned),
            output: Output::Count,
            context_lines: Some(0),
            limit: 1,
            offset: 0,
            include_ignored: false,
            regex_bytes: self.ctx.limits().regex_bytes,
        };
        change(&mut query);
        let hits = self.ctx.ws.tree().search_content(self.place, &query).ok()?;
        (hits.total_matches > 0)
            .then(|| format!("{} lines in {} files", hits.total_matches, hits.total_files))
    }

    /// The call that shows what is there.
    fn look(&self) -> String {
        let path = self.ctx.show(&self.place.asked);
        if self.place.stat().is_some() {
            return self.ctx.call("read_file", json!({"path": path}));
        }
        let pattern: String =
            self.args.need("pattern").lines().next().unwrap_or_default().chars().take(20).collect();
        let query = json!({"pattern": pattern, "content_search": true, "regex": false, "ignore_case": true, "path": path});
        self.ctx.call("search_files", query)
    }
}

/// There are more matches than were expected, or fewer.
pub fn surprise(ctx: &Ctx<'_>, args: &Args, expected: usize, count: usize, listed: &str) -> Refusal {
    let code = if count > expected { Code::TextAmbiguous } else { Code::TextNotFound };
    let message = format!("The pattern occurs {count} times, not {expected}; nothing was written. By file:");
    let block = match listed.len() <= SHOWN {
        true => listed.to_owned(),
        false => {
            let cut = listed[..listed.floor_char_boundary(SHOWN)].rfind('\n').unwrap_or(0);
            let left = listed[cut..].lines().filter(|line| !line.is_empty()).count();
            format!("{}\nand {left} files more", &listed[..cut])
        }
    };
    let all = ctx.call("retry", json!({"token": ctx.retry_token(), "set": {"expected": count}}));
    let narrow = if args.text("glob").is_some() { "path" } else { "path or glob" };
    let refusal = Refusal::new(code, message).fact("path", args.need("path"));
    let refusal = if code == Code::TextNotFound { refusal.fact("cause", "count") } else { refusal };
    refusal
        .fact("count", count)
        .fact("expected", expected)
        .block(block)
        .next(format!("{all} replaces all {count}; else narrow {narrow}, or the pattern"))
}

/// Every match is replaced by itself.
pub fn same(shown: &str, count: usize) -> Refusal {
    Refusal::new(
        Code::NothingToChange,
        format!("All {count} matches are what they would be replaced by; nothing was written."),
    )
    .fact("path", shown)
    .fact("count", count)
    .next("send the replacement you mean, or go on: the text is as you want it")
}

/// The expression fits the empty text.
pub fn empty(ctx: &Ctx<'_>, pattern: &Pattern) -> Refusal {
    let set = json!({"token": ctx.retry_token(), "set": {"pattern": "^(.+)$", "replacement": "…$1…"}});
    Refusal::new(
        Code::PatternInvalid,
        "The expression fits an empty text, which is between any two characters; nothing was written.",
    )
    .fact("pattern", pattern.shown())
    .next(format!(
        "let it match at least one character; at the beginning or end of lines: {}",
        ctx.call("retry", set)
    ))
}

/// More than one change may hold, or one call take.
pub fn too_much(ctx: &Ctx<'_>, why: &str) -> Refusal {
    let narrower = json!({"token": ctx.retry_token(), "set": {"glob": "…"}});
    Refusal::new(Code::LimitReached, format!("{why}; nothing was written."))
        .next(format!("do it in parts: {}, or directory by directory", ctx.call("retry", narrower)))
}

/// A match that may be a part of a character.
pub fn cut(shown: &str, line: usize) -> Refusal {
    let why = format!(
        "The encoding of {shown} is unknown, and in line {line} the pattern fits what may be a part of a character; nothing was written."
    );
    Refusal::new(Code::TextNotFound, why)
        .fact("path", shown)
        .fact("cause", "encoding")
        .fact("line", line)
        .next(
            "leave the file out by glob (`!name`), or ask the human to declare its charset in .editorconfig",
        )
}
