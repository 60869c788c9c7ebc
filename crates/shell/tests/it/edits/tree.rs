//! A small workspace in memory and on disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cotenant_model::{Effects, EntryKind, FileSource, Seen, State, WsPath};

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    File { bytes: Vec<u8>, mode: u32, links: u64 },
    Link(String),
    Dir(u32),
    Other,
}

impl Item {
    pub(super) fn file(bytes: impl Into<Vec<u8>>) -> Item {
        Item::File { bytes: bytes.into(), mode: 0o644, links: 1 }
    }

    pub(super) fn with_mode(self, mode: u32) -> Item {
        match self {
            Item::File { bytes, links, .. } => Item::File { bytes, mode, links },
            other => other,
        }
    }

    fn seen(&self) -> Seen {
        match self {
            Item::File { bytes, mode, links } => {
                Seen::File { content: bytes.as_slice().into(), mode: *mode, links: *links }
            }
            Item::Link(target) => Seen::Link(target.as_bytes().into()),
            Item::Dir(mode) => Seen::Directory { mode: *mode },
            Item::Other => Seen::Other,
        }
    }
}

/// Paths relative to the root, and what stands there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<String, Item>);

impl FileSource for Tree {
    fn see(&self, at: &WsPath) -> Seen {
        if at.path.is_root() {
            return Seen::Directory { mode: 0o755 };
        }
        self.0.get(&at.path.to_string()).map_or(Seen::Absent, Item::seen)
    }
}

impl<const N: usize> From<[(&str, Item); N]> for Tree {
    fn from(items: [(&str, Item); N]) -> Tree {
        Tree(items.into_iter().map(|(path, item)| (path.to_owned(), item)).collect())
    }
}

impl Tree {
    /// The bytes of a file.
    #[track_caller]
    pub(super) fn bytes(&self, path: &str) -> &[u8] {
        match self.0.get(path) {
            Some(Item::File { bytes, .. }) => bytes,
            other => panic!("{path}: {other:?}"),
        }
    }

    /// The tree once `effects` have landed, as `engine` reads them.
    pub(super) fn after(&self, effects: &Effects, umask: u32) -> Tree {
        let mut after = self.clone();
        for (at, becomes) in effects {
            let path = at.path.to_string();
            let item = match &becomes.state {
                State::Absent => {
                    assert!(after.0.remove(&path).is_some(), "{path} was not there");
                    continue;
                }
                State::Dir { mode } => Item::Dir(mode.unwrap_or(0o777 & !umask)),
                State::Entry(body) if body.kind == EntryKind::Link => {
                    Item::Link(String::from_utf8(body.content.to_vec()).unwrap())
                }
                State::Entry(body) => {
                    let from = becomes.from.as_ref().map(|from| from.path.to_string());
                    let mode_at = |path: &String| match self.0.get(path) {
                        Some(Item::File { mode, .. }) => Some(*mode),
                        _ => None,
                    };
                    let like = mode_at(&path).or(from.as_ref().and_then(mode_at));
                    let mode = body.mode.or(like).unwrap_or(0o666 & !umask);
                    Item::File { bytes: body.content.to_vec(), mode, links: 1 }
                }
            };
            after.0.insert(path, item);
        }
        after
    }

    /// Writes the tree into an empty directory.
    pub(super) fn put(&self, root: &Path) {
        for (path, item) in &self.0 {
            let path = root.join(path);
            match item {
                Item::File { bytes, mode, .. } => {
                    let mut options = fs::OpenOptions::new();
                    let mut file = options.write(true).create_new(true).mode(*mode).open(&path).unwrap();
                    std::io::Write::write_all(&mut file, bytes).unwrap();
                    file.set_permissions(fs::Permissions::from_mode(*mode)).unwrap();
                }
                Item::Link(target) => symlink(target, &path).unwrap(),
                Item::Dir(mode) => {
                    fs::create_dir_all(&path).unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
                }
                Item::Other => drop(std::os::unix::net::UnixListener::bind(&path).unwrap()),
            }
        }
        self.join(root);
    }

    /// Files that are said to have two names and are alike are made one.
    fn join(&self, root: &Path) {
        let many = |item: &Item| matches!(item, Item::File { links, .. } if *links > 1);
        let twins: Vec<_> = self.0.iter().filter(|(_, item)| many(item)).collect();
        for pair in twins.windows(2).filter(|pair| pair[0].1 == pair[1].1) {
            fs::remove_file(root.join(pair[1].0)).unwrap();
            fs::hard_link(root.join(pair[0].0), root.join(pair[1].0)).unwrap();
        }
    }

    /// Everything below a directory.
    pub(super) fn read(root: &Path) -> Tree {
        let mut tree = Tree::default();
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            for entry in fs::read_dir(root.join(&below)).unwrap() {
                let path = below.join(entry.unwrap().file_name());
                let item = item(&root.join(&path));
                if matches!(item, Item::Dir(_)) {
                    open.push(path.clone());
                }
                tree.0.insert(path.to_str().unwrap().to_owned(), item);
            }
        }
        tree
    }
}

fn item(path: &Path) -> Item {
    let metadata = fs::symlink_metadata(path).unwrap();
    let mode = metadata.mode() & 0o7777;
    if metadata.is_dir() {
        Item::Dir(mode)
    } else if metadata.is_symlink() {
        Item::Link(fs::read_link(path).unwrap().to_str().unwrap().to_owned())
    } else if metadata.is_file() {
        Item::File { bytes: fs::read(path).unwrap(), mode, links: metadata.nlink() }
    } else {
        Item::Other
    }
}

/// A directory on disk as a source of files.
pub(super) struct Disk(pub(super) PathBuf);

impl FileSource for Disk {
    fn see(&self, at: &WsPath) -> Seen {
        let path = if at.path.is_root() { self.0.clone() } else { self.0.join(at.path.to_string()) };
        if fs::symlink_metadata(&path).is_ok() { item(&path).seen() } else { Seen::Absent }
    }
}
