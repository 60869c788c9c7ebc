//! Searching in files.

use std::time::{Duration, Instant};

use cotenant_model::{Code, Digest};
use cotenant_tree::{ContentQuery, Output, SearchError};

use crate::fixture::{count, files, lines, query, ws};

#[test]
fn matches_are_grouped_by_path_with_numbers_and_context() {
    let ws = ws("seq 1 20 > b.txt; printf 'x\\n5\\ny' > a.txt");
    assert_eq!(
        lines(&ws.grep(".", "^5$|^9$")),
        [
            "a.txt-1-x",
            "a.txt:2:5",
            "a.txt-3-y",
            "b.txt-2-2",
            "b.txt-3-3",
            "b.txt-4-4",
            "b.txt:5:5",
            "b.txt-6-6",
            "b.txt-7-7",
            "b.txt-8-8",
            "b.txt:9:9",
            "b.txt-10-10",
            "b.txt-11-11",
            "b.txt-12-12"
        ]
    );
    let hits = ws.grep(".", "5");
    assert_eq!(
        (hits.total_matches, hits.total_files, hits.searched, hits.exact, hits.more),
        (3, 2, 2, true, false)
    );
    assert_eq!(hits.files[0].digest, Some(Digest::of(b"x\n5\ny")));
    assert_eq!(hits.files[1].matches, 2);
}

#[test]
fn context_shrinks_with_the_number_of_matches_and_is_what_is_asked_for() {
    let ws = ws("for i in $(seq 1 30); do printf 'a\\nb\\nc\\nhit\\nd\\ne\\nf\\n'; done > f");
    let context = |pattern: &str, context_lines, limit| {
        let hits = ws.grep_with(".", &ContentQuery { context_lines, limit, ..query(pattern) });
        hits.files[0].lines.iter().filter(|line| !line.is_match).count()
    };
    assert_eq!(context("hit", None, 5), 0, "30 matches in all, whatever is shown");
    assert_eq!(context("hit", Some(2), 2), 8);
    assert_eq!(context("hit", Some(99), 1), 3 + 10, "at most 10");
    ws.scratch.sh("head -n 140 f > g; mv g f");
    assert_eq!(context("hit", None, 50), 40, "20 matches");
    ws.scratch.sh("head -n 70 f > g; mv g f");
    assert_eq!(context("hit", None, 50), 60, "10 matches");
}

#[test]
fn c074_a_long_line_is_clipped_around_the_match_and_marked() {
    let ws = ws(
        "python3 -c \"print('var a=1;'*80000+'STATSX'+';b=2'*80000)\" > v.min.js; printf 'STATSX here\\n' > s.js",
    );
    let hits = ws.grep(".", "STATSX");
    assert_eq!(files(&hits), ["s.js", "v.min.js"]);
    let line = &hits.files[1].lines[0];
    assert_eq!((line.len, hits.clipped_lines, hits.more), (8 * 80_000 + 6 + 4 * 80_000, 1, false));
    assert!(line.text.len() < 1000 && String::from_utf8_lossy(&line.text).contains("STATSX"));
    assert_eq!(line.at + 120, 8 * 80_000);
}

#[test]
fn a_clipped_line_is_cut_between_characters() {
    let ws = ws("python3 -c \"print('ä'*3000+'X'+'ö'*3000)\" > f; python3 -c \"print('é'*3000)\" > g");
    let hits = ws.grep(".", "X|é{3}");
    assert!(hits.files.iter().all(|file| std::str::from_utf8(&file.lines[0].text).is_ok()));
    assert_eq!(hits.clipped_lines, 2);
}

#[test]
fn c076_pages_are_exact_and_do_not_overlap() {
    let ws = ws(
        "mkdir m; for i in $(seq 1 60); do printf 'hit\\n' > m/f$i.txt; done; mkdir k; for i in $(seq 1 50); do printf 'hit\\n' > k/f$i.txt; done",
    );
    let page = |path: &str, offset| ws.grep_with(path, &ContentQuery { offset, ..query("hit") });
    let (first, second, exact) = (page("m", 0), page("m", 50), page("k", 0));
    assert_eq!((lines(&first).len(), first.more, first.total_matches), (50, true, 60));
    assert_eq!((lines(&second).len(), second.more, second.total_matches), (10, false, 60));
    assert_eq!((lines(&exact).len(), exact.more), (50, false));
    let mut all = [files(&first), files(&second)].concat();
    let in_order = all.clone();
    all.sort();
    all.dedup();
    assert_eq!((all.len(), all), (60, in_order));
}

#[test]
fn pages_within_a_file_show_each_match_once() {
    let ws = ws("seq 1 100 > f; seq 1 7 > g");
    let mut seen = Vec::new();
    for offset in (0..107).step_by(9) {
        let hits = ws.grep_with(".", &ContentQuery { offset, limit: 9, ..query("[0-9]") });
        assert_eq!((hits.total_matches, hits.total_files, hits.more), (107, 2, offset + 9 < 107));
        seen.extend(lines(&hits).into_iter().filter(|line| line.contains(':')));
    }
    let expected: Vec<String> =
        (1..=100).map(|n| format!("f:{n}:{n}")).chain((1..=7).map(|n| format!("g:{n}:{n}"))).collect();
    assert_eq!(seen, expected);
}

#[test]
fn c077_the_total_does_not_depend_on_the_cap_or_the_output() {
    let ws = ws("for i in 1 2 3 4 5 6 7 8 9; do printf 'w\\nw\\nw\\n' > t$i; done");
    for (limit, output) in [
        (5, Output::Content),
        (25, Output::Content),
        (1000, Output::Content),
        (1000, Output::Count),
        (2, Output::Files),
        (0, Output::Files),
    ] {
        let hits = ws.grep_with(".", &ContentQuery { limit, output, ..query("w") });
        assert_eq!((hits.total_matches, hits.total_files, hits.exact), (27, 9, true));
        if output != Output::Content {
            assert_eq!(hits.files.len(), limit.min(9));
            assert!(hits.files.iter().all(|file| file.matches == 3 && file.lines.is_empty()));
            assert_eq!(hits.more, limit < 9);
        }
    }
}

#[test]
fn c079_anchors_hold_before_either_line_ending() {
    let ws = ws("printf 'needle\\r\\nother\\r\\n' > c.txt; printf 'needle\\n' > l.txt");
    for pattern in ["needle$", "^needle$", "needle\\b"] {
        let hits = ws.grep_with(".", &ContentQuery { context_lines: Some(0), ..query(pattern) });
        assert_eq!(lines(&hits), ["c.txt:1:needle", "l.txt:1:needle"], "{pattern}");
    }
    let literal = ContentQuery { regex: false, context_lines: Some(0), ..query("needle\nother\n") };
    assert_eq!(
        lines(&ws.grep_with(".", &literal)),
        ["c.txt:1:needle", "c.txt:2:other"],
        "a text over two lines"
    );
}

#[test]
fn multiline_expressions_cross_line_ends_and_single_line_ones_say_how_to() {
    let ws = ws("printf 'fn a() {\\n  b\\n}\\nfn c() {}\\n' > f");
    let multiline = ContentQuery { multiline: true, context_lines: Some(0), ..query("\\{\\n.*b") };
    assert_eq!(lines(&ws.grep_with(".", &multiline)), ["f:1:fn a() {", "f:2:  b"]);
    let dotall = ContentQuery { multiline: true, context_lines: Some(0), ..query("(?s)a.*\\}$") };
    assert_eq!(ws.grep_with(".", &dotall).total_matches, 4);
    let error = ws.tree.search_content(&ws.at("."), &query("a\\nb")).unwrap_err();
    assert!(error.to_string().contains("multiline=true"), "{error}");
}

#[test]
fn literal_text_and_case() {
    let ws = ws("printf 'a.b(c)[d]*\\nA.B\\naxb\\n-dash --flag\\nkK\\n' > f");
    let with = |pattern: &str, regex, ignore_case| {
        let hits =
            ws.grep_with(".", &ContentQuery { regex, ignore_case, context_lines: Some(0), ..query(pattern) });
        hits.total_matches
    };
    assert_eq!(with("a.b(c)[d]*", false, false), 1);
    assert_eq!(with("a.b", false, true), 2);
    assert_eq!(with("a.b", true, false), 2);
    assert_eq!(with("--flag", true, false), 1);
    assert_eq!(with("-dash", false, false), 1);
    assert_eq!(with("KELVIN \u{212a}", false, true), 0);
}

/// No character of a text has a meaning, nor has it behind a backslash.
#[test]
fn every_ascii_character_is_found_as_a_text() {
    let marks: String = (b'!'..=b'~').map(char::from).collect();
    let ws = ws(&format!("cat > f <<'EOF'\n{marks}\nx<y> z\nEOF\n"));
    let count = |pattern: &str| {
        ws.grep_with(".", &ContentQuery { regex: false, context_lines: Some(0), ..query(pattern) })
            .total_matches
    };
    for (at, mark) in marks.char_indices() {
        assert_eq!(count(&marks[at.saturating_sub(1)..(at + 2).min(marks.len())]), 1, "{mark}");
    }
    assert_eq!((count("<y>"), count("y> z"), count("z>")), (1, 1, 0));
}

#[test]
fn hostile_expressions_are_refused_or_linear() {
    let ws = ws("head -c 5000000 /dev/zero | tr '\\0' a > f; printf 'x\\n' > g");
    let refused = |pattern: &str| ws.tree.search_content(&ws.at("."), &query(pattern)).unwrap_err();
    for pattern in ["(", "a{2,1}", "[z-a]", "\\", "(?<", "*", "(?P<n>a)(?P=n)", "a(?=b)"] {
        let error = refused(pattern);
        assert_eq!(error.refusal(".").code, Code::PatternInvalid, "{pattern}: {error}");
        assert!(error.to_string().len() < 200, "{error}");
    }
    for pattern in ["(a{1000}){1000}", "\\w{5000}", &"(a|b)".repeat(100_000)] {
        assert!(
            matches!(refused(pattern), SearchError::PatternTooLarge { limit: 262_144 }),
            "{}",
            &pattern[..5]
        );
    }
    assert!(matches!(refused(&"(".repeat(5000)), SearchError::PatternInvalid { .. }));
    let begun = Instant::now();
    for pattern in ["(a*)*b", "(a|a)*$x", "(a+)+b", ".*.*.*=.*", "\0"] {
        assert_eq!(ws.grep(".", pattern).total_matches, 0, "{pattern}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn binary_files_are_told_apart_from_utf_16() {
    let ws = ws(
        "printf 'find\\0me\\nfindme\\n' > b; printf '\\xff\\xfef\\0i\\0n\\0d\\0m\\0e\\0\\n\\0' > u16le; \
                 printf '\\xfe\\xff\\0f\\0i\\0n\\0d\\0m\\0e\\0\\n' > u16be; printf '\\xef\\xbb\\xbffindme\\n' > u8; \
                 printf '\\xff\\xfe\\0\\0f\\0\\0\\0' > u32; printf '\\0' > png",
    );
    let hits = ws.grep(".", "^findme$");
    assert_eq!(files(&hits), ["u16be", "u16le", "u8"]);
    assert_eq!(count(&hits.skipped, "binary"), 3);
    assert_eq!(
        hits.binary.iter().map(|(path, size)| (path.path.to_string(), *size)).collect::<Vec<_>>(),
        [("b".to_owned(), 15)]
    );
}

#[test]
fn a_file_over_16_mib_is_searched_in_pieces() {
    let ws = ws(
        "yes 'some filler text in every line' | head -n 700000 > big; echo needle >> big; { echo needle; cat big; printf '\\0'; } > bin; \
                 head -c 60000000 /dev/zero | tr '\\0' x > oneline",
    );
    let hits = ws.grep(".", "needle");
    assert_eq!(lines(&hits).last().unwrap(), "big:700001:needle");
    assert_eq!(hits.files[0].digest, None);
    assert_eq!((count(&hits.skipped, "binary"), count(&hits.skipped, "unreadable")), (1, 1));
    assert_eq!(hits.binary[0].0.path.to_string(), "bin");
}

#[test]
fn protected_and_temporary_files_are_never_searched() {
    let ws = ws(
        "mkdir .git src; echo KEY > .git/config; echo KEY > .env; echo KEY > src/x.pem; echo KEY > src/.cotenant-00112233aabbccdd; \
                 ln -s .env env; echo none > a",
    );
    for include_ignored in [false, true] {
        let hits = ws.grep_with(".", &ContentQuery { include_ignored, ..query("KEY") });
        assert_eq!((hits.total_matches, hits.searched, count(&hits.skipped, "protected")), (0, 1, 3));
    }
}

#[test]
fn the_answer_is_the_same_every_time_on_many_files() {
    let ws = ws(
        "for d in $(seq 1 15); do mkdir d$d; for f in $(seq 1 30); do printf 'l1\\nhit %s\\nl3\\n' $f > d$d/f$f; done; done",
    );
    let first = ws.grep_with(".", &ContentQuery { limit: 40, offset: 33, ..query("hit 1") });
    assert_eq!(first.total_matches, 15 * 11);
    let paths = files(&first);
    assert!(paths.is_sorted(), "{paths:?}");
    for _ in 0..10 {
        let again = ws.grep_with(".", &ContentQuery { limit: 40, offset: 33, ..query("hit 1") });
        assert_eq!(lines(&again), lines(&first));
        assert_eq!(again.total_matches, first.total_matches);
    }
}

#[test]
fn the_files_of_a_search_are_told_without_searching() {
    let ws = ws(
        "mkdir -p d/e skip; touch d/a.rs d/e/b.rs d/c.md skip/x.rs .env; printf 'skip/\\n' > .gitignore; ln -s d l",
    );
    let paths = |path: &str, glob: Option<&str>| {
        let files = ws.tree.files(&ws.at(path), glob).unwrap();
        (files.paths.iter().map(|path| path.path.to_string()).collect::<Vec<_>>(), files.skipped)
    };
    let (found, skipped) = paths(".", Some("*.rs"));
    assert_eq!(found, ["d/a.rs", "d/e/b.rs"]);
    assert_eq!(skipped, [("ignored", 1), ("protected", 1), ("links", 1)]);
    assert_eq!(paths("d", Some("!*.rs")).0, ["d/c.md"]);
    assert_eq!(paths("skip", None).0, ["skip/x.rs"], "what is named is meant");
    assert_eq!(paths("d/c.md", Some("*.rs")).0, ["d/c.md"]);
    assert!(matches!(ws.tree.files(&ws.at("none"), None), Err(SearchError::Tree(_))));
    assert!(matches!(ws.tree.files(&ws.at("."), Some("a{")), Err(SearchError::PatternInvalid { .. })));
}
