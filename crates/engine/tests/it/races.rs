//! Races: foreign writers that never stop, many clients on one file, and what stands at the path being something else.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cotenant_engine::pipeline::Steps;
use cotenant_ledger::Query;
use cotenant_model::{ChangeKind, Code, Durability, FactValue, WsPath};

use crate::foreign::{Foreign, Kind, as_nobody};
use crate::rig::*;

/// Does something at one step, once.
struct At<F>(&'static str, Mutex<Option<F>>);

impl<F: FnOnce() + Send> Steps for At<F> {
    fn reached(&self, step: &'static str, _at: &WsPath) -> std::io::Result<()> {
        if step == self.0
            && let Some(action) = self.1.lock().unwrap().take()
        {
            action();
        }
        Ok(())
    }
}

fn rig_at(place: &Place, step: &'static str, action: impl FnOnce() + Send + 'static) -> Rig {
    let steps = Arc::new(At(step, Mutex::new(Some(action))));
    Rig::watched(place.tree.path(), place.state.path(), Durability::Full, steps).unwrap()
}

fn seconds(short: u64, long: u64) -> Duration {
    Duration::from_secs(if std::env::var_os("COTENANT_LONG").is_some() { long } else { short })
}

fn version(name: &str) -> Vec<u8> {
    format!("{name:.<40}\n").into_bytes()
}

/// A2: every version that a blind writer wrote, and that it did not itself overwrite, is at the path or in the ledger.
#[test]
fn blind_writers_lose_nothing() {
    for kind in [Kind::RenameOver, Kind::Truncate, Kind::InPlace, Kind::Held, Kind::Mapped] {
        let place = Place::new();
        let rig = place.open();
        rig.write("f", &version("start"));
        let path = rig.root.join("f");
        let over = AtomicBool::new(false);
        let (wrote, destroyed, ours) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| blind_writer(kind, &path, &over));
            let mut ours = Vec::new();
            let end = Instant::now() + seconds(1, 20);
            while Instant::now() < end {
                let Some(now) = rig.read("f") else { continue };
                let mine = version(&format!("ours {}", ours.len()));
                if rig.commit(vec![replace("f", &now, &mine)]).is_ok() {
                    ours.push(mine);
                }
            }
            over.store(true, Ordering::SeqCst);
            let (wrote, destroyed) = writer.join().unwrap();
            (wrote, destroyed, ours)
        });
        rig.settle();
        for version in wrote.iter().filter(|version| !destroyed.contains(*version)).chain(&ours) {
            assert!(rig.has(version), "{kind:?}: {} is lost", String::from_utf8_lossy(version));
        }
        println!("{kind:?}: {} foreign versions, {} of ours, 0 lost", wrote.len(), ours.len());
    }
}

/// Writes until it is over. Returns what it wrote and what it overwrote knowingly.
fn blind_writer(kind: Kind, path: &Path, over: &AtomicBool) -> (Vec<Vec<u8>>, HashSet<Vec<u8>>) {
    let (mut wrote, mut destroyed) = (Vec::new(), HashSet::new());
    let mut number = 0;
    while !over.load(Ordering::SeqCst) {
        if !path.exists() {
            continue;
        }
        let mut foreign = Foreign::new(kind, path);
        // A pause in which a commit fits, for those that hold the file open all the time.
        for _ in 0..3 {
            number += 1;
            foreign.write(&version(&format!("foreign {number}")));
            foreign.leave_thread();
            destroyed.extend(foreign.destroyed.take());
            wrote.extend(foreign.wrote.take());
        }
        foreign.leave();
        std::thread::yield_now();
    }
    (wrote, destroyed)
}

/// 64 parallel edits of one file by 8 clients: all land, none is lost.
#[test]
fn many_clients_on_one_file_lose_nothing() {
    let runs = if std::env::var_os("COTENANT_LONG").is_some() { 100 } else { 2 };
    for _ in 0..runs {
        let place = Place::fast();
        let rig = place.open();
        rig.write("f", b"");
        std::thread::scope(|scope| {
            for client in 0..8 {
                let rig = &rig;
                scope.spawn(move || {
                    (0..8).for_each(|edit| append(rig, &format!("client {client} edit {edit}\n")))
                });
            }
        });
        let text = String::from_utf8(rig.read("f").unwrap()).unwrap();
        assert_eq!(text.lines().collect::<HashSet<_>>().len(), 64);
        rig.settle();
        assert_eq!(rig.ledger.history(&Query::default()).unwrap().len(), 64);
    }
}

/// Appends a line, from a fresh read as often as it takes.
fn append(rig: &Rig, line: &str) {
    loop {
        let before = rig.read("f").unwrap();
        let after = [&before[..], line.as_bytes()].concat();
        match rig.commit(vec![replace("f", &before, &after)]) {
            Ok(_) => return,
            Err(refusal) => assert_code(&refusal, Code::FileChangedSinceRead),
        }
    }
}

/// D385: another process has the file open for writing. It is named, and nothing is written.
#[test]
fn an_open_writer_is_named() {
    let place = Place::new();
    let rig = place.open();
    rig.write("f", b"old");
    let mut writer = Command::new("sh")
        .args(["-c", "exec 3>>\"$0\"; echo ready; read line"])
        .arg(rig.root.join("f"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(writer.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    for ops in [vec![replace("f", b"old", b"new")], vec![create("g", b"g"), delete("f", b"old")]] {
        let refusal = rig.refused(ops);
        assert_code(&refusal, Code::Busy);
        assert_eq!(refusal.get("pids"), Some(&FactValue::List(vec![writer.id().to_string()])), "{refusal}");
    }
    writer.stdin.take().unwrap().write_all(b"go\n").unwrap();
    writer.wait().unwrap();
    rig.commit(vec![replace("f", b"old", b"new")]).unwrap();
    rig.settle();
    assert_eq!(files(&rig.root).len(), 1, "the creation was taken back");
}

/// A writer that is there for a moment only is waited for.
#[test]
fn a_short_writer_is_waited_for() {
    let place = Place::new();
    place.open().write("f", b"old");
    let path = place.tree.path().join("f");
    let held = Arc::new(Mutex::new(Some(fs::OpenOptions::new().append(true).open(&path).unwrap())));
    let first = Arc::clone(&held);
    // The second look at the lease finds the file free.
    let rig = rig_at(&place, "lease", move || {
        std::thread::spawn(move || first.lock().unwrap().take());
    });
    rig.commit(vec![replace("f", b"old", b"new")]).unwrap();
    assert_eq!(rig.read("f").unwrap(), b"new");
    rig.settle();
}

/// R7: a writer that came too late for the file finds its bytes in the ledger, and others hear of it.
#[test]
fn a_late_write_into_the_displaced_file_is_kept_and_told() {
    let place = Place::new();
    place.open().write("f", &version("old"));
    let path = place.tree.path().join("f");
    let late: Arc<Mutex<Option<Foreign>>> = Arc::default();
    let slot = Arc::clone(&late);
    // Asks for the file while it is displaced, after the last look at the lease.
    let rig = rig_at(&place, "in_place", move || {
        let displaced = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".cotenant-"))
            .unwrap();
        let mut foreign = Foreign::new(Kind::Truncate, &displaced);
        foreign.write(&version("late"));
        *slot.lock().unwrap() = Some(foreign);
    });
    rig.commit(vec![replace("f", &version("old"), &version("new"))]).unwrap();
    late.lock().unwrap().as_mut().unwrap().leave();
    rig.settle();
    assert_eq!(rig.read("f").unwrap(), version("new"));
    for image in ["old", "new", "late"] {
        assert!(rig.blob(&version(image)).is_some(), "{image}");
    }
    let observed = rig.pipeline.observed();
    assert_eq!(observed.len(), 1, "{observed:?}");
    assert_eq!((observed[0].kind, &observed[0].files[0].at), (ChangeKind::Observed, &at("f")));
    assert!(rig.pipeline.observed().is_empty(), "told once");
}

/// A5: what stands at the path at the moment of the exchange is no file. It is put back, never opened.
#[test]
fn what_is_no_file_is_put_back() {
    let secret = Scratch::new();
    fs::write(secret.path().join("secret"), b"secret").unwrap();
    for what in ["directory", "link", "fifo"] {
        let place = Place::new();
        place.open().write("f", b"old");
        let (path, outside) = (place.tree.path().join("f"), secret.path().join("secret"));
        let target = outside.clone();
        let rig = rig_at(&place, "exchange", move || {
            fs::remove_file(&path).unwrap();
            match what {
                "directory" => fs::create_dir(&path).unwrap(),
                "link" => symlink(&outside, &path).unwrap(),
                _ => rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &path,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::from_raw_mode(0o600),
                    0,
                )
                .unwrap(),
            }
        });
        assert_code(&rig.refused(vec![replace("f", b"old", b"new")]), Code::FileChangedSinceRead);
        rig.settle();
        let now = fs::symlink_metadata(rig.root.join("f")).unwrap().file_type();
        assert!(!now.is_file(), "{what}");
        assert_eq!(fs::read(target).unwrap(), b"secret");
        assert!(rig.has(b"old"), "the old file, which a foreigner removed, is kept all the same");
    }
}

/// A4, R129: the directory is moved away, within the root and out of it, between check and swap and after the swap.
#[test]
fn a_directory_that_moves_during_the_swap_keeps_its_file() {
    for step in ["link", "exchange", "in_place"] {
        for outside in [false, true] {
            let (place, elsewhere) = (Place::new(), Scratch::new());
            place.open().write("d/f", b"old");
            let from = place.tree.path().join("d");
            let to = if outside { elsewhere.path().join("d") } else { place.tree.path().join("e") };
            let moved = to.clone();
            let rig = rig_at(&place, step, move || fs::rename(from, to).unwrap());
            assert_code(&rig.refused(vec![replace("d/f", b"old", b"new")]), Code::FileChangedSinceRead);
            rig.pipeline.idle();
            assert_eq!(fs::read(moved.join("f")).unwrap(), b"old", "{step} outside {outside}");
            assert_eq!(stray(&moved), Vec::<String>::new(), "{step} outside {outside}");
        }
    }
}

/// R127, R128: the directory is swapped for a link to the outside again and again: nothing is ever written, made or
/// deleted there.
#[test]
fn no_swap_of_directories_leads_out() {
    let (place, outside) = (Place::new(), Scratch::new());
    let rig = place.open();
    rig.write("d/f", b"0");
    fs::write(outside.path().join("f"), b"0").unwrap();
    symlink(outside.path(), rig.root.join("l")).unwrap();
    let over = AtomicBool::new(false);
    let landed = std::thread::scope(|scope| {
        scope.spawn(|| {
            let names: [PathBuf; 2] = [rig.root.join("d"), rig.root.join("l")];
            while !over.load(Ordering::SeqCst) {
                let cwd = rustix::fs::CWD;
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(cwd, &names[0], cwd, &names[1], flags).unwrap();
            }
        });
        let end = Instant::now() + seconds(1, 60);
        let mut landed = 0u64;
        while Instant::now() < end {
            let (before, after) = (landed.to_string(), (landed + 1).to_string());
            let made = rig.commit(vec![create("d/new", b"x")]).is_ok();
            if made {
                let _ = rig.commit(vec![delete("d/new", b"x")]);
            }
            match rig.commit(vec![replace("d/f", before.as_bytes(), after.as_bytes())]) {
                Ok(_) => landed += 1,
                Err(refusal) => assert_ne!(refusal.code, Code::IoError, "{refusal}"),
            }
        }
        over.store(true, Ordering::SeqCst);
        landed
    });
    assert_eq!(fs::read(outside.path().join("f")).unwrap(), b"0");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    println!("{landed} edits landed, none outside");
}

/// What changes beside the bytes between preparing and swapping is carried over, or stops the swap.
#[test]
fn a_mode_or_a_link_that_changes_meanwhile_counts() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let place = Place::new();
    place.open().write("f", b"old");
    let path = place.tree.path().join("f");
    let rig =
        rig_at(&place, "open", move || fs::set_permissions(path, fs::Permissions::from_mode(0o711)).unwrap());
    rig.commit(vec![replace("f", b"old", b"new")]).unwrap();
    assert_eq!(fs::metadata(rig.root.join("f")).unwrap().mode() & 0o7777, 0o711);
    rig.settle();
    drop(rig);
    let (path, twin) = (place.tree.path().join("f"), place.tree.path().join("twin"));
    let rig = rig_at(&place, "open", move || fs::hard_link(path, twin).unwrap());
    assert_code(&rig.refused(vec![replace("f", b"new", b"newer")]), Code::HardLinked);
    rig.settle();
    assert_eq!(rig.read("twin").unwrap(), b"new");
}

/// R12: the second file misses after the first was swapped and overwritten by another: their bytes stay on top.
#[test]
fn what_is_overtaken_is_named_and_nothing_is_lost() {
    let place = Place::new();
    let rig = place.open();
    rig.write("a", &version("a old"));
    rig.write("b", &version("b old"));
    drop(rig);
    let root = place.tree.path().to_owned();
    let steps = Arc::new(Overtake { root, seen: Mutex::new(0) });
    let rig = Rig::watched(place.tree.path(), place.state.path(), Durability::Full, steps).unwrap();
    let refusal = rig.refused(vec![
        replace("a", &version("a old"), &version("a new")),
        replace("b", &version("b old"), &version("b new")),
    ]);
    assert_code(&refusal, Code::FileChangedSinceRead);
    assert_eq!(refusal.get("overtaken"), Some(&FactValue::List(vec!["a".to_owned()])), "{refusal}");
    rig.settle();
    assert_eq!(rig.read("a").unwrap(), version("a foreign"));
    assert_eq!(rig.read("b").unwrap(), version("b foreign"));
    for image in ["a old", "a new", "b new"] {
        assert!(rig.blob(&version(image)).is_some(), "{image}");
    }
    let change = &rig.ledger.history(&Query::default()).unwrap()[0];
    assert_eq!(change.outcome, cotenant_model::Outcome::Overtaken);
}

/// Writes over `a` after it was swapped, and over `b` before it is.
struct Overtake {
    root: PathBuf,
    seen: Mutex<u32>,
}

impl Steps for Overtake {
    fn reached(&self, step: &'static str, at: &WsPath) -> std::io::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        if step == "open" && at.path.to_str() == Some("b") && *seen == 0 {
            *seen = 1;
            for name in ["a", "b"] {
                let mut foreign = Foreign::new(Kind::RenameOver, &self.root.join(name));
                foreign.write(&version(&format!("{name} foreign")));
            }
        }
        Ok(())
    }
}

/// Who does not own a file gets no lease on it: its digest alone is checked, and the answer says so.
#[test]
fn without_a_lease_the_digest_is_checked_and_the_answer_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let rig = place.open();
    fs::set_permissions(&rig.root, fs::Permissions::from_mode(0o777)).unwrap();
    rig.write("theirs", b"old");
    let Some(refusal) = as_nobody(|| rig.refused(vec![delete("theirs", b"other")])) else { return };
    assert_code(&refusal, Code::FileChangedSinceRead);
    // Its owner cannot be reproduced, which is found before anything is begun.
    let refusal = as_nobody(|| rig.refused(vec![replace("theirs", b"old", b"new")])).unwrap();
    assert_code(&refusal, Code::PermissionDenied);
    assert!(refusal.message.contains("owner"), "{refusal}");
    let landed = as_nobody(|| rig.commit(vec![delete("theirs", b"old")])).unwrap().unwrap();
    assert!(
        landed.grade_notes.iter().any(|note| note.contains("lease") && note.contains("theirs")),
        "{landed:?}"
    );
    rig.settle();
    assert_eq!(rig.blob(b"old").unwrap(), b"old");
    rig.write("secret", b"secret");
    fs::set_permissions(rig.root.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let refusal = as_nobody(|| rig.refused(vec![delete("secret", b"secret")])).unwrap();
    assert_code(&refusal, Code::PermissionDenied);
    fs::set_permissions(&rig.root, fs::Permissions::from_mode(0o755)).unwrap();
    let refusal = as_nobody(|| rig.refused(vec![create("new", b"x")])).unwrap();
    assert_code(&refusal, Code::PermissionDenied);
}

/// A directory that becomes read-only at the wrong moment keeps a temporary name until the next start, and says so.
#[test]
fn a_name_that_cannot_be_removed_waits_for_the_next_start() {
    let place = Place::new();
    place.open().write("d/f", b"old");
    let dir = place.tree.path().join("d");
    let flag = |flag: &str, dir: &Path| {
        Command::new("chattr").arg(flag).arg(dir).status().is_ok_and(|status| status.success())
    };
    if !(flag("+i", &dir) && flag("-i", &dir)) {
        eprintln!("SKIP: no immutable directories here");
        return;
    }
    let fixed = dir.clone();
    let rig = rig_at(&place, "unlink", move || assert!(flag("+i", &fixed)));
    rig.commit(vec![replace("d/f", b"old", b"new")]).unwrap();
    rig.pipeline.idle();
    let (left, questions) = (stray(&rig.root), rig.pipeline.questions());
    let next = rig.commit(vec![create("g", b"g")]);
    assert!(flag("-i", &dir));
    assert_eq!((left.len(), questions.len()), (1, 1), "{questions:?}");
    assert!(questions[0].why.contains(&left[0]), "{questions:?}");
    next.unwrap();
    drop(rig);
    place.open().settle();
}
