//! `replace_text`: every match and nothing else, in one file or thousands, in every form; what would surprise is refused.

use std::collections::BTreeMap;

use cotenant_model::{GeneratedRule, Limits, Profile, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact, next_calls, notices};

fn swap(path: &str, pattern: &str, replacement: &str) -> Value {
    json!({"path": path, "pattern": pattern, "replacement": replacement})
}

fn regex(path: &str, pattern: &str, replacement: &str) -> Value {
    json!({"path": path, "pattern": pattern, "replacement": replacement, "regex": true})
}

fn utf16(text: &str) -> Vec<u8> {
    [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
}

#[test]
fn a_name_is_changed_in_many_files_as_one_change() {
    let f = Fixture::new();
    f.put("src/a.rs", "old();\nx\nold(old);\n");
    f.put("src/deep/b.rs", "let old = 1;\n");
    f.put("src/none.rs", "x\n");
    f.put("other.rs", "old\n");
    let done = f.ok("replace_text", swap("src", "old", "new"));
    assert!(done.starts_with("path=src replaced=4 files=2 change=c1"), "{done}");
    assert_eq!(body(&done), "src/a.rs: 3, lines 1,3\nsrc/deep/b.rs: 1, lines 1", "{done}");
    assert_eq!(f.get("src/a.rs"), "new();\nx\nnew(new);\n");
    assert_eq!((f.get("src/deep/b.rs").as_str(), f.get("other.rs").as_str()), ("let new = 1;\n", "old\n"));
    assert_eq!(f.changes().len(), 1);
    f.ok("undo", json!({}));
    assert_eq!(
        (f.get("src/a.rs").as_str(), f.get("src/deep/b.rs").as_str()),
        ("old();\nx\nold(old);\n", "let old = 1;\n")
    );
}

#[test]
fn without_regex_nothing_has_a_meaning() {
    let f = Fixture::new();
    f.put("a", "a.b a+b (x) \\d $1 ^\n");
    f.ok("replace_text", swap("a", "a.b", "$1 \\1 ${x} $$"));
    assert_eq!(f.get("a"), "$1 \\1 ${x} $$ a+b (x) \\d $1 ^\n");
    f.ok("replace_text", swap("a", "\\d", "d"));
    f.ok("replace_text", swap("a", "(x)", ""));
    assert_eq!(f.get("a"), "$1 \\1 ${x} $$ a+b  d $1 ^\n");
    f.ok("replace_text", json!({"path": "a", "pattern": "A+B", "replacement": "c", "ignore_case": true}));
    assert_eq!(f.get("a"), "$1 \\1 ${x} $$ c  d $1 ^\n");
}

#[test]
fn groups_stand_for_what_they_matched() {
    let f = Fixture::new();
    f.put("a", "key=val\nk2=v2\n");
    f.ok("replace_text", regex("a", "^(\\w+)=(?P<value>\\w+)$", "${value}_$1: $2 $$"));
    assert_eq!(f.get("a"), "val_key: val $\nv2_k2: v2 $\n");
    f.ok("replace_text", regex("a", "(?m)(x)?v2", "[$1]"));
    assert_eq!(f.get("a"), "val_key: val $\n[]_k2: [] $\n");
    for (pattern, replacement, why) in [
        ("(v)al", "\\1", "write $1"),
        ("(v)al", "$2", "no group 2"),
        ("(?P<v>v)al", "$v", "write ${v}"),
        ("v", "${name}", "no group name"),
    ] {
        let refusal = f.no(
            "BAD_INPUT tool=replace_text argument=replacement",
            "replace_text",
            regex("a", pattern, replacement),
        );
        assert!(refusal.contains(why), "{refusal}");
    }
    assert_eq!(f.get("a"), "val_key: val $\n[]_k2: [] $\n");
}

#[test]
fn what_is_expected_is_what_is_done_or_nothing() {
    let f = Fixture::new();
    f.put("d/a", "x x\n");
    f.put("d/b", "x\n");
    let with = |expected: i64| json!({"path": "d", "pattern": "x", "replacement": "y", "expected": expected});
    let more = f.no("TEXT_AMBIGUOUS path=d count=3 expected=2", "replace_text", with(2));
    assert!(more.contains("\nd/a: 2, lines 1\nd/b: 1, lines 1\n"), "{more}");
    let fewer = f.no("TEXT_NOT_FOUND path=d cause=count count=3 expected=5", "replace_text", with(5));
    assert_eq!((f.get("d/a").as_str(), f.changes().len()), ("x x\n", 0));
    for wrong in [0, -1] {
        f.no("BAD_INPUT tool=replace_text argument=expected", "replace_text", with(wrong));
    }
    assert!(!f.retry(&fewer).is_error);
    assert_eq!((f.get("d/a").as_str(), f.get("d/b").as_str()), ("y y\n", "y\n"));
    f.ok("undo", json!({}));
    f.ok("replace_text", with(3));
}

#[test]
fn a_dry_run_shows_counts_and_diff_and_what_it_offers_is_bound_to_its_count() {
    let f = Fixture::new();
    f.put("d/a", "one\ntwo\n");
    f.put("d/b", "two\n");
    let dry =
        f.ok("replace_text", json!({"path": "d", "pattern": "two", "replacement": "2", "dry_run": true}));
    assert!(
        dry.starts_with("path=d replaced=2 files=2 dry_run=yes notices=1\n! nothing was written"),
        "{dry}"
    );
    assert!(body(&dry).starts_with("d/a: 1, lines 2\nd/b: 1, lines 1\n--- d/a\n+++ d/a\n"), "{dry}");
    assert!(dry.contains("-two\n+2\n"), "{dry}");
    assert!(f.changes().is_empty());
    let offered = dry.split("retry ").nth(1).unwrap().split(" does").next().unwrap();
    f.put("d/c", "two\n");
    let surprise =
        f.no("TEXT_AMBIGUOUS path=d count=3 expected=2", "retry", serde_json::from_str(offered).unwrap());
    assert!(surprise.contains("d/c: 1"), "{surprise}");
    std::fs::remove_file(f.path("d/c")).unwrap();
    f.ok("retry", serde_json::from_str(offered).unwrap());
    assert_eq!((f.get("d/a").as_str(), f.get("d/b").as_str()), ("one\n2\n", "2\n"));
}

#[test]
fn nothing_found_is_refused_with_what_else_would_be() {
    let f = Fixture::new();
    f.put("src/a.rs", "fn Parse() {}\nf(x)\n");
    f.put("src/b.md", "parse\n");
    let case = f.no(
        "TEXT_NOT_FOUND path=src cause=unknown",
        "replace_text",
        json!({"path": "src", "pattern": "fn parse", "replacement": "x"}),
    );
    assert!(case.contains("ignore_case=true finds 1 lines in 1 files"), "{case}");
    assert!(!f.retry(&case).is_error);
    assert_eq!(f.get("src/a.rs"), "x() {}\nf(x)\n");
    let literal = f.no("TEXT_NOT_FOUND", "replace_text", regex("src", "f(x)", "y"));
    assert!(literal.contains("regex=false"), "{literal}");
    let expression = f.no("TEXT_NOT_FOUND", "replace_text", swap("src", "par.e", "y"));
    assert!(expression.contains("regex=true finds 1"), "{expression}");
    assert!(!f.retry(&expression).is_error);
    f.put("src/b.md", "parse\n");
    let glob = f.no(
        "TEXT_NOT_FOUND",
        "replace_text",
        json!({"path": "src", "pattern": "parse", "replacement": "y", "glob": "*.rs"}),
    );
    assert!(glob.contains("Without glob it finds 1"), "{glob}");
    let done = f.no(
        "TEXT_NOT_FOUND path=src cause=already-applied",
        "replace_text",
        swap("src", "gone_name", "parse"),
    );
    assert!(done.contains("stands there already: 1 lines in 1 files"), "{done}");
    let nothing = f.no("TEXT_NOT_FOUND", "replace_text", swap("src/b.md", "zzzz", "q"));
    assert_eq!(next_calls(&nothing)[0], ("read_file".to_owned(), json!({"path": "src/b.md"})));
    let crlf = f.no("TEXT_NOT_FOUND", "replace_text", regex("src", "parse\\r\\n", "q"));
    assert!(crlf.contains("plain \\n"), "{crlf}");
}

#[test]
fn patterns_that_mean_nothing_are_refused() {
    let f = Fixture::new();
    f.put("a", "abc\n");
    f.no("BAD_INPUT tool=replace_text argument=pattern", "replace_text", swap("a", "", "x"));
    f.no("BAD_INPUT", "replace_text", regex("a", "", "x"));
    for pattern in ["x*", "^", "$", "\\b", "(?:)", "a|"] {
        let refusal = f.no("PATTERN_INVALID", "replace_text", regex("a", pattern, "y"));
        assert!(refusal.contains("^(.+)$"), "{refusal}");
    }
    let broken = f.no("PATTERN_INVALID pattern=a(", "replace_text", regex("a", "a(", "y"));
    assert!(broken.contains("unclosed group"), "{broken}");
    f.no("PATTERN_INVALID", "replace_text", regex("a", "(?-u:\\xff)", "y"));
    f.no("PATTERN_TOO_LARGE", "replace_text", regex("a", "(\\w{500}){500}", "y"));
    f.no(
        "PATTERN_INVALID",
        "replace_text",
        json!({"path": ".", "pattern": "a", "replacement": "b", "glob": "a{"}),
    );
    f.no("NOTHING_TO_CHANGE path=a count=1", "replace_text", swap("a", "b", "b"));
    f.no("NOTHING_TO_CHANGE", "replace_text", regex("a", "(b)", "$1"));
    f.no("NOT_FOUND", "replace_text", swap("none", "b", "c"));
    f.no("PATH_OUTSIDE", "replace_text", swap("../x", "b", "c"));
    assert_eq!((f.get("a").as_str(), f.changes().len()), ("abc\n", 0));
    f.ok("replace_text", regex("a", "^(.+)$", "# $1"));
    assert_eq!(f.get("a"), "# abc\n");
}

#[test]
fn the_walk_is_that_of_a_search_and_what_is_passed_over_is_counted() {
    let f = Fixture::with(Settings {
        profile: Profile::Trusting,
        generated: vec![GeneratedRule { paths: vec!["gen/**".to_owned()], from: None, command: None }],
        limits: Limits { text_bytes: 1000, ..Limits::default() },
        ..Settings::default()
    });
    f.put(".gitignore", "skip/\n");
    for path in ["a.rs", "b.md", "skip/c.rs", "gen/d.rs", ".env", ".hidden/e.rs"] {
        f.put(path, "old\n");
    }
    f.put("bin.rs", b"old\0");
    f.put("big.rs", "old\n".repeat(500));
    std::os::unix::fs::symlink("a.rs", f.path("l.rs")).unwrap();
    let done =
        f.ok("replace_text", json!({"path": ".", "pattern": "old", "replacement": "new", "glob": "*.rs"}));
    assert_eq!(fact(&done, "replaced").as_deref(), Some("2"), "{done}");
    assert_eq!(
        fact(&done, "skipped").as_deref(),
        Some("binary:1,generated:1,ignored:1,large:1,links:1,protected:1"),
        "{done}"
    );
    for (path, text) in [
        ("a.rs", "new\n"),
        ("b.md", "old\n"),
        ("skip/c.rs", "old\n"),
        ("gen/d.rs", "old\n"),
        (".env", "old\n"),
        (".hidden/e.rs", "new\n"),
    ] {
        assert_eq!(f.get(path), text, "{path}");
    }
    assert_eq!(f.get("l.rs"), "new\n", "a link leads to a file that was looked at");
    f.ok("replace_text", swap("skip/c.rs", "old", "new"));
    f.ok("replace_text", swap("l.rs", "new", "newer"));
    assert_eq!((f.get("a.rs").as_str(), f.path("l.rs").is_symlink()), ("newer\n", true));
    f.no("PATH_READ_ONLY", "replace_text", swap("gen/d.rs", "old", "new"));
    f.no("PATH_PROTECTED", "replace_text", swap(".env", "old", "new"));
    f.no("NOT_TEXT", "replace_text", swap("bin.rs", "old", "new"));
}

#[test]
fn every_form_is_kept_to_the_byte() {
    let f = Fixture::new();
    f.put(".editorconfig", "root = true\n[*.l1]\ncharset = latin1\n");
    for (name, before, after) in [
        ("d/crlf", b"a\r\nold\r\nb\r\n".to_vec(), b"a\r\nnew\r\nb\r\n".to_vec()),
        ("d/mixed", b"old\r\nold\nb".to_vec(), b"new\r\nnew\nb".to_vec()),
        ("d/bom", b"\xef\xbb\xbfold".to_vec(), b"\xef\xbb\xbfnew".to_vec()),
        ("d/x.l1", b"\xe9 old\n".to_vec(), b"\xe9 new\n".to_vec()),
        ("d/odd", b"\xff\xe9 old\n".to_vec(), b"\xff\xe9 new\n".to_vec()),
        ("d/wide", utf16("é old\r\n"), utf16("é new\r\n")),
    ] {
        f.put(name, &before);
        f.ok("replace_text", swap(name, "old", "new"));
        assert_eq!(f.bytes(name), after, "{name}");
        f.put(name, &before);
    }
    f.ok("replace_text", json!({"path": "d", "pattern": "old", "replacement": "new", "expected": 7}));
    assert_eq!(f.bytes("d/wide"), utf16("é new\r\n"));
    let latin = f.no("NOT_ENCODABLE path=d/odd", "replace_text", swap("d", "new", "→"));
    assert!(latin.contains("U+2192") && fact(&latin, "line").as_deref() == Some("1"), "{latin}");
    assert_eq!(f.bytes("d/crlf"), b"a\r\nnew\r\nb\r\n", "one that cannot stops them all");
}

#[test]
fn line_breaks_in_patterns_fit_every_ending() {
    let f = Fixture::new();
    for (pattern, replacement, is_regex) in
        [("a\nb", "c\nd", false), ("a\r\nb", "c\r\nd", false), ("(a)\\n(b)", "c\nd", true)]
    {
        f.put("crlf", "x\r\na\r\nb\r\n");
        f.put("lf", "x\na\nb\n");
        f.ok("replace_text", json!({"path": ".", "pattern": pattern, "replacement": replacement, "regex": is_regex, "expected": 2}));
        assert_eq!(
            (f.get("crlf").as_str(), f.get("lf").as_str()),
            ("x\r\nc\r\nd\r\n", "x\nc\nd\n"),
            "{pattern:?}"
        );
    }
    f.put("crlf", "a\r\nb\r\n");
    f.ok("replace_text", swap("crlf", "a", "a\nnew"));
    assert_eq!(f.get("crlf"), "a\r\nnew\r\nb\r\n");
}

#[test]
fn what_was_read_before_stays_read_and_nothing_more() {
    let f = Fixture::new();
    f.put("seen", "one\ntwo\nthree\n");
    f.put("unseen", "two\n");
    f.ok("read_file", json!({"path": "seen"}));
    f.ok("replace_text", swap(".", "two", "2"));
    f.ok("edit_file", json!({"path": "seen", "old_text": "2", "new_text": "II"}));
    f.no("EDIT_REQUIRES_PRIOR_READ", "delete_file", json!({"path": "unseen"}));
    f.no(
        "EDIT_REQUIRES_PRIOR_READ",
        "edit_file",
        json!({"path": "unseen", "old_text": "2", "new_text": "II"}),
    );
    // Another's change in between is not covered up by one's own.
    let other = f.session("agent-b");
    f.ok_as(other, "read_file", json!({"path": "seen"}));
    f.ok_as(other, "edit_file", json!({"path": "seen", "old_text": "three", "new_text": "drei"}));
    f.ok("replace_text", swap("seen", "one", "1"));
    let stale = f.call("edit_file", json!({"path": "seen", "old_text": "drei", "new_text": "3"}));
    assert!(!stale.is_error && fact(&stale.text, "unseen").as_deref() == Some("yes"), "{}", stale.text);
    let told = f.ok_as(other, "list_directory", json!({}));
    assert!(notices(&told)[0].contains("reload seen: agent-a changed"), "{told}");
}

#[test]
fn one_file_that_cannot_be_written_stops_them_all() {
    let f = Fixture::new();
    f.put("d/a", "old\n");
    f.put("d/b", "old\n");
    std::fs::hard_link(f.path("d/b"), f.path("elsewhere")).unwrap();
    let refusal = f.no("HARD_LINKED path=d/b", "replace_text", swap("d", "old", "new"));
    assert_eq!((f.get("d/a").as_str(), f.get("d/b").as_str()), ("old\n", "old\n"), "{refusal}");
    f.ok("replace_text", json!({"path": "d", "pattern": "old", "replacement": "new", "glob": "!b"}));
    assert_eq!(f.get("d/a"), "new\n");
}

#[test]
fn sensitive_files_among_them_are_asked_about() {
    let f = Fixture::new();
    f.put("a", "old\n");
    f.put("AGENTS.md", "old\n");
    let asked = f.call("replace_text", swap(".", "old", "new"));
    assert!(asked.text.starts_with("APPROVAL_PENDING"), "{}", asked.text);
    assert_eq!(f.get("a"), "old\n");
    let question = f.toolbox.waiting().remove(0);
    f.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    assert_eq!((f.get("a").as_str(), f.get("AGENTS.md").as_str()), ("new\n", "new\n"));
}

#[test]
fn many_files_are_one_change_and_a_short_answer() {
    let f = Fixture::new();
    let count = 1500;
    for n in 0..count {
        f.put(&format!("d{}/file-{n:04}", n % 7), format!("x\nold {n}\n"));
    }
    let done =
        f.ok("replace_text", json!({"path": ".", "pattern": "old", "replacement": "new", "expected": count}));
    assert_eq!(
        (fact(&done, "replaced"), fact(&done, "files")),
        (Some("1500".to_owned()), Some("1500".to_owned()))
    );
    assert!(done.len() < 5000, "{} bytes", done.len());
    let handle = fact(&done, "handle").unwrap();
    let rest = f.ok("read_more", json!({"handle": handle, "pattern": "file-1499"}));
    assert!(rest.contains("file-1499: 1, lines 2"), "{rest}");
    assert_eq!((f.get("d0/file-0007").as_str(), f.changes().len()), ("x\nnew 7\n", 1));
    let refused = f.no(
        "TEXT_AMBIGUOUS",
        "replace_text",
        json!({"path": ".", "pattern": "new", "replacement": "old", "expected": 1}),
    );
    assert!(refused.contains("files more") && refused.len() < 3300, "{} bytes", refused.len());
}

#[test]
fn a_replacement_that_would_fill_the_memory_is_refused() {
    let f = Fixture::new();
    f.put("a", "a".repeat(1_000_000));
    let refusal = f.no("LIMIT_REACHED", "replace_text", swap("a", "a", &"b".repeat(5000)));
    assert!(refusal.len() < 2000, "{} bytes", refusal.len());
    f.put("a", "ab\n");
    let long = "ab".repeat(50_000);
    f.no("TEXT_NOT_FOUND", "replace_text", swap("a", &long, "x"));
    f.put("a", format!("{long}\n"));
    f.ok("replace_text", swap("a", &long, "x"));
    assert_eq!(f.get("a"), "x\n");
}

/// Replaces in a text by hand: an expression is a list of sets of letters, each once or at least once, in groups.
fn by_hand(text: &str, sets: &[(Vec<char>, bool)], new: &[Option<usize>]) -> (String, usize) {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut count, mut at) = (String::new(), 0, 0);
    while at < chars.len() {
        match fit(&chars[at..], sets) {
            Some(groups) => {
                count += 1;
                let all: usize = groups.iter().map(Vec::len).sum();
                for part in new {
                    match part {
                        Some(group) => out.extend(&groups[*group]),
                        None => out.push('_'),
                    }
                }
                at += all;
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    (out, count)
}

/// The groups of a match at the beginning: every number of letters is tried, the most first.
fn fit(chars: &[char], sets: &[(Vec<char>, bool)]) -> Option<Vec<Vec<char>>> {
    let Some(((set, many), rest)) = sets.split_first() else { return Some(Vec::new()) };
    let most = if *many {
        chars.iter().take_while(|ch| set.contains(ch)).count()
    } else {
        usize::from(chars.first().is_some_and(|ch| set.contains(ch)))
    };
    (1..=most).rev().find_map(|len| {
        let mut groups = vec![chars[..len].to_vec()];
        groups.extend(fit(&chars[len..], rest)?);
        Some(groups)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Literal texts over files of every form against replacement in their plain text.
    #[test]
    fn literal_replacement_does_what_strings_do(
        files in proptest::collection::btree_map("[a-d]", ("[abé\n]{0,12}", 0..4usize), 1..4),
        pattern in "[abé\n]{1,3}",
        replacement in "[abxé\n$\\\\1]{0,4}",
    ) {
        let f = Fixture::new();
        let stored = |text: &str, form: usize| match form {
            0 => text.as_bytes().to_vec(),
            1 => text.replace('\n', "\r\n").into_bytes(),
            2 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            _ => utf16(&text.replace('\n', "\r\n")),
        };
        let mut wanted = BTreeMap::new();
        let mut count = 0;
        for (name, (text, form)) in &files {
            f.put(name, stored(text, *form));
            count += text.matches(pattern.as_str()).count();
            // A file without a break has no ending of its own yet.
            let form_after = if *form == 1 && !text.contains('\n') { 0 } else { *form };
            let after = text.replace(pattern.as_str(), &replacement);
            let keeps_lf = *form == 3 && !text.contains('\n');
            wanted.insert(name, if keeps_lf { utf16(&after) } else { stored(&after, form_after) });
        }
        let changes = files.iter().any(|(_, (text, _))| text.replace(pattern.as_str(), &replacement) != *text);
        let answer = f.call("replace_text", json!({"path": ".", "pattern": pattern, "replacement": replacement}));
        if count == 0 {
            prop_assert!(answer.text.starts_with("TEXT_NOT_FOUND"), "{}", answer.text);
        } else if !changes {
            prop_assert!(answer.text.starts_with("NOTHING_TO_CHANGE"), "{}", answer.text);
        } else {
            prop_assert_eq!(fact(&answer.text, "replaced"), Some(count.to_string()), "{}", answer.text);
        }
        for (name, bytes) in wanted {
            prop_assert_eq!(f.bytes(name), bytes, "{} {:?} {:?} {:?}", name, files, pattern, replacement);
        }
    }

    /// Expressions with groups against matching by hand.
    #[test]
    fn expressions_do_what_matching_by_hand_does(
        text in "[abc\n]{0,16}",
        sets in proptest::collection::vec((proptest::sample::subsequence(vec!['a', 'b', 'c', '\n'], 1..4), any::<bool>()), 1..4),
        new in proptest::collection::vec(proptest::option::of(0..4usize), 0..4),
    ) {
        let f = Fixture::new();
        f.put("t", &text);
        let group = |(set, many): &(Vec<char>, bool)| format!("([{}]{})", String::from_iter(set).replace('\n', "\\n"), if *many { "+" } else { "" });
        let pattern: String = sets.iter().map(group).collect();
        let new: Vec<Option<usize>> = new.into_iter().map(|part| part.filter(|group| *group < sets.len())).collect();
        let replacement: String = new.iter().map(|part| part.map_or("_".to_owned(), |group| format!("${}", group + 1))).collect();
        let (wanted, count) = by_hand(&text, &sets, &new);
        let answer = f.call("replace_text", regex("t", &pattern, &replacement));
        match count {
            0 => prop_assert!(answer.text.starts_with("TEXT_NOT_FOUND"), "{}", answer.text),
            _ if wanted == text => prop_assert!(answer.text.starts_with("NOTHING_TO_CHANGE"), "{}", answer.text),
            _ => prop_assert_eq!(fact(&answer.text, "replaced"), Some(count.to_string()), "{}", answer.text),
        }
        prop_assert_eq!(f.get("t"), wanted, "{} to {}", pattern, replacement);
    }
}
