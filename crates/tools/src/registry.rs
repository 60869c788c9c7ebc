//! The one list of tools: from it come the MCP schema, the sub-commands and the docs page.

use cotenant_model::ToolSet;
use serde_json::Value;

use crate::args::nearest;
use crate::files::{
    create_path, delete_file, edit_file, list_directory, move_path, read_file, rename_path, replace_text,
    search_files, write_file,
};
use crate::history::{list, list_trash, restore_file, rewind, show_change, undo};
use crate::session::{read_more, retry, whoami};
use crate::tool::Tool;
use crate::{patch, shell};

/// Every tool, in the order of `tools/list`.
pub static TOOLS: &[&Tool] = &[
    &read_file::TOOL,
    &list_directory::TOOL,
    &search_files::TOOL,
    &edit_file::TOOL,
    &write_file::TOOL,
    &replace_text::TOOL,
    &patch::TOOL,
    &move_path::TOOL,
    &delete_file::TOOL,
    &shell::RUN,
    &shell::OUTPUT,
    &shell::STOP,
    &undo::TOOL,
    &read_more::TOOL,
    &retry::TOOL,
    &whoami::TOOL,
    &list::TOOL,
    &show_change::TOOL,
    &rewind::TOOL,
    &list_trash::TOOL,
    &restore_file::TOOL,
    &create_path::TOOL,
    &rename_path::TOOL,
    &shell::EXEC_OPEN,
    &shell::EXEC_RUN,
    &shell::EXEC_PROMOTE,
    &shell::EXEC_CLOSE,
];

/// Names of other hosts' tools that do the same with the same arguments, after the alias table.
const NAMES: &[(&str, &str)] =
    &[("exec_read", "read_file"), ("exec_write", "write_file"), ("exec_ls", "list_directory")];

/// The tool of that name.
pub fn find(name: &str) -> Option<&'static Tool> {
    let name = NAMES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, ours)| ours);
    TOOLS.iter().copied().find(|tool| tool.name == name)
}

/// The tool whose name is nearest to one that does not exist.
pub fn near(name: &str, sets: &[ToolSet]) -> Option<&'static str> {
    nearest(name, in_sets(sets).map(|tool| tool.name))
}

/// The tools of these sets.
pub fn in_sets(sets: &[ToolSet]) -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().copied().filter(move |tool| sets.contains(&tool.set))
}

/// The `tools` array of `tools/list`.
pub fn listing(sets: &[ToolSet], structured: bool) -> Vec<Value> {
    in_sets(sets).map(|tool| tool.listing(structured)).collect()
}
