//! `list_directory`: one entry a line, directories end in `/`, with what was left out by reason.

use cotenant_model::{Refusal, ToolSet};
use cotenant_tree::{EntryKind, ListOptions, Listing};
use serde_json::json;

use crate::args::Args;
use crate::ctx::{Ctx, entry_name};
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "list_directory",
    title: "List directory",
    set: ToolSet::Core,
    about: "List a directory, without ignored files. To find files by name use search_files.",
    params: &[
        Param::new("path", Kind::Path, "."),
        Param::new("depth", Kind::Number, "1; higher goes deeper"),
        Param::new("limit", Kind::Number, "500"),
        Param::new("include_ignored", Kind::Flag, ""),
        Param::hidden("recursive", Kind::Flag),
    ],
    destructive: false,
    run: Run::Look(run),
};

/// Entries at most, whatever is asked for.
const MOST: usize = 20_000;

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Reply, Refusal> {
    let place = ctx.directory(args.text("path").unwrap_or("."))?;
    let depth = args.count("depth").unwrap_or(1).max(1);
    let options = ListOptions {
        depth: (!args.flag("recursive")).then_some(depth),
        limit: args.count("limit").unwrap_or(ctx.limits().list).clamp(1, MOST),
        include_ignored: args.flag("include_ignored"),
    };
    let listing = ctx.tree(|tree| tree.list(&place, &options), &place.asked)?;
    let (text, entries) = render(&place.real, &listing, ctx.answer_bytes(args));
    let left_out = listing.total.saturating_sub(entries);
    let mut reply = Reply::new()
        .fact("path", ctx.show(&place.asked))
        .fact_if("resolved", place.through_link.then(|| ctx.show(&place.real)))
        .fact("entries", entries)
        .fact("total", listing.total);
    if left_out > 0 {
        let all =
            ctx.tree(|tree| tree.list(&place, &ListOptions { limit: MOST, ..options }), &place.asked)?;
        let (all, most) = render(&place.real, &all, usize::MAX);
        let next = text.len() + 1;
        let handle = ctx.keep_handle("list_directory", &all);
        let way_on = ctx.call("read_more", json!({"handle": handle, "offset": next}));
        let beyond = listing.total.saturating_sub(most);
        let beyond = if beyond > 0 {
            format!("; {beyond} more are beyond {MOST}, list a directory below")
        } else {
            String::new()
        };
        let way_on =
            format!("{left_out} entries are left out; {way_on}, or set limit (at most {MOST}){beyond}");
        reply =
            reply.fact("truncated", left_out).fact("handle", handle).fact("next_offset", next).notice(way_on);
    }
    let omitted: Vec<String> =
        listing.omitted.iter().map(|(reason, count)| format!("{reason}:{count}")).collect();
    if !omitted.is_empty() {
        reply = reply.fact("omitted", omitted);
    }
    Ok(reply.content(text))
}

/// The lines that fit, relative to the listed directory, and how many they are.
fn render(base: &cotenant_model::WsPath, listing: &Listing, bytes: usize) -> (String, usize) {
    let skip = match base.path.as_bytes().len() {
        0 => 0,
        len => len + 1,
    };
    let mut text = String::new();
    for (index, entry) in listing.entries.iter().enumerate() {
        let name = entry_name(&entry.path.path.as_bytes()[skip..]);
        if text.len() + name.len() + 2 > bytes {
            return (text, index);
        }
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&name);
        text.push_str(match entry.kind {
            EntryKind::Dir => "/",
            EntryKind::Link | EntryKind::File | EntryKind::Other => "",
        });
    }
    (text, listing.entries.len())
}
