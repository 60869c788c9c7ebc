//! Every operation lands and can be traced; every refusal leaves everything as it was.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use cotenant_ledger::Query;
use cotenant_model::{Code, Digest, Durability, Outcome, Refusal};
use rustix::fs::XattrFlags;

use crate::rig::*;

#[test]
fn an_edit_lands_and_both_images_are_kept() {
    let place = Place::new();
    let rig = place.open();
    rig.write("src/a.rs", b"old\n");
    let landed = rig.commit(vec![replace("src/a.rs", b"old\n", b"new\n")]).unwrap();
    assert_eq!(landed.files, vec![(at("src/a.rs"), Some(Digest::of(b"new\n")))]);
    assert_eq!((landed.outcome, landed.grade_notes.len()), (Outcome::Sealed, 0));
    assert_eq!(rig.read("src/a.rs").unwrap(), b"new\n");
    rig.settle();
    assert_eq!(rig.blob(b"old\n").unwrap(), b"old\n");
    assert_eq!(rig.blob(b"new\n").unwrap(), b"new\n");
    let change = rig.ledger.change(landed.change).unwrap().unwrap();
    assert_eq!((change.outcome, change.files.len()), (Outcome::Sealed, 1));
}

#[test]
fn a_chain_of_edits_needs_no_wait_in_between() {
    let place = Place::new();
    let rig = place.open();
    rig.write("f", b"0");
    for step in 0..20u32 {
        let (before, after) = (step.to_string(), (step + 1).to_string());
        rig.commit(vec![replace("f", before.as_bytes(), after.as_bytes())]).unwrap();
    }
    assert_eq!(rig.read("f").unwrap(), b"20");
    rig.settle();
    assert_eq!(rig.ledger.history(&Query::default()).unwrap().len(), 20);
}

#[test]
fn large_images_are_kept_from_the_displaced_file() {
    let place = Place::new();
    let rig = place.open();
    for size in [17 << 10, 3 << 20] {
        let (old, new) = (vec![b'o'; size], vec![b'n'; size]);
        rig.write("big", &old);
        rig.commit(vec![replace("big", &old, &new)]).unwrap();
        rig.settle();
        assert_eq!(rig.blob(&old), Some(old));
        assert_eq!(rig.blob(&new), Some(new));
    }
}

#[test]
fn all_operations_land_as_one_change() {
    let place = Place::new();
    let rig = place.open();
    rig.write("edit", b"e0");
    rig.write("gone/a", b"a");
    rig.write("gone/sub/b", b"b");
    let ops = vec![
        rmdir("gone"),
        delete("gone/sub/b", b"b"),
        create("new/deep/file", b"n"),
        mkdir("new"),
        replace("edit", b"e0", b"e1"),
        mkdir("new/deep"),
        rmdir("gone/sub"),
        delete("gone/a", b"a"),
        create("top", b""),
    ];
    let landed = rig.commit(ops).unwrap();
    rig.settle();
    assert!(!rig.root.join("gone").exists());
    let now: Vec<(String, Vec<u8>)> = files(&rig.root).into_iter().collect();
    let expected: Vec<(String, Vec<u8>)> = [("edit", &b"e1"[..]), ("new/deep/file", b"n"), ("top", b"")]
        .map(|(p, b)| (p.to_owned(), b.to_vec()))
        .into();
    assert_eq!(now, expected);
    let change = rig.ledger.change(landed.change).unwrap().unwrap();
    let paths: Vec<String> = change.files.iter().map(|file| file.at.path.to_string()).collect();
    let mut sorted = paths.clone();
    sorted.sort();
    assert_eq!(paths, sorted, "files of a change stand in path order");
    assert_eq!(paths.len(), 9);
    for image in [&b"a"[..], b"b", b"e0", b"e1", b"n"] {
        assert!(rig.blob(image).is_some(), "{image:?}");
    }
}

/// C055, C064: what has another name is refused, not split. The rest: every plan that does not fit what stands.
#[test]
fn what_was_planned_against_something_else_is_refused_and_nothing_is_written() {
    let place = Place::new();
    let rig = place.open();
    rig.write("f", b"is");
    rig.write("dir/x", b"x");
    let big = vec![b'b'; 40 << 10];
    rig.write("big", &big);
    fs::hard_link(rig.root.join("dir/x"), rig.root.join("twin")).unwrap();
    rig.write("ro", b"ro");
    fs::set_permissions(rig.root.join("ro"), fs::Permissions::from_mode(0o444)).unwrap();
    symlink("f", rig.root.join("link")).unwrap();
    let before = files(&rig.root);
    let cases: Vec<(Vec<_>, Code)> = vec![
        (vec![replace("f", b"was", b"new")], Code::FileChangedSinceRead),
        (vec![replace("big", b"was", b"new")], Code::FileChangedSinceRead),
        (vec![delete("f", b"was")], Code::FileChangedSinceRead),
        (vec![create("f", b"new")], Code::AlreadyExists),
        (vec![mkdir("dir")], Code::AlreadyExists),
        (vec![replace("none", b"", b"new")], Code::NotFound),
        (vec![create("none/x", b"new")], Code::NotFound),
        (vec![delete("none", b"")], Code::NotFound),
        (vec![replace("dir", b"", b"new")], Code::NotAFile),
        (vec![replace("link", b"is", b"new")], Code::FileChangedSinceRead),
        (vec![replace_link("f", b"is", b"new")], Code::FileChangedSinceRead),
        (vec![delete_link("f", b"is")], Code::FileChangedSinceRead),
        (vec![create_link("f", b"new")], Code::AlreadyExists),
        (vec![move_to("f", "g", b"was")], Code::FileChangedSinceRead),
        (vec![move_to("f", "big", b"is")], Code::AlreadyExists),
        (vec![move_to("none", "g", b"is")], Code::NotFound),
        (vec![move_to("f", "none/g", b"is")], Code::NotFound),
        (vec![move_over("f", "big", b"is", b"was")], Code::FileChangedSinceRead),
        (vec![move_over("f", "g", b"is", b"was")], Code::NotFound),
        (vec![move_to("dir", "g", b"is")], Code::NotAFile),
        (vec![move_dir(&rig, "dir", "dir/below")], Code::BadInput),
        (vec![move_dir(&rig, "dir", "f")], Code::AlreadyExists),
        (vec![move_dir(&rig, "dir", "g"), replace("dir/x", b"x", b"y")], Code::BadInput),
        (vec![move_dir(&rig, "dir", "g"), create("g/y", b"y")], Code::BadInput),
        (vec![move_to("f", "g", b"is"), replace("big", b"was", b"new")], Code::FileChangedSinceRead),
        (vec![move_to("f", "g", b"is"), create("g", b"x")], Code::BadInput),
        (vec![rmdir("f")], Code::NotADirectory),
        (vec![rmdir("dir")], Code::FileChangedSinceRead),
        (vec![replace("twin", b"x", b"y")], Code::HardLinked),
        (vec![replace("ro", b"ro", b"rw")], Code::PermissionDenied),
        // All or none: the first of these could land.
        (vec![replace("f", b"is", b"new"), replace("big", b"was", b"new")], Code::FileChangedSinceRead),
        (vec![create("g", b"g"), mkdir("h"), delete("big", b"was")], Code::FileChangedSinceRead),
        (vec![replace("f", b"is", b"new"), delete("f", b"is")], Code::BadInput),
    ];
    for (ops, code) in cases {
        let what = format!("{ops:?}");
        let refusal = rig.refused(ops);
        assert_eq!(refusal.code, code, "{what}: {refusal}");
        assert!(!refusal.next.is_empty());
        rig.settle();
        assert!(files(&rig.root) == before, "{what}");
        assert!(!rig.root.join("h").exists());
    }
    assert_eq!(rig.ledger.history(&Query::default()).unwrap().len(), 0, "nothing of it stands in history");
}

/// C054, D383: mode, owner, ACL and attributes survive an edit.
#[test]
fn what_a_file_is_beside_its_bytes_is_kept() {
    let place = Place::new();
    let rig = place.open();
    // An ACL as the kernel stores it: user::rwx, user:12345:r--, group::r-x, mask::r-x, other::---.
    let acl: Vec<u8> = [
        &2u32.to_le_bytes()[..],
        &entry(1, 7, u32::MAX),
        &entry(2, 4, 12345),
        &entry(4, 5, u32::MAX),
        &entry(16, 5, u32::MAX),
        &entry(32, 0, u32::MAX),
    ]
    .concat();
    for (name, mode) in [("run.sh", 0o750), ("sec.txt", 0o600), ("odd", 0o6711), ("acl", 0o750)] {
        rig.write(name, b"X\n");
        let path = rig.root.join(name);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(4242), Some(4343)).unwrap();
        }
        rustix::fs::setxattr(&path, "user.kept", b"value", XattrFlags::empty()).unwrap();
        if name == "acl" {
            rustix::fs::setxattr(&path, "system.posix_acl_access", &acl, XattrFlags::empty()).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let before = fs::metadata(&path).unwrap();
        rig.commit(vec![replace(name, b"X\n", b"Y\n")]).unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!(
            (before.mode(), before.uid(), before.gid()),
            (after.mode(), after.uid(), after.gid()),
            "{name}"
        );
        assert_ne!(before.ino(), after.ino());
        assert_eq!(attribute(&path, "user.kept").as_deref(), Some(&b"value"[..]));
        if name == "acl" {
            assert_eq!(attribute(&path, "system.posix_acl_access"), Some(acl.clone()));
        }
    }
    rig.settle();
}

fn entry(tag: u16, perm: u16, id: u32) -> Vec<u8> {
    [&tag.to_le_bytes()[..], &perm.to_le_bytes(), &id.to_le_bytes()].concat()
}

fn attribute(path: &std::path::Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 4096];
    let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

/// A directory's default ACL must not leak into a file that has none.
#[test]
fn a_default_acl_of_the_directory_does_not_reach_an_edited_file() {
    let place = Place::new();
    let rig = place.open();
    rig.write("d/f", b"X");
    let acl: Vec<u8> = [
        &2u32.to_le_bytes()[..],
        &entry(1, 7, u32::MAX),
        &entry(2, 7, 12345),
        &entry(4, 7, u32::MAX),
        &entry(16, 7, u32::MAX),
        &entry(32, 7, u32::MAX),
    ]
    .concat();
    rustix::fs::setxattr(rig.root.join("d"), "system.posix_acl_default", &acl, XattrFlags::empty()).unwrap();
    fs::set_permissions(rig.root.join("d/f"), fs::Permissions::from_mode(0o640)).unwrap();
    rig.commit(vec![replace("d/f", b"X", b"Y"), create("d/new", b"N")]).unwrap();
    assert_eq!(attribute(&rig.root.join("d/f"), "system.posix_acl_access"), None);
    assert_eq!(fs::metadata(rig.root.join("d/f")).unwrap().mode() & 0o7777, 0o640);
    assert!(attribute(&rig.root.join("d/new"), "system.posix_acl_access").is_some(), "a new file takes it");
}

#[test]
fn a_new_file_has_the_usual_mode_or_the_one_asked_for() {
    let place = Place::new();
    let rig = place.open();
    fs::write(rig.root.join("usual"), b"").unwrap();
    let usual = fs::metadata(rig.root.join("usual")).unwrap().mode();
    let mut script = create("script", b"#!/bin/sh\n");
    if let cotenant_model::Op::Create { new, .. } = &mut script.op {
        new.mode = Some(0o755);
    }
    rig.commit(vec![create("plain", b"x"), script]).unwrap();
    assert_eq!(fs::metadata(rig.root.join("plain")).unwrap().mode(), usual);
    assert_eq!(fs::metadata(rig.root.join("script")).unwrap().mode() & 0o7777, 0o755);
}

/// R11: the third check stands inside the gate, and a frozen gate lets nothing through.
#[test]
fn a_token_that_went_stops_the_swap() {
    let place = Place::new();
    let rig = place.open();
    rig.write("f", b"old");
    let gone = || Err(Refusal::new(Code::LeaseSuperseded, "gone").next("claim_paths"));
    let refusal = rig.commit_if(vec![replace("f", b"old", b"new"), mkdir("d")], &gone).unwrap_err();
    assert_code(&refusal, Code::LeaseSuperseded);
    rig.settle();
    assert_eq!(rig.read("f").unwrap(), b"old");
    assert!(!rig.root.join("d").exists());
}

#[test]
fn nothing_is_swapped_while_the_gate_is_closed() {
    let place = Place::new();
    let rig = place.open();
    rig.write("f", b"old");
    let swapped = AtomicBool::new(false);
    let frozen = rig.pipeline.freeze();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let checked = || {
                swapped.store(true, Ordering::SeqCst);
                Ok(())
            };
            rig.commit_if(vec![replace("f", b"old", b"new")], &checked).unwrap();
        });
        // The other thread can be anywhere before the gate; wherever it is, the check was not made.
        for _ in 0..1000 {
            assert!(!swapped.load(Ordering::SeqCst));
            std::thread::yield_now();
        }
        assert_eq!(rig.read("f").unwrap(), b"old");
        drop(frozen);
    });
    assert_eq!(rig.read("f").unwrap(), b"new");
}

#[test]
fn every_durability_lands_the_same_bytes() {
    for durability in [Durability::Full, Durability::Batch, Durability::Fast] {
        let place = Place::new();
        let rig = Rig::watched(
            place.tree.path(),
            place.state.path(),
            durability,
            std::sync::Arc::new(cotenant_engine::pipeline::Unwatched),
        )
        .unwrap();
        let ops: Vec<_> = (0..12).map(|n| create(&format!("f{n}"), format!("{n}").as_bytes())).collect();
        let landed = rig.commit(ops).unwrap();
        assert_eq!(
            landed.grade_notes.iter().any(|note| note.contains("fast")),
            durability == Durability::Fast
        );
        rig.settle();
        assert_eq!(files(&rig.root).len(), 12);
    }
}

/// The directory goes elsewhere between plan and commit: nothing lands under the other name (A4).
#[test]
fn a_directory_that_is_gone_or_moved_takes_nothing() {
    let place = Place::new();
    let rig = place.open();
    rig.write("d/f", b"old");
    fs::rename(rig.root.join("d"), rig.root.join("e")).unwrap();
    assert_code(&rig.refused(vec![replace("d/f", b"old", b"new")]), Code::NotFound);
    symlink("e", rig.root.join("d")).unwrap();
    let refusal = rig.refused(vec![replace("d/f", b"old", b"new")]);
    assert!(matches!(refusal.code, Code::NotFound | Code::FileChangedSinceRead), "{refusal}");
    assert_eq!(rig.read("e/f").unwrap(), b"old");
}

/// More files than a process may usually hold open.
#[test]
fn a_plan_of_many_files_lands_whole() {
    let place = Place::fast();
    let rig = place.open();
    let name = |number: usize| format!("d{}/f{number}", number % 7);
    for number in 0..1500 {
        rig.write(&name(number), format!("old {number}").as_bytes());
    }
    let edit = |number| {
        replace(&name(number), format!("old {number}").as_bytes(), format!("new {number}").as_bytes())
    };
    rig.commit((0..1500).map(edit).collect()).unwrap();
    for number in 0..1500 {
        assert_eq!(rig.read(&name(number)).unwrap(), format!("new {number}").as_bytes());
    }
    rig.settle();
    for number in [0, 700, 1499] {
        assert!(rig.blob(format!("old {number}").as_bytes()).is_some());
    }
}

/// What recovery did is told when the pipeline opens.
#[test]
fn recovery_tells_what_it_did() {
    let place = crate::crash::before("two");
    let ran = crate::remote::run(place.tree.path(), place.state.path(), "two", |_, step| {
        if step.starts_with("verify sub/b") { crate::remote::Then::Die } else { crate::remote::Then::Go }
    });
    assert_eq!(ran.end, crate::remote::End::Killed);
    let rig = place.open();
    assert_eq!(
        rig.recovered.changes.iter().map(|(_, outcome)| *outcome).collect::<Vec<_>>(),
        [Outcome::Sealed]
    );
    assert_eq!(rig.recovered.questions, []);
    rig.settle();
    drop(rig);
    assert_eq!(place.open().recovered, cotenant_engine::pipeline::Recovered::default(), "once is enough");
}
