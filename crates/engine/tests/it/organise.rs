//! Moves, links and modes: what stands afterwards, what history says of it, and what is refused.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cotenant_engine::pipeline::Steps;
use cotenant_model::{
    Body, ChangeFile, ChangeOp, Code, Digest, Durability, Entry, EntryKind, FileOp, Moved, Op, WsPath,
};

use crate::rig::*;

fn inode(rig: &Rig, path: &str) -> u64 {
    fs::symlink_metadata(rig.root.join(path)).unwrap().ino()
}

fn mode(rig: &Rig, path: &str) -> u32 {
    fs::symlink_metadata(rig.root.join(path)).unwrap().mode() & 0o7777
}

fn target(rig: &Rig, path: &str) -> String {
    fs::read_link(rig.root.join(path)).unwrap().to_str().unwrap().to_owned()
}

/// What history says of the only change.
fn told(rig: &Rig) -> Vec<ChangeFile> {
    let mut changes = rig.ledger.history(&cotenant_ledger::Query::default()).unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    changes.remove(0).files
}

#[test]
fn a_move_keeps_the_inode_and_is_told_at_both_ends() {
    let place = Place::new();
    let rig = place.open();
    rig.write("a/file", b"bytes");
    fs::set_permissions(rig.root.join("a/file"), fs::Permissions::from_mode(0o640)).unwrap();
    let was = inode(&rig, "a/file");
    let landed = rig.commit(vec![move_to("a/file", "b/c/new", b"bytes"), mkdir("b"), mkdir("b/c")]).unwrap();
    rig.settle();
    assert_eq!((inode(&rig, "b/c/new"), mode(&rig, "b/c/new"), rig.read("a/file")), (was, 0o640, None));
    let digest = Some(Digest::of(b"bytes"));
    let dir = |path| (at(path), None);
    assert_eq!(landed.files, [(at("a/file"), None), dir("b"), dir("b/c"), (at("b/c/new"), digest)]);
    let files = told(&rig);
    assert_eq!(files.len(), 3);
    let moved = &files[2];
    assert_eq!((moved.op, &moved.at, &moved.from), (ChangeOp::Move, &at("b/c/new"), &Some(at("a/file"))));
    assert_eq!((moved.pre, moved.post, moved.post_mode), (None, digest, 0o100_640));
}

#[test]
fn a_move_over_a_file_keeps_what_it_went_over() {
    let place = Place::new();
    let rig = place.open();
    rig.write("from", b"moved");
    rig.write("to", b"gone over");
    rig.commit(vec![move_over("from", "to", b"moved", b"gone over")]).unwrap();
    rig.settle();
    assert_eq!((rig.read("from"), rig.read("to").unwrap()), (None, b"moved".to_vec()));
    assert_eq!(rig.blob(b"gone over").unwrap(), b"gone over");
    let file = told(&rig).remove(0);
    assert_eq!((file.pre, file.post), (Some(Digest::of(b"gone over")), Some(Digest::of(b"moved"))));
    let big = vec![b'x'; 2 << 20];
    rig.write("big", &big);
    rig.commit(vec![move_over("to", "big", b"moved", &big)]).unwrap();
    rig.settle();
    assert_eq!((rig.read("big").unwrap(), rig.blob(&big).unwrap()), (b"moved".to_vec(), big));
}

#[test]
fn a_directory_moves_whole_with_what_nobody_lists() {
    let place = Place::new();
    let rig = place.open();
    for path in ["d/a", "d/.git/config", "d/e/.env", "d/target/x"] {
        rig.write(path, path.as_bytes());
    }
    symlink("a", rig.root.join("d/link")).unwrap();
    let before: Vec<_> = files(&rig.root.join("d")).into_iter().collect();
    let was = inode(&rig, "d/e");
    rig.commit(vec![move_dir(&rig, "d", "new"), create("side", b"")]).unwrap();
    rig.settle();
    assert!(!rig.root.join("d").exists());
    assert_eq!(files(&rig.root.join("new")).into_iter().collect::<Vec<_>>(), before);
    assert_eq!((inode(&rig, "new/e"), target(&rig, "new/link")), (was, "a".to_owned()));
    let moved = told(&rig).into_iter().find(|file| file.op == ChangeOp::Move).unwrap();
    assert_eq!((moved.at, moved.from, moved.post), (at("new"), Some(at("d")), None));
    assert_eq!(moved.post_mode & 0o170_000, 0o040_000);
}

/// A name that came or went below it since the plan; bytes that changed move along.
#[test]
fn a_directory_whose_listing_changed_stays() {
    let place = Place::new();
    let rig = place.open();
    rig.write("d/a", b"a");
    let plan = move_dir(&rig, "d", "e");
    rig.write("d/b", b"b");
    assert_code(&rig.refused(vec![plan.clone()]), Code::FileChangedSinceRead);
    fs::remove_file(rig.root.join("d/b")).unwrap();
    rig.write("d/a", b"changed");
    rig.commit(vec![plan]).unwrap();
    assert_eq!(rig.read("e/a").unwrap(), b"changed");
}

#[test]
fn links_are_made_replaced_moved_and_deleted_as_links() {
    let place = Place::new();
    let rig = place.open();
    rig.write("file", b"stays");
    symlink("file", rig.root.join("old")).unwrap();
    symlink("file", rig.root.join("gone")).unwrap();
    symlink("nowhere", rig.root.join("moves")).unwrap();
    let moves =
        Op::Move { to: at("moved"), what: Moved::Entry(Entry::link(Digest::of(b"nowhere"))), over: None };
    let ops = vec![
        create_link("new", b"../else/where"),
        replace_link("old", b"file", b"other"),
        delete_link("gone", b"file"),
        FileOp { at: at("moves"), op: moves },
    ];
    rig.commit(ops).unwrap();
    rig.settle();
    assert_eq!((target(&rig, "new"), target(&rig, "old")), ("../else/where".to_owned(), "other".to_owned()));
    assert_eq!(
        (target(&rig, "moved"), rig.root.join("gone").symlink_metadata().is_err()),
        ("nowhere".to_owned(), true)
    );
    assert_eq!(rig.read("file").unwrap(), b"stays");
    for text in [&b"file"[..], b"other", b"../else/where"] {
        assert_eq!(rig.blob(text).unwrap(), text, "the text of a link is its image");
    }
    for file in told(&rig) {
        let images = [file.before(), file.after()].into_iter().flatten();
        assert!(images.into_iter().all(|entry| entry.kind == EntryKind::Link), "{file:?}");
    }
}

#[test]
fn a_file_becomes_a_link_and_a_link_a_file() {
    let place = Place::new();
    let rig = place.open();
    rig.write("f", b"bytes");
    symlink("f", rig.root.join("l")).unwrap();
    let (file, link) = (Entry::file(Digest::of(b"bytes")), Entry::link(Digest::of(b"f")));
    let ops = vec![
        FileOp { at: at("f"), op: Op::Replace { old: file, new: Body::link(&b"l"[..]) } },
        FileOp { at: at("l"), op: Op::Replace { old: link, new: Body::file(&b"now"[..]).with_mode(0o600) } },
    ];
    rig.commit(ops).unwrap();
    rig.settle();
    assert_eq!(
        (target(&rig, "f"), rig.read("l").unwrap(), mode(&rig, "l")),
        ("l".to_owned(), b"now".to_vec(), 0o600)
    );
    let kinds: Vec<_> = told(&rig).iter().map(|file| (file.before(), file.after())).collect();
    let now = Entry::file(Digest::of(b"now"));
    assert_eq!(kinds, [(Some(file), Some(Entry::link(Digest::of(b"l")))), (Some(link), Some(now))]);
}

#[test]
fn modes_change_alone_with_bytes_and_of_new_directories() {
    let place = Place::new();
    let rig = place.open();
    for path in ["alone", "both", "closed"] {
        rig.write(path, b"old");
    }
    fs::set_permissions(rig.root.join("closed"), fs::Permissions::from_mode(0o444)).unwrap();
    let with = |path: &str, bytes: &[u8], mode| {
        let old = Entry::file(Digest::of(b"old"));
        FileOp { at: at(path), op: Op::Replace { old, new: Body::file(bytes).with_mode(mode) } }
    };
    let dir = FileOp { at: at("private"), op: Op::MakeDir { mode: Some(0o2700) } };
    let ops =
        vec![with("alone", b"old", 0o755), with("both", b"new", 0o600), with("closed", b"old", 0o644), dir];
    rig.commit(ops).unwrap();
    rig.settle();
    let modes = ["alone", "both", "closed", "private"].map(|path| mode(&rig, path));
    assert_eq!(modes, [0o755, 0o600, 0o644, 0o2700]);
    assert_eq!((rig.read("alone").unwrap(), rig.read("both").unwrap()), (b"old".to_vec(), b"new".to_vec()));
    let alone = &told(&rig)[0];
    assert_eq!((alone.pre == alone.post, alone.post_mode), (true, 0o100_755));
}

#[test]
fn a_renamed_version_is_like_the_file_it_came_from() {
    let place = Place::new();
    let rig = place.open();
    rig.write("from", b"old");
    fs::set_permissions(rig.root.join("from"), fs::Permissions::from_mode(0o750)).unwrap();
    let labelled =
        rustix::fs::setxattr(rig.root.join("from"), "user.label", b"x", rustix::fs::XattrFlags::empty());
    let new = Op::Create { new: Body::file(&b"new"[..]), like: Some(at("from")) };
    rig.commit(vec![FileOp { at: at("to"), op: new }, delete("from", b"old")]).unwrap();
    rig.settle();
    assert_eq!((rig.read("to").unwrap(), mode(&rig, "to"), rig.read("from")), (b"new".to_vec(), 0o750, None));
    if labelled.is_ok() {
        let mut value = [0; 8];
        assert_eq!(rustix::fs::getxattr(rig.root.join("to"), "user.label", &mut value), Ok(1));
    }
    let files = told(&rig);
    assert_eq!((files[1].op, &files[1].from), (ChangeOp::Create, &Some(at("from"))));
}

/// A chain of moves through one change: out of a directory that goes, into one that comes.
#[test]
fn mixed_operations_are_ordered() {
    let place = Place::new();
    let rig = place.open();
    rig.write("old/keep", b"keep");
    rig.write("old/sub/x", b"x");
    rig.write("old/drop", b"drop");
    rig.write("edit", b"e0");
    let ops = vec![
        rmdir("old"),
        delete("old/drop", b"drop"),
        move_to("old/keep", "new/kept", b"keep"),
        move_dir(&rig, "old/sub", "new/sub"),
        replace("edit", b"e0", b"e1"),
        mkdir("new"),
    ];
    rig.commit(ops).unwrap();
    rig.settle();
    let now: Vec<String> = files(&rig.root).into_keys().collect();
    assert_eq!(
        (now, rig.root.join("old").exists()),
        (["edit", "new/kept", "new/sub/x"].map(str::to_owned).to_vec(), false)
    );
}

/// Two versions of one file system in one tree: a move between them is refused, never a copy.
#[test]
fn across_devices_and_over_mount_points_nothing_moves() {
    const MOUNT: &str = "COTENANT_TEST_TMPFS";
    let Some(mount_on) = std::env::var_os(MOUNT) else {
        let scratch = Scratch::new();
        let flag = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
        let run = Command::new("unshare")
            .args([flag, std::env::current_exe().unwrap().to_str().unwrap(), "--nocapture", "--exact"])
            .arg("organise::across_devices_and_over_mount_points_nothing_moves")
            .env(MOUNT, scratch.path())
            .output();
        match run {
            Ok(run) if run.status.success() => {}
            Ok(run) if String::from_utf8_lossy(&run.stderr).contains("unshare: ") => {
                eprintln!("SKIP: {run:?}")
            }
            other => panic!("{other:?}"),
        }
        return;
    };
    let place = Place::new();
    let rig = place.open();
    rig.write("f", b"f");
    rig.write("d/x", b"x");
    fs::create_dir(rig.root.join("mount")).unwrap();
    let on = |path: &Path| {
        let done = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(path).status().unwrap();
        assert!(done.success());
    };
    assert!(!mount_on.is_empty());
    on(&rig.root.join("mount"));
    let before = files(&rig.root);
    for op in [move_to("f", "mount/f", b"f"), move_dir(&rig, "d", "mount/d")] {
        let refusal = rig.refused(vec![op]);
        // What lies behind a mount is no part of the folder.
        assert_eq!(refusal.code, Code::NotFound, "{refusal}");
    }
    let moved = Moved::Directory { listing: Digest::of(b"") };
    let mount = FileOp { at: at("mount"), op: Op::Move { to: at("elsewhere"), what: moved, over: None } };
    let refusal = rig.refused(vec![mount]);
    assert_eq!(refusal.code, Code::CrossDevice, "{refusal}");
    assert_eq!(files(&rig.root), before);
    rig.settle();
}

/// Does something at one step, once.
struct AtStep<F: Fn() + Send + Sync>(&'static str, std::sync::atomic::AtomicBool, F);

impl<F: Fn() + Send + Sync> Steps for AtStep<F> {
    fn reached(&self, step: &'static str, _at: &WsPath) -> std::io::Result<()> {
        if step == self.0 && !self.1.swap(true, std::sync::atomic::Ordering::SeqCst) {
            (self.2)();
        }
        Ok(())
    }
}

fn watched(place: &Place, step: &'static str, act: impl Fn() + Send + Sync + 'static) -> Rig {
    let steps = Arc::new(AtStep(step, std::sync::atomic::AtomicBool::new(false), act));
    Rig::watched(place.tree.path(), place.state.path(), Durability::Full, steps).unwrap()
}

/// Another directory is put at the source, or the target's directory is moved away, in the last moment.
#[test]
fn a_directory_that_is_another_by_then_goes_back() {
    let place = Place::new();
    place.open().write("d/a", b"a");
    let root = place.tree.path().to_owned();
    let swap = root.clone();
    let rig = watched(&place, "move", move || {
        fs::rename(swap.join("d"), swap.join("d-of-mine")).unwrap();
        fs::create_dir(swap.join("d")).unwrap();
    });
    assert_code(&rig.refused(vec![move_dir(&rig, "d", "e")]), Code::FileChangedSinceRead);
    rig.settle();
    assert!(root.join("d").exists() && root.join("d-of-mine/a").exists() && !root.join("e").exists());
    drop(rig);
    fs::create_dir(root.join("in")).unwrap();
    let swap = root.clone();
    let rig = watched(&place, "verify", move || fs::rename(swap.join("in"), swap.join("out")).unwrap());
    let op = move_dir(&rig, "d-of-mine", "in/d");
    let refusal = rig.refused(vec![op]);
    assert_eq!(refusal.code, Code::FileChangedSinceRead, "{refusal}");
    rig.settle();
    assert!(root.join("d-of-mine/a").exists() && !root.join("out/d").exists());
}

/// A mode that was changed since the plan is not lost by a change of the bytes.
#[test]
fn what_a_link_was_when_it_was_planned_counts() {
    let place = Place::new();
    let rig = place.open();
    symlink("a", rig.root.join("l")).unwrap();
    let plans = [replace_link("l", b"a", b"c"), delete_link("l", b"a")];
    fs::remove_file(rig.root.join("l")).unwrap();
    symlink("b", rig.root.join("l")).unwrap();
    for plan in plans {
        assert_code(&rig.refused(vec![plan]), Code::FileChangedSinceRead);
    }
    assert_eq!(target(&rig, "l"), "b");
    rig.settle();
}
