//! `apply_patch`: three grammars, every hunk at its one place, all files or none.

mod canvas;
mod conflicts;
mod report;

use std::collections::BTreeMap;

use cotenant_model::{Code, Refusal, ToolSet};
use cotenant_text::patch::{self, Malformed, Patch};
use serde_json::{Value, json};

use crate::args::{Args, bad};
use crate::ctx::Ctx;
use crate::planned::Planned;
use crate::tool::{Kind, Param, Run, Tool};

use canvas::Canvas;
use conflicts::Conflicts;

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "apply_patch",
    title: "Apply patch",
    set: ToolSet::Core,
    about: "Apply a patch over one or more files: unified or git diff, `*** Begin Patch`, or SEARCH/REPLACE blocks (detected). All files or none. Each hunk must fit at one place, or exactly at its stated line.",
    params: &[
        Param::required("patch", Kind::Text, ""),
        Param::new("dry_run", Kind::Flag, ""),
        Param::hidden("strip", Kind::Number),
        Param::hidden("cwd", Kind::Text),
        Param::hidden("skip", Kind::List),
        Param::hidden("accept", Kind::List),
        Param::hidden("paths", Kind::Object),
    ],
    destructive: true,
    run: Run::Change(run),
};

/// What the arguments say beside the patch.
#[derive(Debug, Default)]
struct Wishes {
    /// The directory that names are relative to; empty is the root.
    base: String,
    /// Hunks and files that are left out: `PATH#N`, `PATH`.
    skip: Vec<String>,
    /// Hunks that are applied as a refusal proposed: `PATH#N@LINE`.
    accept: Vec<String>,
    /// Names in the patch and what they mean here.
    paths: BTreeMap<String, String>,
}

impl Wishes {
    fn of(args: &Args, patch: &Patch) -> Result<Wishes, Refusal> {
        let mut base = args.text("cwd").unwrap_or_default().to_owned();
        // What a `cd DIR &&` before the command says is relative to the command's own directory.
        if let Some(cd) = &patch.cd {
            base = joined(&base, cd);
        }
        let own = |name: &str| args.texts(name).into_iter().map(str::to_owned).collect();
        Ok(Wishes { base, skip: own("skip"), accept: own("accept"), paths: renamed(args)? })
    }

    /// The ordinals of a file's hunks that are left out; `None`: all of it is.
    fn skipped(&self, label: &str) -> Option<Vec<usize>> {
        if self.skip.iter().any(|skip| skip == label) {
            return None;
        }
        let hunk = |skip: &String| skip.strip_prefix(label)?.strip_prefix('#')?.parse().ok();
        Some(self.skip.iter().filter_map(hunk).collect())
    }

    fn accepts(&self, label: &str, hunk: usize, line: usize) -> bool {
        self.accept.iter().any(|accept| *accept == accepted(label, hunk, line))
    }
}

/// The name of a proposal: which hunk, and where it would go.
fn accepted(label: &str, hunk: usize, line: usize) -> String {
    format!("{label}#{hunk}@{line}")
}

/// `paths`: texts by texts.
fn renamed(args: &Args) -> Result<BTreeMap<String, String>, Refusal> {
    let Some(map) = args.value("paths").and_then(Value::as_object) else { return Ok(BTreeMap::new()) };
    let pair = |(from, to): (&String, &Value)| Some((from.clone(), to.as_str()?.to_owned()));
    let pairs: Option<BTreeMap<String, String>> = map.iter().map(pair).collect();
    pairs.ok_or_else(|| bad(&TOOL, "paths", "paths must be an object of texts: {\"named\": \"meant\"}"))
}

/// A path below a directory, both as they were written.
fn joined(base: &str, path: &str) -> String {
    match base.trim_end_matches('/') {
        "" | "." => path.to_owned(),
        _ if path.starts_with('/') => path.to_owned(),
        base => format!("{base}/{path}"),
    }
}

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let options = patch::Options { strip: args.count("strip") };
    let patch = patch::parse(args.need("patch"), &options).map_err(|error| malformed(ctx, &error))?;
    let wishes = Wishes::of(args, &patch)?;
    let mut canvas = Canvas::new(ctx, &wishes, patch.grammar);
    let mut conflicts = Conflicts::default();
    let mut done = Vec::with_capacity(patch.files.len());
    for file in &patch.files {
        match canvas.put(file)? {
            canvas::Put::Done(one) => done.push(one),
            canvas::Put::Skipped => {}
            canvas::Put::Conflict(conflict) => conflicts.add(conflict),
        }
    }
    if !conflicts.is_empty() {
        return Err(conflicts.refusal(ctx, &wishes, patch.files.len(), &done));
    }
    report::planned(ctx, &patch, canvas, &done)
}

/// `PATCH_MALFORMED`, with what was received.
fn malformed(ctx: &Ctx<'_>, error: &Malformed) -> Refusal {
    let why = format!("Line {} of the patch: {}. There stands: {}", error.line, error.what, error.seen);
    let next = format!("send {}", error.accepted);
    Refusal::new(Code::PatchMalformed, format!("{why}. Nothing was written."))
        .fact("line", error.line)
        .next(format!("{next}; or {} for a single change", ctx.call("edit_file", json!({"path": "…"}))))
}
