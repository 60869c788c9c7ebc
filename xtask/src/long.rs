//! Tests whose long form is asked for by name: the same code as in every run, with more to do.

use std::path::Path;
use std::process::Command;

use crate::Failure;

/// `cargo xtask replay DIR…`: prints the figures of each repository; fails where a commit's tree was not met.
pub(crate) fn replay(first: &str, rest: &[&str]) -> Result<(), Failure> {
    let given = std::iter::once(first).chain(rest.iter().copied());
    let directories = given
        .map(|directory| Path::new(directory).canonicalize().map_err(|error| format!("{directory}: {error}")))
        .collect::<Result<Vec<_>, _>>()?;
    let list = std::env::join_paths(directories)?;
    test("cotenant", "replay::repositories_that_are_given", "COTENANT_REPLAY", list.as_ref())
}

/// Runs one test of a crate as a release build, its words shown, with a variable set.
fn test(package: &str, name: &str, variable: &str, value: &std::ffi::OsStr) -> Result<(), Failure> {
    let done = Command::new(env!("CARGO"))
        .args(["test", "--release", "--locked", "--package", package, "--test", "it", name])
        .args(["--", "--exact", "--nocapture"])
        .env(variable, value)
        .status()?;
    if done.success() { Ok(()) } else { Err(format!("{name} failed").into()) }
}
