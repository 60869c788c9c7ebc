//! Whether all of a file may go, replaced or deleted: what must have been shown of it, and what a refusal then says.

use cotenant_coord::{LineSet, OverwriteDecision, decide_overwrite};
use cotenant_model::{Code, Refusal};
use cotenant_tree::Place;
use serde_json::json;

use crate::ctx::{Ctx, Loaded};

/// Bytes of the existing file's first lines that a refusal shows.
const GLIMPSE: usize = 60;

/// Refuses unless the session was shown all of the file that stands at `place`, or named its digest. `doing` is what
/// would become of it: `overwriting replaces`.
pub fn may_go(
    ctx: &Ctx<'_>,
    place: &Place,
    old: &Loaded,
    expected: Option<&str>,
    doing: &str,
) -> Result<(), Refusal> {
    let shown = ctx.show(&place.asked);
    let standing = ctx.standing(&place.real, old.digest);
    let digest = old.digest.to_string();
    let again = || {
        let set = json!({"token": ctx.retry_token(), "set": {"expected_digest": digest}});
        format!("if all of it shall go: {}", ctx.call("retry", set))
    };
    let refusal = |why: String| {
        let why = format!("{why}, and {doing} all of it. Nothing was written.");
        Refusal::new(Code::EditRequiresPriorRead, why)
            .fact("path", shown.as_str())
            .fact("lines", old.line_count())
    };
    match decide_overwrite(&standing, expected, old.digest) {
        OverwriteDecision::Go => Ok(()),
        OverwriteDecision::NeedsRead => {
            let look = match old.text {
                true => format!("{} and look", ctx.call("read_file", json!({"path": shown}))),
                false if old.content().is_some() => "it is not text".to_owned(),
                false => old.why_not_text.clone(),
            };
            let refusal = refusal(format!("You have not seen {shown} in this session"));
            let refusal = refusal.fact("bytes", ctx.size(place));
            Err(refusal.fact("digest", digest.as_str()).next(format!("{look}; {}", again())))
        }
        OverwriteDecision::NotWhole { seen } => {
            let seen = ranges(&seen);
            let refusal =
                refusal(format!("You have seen only {seen} of the {} lines of {shown}", old.line_count()));
            let way = if doing.starts_with("overwriting") { "edit_file for a part" } else { "read the rest" };
            let refusal = refusal.fact("seen", seen).fact("digest", digest.as_str());
            Err(refusal.next(format!("{way}; {}", again())))
        }
        OverwriteDecision::Changed => Err(ctx.changed_since(place, old, false)),
    }
}

/// `ALREADY_EXISTS` of a file, with what one must know to go on.
pub fn already_exists(ctx: &Ctx<'_>, place: &Place, why: &str) -> Refusal {
    let shown = ctx.show(&place.asked);
    let old = match ctx.weigh(place) {
        Ok(old) => old,
        Err(refusal) => return refusal,
    };
    let digest = old.digest.to_string();
    let refusal = Refusal::new(
        Code::AlreadyExists,
        format!(
            "{shown} exists and {why}. {}Nothing was written. Last change: {}.",
            old.glimpse(GLIMPSE),
            ctx.who_changed(&place.real)
        ),
    )
    .fact("path", shown.as_str())
    .fact("lines", old.line_count())
    .fact("bytes", ctx.size(place))
    .fact("digest", digest.as_str());
    if !ctx.tool.takes("overwrite") {
        let read = ctx.call("read_file", json!({"path": shown}));
        return refusal.next(format!("{read}, then edit_file a part of it"));
    }
    let set = json!({"overwrite": true, "expected_digest": digest});
    let over = ctx.call("retry", json!({"token": ctx.retry_token(), "set": set}));
    refusal.next(match ctx.tool.takes("content") {
        true => format!("to replace it, {over} (the content is kept, do not send it again); to change part of it, read_file and edit_file"),
        false => format!("to replace it, {over}; its content is kept in the history"),
    })
}

/// Line ranges as `1-100,200-220`.
fn ranges(lines: &LineSet) -> String {
    let list: Vec<String> = lines.ranges().iter().map(|(first, last)| format!("{first}-{last}")).collect();
    list.join(",")
}
