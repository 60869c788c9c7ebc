//! Tool by tool: the options that only look, and the options next to them that do more.

use super::{all, judged, verdict};

/// A tool, calls that change nothing, and calls that may.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("sort",
        &["a", "-u a b", "-rn a", "-k2,2n -t: a", "-t , -k 3 a", "--key=2 a", "--key 2 a", "-S 10M a", "-c a", "--check a", "--check=quiet a", "--reverse a", "-- -o", "--parallel=2 a"],
        &["-o out a", "-oout a", "-uo out a", "--output=out a", "--output out a", "--out=out a", "-T /tmp a", "--temporary-directory=x a", "--compress-program=x a", "--files0-from=x", "-k", "--rev a", "--reverse=1 a"]),
    ("uniq",
        &["a", "-c a", "-d", "-f 1 a", "-f1 a", "-w 3", "--skip-fields=1 a", "--all-repeated=separate a", "--group a"],
        &["a b", "-c a b", "-- a b", "--group --output x", "-o a"]),
    ("file",
        &["a", "-b a", "-bi a b", "-F : a", "--mime-type a", "-P indir=5 a"],
        &["-C", "-m magic a", "--magic-file=x a", "-Z a", "--compile", "-f list", "--files-from list"]),
    ("tree",
        &["", "src", "-L 2", "-aL 2 src", "-I target", "--dirsfirst", "--filelimit=9", "-P '*.rs'"],
        &["-o out", "-R -H . -L 1 -o x", "-oout", "--output x", "-R"]),
    ("date",
        &["", "+%s", "-u", "-u +%F", "-d tomorrow +%s", "--date=tomorrow", "--iso-8601=seconds", "-r a"],
        &["-s now", "--set=now", "--set now", "1201000026", "-f a", "--file=a", "-us now"]),
    ("jq",
        &[". a.json", "-r .x a", "-nr 1", "--arg a b .x", "--tab . a", "-e .x", "--slurp . a"],
        &["-f prog a", "--from-file prog a", "-L lib . a", "--slurpfile a b .", "--rawfile a b .", "-rf prog"]),
    ("iconv",
        &["-l", "-f latin1 -t utf8 a", "--from-code=latin1 a", "-c a"],
        &["-o out a", "--output=out a", "-oout a"]),
    ("xxd",
        &["a", "-l 16 a", "-p a", "-s 5 -l 5 a", "-c 8 a"],
        &["a b", "-r a b", "-r a", "-p a out", "-rp a"]),
    ("hostname",
        &["", "-f", "-I", "--fqdn"],
        &["new", "-b", "-F file", "--file=x", "-f new"]),
    ("printf",
        &["x", "'%s\\n' a b", "-- -v", "%d 1"],
        &["", "-v x y", "-vx y", "$x", "\"$x\" b"]),
    ("tokei",
        &["", "src", "-C", "-e target", "--files", "-t Rust", "--sort=code"],
        &["-o json --input x", "-i x", "--input=x", "--streaming"]),
    ("bat",
        &["a", "-p a", "-r 1:5 a", "--line-range=1:5 a", "--style=plain a"],
        &["--pager=x a", "--paging=always a", "--generate-config-file", "--diagnostic a", "-m x:y a"]),
    ("rg",
        &["x", "-n x src", "-i -g '*.rs' x", "-tg x", "-A3 x", "-A 3 x", "--glob='!x' y", "--json x", "-e --pre", "-- --pre", "--type-not rust x", "-uu x", "--hidden x", "-f patterns"],
        &["--pre=x y", "--pre x y", "--pre-glob=x y", "-z x", "--search-zip x", "--hostname-bin=x y", "--hyperlink-format=x y", "--gener man", "-nz x", "--type-add x y"]),
    ("fd",
        &["x", "-e rs", "-t f x src", "-H x", "-d 2 x", "--max-depth=2", "--extension rs"],
        &["-x rm", "-X rm", "--exec rm", "--exec-batch rm", "--exec=rm", "-Hx rm", "--base-directory=x y", "--search-path=x y", "--threads=2"]),
    ("find",
        &["", ".", "src lib -name x", "-L . -type f", ". -maxdepth 2 -print0", ". -newer a -o -size +1M", ". ! -name x", ". '(' -name a -o -name b ')'", ". -exec cat {} +", ". -printf '%p\\n'", ". -regextype posix-extended -regex x", ". -prune"],
        &[". -delete", ". -name x -delete", ". -exec touch {} +", ". -execdir rm {} ';'", ". -ok cat {} ';'", ". -okdir cat {} ';'", ". -fprint x", ". -fprint0 x", ". -fprintf x y", ". -fls x", "-files0-from x", ". -exec cat {}", ". -name", ". -unknown"]),
    ("sed",
        &["p a", "-n 5p a", "-e p -e d a", "-nE 's/(a)/\\1/p' a", "-s p a", "'s/w x/e/' a", "-z p a", "--expression=p a", "'/a/,/b/d' a", "'y/ew/we/' a", "-u p", "5q a", "'$!N;P;D' a"],
        &["-i p a", "-ip a", "-ni p a", "--in-place p a", "--in-place=.bak p a", "--in-pl p a", "-f x a", "--file=x a", "'w out' a", "'s/a/b/w out' a", "'s/a/b/e' a", "'1e ls' a", "e a", "'1!e' a", "'/x/W out' a", "p;e a", "-e p -e 'w x' a", "--expression='w x' a"]),
    ("awk",
        &["1 a", "'{print $1}' a", "-F: '{print $2}'", "-F , 1 a", "-v x=1 '{print x}' a", "'/a/ || /b/' a", "'{gsub(/a/, \"b\"); print}' a", "'NR % 2' a"],
        &["-f prog a", "'{system(\"x\")}'", "'{print > \"x\"}'", "'{print >> \"x\"}'", "'{print | \"x\"}'", "'\"x\" | getline'", "'{getline < \"x\"}'", "-i inplace 1 a", "-E prog", "-e 1 a", "-l ext 1", "'@include \"x\"'", "'{close(\"x\")}'", "-o 1", "-d a", "--source x"]),
    ("cargo",
        &["check", "check --all-targets", "check -p x", "tree", "tree -e features", "metadata --format-version 1", "pkgid", "--version", "+nightly check", "help"],
        &["build", "run", "test", "fmt", "fix", "install x", "check --config x=y", "check --target-dir x", "check --manifest-path x", "--config x check", "clean", "publish", "add x", "update", "c", "-C x check", "metadata -Z x"]),
    ("go",
        &["list ./...", "version", "env GOPATH", "vet ./...", "doc fmt", "list -m all"],
        &["build", "run .", "test ./...", "env -w A=b", "env -u A", "generate", "vet -vettool=x", "list -toolexec=x", "list -exec x", "mod tidy", "get x", "fmt"]),
    ("npm",
        &["ls", "list --depth=0", "view x", "outdated", "root -g", "--version", "-v", "explain x"],
        &["install", "i", "ci", "run build", "test", "exec x", "config set a b", "publish", "audit fix", "ls --prefix=x --script-shell=y", "update", "link"]),
    ("pip",
        &["list", "show x", "freeze", "check", "--version"],
        &["install x", "uninstall x", "download x", "wheel x", "cache purge", "list --log x", "freeze -r x", "config set a b"]),
    ("env", &[""], &["A=b ls", "-i A=b true", "-u A ls", "-C / ls", "-S 'touch x'"]),
    ("set", &["-e", "-euo pipefail", "+x", "-x"], &["", "-- a", "-o posix", "-k", "-a", "-eB"]),
    ("test", &["-f a", "a = b", "-n \"$x\"", "! -e a", "1", "1 -eq 1"], &["-v x", "-v 'a[0]'", "a -eq 1", "$x $y", "-R x", "$x", "-n $x", "$x = y", "-f *", "-n $(ls)", "x = \"$@\""]),
    ("bash", &["-c ls", "-c 'cat a | head'", "-ec 'ls; pwd'"], &["x.sh", "-c 'touch x'", "-ic ls", "-s", "--rcfile x -c ls", "--init-file x -c ls", "-c \"$x\"", "-O extglob -c ls", "+O x -c ls"]),
    ("xargs", &["cat", "-0 grep x", "-n 1 wc -l", "-I {} cat {}", "-r ls"], &["", "rm", "sort", "sh -c 'rm $0'", "-I {} sh -c {}", "sed p", "find", "-n $x cat", "git log", "touch"]),
    ("timeout", &["5 ls", "-k 1 5 ls", "-s KILL 5 ls", "--signal=KILL 5 ls", "--kill-after 1 5 ls"], &["5 touch x", "5 ./ls", "$t ls", "5 sh -c 'rm x'"]),
    ("nice", &["ls", "-n 5 ls", "--adjustment 5 ls", "-n5 ls"], &["touch x", "-n 5 make"]),
    ("command", &["-v ls", "-V ls", "ls", "cat a"], &["touch x", "-p touch x", "$x"]),
    ("git",
        &["status", "log -p", "diff a b", "show HEAD~1", "-C sub log", "--no-pager log", "-P diff", "blame a", "branch", "tag", "stash list", "remote -v", "remote get-url origin", "rev-parse HEAD", "describe --tags", "ls-files -o --exclude-standard", "grep x", "config --get a.b", "worktree list --porcelain", "cat-file -p HEAD", "shortlog -s", "diff --stat=80", "log --format=%h", "log -5", "log -n 5", "merge-base a b"],
        &["--git-dir=.git log", "-c a=b log", "--exec-path=x log", "-p log", "--paginate log", "--config-env=a=B log", "log --output=x", "diff --output x", "diff --ext-diff", "log --textconv", "cat-file --textconv a", "cat-file --filters a", "grep -O x", "grep --open-files-in-pager=x y", "remote show origin", "remote update", "ls-remote", "archive HEAD", "fsck", "format-patch -1", "hash-object -w a", "gc", "difftool", "bisect log", "log --unknown", "stash show --ext-diff", "diff --outp=x", "help log", "--bare log"]),
];

#[test]
fn each_tool_with_its_options() {
    let mut wrong = Vec::new();
    for (tool, looks, more) in ROWS {
        for (arguments, expected) in
            looks.iter().map(|it| (it, "read-only")).chain(more.iter().map(|it| (it, "ordinary")))
        {
            let line = format!("{tool} {arguments}");
            let found = judged(line.trim_end());
            if verdict(&found) != expected {
                wrong.push(format!("{expected}: {line}: {:?}", found.verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_look_is_a_look_by_the_systems_full_name_and_by_no_other() {
    for (tool, looks, _) in ROWS.iter().filter(|(tool, ..)| !matches!(*tool, "set" | "command")) {
        let line = format!("{tool} {}", looks[0]);
        for (place, looks) in [
            ("/bin/", true),
            ("/usr/bin/", true),
            ("./", false),
            ("/tmp/", false),
            ("bin/", false),
            ("~/bin/", false),
        ] {
            let found = judged(&format!("{place}{line}"));
            // A wrapper is judged by what it starts, wherever it comes from only as a program.
            assert_eq!(verdict(&found) == "read-only", looks, "{place}{line}: {found:?}");
        }
    }
}

#[test]
fn nothing_of_a_look_is_left_once_its_name_is_a_functions() {
    for (tool, looks, _) in ROWS {
        let line = format!("{tool}() {{ touch x; }}; {tool} {}", looks[0]);
        assert_ne!(verdict(&judged(&line)), "read-only", "{line}");
    }
}

#[test]
fn every_look_may_be_written_to_nowhere_but_to_no_file() {
    for (tool, looks, _) in ROWS.iter().filter(|(tool, ..)| *tool != "set") {
        for arguments in *looks {
            let line = format!("{tool} {arguments}");
            for (redirect, expected) in [
                ("> /dev/null", "read-only"),
                ("2>/dev/null", "read-only"),
                ("2>&1", "read-only"),
                ("&> /dev/null", "read-only"),
                ("< in", "read-only"),
                ("> out", "ordinary"),
                (">> src/out", "ordinary"),
                ("2> err", "ordinary"),
                ("> \"$x\"", "ordinary"),
                ("> /dev/null/../x", "deny"),
                ("> /etc/out", "deny"),
                ("> .git/config", "deny"),
            ] {
                let line = format!("{line} {redirect}");
                assert_eq!(verdict(&judged(&line)), expected, "{line}: {:?}", judged(&line));
            }
        }
    }
}

#[test]
fn an_option_behind_a_wrapped_commands_name_is_the_commands_own() {
    all("deny", &["command sudo ls -v", "command rm -rf / -V", "command touch /etc/x -v"]);
    all("ordinary", &["command rm x -v", "command cp a b -v", "./timeout 5 ls", "/tmp/nice ls", "./env ls"]);
    all("read-only", &["command -v rm", "command -V touch", "command ls -v", "[ -f ~/x ]", "[ \"$x\" = y ]"]);
}
