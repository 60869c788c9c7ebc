//! The words of a line that is accepted are bash's words; no line makes the reader stop.

use std::process::{Command, Stdio};

use cotenant_shell::edits::{Environment, recognise, traps};
use cotenant_testkit::{Dice, records};
use proptest::prelude::*;

use super::generate::{pair, pick};
use super::utf8;

/// How many accepted lines are compared; `COTENANT_FUZZ_WORDS` says another number.
const LINES: usize = 10_000;

/// Pieces of words and of what stands between them, the awkward ones most of all.
const PIECES: &[&str] = &[
    "a", "f.txt", "s/x/y/", "é", "€", " ", " ", "  ", "\t", "'", "'", "\"", "\"", "\\", "\\\\", "\\\n",
    "\\'", "\\\"", "$", "\\$", "$/", "`", "!", "#", " #", "~", "*", "?", "[a]", "{a,b}", "=", "a=b", ":",
    "%", "+(f)", "@", "-", "--", "&", "|", ";", "(", ")", "<", ">", "$x", "$(x)", "''", "\"\"", "'a b'",
    "\"a b\"", "'\\''", "\"\\\\\"", "\"$\"", "\"a$/b\"", "\u{a0}", "\u{200b}", "\u{feff}", "\r",
];

/// What bash makes of the arguments, each list ended by an empty word (none is accepted).
fn bash(lines: &[String]) -> Vec<Vec<String>> {
    let script: String = lines.iter().map(|line| format!("printf '%s\\0' {line}\nprintf '\\0'\n")).collect();
    let output = Command::new("bash")
        .args(["-c", &script])
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lists = vec![Vec::new()];
    let said = String::from_utf8(output.stdout).unwrap();
    for word in said.strip_suffix('\0').unwrap().split('\0') {
        if word.is_empty() {
            lists.push(Vec::new());
        } else {
            lists.last_mut().unwrap().push(word.to_owned());
        }
    }
    lists.pop();
    lists
}

#[test]
fn accepted_words_are_bashs_words() {
    let wanted = std::env::var("COTENANT_FUZZ_WORDS").ok().map_or(LINES, |number| number.parse().unwrap());
    let mut dice = Dice::thrown();
    let (mut tried, mut accepted) = (0, 0);
    while accepted < wanted {
        let mut lines = Vec::new();
        let mut words = Vec::new();
        while lines.len() < 500 {
            let line: String = (0..=dice.below(7)).map(|_| pick(&mut dice, PIECES)).collect();
            tried += 1;
            // Bash shall only print: what redirects is compared by the fuzz of whole commands.
            if line.contains('>') {
                continue;
            }
            if let Some(edit) = recognise(&format!("touch -- {line}"), &utf8()) {
                let targets = edit.targets();
                lines.push(line);
                words.push(targets);
            }
        }
        for ((line, ours), theirs) in lines.iter().zip(&words).zip(bash(&lines)) {
            assert_eq!(*ours, theirs, "{line:?}");
        }
        accepted += lines.len();
    }
    println!("{accepted} lines of {tried} accepted, 0 differences");
}

#[test]
fn lines_that_are_nearly_plain_are_left_to_the_shell() {
    for line in [
        "LC_ALL=C sed -i 's/a/b/' f",
        "env sed -i 's/a/b/' f",
        "time sed -i 's/a/b/' f",
        "! sed -i 's/a/b/' f",
        "command rm f",
        "\\sed",
        "sed -i 's/a/b/' f &",
        "sed -i 's/a/b/' f | cat",
        "sed -i 's/a/b/' f || true",
        "(rm f)",
        "{ rm f; }",
        "f(){ rm f; }; f",
        "if true; then rm f; fi",
        "rm $x",
        "rm `x`",
        "rm \"$(x)\"",
        "rm *",
        "rm f?",
        "rm [a]",
        "rm ~/f",
        "rm {a,b}",
        "rm +(f)",
        "rm $'a'",
        "rm $\"a\"",
        "rm f > /dev/null",
        "rm f 2>/dev/null",
        "echo x >& f",
        "echo x &> f",
        "echo x >| f",
        "echo x <> f",
        "echo x 2> f",
        "cat <<< x > f",
        "cat < g > f",
        "cat > f <<EOF\n$x\nEOF",
        "cat > f <<EOF\nx",
        "cat > f <<'E F'\nx\nE F",
        "cat > f > g <<'EOF'\nEOF",
        "cat > f <<'A' <<'B'\nA\nB",
        "rm f;;",
        "; rm f",
        "rm f && ",
        "&& rm f",
        "rm f\0",
        "rm f\r",
        "rm \u{1}",
        "rm",
        "rm ''",
        "rm -r d",
        "rm -rf d",
        "rm -i f",
        "mv f",
        "mv -n f g",
        "cp -r d e",
        "cp -a f g",
        "mkdir -m 700 d",
        "touch -d now f",
        "truncate -s +1 f",
        "truncate -s 1G f",
        "tee f",
        "tee f > g <<'EOF'\nEOF",
        "echo -n x > f",
        "echo -e x > f",
        "echo 'a\\nb' > f",
        "printf x > f",
        "echo hello",
        "cd d",
        "cd d && echo x",
        "cd",
        "cd - && rm f",
        "cd -P d && rm f",
        "apply_patch",
        "apply_patch <<'EOF' && rm f\nx\nEOF",
        "sed 's/a/b/' f",
        "sed -i s f",
        "sed -i -f x f",
        "sed -i --follow-symlinks 's/a/b/' f",
        "sed --debug -i 's/a/b/' f",
        "sed -i 'N' f g",
        "gsed -i 's/a/b/' f",
        "dd of=f",
        "",
        " ",
        "\n",
        "#",
    ] {
        assert_eq!(recognise(line, &utf8()), None, "{line:?}");
    }
    let long = |length: usize| format!("touch {}", "a".repeat(length - 6));
    assert!(recognise(&long(64 << 10), &utf8()).is_some());
    assert_eq!(recognise(&long((64 << 10) + 1), &utf8()), None);
    for (unit, fits) in [("f ", 127), ("\\f ", 63)] {
        assert!(recognise(&format!("rm {}", unit.repeat(fits)), &utf8()).is_some(), "{unit}");
        assert_eq!(recognise(&format!("rm {}", unit.repeat(fits + 1)), &utf8()), None, "{unit}");
    }
}

#[test]
fn the_environment_decides_what_is_plain() {
    let with = |name: &str, value: &str| Environment::new([("LC_ALL", "C.UTF-8"), (name, value)], 0o022);
    let ok = |line: &str, environment: &Environment| recognise(line, environment).is_some();
    assert!(ok("cd sub && rm f", &utf8()));
    assert!(
        !ok("cd sub && rm f", &with("CDPATH", "/srv")) && ok("cd ./sub && rm f", &with("CDPATH", "/srv"))
    );
    assert!(ok("sed 's/a/b/' -i f", &utf8()) && !ok("sed 's/a/b/' -i f", &with("POSIXLY_CORRECT", "")));
    let gbk = Environment::new([("LC_ALL", "zh_CN.GBK")], 0o022);
    assert!(ok("rm f", &gbk) && !ok("rm é", &gbk) && ok("rm é", &Environment::default()));
}

#[test]
fn the_recorded_lines_cut_and_mixed_stop_nothing() {
    let Some(cases) = records("cases/sed.jsonl") else { return };
    let lines: Vec<String> = cases.iter().map(|case| case["shell"].as_str().unwrap().to_owned()).collect();
    let mut dice = Dice::thrown();
    for _ in 0..20_000 {
        let generated = pair(&mut dice).command;
        let line = lines[usize::try_from(dice.below(lines.len() as u64)).unwrap()].as_str();
        let base = if dice.below(2) == 0 { line } else { &generated };
        let mut chars: Vec<char> = base.chars().collect();
        for _ in 0..=dice.below(3) {
            let at = usize::try_from(dice.below(chars.len() as u64 + 1)).unwrap();
            match dice.below(3) {
                0 => chars.truncate(at),
                1 => drop(chars.splice(at..at, pick(&mut dice, PIECES).chars())),
                _ => drop(chars.drain(at..(at + 1).min(chars.len()))),
            }
        }
        let line: String = chars.into_iter().collect();
        let _ = (recognise(&line, &utf8()), traps(&line, &utf8()));
    }
}

proptest! {
    #[test]
    fn no_line_stops_the_reader(line in "\\PC{0,80}|[ -~\n\t]{0,80}|(sed|cat|rm|echo|cd|tee) [-'\"\\\\$a/.;&<>{}\n =EOFi]{0,60}") {
        let _ = (recognise(&line, &utf8()), traps(&line, &utf8()));
    }
}
