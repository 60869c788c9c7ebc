//! What `edit_file` says when the text does not fit: the cause, the nearest places, and a call that works.

use cotenant_coord::Standing;
use cotenant_model::{Code, Refusal};
use cotenant_text::{Cause, EditError, EditSpec, Miss, Suggestion, View};
use cotenant_tree::Place;
use serde_json::{Value, json};

use super::edit_file::{Edit, same, suggestion_call};
use crate::ctx::{Ctx, Loaded};

/// Bytes of the lines that a refusal shows.
const SHOWN: usize = 2000;

/// The refusal for an edit that [`cotenant_text::apply`] would not do.
pub fn unfit(ctx: &Ctx<'_>, place: &Place, loaded: &Loaded, edits: &[Edit], error: EditError) -> Refusal {
    let shown = ctx.show(&place.asked);
    let item = (edits.len() > 1).then(|| error.item() + 1);
    let refusal = match error {
        EditError::EmptyOld { .. } => Refusal::new(
            Code::BadInput,
            format!(
                "old_text is empty and {shown} exists; an empty text is everywhere. Nothing was written."
            ),
        )
        .fact("path", shown.as_str())
        .next(
            "copy the line beside which you want to add something into old_text, and repeat it in new_text",
        ),
        EditError::Same { eol_only, .. } => return same(&shown, eol_only, item),
        EditError::NotFound { item, miss } => {
            let at_fault = edits.get(item).unwrap_or(&edits[0]);
            Missed { ctx, place, loaded, edits, item, edit: at_fault }.refusal(*miss)
        }
        EditError::Ambiguous { item, count, lines, places } => {
            ambiguous(ctx, &shown, (edits.len() > 1).then_some(item), count, &lines, &places)
        }
        EditError::NotEncodable { ch, encoding, line, column, .. } => {
            not_encodable(&shown, ch, &encoding.name(), line, column)
        }
    };
    match item {
        Some(item) if refusal.get("item").is_none() => refusal.fact("item", item),
        _ => refusal,
    }
}

/// The refusal of a path that is not there: where one of the paths that may be meant has the text, with the call that edits that.
pub fn misnamed(ctx: &Ctx<'_>, named: &str, edits: &[Edit], refusal: Refusal) -> Refusal {
    if refusal.code != Code::NotFound || refusal.get("moved_to").is_some() {
        return refusal;
    }
    let near = ctx.path(named).map(|at| ctx.ws.tree().near(&at)).unwrap_or_default();
    // The prefix of a diff, left on the name.
    let bare = named.split_once('/').map(|(_, rest)| rest.to_owned());
    let mut meant: Vec<String> = bare.into_iter().chain(near.iter().map(|at| ctx.show(at))).collect();
    let specs: Vec<EditSpec<'_>> = edits.iter().map(Edit::spec).collect();
    let tolerance = ctx.tolerance();
    meant.retain(|path| {
        let loaded = ctx
            .place(path)
            .ok()
            .filter(|place| place.stat().is_some())
            .and_then(|place| ctx.load(&place).ok());
        loaded.is_some_and(|loaded| {
            cotenant_text::apply(&loaded.bytes, &loaded.form, &specs, &tolerance).is_ok()
        })
    });
    meant.dedup();
    let [meant] = meant.as_slice() else { return refusal };
    let retry = ctx.call("retry", json!({"token": ctx.retry_token(), "set": {"path": meant}}));
    refusal.next(format!("{retry} edits that file, which has the text"))
}

/// `NOT_ENCODABLE`, naming the character.
pub fn not_encodable(shown: &str, ch: char, encoding: &str, line: usize, column: usize) -> Refusal {
    let name = format!("U+{:04X}", ch as u32);
    Refusal::new(
        Code::NotEncodable,
        format!("{shown} is {encoding}, which has no {name} ({}); it stands in line {line}, column {column} of what you sent. Nothing was written.", ch.escape_debug()),
    )
    .fact("path", shown)
    .fact("encoding", encoding)
    .fact("character", name)
    .next("write it with characters of that encoding, or write_file the whole file with encoding=utf-8")
}

fn ambiguous(
    ctx: &Ctx<'_>,
    shown: &str,
    item: Option<usize>,
    count: usize,
    lines: &[usize],
    places: &[cotenant_text::Place],
) -> Refusal {
    let list: Vec<String> = lines.iter().map(usize::to_string).collect();
    let mut block = String::new();
    for place in places {
        if let Some((number, before)) = &place.before {
            block.push_str(&format!("{number}|{before}\n"));
        }
        block.push_str(&format!("{}|{}\n--\n", place.lines.0, place.text));
    }
    let tells_apart =
        if places.iter().any(|place| place.before.is_some()) { " What stands before each:" } else { "" };
    let refusal = Refusal::new(
        Code::TextAmbiguous,
        format!("old_text occurs {count} times; nothing was written.{tells_apart}"),
    )
    .fact("path", shown)
    .fact("count", count)
    .fact("lines", list)
    .block(block.trim_end_matches("--\n"));
    if item.is_some() {
        return refusal
            .next("send the edits again with more lines in that old_text, or with replace_all in that item");
    }
    let token = ctx.retry_token();
    let all = if count == 2 { "both".to_owned() } else { format!("all {count}") };
    // A line tells only one that stands alone on it; the second is as good an example as any.
    let alone = |line: &&usize| lines.iter().filter(|other| other == line).count() == 1;
    let Some(line) = lines.iter().skip(1).find(alone).or(lines.iter().find(alone)) else {
        let next = ctx.call("retry", json!({"token": token, "set": {"replace_all": true}}));
        return refusal.next(format!("{next} takes {all}; for one of them copy more of the lines around it"));
    };
    refusal.next(format!(
        "{} takes the one at line {line}; {{\"replace_all\":true}} takes {all}",
        ctx.call("retry", json!({"token": token, "set": {"line": line}}))
    ))
}

/// A text that was not found, with everything that helps to tell why.
struct Missed<'a> {
    ctx: &'a Ctx<'a>,
    place: &'a Place,
    loaded: &'a Loaded,
    edits: &'a [Edit],
    item: usize,
    edit: &'a Edit,
}

impl Missed<'_> {
    fn refusal(&self, miss: Miss) -> Refusal {
        let ctx = self.ctx;
        let tries = ctx.tries(&self.place.real, Code::TextNotFound, miss.cause.name());
        if miss.cause != Cause::AlreadyApplied
            && let Some(stale) = self.stale(&miss)
        {
            return stale;
        }
        let refusal = self.base(miss.cause.name(), tries);
        if let Some(suggestion) = &miss.suggestion {
            return self.suggested(refusal, &miss, suggestion);
        }
        if miss.cause == Cause::Unknown
            && let Some(elsewhere) = self.elsewhere(&refusal, &miss)
        {
            return elsewhere;
        }
        self.nearest(refusal, &miss, tries)
    }

    fn base(&self, cause: &str, tries: u32) -> Refusal {
        let refusal = Refusal::new(Code::TextNotFound, String::new())
            .fact("path", self.ctx.show(&self.place.asked))
            .fact("cause", cause);
        if tries >= 3 { refusal.fact("tries", tries) } else { refusal }
    }

    /// The text stood there when the session read the file.
    fn stale(&self, miss: &Miss) -> Option<Refusal> {
        let ctx = self.ctx;
        let Standing::Stale { shown, .. } = ctx.standing(&self.place.real, self.loaded.digest) else {
            return None;
        };
        let old = Loaded::known(ctx.image(shown)?, &self.loaded.form);
        let old_view = View::new(&old.bytes, &old.form);
        let wanted = self.edit.old.replace("\r\n", "\n");
        let at = memchr_find(old_view.as_bytes(), wanted.as_bytes())?;
        let lines = (old_view.line_of(at), old_view.line_of(at + wanted.len().saturating_sub(1)));
        let regions =
            cotenant_text::changed_regions(&old.bytes, &old.form, &self.loaded.bytes, &self.loaded.form);
        let region =
            regions.iter().find(|region| region.old.start <= lines.1 + 1 && lines.0 <= region.old.end + 1)?;
        let view = View::new(&self.loaded.bytes, &self.loaded.form);
        let window = (region.new.start.saturating_sub(1).max(1), (region.new.end + 1).min(view.line_count()));
        ctx.saw(self.place, self.loaded, &[window], false);
        let who = ctx.who_changed(&self.place.real);
        let mut refusal = self.base("stale", 1);
        refusal.message =
            format!("old_text stood at lines {}-{} when you read the file; {who}. Now:", lines.0, lines.1);
        let next = match ctx.newest_change(&self.place.real) {
            Some(change) => {
                format!(
                    "take old_text from these lines (they count as read), or {}",
                    ctx.call("show_change", json!({"change": change}))
                )
            }
            None => "take old_text from these lines; they count as read".to_owned(),
        };
        // Only lines around those that the edit changes are others now; what stands elsewhere is not meant.
        let there = |suggestion: &&Suggestion| {
            let (first, last) = suggestion.lines;
            first <= window.1 && window.0 <= last
        };
        let next = match miss.suggestion.as_ref().filter(there) {
            Some(suggestion) => format!("{}; else {next}", self.offer(suggestion)),
            None => next,
        };
        Some(refusal.block(cotenant_text::window(&view, window.0, window.1, SHOWN)).next(next))
    }

    fn suggested(&self, mut refusal: Refusal, miss: &Miss, suggestion: &Suggestion) -> Refusal {
        let shown = self.ctx.show(&self.place.asked);
        let view = View::new(&self.loaded.bytes, &self.loaded.form);
        self.ctx.saw(self.place, self.loaded, &[suggestion.lines], false);
        let fits = if suggestion.sole { "It fits once so" } else { "It would fit here" };
        refusal.message = format!("old_text is not in {shown}: {}. {fits}:", miss.detail);
        refusal.block = cotenant_text::visible_window(&view, suggestion.lines.0, suggestion.lines.1, SHOWN);
        refusal.next(self.offer(suggestion))
    }

    /// The call that applies the edits with what is proposed for one, and for those after it that would miss too.
    fn offer(&self, suggestion: &Suggestion) -> String {
        let mut edits = self.edits.to_vec();
        let mut next = Some((self.item, suggestion.clone()));
        while let Some((item, suggestion)) = next.take() {
            let Some(edit) = edits.get_mut(item) else { break };
            let line = Some(suggestion.lines.0);
            *edit = Edit { old: suggestion.old, new: suggestion.new, all: false, line };
            let specs: Vec<EditSpec<'_>> = edits.iter().map(Edit::spec).collect();
            let tolerance = self.ctx.tolerance();
            next = match cotenant_text::apply(&self.loaded.bytes, &self.loaded.form, &specs, &tolerance) {
                Err(EditError::NotFound { item: later, miss }) if later > item => {
                    miss.suggestion.map(|suggestion| (later, suggestion))
                }
                _ => None,
            };
        }
        let token = self.keep(&self.place.real, &edits, &suggestion.level.name());
        let shown = self.ctx.show(&self.place.asked);
        format!(
            "{} applies your new_text there as the file has it (lines {}-{})",
            self.ctx.call("edit_file", suggestion_call(&shown, token)),
            suggestion.lines.0,
            suggestion.lines.1
        )
    }

    fn keep(&self, at: &cotenant_model::WsPath, edits: &[Edit], level: &str) -> cotenant_model::SuggestionId {
        let edits: Vec<Value> = edits.iter().map(Edit::json).collect();
        self.ctx.keep_suggestion(at, &json!({"edits": edits, "level": level}))
    }

    /// The very text stands, once, in another file.
    fn elsewhere(&self, refusal: &Refusal, miss: &Miss) -> Option<Refusal> {
        let ctx = self.ctx;
        let (other, line) = ctx.find_elsewhere(&self.edit.old, &self.place.real)?;
        let shown = ctx.show(&other);
        let mut refusal = refusal.clone();
        refusal.facts.retain(|fact| fact.name != "cause");
        refusal = refusal.fact("cause", "other-file");
        refusal.message = format!("{}. The text itself stands in {shown}:{line}.", sentence(&miss.detail));
        let token = self.keep(&other, self.edits, "exact");
        ctx.saw_found(&other, line, self.edit.old.lines().count());
        Some(
            refusal.next(format!(
                "{} if that file is meant",
                ctx.call("edit_file", suggestion_call(&shown, token))
            )),
        )
    }

    /// No suggestion: the nearest places, or from the third try on the region itself.
    fn nearest(&self, mut refusal: Refusal, miss: &Miss, tries: u32) -> Refusal {
        let view = View::new(&self.loaded.bytes, &self.loaded.form);
        refusal.message = format!("{}.", sentence(&miss.detail));
        let shown = self.ctx.show(&self.place.asked);
        let Some(best) = miss.nearest.first() else {
            let next = self.ctx.call("read_file", json!({"path": shown}));
            return refusal.next(format!("{next}, and copy old_text from it"));
        };
        let lines: Vec<String> = miss.nearest.iter().map(|near| near.lines.0.to_string()).collect();
        refusal = refusal.fact("nearest", lines);
        if tries >= 3 {
            let window = (best.lines.0.saturating_sub(4).max(1), (best.lines.1 + 4).min(view.line_count()));
            self.ctx.saw(self.place, self.loaded, &[window], false);
            return refusal
                .block(cotenant_text::window(&view, window.0, window.1, SHOWN))
                .next("copy old_text anew from above; do not send the same text again");
        }
        let seen: Vec<(usize, usize)> = miss.nearest.iter().map(|near| near.lines).collect();
        self.ctx.saw(self.place, self.loaded, &seen, false);
        let mut block = String::new();
        for near in &miss.nearest {
            if block.len() + near.text.len() > SHOWN {
                break;
            }
            if !block.is_empty() {
                block.push_str("--\n");
            }
            block.push_str(&near.text);
        }
        refusal.block(block).next(
            "take old_text from these lines (they count as read; → is a tab, · a space at a line's end)",
        )
    }
}

/// The detail as a sentence of its own.
fn sentence(detail: &str) -> String {
    let mut chars = detail.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Where `needle` begins in `hay`.
fn memchr_find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return None;
    }
    hay.windows(needle.len()).position(|window| window == needle)
}
