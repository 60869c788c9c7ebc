//! Every effect of two hundred mutating commands: the same as in a plain shell, and taken back byte for byte.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{run, sh};
use crate::fixture::{Fixture, fact};
use serde_json::json;

const SET_UP: &str = r#"
mkdir -p src docs sub/deep/x hollow
printf 'alpha\nbeta\ngamma\n' > src/a.txt; printf 'beta\ndelta\ndelta\n' > src/b.txt
printf 'def f():\n    return 1\n' > src/main.py; printf 'fn  main( ) {}\n' > src/lib.rs
printf 'read me\n' > 'docs/read me.txt'; printf 'deep\n' > sub/deep/x/y.txt
printf '#!/bin/sh\necho run\n' > run.sh; chmod 755 run.sh; ln -s src/a.txt link
printf '\x00\x01\x02\xff\xfe\x00bin' > data.bin; printf 'one\r\ntwo\r\n' > crlf.txt
printf '# Notes\n\ttext\n' > notes.md; seq 1 100 > numbers.txt; : > empty
printf 'id,name\n1,a\n2,b\n' > table.csv
printf '{\n  "name": "p",\n  "version": "1.0.0"\n}\n' > package.json
printf 'all: gen\n\t@echo all > all.out\ngen:\n\t@printf gen > gen.out\n' > Makefile
printf 'src/a.txt\nsrc/b.txt\n' > list.txt
printf -- '--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,3 +1,3 @@\n alpha\n-beta\n+BETA\n gamma\n' > change.diff
printf -- '--- src/a.txt\n+++ src/a.txt\n@@ -1,3 +1,3 @@\n alpha\n-beta\n+BETA\n gamma\n' > change0.diff
printf -- '--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,3 +1,3 @@\n alpha\n-bata\n+beta\n gamma\n' > reverse.diff
printf -- 'diff --git a/made b/made\nnew file mode 100755\n--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+made\n' > create.diff
mkdir t && printf tar > t/inner && tar cf fixture.tar t && rm -r t; printf packed | gzip -n > packed.gz
printf 'target/\n*.log\n' > .gitignore
git init -q . && git add -A && git -c user.name=t -c user.email=t@t commit -qm base
"#;

/// What stands at a path: kind, permission bits of files and bytes. Names and bytes as they are.
type Tree = BTreeMap<Vec<u8>, (char, u32, Vec<u8>)>;

fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            if name == b".git" || path.file_name().unwrap().as_bytes().starts_with(b".cotenant-") {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let mode = meta.permissions().mode() & 0o7777;
            let seen = if meta.is_symlink() {
                ('l', 0, std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else if meta.is_dir() {
                open.push(path.clone());
                ('d', mode, Vec::new())
            } else {
                ('f', mode, std::fs::read(&path).unwrap())
            };
            found.insert(name, seen);
        }
    }
    found
}

/// What differs, in words.
fn difference(one: &Tree, other: &Tree) -> String {
    let show = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let keys: std::collections::BTreeSet<&Vec<u8>> = one.keys().chain(other.keys()).collect();
    let differs = keys.into_iter().filter(|key| one.get(*key) != other.get(*key));
    let brief = |seen: Option<&(char, u32, Vec<u8>)>| {
        seen.map(|(kind, mode, bytes)| format!("{kind}{mode:o} {} bytes", bytes.len()))
    };
    differs
        .map(|key| format!("{}: {:?} / {:?}", show(key), brief(one.get(key)), brief(other.get(key))))
        .collect::<Vec<_>>()
        .join("; ")
}

fn commands() -> impl Iterator<Item = String> {
    let lines = include_str!("mutating.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with("# ")).map(|line| line.replace("\\n", "\n"))
}

/// The first word of a command that this machine has not, of those that the corpus needs.
fn missing(command: &str) -> Option<&'static str> {
    let needed = ["npm", "node", "rustfmt", "cpio", "perl", "python3", "openssl", "patch"];
    let found = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
    };
    needed.into_iter().find(|program| command.starts_with(program) && !found(program))
}

fn plain(root: &Path, command: &str) -> Option<i32> {
    let mut shell = Command::new("bash");
    shell
        .args(["-c", command])
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    shell.status().unwrap().code()
}

/// A directory with the workspace's beginning, from which each command gets its own.
fn beginning() -> Fixture {
    let base = Fixture::new();
    sh(&base, SET_UP);
    base
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").args(["-a", "--"]).arg(from.join(".")).arg(to).status().unwrap();
    assert!(done.success());
}

/// What is wrong with how a command was carried out and taken back; `None` where nothing is.
fn wrong(base: &Path, command: &str) -> Option<String> {
    let (fixture, twin) = (Fixture::new(), Fixture::new());
    copy(base, &fixture.path("."));
    copy(base, &twin.path("."));
    let before = tree(&fixture.path("."));
    let expected_exit = plain(&twin.path("."), command);
    let said = fixture.call("run_command", json!({"command": command}));
    let fail = |what: String| {
        let answer = said.text.lines().take(3).collect::<Vec<_>>().join(" | ");
        Some(format!("{command:?}: {what}\n  {answer}"))
    };
    if said.is_error {
        return fail("refused".to_owned());
    }
    let (after, expected) = (tree(&fixture.path(".")), tree(&twin.path(".")));
    if after != expected {
        return fail(format!("not as a shell leaves it (here / shell): {}", difference(&after, &expected)));
    }
    if fact(&said.text, "exit") != expected_exit.map(|code| code.to_string()) {
        return fail(format!("the shell's exit is {expected_exit:?}"));
    }
    if after == before {
        return None;
    }
    let undone = fixture.call("undo", json!({}));
    let back = tree(&fixture.path("."));
    (back != before).then(|| {
        fail(format!("not taken back (now / before): {} {}", difference(&back, &before), undone.text))
    })?
}

/// Carries out every `PARTS`th command, from the `part`th on.
fn carried_out(part: usize) {
    let base = beginning();
    let (mut ran, mut found) = (0, Vec::new());
    for command in commands().skip(part).step_by(PARTS) {
        match missing(&command) {
            Some(program) => println!("SKIP {command:?}: no {program}"),
            None => {
                ran += 1;
                found.extend(wrong(&base.path("."), &command));
            }
        }
    }
    assert!(found.is_empty(), "{} of {ran}:\n{}", found.len(), found.join("\n"));
}

/// The corpus is carried out in so many tests.
const PARTS: usize = 8;

#[test]
fn every_effect_is_captured_and_taken_back_1() {
    carried_out(0);
}

#[test]
fn every_effect_is_captured_and_taken_back_2() {
    carried_out(1);
}

#[test]
fn every_effect_is_captured_and_taken_back_3() {
    carried_out(2);
}

#[test]
fn every_effect_is_captured_and_taken_back_4() {
    carried_out(3);
}

#[test]
fn every_effect_is_captured_and_taken_back_5() {
    carried_out(4);
}

#[test]
fn every_effect_is_captured_and_taken_back_6() {
    carried_out(5);
}

#[test]
fn every_effect_is_captured_and_taken_back_7() {
    carried_out(6);
}

#[test]
fn every_effect_is_captured_and_taken_back_8() {
    carried_out(7);
}

#[test]
fn the_corpus_has_two_hundred_commands_that_can_run_here() {
    let ran = commands().filter(|command| missing(command).is_none()).count();
    assert!(ran >= 200, "{ran}");
}

#[test]
fn what_a_command_did_is_one_change_of_its_agent() {
    let fixture = Fixture::new();
    sh(&fixture, SET_UP);
    let said = run(&fixture, "for f in src/*.txt; do echo more >> $f; done; mv run.sh go.sh; rm -r sub");
    assert_eq!(fact(&said, "mode").as_deref(), Some("staged"));
    let lines: Vec<&str> = said.lines().skip(1).collect();
    for line in
        ["M src/a.txt +1 -0", "M src/b.txt +1 -0", "R run.sh -> go.sh", "D sub/deep/x/y.txt +0 -1", "D sub/"]
    {
        assert!(lines.contains(&line), "{line}: {said}");
    }
    assert_eq!(fixture.changes().len(), 1);
    let history = fixture.ok("history", json!({}));
    assert!(history.contains("agent=agent-a tool=run_command"), "{history}");
}
