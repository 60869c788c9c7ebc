//! `list_trash`: what was deleted, overwritten or covered, newest first, one item a line.

use cotenant_ledger::{TrashItem, TrashQuery};
use cotenant_model::{ChangeKind, EntryKind, Fact, FactValue, HUMAN, Refusal, ToolSet};
use serde_json::{Value, json};

use super::list;
use crate::args::Args;
use crate::ctx::Ctx;
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "list_trash",
    title: "List trash",
    set: ToolSet::History,
    about: "Deleted and overwritten files.",
    params: &[
        Param::new("path", Kind::Text, ""),
        Param::new("since", Kind::Text, ""),
        Param::hidden("limit", Kind::Number),
    ],
    destructive: false,
    run: Run::Look(run),
};

/// Items without `limit`, and at most.
const USUAL: usize = 100;
const MOST: usize = 1000;

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Reply, Refusal> {
    let limit = args.count("limit").unwrap_or(USUAL).clamp(1, MOST);
    let query = TrashQuery {
        path: list::path(ctx, args)?,
        since: args.text("since").map(|text| list::since(ctx, &TOOL, text)).transpose()?,
        limit: limit + 1,
        ..TrashQuery::default()
    };
    let mut items = ctx.ws.ledger().trash(&query).map_err(|error| error.refusal())?;
    let more = items.len() > limit;
    items.truncate(limit);
    let lines: Vec<String> = items.iter().map(|item| line(ctx, item)).collect();
    let list: Vec<Value> = items.iter().map(|item| fields(ctx, item)).collect();
    // For programs `items` is the list itself.
    let mut reply = Reply::new().fact_if("path", args.text("path")).fact("items", items.len());
    if more && let Some(last) = items.last() {
        reply = reply.fact("more", true).notice(format!(
            "older items are left out after {}: raise limit (at most {MOST}), or narrow by path or since",
            last.id
        ));
    }
    Ok(reply.content(lines.join("\n")).field("items", list))
}

/// One line of the listing: `t5 path=src/old.rs deleted=2026-11-30T15:44:02Z by=agent-a change=c121`.
fn line(ctx: &Ctx<'_>, item: &TrashItem) -> String {
    let mut text = item.id.to_string();
    let mut add = |name: &'static str, value: FactValue| {
        text.push(' ');
        text.push_str(&Fact { name: name.into(), value }.to_string());
    };
    add("path", ctx.show(&item.at).into());
    add(item.how.name(), item.time.rfc3339().into());
    add("by", by(item).into());
    add("change", item.change.to_string().into());
    text
}

/// Whose hand it was.
pub(super) fn by(item: &TrashItem) -> &str {
    match item.kind {
        ChangeKind::Planned => item.by.as_deref().unwrap_or(HUMAN),
        ChangeKind::Observed => item.by.as_deref().unwrap_or("unknown"),
    }
}

fn fields(ctx: &Ctx<'_>, item: &TrashItem) -> Value {
    json!({
        "item": item.id.to_string(),
        "path": ctx.show(&item.at),
        "deleted": item.time.rfc3339(),
        "how": item.how.name(),
        "by": by(item),
        "change": item.change.to_string(),
        "tool": &*item.tool,
        "bytes": item.size,
        "digest": item.digest.to_string(),
        "mode": format!("{:o}", item.mode & 0o7777),
        "link": EntryKind::of_mode(item.mode) == Some(EntryKind::Link),
    })
}
