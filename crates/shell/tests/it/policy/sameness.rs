//! What must not matter: brackets around a command, rules where the floor speaks, and how deep a thing is nested.

use cotenant_model::{Answer, CommandRule};
use cotenant_shell::policy::{GitUse, MAX_BYTES, MAX_PARTS, Verdict};
use cotenant_testkit::Dice;

use super::{judged, judged_in, ordinary, rule, verdict};

/// Lines of every verdict, from which longer ones are made.
const LINES: &[&str] = &[
    "ls",
    "cat a",
    "git status",
    "git commit -m x",
    "touch x",
    "rm -rf target",
    "rm -rf /",
    "sudo ls",
    "echo x > .git/config",
    "echo x > out",
    "cat .env",
    "make",
    "npm test",
    "X=1 make",
    "sh -c 'touch y'",
    "echo $(git rev-parse HEAD)",
    "$x",
    "rm -rf \"$W\"",
    "cd src && touch z",
    "git -C /x log",
    "bash <<< 'ls'",
    "for i in 1 2; do ls; done",
    "curl x | sh",
];

/// From the strictest on.
fn rank(word: &str) -> usize {
    ["deny", "ask", "ordinary", "allowed", "read-only"].iter().position(|known| *known == word).unwrap()
}

fn random_line(dice: &mut Dice) -> String {
    let mut line = String::new();
    for at in 0..=dice.below(3) {
        if at > 0 {
            line.push_str([" && ", "; ", " || ", " | ", "\n"][dice.below(5) as usize]);
        }
        line.push_str(LINES[dice.below(LINES.len() as u64) as usize]);
    }
    line
}

fn some_rules(dice: &mut Dice) -> Vec<CommandRule> {
    let patterns =
        ["ls *", "make *", "npm test", "touch *", "git *", "rm *", "sh *", "echo *", "sudo *", "bash *"];
    let answers = [Answer::Allow, Answer::Allow, Answer::Ask, Answer::Deny];
    (0..dice.below(5))
        .map(|_| {
            let pattern = patterns[dice.below(patterns.len() as u64) as usize];
            rule(answers[dice.below(4) as usize], pattern)
        })
        .collect()
}

#[test]
fn brackets_around_a_line_change_nothing_of_its_verdict() {
    let mut dice = Dice::thrown();
    for _ in 0..1_000 {
        let line = random_line(&mut dice);
        let rules = some_rules(&mut dice);
        let plain = judged_in(".", &rules, &line);
        for form in
            ["{ @\n}", "( @\n)", "{ ( @\n)\n}", "{ @\n} 2>&1", "if true; then @\nfi", "( @ # a word\n)"]
        {
            let inside = judged_in(".", &rules, &form.replace('@', &line));
            assert_eq!(verdict(&inside), verdict(&plain), "{form} {line}: {inside:?} not {plain:?}");
            assert_eq!((inside.git, inside.unseen), (plain.git, plain.unseen), "{form} {line}");
            for part in &plain.parts {
                assert!(
                    inside.parts.contains(part),
                    "{form} {line}: {part} is no part of {:?}",
                    inside.parts
                );
            }
        }
    }
}

#[test]
fn the_verdict_of_a_list_is_that_of_its_strictest_command() {
    let mut dice = Dice::thrown();
    for _ in 0..1_000 {
        let lines: Vec<&str> =
            (0..2 + dice.below(3)).map(|_| LINES[dice.below(LINES.len() as u64) as usize]).collect();
        let rules = some_rules(&mut dice);
        let alone = |line: &str| rank(verdict(&judged_in(".", &rules, line)));
        let strictest = lines.iter().map(|line| alone(line)).min().unwrap();
        // Each in brackets, so that no directory and no variable of one is the next one's.
        let joined = lines.iter().map(|line| format!("({line})")).collect::<Vec<_>>().join("; ");
        let found = judged_in(".", &rules, &joined);
        assert_eq!(rank(verdict(&found)), strictest, "{joined}: {found:?}");
    }
}

#[test]
fn no_rule_makes_a_verdict_laxer_than_the_floor_or_lifts_what_cannot_be_read() {
    let mut dice = Dice::thrown();
    for _ in 0..1_000 {
        let line = random_line(&mut dice);
        let bare = judged(&line);
        let mut rules = some_rules(&mut dice);
        let ruled = judged_in(".", &rules, &line);
        let (before, after) = (verdict(&bare), verdict(&ruled));
        // The one thing that a rule lifts is an ordinary command.
        assert!(
            rank(after) <= rank(before) || (before, after) == ("ordinary", "allowed"),
            "{line}: {before} became {after} by {rules:?}"
        );
        assert_eq!((&ruled.parts, ruled.git, ruled.unseen), (&bare.parts, bare.git, bare.unseen), "{line}");
        let unliftable = ["$x", " | sh", "> out", "X=1"].iter().any(|what| line.contains(what));
        assert!(!(after == "allowed" && unliftable), "{line}: allowed by {rules:?}");
        // One more rule that does not allow never loosens anything.
        let answer = [Answer::Ask, Answer::Deny][dice.below(2) as usize];
        rules.push(rule(answer, ["ls *", "make *", "git *"][dice.below(3) as usize]));
        let stricter = judged_in(".", &rules, &line);
        assert!(rank(verdict(&stricter)) <= rank(after), "{line}: {rules:?}");
    }
}

#[test]
fn allowing_every_program_lifts_no_line_that_writes_by_redirection() {
    for command in ordinary::commands() {
        let bare = judged(command);
        let rules: Vec<CommandRule> = bare
            .parts
            .iter()
            .filter_map(|part| part.split_whitespace().next())
            .filter(|word| word.chars().all(|ch| ch.is_ascii_alphanumeric() || "-_./+".contains(ch)))
            .map(|word| rule(Answer::Allow, &format!("{word} *")))
            .collect();
        let ruled = judged_in(".", &rules, command);
        let (before, after) = (verdict(&bare), verdict(&ruled));
        assert!(
            before == after || (before, after) == ("ordinary", "allowed"),
            "{command}: {before}, {after}"
        );
        let plain = |part: &&String| !part.contains(['\'', '"']) && !part.contains("/dev/null");
        let writes =
            ruled.parts.iter().filter(plain).any(|part| part.contains(" > ") || part.contains(" >> "));
        assert!(!(after == "allowed" && writes), "{command}: {ruled:?}");
    }
}

#[test]
fn nesting_ends_in_a_question_and_never_in_a_yes() {
    let nest = |depth: usize, open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    for (open, close) in [
        ("( ", " )"),
        ("{ ", "; }"),
        ("echo $(", ")"),
        ("if true; then ", "; fi"),
        ("while true; do ", "; done"),
        ("! ", ""),
        ("timeout 5 ", ""),
        ("nice ", ""),
        ("env ", ""),
        ("xargs ", ""),
        ("eval ", ""),
        ("cat <(", ")"),
    ] {
        for depth in [1, 2, 5, 9, 20, 60, 300, 2000] {
            for (inner, yes) in [("touch x", false), ("ls", true)] {
                let line = nest(depth, open, inner, close);
                let found = judged(&line);
                let word = verdict(&found);
                let lax = matches!(word, "read-only" | "allowed");
                assert!(yes || !lax, "{depth} times {open}{inner}: {word}");
                assert!(line.len() <= MAX_BYTES || word == "ask", "{depth} times {open}{inner}: {word}");
                assert!(
                    depth < 60 || open == "! " || word == "ask" || word == "ordinary" || lax,
                    "{depth} {open}"
                );
            }
        }
        let denied = verdict(&judged(&nest(3, open, "sudo ls", close))).to_owned();
        assert_eq!(denied, "deny", "three times {open}");
    }
}

#[test]
fn limits_are_said_with_their_numbers() {
    let why = |line: &str| match judged(line).verdict {
        Verdict::Ask { why } => why.join("; "),
        other => panic!("{line:.40}: {other:?}"),
    };
    let long = format!("echo {}", "x".repeat(MAX_BYTES));
    assert_eq!(why(&long), format!("it is {} bytes long, more than {MAX_BYTES}", MAX_BYTES + 5));
    let many = vec!["ls"; MAX_PARTS + 1].join("; ");
    assert_eq!(why(&many), format!("it has {} commands, more than {MAX_PARTS}", MAX_PARTS + 1));
    assert!(why("ls \u{200b}").contains("(U+200B)"));
    assert!(why("ls 'x").starts_with("it cannot be read: "));
    assert_eq!(verdict(&judged(&vec!["ls"; MAX_PARTS].join("; "))), "read-only");
    assert_eq!(verdict(&judged(&format!("echo {}", "x".repeat(MAX_BYTES - 5)))), "read-only");
    // Over all that is read, nothing is known of it but that it may do anything.
    let huge = judged(&format!("{} git commit", "x ".repeat(120_000)));
    assert_eq!((verdict(&huge), huge.git, huge.unseen), ("ask", GitUse::Writes, true));
    assert_eq!(huge.parts.len(), 1);
}
