//! What a tool is: one entry of the registry, from which the MCP schema, the sub-command and the docs page come.

use cotenant_model::{Refusal, ToolSet};
use serde_json::{Map, Value, json};

use crate::args::Args;
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::reply::Reply;

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A path of the workspace; calls on overlapping paths keep their order (R17).
    Path,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// true or false.
    Flag,
    /// A whole number.
    Number,
    /// Texts.
    List,
    /// `[{old_text, new_text, replace_all}]`.
    Edits,
    /// Any object.
    Object,
    /// A command line; also taken as an array of words.
    Command,
}

/// What is done with commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One is run.
    Run,
    /// A job's new output, or its end, is waited for.
    Output,
    /// A job is ended.
    Stop,
    /// A sandbox is opened.
    ExecOpen,
    /// A command is run in a sandbox.
    ExecRun,
    /// What a sandbox holds becomes a plan.
    ExecPromote,
    /// A sandbox is thrown away.
    ExecClose,
}

/// An argument.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether the schema requires it. A flag may be left out all the same: the schema asks for it so that a model
    /// decides.
    pub required: bool,
    /// Whether the schema lists it; the others are taught by `next`.
    pub listed: bool,
    /// What the schema says of it; may be empty.
    pub about: &'static str,
}

impl Param {
    /// A listed argument that may be left out.
    pub const fn new(name: &'static str, kind: Kind, about: &'static str) -> Param {
        Param { name, kind, required: false, listed: true, about }
    }

    /// A required argument.
    pub const fn required(name: &'static str, kind: Kind, about: &'static str) -> Param {
        Param { name, kind, required: true, listed: true, about }
    }

    /// An argument that is accepted but not listed.
    pub const fn hidden(name: &'static str, kind: Kind) -> Param {
        Param { name, kind, required: false, listed: false, about: "" }
    }
}

/// What a tool does.
#[derive(Clone, Copy)]
pub enum Run {
    /// Looks: request and capability in, outcome out.
    Look(fn(&Ctx<'_>, &Args) -> Result<Reply, Refusal>),
    /// Makes a plan. The pipeline carries it out.
    Change(fn(&Ctx<'_>, &Args) -> Result<Planned, Refusal>),
    /// Repeats an earlier call; the toolbox itself does it.
    Retry,
    /// Has to do with commands; the toolbox itself does it.
    Shell(Verb),
}

/// A tool.
pub struct Tool {
    /// Its name on the wire.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The set it belongs to.
    pub set: ToolSet,
    /// When to use it, and what to use instead.
    pub about: &'static str,
    /// Its arguments, in the order of positional ones on the command line.
    pub params: &'static [Param],
    /// Whether what it changes may destroy (`destructiveHint`, true by default in the protocol).
    pub destructive: bool,
    /// What it does.
    pub run: Run,
}

impl Tool {
    /// Whether it can change the workspace.
    pub fn mutates(&self) -> bool {
        !matches!(self.run, Run::Look(_) | Run::Shell(Verb::Output))
    }

    /// Whether it has an argument of that name.
    pub fn takes(&self, name: &str) -> bool {
        self.params.iter().any(|param| param.name == name)
    }

    /// Its entry of `tools/list`.
    pub fn listing(&self, structured: bool) -> Value {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), self.name.into());
        entry.insert("title".to_owned(), self.title.into());
        entry.insert("description".to_owned(), self.about.into());
        entry.insert("inputSchema".to_owned(), self.schema());
        if structured {
            entry.insert("outputSchema".to_owned(), json!({"type": "object"}));
        }
        let mut hints = Map::new();
        if !self.mutates() {
            hints.insert("readOnlyHint".to_owned(), true.into());
        } else if !self.destructive {
            hints.insert("destructiveHint".to_owned(), false.into());
        }
        hints.insert("openWorldHint".to_owned(), false.into());
        entry.insert("annotations".to_owned(), hints.into());
        entry.into()
    }

    fn schema(&self) -> Value {
        let listed = self.params.iter().filter(|param| param.listed);
        let properties: Map<String, Value> =
            listed.clone().map(|param| (param.name.to_owned(), property(param))).collect();
        let required: Vec<&str> = listed.filter(|param| param.required).map(|param| param.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.into()
    }
}

fn property(param: &Param) -> Value {
    let mut property = match param.kind {
        Kind::Text | Kind::Path | Kind::Command => json!({"type": "string"}),
        Kind::Choice(words) => json!({"type": "string", "enum": words}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Number => json!({"type": "integer"}),
        Kind::List => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Edits => json!({"type": "array", "items": {"type": "object", "properties": {
            "old_text": {"type": "string"}, "new_text": {"type": "string"}, "replace_all": {"type": "boolean"}},
            "required": ["old_text", "new_text"]}}),
        Kind::Object => json!({"type": "object"}),
    };
    if !param.about.is_empty()
        && let Some(map) = property.as_object_mut()
    {
        map.insert("description".to_owned(), param.about.into());
    }
    property
}
