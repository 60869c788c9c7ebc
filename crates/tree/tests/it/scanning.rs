//! Two looks at a directory, and what a command in between is found to have done.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use cotenant_model::Digest;
use cotenant_tree::{Difference, EntryKind, Scan};

use crate::fixture::{Ws, root_path, ws};

fn scan(w: &Ws) -> Scan {
    w.tree.scan(&root_path("."), None).unwrap()
}

/// The differences that `command` (bash) makes, as `+path` created, `-path` gone, `~path` changed.
#[track_caller]
fn found(w: &Ws, command: &str) -> String {
    let before = scan(w);
    w.scratch.sh(command);
    let after = w.tree.scan(&root_path("."), Some(&before)).unwrap();
    let sign = |found: &Difference<'_>| match (found.was, found.is) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    };
    let told = Scan::diff(&before, &after);
    told.iter().map(|found| format!("{}{}", sign(found), found.at.path)).collect::<Vec<_>>().join(" ")
}

const PROJECT: &str = "cd $W; mkdir -p src/deep target empty .git; echo a >src/a; echo b >src/b; echo c >src/deep/c; \
                       ln -s a src/link; echo x >target/x; echo target/ >.gitignore; echo secret >.env";

#[test]
fn a_look_sees_every_entry_that_is_not_ignored_and_not_into_what_is_protected() {
    let w = ws(PROJECT);
    w.scratch.sh("cd $W; echo [core] >.git/config; echo >.cotenant-0123456789abcdef");
    let scan = scan(&w);
    let shown: Vec<String> = scan.entries().map(|(at, _)| at.path.to_string()).collect();
    let all = [
        ".env",
        ".git",
        ".gitignore",
        "empty",
        "src",
        "src/a",
        "src/b",
        "src/deep",
        "src/deep/c",
        "src/link",
    ];
    assert_eq!(shown, all);
    assert_eq!(scan.len(), all.len());
    assert!(!scan.is_empty());
    assert_eq!(scan.start(), &root_path("."));
    let closed: Vec<String> =
        scan.entries().filter(|(_, key)| key.protected).map(|(at, _)| at.path.to_string()).collect();
    assert_eq!(closed, [".env", ".git"]);
    let key = scan.get(&root_path("src/link")).unwrap();
    assert_eq!((key.kind, key.target.as_deref()), (EntryKind::Link, Some(&b"a"[..])));
    let meta = fs::metadata(w.scratch.path("src/a")).unwrap();
    let key = scan.get(&root_path("src/a")).unwrap();
    assert_eq!((key.stat.ino, key.stat.size, key.stat.nlink), (meta.ino(), 2, 1));
    assert_eq!(scan.get(&root_path("target/x")), None);
}

#[test]
fn nothing_done_is_nothing_found() {
    let w = ws(PROJECT);
    assert_eq!(found(&w, "cd $W; cat src/a; ls -R"), "");
    assert_eq!(
        found(&w, "cd $W; echo y >target/x; echo z >.git/HEAD; mkdir target/more"),
        "",
        "ignored, protected"
    );
}

#[test]
fn whatever_is_done_is_found() {
    for (command, told) in [
        ("echo more >>src/a", "~src/a"),
        ("echo n >src/new", "+src/new"),
        ("rm src/b", "-src/b"),
        ("mv src/b src/z", "-src/b +src/z"),
        ("chmod 700 src/b", "~src/b"),
        ("chmod 700 src", "~src"),
        ("mkdir one one/two", "+one +one/two"),
        ("rmdir empty", "-empty"),
        ("rm -r src/deep", "-src/deep -src/deep/c"),
        ("ln -sf b src/link", "~src/link"),
        ("rm src/a; mkdir src/a; echo i >src/a/inside", "~src/a +src/a/inside"),
        ("rm src/b; ln -s a src/b", "~src/b"),
        ("mkfifo pipe", "+pipe"),
        ("mv src/deep src/moved", "-src/deep -src/deep/c +src/moved +src/moved/c"),
        ("ln src/a hard", "+hard ~src/a"),
        ("rm .env", "-.env"),
        ("mkdir sub; mkdir sub/.git; echo >sub/.git/HEAD", "+sub +sub/.git"),
        // The same size and, set back, the same time: the change time tells.
        ("touch -r src/a $OUT/t; printf 'A\\n' >src/a; touch -r $OUT/t src/a", "~src/a"),
    ] {
        let w = ws(PROJECT);
        // Old enough that a later write cannot bear the same time.
        while scan(&w).entries().any(|(_, key)| key.kind == EntryKind::File && scan(&w).is_racy(key)) {}
        assert_eq!(found(&w, &format!("cd $W; {command}")), told, "{command}");
    }
}

#[test]
fn rules_that_change_in_between_make_nothing_come_or_go() {
    let w = ws(PROJECT);
    assert_eq!(found(&w, "cd $W; echo src/ >.gitignore"), "~.gitignore");
    let w = ws(PROJECT);
    assert_eq!(found(&w, "cd $W; rm .gitignore"), "-.gitignore");
    // A directory that comes brings its own rules, under those above it.
    let w = ws(PROJECT);
    let command =
        "cd $W; mkdir -p new/target new/out; echo out >new/.gitignore; touch new/out/x new/target/y new/z";
    assert_eq!(found(&w, command), "+new +new/.gitignore +new/z");
}

#[test]
fn a_young_file_is_racy_and_an_old_one_is_not() {
    let w = ws("echo a >$W/a; touch -d 2001-01-01 $W/a; echo b >$W/b; touch -d 2099-01-01 $W/b");
    let young = |name: &str| {
        let scan = scan(&w);
        scan.is_racy(scan.get(&root_path(name)).unwrap())
    };
    // Its change time is now, whatever its date says.
    while young("a") {}
    assert!(young("b"), "the future never grows old");
    fs::write(w.scratch.path("a"), "again").unwrap();
    assert!(young("a"));
}

#[test]
fn a_look_may_begin_below_and_stays_there() {
    let w = ws(PROJECT);
    w.scratch.sh("cd $W; mkdir -p src/target; touch src/target/t");
    let below = w.tree.scan(&root_path("src"), None).unwrap();
    let shown: Vec<String> = below.entries().map(|(at, _)| at.path.to_string()).collect();
    assert_eq!(shown, ["src/a", "src/b", "src/deep", "src/deep/c", "src/link"], "the rules above hold");
    assert!(w.tree.scan(&root_path("src/a"), None).is_err());
    assert!(w.tree.scan(&root_path("nowhere"), None).is_err());
    fs::remove_dir_all(w.scratch.path("src")).unwrap();
    assert!(w.tree.scan(&root_path("src"), Some(&below)).is_err());
}

#[test]
fn what_cannot_be_looked_into_is_neither_gone_nor_come() {
    let w = ws(PROJECT);
    let before = scan(&w);
    fs::set_permissions(w.scratch.path("src/deep"), fs::Permissions::from_mode(0o000)).unwrap();
    let after = w.tree.scan(&root_path("."), Some(&before)).unwrap();
    let told: Vec<String> =
        Scan::diff(&before, &after).iter().map(|found| found.at.path.to_string()).collect();
    assert_eq!(told, ["src/deep"]);
    // Root looks into everything.
    let blind: Vec<String> = after.blind().map(|at| at.path.to_string()).collect();
    assert!(blind.is_empty() || blind == ["src/deep"], "{blind:?}");
    fs::set_permissions(w.scratch.path("src/deep"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_path_is_looked_at_and_opened_without_following_links() {
    let w = ws(PROJECT);
    w.scratch.sh("ln -s src $W/way; mkfifo $W/pipe");
    let key = w.tree.key(&root_path("src/link")).unwrap();
    assert_eq!(key.target.as_deref(), Some(&b"a"[..]));
    assert_eq!(Some(&w.tree.key(&root_path("src/a")).unwrap()), scan(&w).get(&root_path("src/a")));
    assert!(w.tree.key(&root_path(".env")).unwrap().protected);
    assert_eq!(w.tree.key(&root_path("way/a")), None, "a link on the way");
    assert_eq!(w.tree.key(&root_path("nothing")), None);
    assert_eq!(w.tree.key(&root_path(".")).unwrap().kind, EntryKind::Dir);

    let mut opened = w.tree.open_file(&root_path("src/a")).unwrap();
    assert!(opened.unchanged());
    assert_eq!(opened.digest().unwrap(), Digest::of(b"a\n"));
    assert_eq!(opened.digest().unwrap(), Digest::of(b"a\n"), "from its beginning each time");
    assert_eq!(opened.stat().size, 2);
    fs::write(w.scratch.path("src/a"), "longer").unwrap();
    assert!(!opened.unchanged());
    for closed in [".env", "src", "src/link", "way/a", "pipe", "nothing", ".git/config"] {
        assert!(w.tree.open_file(&root_path(closed)).is_err(), "{closed}");
    }
}

#[test]
fn deep_and_wide_trees_are_seen_whole() {
    let w = ws(
        "cd $W; for d in $(seq 40); do mkdir -p d$d/e/f; for f in $(seq 20); do echo $f >d$d/e/f/$f; done; done",
    );
    assert_eq!(scan(&w).len(), 40 * 23);
    assert_eq!(found(&w, "cd $W; rm -r d7; echo >d8/e/f/3").split(' ').count(), 24);
}
