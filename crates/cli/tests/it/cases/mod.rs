//! The reported faults of `cases/open.jsonl`: each case of the areas built so far is a test that bears its id.
//!
//! A test asserts the answer's code and facts; the case's own `check` then looks at the disk.

mod encoding;
mod files;
mod matching;
mod mcp;
mod patch;
mod search;
mod stale;
mod undo;

use std::cell::Cell;
use std::ops::Deref;

use cotenant_testkit::{Client, Scratch, records};
use serde_json::Value;

use crate::support::scratch;

const AREAS: [&str; 8] = ["encoding", "match", "stale", "files", "search", "mcp", "undo", "patch"];

/// Cases whose tools do not exist yet: what they wait for, and the issue that brings it.
const LATER: &[(&str, &str, u32)] = &[("C140", "a command's effects", 4)];

/// Cases that are tested here as far as the tools exist: what is left, and the issue that brings it.
const PARTLY: &[(&str, &str, u32)] = &[
    ("C054", "the sed simulation", 4),
    ("C061", "a lease under one name binds the other", 5),
    ("C148", "commands that change nothing, and one that changes the large file", 4),
    ("C169", "a command whose child writes to its standard output", 4),
    ("C170", "a running command at the end of input; leases are issue 5", 4),
    ("C172", "the routes of the approval page", 6),
    ("C175", "a denied lease", 5),
];

/// Names the cases of an area: each becomes a test, and an entry of the area's list.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(super) const IDS: &[&str] = &[$(stringify!($name)),*];
        mod run {
            $(#[test]
            fn $name() {
                crate::cases::Case::run(stringify!($name), super::$name);
            })*
        }
    };
}
pub(crate) use cases;

/// A case in a fresh workspace that its `setup` has filled.
pub(crate) struct Case {
    scratch: Scratch,
    record: Value,
    checked: Cell<bool>,
}

impl Deref for Case {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.scratch
    }
}

impl Case {
    /// Runs the test of a case, then the case's `check` unless the test did it midway.
    pub(crate) fn run(id: &str, test: fn(&Case)) {
        let id = id.to_uppercase();
        let Some(all) = records("cases/open.jsonl") else { return };
        let record = all.into_iter().find(|record| record["id"] == id.as_str());
        let case = Case {
            scratch: scratch(),
            record: record.unwrap_or_else(|| panic!("no case {id}")),
            checked: Cell::new(false),
        };
        case.sh(&case.script("setup"));
        test(&case);
        if !case.checked.get() {
            case.check();
        }
    }

    fn script(&self, part: &str) -> String {
        // 20 MB do not fit into one message: this case runs at 9 MB.
        self.record[part].as_str().unwrap_or_default().replace("20000000", "9000000")
    }

    /// Whether the disk is right.
    #[track_caller]
    pub(crate) fn check(&self) {
        self.checked.set(true);
        let script = self.script("check");
        let output = self.try_sh(&script);
        assert_eq!(output.code, 0, "the check does not hold: {script}\n{output:?}");
    }

    /// A trusting agent on stdio.
    pub(crate) fn agent(&self) -> Client {
        self.mcp().start()
    }

    /// Another one.
    pub(crate) fn agent_named(&self, name: &str) -> Client {
        self.mcp().flags(&["--agent", name]).start()
    }
}

#[test]
fn every_case_of_these_areas_is_tested_or_says_what_it_waits_for() {
    let Some(all) = records("cases/open.jsonl") else { return };
    let lists =
        [encoding::IDS, matching::IDS, stale::IDS, files::IDS, search::IDS, mcp::IDS, undo::IDS, patch::IDS];
    let tested: Vec<String> = lists.concat().iter().map(|id| id.to_uppercase()).collect();
    for record in all.iter().filter(|record| AREAS.iter().any(|area| record["area"] == *area)) {
        let id = record["id"].as_str().unwrap();
        let waits = LATER.iter().filter(|(later, ..)| *later == id).count();
        let tests = tested.iter().filter(|test| *test == id).count();
        assert_eq!(tests + waits, 1, "{id}: {tests} tests, {waits} entries in LATER");
    }
    for (id, ..) in PARTLY {
        assert!(tested.iter().any(|test| test == id), "{id} is tested partly, but not here");
    }
}
