//! What a look before and a look after cost together.
//!
//! `cargo bench -p cotenant-tree --bench scan -- DIR FILES` makes so many files below DIR (100,000 if not said) and prints
//! `scan pair MILLISECONDS`, one line for each pair of looks.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use cotenant_model::{ClassRules, WsPath};
use cotenant_tree::{Scan, Tree};

const PAIRS: usize = 7;
const IN_A_DIRECTORY: usize = 20;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let root = PathBuf::from(words.first().map_or("target/bench-scan", String::as_str));
    let files: usize = words.get(1).map_or(100_000, |count| count.parse().unwrap());
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join(".gitignore"), "target/\n*.log\n").unwrap();
    for index in 0..files {
        let number = index / IN_A_DIRECTORY;
        let dir = root.join(format!("d{}/e{number}", number % 97));
        if index % IN_A_DIRECTORY == 0 {
            fs::create_dir_all(&dir).unwrap();
        }
        fs::write(dir.join(format!("module_{index}.rs")), format!("fn f{index}() {{}}\n")).unwrap();
    }
    let tree = Tree::open(&root, &[], ClassRules::default()).unwrap();
    for _ in 0..PAIRS {
        let begun = Instant::now();
        let before = tree.scan(&WsPath::default(), None).unwrap();
        let after = tree.scan(&WsPath::default(), Some(&before)).unwrap();
        let found = Scan::diff(&before, &after).len();
        println!(
            "scan pair {:.1} entries={} found={found}",
            begun.elapsed().as_secs_f64() * 1e3,
            after.len()
        );
    }
    let _ = fs::remove_dir_all(&root);
}
