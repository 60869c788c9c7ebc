//! The rules that look at crates: who may depend on whom, and who may know which library.

use super::Finding;
use cargo_metadata::{DependencyKind, Metadata, TargetKind};

/// The house from left to right; a crate depends only on crates of a lower rank, so those of one rank never
/// see each other.
const RANKS: &[(&str, usize)] = &[
    ("cotenant-model", 0),
    ("cotenant-text", 1),
    ("cotenant-coord", 2),
    ("cotenant-tree", 2),
    ("cotenant-ledger", 2),
    ("cotenant-shell", 2),
    ("cotenant-watch", 2),
    ("cotenant-engine", 3),
    ("cotenant-tools", 4),
    ("cotenant-mcp", 5),
    ("cotenant-daemon", 6),
    ("cotenant", 7),
];

/// Members that only help to build or to test; nothing that ships depends on them.
const SUPPORT: &[&str] = &["cotenant-testkit", "xtask"];

/// Libraries that only these crates may depend on.
const KNOWS: &[(&str, &[&str])] = &[
    ("tokio", &["cotenant-mcp", "cotenant-daemon"]),
    ("axum", &["cotenant-mcp", "cotenant-daemon"]),
    ("rmcp", &["cotenant-mcp"]),
    ("serde_json", &["cotenant-text", "cotenant-tools", "cotenant-mcp", "cotenant-daemon", "cotenant"]),
    ("rusqlite", &["cotenant-ledger"]),
    ("jiff", &["cotenant-daemon", "cotenant"]),
    ("clap", &["cotenant"]),
];

/// One package of the workspace, as far as the rules care.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// What it is built with; dev-dependencies are exempt and left out.
    pub(crate) needs: Vec<String>,
    /// Names of its integration test binaries.
    pub(crate) test_binaries: Vec<String>,
}

impl Member {
    /// The name of its folder.
    pub(crate) fn folder(&self) -> &str {
        match self.name.as_str() {
            "cotenant" => "cli",
            name => name.trim_start_matches("cotenant-"),
        }
    }
}

/// The packages of the workspace.
pub(crate) fn members(metadata: &Metadata) -> Vec<Member> {
    let member = |package: &&cargo_metadata::Package| {
        let built_with = package.dependencies.iter().filter(|need| need.kind != DependencyKind::Development);
        let tests = package.targets.iter().filter(|target| target.kind.contains(&TargetKind::Test));
        Member {
            name: package.name.to_string(),
            needs: built_with.map(|need| need.name.clone()).collect(),
            test_binaries: tests.map(|target| target.name.clone()).collect(),
        }
    };
    metadata.workspace_packages().iter().map(member).collect()
}

/// Everything wrong with how the crates hang together.
pub(crate) fn check(members: &[Member]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members {
        edges(member, &mut findings);
        knows(member, &mut findings);
        binaries(member, &mut findings);
    }
    findings
}

fn found(member: &Member, rule: &'static str, what: String) -> Finding {
    let path = match member.folder() {
        "xtask" => "xtask/Cargo.toml".to_owned(),
        folder => format!("crates/{folder}/Cargo.toml"),
    };
    Finding { path, line: 0, rule, what }
}

fn rank(name: &str) -> Option<usize> {
    RANKS.iter().find(|(known, _)| *known == name).map(|(_, rank)| *rank)
}

fn edges(member: &Member, findings: &mut Vec<Finding>) {
    if SUPPORT.contains(&member.name.as_str()) {
        return;
    }
    let Some(own) = rank(&member.name) else {
        let what = format!(
            "{} has no place in the house; give it one in xtask's RANKS and in ARCHITECTURE.md",
            member.name
        );
        return findings.push(found(member, "edges", what));
    };
    for need in &member.needs {
        let ours = need == "cotenant" || need.starts_with("cotenant-") || need == "xtask";
        if ours && rank(need).is_none_or(|left| left >= own) {
            let what = format!("{} must not depend on {need}: only on crates to its left", member.name);
            findings.push(found(member, "edges", what));
        }
    }
}

fn knows(member: &Member, findings: &mut Vec<Finding>) {
    if SUPPORT.contains(&member.name.as_str()) {
        return;
    }
    for (library, owners) in KNOWS {
        if member.needs.iter().any(|need| need == library) && !owners.contains(&member.name.as_str()) {
            let what = format!("{library} is known to {} only", owners.join(", "));
            findings.push(found(member, "knows", what));
        }
    }
}

fn binaries(member: &Member, findings: &mut Vec<Finding>) {
    if member.test_binaries.len() > 1 {
        let what = format!(
            "{} test binaries ({}); make them modules of one",
            member.test_binaries.len(),
            member.test_binaries.join(", ")
        );
        findings.push(found(member, "binaries", what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(name: &str, needs: &[&str]) -> Vec<&'static str> {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        let member = Member { name: name.to_owned(), needs, test_binaries: Vec::new() };
        check(&[member]).iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn edges_to_the_left_are_allowed() {
        assert_eq!(broken("cotenant-model", &["blake3"]), [""; 0]);
        assert_eq!(broken("cotenant-coord", &["cotenant-model", "cotenant-text"]), [""; 0]);
        assert_eq!(
            broken("cotenant-engine", &["cotenant-coord", "cotenant-tree", "cotenant-ledger"]),
            [""; 0]
        );
        assert_eq!(broken("cotenant", &["cotenant-daemon", "cotenant-model"]), [""; 0]);
        assert_eq!(broken("cotenant-testkit", &["cotenant-daemon", "tokio"]), [""; 0]);
    }

    #[test]
    fn edges_to_the_right_or_between_neighbours_are_not() {
        assert_eq!(broken("cotenant-model", &["cotenant-text"]), ["edges"]);
        assert_eq!(broken("cotenant-tree", &["cotenant-coord"]), ["edges"]);
        assert_eq!(broken("cotenant-ledger", &["cotenant-engine", "cotenant-tree"]), ["edges", "edges"]);
        assert_eq!(broken("cotenant-tools", &["cotenant-tools"]), ["edges"]);
        assert_eq!(broken("cotenant-daemon", &["cotenant"]), ["edges"]);
    }

    #[test]
    fn nothing_that_ships_is_built_with_the_testkit() {
        assert_eq!(broken("cotenant-daemon", &["cotenant-testkit"]), ["edges"]);
    }

    #[test]
    fn a_crate_without_a_place_is_named() {
        assert_eq!(broken("cotenant-attic", &[]), ["edges"]);
    }

    #[test]
    fn libraries_stay_with_those_who_know_them() {
        assert_eq!(broken("cotenant-mcp", &["tokio", "axum", "rmcp", "serde_json"]), [""; 0]);
        assert_eq!(broken("cotenant-engine", &["tokio", "serde_json"]), ["knows", "knows"]);
        assert_eq!(broken("cotenant-daemon", &["rmcp"]), ["knows"]);
        assert_eq!(broken("cotenant-coord", &["rusqlite"]), ["knows"]);
    }

    #[test]
    fn a_second_test_binary_is_one_too_many() {
        let member = |tests: &[&str]| Member {
            name: "cotenant-tree".to_owned(),
            needs: Vec::new(),
            test_binaries: tests.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(check(&[member(&["it"])]), []);
        assert_eq!(check(&[member(&["it", "more"])])[0].rule, "binaries");
    }

    #[test]
    fn this_workspace_is_read_with_its_own_names() {
        let members = members(&crate::workspace::metadata().unwrap());
        let model = members.iter().find(|member| member.name == "cotenant-model").unwrap();
        assert!(!model.needs.iter().any(|need| need == "proptest"), "a dev-dependency is not an edge");
        assert!(
            RANKS.iter().filter(|(name, _)| members.iter().any(|member| member.name == *name)).count() >= 10
        );
    }
}
