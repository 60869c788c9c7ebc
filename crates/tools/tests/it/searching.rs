//! `search_files` and `list_directory`: totals, pages, hints, and names that could deceive.

use std::collections::BTreeSet;

use cotenant_model::{Profile, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact};

fn found(f: &Fixture, pattern: &str, more: Value) -> String {
    let mut args = json!({"pattern": pattern, "content_search": true});
    args.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    f.ok("search_files", args)
}

fn tree() -> Fixture {
    let f = Fixture::new();
    f.put("src/a.rs", "fn one() {}\nfn two() {}\nlet x = one();\n");
    f.put("src/b.rs", "use a::one;\nONE\n");
    f.put("docs/one.md", "# one\n");
    f.put(".hidden/c.txt", "one\n");
    f.put("bin.dat", b"one\0\n");
    f.put(".env", "one=secret\n");
    f.put("target/out.rs", "one\n");
    f.put(".gitignore", "target/\n");
    f
}

#[test]
fn matches_are_grouped_by_path_with_exact_totals() {
    let f = tree();
    let hits = found(&f, "one", json!({"context_lines": 0}));
    assert_eq!(fact(&hits, "matches").as_deref(), Some("5"), "{hits}");
    assert_eq!(fact(&hits, "files").as_deref(), Some("4"), "{hits}");
    let skipped = fact(&hits, "skipped").unwrap();
    assert!(skipped.contains("binary:1") && skipped.contains("ignored:"), "{skipped}");
    assert!(body(&hits).contains("src/a.rs\n1:fn one() {}\n3:let x = one();"), "{hits}");
    assert!(!hits.contains("secret") && !hits.contains("target/out.rs"), "{hits}");
}

#[test]
fn each_output_mode_counts_in_its_own_unit() {
    let f = tree();
    let files = found(&f, "one", json!({"output": "files"}));
    assert_eq!(body(&files), ".hidden/c.txt\ndocs/one.md\nsrc/a.rs\nsrc/b.rs");
    let count = found(&f, "one", json!({"output": "count", "path": "src"}));
    assert_eq!(body(&count), "src/a.rs: 2\nsrc/b.rs: 1");
    let page = found(&f, "one", json!({"output": "files", "limit": 3}));
    assert_eq!(fact(&page, "next_offset").as_deref(), Some("3"));
    let rest = found(&f, "one", json!({"output_mode": "files_with_matches", "offset": 3}));
    assert_eq!((body(&rest).as_str(), fact(&rest, "next_offset")), ("src/b.rs", None));
}

#[test]
fn what_narrows_and_what_widens() {
    let f = tree();
    for (more, matches) in [
        (json!({"glob": "*.rs"}), "3"),
        (json!({"glob": "*.{md,txt}"}), "2"),
        (json!({"type": "md"}), "1"),
        (json!({"path": "src/b.rs"}), "1"),
        (json!({"path": "docs"}), "1"),
        (json!({"ignore_case": true}), "6"),
        (json!({"-i": true}), "6"),
        (json!({"include_ignored": true}), "6"),
        (json!({"path": "target"}), "1"),
        (json!({"path": "target/out.rs"}), "1"),
    ] {
        assert_eq!(fact(&found(&f, "one", more.clone()), "matches").as_deref(), Some(matches), "{more}");
    }
    let across = found(&f, r"\{\}\nfn", json!({"multiline": true}));
    assert!(
        body(&across).starts_with("src/a.rs\n1:fn one() {}\n2:fn two() {}\n3-"),
        "both of its lines: {across}"
    );
    let literal = found(&f, "one()", json!({"regex": false, "context_lines": 0}));
    assert_eq!(fact(&literal, "matches").as_deref(), Some("2"), "{literal}");
}

#[test]
fn context_is_generous_where_there_is_little_and_none_where_there_is_much() {
    let f = Fixture::new();
    for (name, count, context) in
        [("few", 1, 3), ("ten", 10, 3), ("some", 11, 1), ("more", 25, 1), ("many", 26, 0)]
    {
        let text: String = (0..count).map(|_| "hit\n-\n-\n-\n-\n-\n-\n-\n".to_owned()).collect();
        f.put(name, text);
        let hits = found(&f, "hit", json!({"path": name}));
        let after =
            body(&hits).lines().skip(2).take_while(|line| line.contains('-') && *line != "--").count();
        assert_eq!(after, context, "{name}: {hits}");
    }
    let capped = found(&f, "hit", json!({"path": "few", "context_lines": 99}));
    assert_eq!(body(&capped).lines().count(), 9, "no more than the file has: {capped}");
    f.put("long", format!("{}hit\n{}", "a\n".repeat(30), "b\n".repeat(30)));
    let ten = found(&f, "hit", json!({"path": "long", "-C": 99}));
    assert_eq!(body(&ten).lines().count(), 1 + 10 + 1 + 10, "{ten}");
    let grouped = found(&f, "hit", json!({"path": "ten", "context_lines": 1}));
    assert!(body(&grouped).contains("1:hit\n2--\n--\n8--\n9:hit"), "runs are set apart: {grouped}");
}

#[test]
fn nothing_found_says_what_another_mode_would_find() {
    let f = tree();
    for (pattern, more, hints) in [
        ("let x = one\\(\\)\\.", json!({}), vec!["0 file names match"]),
        ("TWO", json!({}), vec!["ignore_case=true finds 1 in 1 files", "0 file names match"]),
        ("one(", json!({"regex": false, "glob": "*.md"}), vec!["without glob 2 in 1 files"]),
        ("b.rs", json!({}), vec!["1 file names match", "include_ignored=true"]),
    ] {
        let none = found(&f, pattern, more);
        assert_eq!(fact(&none, "matches").as_deref(), Some("0"), "{none}");
        let hint = body(&none);
        assert!(hint.starts_with("hint: "), "{none}");
        assert!(fact(&none, "files_searched").is_some(), "{none}");
        hints.iter().for_each(|part| assert!(hint.contains(part), "{part} in {none}"));
    }
    let names = f.ok("search_files", json!({"pattern": "two()", "content_search": false}));
    assert_eq!(body(&names), "hint: content_search=true finds 1 in 1 files");
    let neither = f.ok("search_files", json!({"pattern": "zzz", "content_search": false}));
    assert!(body(&neither).contains("no file has it"), "{neither}");
}

#[test]
fn names_are_found_by_part_or_glob() {
    let f = tree();
    for (pattern, names) in
        [("one", "docs/one.md"), ("*.rs", "src/a.rs\nsrc/b.rs"), ("src/*.rs", "src/a.rs\nsrc/b.rs")]
    {
        let hits = f.ok("search_files", json!({"pattern": pattern, "content_search": false}));
        assert_eq!(body(&hits), names, "{pattern}: {hits}");
    }
    let content_only =
        f.ok("search_files", json!({"pattern": "*.rs", "content_search": false, "output": "files"}));
    assert_eq!(fact(&content_only, "ignored").as_deref(), Some("output"), "what has no effect is named");
    let undecided = f.ok("search_files", json!({"pattern": "one", "-i": true}));
    assert!(body(&undecided).contains("1:# one"), "an argument of the content search decides: {undecided}");
}

#[test]
fn what_begins_with_a_dash_is_no_option() {
    let f = Fixture::new();
    f.put("--help", "-v --version\n");
    f.put("-dir/-f", "-rf\n");
    let hits = found(&f, "-v", json!({}));
    assert!(body(&hits).contains("--help\n1:-v --version"), "{hits}");
    assert!(body(&found(&f, "-rf", json!({"path": "-dir"}))).contains("-dir/-f\n1:-rf"));
    assert_eq!(fact(&found(&f, "-", json!({"glob": "-*"})), "files").as_deref(), Some("2"));
    assert_eq!(body(&f.ok("list_directory", json!({"path": "-dir"}))), "-f");
}

#[test]
fn a_pattern_that_is_none_is_refused_with_one_that_works() {
    let f = tree();
    let broken = f.no("PATTERN_INVALID", "search_files", json!({"pattern": "one(", "content_search": true}));
    assert!(f.follow(&broken).text.contains("matches=2"), "taken literally: {broken}");
    let huge = f.no(
        "PATTERN_TOO_LARGE",
        "search_files",
        json!({"pattern": "(\\w{500}){500}", "content_search": true}),
    );
    assert!(!f.follow(&huge).is_error, "{huge}");
    for odd in ["", "a\0b", "[[:alpha:]", "(?P<n>", "\\"] {
        let answer = f.call("search_files", json!({"pattern": odd, "content_search": true}));
        assert!(answer.text.len() < 4000, "{odd}");
    }
    f.call("search_files", json!({"pattern": "x".repeat(100_000), "content_search": true, "regex": false}));
    let long = f
        .call("search_files", json!({"pattern": format!("({}", "x".repeat(50_000)), "content_search": true}));
    assert!(long.is_error && long.text.len() <= 1200, "{} bytes", long.text.len());
}

#[test]
fn lines_shown_by_a_search_may_be_edited_and_others_are_unseen() {
    let f = Fixture::new();
    let text: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    f.put("s", text);
    found(&f, "line 20", json!({"context_lines": 2}));
    let seen = f.ok("edit_file", json!({"path": "s", "old_text": "line 22", "new_text": "LINE 22"}));
    assert_eq!(fact(&seen, "unseen"), None, "{seen}");
    let unseen = f.ok("edit_file", json!({"path": "s", "old_text": "line 40", "new_text": "LINE 40"}));
    assert_eq!(fact(&unseen, "unseen").as_deref(), Some("yes"), "{unseen}");
    // A count shows no line and is no look.
    f.put("t", "line 1\n");
    found(&f, "line", json!({"output": "count"}));
    f.no(
        "EDIT_REQUIRES_PRIOR_READ",
        "edit_file",
        json!({"path": "t", "old_text": "line 1", "new_text": "x"}),
    );
}

#[test]
fn a_hit_that_is_cut_was_not_seen_whole() {
    let f = Fixture::new();
    f.put("wide", format!("{}needle{}\n", "a".repeat(9000), "b".repeat(9000)));
    let hits = found(&f, "needle", json!({}));
    assert_eq!(fact(&hits, "clipped_lines").as_deref(), Some("1"), "{hits}");
    assert!(body(&hits).contains("needle") && hits.len() < 8000);
    f.no(
        "EDIT_REQUIRES_PRIOR_READ",
        "write_file",
        json!({"path": "wide", "content": "x", "overwrite": true}),
    );
}

#[test]
fn names_that_could_fake_or_reorder_lines_stand_quoted() {
    let f = Fixture::new();
    let names = [
        "two\nlines",
        "\u{202e}gpj.exe",
        "zero\u{200b}width",
        "soft\u{ad}hyphen",
        "bom\u{feff}",
        "\u{1b}[2K",
        "\"q\"",
    ];
    for name in names {
        f.put(name, "needle\n");
    }
    f.put("plain name", "needle\n");
    let quoted = |name: &str| cotenant_model::FactValue::from(name).to_string();
    let listing = f.ok("list_directory", json!({}));
    let searched = found(&f, "needle", json!({"output": "files"}));
    let named = f.ok("search_files", json!({"pattern": "*", "content_search": false}));
    for text in [&listing, &searched, &named] {
        let lines: BTreeSet<String> = body(text).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), names.len() + 1, "{text}");
        names.iter().for_each(|name| assert!(lines.contains(&quoted(name)), "{name:?} in {text}"));
        assert!(lines.contains("plain name"), "{text}");
    }
    // A quoted name is JSON: read back, it is the name to call with.
    for line in body(&listing).lines().filter(|line| line.starts_with('"')) {
        let name: String = serde_json::from_str(line).unwrap();
        assert!(f.ok("read_file", json!({"path": name})).ends_with("1|needle"));
    }
}

#[test]
fn a_listing_is_sorted_and_says_what_it_left_out() {
    let f = tree();
    let top = f.ok("list_directory", json!({}));
    assert_eq!(body(&top), ".gitignore\n.hidden/\nbin.dat\ndocs/\nsrc/", "{top}");
    assert_eq!(fact(&top, "total").as_deref(), Some("5"));
    let omitted = fact(&top, "omitted").unwrap();
    assert!(omitted.contains("ignored:1") && omitted.contains("protected:1"), "{omitted}");
    let deep = f.ok("list_directory", json!({"depth": 2}));
    assert!(body(&deep).contains("src/\nsrc/a.rs\nsrc/b.rs"), "{deep}");
    assert_eq!(body(&f.ok("list_directory", json!({"recursive": true}))), body(&deep));
    assert_eq!(body(&f.ok("list_directory", json!({"path": "src"}))), "a.rs\nb.rs");
    let all = f.ok("list_directory", json!({"include_ignored": true}));
    assert!(body(&all).contains("target/") && !body(&all).contains(".env"), "{all}");
    let cut = f.ok("list_directory", json!({"limit": 2}));
    assert_eq!(
        (fact(&cut, "entries").as_deref(), fact(&cut, "truncated").as_deref()),
        (Some("2"), Some("3"))
    );
    let none = f.ok("create_path", json!({"path": "empty/"}));
    assert!(none.contains("created=yes"), "{none}");
    let empty = f.ok("list_directory", json!({"path": "empty"}));
    assert_eq!((fact(&empty, "total").as_deref(), body(&empty).as_str()), (Some("0"), ""));
    f.no("NOT_A_DIRECTORY", "list_directory", json!({"path": "src/a.rs"}));
    f.no("NOT_FOUND", "list_directory", json!({"path": "srk"}));
}

#[test]
fn the_settings_limits_are_the_defaults_of_a_page() {
    let mut settings = Settings { profile: Profile::Trusting, ..Settings::default() };
    (settings.limits.names, settings.limits.matches, settings.limits.list) = (2, 3, 4);
    let f = Fixture::with(settings);
    for n in 0..6 {
        f.put(&format!("n{n}"), "hit\nhit\n");
    }
    let names = f.ok("search_files", json!({"pattern": "n", "content_search": false}));
    assert_eq!((body(&names).lines().count(), fact(&names, "matches").as_deref()), (2, Some("6")));
    assert_eq!(fact(&found(&f, "hit", json!({})), "shown").as_deref(), Some("3"));
    assert_eq!(fact(&f.ok("list_directory", json!({})), "entries").as_deref(), Some("4"));
    assert_eq!(fact(&f.ok("list_directory", json!({"limit": 0})), "entries").as_deref(), Some("1"));
}

#[test]
fn files_are_searched_in_the_text_that_they_hold() {
    let f = Fixture::new();
    f.put(".editorconfig", "root = true\n[*.latin]\ncharset = latin1\n");
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("eins\r\ncafé zwei\r\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    f.put("wide", wide);
    f.put("dos", "eins\r\ncafé zwei\r\n");
    f.put("marked", "\u{feff}café zwei\n");
    f.put("plain", "eins\ncafé zwei");
    for (pattern, files) in [
        ("café zwei", vec!["dos", "marked", "plain", "wide"]),
        ("zwei$", vec!["dos", "marked", "plain", "wide"]),
        ("^café", vec!["dos", "marked", "plain", "wide"]),
        ("eins", vec!["dos", "plain", "wide"]),
    ] {
        let hits = found(&f, pattern, json!({"output": "files"}));
        assert_eq!(body(&hits).lines().collect::<Vec<_>>(), files, "{pattern}: {hits}");
    }
    for (name, line) in [("dos", 2), ("marked", 1), ("plain", 2), ("wide", 2)] {
        let hit = found(&f, "zwei", json!({"path": name, "context_lines": 0}));
        assert_eq!(body(&hit), format!("{name}\n{line}:café zwei"), "the line as read_file shows it");
        // What a search showed may be edited, in every form.
        f.ok("edit_file", json!({"path": name, "old_text": "café zwei", "new_text": "thé drei"}));
        let read = f.ok("read_file", json!({"path": name, "start": line, "limit": 1}));
        assert_eq!(body(&read), format!("{line}|thé drei"));
    }
}

#[test]
fn a_name_that_is_no_text_is_listed_and_harms_nobody() {
    use std::os::unix::ffi::OsStrExt;
    let f = Fixture::new();
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(f.path("").join(odd), "needle\n").unwrap();
    f.put("plain.txt", "needle\n");
    let listing = f.ok("list_directory", json!({}));
    assert_eq!(body(&listing), "caf\\xE9.txt\nplain.txt");
    let hits = found(&f, "needle", json!({"output": "count"}));
    assert_eq!(fact(&hits, "files").as_deref(), Some("2"), "{hits}");
    let named = f.ok("search_files", json!({"pattern": "*.txt", "content_search": false}));
    assert_eq!(fact(&named, "matches").as_deref(), Some("2"), "{named}");
}

#[test]
fn temporary_files_and_what_is_protected_are_in_no_answer() {
    let f = Fixture::new();
    f.put(".cotenant-0123456789abcdef", "needle\n");
    f.put("d/.cotenant-fedcba9876543210", "needle\n");
    f.put("d/.cotenant-notes", "needle\n");
    f.put("d/id_rsa", "needle\n");
    f.put(".git/config", "needle\n");
    for args in [json!({}), json!({"include_ignored": true})] {
        let mut listing = args.clone();
        listing["recursive"] = true.into();
        let listed = body(&f.ok("list_directory", listing));
        let searched = body(&found(&f, "needle", args.clone()));
        let mut by_name = args.clone();
        by_name["pattern"] = "*".into();
        by_name["content_search"] = false.into();
        let named = body(&f.ok("search_files", by_name));
        for text in [&listed, &searched, &named] {
            assert!(text.contains(".cotenant-notes"), "an ordinary name that only resembles: {text}");
            for hidden in ["0123456789abcdef", "fedcba9876543210", "id_rsa", ".git/"] {
                assert!(!text.contains(hidden), "{hidden} in {text}");
            }
        }
    }
    f.no(
        "PATH_PROTECTED",
        "search_files",
        json!({"pattern": "needle", "content_search": true, "path": ".git"}),
    );
    f.no("PATH_PROTECTED", "list_directory", json!({"path": ".git"}));
}

/// All hits over the pages of a search, in the order they came.
fn pages(f: &Fixture, args: &Value, unit: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut all = Vec::new();
    let mut offset = 0;
    loop {
        let mut call = args.clone();
        call["offset"] = offset.into();
        let page = f.ok("search_files", call);
        let units = unit(&body(&page));
        assert!(!units.is_empty(), "a page that gets nowhere: {page}");
        all.extend(units);
        match fact(&page, "next_offset") {
            Some(next) => {
                offset = next.parse::<usize>().unwrap();
                assert_eq!(offset, all.len(), "{page}");
            }
            None => return all,
        }
    }
}

/// `path:line` of each match on a page.
fn places(body: &str) -> Vec<String> {
    let mut path = String::new();
    let mut all = Vec::new();
    for line in body.lines() {
        match line.split_once(':') {
            Some((number, _)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                all.push(format!("{path}:{number}"))
            }
            _ if line.starts_with('f') => path = line.to_owned(),
            _ => {}
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_overlap_nowhere_and_miss_nothing(
        files in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 1..12), 1..8),
        limit in 1usize..7,
        context in 0usize..3,
        bytes in 256usize..2000,
    ) {
        let f = Fixture::new();
        let mut wanted = Vec::new();
        for (n, lines) in files.iter().enumerate() {
            let text: String = lines.iter().map(|hit| if *hit { "needle\n" } else { "hay\n" }).collect();
            f.put(&format!("f{n}"), text);
            wanted.extend(lines.iter().enumerate().filter(|(_, hit)| **hit).map(|(line, _)| format!("f{n}:{}", line + 1)));
        }
        prop_assume!(!wanted.is_empty());
        let args = json!({"pattern": "needle", "content_search": true, "limit": limit, "context_lines": context, "max_bytes": bytes});
        prop_assert_eq!(pages(&f, &args, places), wanted.clone());
        let with_hits: BTreeSet<&str> = wanted.iter().filter_map(|place| place.split(':').next()).collect();
        let by_file = json!({"pattern": "needle", "content_search": true, "output": "files", "limit": limit});
        let whole_lines = |body: &str| body.lines().map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(pages(&f, &by_file, whole_lines), with_hits.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let by_name = json!({"pattern": "f", "content_search": false, "limit": limit});
        prop_assert_eq!(pages(&f, &by_name, whole_lines).len(), files.len());
    }
}
