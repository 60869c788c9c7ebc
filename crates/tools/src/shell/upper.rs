//! From the upper layer of a staged command to its effects, told apart from what is ignored and what can never land.

use std::collections::BTreeSet;

use cotenant_model::{
    Becomes, Body, Code, Effects, EntryKind, FileSource, FolderId, Refusal, RelPath, Seen, State, WsPath,
};
use cotenant_shell::run::{Folder, umask};
use cotenant_shell::sandbox::{Upper, UpperEntry, UpperError, UpperKind};
use cotenant_tree::Ignores;

use crate::toolbox::Toolbox;

/// Paths that a command may change, ignored ones included.
const PATHS: usize = 200_000;
/// Bytes of changed files that are taken over.
const BYTES: u64 = 1 << 30;

/// What a command left in its upper layer.
#[derive(Default)]
pub(crate) struct Sorted {
    /// What is a change.
    pub(crate) effects: Effects,
    /// What is ignored, and moved over as it is.
    pub(crate) ignored: Vec<Ignored>,
    /// What was written in `.git`.
    pub(crate) git: Vec<String>,
    /// Directories that show nothing of what was in them.
    pub(crate) opaque: Vec<WsPath>,
    /// What can never land, each a sentence.
    pub(crate) odd: Vec<String>,
}

/// Something ignored that came or went.
#[derive(Clone, Debug)]
pub(crate) struct Ignored {
    /// Its path.
    pub(crate) at: WsPath,
    /// The number of its folder among those that the command had.
    pub(crate) folder: usize,
    /// Whether it went.
    pub(crate) gone: bool,
}

/// Sorts the entries of one folder.
struct Sorting<'a> {
    toolbox: &'a Toolbox,
    upper: &'a Upper,
    /// The number of the folder among those that the command had, and its own.
    index: usize,
    folder: FolderId,
    ignores: Ignores<'a>,
    mask: u32,
    bytes: u64,
    /// Ignored directories that go over as a whole.
    whole: BTreeSet<RelPath>,
    found: Sorted,
}

impl Toolbox {
    /// Sorts what a command left in the folders that it could write.
    pub(super) fn sorted(&self, upper: &Upper, folders: &[(usize, FolderId)]) -> Result<Sorted, Refusal> {
        let mut found = Sorted::default();
        for (index, folder) in folders {
            let walk = upper.walk(*index, PATHS).map_err(|error| unreadable(&error))?;
            let show = |path: &RelPath| {
                self.ws.tree().folders().show(&WsPath { folder: *folder, path: path.clone() })
            };
            found.git.extend(walk.git.iter().map(show));
            let mut sorting = Sorting {
                toolbox: self,
                upper,
                index: *index,
                folder: *folder,
                ignores: self.ws.tree().ignores(),
                mask: umask(),
                bytes: 0,
                whole: BTreeSet::new(),
                found,
            };
            for entry in &walk.entries {
                sorting.entry(entry)?;
            }
            found = sorting.found;
        }
        Ok(found)
    }
}

impl Sorting<'_> {
    fn at(&self, path: &RelPath) -> WsPath {
        WsPath { folder: self.folder, path: path.clone() }
    }

    fn entry(&mut self, entry: &UpperEntry) -> Result<(), Refusal> {
        let at = self.at(&entry.path);
        if self.whole.iter().any(|dir| entry.path.is_within(dir)) {
            return Ok(());
        }
        let is_dir = match entry.kind {
            UpperKind::Dir { .. } => true,
            UpperKind::Whiteout => matches!(self.toolbox.ws.see(&at), Seen::Directory { .. }),
            _ => false,
        };
        let class = self.toolbox.ws.tree().class_of(&at).class;
        if class != cotenant_model::PathClass::Protected && self.ignores.covers(&at, is_dir) {
            self.ignored(entry, at);
            return Ok(());
        }
        self.change(entry, at)
    }

    fn ignored(&mut self, entry: &UpperEntry, at: WsPath) {
        let folder = self.index;
        match &entry.kind {
            // Below an ignored directory that stands already each entry goes its own way.
            UpperKind::Dir { merged: true, .. } => {}
            UpperKind::Dir { .. } => {
                self.whole.insert(entry.path.clone());
                self.found.ignored.push(Ignored { at, folder, gone: false });
            }
            UpperKind::Whiteout => self.found.ignored.push(Ignored { at, folder, gone: true }),
            UpperKind::Other(_) => {}
            UpperKind::File { .. } | UpperKind::Link(_) => {
                self.found.ignored.push(Ignored { at, folder, gone: false });
            }
        }
    }

    fn change(&mut self, entry: &UpperEntry, at: WsPath) -> Result<(), Refusal> {
        let shown = self.toolbox.ws.tree().folders().show(&at);
        let state = match &entry.kind {
            UpperKind::Whiteout => State::Absent,
            UpperKind::Dir { opaque, .. } => {
                if *opaque {
                    self.found.opaque.push(at.clone());
                }
                let stands = matches!(self.toolbox.ws.see(&at), Seen::Directory { .. });
                State::Dir {
                    mode: if stands {
                        Some(entry.attributes.mode & 0o7777)
                    } else {
                        unusual(entry.attributes.mode, 0o777, self.mask)
                    },
                }
            }
            UpperKind::File { size, .. } => {
                self.bytes += size;
                if self.bytes > BYTES {
                    return Err(too_much());
                }
                let content =
                    self.upper.content(self.index, &entry.path).map_err(|error| unreadable(&error))?;
                let stands = matches!(self.toolbox.ws.see(&at), Seen::File { .. });
                let mode = match stands {
                    true => Some(entry.attributes.mode & 0o7777),
                    false => unusual(entry.attributes.mode, 0o666, self.mask),
                };
                State::Entry(Body { kind: EntryKind::File, content, mode })
            }
            UpperKind::Link(target) => State::Entry(Body::link(target.clone())),
            UpperKind::Other(what) => {
                self.found.odd.push(format!("{shown} is a {what}, which is not taken over"));
                return Ok(());
            }
        };
        if !entry.xattrs.is_empty() {
            self.found.odd.push(format!("extended attributes of {shown} are not taken over"));
        }
        self.found.effects.insert(at, Becomes::new(state));
        Ok(())
    }
}

/// Permission bits where they are not what everything new gets.
fn unusual(mode: u32, usual: u32, mask: u32) -> Option<u32> {
    let mode = mode & 0o7777;
    (mode != usual & !mask).then_some(mode)
}

fn unreadable(error: &UpperError) -> Refusal {
    Refusal::new(
        Code::IoError,
        format!("What the command changed cannot be read: {error}. Nothing of it was kept."),
    )
    .next("run it again, or with mode direct")
}

fn too_much() -> Refusal {
    let why = "The command changed more than 1 GiB of files, which is not taken over as one change. Nothing of it was kept.";
    Refusal::new(Code::LimitReached, why)
        .next("let it write to an ignored directory, or run it with mode direct")
}

/// The folders that a command can write, by their number among those that it has, from what it was given.
pub(super) fn writable(folders: &[Folder]) -> Vec<(usize, FolderId)> {
    let number = |index: usize| u16::try_from(index).ok().map(FolderId);
    let writable = folders.iter().enumerate().filter(|(_, folder)| folder.writable);
    writable.filter_map(|(index, _)| Some((index, number(index)?))).collect()
}
