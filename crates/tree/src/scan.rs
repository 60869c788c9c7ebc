//! The look before and after: the stat of every entry below a directory, and what differs between two such looks.
//!
//! What tells is the key of an entry, its stat: an equal key means equal bytes, unless the entry was changed so shortly
//! before the look that a later write may bear the same time ([`Scan::is_racy`]); that, only its bytes tell. Ignored
//! entries are not looked at, by the rules of the first look: rules that change in between make nothing come or go.

use std::collections::HashMap;
use std::fs::File;
use std::io::Seek;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use cotenant_model::{Digest, PathClass, RelPath, WsPath};
use rustix::io::Errno;

use crate::dir::Stat;
use crate::error::TreeError;
use crate::ignores::Rules;
use crate::list::{EntryKind, ws_path};
use crate::read::{io_error, stream};
use crate::sys::{self, Flavour};
use crate::tree::Tree;
use crate::walk;

/// How much younger than a look an entry may not be for its key to prove anything, in nanoseconds: file systems stamp
/// with the time of the last tick, of which there are a hundred a second at the least.
pub const RACY_NS: i128 = 10_000_000;

/// The rules that hold in each directory that was entered.
pub(crate) type RuleBook = HashMap<Box<[u8]>, Option<Arc<Rules>>>;

/// What identifies a version of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// What it is.
    pub kind: EntryKind,
    /// Protected: its presence is known, what is in it is not looked at.
    pub protected: bool,
    /// Its stat.
    pub stat: Stat,
    /// The text of a link's target.
    pub target: Option<Box<[u8]>>,
}

impl Key {
    /// That of `name` in `dir`; `None` where it is gone.
    pub(crate) fn of(dir: BorrowedFd<'_>, name: &[u8], protected: bool) -> Option<Key> {
        let meta = sys::stat_leaf(dir, name).ok()?;
        let kind = kind_of(meta.flavour);
        let target = (kind == EntryKind::Link).then(|| sys::read_link(dir, name)).transpose().ok()?;
        Some(Key { kind, protected, stat: meta.stat, target: target.map(Vec::into_boxed_slice) })
    }

    /// Whether it is the same version. A directory is the same as long as its permissions and its owner are: what comes
    /// and goes in it is told by that.
    pub fn same(&self, other: &Key) -> bool {
        let rights = |key: &Key| (key.kind, key.protected, key.stat.mode, key.stat.uid, key.stat.gid);
        let bytes =
            |key: &Key| (key.stat.dev, key.stat.ino, key.stat.size, key.stat.mtime_ns, key.stat.ctime_ns);
        rights(self) == rights(other)
            && (self.kind == EntryKind::Dir || bytes(self) == bytes(other))
            && self.target == other.target
    }
}

fn kind_of(flavour: Flavour) -> EntryKind {
    match flavour {
        Flavour::File => EntryKind::File,
        Flavour::Dir => EntryKind::Dir,
        Flavour::Link => EntryKind::Link,
        Flavour::Fifo | Flavour::Socket | Flavour::Device => EntryKind::Other,
    }
}

/// An entry that differs between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference<'s> {
    /// Its path.
    pub at: WsPath,
    /// What it was; `None` where it came to be.
    pub was: Option<&'s Key>,
    /// What it is; `None` where it went.
    pub is: Option<&'s Key>,
}

/// A look at everything below a directory that is not ignored.
#[derive(Debug)]
pub struct Scan {
    start: WsPath,
    /// All paths, one after the other.
    names: Vec<u8>,
    /// Where the path of each entry ends in `names`, and its key; in byte order of the paths.
    entries: Vec<(u32, u32, Box<Key>)>,
    rules: RuleBook,
    above: Option<Arc<Rules>>,
    blind: Vec<RelPath>,
    taken_ns: Option<i128>,
}

impl Scan {
    /// The directory.
    pub fn start(&self) -> &WsPath {
        &self.start
    }

    /// Every entry in byte order of the paths.
    pub fn entries(&self) -> impl Iterator<Item = (WsPath, &Key)> {
        self.entries.iter().filter_map(|entry| Some((ws_path(&self.start, self.path(entry))?, &*entry.2)))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What stood at a path.
    pub fn get(&self, at: &WsPath) -> Option<&Key> {
        let below = at.folder == self.start.folder;
        let found = self.entries.binary_search_by(|entry| self.path(entry).cmp(at.path.as_bytes()));
        found.ok().filter(|_| below).and_then(|index| self.entries.get(index)).map(|entry| &*entry.2)
    }

    /// Directories that could not be looked into: unreadable, or on another mount.
    pub fn blind(&self) -> impl Iterator<Item = WsPath> {
        self.blind.iter().map(|path| WsPath { folder: self.start.folder, path: path.clone() })
    }

    /// When the look began, as the file system stamps time; `None` where that is not to be had.
    pub fn taken_ns(&self) -> Option<i128> {
        self.taken_ns
    }

    /// Whether a file is so young that a later write may leave its key as it is.
    pub fn is_racy(&self, key: &Key) -> bool {
        let newest = key.stat.mtime_ns.max(key.stat.ctime_ns);
        self.taken_ns.is_none_or(|taken| newest > taken - RACY_NS)
    }

    /// What differs, in byte order of the paths. What lies in a directory that one of the two could not look into is left
    /// out: nothing is known of it.
    pub fn diff<'s>(before: &'s Scan, after: &'s Scan) -> Vec<Difference<'s>> {
        let (mut was, mut is) = (before.entries.iter().peekable(), after.entries.iter().peekable());
        let mut found = Vec::new();
        loop {
            let order = match (was.peek(), is.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(was), Some(is)) => before.path(was).cmp(after.path(is)),
            };
            let old = if order.is_le() { was.next() } else { None };
            let new = if order.is_ge() { is.next() } else { None };
            let keys = (old.map(|entry| &*entry.2), new.map(|entry| &*entry.2));
            if matches!(keys, (Some(old), Some(new)) if old.same(new)) {
                continue;
            }
            let path = old.map(|entry| before.path(entry)).or(new.map(|entry| after.path(entry)));
            let at = path.and_then(|path| ws_path(&before.start, path));
            if let Some(at) = at.filter(|at| !before.is_blind(at) && !after.is_blind(at)) {
                found.push(Difference { at, was: keys.0, is: keys.1 });
            }
        }
        found
    }

    fn path(&self, entry: &(u32, u32, Box<Key>)) -> &[u8] {
        self.names.get(entry.0 as usize..entry.1 as usize).unwrap_or_default()
    }

    fn is_blind(&self, at: &WsPath) -> bool {
        self.blind.iter().any(|dir| at.path.is_within(dir) && at.path != *dir)
    }
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub struct Opened {
    file: File,
    stat: Stat,
}

impl Opened {
    /// Its descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its stat when it was opened.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// The digest of its bytes as they are now, without holding them in memory.
    pub fn digest(&mut self) -> Result<Digest, TreeError> {
        self.file.rewind().map_err(|error| io_error(&error))?;
        Digest::stream(|sink| stream(&self.file, sink)).map_err(|error| io_error(&error))
    }

    /// Whether it is as it was when it was opened: nothing was written into it since, nor its attributes changed.
    pub fn unchanged(&self) -> bool {
        sys::stat_beneath(self.fd()).is_ok_and(|meta| meta.stat == self.stat)
    }
}

impl Tree {
    /// Looks at everything below the directory `start` that is not ignored; links are not followed, protected directories
    /// not entered, other mounts neither, temporary files of commits not seen. With `first`, an earlier look, by the rules
    /// that held then. An error where the directory cannot be read.
    pub fn scan(&self, start: &WsPath, first: Option<&Scan>) -> Result<Scan, TreeError> {
        let failed = |errno| TreeError::of(errno, "looking through");
        let root = self.root_dir(start.folder).ok_or(TreeError::NotFound)?;
        let path = if start.path.is_root() { b"." } else { start.path.as_bytes() };
        let dir = sys::open_dir(root.fd(), path).map_err(failed)?;
        let taken_ns = sys::time_at(dir.as_fd());
        let above = first.map_or_else(|| self.rules_above(start), |first| first.above.clone());
        let options = walk::Options { keys: true, ..walk::Options::default() };
        let walked = self.walk_with(start, options, above.clone(), first.map(|first| &first.rules));
        let (mut names, mut entries, mut rules) = (Vec::new(), Vec::new(), RuleBook::new());
        let end = |names: &[u8]| u32::try_from(names.len()).unwrap_or(u32::MAX);
        let mut each = |path: &[u8], key: Box<Key>| {
            let from = end(&names);
            names.extend_from_slice(path);
            entries.push((from, end(&names), key));
        };
        let blind = walked.take_keys(&mut each, &mut rules);
        if blind.contains(&start.path) {
            return Err(failed(Errno::ACCESS));
        }
        let path = |entry: &(u32, u32, Box<Key>)| &names[entry.0 as usize..entry.1 as usize];
        entries.sort_unstable_by(|a, b| path(a).cmp(path(b)));
        Ok(Scan { start: start.clone(), names, entries, rules, above, blind, taken_ns })
    }

    /// The key of what stands at a path, a link being a link; `None` where nothing does or a link stands on the way.
    pub fn key(&self, at: &WsPath) -> Option<Key> {
        let root = self.root_dir(at.folder)?;
        let path = if at.path.is_root() { b"." } else { at.path.as_bytes() };
        let fd = sys::open_entry(root.fd(), path).ok()?;
        let meta = sys::stat_beneath(fd.as_fd()).ok()?;
        let kind = kind_of(meta.flavour);
        let target = (kind == EntryKind::Link).then(|| sys::read_link(fd.as_fd(), b"")).transpose().ok()?;
        let protected = self.rules.classify(&at.path).class == PathClass::Protected;
        Some(Key { kind, protected, stat: meta.stat, target: target.map(Vec::into_boxed_slice) })
    }

    /// Opens the regular file that a scan found at a path; protected ones are not opened.
    pub fn open_file(&self, at: &WsPath) -> Result<Opened, TreeError> {
        let hit = self.rules.classify(&at.path);
        if hit.class == PathClass::Protected {
            return Err(TreeError::Protected { rule: hit.rule });
        }
        let root = self.root_dir(at.folder).ok_or(TreeError::NotFound)?;
        let failed = |errno| TreeError::of(errno, "opening");
        let fd = sys::open_file(root.fd(), at.path.as_bytes()).map_err(failed)?;
        let meta = sys::stat_beneath(fd.as_fd()).map_err(failed)?;
        match meta.flavour {
            Flavour::File => Ok(Opened { file: File::from(fd), stat: meta.stat }),
            other => Err(TreeError::NotAFile { what: other.what() }),
        }
    }
}
