//! What resolving a path costs against opening it plainly.
//!
//! `cargo bench -p cotenant-tree --bench resolve -- DIR` works below DIR and prints `CASE SIDE MICROSECONDS`, one line
//! for each batch, the sides in turn.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use cotenant_model::ClassRules;
use cotenant_tree::Tree;

const BATCHES: usize = 300;
const BATCH: u32 = 200;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let root = PathBuf::from(words.first().map_or("target/bench-resolve", String::as_str));
    let relative = "crates/server/src/handlers/session.rs";
    fs::create_dir_all(root.join(relative).parent().unwrap()).unwrap();
    fs::write(root.join(relative), "fn main() {}\n").unwrap();
    let tree = Tree::open(&root, &[], ClassRules::default()).unwrap();
    let host = root.canonicalize().unwrap().join(relative);
    for _ in 0..BATCHES {
        report("plain", || drop(black_box(fs::File::open(&host).unwrap())));
        report("cotenant", || {
            let wire = tree.folders().parse(relative).unwrap();
            drop(black_box(tree.locate(&wire).unwrap()));
        });
    }
    let _ = fs::remove_dir_all(&root);
}

fn report(side: &str, mut run: impl FnMut()) {
    let begun = Instant::now();
    (0..BATCH).for_each(|_| run());
    println!("resolve {side} {:.3}", begun.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH));
}
