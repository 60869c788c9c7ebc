//! The seeds of the fuzz targets: inputs that each make a parser or the placement answer otherwise, found by changing patches
//! at random and keeping what is new. `COTENANT_SEEDS=write` searches anew.

use std::collections::BTreeSet;
use std::path::PathBuf;

use cotenant_text::patch::{BinaryHunk, FilePatch, Hunk, Op, apply, parse_bytes};
use cotenant_text::{Break, Form, Tag};

use super::placement::ask;

/// The file that patches are tried on.
const RAW: &[u8] = b"a\nb\nc\ndef f():\n    d\n    d\r\ne\n\na\nb";

const GRAMMARS: [(&str, &[&str]); 3] = [("unified", UNIFIED), ("envelope", ENVELOPE), ("blocks", BLOCKS)];

const UNIFIED: &[&str] = &[
    "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
    "--- a/f\n+++ b/f\n@@ -5,2 +5,2 @@ def f():\n-    d\n+    D\n     d\r\n",
    "diff --git a/f b/f\nindex 1234567..89abcde 100644\n--- a/f\n+++ b/f\n@@ -9,2 +9,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n",
    "diff --git a/f b/g\nold mode 100644\nnew mode 100755\nsimilarity index 90%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -7 +7 @@\n-e\n+E\n",
    "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+x\n+y\n",
    "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
    "diff --git a/f b/h\ncopy from f\ncopy to h\n",
    "diff --git a/b b/b\nindex 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\nnew file mode 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\nliteral 0\nHcmV?d00001\n\n",
    "diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nnew file mode 120000\n--- /dev/null\n+++ \"b/\\303\\244\"\n@@ -0,0 +1 @@\n+t\n\\ No newline at end of file\n",
    "From 1 Mon Sep 17 00:00:00 2001\nSubject: x\n---\n f | 2 +-\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n-- \n2.43.0\n",
    "cd sub && git apply -p1 <<'EOF'\n--- a/f\n+++ b/f\n@@ -3,0 +4 @@\n+new\nEOF\n",
    "```diff\n--- f\t2026-11-30 10:00:00\n+++ f\t2026-11-30 10:00:01\n@@ ... @@\n-c\n+C\n```\n",
    "{\"patch\": \"--- a/f\\n+++ b/f\\n@@ -1 +1 @@\\n-a\\n+A\\n\"}",
    "diff --cc f\n@@@ -1,1 -1,1 +1,1 @@@\n--a\n++b\n",
    "diff --git a/s b/s\nindex 1..2 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n",
    "Binary files a/f and b/f differ\n",
];

const ENVELOPE: &[&str] = &[
    "*** Begin Patch\n*** Add File: n\n+x\n+\n*** End Patch\n",
    "*** Begin Patch\n*** Delete File: f\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+B\n c\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@ def f():\n-    d\n+    D\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: f\n@@\n+last\n*** End of File\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: f\n@@ class A\n@@ def f():\n+    new\n@@ -7,1 +8,1 @@\n-e\n+E\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: f\n-c\n+C\n\n@@\n e\n-\n+x\n*** End of File\n*** End Patch\n",
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\nc\n-def f():\n+def g():\n*** End Patch\nEOF\n",
    "\"*** Begin Patch\\n*** Update File: f\\n@@\\n-1|a\\n+1|A\\n*** End Patch\"",
    "*** Begin Patch\r\n*** Update File: f\r\n@@\r\n-a\r\n+A\r\n*** End Patch\r\n",
];

const BLOCKS: &[&str] = &[
    "f\n<<<<<<< SEARCH\na\nb\nc\n=======\na\nB\nc\n>>>>>>> REPLACE\n",
    "`f`:\n```\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n```\n",
    "f\n------- SEARCH\n:start_line:5\n-------\n    d\n=======\n    D\n+++++++ REPLACE\n",
    "f\n<<<<<<< SEARCH>\na\n=======\n>>>>>>> REPLACE\n\n<<<<<<< SEARCH\nc\n=======\nC\n>>>>>>> REPLACE\n",
    "```python\nf\n<<<<< SEARCH\ne\n=====\ne\nnew\n>>>>> REPLACE\n```\n",
    "f\n<<<<<<< SEARCH\n\\=======\nb\n=======\n\\>>>>>>> REPLACE\n>>>>>>> REPLACE\n",
    "f\r\n<<<<<<< SEARCH\r\na\r\n=======\r\nA\r\n>>>>>>> REPLACE\r\n",
    "{\"input\": \"f\\n<<<<<<< SEARCH\\na\\n=======\\nA\\n>>>>>>> REPLACE\\n\"}",
];

/// What an input makes the code do, coarsely: the refusal, or the shape of what was read and where it landed.
fn behaviour(patch: &[u8]) -> String {
    let patch = match parse_bytes(patch, &Default::default()) {
        Ok(patch) => patch,
        Err(refused) => return format!("refused: {}", without_quotes(&refused.what)),
    };
    let files: Vec<String> = patch.files.iter().take(3).map(shape).collect();
    format!("{} {} {}", patch.grammar, patch.cd.is_some(), files.join(" | "))
}

fn without_quotes(what: &str) -> String {
    what.split('`').step_by(2).collect()
}

fn shape(file: &FilePatch) -> String {
    let op = match file.op {
        Op::Add => "add",
        Op::Delete => "delete",
        Op::Update => "update",
        Op::Rename { .. } => "rename",
        Op::Copy { .. } => "copy",
    };
    let binary = file.binary.as_ref().map(|binary| {
        let kind = |hunk: &BinaryHunk| matches!(hunk, BinaryHunk::Literal(_));
        (
            kind(&binary.forward),
            binary.reverse.as_ref().map(kind),
            binary.old_id.is_some(),
            binary.new_id.is_some(),
        )
    });
    let landed = match apply(RAW, &form(), &file.hunks, &[]) {
        Ok(applied) => {
            applied.landed.iter().take(2).map(|l| format!("{:?}{}", l.level, l.drift.signum())).collect()
        }
        Err(misfit) => {
            misfit.misses.iter().take(2).map(|m| format!("{}{}", m.cause, m.suggestion.is_some())).collect()
        }
    };
    let landed: Vec<String> = landed;
    let hunks: Vec<String> = file.hunks.iter().take(2).map(outline).collect();
    format!("{op} {:?} {:?} {binary:?} {hunks:?} {landed:?}", file.old_mode, file.new_mode)
}

fn form() -> Form {
    cotenant_text::detect(RAW, None).unwrap()
}

fn outline(hunk: &Hunk) -> String {
    let has = |tag| hunk.lines.iter().any(|line| line.tag == tag);
    let crlf = hunk.lines.iter().any(|line| line.ending == Some(Break::Crlf));
    let unended = hunk.lines.iter().any(|line| line.ending.is_none());
    let tags = (has(Tag::Same), has(Tag::Old), has(Tag::New));
    let said =
        (hunk.old_start.is_some(), hunk.is_miscounted(), hunk.anchors.len().min(2), hunk.eof, hunk.bare);
    format!("{tags:?}{said:?}{crlf}{unended}")
}

/// Numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % most.max(1)
    }
}

/// One random change: of lines, of bytes, or a part of another input put in.
fn changed(dice: &mut Dice, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = input.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let others: Vec<&[u8]> = other.split_inclusive(|b| *b == b'\n').collect();
    let at = dice.below(lines.len());
    match dice.below(8) {
        0 if lines.len() > 1 => drop(lines.remove(at)),
        1 if !lines.is_empty() => lines.insert(at, lines[at].clone()),
        2 if !lines.is_empty() => {
            let with = dice.below(lines.len());
            lines.swap(at, with);
        }
        3 | 4 if !others.is_empty() => lines.insert(at, others[dice.below(others.len())].to_vec()),
        5 if !lines.is_empty() && !lines[at].is_empty() => {
            const BYTES: &[u8] = b"\r\n +-@*\\=<>`0159a/\"\t~";
            let (place, byte) = (dice.below(lines[at].len()), BYTES[dice.below(BYTES.len())]);
            lines[at][place] = byte;
        }
        6 if !lines.is_empty() && !lines[at].is_empty() => {
            let place = dice.below(lines[at].len());
            lines[at].remove(place);
        }
        _ => lines.truncate(at + 1),
    }
    lines.concat()
}

/// `input` without every line that its behaviour does not need.
fn smaller(input: Vec<u8>) -> Vec<u8> {
    let wanted = behaviour(&input);
    let mut lines: Vec<Vec<u8>> = input.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let mut at = 0;
    while at < lines.len() {
        let mut less = lines.clone();
        less.remove(at);
        match behaviour(&less.concat()) == wanted {
            true => lines = less,
            false => at += 1,
        }
    }
    lines.concat()
}

/// At least this many seeds a grammar.
const SEEDS: usize = 100;

fn searched(bases: &[&str]) -> Vec<Vec<u8>> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut pool: Vec<Vec<u8>> = bases.iter().map(|base| base.as_bytes().to_vec()).collect();
    let mut seen: BTreeSet<String> = pool.iter().map(|input| behaviour(input)).collect();
    for _ in 0..60_000 {
        if pool.len() >= SEEDS + 20 {
            break;
        }
        let (one, other) = (dice.below(pool.len()), dice.below(pool.len()));
        let input = changed(&mut dice, &pool[one], &pool[other]);
        if input.len() <= 600 && seen.insert(behaviour(&input)) {
            pool.push(smaller(input));
        }
    }
    pool
}

fn folder(grammar: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/seeds").join(grammar)
}

fn stored(grammar: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder(grammar)) else { return Vec::new() };
    entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn every_seed_is_answered_and_a_hundred_differ_in_each_grammar() {
    for (grammar, bases) in GRAMMARS {
        if std::env::var_os("COTENANT_SEEDS").is_some_and(|want| want == "write") {
            let _ = std::fs::remove_dir_all(folder(grammar));
            std::fs::create_dir_all(folder(grammar)).unwrap();
            for (number, seed) in searched(bases).iter().enumerate() {
                std::fs::write(folder(grammar).join(format!("{number:03}.patch")), seed).unwrap();
            }
        }
        let seeds = stored(grammar);
        seeds.iter().for_each(|seed| ask(seed, RAW));
        let different: BTreeSet<String> = seeds.iter().map(|seed| behaviour(seed)).collect();
        assert!(different.len() >= SEEDS, "{grammar}: {} of {} differ", different.len(), seeds.len());
    }
}

#[test]
fn seeds_changed_further_are_answered_too() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    for (grammar, _) in GRAMMARS {
        let seeds = stored(grammar);
        for _ in 0..3_000 {
            let (one, other) = (dice.below(seeds.len()), dice.below(seeds.len()));
            let input = changed(&mut dice, &seeds[one], &seeds[other]);
            ask(&changed(&mut dice, &input, RAW), RAW);
        }
    }
}
