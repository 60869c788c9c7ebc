//! What the ignore files leave out, asked path by path, and the directories that they leave out as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use cotenant_model::{FolderId, RelPath, WsPath};

use crate::ignores::{Has, Rules};
use crate::sys;
use crate::tree::Tree;
use crate::walk::{Noted, Options};

/// Answers whether paths are ignored, each directory's rules read once. They are the rules of that moment: make a new
/// one for another look.
pub struct Ignores<'t> {
    tree: &'t Tree,
    /// Below a directory: its rules, or that all of it is ignored.
    known: HashMap<WsPath, Below>,
}

#[derive(Clone)]
enum Below {
    Ignored,
    Rules(Option<Arc<Rules>>),
}

impl Tree {
    /// For many questions about the same moment.
    pub fn ignores(&self) -> Ignores<'_> {
        Ignores { tree: self, known: HashMap::new() }
    }

    /// The directories of a folder that are ignored as a whole, though what holds them is not; protected ones are not
    /// among them. Walks the folder.
    pub fn ignored_dirs(&self, folder: FolderId) -> Vec<WsPath> {
        self.noted(folder, |noted| noted.ignored_dirs)
    }

    /// Everything protected in a folder, but what lies below something protected or ignored. Walks the folder.
    pub fn protected_paths(&self, folder: FolderId) -> Vec<WsPath> {
        self.noted(folder, |noted| noted.protected)
    }

    fn noted(&self, folder: FolderId, which: impl FnOnce(Noted) -> Vec<RelPath>) -> Vec<WsPath> {
        let start = WsPath { folder, path: RelPath::root() };
        let mut paths = which(self.walk(&start, Options { note: true, ..Options::default() }).noted);
        paths.sort_unstable();
        paths.into_iter().map(|path| WsPath { folder, path }).collect()
    }
}

impl Ignores<'_> {
    /// Whether what stands, or would stand, at a path is ignored: the path itself, or a directory above it.
    pub fn covers(&mut self, at: &WsPath, is_dir: bool) -> bool {
        let Some(parent) = at.parent() else { return false };
        match self.below(&parent) {
            Below::Ignored => true,
            Below::Rules(rules) => rules.is_some_and(|rules| rules.ignores(at.path.as_bytes(), is_dir)),
        }
    }

    /// What holds below a directory.
    fn below(&mut self, dir: &WsPath) -> Below {
        if let Some(known) = self.known.get(dir) {
            return known.clone();
        }
        let above = match dir.parent() {
            None => Below::Rules(None),
            Some(parent) => self.below(&parent),
        };
        let found = match above {
            Below::Rules(rules) => {
                let ignored = rules.as_ref().is_some_and(|rules| rules.ignores(dir.path.as_bytes(), true));
                match ignored {
                    true => Below::Ignored,
                    false => Below::Rules(self.enter(rules, dir)),
                }
            }
            ignored => ignored,
        };
        self.known.insert(dir.clone(), found.clone());
        found
    }

    fn enter(&self, above: Option<Arc<Rules>>, dir: &WsPath) -> Option<Arc<Rules>> {
        let Some(root) = self.tree.root_dir(dir.folder) else { return above };
        Rules::enter(above, self.tree, dir.folder, &dir.path, has(root.fd(), &dir.path))
    }
}

/// Which ignore files a directory has.
pub(crate) fn has(root: std::os::fd::BorrowedFd<'_>, dir: &RelPath) -> Has {
    let mut has = Has::default();
    for file in [&b".gitignore"[..], b".ignore", b".git"] {
        if sys::stat_leaf(root, dir.join(file).as_bytes()).is_ok() {
            has.note(file);
        }
    }
    has
}
