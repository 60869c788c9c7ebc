//! Random text: judging is total, and quick however a line is nested.

use cotenant_shell::policy::Verdict;
use proptest::prelude::*;

use super::{judged, verdict};

/// Pieces from which lines are made that are nearly shell text.
const PIECES: &[&str] = &[
    "ls",
    "echo",
    "rm",
    "-rf",
    "/",
    " ",
    "\n",
    ";",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    "(",
    ")",
    "((",
    "))",
    "{",
    "}",
    "{ ",
    "; }",
    "$(",
    "`",
    "\"",
    "'",
    "$'",
    "$\"",
    "\\",
    "\\\n",
    "$",
    "${",
    "${x:-",
    "}",
    "$((",
    "$[",
    "]",
    "[",
    "[[",
    " ]]",
    "<<E",
    "\nE\n",
    "<<-'E'",
    "<<",
    "<<<",
    "<",
    ">",
    ">>",
    ">&",
    "<&",
    "&>",
    "<(",
    ">(",
    "<>",
    ">|",
    "2>&1",
    "99999999999>",
    "#",
    "!",
    "*",
    "?",
    "~",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "while ",
    "case x in ",
    "esac",
    ";;",
    "a)",
    "function f ",
    "f()",
    "coproc ",
    "time ",
    "x=",
    "x[",
    "x=(",
    "a[$(",
    "sed ",
    "-e",
    "s/a/b/",
    "awk ",
    "git ",
    "-C",
    "find ",
    "-exec ",
    "{}",
    "\\;",
    "xargs ",
    "env ",
    "-S",
    "sh -c ",
    "bash ",
    "eval ",
    "é",
    "\u{202e}",
    "\u{a0}",
    "\r",
    "\t",
    "$x",
    "$1",
    "--",
    "-",
    "=",
    "{1..9}",
    "{a,b}",
    "tar ",
    "xf",
    "dd ",
    "of=",
    "kill ",
    "-1",
    "sort ",
    "-o",
    "cd ",
    "..",
    "uniq ",
    "test ",
    "-v",
    "select ",
    "in",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_has_an_answer(text in ".{0,200}") {
        let judgement = judged(&text);
        prop_assert!(!matches!(judgement.verdict, Verdict::Allowed), "no rule allows anything");
    }

    #[test]
    fn nearly_shell_text_has_an_answer(picks in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: String = picks.iter().map(|pick| PIECES[*pick]).collect();
        let judgement = judged(&text);
        // Twice the same; and nothing that is automatic has a part that is not.
        prop_assert_eq!(&judgement, &judged(&text));
        if judgement.verdict == Verdict::ReadOnly {
            let followed = judged(&format!("{text}\nsudo ls"));
            prop_assert_eq!(verdict(&followed), "deny", "{}", text);
        }
    }

    #[test]
    fn a_command_behind_anything_is_found_or_the_line_is_asked_about(picks in prop::collection::vec(0..PIECES.len(), 0..12)) {
        let text: String = picks.iter().map(|pick| PIECES[*pick]).collect();
        let judgement = judged(&format!("{text} $(sudo ls) "));
        prop_assert_ne!(verdict(&judgement), "allowed");
    }
}

/// Pieces of words without a name of a program, so that bash may be given them.
const QUOTING: &[&str] = &[
    "a", "b", "'", "\"", "\\", "$'", " ", "\n", "\\n", "\\x41", "\\101", "\\'", "\\\"", "\\\n", "''", "\"\"",
    "#", "!", "$", "=", "[", "~", "é", ",", "{", "}", ".", "\\t", "\\u00e9", "\\cA", "'a b'", "\"c d\"",
    "\t",
];

#[test]
fn words_that_are_known_are_what_bash_makes_of_them() {
    let mut dice = cotenant_testkit::Dice::seeded(11);
    let mut compared = 0;
    while compared < 150 {
        let text: String =
            (0..1 + dice.below(9)).map(|_| QUOTING[dice.below(QUOTING.len() as u64) as usize]).collect();
        // The floor tells the path that it refuses, and with it the word that was read.
        let judgement = judged(&format!("touch /etc/{text}"));
        let Verdict::Deny { why, rule, .. } = &judgement.verdict else { continue };
        let Some(known) = why.strip_suffix(" is outside the workspace") else { continue };
        if judgement.parts.len() != 1 || judgement.unseen || text.contains(['~', '[', '.']) {
            continue;
        }
        assert_eq!(rule, "floor: nothing outside");
        let out = std::process::Command::new("bash")
            .args(["-c", &format!("printf '%s\\0' /etc/{text}")])
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&out.stdout);
        let first = words.split('\0').next().unwrap();
        assert_eq!(known.trim_end_matches('/'), first.trim_end_matches('/'), "{text:?}");
        compared += 1;
    }
}

#[test]
fn nesting_without_end_is_answered_at_once() {
    for piece in PIECES {
        for times in [9, 11, 30, 1_000] {
            for text in
                [piece.repeat(times), format!("{}x", piece.repeat(times)), format!("{piece} ").repeat(times)]
            {
                let _ = judged(&text);
            }
        }
    }
    let nested =
        |open: &str, close: &str, depth: usize| format!("{}ls{}", open.repeat(depth), close.repeat(depth));
    for (open, close) in [
        ("(", ")"),
        ("((", "))"),
        ("{ ", "; }"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("if ", "; then ls; fi"),
        ("while ", "; do ls; done"),
        ("case x in a) ", ";; esac"),
        ("case x in (a) ", " ;; esac"),
        ("f() { ", "; }"),
        ("<(", ")"),
        ("cat <(", ")"),
        ("bash -c '", "'"),
        ("[[ (", ") ]]"),
        ("echo $((", "))"),
        ("x=(", ")"),
        ("echo ${x:-", "}"),
        ("nice ", ""),
        ("eval ", ""),
        ("time ", ""),
        ("coproc ", ""),
    ] {
        for depth in [1, 5, 8, 10, 11, 100, 1_000] {
            let _ = judged(&nested(open, close, depth));
            // Not closed, so that the grammar must give up.
            let _ = judged(&nested(open, "", depth));
        }
    }
}
