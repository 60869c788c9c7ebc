//! A disk that is full, and one that fails: nothing new is promised, what was begun can be ended, and reopening helps.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cotenant_ledger::{Ledger, LedgerError, LedgerOptions, Medium, commit};
use cotenant_model::{Code, Digest, Durability, Millis, Outcome};

use crate::{Folder, at, change, edit, in_namespace, intent, land, mount};

/// Runs `body` on a tmpfs of `size` in a child of its own.
fn on_small_disk(name: &str, size: &str, body: impl FnOnce(&Path)) {
    let Some(dir) = std::env::var_os(crate::CHILD) else {
        let folder = Folder::new();
        in_namespace(name, folder.path());
        return;
    };
    let disk = PathBuf::from(dir);
    mount("tmpfs", &format!("size={size}"), &disk);
    body(&disk);
}

fn open(disk: &Path) -> Ledger {
    Ledger::open(&LedgerOptions { dir: disk.join("state"), durability: Durability::Full }).unwrap().0
}

/// Takes what is free but `leave` bytes.
fn fill(disk: &Path, leave: u64) -> PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    let full = file.metadata().unwrap().len();
    file.set_len(full.saturating_sub(leave)).unwrap();
    path
}

#[test]
fn memory_is_told_as_volatile() {
    on_small_disk("fault::memory_is_told_as_volatile", "32m", |disk| {
        let ledger = open(disk);
        assert_eq!((ledger.medium(), ledger.durability()), (Medium::Volatile, Durability::Fast));
    });
}

#[test]
fn near_a_full_disk_intents_are_refused_and_begun_ones_can_be_ended() {
    on_small_disk("fault::near_a_full_disk_intents_are_refused_and_begun_ones_can_be_ended", "48m", |disk| {
        let ledger = open(disk);
        let first = commit::next_change(&ledger);
        commit::intend(&ledger, intent(change(first, vec![edit("a", b"1", b"2")]))).wait().unwrap();
        let filler = fill(disk, 1 << 20);

        let second = commit::next_change(&ledger);
        let refused =
            commit::intend(&ledger, intent(change(second, vec![edit("b", b"1", b"2")]))).wait().unwrap_err();
        assert_eq!(refused, LedgerError::OutOfSpace);
        assert_eq!(refused.refusal().code, Code::OutOfSpace);
        assert_eq!(ledger.room(0), Err(LedgerError::OutOfSpace));
        assert_eq!(ledger.change(second), Ok(None));

        commit::seal(&ledger, first, Outcome::Sealed, None);
        assert_eq!(ledger.change(first).unwrap().unwrap().outcome, Outcome::Sealed);
        assert_eq!(ledger.failure(), None, "a full disk is no failure");
        fs::remove_file(filler).unwrap();
        land(&ledger, vec![edit("b", b"1", b"2")]);
        assert!(ledger.newest(&at("b")).is_some());
    });
}

#[test]
fn on_a_full_disk_the_reserve_lets_a_seal_be_written() {
    on_small_disk("fault::on_a_full_disk_the_reserve_lets_a_seal_be_written", "48m", |disk| {
        let ledger = open(disk);
        commit::flush(&ledger).unwrap();
        let ballast = disk.join("state/ballast");
        assert_eq!(fs::metadata(&ballast).unwrap().len(), 4 << 20);
        let open_ones: Vec<_> = (0..200)
            .map(|number| {
                let id = commit::next_change(&ledger);
                let name = format!("{number}/{}", "x".repeat(200));
                commit::intend(&ledger, intent(change(id, vec![edit(&name, b"1", b"2")]))).wait().unwrap();
                id
            })
            .collect();
        fill(disk, 0);
        assert_eq!(commit::store(&ledger, &vec![5; 1 << 20]), Err(LedgerError::OutOfSpace));
        for id in &open_ones {
            commit::seal(&ledger, *id, Outcome::Aborted, None);
            commit::journal(&ledger, Millis(1), "call", &[b'x'; 1000]);
        }
        for id in &open_ones {
            assert_eq!(ledger.change(*id).unwrap().unwrap().outcome, Outcome::Aborted);
        }
        assert!(!ballast.exists(), "it was given up");
        assert_eq!(ledger.failure(), None);
        drop(ledger);
        let (ledger, unsealed) =
            Ledger::open(&LedgerOptions { dir: disk.join("state"), durability: Durability::Full }).unwrap();
        assert_eq!(unsealed, []);
        assert_eq!(ledger.verify_journal().unwrap().broken_at, None);
    });
}

#[test]
fn what_the_journal_could_not_write_is_counted() {
    on_small_disk("fault::what_the_journal_could_not_write_is_counted", "24m", |disk| {
        let ledger = open(disk);
        let filler = fill(disk, 0);
        for number in 0..400 {
            commit::journal(&ledger, Millis(number), "call", &[b'x'; 20_000]);
        }
        assert_eq!(commit::flush(&ledger), Err(LedgerError::OutOfSpace));
        fs::remove_file(filler).unwrap();
        commit::flush(&ledger).unwrap();
        let entries = ledger.journal_entries(0, usize::MAX).unwrap();
        let gap = entries.iter().find(|entry| entry.kind == "gap").expect("a gap is told");
        let dropped: usize = String::from_utf8_lossy(&gap.body)
            .trim_start_matches("{\"dropped\":")
            .trim_end_matches('}')
            .parse()
            .unwrap();
        assert_eq!(dropped + entries.len() - 1, 400);
        assert_eq!(ledger.verify_journal().unwrap().broken_at, None);
    });
}

/// Makes every write of this process to a regular file fail; `None` lets them through again.
fn limit_files(bytes: Option<u64>) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum }).unwrap();
}

#[test]
fn after_a_failing_write_nothing_is_written_until_it_is_reopened() {
    const NAME: &str = "fault::after_a_failing_write_nothing_is_written_until_it_is_reopened";
    if std::env::var_os(crate::CHILD).is_none() {
        // A shell, because only it can make the signal of the limit ignored without unsafe code.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
        command.args([NAME, "--exact", "--nocapture"]).env(crate::CHILD, "here").stdout(Stdio::null());
        assert!(command.status().unwrap().success());
        return;
    }
    let folder = Folder::new();
    let ledger = folder.open();
    let kept = land(&ledger, vec![edit("a", b"1", b"2")]);
    let image = commit::store(&ledger, &[9; 50_000]).unwrap();
    let open = commit::next_change(&ledger);
    commit::intend(&ledger, intent(change(open, vec![edit("b", b"1", b"2")]))).wait().unwrap();
    limit_files(Some(0));

    let next = commit::next_change(&ledger);
    let failed =
        commit::intend(&ledger, intent(change(next, vec![edit("c", b"1", b"2")]))).wait().unwrap_err();
    assert!(matches!(failed, LedgerError::Failed(_)), "{failed:?}");
    let refusal = failed.refusal();
    assert_eq!((refusal.code, refusal.get("what").is_some()), (Code::IoError, true));
    assert_eq!(ledger.failure(), Some(failed.clone()));
    // Writes would pass again, but are not tried: everything answers the same, and at once.
    limit_files(None);
    commit::seal(&ledger, open, Outcome::Sealed, None);
    assert_eq!(commit::store(&ledger, b"small"), Err(failed.clone()));
    assert_eq!(commit::store(&ledger, &[8; 50_000]), Err(failed.clone()));
    assert_eq!(commit::sync_blobs(&ledger, &[image]), Err(failed.clone()));
    assert_eq!(commit::observe(&ledger, change(next, Vec::new())), Err(failed.clone()));
    assert_eq!(commit::flush(&ledger), Err(failed));
    assert_eq!(ledger.blob(image), Ok(Some(vec![9; 50_000])), "reading goes on");

    let unsealed = ledger.reopen().unwrap();
    assert_eq!(unsealed.iter().map(|intent| intent.change.id).collect::<Vec<_>>(), [open]);
    assert_eq!(ledger.failure(), None);
    commit::seal(&ledger, open, Outcome::Aborted, None);
    assert_eq!(ledger.change(open).unwrap().unwrap().outcome, Outcome::Aborted);
    assert_eq!(ledger.change(kept).unwrap().unwrap().outcome, Outcome::Sealed);
    assert_eq!(ledger.change(next), Ok(None));
    assert!(land(&ledger, vec![edit("c", b"1", b"2")]) > next);
    assert_eq!(commit::store(&ledger, b"small"), Ok(Digest::of(b"small")));
}

#[test]
fn an_image_that_cannot_be_written_leaves_nothing_behind() {
    on_small_disk("fault::an_image_that_cannot_be_written_leaves_nothing_behind", "32m", |disk| {
        let ledger = open(disk);
        fill(disk, 1 << 20);
        let image = vec![7; 4 << 20];
        assert_eq!(commit::store(&ledger, &image), Err(LedgerError::OutOfSpace));
        assert!(!commit::has(&ledger, Digest::of(&image)));
        let left = fs::read_dir(disk.join("state/blobs")).unwrap().flatten();
        assert_eq!(left.filter(|entry| entry.path().is_file()).count(), 0);
    });
}

#[test]
fn on_a_full_disk_images_stay_as_they_are() {
    on_small_disk("fault::on_a_full_disk_images_stay_as_they_are", "48m", |disk| {
        let ledger = open(disk);
        let one: Vec<u8> =
            (0..4_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut other = one.clone();
        other[7] ^= 1;
        for image in [&one, &other] {
            commit::store(&ledger, image).unwrap();
        }
        land(&ledger, vec![edit("a", &one, &other)]);
        commit::flush(&ledger).unwrap();
        let filler = fill(disk, 0);
        // The base, to be written anew, does not fit.
        assert_eq!(commit::pack(&ledger), Err(LedgerError::OutOfSpace));
        assert_eq!(ledger.failure(), None, "which is no reason to stop");
        let there = |image: &Vec<u8>| ledger.blob(Digest::of(image)).unwrap().as_ref() == Some(image);
        assert!(there(&one) && there(&other));
        fs::remove_file(filler).unwrap();
        while commit::pack(&ledger).unwrap() {}
        assert!(there(&one) && there(&other));
        let hex = Digest::of(&other).hex();
        assert!(!disk.join("state/blobs").join(&hex[..2]).join(&hex).exists(), "it was tried again");
    });
}
