//! The attacks of `cases/attacks.jsonl` of the kinds built so far: each entry is run, or says what it waits for.

mod durability;
mod edit;
mod patch;
mod paths;
mod protocol;
mod race;

use std::panic::{AssertUnwindSafe, catch_unwind};

use cotenant_testkit::{Scratch, records};
use serde_json::Value;

use crate::support::scratch;

const KINDS: [&str; 11] = [
    "path-read",
    "path-write",
    "path-list",
    "path-search",
    "path-move",
    "path-delete",
    "race",
    "edit",
    "patch",
    "mcp",
    "durability",
];

/// Entries that are tested elsewhere or wait for a tool.
const ELSEWHERE: &[(&str, &str)] = &[
    ("D382", "an fsync that fails: crate engine, with a disk that fails at each operation"),
    (
        "D386",
        "the trash's limits: crate ledger's `retention`, and `what_is_over_the_limits_goes_at_the_first_destructive_change`",
    ),
];

/// One entry in a fresh workspace.
pub(crate) struct Attack {
    scratch: Scratch,
    record: Value,
}

impl std::ops::Deref for Attack {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.scratch
    }
}

impl Attack {
    /// The entry of that id, set up; `None` where the data is not there.
    pub(crate) fn open(id: &str) -> Option<Attack> {
        let record = records("cases/attacks.jsonl")?.into_iter().find(|record| record["id"] == id);
        let attack = Attack { scratch: scratch(), record: record.unwrap_or_else(|| panic!("no entry {id}")) };
        // Some setups are words (`HTTP transport`): those are set up by the test.
        if attack.setup().contains("$OUT") && !attack.needs_mount() {
            attack.sh(attack.setup());
        }
        Some(attack)
    }

    fn setup(&self) -> &str {
        self.record["setup"].as_str().unwrap()
    }

    /// Whether the setup mounts something: then it runs in a mount namespace of its own, with the server.
    fn needs_mount(&self) -> bool {
        self.setup().contains("mount ")
    }

    /// The path or the search of the entry, with the names of this workspace.
    fn input(&self) -> String {
        let root = self.root();
        let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let input = self.record["input"].as_str().unwrap();
        input
            .replace("OUTDIR", &name(&self.out()))
            .replace("WSNAME", &name(&root))
            .replace("ABSW", root.to_str().unwrap())
    }

    fn expects(&self) -> &str {
        self.record["expect"].as_str().unwrap()
    }
}

/// Runs a test for each entry of a kind, and fails with all that failed.
fn for_each_of(kind: &str, test: fn(&str, &Attack)) {
    let Some(all) = records("cases/attacks.jsonl") else { return };
    let mut failed = Vec::new();
    for record in all.iter().filter(|record| record["kind"] == kind) {
        let id = record["id"].as_str().unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| test(id, &Attack::open(id).unwrap())));
        if outcome.is_err() {
            eprintln!("^ {id}: {}", record["why"]);
            failed.push(id);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn every_entry_of_these_kinds_is_tested_or_says_where() {
    let Some(all) = records("cases/attacks.jsonl") else { return };
    let named = [race::IDS, edit::IDS, patch::IDS, protocol::IDS, durability::IDS].concat();
    for record in all.iter().filter(|record| KINDS.iter().any(|kind| record["kind"] == *kind)) {
        let (id, kind) = (record["id"].as_str().unwrap(), record["kind"].as_str().unwrap());
        let tests =
            usize::from(kind.starts_with("path-")) + named.iter().filter(|named| **named == id).count();
        let elsewhere = ELSEWHERE.iter().filter(|(named, _)| *named == id).count();
        assert_eq!(tests + elsewhere, 1, "{id}: {tests} tests, {elsewhere} entries in ELSEWHERE");
    }
}
