//! Tests whose long form is asked for by name: the same code as in every run, with more to do.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
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

/// `cargo xtask mutate [DIR…]`: the tables of the mutation corpus; by default of this project and of what a machine has in many
/// languages.
pub(crate) fn mutate(given: &[&str]) -> Result<(), Failure> {
    let directories = match given {
        [] => usual_sources()?,
        given => given.iter().map(PathBuf::from).collect(),
    };
    let list = std::env::join_paths(directories)?;
    test("cotenant-tools", "mutation::directories_that_are_given", "COTENANT_MUTATE", list.as_ref())
}

/// `cargo xtask fuzz-sed [--pairs N] [--seed S]`: the differential fuzz of edits that need no shell. A seed repeats a run
/// on a machine with as many processors.
pub(crate) fn fuzz_sed(given: &[&str]) -> Result<(), Failure> {
    let (mut pairs, mut seed) = ("1000000", None);
    for option in given.chunks(2) {
        match option {
            ["--pairs", number] if number.parse::<u64>().is_ok() => pairs = number,
            ["--seed", number] if number.parse::<u64>().is_ok() => seed = Some(*number),
            _ => return Err(format!("{}: --pairs N or --seed S", option.join(" ")).into()),
        }
    }
    let run = |name: &str, variable: &str, value: &str| {
        let mut variables = vec![(variable, value.as_ref())];
        variables.extend(seed.map(|seed| ("COTENANT_SEED", seed.as_ref())));
        test_with("cotenant-shell", name, &variables)
    };
    run("edits::words::accepted_words_are_bashs_words", "COTENANT_FUZZ_WORDS", "100000")?;
    run("edits::fuzz::the_real_bash_and_sed_agree", "COTENANT_FUZZ_SED", pairs)
}

/// The project, the sources of its dependencies, and what the system brings as text.
fn usual_sources() -> Result<Vec<PathBuf>, Failure> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let registry = home.map(|home| home.join("registry/src"));
    let mut directories = vec![std::env::current_dir()?];
    directories.extend(registry.into_iter().chain(["/usr/lib/python3".into(), "/usr/share".into()]));
    directories.retain(|directory| directory.is_dir());
    Ok(directories)
}

/// Runs one test of a crate as a release build, its words shown, with a variable set.
fn test(package: &str, name: &str, variable: &str, value: &OsStr) -> Result<(), Failure> {
    test_with(package, name, &[(variable, value)])
}

/// The same with several variables.
fn test_with(package: &str, name: &str, variables: &[(&str, &OsStr)]) -> Result<(), Failure> {
    let done = Command::new(env!("CARGO"))
        .args(["test", "--release", "--locked", "--package", package, "--test", "it", name])
        .args(["--", "--exact", "--nocapture"])
        .envs(variables.iter().copied())
        .status()?;
    if done.success() { Ok(()) } else { Err(format!("{name} failed").into()) }
}
