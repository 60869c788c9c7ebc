//! What is measured inside one process, by the crates' own benchmarks: commits, paths and the ledger.

use crate::Failure;

use super::ground::Ground;
use super::samples::{self, Samples};
use super::table::{Row, number};

/// A commit against the bare sequence, in pairs.
pub(crate) fn commit(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let pairs = (ground.rounds * 20).to_string();
    let dir = ground.base.join("commit").display().to_string();
    let read = samples::read(&bench("cotenant-engine", "commit", &[&dir, &pairs])?);
    let mut rows = Vec::new();
    for ((case, side), ours) in &read {
        let bare = read.get(&(case.clone(), "bare".to_owned()));
        let Some(bare) = bare.filter(|_| side == "cotenant") else { continue };
        rows.push(Row {
            group: "commit",
            what: format!("{case} against bare"),
            figure: ours.p50() / bare.p50(),
            unit: "x",
            // At `fast` the bare sequence waits for nothing, so that there is nothing to compare with.
            at_most: case.starts_with("full").then_some(1.3),
            from: format!("{} to {} µs", quoted(ours), quoted(bare)),
        });
    }
    Ok(rows)
}

/// A path resolved against a plain open of it.
pub(crate) fn path(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let dir = ground.base.join("path").display().to_string();
    let read = samples::read(&bench("cotenant-tree", "resolve", &[&dir])?);
    let side = |side: &str| {
        let samples = read.get(&("resolve".to_owned(), side.to_owned())).cloned();
        samples.ok_or_else(|| format!("the benchmark said nothing of {side}"))
    };
    let (ours, plain) = (side("cotenant")?, side("plain")?);
    Ok(vec![Row {
        group: "path",
        what: "resolving over a plain open".to_owned(),
        figure: ours.p50() - plain.p50(),
        unit: "µs",
        at_most: Some(10.0),
        from: format!("{} to {} µs", quoted(&ours), quoted(&plain)),
    }])
}

/// Questions to a ledger of 100,000 changes.
pub(crate) fn ledger(ground: &Ground) -> Result<Vec<Row>, Failure> {
    let dir = ground.base.join("ledger").display().to_string();
    let read =
        samples::read(&bench("cotenant-ledger", "history", &[&dir, &(ground.rounds * 5).to_string()])?);
    let mut rows = Vec::new();
    for ((case, _), samples) in &read {
        let (figure, unit, at_most) = match case.as_str() {
            "growth" => (samples.p50(), "x", Some(2.0)),
            "history-path" | "restore-small" | "restore-1MB" => (samples.p50() / 1e3, "ms", Some(20.0)),
            _ => (samples.p50() / 1e3, "ms", None),
        };
        let (what, from) = match case.as_str() {
            "growth" => (
                "100 edits of ten bytes in 1 MB, kept".to_owned(),
                "bytes kept to those of one image".to_owned(),
            ),
            other => (other.replace('-', " "), format!("p99 {} ms", number(samples.p99() / 1e3))),
        };
        rows.push(Row { group: "ledger", what, figure, unit, at_most, from });
    }
    Ok(rows)
}

fn quoted(samples: &Samples) -> String {
    format!("{} (p99 {})", number(samples.p50()), number(samples.p99()))
}

/// Runs a crate's benchmark and returns what it printed.
fn bench(package: &str, name: &str, words: &[&str]) -> Result<String, Failure> {
    let mut cargo = super::cargo(&["bench", "--locked", "--quiet", "-p", package, "--bench", name, "--"]);
    let output = cargo.args(words).stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the benchmark {name} of {package}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
