//! Everything of a commit that needs no intent: the paths are held and checked, the new files staged without a name.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use cotenant_ledger::commit as record;
use cotenant_ledger::{INLINE_MAX, IntentPath, ParentId};
use cotenant_model::{ChangeFile, ChangeOp, Content, Digest, FileOp, Op, Plan, WsPath};
use cotenant_tree::commit::{Attributes, FileId, Held, Inode, Like, Look, Spot, Stamp, Temp, fresh_name};

use super::desk::{Desk, Pair};
use super::miss::{Doing, Miss};

/// Room that a commit leaves on the disk, in bytes (R14).
const SPARE: u64 = 16 << 20;

/// A plan whose new files are staged. Nothing of it is visible to anyone.
pub(super) struct Prepared {
    /// In the order of R12.
    pub(super) items: Vec<Item>,
    /// The directories that the targets stand in, as far as they exist.
    dirs: BTreeMap<WsPath, Arc<Held>>,
}

/// One operation, ready.
pub(super) struct Item {
    pub(super) at: WsPath,
    pub(super) work: Work,
    /// The temporary name. Its directory exists before and after the change.
    temp: Spot,
    temp_name: String,
    pre: Option<PreFile>,
    pub(super) post: Option<Digest>,
    mode: u32,
}

/// What an operation needs.
pub(super) enum Work {
    MakeDir,
    Create { temp: Temp, content: Content },
    Replace { temp: Temp, content: Content, attributes: Attributes, stamp: Stamp },
    Delete,
    RemoveDir { id: FileId },
}

/// The file that stands there, as it was seen.
struct PreFile {
    digest: Digest,
    mode: u32,
    owner: (u32, u32),
    inline: Option<Vec<u8>>,
    /// Kept while its bytes must still reach the disk, because they are in no ledger yet.
    unsynced: Option<Inode>,
    kept: bool,
}

/// An operation whose every directory is held: it can be swapped in.
pub(super) struct Aimed {
    pub(super) pair: Pair,
    pub(super) work: Work,
    pub(super) pre: Option<Digest>,
    /// The pre-image is in the ledger or in the intent.
    pub(super) kept: bool,
    pub(super) post: Option<Digest>,
    /// For a directory: the one made, still at the temporary name.
    pub(super) made: Option<Arc<Held>>,
}

/// A miss and where.
pub(super) struct Failure {
    pub(super) at: WsPath,
    pub(super) miss: Miss,
}

/// Holds, checks and stages.
pub(super) fn prepare(desk: &Desk, plan: &Plan) -> Result<Prepared, Failure> {
    let made: BTreeSet<&WsPath> = paths_of(plan, |op| matches!(op, Op::MakeDir { .. }));
    let fleeting: BTreeSet<&WsPath> = paths_of(plan, |op| matches!(op, Op::MakeDir { .. } | Op::RemoveDir));
    let mut ops: Vec<&FileOp> = plan.ops.iter().collect();
    ops.sort_by(|a, b| {
        // A directory is removed after what lies in it.
        let by_path = if matches!(a.op, Op::RemoveDir) { b.at.cmp(&a.at) } else { a.at.cmp(&b.at) };
        rank(&a.op).cmp(&rank(&b.op)).then(by_path)
    });
    let mut prepared = Prepared { items: Vec::with_capacity(ops.len()), dirs: BTreeMap::new() };
    let room = ops.first().map_or(Ok(()), |first| prepared.room(desk, plan, &fleeting, &first.at));
    room.map_err(|miss| Failure { at: ops.first().map(|op| op.at.clone()).unwrap_or_default(), miss })?;
    for op in ops {
        let failed = |miss| Failure { at: op.at.clone(), miss };
        let home = prepared.hold(desk, &home_of(&op.at, &fleeting)).map_err(failed)?;
        let parent = match parent_of(&op.at) {
            parent if made.contains(&parent) => None,
            parent => Some(prepared.hold(desk, &parent).map_err(failed)?),
        };
        prepared.items.push(item(desk, op, parent, home).map_err(failed)?);
    }
    Ok(prepared)
}

/// R12.
fn rank(op: &Op) -> u8 {
    match op {
        Op::MakeDir { .. } => 0,
        Op::Create { .. } => 1,
        Op::Replace { .. } => 2,
        Op::Move { .. } => 3,
        Op::Delete { .. } => 4,
        Op::RemoveDir => 5,
    }
}

fn paths_of(plan: &Plan, wanted: impl Fn(&Op) -> bool) -> BTreeSet<&WsPath> {
    plan.ops.iter().filter(|op| wanted(&op.op)).map(|op| &op.at).collect()
}

/// The directory that a path stands in.
pub(super) fn parent_of(at: &WsPath) -> WsPath {
    at.parent().unwrap_or_else(|| WsPath { folder: at.folder, ..WsPath::default() })
}

/// The directory of a path's temporary name: the nearest one that this change neither makes nor removes, so that
/// recovery finds the name there whatever was done.
pub(super) fn home_of<P: Ord + std::borrow::Borrow<WsPath>>(at: &WsPath, fleeting: &BTreeSet<P>) -> WsPath {
    let mut home = parent_of(at);
    while fleeting.contains(&home) && !home.path.is_root() {
        home = parent_of(&home);
    }
    home
}

impl Prepared {
    fn hold(&mut self, desk: &Desk, at: &WsPath) -> Result<Arc<Held>, Miss> {
        if let Some(held) = self.dirs.get(at) {
            return Ok(Arc::clone(held));
        }
        let found = Held::find(&desk.tree, at).doing("opening the directory of")?;
        let held = found.map(Arc::new).ok_or(Miss::Vanished)?;
        self.dirs.insert(at.clone(), Arc::clone(&held));
        Ok(held)
    }

    /// Whether the disk has room for everything that is about to be staged.
    fn room(
        &mut self,
        desk: &Desk,
        plan: &Plan,
        fleeting: &BTreeSet<&WsPath>,
        at: &WsPath,
    ) -> Result<(), Miss> {
        let bytes = |op: &FileOp| op.content().map_or(0, |content| content.len() as u64);
        let need = plan.ops.iter().map(bytes).sum::<u64>() + SPARE;
        let free = self.hold(desk, &home_of(at, fleeting))?.free().doing("asking for the free space at")?;
        if free < need { Err(Miss::NoSpace { need, free }) } else { Ok(()) }
    }

    /// The descriptors whose bytes must be on the disk before anything is swapped: new files, and old ones that the
    /// ledger has not.
    pub(super) fn unsynced(&self) -> Vec<BorrowedFd<'_>> {
        let new = self.items.iter().filter_map(|item| match &item.work {
            Work::Create { temp, .. } | Work::Replace { temp, .. } => Some(temp.fd()),
            _ => None,
        });
        let old = self.items.iter().filter_map(|item| Some(item.pre.as_ref()?.unsynced.as_ref()?.fd()));
        new.chain(old).collect()
    }

    /// What the ledger makes durable, path by path in the order of R12.
    pub(super) fn intent_paths(&mut self) -> Vec<IntentPath> {
        let dirs = &self.dirs;
        self.items.iter_mut().map(|item| item.intent_path(dirs)).collect()
    }

    /// What history will say, in path order.
    pub(super) fn change_files(&self) -> Vec<ChangeFile> {
        let mut files: Vec<ChangeFile> = self
            .items
            .iter()
            .map(|item| ChangeFile {
                at: item.at.clone(),
                op: item.op(),
                pre: item.pre.as_ref().map(|pre| pre.digest),
                post: item.post,
                pre_mode: item.mode,
                ..ChangeFile::default()
            })
            .collect();
        files.sort_by(|a, b| a.at.cmp(&b.at));
        files
    }

    /// Makes the missing directories under their temporary names and tells the ledger which they are, so that
    /// recovery never takes another's directory for ours. Then every path can be aimed at.
    pub(super) fn aim(
        self,
        desk: &Desk,
        note: impl Fn(usize, &Held) -> Result<(), Miss>,
    ) -> Result<Vec<Aimed>, (Failure, Vec<Pair>)> {
        let Prepared { items, mut dirs } = self;
        let mut aimed: Vec<Aimed> = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let at = item.at.clone();
            match item.aim(desk, &mut dirs, |held| note(index, held)) {
                Ok(done) => aimed.push(done),
                Err(miss) => {
                    return Err((Failure { at, miss }, aimed.into_iter().map(|aimed| aimed.pair).collect()));
                }
            }
        }
        Ok(aimed)
    }
}

impl Item {
    fn op(&self) -> ChangeOp {
        match self.work {
            Work::MakeDir => ChangeOp::MakeDir,
            Work::Create { .. } => ChangeOp::Create,
            Work::Replace { .. } => ChangeOp::Edit,
            Work::Delete => ChangeOp::Delete,
            Work::RemoveDir { .. } => ChangeOp::RemoveDir,
        }
    }

    fn intent_path(&mut self, dirs: &BTreeMap<WsPath, Arc<Held>>) -> IntentPath {
        let parent = dirs.get(&parent_of(&self.at)).map_or(ParentId::default(), |held| {
            let id = held.id();
            ParentId { dev: id.dev, ino: id.ino, mount: id.mount_id }
        });
        let op = self.op();
        let pre = self.pre.as_mut();
        let owner = pre.as_ref().map_or((0, 0), |pre| pre.owner);
        IntentPath {
            at: self.at.clone(),
            op,
            parent,
            temp: self.temp_name.clone(),
            pre: pre.as_ref().map(|pre| pre.digest),
            post: self.post,
            pre_mode: pre.as_ref().map_or(0, |pre| pre.mode),
            uid: owner.0,
            gid: owner.1,
            inline_pre: pre.and_then(|pre| pre.inline.take()),
            ..IntentPath::default()
        }
    }

    fn aim(
        self,
        desk: &Desk,
        dirs: &mut BTreeMap<WsPath, Arc<Held>>,
        note: impl Fn(&Held) -> Result<(), Miss>,
    ) -> Result<Aimed, Miss> {
        let mut made = None;
        if matches!(self.work, Work::MakeDir) {
            desk.step("mkdir", &self.at).doing("making the directory")?;
            self.temp.make_dir().doing("making the directory")?;
            let held = self.temp.dir().child(self.temp.name(), &self.at).doing("making the directory")?;
            let held = Arc::new(held);
            note(&held)?;
            dirs.insert(self.at.clone(), Arc::clone(&held));
            made = Some(held);
        }
        let parent = dirs.get(&parent_of(&self.at)).cloned().ok_or(Miss::Vanished)?;
        let leaf = self.at.path.leaf().unwrap_or(b".");
        let pair = Pair { target: Spot::new(parent, leaf), temp: self.temp, at: self.at };
        let kept = self.pre.as_ref().is_none_or(|pre| pre.kept);
        let pre = self.pre.map(|pre| pre.digest);
        Ok(Aimed { pair, work: self.work, pre, kept, post: self.post, made })
    }
}

/// Checks one path and stages what it gets. `parent` is `None` where this change makes the directory itself.
fn item(desk: &Desk, op: &FileOp, parent: Option<Arc<Held>>, home: Arc<Held>) -> Result<Item, Miss> {
    desk.step("stage", &op.at).doing("preparing")?;
    let leaf = op.at.path.leaf().ok_or(Miss::Exists)?;
    let look = match parent {
        Some(parent) => Spot::new(parent, leaf).look().doing("opening")?,
        None => Look::Absent,
    };
    let (work, pre) = match (&op.op, look) {
        (Op::MakeDir { .. }, Look::Absent) => (Work::MakeDir, None),
        (Op::Create { new, .. }, Look::Absent) => {
            let temp = Temp::stage(&home, &new.content, Like::New(new.mode))?;
            (Work::Create { temp, content: Arc::clone(&new.content) }, None)
        }
        (Op::MakeDir { .. } | Op::Create { .. }, _) => return Err(Miss::Exists),
        (_, Look::Absent) => return Err(Miss::Vanished),
        (Op::Replace { old, new }, Look::File(inode)) => {
            replaceable(&inode)?;
            let stamp = inode.stamp().doing("reading")?;
            let attributes = Attributes::of(inode.fd())?;
            let seen = pre_file(desk, inode, old.digest)?;
            let temp = Temp::stage(&home, &new.content, Like::File(&attributes))?;
            (Work::Replace { temp, content: Arc::clone(&new.content), attributes, stamp }, Some(seen))
        }
        (Op::Delete { old }, Look::File(inode)) => (Work::Delete, Some(pre_file(desk, inode, old.digest)?)),
        (Op::Replace { .. } | Op::Delete { .. }, Look::Denied(_)) => return Err(Miss::Denied),
        (Op::Replace { .. } | Op::Delete { .. }, _) => return Err(Miss::NotAFile),
        (Op::RemoveDir, Look::Directory(id)) => (Work::RemoveDir { id }, None),
        (Op::RemoveDir, _) => return Err(Miss::NotADirectory),
        (Op::Move { .. }, _) => return Err(Miss::NotAFile),
    };
    let mode = match (&work, &pre) {
        (Work::Create { temp, .. }, _) => temp.mode(),
        (_, Some(pre)) => pre.mode,
        _ => 0,
    };
    let temp_name = fresh_name().doing("naming a temporary file for")?;
    let temp = Spot::new(home, temp_name.as_bytes());
    Ok(Item {
        at: op.at.clone(),
        work,
        temp,
        temp_name,
        pre,
        post: op.post().map(|entry| entry.digest),
        mode,
    })
}

/// R10.
pub(super) fn replaceable(inode: &Inode) -> Result<(), Miss> {
    if inode.links() > 1 {
        return Err(Miss::HardLinked(inode.links()));
    }
    if inode.mode() & 0o200 == 0 {
        return Err(Miss::ReadOnly);
    }
    Ok(())
}

/// Notes the file that stands there. A small one that the ledger has not is carried by the intent; whether it is the
/// one that the plan was made for is decided here for a small one, and for every one in the critical section.
fn pre_file(desk: &Desk, inode: Inode, digest: Digest) -> Result<PreFile, Miss> {
    let (mode, owner) = (inode.mode(), inode.owner());
    let stored = record::has(&desk.ledger, digest);
    let bytes = if stored { None } else { inode.read_up_to(INLINE_MAX).doing("reading")? };
    if bytes.as_ref().is_some_and(|bytes| Digest::of(bytes) != digest) {
        return Err(Miss::Changed);
    }
    let kept = stored || bytes.is_some();
    Ok(PreFile { digest, mode, owner, inline: bytes, unsynced: (!kept).then_some(inode), kept })
}
