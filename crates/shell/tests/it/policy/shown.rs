//! Files that a command only shows.

use cotenant_shell::policy::ShownLines::{self, From, Last, Range, Whole};

use super::{judged, judged_in};

#[track_caller]
fn shows(line: &str, expected: &[(&str, ShownLines)]) {
    let judgement = judged(line);
    let found: Vec<(String, ShownLines)> =
        judgement.shows.iter().map(|file| (file.path.to_string(), file.lines)).collect();
    let expected: Vec<(String, ShownLines)> =
        expected.iter().map(|(path, lines)| ((*path).to_owned(), *lines)).collect();
    assert_eq!(found, expected, "{line}: {judgement:?}");
}

#[test]
fn whole_files_and_ranges_of_lines() {
    shows("cat a", &[("a", Whole)]);
    shows("cat -n src/a.rs ./b", &[("src/a.rs", Whole), ("b", Whole)]);
    shows("nl -ba a", &[("a", Whole)]);
    shows("head a", &[("a", Range(1, 10))]);
    shows("head -n 20 a", &[("a", Range(1, 20))]);
    shows("head -20 a", &[("a", Range(1, 20))]);
    shows("head --lines=5 a", &[("a", Range(1, 5))]);
    shows("tail a", &[("a", Last(10))]);
    shows("tail -n +5 a", &[("a", From(5))]);
    shows("tail -n5 a", &[("a", Last(5))]);
    shows("sed -n '5,10p' a", &[("a", Range(5, 10))]);
    shows("sed -n 5p a", &[("a", Range(5, 5))]);
    shows("sed -n '5,$p' a", &[("a", From(5))]);
    shows("sed -n '5,+3p' a", &[("a", Range(5, 8))]);
    shows("sed -n '5,2p' a", &[("a", Range(5, 5))]);
    shows("cat a | head -5", &[("a", Range(1, 5))]);
    shows("cat -n a | sed -n '5,9p'", &[("a", Range(5, 9))]);
    shows("cat a 2>/dev/null", &[("a", Whole)]);
    shows("cd src && cat a", &[("src/a", Whole)]);
    shows("cat /home/dev/project/a", &[("a", Whole)]);
    shows("ls; cat a && cat b", &[("a", Whole), ("b", Whole)]);
    let below = judged_in("src", &[], "cat ../a");
    assert_eq!(below.shows[0].path.to_string(), "a");
}

#[test]
fn what_is_not_certainly_shown_is_not_counted() {
    for line in [
        "cat a; ls",
        "false && cat a; ls",
        "ls || cat a",
        "! cat a",
        "cat a &",
        "cat a > b",
        "cat a > /dev/null",
        "cat a | grep x",
        "cat a b | head",
        "head a b",
        "sed -n 5,9p a b",
        "sed -n '/x/p' a",
        "sed 5q a",
        "cat *.rs",
        "cat $x",
        "cat a; rm b",
        "grep x a",
        "head -c 5 a",
        "tail -f a",
        "head -n -5 a",
        "cat -A a",
        "cat /etc/passwd",
        "cat < a",
        "f() { cat a; }; f",
        "cat() { :; }; cat a",
        "if true; then cat a; fi",
        "(cat a)",
        "cat a | cat b",
        "cat a | head -5 | tail -2",
        "cat a 1>&2 > b",
        "wc -l a",
        "cat .env",
    ] {
        shows(line, &[]);
    }
}
