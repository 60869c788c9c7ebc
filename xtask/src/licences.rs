//! The licences of everything locked, compared with the list in `deny.toml`, without network.
//!
//! `cargo deny` reads the same list and checks more (advisories, sources); it runs with `ci --long`.

use crate::{Failure, workspace};
use std::collections::BTreeSet;

/// Fails with one line for each package whose licence is not on the list.
pub(crate) fn run() -> Result<(), Failure> {
    let allowed = allowed(&workspace::text("deny.toml")?)?;
    let metadata = workspace::metadata()?;
    let mut wrong = 0;
    for package in &metadata.packages {
        let licence = package.license.as_deref().unwrap_or("");
        if !permits(licence, &allowed) {
            wrong += 1;
            println!("{} {}: licence `{licence}` is not on deny.toml's list", package.name, package.version);
        }
    }
    println!("licences: {} packages, {wrong} not allowed", metadata.packages.len());
    match wrong {
        0 => Ok(()),
        count => Err(format!("{count} licences not allowed").into()),
    }
}

fn allowed(deny: &str) -> Result<BTreeSet<String>, Failure> {
    let deny: toml::Table = deny.parse()?;
    let list =
        deny.get("licenses").and_then(|licenses| licenses.get("allow")).and_then(|allow| allow.as_array());
    let list = list.ok_or("deny.toml has no list licenses.allow")?;
    Ok(list.iter().filter_map(|name| name.as_str()).map(str::to_owned).collect())
}

/// Whether an SPDX expression can be satisfied by the allowed licences. The old `A/B` means `A OR B`.
/// An expression that cannot be read is not permitted.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    let answer = reader.any();
    answer == Some(true) && reader.words.is_empty()
}

/// A recursive-descent reader; `None` is an expression that makes no sense.
struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Reader<'_> {
    fn take(&mut self, word: &str) -> bool {
        let taken = self.words.first() == Some(&word);
        if taken {
            self.words = &self.words[1..];
        }
        taken
    }

    fn any(&mut self) -> Option<bool> {
        let mut answer = self.all()?;
        while self.take("OR") {
            answer |= self.all()?;
        }
        Some(answer)
    }

    fn all(&mut self) -> Option<bool> {
        let mut answer = self.one()?;
        while self.take("AND") {
            answer &= self.one()?;
        }
        Some(answer)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let answer = self.any()?;
            return self.take(")").then_some(answer);
        }
        let (name, rest) = self.words.split_first()?;
        if ["OR", "AND", "WITH", ")"].contains(name) {
            return None;
        }
        self.words = rest;
        if self.take("WITH") {
            let (exception, rest) = self.words.split_first()?;
            self.words = rest;
            return Some(self.allowed.contains(&format!("{name} WITH {exception}")));
        }
        Some(self.allowed.contains(*name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> BTreeSet<String> {
        allowed("[licenses]\nallow = [\"MIT\", \"BSD-3-Clause\", \"Apache-2.0 WITH LLVM-exception\"]")
            .unwrap()
    }

    #[test]
    fn one_allowed_side_of_or_is_enough() {
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/GPL-3.0",
            "(GPL-3.0 OR MIT) AND BSD-3-Clause",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(permits(good, &list()), "{good}");
        }
    }

    #[test]
    fn both_sides_of_and_are_needed_and_nonsense_is_refused() {
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "Apache-2.0",
            "(MIT",
            "MIT)",
            "MIT MIT",
            "OR MIT",
            "MIT OR",
            "MIT WITH",
        ] {
            assert!(!permits(bad, &list()), "{bad}");
        }
    }

    #[test]
    fn a_page_without_the_list_is_an_error() {
        assert!(allowed("[bans]\n").is_err());
    }
}
