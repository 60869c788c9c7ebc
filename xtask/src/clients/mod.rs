//! `cargo xtask clients`: clients that others wrote, against what was built here.
//!
//! - The protocol's conformance suite against a server of its own tools on our HTTP stack (`conformance`), and what of
//!   it needs no such tools against `cotenant serve`: the wire is what the specification says, in both eras.
//! - The MCP Inspector's command line over stdio (`inspector`): schemas without portability problems, a read, an edit,
//!   a refusal, each as a fresh client.
//! - The MCP SDK for Python (`sdk`): whole sessions over stdio and over HTTP with a bearer token, in both eras.
//!
//! The clients are fetched into the target folder (`fetch`), exactly the versions that `xtask/clients` locks. Where they
//! cannot be fetched the run is left out with a word about it; under `CI=true` that is a failure.

mod conformance;
mod fetch;
mod inspector;
mod scene;
mod sdk;

use crate::{Failure, workspace};
use fetch::Clients;
use scene::{Programs, Scene};
use std::path::PathBuf;
use std::process::{Command, Output};

/// Lines of a program that went wrong that are shown: verdicts stand at the end.
const SHOWN: usize = 40;

/// What one client saw: its name and, in its own measure, how much of what was right.
struct Seen {
    client: String,
    passed: usize,
    all: usize,
    /// What is to be said beside the figures.
    note: String,
    /// What was wrong, for whoever looks into it; empty where nothing was.
    wrong: String,
}

impl Seen {
    fn good(&self) -> bool {
        self.wrong.is_empty() && self.passed > 0
    }
}

/// Runs every client and fails with the names of those that saw something wrong.
pub(crate) fn run() -> Result<(), Failure> {
    let target = workspace::metadata()?.target_directory.into_std_path_buf();
    let clients = match fetch::ensure(&target.join("clients")) {
        Ok(clients) => clients,
        Err(missing) if std::env::var("CI").is_ok_and(|ci| ci == "true") => return Err(missing.into()),
        Err(missing) => {
            println!("clients: not run: {missing}");
            return Ok(());
        }
    };
    let programs = build(target)?;
    let failed: Vec<String> = all(&clients, &programs)?
        .into_iter()
        .inspect(report)
        .filter(|seen| !seen.good())
        .map(|seen| seen.client)
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("not as the clients expect it: {}", failed.join("; ")).into()),
    }
}

/// One after the other: each is to find a server that nobody else keeps busy.
fn all(clients: &Clients, programs: &Programs) -> Result<Vec<Seen>, Failure> {
    let mut seen = conformance::fixture(clients, programs)?;
    let scene = Scene::open(programs)?;
    seen.extend(conformance::product(clients, &scene)?);
    seen.push(inspector::run(clients, programs, &scene)?);
    seen.push(sdk::run(clients, programs, &scene)?);
    Ok(seen)
}

fn report(seen: &Seen) {
    let Seen { client, passed, all, note, wrong } = seen;
    println!("{}  {client}: {passed} of {all}{note}", if seen.good() { "ok    " } else { "FAILED" });
    for line in wrong.lines() {
        println!("        {line}");
    }
}

/// Builds what the clients talk to: all at once, with the features that the tests are built with, too.
fn build(target: PathBuf) -> Result<Programs, Failure> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--workspace", "--bins", "--examples", "--locked"]).current_dir(workspace::root());
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("cargo build: {status}").into());
    }
    Ok(Programs::within(target.join("debug")))
}

/// What a program said last, for a report: both streams, errors after the rest, and how it ended.
fn said(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr].map(|stream| String::from_utf8_lossy(stream).into_owned());
    let text = streams.join("\n");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    format!("{}\n{}\n", last.join("\n"), output.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_saw_nothing_saw_nothing_good() {
        let seen = |passed, wrong: &str| Seen {
            client: "a".into(),
            passed,
            all: passed,
            note: String::new(),
            wrong: wrong.into(),
        };
        assert!(seen(1, "").good());
        assert!(!seen(0, "").good());
        assert!(!seen(1, "no answer").good());
    }
}
