//! `cargo xtask ci`: every check, the cheap ones first, each with its time.
//!
//! A failed step does not hide the next one; only a failed build ends the run, because nothing can be tested
//! then. Whatever the steps print passes through unchanged.

use crate::{Failure, clients, licences, packages, tidy, workspace};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// What every submission passes.
    Usual,
    /// Also what takes more than its share of time.
    Long,
}

/// What the tests of one issue may add to `ci`, building not counted.
const TEST_SHARE: Duration = Duration::from_secs(4 * 60);

/// Crates in which clippy, knowing types, refuses file access and clocks that `tidy` cannot see by name.
const PURE: &[&str] = &[
    "cotenant-model",
    "cotenant-text",
    "cotenant-coord",
    "cotenant-engine",
    "cotenant-tools",
    "cotenant-mcp",
];

/// Runs every check and fails with the names of those that failed.
pub(crate) fn run(reach: Reach) -> Result<(), Failure> {
    let mut run = Run::default();
    let nextest = answers(&["nextest", "--version"]);
    run.step("system packages", packages::ensure);
    run.step("format", || cargo(&["fmt", "--all", "--check"], &[]));
    run.step("tidy", tidy::run);
    run.step("licences", licences::run);
    if reach == Reach::Long {
        run.step("cargo-deny", deny);
    }
    run.step("clippy", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[])
    });
    run.step("clippy, pure crates", clippy_pure);
    let built = run.step("build", || build(nextest));
    if built {
        run.step("docs", docs);
        run.step("doc tests", || cargo(&["test", "--workspace", "--doc", "--quiet", "--locked"], &[]));
        run.step("clients", clients::run);
        // Last, so that the runner's summary closes the run.
        if run.step("tests", || tests(nextest, reach)) && run.last() > TEST_SHARE {
            println!("note: the tests took more than {} s", TEST_SHARE.as_secs());
        }
    }
    run.end()
}

/// The steps so far.
#[derive(Default)]
struct Run {
    steps: Vec<(&'static str, Duration, bool)>,
}

impl Run {
    /// Runs one step and says how long it took; false if it failed.
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<(), Failure>) -> bool {
        println!("\n== {name}");
        let start = Instant::now();
        let done = work();
        let took = start.elapsed();
        match &done {
            Ok(()) => println!("== {name}: ok, {:.1} s", took.as_secs_f64()),
            Err(failure) => println!("== {name}: FAILED, {:.1} s: {failure}", took.as_secs_f64()),
        }
        self.steps.push((name, took, done.is_ok()));
        done.is_ok()
    }

    fn last(&self) -> Duration {
        self.steps.last().map_or(Duration::ZERO, |(_, took, _)| *took)
    }

    fn end(&self) -> Result<(), Failure> {
        println!("\n== all steps");
        for (name, took, ok) in &self.steps {
            println!("{:>8.1} s  {}  {name}", took.as_secs_f64(), if *ok { "ok    " } else { "FAILED" });
        }
        let failed: Vec<&str> =
            self.steps.iter().filter(|(_, _, ok)| !ok).map(|(name, _, _)| *name).collect();
        match failed.is_empty() {
            true => Ok(()),
            false => Err(format!("failed: {}", failed.join(", ")).into()),
        }
    }
}

/// Type-aware checks of the libraries alone: their tests may use files as they like.
fn clippy_pure() -> Result<(), Failure> {
    let chosen = PURE.iter().flat_map(|name| ["-p", *name]);
    let words: Vec<&str> = ["clippy", "--lib", "--no-deps", "--locked"]
        .into_iter()
        .chain(chosen)
        .chain(["--", "-D", "warnings"])
        .collect();
    let rules = workspace::root().join("xtask/pure").to_string_lossy().into_owned();
    cargo(&words, &[("CLIPPY_CONF_DIR", rules)])
}

/// Builds the program that the tests run, and the tests. The whole workspace at once, so that both are built from
/// the same features and nothing is compiled twice.
fn build(nextest: bool) -> Result<(), Failure> {
    cargo(&["build", "--workspace", "--locked"], &[])?;
    match nextest {
        true => cargo(&["nextest", "run", "--workspace", "--no-run", "--locked"], &[]),
        false => cargo(&["test", "--workspace", "--no-run", "--locked", "--lib", "--bins", "--tests"], &[]),
    }
}

fn tests(nextest: bool, reach: Reach) -> Result<(), Failure> {
    let (profile, variables) = match reach {
        Reach::Usual => ("default", vec![]),
        Reach::Long => ("long", vec![("COTENANT_LONG", "1".to_owned())]),
    };
    let words: &[&str] = match nextest {
        true => &["nextest", "run", "--workspace", "--locked", "--no-fail-fast", "--profile", profile],
        false => &["test", "--workspace", "--locked", "--no-fail-fast", "--lib", "--bins", "--tests"],
    };
    cargo(words, &variables)
}

fn docs() -> Result<(), Failure> {
    let denied = ("RUSTDOCFLAGS", "-D warnings".to_owned());
    cargo(&["doc", "--workspace", "--no-deps", "--quiet", "--locked"], &[denied])
}

fn deny() -> Result<(), Failure> {
    if answers(&["deny", "--version"]) {
        return cargo(&["deny", "check"], &[]);
    }
    println!("cargo-deny is not installed; the licences were checked above, advisories were not");
    Ok(())
}

/// Runs cargo at the root with its output passed through.
fn cargo(words: &[&str], variables: &[(&str, String)]) -> Result<(), Failure> {
    println!("$ cargo {}", words.join(" "));
    let variables = variables.iter().map(|(name, value)| (*name, value.as_str()));
    let status = program().args(words).envs(variables).current_dir(workspace::root()).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("cargo {}: {status}", words.first().unwrap_or(&"")).into()),
    }
}

/// Whether this sub-command of cargo is installed.
fn answers(words: &[&str]) -> bool {
    let quiet = program().args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

fn program() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_named_at_the_end_and_the_others_still_run() {
        let mut run = Run::default();
        assert!(run.step("one", || Ok(())));
        assert!(!run.step("two", || Err("broken".into())));
        assert!(run.step("three", || Ok(())));
        assert_eq!(run.end().unwrap_err().to_string(), "failed: two");
    }

    #[test]
    fn a_clean_run_ends_well() {
        let mut run = Run::default();
        run.step("one", || Ok(()));
        assert!(run.end().is_ok());
    }

    #[test]
    fn cargo_answers_for_what_it_has() {
        assert!(answers(&["--version"]));
        assert!(!answers(&["no-such-sub-command"]));
    }
}
