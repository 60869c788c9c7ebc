//! What retention drops, and what it must not touch.

use cotenant_ledger::{IDEMPOTENCY_MS, Idempotency, Intent, Keep, Ledger, Report, Restorable, commit, prune};
use cotenant_model::{Change, ChangeId, Digest, Millis, Outcome};
use proptest::prelude::*;

use crate::{Folder, at, change, edit, intent};

const DAY: u64 = 24 * 3600 * 1000;
/// Far from the epoch and after every file's own time, so that nothing is young.
const NOW: Millis = Millis(40_000 * DAY);

/// An image of 100,000 bytes, of which the number is the first.
fn image(number: u32) -> Vec<u8> {
    let mut image = number.to_le_bytes().to_vec();
    image.resize(100_000, 0);
    image
}

fn digest(number: u32) -> Digest {
    Digest::of(&image(number))
}

/// Lands an edit of `path` from image `pre` to `post`, `days` before now, both images stored.
fn land(ledger: &Ledger, path: &str, pre: u32, post: u32, days: u64) -> Change {
    let id = commit::next_change(ledger);
    commit::store(ledger, &image(pre)).unwrap();
    commit::store(ledger, &image(post)).unwrap();
    let made = Change {
        time: Millis(NOW.0 - days * DAY),
        ..change(id, vec![edit(path, &image(pre), &image(post))])
    };
    commit::intend(ledger, intent(made)).wait().unwrap();
    commit::seal(ledger, id, Outcome::Sealed, None);
    ledger.change(id).unwrap().unwrap()
}

/// Limits of history alone.
fn keep(days: u64, megabytes: u64) -> Keep {
    Keep { days, megabytes, trash_days: days, trash_megabytes: megabytes }
}

fn kept(ledger: &Ledger, numbers: std::ops::Range<u32>) -> Vec<u32> {
    numbers.filter(|number| commit::has(ledger, digest(*number))).collect()
}

#[test]
fn old_changes_go_but_the_newest_of_each_path_stays() {
    let folder = Folder::new();
    let ledger = folder.open();
    let old = land(&ledger, "a", 0, 1, 100);
    let newest = land(&ledger, "a", 1, 2, 95);
    let other = land(&ledger, "b", 3, 4, 100);
    let report = prune(&ledger, NOW, keep(90, 1000)).unwrap();
    assert_eq!(report, Report { expired: 1, images: 1, bytes: 100_000, kept: 0 });
    assert_eq!(ledger.restorable(&old), Ok(Restorable::Expired { since: NOW }));
    assert_eq!(ledger.restorable(&newest), Ok(Restorable::Yes));
    assert_eq!(ledger.restorable(&other), Ok(Restorable::Yes));
    assert_eq!(kept(&ledger, 0..5), [1, 2, 3, 4]);
    assert_eq!(ledger.change(old.id).unwrap(), Some(old.clone()), "the record itself stays");
    drop(ledger);
    let ledger = folder.open();
    assert_eq!(ledger.restorable(&old), Ok(Restorable::Expired { since: NOW }));
    assert_eq!(prune(&ledger, NOW.plus(DAY), keep(90, 1000)).unwrap().expired, 0, "once is enough");
}

#[test]
fn over_the_limit_the_oldest_go_first_and_whole() {
    let folder = Folder::new();
    let ledger = folder.open();
    let changes: Vec<Change> = (0..20).map(|number| land(&ledger, "a", number, number + 1, 1)).collect();
    // Images 0 to 18 count (19 and 20 are of the newest change): 1.9 MB; changes 0 to 8 hold nine alone.
    let report = prune(&ledger, NOW, keep(90, 1)).unwrap();
    assert_eq!((report.kept, report.images), (1_000_000, 9));
    let gone = |change: &Change| ledger.restorable(change) != Ok(Restorable::Yes);
    let expired = changes.iter().filter(|change| gone(change)).count();
    assert_eq!(expired as u64, report.expired);
    assert!(changes[..expired].iter().all(gone), "oldest first");
    for change in changes.iter().filter(|change| !gone(change)) {
        let file = &change.files[0];
        assert!(
            [file.pre, file.post].iter().flatten().all(|image| commit::has(&ledger, *image)),
            "{change:?}"
        );
    }
}

#[test]
fn an_image_that_another_change_needs_stays() {
    let folder = Folder::new();
    let ledger = folder.open();
    land(&ledger, "a", 0, 1, 100);
    land(&ledger, "a", 1, 2, 100);
    land(&ledger, "b", 0, 3, 10);
    let report = prune(&ledger, NOW, keep(90, 1000)).unwrap();
    assert_eq!((report.expired, report.images), (1, 0));
    assert_eq!(kept(&ledger, 0..4), [0, 1, 2, 3]);
}

#[test]
fn pins_hold_until_they_are_dropped() {
    let folder = Folder::new();
    let ledger = folder.open();
    land(&ledger, "a", 0, 1, 100);
    land(&ledger, "a", 1, 2, 1);
    let first = ledger.pin(&[digest(0), digest(0)]);
    let second = ledger.pin(&[digest(0)]);
    assert_eq!(prune(&ledger, NOW, keep(90, 1000)).unwrap().images, 0);
    drop(first);
    assert_eq!(prune(&ledger, NOW, keep(90, 1000)).unwrap().images, 0);
    drop(second);
    assert_eq!(prune(&ledger, NOW, keep(90, 1000)).unwrap().images, 1);
    assert_eq!(kept(&ledger, 0..3), [1, 2]);
}

#[test]
fn an_unsealed_intent_keeps_its_images() {
    let folder = Folder::new();
    let ledger = folder.open();
    land(&ledger, "a", 0, 1, 100);
    land(&ledger, "a", 1, 2, 1);
    let id = commit::next_change(&ledger);
    commit::intend(&ledger, intent(change(id, vec![edit("b", &image(0), &image(9))]))).wait().unwrap();
    assert_eq!(prune(&ledger, NOW, keep(90, 0)).unwrap().images, 0);
    assert_eq!(kept(&ledger, 0..3), [0, 1, 2]);
}

#[test]
fn a_change_behind_a_key_stays_as_long_as_the_key() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = commit::next_change(&ledger);
    commit::store(&ledger, &image(0)).unwrap();
    let made = Change { time: Millis(NOW.0 - 1000), ..change(id, vec![edit("a", &image(0), &image(1))]) };
    let key = Idempotency { agent: "x".into(), tool: "t".into(), key: "k".to_owned(), args: Digest::of(b"") };
    commit::intend(&ledger, Intent { idempotency: Some(key.clone()), ..intent(made) }).wait().unwrap();
    commit::seal(&ledger, id, Outcome::Sealed, None);
    land(&ledger, "a", 1, 2, 0);
    assert_eq!(prune(&ledger, NOW, keep(0, 0)).unwrap().expired, 0);
    let later = NOW.plus(IDEMPOTENCY_MS);
    // The first look forgets the key, so that the next one may drop the change.
    prune(&ledger, later, keep(0, 0)).unwrap();
    assert_eq!(ledger.recall(&key, later), Ok(None));
    assert_eq!(prune(&ledger, later, keep(0, 0)).unwrap().expired, 1);
    assert_eq!(kept(&ledger, 0..1), [0; 0]);
}

#[test]
fn what_no_change_names_goes_after_a_day() {
    let folder = Folder::new();
    let ledger = folder.open();
    let large = commit::store(&ledger, &image(0)).unwrap();
    let small = commit::store(&ledger, b"small").unwrap();
    // The file's own time is the present of this machine.
    let present = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let present = Millis(u64::try_from(present.as_millis()).unwrap());
    assert_eq!(prune(&ledger, present, keep(90, 1000)).unwrap(), Report::default());
    assert!(commit::has(&ledger, large) && commit::has(&ledger, small));
    let report = prune(&ledger, present.plus(DAY + 10_000), keep(90, 1000)).unwrap();
    assert_eq!((report.images, report.bytes), (2, 100_005));
    assert!(!commit::has(&ledger, large) && !commit::has(&ledger, small));
    // Stored again, both are there again, and young again.
    commit::store(&ledger, &image(0)).unwrap();
    commit::store(&ledger, b"small").unwrap();
    assert_eq!(ledger.blob(small), Ok(Some(b"small".to_vec())));
    assert_eq!(prune(&ledger, present.plus(1), keep(90, 1000)).unwrap().images, 0);
}

#[test]
fn small_images_are_dropped_like_large_ones() {
    let folder = Folder::new();
    let ledger = folder.open();
    let land = |pre: &[u8], post: &[u8]| {
        let id = commit::next_change(&ledger);
        let mut intended = intent(change(id, vec![edit("a", pre, post)]));
        intended.paths[0].inline_pre = Some(pre.to_vec());
        commit::intend(&ledger, intended).wait().unwrap();
        commit::seal(&ledger, id, Outcome::Sealed, None);
        id
    };
    let first = land(b"one", b"two");
    land(b"two", b"three");
    let report = prune(&ledger, NOW, keep(90, 1000)).unwrap();
    assert_eq!((report.expired, report.images, report.bytes), (1, 1, 3));
    assert_eq!(ledger.blob(Digest::of(b"one")), Ok(None));
    assert_eq!(ledger.blob(Digest::of(b"two")), Ok(Some(b"two".to_vec())));
    assert_eq!(first, ChangeId(1));
}

#[test]
fn retention_beside_commits_never_drops_what_a_path_last_was() {
    let folder = Folder::new();
    let ledger = folder.open();
    std::thread::scope(|scope| {
        for worker in 0..3_u32 {
            let ledger = &ledger;
            scope.spawn(move || {
                for step in 0..25 {
                    let (pre, post) = (worker * 1000 + step, worker * 1000 + step + 1);
                    // As the pipeline does it: pinned, then relied on.
                    let pins = ledger.pin(&[digest(pre), digest(post)]);
                    land(ledger, &format!("w{worker}"), pre, post, 1);
                    assert!(commit::has(ledger, digest(pre)), "{worker} {step}");
                    drop(pins);
                }
            });
        }
        for _ in 0..10 {
            prune(&ledger, NOW, keep(90, 0)).unwrap();
        }
    });
    prune(&ledger, NOW, keep(90, 0)).unwrap();
    for worker in 0..3_u32 {
        let newest = ledger.newest(&at(&format!("w{worker}"))).unwrap();
        assert_eq!(ledger.restorable(&newest), Ok(Restorable::Yes));
        assert_eq!(newest.files[0].post, Some(digest(worker * 1000 + 25)));
        assert_eq!(
            kept(&ledger, worker * 1000..worker * 1000 + 26),
            [worker * 1000 + 24, worker * 1000 + 25]
        );
    }
}

#[test]
fn an_aborted_change_does_not_make_its_path_newer() {
    let folder = Folder::new();
    let ledger = folder.open();
    let stands = land(&ledger, "a", 0, 1, 100);
    let id = commit::next_change(&ledger);
    let undone =
        Change { time: Millis(NOW.0 - 99 * DAY), ..change(id, vec![edit("a", &image(1), &image(2))]) };
    commit::intend(&ledger, intent(undone)).wait().unwrap();
    commit::seal(&ledger, id, Outcome::Aborted, None);
    assert_eq!(prune(&ledger, NOW, keep(90, 1000)).unwrap().expired, 1);
    assert_eq!(ledger.restorable(&stands), Ok(Restorable::Yes));
    assert_ne!(ledger.restorable(&ledger.change(id).unwrap().unwrap()), Ok(Restorable::Yes));
    assert_eq!(kept(&ledger, 0..2), [0, 1]);
}

/// A change of the property below: path, images, age in days.
type Small = (u8, u8, u8, u64);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_is_kept_is_whole_and_what_is_dropped_is_oldest(
        changes in prop::collection::vec((0_u8..4, 0_u8..8, 0_u8..8, 0_u64..200), 1..24),
        pinned in prop::collection::vec(0_u8..8, 0..2),
        days in prop::sample::select([0_u64, 50, 90, 1000].as_slice()),
        megabytes in 0_u64..2,
    ) {
        let folder = Folder::new();
        let (ledger, _) = folder.try_open(cotenant_model::Durability::Fast).unwrap();
        let landed: Vec<(Small, Change)> = changes
            .into_iter()
            .map(|small| {
                let (path, pre, post, age) = small;
                (small, land(&ledger, &format!("f{path}"), u32::from(pre), u32::from(post), age))
            })
            .collect();
        let pins: Vec<Digest> = pinned.iter().map(|number| digest(u32::from(*number))).collect();
        let guard = ledger.pin(&pins);
        let report = prune(&ledger, NOW, keep(days, megabytes)).unwrap();

        let gone = |change: &Change| ledger.restorable(change) != Ok(Restorable::Yes);
        let newest = |index: usize| landed[index + 1..].iter().all(|(small, _)| small.0 != landed[index].0.0);
        let mut counted: Vec<Digest> = Vec::new();
        for (index, (small, change)) in landed.iter().enumerate() {
            let images = [digest(u32::from(small.1)), digest(u32::from(small.2))];
            if gone(change) {
                prop_assert!(!newest(index), "the newest of a path stays: {}", index);
                continue;
            }
            prop_assert!(images.iter().all(|image| commit::has(&ledger, *image)), "whole: {}", index);
            if !newest(index) {
                prop_assert!(small.3 <= days, "over age: {}", index);
                counted.extend(images);
            }
        }
        for pin in &pins {
            let landed_it = |change: &Change| [change.files[0].pre, change.files[0].post].contains(&Some(*pin));
            let stored = landed.iter().any(|(_, change)| landed_it(change));
            prop_assert_eq!(commit::has(&ledger, *pin), stored, "a pinned image stays");
        }
        // What counts is under the limit, images of what may not be dropped left out.
        let held = |image: &Digest| {
            landed.iter().enumerate().any(|(index, (small, _))| {
                newest(index) && [small.1, small.2].iter().any(|number| digest(u32::from(*number)) == *image)
            })
        };
        counted.retain(|image| !held(image));
        counted.sort();
        counted.dedup();
        prop_assert_eq!(report.kept, counted.len() as u64 * 100_000);
        prop_assert!(report.kept <= megabytes * 1_000_000);
        drop(guard);
        let again = prune(&ledger, NOW, keep(days, megabytes)).unwrap();
        prop_assert_eq!((again.expired, again.kept), (0, report.kept), "a second look finds nothing to drop");
    }
}
