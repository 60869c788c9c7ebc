//! Staged commands: the folder stays as it was, and the upper layer says what would change.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use cotenant_shell::run::{Folder, Hint, How};
use cotenant_shell::sandbox::{Grade, Mode, StartError, UpperError, UpperKind};

use super::rig::{Rig, direct, exists, rel, staged};

#[test]
fn every_kind_of_change_is_found_and_none_lands() {
    let rig = Rig::new();
    if !rig.can_stage("every_kind_of_change_is_found_and_none_lands") {
        return;
    }
    for name in [
        "changed",
        "gone",
        "mode",
        "touched",
        "becomes-link",
        "renamed",
        "dir/inside",
        "replaced/old",
        "away/x",
    ] {
        rig.put(name, "before\n");
    }
    let script = "echo more >> changed; echo new > created; rm gone; chmod 750 mode; touch touched; mkdir made; \
        ln -s created link; rm becomes-link; ln -s changed becomes-link; mv renamed new-name; ln changed twin; \
        rm -r replaced; mkdir replaced; echo new > replaced/new; rm -r away; mkfifo pipe; rm dir/inside; \
        mkdir made/deep; echo x > made/deep/file";
    let ran = rig.staged(script).ok();
    let expected = [
        "away gone",
        "becomes-link link changed",
        "changed file copied",
        "created file new",
        "dir dir",
        "dir/inside gone",
        "gone gone",
        "link link created",
        "made dir new",
        "made/deep dir new",
        "made/deep/file file new",
        "mode file copied",
        "new-name file copied",
        "pipe a FIFO",
        "renamed gone",
        "replaced dir opaque",
        "replaced/new file new",
        "touched file copied",
        "twin file copied",
    ];
    assert_eq!(ran.changes(), expected);
    assert_eq!(rig.text("changed"), "before\n");
    assert!(rig.root().join("gone").exists() && !exists(&rig.root().join("created")));
    assert_eq!((ran.ended.tier.mode, ran.ended.tier.grade()), (Mode::Staged, Grade::G3));
}

#[test]
fn an_entry_says_what_a_plan_needs() {
    let rig = Rig::new();
    if !rig.can_stage("an_entry_says_what_a_plan_needs") {
        return;
    }
    rig.put("file", "before\n");
    let script = "echo after >> file; chmod 6754 file; ln file twin; touch -d '2001-02-03 04:05:06 UTC' file; \
        mkdir -m 700 d; printf secret > closed; chmod 000 closed; mkdir shut; echo in > shut/x; chmod 000 shut";
    let ran = rig.staged(script).ok();
    let upper = ran.upper();
    let walk = upper.walk(0, 100).unwrap();
    let find = |path: &str| walk.entries.iter().find(|entry| entry.path == rel(path)).unwrap();
    let file = find("file");
    assert_eq!((file.attributes.mode, file.attributes.modified), (0o6754, (981_173_106, 0)));
    let UpperKind::File { size: 13, links: 2, inode, copied: true } = file.kind else { panic!("{file:?}") };
    assert!(matches!(find("twin").kind, UpperKind::File { inode: twin, .. } if twin == inode));
    assert_eq!(
        file.attributes.owner,
        (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    );
    assert_eq!(find("d").attributes.mode, 0o700);
    for (path, content, mode) in
        [("file", "before\nafter\n", 0o6754), ("closed", "secret", 0), ("shut/x", "in\n", 0o644)]
    {
        let mut text = String::new();
        std::fs::File::from(upper.open(0, &rel(path)).unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), find(path).attributes.mode), (content, mode), "{path}");
    }
    assert_eq!(find("shut").attributes.mode, 0);
    assert!(matches!(upper.open(0, &rel("no")), Err(UpperError::Io { .. })));
    assert_eq!(upper.walk(1, 100), Err(UpperError::NoLayer(1)));
    assert_eq!(upper.walk(0, 3), Err(UpperError::TooMany(3)));
}

#[test]
fn a_command_that_changes_nothing_leaves_nothing() {
    let rig = Rig::new();
    if !rig.can_stage("a_command_that_changes_nothing_leaves_nothing") {
        return;
    }
    rig.put("src/a", "x");
    std::fs::set_permissions(rig.root(), PermissionsExt::from_mode(0o750)).unwrap();
    let ran = rig.staged("cat src/a; ls -la; find . -type f; stat -c %a .; grep -r x .").ok();
    assert_eq!(ran.changes(), Vec::<String>::new());
    assert!(ran.said.contains("\n750\n"), "the root is as it is: {}", ran.said);
}

#[test]
fn what_git_holds_is_listed_apart_and_reading_it_writes_nothing() {
    let rig = Rig::new();
    if !rig.can_stage("what_git_holds_is_listed_apart_and_reading_it_writes_nothing") {
        return;
    }
    rig.put("tracked", "one\n");
    let set_up = "git init -q . && git add . && git -c user.name=t -c user.email=t@e commit -qm first";
    if rig.direct(set_up).ended.exit != Some(0) {
        eprintln!("SKIP what_git_holds_is_listed_apart_and_reading_it_writes_nothing: no git");
        return;
    }
    let read = rig.staged("touch tracked; git status --short; git log --oneline; git show --stat").ok();
    let walk = read.upper().walk(0, 1000).unwrap();
    assert_eq!((walk.git.len(), walk.entries.len()), (0, 1), "{walk:?}");
    let wrote =
        rig.staged("echo two >> tracked; git -c user.name=t -c user.email=t@e commit -qam second").ok();
    let walk = wrote.upper().walk(0, 1000).unwrap();
    assert_eq!(walk.entries.len(), 1);
    assert!(
        walk.git.contains(&rel(".git/COMMIT_EDITMSG")) || walk.git.contains(&rel(".git/index")),
        "{walk:?}"
    );
    assert!(!walk.git.contains(&rel(".git")));
}

#[test]
fn ignored_directories_are_written_for_real() {
    let rig = Rig::new();
    if !rig.can_stage("ignored_directories_are_written_for_real") {
        return;
    }
    rig.put("target/debug/old", "x");
    rig.put("link-target/x", "x");
    symlink("link-target", rig.root().join("linked")).unwrap();
    let through = ["target", "linked", "absent"].map(|path| (0, rel(path))).into();
    let script = "echo built > target/debug/new; mv target/debug/old target/older; echo src > source; echo x > linked/y";
    let ran = rig.run(rig.request(script, How::Staged { through, read_only: Vec::new() })).ok();
    assert_eq!(ran.changes(), ["link-target dir", "link-target/y file new", "source file new"]);
    assert_eq!(rig.text("target/debug/new"), "built\n");
    assert!(exists(&rig.root().join("target/older")) && !exists(&rig.root().join("link-target/y")));
}

#[test]
fn what_a_build_left_is_moved_with_its_times() {
    let rig = Rig::new();
    if !rig.can_stage("what_a_build_left_is_moved_with_its_times") {
        return;
    }
    rig.put("src/main", "x");
    let script = "cp src/main out; mkdir -p target/deep; cp src/main target/deep/o; echo y >> target/deep/o; \
        touch -d '2001-02-03 04:05:06 UTC' target/deep/o; ln -s o target/deep/l; chmod 555 target/deep; \
        rm src/main; mv out src/main";
    let ran = rig.staged(script).ok();
    let root = std::fs::File::open(rig.root()).unwrap();
    let upper = ran.upper();
    upper.move_into(0, &rel("target"), (root.as_fd(), OsStr::new("target")), false).unwrap();
    let moved = rig.root().join("target/deep/o");
    assert_eq!(std::fs::read_to_string(&moved).unwrap(), "xy\n");
    assert_eq!(moved.metadata().unwrap().mtime(), 981_173_106);
    assert_eq!(rig.root().join("target/deep").metadata().unwrap().mode() & 0o777, 0o555);
    let names: Vec<u8> = rustix_names(&rig.root().join("target"));
    assert!(!names.windows(8).any(|window| window == b"overlay."), "the overlay's notes are gone");
    // One that is there already is only replaced where that was asked for.
    let src = std::fs::File::open(rig.root().join("src")).unwrap();
    let into = (src.as_fd(), OsStr::new("main"));
    assert!(upper.move_into(0, &rel("src/main"), into, false).is_err());
    upper.move_into(0, &rel("src/main"), into, true).unwrap();
    std::fs::set_permissions(rig.root().join("target/deep"), PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(rig.text("src/main"), "x");
}

fn rustix_names(path: &std::path::Path) -> Vec<u8> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    names.truncate(length);
    names
}

#[test]
fn a_directory_cannot_be_renamed_and_the_answer_says_so() {
    let rig = Rig::new();
    if !rig.can_stage("a_directory_cannot_be_renamed_and_the_answer_says_so") {
        return;
    }
    rig.put("a/file", "x");
    let ran = rig.staged("perl -e 'rename(\"a\", \"b\") or die \"$!\\n\"'");
    assert_ne!(ran.ended.exit, Some(0));
    assert_eq!(ran.ended.hints, [Hint::DirectoryRename], "{}", ran.said);
    assert_eq!(rig.staged("mv a b").ok().ended.hints, []);
    assert_eq!(rig.direct("perl -e 'rename(\"a\", \"b\") or die'").ok().ended.hints, []);
}

#[test]
fn folders_are_over_laid_each_for_itself_and_one_for_reading_is_not_written() {
    let rig = Rig::new();
    if !rig.can_stage("folders_are_over_laid_each_for_itself_and_one_for_reading_is_not_written") {
        return;
    }
    for dir in ["second", "docs"] {
        std::fs::create_dir(rig.base.join(dir)).unwrap();
        std::fs::write(rig.base.join(dir).join("file"), "<docs>").unwrap();
    }
    let folder = |name: &str, writable| Folder { host: rig.base.join(name), dir: None, writable };
    let script = "echo 1 > new; echo 2 > ../second/new; echo 3 > ../docs/new || cat ../docs/file";
    let mut request = rig.request(script, staged());
    request.folders.extend([folder("docs", false), folder("second", true)]);
    let ran = rig.run(request).ok();
    assert!(ran.said.contains("<docs>"), "{}", ran.said);
    let layer = |index| ran.upper().walk(index, 10).map(|walk| walk.entries.len());
    assert_eq!((layer(0), layer(1), layer(2)), (Ok(1), Err(UpperError::NoLayer(1)), Ok(1)));
    assert!(!exists(&rig.base.join("second/new")) && !exists(&rig.base.join("docs/new")));
}

#[test]
fn read_only_paths_hold_in_a_staged_command_too() {
    let rig = Rig::new();
    if !rig.can_stage("read_only_paths_hold_in_a_staged_command_too") {
        return;
    }
    rig.put("generated/x", "x");
    let how = How::Staged { through: Vec::new(), read_only: vec![(0, rel("generated")), (0, rel("absent"))] };
    let ran = rig.run(rig.request("echo y > generated/x; rm -r generated; echo y > other", how));
    assert_eq!(ran.changes(), ["other file new"]);
}

#[test]
fn a_mount_below_the_root_is_named() {
    let rig = Rig::new();
    if !rig.can_stage("a_mount_below_the_root_is_named") {
        return;
    }
    // `/proc` has mounts below it nowhere; `/dev` has everywhere.
    let mut request = rig.request("true", staged());
    request.folders = vec![Folder { host: "/dev".into(), dir: None, writable: true }];
    let Err(StartError::NotStageable { word, why }) = rig.start(request) else { panic!("it started") };
    assert_eq!(word, "mount-below");
    assert!(why.contains("/dev/"), "{why}");
}

#[test]
fn a_foreign_owner_is_named() {
    let rig = Rig::new();
    if rustix::process::geteuid().is_root() || !rig.can_stage("a_foreign_owner_is_named") {
        // Every id is known where root maps them all: there is nothing to refuse.
        return;
    }
    let mut request = rig.request("true", staged());
    request.folders = vec![Folder { host: "/usr/share".into(), dir: None, writable: true }];
    let Err(StartError::NotStageable { word, why }) = rig.start(request) else { panic!("it started") };
    assert_eq!(word, "foreign-owner");
    assert!(why.contains("/usr/share"), "{why}");
}

#[test]
fn a_barrier_lies_between_what_was_before_and_what_comes_after() {
    let rig = Rig::new();
    rig.put("before", "x");
    let job = rig.start(rig.request("true", direct(&[]))).unwrap();
    rig.put("after", "x");
    let Some(barrier) = job.barrier(0) else { panic!("state and root share a file system") };
    let changed = |path: &str| {
        let found = rig.root().join(path).metadata().unwrap();
        (found.ctime(), u32::try_from(found.ctime_nsec()).unwrap())
    };
    let at = (barrier.seconds, barrier.nanos);
    assert!(changed("before") <= at && at <= changed("after"));
    assert_eq!(job.barrier(1), None);
    rig.finish(job).ok();
}

#[test]
fn the_layers_go_with_whoever_holds_them_last() {
    let rig = Rig::new();
    if !rig.can_stage("the_layers_go_with_whoever_holds_them_last") {
        return;
    }
    let runs = || {
        let entries = std::fs::read_dir(rig.base.join("state/scratch")).unwrap().flatten();
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"run-")).count()
    };
    let ran = rig.staged("echo x > y; mkdir d; chmod 000 d").ok();
    let upper = ran.upper();
    drop(ran);
    assert_eq!(runs(), 1);
    drop(upper);
    // Removed in the background: waited for by looking, as nobody tells.
    let start = std::time::Instant::now();
    while runs() > 0 && start.elapsed() < cotenant_testkit::PATIENCE {
        std::thread::yield_now();
    }
    assert_eq!(runs(), 0);
}
