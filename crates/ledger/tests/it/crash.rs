//! A process that dies at any moment: what was acknowledged stands, what was not sealed comes back to be recovered.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use cotenant_ledger::{Ledger, LedgerOptions, commit};
use cotenant_model::{ChangeId, Durability, Outcome};

use crate::{CHILD, Folder, change, child, edit, intent};

type Step = Box<dyn Fn(&Ledger)>;

/// The child's steps, of which it dies before number `COTENANT_LEDGER_STEP`.
fn steps() -> Vec<(&'static str, Step)> {
    fn intend(id: u64) -> Step {
        Box::new(move |ledger| {
            let path = format!("f{id}");
            let mut intent = intent(change(ChangeId(id), vec![edit(&path, b"1", b"2")]));
            intent.paths[0].inline_pre = Some(b"1".to_vec());
            commit::intend(ledger, intent).wait().unwrap();
        })
    }
    fn seal(id: u64, outcome: Outcome) -> Step {
        Box::new(move |ledger| commit::seal(ledger, ChangeId(id), outcome, None))
    }
    fn flush() -> Step {
        Box::new(|ledger| commit::flush(ledger).unwrap())
    }
    vec![
        ("intend 1", intend(1)),
        ("seal 1", seal(1, Outcome::Sealed)),
        ("intend 2", intend(2)),
        ("intend 3", intend(3)),
        ("seal 3", seal(3, Outcome::Aborted)),
        ("flush", flush()),
        ("seal 2", seal(2, Outcome::Overtaken)),
        ("flush", flush()),
        ("intend 4", intend(4)),
    ]
}

#[test]
fn killed_between_any_two_operations() {
    const NAME: &str = "crash::killed_between_any_two_operations";
    if let Some(dir) = std::env::var_os(CHILD) {
        let last: usize = std::env::var("COTENANT_LEDGER_STEP").unwrap().parse().unwrap();
        let options = LedgerOptions { dir: dir.into(), durability: Durability::Full };
        let (ledger, _) = Ledger::open(&options).unwrap();
        steps().iter().take(last).for_each(|(_, step)| step(&ledger));
        std::process::abort();
    }
    for last in 0..=steps().len() {
        let folder = Folder::new();
        let mut command = child(NAME, &folder.state());
        command.env("COTENANT_LEDGER_STEP", last.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(!command.status().unwrap().success(), "it was to be aborted");

        let (ledger, unsealed) = folder.try_open(Durability::Full).unwrap();
        let unsealed: Vec<u64> = unsealed.iter().map(|intent| intent.change.id.0).collect();
        let done: Vec<&str> = steps().iter().take(last).map(|(name, _)| *name).collect();
        for id in 1..=4 {
            let was = |what: &str| done.iter().position(|step| *step == format!("{what} {id}"));
            let outcome = ledger.change(ChangeId(id)).unwrap().map(|change| change.outcome);
            let flushed = was("seal").is_some_and(|seal| done[seal..].contains(&"flush"));
            match (was("intend"), was("seal")) {
                (None, _) => assert_eq!(outcome, None),
                (Some(_), None) => assert_eq!(outcome, Some(Outcome::Open)),
                (Some(_), Some(_)) if flushed => assert_ne!(outcome, Some(Outcome::Open), "{id} of {done:?}"),
                // Not waited for: it may be there.
                (Some(_), Some(_)) => assert!(outcome.is_some()),
            }
            assert_eq!(unsealed.contains(&id), outcome == Some(Outcome::Open), "{id} of {done:?}");
        }
        assert!(
            commit::next_change(&ledger).0
                > done.iter().filter(|step| step.starts_with("intend")).count() as u64
        );
    }
}

/// The child: four threads that intend, tell so, seal, tell so after a flush, without end.
fn work_until_killed(dir: &Path) {
    let options = LedgerOptions { dir: dir.to_owned(), durability: Durability::Full };
    let (ledger, _) = Ledger::open(&options).unwrap();
    let tell = |line: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).unwrap_or_else(|_| std::process::abort());
    };
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let ledger = ledger.clone();
            scope.spawn(move || {
                for step in 0.. {
                    let id = commit::next_change(&ledger);
                    let path = format!("w{worker}/f{}", step % 7);
                    let files = vec![edit(&path, b"1", b"2")];
                    commit::intend(&ledger, intent(change(id, files))).wait().unwrap();
                    tell(format!("intended {}", id.0));
                    commit::seal(&ledger, id, Outcome::Sealed, None);
                    commit::flush(&ledger).unwrap();
                    tell(format!("sealed {}", id.0));
                }
            });
        }
    });
}

#[test]
fn killed_while_it_works() {
    const NAME: &str = "crash::killed_while_it_works";
    if let Some(dir) = std::env::var_os(CHILD) {
        work_until_killed(Path::new(&dir));
        return;
    }
    let folder = Folder::new();
    let mut told: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    // Each round goes on with the folder that the one before left.
    for lines in [1, 7, 40, 133] {
        let mut child = child(NAME, &folder.state()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut count = 0;
        for line in out.lines() {
            let line = line.unwrap();
            // The harness's own lines are of other words.
            let Some((word, id)) = line.split_once(' ') else { continue };
            if !["intended", "sealed"].contains(&word) {
                continue;
            }
            told.entry(id.parse().unwrap()).or_default().insert(word.to_owned());
            count += 1;
            if count == lines {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(count >= lines);

        let (ledger, unsealed) = folder.try_open(Durability::Full).unwrap();
        for (id, words) in &told {
            let change = ledger.change(ChangeId(*id)).unwrap();
            let outcome = change.unwrap_or_else(|| panic!("{id} was acknowledged")).outcome;
            assert!(outcome == Outcome::Sealed || !words.contains("sealed"), "{id}: {outcome:?}");
        }
        for intent in unsealed {
            assert_eq!(intent.paths.len(), 1, "whole or not at all");
            commit::seal(&ledger, intent.change.id, Outcome::Sealed, None);
        }
        drop(ledger);
        folder.open();
    }
}
