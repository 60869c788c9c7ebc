//! Finding files by name.

use cotenant_tree::{NameQuery, SearchError};

use crate::fixture::{count, texts, ws};

#[test]
fn globs_with_and_without_slash() {
    let ws = ws(
        "mkdir -p .github/x src/sub docs; touch .github/b .github/x/c src/a.ts src/sub/b.tsx src/c.js docs/a.ts top.ts",
    );
    for (pattern, found) in [
        (".github/*", vec![".github/b"]),
        ("*.{ts,tsx}", vec!["docs/a.ts", "src/a.ts", "src/sub/b.tsx", "top.ts"]),
        ("**/a.ts", vec!["docs/a.ts", "src/a.ts"]),
        ("src/*", vec!["src/a.ts", "src/c.js"]),
        ("src/**", vec!["src/a.ts", "src/c.js", "src/sub/b.tsx"]),
        ("src/**/*.tsx", vec!["src/sub/b.tsx"]),
        ("src/*/", vec!["src/sub/b.tsx"]),
        ("./src/?.js", vec!["src/c.js"]),
        ("[tc].*", vec!["src/c.js"]),
        ("a.ts", vec!["docs/a.ts", "src/a.ts"]),
        ("src/sub", vec!["src/sub/b.tsx"]),
        ("nothing*", vec![]),
    ] {
        assert_eq!(texts(&ws.names(pattern).paths), found, "{pattern}");
    }
    assert_eq!(texts(&ws.names_in("src", "sub/*").paths), ["src/sub/b.tsx"], "below the searched directory");
    assert_eq!(texts(&ws.names_in("src", "src/*").paths), ["src/a.ts", "src/c.js"], "or below the root");
    assert_eq!(texts(&ws.names_in("src/a.ts", "*.ts").paths), ["src/a.ts"]);
}

#[test]
fn part_of_a_name_in_lower_case_fits_any_case() {
    let ws = ws("touch README.md Readme.txt readme x; mkdir readmes; touch readmes/y");
    assert_eq!(texts(&ws.names("readme").paths), ["README.md", "Readme.txt", "readme"]);
    assert_eq!(texts(&ws.names("Readme").paths), ["Readme.txt"]);
    assert_eq!(texts(&ws.names("readmes/").paths), ["readmes/y"]);
}

#[test]
fn c068_hidden_names_are_found() {
    let ws = ws("mkdir -p .config/app .github; printf 'needle9\\n' | tee .config/app/a .github/b >/dev/null");
    assert_eq!(texts(&ws.names(".github/*").paths), [".github/b"]);
    assert_eq!(ws.grep(".config/app", "needle9").total_files, 1);
    assert_eq!(ws.grep(".", "needle9").total_files, 2);
}

#[test]
fn c070_a_glob_does_not_switch_ignore_rules_off() {
    let ws = ws(
        "git init -q .; printf '*.log\\nnode_modules/\\n' > .gitignore; mkdir node_modules; printf x > node_modules/i.js; \
                 printf x > a.log; printf x > b.js",
    );
    assert_eq!(texts(&ws.names("**/*").paths), [".gitignore", "b.js"]);
    for (glob, files) in [("*.js", 1), ("*", 1), ("!*.js", 0)] {
        let query = cotenant_tree::ContentQuery { glob: Some(glob.into()), ..crate::fixture::query("x") };
        assert_eq!(ws.grep_with(".", &query).total_files, files, "{glob}");
    }
}

#[test]
fn c022_two_unicode_spellings_of_a_name_are_one() {
    let ws =
        ws("printf 'k\\n' > \"$(printf 'a\\xcc\\x88.txt')\"; printf 'k\\n' > \"$(printf '\\xc3\\xa9.txt')\"");
    for pattern in ["*ä*", "*a\u{308}*", "ä", "a\u{308}.t"] {
        assert_eq!(texts(&ws.names(pattern).paths), ["a\u{308}.txt"], "{pattern}");
    }
    assert_eq!(texts(&ws.names("e\u{301}.txt").paths), ["é.txt"]);
    assert_eq!(ws.names("*").total, 2);
    assert!(ws.at("ä.txt").is_absent(), "what is asked for is what is looked up");
    let near = texts(&ws.tree.near(&ws.at("ä.txt").real));
    assert_eq!(
        near.first().map(String::as_str),
        Some("a\u{308}.txt"),
        "and the other spelling is offered first"
    );
}

#[test]
fn pages_do_not_overlap_and_totals_are_exact() {
    let ws = ws("for i in $(seq 10 69); do touch f$i; done; ln -s f10 l; mkfifo p");
    let page = |offset| {
        let query = NameQuery { pattern: "f*".into(), limit: 25, offset, include_ignored: false };
        ws.tree.search_names(&ws.at("."), &query).unwrap()
    };
    let pages: Vec<_> = [0, 25, 50, 75].map(page).into();
    assert!(pages.iter().all(|page| page.total == 60));
    let all: Vec<String> = pages.iter().flat_map(|page| texts(&page.paths)).collect();
    assert_eq!(all, (10..70).map(|number| format!("f{number}")).collect::<Vec<_>>());
    assert_eq!((count(&pages[0].skipped, "links"), count(&pages[0].skipped, "other")), (1, 1));
}

#[test]
fn a_glob_that_does_not_parse_is_said_to() {
    let ws = ws("true");
    let query = NameQuery { pattern: "a[".into(), limit: 1, offset: 0, include_ignored: false };
    let error = ws.tree.search_names(&ws.at("."), &query).unwrap_err();
    assert!(matches!(error, SearchError::PatternInvalid { .. }), "{error}");
    assert!(ws.tree.search_names(&ws.at("gone"), &query).is_err());
}
