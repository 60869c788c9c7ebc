//! `show_change`: diff, author and reason of one change. What it shows counts as read.

use cotenant_ledger::Restorable;
use cotenant_model::{ChangeFile, ChangeId, ChangeOp, Content, Refusal, ToolSet};

use super::list;
use crate::args::{Args, bad};
use crate::ctx::Ctx;
use crate::planned::file_diff;
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "show_change",
    title: "Show change",
    set: ToolSet::History,
    about: "Diff, author and reason of one change.",
    params: &[Param::required("change", Kind::Text, "")],
    destructive: false,
    run: Run::Look(run),
};

/// Bytes of a diff that is built at most; what an answer cannot hold of it is behind a handle.
const MOST: usize = 10_000_000;

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Reply, Refusal> {
    let id: ChangeId =
        args.need("change").parse().map_err(|error| bad(&TOOL, "change", &format!("{error}")))?;
    let change = ctx.change(id)?;
    let mut reply = Reply::new().fact("change", id.to_string()).fact("time", change.time.rfc3339());
    reply = reply
        .fact_if("agent", change.agent.as_deref())
        .fact_if("tool", (!change.tool.is_empty()).then_some(&*change.tool))
        .fact_if("task", change.task.as_deref())
        .fact_if("undoes", change.undoes.map(|undone| undone.to_string()))
        .fact("outcome", list::outcome(change.outcome))
        .fact("files", change.files.len());
    match ctx.ws.ledger().restorable(&change).map_err(|error| error.refusal())? {
        Restorable::Yes => {}
        Restorable::Expired { since } => reply = reply.fact("expired", since.rfc3339()),
    }
    let mut diff = String::new();
    for file in &change.files {
        diff.push_str(&one(ctx, file));
        if diff.len() > MOST {
            break;
        }
    }
    let reply = reply.field("changes", vec![list::json(ctx, &change)]);
    Ok(ctx.capped(reply, &format!("show_change {id}"), diff.trim_end(), ctx.answer_bytes(args)))
}

fn one(ctx: &Ctx<'_>, file: &ChangeFile) -> String {
    let path = ctx.show(&file.at);
    let image = |digest: Option<cotenant_model::Digest>| digest.and_then(|digest| ctx.image(digest));
    let (pre, post): (Option<Content>, Option<Content>) = (image(file.pre), image(file.post));
    if (file.pre.is_some() && pre.is_none()) || (file.post.is_some() && post.is_none()) {
        return format!("--- {path}\n+++ {path}\nits images are no longer kept\n");
    }
    match file.op {
        ChangeOp::MakeDir => format!("new directory {path}/\n"),
        ChangeOp::RemoveDir => format!("removed directory {path}/\n"),
        ChangeOp::Create => file_diff("/dev/null", &path, None, post.as_ref(), MOST),
        ChangeOp::Delete => file_diff(&path, "/dev/null", pre.as_ref(), None, MOST),
        ChangeOp::Edit => file_diff(&path, &path, pre.as_ref(), post.as_ref(), MOST),
    }
}
