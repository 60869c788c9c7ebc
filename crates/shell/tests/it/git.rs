//! What git is asked, on real repositories, hostile ones among them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;

use cotenant_model::{FolderId, GitObjects, RelPath, Tracked, WsPath};
use cotenant_shell::git::Git;
use cotenant_testkit::Scratch;

const MAKE: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; \
                    cd $W; git init -q .;";

fn repository(script: &str) -> (Scratch, Git) {
    let scratch = Scratch::new("/bin/false");
    scratch.sh(&format!("{MAKE} {script}"));
    let git = Git::find(&std::env::var_os("PATH").unwrap(), vec![scratch.root()]).unwrap();
    (scratch, git)
}

fn at(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

fn tracked(git: &Git, path: &str) -> Vec<Tracked> {
    let mut tracked = git.tracked(&at(path)).unwrap();
    tracked.sort_by(|a, b| a.at.cmp(&b.at));
    tracked
}

fn names(git: &Git, path: &str) -> Vec<String> {
    tracked(git, path).iter().map(|entry| entry.at.path.to_string()).collect()
}

fn contents(git: &Git, objects: &[&str]) -> (bool, Vec<(usize, Vec<u8>)>) {
    let mut found = Vec::new();
    let went_well = git.contents(&at("."), objects, &mut |index, bytes| found.push((index, bytes)));
    (went_well, found)
}

#[test]
fn the_index_is_told_with_sizes_and_stats_and_the_objects_have_the_bytes() {
    let (scratch, git) = repository(
        "printf one >a; mkdir d; printf 'tw\\0o' >'d/b c'; : >empty; chmod +x a; ln -s a link; git add .; git commit -qm x",
    );
    let all = tracked(&git, ".");
    let shown: Vec<(String, u64)> =
        all.iter().map(|entry| (entry.at.path.to_string(), entry.bytes)).collect();
    assert_eq!(
        shown,
        [("a".to_owned(), 3), ("d/b c".to_owned(), 4), ("empty".to_owned(), 0)],
        "a link is no file"
    );
    let meta = fs::metadata(scratch.path("a")).unwrap();
    let seen = all[0].seen;
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    assert_eq!(seen.mtime_ns, nanos(meta.mtime(), meta.mtime_nsec()));
    assert_eq!(seen.ctime_ns, nanos(meta.ctime(), meta.ctime_nsec()));
    assert_eq!((u64::from(seen.ino), u64::from(seen.size)), (meta.ino() & 0xffff_ffff, 3));

    let missing = "0".repeat(40);
    let objects = [&*all[1].object, &missing, &*all[2].object, &*all[1].object];
    let both = (true, vec![(0, b"tw\0o".to_vec()), (2, Vec::new()), (3, b"tw\0o".to_vec())]);
    assert_eq!(contents(&git, &objects), both);
    assert_eq!(contents(&git, &[]), (true, Vec::new()));
    // What is no file's is not handed over, and does not disturb what follows.
    let tree = scratch.sh("cd $W; git rev-parse HEAD^{tree}").stdout.trim().to_owned();
    assert_eq!(contents(&git, &[&tree, &all[0].object]), (true, vec![(1, b"one".to_vec())]));
    assert!(!contents(&git, &["not an object\n\n"]).1.iter().any(|(_, bytes)| !bytes.is_empty()));
}

#[test]
fn many_objects_come_in_their_order() {
    let (_scratch, git) =
        repository("for i in $(seq 2000); do echo content $i >f$i; done; git add .; git commit -qm x");
    let all = tracked(&git, ".");
    let objects: Vec<&str> = all.iter().map(|entry| &*entry.object).collect();
    let (went_well, found) = contents(&git, &objects);
    assert!(went_well);
    assert_eq!(found.len(), 2000);
    for ((index, bytes), entry) in found.iter().zip(&all) {
        let name = entry.at.path.to_string();
        assert_eq!(String::from_utf8_lossy(bytes), format!("content {}\n", &name[1..]), "{index}");
        assert_eq!(bytes.len() as u64, entry.bytes);
    }
}

#[test]
fn a_file_that_git_converts_is_not_told_or_told_by_another_length() {
    let (_scratch, git) = repository(
        "printf '*.lfs filter=lfs\\n*.id ident\\n*.utf working-tree-encoding=UTF-16\\n*.bat eol=crlf\\n' >.gitattributes; \
         git config filter.lfs.clean 'tr a-z A-Z'; printf abc >x.lfs; printf '$Id$' >x.id; printf 'a\\r\\n' >x.bat; \
         printf 'ab' | iconv -t UTF-16 >x.utf; printf plain >x; git add . 2>/dev/null; git commit -qm x",
    );
    let shown: Vec<(String, u64)> =
        tracked(&git, ".").iter().map(|entry| (entry.at.path.to_string(), entry.bytes)).collect();
    let told = [".gitattributes", "x", "x.bat"];
    assert_eq!(shown.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), told);
    assert_eq!(shown[2].1, 2, "the object has one byte less than the file");
}

#[test]
fn further_folders_nested_repositories_and_directories_that_are_none() {
    let (scratch, git) = repository(
        "mkdir -p sub/inner plain; touch a plain/p; git add .; git init -q sub; touch sub/inner/s; git -C sub add .",
    );
    assert_eq!(names(&git, "."), ["a", "plain/p"]);
    assert_eq!(names(&git, "sub"), ["sub/inner/s"]);
    assert_eq!(git.tracked(&at("plain")), None, "the repository above is not this directory's");
    assert_eq!(git.tracked(&at("nowhere")), None);
    assert_eq!(git.tracked(&WsPath { folder: FolderId(7), ..WsPath::default() }), None);
    scratch.sh("cd $W; echo junk >.git/index");
    assert_eq!(git.tracked(&at(".")), None);
    assert!(!git.contents(&at("plain"), &[&"0".repeat(40)], &mut |_, _| panic!("nothing is there")));
}

#[test]
fn conflicts_intentions_and_replaced_objects_are_not_trusted() {
    let (scratch, git) = repository(
        "echo base >f; git add .; git commit -qm base; git branch other; echo one >f; git commit -qam one; \
         git checkout -q other; echo two >f; git commit -qam two; git merge -q master main 2>/dev/null; \
         git merge -q - 2>/dev/null; echo later >g; git add -N g; true",
    );
    let all = tracked(&git, ".");
    assert!(all.iter().all(|entry| entry.at.path.as_bytes() != b"f"), "three stages are no version");
    assert_eq!(
        all.iter().find(|entry| entry.at.path.as_bytes() == b"g").unwrap().bytes,
        0,
        "nothing was added"
    );
    scratch.sh("cd $W; git replace HEAD:f HEAD~1:f");
    assert_eq!(git.tracked(&at(".")), None);
}

#[test]
fn a_repository_of_other_digests_is_read_as_well() {
    let scratch = Scratch::new("/bin/false");
    scratch.sh("cd $W; git init -q --object-format=sha256 .; echo x >a; git add .");
    let git = Git::find(&std::env::var_os("PATH").unwrap(), vec![scratch.root()]).unwrap();
    let all = tracked(&git, ".");
    assert_eq!(all[0].object.len(), 64);
    assert_eq!(contents(&git, &[&all[0].object]), (true, vec![(0, b"x\n".to_vec())]));
}

/// Everything in a repository that names a program, each of which leaves a file of its name in `$OUT/ran`.
const PLANTED: &str = r#"
    mkdir -p $OUT/ran $OUT/bin; export RAN=$OUT/ran
    trap_for() { printf '#!/bin/sh\ntouch "%s/%s"\n' "$RAN" "$1" >"$OUT/bin/$1"; chmod +x "$OUT/bin/$1"; echo "$OUT/bin/$1"; }
    echo one >a; echo two >b.conv; git add .; git commit -qm x
    git config core.fsmonitor "$(trap_for fsmonitor)"
    mkdir $OUT/hooks; for hook in post-index-change pre-commit post-checkout reference-transaction; do
        cp "$(trap_for hook-$hook)" $OUT/hooks/$hook; cp "$(trap_for inner-$hook)" .git/hooks/$hook; done
    git config core.hooksPath $OUT/hooks
    git config core.pager "$(trap_for pager)"; git config pager.ls-files "$(trap_for pager-ls)"
    git config pager.cat-file "$(trap_for pager-cat)"; git config pager.for-each-ref "$(trap_for pager-ref)"
    git config filter.t.clean "$(trap_for clean)"; git config filter.t.smudge "$(trap_for smudge)"
    git config filter.t.process "$(trap_for process)"; git config filter.t.required true
    git config diff.t.textconv "$(trap_for textconv)"; git config diff.t.command "$(trap_for diff-command)"
    git config diff.external "$(trap_for diff-external)"; git config merge.t.driver "$(trap_for merge)"
    git config core.editor "$(trap_for editor)"; git config core.askPass "$(trap_for askpass)"
    git config credential.helper "$(trap_for credential)"; git config core.sshCommand "$(trap_for ssh)"
    git config core.gitProxy "$(trap_for proxy)"; git config core.alternateRefsCommand "$(trap_for alternates)"
    git config uploadpack.packObjectsHook "$(trap_for pack)"; git config gpg.program "$(trap_for gpg)"
    git config alias.ls-files "!$(trap_for alias)"; git config alias.cat-file "!$(trap_for alias-cat)"
    git config extensions.partialClone origin; git config core.repositoryFormatVersion 1
    git config remote.origin.promisor true; git config remote.origin.url "ext::$(trap_for ext)"
    git config remote.origin.uploadpack "$(trap_for uploadpack)"; git config remote.origin.vcs "$(trap_for vcs)"
    git config protocol.ext.allow always; git config protocol.allow always
    echo '*.conv filter=t diff=t merge=t' >.gitattributes
    touch a b.conv
    rm -f $OUT/ran/*
"#;

#[test]
fn nothing_that_a_repository_names_is_run() {
    let (scratch, git) = repository(PLANTED);
    let ran = || fs::read_dir(scratch.out().join("ran")).unwrap().count();
    assert_eq!(ran(), 0);
    let all = tracked(&git, ".");
    assert_eq!(all.len(), 1, "{all:?}");
    let absent = "1".repeat(40);
    contents(&git, &[&all[0].object, &absent]);
    assert_eq!(ran(), 0, "{:?}", fs::read_dir(scratch.out().join("ran")).unwrap().collect::<Vec<_>>());
    // The traps work: git as it is falls into them.
    scratch.try_sh(
        "cd $W; exec </dev/null >/dev/null 2>&1; timeout 5 git status; timeout 5 git cat-file -e 1111111111111111111111111111111111111111",
    );
    assert!(ran() >= 2, "{:?}", fs::read_dir(scratch.out().join("ran")).unwrap().collect::<Vec<_>>());
}

#[test]
fn a_git_that_lies_in_the_workspace_is_not_run() {
    let scratch = Scratch::new("/bin/false");
    scratch.sh("mkdir $W/bin $OUT/bin; printf '#!/bin/sh\\n' >$W/bin/git; chmod +x $W/bin/git; cp $W/bin/git $OUT/bin/; touch $OUT/git");
    let inside = scratch.path("bin");
    let find = |path: &OsStr| Git::find(path, vec![scratch.root()]);
    assert!(find(inside.as_os_str()).is_none());
    assert!(find(OsStr::new(".:bin:")).is_none());
    assert!(find(scratch.out().as_os_str()).is_none(), "not executable");
    let both = std::env::join_paths([inside, scratch.out().join("bin")]).unwrap();
    assert!(find(&both).is_some());
}
