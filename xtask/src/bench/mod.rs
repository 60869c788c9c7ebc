//! `cargo xtask bench`: the figures that are promised, each measured against a named peer in one interleaved run.
//!
//! Machines differ and are shared, so only ratios mean something, and nothing here is asserted by a test: the table
//! says what is met, and `target/bench.json` keeps it.

mod commit;
mod daemon;
mod files;
mod ground;
mod patch;
mod peers;
mod samples;
mod table;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;

use crate::{Failure, workspace};
use ground::Ground;
use table::Row;

/// A group of figures: its name, what it is about, and how it is measured.
type Group = (&'static str, &'static str, fn(&Ground) -> Result<Vec<Row>, Failure>);

const GROUPS: &[Group] = &[
    ("peers", "calls through the bridge, against other MCP file servers", peers::run),
    ("commit", "a commit against the bare sequence it protects", commit::commit),
    ("path", "resolving a path against opening it", commit::path),
    ("ledger", "history of 100,000 changes, restores, and what edits of a large file keep", commit::ledger),
    ("patch", "a patch of 1,000 files and its undo, and one that does not fit", patch::patches),
    ("edit", "an edit of 1 MB at durability fast", files::edit),
    ("range", "200 lines of a file of 1 GB", files::range),
    ("search", "a content search of 20,000 files against rg", files::search),
    ("start", "a client's start, with and without a daemon", daemon::start),
    ("memory", "daemon and bridge, idle on 20,000 files", daemon::memory),
    ("tools", "what tools/list takes of a model's context", daemon::tools),
];

/// Measures the named groups, or all; `words` may also hold `--rounds N`, `--program PATH` and `--list`.
pub(crate) fn run(words: &[&str]) -> Result<(), Failure> {
    let Some(asked) = Asked::of(words)? else {
        for (name, about, _) in GROUPS {
            println!("{name:8} {about}");
        }
        return Ok(());
    };
    let program = match &asked.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    let ground = Ground::new(program, asked.rounds)?;
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for (name, about, measure) in GROUPS.iter().filter(|(name, ..)| asked.wants(name)) {
        println!("== {name}: {about}");
        // The helpers of the tests fail by panicking; the other groups are measured all the same.
        let measured = catch_unwind(AssertUnwindSafe(|| measure(&ground)));
        match measured.unwrap_or_else(|_| Err("ended in a panic, see above".into())) {
            Ok(measured) => {
                print!("{}", table::text(&measured));
                rows.extend(measured);
            }
            Err(failure) => {
                println!("{name}: {failure}");
                failed.push(format!("{name} ({failure})"));
            }
        }
    }
    let out = workspace::root().join("target/bench.json");
    std::fs::write(&out, table::json(&rows, ground.rounds))?;
    println!("\n{}written to {}", table::text(&rows), out.display());
    if failed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", failed.join(", ")).into()) }
}

/// What is wanted.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    names: Vec<String>,
    rounds: usize,
    program: Option<PathBuf>,
}

impl Asked {
    /// `None` where only the names are asked for.
    fn of(words: &[&str]) -> Result<Option<Asked>, Failure> {
        let mut asked = Asked { names: Vec::new(), rounds: 8, program: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--list" => return Ok(None),
                "--rounds" => asked.rounds = words.next().ok_or("--rounds needs a number")?.parse()?,
                "--program" => {
                    let path = words.next().ok_or("--program needs a path")?;
                    asked.program = Some(std::path::absolute(path)?);
                }
                name if GROUPS.iter().any(|(known, ..)| *known == name) => asked.names.push(name.to_owned()),
                other => return Err(format!("no figures are called {other}; --list names them").into()),
            }
        }
        Ok(Some(asked))
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

/// Builds the program as it is released, and says where it is.
fn build() -> Result<PathBuf, Failure> {
    let status = cargo(&["build", "--release", "--locked", "-p", "cotenant"]).status()?;
    if !status.success() {
        return Err(format!("cargo build: {status}").into());
    }
    Ok(workspace::metadata()?.target_directory.join("release/cotenant").into_std_path_buf())
}

/// Cargo, at the workspace's root.
fn cargo(words: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(words).current_dir(workspace::root());
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_options_are_understood() {
        let all = Asked::of(&[]).unwrap().unwrap();
        assert!(all.wants("peers") && all.wants("tools"));
        let some =
            Asked::of(&["commit", "--rounds", "3", "path", "--program", "/x/cotenant"]).unwrap().unwrap();
        assert!(some.wants("commit") && some.wants("path") && !some.wants("peers"));
        assert_eq!((some.rounds, some.program), (3, Some(PathBuf::from("/x/cotenant"))));
        assert_eq!(Asked::of(&["--list"]).unwrap(), None);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for wrong in [&["everything"][..], &["--rounds"], &["--rounds", "many"], &["--program"]] {
            assert!(Asked::of(wrong).is_err(), "{wrong:?}");
        }
    }
}
