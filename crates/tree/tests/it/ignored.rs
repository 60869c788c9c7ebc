//! Which paths are ignored, against git itself over rule files that are made up.

use std::collections::BTreeSet;

use cotenant_model::FolderId;
use cotenant_testkit::{Dice, long};

use crate::fixture::{Ws, root_path, ws};

/// Names from which paths and patterns are made.
const NAMES: &[&str] = &["a", "b", "build", "x.log", "y.log", "src", "A"];

#[rustfmt::skip]
const PATTERNS: &[&str] = &[
    "a", "/a", "a/", "/a/", "*.log", "!x.log", "build/", "build", "!build/", "src/*", "!src/a", "src/**", "**/b", "a/**/b",
    "/src/build", "src/build/", "*", "!*/", "!a", "?", "[ab]", "[!ab]", "# a", "\\#a", "!", "/", "", "  ", "a ", "a\\ ",
    "*.l*g", "**", "/*", "!/src", "src", "b/*", "*/a", "x.log/", "A", "[A-Z]", "\\a", "!src/**/a", "**/build/**",
];

fn pick(dice: &mut Dice, from: &[&'static str]) -> &'static str {
    from[dice.below(from.len() as u64) as usize]
}

/// A repository with files three deep, and rules at three levels.
fn made(dice: &mut Dice) -> (Ws, String) {
    let mut script = String::from("git init -q .\n");
    for _ in 0..14 {
        let depth = 1 + dice.below(3);
        let names: Vec<&str> = (0..depth).map(|_| pick(dice, NAMES)).collect();
        let (dir, path) = (names[..names.len() - 1].join("/"), names.join("/"));
        let what = if dice.below(4) == 0 { "mkdir -p" } else { "touch" };
        script.push_str(&format!("mkdir -p './{dir}' && {what} '{path}'\n"));
    }
    for file in [".gitignore", "src/.gitignore", "src/build/.gitignore", ".git/info/exclude"] {
        if dice.below(3) > 0 || file == ".gitignore" {
            let lines: Vec<&str> = (0..1 + dice.below(4)).map(|_| pick(dice, PATTERNS)).collect();
            script.push_str(&format!(
                "[ -d $(dirname {file}) ] && printf '%s\\n' '{}' > {file}\n",
                lines.join("' '")
            ));
        }
    }
    (ws(&format!("({script}) 2>/dev/null; true")), script)
}

/// Every path of the tree, and some that are not there, each with whether it is a directory.
fn paths(ws: &Ws) -> Vec<(String, bool)> {
    let found =
        ws.scratch.sh("find . -mindepth 1 -name .git -prune -o -mindepth 1 -printf '%y %P\\n'").stdout;
    let mut paths: Vec<(String, bool)> = found
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(kind, path)| (path.to_owned(), kind == "d"))
        .collect();
    for absent in ["new", "new.log", "zz/a", "zz/build/x", "src/new.log"] {
        paths.push((absent.to_owned(), false));
    }
    paths.sort();
    paths
}

/// What git calls ignored of these, the index left aside.
fn by_git(ws: &Ws, paths: &[(String, bool)]) -> BTreeSet<String> {
    let list: Vec<&str> = paths.iter().map(|(path, _)| path.as_str()).collect();
    let script = format!("printf '%s\\n' '{}' | git check-ignore --no-index --stdin", list.join("' '"));
    ws.scratch.try_sh(&script).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn covered_is_what_git_calls_ignored() {
    let mut dice = Dice::thrown();
    let mut ignored = 0;
    for round in 0..if long() { 2000 } else { 60 } {
        let (ws, script) = made(&mut dice);
        let paths = paths(&ws);
        let theirs = by_git(&ws, &paths);
        let mut ignores = ws.tree.ignores();
        for (path, is_dir) in &paths {
            let ours = ignores.covers(&root_path(path), *is_dir);
            assert_eq!(ours, theirs.contains(path), "round {round}: {path} (directory: {is_dir})\n{script}");
            ignored += usize::from(ours);
        }
        // As a whole: ignored, and nothing above it is.
        let dirs: Vec<String> =
            ws.tree.ignored_dirs(FolderId::default()).iter().map(|at| at.path.to_string()).collect();
        let above = |path: &str| path.match_indices('/').any(|(at, _)| theirs.contains(&path[..at]));
        let whole: Vec<String> = paths
            .iter()
            .filter(|(path, is_dir)| *is_dir && theirs.contains(path) && !above(path))
            .map(|(path, _)| path.clone())
            .collect();
        assert_eq!(dirs, whole, "round {round}\n{script}");
    }
    assert!(ignored > 100, "{ignored} paths were ignored at all");
}

#[test]
fn rules_are_those_of_the_moment_of_the_first_look() {
    let ws = ws("printf '*.log\\n' > .gitignore; mkdir d; touch a.log");
    let mut before = ws.tree.ignores();
    assert!(before.covers(&root_path("a.log"), false));
    ws.scratch.sh("printf 'a.txt\\n' > .gitignore");
    assert!(before.covers(&root_path("b.log"), false) && !before.covers(&root_path("a.txt"), false));
    let mut after = ws.tree.ignores();
    assert!(!after.covers(&root_path("b.log"), false) && after.covers(&root_path("a.txt"), false));
}

#[test]
fn what_lies_below_something_ignored_is_ignored_and_the_folder_itself_never() {
    let ws = ws(
        "printf '*\\n!keep\\nout/\\n' > .gitignore; mkdir -p out/keep/deep; touch out/keep/x; mkdir -p in/keep",
    );
    let mut ignores = ws.tree.ignores();
    for (path, is_dir, covered) in [
        (".", true, false),
        ("keep", false, false),
        ("out", true, true),
        ("out/keep", true, true),
        ("out/keep/x", false, true),
        ("out/keep/deep/er/still", false, true),
        ("in", true, true),
        ("in/keep", true, true),
        ("keep/x", false, true),
    ] {
        assert_eq!(ignores.covers(&root_path(path), is_dir), covered, "{path}");
    }
}

#[test]
fn a_link_is_a_name_and_leads_nowhere() {
    let ws = ws(
        "printf 'out/\\n' > .gitignore; mkdir real; ln -s real out; printf '*\\n' > $OUT/.gitignore; ln -s $OUT away",
    );
    let mut ignores = ws.tree.ignores();
    assert!(!ignores.covers(&root_path("out"), false), "a rule for directories does not fit a link");
    assert!(!ignores.covers(&root_path("away/x"), false), "the rules behind a link are not read");
    assert_eq!(ws.tree.ignored_dirs(FolderId::default()), []);
}

#[test]
fn protected_directories_are_told_apart_from_ignored_ones() {
    let ws = ws("git init -q .; printf '.venv/\\n.env\\nbuild/\\n.claude/\\nvendor/\\n' > .gitignore; \
        mkdir -p .venv/bin build/.git sub/.git .claude/x vendor/.vscode ssh; touch .env sub/.env.local build/.env .venv/bin/x ssh/id_rsa ok");
    let shown = |found: Vec<cotenant_model::WsPath>| -> Vec<String> {
        found.iter().map(|at| at.path.to_string()).collect()
    };
    let folder = FolderId::default();
    assert_eq!(shown(ws.tree.ignored_dirs(folder)), ["build", "vendor"]);
    assert_eq!(
        shown(ws.tree.protected_paths(folder)),
        [".claude", ".env", ".git", ".venv", "ssh/id_rsa", "sub/.env.local", "sub/.git"]
    );
    // Each is protected by its class, and nothing else at the top is.
    for at in ws.tree.protected_paths(folder) {
        assert_eq!(ws.tree.class_of(&at).class, cotenant_model::PathClass::Protected, "{}", at.path);
    }
}

#[test]
fn names_in_a_directory_are_all_of_it_and_of_nothing_else() {
    let ws = ws(
        "mkdir -p d/sub; touch d/a d/.hidden d/$'\\xff'; mkfifo d/pipe; ln -s /etc d/link; ln -s d way; touch file; mkdir empty",
    );
    let names = |path: &str, most: usize| {
        let mut names: Vec<Vec<u8>> =
            ws.tree.names_in(&root_path(path), most).into_iter().map(<[u8]>::into_vec).collect();
        names.sort();
        names
    };
    assert_eq!(names("d", 100), [&b".hidden"[..], b"a", b"link", b"pipe", b"sub", b"\xff"]);
    assert_eq!(names("d", 2).len(), 2);
    assert_eq!(names(".", 100), [&b"d"[..], b"empty", b"file", b"way"]);
    for nowhere in ["way", "way/sub", "d/link", "file", "absent", "empty", "d/pipe"] {
        assert_eq!(names(nowhere, 100), Vec::<Vec<u8>>::new(), "{nowhere}");
    }
    let other = cotenant_model::WsPath { folder: FolderId(7), path: cotenant_model::RelPath::root() };
    assert!(ws.tree.names_in(&other, 9).is_empty());
}

#[test]
fn a_stamp_is_between_a_write_before_and_a_write_after_and_leaves_no_name() {
    let ws = ws("touch before");
    let changed = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        let meta = ws.scratch.path(name).metadata().unwrap();
        i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec())
    };
    for _ in 0..50 {
        ws.scratch.put("before", "x");
        let stamp = ws.tree.stamp(FolderId::default()).unwrap();
        ws.scratch.put("after", "x");
        assert!(changed("before") <= stamp && stamp <= changed("after"));
    }
    let names = ws.tree.names_in(&root_path("."), 10);
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(ws.tree.stamp(FolderId(7)), None);
}

#[test]
fn a_key_tells_what_stands_there_and_changes_with_it() {
    let ws = ws("echo x > f; mkdir d; ln -s f l; ln -s d way; touch d/g .env; mkfifo p");
    let key = |path: &str| ws.tree.key(&root_path(path));
    for (path, protected, target) in [
        ("f", false, None),
        ("d", false, None),
        ("l", false, Some("f")),
        ("way", false, Some("d")),
        ("d/g", false, None),
        (".env", true, None),
        ("p", false, None),
        (".", false, None),
    ] {
        let found = key(path).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(found.protected, protected, "{path}");
        assert_eq!(found.target.as_deref(), target.map(str::as_bytes), "{path}");
        assert_eq!(key(path), Some(found), "{path} has the same key again");
    }
    for nothing in ["absent", "way/g", "f/x", "l/x", "absent/x"] {
        assert_eq!(key(nothing), None, "{nothing}");
    }
    for (path, script) in [
        ("f", "echo y > f"),
        ("f", "chmod 600 f"),
        ("f", "touch -d 2001-01-01 f"),
        ("f", "rm f; echo y > f"),
        ("f", "ln f twin"),
        ("l", "ln -sfn d l"),
        ("d", "touch d/new"),
        ("d/g", "rm d/g; mkdir d/g"),
    ] {
        let before = key(path).unwrap();
        ws.scratch.sh(script);
        assert_ne!(key(path), Some(before), "{script}");
    }
}
