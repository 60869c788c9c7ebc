//! Runs that write the workspace themselves: where their old images come from, and whose work is whose.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use cotenant_engine::effects::{self, Bounds, Loss};
use cotenant_model::{ChangeKind, ChangeOp, Digest, Outcome, WsPath};

use crate::desk::{Desk, grow_old, losses, told};
use crate::rig::{self, at};

#[test]
fn a_run_is_one_observed_change_of_its_author_with_both_images() {
    let desk = Desk::new();
    desk.put("a", "old a");
    desk.put("b", "old b");
    symlink("a", desk.path("l")).unwrap();
    let recorded = desk.run(|w| {
        fs::write(w.join("a"), "new a").unwrap();
        fs::remove_file(w.join("b")).unwrap();
        fs::write(w.join("c"), "new c").unwrap();
        fs::remove_file(w.join("l")).unwrap();
        symlink("c", w.join("l")).unwrap();
    });
    assert_eq!(told(&recorded), ["edit a", "delete b", "create c", "edit l"]);
    assert_eq!((losses(&recorded), recorded.overlapped), (vec![], vec![]));
    let change = desk.ws.ledger().change(recorded.change.unwrap()).unwrap().unwrap();
    assert_eq!(change.files, recorded.files);
    assert_eq!((change.kind, change.outcome), (ChangeKind::Observed, Outcome::Sealed));
    assert_eq!((change.agent.as_deref(), &*change.tool, change.turn), (Some("runner"), "run_command", 3));
    assert_eq!(change.task.as_deref(), Some("build"));
    for image in ["old a", "new a", "old b", "new c", "a", "c"] {
        assert_eq!(desk.blob(image.as_bytes()).as_deref(), Some(image.as_bytes()), "{image}");
    }
}

#[test]
fn what_git_keeps_is_not_copied_and_comes_back_from_there() {
    let desk = Desk::with_git(
        "mkdir d; for i in $(seq 50); do echo tracked $i >d/f$i; done; echo dirty >dirty; git add .; git commit -qm x; \
         echo staged >staged; git add staged; echo changed >dirty; echo untracked >untracked",
    );
    grow_old(&desk);
    // The newest of the index are read all the same: only a later touch makes the others old to git, too.
    desk.sh("git update-index -q --refresh; touch newest; git add newest");
    grow_old(&desk);
    let before = desk.before();
    assert_eq!(before.uncovered().count(), 0);
    assert_eq!(desk.blob(b"tracked 1\n"), None, "git has it");
    for kept in [&b"changed\n"[..], b"untracked\n"] {
        assert!(desk.blob(kept).is_some(), "{}", String::from_utf8_lossy(kept));
    }
    desk.sh("rm d/f1; echo other >d/f2; mv d/f3 d/g3; chmod +x d/f4; rm dirty untracked; echo new >staged");
    let recorded = desk.after(&before);
    let did = [
        "delete d/f1",
        "edit d/f2",
        "edit d/f4",
        "move d/g3 <- d/f3",
        "delete dirty",
        "edit staged",
        "delete untracked",
    ];
    assert_eq!(told(&recorded), did);
    assert_eq!(losses(&recorded), []);
    for file in recorded.files.iter().filter(|file| file.op != ChangeOp::Move) {
        let image = desk.ws.ledger().blob(file.pre.unwrap()).unwrap();
        assert!(image.is_some(), "{}", file.at.path);
    }
    assert_eq!(recorded.files[0].pre, Some(Digest::of(b"tracked 1\n")));
}

#[test]
fn what_is_little_is_read_without_asking_git_and_what_git_said_is_remembered() {
    let script = "echo one >a; git add a; git commit -qm x; sleep 0.05; touch z; git add z";
    let mut desk = Desk::with_git(script);
    grow_old(&desk);
    desk.bounds = Bounds::default();
    drop(desk.before());
    assert!(desk.blob(b"one\n").is_some());

    let mut desk = Desk::with_git(script);
    grow_old(&desk);
    drop(desk.before());
    assert_eq!(desk.blob(b"one\n"), None);
    // Nobody is there to be asked any more but for the bytes themselves.
    desk.bounds = Bounds { file_bytes: 0, ..Bounds::default() };
    let recorded = desk.run(|w| fs::remove_file(w.join("a")).unwrap());
    assert_eq!((told(&recorded), losses(&recorded)), (vec!["delete a".to_owned()], vec![]));
    assert!(desk.blob(b"one\n").is_some());

    // Without git what it said is worth nothing.
    let mut desk = Desk::with_git(script);
    grow_old(&desk);
    drop(desk.before());
    desk.git = None;
    let recorded = desk.run(|w| fs::remove_file(w.join("a")).unwrap());
    assert_eq!((told(&recorded), losses(&recorded)), (vec!["delete a".to_owned()], vec![]));
}

#[test]
fn whatever_git_does_to_the_work_tree_is_found() {
    let desk = Desk::with_git(
        "echo one >a; echo keep >b; mkdir d; echo deep >d/c; git add .; git commit -qm one; git checkout -qb other; \
         echo two >a; git rm -q d/c; echo new >e; git add .; git commit -qm two; git checkout -q -",
    );
    grow_old(&desk);
    let recorded = desk.run(|_| desk.sh("git checkout -q other"));
    assert_eq!(told(&recorded), ["edit a", "rmdir d", "delete d/c", "create e"]);
    assert_eq!(losses(&recorded), [], "nothing of what git writes for itself is told");
    // Objects that nothing names any more may go with the run: then the path is listed, and nothing is made up.
    let gone = "git branch -qD other && git reflog expire --expire=now --all && git gc -q --prune=now";
    let recorded = desk.run(|_| desk.sh(&format!("git checkout -q -f - && {gone}")));
    let lost = losses(&recorded);
    assert!(lost.iter().all(|(_, loss)| *loss == Loss::ImageGone), "{lost:?}");
    let did = ["edit a", "mkdir d", "create d/c", "delete e"].map(str::to_owned);
    let kept = |line: &&String| !lost.iter().any(|(path, _)| line.ends_with(&format!(" {path}")));
    assert_eq!(told(&recorded), did.iter().filter(kept).cloned().collect::<Vec<_>>());
}

#[test]
fn files_that_git_converts_are_kept_as_they_stand() {
    let desk = Desk::with_git(
        "printf '*.bat eol=crlf\\n*.up filter=up\\n' >.gitattributes; git config filter.up.clean 'tr a-z A-Z'; \
         git config filter.up.smudge 'tr A-Z a-z'; printf 'a\\r\\nb\\r\\n' >x.bat; printf 'same length' >y.up; git add .; \
         git commit -qm x",
    );
    grow_old(&desk);
    desk.sh("touch newest; git add newest");
    grow_old(&desk);
    let recorded = desk.run(|w| {
        fs::remove_file(w.join("x.bat")).unwrap();
        fs::remove_file(w.join("y.up")).unwrap();
    });
    assert_eq!(
        (told(&recorded), losses(&recorded)),
        (vec!["delete x.bat".to_owned(), "delete y.up".to_owned()], vec![])
    );
    assert_eq!(recorded.files[0].pre, Some(Digest::of(b"a\r\nb\r\n")));
    assert_eq!(recorded.files[1].pre, Some(Digest::of(b"same length")));
}

#[test]
fn a_second_run_reads_only_what_changed() {
    let desk = Desk::new();
    for number in 0..30 {
        desk.put(&format!("f{number}"), format!("content {number}"));
    }
    grow_old(&desk);
    drop(desk.before());
    // The budget of the second is not touched by what the first took in.
    let desk = Desk { bounds: Bounds { run_bytes: 20, ..Bounds::default() }, ..desk };
    fs::write(desk.path("f3"), "other 3").unwrap();
    grow_old(&desk);
    let before = desk.before();
    assert_eq!(before.uncovered().count(), 0);
    fs::remove_file(desk.path("f3")).unwrap();
    fs::remove_file(desk.path("f4")).unwrap();
    let recorded = desk.after(&before);
    assert_eq!(
        (told(&recorded), losses(&recorded)),
        (vec!["delete f3".to_owned(), "delete f4".to_owned()], vec![])
    );
    assert_eq!(recorded.files[0].pre, Some(Digest::of(b"other 3")));
}

#[test]
fn what_is_out_of_bounds_is_told_before_the_run_and_after_it() {
    let desk = Desk::new();
    desk.put("small", "1");
    desk.put("large", vec![1; 5000]);
    desk.put("more", vec![2; 900]);
    let desk = Desk { bounds: Bounds { file_bytes: 1000, run_bytes: 800, ..Bounds::default() }, ..desk };
    let before = desk.before();
    let told_before: Vec<(String, Loss)> =
        before.uncovered().map(|(at, loss)| (at.path.to_string(), loss)).collect();
    let listed = [("large".to_owned(), Loss::TooLarge), ("more".to_owned(), Loss::OverBudget)];
    assert_eq!(told_before, listed);
    for name in ["small", "large", "more"] {
        fs::write(desk.path(name), "x").unwrap();
    }
    let recorded = desk.after(&before);
    assert_eq!((told(&recorded), losses(&recorded)), (vec!["edit small".to_owned()], listed.to_vec()));
}

#[test]
fn a_young_file_that_is_written_in_place_is_found_by_its_bytes() {
    let desk = Desk::new();
    // Written right before the look and right after it: the stat may well be the same.
    for round in 0..40 {
        desk.put("f", format!("round {round:03} before"));
        let before = desk.before();
        let file = fs::File::options().write(true).open(desk.path("f")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"ROUND", 0).unwrap();
        drop(file);
        let recorded = desk.after(&before);
        assert_eq!(told(&recorded), ["edit f"], "{round}");
        assert_eq!(recorded.files[0].pre, Some(Digest::of(format!("round {round:03} before").as_bytes())));
    }
}

#[test]
fn changes_of_others_meanwhile_are_theirs() {
    let desk = Desk::new();
    for name in ["both", "first", "theirs", "gone", "untouched"] {
        desk.put(name, format!("{name} 0"));
    }
    let before = desk.before();
    desk.commit(vec![
        rig::replace("both", b"both 0", b"both 1"),
        rig::replace("theirs", b"theirs 0", b"theirs 1"),
        rig::delete("gone", b"gone 0"),
        rig::create("new", b"new 1"),
        rig::mkdir("made"),
    ]);
    // The command goes on from what another wrote, writes before another, and does something of its own.
    fs::write(desk.path("both"), "both 2").unwrap();
    fs::write(desk.path("first"), "first 1").unwrap();
    desk.commit(vec![rig::replace("first", b"first 1", b"first 2")]);
    fs::write(desk.path("own"), "own 1").unwrap();
    fs::write(desk.path("new"), "new 2").unwrap();
    desk.ws.settle();
    let recorded = desk.after(&before);
    assert_eq!(told(&recorded), ["edit both", "edit first", "edit new", "create own"]);
    let images = |name: &str| {
        let file = recorded.files.iter().find(|file| file.at == at(name)).unwrap();
        (file.pre, file.post)
    };
    let digests =
        |pre: &str, post: &str| (Some(Digest::of(pre.as_bytes())), Some(Digest::of(post.as_bytes())));
    assert_eq!(images("both"), digests("both 1", "both 2"));
    assert_eq!(images("first"), digests("first 0", "first 1"));
    assert_eq!(images("new"), digests("new 1", "new 2"));
    let overlapped: Vec<String> = recorded.overlapped.iter().map(|at| at.path.to_string()).collect();
    assert_eq!(overlapped, ["both", "first", "gone", "made", "new", "theirs"]);
    assert_eq!(losses(&recorded), []);
}

#[test]
fn moves_of_others_meanwhile_are_theirs_too() {
    let desk = Desk::new();
    desk.put("dir/a", "a");
    desk.put("dir/sub/b", "b");
    desk.put("file", "f");
    let before = desk.before();
    let tree = desk.ws.tree();
    let listing = tree.below(&tree.locate(&tree.parse("dir").unwrap()).unwrap()).unwrap().digest;
    let what = cotenant_model::Moved::Directory { listing };
    let op = cotenant_model::Op::Move { to: at("there"), what, over: None };
    desk.commit(vec![cotenant_model::FileOp { at: at("dir"), op }, rig::move_to("file", "renamed", b"f")]);
    fs::write(desk.path("there/c"), "c").unwrap();
    desk.ws.settle();
    let recorded = desk.after(&before);
    assert_eq!((told(&recorded), losses(&recorded)), (vec!["create there/c".to_owned()], vec![]));
}

#[test]
fn a_run_inside_a_run_is_not_counted_twice() {
    let desk = Desk::new();
    desk.put("f", "0");
    let server = desk.before();
    let inner = desk.run(|w| fs::write(w.join("f"), "1").unwrap());
    assert_eq!(told(&inner), ["edit f"]);
    fs::write(desk.path("log"), "served").unwrap();
    let outer = desk.after(&server);
    assert_eq!(told(&outer), ["create log"]);
    assert_eq!(outer.overlapped, [at("f")]);
}

#[test]
fn commits_while_the_look_is_taken_are_not_taken_for_the_commands_work() {
    let desk = Desk::new();
    for number in 0..300 {
        desk.put(&format!("d{}/f{number}", number % 7), "0");
    }
    let before = desk.before();
    fs::write(desk.path("own"), "1").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0_u32;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                let name = format!("d{}/f{}", round % 300 % 7, round % 300);
                let now = desk.get(&name).unwrap();
                desk.commit(vec![rig::replace(&name, &now, format!("{}", round + 1).as_bytes())]);
                round += 1;
            }
        });
        let found: Vec<_> = (0..15).map(|_| desk.after(&before)).collect();
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        // Once it is in a change, it is not the command's any more.
        assert_eq!(told(&found[0]), ["create own"]);
        for recorded in &found {
            assert_eq!(losses(recorded), []);
        }
        let more: Vec<String> = found[1..].iter().flat_map(told).collect();
        assert_eq!(more, [""; 0]);
    });
}

#[test]
fn each_folder_and_repository_is_looked_at_by_itself() {
    let desk = Desk::with_git(
        "echo a >a; git add a; git init -q sub; echo s >sub/s; git -C sub add s; mkdir -p sub/in; echo i >sub/in/i; \
         git -C sub add .; sleep 0.05; touch z sub/z; git add z; git -C sub add z",
    );
    grow_old(&desk);
    let dirs = [at("sub/in"), at("sub")];
    let before = effects::before(&desk.ws, &dirs[1..], desk.git.clone(), desk.bounds).unwrap();
    assert_eq!(desk.blob(b"s\n"), None, "in the objects of its own repository");
    fs::write(desk.path("a"), "outside").unwrap();
    fs::write(desk.path("sub/s"), "inside").unwrap();
    let recorded = desk.after(&before);
    assert_eq!((told(&recorded), losses(&recorded)), (vec!["edit sub/s".to_owned()], vec![]));
    let twice = effects::before(&desk.ws, &[at("nowhere")], None, desk.bounds);
    assert!(twice.is_err());
}

#[test]
fn a_directory_that_cannot_be_read_afterwards_is_not_taken_for_gone() {
    let Some(()) = crate::foreign::as_nobody(|| ()) else { return };
    let desk = Desk::new();
    desk.put("d/f", "1");
    let before = desk.before();
    fs::set_permissions(desk.path("d"), fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads it all the same; what counts is that nothing is lost either way.
    let recorded = desk.after(&before);
    assert_eq!((told(&recorded), losses(&recorded)), (vec![], vec![("d".to_owned(), Loss::Directory)]));
    fs::set_permissions(desk.path("d"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_root_that_is_gone_is_an_error_and_no_change() {
    let desk = Desk::new();
    desk.put("f", "1");
    let before = effects::before(&desk.ws, &[WsPath::default()], None, Bounds::default()).unwrap();
    fs::remove_dir_all(desk.root()).unwrap();
    let author = cotenant_model::Author {
        agent: "runner".into(),
        session: cotenant_model::SessionId(1),
        task: None,
        turn: 1,
    };
    let recorded = effects::after(&desk.ws, &before, &author, "run_command");
    // The root is held, so it is an empty directory to us; what was in it is gone, and in the change.
    match recorded {
        Ok(recorded) => assert_eq!(told(&recorded), ["delete f"]),
        Err(refusal) => assert!(!refusal.message.is_empty()),
    }
    fs::create_dir_all(desk.root()).unwrap();
}
