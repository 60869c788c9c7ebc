//! `undo`: takes back one change's own hunks and keeps everything done since; itself a change that can be undone.

use cotenant_coord::LineMap;
use cotenant_ledger::Query;
use cotenant_model::{
    Body, Change, ChangeFile, ChangeId, ChangeOp, ClassHit, Code, Content, Digest, Entry, FileOp, Op,
    Outcome, Refusal, ToolSet, WirePath, WsPath,
};
use cotenant_tree::{Kind as Found, ListOptions, Place};
use serde_json::json;

use crate::args::{Args, bad};
use crate::ctx::{Ctx, Loaded};
use crate::planned::{After, Planned};
use crate::reply::Reply;
use crate::tool::{Kind, Param, Run, Tool};

/// The entry of the registry.
pub const TOOL: Tool = Tool {
    name: "undo",
    title: "Undo change",
    set: ToolSet::Core,
    about: "Take back one change, however old, and keep everything done since. An undo can be undone.",
    params: &[
        Param::new("change", Kind::Text, "Id such as c41; default your last"),
        Param::new("dry_run", Kind::Flag, ""),
        Param::hidden("paths", Kind::List),
    ],
    destructive: true,
    run: Run::Change(run),
};

/// How far back the session's last change is looked for.
const RECENT: usize = 50;
/// Lines of each side that a conflict shows, in bytes.
const SIDE: usize = 300;
/// Bytes of all that a conflict shows.
const BLOCK: usize = 2000;
/// Bytes of the paths that the next call names.
const LISTED: usize = 400;

fn run(ctx: &Ctx<'_>, args: &Args) -> Result<Planned, Refusal> {
    let change = match args.text("change") {
        Some(id) => {
            ctx.change(id.parse::<ChangeId>().map_err(|error| bad(&TOOL, "change", &format!("{error}")))?)?
        }
        None => last(ctx)?,
    };
    if change.outcome == Outcome::Aborted {
        return Err(nothing(&change, "nothing of it stands"));
    }
    let only = args.texts("paths").into_iter().map(|text| ctx.path(text)).collect::<Result<Vec<_>, _>>()?;
    let has = |at: &WsPath| change.files.iter().any(|file| file.at == *at);
    if let Some(stray) = only.iter().find(|at| !has(at)) {
        let sentence = format!("{} is not in {}", ctx.show(stray), change.id);
        return Err(bad(&TOOL, "paths", &sentence)
            .next(ctx.call("show_change", json!({"change": change.id.to_string()}))));
    }
    let files: Vec<&ChangeFile> =
        change.files.iter().filter(|file| only.is_empty() || only.contains(&file.at)).collect();
    let mut undo =
        Undo { ctx, change: &change, planned: Planned::default(), clean: Vec::new(), conflicts: Vec::new() };
    // Files go before the directories that hold them, in reverse of how they came.
    for file in files.iter().rev() {
        undo.file(file)?;
    }
    undo.finish()
}

/// The session's newest change that stands and was not taken back.
fn last(ctx: &Ctx<'_>) -> Result<Change, Refusal> {
    let query = Query { session: Some(ctx.session), limit: RECENT, ..Query::default() };
    let changes = ctx.ws.ledger().history(&query).map_err(|error| error.refusal())?;
    let undone: Vec<ChangeId> = changes.iter().filter_map(|change| change.undoes).collect();
    changes.into_iter().find(|change| change.undoes.is_none() && !undone.contains(&change.id)).ok_or_else(
        || {
            Refusal::new(
                Code::NothingToChange,
                "This session has made no change that still stands; nothing was done.",
            )
            .next(ctx.call("history", json!({"agent": "me"})))
        },
    )
}

fn nothing(change: &Change, why: &str) -> Refusal {
    Refusal::new(Code::NothingToChange, format!("{} needs no undoing: {why}.", change.id))
        .fact("change", change.id.to_string())
        .next("history {}")
}

struct Undo<'a> {
    ctx: &'a Ctx<'a>,
    change: &'a Change,
    planned: Planned,
    clean: Vec<String>,
    conflicts: Vec<(String, String)>,
}

impl Undo<'_> {
    /// Plans the way back of one path. A conflict is noted; anything else that stands in the way is a refusal.
    fn file(&mut self, file: &ChangeFile) -> Result<(), Refusal> {
        let place = self.ctx.place_at(&WirePath { at: file.at.clone(), dir_only: false })?;
        match (file.op, &place.kind) {
            // A directory in which something else stands by now stays.
            (ChangeOp::MakeDir, Found::Dir) if !self.empties(&place)? => Ok(()),
            (ChangeOp::MakeDir, Found::Dir) => {
                self.push(&place, Op::RemoveDir, None, LineMap::default(), None);
                Ok(())
            }
            (ChangeOp::RemoveDir, Found::Absent { .. }) => {
                self.push(&place, Op::MakeDir { mode: None }, None, LineMap::default(), None);
                Ok(())
            }
            (ChangeOp::MakeDir | ChangeOp::RemoveDir, _) => Ok(()),
            (_, Found::File(_)) => self.present(file, &place),
            (_, Found::Absent { .. }) => self.absent(file, &place),
            _ => {
                self.conflict(file, "a directory stands there now".to_owned());
                Ok(())
            }
        }
    }

    /// Whether nothing is left in a directory once what is planned so far is done.
    fn empties(&self, place: &Place) -> Result<bool, Refusal> {
        let options =
            ListOptions { depth: Some(1), limit: self.planned.ops.len() + 1, include_ignored: true };
        let listing = self.ctx.tree(|tree| tree.list(place, &options), &place.asked)?;
        let goes = |at: &WsPath| {
            let removes = |op: &FileOp| op.at == *at && matches!(op.op, Op::Delete { .. } | Op::RemoveDir);
            self.planned.ops.iter().any(removes)
        };
        Ok(listing.omitted.is_empty() && listing.entries.iter().all(|entry| goes(&entry.path)))
    }

    fn present(&mut self, file: &ChangeFile, place: &Place) -> Result<(), Refusal> {
        self.ctx.writable(place)?;
        let now = self.ctx.load_any(place)?;
        match (file.pre, file.post) {
            (pre, _) if pre == Some(now.digest) => Ok(()),
            (None, Some(post)) if post == now.digest => {
                self.push(
                    place,
                    Op::Delete { old: Entry::file(now.digest) },
                    Some(now.bytes),
                    LineMap::default(),
                    None,
                );
                Ok(())
            }
            (Some(pre), Some(post)) if post == now.digest => {
                let content = self.image(pre, file)?;
                self.replace(place, now, content);
                Ok(())
            }
            (Some(pre), Some(post)) => {
                let (base, theirs) = (self.image(post, file)?, self.image(pre, file)?);
                self.merge(file, place, now, &base, &theirs);
                Ok(())
            }
            _ => {
                self.conflict(file, format!("{} has other bytes now", self.ctx.show(&file.at)));
                Ok(())
            }
        }
    }

    /// Where the change deleted the file it comes back; where it made or changed it, someone deleted it since.
    fn absent(&mut self, file: &ChangeFile, place: &Place) -> Result<(), Refusal> {
        match (file.op, file.pre) {
            (ChangeOp::Delete, Some(pre)) => {
                let content = self.image(pre, file)?;
                for op in crate::files::write_file::missing_dirs(place) {
                    self.planned.ops.push(op);
                    self.planned.classes.push(ClassHit::ordinary());
                    self.planned.before.push(None);
                }
                let lines = Loaded::fresh_or_binary(content.clone()).line_count();
                let new = Body::file(content).with_mode(file.pre_mode);
                self.push(place, Op::Create { new, like: None }, None, LineMap::default(), Some(lines));
            }
            (ChangeOp::Edit, _) => self.conflict(file, "it was deleted since".to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn merge(&mut self, file: &ChangeFile, place: &Place, now: Loaded, base: &Content, theirs: &Content) {
        let text = |bytes: &Content| Loaded::fresh_or_binary(bytes.clone());
        let (base, theirs) = (text(base), text(theirs));
        let alike =
            [&base, &theirs].iter().all(|image| image.text && image.form.encoding == now.form.encoding);
        if !now.text || !alike {
            return self.conflict(file, "it is not text, or has another encoding now".to_owned());
        }
        match cotenant_text::merge3(&base.bytes, &now.bytes, &theirs.bytes) {
            Ok(merged) if *merged == *now.bytes => {}
            Ok(merged) => self.replace(place, now, merged.into()),
            Err(conflict) => {
                let side = |bytes: &[u8]| cotenant_text::clip(bytes, SIDE).text.into_owned();
                let sides: Vec<String> = conflict
                    .clashes
                    .iter()
                    .take(3)
                    .map(|clash| {
                        format!(
                            "line {}: now {:?}, taking it back would need {:?}",
                            clash.ours.start,
                            side(&clash.our_bytes),
                            side(&clash.their_bytes)
                        )
                    })
                    .collect();
                self.conflict(file, sides.join("; "));
            }
        }
    }

    fn replace(&mut self, place: &Place, now: Loaded, content: Content) {
        let new = Loaded::fresh_or_binary(content.clone());
        let map = self.ctx.line_map(&now, &new);
        self.push(
            place,
            Op::Replace { old: Entry::file(now.digest), new: Body::file(content) },
            Some(now.bytes),
            map,
            None,
        );
    }

    fn push(&mut self, place: &Place, op: Op, before: Option<Content>, map: LineMap, whole: Option<usize>) {
        let op = FileOp { at: place.real.clone(), op };
        let old = before.as_ref().map(|bytes| Digest::of(bytes));
        if !matches!(op.op, Op::MakeDir { .. } | Op::RemoveDir) {
            self.planned.after.push(After {
                at: op.at.clone(),
                old,
                new: op.post().map(|entry| entry.digest),
                map,
                since: None,
                whole,
            });
        }
        self.clean.push(self.ctx.show(&op.at));
        self.planned.ops.push(op);
        self.planned.classes.push(place.class.clone());
        self.planned.before.push(before);
    }

    fn conflict(&mut self, file: &ChangeFile, why: String) {
        self.conflicts.push((self.ctx.show(&file.at), why));
    }

    fn image(&self, digest: Digest, file: &ChangeFile) -> Result<Content, Refusal> {
        self.ctx.image(digest).ok_or_else(|| {
            let path = self.ctx.show(&file.at);
            let since = match self.ctx.ws.ledger().restorable(self.change) {
                Ok(cotenant_ledger::Restorable::Expired { since }) => format!(" since {}", since.rfc3339()),
                _ => String::new(),
            };
            Refusal::new(
                Code::NotRestorable,
                format!(
                    "The image of {path} in {} is no longer kept{since}; nothing was written.",
                    self.change.id
                ),
            )
            .fact("change", self.change.id.to_string())
            .fact("path", path)
            .next(self.ctx.call("show_change", json!({"change": self.change.id.to_string()})))
        })
    }

    fn finish(mut self) -> Result<Planned, Refusal> {
        if !self.conflicts.is_empty() {
            return Err(self.refusal());
        }
        if self.planned.ops.is_empty() {
            return Err(nothing(self.change, "the files are as they were before it"));
        }
        let mine = self.ctx.ws.coord().session(self.ctx.session).map(|me| me.agent.clone());
        self.planned.others_work = self.change.agent.is_none() || self.change.agent != mine;
        self.planned.undoes = Some(self.change.id);
        let paths = self.clean.len();
        let lines: Vec<String> =
            self.planned.ops.iter().map(|op| format!("{} {}", op.verb(), self.ctx.show(&op.at))).collect();
        self.planned.reply = Reply::new()
            .fact("undone", self.change.id.to_string())
            .fact("paths", paths)
            .content(lines.join("\n"));
        self.planned.change_at = 1;
        Ok(self.planned)
    }

    fn refusal(&self) -> Refusal {
        let id = self.change.id.to_string();
        let mut block = String::new();
        for (index, (path, why)) in self.conflicts.iter().enumerate() {
            let line = format!("{path}: {why}\n");
            if index > 0 && block.len() + line.len() > BLOCK {
                block.push_str(&format!("and {} more", self.conflicts.len() - index));
                break;
            }
            block.push_str(&line);
        }
        let refusal = Refusal::new(
            Code::UndoConflict,
            format!("Later changes stand on what {id} did; nothing was written."),
        )
        .fact("change", id.as_str())
        .fact("files", self.change.files.len())
        .fact("clean", self.clean.len())
        .fact("overlap", self.conflicts.len())
        .block(block);
        if self.clean.is_empty() {
            let path = self.conflicts.first().map(|conflict| conflict.0.clone()).unwrap_or_default();
            return refusal.next(format!(
                "undo the later change first ({}), or edit the file by hand",
                self.ctx.call("history", json!({"path": path}))
            ));
        }
        let set = json!({"paths": self.clean});
        let call = if set.to_string().len() <= LISTED {
            json!({"token": self.ctx.retry_token(), "set": set})
        } else {
            // Too many to be named: the kept call has them.
            let mut raw = self.ctx.raw.clone();
            raw.insert("paths".to_owned(), self.clean.clone().into());
            json!({"token": Ctx { raw: &raw, ..*self.ctx }.retry_token()})
        };
        refusal.next(format!("{} undoes the clean files", self.ctx.call("retry", call)))
    }
}
