//! The reported faults that are about what a command line may do, by their numbers.

use cotenant_model::Answer;

use super::{all, judged, judged_in, rule, verdict};

/// None of these runs unasked: a direct run asks first, a staged one asks about the diff.
#[track_caller]
fn not_automatic(lines: &[&str]) {
    for line in lines {
        let found = verdict(&judged(line));
        assert!(!matches!(found, "read-only" | "allowed"), "{line}: {found}");
    }
}

#[test]
fn c073_a_pattern_of_a_search_is_no_option() {
    not_automatic(&["rg --pre=./pre.sh hello", "rg hello --pre ./pre.sh"]);
    all("read-only", &["rg -- --pre=./pre.sh", "rg -e --pre=./pre.sh src"]);
}

#[test]
fn c113_sed_that_runs_commands() {
    not_automatic(&[
        "sed -n '1e touch pwned' f.txt",
        "sed 's/.*/touch pwned2/e' f.txt",
        "sed -e '1!b' -e 'e touch pwned3' f.txt",
    ]);
}

#[test]
fn c114_sed_that_writes_in_a_later_expression() {
    not_automatic(&[
        "sed -e 's/a/b/' -e '/x/w out.txt' n.txt",
        "sed -i 's/a/b/w out2.txt' n.txt",
        "sed --expression='s/a/b/' -e 'w out3.txt' n.txt",
        "sed -ne p --expression='w out3.txt' n.txt",
    ]);
}

#[test]
fn c116_letters_in_a_text_are_no_commands() {
    all("read-only", &["sed 's/text/e/g' f.txt", "sed 's/file/w x/' f.txt", "sed -n '/write e/p' f.txt"]);
    all("ordinary", &["sed -i 's/text/e/g' f.txt", "sed -i 's/file/w x/' f.txt"]);
}

#[test]
fn c118_c120_c121_what_reads_a_terminal_is_no_danger_to_files() {
    all("read-only", &["cat", "git log", "ls | head -1"]);
    all(
        "ordinary",
        &["read x; echo got", "printf x | less", "man ls | head -1", "read -r p < /dev/tty; echo $p"],
    );
    all("deny", &["sudo -k; sudo true"]);
}

#[test]
fn c126_the_working_directory_may_be_deleted_but_not_the_root() {
    assert_eq!(verdict(&judged_in("tmpd/x", &[], "rm -rf \"$PWD\"")), "ordinary");
    all("deny", &["rm -rf \"$PWD\"", "rm -rf .", "rm -rf ./", "rm -rf src/.."]);
}

#[test]
fn c129_recursive_deletes_inside_are_seen_and_outside_refused() {
    all("ordinary", &["rm -rf old"]);
    all("deny", &["rm -rf ../other"]);
}

#[test]
fn c130_exclamation_marks_mean_nothing() {
    all(
        "read-only",
        &["printf '%s' '!a'", "printf '%s' \"b!\"", "cat <<'E'\nc!\nE", "test 1 != 2 && echo ok"],
    );
    all("read-only", &["awk 'NR!=2' f"]);
}

#[test]
fn c132_an_allowed_prefix_lifts_nothing_behind_it() {
    let allowed = ["echo *", "ls *", "git branch *", "env *"].map(|pattern| rule(Answer::Allow, pattern));
    let parts = |line: &str| {
        let judgement = judged_in(".", &allowed, line);
        let found = verdict(&judgement);
        assert!(!matches!(found, "read-only" | "allowed"), "{line}: {found}");
        judgement.parts
    };
    assert_eq!(parts("echo hi\ntouch w1"), ["echo hi", "touch w1"]);
    assert_eq!(parts("echo x > w2"), ["echo x > w2"]);
    assert_eq!(parts("echo hi & touch w3"), ["echo hi", "touch w3"]);
    assert_eq!(parts("ls <(touch w4)"), ["touch w4", "ls <(…)"]);
    assert_eq!(parts("env touch w5"), ["env touch w5", "touch w5"]);
    assert_eq!(parts("echo `touch w6`"), ["touch w6", "echo `touch w6`"]);
    assert_eq!(parts("echo \"$(touch w7)\""), ["touch w7", "echo \"$(touch w7)\""]);
    assert_eq!(parts("echo a; touch w8"), ["echo a", "touch w8"]);
    assert_eq!(parts("X=1 env"), ["X=1 env"]);
    // What the human allowed with the rule, and what needs none.
    assert_eq!(verdict(&judged_in(".", &allowed, "git branch -D main")), "allowed");
    assert_eq!(verdict(&judged_in(".", &allowed, "git branch -D main; echo hi && ls src")), "allowed");
    let exact = [rule(Answer::Allow, "git branch")];
    assert_eq!(verdict(&judged_in(".", &exact, "git branch -D main")), "ordinary");
}

#[test]
fn c133_arguments_that_run_write_or_delete() {
    not_automatic(&[
        "find . -delete",
        "find . -exec touch z1 {} +",
        "find . -fprint z2",
        "sort -o z3 v.txt",
        "sort --compress-program sh v.txt",
        "rg --pre touch x",
        "uniq v.txt z4",
        "tar --to-command=touch -xf a",
        "git -c core.pager=touch\\ z5 log",
        "git diff --output=z6",
        "awk 'BEGIN{system(\"touch z7\")}'",
        "xargs touch",
    ]);
    all(
        "read-only",
        &["find . -name '*.rs'", "sort v.txt", "rg x", "uniq v.txt", "git log", "git diff", "xargs grep x"],
    );
}

#[test]
fn c135_a_rule_covers_what_was_shown() {
    let allowed = [rule(Answer::Allow, "python3 script.py")];
    assert_eq!(verdict(&judged_in(".", &allowed, "python3 script.py")), "allowed");
    for line in ["python3 -c 'open(\"y1\",\"w\")'", "node -e 1", "npx something", "python3 script.py x"] {
        assert_eq!(verdict(&judged_in(".", &allowed, line)), "ordinary", "{line}");
    }
}

#[test]
fn c138_c178_what_nobody_sees_is_never_automatic() {
    all(
        "ask",
        &[
            "ls \u{202e}x",
            "ls \u{200b}x",
            "ls # \u{1b}[2K",
            "rm -rf keep \u{1b}[1A\u{1b}[2Kls",
            "ls\u{7f}",
            "ls \u{9b}x",
            "ls\r",
            "ls\0",
            "echo \u{e0041}",
        ],
    );
    // The floor holds all the same.
    all("deny", &["sudo ls # \u{202e}", "rm -rf /\r\n\nrm -rf /"]);
}

#[test]
fn c182_no_rule_lifts_the_floor() {
    let allowed = ["rm *", "bash *", "sh *"].map(|pattern| rule(Answer::Allow, pattern));
    for line in [
        "rm -rf /",
        "rm -rf ~",
        "rm -rf keep/../..",
        "bash -c 'rm -rf $HOME'",
        "mkfs.ext4 /dev/null",
        ":(){ :|:& };:",
        "bash -c \"bash -c 'rm -rf /'\"",
    ] {
        assert_eq!(verdict(&judged_in(".", &allowed, line)), "deny", "{line}");
    }
    assert_eq!(verdict(&judged_in(".", &allowed, "rm -rf keep")), "allowed");
}
