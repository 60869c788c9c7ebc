//! `kill -9` at every step of a commit and inside recovery, with foreign writers at every step: no version of anyone's
//! is lost, no set of files is torn, no temporary name is left.

use std::collections::BTreeMap;

use cotenant_model::{FileOp, Outcome};

use crate::foreign::{Foreign, KINDS, Kind};
use crate::remote::{End, Run, Then, run};
use crate::rig::*;

/// A version of a file: all have the same length, so that writers in place leave nothing of each other.
fn version(name: &str) -> Vec<u8> {
    format!("{name:.<40}\n").into_bytes()
}

/// The bytes of a path before and after.
type Images = (Option<Vec<u8>>, Option<Vec<u8>>);
/// One of the two.
type Side = fn(&Images) -> &Option<Vec<u8>>;
/// What a plan does to each path.
type Effects = BTreeMap<&'static str, Images>;

/// The files that a job touches, before and after.
fn effects(job: &str) -> Effects {
    let edit =
        |name: &'static str| (Some(version(&format!("{name} old"))), Some(version(&format!("{name} new"))));
    match job {
        "none" => Effects::new(),
        "edit" => [("f", edit("f"))].into(),
        "large" | "huge" => {
            let (old, new) = edit("f");
            let grown = |bytes: Option<Vec<u8>>| bytes.map(|bytes| bytes.repeat(times(job)));
            [("f", (grown(old), grown(new)))].into()
        }
        "two" => [("a", edit("a")), ("sub/b", edit("sub/b"))].into(),
        "create" => [("new/c", (None, Some(version("new/c new"))))].into(),
        "all" => [
            ("a", edit("a")),
            ("b", edit("b")),
            ("new/c", (None, Some(version("new/c new")))),
            ("old/d", (Some(version("old/d old")), None)),
        ]
        .into(),
        "move" => moved("from", "to", None).into(),
        "over" => moved("from", "to", Some("to old")).into(),
        "tidy" => [("b", edit("b")), ("old/e", (Some(version("old/e old")), None))]
            .into_iter()
            .chain(moved("a", "new/a", None))
            .chain(moved("c", "sub/d", Some("sub/d old")))
            .chain(moved("dir/one", "new/dir/one", None))
            .collect(),
        other => panic!("no job {other}"),
    }
}

/// A file that goes to another path, perhaps over one that stands there.
fn moved(from: &'static str, to: &'static str, over: Option<&str>) -> [(&'static str, Images); 2] {
    let file = Some(version(&format!("{from} old")));
    [(from, (file.clone(), None)), (to, (over.map(version), file))]
}

/// The other end of a move: whoever writes into a file while it moves writes at both.
fn other_end(path: &str) -> Option<&'static str> {
    const ENDS: [(&str, &str); 4] =
        [("from", "to"), ("a", "new/a"), ("c", "sub/d"), ("dir/one", "new/dir/one")];
    ENDS.iter().find_map(|(from, to)| {
        if path == *from {
            Some(*to)
        } else if path == *to {
            Some(*from)
        } else {
            None
        }
    })
}

/// The operations of a job that moves.
fn moves(job: &str) -> Vec<FileOp> {
    let old = |path: &str| version(&format!("{path} old"));
    let over = |from: &str, to: &str| move_over(from, to, &old(from), &old(to));
    match job {
        "move" => vec![move_to("from", "to", &old("from"))],
        "over" => vec![over("from", "to")],
        "tidy" => vec![
            mkdir("new"),
            replace("b", &old("b"), &version("b new")),
            move_to("a", "new/a", &old("a")),
            over("c", "sub/d"),
            // What lies below it: a file `one`.
            move_listed("dir", "new/dir", b"one\0\0"),
            delete("old/e", &old("old/e")),
            rmdir("old"),
        ],
        _ => Vec::new(),
    }
}

/// How often a version is repeated in the files of a job: to be over what an intent carries, and to be 20 MB.
fn times(job: &str) -> usize {
    match job {
        "large" => 1000,
        "huge" => 500_000,
        _ => 1,
    }
}

/// The plan of a job.
pub fn job(name: &str) -> Vec<FileOp> {
    let moves = moves(name);
    if !moves.is_empty() {
        return moves;
    }
    let mut ops: Vec<FileOp> = effects(name)
        .into_iter()
        .map(|(path, images)| match images {
            (Some(old), Some(new)) => replace(path, &old, &new),
            (None, Some(new)) => create(path, &new),
            (Some(old), None) => delete(path, &old),
            (None, None) => panic!("{path}"),
        })
        .collect();
    if matches!(name, "create" | "all") {
        ops.push(mkdir("new"));
    }
    if name == "all" {
        ops.push(rmdir("old"));
    }
    ops
}

/// A workspace before the job.
pub fn before(job: &str) -> Place {
    let place = Place::fast();
    for (path, (old, _)) in effects(job) {
        let path = place.tree.path().join(path);
        if let Some(old) = old {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, old).unwrap();
        }
    }
    place
}

/// Whether everything is as before the job, and whether everything is as after it.
pub fn sides(job: &str, rig: &Rig) -> (bool, bool) {
    let effects = effects(job);
    let all = |side: Side| effects.iter().all(|(path, images)| rig.read(path) == *side(images));
    (all(|images| &images.0), all(|images| &images.1))
}

/// Every image of a job that landed is in the ledger; of one that did not the old ones are there or stand.
pub fn images_are_kept(job: &str, rig: &Rig, landed: bool, what: &str) {
    for (path, (old, new)) in effects(job) {
        assert!(old.is_none_or(|old| rig.has(&old)), "the old {path} is lost: {what}");
        if landed {
            let kept = |new: &Vec<u8>| rig.blob(new).is_some() || !moves(job).is_empty() && rig.has(new);
            assert!(new.is_none_or(|new| kept(&new)), "the new {path} is not kept: {what}");
        }
    }
}

/// One attack: a job, where its process is killed, and what a foreign program does where.
#[derive(Clone, Debug)]
struct Attack {
    job: &'static str,
    kill: Option<usize>,
    foreign: Option<(Kind, &'static str, usize)>,
    /// Where the recovery after it is killed.
    kill_recovery: Option<usize>,
    /// A second foreign program, at a step of that recovery.
    foreign_in_recovery: Option<(Kind, &'static str, usize)>,
}

impl Attack {
    fn on(job: &'static str) -> Attack {
        Attack { job, kill: None, foreign: None, kill_recovery: None, foreign_in_recovery: None }
    }

    /// Carries the attack out, recovers, and checks every promise. Returns the runs.
    fn check(&self) -> (Run, Option<Run>) {
        let place = before(self.job);
        let mut foreigners: Vec<(&'static str, Foreign)> = Vec::new();
        let start = |attack: Option<(Kind, &'static str, usize)>| {
            let (kind, path, _) = attack?;
            let path_on_disk = place.tree.path().join(path);
            let holds = matches!(kind, Kind::Held | Kind::Mapped);
            (path_on_disk.exists() || !holds).then(|| (path, Foreign::new(kind, &path_on_disk)))
        };
        let go = |job: &str,
                  kill: Option<usize>,
                  at: Option<usize>,
                  who: &mut Option<(&str, Foreign)>,
                  bytes: &[u8]| {
            run(place.tree.path(), place.state.path(), job, |step, _| {
                if Some(step) == at
                    && let Some((_, foreign)) = who
                {
                    foreign.write(bytes);
                }
                if Some(step) == kill { Then::Die } else { Then::Go }
            })
        };
        let mut first = start(self.foreign);
        let ran = go(
            self.job,
            self.kill,
            self.foreign.map(|(_, _, step)| step),
            &mut first,
            &self.bytes("foreign one"),
        );
        if let Some((path, mut foreign)) = first {
            foreign.leave();
            foreigners.push((path, foreign));
        }
        let mut recovery = None;
        if self.kill_recovery.is_some() || self.foreign_in_recovery.is_some() {
            let mut second = start(self.foreign_in_recovery);
            let at = self.foreign_in_recovery.map(|(_, _, step)| step);
            recovery = Some(go("none", self.kill_recovery, at, &mut second, &self.bytes("foreign two")));
            if let Some((path, mut foreign)) = second {
                foreign.leave();
                foreigners.push((path, foreign));
            }
        }
        let rig = place.open();
        rig.settle();
        self.promises(&rig, &ran, &foreigners);
        (ran, recovery)
    }

    /// A foreign version, as long as the files of the job.
    fn bytes(&self, name: &str) -> Vec<u8> {
        version(name).repeat(times(self.job))
    }

    fn promises(&self, rig: &Rig, ran: &Run, foreigners: &[(&'static str, Foreign)]) {
        let effects = effects(self.job);
        let destroyed =
            |bytes: &[u8]| foreigners.iter().any(|(_, foreign)| foreign.destroyed.as_deref() == Some(bytes));
        for (path, (old, _)) in &effects {
            if let Some(old) = old.as_ref().filter(|old| !destroyed(old)) {
                assert!(rig.has(old), "the old {path} is lost: {self:?} {ran:?}");
            }
        }
        for (path, foreign) in foreigners {
            if let Some(bytes) = foreign.wrote.as_ref().filter(|bytes| !destroyed(bytes)) {
                assert!(rig.has(bytes), "a foreign {path} is lost: {self:?} {ran:?}");
            }
        }
        if ran.end == End::Landed {
            for (path, (_, new)) in &effects {
                // What was moved and then overwritten at its new place was overwritten like any file.
                let moved = other_end(path).is_some() && !moves(self.job).is_empty();
                let due = new.as_ref().filter(|new| !(moved && destroyed(new)));
                assert!(due.is_none_or(|new| rig.has(new)), "our new {path} is lost: {self:?} {ran:?}");
            }
        }
        self.not_torn(rig, ran, foreigners, &effects);
        self.foreign_on_top(rig, ran, foreigners);
        self.history_agrees(rig, ran, foreigners, &effects);
    }

    /// All or none, of every path that nobody else wrote.
    fn not_torn(&self, rig: &Rig, ran: &Run, foreigners: &[(&'static str, Foreign)], effects: &Effects) {
        let moving = !moves(self.job).is_empty();
        let touched = |path: &str| {
            let end = other_end(path).filter(|_| moving);
            foreigners.iter().any(|(other, _)| *other == path || Some(*other) == end)
        };
        let ours: Vec<_> = effects.iter().filter(|(path, _)| !touched(path)).collect();
        let all = |side: Side| ours.iter().all(|(path, images)| rig.read(path) == *side(images));
        let (old, new) = (all(|images| &images.0), all(|images| &images.1));
        assert!(old || new, "torn: {:?} {self:?} {ran:?}", files(&rig.root));
        if ran.end == End::Landed {
            assert!(new, "answered, but not there: {self:?} {ran:?}");
        }
        // No version is ever mixed with another.
        for (path, (old, new)) in effects {
            let now = rig.read(path);
            let foreign = foreigners.iter().any(|(_, foreign)| foreign.wrote == now);
            assert!(
                now.is_none() || now == *old || now == *new || foreign,
                "mixed: {path} {now:?} {self:?} {ran:?}"
            );
        }
        let entered =
            foreigners.iter().any(|(path, foreign)| path.starts_with("new/") && foreign.wrote.is_some());
        if matches!(self.job, "create" | "all" | "tidy") && old && !new && !entered {
            let left = std::fs::read_dir(rig.root.join("new")).is_ok_and(|mut names| names.next().is_none());
            assert!(!left, "an empty directory is left: {self:?} {ran:?}");
        }
    }

    /// A foreign file that was put at the path, or its removal, stays on top.
    fn foreign_on_top(&self, rig: &Rig, ran: &Run, foreigners: &[(&'static str, Foreign)]) {
        let Some((path, last)) = foreigners.last() else { return };
        match last.kind {
            // What lies in a directory goes with it.
            Kind::RenameOver if *path == "dir/one" && rig.read("new/dir/one") == last.wrote => {}
            Kind::RenameOver if last.wrote.is_some() => {
                assert_eq!(rig.read(path), last.wrote, "not on top: {self:?} {ran:?}");
            }
            Kind::Remove if last.destroyed.is_some() => {
                assert_eq!(rig.read(path), None, "came back: {self:?} {ran:?}");
            }
            _ => {}
        }
    }

    /// History says what stands on the disk, and what it says can be undone.
    fn history_agrees(
        &self,
        rig: &Rig,
        ran: &Run,
        foreigners: &[(&'static str, Foreign)],
        effects: &Effects,
    ) {
        let query = cotenant_ledger::Query { aborted: true, ..Default::default() };
        let planned: Vec<_> = rig
            .ledger
            .history(&query)
            .unwrap()
            .into_iter()
            .filter(|change| change.kind == cotenant_model::ChangeKind::Planned)
            .collect();
        assert!(
            planned.len() <= 1 && planned.iter().all(|change| change.outcome != Outcome::Open),
            "{planned:?}"
        );
        if !foreigners.is_empty() {
            return;
        }
        let sealed = planned.iter().any(|change| change.outcome == Outcome::Sealed);
        for (path, (old, new)) in effects {
            let stands = rig.read(path);
            assert_eq!(
                stands == *new,
                sealed,
                "history and disk differ: {path} {planned:?} {self:?} {ran:?}"
            );
            if sealed {
                for image in [old, new].into_iter().flatten() {
                    // What was moved and stands needs no copy of itself.
                    let kept = rig.blob(image).is_some() || other_end(path).is_some() && rig.has(image);
                    assert!(kept, "cannot be undone: {path} {self:?} {ran:?}");
                }
            }
        }
    }
}

/// How many steps an undisturbed run of a job has.
fn steps_of(job: &'static str) -> usize {
    let (ran, _) = Attack::on(job).check();
    assert_eq!(ran.end, End::Landed, "{ran:?}");
    ran.steps.len()
}

/// Every n-th attack, all of them where the long tests are asked for.
fn each(share: usize) -> usize {
    if std::env::var_os("COTENANT_LONG").is_some() { 1 } else { share }
}

/// D379, C066: killed at every step, old or new.
#[test]
fn killed_at_every_step() {
    for job in ["edit", "large", "two", "create", "all", "move", "over", "tidy", "huge"] {
        if job == "huge" && each(2) > 1 {
            continue;
        }
        for kill in 0..steps_of(job) {
            let (ran, _) = Attack { kill: Some(kill), ..Attack::on(job) }.check();
            assert_eq!(ran.end, End::Killed);
        }
    }
}

#[test]
fn a_foreign_writer_at_every_step() {
    for (job, path, share) in [
        ("edit", "f", 1),
        ("large", "f", 1),
        ("two", "sub/b", 1),
        ("all", "a", 2),
        ("all", "old/d", 2),
        ("all", "new/c", 2),
        ("move", "from", 1),
        ("move", "to", 1),
        ("over", "from", 2),
        ("over", "to", 2),
        ("tidy", "sub/d", 7),
    ] {
        for step in (0..steps_of(job)).step_by(each(share)) {
            for kind in KINDS {
                Attack { foreign: Some((kind, path, step)), ..Attack::on(job) }.check();
            }
        }
    }
}

#[test]
fn killed_at_every_step_with_a_foreign_writer_at_every_step_before() {
    let mut count = 0;
    for (job, path, share) in [
        ("edit", "f", 5),
        ("two", "a", 29),
        ("two", "sub/b", 29),
        ("all", "a", 83),
        ("all", "old/d", 83),
        ("move", "from", 7),
        ("move", "to", 7),
        ("over", "from", 11),
        ("over", "to", 11),
        ("tidy", "a", 211),
        ("tidy", "sub/d", 211),
        ("tidy", "dir/one", 211),
    ] {
        for kill in 0..steps_of(job) {
            for step in 0..=kill {
                for kind in KINDS {
                    count += 1;
                    if count % each(share) == 0 {
                        Attack { kill: Some(kill), foreign: Some((kind, path, step)), ..Attack::on(job) }
                            .check();
                    }
                }
            }
        }
    }
}

#[test]
fn killed_again_at_every_step_of_recovery() {
    let mut count = 0;
    for (job, path, share) in [
        ("edit", "f", 5),
        ("two", "a", 17),
        ("all", "b", 67),
        ("move", "to", 7),
        ("over", "from", 13),
        ("over", "to", 13),
        ("tidy", "sub/d", 211),
    ] {
        for kill in 0..steps_of(job) {
            // How long this recovery is, and that it works when it is left alone.
            let undisturbed = Attack { kill: Some(kill), kill_recovery: Some(usize::MAX), ..Attack::on(job) };
            let steps = undisturbed.check().1.unwrap().steps.len();
            for again in 0..steps {
                for kind in [None, Some(Kind::RenameOver), Some(Kind::Truncate), Some(Kind::Remove)] {
                    count += 1;
                    if count % each(share) == 0 {
                        Attack {
                            kill: Some(kill),
                            kill_recovery: Some(again),
                            foreign_in_recovery: kind.map(|kind| (kind, path, again)),
                            ..Attack::on(job)
                        }
                        .check();
                    }
                }
            }
        }
    }
}
