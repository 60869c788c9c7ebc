//! The protocol's conformance suite, over HTTP: everything that a revision requires of the fixture, and of the product
//! what needs no tools of the suite's own.

use super::fetch::Clients;
use super::scene::{Programs, Scene, Server, TOKEN};
use super::{Seen, said};
use crate::{Failure, workspace};
use std::path::Path;
use std::process::{Command, Output};

/// The revisions, each with the scenarios that the product itself is put through.
const REVISIONS: &[(&str, &[&str])] = &[
    (
        "2026-07-28",
        &[
            "server-stateless",
            "tools-list",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
            "http-header-validation",
        ],
    ),
    (
        "2025-11-25",
        &[
            "server-initialize",
            "ping",
            "tools-list",
            "server-session-lifecycle",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
        ],
    ),
];

/// All that the revisions require, of the suite's own tools on our HTTP stack.
pub(super) fn fixture(clients: &Clients, programs: &Programs) -> Result<Vec<Seen>, Failure> {
    let server = Server::start(Command::new(&programs.fixture).env("BEARER", TOKEN))?;
    let expected = workspace::root().join("xtask/clients/expected-failures.yml");
    let mut seen = Vec::new();
    for (revision, _) in REVISIONS {
        let mut suite = suite(clients, &server.url, &expected);
        let output = suite.args(["--requirements", revision]).output()?;
        seen.push(judged(format!("conformance {revision}, all that is required"), &[output]));
    }
    Ok(seen)
}

/// The scenarios that the product itself is put through.
pub(super) fn product(clients: &Clients, scene: &Scene) -> Result<Vec<Seen>, Failure> {
    let expected = workspace::root().join("xtask/clients/expected-failures-of-the-product.yml");
    let mut seen = Vec::new();
    for (revision, scenarios) in REVISIONS {
        let run = |scenario: &&str| {
            let mut suite = suite(clients, &scene.server.url, &expected);
            suite.args(["--spec-version", revision, "--scenario", scenario]).output()
        };
        let outputs: Vec<Output> = scenarios.iter().map(run).collect::<Result<_, _>>()?;
        seen.push(judged(format!("conformance {revision}, cotenant serve"), &outputs));
    }
    Ok(seen)
}

/// The suite for the server at `url`; it fails on an entry of `expected` that passes, too.
fn suite(clients: &Clients, url: &str, expected: &Path) -> Command {
    let mut suite = clients.node("conformance");
    suite.args(["server", "--url", url, "--expected-failures"]).arg(expected);
    suite.env("NODE_OPTIONS", format!("--import={}", clients.bearer().display())).env("BEARER", TOKEN);
    suite
}

/// What the runs add up to. The suite's own verdict counts; its figures are for the report.
fn judged(client: String, outputs: &[Output]) -> Seen {
    let mut seen = Seen { client, passed: 0, all: 0, note: String::new(), wrong: String::new() };
    let mut expected = 0;
    for output in outputs {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match totals(&text) {
            Some((passed, failed)) if output.status.success() => {
                seen.passed += passed;
                seen.all += passed + failed;
                expected += failed;
            }
            _ => seen.wrong.push_str(&said(output)),
        }
    }
    if expected > 0 {
        seen.note = format!(" checks, {expected} not offered or not required");
    }
    seen
}

/// What the suite counted, as (passed, not passed): `Total: N passed, M failed` of many scenarios, `Passed: N/ALL, …` of one.
fn totals(text: &str) -> Option<(usize, usize)> {
    let number =
        |words: &str| words.split(|other: char| !other.is_ascii_digit()).next()?.parse::<usize>().ok();
    text.lines().rev().find_map(|line| {
        if let Some(one) = line.strip_prefix("Passed: ") {
            let (passed, all) = one.split_once('/')?;
            return Some((number(passed)?, number(all)?.checked_sub(number(passed)?)?));
        }
        let (passed, failed) = line.strip_prefix("Total: ")?.split_once(" passed, ")?;
        Some((number(passed)?, number(failed)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn output(code: i32, text: &str) -> Output {
        let status = ExitStatus::from_raw(code << 8);
        Output { status, stdout: text.as_bytes().to_vec(), stderr: b"why\n".to_vec() }
    }

    #[test]
    fn the_total_is_the_last_one_said() {
        let text = "a: 1 passed, 2 failed\nTotal: 108 passed, 63 failed\n\nBaseline check passed\n";
        assert_eq!(totals(text), Some((108, 63)));
        assert_eq!(totals("Passed: 22/25, 3 failed, 0 warnings"), Some((22, 3)));
        assert_eq!(totals("nothing"), None);
    }

    #[test]
    fn runs_add_up_and_one_that_failed_or_said_nothing_is_told_in_full() {
        let good = output(0, "Total: 3 passed, 1 failed");
        let seen = judged("suite".into(), &[good, output(0, "Passed: 2/2, 0 failed, 0 warnings")]);
        assert!(seen.good() && (seen.passed, seen.all) == (5, 6), "{}", seen.wrong);
        let failed = judged("suite".into(), &[output(1, "Total: 3 passed, 1 failed")]);
        assert!(!failed.good() && failed.wrong.contains("why") && failed.wrong.contains("1 failed"));
        assert!(!judged("suite".into(), &[output(0, "")]).good());
    }
}
