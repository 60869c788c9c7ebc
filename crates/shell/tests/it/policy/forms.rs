//! The same commands in other clothes: what is asked about stays so, and ordinary work stays ordinary.

use cotenant_model::{Answer, CommandRule};
use cotenant_shell::policy::Verdict;

use super::{judged, judged_in, ordinary, rule, verdict};

/// Commands that change nothing by themselves.
const LOOKING: &[&str] = &[
    "ls",
    "ls -la src",
    "cat a b",
    "grep -rn x src",
    "rg x",
    "find . -name a",
    "git status",
    "git log --oneline",
    "sed -n 1,5p a",
    "awk '{print $1}' a",
    "sort a",
    "echo a",
    "cargo check",
    "node --version",
    "test -f a",
    "bash -c ls",
    "timeout 5 ls",
];

/// What may be added to a command, `@`, so that it changes something.
const ADDED: &[&str] = &[
    "@ > out",
    "@ >> out",
    "@ >| out",
    "@ &> out",
    "@ >& out",
    "@ 2> out",
    "@ 1<> out",
    "> out @",
    "@; touch x",
    "@ & touch x",
    "@ && touch x",
    "@ || touch x",
    "@ | tee x",
    "@ |& tee x",
    "@\ntouch x",
    "@ `touch x`",
    "@ $(touch x)",
    "@ \"$(touch x)\"",
    "@ ${a:-$(touch x)}",
    "@ $(($(touch x)))",
    "@ <(touch x)",
    "@ > >(tee x)",
    "@ <<E\n$(touch x)\nE",
    "@ <<< $(touch x)",
    "X=$(touch x) @",
    "PATH=. @",
    "LD_PRELOAD=./x.so @",
    "LC_ALL=C X=1 @",
    "(@; touch x)",
    "{ @; } > out",
    "if @; then touch x; fi",
    "while @; do touch x; done",
    "for i in $(touch x); do @; done",
    "case $(touch x) in a) @;; esac",
    "f() { touch x; }; f; @",
    "trap 'touch x' EXIT; @",
    "eval '@; touch x'",
    "! { @; touch x; }",
    "[[ -v 'a[$(touch x)]' ]]; @",
    "export PAGER='touch x'; @",
    "alias a=b; @",
    "exec 3> out; @",
    "cd src; @ > out",
    "( ( touch x ) ); @",
    "coproc touch x; @",
    "time touch x; @",
    "x=(1 $(touch x)); @",
    "a[$(touch x)]=1; @",
];

fn put(form: &str, command: &str) -> String {
    form.replace('@', command)
}

#[test]
fn nothing_that_is_added_to_a_command_slips_through() {
    let mut wrong = Vec::new();
    for command in LOOKING {
        assert_eq!(verdict(&judged(command)), "read-only", "{command}");
        for added in ADDED.iter().filter(|added| !(added.contains("'@") && command.contains('\''))) {
            let line = put(added, command);
            let allowed: Vec<CommandRule> = LOOKING
                .iter()
                .filter_map(|command| command.split(' ').next())
                .map(|program| rule(Answer::Allow, &format!("{program} *")))
                .collect();
            for rules in [&[][..], &allowed] {
                let found = verdict(&judged_in(".", rules, &line));
                // `bash -c ls $(…)` and its like are covered by no rule either.
                if matches!(found, "read-only" | "allowed") {
                    wrong.push(format!("{found}: {line}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn looking_in_other_forms_is_still_looking() {
    let mut wrong = Vec::new();
    for command in LOOKING {
        for form in [
            "@ 2>/dev/null",
            "@ 2>&1",
            "@ | head -5",
            "(@)",
            "{ @; }",
            "@; @",
            "@ && @ || @",
            "if @; then @; fi",
            "for i in 1 2; do @; done",
            "! @",
            "time @",
            "nice -n 5 @",
            "cd src && @",
            "LC_ALL=C; @",
            "# a comment\n@",
            "x=$(@); echo \"$x\"",
            "echo \"$(@)\"",
            "cat <(@)",
            "cat <<'E'\n$(touch x)\nE\n@",
        ] {
            let line = put(form, command);
            // An assignment of an upper-case name means something to programs.
            let expected = if form.starts_with("LC_ALL") { "ordinary" } else { "read-only" };
            if verdict(&judged(&line)) != expected {
                wrong.push(format!("{expected}: {line}: {:?}", judged(&line).verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ordinary_commands_in_other_forms_are_still_ordinary() {
    let mut wrong = Vec::new();
    for command in ordinary::commands().into_iter().filter(|command| !command.contains(['\n', '#', '&'])) {
        let mut forms =
            vec!["(@)", "{ @; }", "if true; then @; fi", "@ | cat", "cd src/.. && @", "x=1; @", "@;", " @ "];
        if !command.contains('\'') {
            forms.push("bash -c '@'");
        }
        for form in forms {
            let line = put(form, command);
            if matches!(judged(&line).verdict, Verdict::Ask { .. } | Verdict::Deny { .. }) {
                wrong.push(format!("{line}: {:?}", judged(&line).verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_floor_holds_in_every_form() {
    for command in
        ["sudo ls", "rm -rf /", "touch /etc/x", "echo a > .git/config", "git config --global a.b c"]
    {
        for form in [
            "@",
            "(@)",
            "( ( @ ) )",
            "{ @; }",
            "ls; @",
            "ls & @",
            "ls | @",
            "ls || @",
            "! @",
            "time @",
            "if @; then ls; fi",
            "if ls; then @; else ls; fi",
            "if ls; then ls; else @; fi",
            "while ls; do @; done",
            "until @; do ls; done",
            "for i in 1; do @; done",
            "for ((;;)); do @; done",
            "case x in a) ls;; *) @;; esac",
            "f() { @; }",
            "function f { @; }",
            "echo $(@)",
            "echo \"$(@)\"",
            "echo `@`",
            "x=$(@)",
            "cat <(@)",
            "ls > >(@)",
            "cat <<E\n$(@)\nE",
            "sh -c '@'",
            "bash -xec '@'",
            "env -i bash -c '@'",
            "eval '@'",
            "timeout 5 sh -c '@'",
            "xargs sh -c '@'",
            "find . -exec sh -c '@' \\;",
            "bash <<'E'\n@\nE",
            "trap '@' EXIT",
            "coproc @",
            "flock l -c '@'",
            "script -qc '@' log",
            "nohup bash -c '@' &",
            "[[ -n $(@) ]]",
            "(( $(@) ))",
            "echo ${x:=$(@)}",
            "ls\n\n@",
            "ls # x\n@",
            "l\\\ns; @",
        ] {
            let line = put(form, command);
            assert_eq!(verdict(&judged(&line)), "deny", "{line}: {:?}", judged(&line));
        }
    }
}
