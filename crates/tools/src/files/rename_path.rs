//! `rename_path`: another name in the same directory.

use cotenant_model::{Refusal, ToolSet, WirePath};

use super::move_path::on_mount;
use super::relocate::Relocation;
use crate::args::{Args, bad};
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "rename_path",
    title: "Rename in place",
    set: ToolSet::Organise,
    about: "Change a name, not its directory.",
    params: &[Param::required("path", Kind::Path, ""), Param::required("new_name", Kind::Text, "")],
    destructive: true,
    run: Run::Change(run),
};

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let name = args.need("new_name");
    if !is_name(name) {
        let shown: String = name.chars().take(60).collect();
        let why = format!("{shown:?} is no single name; move_path takes another path");
        return Err(bad(&TOOL, "new_name", &why));
    }
    let from = ctx.entry(args.need("path")).map_err(on_mount)?;
    let Some(parent) = from.asked.parent() else {
        return Relocation { ctx, from: &from, to: &from, overwrite: false, expected: None }.plan();
    };
    let at = WirePath { at: parent.join(name.as_bytes()), dir_only: false };
    let to = ctx.entry_at(&at).map_err(on_mount)?;
    Relocation { ctx, from: &from, to: &to, overwrite: false, expected: None }.plan()
}

/// Whether a text is one component of a path.
pub fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '\0'])
}
