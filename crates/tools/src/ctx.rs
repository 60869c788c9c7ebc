//! What a tool works with: the workspace as one session sees it, during one call.

use std::borrow::Cow;

use cotenant_coord::{EditDecision, LineMap, Lines, Shown, Standing, decide_edit};
use cotenant_engine::Workspace;
use cotenant_model::{
    Access, ChangeId, Code, Content, Digest, Limits, Millis, PathClass, Refusal, RetryToken, SessionId,
    Settings, StalePolicy, SuggestionId, WirePath, WsPath,
};
use cotenant_text::{EditorConfig, Region, Tolerance, View};
use cotenant_tree::{ContentQuery, Kind, LineWindow, Output, Place, SearchError, Tree, TreeError};
use serde_json::{Map, Value, json};

use crate::args::{Args, canonical};
use crate::shell::jobs::Jobs;
use crate::tool::Tool;

pub use cotenant_engine::Image as Loaded;

/// Bytes of a diff in a refusal.
const DIFF: usize = 2000;
/// Arguments that a retry changes are shown up to so many bytes.
const SET_SHOWN: usize = 400;
/// Bytes of an answer at most, whatever is asked for.
const ANSWER_MOST: usize = 10_000_000;
/// A text is looked for in other files only within these sizes, in bytes: below it is everywhere, above it is costly.
const ELSEWHERE: std::ops::RangeInclusive<usize> = 8..=4000;

/// One call.
pub struct Ctx<'a> {
    /// The workspace.
    pub ws: &'a Workspace,
    /// The commands of all sessions.
    pub(crate) jobs: &'a Jobs,
    /// Who calls.
    pub session: SessionId,
    /// The tool.
    pub tool: &'static Tool,
    /// The arguments as they came: what `retry` repeats.
    pub raw: &'a Map<String, Value>,
    /// When the call began, on the steady clock.
    pub now: Millis,
}

impl Ctx<'_> {
    /// The settings.
    pub fn settings(&self) -> &Settings {
        self.ws.settings()
    }

    /// Whether a human gives the command themselves.
    pub fn is_human(&self) -> bool {
        self.ws.coord().session(self.session).is_some_and(|me| *me.agent == *cotenant_model::HUMAN)
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.settings().limits
    }

    /// The tool's name.
    pub fn tool_name(&self) -> &'static str {
        self.tool.name
    }

    /// Bytes that the answer may have.
    pub fn answer_bytes(&self, args: &Args) -> usize {
        args.count("max_bytes").map_or(self.limits().answer_bytes, |bytes| bytes.clamp(256, ANSWER_MOST))
    }

    /// A path as clients write it.
    pub fn show(&self, at: &WsPath) -> String {
        self.ws.tree().folders().show(at)
    }

    /// A call as a `next:` line shows it.
    pub fn call(&self, tool: &str, args: Value) -> String {
        crate::reply::call_text(tool, &args)
    }

    /// A path as a client wrote it, parsed.
    pub fn wire(&self, text: &str) -> Result<WirePath, Refusal> {
        let parsed = self.ws.tree().parse(text);
        parsed.map_err(|error| {
            let refusal = cotenant_tree::path_refusal(&error, text);
            match &error {
                cotenant_model::PathError::DotDot { cleaned: Some(clean) } => {
                    let next = self.instead(self.argument(|given| given == text), clean);
                    refusal.next(next)
                }
                _ if refusal.next.is_empty() => refusal.next(self.call("list_directory", json!({}))),
                _ => refusal,
            }
        })
    }

    /// The argument in which a path came.
    fn argument(&self, fits: impl Fn(&str) -> bool) -> &'static str {
        let paths = self.tool.params.iter().filter(|param| param.kind == crate::tool::Kind::Path);
        let mut names = paths.map(|param| param.name);
        let came = |name: &&str| {
            let mut given = self.raw.iter().filter(|(given, _)| canonical(self.tool, given) == **name);
            given.any(|(_, value)| value.as_str().is_some_and(&fits))
        };
        names.find(came).unwrap_or("path")
    }

    /// The same call with another path: as it is where it is short, else by a token.
    fn instead(&self, argument: &str, path: &str) -> String {
        let mut raw = self.raw.clone();
        raw.retain(|given, _| canonical(self.tool, given) != argument);
        raw.insert(argument.to_owned(), path.into());
        let args = Value::from(raw);
        if args.to_string().len() < 300 {
            return self.call(self.tool.name, args);
        }
        self.call("retry", json!({"token": self.retry_token(), "set": {argument: path}}))
    }

    /// Where a path leads; it may be absent.
    pub fn place(&self, text: &str) -> Result<Place, Refusal> {
        self.place_at(&self.wire(text)?)
    }

    /// A path that need not exist; only its form is checked.
    pub fn path(&self, text: &str) -> Result<WsPath, Refusal> {
        self.wire(text).map(|wire| wire.at)
    }

    /// Where a path that was parsed before leads, within the roots that the session's client announced.
    pub fn place_at(&self, wire: &WirePath) -> Result<Place, Refusal> {
        let place = self.ws.tree().locate(wire).map_err(|error| self.refused(&error, &wire.at))?;
        self.within(place)
    }

    /// What a path names: a link in the last place is not followed.
    pub fn entry(&self, text: &str) -> Result<Place, Refusal> {
        self.entry_at(&self.wire(text)?)
    }

    /// What a path that was parsed before names: a link in the last place is not followed.
    pub fn entry_at(&self, wire: &WirePath) -> Result<Place, Refusal> {
        let place = self.ws.tree().locate_link(wire).map_err(|error| self.refused(&error, &wire.at))?;
        self.within(place)
    }

    fn within(&self, place: Place) -> Result<Place, Refusal> {
        let coord = self.ws.coord();
        let outside =
            |me: &cotenant_coord::Session| !me.may_enter(&place.asked) || !me.may_enter(&place.real);
        if coord.session(self.session).is_some_and(outside) {
            let shown = self.show(&place.asked);
            let why = format!("{shown} is outside of the roots that your client announced.");
            return Err(Refusal::new(Code::PathOutside, why)
                .fact("path", shown)
                .next(self.call("whoami", json!({}))));
        }
        drop(coord);
        Ok(place)
    }

    /// A place where something stands.
    pub fn existing(&self, text: &str) -> Result<Place, Refusal> {
        let place = self.place(text)?;
        if place.is_absent() { Err(self.not_found(&place)) } else { Ok(place) }
    }

    /// A place where a file stands.
    pub fn file(&self, text: &str) -> Result<Place, Refusal> {
        let place = self.existing(text)?;
        self.require_file(&place)?;
        Ok(place)
    }

    /// `NOT_A_FILE` unless a file stands there.
    pub fn require_file(&self, place: &Place) -> Result<(), Refusal> {
        if place.stat().is_some() { Ok(()) } else { Err(self.no_file(place)) }
    }

    /// `NOT_A_FILE` of a directory.
    pub fn no_file(&self, place: &Place) -> Refusal {
        let shown = self.show(&place.asked);
        Refusal::new(Code::NotAFile, format!("{shown} is a directory."))
            .fact("path", shown.as_str())
            .fact("kind", "directory")
            .next(self.call("list_directory", json!({"path": shown})))
    }

    /// A place where a directory stands.
    pub fn directory(&self, text: &str) -> Result<Place, Refusal> {
        let place = self.existing(text)?;
        if matches!(place.kind, Kind::Dir) {
            return Ok(place);
        }
        let shown = self.show(&place.asked);
        Err(Refusal::new(Code::NotADirectory, format!("{shown} is a file."))
            .fact("path", shown.as_str())
            .next(self.call("read_file", json!({"path": shown}))))
    }

    pub(crate) fn refused(&self, error: &TreeError, at: &WsPath) -> Refusal {
        if matches!(error, TreeError::NotFound) {
            return self.missing(at);
        }
        let refusal = error.refusal(&self.show(at));
        if let Some(cotenant_model::FactValue::Text(real)) = refusal.get("real").cloned() {
            let named = |given: &str| self.ws.tree().parse(given).is_ok_and(|wire| wire.at == *at);
            let next = self.instead(self.argument(named), &real);
            return refusal.next(next);
        }
        if refusal.next.is_empty() { refusal.next(self.call("list_directory", json!({}))) } else { refusal }
    }

    /// Runs something on the tree; its error becomes a refusal about `at`.
    pub fn tree<T>(
        &self,
        run: impl FnOnce(&Tree) -> Result<T, TreeError>,
        at: &WsPath,
    ) -> Result<T, Refusal> {
        run(self.ws.tree()).map_err(|error| self.refused(&error, at))
    }

    /// Runs a search below `at`.
    pub fn search<T>(
        &self,
        run: impl FnOnce(&Tree) -> Result<T, SearchError>,
        at: &WsPath,
    ) -> Result<T, Refusal> {
        run(self.ws.tree()).map_err(|error| {
            let refusal = error.refusal(&self.show(at));
            if !matches!(refusal.code, Code::PatternInvalid | Code::PatternTooLarge) {
                return refusal;
            }
            let literal = self.call("retry", json!({"token": self.retry_token(), "set": {"regex": false}}));
            refusal.next(format!("{literal} takes it literally; or send the pattern corrected"))
        })
    }

    /// `NOT_FOUND` with near paths.
    pub fn not_found(&self, place: &Place) -> Refusal {
        self.missing(&place.asked)
    }

    fn missing(&self, at: &WsPath) -> Refusal {
        let shown = self.show(at);
        let near: Vec<String> = self.ws.tree().near(at).iter().map(|near| self.show(near)).collect();
        let mut refusal =
            Refusal::new(Code::NotFound, format!("There is no {shown}.")).fact("path", shown.as_str());
        if !near.is_empty() {
            refusal = refusal.fact("near", near.clone());
            refusal.message.push_str(&format!(" Nearest: {}.", near.join(", ")));
        }
        // What went elsewhere is meant before what has a similar name.
        let went = self.went(at);
        if let Some((place, who)) = &went {
            let to = self.show(&place.asked);
            refusal.message.push_str(&format!(" It was moved to {to} by {who}."));
            refusal = refusal.fact("moved_to", to);
        }
        let next = match (&went, near.first()) {
            (Some((place, _)), _) if place.kind == Kind::Dir => {
                self.look("list_directory", &self.show(&place.asked))
            }
            (Some((place, _)), _) => self.look("read_file", &self.show(&place.asked)),
            (None, Some(first)) => self.look("read_file", first),
            (None, None) => self.look_around(at),
        };
        refusal.next(next)
    }

    /// The call that looks at another path: this very one, if it only looks.
    fn look(&self, tool: &str, path: &str) -> String {
        let tool = if self.tool.mutates() { tool } else { self.tool.name };
        self.call(tool, json!({"path": path}))
    }

    /// The call that shows what there is instead of a path that nothing is like.
    fn look_around(&self, at: &WsPath) -> String {
        let parent = at.parent().unwrap_or_default();
        let place = self.ws.tree().locate(&WirePath { at: parent.clone(), dir_only: false });
        if place.map_or(true, |place| place.is_absent()) {
            return self.call("search_files", json!({"pattern": leaf(at), "content_search": false}));
        }
        let parent =
            if parent.path.is_root() && at.parent().is_none() { ".".to_owned() } else { self.show(&parent) };
        self.call("list_directory", json!({"path": parent}))
    }

    /// The name beside `at` that has the same letters in another Unicode form, if there is one.
    pub fn tree_twin(&self, at: &WsPath) -> Option<String> {
        self.ws.tree().twin(at).map(|twin| self.show(&twin))
    }

    /// The size in bytes of the file at a place.
    pub fn size(&self, place: &Place) -> u64 {
        place.stat().map_or(0, |stat| stat.size)
    }

    /// Reads a text file as a whole.
    pub fn load(&self, place: &Place) -> Result<Loaded, Refusal> {
        let loaded = self.load_any(place)?;
        if loaded.text {
            return Ok(loaded);
        }
        let shown = self.show(&place.asked);
        Err(Refusal::new(Code::NotText, format!("{shown} is not text: {}.", loaded.why_not_text))
            .fact("path", shown.as_str())
            .fact("bytes", loaded.bytes.len())
            .fact("digest", loaded.digest.to_string())
            .next(format!(
                "replace it as a whole: {}",
                self.call("write_file", json!({"path": shown, "content": "…", "overwrite": true, "expected_digest": loaded.digest.to_string()}))
            )))
    }

    /// Reads any file as a whole, text or not.
    pub fn load_any(&self, place: &Place) -> Result<Loaded, Refusal> {
        let most = if self.tool.mutates() { u64::MAX } else { self.limits().text_bytes };
        self.ws.load(place, most).map_err(|error| self.refused(&error, &place.asked))
    }

    /// Lines of a file of any size.
    pub fn window(
        &self,
        place: &Place,
        start: i64,
        limit: usize,
        bytes: usize,
    ) -> Result<LineWindow, Refusal> {
        self.tree(|tree| tree.read_lines(place, start, limit, bytes), &place.asked)
    }

    /// The generator's rule, where one owns the file.
    pub fn generated(&self, place: &Place) -> Option<String> {
        (place.class.class == PathClass::Generated).then(|| place.class.rule.clone())
    }

    /// Refuses what no verdict could allow: a folder for reading, a generated file.
    pub fn writable(&self, place: &Place) -> Result<(), Refusal> {
        let shown = self.show(&place.asked);
        if place.access == Access::Read {
            return Err(cotenant_coord::read_only(&shown, self.ws.tree().folders().name(place.real.folder)));
        }
        if place.class.class == PathClass::Generated {
            return Err(cotenant_coord::generated(&shown, &place.class));
        }
        Ok(())
    }

    /// Match levels that the settings allow unasked.
    pub fn tolerance(&self) -> Tolerance {
        // The names were checked when the settings were read.
        Tolerance::from_names(self.settings().edits.tolerant.iter().map(String::as_str)).unwrap_or_default()
    }

    /// `.editorconfig`'s rules for a path.
    pub fn editorconfig(&self, at: &WsPath) -> EditorConfig {
        self.ws.editorconfig(at)
    }

    // --- what the session was shown ---

    /// The session was shown these lines of the file, or all of it.
    pub fn saw(&self, place: &Place, loaded: &Loaded, lines: &[(usize, usize)], whole: bool) {
        if loaded.unstable {
            return;
        }
        let lines = if whole { Lines::All } else { Lines::Ranges(lines.to_vec()) };
        let shown = Shown { digest: loaded.digest, total_lines: Some(loaded.line_count()), lines };
        self.ws.shown(self.session, &place.real, shown, Some(&loaded.bytes));
    }

    /// The session was shown lines of a file by a search.
    pub fn saw_lines(&self, at: &WsPath, digest: Digest, lines: &[(usize, usize)]) {
        let shown = Shown { digest, total_lines: None, lines: Lines::Ranges(lines.to_vec()) };
        self.ws.shown(self.session, at, shown, None);
    }

    /// A text that a refusal points to, found at `line` of another file, counts as read.
    pub fn saw_found(&self, at: &WsPath, line: usize, lines: usize) {
        let wire = WirePath { at: at.clone(), dir_only: false };
        if let Ok(place) = self.ws.tree().locate(&wire)
            && let Ok(loaded) = self.load(&place)
        {
            self.saw(&place, &loaded, &[(line, line + lines.saturating_sub(1))], false);
        }
    }

    /// Whether the session has seen nothing of the file yet.
    pub fn first_time(&self, at: &WsPath) -> bool {
        self.ws.coord().receipt(self.session, at).is_none()
    }

    /// How the session stands to a file whose digest is `current`.
    pub fn standing(&self, at: &WsPath, current: Digest) -> Standing {
        self.ws.coord().standing(self.session, at, current)
    }

    /// An image that a session was shown or a change left, if it is still kept.
    pub fn image(&self, digest: Digest) -> Option<Content> {
        self.ws.image(digest)
    }

    /// Decides whether the session may edit these lines of a file whose text fits.
    pub fn may_edit(
        &self,
        place: &Place,
        loaded: &Loaded,
        spans: &[(usize, usize)],
    ) -> Result<MayEdit, Refusal> {
        let standing = self.standing(&place.real, loaded.digest);
        let since = match &standing {
            Standing::Stale { shown, .. } => {
                self.regions_since(*shown, loaded).map(|regions| (*shown, regions))
            }
            _ => None,
        };
        let regions = since.as_ref().map(|(_, regions)| regions.as_slice());
        match decide_edit(&standing, self.settings().edits.stale, regions, spans, true) {
            EditDecision::Go { unseen, .. } => Ok(MayEdit { unseen, since }),
            EditDecision::NeedsRead => Err(self.needs_read(place, loaded, spans)),
            EditDecision::Changed => Err(self.changed_since(place, loaded, true)),
        }
    }

    /// What changed in a file since the version `shown`, where that is still kept.
    pub fn regions_since(&self, shown: Digest, now: &Loaded) -> Option<Vec<Region>> {
        let old = Loaded::known(self.image(shown)?, &now.form);
        Some(cotenant_text::changed_regions(&old.bytes, &old.form, &now.bytes, &now.form))
    }

    /// `EDIT_REQUIRES_PRIOR_READ`, showing where the text fits, which then counts as read.
    fn needs_read(&self, place: &Place, loaded: &Loaded, spans: &[(usize, usize)]) -> Refusal {
        let shown = self.show(&place.asked);
        let view = View::new(&loaded.bytes, &loaded.form);
        let mut windows: Vec<(usize, usize)> = Vec::new();
        for (first, last) in spans.iter().take(5) {
            let window = (first.saturating_sub(2).max(1), (last + 2).min(view.line_count()));
            match windows.last_mut() {
                Some(before) if window.0 <= before.1 + 1 => before.1 = before.1.max(window.1),
                _ => windows.push(window),
            }
        }
        let blocks: Vec<String> = windows
            .iter()
            .map(|(first, last)| cotenant_text::window(&view, *first, *last, DIFF / windows.len()))
            .map(|block| block.trim_end_matches('\n').to_owned())
            .collect();
        self.saw(place, loaded, &windows, false);
        let token = self.retry_token();
        let at = match spans {
            [(first, last)] => format!("once, at lines {first}-{last}"),
            [(first, _), ..] => format!("at {} places, the first at line {first}", spans.len()),
            [] => String::new(),
        };
        Refusal::new(Code::EditRequiresPriorRead, format!("You have not seen {shown}. old_text fits {at}:"))
            .fact("path", shown)
            .block(format!("{}\nThe file now counts as read.", blocks.join("\n--\n").trim_end()))
            .next(format!("if this is the place, {}", self.call("retry", json!({"token": token}))))
    }

    /// `FILE_CHANGED_SINCE_READ` with who, when and the diff since. Where a part is to be edited, that diff then counts
    /// as read; where all is to go, only a new read does.
    pub fn changed_since(&self, place: &Place, now: &Loaded, counts: bool) -> Refusal {
        let shown_path = self.show(&place.asked);
        let standing = self.standing(&place.real, now.digest);
        let mut refusal =
            Refusal::new(Code::FileChangedSinceRead, String::new()).fact("path", shown_path.as_str());
        if let Some(change) = self.newest(&place.real) {
            refusal = refusal
                .fact("by", change.agent.as_deref().unwrap_or("human"))
                .fact("change", change.id.to_string())
                .fact("age_s", self.ws.clock().wall().since(change.time) / 1000);
        } else {
            refusal = refusal.fact("by", "someone outside cotenant");
        }
        refusal = refusal.fact("digest", now.digest.to_string());
        let old = match &standing {
            Standing::Stale { shown, .. } => self.image(*shown),
            _ => None,
        };
        let Some(old) = old.filter(|_| now.text) else {
            refusal.message = format!("{shown_path} is not the version you saw. Nothing was written.");
            return refusal.next(self.call("read_file", json!({"path": shown_path})));
        };
        let old = Loaded::known(old, &now.form);
        let diff = cotenant_text::unified(&old.bytes, &old.form, &now.bytes, &now.form, 0);
        let shown = diff.render(DIFF, true);
        refusal.message = "The lines were changed after you read them. Since then:".to_owned();
        if !counts {
            return refusal.block(format!("{}\nNothing was written.", shown.trim_end())).next(format!(
                "{} all of it anew, or edit_file a part",
                self.call("read_file", json!({"path": shown_path}))
            ));
        }
        let lines =
            |hunk: &cotenant_text::Hunk| (hunk.new_start.max(1), hunk.new_start + hunk.new_len.max(1) - 1);
        let windows: Vec<(usize, usize)> = diff.hunks.iter().map(lines).collect();
        self.saw(place, now, &windows, false);
        refusal
            .block(format!("{}\nThey count as read now; nothing was written.", shown.trim_end()))
            .next("take old_text from the + lines and send the edit again; read_file shows the rest")
    }

    /// The newest change of a path.
    fn newest(&self, at: &WsPath) -> Option<cotenant_model::Change> {
        self.ws.ledger().newest(at)
    }

    /// Its id.
    pub fn newest_change(&self, at: &WsPath) -> Option<String> {
        self.newest(at).map(|change| change.id.to_string())
    }

    /// Who changed a path last, and when, in words.
    pub fn who_changed(&self, at: &WsPath) -> String {
        self.newest(at).map_or_else(|| "someone outside cotenant".to_owned(), |change| self.made(&change))
    }

    /// Who made a change, and when, in words.
    pub fn made(&self, change: &cotenant_model::Change) -> String {
        let who = change.agent.as_deref().unwrap_or("human");
        let age = Millis(self.ws.clock().wall().since(change.time));
        let task = change.task.as_deref().map(|task| format!(", {task:?}")).unwrap_or_default();
        format!("{who}, {age} ago ({}{task})", change.id)
    }

    /// Counts a refusal of one kind on a path: how many in a row it is now.
    pub fn tries(&self, at: &WsPath, code: Code, cause: &str) -> u32 {
        let mut coord = self.ws.coord();
        if code == Code::TextNotFound {
            coord.missed_text(self.session, cause);
        }
        coord.refused(self.session, Some(at), code)
    }

    // --- what is kept for the next call ---

    /// A token that repeats this call.
    pub fn retry_token(&self) -> String {
        self.named(&self.keep_retry())
    }

    /// A token or a handle as the client sends it back: in a sandbox with its name before it.
    fn named(&self, id: &dyn std::fmt::Display) -> String {
        match self.ws.tree().folders().name(cotenant_model::FolderId::ROOT) {
            "" => id.to_string(),
            name => format!("{name}:{id}"),
        }
    }

    /// A retry of the call with these arguments changed; where they are too long to be shown, the token has them already.
    pub(crate) fn again(&self, set: Map<String, Value>) -> String {
        let shown = Value::from(set);
        if shown.to_string().len() <= SET_SHOWN {
            return self.call("retry", json!({"token": self.retry_token(), "set": shown}));
        }
        let mut raw = self.raw.clone();
        raw.extend(shown.as_object().cloned().unwrap_or_default());
        self.call("retry", json!({"token": Ctx { raw: &raw, ..*self }.retry_token()}))
    }

    fn keep_retry(&self) -> RetryToken {
        let args = serde_json::to_vec(self.raw).unwrap_or_default();
        self.ws.coord().keep_retry(
            self.session,
            cotenant_coord::Retry { tool: self.tool.name.into(), args: args.into(), approval: None },
            self.now,
        )
    }

    /// Keeps a proposal for the file at `at`.
    pub fn keep_suggestion(&self, at: &WsPath, payload: &Value) -> SuggestionId {
        let payload = payload.to_string().into_bytes();
        let suggestion = cotenant_coord::Suggestion { at: at.clone(), payload: payload.into() };
        self.ws.coord().keep_suggestion(self.session, suggestion, self.now)
    }

    /// The edits of a proposal, and the match level it stands for.
    pub fn suggestion(&self, token: &str, path: &str) -> Result<(Value, String), Refusal> {
        let place = self.file(path)?;
        let id = token.trim().parse::<SuggestionId>().ok();
        let kept = id.and_then(|id| self.ws.coord().suggestion(self.session, id, self.now));
        let kept = kept.filter(|kept| kept.at == place.real);
        let payload: Option<Value> = kept.and_then(|kept| serde_json::from_slice(&kept.payload).ok());
        match payload {
            Some(payload) => {
                let level = payload.get("level").and_then(Value::as_str).unwrap_or("exact").to_owned();
                Ok((payload.get("edits").cloned().unwrap_or_default(), level))
            }
            None => Err(Refusal::new(
                Code::HandleExpired,
                format!("{token} is no proposal for {path} in this session, or over 10 minutes old; nothing was written."),
            )
            .fact("suggestion", token)
            .next("send old_text and new_text again")),
        }
    }

    /// Keeps a whole answer, for `read_more`.
    pub fn keep_handle(&self, title: &str, text: &str) -> String {
        let handle = cotenant_coord::Handle { title: title.to_owned(), bytes: text.as_bytes().into() };
        let id = self.ws.coord().keep_handle(self.session, handle, self.now);
        self.named(&id)
    }

    /// A reply with as much of `text` as fits into `bytes`; the rest stays behind a handle.
    pub fn capped(
        &self,
        reply: crate::reply::Reply,
        title: &str,
        text: &str,
        bytes: usize,
    ) -> crate::reply::Reply {
        if text.len() <= bytes {
            return reply.content(text);
        }
        let cut = text[..text.floor_char_boundary(bytes)].rfind('\n').unwrap_or(0);
        let id = self.keep_handle(title, text);
        let left = text.len() - cut;
        reply
            .fact("handle", id.as_str())
            .notice(format!(
                "{left} bytes are left out; {}",
                self.call("read_more", json!({"handle": id, "offset": cut}))
            ))
            .content(&text[..cut])
    }

    /// Where the lines of one version are in the next, which the session wrote.
    pub fn line_map(&self, old: &Loaded, new: &Loaded) -> LineMap {
        let regions = if old.text && new.text {
            cotenant_text::changed_regions(&old.bytes, &old.form, &new.bytes, &new.form)
        } else {
            Vec::new()
        };
        LineMap { regions, total_lines: Some(new.line_count()), known: true }
    }

    /// The one other file in which `text` stands, and its line there.
    pub fn find_elsewhere(&self, text: &str, not: &WsPath) -> Option<(WsPath, usize)> {
        let text = text.trim_end_matches('\n');
        if !ELSEWHERE.contains(&text.len()) {
            return None;
        }
        let root = self
            .ws
            .tree()
            .locate(&WirePath { at: WsPath { folder: not.folder, ..WsPath::default() }, dir_only: true })
            .ok()?;
        let query = ContentQuery {
            pattern: text.to_owned(),
            regex: false,
            ignore_case: false,
            multiline: text.contains('\n'),
            glob: None,
            output: Output::Content,
            context_lines: Some(0),
            limit: 2,
            offset: 0,
            include_ignored: false,
            regex_bytes: self.limits().regex_bytes,
        };
        let hits = self.ws.tree().search_content(&root, &query).ok()?;
        match &hits.files[..] {
            // Each line of a match counts.
            [file]
                if hits.total_files == 1
                    && hits.total_matches == text.split('\n').count()
                    && file.path != *not =>
            {
                Some((file.path.clone(), usize::try_from(file.lines.first()?.number).ok()?))
            }
            _ => None,
        }
    }

    /// Whether a stale edit is refused whatever lies between.
    pub fn strict(&self) -> bool {
        self.settings().edits.stale == StalePolicy::Strict
    }

    /// A change by the id in the arguments, or the session's last.
    pub fn change(&self, id: ChangeId) -> Result<cotenant_model::Change, Refusal> {
        match self.ws.ledger().change(id) {
            Ok(Some(change)) => Ok(change),
            Ok(None) => Err(Refusal::new(Code::NotFound, format!("There is no change {id}."))
                .fact("change", id.to_string())
                .next(self.call("history", json!({})))),
            Err(error) => Err(error.refusal()),
        }
    }
}

/// How an edit goes ahead.
pub struct MayEdit {
    /// Some of its lines were never shown to the session.
    pub unseen: bool,
    /// The file is another version by now: the one that was shown, and what changed since, elsewhere.
    pub since: Option<(Digest, Vec<Region>)>,
}

fn leaf(at: &WsPath) -> String {
    at.path.leaf().map(|leaf| String::from_utf8_lossy(leaf).into_owned()).unwrap_or_default()
}

/// A name of a listing: bare, or as a JSON string where it has characters that could fake or reorder lines.
pub fn entry_name(name: &[u8]) -> Cow<'_, str> {
    let shown = cotenant_text::shown(name);
    if shown.starts_with('"') || shown.chars().any(cotenant_model::needs_escape) {
        Cow::Owned(cotenant_model::FactValue::from(shown.into_owned()).to_string())
    } else {
        shown
    }
}
