//! `show_change`: diff, author and reason of one change. What it shows counts as read.

use cotenant_ledger::Restorable;
use cotenant_model::{ChangeFile, ChangeId, ChangeOp, Code, Content, Digest, Refusal, ToolSet, WirePath};

use super::list;
use crate::args::{Args, bad};
use crate::ctx::{Ctx, Loaded};
use crate::planned::{CONTEXT, file_diff};
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
        if diff.len() <= ctx.answer_bytes(args) {
            counts_as_read(ctx, file);
        }
        if diff.len() > MOST {
            break;
        }
    }
    let reply = reply.field("changes", vec![list::json(ctx, &change)]);
    Ok(ctx.capped(reply, &format!("show_change {id}"), diff.trim_end(), ctx.answer_bytes(args)))
}

/// The lines that the diff of a file shows were seen: of the version on disk where that is what the change left, else of
/// that older version, unless the session knows another.
fn counts_as_read(ctx: &Ctx<'_>, file: &ChangeFile) {
    let image = |digest: Option<Digest>| digest.and_then(|digest| ctx.image(digest));
    let (Some(digest), Some(post)) = (file.post, image(file.post)) else { return };
    let (old, new) =
        (Loaded::fresh_or_binary(image(file.pre).unwrap_or_default()), Loaded::fresh_or_binary(post));
    if !old.text || !new.text {
        return;
    }
    let diff = cotenant_text::unified(&old.bytes, &old.form, &new.bytes, &new.form, CONTEXT);
    let hunks = diff.hunks.iter().filter(|hunk| hunk.new_len > 0);
    let lines: Vec<(usize, usize)> =
        hunks.map(|hunk| (hunk.new_start, hunk.new_start + hunk.new_len - 1)).collect();
    let Ok(place) = ctx.place_at(&WirePath { at: file.at.clone(), dir_only: false }) else { return };
    match ctx.load_any(&place) {
        Ok(now) if now.text && now.digest == digest => ctx.saw(&place, &now, &lines, false),
        _ if ctx.first_time(&file.at) => ctx.saw_lines(&file.at, digest, &lines),
        _ => {}
    }
}

fn one(ctx: &Ctx<'_>, file: &ChangeFile) -> String {
    let path = ctx.show(&file.at);
    // What may not be read as a file is not shown as a change either.
    let closed =
        ctx.place_at(&WirePath { at: file.at.clone(), dir_only: false }).err().map(|refusal| refusal.code);
    if let Some(code @ (Code::PathProtected | Code::PathOutside)) = closed {
        return format!("--- {path}\n+++ {path}\nnot shown: {code}\n");
    }
    let image = |digest: Option<Digest>| digest.and_then(|digest| ctx.image(digest));
    let (pre, post): (Option<Content>, Option<Content>) = (image(file.pre), image(file.post));
    // Of what only moved no image is kept, nor needed.
    let moved = file.op == ChangeOp::Move;
    if (file.pre.is_some() && pre.is_none()) || (!moved && file.post.is_some() && post.is_none()) {
        return format!("--- {path}\n+++ {path}\nits images are no longer kept\n");
    }
    match file.op {
        ChangeOp::MakeDir => format!("new directory {path}/\n"),
        ChangeOp::RemoveDir => format!("removed directory {path}/\n"),
        ChangeOp::Create => {
            let like =
                file.from.as_ref().map(|from| format!("like {}\n", ctx.show(from))).unwrap_or_default();
            modes(file) + &like + &file_diff("/dev/null", &path, None, post.as_ref(), MOST)
        }
        ChangeOp::Delete => modes(file) + &file_diff(&path, "/dev/null", pre.as_ref(), None, MOST),
        ChangeOp::Move => {
            let from = file.from.as_ref().map(|from| ctx.show(from)).unwrap_or_default();
            let slash = if file.post.is_none() { "/" } else { "" };
            let over = file.pre.map(|_| file_diff(&path, "/dev/null", pre.as_ref(), None, MOST));
            let over = over.map(|gone| format!("over what stood there:\n{gone}")).unwrap_or_default();
            format!("rename from {from}{slash}\nrename to {path}{slash}\n{over}")
        }
        ChangeOp::Edit if file.pre == file.post => format!("--- {path}\n+++ {path}\n{}", modes(file)),
        ChangeOp::Edit => modes(file) + &file_diff(&path, &path, pre.as_ref(), post.as_ref(), MOST),
    }
}

/// The modes as git says them, where they are not those of any file: executable, a link, or changed.
fn modes(file: &ChangeFile) -> String {
    const USUAL: u32 = 0o100_644;
    let unusual = |mode: u32| mode != 0 && mode & 0o170_111 != USUAL & 0o170_111;
    // A link has no permissions of its own.
    let told = |mode: u32| if mode & 0o170_000 == 0o120_000 { 0o120_000 } else { mode };
    match (told(file.pre_mode), told(file.post_mode)) {
        (0, new) if unusual(new) => format!("new file mode {new:06o}\n"),
        (old, _) if file.op == ChangeOp::Delete && unusual(old) => format!("deleted file mode {old:06o}\n"),
        (old, new) if old != 0 && new != 0 && old != new => {
            format!("old mode {old:06o}\nnew mode {new:06o}\n")
        }
        _ => String::new(),
    }
}
