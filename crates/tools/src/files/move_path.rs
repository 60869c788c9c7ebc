//! `move_path`: a file, a link or a whole directory to another name or into another directory.

use cotenant_model::{Code, Refusal, ToolSet, WirePath};
use cotenant_tree::{Kind as Found, Place};

use super::relocate::Relocation;
use crate::args::Args;
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "move_path",
    title: "Move or rename",
    set: ToolSet::Core,
    about: "Move or rename a file or directory.",
    params: &[
        Param::required("from", Kind::Path, ""),
        Param::required("to", Kind::Path, "New path, or a directory to move into"),
        Param::new("overwrite", Kind::Flag, ""),
        Param::hidden("expected_digest", Kind::Text),
    ],
    destructive: true,
    run: Run::Change(run),
};

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let from = ctx.entry(args.need("from")).map_err(on_mount)?;
    let (to, into) = goal(ctx, &from, args.need("to")).map_err(on_mount)?;
    let wanted = Relocation {
        ctx,
        from: &from,
        to: &to,
        overwrite: args.flag("overwrite"),
        expected: args.text("expected_digest"),
    };
    let mut planned = wanted.plan()?;
    if let Some(directory) = into {
        planned.reply = planned.reply.notice(format!("{directory} is a directory: it was moved into it"));
    }
    Ok(planned)
}

/// Where it will stand, and the directory that it is moved into where `to` names that: one that exists or, for what is no
/// directory itself, one that ends in `/`.
fn goal(ctx: &Ctx<'_>, from: &Place, to: &str) -> Result<(Place, Option<String>), Refusal> {
    let wire = ctx.wire(to)?;
    let place = ctx.entry_at(&wire)?;
    let followed = match place.kind {
        // A link to a directory is one to move into; any other is a name that is taken.
        Found::Link => ctx.place_at(&wire).ok().filter(|place| place.kind == Found::Dir),
        Found::Dir => Some(place.clone()),
        Found::Absent { .. } if wire.dir_only && from.kind != Found::Dir => Some(place.clone()),
        _ => None,
    };
    let leaf = from.asked.path.leaf();
    // A directory that is moved onto itself is a slip, and none that is meant to go into itself.
    let (Some(directory), Some(leaf)) = (followed.filter(|place| place.real != from.real), leaf) else {
        return Ok((place, None));
    };
    let at = directory.asked.join(leaf);
    let inside = ctx.entry_at(&WirePath { at, dir_only: false })?;
    Ok((inside, Some(ctx.show(&directory.asked))))
}

/// For a move, a mount point is another device.
pub fn on_mount(mut refusal: Refusal) -> Refusal {
    if refusal.code == Code::PathOutside && refusal.get("mount").is_some() {
        refusal.code = Code::CrossDevice;
    }
    refusal
}
