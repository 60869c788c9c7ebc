//! Path classes: which paths agents may not touch, which are asked about, which a generator owns. One table.
//!
//! Names are compared as the most careless file system would: case folded, without the characters that HFS+ ignores,
//! without what NTFS strips (final dots and spaces, `:stream`), by their NTFS short names, and with `\` as a separator.

use std::collections::HashSet;
use std::sync::LazyLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::{GeneratedRule, RelPath};

/// What a path is, by rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathClass {
    /// Nothing special.
    Ordinary,
    /// Every write is asked about, in every profile but `readonly`.
    Sensitive,
    /// A generator owns it; read-only.
    Generated,
    /// Neither read nor written by the file tools.
    Protected,
}

/// The class of a path and the rule that decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassHit {
    /// The class.
    pub class: PathClass,
    /// The rule in the reader's words, such as `.env*`; empty for `Ordinary`.
    pub rule: String,
    /// For `Generated`: where it comes from.
    pub from: Option<String>,
    /// For `Generated`: the command that makes it.
    pub command: Option<String>,
}

impl ClassHit {
    /// Nothing special.
    pub fn ordinary() -> ClassHit {
        ClassHit::of(PathClass::Ordinary, "")
    }

    /// A hit without a generator.
    pub fn of(class: PathClass, rule: &str) -> ClassHit {
        ClassHit { class, rule: rule.to_owned(), from: None, command: None }
    }

    /// The stricter of two hits; the first of equals.
    #[must_use]
    pub fn max(self, other: ClassHit) -> ClassHit {
        if other.class > self.class { other } else { self }
    }
}

/// Protected by default, at any depth, the whole subtree: version control, secrets, and what agents, editors, shells and
/// package managers execute. A final `*` stands for any rest, a leading `*` for any start; all lower case.
pub const PROTECTED: &[&str] = &[
    // version control, which git and its peers alone write
    ".git",
    ".gitmodules",
    ".gitconfig",
    ".hg",
    ".hgrc",
    ".svn",
    ".bzr",
    ".jj",
    // secrets
    ".env*",
    ".venv",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".git-credentials",
    ".pypirc",
    ".htpasswd",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
    // our own settings
    "cotenant.toml",
    // what agents execute
    ".claude",
    ".claude.json",
    ".codex",
    ".cursor",
    ".gemini",
    ".qwen",
    ".windsurf",
    ".continue",
    ".roo",
    ".cline",
    ".kiro",
    ".aider.conf.yml",
    ".opencode",
    "opencode.json",
    ".mcp.json",
    ".amp",
    // what editors execute
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".vim",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".devcontainer",
    // what shells and tools execute
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".inputrc",
    ".direnv",
    ".husky",
    ".cargo",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".ripgreprc",
    ".curlrc",
    ".wgetrc",
    ".lldbinit",
    ".gdbinit",
    ".pythonrc",
    ".tool-versions",
    ".mise.toml",
];

/// Sensitive by default, at any depth, the whole subtree: agents' instructions, CI, and what changes how git reads files.
pub const SENSITIVE: &[&str] = &[
    "agents.md",
    "agents.override.md",
    "claude.md",
    "claude.local.md",
    "gemini.md",
    "qwen.md",
    "copilot-instructions.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".roorules",
    ".goosehints",
    ".gitattributes",
    ".github/workflows",
    ".github/actions",
    ".gitlab-ci.yml",
    ".gitlab-ci",
    ".circleci",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker",
    ".woodpecker.yml",
    ".buildkite",
    ".cirrus.yml",
    ".appveyor.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "jenkinsfile",
    ".pre-commit-config.yaml",
    ".lefthook.yml",
    "lefthook.yml",
];

/// The rules of a workspace: the default tables and what `cotenant.toml` adds and excepts.
#[derive(Clone, Debug, Default)]
pub struct ClassRules {
    add: Globs,
    except: Globs,
    generated: Vec<(Globs, GeneratedRule)>,
}

#[derive(Clone, Debug, Default)]
struct Globs {
    set: GlobSet,
    patterns: Vec<String>,
}

impl Globs {
    fn new(patterns: &[String]) -> Result<Globs, String> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            // A pattern covers what lies below it, too: `secrets` means the directory and everything in it.
            for form in [
                pattern.trim_end_matches('/').to_lowercase(),
                format!("{}/**", pattern.trim_end_matches('/').to_lowercase()),
            ] {
                let glob = GlobBuilder::new(&form).literal_separator(true).build();
                set.add(glob.map_err(|error| format!("{pattern:?}: {}", error.kind()))?);
            }
        }
        let set = set.build().map_err(|error| error.to_string())?;
        Ok(Globs { set, patterns: patterns.to_vec() })
    }

    fn hit(&self, folded: &str) -> Option<&str> {
        let first = *self.set.matches(folded).first()?;
        self.patterns.get(first / 2).map(String::as_str)
    }
}

impl ClassRules {
    /// Builds the rules. The error names the pattern that does not parse.
    pub fn new(add: &[String], except: &[String], generated: &[GeneratedRule]) -> Result<ClassRules, String> {
        Ok(ClassRules {
            add: Globs::new(add)?,
            except: Globs::new(except)?,
            generated: generated
                .iter()
                .map(|rule| Ok((Globs::new(&rule.paths)?, rule.clone())))
                .collect::<Result<_, String>>()?,
        })
    }

    /// Whether `name` is protected in `parent`, which is not: what [`ClassRules::classify`] says of the two joined, for
    /// walks over many names.
    pub fn protects(&self, parent: &RelPath, name: &[u8]) -> bool {
        if self.add.patterns.is_empty() && self.except.patterns.is_empty() {
            return spellings(name).iter().any(|name| PROTECTED_TABLE.rule_for_name(name).is_some());
        }
        self.classify(&parent.join(name)).class == PathClass::Protected
    }

    /// The class of a path, whether it exists or not. It must be asked of the path as given and of the resolved one.
    pub fn classify(&self, path: &RelPath) -> ClassHit {
        let names: Vec<String> = path.components().flat_map(spellings).collect();
        let folded = names.join("/");
        let protected = || {
            PROTECTED_TABLE.rule_for(&names).map(str::to_owned).or_else(|| {
                self.add.hit(&folded).map(|pattern| format!("cotenant.toml protected.add: {pattern}"))
            })
        };
        if self.except.hit(&folded).is_none()
            && let Some(rule) = protected()
        {
            return ClassHit::of(PathClass::Protected, &rule);
        }
        for (globs, rule) in &self.generated {
            if let Some(pattern) = globs.hit(&folded) {
                return ClassHit {
                    class: PathClass::Generated,
                    rule: format!("cotenant.toml generated: {pattern}"),
                    from: rule.from.clone(),
                    command: rule.command.clone(),
                };
            }
        }
        SENSITIVE_TABLE
            .rule_for(&names)
            .map_or_else(ClassHit::ordinary, |rule| ClassHit::of(PathClass::Sensitive, rule))
    }
}

static PROTECTED_TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(PROTECTED));
static SENSITIVE_TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(SENSITIVE));

/// A table of rules sorted by how they are compared: every path of every listing is held against it.
struct Table {
    /// Whole names.
    exact: HashSet<&'static str>,
    /// Starts of names, with the rule.
    starts: Vec<(&'static str, &'static str)>,
    /// Ends of names, with the rule.
    ends: Vec<(&'static str, &'static str)>,
    /// Names that follow each other (`a/b`), with the rule.
    runs: Vec<(Vec<&'static str>, &'static str)>,
    /// The stems of NTFS short names, with the rule.
    short: Vec<(String, &'static str)>,
}

impl Table {
    fn new(rules: &[&'static str]) -> Table {
        let mut table = Table {
            exact: HashSet::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            runs: Vec::new(),
            short: rules.iter().filter_map(|rule| Some((short_stem(rule)?, *rule))).collect(),
        };
        for rule in rules.iter().copied() {
            if let Some(start) = rule.strip_suffix('*') {
                table.starts.push((start, rule));
            } else if let Some(end) = rule.strip_prefix('*') {
                table.ends.push((end, rule));
            } else if rule.contains('/') {
                table.runs.push((rule.split('/').collect(), rule));
            } else {
                table.exact.insert(rule);
            }
        }
        table
    }

    /// The rule that the single `name` falls under.
    fn rule_for_name(&self, name: &str) -> Option<&'static str> {
        if let Some(rule) = self.exact.get(name) {
            return Some(rule);
        }
        let start = self.starts.iter().find(|(start, _)| name.starts_with(start));
        let end = || self.ends.iter().find(|(end, _)| name.len() > end.len() && name.ends_with(end));
        if let Some((_, rule)) = start.or_else(end) {
            return Some(rule);
        }
        // The NTFS short name `git~1` of `.git`.
        let (stem, rest) = name.split_once('~')?;
        let short = rest.starts_with(|ch: char| ch.is_ascii_digit());
        self.short.iter().find(|(letters, _)| short && letters == stem).map(|(_, rule)| *rule)
    }

    /// The rule that one of the names, or a run of them, falls under.
    fn rule_for(&self, names: &[String]) -> Option<&'static str> {
        let run = |(run, _): &&(Vec<&'static str>, &'static str)| {
            names.windows(run.len()).any(|names| names == run)
        };
        let single = names.iter().find_map(|name| self.rule_for_name(name));
        single.or_else(|| self.runs.iter().find(run).map(|(_, rule)| *rule))
    }
}

/// What stands before the `~` in the NTFS short name of a rule's name, which begins with a dot: six letters at the most,
/// dots dropped.
fn short_stem(rule: &str) -> Option<String> {
    let name = rule.trim_end_matches('*').strip_prefix('.').filter(|name| !name.contains('/'))?;
    Some(name.chars().filter(|ch| *ch != '.').take(6).collect())
}

/// The names that a careless file system could take a component for: split at `\`, folded, and stripped.
fn spellings(component: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(component);
    text.split('\\').map(fold).filter(|name| !name.is_empty()).collect()
}

fn fold(name: &str) -> String {
    if name.is_ascii() {
        let seen = name.find(':').filter(|at| *at > 0).map_or(name, |at| &name[..at]);
        return seen.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    }
    let seen: String = name.chars().filter(|ch| !ignored(*ch)).flat_map(char::to_lowercase).collect();
    let unstreamed = match seen.split_once(':') {
        Some((before, _)) if !before.is_empty() => before,
        _ => &seen,
    };
    unstreamed.trim_end_matches(['.', ' ']).replace('ſ', "s").replace('\u{212a}', "k")
}

/// What HFS+ leaves out of a comparison, and the other characters that nobody sees.
fn ignored(ch: char) -> bool {
    matches!(ch, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(path: &str) -> PathClass {
        ClassRules::default().classify(&RelPath::parse(path).unwrap()).class
    }

    #[test]
    fn protected_in_every_spelling_and_at_any_depth() {
        for path in [
            ".git/config",
            "sub/.git/hooks/x",
            ".GIT/config",
            ".git\u{200c}/config",
            "git~1/config",
            "GIT~2",
            ".git./config",
            ".git /x",
            ".git::$INDEX_ALLOCATION/config",
            "a\\.git\\config",
            ".env",
            ".env.local",
            ".envrc",
            "ENV~1",
            ".venv/bin/x",
            "cotenant.toml",
            "COTENANT.TOML",
            ".cursor/mcp.json",
            ".claude/settings.json",
            "deep/er/.ssh/id",
            "k/server.pem",
            ".cargo/config.toml",
            ".ripgreprc",
            ".husky/pre-commit",
            ".gitmodules",
            "id_ed25519",
            "\u{212a}/.\u{212a}ube",
        ] {
            assert_eq!(class(path), PathClass::Protected, "{path}");
        }
    }

    #[test]
    fn ordinary_names_that_only_resemble() {
        for path in [
            ".gitignore",
            "git/config",
            "agit~1",
            "src/env.rs",
            "s.env.txt",
            "environment",
            "id_rsa.pub",
            "pem",
            "github.rs",
            "docs/claude",
            ".github/ISSUE_TEMPLATE/x.md",
            "a:b",
            "key",
        ] {
            assert_eq!(class(path), PathClass::Ordinary, "{path}");
        }
    }

    #[test]
    fn instructions_and_ci_are_sensitive() {
        for path in
            ["AGENTS.md", "sub/Claude.md", ".github/workflows/ci.yml", ".gitattributes", "Jenkinsfile"]
        {
            assert_eq!(class(path), PathClass::Sensitive, "{path}");
        }
    }

    #[test]
    fn settings_add_except_and_name_generators() {
        let generated = GeneratedRule {
            paths: vec!["**/*.pb.rs".to_owned()],
            from: Some("api.proto".to_owned()),
            command: Some("buf generate".to_owned()),
        };
        let rules =
            ClassRules::new(&["vault".to_owned()], &[".env.example".to_owned()], &[generated]).unwrap();
        let hit = |path: &str| rules.classify(&RelPath::parse(path).unwrap());
        assert_eq!(hit("vault/a/b").class, PathClass::Protected);
        assert_eq!(hit(".env.example").class, PathClass::Ordinary);
        assert_eq!(hit(".env").rule, ".env*");
        let generated = hit("src/x.pb.rs");
        assert_eq!(
            (generated.class, generated.command.as_deref()),
            (PathClass::Generated, Some("buf generate"))
        );
        assert!(ClassRules::new(&["a[".to_owned()], &[], &[]).unwrap_err().contains("a["));
    }

    #[test]
    fn a_name_in_a_walk_is_judged_as_its_path_is() {
        let plain = ClassRules::default();
        let own = ClassRules::new(&["src/vault".to_owned()], &[".env.example".to_owned()], &[]).unwrap();
        let parent = RelPath::parse("src").unwrap();
        for name in
            [".git", "GIT~1", ".env.example", "vault", "lib.rs", "x.pem", "a\\.git", ".git\u{200c}", "é"]
        {
            for rules in [&plain, &own] {
                let path = parent.join(name.as_bytes());
                let protected = rules.classify(&path).class == PathClass::Protected;
                assert_eq!(rules.protects(&parent, name.as_bytes()), protected, "{name}");
            }
        }
        assert!(
            PROTECTED.iter().all(|rule| !rule.contains('/')),
            "a rule over several names would be missed"
        );
    }

    #[test]
    fn the_tables_are_lower_case_and_say_nothing_twice() {
        let mut all: Vec<_> = PROTECTED.iter().chain(SENSITIVE).collect();
        assert!(all.iter().all(|entry| entry.to_lowercase() == **entry));
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
