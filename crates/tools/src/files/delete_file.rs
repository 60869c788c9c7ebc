//! `delete_file`: one file, or a link itself; its content stays in the history.

use cotenant_coord::LineMap;
use cotenant_model::{Entry, FileOp, Op, Refusal, ToolSet};
use cotenant_tree::{Kind as Found, Place};

use super::overwrite;
use crate::args::Args;
use crate::ctx::Ctx;
use crate::planned::{After, Planned};
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "delete_file",
    title: "Delete file",
    set: ToolSet::Core,
    about: "Delete one file; undo brings it back. Use instead of rm.",
    params: &[
        Param::required("path", Kind::Path, ""),
        Param::new("expected_digest", Kind::Text, "Needed unless you saw all of it"),
    ],
    destructive: true,
    run: Run::Change(run),
};

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let place = ctx.entry(args.need("path"))?;
    match &place.kind {
        Found::Absent { .. } => return Err(ctx.not_found(&place)),
        Found::Dir => return Err(directory(ctx, &place)),
        Found::File(_) | Found::Link => ctx.writable(&place)?,
    }
    let reply = Reply::new()
        .fact("path", ctx.show(&place.asked))
        .fact_if("resolved", place.through_link.then(|| ctx.show(&place.real)))
        .fact("deleted", true);
    let (old, before, reply) = if place.kind == Found::Link {
        let link = ctx.link(&place)?;
        (link.entry(), Some(link.content.clone()), reply.fact("kind", "link").fact("target", ctx.told(&link)))
    } else {
        let old = ctx.weigh(&place)?;
        overwrite::may_go(ctx, &place, &old, args.text("expected_digest"), "deleting takes")?;
        let before = old.content();
        let lines = old.text.then(|| old.line_count());
        let reply = reply.fact_if("lines", lines).fact("bytes", ctx.size(&place));
        (Entry::file(old.digest), before, reply)
    };
    Ok(Planned {
        ops: vec![FileOp { at: place.real.clone(), op: Op::Delete { old } }],
        classes: vec![place.class.clone()],
        before: vec![before],
        change_at: reply.facts.len(),
        reply,
        after: vec![After {
            at: place.real.clone(),
            old: Some(old.digest),
            new: None,
            map: LineMap::default(),
            since: None,
            whole: None,
        }],
        back: Some("brings it back"),
        ..Planned::default()
    })
}

/// `NOT_A_FILE`, with the way to what lies in the directory.
fn directory(ctx: &Ctx<'_>, place: &Place) -> Refusal {
    let mut refusal = ctx.no_file(place);
    refusal.message.push_str(" delete_file takes one file, so that nothing goes unseen; nothing was done.");
    refusal.next.push_str(" shows what is in it; delete_file each file that shall go");
    refusal
}
