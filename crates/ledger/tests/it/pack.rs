//! Large images kept as deltas: how much that saves, that every image stays what it was, and that nothing that happens
//! in between loses one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use cotenant_ledger::{Keep, Ledger, LedgerError, LedgerOptions, commit, prune};
use cotenant_model::{Change, Digest, Durability, Millis, Outcome};
use proptest::prelude::*;

use crate::{CHILD, Folder, change, child, edit, intent};

const DAY: u64 = 24 * 3600 * 1000;
/// After every file's own time.
const NOW: Millis = Millis(40_000 * DAY);
/// Just large enough to be packed.
const SIZE: usize = 260_000;

/// Bytes that repeat nowhere.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length.div_ceil(8)).flat_map(|_| next()).take(length).collect()
}

/// The same with ten bytes changed at `place`, of which `mark` is said.
fn edited(image: &[u8], place: usize, mark: u64) -> Vec<u8> {
    let mut image = image.to_vec();
    let place = place % (image.len() - 10);
    image[place..place + 8].copy_from_slice(&mark.to_le_bytes());
    image
}

/// Lands an edit, `days` before now, both images stored.
fn land(ledger: &Ledger, path: &str, pre: &[u8], post: &[u8], days: u64) -> Change {
    let id = commit::next_change(ledger);
    commit::store(ledger, pre).unwrap();
    commit::store(ledger, post).unwrap();
    let made = Change { time: Millis(NOW.0 - days * DAY), ..change(id, vec![edit(path, pre, post)]) };
    commit::intend(ledger, intent(made)).wait().unwrap();
    commit::seal(ledger, id, Outcome::Sealed, None);
    ledger.change(id).unwrap().unwrap()
}

fn pack_all(ledger: &Ledger) {
    while commit::pack(ledger).unwrap() {}
}

/// The file of an image.
fn file(folder: &Folder, digest: Digest) -> PathBuf {
    let hex = digest.hex();
    folder.state().join("blobs").join(&hex[..2]).join(hex)
}

/// Bytes of all image files.
fn stored(folder: &Folder) -> u64 {
    let shelves = fs::read_dir(folder.state().join("blobs")).unwrap();
    let files = shelves.flat_map(|shelf| fs::read_dir(shelf.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// A look into the database.
fn ask(folder: &Folder, sql: &str) -> i64 {
    let conn = rusqlite::Connection::open(folder.state().join("ledger.db")).unwrap();
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Bytes of all deltas.
const DELTAS: &str = "SELECT ifnull(sum(length(bytes)), 0) FROM image WHERE base IS NOT NULL";
/// The longest chain.
const DEPTH: &str = "WITH RECURSIVE up(id, depth) AS (SELECT id, 0 FROM image WHERE base IS NULL \
                     UNION ALL SELECT i.id, depth + 1 FROM up JOIN image i ON i.base = up.id) \
                     SELECT ifnull(max(depth), 0) FROM up";

fn versions(count: u64, size: usize) -> Vec<Vec<u8>> {
    let mut versions = vec![noise(1, size)];
    for number in 1..=count {
        let last = versions.last().unwrap();
        versions.push(edited(last, number as usize * 37_501, number));
    }
    versions
}

fn land_all(ledger: &Ledger, versions: &[Vec<u8>], days: u64) -> Vec<Change> {
    versions.windows(2).map(|pair| land(ledger, "f", &pair[0], &pair[1], days)).collect()
}

fn all_there(ledger: &Ledger, images: &[Vec<u8>]) {
    for image in images {
        let digest = Digest::of(image);
        assert!(commit::has(ledger, digest));
        assert!(ledger.blob(digest).unwrap().as_deref() == Some(image), "{digest} is what it was");
    }
}

#[test]
fn ten_bytes_of_a_megabyte_do_not_cost_a_megabyte_for_ever() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(40, 1_000_000);
    land_all(&ledger, &images, 1);
    assert_eq!(stored(&folder), 41_000_000);
    pack_all(&ledger);
    assert_eq!(stored(&folder), 1_000_000, "the first one is left as a file");
    assert!(ask(&folder, DELTAS) < 41 * 400, "and what it costs to know the others");
    assert!(ask(&folder, DEPTH) <= 8, "no image is far from a whole one");
    all_there(&ledger, &images);
    drop(ledger);
    let ledger = folder.open();
    all_there(&ledger, &images);
    assert!(!commit::pack(&ledger).unwrap(), "once is enough");
}

#[test]
fn what_is_not_alike_or_small_stays_a_file() {
    let folder = Folder::new();
    let ledger = folder.open();
    let [one, other] = [noise(1, SIZE), noise(2, SIZE)];
    land(&ledger, "unlike", &one, &other, 1);
    let small = noise(3, 100_000);
    land(&ledger, "small", &small, &edited(&small, 5, 1), 1);
    pack_all(&ledger);
    assert_eq!((stored(&folder), ask(&folder, DELTAS)), (2 * SIZE as u64 + 200_000, 0));
    all_there(&ledger, &[one, other, small]);
}

#[test]
fn an_image_that_comes_again_makes_no_circle() {
    let folder = Folder::new();
    let ledger = folder.open();
    let a = noise(1, SIZE);
    let (b, c) = (edited(&a, 100, 1), edited(&a, 200_000, 2));
    // There and back, over another path, and to what others stand on.
    for (path, pre, post) in [
        ("f", &a, &b),
        ("f", &b, &a),
        ("f", &a, &c),
        ("f", &c, &b),
        ("g", &c, &a),
        ("g", &a, &c),
        ("g", &b, &a),
    ] {
        land(&ledger, path, pre, post, 1);
        pack_all(&ledger);
        all_there(&ledger, &[a.clone(), b.clone()]);
    }
    assert_eq!(stored(&folder), SIZE as u64);
    all_there(&ledger, &[a, b, c]);
}

#[test]
fn a_packed_image_is_stored_like_any_other() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(1, SIZE);
    land_all(&ledger, &images, 1);
    pack_all(&ledger);
    let packed = Digest::of(&images[1]);
    assert!(!file(&folder, packed).exists());
    assert_eq!(commit::store(&ledger, &images[1]), Ok(packed));
    assert!(!file(&folder, packed).exists(), "it is there already");
    commit::sync_blobs(&ledger, &[packed, Digest::of(&images[0])]).unwrap();
}

#[test]
fn an_open_intent_is_not_overtaken() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(2, SIZE);
    for image in &images {
        commit::store(&ledger, image).unwrap();
    }
    let open = commit::next_change(&ledger);
    commit::intend(&ledger, intent(change(open, vec![edit("f", &images[0], &images[1])]))).wait().unwrap();
    land(&ledger, "g", &images[0], &images[2], 1);
    pack_all(&ledger);
    assert_eq!(ask(&folder, DELTAS), 0, "what is sealed later must not be passed over");
    commit::seal(&ledger, open, Outcome::Sealed, None);
    commit::flush(&ledger).unwrap();
    pack_all(&ledger);
    assert_eq!(stored(&folder), SIZE as u64);
    all_there(&ledger, &images);
}

#[test]
fn what_was_sealed_behind_it_is_packed_after_a_restart() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(2, SIZE);
    // Its number is given, and others come first.
    let late = commit::next_change(&ledger);
    land(&ledger, "g", &images[0], &images[1], 1);
    pack_all(&ledger);
    commit::store(&ledger, &images[2]).unwrap();
    commit::intend(&ledger, intent(change(late, vec![edit("f", &images[1], &images[2])]))).wait().unwrap();
    commit::seal(&ledger, late, Outcome::Sealed, None);
    commit::flush(&ledger).unwrap();
    drop(ledger);
    let ledger = folder.open();
    pack_all(&ledger);
    assert_eq!(stored(&folder), SIZE as u64);
    all_there(&ledger, &images);
}

#[test]
fn what_others_stand_on_outlives_its_own_change() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(12, SIZE);
    let changes = land_all(&ledger, &images[..11], 100);
    land(&ledger, "f", &images[10], &images[11], 10);
    land(&ledger, "f", &images[11], &images[12], 1);
    pack_all(&ledger);
    let report = prune(&ledger, NOW, Keep::default()).unwrap();
    assert_eq!(report.expired, changes.len() as u64);
    all_there(&ledger, &images[10..]);
    assert_eq!(ledger.blob(Digest::of(&images[1])), Ok(None), "nothing stands on it");
    assert!(file(&folder, Digest::of(&images[0])).exists(), "the kept ones stand on it");
    assert!(report.kept < 1000, "a base that only pinned images stand on does not count: {}", report.kept);
    // A pinned one holds what it stands on, too.
    land(&ledger, "f", &images[12], b"small now", 0);
    land(&ledger, "f", b"small now", b"small still", 0);
    let pin = ledger.pin(&[Digest::of(&images[11])]);
    let none = Keep { days: 0, megabytes: 0, trash_days: 0, trash_megabytes: 0 };
    prune(&ledger, NOW.plus(DAY), none).unwrap();
    all_there(&ledger, &images[11..12]);
    drop(pin);
    prune(&ledger, NOW.plus(DAY), none).unwrap();
    assert_eq!(stored(&folder), 0);
}

#[test]
fn a_base_counts_as_long_as_what_stands_on_it() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(3, 1_000_000);
    land(&ledger, "f", &images[0], &images[1], 100);
    land(&ledger, "f", &images[1], &images[2], 2);
    land(&ledger, "f", &images[2], b"none of it", 1);
    pack_all(&ledger);
    let keep = Keep { megabytes: 10, ..Keep::default() };
    let report = prune(&ledger, NOW, keep).unwrap();
    assert_eq!(report.expired, 1);
    assert_eq!(report.kept, 0, "the newest of its path stands on it");
    land(&ledger, "f", b"none of it", b"nor now", 0);
    let report = prune(&ledger, NOW, keep).unwrap();
    assert!((1_000_000..1_001_000).contains(&report.kept), "{report:?}");
    let report = prune(&ledger, NOW, Keep { megabytes: 0, ..keep }).unwrap();
    assert_eq!((report.expired, report.kept, stored(&folder)), (2, 0, 0));
}

#[test]
fn a_late_writer_reaches_no_base() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(3, SIZE);
    // As the pipeline takes over what it displaced: by a rename, whoever has it open.
    let name = folder.path().join("x");
    fs::write(&name, &images[0]).unwrap();
    let mut late = fs::OpenOptions::new().write(true).open(&name).unwrap();
    let dir = fs::File::open(folder.path()).unwrap();
    commit::adopt(&ledger, dir.as_fd(), b"x", Digest::of(&images[0])).unwrap();
    land_all(&ledger, &images, 1);
    pack_all(&ledger);
    late.seek(SeekFrom::Start(1000)).unwrap();
    late.write_all(b"too late").unwrap();
    all_there(&ledger, &images);
}

#[test]
fn damage_below_is_told_above() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(3, SIZE);
    land_all(&ledger, &images, 1);
    pack_all(&ledger);
    let base = file(&folder, Digest::of(&images[0]));
    fs::write(&base, edited(&images[0], 0, 9)).unwrap();
    let damaged = Digest::of(&images[0]);
    for image in &images {
        assert_eq!(ledger.blob(Digest::of(image)), Err(LedgerError::Corrupt(damaged)));
    }
    fs::remove_file(&base).unwrap();
    assert_eq!(ledger.blob(Digest::of(&images[2])), Err(LedgerError::Missing(damaged)));
    fs::write(&base, &images[0]).unwrap();
    all_there(&ledger, &images);
    drop(ledger);
    let conn = rusqlite::Connection::open(folder.state().join("ledger.db")).unwrap();
    conn.execute("UPDATE image SET bytes = x'0501' WHERE base IS NOT NULL", []).unwrap();
    // A circle that nothing of ours makes.
    conn.execute(
        "UPDATE image SET base = id WHERE digest = ?1",
        [Digest::of(&images[1]).as_bytes().as_slice()],
    )
    .unwrap();
    conn.close().unwrap();
    let ledger = folder.open();
    for image in &images[1..] {
        let digest = Digest::of(image);
        assert_eq!(ledger.blob(digest), Err(LedgerError::Corrupt(digest)));
    }
    prune(&ledger, NOW, Keep::default()).unwrap();
}

#[test]
fn what_is_damaged_is_left_as_it_is() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(2, SIZE);
    land_all(&ledger, &images, 1);
    fs::write(file(&folder, Digest::of(&images[1])), b"damaged").unwrap();
    pack_all(&ledger);
    assert_eq!(ask(&folder, DELTAS), 0, "neither it nor on it");
    all_there(&ledger, &[images[0].clone(), images[2].clone()]);
}

#[test]
fn readers_find_every_image_while_it_is_packed() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(24, SIZE);
    land_all(&ledger, &images, 1);
    let packed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (ledger, images, packed) = (&ledger, &images, &packed);
            scope.spawn(move || {
                for image in images.iter().cycle().skip(worker * 11) {
                    let digest = Digest::of(image);
                    assert!(ledger.blob(digest).unwrap().as_ref() == Some(image));
                    commit::sync_blobs(ledger, &[digest]).unwrap();
                    if packed.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        pack_all(&ledger);
        packed.store(true, Ordering::Relaxed);
    });
    assert_eq!(stored(&folder), SIZE as u64);
}

#[test]
fn a_file_left_behind_by_a_crash_is_removed_later() {
    let folder = Folder::new();
    let ledger = folder.open();
    let images = versions(2, SIZE);
    land_all(&ledger, &images, 1);
    pack_all(&ledger);
    // The row was written, then the process died.
    let left = file(&folder, Digest::of(&images[1]));
    fs::write(&left, &images[1]).unwrap();
    drop(ledger);
    let ledger = folder.open();
    all_there(&ledger, &images);
    let report = prune(&ledger, NOW, Keep::default()).unwrap();
    assert_eq!((report.images, report.expired), (1, 0));
    assert!(!left.exists());
    all_there(&ledger, &images);
}

#[test]
fn killed_while_it_packs() {
    const NAME: &str = "pack::killed_while_it_packs";
    let images = versions(30, SIZE);
    if let Some(dir) = std::env::var_os(CHILD) {
        let options = LedgerOptions { dir: dir.into(), durability: Durability::Full };
        let (ledger, _) = Ledger::open(&options).unwrap();
        loop {
            let more = commit::pack(&ledger).unwrap();
            println!("packed {more}");
        }
    }
    let folder = Folder::new();
    let ledger = folder.open();
    land_all(&ledger, &images, 1);
    drop(ledger);
    // Each round goes on where the one before was killed.
    for round in 0..15 {
        let mut child = child(NAME, &folder.state()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut lines = out.lines().map_while(Result::ok).filter(|line| line.starts_with("packed"));
        assert!(lines.nth(round % 3).is_some(), "it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let ledger = folder.open();
        all_there(&ledger, &images);
    }
    let ledger = folder.open();
    pack_all(&ledger);
    prune(&ledger, NOW, Keep::default()).unwrap();
    all_there(&ledger, &images);
    assert_eq!(stored(&folder), SIZE as u64);
}

/// What happens in the property below; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Step {
    Edit { path: u8, place: usize },
    Back { path: u8, to: usize },
    Pack,
    PackAll,
    Prune { days: u64 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..2, any::<usize>()).prop_map(|(path, place)| Step::Edit { path, place }),
        2 => (0_u8..2, any::<usize>()).prop_map(|(path, to)| Step::Back { path, to }),
        3 => Just(Step::Pack),
        1 => Just(Step::PackAll),
        1 => (0_u64..40).prop_map(|days| Step::Prune { days }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn whatever_is_packed_and_dropped_what_is_kept_is_whole(steps in prop::collection::vec(step(), 1..40)) {
        let folder = Folder::new();
        let (mut ledger, _) = folder.try_open(Durability::Fast).unwrap();
        let first = noise(1, SIZE);
        let mut now: BTreeMap<u8, Vec<u8>> = (0..2).map(|path| (path, first.clone())).collect();
        let mut seen = vec![first];
        let mut changes: Vec<(Change, [Vec<u8>; 2])> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            let next = match step {
                Step::Edit { path, place } => Some((path, edited(&now[&path], place, number as u64 + 1))),
                Step::Back { path, to } => Some((path, seen[to % seen.len()].clone())),
                Step::Pack => commit::pack(&ledger).map(|_| None).unwrap(),
                Step::PackAll => {
                    pack_all(&ledger);
                    None
                }
                Step::Prune { days } => {
                    let keep = Keep { days, ..Keep::default() };
                    prune(&ledger, NOW, keep).unwrap();
                    None
                }
                Step::Restart => {
                    drop(ledger);
                    ledger = folder.try_open(Durability::Fast).unwrap().0;
                    None
                }
            };
            let Some((path, image)) = next else { continue };
            let before = now.insert(path, image.clone()).unwrap();
            if before != image {
                let days = 40_u64.saturating_sub(number as u64);
                changes.push((land(&ledger, &format!("f{path}"), &before, &image, days), [before, image.clone()]));
                seen.push(image);
            }
        }
        for (change, images) in &changes {
            if ledger.restorable(change) == Ok(cotenant_ledger::Restorable::Yes) {
                all_there(&ledger, images);
            }
        }
        drop(ledger);
        prop_assert!(ask(&folder, DEPTH) <= 8);
    }
}
