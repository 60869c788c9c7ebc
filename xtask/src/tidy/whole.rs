//! The rules that look at the workspace as a whole: its lock file, its tests, its pages.

use super::scan::{Role, Source, Token};
use super::{Finding, RULES};
use std::collections::BTreeSet;
use std::fmt;

/// The ceiling on packages in `Cargo.lock`, our own included: what is there plus a little room. Raise it in
/// the commit that brings the dependency, which then has to say why.
const MAX_LOCKED: usize = 245;

fn found(path: &str, line: usize, rule: &'static str, what: String) -> Finding {
    Finding { path: path.to_owned(), line, rule, what }
}

/// Fails when more packages are locked than the ceiling allows.
pub(crate) fn locked(lock: &str) -> Vec<Finding> {
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    if count <= MAX_LOCKED {
        return Vec::new();
    }
    let what = format!(
        "{count} packages locked, {MAX_LOCKED} at most: drop features, or raise MAX_LOCKED with a reason"
    );
    vec![found("Cargo.lock", 0, "locked", what)]
}

/// Lines of Rust that are neither blank nor comment, of what ships and of what tests it. `testkit` counts as
/// test; `xtask` counts for neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) product: usize,
    pub(crate) test: usize,
}

impl Lines {
    pub(crate) fn count<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Self {
        let mut lines = Self::default();
        sources.into_iter().filter(|source| source.krate() != "xtask").for_each(|source| lines.add(source));
        lines
    }

    fn add(&mut self, source: &Source) {
        let all_test = source.role != Role::Product;
        let lines_of = |tokens: &mut dyn Iterator<Item = &Token>| {
            tokens.map(|token| token.line).collect::<BTreeSet<_>>()
        };
        let spoken = lines_of(&mut source.tokens.iter());
        let tested = lines_of(&mut source.tokens.iter().filter(|token| token.test));
        let mut in_test = false;
        for (at, line) in (1..).zip(source.text.lines().map(str::trim)) {
            // A line within a literal carries no token: it belongs to the line above.
            in_test = if spoken.contains(&at) { tested.contains(&at) } else { in_test };
            let counts = !line.is_empty() && !line.starts_with("//");
            self.test += usize::from(counts && (all_test || in_test));
            self.product += usize::from(counts && !(all_test || in_test));
        }
    }

    /// Fails when there is more product than test.
    pub(crate) fn check(self) -> Vec<Finding> {
        if self.test >= self.product {
            return Vec::new();
        }
        vec![found("crates", 0, "ratio", format!("{self}: test what is not tested yet"))]
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines of product, {} of tests", self.product, self.test)
    }
}

/// Every bullet below the heading `Invariants` ends in `Kept by …`, whose names are `tidy NAME` (a rule of
/// this program) or the name of a test function.
pub(crate) fn invariants(page: &str, sources: &[Source]) -> Vec<Finding> {
    let tests = test_functions(sources);
    let mut findings = Vec::new();
    let mut wrong = |line, what| findings.push(found("ARCHITECTURE.md", line, "invariants", what));
    let bullets = bullets(page);
    if bullets.is_empty() {
        wrong(0, "no bullet below a heading `## Invariants`".to_owned());
    }
    for (line, bullet) in bullets {
        let Some((_, keepers)) = bullet.rsplit_once("Kept by ") else {
            wrong(line, "an invariant ends in `Kept by` and the names of its tests or rules".to_owned());
            continue;
        };
        let names: Vec<&str> = keepers.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            wrong(line, "`Kept by` names nothing in backticks".to_owned());
        }
        for name in names.into_iter().filter(|name| !exists(name, &tests)) {
            wrong(line, format!("`{name}` is neither a test in the tree nor a rule of tidy"));
        }
    }
    findings
}

fn exists(name: &str, tests: &BTreeSet<&str>) -> bool {
    match name.split_once(' ') {
        Some(("tidy", rule)) => RULES.iter().any(|(known, _)| *known == rule),
        Some(_) => false,
        None => tests.contains(name.rsplit("::").next().unwrap_or(name)),
    }
}

/// Names of functions in what is compiled for tests only.
fn test_functions(sources: &[Source]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for source in sources {
        let in_test = |at: &usize| source.role == Role::Test || source.tokens[*at].test;
        for at in (1..source.tokens.len()).filter(in_test).filter(|at| source.is(at - 1, "fn")) {
            names.insert(source.tokens[at].text.as_str());
        }
    }
    names
}

/// The bullets of the section, each on one line however it is wrapped, with the line it begins at.
fn bullets(page: &str) -> Vec<(usize, String)> {
    let mut bullets: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (at, line) in page.lines().enumerate() {
        if line.starts_with('#') {
            inside = line.trim_start_matches('#').trim() == "Invariants";
        } else if inside && line.starts_with("- ") {
            bullets.push((at + 1, line.to_owned()));
        } else if let (true, true, Some((_, bullet))) = (inside, line.starts_with("  "), bullets.last_mut()) {
            bullet.push(' ');
            bullet.push_str(line.trim());
        }
    }
    bullets
}

/// Every foreign crate of `[workspace.dependencies]` has a row in the page, and every row a crate.
pub(crate) fn dependencies(manifest: &str, page: &str) -> Result<Vec<Finding>, toml::de::Error> {
    let manifest: toml::Table = manifest.parse()?;
    let table = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(|t| t.as_table());
    let foreign = table.into_iter().flatten().filter(|(_, value)| value.get("path").is_none());
    let wanted: BTreeSet<&str> = foreign.map(|(name, _)| name.as_str()).collect();
    let rows = rows(page);

    let page_name = "docs/dependencies.md";
    let missing = wanted.iter().filter(|name| !rows.contains(*name));
    let missing =
        missing.map(|name| format!("no row `| `{name}` |`: say what it is for and what else was weighed"));
    let stale = rows.iter().filter(|name| !wanted.contains(*name));
    let stale = stale.map(|name| format!("{name} is no dependency any more; remove its row"));
    Ok(missing.chain(stale).map(|what| found(page_name, 0, "dependencies", what)).collect())
}

/// Every crate, by its folder's name, has a row in the page.
pub(crate) fn map<'a>(page: &str, folders: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let rows = rows(page);
    let missing = folders.filter(|folder| !rows.contains(folder));
    let missing =
        missing.map(|folder| format!("no row `| `{folder}` |`: say what the crate is and what it knows of"));
    missing.map(|what| found("ARCHITECTURE.md", 0, "map", what)).collect()
}

/// What the rows of the page's tables are about: the first cell, if it is a word in backticks.
fn rows(page: &str) -> BTreeSet<&str> {
    page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::new(path, text).unwrap()
    }

    #[test]
    fn the_ceiling_holds() {
        let lock = |count: usize| "[[package]]\nname = \"a\"\n\n".repeat(count);
        assert_eq!(locked(&lock(MAX_LOCKED)), []);
        assert_eq!(locked(&lock(MAX_LOCKED + 1)).len(), 1);
    }

    #[test]
    fn lines_are_counted_without_blanks_and_comments() {
        let sources = [
            source(
                "crates/tree/src/a.rs",
                "//! A.\n\n/// B.\nfn a() {\n    // c\n    let x = \"\n\n two\";\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}",
            ),
            source("crates/tree/tests/it/main.rs", "//! A.\nfn a() {}\n"),
            source("crates/testkit/src/lib.rs", "//! A.\nfn a() {}\n"),
            source("xtask/src/main.rs", "//! A.\nfn a() {}\n"),
        ];
        assert_eq!(Lines::count(&sources), Lines { product: 4, test: 6 });
    }

    #[test]
    fn less_test_than_product_fails() {
        assert_eq!(Lines { product: 5, test: 5 }.check(), []);
        assert_eq!(Lines { product: 5, test: 4 }.check()[0].rule, "ratio");
    }

    #[test]
    fn an_invariant_names_a_test_or_a_rule_that_exists() {
        let sources = [
            source("crates/tree/tests/it/main.rs", "fn nothing_escapes() {}"),
            source("crates/tree/src/a.rs", "fn shipped() {}"),
        ];
        let broken =
            |bullet: &str| invariants(&format!("# A\n## Invariants\n{bullet}\n## B\n- free\n"), &sources);
        for good in [
            "- There is no X. Kept by `tidy owners`.",
            "- There is no X.\n  Kept by `tree::it::nothing_escapes`\n  and `tidy edges`.",
        ] {
            assert_eq!(broken(good), [], "{good}");
        }
        for bad in [
            "",
            "- There is no X.",
            "- There is no X. Kept by hope.",
            "- There is no X. Kept by `tidy hope`.",
            "- There is no X. Kept by `somebody::hopes`.",
            "- There is no X. Kept by `shipped`.",
            "- There is no X. Kept by `tidy owners` and `clippy owners`.",
        ] {
            assert_eq!(broken(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn every_crate_has_its_row() {
        let page = "| crate | is |\n|---|---|\n| `tree` | files |\n";
        assert_eq!(map(page, ["tree"].into_iter()), []);
        assert_eq!(map(page, ["tree", "attic"].into_iter()).len(), 1);
    }

    #[test]
    fn every_dependency_has_its_row_and_every_row_its_dependency() {
        let manifest = "[workspace.dependencies]\nown = { path = \"crates/own\" }\nserde = \"1\"\ntoml = { version = \"1\" }\n";
        let broken = |page: &str| dependencies(manifest, page).unwrap().len();
        assert_eq!(broken("| crate | for |\n|---|---|\n| `serde` | x |\n| `toml` | y |\n"), 0);
        assert_eq!(broken("| `serde` | x |\n"), 1);
        assert_eq!(broken("| `serde` | x |\n| `toml` | y |\n| `gone` | z |\n"), 1);
        assert!(dependencies("[", "").is_err());
    }
}
