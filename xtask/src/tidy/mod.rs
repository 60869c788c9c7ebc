//! `cargo xtask tidy`: the rules that keep the house in shape, and nothing but words to break them.
//!
//! Rules look at one file (`file_rules`), at cargo's metadata (`crates`), or at the workspace as a whole
//! (`whole`). A finding says where, which rule, and what to do.

mod crates;
mod file_rules;
mod scan;
mod whole;

use crate::{Failure, workspace};
use scan::{Role, Source};
use std::fmt;

/// Every rule: its name, as `ARCHITECTURE.md` may cite it, and what it keeps.
pub(crate) const RULES: &[(&str, &str)] = &[
    ("rust", "a file reads as Rust"),
    ("edges", "a crate depends only on crates to its left"),
    ("knows", "tokio, axum, rmcp, serde_json, rusqlite, jiff and clap only where they belong"),
    ("owners", "std::fs only in crates that own files"),
    ("spawn", "processes start only in shell and in the spawn modules of daemon and cli"),
    ("clock", "the wall clock is read in daemon and cli only; the pure crates know no clock at all"),
    ("commit", "the commit modules of tree and ledger are named by engine alone"),
    ("panics", "no unwrap, expect, panic!, todo!, unimplemented! outside tests"),
    ("unsafe", "unsafe only in a sys module"),
    ("length", "a function has at most 70 lines, a file 800"),
    ("header", "a file opens with a //! line"),
    ("ignored", "no test is ignored, unless another one runs it by name"),
    ("binaries", "one test binary per crate"),
    ("locked", "a ceiling on locked packages"),
    ("ratio", "test lines at least equal to product lines"),
    ("invariants", "every invariant of ARCHITECTURE.md names a test or a rule that exists"),
    ("map", "every crate has its row in ARCHITECTURE.md"),
    ("dependencies", "every dependency has its line in docs/dependencies.md"),
];

/// One broken rule at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// Counted from 1; 0 where the whole file is meant.
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    /// What is the case and what to do.
    pub(crate) what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{} {}: {}", self.path, self.rule, self.what),
            line => write!(f, "{}:{line} {}: {}", self.path, self.rule, self.what),
        }
    }
}

/// Checks the workspace; prints each finding and fails if there is one.
pub(crate) fn run() -> Result<(), Failure> {
    let mut findings = Vec::new();
    let sources = read(&workspace::rust_files()?, &mut findings);
    let metadata = workspace::metadata()?;

    findings.extend(sources.iter().flat_map(file_rules::check));
    let members = crates::members(&metadata);
    findings.extend(crates::check(&members));
    let lines = whole::Lines::count(&sources);
    findings.extend(lines.check());
    findings.extend(whole::locked(&workspace::text("Cargo.lock")?));
    let architecture = workspace::text("ARCHITECTURE.md")?;
    findings.extend(whole::invariants(&architecture, &sources));
    findings.extend(whole::map(&architecture, members.iter().map(crates::Member::folder)));
    let manifest = workspace::text("Cargo.toml")?;
    findings.extend(whole::dependencies(&manifest, &workspace::text("docs/dependencies.md")?)?);

    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    for member in members.iter().filter(|member| member.folder() != "xtask") {
        let own = whole::Lines::count(sources.iter().filter(|source| source.krate() == member.folder()));
        println!("{:>10}: {own}", member.folder());
    }
    println!("tidy: {} files, {lines}, {} findings", sources.len(), findings.len());
    match findings.len() {
        0 => Ok(()),
        count => Err(format!("{count} findings").into()),
    }
}

/// Reads the files; modules that are compiled for tests only become tests.
fn read(files: &[(String, String)], findings: &mut Vec<Finding>) -> Vec<Source> {
    let mut sources = Vec::new();
    for (path, text) in files {
        match Source::new(path, text) {
            Ok(source) => sources.push(source),
            Err(what) => findings.push(Finding { path: path.clone(), line: 0, rule: "rust", what }),
        }
    }
    let test_modules: Vec<String> = sources.iter().flat_map(scan::test_modules).collect();
    for source in &mut sources {
        let is_below = |module: &String| {
            source
                .path
                .strip_prefix(module.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if test_modules.iter().any(is_below) {
            source.role = Role::Test;
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_where_which_rule_and_what() {
        let mut finding = Finding { path: "a.rs".into(), line: 7, rule: "length", what: "split it".into() };
        assert_eq!(finding.to_string(), "a.rs:7 length: split it");
        finding.line = 0;
        assert_eq!(finding.to_string(), "a.rs length: split it");
    }

    #[test]
    fn a_file_declared_under_cfg_test_is_a_test_and_so_is_what_lies_below_it() {
        let files = [
            ("crates/tree/src/lib.rs", "#[cfg(test)]\nmod oracle;\nmod oracles;"),
            ("crates/tree/src/oracle.rs", "fn a() {}"),
            ("crates/tree/src/oracle/deep.rs", "fn a() {}"),
            ("crates/tree/src/oracles.rs", "fn a() {}"),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let roles: Vec<Role> = read(&files, &mut Vec::new()).iter().map(|source| source.role).collect();
        assert_eq!(roles, [Role::Product, Role::Test, Role::Test, Role::Product]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_finding() {
        let mut findings = Vec::new();
        let sources = read(&[("crates/tree/src/lib.rs".to_owned(), "fn (".to_owned())], &mut findings);
        assert!(sources.is_empty());
        assert_eq!(findings.len(), 1);
    }
}
