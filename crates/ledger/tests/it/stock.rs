//! Which changes retention drops: the trash's limits beside those of history, and the rule against a naive model.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use cotenant_ledger::{Keep, Ledger, LedgerOptions, Query, Restorable, commit, prune};
use cotenant_model::{Change, ChangeFile, ChangeOp, Digest, Durability, Millis, Outcome, WsPath};
use proptest::prelude::*;

use crate::{CHILD, Folder, change, child, edit, in_folder, intent};

const DAY: u64 = 24 * 3600 * 1000;
/// After every file's own time.
const NOW: Millis = Millis(40_000 * DAY);
/// Bytes of a small image; every fourth is four times as large.
const SIZE: usize = 100_000;

fn size(number: u8) -> usize {
    if number % 4 == 3 { 4 * SIZE } else { SIZE }
}

/// An image and its digest; unlike each other, so that none is packed.
fn image(number: u8) -> &'static (Vec<u8>, Digest) {
    static IMAGES: [OnceLock<(Vec<u8>, Digest)>; 256] = [const { OnceLock::new() }; 256];
    IMAGES[usize::from(number)].get_or_init(|| {
        let mut image = vec![0; size(number)];
        image.chunks_mut(8).zip(1_u64..).for_each(|(chunk, at)| {
            let word = at.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (u64::from(number) << 32));
            chunk.copy_from_slice(&word.to_le_bytes());
        });
        let digest = Digest::of(&image);
        (image, digest)
    })
}

/// What happened at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Edited,
    Written,
    Deleted,
    MovedOver,
}

/// A file of a change.
#[derive(Clone, Debug)]
struct Made {
    folder: u16,
    path: u8,
    what: What,
    pre: u8,
    post: u8,
}

impl Made {
    fn at(&self) -> WsPath {
        in_folder(self.folder, &format!("f{}", self.path))
    }

    /// Where a move comes from: a path that nothing else is at.
    fn from(&self) -> WsPath {
        in_folder(self.folder, &format!("from{}", self.path))
    }

    fn file(&self) -> ChangeFile {
        let (pre, post) = (Some(image(self.pre).1), Some(image(self.post).1));
        let file = ChangeFile { at: self.at(), pre, post, ..edit("x", b"", b"") };
        match self.what {
            What::Edited | What::Written => file,
            What::Deleted => ChangeFile { op: ChangeOp::Delete, post: None, post_mode: 0, ..file },
            What::MovedOver => ChangeFile { op: ChangeOp::Move, from: Some(self.from()), ..file },
        }
    }

    fn images(&self) -> Vec<u8> {
        if self.what == What::Deleted { vec![self.pre] } else { vec![self.pre, self.post] }
    }
}

/// Lands a change, `days` before now, with its images.
fn land(ledger: &Ledger, files: &[Made], days: u64) -> Change {
    let id = commit::next_change(ledger);
    let tool = if files.iter().any(|file| file.what == What::Written) { "write_file" } else { "apply_patch" };
    for number in files.iter().flat_map(Made::images) {
        let (bytes, digest) = image(number);
        if !commit::has(ledger, *digest) {
            commit::store(ledger, bytes).unwrap();
        }
    }
    let made = change(id, files.iter().map(Made::file).collect());
    let made = Change { time: Millis(NOW.0 - days * DAY), tool: tool.into(), ..made };
    commit::intend(ledger, intent(made)).wait().unwrap();
    commit::seal(ledger, id, Outcome::Sealed, None);
    ledger.change(id).unwrap().unwrap()
}

fn delete(folder: u16, path: u8, pre: u8) -> Vec<Made> {
    vec![Made { folder, path, what: What::Deleted, pre, post: 0 }]
}

fn gone(ledger: &Ledger, changes: &[Change]) -> Vec<usize> {
    let expired = |change: &Change| ledger.restorable(change) != Ok(Restorable::Yes);
    changes.iter().enumerate().filter(|(_, change)| expired(change)).map(|(at, _)| at).collect()
}

#[test]
fn a_deletion_is_kept_thirty_days_and_an_edit_ninety() {
    let folder = Folder::new();
    let ledger = folder.open();
    let edited = |path: u8, what: What| vec![Made { folder: 0, path, what, pre: 0, post: 1 }];
    let mixed = [delete(0, 5, 2), edited(6, What::Edited)].concat();
    let changes = [
        land(&ledger, &delete(0, 1, 2), 91),
        land(&ledger, &edited(2, What::Edited), 91),
        land(&ledger, &edited(3, What::Written), 91),
        land(&ledger, &mixed, 31),
        land(&ledger, &edited(2, What::Edited), 31),
        land(&ledger, &edited(3, What::Written), 31),
        land(&ledger, &delete(0, 4, 2), 31),
        land(&ledger, &delete(0, 1, 2), 29),
        land(&ledger, &edited(2, What::Edited), 1),
        land(&ledger, &edited(3, What::Written), 1),
        land(&ledger, &edited(6, What::Edited), 1),
    ];
    prune(&ledger, NOW, Keep::default()).unwrap();
    // An old edit, and of the trash what is over thirty days; a change that edits as well goes with the edits.
    assert_eq!(gone(&ledger, &changes), [0, 1, 2, 5, 6]);
    prune(&ledger, NOW.plus(60 * DAY), Keep::default()).unwrap();
    assert_eq!(gone(&ledger, &changes), [0, 1, 2, 3, 4, 5, 6, 7], "what stands at a path keeps its newest");
}

#[test]
fn each_folder_has_its_own_trash_and_the_newest_is_spared() {
    let folder = Folder::new();
    let ledger = folder.open();
    let keep = Keep { trash_megabytes: 1, ..Keep::default() };
    let mut changes: Vec<Change> =
        (0..12).map(|number| land(&ledger, &delete(0, number, number * 4), 1)).collect();
    changes.extend((0..3).map(|number| land(&ledger, &delete(1, number, 100 + number * 4), 1)));
    prune(&ledger, NOW, keep).unwrap();
    // Ten of the first folder and its newest; the other folder is within its own limit.
    assert_eq!(gone(&ledger, &changes), [0]);
    let huge: Vec<Made> = (0..5).flat_map(|number| delete(1, 10 + number, 3 + number * 4)).collect();
    changes.push(land(&ledger, &huge, 0));
    prune(&ledger, NOW, keep).unwrap();
    assert_eq!(
        gone(&ledger, &changes),
        [0],
        "two megabytes at once, and the newest: nothing gives way to it"
    );
    changes.push(land(&ledger, &delete(1, 20, 200), 0));
    prune(&ledger, NOW, keep).unwrap();
    assert_eq!(gone(&ledger, &changes), [0, 15], "then it goes itself, and not what is older and small");
}

#[test]
fn one_installation_of_packages_does_not_evict_the_rest() {
    let folder = Folder::new();
    let ledger = folder.open();
    let edited = |path: u8, pre: u8| vec![Made { folder: 0, path, what: What::Edited, pre, post: pre + 4 }];
    let mut changes: Vec<Change> = (0..6).map(|number| land(&ledger, &edited(1, number * 4), 10)).collect();
    let packages: Vec<Made> = (0..4).flat_map(|number| edited(10 + number, 3 + number * 4)).collect();
    changes.push(land(&ledger, &packages, 9));
    changes.extend((0..6).map(|number| land(&ledger, &edited(1, 24 + number * 4), 8)));
    // Later edits, so that nothing of it is the newest of its path.
    let later: Vec<Made> = (0..4).flat_map(|number| edited(10 + number, 100)).collect();
    changes.push(land(&ledger, &later, 7));
    prune(&ledger, NOW, Keep { megabytes: 2, ..Keep::default() }).unwrap();
    assert_eq!(gone(&ledger, &changes), [6]);
    prune(&ledger, NOW, Keep { megabytes: 1, ..Keep::default() }).unwrap();
    assert_eq!(gone(&ledger, &changes), [0, 6], "and only then the oldest");
}

#[test]
fn what_a_move_took_away_does_not_hold_its_old_path() {
    let folder = Folder::new();
    let ledger = folder.open();
    let old = Made { folder: 0, path: 1, what: What::Edited, pre: 0, post: 1 };
    let first = land(&ledger, std::slice::from_ref(&old), 100);
    let away = ChangeFile {
        op: ChangeOp::Move,
        from: Some(old.at()),
        pre: None,
        pre_mode: 0,
        at: in_folder(0, "elsewhere"),
        ..edit("x", b"", &image(1).0)
    };
    let id = commit::next_change(&ledger);
    let made = Change { time: Millis(NOW.0 - DAY), ..change(id, vec![away]) };
    commit::intend(&ledger, intent(made)).wait().unwrap();
    commit::seal(&ledger, id, Outcome::Sealed, None);
    prune(&ledger, NOW, Keep::default()).unwrap();
    assert_eq!(gone(&ledger, &[first]), [0]);
    assert_eq!(ledger.blob(image(1).1).unwrap().as_ref(), Some(&image(1).0), "what stands is whole");
}

/// The child: lands edits and deletions and drops what is over the limits, without end.
fn work_until_killed(dir: &Path) {
    let options = LedgerOptions { dir: dir.to_owned(), durability: Durability::Full };
    let (ledger, _) = Ledger::open(&options).unwrap();
    let keep = Keep { megabytes: 1, trash_megabytes: 1, ..Keep::default() };
    for number in (0_u8..200).cycle() {
        let edited = Made { folder: 0, path: number % 3, what: What::Edited, pre: number, post: number + 1 };
        land(&ledger, &[edited], 1);
        land(&ledger, &delete(1, number % 5, number), 1);
        if number % 8 == 7 {
            prune(&ledger, NOW, keep).unwrap();
            println!("pruned {number}");
        }
    }
}

#[test]
fn killed_while_it_drops() {
    const NAME: &str = "stock::killed_while_it_drops";
    if let Some(dir) = std::env::var_os(CHILD) {
        work_until_killed(Path::new(&dir));
        return;
    }
    let folder = Folder::new();
    let mut dropped = 0;
    for round in 0..8 {
        let mut child = child(NAME, &folder.state()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut lines = out.lines().map_while(Result::ok).filter(|line| line.starts_with("pruned"));
        assert!(lines.nth(round % 4).is_some(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let (ledger, unsealed) = folder.try_open(Durability::Full).unwrap();
        unsealed.iter().for_each(|intent| commit::seal(&ledger, intent.change.id, Outcome::Aborted, None));
        let changes = ledger.history(&Query::default()).unwrap();
        let (kept, gone): (Vec<_>, Vec<_>) =
            changes.iter().partition(|change| ledger.restorable(change) == Ok(Restorable::Yes));
        dropped = dropped.max(gone.len());
        for image in
            kept.iter().flat_map(|change| &change.files).flat_map(|file| [file.pre, file.post]).flatten()
        {
            assert!(ledger.blob(image).unwrap().is_some(), "what is not marked is whole");
        }
    }
    assert!(dropped > 10, "{dropped}");
}

/// The rule, said once more with sets and without a database.
struct Model<'a> {
    changes: &'a [(Vec<Made>, u64)],
    pinned: BTreeSet<usize>,
}

impl<'a> Model<'a> {
    fn new(changes: &'a [(Vec<Made>, u64)]) -> Model<'a> {
        let mut pinned = BTreeSet::new();
        for path in changes.iter().flat_map(|(files, _)| files).map(Made::at) {
            let at =
                |(_, (files, _)): &(usize, &(Vec<Made>, u64))| files.iter().any(|file| file.at() == path);
            let Some((newest, (files, _))) = changes.iter().enumerate().rfind(at) else {
                continue;
            };
            if files.iter().any(|file| file.at() == path && file.what != What::Deleted) {
                pinned.insert(newest);
            }
        }
        Model { changes, pinned }
    }

    fn images(&self, change: usize) -> BTreeSet<u8> {
        self.changes[change].0.iter().flat_map(Made::images).collect()
    }

    /// What changes hold together, without what pinned ones hold.
    fn weight(&self, members: &BTreeSet<usize>) -> u64 {
        let pinned: BTreeSet<u8> = self.pinned.iter().flat_map(|change| self.images(*change)).collect();
        let held: BTreeSet<u8> = members.iter().flat_map(|change| self.images(*change)).collect();
        held.difference(&pinned).map(|number| size(*number) as u64).sum()
    }

    fn is_trash(&self, change: usize, folder: u16) -> bool {
        let files = &self.changes[change].0;
        files.iter().all(|file| file.what != What::Edited) && files.iter().any(|file| file.folder == folder)
    }

    /// Drops from `members` what is over `limit`, the heavy ones first.
    fn shrink(&self, members: &mut BTreeSet<usize>, limit: u64) {
        if self.weight(members) <= limit {
            return;
        }
        let without = |change: usize| {
            let rest: BTreeSet<usize> = members.iter().copied().filter(|member| *member != change).collect();
            self.weight(&rest)
        };
        let all = self.weight(members);
        let (heavy, light): (Vec<usize>, Vec<usize>) =
            members.iter().partition(|change| all - without(**change) > limit / 4);
        for change in heavy.into_iter().chain(light) {
            if self.weight(members) <= limit {
                break;
            }
            members.remove(&change);
        }
    }

    fn dropped(&self, keep: Keep) -> Vec<usize> {
        let free: BTreeSet<usize> =
            (0..self.changes.len()).filter(|change| !self.pinned.contains(change)).collect();
        let mut left = free.clone();
        for folder in 0..2 {
            let trash: BTreeSet<usize> =
                (0..self.changes.len()).filter(|change| self.is_trash(*change, folder)).collect();
            left.retain(|change| !trash.contains(change) || self.changes[*change].1 <= keep.trash_days);
            let mut members: BTreeSet<usize> = left.intersection(&trash).copied().collect();
            members.retain(|change| Some(change) != trash.last());
            let before = members.clone();
            self.shrink(&mut members, keep.trash_megabytes * 1_000_000);
            left.retain(|change| !before.contains(change) || members.contains(change));
        }
        left.retain(|change| self.changes[*change].1 <= keep.days);
        self.shrink(&mut left, keep.megabytes * 1_000_000);
        free.difference(&left).copied().collect()
    }
}

fn a_file() -> impl Strategy<Value = Made> {
    let what = prop::sample::select([What::Edited, What::Written, What::Deleted, What::MovedOver].as_slice());
    (0_u16..2, 0_u8..4, what, 0_u8..24, 0_u8..24).prop_map(|(folder, path, what, pre, post)| Made {
        folder,
        path,
        what,
        pre,
        post,
    })
}

/// A change: no path twice, and all its files of a kind that one tool makes.
fn a_change() -> impl Strategy<Value = (Vec<Made>, u64)> {
    (prop::collection::vec(a_file(), 1..4), 0_u64..120).prop_map(|(mut files, days)| {
        files.sort_by_key(Made::at);
        files.dedup_by_key(|file| file.at());
        if files.iter().any(|file| file.what == What::Written) {
            // Of this tool every edit is an overwriting.
            files
                .iter_mut()
                .filter(|file| file.what == What::Edited)
                .for_each(|file| file.what = What::Written);
        }
        (files, days)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_rule_is_what_the_model_says(
        changes in prop::collection::vec(a_change(), 1..16),
        days in prop::sample::select([0_u64, 50, 90, 1000].as_slice()),
        trash_days in prop::sample::select([0_u64, 30, 1000].as_slice()),
        megabytes in 0_u64..3,
        trash_megabytes in 0_u64..2,
    ) {
        let folder = Folder::new();
        let (ledger, _) = folder.try_open(Durability::Fast).unwrap();
        let landed: Vec<Change> = changes.iter().map(|(files, days)| land(&ledger, files, *days)).collect();
        let keep = Keep { days, megabytes, trash_days, trash_megabytes };
        let model = Model::new(&changes);
        let wanted = model.dropped(keep);
        let report = prune(&ledger, NOW, keep).unwrap();
        prop_assert_eq!(gone(&ledger, &landed), &wanted[..], "{:?}", keep);
        let left: BTreeSet<usize> = (0..changes.len()).filter(|change| !wanted.contains(change)).collect();
        let free: BTreeSet<usize> = left.difference(&model.pinned).copied().collect();
        prop_assert_eq!(report.kept, model.weight(&free));
        for number in left.iter().flat_map(|change| model.images(*change)) {
            prop_assert!(commit::has(&ledger, image(number).1), "a kept change is whole");
        }
    }
}
