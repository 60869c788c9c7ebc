//! Near paths for a path that is not there.

use cotenant_model::{PathClass, RelPath, WsPath};

use crate::glob::{composed, name_of};
use crate::list::{EntryKind, ws_path};
use crate::tree::Tree;
use crate::walk;

/// How many are offered.
const OFFERED: usize = 3;
/// How many entries of a directory, and of the whole tree, are looked at.
const LOOKED_AT: usize = 50_000;

impl Tree {
    /// Up to three paths that may have been meant by `path`, best first: the same name in another spelling, names at a
    /// small edit distance beside it, the same name elsewhere. Bounded work; never protected ones.
    pub fn near(&self, path: &WsPath) -> Vec<WsPath> {
        let Some(leaf) = path.path.leaf() else { return Vec::new() };
        let mut offered = self.siblings(path, leaf);
        if offered.len() < OFFERED {
            for found in self.elsewhere(path, leaf) {
                if !offered.contains(&found) && found != *path {
                    offered.push(found);
                }
            }
        }
        offered.truncate(OFFERED);
        offered
    }

    /// The entry beside `path` that has the same letters in another Unicode form: another file here, the same one on
    /// other systems.
    pub fn twin(&self, path: &WsPath) -> Option<WsPath> {
        let leaf = path.path.leaf().filter(|leaf| !leaf.is_ascii())?;
        let parent = path.parent()?;
        let mut twin = None;
        self.each_entry(&parent, |name| {
            if name != leaf && composed(name) == composed(leaf) {
                twin = Some(parent.join(name));
            }
        });
        twin
    }

    /// Entries of the directory that `path` would stand in (itself in any spelling), nearest first.
    fn siblings(&self, path: &WsPath, leaf: &[u8]) -> Vec<WsPath> {
        let Some(parent) = self.parent_in_any_spelling(path) else { return Vec::new() };
        let mut near: Vec<(usize, WsPath)> = Vec::new();
        self.each_entry(&parent, |name| {
            if let Some(distance) = distance(leaf, name).filter(|distance| *distance <= allowed(leaf)) {
                near.push((distance, parent.join(name)));
            }
        });
        near.sort();
        near.into_iter().map(|(_, path)| path).filter(|near| near != path).take(OFFERED).collect()
    }

    /// The parent of `path`, its names replaced where only one entry differs in case or in Unicode form.
    fn parent_in_any_spelling(&self, path: &WsPath) -> Option<WsPath> {
        let mut there = WsPath { folder: path.folder, path: RelPath::root() };
        for name in path.path.parent()?.components() {
            let mut exact = false;
            let mut close: Option<Vec<u8>> = None;
            self.each_entry(&there, |entry| {
                exact |= entry == name;
                if distance(name, entry) == Some(0) {
                    close = Some(entry.to_vec());
                }
            });
            let name = if exact { name.to_vec() } else { close? };
            there = there.join(&name);
        }
        Some(there)
    }

    fn each_entry(&self, dir: &WsPath, mut each: impl FnMut(&[u8])) {
        if self.rules.classify(&dir.path).class == PathClass::Protected {
            return;
        }
        let walked = self
            .walk(dir, walk::Options { depth: Some(1), include_ignored: true, ..walk::Options::default() });
        let mut left = LOOKED_AT;
        walked.for_each(|path, _| {
            if left > 0 {
                left -= 1;
                each(name_of(path));
            }
        });
    }

    /// Files and directories of the same name, wherever they stand.
    fn elsewhere(&self, path: &WsPath, leaf: &[u8]) -> Vec<WsPath> {
        let root = WsPath { folder: path.folder, path: RelPath::root() };
        let mut found = Vec::new();
        let walked = self.walk(&root, walk::Options { enough: Some(LOOKED_AT), ..walk::Options::default() });
        walked.for_each(|path, kind| {
            if found.len() < OFFERED && kind != EntryKind::Other && distance(leaf, name_of(path)) == Some(0) {
                found.extend(ws_path(&root, path));
            }
        });
        found
    }
}

/// How many letters may differ.
fn allowed(name: &[u8]) -> usize {
    (name.len() / 3).clamp(1, 3)
}

/// The number of letters to change, add, drop or swap to get from one name to the other, both composed and in lower case;
/// `None` where their lengths differ too much for it to matter.
fn distance(a: &[u8], b: &[u8]) -> Option<usize> {
    if a.len().abs_diff(b.len()) > 2 * allowed(a) + 2 {
        return None;
    }
    let letters = |name: &[u8]| -> Vec<char> {
        String::from_utf8_lossy(&composed(name)).to_lowercase().chars().collect()
    };
    let (a, b) = (letters(a), letters(b));
    // Three rows of the usual table: two back (for swaps), one back, this one.
    let (mut before, mut last) = (Vec::new(), (0..=b.len()).collect::<Vec<usize>>());
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied()
}
