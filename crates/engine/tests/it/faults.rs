//! Every operation that can fail does: the answer names the failure, the files are old or new, the next call works.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cotenant_engine::pipeline::Steps;
use cotenant_model::{Code, Durability, Outcome, WsPath};

use crate::crash;
use crate::rig::*;

/// Fails the n-th step, once.
struct FailAt {
    step: usize,
    errno: i32,
    reached: AtomicUsize,
}

impl Steps for FailAt {
    fn reached(&self, _step: &'static str, _at: &WsPath) -> std::io::Result<()> {
        if self.reached.fetch_add(1, Ordering::SeqCst) == self.step {
            return Err(std::io::Error::from_raw_os_error(self.errno));
        }
        Ok(())
    }
}

/// D381, D382 at every operation, not only at the flush.
#[test]
fn any_step_may_fail() {
    for job in ["edit", "large", "two", "create", "all", "move", "over", "tidy"] {
        let others: &[i32] = if job == "edit" { &[libc::ENOSPC, libc::EACCES] } else { &[] };
        for errno in [libc::EIO].iter().chain(others).copied() {
            for step in 0.. {
                let place = crash::before(job);
                let steps = Arc::new(FailAt { step, errno, reached: AtomicUsize::new(0) });
                let hook: Arc<dyn Steps> = Arc::clone(&steps) as Arc<dyn Steps>;
                let rig =
                    Rig::watched(place.tree.path(), place.state.path(), Durability::Full, hook).unwrap();
                let landed = rig.commit(crash::job(job));
                rig.pipeline.idle();
                let failed = steps.reached.load(Ordering::SeqCst) > step;
                let what = format!("{job} errno {errno} step {step}: {landed:?}");
                if !failed {
                    // The job has no further step.
                    assert!(landed.is_ok(), "{what}");
                    break;
                }
                if let Err(refusal) = &landed {
                    let named = [Code::IoError, Code::OutOfSpace, Code::PermissionDenied];
                    assert!(named.contains(&refusal.code) && !refusal.next.is_empty(), "{what}");
                }
                // Whatever was left undone is done before the next change, which works.
                rig.commit(vec![create("next", b"next")])
                    .unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
                rig.settle();
                let (old, new) = crash::sides(job, &rig);
                assert!(old || new, "torn: {:?} {what}", files(&rig.root));
                assert!(new || landed.is_err(), "answered but not there: {what}");
                crash::images_are_kept(job, &rig, new, &what);
            }
        }
    }
}

/// The new file must not be trusted after its flush failed, and neither must the ledger: nothing is retried.
#[test]
fn a_failed_flush_stops_everything_until_recovery() {
    let place = Place::new();
    let steps = Arc::new(FailAt { step: 1, errno: libc::EIO, reached: AtomicUsize::new(0) });
    let rig = Rig::watched(place.tree.path(), place.state.path(), Durability::Full, steps).unwrap();
    rig.write("f", b"old");
    let refusal = rig.refused(vec![replace("f", b"old", b"new")]);
    assert_code(&refusal, Code::IoError);
    assert!(refusal.message.contains("syncing"), "{refusal}");
    assert_eq!(rig.read("f").unwrap(), b"old");
    let landed = rig.commit(vec![replace("f", b"old", b"new")]).unwrap();
    assert_eq!(landed.outcome, Outcome::Sealed);
    rig.settle();
}

/// Runs the test `name` again in a mount namespace of its own, with `COTENANT_TEST_MOUNT` naming an empty directory to
/// mount on. False, with the reason printed, where this machine does not allow that.
fn in_namespace(name: &str) -> bool {
    let scratch = Scratch::new();
    let root = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
    let run = Command::new("unshare")
        .arg(root)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("COTENANT_TEST_MOUNT", scratch.path())
        .output();
    let Ok(output) = run else {
        eprintln!("SKIP: there is no unshare");
        return false;
    };
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if said.contains("unshare failed") || said.contains("unshare: ") {
        eprintln!("SKIP: no mount namespace to be had: {said}");
        return false;
    }
    assert!(output.status.success(), "{said}");
    true
}

fn mount_dir() -> Option<PathBuf> {
    std::env::var_os("COTENANT_TEST_MOUNT").map(PathBuf::from)
}

fn mount(args: &[&str], on: &Path) {
    let status = Command::new("mount").args(args).arg(on).status().unwrap();
    assert!(status.success(), "mount {args:?}");
}

/// Fills the disk at one step, once, leaving not a block.
struct FillAt {
    step: &'static str,
    filler: PathBuf,
    filled: AtomicBool,
}

impl Steps for FillAt {
    fn reached(&self, step: &'static str, _at: &WsPath) -> std::io::Result<()> {
        if step == self.step && !self.filled.swap(true, Ordering::SeqCst) {
            let mut size = 1 << 20;
            let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.filler)?;
            while size > 0 {
                if std::io::Write::write_all(&mut file, &vec![0; size]).is_err() {
                    size /= 2;
                }
            }
        }
        Ok(())
    }
}

/// D381, C066: on a full disk the file is as it was.
#[test]
fn a_full_disk_changes_nothing() {
    let Some(mount_on) = mount_dir() else {
        in_namespace("faults::a_full_disk_changes_nothing");
        return;
    };
    mount(&["-t", "tmpfs", "-o", "size=48m", "tmpfs"], &mount_on);
    let old = vec![b'o'; 3 << 20];
    let new = vec![b'n'; 4 << 20];
    for step in ["none", "stage", "intended", "link", "exchange", "sync.names", "store.post", "unlink"] {
        let tree = mount_on.join("tree");
        fs::create_dir(&tree).unwrap();
        let state = Scratch::new();
        let filler = mount_on.join("filler");
        let steps = Arc::new(FillAt { step, filler: filler.clone(), filled: AtomicBool::new(false) });
        let rig = Rig::watched(&tree, state.path(), Durability::Full, steps).unwrap();
        rig.write("f", &old);
        let landed = rig.commit(vec![replace("f", &old, &new), create("g", b"g")]);
        rig.settle();
        match landed {
            Ok(_) => assert!(rig.read("f").unwrap() == new && rig.read("g").is_some(), "{step}"),
            Err(refusal) => {
                assert_code(&refusal, Code::OutOfSpace);
                assert!(rig.read("f").unwrap() == old && rig.read("g").is_none(), "{step}");
            }
        }
        if filler.exists() {
            // Not even 16 MiB are left: refused before anything is begun.
            assert_code(&rig.refused(vec![create("h", b"h")]), Code::OutOfSpace);
            fs::remove_file(&filler).unwrap();
        }
        rig.commit(vec![create("h", b"h")]).unwrap();
        drop(rig);
        fs::remove_dir_all(&tree).unwrap();
    }
}

/// The disk of the ledger is full: nothing is written without a durable intent, and what was begun is ended.
#[test]
fn a_full_disk_of_the_ledger_loses_nothing() {
    let Some(mount_on) = mount_dir() else {
        in_namespace("faults::a_full_disk_of_the_ledger_loses_nothing");
        return;
    };
    mount(&["-t", "tmpfs", "-o", "size=48m", "tmpfs"], &mount_on);
    let (old, new) = (vec![b'o'; 200 << 10], vec![b'n'; 200 << 10]);
    for step in ["stage", "intended", "exchange", "sync.names", "store.post", "store.pre", "unlink"] {
        let tree = Scratch::new();
        let state = mount_on.join("state");
        let filler = mount_on.join("filler");
        let steps = Arc::new(FillAt { step, filler: filler.clone(), filled: AtomicBool::new(false) });
        let rig = Rig::watched(tree.path(), &state, Durability::Full, steps).unwrap();
        rig.write("f", &old);
        let landed = rig.commit(vec![replace("f", &old, &new), create("g", b"g")]);
        rig.pipeline.idle();
        let is_new = rig.read("f").unwrap() == new;
        assert_eq!((is_new, rig.read("g").is_some()), (landed.is_ok(), landed.is_ok()), "{step} {landed:?}");
        if let Err(refusal) = &landed {
            assert_code(refusal, Code::OutOfSpace);
        }
        // No durable intent, no write.
        assert_code(&rig.refused(vec![create("h", b"h")]), Code::OutOfSpace);
        assert_eq!(rig.read("h"), None);
        fs::remove_file(&filler).unwrap();
        rig.commit(vec![create("h", b"h")]).unwrap_or_else(|refusal| panic!("{step}: {refusal}"));
        rig.settle();
        assert!(rig.has(&old), "{step}");
        assert_eq!(is_new, rig.blob(&new).is_some(), "{step}");
        drop(rig);
        fs::remove_dir_all(&state).unwrap();
    }
}

/// A file that is a mount point, and one that is immutable, have a refusal of their own.
#[test]
fn what_cannot_be_swapped_says_why() {
    let Some(mount_on) = mount_dir() else {
        in_namespace("faults::what_cannot_be_swapped_says_why");
        return;
    };
    let place = Place::new();
    let rig = place.open();
    rig.write("bound", b"bound");
    let other = mount_on.join("other");
    fs::write(&other, b"other").unwrap();
    mount(&["--bind", other.to_str().unwrap()], &rig.root.join("bound"));
    let refusal = rig.refused(vec![replace("bound", b"other", b"new")]);
    assert_code(&refusal, Code::CrossDevice);
    assert!(refusal.message.contains("mount point"), "{refusal}");
    rig.write("fixed", b"fixed");
    let flagged = Command::new("chattr").arg("+i").arg(rig.root.join("fixed")).status();
    if flagged.is_ok_and(|status| status.success()) {
        let refusal = rig.refused(vec![replace("fixed", b"fixed", b"new")]);
        let refusal_to_delete = rig.refused(vec![delete("fixed", b"fixed")]);
        let _ = Command::new("chattr").arg("-i").arg(rig.root.join("fixed")).status();
        assert_code(&refusal, Code::PermissionDenied);
        assert_code(&refusal_to_delete, Code::PermissionDenied);
    } else {
        eprintln!("SKIP: no immutable files here");
    }
    rig.settle();
    assert_eq!(fs::read(other).unwrap(), b"other");
    assert_eq!(rig.read("fixed").unwrap(), b"fixed");
}

/// A read-only file system changes nothing and says so.
#[test]
fn a_read_only_file_system_says_so() {
    let Some(mount_on) = mount_dir() else {
        in_namespace("faults::a_read_only_file_system_says_so");
        return;
    };
    mount(&["-t", "tmpfs", "tmpfs"], &mount_on);
    fs::write(mount_on.join("f"), b"old").unwrap();
    mount(&["-o", "remount,ro"], &mount_on);
    let state = Scratch::new();
    let rig = Rig::open(&mount_on, state.path());
    for ops in [
        vec![replace("f", b"old", b"new")],
        vec![create("g", b"g")],
        vec![delete("f", b"old")],
        vec![mkdir("d")],
    ] {
        let refusal = rig.refused(ops);
        assert_code(&refusal, Code::PermissionDenied);
        assert!(refusal.message.contains("read-only"), "{refusal}");
    }
    rig.settle();
    assert_eq!(rig.read("f").unwrap(), b"old");
}
