//! Ignore files: what git and ripgrep would pass over, with their order of precedence.
//!
//! Only files inside the allowed folder count (`.ignore`, `.gitignore`, `.git/info/exclude`), with or without a
//! repository; what lies above the folder, or in the user's home, is not read.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use cotenant_model::{FolderId, RelPath};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::tree::Tree;

/// Bytes of a relative path as the ignore crates want them.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Which ignore files a directory has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Has {
    pub(crate) gitignore: bool,
    pub(crate) ignore: bool,
    /// Something called `.git`: a repository of its own, which the rules of one above do not reach.
    pub(crate) git: bool,
}

impl Has {
    /// Takes note of an entry of the directory.
    pub(crate) fn note(&mut self, name: &[u8]) {
        match name {
            b".gitignore" => self.gitignore = true,
            b".ignore" => self.ignore = true,
            b".git" => self.git = true,
            _ => {}
        }
    }

    fn any(self) -> bool {
        self.gitignore || self.ignore || self.git
    }
}

/// The rules that hold in a directory: its own, then those of the directories above.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    /// The length of the directory's path with its final `/`: what is below is matched without it.
    prefix: usize,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    repository: bool,
}

impl Rules {
    /// The rules in `dir`, which `has` some files, below those of the directories above. Where it has none, theirs.
    pub(crate) fn enter(
        above: Option<Arc<Rules>>,
        tree: &Tree,
        folder: FolderId,
        dir: &RelPath,
        has: Has,
    ) -> Option<Arc<Rules>> {
        if !has.any() {
            return above;
        }
        let read = |wanted: bool, name: &str| {
            wanted.then(|| parse(&tree.read_meta_file(folder, &below(dir, name))?))?
        };
        Some(Arc::new(Rules {
            above,
            prefix: if dir.is_root() { 0 } else { dir.as_bytes().len() + 1 },
            ignore: read(has.ignore, ".ignore"),
            gitignore: read(has.gitignore, ".gitignore"),
            exclude: read(has.git, ".git/info/exclude"),
            repository: has.git,
        }))
    }

    /// Whether `path`, relative to the folder, is ignored. A directory above it that is ignored is not considered: a walk
    /// does not enter one.
    pub(crate) fn ignores(&self, path: &[u8], is_dir: bool) -> bool {
        let (mut by_ignore, mut by_git, mut by_exclude) = (None, None, None);
        let mut other_repository = false;
        let mut here = Some(self);
        while let Some(rules) = here {
            let below = as_path(&path[rules.prefix..]);
            let ask =
                |rules: &Option<Gitignore>| rules.as_ref().and_then(|rules| verdict(rules, below, is_dir));
            by_ignore = by_ignore.or_else(|| ask(&rules.ignore));
            if !other_repository {
                by_git = by_git.or_else(|| ask(&rules.gitignore));
                by_exclude = by_exclude.or_else(|| ask(&rules.exclude));
            }
            other_repository |= rules.repository;
            here = rules.above.as_deref();
        }
        by_ignore.or(by_git).or(by_exclude).unwrap_or(false)
    }
}

fn verdict(rules: &Gitignore, path: &Path, is_dir: bool) -> Option<bool> {
    match rules.matched(path, is_dir) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

fn below(dir: &RelPath, names: &str) -> RelPath {
    names.split('/').fold(dir.clone(), |dir, name| dir.join(name.as_bytes()))
}

/// The rules of one file; `None` where it has none. A line that does not parse fits nothing, as for git.
fn parse(text: &[u8]) -> Option<Gitignore> {
    let mut rules = GitignoreBuilder::new(Path::new(""));
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let _ = rules.add_line(None, line.strip_suffix('\r').unwrap_or(&line));
    }
    rules.build().ok().filter(|rules| !rules.is_empty())
}
