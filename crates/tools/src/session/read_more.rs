//! `read_more`: the rest of a shortened answer, or only its matching lines.

use cotenant_model::{Code, HandleId, Refusal, ToolSet};
use cotenant_shell::run::{Output, plain};
use regex::RegexBuilder;
use serde_json::json;

use crate::args::Args;
use crate::ctx::Ctx;
use crate::reply::Reply;
use crate::shell::from;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "read_more",
    title: "Read more",
    set: ToolSet::Core,
    about: "The rest of a shortened answer; with pattern only matching lines, e.g. the failures in a long log, without running it again.",
    params: &[
        Param::required("handle", Kind::Text, ""),
        Param::new("offset", Kind::Number, ""),
        Param::new("limit", Kind::Number, ""),
        Param::new("pattern", Kind::Text, "Regex"),
        Param::hidden("context_lines", Kind::Number),
    ],
    destructive: false,
    run: Run::Look(run),
};

/// Matching lines of an answer at most.
const MATCHES: usize = 200;
/// Bytes of a command's output that are searched.
const SEARCHED: usize = 64 << 20;

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Reply, Refusal> {
    let name = args.need("handle");
    let id = name.trim().parse::<HandleId>().ok();
    let kept = id.and_then(|id| ctx.ws.coord().handle(ctx.session, id, ctx.now));
    if let Some(job) = id.and_then(|id| ctx.jobs.by_handle(ctx.session, id)) {
        return of_command(ctx, args, name, job.process.output());
    }
    let Some(kept) = kept else {
        return Err(Refusal::new(
            Code::HandleExpired,
            format!("{name} is no handle of this session, or it has expired."),
        )
        .fact("handle", name)
        .next("send the call that gave it again"));
    };
    let text = String::from_utf8_lossy(&kept.bytes).into_owned();
    match args.text("pattern") {
        Some(pattern) => matching(ctx, args, name, &text, pattern),
        None => Ok(rest(ctx, args, name, &text)),
    }
}

/// The output of a command, which may be larger than memory: read where it is asked for.
fn of_command(ctx: &Ctx<'_>, args: &Args, name: &str, output: &Output) -> Result<Reply, Refusal> {
    if let Some(pattern) = args.text("pattern") {
        let bytes = output.read(0, SEARCHED);
        let next = bytes.len() as u64;
        let reply = matching(ctx, args, name, &plain(&bytes), pattern)?;
        return Ok(match next < output.len() {
            true => reply.fact("searched_bytes", next).fact("of", output.len()),
            false => reply,
        });
    }
    let start = args.count("offset").unwrap_or(0) as u64;
    let most = args.count("limit").unwrap_or(usize::MAX).min(ctx.answer_bytes(args)).max(1);
    let (start, mut bytes) = from(output, start, most);
    let mut next = start + bytes.len() as u64;
    // Whole lines, unless there is none.
    if next < output.len()
        && let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n')
    {
        next -= (bytes.len() - end - 1) as u64;
        bytes.truncate(end + 1);
    }
    let begin = next - bytes.len() as u64;
    let reply =
        Reply::new().fact("handle", name).fact("bytes", format!("{begin}-{next}")).fact("of", output.len());
    let reply = if next < output.len() { reply.fact("next_offset", next) } else { reply };
    Ok(reply.content(plain(&bytes).trim_end_matches('\n')))
}

/// Lines from `offset` (a byte, moved to the start of its line) on.
fn rest(ctx: &Ctx<'_>, args: &Args, name: &str, text: &str) -> Reply {
    let start = args.count("offset").unwrap_or(0).min(text.len());
    let start = text.as_bytes()[..start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let most = args.count("limit").unwrap_or(usize::MAX).min(ctx.answer_bytes(args)).max(1);
    let mut end = start;
    for line in text[start..].split_inclusive('\n') {
        if end > start && end + line.len() - start > most {
            break;
        }
        end += line.len();
    }
    let page = &text[start..end];
    let reply =
        Reply::new().fact("handle", name).fact("bytes", format!("{start}-{end}")).fact("of", text.len());
    let reply = if end < text.len() { reply.fact("next_offset", end) } else { reply };
    reply.content(page.trim_end_matches('\n'))
}

fn matching(ctx: &Ctx<'_>, args: &Args, name: &str, text: &str, pattern: &str) -> Result<Reply, Refusal> {
    let size = ctx.limits().regex_bytes;
    let regex =
        RegexBuilder::new(pattern).size_limit(size).dfa_size_limit(size.max(1 << 20)).build().map_err(
            |error| {
                let code = match error {
                    regex::Error::CompiledTooBig(_) => Code::PatternTooLarge,
                    _ => Code::PatternInvalid,
                };
                Refusal::new(code, format!("{error}"))
                    .fact("pattern", pattern)
                    .next(ctx.call("read_more", json!({"handle": name})))
            },
        )?;
    let context = args.count("context_lines").unwrap_or(0).min(ctx.limits().context);
    let skip = args.count("offset").unwrap_or(0);
    let limit = args.count("limit").unwrap_or(MATCHES).max(1);
    let lines: Vec<&str> = text.lines().collect();
    let hits: Vec<usize> = (0..lines.len()).filter(|index| regex.is_match(lines[*index])).collect();
    let mut out = String::new();
    let (mut shown, mut next) = (0, 0);
    for hit in hits.iter().skip(skip).take(limit) {
        let from = hit.saturating_sub(context).max(next);
        let to = (hit + context).min(lines.len() - 1);
        for (number, line) in lines.iter().enumerate().take(to + 1).skip(from) {
            let mark = if hits.binary_search(&number).is_ok() { ':' } else { '-' };
            out.push_str(&format!("{}{mark}{line}\n", number + 1));
        }
        next = next.max(to + 1);
        shown += 1;
        if out.len() > ctx.answer_bytes(args) {
            break;
        }
    }
    let reply = Reply::new().fact("handle", name).fact("pattern", pattern).fact("matches", hits.len());
    let reply = if skip + shown < hits.len() {
        reply.fact("shown", shown).fact("next_offset", skip + shown)
    } else {
        reply
    };
    Ok(reply.content(out.trim_end_matches('\n')))
}
