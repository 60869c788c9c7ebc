//! The parts of command lines: every command, wherever it hides, and what is not seen.

use cotenant_shell::policy::GitUse;

use super::{all, judged, verdict};

#[track_caller]
fn parts(line: &str, expected: &[&str]) {
    let judgement = judged(line);
    assert_eq!(judgement.parts, expected, "{line}: {judgement:?}");
}

#[test]
fn every_command_is_a_part() {
    parts("a; b & c\nd", &["a", "b", "c", "d"]);
    parts("a | b |& c && d || e", &["a", "b 2>& 1", "c", "d", "e"]);
    parts("(a; { b; })", &["a", "b"]);
    parts("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]);
    parts("while a; do b; done", &["a", "b"]);
    parts("for x in 1; do a; done > out", &["a", "> out"]);
    parts("for ((i=0; i<3; i++)); do a; done", &["((i=0))", "((i<3))", "((i++))", "a"]);
    parts("case $x in a|b) c;; *) d;; esac", &["c", "d"]);
    parts("(case $x in (a) b;; esac) | c", &["b", "c"]);
    parts("f() { a; }; f", &["f()", "a", "f"]);
    parts("coproc a b", &["a b"]);
    parts("time a", &["a"]);
    parts("! a", &["a"]);
    parts("[[ -f $(a) ]] && b", &["a", "[[ -f $(a) ]]", "b"]);
    parts("(( $(a) ))", &["a", "(($(a)))"]);
    parts("X=1 a 2>/dev/null <in", &["X=1 a 2> /dev/null < in"]);
    parts("a <<'E' | b\ntext; c\nE\nd", &["a <<'E'", "b", "d"]);
    parts("a <<-E\n\t$(b)\n\tE", &["b", "a <<E"]);
    parts("a <<X <<'Y'\n`b`\nX\n`c`\nY", &["b", "a <<X <<'Y'"]);
}

#[test]
fn commands_in_words_are_parts() {
    parts(
        "a $(b $(c)) `d` \"$(e)\" <(f) >(g)",
        &["c", "b $(c)", "d", "e", "f", "g", "a $(b $(c)) `d` \"$(e)\" <(…) >(…)"],
    );
    parts("a ${x:-$(b)} $((1+$(c))) $[$(d)]", &["b", "c", "d", "a ${x:-$(b)} $((1+$(c))) $[$(d)]"]);
    parts("x=$(a) b", &["a", "x=$(a) b"]);
    parts("x=(1 $(a)) y[$(b)]=2", &["a", "b", "x=(1 $(a)) y[$(b)]=2"]);
    parts(
        "a \"$(cat <<'EOF'\nit's (a text\nEOF\n)\"",
        &["cat <<'EOF'", "a \"$(cat <<'EOF'\nit's (a text\nEOF\n)\""],
    );
    parts("echo '$(a)' \\$\\(b\\)", &["echo '$(a)' \\$\\(b\\)"]);
    parts("echo \"\\$(a)\" \"`b \\`c\\``\"", &["c", "b `c`", "echo \"\\$(a)\" \"`b \\`c\\``\""]);
}

#[test]
fn wrappers_start_parts() {
    parts("sh -c 'a; b'", &["sh -c 'a; b'", "a", "b"]);
    parts("bash -euo pipefail -c 'a' name", &["bash -euo pipefail -c 'a' name", "a"]);
    parts("bash -lc \"sh -c 'a'\"", &["bash -lc \"sh -c 'a'\"", "sh -c 'a'", "a"]);
    parts("env -i A=1 -u B a b", &["env -i A=1 -u B a b", "a b"]);
    parts("env -S 'a b' c", &["env -S 'a b' c", "a b c"]);
    parts("timeout -k 5 10 nice -n 5 a", &["timeout -k 5 10 nice -n 5 a", "nice -n 5 a", "a"]);
    parts("xargs -0 -n 1 -I {} a {}", &["xargs -0 -n 1 -I {} a {}", "a {}"]);
    parts(
        "find . -exec a {} \\; -o -execdir b {} +",
        &["find . -exec a {} \\; -o -execdir b {} +", "a {}", "b {}"],
    );
    parts("command a; builtin b; exec c", &["command a", "a", "builtin b", "b", "exec c", "c"]);
    parts("stdbuf -oL a; setsid b; nohup c &", &["stdbuf -oL a", "a", "setsid b", "b", "nohup c", "c"]);
    parts("flock l a; flock l -c 'b c'", &["flock l a", "a", "flock l -c 'b c'", "b c"]);
    parts("eval 'a;' b", &["eval 'a;' b", "a", "b"]);
    parts("eval \"tou\"\"ch x\"", &["eval \"tou\"\"ch x\"", "touch x"]);
    parts("bash <<'E'\na\nb\nE", &["bash <<'E'", "a", "b"]);
    parts("trap 'a' EXIT", &["trap 'a' EXIT", "a"]);
    parts("script -qc 'a' log", &["script -qc 'a' log", "a"]);
    parts("watch -n 1 'a | b'", &["watch -n 1 'a | b'", "a", "b"]);
    parts("uv run a; npx b; poetry run c", &["uv run a", "a", "npx b", "b", "poetry run c", "c"]);
    parts(
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/a",
        &["/lib64/ld-linux-x86-64.so.2 /usr/bin/a", "/usr/bin/a"],
    );
    parts("git bisect run a b", &["git bisect run a b", "a b"]);
    parts("env", &["env"]);
    parts("a=tou; b=ch; bash -c \"$a$b x\"", &["a=tou", "b=ch", "bash -c \"$a$b x\"", "touch x"]);
}

#[test]
fn what_is_not_seen_is_said() {
    for line in [
        "$x",
        "a $x",
        "a `b`",
        "{a,b}",
        "eval $x",
        "sh -c \"$x\"",
        "curl u | sh",
        "bash",
        "source f",
        ". ./f",
        "a > $x",
        "cat <<E\n$x\nE",
        "xargs rm",
        "a <(b)",
        "((x))",
        "echo $'a'$x",
    ] {
        assert!(judged(line).unseen, "{line}");
    }
    for line in
        ["a b 'c $d'", "ls *.rs", "a > b", "cat <<'E'\n$x\nE", "a ~/b", "bash f.sh", "a {} \\;", "echo a{b}c"]
    {
        assert!(!judged(line).unseen, "{line}");
    }
}

#[test]
fn what_git_does_is_found_behind_wrappers() {
    for (line, expected) in [
        ("ls", GitUse::None),
        ("echo git commit", GitUse::None),
        ("git status", GitUse::Reads),
        ("git", GitUse::Reads),
        ("git -C sub --no-pager log", GitUse::Reads),
        ("git branch -a", GitUse::Reads),
        ("git branch new", GitUse::Writes),
        ("git branch -avd x", GitUse::Writes),
        ("git tag", GitUse::Reads),
        ("git tag -l -d x", GitUse::Writes),
        ("git tag v1", GitUse::Writes),
        ("git stash", GitUse::Writes),
        ("git stash list", GitUse::Reads),
        ("git commit -m x", GitUse::Writes),
        ("git add .", GitUse::Writes),
        ("git checkout -- .", GitUse::Writes),
        ("git restore --staged f", GitUse::Writes),
        ("git fetch", GitUse::Writes),
        ("git worktree list", GitUse::Reads),
        ("git worktree add x", GitUse::Writes),
        ("git config user.name", GitUse::Reads),
        ("git config user.name x", GitUse::Writes),
        ("git apply --check p", GitUse::Reads),
        ("git apply p", GitUse::Writes),
        ("git $x", GitUse::Writes),
        ("git remote -v", GitUse::Reads),
        ("git remote add o u", GitUse::Writes),
        ("git whatever", GitUse::Writes),
        ("/usr/bin/git commit", GitUse::Writes),
        ("env A=1 git commit", GitUse::Writes),
        ("sh -c 'cd x && git commit'", GitUse::Writes),
        ("ls | xargs git add", GitUse::Writes),
        ("xargs git log", GitUse::Writes),
        ("echo $(git rev-parse HEAD)", GitUse::Reads),
        ("git status && git push", GitUse::Writes),
        ("git commit \u{202e}", GitUse::Writes),
        ("git commit 'x", GitUse::Writes),
        ("ls 'x", GitUse::None),
    ] {
        assert_eq!(judged(line).git, expected, "{line}");
    }
}

#[test]
fn repositories_outside_are_asked_about() {
    all(
        "ask",
        &[
            "git -C /home/dev/outside status",
            "git -C ../x status",
            "git -C $OUT status",
            "git --git-dir=/home/dev/outside/.git status",
            "git --git-dir=$OUT/.git status",
            "git --git-dir /x status",
            "git --work-tree=/x status",
            "GIT_DIR=/x/.git git status",
            "GIT_DIR=$OUT/.git git status",
            "GIT_WORK_TREE=.. git status",
            "cd /home/dev/outside && git status",
            "cd $OUT && git commit -m x",
            "sh -c 'git -C /x log'",
        ],
    );
    all(
        "read-only",
        &[
            "git -C sub status",
            "git -C /home/dev/project/sub log",
            "cd sub && git status",
            "cd sub && git -C .. diff",
        ],
    );
    all(
        "ordinary",
        &["git --git-dir=.git status", "git clone https://x/y /tmp/y", "git -C /tmp/y log > log"],
    );
}

#[test]
fn protected_files_are_not_shown_unasked() {
    all(
        "ask",
        &[
            "cat .env",
            "head -5 < .env",
            "grep KEY .env.local",
            "cd config && cat ../.env",
            "cat sub/id_rsa",
            "sed -n 1p .npmrc",
        ],
    );
    all(
        "read-only",
        &["cat .git/config", "cat .venv/pyvenv.cfg", "ls .claude", "cat .gitignore", "grep env src/env.rs"],
    );
}

#[test]
fn what_is_read_in_two_ways_is_not_read_at_all() {
    all(
        "ask",
        &[
            "echo \"${x:-'}\"; touch w; echo \"'}\"",
            "!(touch w)x",
            "echo +(touch w)",
            "echo 'open",
            "echo \"open",
            "echo $(open",
            "echo `open",
            "echo )",
            "if true; then",
            "cat <<E\nopen",
            "cat <<$'E'\nx\nE",
            "cat <<\"a b\"\nx\na b",
            "((cat <<E\n'\nE\n); touch w; echo ')",
            "select x in a; do b; done",
            "x=<(touch w)",
            "echo $((cat f) | wc)",
            "a \\",
            "x[ # ]; touch w",
            "x[; touch w; y]=1",
        ],
    );
    // A backslash joins lines of a body: here the tag is written in two.
    parts("cat <<E\nE\\\n\ntouch w\nE", &["cat <<E", "touch w", "E"]);
    parts("cat <<E\nfoo\\\nE\ntouch w\nE", &["cat <<E"]);
    parts("cat <<'E'\nfoo\\\nE\ntouch w", &["cat <<'E'", "touch w"]);
    // The quote behind an escaped `$`, or behind the process number, is a plain one.
    parts("echo \\$'a\\'; touch w #'", &["echo \\$'a\\'", "touch w"]);
    parts("echo $$'a\\'; touch w #'", &["echo $$'a\\'", "touch w"]);
    parts("tou\\\nch w", &["touch w"]);
    parts("echo a#b # c; d\ne", &["echo a#b", "e"]);
    assert_eq!(verdict(&judged("touch\u{a0}/etc/x")), "ordinary");
}

#[test]
fn two_brackets_are_arithmetic_only_where_they_touch() {
    parts("((1 + 2))", &["((1 + 2))"]);
    parts("( (a) )", &["a"]);
    parts("((a); b)", &["a", "b"]);
    parts("((a) )", &["a"]);
    parts("( (a); (b) ) && c", &["a", "b", "c"]);
    parts("(( (1) ))", &["(((1)))"]);
    all("deny", &["( (sudo ls) )", "((sudo ls); ls)", "((sudo ls) )", "( ( ( sudo ls ) ) )"]);
}
