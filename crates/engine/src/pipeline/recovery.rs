//! What a crash left is brought to all or nothing, without losing a version of anyone's (R5).
//!
//! Every path of an unsealed intent is one of a few cases of (what stands at the target, what at the temporary name);
//! the cases of all its paths decide whether the change goes forward or back. Each step leads to another such case, so
//! a crash in here is recovered the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use cotenant_ledger::commit as record;
use cotenant_ledger::{Intent, IntentPath};
use cotenant_model::{ChangeId, ChangeOp, Durability, Entry, EntryKind, Millis, Outcome, Refusal, WsPath};
use cotenant_tree::commit::{self, Flush, Held, Look, Spot};

use super::back::Top;
use super::desk::{Desk, Ours, Pair};
use super::finish::{Finish, Rest};
use super::miss::{Doing, Miss};
use super::prepare::home_of;

/// What stands at a name, seen from an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Absent,
    /// The image before the change (for a directory's removal: a directory).
    Pre,
    /// The image after it (for a directory's making: the one that was made).
    Post,
    Foreign,
}

/// How far a path came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its new file waits at the temporary name, nothing else happened.
    Ready,
    /// Nothing happened; a new file is lost.
    Untouched,
    /// It is swapped, or more than that.
    Swapped,
    /// A move that exchanged its two ends: what it goes over stands where it came from.
    Half,
    /// It cannot go forward: somebody else wrote there.
    Crossed,
    /// Nothing of ours is there, and not what was there before: somebody else wrote, before or after us.
    Unknown,
}

/// One path of an intent on the disk.
struct Found {
    path: IntentPath,
    pair: Pair,
    /// Where a move comes from.
    source: Option<Spot>,
    target: Is,
    temp: Is,
    /// Of a move: what stands where it comes from. `Post`: what is moved; `Pre`: what it goes over.
    origin: Is,
    stage: Stage,
    kept: bool,
    made: Option<Arc<Held>>,
}

/// Changes that were recovered, and how they ended.
pub(super) type Ended = Vec<(ChangeId, Outcome)>;

/// Brings the unsealed intents to all or nothing, oldest first. What is left to finish comes back, with what is left of
/// changes that were sealed before the crash: images are stored, and names removed, by the background.
pub(super) fn recover(
    desk: &Desk,
    unsealed: &[Intent],
    now: Millis,
) -> Result<(Ended, Vec<Finish>), Refusal> {
    let mut recovered = Vec::new();
    let mut left = Vec::new();
    let failed = |(at, miss): (WsPath, Miss)| miss.refusal(&desk.tree, &at);
    for sealed in record::unswept(&desk.ledger).map_err(|error| error.refusal())? {
        let found = find(desk, &sealed, &[]).map_err(failed)?;
        left.push(finish(sealed.change.id, sealed.change.outcome, found, now));
    }
    for (index, intent) in unsealed.iter().enumerate() {
        let later: Vec<&IntentPath> = unsealed[index + 1..].iter().flat_map(|later| &later.paths).collect();
        let found = find(desk, intent, &later).map_err(failed)?;
        let outcome = decide(desk, &found).map_err(failed)?;
        record::seal(&desk.ledger, intent.change.id, outcome, None);
        recovered.push((intent.change.id, outcome));
        left.push(finish(intent.change.id, outcome, found, now));
    }
    Ok((recovered, left))
}

fn finish(change: ChangeId, outcome: Outcome, found: Vec<Found>, now: Millis) -> Finish {
    Finish {
        change,
        durability: Durability::Full,
        time: now,
        since: Instant::now(),
        outcome,
        rests: found.into_iter().map(Found::rest).collect(),
    }
}

/// Looks at every path of an intent whose directories are still there.
fn find(desk: &Desk, intent: &Intent, later: &[&IntentPath]) -> Result<Vec<Found>, (WsPath, Miss)> {
    let fleeting: BTreeSet<WsPath> = intent
        .paths
        .iter()
        .filter(|path| matches!(path.op, ChangeOp::MakeDir | ChangeOp::RemoveDir))
        .map(|path| path.at.clone())
        .collect();
    let mut finder = Finder { desk, later, fleeting, moved_in: BTreeMap::new() };
    let mut found = Vec::new();
    finder
        .directories(intent)
        .map_err(|miss| (intent.paths.first().map(|path| path.at.clone()).unwrap_or_default(), miss))?;
    for path in &intent.paths {
        match finder.path(path) {
            Ok(Some(one)) => found.push(one),
            Ok(None) => {}
            Err(miss) => return Err((path.at.clone(), miss)),
        }
    }
    Ok(found)
}

struct Finder<'a> {
    desk: &'a Desk,
    later: &'a [&'a IntentPath],
    fleeting: BTreeSet<WsPath>,
    /// Directories of this change that stand at their temporary names: what lies in them is found there.
    moved_in: BTreeMap<WsPath, Arc<Held>>,
}

impl Finder<'_> {
    /// Holds the directories of this change that stand at their temporary names, outermost first: other paths of it
    /// lie in them.
    fn directories(&mut self, intent: &Intent) -> Result<(), Miss> {
        let mut paths: Vec<&IntentPath> =
            intent.paths.iter().filter(|path| self.fleeting.contains(&path.at)).collect();
        paths.sort_by(|a, b| a.at.cmp(&b.at));
        for path in paths {
            let Some(home) = self.dir(&home_of(&path.at, &self.fleeting))? else { continue };
            let hidden = home.find_child(path.temp.as_bytes(), &path.at).doing("opening the directory of")?;
            if let Some(held) = hidden {
                self.moved_in.insert(path.at.clone(), Arc::new(held));
            }
        }
        Ok(())
    }

    /// One path; `None` where neither its directory nor that of its temporary name is there any more.
    fn path(&mut self, path: &IntentPath) -> Result<Option<Found>, Miss> {
        let Some(home) = self.home(path)? else {
            self.desk.ask(super::Question {
                at: path.at.clone(),
                why: format!("its directory is gone; if it was moved, {} may lie in it", path.temp),
            });
            return Ok(None);
        };
        let parent = self.dir(&path.at.dir())?;
        let parent = parent.or_else(|| self.moved_in.get(&path.at.dir()).cloned());
        let leaf = path.at.path.leaf().unwrap_or(b".");
        let temp = Spot::new(home, path.temp.as_bytes());
        let missing = parent.is_none();
        // Where the directory was never made there is no target, and nothing must be mistaken for it.
        let target = parent.map_or_else(|| temp.clone(), |parent| Spot::new(parent, leaf));
        let pair = Pair { at: path.at.clone(), target, temp };
        let source = self.source(path)?;
        let mut found = self.desk.classify(path, pair, source, missing)?;
        if self.overwritten(path, &found.pair)? {
            found.stage = Stage::Swapped;
        }
        Ok(Some(found))
    }

    /// Where a move comes from; `None` where that directory is gone, and for any other operation.
    fn source(&self, path: &IntentPath) -> Result<Option<Spot>, Miss> {
        let Some(from) = &path.from else { return Ok(None) };
        let parent = self.dir(&from.dir())?;
        let parent = parent.or_else(|| self.moved_in.get(&from.dir()).cloned());
        Ok(parent.zip(from.path.leaf()).map(|(parent, leaf)| Spot::new(parent, leaf)))
    }

    /// The directory of a path's temporary name. Another directory that stands there now is none of ours, unless the
    /// name itself, which nobody else has, is in it.
    fn home(&self, path: &IntentPath) -> Result<Option<Arc<Held>>, Miss> {
        let at = home_of(&path.at, &self.fleeting);
        let Some(home) = self.dir(&at)? else { return Ok(None) };
        let same = at != path.at.dir() || path.parent.ino == home.id().ino;
        let named = || Spot::new(Arc::clone(&home), path.temp.as_bytes()).id().doing("looking beside");
        Ok(if same || named()?.is_some() { Some(home) } else { None })
    }

    fn dir(&self, at: &WsPath) -> Result<Option<Arc<Held>>, Miss> {
        Ok(Held::find(&self.desk.tree, at).doing("opening the directory of")?.map(Arc::new))
    }

    /// Whether a later intent on the path came so far that this one must have been through.
    fn overwritten(&self, path: &IntentPath, pair: &Pair) -> Result<bool, Miss> {
        let posts: Vec<Entry> =
            self.later.iter().filter(|later| later.at == path.at).filter_map(|later| post(later)).collect();
        if posts.is_empty() {
            return Ok(false);
        }
        let stands = pair.target.look().doing("looking at")?.entry().doing("reading")?;
        Ok(stands.is_some_and(|entry| posts.contains(&entry)))
    }
}

fn pre(path: &IntentPath) -> Option<Entry> {
    Some(Entry { kind: EntryKind::of_mode(path.pre_mode)?, digest: path.pre? })
}

fn post(path: &IntentPath) -> Option<Entry> {
    Some(Entry { kind: EntryKind::of_mode(path.post_mode)?, digest: path.post? })
}

impl Desk {
    /// Looks at the names of a path and says how far it came. `missing`: its directory was never made.
    fn classify(
        &self,
        path: &IntentPath,
        pair: Pair,
        source: Option<Spot>,
        missing: bool,
    ) -> Result<Found, Miss> {
        self.step("recover.look", &path.at).doing("looking at")?;
        let at_temp = pair.temp.look().doing("looking beside")?;
        let at_target = if missing { Look::Absent } else { pair.target.look().doing("looking at")? };
        let at_source = source.as_ref().map_or(Ok(Look::Absent), Spot::look).doing("looking at")?;
        let is = |look: &Look, temporary: bool| match path.op {
            ChangeOp::MakeDir | ChangeOp::RemoveDir => Ok(dir_is(path, look, temporary)),
            ChangeOp::Move => moved_is(path, look),
            _ => file_is(path, look),
        };
        let (target, temp, origin) = (is(&at_target, false)?, is(&at_temp, true)?, is(&at_source, false)?);
        let made = match (path.op, target) {
            (ChangeOp::MakeDir, Is::Post) => Some(Arc::new(
                pair.target.dir().child(pair.target.name(), &path.at).doing("opening the directory")?,
            )),
            _ => None,
        };
        let stage = match path.op {
            ChangeOp::Move => move_stage(path.pre.is_some(), origin, target, temp),
            op => stage(op, target, temp),
        };
        let kept = path.pre.is_none_or(|pre| path.inline_pre.is_some() || record::has(&self.ledger, pre));
        let path = IntentPath { inline_pre: None, ..path.clone() };
        Ok(Found { path, pair, source, target, temp, origin, stage, kept, made })
    }
}

fn file_is(path: &IntentPath, look: &Look) -> Result<Is, Miss> {
    let entry = look.entry().doing("reading")?;
    Ok(match (look, entry) {
        (Look::Absent, _) => Is::Absent,
        (_, Some(entry)) if post(path) == Some(entry) => Is::Post,
        (_, Some(entry)) if pre(path) == Some(entry) => Is::Pre,
        _ => Is::Foreign,
    })
}

/// What is moved is told by its inode: it may have been written at either place. What it goes over by its bytes.
fn moved_is(path: &IntentPath, look: &Look) -> Result<Is, Miss> {
    match look.id() {
        None => Ok(Is::Absent),
        Some(id) if path.made_ino == Some(id.ino) => Ok(Is::Post),
        Some(_) if pre(path).is_some() && look.entry().doing("reading")? == pre(path) => Ok(Is::Pre),
        Some(_) => Ok(Is::Foreign),
    }
}

/// What a directory operation sees at a name. At its temporary name a directory is the one that the intent speaks of;
/// at the target only its inode tells.
fn dir_is(path: &IntentPath, look: &Look, temporary: bool) -> Is {
    match (path.op, look) {
        (_, Look::Absent) => Is::Absent,
        (ChangeOp::RemoveDir, Look::Directory(_)) => Is::Pre,
        (ChangeOp::MakeDir, Look::Directory(id)) if temporary || path.made_ino == Some(id.ino) => Is::Post,
        _ => Is::Foreign,
    }
}

/// The table of R5.
fn stage(op: ChangeOp, target: Is, temp: Is) -> Stage {
    // What must stand at the target before, and after.
    let (before, after) = match op {
        ChangeOp::Edit => (Is::Pre, Is::Post),
        ChangeOp::Create | ChangeOp::MakeDir => (Is::Absent, Is::Post),
        // A move has a table of its own.
        ChangeOp::Delete | ChangeOp::RemoveDir | ChangeOp::Move => (Is::Pre, Is::Absent),
    };
    match temp {
        Is::Post if target == before => Stage::Ready,
        Is::Post => Stage::Crossed,
        Is::Pre => Stage::Swapped,
        Is::Foreign => Stage::Crossed,
        Is::Absent if target == before => Stage::Untouched,
        Is::Absent if target == after => Stage::Swapped,
        Is::Absent => Stage::Unknown,
    }
}

/// The same for a move, which has three names: where it comes from, where it goes, and the temporary one, at which
/// what it goes over ends.
fn move_stage(over: bool, origin: Is, target: Is, temp: Is) -> Stage {
    let before = if over { Is::Pre } else { Is::Absent };
    match (origin, target) {
        // Whatever came to the target since.
        (Is::Pre, _) if over => Stage::Half,
        (_, Is::Post) => Stage::Swapped,
        (Is::Post, target) if target == before && temp == Is::Absent => Stage::Ready,
        (Is::Post, _) => Stage::Crossed,
        _ => Stage::Unknown,
    }
}

/// Brings the paths to all or nothing and says which.
fn decide(desk: &Desk, found: &[Found]) -> Result<Outcome, (WsPath, Miss)> {
    let any = |stage: Stage| found.iter().any(|one| one.stage == stage);
    let begun = any(Stage::Swapped) || any(Stage::Half) || any(Stage::Ready);
    if any(Stage::Crossed) || (begun && (any(Stage::Untouched) || any(Stage::Unknown))) {
        for one in found.iter().filter(|one| one.stage == Stage::Unknown && begun) {
            desk.question(
                &one.pair,
                "it was written by another program while a change of several files was interrupted",
            );
        }
        return back(desk, found);
    }
    if !begun {
        return Ok(Outcome::Aborted);
    }
    for one in found.iter().filter(|one| matches!(one.stage, Stage::Ready | Stage::Half)) {
        match desk.go_forward(one) {
            Ok(()) => {}
            Err(miss) if miss.is_failure() => return Err((one.pair.at.clone(), miss)),
            Err(_) => {
                // Look again: what was forward a moment ago must go back now.
                let again =
                    |one: &Found| desk.classify(&one.path, one.pair.clone(), one.source.clone(), false);
                let seen = found.iter().map(again).collect::<Result<Vec<_>, _>>();
                return back(desk, &seen.map_err(|miss| (one.pair.at.clone(), miss))?);
            }
        }
    }
    names_durable(desk, found).map_err(|miss| (found[0].pair.at.clone(), miss))?;
    Ok(Outcome::Sealed)
}

/// Takes every path back, the last one first.
fn back(desk: &Desk, found: &[Found]) -> Result<Outcome, (WsPath, Miss)> {
    let mut outcome = Outcome::Aborted;
    for one in found.iter().rev() {
        match desk.go_back(one) {
            Ok(Top::Restored) => {}
            Ok(Top::Foreign) => outcome = Outcome::Overtaken,
            Err(miss) => return Err((one.pair.at.clone(), miss)),
        }
    }
    if let Some(first) = found.first() {
        names_durable(desk, found).map_err(|miss| (first.pair.at.clone(), miss))?;
    }
    Ok(outcome)
}

fn names_durable(desk: &Desk, found: &[Found]) -> Result<(), Miss> {
    let mut dirs: Vec<&Arc<Held>> = Vec::new();
    for one in found {
        let source = one.source.as_ref().map(Spot::dir);
        for dir in [one.pair.target.dir(), one.pair.temp.dir()].into_iter().chain(source) {
            if !dirs.iter().any(|seen| seen.id() == dir.id()) {
                dirs.push(dir);
            }
        }
    }
    let fds: Vec<_> = dirs.iter().map(|dir| dir.fd()).collect();
    if let Some(first) = found.first() {
        desk.step("recover.sync", &first.pair.at).doing("syncing the directory of")?;
    }
    commit::flush(&fds, Flush::Names, Durability::Full).doing("syncing the directory of")
}

impl Desk {
    /// Swaps in a path whose new file waits at the temporary name, with every check of a first commit.
    fn go_forward(&self, one: &Found) -> Result<(), Miss> {
        match (one.path.op, pre(&one.path), &one.source) {
            (ChangeOp::Edit, Some(pre), _) => {
                let ours = one.pair.temp.look().doing("looking beside")?;
                self.replace(&one.pair, ours.id().ok_or(Miss::Vanished)?, pre, |_| Ok(())).map(|_| ())
            }
            (ChangeOp::Move, _, Some(source)) if one.stage == Stage::Half => {
                self.step("recover.place", &one.pair.at).doing("placing")?;
                commit::rename(source, &one.pair.temp).doing("placing")
            }
            (ChangeOp::Move, over, Some(source)) => {
                let id = source.id().doing("looking at")?.ok_or(Miss::Vanished)?;
                self.move_to(&one.pair, source, id, post(&one.path), over).map(|_| ())
            }
            _ => {
                self.step("recover.place", &one.pair.at).doing("placing")?;
                commit::rename(&one.pair.temp, &one.pair.target).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => Miss::Exists,
                    _ => Miss::Io { doing: "placing", error },
                })
            }
        }
    }

    /// Takes back what of a path is swapped. What comes out waits at the temporary name.
    fn go_back(&self, one: &Found) -> Result<Top, Miss> {
        self.step("recover.back", &one.pair.at).doing("taking back")?;
        if one.path.op == ChangeOp::Move {
            return self.go_back_moved(one);
        }
        // Not swapped: nothing is to be taken back, whatever another put there.
        if matches!(one.stage, Stage::Ready | Stage::Untouched | Stage::Unknown) || one.temp == Is::Post {
            return Ok(Top::Restored);
        }
        match one.path.op {
            ChangeOp::Edit if one.target == Is::Post && one.temp == Is::Absent => Ok(self.lost_way_back(one)),
            ChangeOp::Edit if one.target == Is::Post => {
                let ours = one.pair.target.look().doing("looking at")?;
                self.back_exchange(&one.pair, ours.id().ok_or(Miss::Vanished)?)
            }
            ChangeOp::Create if one.target == Is::Post => {
                let ours = one.pair.target.look().doing("looking at")?;
                let (Some(id), Some(entry)) = (ours.id(), post(&one.path)) else { return Ok(Top::Restored) };
                self.back_creation(&one.pair, Ours { id, entry })
            }
            ChangeOp::MakeDir => match &one.made {
                Some(made) => self.back_directory(&one.pair, made),
                None => Ok(Top::Restored),
            },
            ChangeOp::Delete | ChangeOp::RemoveDir if one.temp != Is::Absent => self.back_removal(&one.pair),
            ChangeOp::Edit if one.target == Is::Pre => Ok(Top::Restored),
            // Another's bytes are on top of ours, or nothing because another removed them: that stays.
            _ => {
                if one.temp == Is::Foreign && one.target == Is::Foreign {
                    self.question(&one.pair, "two versions of other programs met here; the one at the path stays, the other is kept");
                }
                Ok(Top::Foreign)
            }
        }
    }

    /// Takes a move back as far as it came. A source whose directory is gone leaves what was moved where it is.
    fn go_back_moved(&self, one: &Found) -> Result<Top, Miss> {
        let moved = one.pair.target.id().doing("looking at")?;
        match (one.stage, &one.source, moved) {
            (Stage::Half, Some(source), Some(id)) if one.target == Is::Post => {
                self.back_moved(&one.pair, source, id, true)
            }
            // Another's file, or none, stands at the target and stays; what was moved over is kept.
            (Stage::Half, Some(source), _) => {
                commit::rename(source, &one.pair.temp).doing("taking back")?;
                Ok(Top::Foreign)
            }
            (Stage::Swapped, Some(source), Some(id)) if one.target == Is::Post => {
                self.back_move(&one.pair, source, id)
            }
            // It never left.
            _ if one.origin == Is::Post => Ok(Top::Restored),
            _ => Ok(Top::Foreign),
        }
    }

    /// The old file is not beside the new one any more: another program took it away.
    fn lost_way_back(&self, one: &Found) -> Top {
        self.question(
            &one.pair,
            "the file before the change is gone from its temporary name, so the change stays",
        );
        Top::Foreign
    }
}

impl Found {
    fn rest(self) -> Rest {
        let post = if self.path.op == ChangeOp::Move { None } else { post(&self.path) };
        Rest { pre: pre(&self.path), pair: self.pair, kept: self.kept, post, content: None, old: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of R5, case by case: what stands at the target and at the temporary name, and what that means.
    #[test]
    fn every_case_of_the_table() {
        use Is::{Absent, Foreign, Post, Pre};
        let cases = [
            // The new file waits beside: not swapped.
            (ChangeOp::Edit, Pre, Post, Stage::Ready),
            (ChangeOp::Edit, Foreign, Post, Stage::Crossed),
            (ChangeOp::Edit, Absent, Post, Stage::Crossed),
            // The old file waits beside: swapped, whatever came later.
            (ChangeOp::Edit, Post, Pre, Stage::Swapped),
            (ChangeOp::Edit, Foreign, Pre, Stage::Swapped),
            (ChangeOp::Edit, Absent, Pre, Stage::Swapped),
            // Swapped over a foreign file.
            (ChangeOp::Edit, Post, Foreign, Stage::Crossed),
            (ChangeOp::Edit, Foreign, Foreign, Stage::Crossed),
            // Nothing waits beside.
            (ChangeOp::Edit, Pre, Absent, Stage::Untouched),
            (ChangeOp::Edit, Post, Absent, Stage::Swapped),
            (ChangeOp::Edit, Foreign, Absent, Stage::Unknown),
            (ChangeOp::Create, Absent, Absent, Stage::Untouched),
            (ChangeOp::Create, Post, Absent, Stage::Swapped),
            (ChangeOp::Create, Foreign, Absent, Stage::Unknown),
            (ChangeOp::Create, Absent, Post, Stage::Ready),
            (ChangeOp::Delete, Pre, Absent, Stage::Untouched),
            (ChangeOp::Delete, Absent, Absent, Stage::Swapped),
            (ChangeOp::Delete, Absent, Pre, Stage::Swapped),
            (ChangeOp::Delete, Foreign, Pre, Stage::Swapped),
            (ChangeOp::Delete, Absent, Foreign, Stage::Crossed),
            (ChangeOp::MakeDir, Absent, Post, Stage::Ready),
            (ChangeOp::MakeDir, Post, Absent, Stage::Swapped),
            (ChangeOp::RemoveDir, Absent, Pre, Stage::Swapped),
            (ChangeOp::RemoveDir, Pre, Absent, Stage::Untouched),
        ];
        for (op, target, temp, expected) in cases {
            assert_eq!(stage(op, target, temp), expected, "{op:?} {target:?} {temp:?}");
        }
    }

    /// The same for moves: what stands where it comes from, where it goes, and at the temporary name.
    #[test]
    fn every_case_of_a_move() {
        use Is::{Absent, Foreign, Post, Pre};
        for (over, origin, target, temp, expected) in [
            (false, Post, Absent, Absent, Stage::Ready),
            (false, Absent, Post, Absent, Stage::Swapped),
            (false, Foreign, Post, Absent, Stage::Swapped),
            (false, Post, Foreign, Absent, Stage::Crossed),
            (false, Absent, Foreign, Absent, Stage::Unknown),
            (false, Absent, Absent, Absent, Stage::Unknown),
            (true, Post, Pre, Absent, Stage::Ready),
            (true, Pre, Post, Absent, Stage::Half),
            (true, Pre, Foreign, Absent, Stage::Half),
            (true, Pre, Absent, Absent, Stage::Half),
            (true, Absent, Post, Pre, Stage::Swapped),
            (true, Foreign, Post, Pre, Stage::Swapped),
            (true, Post, Absent, Absent, Stage::Crossed),
            (true, Post, Foreign, Absent, Stage::Crossed),
            (true, Post, Pre, Foreign, Stage::Crossed),
            (true, Absent, Foreign, Pre, Stage::Unknown),
        ] {
            let found = move_stage(over, origin, target, temp);
            assert_eq!(found, expected, "{over} {origin:?} {target:?} {temp:?}");
        }
    }
}
