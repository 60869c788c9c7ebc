//! What a commit costs against the bare sequence that it protects: temporary file, fsync, exchange, fsync of the directory.
//!
//! `cargo bench -p cotenant-engine --bench commit -- DIR [PAIRS]` works below DIR and prints `CASE SIDE MICROSECONDS` for
//! every measurement. A pair is one commit and one bare sequence on files of the same size, in alternating order, each
//! begun when nothing of the one before is under way.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cotenant_coord::{Approver, Coord};
use cotenant_engine::pipeline::{How, Pipeline};
use cotenant_ledger::{Ledger, LedgerOptions};
use cotenant_model::{
    Author, Body, ClassRules, Content, Digest, Durability, Entry, FileOp, Millis, Op, Plan, RelPath,
    SessionId, WsPath,
};
use cotenant_tree::Tree;
use rustix::fs::{CWD, RenameFlags, renameat_with};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let base = PathBuf::from(words.first().map_or("target/bench-commit", String::as_str));
    let pairs: usize = words.get(1).map_or(100, |pairs| pairs.parse().unwrap());
    for (name, size, durability) in [
        ("full-8KiB", 8 << 10, Durability::Full),
        ("full-1MB", 1 << 20, Durability::Full),
        ("fast-8KiB", 8 << 10, Durability::Fast),
        ("fast-1MB", 1 << 20, Durability::Fast),
    ] {
        let _ = fs::remove_dir_all(&base);
        Bench::new(&base, durability).run(name, size, pairs);
    }
    let _ = fs::remove_dir_all(&base);
}

struct Bench {
    root: PathBuf,
    pipeline: Pipeline,
    coord: Coord,
    durability: Durability,
}

impl Bench {
    fn new(base: &Path, durability: Durability) -> Bench {
        let (root, state) = (base.join("tree"), base.join("state"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&state).unwrap();
        let tree = Arc::new(Tree::open(&root, &[], ClassRules::default()).unwrap());
        let (ledger, unsealed) = Ledger::open(&LedgerOptions { dir: state, durability }).unwrap();
        let (pipeline, _) = Pipeline::open(tree, ledger, unsealed, Millis(1)).unwrap();
        Bench { root, pipeline, coord: Coord::new(), durability }
    }

    fn run(mut self, name: &str, size: usize, pairs: usize) {
        for pair in 0..pairs + 5 {
            // Both sides write the same bytes over the same bytes, to files that nobody has changed before.
            let (old, new) = (content(pair * 2, size), content(pair * 2 + 1, size));
            let names = [format!("a{pair}"), format!("b{pair}")];
            for name in &names {
                let mut file = fs::File::create(self.root.join(name)).unwrap();
                file.write_all(&old).unwrap();
                file.sync_all().unwrap();
            }
            let mut took = [Duration::ZERO; 2];
            for side in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
                self.pipeline.idle();
                took[side] = match side {
                    0 => self.commit(&names[0], Digest::of(&old), &new),
                    _ => bare(&self.root, &names[1], &new, self.durability),
                };
            }
            self.pipeline.idle();
            // The first ones warm the ledger's statements.
            if pair >= 5 {
                println!("{name} cotenant {}", took[0].as_micros());
                println!("{name} bare {}", took[1].as_micros());
            }
        }
    }

    fn commit(&mut self, name: &str, pre: Digest, new: &[u8]) -> Duration {
        let content: Content = new.into();
        let begun = Instant::now();
        let at = WsPath::root(RelPath::parse(name).unwrap());
        let plan = Plan {
            author: Author { agent: "bench".into(), session: SessionId(1), task: None, turn: 1 },
            tool: "edit_file".into(),
            ops: vec![FileOp { at, op: Op::Replace { old: Entry::file(pre), new: Body::file(content) } }],
            diff: String::new(),
            undoes: None,
            command: None,
        };
        let grant = self.coord.authorise(plan, Approver::Policy);
        let how = How {
            durability: self.durability,
            now: Millis(2),
            idempotency: None,
            still_valid: &|_grant| Ok(()),
        };
        self.pipeline.commit(grant, &how).unwrap();
        begun.elapsed()
    }
}

/// The sequence without any of the protection; at `fast` without the syncs.
fn bare(root: &Path, name: &str, new: &[u8], durability: Durability) -> Duration {
    let (target, temp) = (root.join(name), root.join(format!("{name}.tmp")));
    let begun = Instant::now();
    let mut file = fs::File::create(&temp).unwrap();
    file.write_all(new).unwrap();
    if durability == Durability::Full {
        file.sync_all().unwrap();
    }
    renameat_with(CWD, &temp, CWD, &target, RenameFlags::EXCHANGE).unwrap();
    if durability == Durability::Full {
        fs::File::open(root).unwrap().sync_all().unwrap();
    }
    let took = begun.elapsed();
    fs::remove_file(&temp).unwrap();
    took
}

/// Text of its own for every number.
fn content(number: usize, size: usize) -> Vec<u8> {
    let line = |at: usize| format!("line {at} of text {number}: the quick brown fox\n").into_bytes();
    (0..).flat_map(line).take(size).collect()
}
