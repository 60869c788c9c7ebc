//! Git's sub-commands, one by one: those that read, those that write, and both in the clothes of wrappers.

use cotenant_shell::policy::GitUse::{self, None, Reads, Writes};

use super::judged;

#[rustfmt::skip]
const READING: &[&str] = &[
    "status", "status -sb", "log", "log --oneline -5", "diff", "diff --cached", "show HEAD", "rev-parse HEAD",
    "ls-files", "ls-tree HEAD", "cat-file -p HEAD", "blame a", "annotate a", "grep x", "shortlog", "describe",
    "rev-list HEAD", "merge-base a b", "name-rev HEAD", "for-each-ref", "show-ref", "count-objects", "var -l",
    "diff-tree HEAD", "diff-index HEAD", "diff-files", "whatchanged", "cherry", "check-ignore a", "check-attr a b",
    "version", "help", "--version", "range-diff a b", "show-branch", "ls-remote", "hash-object a",
    "branch", "branch -a", "branch -r", "branch -vv", "branch --list", "branch --list 'x*'", "branch --contains HEAD",
    "branch --merged", "branch --show-current", "branch --sort=-committerdate", "branch -l x",
    "tag", "tag -l", "tag -l 'v*'", "tag -n", "tag -n3", "tag --contains HEAD", "tag --points-at HEAD",
    "remote", "remote -v", "remote get-url origin", "remote show origin",
    "config --get a.b", "config --list", "config -l", "config get a.b", "config list", "config user.name",
    "reflog", "reflog show", "reflog HEAD", "reflog exists HEAD", "stash list", "stash show", "stash show -p",
    "worktree list", "notes", "notes list", "notes show", "bundle verify x", "submodule", "submodule status",
    "submodule summary", "bisect log", "apply --stat p", "apply --check p", "apply --numstat p", "apply --summary p",
    "symbolic-ref HEAD", "symbolic-ref --short HEAD", "lfs ls-files", "lfs env",
];

#[rustfmt::skip]
const WRITING: &[&str] = &[
    "add .", "commit -m x", "commit --amend", "checkout a", "checkout -- a", "switch a", "switch -c a", "restore a",
    "restore --staged a", "reset", "reset --hard", "rm a", "mv a b", "merge a", "rebase a", "cherry-pick a",
    "revert a", "pull", "fetch", "push", "clone x", "init", "clean -fdx", "gc", "prune", "repack", "am p", "apply p",
    "apply --index p", "apply --cached p", "apply --stat --apply p", "stash", "stash push", "stash pop", "stash drop",
    "stash apply", "stash clear", "stash -u", "branch x", "branch -d x", "branch -D x", "branch -m x", "branch -f x y",
    "branch --edit-description", "branch --set-upstream-to=x", "branch --unset-upstream", "branch --list -d x",
    "tag x", "tag -a x", "tag -d x", "tag -f x", "tag -s x", "tag -l -d x", "remote add a b", "remote remove a",
    "remote rename a b", "remote set-url a b", "remote prune a", "remote update", "config a.b c", "config --unset a.b",
    "config --add a.b c", "config --edit", "config -e", "config set a.b c", "config unset a.b", "config edit",
    "config --replace-all a.b c", "config --rename-section a b", "config --remove-section a",
    "reflog expire --all", "reflog delete HEAD@{0}", "worktree add x", "worktree remove x", "worktree prune",
    "notes add", "notes remove", "notes append", "bundle create x", "submodule update", "submodule add x",
    "submodule init", "submodule --quiet update", "submodule foreach ls", "bisect start", "bisect good", "bisect reset",
    "symbolic-ref HEAD a", "symbolic-ref -d HEAD", "symbolic-ref --delete HEAD", "update-ref a b", "update-index a",
    "read-tree HEAD", "write-tree", "commit-tree x", "mktree", "mktag", "filter-branch", "replace a b", "pack-refs",
    "hash-object -w a", "hash-object -w --stdin", "sparse-checkout set a", "maintenance run", "lfs pull", "lfs install",
    "unknown", "my-alias", "$x", "\"$x\"", "st*",
];

#[test]
fn each_sub_command_reads_or_writes() {
    let mut wrong = Vec::new();
    for (verbs, expected) in [(READING, Reads), (WRITING, Writes)] {
        for verb in verbs {
            for before in
                ["git", "/usr/bin/git", "git -C sub", "git --no-pager", "git -c a.b=c", "git --git-dir=.git"]
            {
                let line = format!("{before} {verb}");
                let found = judged(&line).git;
                if found != expected {
                    wrong.push(format!("{line}: {found:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_verb_is_found_behind_whatever_starts_it() {
    for (verbs, expected) in [(READING, Reads), (WRITING, Writes)] {
        for verb in verbs.iter().filter(|verb| !verb.contains(['\'', '*', '$'])) {
            for form in [
                "timeout 5 @",
                "nice -n 5 @",
                "env A=b @",
                "command @",
                "sh -c '@'",
                "bash -lc 'cd sub; @'",
                "eval '@'",
                "echo \"$(@)\"",
                "(cd sub && @)",
                "if @; then ls; fi",
                "nohup @ &",
                "ls | @",
                "f() { @; }; f",
                "cat <(@)",
                "bash <<'E'\n@\nE",
                "find . -exec sh -c '@' \\;",
            ] {
                let line = form.replace('@', &format!("git {verb}"));
                assert_eq!(judged(&line).git, expected, "{line}");
            }
            // Words that come from elsewhere may be any.
            assert_eq!(judged(&format!("ls | xargs git {verb}")).git, Writes, "xargs git {verb}");
        }
    }
}

#[test]
fn the_use_of_a_line_is_the_most_of_its_commands() {
    for (line, expected) in [
        ("ls; git status; git log", Reads),
        ("git status; git add .; git log", Writes),
        ("ls && make", None),
        ("echo git add .", None),
        ("# git add .\nls", None),
        ("cat <<'E'\ngit add .\nE", None),
        ("grep 'git push' README.md", None),
        ("man git", None),
        ("gitk; tig; git-lfs", None),
        ("git() { :; }; git add .", None),
    ] {
        let found: GitUse = judged(line).git;
        assert_eq!(found, expected, "{line}");
    }
}
