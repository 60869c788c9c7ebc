//! Direct commands: what lands, and what of the folder they may not write.

use cotenant_model::ExecLimits;
use cotenant_shell::run::{Exceeded, How, Request};
use cotenant_shell::sandbox::{Grade, Mode};

use super::rig::{Rig, direct, exists, rel, staged};

#[test]
fn what_is_written_lands() {
    let rig = Rig::new();
    rig.put("dir/old", "x");
    let ran = rig.direct("echo new > file; mv dir moved; mkdir -p a/b; ln -s file link; chmod 755 file").ok();
    assert_eq!(rig.text("file"), "new\n");
    assert!(rig.root().join("moved/old").exists() && exists(&rig.root().join("link")));
    assert_eq!(ran.ended.tier.mode, Mode::Direct);
    if ran.ended.tier.own_root {
        assert_eq!(ran.ended.tier.grade(), Grade::G2);
    }
    assert!(ran.job.upper().is_err());
}

#[test]
fn protected_paths_are_not_written_moved_or_taken_the_place_of() {
    let rig = Rig::new();
    if !rig.has_root("protected_paths_are_not_written_moved_or_taken_the_place_of") {
        return;
    }
    for path in
        [".git/hooks/pre-commit", ".git/config", "app/conf/.env", "app/code", "vendor/sub/.git/config"]
    {
        rig.put(path, "before\n");
    }
    let closed = [".git", "app/conf/.env", "vendor/sub/.git", "not/there"];
    for attack in [
        "echo x > .git/hooks/pre-commit",
        "echo x > .git/hooks/post-checkout",
        "mv .git .old && mkdir -p .git/hooks",
        "rm -rf .git",
        "mv app old; mkdir -p app/conf; echo x > app/conf/.env",
        "mv app/conf app/c2",
        "rm -rf app",
        "rm app/conf/.env",
        "echo x > app/conf/.env",
        "mv app/code app/conf/.env",
        "ln -f app/code app/conf/.env",
        "git config core.fsmonitor ./evil",
        "mv vendor/sub vendor/gone",
        "mv vendor gone",
        "chmod 777 app/conf/.env",
        "perl -e 'rename(\".git\", \"x\") and print \"moved\"'",
        "umount .git",
        "mount -o remount,rw .git",
        "truncate -s 0 .git/config",
        "sed -i s/before/after/ app/conf/.env",
        "echo x > vendor/sub/.git/config",
    ] {
        let ran = rig.run(rig.request(attack, direct(&closed)));
        assert!(!ran.said.contains("moved"), "{attack}");
        for path in [".git/hooks/pre-commit", ".git/config", "app/conf/.env", "vendor/sub/.git/config"] {
            assert_eq!(rig.text(path), "before\n", "{attack}");
        }
        assert!(!exists(&rig.root().join(".git/hooks/post-checkout")), "{attack}");
    }
    rig.run(rig.request("echo x > app/conf/other; echo y > app/code", direct(&closed))).ok();
    assert!(exists(&rig.root().join("app/conf/other")));
}

#[test]
fn git_writes_its_own_and_neither_config_nor_hooks() {
    let rig = Rig::new();
    if !rig.has_root("git_writes_its_own_and_neither_config_nor_hooks") {
        return;
    }
    rig.put("file", "one\n");
    if rig.direct("git init -q . && git config user.name t && git config user.email t@e").ended.exit
        != Some(0)
    {
        eprintln!("SKIP git_writes_its_own_and_neither_config_nor_hooks: no git");
        return;
    }
    let config = rig.text(".git/config");
    let git = |script: &str| rig.run(rig.request(script, How::Direct { read_only: Vec::new(), git: true }));
    let script = "git add . && git commit -qm first && git checkout -q -b other && echo two >> file && git stash -q && \
        git stash pop -q && git commit -qam second && git checkout -q - && git merge -q other && git tag v1 && \
        git log --oneline | wc -l";
    let ran = git(script).ok();
    assert_eq!(ran.said.lines().last().map(str::trim), Some("2"), "{}", ran.said);
    for attack in [
        "git config core.fsmonitor ./evil",
        "echo x > .git/hooks/pre-commit",
        "echo x > .git/info/attributes",
        "mv .git .old",
        "mv .git/hooks .git/h2",
        "rm -rf .git",
        "echo '[core]' > .git/config",
    ] {
        git(attack);
        assert_eq!(rig.text(".git/config"), config, "{attack}");
        assert!(!exists(&rig.root().join(".git/hooks/pre-commit")), "{attack}");
        assert!(!exists(&rig.root().join(".git/info/attributes")), "{attack}");
    }
    assert!(exists(&rig.root().join(".git/hooks")) && rig.text("file").ends_with("two\n"));
}

#[test]
fn caches_that_are_listed_can_be_written() {
    let rig = Rig::new();
    let cache = rig.base.join("home/.cache/tool");
    std::fs::create_dir_all(&cache).unwrap();
    for how in [direct(&[]), staged()] {
        if matches!(how, How::Staged { .. }) && !rig.can_stage("caches_that_are_listed_can_be_written") {
            continue;
        }
        let mut request = rig.request(&format!("echo x > {0}/kept; cat {0}/kept", cache.display()), how);
        request.caches = vec![cache.clone(), rig.base.join("absent")];
        assert_eq!(rig.run(request).ok().said, "x\n");
        std::fs::remove_file(cache.join("kept")).unwrap();
    }
}

#[test]
fn a_folder_that_holds_the_home_shows_no_secrets() {
    let rig = Rig::new();
    if !rig.has_root("a_folder_that_holds_the_home_shows_no_secrets") {
        return;
    }
    for path in ["home/.ssh/id", "home/.netrc", "state/ledger", "home/visible"] {
        let path = rig.base.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "content\n").unwrap();
    }
    let mut request = rig
        .request("cat home/.ssh/id home/.netrc state/ledger; cat home/visible; echo home=$HOME", direct(&[]));
    request.folders[0].host = rig.base.clone();
    request.folders[0].dir = None;
    let ran = rig.run(request).ok();
    assert_eq!(ran.said.matches("content").count(), 1, "{}", ran.said);
    assert!(ran.said.contains("home=/tmp\n"), "its own home is elsewhere: {}", ran.said);
}

/// A request with little of everything.
fn narrow(rig: &Rig, script: &str) -> Request {
    let mut request = rig.request(script, direct(&[]));
    request.limits = ExecLimits { memory_mb: 200, cpu_s: 1, processes: 60, disk_mb: 4 };
    request
}

#[test]
fn limits_hold() {
    let rig = Rig::new();
    let ran = rig.run(narrow(&rig, "ulimit -d; ulimit -t; ulimit -f; ulimit -c")).ok();
    // In kilobytes, seconds, blocks of a kilobyte.
    assert_eq!(ran.said, "204800\n1\n4096\n0\n");
    let ran = rig.run(narrow(&rig, "head -c 8000000 /dev/zero > big; stat -c %s big"));
    assert!(ran.said.contains("4194304\n"), "{}", ran.said);
    let ran = rig.run(narrow(&rig, "while :; do :; done"));
    assert_eq!(ran.ended.exit, None, "{:?}", ran.ended);
    let ran = rig.run(narrow(&rig, "python3 -c 'x = bytearray(400 << 20)' && echo got"));
    assert!(!ran.said.contains("got"), "{}", ran.said);
}

#[test]
fn memory_of_all_together_is_bounded_where_groups_can_be_made() {
    let rig = Rig::new();
    let tier = rig.machine.direct_tier();
    if !tier.memory_together {
        eprintln!(
            "SKIP memory_of_all_together_is_bounded_where_groups_can_be_made: {:?}",
            rig.machine.report()
        );
        return;
    }
    // It is put into a group once it has run for a while; what it has by then is not counted.
    let script = "until grep -q cotenant /proc/self/cgroup; do sleep 0.05; done; for i in 1 2 3 4; do head -c 120000000 /dev/zero | tail & done; wait; echo end";
    let ran = rig.run(narrow(&rig, script));
    assert_eq!(ran.ended.exceeded, Some(Exceeded::Memory), "{:?} {}", ran.ended, ran.said.len());
}

#[test]
fn a_disk_that_is_filled_ends_the_command() {
    let rig = Rig::new();
    if !rig.can_stage("a_disk_that_is_filled_ends_the_command") {
        return;
    }
    let script = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > file-$i || exit; sleep 0.02; done";
    let ran = rig.run(Request { how: staged(), ..narrow(&rig, script) });
    assert_eq!(ran.ended.exceeded, Some(Exceeded::Disk), "{:?}", ran.ended);
    assert!(!ran.ended.timed_out && !ran.ended.stopped);
    assert!(rel("file-1").leaf().is_some() && !exists(&rig.root().join("file-1")));
}
