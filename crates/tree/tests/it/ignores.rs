//! Ignore files, against git itself.

use cotenant_tree::ContentQuery;

use crate::fixture::{count, files, query, shown, ws};

#[test]
fn c067_what_is_ignored_is_counted_and_found_when_named() {
    let ws = ws("git init -q .; printf 'scripts/*\\n*.log\\n.env\\n' > .gitignore; mkdir scripts; \
                 printf 'MARK7\\n' | tee scripts/w.py app.log .env kept.txt >/dev/null");
    let all = ws.grep(".", "MARK7");
    assert_eq!(files(&all), ["kept.txt"]);
    assert_eq!(
        (count(&all.skipped, "ignored"), count(&all.skipped, "protected")),
        (2, 2),
        "{:?}",
        all.skipped
    );
    assert_eq!(files(&ws.grep("scripts/", "MARK7")), ["scripts/w.py"]);
    assert_eq!(files(&ws.grep("scripts/w.py", "MARK7")), ["scripts/w.py"]);
    let included = ws.grep_with(".", &ContentQuery { include_ignored: true, ..query("MARK7") });
    assert_eq!(files(&included), ["app.log", "kept.txt", "scripts/w.py"]);
    assert_eq!(count(&included.skipped, "protected"), 2);
}

#[test]
fn c071_ignore_files_count_without_a_repository_and_nul_bytes_are_told() {
    let ws = ws(
        "printf 'k=\"a\\000b\"\\nfindme\\n' > n.py; mkdir sub; printf '*.txt\\n' > sub/.gitignore; printf 'findme\\n' > sub/t.txt",
    );
    let hits = ws.grep(".", "findme");
    assert_eq!(
        (hits.total_matches, count(&hits.skipped, "ignored"), count(&hits.skipped, "binary")),
        (0, 1, 1)
    );
    assert_eq!(hits.binary.len(), 1);
    assert_eq!((hits.binary[0].0.path.to_string().as_str(), hits.binary[0].1), ("n.py", 15));
}

#[test]
fn c080_negated_rules_hold_from_wherever_the_search_starts() {
    let ws =
        ws("git init -q .; printf 'build/\\n!/pkg/x/build/\\n' > .gitignore; mkdir -p pkg/x/build build; \
                 printf 'string5\\n' | tee pkg/x/build/foo build/foo >/dev/null");
    for start in [".", "pkg", "pkg/x", "pkg/x/build"] {
        assert_eq!(files(&ws.grep(start, "string5")), ["pkg/x/build/foo"], "{start}");
    }
    assert_eq!(files(&ws.grep("build", "string5")), ["build/foo"], "named, though ignored");
    let said = ws.scratch.try_sh("git check-ignore pkg/x/build/foo build/foo");
    assert_eq!(said.stdout, "build/foo\n");
}

#[test]
fn rules_above_hold_in_a_named_directory_that_is_not_all_ignored() {
    let ws = ws(
        "mkdir -p src/logs; printf '*.log\\n' > .gitignore; echo x > src/a; echo x > src/b.log; echo x > src/logs/c.log",
    );
    assert_eq!(files(&ws.grep("src", "x")), ["src/a"]);
    assert_eq!(files(&ws.grep("src/logs", "x")), ["src/logs/c.log"], "nothing else is in it");
    assert_eq!(shown(&ws.list("src", Some(1))), ["src/a", "src/logs/"]);
    assert_eq!(shown(&ws.list("src/logs", Some(1))), ["src/logs/c.log"]);
}

#[test]
fn a_nested_repository_has_its_own_rules() {
    let ws = ws("git init -q .; printf '*.gen\\n' > .gitignore; git init -q nested; mkdir -p plain; \
                 touch nested/a.gen plain/a.gen; printf 'plain/own\\n' > .ignore; touch nested/x plain/own");
    assert_eq!(
        shown(&ws.list(".", None)),
        [".gitignore", ".ignore", "nested/", "nested/a.gen", "nested/x", "plain/"]
    );
}

#[test]
fn precedence_is_that_of_ripgrep() {
    let ws = ws(
        "git init -q .; mkdir -p .git/info d; printf 'excluded\\n' >> .git/info/exclude; printf 'a\\nb\\n' > .gitignore; \
                 printf '!a\\n' > .ignore; printf '!b\\nc\\n' > d/.gitignore; touch a b c excluded d/a d/b d/c d/excluded",
    );
    assert_eq!(
        shown(&ws.list(".", None)),
        [".gitignore", ".ignore", "a", "c", "d/", "d/.gitignore", "d/a", "d/b"]
    );
}

#[test]
fn an_ignore_file_that_is_a_link_out_or_a_fifo_is_not_read() {
    let ws = ws("echo '*' > $OUT/all; ln -s ../out/all .gitignore; mkdir d; mkfifo d/.ignore; touch a d/b");
    assert_eq!(shown(&ws.list(".", None)), [".gitignore@", "a", "d/", "d/.ignore?", "d/b"]);
}

#[test]
fn hostile_ignore_files_do_no_harm() {
    let ws = ws(
        "printf '\\xef\\xbb\\xbf*.log\\r\\n[\\n\\\\\\n**/**/**\\377\\n!\\n/\\n# c\\n   \\n' > .gitignore; touch a.log b; \
                 mkdir big; head -c 3000000 /dev/zero | tr '\\0' '*' > big/.gitignore; touch big/f",
    );
    let listing = ws.list(".", None);
    assert_eq!(shown(&listing), [".gitignore", "b", "big/", "big/.gitignore", "big/f"]);
}

/// A tree of random rules and names is listed as git lists it.
#[test]
fn what_is_ignored_is_what_git_ignores() {
    let ws = ws("git init -q .");
    let mut dice = cotenant_testkit::Dice::thrown();
    let names = ["a", "b", "aa", "x.log", "y.txt", "build", "Build", ".h"];
    let rules = [
        "a",
        "/a",
        "a/",
        "a/b",
        "**/b",
        "a/**",
        "*.log",
        "!x.log",
        "build/",
        "!build",
        "/build/x.log",
        "[ab]",
        "?a",
        "\\#x",
        "*",
        "!*/",
        "!*.txt",
        "b/**/a",
        "/*",
        "!/a",
        "a/*",
        "!a/b",
    ];
    for round in 0..40 {
        ws.scratch.sh("find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +");
        let pick = |dice: &mut cotenant_testkit::Dice, from: &[&str]| {
            from[usize::try_from(dice.below(from.len() as u64)).unwrap()].to_owned()
        };
        for _ in 0..30 {
            let depth = 1 + dice.below(3);
            let path: Vec<String> = (0..depth).map(|_| pick(&mut dice, &names)).collect();
            let path = ws.scratch.path(&path.join("/"));
            let _ = std::fs::create_dir_all(path.parent().unwrap());
            let _ = std::fs::write(path, "");
        }
        for dir in ["", "a", "build"] {
            if ws.scratch.path(dir).is_dir() && (dir.is_empty() || dice.below(2) == 0) {
                let lines: Vec<String> = (0..1 + dice.below(4)).map(|_| pick(&mut dice, &rules)).collect();
                std::fs::write(ws.scratch.path(dir).join(".gitignore"), lines.join("\n")).unwrap();
            }
        }
        let mut git: Vec<String> = ws
            .scratch
            .sh("git ls-files --others --exclude-standard")
            .stdout
            .lines()
            .map(str::to_owned)
            .collect();
        git.sort();
        let ours: Vec<String> =
            shown(&ws.list(".", None)).into_iter().filter(|path| !path.ends_with('/')).collect();
        assert_eq!(
            ours,
            git,
            "round {round}:\n{}",
            ws.scratch.sh("grep -r . --include=.gitignore || true").stdout
        );
    }
}

#[test]
fn each_path_is_asked_about_as_git_would_say_and_ignored_directories_are_named_as_a_whole() {
    let ws = ws(
        "git init -q .; printf 'target/\\n*.log\\n!keep.log\\n/only-top\\n' > .gitignore; mkdir -p a/target/x only-top a/only-top; \
                 printf 'gen\\n' > a/.gitignore; mkdir a/gen; touch a/target/x/f a/gen/g a/b.log a/keep.log; mkdir .venv; printf '.venv\\n' >> .gitignore",
    );
    let mut ignores = ws.tree.ignores();
    for (path, is_dir) in [
        ("a/target", true),
        ("a/target/x/f", false),
        ("a/target/new/deep", false),
        ("a/gen/g", false),
        ("a/gen", true),
        ("a/b.log", false),
        ("a/keep.log", false),
        ("only-top", true),
        ("a/only-top", true),
        ("a", true),
        ("absent.log", false),
        ("absent/target", false),
    ] {
        let slash = if is_dir && !path.starts_with("absent") { "/" } else { "" };
        let git = ws.scratch.try_sh(&format!("git check-ignore -q {path}{slash}")).code == 0;
        let at = cotenant_model::WsPath::root(cotenant_model::RelPath::parse(path).unwrap());
        assert_eq!(ignores.covers(&at, is_dir), git, "{path}");
    }
    let dirs: Vec<String> =
        ws.tree.ignored_dirs(cotenant_model::FolderId::ROOT).iter().map(|at| at.path.to_string()).collect();
    assert_eq!(dirs, ["a/gen", "a/target", "only-top"], "protected ones are not among them");
}
