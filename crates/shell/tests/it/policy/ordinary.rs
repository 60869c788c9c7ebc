//! Three hundred commands as developers type them.

use std::collections::BTreeMap;

use cotenant_shell::policy::GitUse;

use super::{judged, verdict};

const ORDINARY: &str = include_str!("../data/ordinary.txt");

/// The commands; the record separator stands between two, since some have empty lines.
pub(crate) fn commands() -> Vec<&'static str> {
    ORDINARY.split('\u{1e}').map(str::trim).collect()
}

#[test]
fn ordinary_work_is_neither_refused_nor_asked_about_before_it_runs() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut stopped = Vec::new();
    let mut direct = 0;
    let commands = commands();
    for command in &commands {
        let judgement = judged(command);
        let found = verdict(&judgement);
        *counts.entry(found).or_default() += 1;
        direct += usize::from(found == "ordinary" && judgement.git == GitUse::Writes);
        if !matches!(found, "read-only" | "ordinary") {
            stopped.push(format!("{command}\n    {:?}", judgement.verdict));
        }
    }
    println!("{} commands: {counts:?}; {direct} of the ordinary write .git", commands.len());
    assert!(stopped.is_empty(), "{}", stopped.join("\n"));
    assert!(commands.len() >= 300, "{}", commands.len());
    let unasked = counts["read-only"] + counts["ordinary"] - direct;
    assert!(unasked * 100 >= commands.len() * 80, "{unasked} of {}", commands.len());
}
