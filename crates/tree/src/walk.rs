//! The walk: every entry below a directory, by descriptors, links never followed, in a fixed order, on two threads where
//! there is much to do.

use std::cmp::Ordering;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use cotenant_model::{FolderId, RelPath, WsPath};
use rustix::fs::{FileType, OFlags, RawDir};
use rustix::io::Errno;

use crate::ignores::{Has, Rules};
use crate::list::EntryKind;
use crate::scan::{Key, RuleBook};
use crate::sys::{self, Flavour};
use crate::tree::Tree;

/// More threads do not make a walk in a warm cache faster.
const MAX_THREADS: usize = 4;
/// A second thread is started when so many directories wait.
const WORTH_A_THREAD: usize = 8;
/// Bytes of a directory read at once.
const DIR_BUFFER: usize = 32 * 1024;

/// How many threads a walk or a search takes.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// What to walk over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// How deep; 1 is the directory's own entries, `None` is unlimited.
    pub(crate) depth: Option<usize>,
    pub(crate) include_ignored: bool,
    /// Also the temporary files of commits, which nobody else is to see.
    pub(crate) temporaries: bool,
    /// The directories that are ignored are noted, and everything that is protected.
    pub(crate) note: bool,
    /// After so many entries no further directory is entered; `None` is unlimited.
    pub(crate) enough: Option<usize>,
    /// Take the stat of every entry, and keep what is protected, though it is not entered.
    pub(crate) keys: bool,
}

/// What was passed over, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) ignored: usize,
    pub(crate) protected: usize,
    pub(crate) binary: usize,
    pub(crate) links: usize,
    pub(crate) unreadable: usize,
    pub(crate) mounts: usize,
    pub(crate) other: usize,
}

impl LeftOut {
    pub(crate) fn add(&mut self, more: LeftOut) {
        self.ignored += more.ignored;
        self.protected += more.protected;
        self.binary += more.binary;
        self.links += more.links;
        self.unreadable += more.unreadable;
        self.mounts += more.mounts;
        self.other += more.other;
    }

    /// The reasons that occurred, as words, with their counts.
    pub(crate) fn named(self) -> Vec<(&'static str, usize)> {
        let all = [
            ("ignored", self.ignored),
            ("protected", self.protected),
            ("binary", self.binary),
            ("links", self.links),
            ("unreadable", self.unreadable),
            ("mounts", self.mounts),
            ("other", self.other),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// An entry of a directory.
#[derive(Debug)]
struct Found {
    name: Box<[u8]>,
    kind: EntryKind,
    /// The number of the list of what is in it, for a directory that was entered.
    list: Option<usize>,
    /// Its stat, where that was asked for.
    key: Option<Box<Key>>,
}

impl Found {
    /// Takes its stat in the directory `fd`; false where it is gone.
    fn stat(&mut self, fd: &OwnedFd, protected: bool) -> bool {
        self.key = Key::of(fd.as_fd(), &self.name, protected).map(Box::new);
        self.kind = self.key.as_ref().map_or(self.kind, |key| key.kind);
        self.key.is_some()
    }

    /// Whether it is a directory that agents may look into.
    fn opens(&self) -> bool {
        self.kind == EntryKind::Dir && !self.key.as_ref().is_some_and(|key| key.protected)
    }
}

/// What a walk found.
pub(crate) struct Walked {
    start: RelPath,
    /// The entries of each directory in order; the first is the start.
    lists: Vec<Vec<Found>>,
    /// For each list, the rules that hold in its directory; kept where keys were asked for.
    rules: Vec<Option<Arc<Rules>>>,
    /// Directories that could not be read, or lie on another mount.
    pub(crate) blind: Vec<RelPath>,
    pub(crate) left_out: LeftOut,
    /// What was to be noted; in no order.
    pub(crate) noted: Noted,
}

impl Walked {
    /// Takes the walk apart: every entry with its key, in the order of [`Walked::for_each`], and for each directory that
    /// was entered the rules that hold in it.
    pub(crate) fn take_keys(
        mut self,
        each: &mut impl FnMut(&[u8], Box<Key>),
        rules: &mut RuleBook,
    ) -> Vec<RelPath> {
        let mut path = self.start.as_bytes().to_vec();
        let mut waiting: Vec<(usize, std::vec::IntoIter<Found>)> = Vec::new();
        let mut enter = |walked: &mut Walked, list: usize, path: &[u8]| {
            rules.insert(path.into(), walked.rules[list].take());
            std::mem::take(&mut walked.lists[list]).into_iter()
        };
        waiting.push((path.len(), enter(&mut self, 0, &path)));
        while let Some((above, list)) = waiting.last_mut() {
            path.truncate(*above);
            let Some(found) = list.next() else {
                waiting.pop();
                continue;
            };
            if *above > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(&found.name);
            if let Some(key) = found.key {
                each(&path, key);
            }
            if let Some(list) = found.list {
                let below = enter(&mut self, list, &path);
                waiting.push((path.len(), below));
            }
        }
        self.blind
    }

    /// Every entry in byte order of the paths, a directory counting as its path with `/`. The path is relative to the
    /// folder.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&[u8], EntryKind)) {
        let mut path = self.start.as_bytes().to_vec();
        self.descend(0, &mut path, &mut each);
    }

    fn descend(&self, list: usize, path: &mut Vec<u8>, each: &mut impl FnMut(&[u8], EntryKind)) {
        // Directories nest as deep as paths are long: 2,048 at the most.
        let above = path.len();
        for found in &self.lists[list] {
            if above > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(&found.name);
            each(path, found.kind);
            if let Some(list) = found.list {
                self.descend(list, path, each);
            }
            path.truncate(above);
        }
    }

    /// Whether nothing but entered directories was found.
    fn is_bare(&self) -> bool {
        self.lists.iter().flatten().all(|found| found.list.is_some())
    }
}

/// A directory to read.
struct Task {
    list: usize,
    path: RelPath,
    depth: usize,
    rules: Option<Arc<Rules>>,
}

/// What was passed over in one directory.
#[derive(Default)]
struct Passed {
    left_out: LeftOut,
    noted: Noted,
}

/// Paths that a walk passed over and was to note.
#[derive(Default)]
pub(crate) struct Noted {
    pub(crate) ignored_dirs: Vec<RelPath>,
    pub(crate) protected: Vec<RelPath>,
}

/// What the threads share.
struct Shared<'t> {
    tree: &'t Tree,
    folder: FolderId,
    options: Options,
    /// The rules of directories that are known already.
    fixed: Option<&'t RuleBook>,
    state: Mutex<State>,
    /// Told of new tasks and of the end.
    changed: Condvar,
}

struct State {
    tasks: Vec<Task>,
    /// Tasks that wait or are worked on.
    open: usize,
    lists: Vec<Vec<Found>>,
    rules: Vec<Option<Arc<Rules>>>,
    blind: Vec<RelPath>,
    entries: usize,
    left_out: LeftOut,
    noted: Noted,
}

impl Tree {
    /// Walks the directory `start`. Where it was named though all in it is ignored by the rules above it, those rules do
    /// not count: who names it wants to see it. (The folder itself is always named.)
    pub(crate) fn walk(&self, start: &WsPath, options: Options) -> Walked {
        let above = if options.include_ignored { None } else { self.rules_above(start) };
        let walked = self.walk_with(start, options, above.clone(), None);
        if above.is_some() && walked.left_out.ignored > 0 && walked.is_bare() {
            return self.walk_with(start, options, None, None);
        }
        walked
    }

    pub(crate) fn rules_above(&self, start: &WsPath) -> Option<Arc<Rules>> {
        let root = self.root_dir(start.folder)?;
        let mut rules = None;
        let mut dir = RelPath::root();
        for name in start.path.components() {
            let has = crate::ignored::has(root.fd(), &dir);
            rules = Rules::enter(rules, self, start.folder, &dir, has);
            dir = dir.join(name);
        }
        rules
    }

    /// Walks the directory `start` under the rules above it and, where a directory is in `fixed`, those it has there.
    pub(crate) fn walk_with(
        &self,
        start: &WsPath,
        options: Options,
        rules: Option<Arc<Rules>>,
        fixed: Option<&RuleBook>,
    ) -> Walked {
        let first = Task { list: 0, path: start.path.clone(), depth: 1, rules };
        let shared = Shared {
            tree: self,
            folder: start.folder,
            options,
            fixed,
            state: Mutex::new(State {
                tasks: vec![first],
                open: 1,
                lists: vec![Vec::new()],
                rules: vec![None],
                blind: Vec::new(),
                entries: 0,
                left_out: LeftOut::default(),
                noted: Noted::default(),
            }),
            changed: Condvar::new(),
        };
        shared.work(Some(WORTH_A_THREAD));
        if shared.lock().open > 0 {
            std::thread::scope(|scope| {
                for _ in 1..threads() {
                    scope.spawn(|| shared.work(None));
                }
                shared.work(None);
            });
        }
        let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Walked {
            start: start.path.clone(),
            lists: state.lists,
            rules: state.rules,
            blind: state.blind,
            left_out: state.left_out,
            noted: state.noted,
        }
    }
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads directories until none is left, or, with `until`, so many wait that help is worth while.
    fn work(&self, until: Option<usize>) {
        let mut buffer = vec![MaybeUninit::uninit(); DIR_BUFFER];
        let mut state = self.lock();
        loop {
            if until.is_some_and(|until| state.tasks.len() >= until) {
                return;
            }
            let Some(task) = state.tasks.pop() else {
                if state.open == 0 {
                    self.changed.notify_all();
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let mut passed = Passed::default();
            let read = self.read(&task, &mut buffer, &mut passed);
            state = self.lock();
            state.left_out.add(passed.left_out);
            state.noted.ignored_dirs.append(&mut passed.noted.ignored_dirs);
            state.noted.protected.append(&mut passed.noted.protected);
            let (found, rules) = read.unwrap_or_else(|error| {
                // One that is gone by now is not there any more.
                if error != Errno::NOENT {
                    state.blind.push(task.path.clone());
                }
                (Vec::new(), None)
            });
            self.settle(&mut state, &task, found, &rules);
        }
    }

    /// Files what was found in a directory and queues the directories in it.
    fn settle(&self, state: &mut State, task: &Task, mut found: Vec<Found>, rules: &Option<Arc<Rules>>) {
        state.entries += found.len();
        let enough = self.options.enough.is_some_and(|enough| state.entries >= enough);
        if !enough && self.options.depth.is_none_or(|depth| task.depth < depth) {
            // The last one queued is taken first.
            for dir in found.iter_mut().rev().filter(|found| found.opens()) {
                let list = state.lists.len();
                state.lists.push(Vec::new());
                state.rules.push(None);
                dir.list = Some(list);
                let path = task.path.join(&dir.name);
                state.tasks.push(Task { list, path, depth: task.depth + 1, rules: rules.clone() });
                state.open += 1;
                self.changed.notify_one();
            }
        }
        state.lists[task.list] = found;
        if self.options.keys {
            state.rules[task.list].clone_from(rules);
        }
        state.open -= 1;
        if state.open == 0 {
            self.changed.notify_all();
        }
    }

    /// The entries of a directory that are not left out, in order, and the rules that hold below it.
    fn read(
        &self,
        task: &Task,
        buffer: &mut [MaybeUninit<u8>],
        passed: &mut Passed,
    ) -> Result<(Vec<Found>, Option<Arc<Rules>>), Errno> {
        let Passed { left_out, noted } = passed;
        let read = self.open(task).and_then(|fd| entries(&fd, buffer).map(|found| (fd, found)));
        let (fd, (mut found, has)) = read.inspect_err(|error| match *error {
            Errno::XDEV => left_out.mounts += 1,
            _ => left_out.unreadable += 1,
        })?;
        let known = self.fixed.and_then(|fixed| fixed.get(task.path.as_bytes()));
        let rules = match (self.options.include_ignored, known) {
            (true, _) => None,
            (false, Some(known)) => known.clone(),
            (false, None) => Rules::enter(task.rules.clone(), self.tree, self.folder, &task.path, has),
        };
        let mut path = task.path.as_bytes().to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        let above = path.len();
        found.retain_mut(|entry| {
            if is_temporary(&entry.name) {
                return self.options.temporaries;
            }
            let protected = self.tree.rules.protects(&task.path, &entry.name);
            left_out.protected += usize::from(protected);
            if protected && self.options.note {
                noted.protected.push(task.path.join(&entry.name));
            }
            if protected && !self.options.keys {
                return false;
            }
            path.truncate(above);
            path.extend_from_slice(&entry.name);
            let ignored =
                rules.as_ref().is_some_and(|rules| rules.ignores(&path, entry.kind == EntryKind::Dir));
            left_out.ignored += usize::from(ignored);
            if ignored && entry.kind == EntryKind::Dir && self.options.note {
                noted.ignored_dirs.push(task.path.join(&entry.name));
            }
            // One that is gone by now is not there any more.
            !ignored && (!self.options.keys || entry.stat(&fd, protected))
        });
        found.sort_unstable_by(order);
        Ok((found, rules))
    }

    fn open(&self, task: &Task) -> Result<OwnedFd, Errno> {
        let root = self.tree.root_dir(self.folder).ok_or(Errno::NOENT)?;
        let path = if task.path.is_root() { b".".as_slice() } else { task.path.as_bytes() };
        sys::open_beneath(root.fd(), path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)
    }
}

/// Everything in a directory but itself and its parent.
fn entries(fd: &OwnedFd, buffer: &mut [MaybeUninit<u8>]) -> Result<(Vec<Found>, Has), Errno> {
    let mut found = Vec::new();
    let mut has = Has::default();
    let mut entries = RawDir::new(fd.as_fd(), buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        has.note(name);
        let kind = match entry.file_type() {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Dir,
            FileType::Symlink => EntryKind::Link,
            FileType::Unknown => kind_of(fd, name),
            _ => EntryKind::Other,
        };
        found.push(Found { name: name.into(), kind, list: None, key: None });
    }
    Ok((found, has))
}

/// What `name` is, for file systems that do not say so in the listing.
fn kind_of(fd: &OwnedFd, name: &[u8]) -> EntryKind {
    match sys::stat_leaf(fd.as_fd(), name).map(|meta| meta.flavour) {
        Ok(Flavour::File) => EntryKind::File,
        Ok(Flavour::Dir) => EntryKind::Dir,
        Ok(Flavour::Link) => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// Byte order, a directory counting as its name with `/`, so that what is in it follows it.
fn order(a: &Found, b: &Found) -> Ordering {
    let common = a.name.len().min(b.name.len());
    let next =
        |found: &Found| found.name.get(common).copied().or((found.kind == EntryKind::Dir).then_some(b'/'));
    a.name[..common].cmp(&b.name[..common]).then_with(|| next(a).cmp(&next(b)))
}

/// Whether `name` is that of a temporary file of a commit: `.cotenant-` and 16 hex digits (R6).
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    name.strip_prefix(b".cotenant-")
        .is_some_and(|rest| rest.len() == 16 && rest.iter().all(u8::is_ascii_hexdigit))
}
