//! The look after a command ran: what it did, recorded as one change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cotenant_coord::{LandedFile, LineMap};
use cotenant_ledger::{PinGuard, commit as record};
use cotenant_model::{
    Author, Change, ChangeFile, ChangeId, ChangeKind, ChangeOp, Content, Digest, Entry, HUMAN, Outcome,
    Refusal, WsPath,
};
use cotenant_text::Region;
use cotenant_tree::{EntryKind, Key, Scan, Stat};

use super::before::Before;
use super::images::Image;
use super::others::Others;
use super::reading::{self, Read, Wanted};
use super::renames;
use super::stand::{Stand, Turn};
use super::{Loss, Recorded};
use crate::image::Image as Loaded;
use crate::pipeline::Landed;
use crate::workspace::Workspace;

/// How often paths that others change at the same time are looked at again.
const AGAIN: usize = 3;
/// Files whose changed lines are told to those who were shown them, and their bytes at most.
const TOLD_FILES: usize = 100;
const TOLD_BYTES: usize = 256 * 1024;

/// Looks again after a command ran, and records what it did as one change of `author`, made by `tool`. Sessions that saw
/// the files are told, the author's own receipts follow.
///
/// # Errors
/// A folder that cannot be read any more, or a ledger that cannot take it in: nothing is recorded then.
pub fn after(ws: &Workspace, before: &Before, author: &Author, tool: &str) -> Result<Recorded, Refusal> {
    let mut run = Run { ws, before, losses: BTreeMap::new(), overlapped: BTreeSet::new(), pins: Vec::new() };
    let mut turns = Vec::new();
    for first in &before.scans {
        let shown = || ws.tree().folders().show(first.start());
        let second = ws.tree().scan(first.start(), Some(first)).map_err(|error| error.refusal(&shown()))?;
        turns.extend(run.turns(first, &second)?);
    }
    let turns = run.own(turns)?;
    let renames = renames::find(&turns);
    run.note_losses(&turns, &renames);
    let mut files = renames::files(&turns, &renames);
    run.make_durable(&mut files)?;
    files.sort_by(|a, b| a.at.cmp(&b.at));
    let change = if files.is_empty() { None } else { Some(run.record(&files, author, tool)?) };
    Ok(Recorded {
        change,
        files,
        not_restorable: run.losses.into_iter().collect(),
        overlapped: run.overlapped.into_iter().collect(),
    })
}

struct Run<'r> {
    ws: &'r Workspace,
    before: &'r Before,
    losses: BTreeMap<WsPath, Loss>,
    overlapped: BTreeSet<WsPath>,
    /// What is stored stays until the change names it.
    pins: Vec<PinGuard>,
}

/// A path that may have changed.
struct Seen<'s> {
    at: WsPath,
    was: Option<&'s Key>,
    is: Option<&'s Key>,
    /// The stat of the old bytes, where they were read after the first look.
    old: Option<Stat>,
}

impl Run<'_> {
    /// What became of each path between two looks.
    fn turns(&mut self, first: &Scan, second: &Scan) -> Result<Vec<Turn>, Refusal> {
        let seen = self.seen(first, second);
        let is_file = |key: Option<&Key>| key.is_some_and(|key| key.kind == EntryKind::File);
        let wanted = seen.iter().filter(|seen| is_file(seen.is));
        let wanted =
            wanted.map(|seen| Wanted { at: seen.at.clone(), bytes: seen.is.map_or(0, |is| is.stat.size) });
        let read = reading::store(self.ws, wanted.collect(), self.before.bounds, true);
        let (read, pins) = read.map_err(|error| error.refusal())?;
        self.pins.extend(pins);
        let mut new: HashMap<WsPath, Result<(Stat, Digest), Loss>> =
            read.into_iter().map(|Read { at, found }| (at, found)).collect();
        let mut old = self.old_images(&seen)?;
        self.store_targets(&seen)?;
        let mut turns = Vec::with_capacity(seen.len());
        for Seen { at, was, is, old: read } in seen {
            let old_stat = read.or(was.map(|key| key.stat));
            let was = match (was, old.remove(&at)) {
                (Some(key), Some(digest)) => self.stand(&at, key, old_stat.unwrap_or(key.stat), digest),
                (Some(key), None) => standing(key),
                (None, _) => Stand::Absent,
            };
            let (is, new_stat) = match (is, new.remove(&at)) {
                (Some(key), Some(Ok((stat, digest)))) => (self.stand(&at, key, stat, Ok(digest)), Some(stat)),
                (Some(_), Some(Err(loss))) => {
                    // What it is now is not known, or it is gone again.
                    self.losses.insert(at, loss);
                    continue;
                }
                (Some(key), None) => (standing(key), Some(key.stat)),
                (None, _) => (Stand::Absent, None),
            };
            turns.push(Turn { at, was, is, old: old_stat, new: new_stat });
        }
        Ok(turns)
    }

    /// The paths that may have changed, but for those of which nothing is kept by their nature.
    fn seen<'s>(&mut self, first: &'s Scan, second: &'s Scan) -> Vec<Seen<'s>> {
        let fresh = &self.before.fresh;
        let old = |at: &WsPath| fresh.get(at).map(|(stat, _)| *stat);
        let differ = Scan::diff(first, second);
        let mut seen: Vec<Seen<'s>> = Vec::with_capacity(differ.len());
        for found in differ {
            let either =
                |wanted: fn(&Key) -> bool| found.was.is_some_and(wanted) || found.is.is_some_and(wanted);
            if either(|key| key.protected) {
                // What git makes of its own is git's.
                if found.at.path.leaf() != Some(b".git") || found.is.is_none() {
                    self.losses.insert(found.at, Loss::Protected);
                }
            } else if either(|key| key.kind == EntryKind::Other) {
                self.losses.insert(found.at, Loss::Special);
            } else {
                let old = old(&found.at);
                seen.push(Seen { at: found.at, was: found.was, is: found.is, old });
            }
        }
        let listed: BTreeSet<WsPath> = seen.iter().map(|seen| seen.at.clone()).collect();
        // The stat of these proves nothing.
        for at in fresh.keys().filter(|at| !listed.contains(*at)) {
            if let (Some(was), Some(is)) = (first.get(at), second.get(at)) {
                seen.push(Seen { at: at.clone(), was: Some(was), is: Some(is), old: old(at) });
            }
        }
        seen
    }

    /// Takes the texts of links into the ledger.
    fn store_targets(&mut self, seen: &[Seen<'_>]) -> Result<(), Refusal> {
        let mut storing = record::Storing::new(self.ws.ledger());
        let targets = seen.iter().flat_map(|seen| [seen.was, seen.is]).flatten();
        for target in targets.filter_map(|key| key.target.as_deref()) {
            storing.bytes(target.to_vec()).map_err(|error| error.refusal())?;
        }
        self.pins.push(storing.done().map_err(|error| error.refusal())?);
        Ok(())
    }

    /// The digests of the old bytes of the files among these, which are in the ledger then.
    fn old_images(&mut self, seen: &[Seen<'_>]) -> Result<HashMap<WsPath, Result<Digest, Loss>>, Refusal> {
        let mut images = HashMap::new();
        let mut in_git: BTreeMap<WsPath, Vec<(&Seen<'_>, Box<str>)>> = BTreeMap::new();
        for one in seen {
            let Some(was) = one.was.filter(|was| was.kind == EntryKind::File) else { continue };
            match self.before.image(&one.at, &one.old.unwrap_or(was.stat)) {
                Ok(Image::Stored(digest)) => drop(images.insert(one.at.clone(), Ok(digest))),
                Ok(Image::Git { repository, object }) => {
                    in_git.entry((*repository).clone()).or_default().push((one, object));
                }
                Err(loss) => drop(images.insert(one.at.clone(), Err(loss))),
            }
        }
        for (repository, files) in in_git {
            let objects: Vec<&str> = files.iter().map(|(_, object)| &**object).collect();
            let mut storing = record::Storing::new(self.ws.ledger());
            let mut failed = None;
            let mut take = |index: usize, bytes: Vec<u8>| {
                let Some((one, _)) = files.get(index) else { return };
                // Only an object of that length is the file as it stood.
                if one.was.is_none_or(|was| was.stat.size != bytes.len() as u64) {
                    return;
                }
                match storing.bytes(bytes) {
                    Ok(digest) => drop(images.insert(one.at.clone(), Ok(digest))),
                    Err(error) => failed = Some(error),
                }
            };
            if let Some(git) = &self.before.git {
                git.contents(&repository, &objects, &mut take);
            }
            let stored = failed.map_or_else(|| storing.done(), Err);
            self.pins.push(stored.map_err(|error| error.refusal())?);
            for (one, _) in &files {
                images.entry(one.at.clone()).or_insert(Err(Loss::ImageGone));
            }
        }
        Ok(images)
    }

    /// What stood at a path, with its digest. Where nobody has its bytes that is noted.
    fn stand(&mut self, at: &WsPath, key: &Key, stat: Stat, digest: Result<Digest, Loss>) -> Stand {
        match digest {
            Ok(digest) if key.kind == EntryKind::File => Stand::Entry(Entry::file(digest), stat.mode),
            Ok(_) => standing(key),
            Err(loss) => {
                self.losses.insert(at.clone(), loss);
                Stand::Unknown
            }
        }
    }

    /// What others did not do. A path that they go on changing is looked at again.
    fn own(&mut self, turns: Vec<Turn>) -> Result<Vec<Turn>, Refusal> {
        let mut others = self.others()?;
        let mut waiting = others.without_moved_along(turns);
        let mut own = Vec::with_capacity(waiting.len());
        for round in 0..=AGAIN {
            let mut moved_on = Vec::new();
            for mut turn in waiting {
                let touched = !others.steps(&turn.at).is_empty();
                if touched && round < AGAIN && self.look_again(&mut turn)? {
                    moved_on.push(turn);
                } else {
                    own.extend(self.without(&others, turn, round < AGAIN));
                }
            }
            if moved_on.is_empty() {
                break;
            }
            waiting = moved_on;
            others = self.others()?;
        }
        own.sort_by(|a, b| a.at.cmp(&b.at));
        Ok(own)
    }

    /// What is left of a turn without what others did.
    fn without(&mut self, others: &Others, turn: Turn, held: bool) -> Option<Turn> {
        let left = others.own(&turn.at, turn.was, turn.is, held);
        if left.overlapped {
            self.overlapped.insert(turn.at.clone());
        }
        if left.step.is_none() {
            self.same(&turn);
        }
        left.step.map(|(was, is)| Turn { was, is, ..turn })
    }

    fn others(&self) -> Result<Others, Refusal> {
        Others::since(self.ws.ledger(), &self.before.mark).map_err(|error| error.refusal())
    }

    /// Reads a path anew if it is not as it was read; whether it was so.
    fn look_again(&mut self, turn: &mut Turn) -> Result<bool, Refusal> {
        let key = self.ws.tree().key(&turn.at);
        if key.as_ref().map(|key| key.stat) == turn.new || matches!(turn.is, Stand::Dir(_)) {
            return Ok(false);
        }
        turn.new = key.as_ref().map(|key| key.stat);
        turn.is = match key {
            None => Stand::Absent,
            Some(key) if key.kind == EntryKind::File => {
                let wanted = vec![Wanted { at: turn.at.clone(), bytes: key.stat.size }];
                let read = reading::store(self.ws, wanted, self.before.bounds, true);
                let (mut read, pins) = read.map_err(|error| error.refusal())?;
                self.pins.extend(pins);
                let found = read.pop().map(|read| read.found);
                match found {
                    Some(Ok((stat, digest))) => {
                        turn.new = Some(stat);
                        Stand::Entry(Entry::file(digest), stat.mode)
                    }
                    _ => Stand::Unknown,
                }
            }
            Some(key) => {
                if let Some(target) = &key.target {
                    record::store(self.ws.ledger(), target).map_err(|error| error.refusal())?;
                }
                standing(&key)
            }
        };
        Ok(true)
    }

    /// A path that is as it was, but perhaps in what is not put back.
    fn same(&mut self, turn: &Turn) {
        let (Some(old), Some(new)) = (turn.old, turn.new) else { return };
        let owner = |stat: Stat| (stat.uid, stat.gid);
        if self.overlapped.contains(&turn.at) {
            return;
        }
        if let (Stand::Dir(_), Stand::Dir(_)) = (turn.was, turn.is) {
            self.losses.insert(turn.at.clone(), Loss::Directory);
        } else if owner(old) != owner(new) {
            self.losses.insert(turn.at.clone(), Loss::Owner);
        }
    }

    /// Notes what can be recorded but not, or not wholly, taken back; and takes off what a name alone restores.
    fn note_losses(&mut self, turns: &[Turn], renames: &renames::Renames) {
        for turn in turns {
            let owner = |stat: Stat| (stat.uid, stat.gid);
            let other_owner = turn.old.zip(turn.new).is_some_and(|(old, new)| owner(old) != owner(new));
            let loss = match (turn.was, turn.is) {
                (Stand::Unknown, Stand::Absent) if renames.contains_key(&turn.at) => {
                    self.losses.remove(&turn.at);
                    continue;
                }
                (Stand::Entry(..), Stand::Dir(_)) | (Stand::Dir(_), Stand::Entry(..)) => Loss::KindChanged,
                (Stand::Entry(..), Stand::Entry(..)) if turn.new.is_some_and(|new| new.nlink > 1) => {
                    Loss::HardLinked
                }
                (Stand::Entry(..), Stand::Entry(..)) if other_owner => Loss::Owner,
                _ => continue,
            };
            self.losses.entry(turn.at.clone()).or_insert(loss);
        }
    }

    /// Makes the images durable. What lost its old one meanwhile is no part of the change.
    fn make_durable(&mut self, files: &mut Vec<ChangeFile>) -> Result<(), Refusal> {
        let ledger = self.ws.ledger();
        let images: Vec<Digest> = files.iter().flat_map(|file| [file.pre, file.post]).flatten().collect();
        let all: BTreeSet<Digest> = images.into_iter().collect();
        let there: BTreeSet<Digest> = all.into_iter().filter(|digest| record::has(ledger, *digest)).collect();
        let losses = &mut self.losses;
        files.retain(|file| {
            let kept = file.pre.is_none_or(|pre| there.contains(&pre));
            if !kept {
                losses.insert(file.at.clone(), Loss::ImageGone);
            }
            kept
        });
        let there: Vec<Digest> = there.into_iter().collect();
        record::sync_blobs(ledger, &there).map_err(|error| error.refusal())
    }

    /// Writes the change and tells everyone.
    fn record(&self, files: &[ChangeFile], author: &Author, tool: &str) -> Result<ChangeId, Refusal> {
        let change = Change {
            id: ChangeId(0),
            time: self.ws.clock().wall(),
            kind: ChangeKind::Observed,
            outcome: Outcome::Sealed,
            agent: Some(Arc::clone(&author.agent)).filter(|agent| **agent != *HUMAN),
            session: Some(author.session),
            task: author.task.clone(),
            turn: author.turn,
            tool: tool.into(),
            files: files.to_vec(),
            undoes: None,
        };
        let id = record::observe(self.ws.ledger(), change).map_err(|error| error.refusal())?;
        if files.iter().any(|file| !matches!(file.op, ChangeOp::Create | ChangeOp::MakeDir)) {
            self.ws.upkeep.taken_away(author.session);
        }
        self.tell(id, files, author);
        Ok(id)
    }

    fn tell(&self, change: ChangeId, files: &[ChangeFile], author: &Author) {
        let (mut landed, mut moves, mut maps) = (Vec::new(), Vec::new(), Vec::new());
        let is_dir = |file: &&ChangeFile| matches!(file.op, ChangeOp::MakeDir | ChangeOp::RemoveDir);
        for file in files.iter().filter(|file| !is_dir(file)) {
            if let Some(from) = file.from.as_ref().filter(|_| file.op == ChangeOp::Move) {
                landed.push(LandedFile { at: from.clone(), post: None, lines: Vec::new() });
                moves.push((from.clone(), file.at.clone()));
            }
            let map = if maps.len() < TOLD_FILES { self.line_map(file) } else { None };
            let region =
                |region: &Region| (region.new.start, region.new.end.saturating_sub(1).max(region.new.start));
            let lines = map.as_ref().map(|map: &LineMap| map.regions.iter().map(region).collect());
            landed.push(LandedFile {
                at: file.at.clone(),
                post: file.post,
                lines: lines.unwrap_or_default(),
            });
            maps.push((file, map.unwrap_or_default()));
        }
        let told: Vec<(WsPath, Option<Digest>)> =
            landed.iter().map(|file| (file.at.clone(), file.post)).collect();
        let all = Landed {
            change,
            files: told,
            outcome: Outcome::Sealed,
            grade_notes: Vec::new(),
            overtaken: Vec::new(),
        };
        self.ws.announce(Some(author.session), &all, &landed, &moves);
        let now = self.ws.clock().steady();
        let mut coord = self.ws.coord();
        for (file, map) in maps.iter().filter(|(file, _)| file.op != ChangeOp::Move) {
            if let Some(old) = file.pre {
                coord.renewed(author.session, &file.at, old, file.post, map, now);
            }
        }
    }

    /// Where the lines of an edited text went.
    fn line_map(&self, file: &ChangeFile) -> Option<LineMap> {
        let (pre, post) = (file.pre?, file.post?);
        let image = |digest: Digest| {
            let bytes = self.ws.ledger().blob(digest).ok().flatten()?;
            let loaded = Loaded::of(Content::from(bytes), None);
            (loaded.text && loaded.bytes.len() <= TOLD_BYTES).then_some(loaded)
        };
        let (old, new) = (image(pre)?, image(post)?);
        let regions = cotenant_text::changed_regions(&old.bytes, &old.form, &new.bytes, &new.form);
        Some(LineMap { regions, total_lines: Some(new.line_count()), known: true })
    }
}

/// What stands at a path that is no file.
fn standing(key: &Key) -> Stand {
    match key.kind {
        EntryKind::Link => Stand::link(key),
        EntryKind::Dir => Stand::Dir(key.stat.mode),
        EntryKind::File | EntryKind::Other => Stand::Unknown,
    }
}
