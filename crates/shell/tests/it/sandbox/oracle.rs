//! Random scripts: the lower tree with the upper layer laid over it is the tree that the same script leaves elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use cotenant_shell::sandbox::{Upper, UpperEntry, UpperKind};
use cotenant_testkit::{Dice, long};

use super::rig::Rig;

/// Times before this are those that a script set; all others are of the moment.
const SET_BY_SCRIPT: i64 = 1_000_000_000;

/// What stands at a path, as far as it can be the same in two places.
#[derive(Debug, PartialEq, Eq)]
struct Thing {
    kind: &'static str,
    mode: u32,
    content: Vec<u8>,
    links: u64,
    set_time: Option<i64>,
}

fn thing(path: &Path) -> Thing {
    let meta = path.symlink_metadata().unwrap();
    let (kind, content) = if meta.is_symlink() {
        ("link", fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec())
    } else if meta.is_file() {
        ("file", fs::read(path).unwrap())
    } else {
        (if meta.is_dir() { "dir" } else { "other" }, Vec::new())
    };
    let is_file = kind == "file";
    Thing {
        kind,
        mode: meta.mode() & 0o7777,
        content,
        links: if is_file { meta.nlink() } else { 0 },
        set_time: Some(meta.mtime()).filter(|time| is_file && *time < SET_BY_SCRIPT),
    }
}

fn tree(root: &Path) -> BTreeMap<PathBuf, Thing> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let thing = thing(&path);
            if thing.kind == "dir" {
                open.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().to_owned(), thing);
        }
    }
    found
}

/// What a script may do. Links and moved directories do not go together: a directory that cannot be renamed is copied,
/// and a copy is no link.
#[derive(Clone, Copy)]
enum Moves {
    Directories,
    HardLinks,
}

struct Author {
    dice: Dice,
    moves: Moves,
    count: u64,
}

impl Author {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.dice.below(from.len() as u64) as usize]
    }

    /// A path of one to three names out of a few, so that scripts come back to what they did.
    fn path(&mut self) -> String {
        let depth = self.pick(&[1, 1, 2, 2, 2, 3]);
        let names: Vec<&str> = (0..depth).map(|_| self.pick(&["a", "b", "c", "d e", "ü"])).collect();
        format!("'{}'", names.join("/"))
    }

    /// One step. Nothing is written into a FIFO, which would wait for a reader.
    fn line(&mut self) -> String {
        self.count += 1;
        let (count, one, other) = (self.count, self.path(), self.path());
        let (mode, dir_mode) =
            (self.pick(&["600", "644", "755", "700"]), self.pick(&["700", "750", "755", "1777"]));
        match self.dice.below(20) {
            0 | 1 => format!("[ -p {one} ] || echo {count} > {one}"),
            2 => format!("[ -p {one} ] || echo {count} >> {one}"),
            3 => format!("mkdir {one} && echo {count} > {one}/new"),
            4 => format!("mkdir -p {one}"),
            5 => format!("rm -f {one}"),
            6 => format!("rm -rf {one}"),
            7 => format!("rmdir {one}"),
            8 => format!("ln -sT {other} {one}"),
            9 => format!("if [ -d {one} ]; then chmod {dir_mode} {one}; else chmod {mode} {one}; fi"),
            10 => format!("[ -f {one} ] && touch -d @{} {one}", count * 1000),
            11 => format!("[ -f {one} ] && truncate -s {} {one}", self.dice.below(9)),
            12 => format!("mkfifo {one}"),
            13 => format!("rm -rf {one}; mkdir {one}; echo {count} > {one}/a"),
            14 => format!("rm -rf {one}; [ -p {one} ] || echo {count} > {one}"),
            15 => format!("[ -f {one} ] && ! [ -p {other} ] && cp -pT {one} {other}"),
            16 => format!("[ -f {one} ] && sed -i s/^/{count}/ {one}"),
            _ => match self.moves {
                Moves::Directories => {
                    let option = self.pick(&["", "-T ", "-n "]);
                    format!("mv {option}{one} {other}")
                }
                Moves::HardLinks if self.dice.below(2) == 0 => format!("[ -f {one} ] && ln {one} {other}"),
                Moves::HardLinks => format!("[ -f {one} ] && mv -T {one} {other}"),
            },
        }
    }

    /// Lines of which each may fail, in both places alike.
    fn script(&mut self, lines: u64) -> String {
        let lines: Vec<String> = (0..lines).map(|_| self.line()).collect();
        format!("umask 022\nexec 2>/dev/null\n{}\ntrue\n", lines.join("\n"))
    }
}

fn bash(script: &str, within: &Path) {
    let status = Command::new("bash").args(["-c", script]).current_dir(within).stdin(Stdio::null()).status();
    assert!(status.unwrap().success(), "{script}");
}

fn remove(path: &Path) {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Lays an upper layer over a plain directory by its entries alone.
fn lay(upper: &Upper, root: &Path) {
    let entries = upper.walk(0, 100_000).unwrap().entries;
    let mut first_name: HashMap<u64, PathBuf> = HashMap::new();
    let mut replaced: Vec<PathBuf> = Vec::new();
    for entry in &entries {
        let path = root.join(entry.path.to_string());
        match &entry.kind {
            UpperKind::Whiteout => {
                let hidden = replaced.iter().any(|above| path.starts_with(above));
                assert!(hidden || path.symlink_metadata().is_ok(), "{}: nothing was there", entry.path);
                remove(&path);
            }
            UpperKind::Dir { merged: true, opaque } => {
                assert!(!opaque, "{entry:?}");
                assert!(path.symlink_metadata().unwrap().is_dir(), "{}: no directory was there", entry.path);
            }
            UpperKind::Dir { opaque, .. } => {
                let was = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
                assert!(*opaque || !was, "{}: what was in it is neither kept nor gone", entry.path);
                remove(&path);
                fs::create_dir(&path).unwrap();
                replaced.push(path);
            }
            UpperKind::File { size, links, inode, .. } => {
                remove(&path);
                match first_name.get(inode).filter(|_| *links > 1) {
                    Some(first) => fs::hard_link(first, &path).unwrap(),
                    None => put(upper, entry, *size, &path),
                }
                first_name.insert(*inode, path);
            }
            UpperKind::Link(target) => {
                remove(&path);
                symlink(std::ffi::OsStr::from_bytes(target), &path).unwrap();
            }
            UpperKind::Other(what) => {
                assert_eq!(*what, "a FIFO");
                remove(&path);
                let mode = rustix::fs::Mode::from_raw_mode(entry.attributes.mode);
                rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
                chmod(&path, entry.attributes.mode);
            }
        }
    }
    for entry in entries.iter().filter(|entry| matches!(entry.kind, UpperKind::Dir { .. })) {
        chmod(&root.join(entry.path.to_string()), entry.attributes.mode);
    }
}

fn put(upper: &Upper, entry: &UpperEntry, size: u64, path: &Path) {
    let mut from = fs::File::from(upper.open(0, &entry.path).unwrap());
    let mut to = fs::File::create_new(path).unwrap();
    assert_eq!(std::io::copy(&mut from, &mut to).unwrap(), size, "{}", entry.path);
    let time = UNIX_EPOCH + Duration::from_secs(entry.attributes.modified.0.unsigned_abs());
    to.set_modified(time).unwrap();
    chmod(path, entry.attributes.mode);
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// One tree, one script, three places: staged, laid over a copy, and plainly run in another copy.
fn compare(rig: &Rig, author: &mut Author, round: u64) {
    let [lower, plain] = ["lower", "plain"].map(|name| rig.base.join(format!("{name}-{round}")));
    for dir in [&rig.root(), &lower, &plain] {
        remove(dir);
        fs::create_dir(dir).unwrap();
    }
    let before =
        Author { moves: Moves::Directories, dice: Dice::seeded(author.dice.below(u64::MAX)), count: 0 }
            .script(12)
            .replace("mkfifo", "mkdir");
    bash(&before, &rig.root());
    let copy = format!("cp -a '{}/.' .", rig.root().display());
    bash(&copy, &lower);
    bash(&copy, &plain);
    let untouched = tree(&rig.root());

    let lines = 1 + author.dice.below(25);
    let script = author.script(lines);
    let ran = rig.staged(&script).ok();
    bash(&script, &plain);
    assert_eq!(tree(&rig.root()), untouched, "round {round}: the folder itself changed\n{script}");
    lay(&ran.upper(), &lower);
    let (found, wanted) = (tree(&lower), tree(&plain));
    let differ = |path: &&PathBuf| found.get(*path) != wanted.get(*path);
    let wrong: Vec<String> = found
        .keys()
        .chain(wanted.keys())
        .filter(differ)
        .map(|path| format!("{}: {:?}, wanted {:?}", path.display(), found.get(path), wanted.get(path)))
        .collect();
    let layer = ran.changes().join("\n");
    assert!(
        wrong.is_empty(),
        "round {round}\n{}\nbefore:\n{before}\nscript:\n{script}\n{layer}",
        wrong.join("\n")
    );
    remove(&lower);
    remove(&plain);
}

#[track_caller]
fn rounds(test: &str, moves: Moves) {
    let rig = Rig::new();
    if !rig.can_stage(test) {
        return;
    }
    let mut author = Author { dice: Dice::thrown(), moves, count: 0 };
    for round in 0..if long() { 1000 } else { 40 } {
        compare(&rig, &mut author, round);
    }
}

#[test]
fn a_layer_over_the_tree_is_what_the_script_leaves() {
    rounds("a_layer_over_the_tree_is_what_the_script_leaves", Moves::Directories);
}

#[test]
fn a_layer_with_hard_links_over_the_tree_is_what_the_script_leaves() {
    rounds("a_layer_with_hard_links_over_the_tree_is_what_the_script_leaves", Moves::HardLinks);
}
