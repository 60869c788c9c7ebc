//! What stands where: taken before and after a command, and held against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cotenant_model::{FolderId, PathClass, RelPath, WsPath};

use crate::fixture::{Fixture, fact};

/// What stands at a path: its kind, its permission bits and its bytes, or where it leads.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) kind: char,
    pub(super) mode: u32,
    pub(super) bytes: Vec<u8>,
    /// Nanoseconds, where times count.
    time: Option<i128>,
}

impl std::fmt::Debug for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = String::from_utf8_lossy(&self.bytes);
        let brief: String = bytes.chars().take(60).collect();
        write!(f, "{}{:o} {} bytes {brief:?}", self.kind, self.mode, self.bytes.len())
    }
}

impl Thing {
    pub(super) fn new(kind: char, mode: u32, bytes: impl Into<Vec<u8>>) -> Thing {
        Thing { kind, mode, bytes: bytes.into(), time: None }
    }

    fn at(path: &Path, times: bool) -> Thing {
        let meta = path.symlink_metadata().unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let time = times.then(|| i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()));
        let kind = meta.file_type();
        let (kind, mode, bytes) = if kind.is_symlink() {
            ('l', 0, std::fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec())
        } else if kind.is_dir() {
            ('d', mode, Vec::new())
        } else if kind.is_file() {
            ('f', mode, std::fs::read(path).unwrap())
        } else if kind.is_fifo() {
            ('p', mode, Vec::new())
        } else {
            ('o', mode, Vec::new())
        };
        Thing { kind, mode, bytes, time }
    }
}

/// What stands at each path below a directory.
pub(super) type Ground = BTreeMap<PathBuf, Thing>;

/// All below `root` but what `skipped` names, with or without times; our own temporary names are not looked at.
pub(super) fn ground(root: &Path, times: bool, skipped: impl Fn(&Path) -> bool) -> Ground {
    let mut found = Ground::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if skipped(&name) || path.file_name().unwrap().as_bytes().starts_with(b".cotenant-") {
                continue;
            }
            let thing = Thing::at(&path, times);
            if thing.kind == 'd' {
                open.push(path);
            }
            found.insert(name, thing);
        }
    }
    found
}

/// What differs, one path a line.
pub(super) fn difference(before: &Ground, after: &Ground) -> String {
    let names: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let differs = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let lines = differs.map(|name| {
        let timed = match (before.get(name), after.get(name)) {
            (Some(one), Some(other)) if one.time != other.time => " (touched)",
            _ => "",
        };
        format!("{}: {:?} became {:?}{timed}", name.display(), before.get(name), after.get(name))
    });
    lines.collect::<Vec<_>>().join("\n    ")
}

/// The directory that holds the workspace's root, and what belongs to the test beside it.
pub(super) fn base(fixture: &Fixture) -> PathBuf {
    fixture.path(".").canonicalize().unwrap().parent().unwrap().to_owned()
}

/// Whatever is protected in the workspace, on the disk as it is. Of a `.git`, what git alone writes is left out.
pub(super) fn protected(fixture: &Fixture) -> Ground {
    let tree = fixture.toolbox.workspace().tree();
    let is_protected = |name: &Path| {
        let Ok(path) = RelPath::parse(name.to_str().unwrap_or_default()) else { return false };
        tree.class_of(&WsPath { folder: FolderId(0), path }).class == PathClass::Protected
    };
    let mut all = ground(&fixture.path("."), false, gits_own);
    all.retain(|name, _| is_protected(name));
    all
}

/// Whether git itself may write it: objects, refs, logs, index, HEAD files and locks, of a `.git` at any depth.
fn gits_own(name: &Path) -> bool {
    let text = name.to_string_lossy();
    let Some((_, inside)) = text.rsplit_once(".git/") else { return false };
    let first = inside.split('/').next().unwrap_or_default();
    ["objects", "refs", "logs", "index", "packed-refs", "COMMIT_EDITMSG"].contains(&first)
        || first.ends_with("HEAD")
        || inside.ends_with(".lock")
}

/// Says yes to whatever an answer waits for, and to what comes of that, until there is nothing left to ask. The last answer.
pub(super) fn approve_all(fixture: &Fixture, first: &str) -> String {
    let mut said = first.to_owned();
    for _ in 0..6 {
        for question in fixture.toolbox.waiting() {
            // What moved in between is shown anew, under another digest; that one is in the next round.
            let _ = fixture.toolbox.approve(question.id, &question.digest.to_string());
        }
        if !said.starts_with("APPROVAL_PENDING") || !said.contains("retry {") {
            break;
        }
        said = fixture.retry(&said).text;
    }
    // A job that a yes began ends before anybody looks.
    while let (true, Some(id)) = (said.starts_with("running"), fact(&said, "job")) {
        said = fixture.call("command_output", serde_json::json!({"id": id, "wait_s": 50})).text;
    }
    said
}

/// The bytes that base64 stands for.
pub(super) fn decoded(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let value = alphabet.iter().position(|known| *known == byte).unwrap();
        bits = bits << 6 | u32::try_from(value).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    bytes
}
