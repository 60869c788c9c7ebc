//! Where a path of a command leads, by its text alone: links are the kernel's business.

use cotenant_model::{PathClass, RelPath};

use super::Surroundings;

/// What a path is to the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The workspace's root.
    Root,
    /// In the workspace.
    Inside(RelPath),
    /// The home directory, `/`, or another directory that holds the workspace.
    Above(String),
    /// Commands may write there: temporary files, listed caches, `/dev/null` and the like.
    Free,
    /// A disk or the memory, as a file.
    Device(String),
    /// Anywhere else.
    Outside(String),
    /// It cannot be known, or it is no file at all.
    Unknown,
}

/// What every program may write below `/dev`.
const STREAMS: &[&str] =
    &["null", "zero", "full", "tty", "stdin", "stdout", "stderr", "random", "urandom", "ptmx"];

/// Names below `/dev` that hold a disk, a partition or the memory.
const DISKS: &[&str] = &[
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "dm-", "md", "mapper", "disk", "mem", "kmem", "port",
    "ram", "sr", "nbd", "zram",
];

impl Surroundings<'_> {
    /// Where `text` leads from the directory `cwd` (absolute; `None` where it is not known).
    pub(super) fn place(&self, cwd: Option<&str>, text: &str) -> Place {
        let joined = match (text.starts_with('/'), cwd) {
            (true, _) => text.to_owned(),
            (false, Some(cwd)) => format!("{cwd}/{text}"),
            (false, None) => return Place::Unknown,
        };
        let path = normal(&joined);
        let root = normal(self.root);
        if path == root {
            return Place::Root;
        }
        if let Some(below) = below(&path, &root) {
            return RelPath::parse(below).map_or(Place::Unknown, Place::Inside);
        }
        if below(&root, &path).is_some() || self.home.is_some_and(|home| path == normal(home)) {
            return Place::Above(path);
        }
        // What stands beside the workspace is somebody's, wherever that is.
        let beside = root.rsplit_once('/').is_some_and(|(above, _)| {
            !matches!(above, "" | "/tmp" | "/var/tmp") && below(&path, above).is_some()
        });
        if !beside
            && ["/tmp", "/var/tmp"]
                .iter()
                .any(|temporary| path == *temporary || below(&path, temporary).is_some())
            || self
                .writable
                .iter()
                .map(|dir| normal(dir))
                .any(|dir| path == dir || below(&path, &dir).is_some())
        {
            return Place::Free;
        }
        match path.strip_prefix("/dev/") {
            Some(name) => device(name, &path),
            None if path.starts_with("/proc/self/fd/") => Place::Free,
            None => Place::Outside(path),
        }
    }

    /// The class of a path that commands may not write literally; `.venv` is a program's own directory.
    pub(super) fn is_protected(&self, path: &RelPath) -> bool {
        let venv = |name: &[u8]| name.eq_ignore_ascii_case(b".venv");
        (self.class)(path) == PathClass::Protected && !path.components().any(venv)
    }
}

/// What is below `/dev`.
fn device(name: &str, path: &str) -> Place {
    if STREAMS.contains(&name) || name.starts_with("fd/") || name.starts_with("pts/") {
        Place::Free
    } else if DISKS.iter().any(|disk| name.starts_with(disk)) {
        Place::Device(path.to_owned())
    } else if name.starts_with("shm/") || name.starts_with("tcp/") || name.starts_with("udp/") {
        // The sandbox has its own, or none; to the shell the last two are connections.
        Place::Unknown
    } else {
        Place::Outside(path.to_owned())
    }
}

/// An absolute path without `.`, `..` and doubled slashes, by its text.
pub(super) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// What is left of `path` below the directory `dir`; both are normal.
fn below<'p>(path: &'p str, dir: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(dir)?;
    let rest = if dir == "/" { rest } else { rest.strip_prefix('/')? };
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_placed_by_components() {
        let class = |_: &RelPath| PathClass::Ordinary;
        let writable = ["/home/dev/.cache/cargo/".to_owned()];
        let around = Surroundings {
            root: "/home/dev/project/",
            cwd: &RelPath::root(),
            home: Some("/home/dev"),
            writable: &writable,
            class: &class,
        };
        let place = |text| around.place(Some("/home/dev/project/sub"), text);
        assert_eq!(place(".."), Place::Root);
        assert_eq!(place("./../../project"), Place::Root);
        assert_eq!(place("x/../y"), Place::Inside(RelPath::parse("sub/y").unwrap()));
        assert_eq!(place("/home/dev/project-evil/f"), Place::Outside("/home/dev/project-evil/f".to_owned()));
        assert_eq!(place("../.."), Place::Above("/home/dev".to_owned()));
        assert_eq!(place("/../.."), Place::Above("/".to_owned()));
        assert_eq!(place("/tmp"), Place::Free);
        assert_eq!(place("/tmp/../etc"), Place::Outside("/etc".to_owned()));
        assert_eq!(place("/tmpx"), Place::Outside("/tmpx".to_owned()));
        assert_eq!(place("/home/dev/.cache/cargo/x"), Place::Free);
        assert_eq!(place("/home/dev/.cache/other"), Place::Outside("/home/dev/.cache/other".to_owned()));
        assert_eq!(place("/dev/null"), Place::Free);
        assert_eq!(place("/dev/sda1"), Place::Device("/dev/sda1".to_owned()));
        assert_eq!(place("/dev/tcp/127.0.0.1/9"), Place::Unknown);
        assert_eq!(around.place(None, "x"), Place::Unknown);
        assert_eq!(around.place(None, "/etc"), Place::Outside("/etc".to_owned()));
    }
}
