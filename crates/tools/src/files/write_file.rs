//! `write_file`: a new file with its missing parents, or a whole file over one that was seen or whose digest is known.

use cotenant_coord::LineMap;
use cotenant_model::{Body, ClassHit, Code, Entry, FileOp, Op, Refusal, ToolSet};
use cotenant_text::{EditError, Encoding, Eol, Want};
use cotenant_tree::{Kind as Found, Place};

use super::edit_refusals::not_encodable;
use super::overwrite;
use crate::args::{Args, bad};
use crate::ctx::{Ctx, Loaded};
use crate::planned::{After, Planned};
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "write_file",
    title: "Write file",
    set: ToolSet::Core,
    about: "Create a file and its parent directories. To change a file prefer edit_file; to replace all of it set overwrite.",
    params: &[
        Param::required("path", Kind::Path, ""),
        Param::required("content", Kind::Text, ""),
        Param::new("overwrite", Kind::Flag, ""),
        Param::new(
            "expected_digest",
            Kind::Text,
            "From a header; needed to overwrite unless you saw all of it",
        ),
        Param::hidden("eol", Kind::Choice(&["lf", "crlf"])),
        Param::hidden("encoding", Kind::Text),
    ],
    destructive: true,
    run: Run::Change(run),
};

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let place = ctx.place(args.need("path"))?;
    let want = want(args)?;
    if place.is_absent() {
        return create(ctx, &place, args.need("content"), &want);
    }
    ctx.require_file(&place)?;
    if !args.flag("overwrite") {
        return Err(overwrite::already_exists(ctx, &place, "overwrite is false"));
    }
    replace(ctx, &place, args, &want)
}

fn want(args: &Args) -> Result<Want, Refusal> {
    let encoding = args.text("encoding").map(|label| {
        Encoding::from_label(label)
            .ok_or_else(|| bad(&TOOL, "encoding", &format!("{label} is no encoding that is known here")))
    });
    Ok(Want {
        eol: args.text("eol").and_then(Eol::from_label),
        encoding: encoding.transpose()?,
        ..Want::default()
    })
}

/// A plan that creates the file at `place`, with the directories that are missing, by `.editorconfig`'s rules where
/// `want` is silent.
pub fn create(ctx: &Ctx<'_>, place: &Place, content: &str, want: &Want) -> Result<Planned, Refusal> {
    ctx.writable(place)?;
    let rules = ctx.editorconfig(&place.real);
    let want = Want {
        eol: want.eol.or(rules.end_of_line),
        encoding: want.encoding.or(rules.charset),
        bom: want.bom.or(rules.bom),
        final_newline: want.final_newline.or(rules.insert_final_newline),
    };
    let bytes =
        cotenant_text::compose(content, None, &want).map_err(|error| unencodable(ctx, place, error))?;
    let mut ops = missing_dirs(place);
    ops.push(FileOp { at: place.real.clone(), op: Op::Create { new: Body::file(bytes), like: None } });
    Ok(created(ctx, place, Planned { ops, ..Planned::default() }))
}

/// A `mkdir` for each directory that is missing above `place`.
pub fn missing_dirs(place: &Place) -> Vec<FileOp> {
    let Found::Absent { missing } = &place.kind else { return Vec::new() };
    let mut at = place.real.clone();
    for _ in 0..=missing.len() {
        at = at.parent().unwrap_or_default();
    }
    missing
        .iter()
        .map(|name| {
            at = at.join(name);
            FileOp { at: at.clone(), op: Op::MakeDir { mode: None } }
        })
        .collect()
}

/// Completes a plan whose last operation creates a file: answer, classes, and what the session then knows.
pub fn created(ctx: &Ctx<'_>, place: &Place, mut planned: Planned) -> Planned {
    let bytes = match planned.ops.last() {
        Some(FileOp { op: Op::Create { new, .. }, .. }) => new.content.clone(),
        _ => return planned,
    };
    let dirs = planned.ops.len() - 1;
    planned.classes = vec![ClassHit::ordinary(); dirs];
    planned.classes.push(place.class.clone());
    planned.before = vec![None; planned.ops.len()];
    let loaded = Loaded::fresh(bytes.clone());
    let lines = loaded.as_ref().map_or(0, Loaded::line_count);
    let mut reply = Reply::new()
        .fact("path", ctx.show(&place.asked))
        .fact_if("resolved", place.through_link.then(|| ctx.show(&place.real)))
        .fact("created", true)
        .fact("lines", lines)
        .fact("bytes", bytes.len())
        .fact_if("directories", (dirs > 0).then_some(dirs));
    planned.change_at = reply.facts.len();
    let digest = bytes.digest();
    reply = form(reply.fact("digest", digest.to_string()), loaded.as_ref().ok());
    if let Some(twin) = ctx.tree_twin(&place.real) {
        reply = reply.notice(format!("{twin} stands beside it: the same letters in another Unicode form"));
    }
    planned.reply = reply;
    planned.after = vec![After {
        at: place.real.clone(),
        old: None,
        new: Some(digest),
        map: LineMap::default(),
        since: None,
        whole: Some(lines),
    }];
    planned
}

fn form(reply: Reply, loaded: Option<&Loaded>) -> Reply {
    let Some(loaded) = loaded else { return reply };
    let (eol, encoding) = (loaded.form.eol.name(), loaded.form.encoding.name());
    reply
        .fact_if("eol", (eol != "lf" && eol != "none").then_some(eol))
        .fact_if("encoding", (encoding != "utf-8").then(|| encoding.to_string()))
        .fact_if("bom", loaded.form.bom.then_some(true))
        .fact_if("final_newline", (!loaded.bytes.is_empty() && !loaded.form.final_newline).then_some(false))
}

fn replace(ctx: &Ctx<'_>, place: &Place, args: &Args, want: &Want) -> Result<Planned, Refusal> {
    ctx.writable(place)?;
    let old = ctx.load_any(place)?;
    overwrite::may_go(ctx, place, &old, args.text("expected_digest"), "overwriting replaces")?;
    let keep = old.text.then_some(&old.form);
    let bytes = cotenant_text::compose(args.need("content"), keep, want)
        .map_err(|error| unencodable(ctx, place, error))?;
    let new = Loaded::fresh_or_binary(bytes.into());
    if new.digest == old.digest {
        return Err(Refusal::new(
            Code::NothingToChange,
            format!("{} has these very bytes already; nothing was written.", ctx.show(&place.asked)),
        )
        .fact("path", ctx.show(&place.asked))
        .fact("digest", old.digest.to_string())
        .next("go on; the file is as you want it"));
    }
    let lines = new.line_count();
    let chosen = want.eol.map(|eol| eol.name());
    let reply = Reply::new()
        .fact("path", ctx.show(&place.asked))
        .fact_if("resolved", place.through_link.then(|| ctx.show(&place.real)))
        .fact("overwritten", true)
        .fact("lines", lines)
        .fact("was", old.line_count())
        .fact("bytes", new.bytes.len());
    let change_at = reply.facts.len();
    let mut reply = form(reply.fact("digest", new.digest.to_string()), Some(&new));
    if let Some(eol) = chosen.filter(|_| !reply.facts.iter().any(|fact| fact.name == "eol")) {
        reply = reply.fact("eol", eol);
    }
    Ok(Planned {
        ops: vec![FileOp {
            at: place.real.clone(),
            op: Op::Replace { old: Entry::file(old.digest), new: Body::file(new.bytes.clone()) },
        }],
        classes: vec![place.class.clone()],
        before: vec![Some(old.bytes.clone())],
        reply,
        change_at,
        after: vec![After {
            at: place.real.clone(),
            old: Some(old.digest),
            new: Some(new.digest),
            map: LineMap::default(),
            since: None,
            whole: Some(lines),
        }],
        ..Planned::default()
    })
}

fn unencodable(ctx: &Ctx<'_>, place: &Place, error: EditError) -> Refusal {
    let shown = ctx.show(&place.asked);
    match error {
        EditError::NotEncodable { ch, encoding, line, column, .. } => {
            not_encodable(&shown, ch, &encoding.name(), line, column)
        }
        other => Refusal::new(Code::BadInput, format!("{other}; nothing was written.")).fact("path", shown),
    }
}
