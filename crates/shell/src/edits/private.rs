//! The workspace as a command would see it while it runs: what stands there, overlaid with what the steps before left,
//! in memory alone.

use std::collections::{BTreeMap, VecDeque};

use cotenant_model::{
    Becomes, Body, Code, Content, Digest, Effects, EntryKind, FileSource, Folders, Refusal, RelPath, Seen,
    State, WsPath,
};

/// The links that one path may lead through.
const LINKS: usize = 40;
/// The largest file that is edited here, in bytes.
pub(super) const FILE_MAX: usize = 10 << 20;

/// Why a command is not carried out here.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    /// A shell must run it, for this reason.
    #[error("{0}")]
    Shell(String),
    /// It may not be done at all.
    #[error("{0}")]
    Refused(Box<Refusal>),
}

/// Where the steps of a command stand and what they have done.
pub(super) struct Private<'a> {
    folders: &'a Folders,
    files: &'a dyn FileSource,
    umask: u32,
    /// The directory that relative paths begin at.
    pub(super) cwd: WsPath,
    /// What was there, as far as it was looked at.
    base: BTreeMap<WsPath, Seen>,
    /// What is there now, where a step has touched it.
    now: BTreeMap<WsPath, Node>,
}

/// What a step left at a path.
#[derive(Clone)]
struct Node {
    seen: Seen,
    /// The path that what stands here had before the command; `None` for what is new.
    origin: Option<WsPath>,
}

/// A place that a path leads to.
#[derive(Debug)]
pub(super) struct Spot {
    /// Its resolved path.
    pub(super) at: WsPath,
    /// What stands there.
    pub(super) seen: Seen,
    /// A link led there from the last name of the path.
    pub(super) linked: bool,
}

/// A regular file.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) content: Content,
    pub(super) mode: u32,
    pub(super) links: u64,
}

impl Spot {
    /// The regular file there.
    pub(super) fn file(&self) -> Option<File> {
        match &self.seen {
            Seen::File { content, mode, links } => {
                Some(File { content: content.clone(), mode: *mode, links: *links })
            }
            _ => None,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.seen, Seen::Directory { .. })
    }
}

pub(super) fn shell<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Shell(why.into()))
}

impl<'a> Private<'a> {
    pub(super) fn new(
        folders: &'a Folders,
        files: &'a dyn FileSource,
        cwd: &WsPath,
        umask: u32,
    ) -> Private<'a> {
        Private { folders, files, umask, cwd: cwd.clone(), base: BTreeMap::new(), now: BTreeMap::new() }
    }

    fn see(&mut self, at: &WsPath) -> Seen {
        if let Some(node) = self.now.get(at) {
            return node.seen.clone();
        }
        if at.path.is_root() {
            return Seen::Directory { mode: 0o755 };
        }
        self.base.entry(at.clone()).or_insert_with(|| self.files.see(at)).clone()
    }

    /// Where `path` leads. Links before its last name are followed, there too if `follow`; its directory must stand.
    pub(super) fn spot(&mut self, path: &str, follow: bool) -> Result<Spot, Stop> {
        let (from, names) = self.start(path)?;
        // A final slash asks for the directory that is meant.
        let slash = path.ends_with('/');
        let spot = self.walk(path, from, names, follow || slash)?;
        match spot.seen {
            Seen::Absent | Seen::Directory { .. } => Ok(spot),
            _ if slash => shell(format!("{path} is not a directory")),
            _ => Ok(spot),
        }
    }

    /// The directory that a path begins at, and its names. `..` is left to the shell.
    fn start(&self, path: &str) -> Result<(WsPath, VecDeque<Vec<u8>>), Stop> {
        let odd = |why: &dyn std::fmt::Display| Stop::Shell(format!("{path}: {why}"));
        let (from, names) = if path.starts_with('/') {
            let wire = self.folders.parse(path).map_err(|error| odd(&error))?;
            (WsPath { folder: wire.at.folder, path: RelPath::root() }, wire.at.path)
        } else {
            (self.cwd.clone(), RelPath::from_bytes(path.as_bytes()).map_err(|error| odd(&error))?)
        };
        Ok((from, names.components().map(<[u8]>::to_vec).collect()))
    }

    fn walk(
        &mut self,
        path: &str,
        from: WsPath,
        names: VecDeque<Vec<u8>>,
        follow: bool,
    ) -> Result<Spot, Stop> {
        let (mut at, mut names) = (from, names);
        let (mut links, mut linked) = (0, false);
        let mut seen = self.see(&at);
        while let Some(name) = names.pop_front() {
            if name == b".." {
                let Some(above) = at.parent() else { return shell(format!("{path} leads outside")) };
                at = above;
                seen = self.see(&at);
                continue;
            }
            let next = at.join(&name);
            seen = self.see(&next);
            match &seen {
                Seen::Link(target) if follow || !names.is_empty() => {
                    links += 1;
                    if links > LINKS || target.starts_with(b"/") || target.is_empty() {
                        return shell(format!("{path} leads through a link that is not followed here"));
                    }
                    linked |= names.is_empty();
                    for part in target.split(|byte| *byte == b'/').rev() {
                        if !part.is_empty() && part != b"." {
                            names.push_front(part.to_vec());
                        }
                    }
                    seen = self.see(&at);
                    continue;
                }
                Seen::Directory { .. } => {}
                _ if names.is_empty() => {}
                Seen::Absent => return shell(format!("{path}: no such directory")),
                _ => return shell(format!("{path}: not a directory")),
            }
            at = next;
        }
        if !matches!(self.see_parent(&at), Seen::Directory { .. }) || seen == Seen::Other {
            return shell(format!("{path} is not one that can be seen here"));
        }
        Ok(Spot { at, seen, linked })
    }

    fn see_parent(&mut self, at: &WsPath) -> Seen {
        match at.parent() {
            Some(parent) => self.see(&parent),
            None => Seen::Directory { mode: 0o755 },
        }
    }

    /// Each directory on the way to `path`, the last one included, from the outermost.
    pub(super) fn prefixes(&self, path: &str) -> Result<Vec<String>, Stop> {
        let (_, names) = self.start(path)?;
        let mut so_far = if path.starts_with('/') { host_prefix(path, names.len()) } else { String::new() };
        Ok(names
            .iter()
            .map(|name| {
                if !so_far.is_empty() && !so_far.ends_with('/') {
                    so_far.push('/');
                }
                so_far.push_str(&String::from_utf8_lossy(name));
                so_far.clone()
            })
            .collect())
    }

    /// The regular file at a spot, for one that shall be written in place or replaced.
    pub(super) fn editable(&self, path: &str, spot: &Spot) -> Result<File, Stop> {
        let Some(file) = spot.file() else {
            return match spot.seen {
                Seen::Absent => shell(format!("{path}: no such file")),
                _ => shell(format!("{path} is not a regular file")),
            };
        };
        if file.links > 1 {
            return Err(Stop::Refused(Box::new(self.hard_linked(&spot.at, file.links))));
        }
        if file.content.len() > FILE_MAX {
            return shell(format!("{path} is over 10 MiB"));
        }
        Ok(file)
    }

    fn hard_linked(&self, at: &WsPath, links: u64) -> Refusal {
        let path = self.folders.show(at);
        Refusal::new(
            Code::HardLinked,
            format!("{path} has {links} names (hard links); replacing it would leave the others with the old content. Nothing was written."),
        )
        .fact("path", path.as_str())
        .fact("links", links)
        .next(format!("ask the human to break the link (cp -p {path} and mv), then run the command again"))
    }

    /// Puts bytes into the file at a spot: a new one with the mode that new files get, or the one that is there.
    pub(super) fn write(&mut self, path: &str, spot: &Spot, content: Content) -> Result<(), Stop> {
        let new = Seen::File { content: content.clone(), mode: 0o666 & !self.umask, links: 1 };
        let seen = match &spot.seen {
            Seen::Absent if path.ends_with('/') => return shell(format!("{path} is not a directory")),
            Seen::Absent => new,
            _ => {
                let file = self.editable(path, spot)?;
                Seen::File { content, mode: file.mode, links: 1 }
            }
        };
        self.limit(path, &seen)?;
        self.put(spot.at.clone(), seen, self.origin(&spot.at));
        Ok(())
    }

    fn limit(&self, path: &str, seen: &Seen) -> Result<(), Stop> {
        match seen {
            Seen::File { content, .. } if content.len() > FILE_MAX => {
                shell(format!("{path} would be over 10 MiB"))
            }
            _ => Ok(()),
        }
    }

    /// Where what stands at a path comes from.
    pub(super) fn origin(&self, at: &WsPath) -> Option<WsPath> {
        match (self.now.get(at), self.base.get(at)) {
            (Some(node), _) => node.origin.clone(),
            (None, Some(seen)) if *seen != Seen::Absent => Some(at.clone()),
            _ => None,
        }
    }

    /// Leaves `seen` at a path.
    pub(super) fn put(&mut self, at: WsPath, seen: Seen, origin: Option<WsPath>) {
        self.now.insert(at, Node { seen, origin });
    }

    /// The mode that a new directory or a copy gets of `mode`.
    pub(super) fn masked(&self, mode: u32) -> u32 {
        mode & 0o777 & !self.umask
    }

    /// What the command would leave, and the files that decided it as they were.
    pub(super) fn end(self) -> (Effects, Vec<(WsPath, Digest)>) {
        let Private { base, now, umask, .. } = self;
        let absent = Seen::Absent;
        let mut effects = Effects::new();
        for (at, node) in now {
            let before = base.get(&at).unwrap_or(&absent);
            if alike(before, &node.seen) {
                continue;
            }
            let from = node.origin.filter(|from| *from != at && node.seen != Seen::Absent);
            let state = state(before, &node.seen, from.is_some(), umask);
            effects.insert(at, Becomes { state, from });
        }
        let read = base.iter().filter_map(|(at, seen)| match seen {
            Seen::File { content, .. } => Some((at.clone(), Digest::of(content))),
            _ => None,
        });
        let read = read.collect();
        (effects, read)
    }

    pub(super) fn show(&self, at: &WsPath) -> String {
        self.folders.show(at)
    }
}

/// An absolute path without its last `count` names.
fn host_prefix(path: &str, count: usize) -> String {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let kept = names.len().saturating_sub(count);
    names[..kept].iter().map(|name| format!("/{name}")).collect()
}

/// Whether nothing needs to be done to make one of the other.
fn alike(before: &Seen, after: &Seen) -> bool {
    match (before, after) {
        (Seen::File { content: old, mode: was, .. }, Seen::File { content: new, mode: is, .. }) => {
            old == new && was == is
        }
        (Seen::Directory { .. }, Seen::Directory { .. }) => true,
        (before, after) => before == after,
    }
}

/// A state to reach. The mode is only said where it is not what the place, or a new file, has by itself.
fn state(before: &Seen, after: &Seen, derived: bool, umask: u32) -> State {
    match after {
        Seen::Absent | Seen::Other => State::Absent,
        Seen::Directory { .. } => State::Dir { mode: None },
        Seen::Link(target) => {
            State::Entry(Body { kind: EntryKind::Link, content: target.clone(), mode: None })
        }
        Seen::File { content, mode, .. } => {
            let by_itself = match before {
                Seen::File { mode: was, .. } => was == mode,
                _ => !derived && *mode == 0o666 & !umask,
            };
            let mode = (!by_itself).then_some(*mode);
            State::Entry(Body { kind: EntryKind::File, content: content.clone(), mode })
        }
    }
}
