//! `retry`: repeats a refused, pending or dry-run call by its token, sending only what changes.

use cotenant_model::ToolSet;

use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry. What it does is the toolbox's: it repeats any other tool.
pub const TOOL: Tool = Tool {
    name: "retry",
    title: "Retry call",
    set: ToolSet::Core,
    about: "Repeat a refused or pending call by its token, sending only what changes, never the text again. Collects an approval.",
    params: &[
        Param::required("token", Kind::Text, "retry=… of the refusal"),
        Param::new("set", Kind::Object, "Arguments to change"),
        Param::new("wait_s", Kind::Number, "0 to 50"),
    ],
    destructive: true,
    run: Run::Retry,
};
