//! `create_path`: an empty directory or a file, refused if it exists.

use cotenant_model::{ClassHit, Code, FileOp, Op, Refusal, ToolSet};
use cotenant_tree::Kind as Found;
use serde_json::json;

use super::{overwrite, write_file};
use crate::args::Args;
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "create_path",
    title: "Create path",
    set: ToolSet::Organise,
    about: "Create an empty directory or a file; refuses if it exists.",
    params: &[
        Param::required("path", Kind::Path, ""),
        Param::new("kind", Kind::Choice(&["file", "directory"]), ""),
        Param::new("content", Kind::Text, ""),
    ],
    destructive: false,
    run: Run::Change(run),
};

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let directory = args.text("kind") == Some("directory")
        || (args.text("kind").is_none() && args.need("path").ends_with('/'));
    let given = args.need("path");
    let bare = given.trim_end_matches('/');
    // `/` alone is an absolute path, not the empty one.
    let place = ctx.place(if directory && !bare.is_empty() { bare } else { given })?;
    let shown = ctx.show(&place.asked);
    match &place.kind {
        Found::Absent { .. } if !directory => write_file::create(
            ctx,
            &place,
            args.text("content").unwrap_or_default(),
            &cotenant_text::Want::default(),
        ),
        Found::Absent { .. } => {
            ctx.writable(&place)?;
            let mut ops = write_file::missing_dirs(&place);
            ops.push(FileOp { at: place.real.clone(), op: Op::MakeDir { mode: None } });
            let reply = Reply::new()
                .fact("path", format!("{shown}/"))
                .fact("created", true)
                .fact("directories", ops.len());
            let mut classes = vec![ClassHit::ordinary(); ops.len() - 1];
            classes.push(place.class.clone());
            Ok(Planned {
                before: vec![None; ops.len()],
                classes,
                ops,
                change_at: reply.facts.len(),
                reply,
                ..Planned::default()
            })
        }
        Found::File(_) => Err(overwrite::already_exists(ctx, &place, "create_path never overwrites")),
        _ => Err(Refusal::new(Code::AlreadyExists, format!("{shown} exists already; nothing was done."))
            .fact("path", shown.as_str())
            .next(ctx.call("list_directory", json!({"path": shown})))),
    }
}
