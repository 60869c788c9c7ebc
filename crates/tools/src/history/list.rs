//! `history`: changes, newest first, one a line.

use cotenant_ledger::{Query, Since};
use cotenant_model::{
    Change, ChangeId, ChangeKind, Code, Fact, FactValue, FolderId, Millis, Outcome, Refusal, ToolSet, WsPath,
};
use serde_json::{Value, json};

use crate::args::Args;
use crate::ctx::Ctx;
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "history",
    title: "History",
    set: ToolSet::History,
    about: "Changes, newest first: id, time, agent, tool, files.",
    params: &[
        Param::new("path", Kind::Text, ""),
        Param::new("agent", Kind::Text, "me, or a name"),
        Param::new("turn", Kind::Number, ""),
        Param::new("since", Kind::Text, "c41, 2h or a time"),
        Param::new("limit", Kind::Number, "50"),
    ],
    destructive: false,
    run: Run::Look(run),
};

/// Changes at most.
const MOST: usize = 1000;
/// Files that a line names.
const FILES: usize = 5;

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Reply, Refusal> {
    let limit = args.count("limit").unwrap_or(50).clamp(1, MOST);
    let agent = match args.text("agent") {
        Some("me") => ctx.ws.coord().session(ctx.session).map(|me| me.agent.to_string()),
        other => other.map(str::to_owned),
    };
    let turn = args.count("turn").and_then(|turn| u32::try_from(turn).ok());
    let query = Query {
        path: path(ctx, args)?,
        agent,
        // Turns are numbered within a session: without another agent's name, this one's are meant.
        session: turn.filter(|_| matches!(args.text("agent"), None | Some("me"))).map(|_| ctx.session),
        turn,
        since: args.text("since").map(|text| since(ctx, &TOOL, text)).transpose()?,
        aborted: false,
        limit: limit + 1,
    };
    let mut changes = ctx.ws.ledger().history(&query).map_err(|error| error.refusal())?;
    let more = changes.len() > limit;
    changes.truncate(limit);
    let lines: Vec<String> = changes.iter().map(|change| line(ctx, change)).collect();
    let list: Vec<Value> = changes.iter().map(|change| json(ctx, change)).collect();
    let mut reply = Reply::new().fact_if("path", args.text("path")).fact("changes", changes.len());
    if more && let Some(last) = changes.last() {
        reply = reply.fact("more", true).notice(format!(
            "older changes are left out after {}: raise limit (at most {MOST}), or narrow by path, agent or since",
            last.id
        ));
    }
    Ok(reply.content(lines.join("\n")).field("changes", list))
}

/// The path to list. One that is gone has a history, too; only its form is checked. `.` is everything.
pub(super) fn path(ctx: &Ctx<'_>, args: &Args) -> Result<Option<WsPath>, Refusal> {
    let path = args.text("path").map(|text| ctx.path(text)).transpose()?;
    Ok(path.filter(|at| !(at.path.is_root() && at.folder == FolderId::ROOT)))
}

/// A point to list from: a change, an age such as `2h`, or an RFC 3339 time.
pub(super) fn since(ctx: &Ctx<'_>, tool: &Tool, text: &str) -> Result<Since, Refusal> {
    let text = text.trim();
    if let Ok(change) = text.parse::<ChangeId>() {
        return Ok(Since::Change(change));
    }
    let unit = |ch| match ch {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        'w' => Some(604_800),
        _ => None,
    };
    let age = text.chars().last().and_then(unit).and_then(|unit| {
        let number: u64 = text[..text.len() - 1].trim().parse().ok()?;
        number.checked_mul(unit * 1000)
    });
    if let Some(age) = age {
        return Ok(Since::Time(Millis(ctx.ws.clock().wall().0.saturating_sub(age))));
    }
    Millis::parse_rfc3339(text).map(Since::Time).ok_or_else(|| {
        Refusal::new(
            Code::BadInput,
            format!("since={text:?} is no change id, age or time; nothing was listed."),
        )
        .fact("tool", tool.name)
        .fact("argument", "since")
        .next(ctx.call(tool.name, json!({"since": "2h"})))
    })
}

/// One line of the listing: `c121 2026-11-30T15:44:02Z agent=… tool=… files=…`.
fn line(ctx: &Ctx<'_>, change: &Change) -> String {
    let mut text = format!("{} {}", change.id, change.time.rfc3339());
    let mut add = |name: &'static str, value: FactValue| {
        text.push(' ');
        text.push_str(&Fact { name: name.into(), value }.to_string());
    };
    if change.kind == ChangeKind::Observed {
        add("kind", "observed".into());
        add("class", class(change).into());
    }
    if let Some(agent) = &change.agent {
        add("agent", (&**agent).into());
    }
    if !change.tool.is_empty() {
        add("tool", (&*change.tool).into());
    }
    if let Some(task) = &change.task {
        add("task", (&**task).into());
    }
    if let Some(undone) = change.undoes {
        add("undoes", undone.to_string().into());
    }
    if change.outcome != Outcome::Sealed {
        add("outcome", outcome(change.outcome).into());
    }
    let mut files: Vec<String> = change.files.iter().take(FILES).map(|file| ctx.show(&file.at)).collect();
    if change.files.len() > FILES {
        files.push(format!("+{}", change.files.len() - FILES));
    }
    add("files", files.into());
    text
}

fn class(change: &Change) -> &'static str {
    // Before the watcher exists, an observed change is one that the commit found in its way: whose, is not known.
    if change.agent.is_some() { "own_lease" } else { "unknown" }
}

/// The word for how a change ended.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Open => "open",
        Outcome::Sealed => "sealed",
        Outcome::Aborted => "aborted",
        Outcome::Overtaken => "overtaken",
    }
}

/// A change for programs.
pub fn json(ctx: &Ctx<'_>, change: &Change) -> Value {
    let files: Vec<Value> =
        change.files.iter().map(|file| json!({"path": ctx.show(&file.at), "op": file.op.name()})).collect();
    let mut value = json!({
        "id": change.id.to_string(),
        "time": change.time.rfc3339(),
        "tool": &*change.tool,
        "kind": if change.kind == ChangeKind::Planned { "planned" } else { "observed" },
        "evidence": if change.kind == ChangeKind::Planned { "mediated" } else { "unknown" },
        "outcome": outcome(change.outcome),
        "turn": change.turn,
        "files": files,
    });
    if let Some(map) = value.as_object_mut() {
        if let Some(agent) = &change.agent {
            map.insert("agent".to_owned(), (&**agent).into());
        }
        if let Some(task) = &change.task {
            map.insert("task".to_owned(), (&**task).into());
        }
        if change.kind == ChangeKind::Observed {
            map.insert("class".to_owned(), class(change).into());
        }
        if let Some(undone) = change.undoes {
            map.insert("undoes".to_owned(), undone.to_string().into());
        }
    }
    value
}
