//! Everything of a commit that needs no intent: the paths are held and checked, the new files staged without a name.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use cotenant_ledger::commit as record;
use cotenant_ledger::{INLINE_MAX, IntentPath, ParentId};
use cotenant_model::{
    Body, ChangeFile, ChangeOp, Content, Digest, Entry, EntryKind, FileOp, Moved, Op, Plan, WsPath,
};
use cotenant_tree::commit::{
    Attributes, FileId, Held, Inode, Leaf, Like, Look, Spot, Stamp, Temp, fresh_name,
};

use super::desk::{Desk, Pair};
use super::miss::{Doing, Miss};

/// Room that a commit leaves on the disk, in bytes (R14).
const SPARE: u64 = 16 << 20;

/// The type bits of a directory in `st_mode`.
const S_IFDIR: u32 = 0o040_000;

/// A plan whose new files are staged. Nothing of it is visible to anyone.
pub(super) struct Prepared {
    /// In the order of R12.
    pub(super) items: Vec<Item>,
    /// The directories that the targets stand in, as far as they exist.
    dirs: BTreeMap<WsPath, Arc<Held>>,
}

/// One operation, ready.
pub(super) struct Item {
    /// The path; of a move, where it goes.
    pub(super) at: WsPath,
    pub(super) work: Work,
    /// The temporary name. Its directory exists before and after the change.
    temp: Spot,
    temp_name: String,
    /// What stands at the path and will go.
    pre: Option<PreFile>,
    pub(super) post: Option<Entry>,
    /// `st_mode` of a directory that goes.
    dir_mode: u32,
    /// Where a renamed or copied file came from.
    like: Option<WsPath>,
}

/// What an operation needs.
pub(super) enum Work {
    MakeDir { mode: Option<u32> },
    Create(Fresh),
    Replace(Fresh),
    Delete,
    RemoveDir { id: FileId },
    Move(Moving),
}

/// What is to stand at a path.
pub(super) enum Fresh {
    /// A file, staged without a name; of one that replaces another, what it was made like.
    File { temp: Temp, content: Content, like: Option<Likeness> },
    /// A link, which can be made only under a name; and its owner, if it replaces one.
    Link { target: Content, owner: Option<(u32, u32)> },
}

/// What a new file was made like, to see whether that changed since.
pub(super) struct Likeness {
    attributes: Attributes,
    stamp: Stamp,
    /// The permission bits that the plan gives it.
    mode: Option<u32>,
    /// It has not the bytes of the old one.
    other_bytes: bool,
}

/// A move.
pub(super) struct Moving {
    pub(super) source: Spot,
    pub(super) from: WsPath,
    pub(super) id: FileId,
    /// The file or link; `None` for a directory.
    pub(super) entry: Option<Entry>,
    mode: u32,
}

/// The file or link that stands there, as it was seen.
struct PreFile {
    entry: Entry,
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
    pub(super) pre: Option<Entry>,
    /// The pre-image is in the ledger or in the intent.
    pub(super) kept: bool,
    pub(super) post: Option<Entry>,
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
        let parent = match op.at.dir() {
            parent if made.contains(&parent) => None,
            parent => Some(prepared.hold(desk, &parent).map_err(failed)?),
        };
        let item = match &op.op {
            Op::Move { to, what, over } => prepared.moving(desk, op, to, what, *over, &made, &fleeting),
            _ => prepared.like(desk, &op.op).and_then(|like| item(desk, op, parent, home, like.as_ref())),
        };
        prepared.items.push(item.map_err(failed)?);
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

/// The directory of a path's temporary name: the nearest one that this change neither makes nor removes, so that
/// recovery finds the name there whatever was done.
pub(super) fn home_of<P: Ord + std::borrow::Borrow<WsPath>>(at: &WsPath, fleeting: &BTreeSet<P>) -> WsPath {
    let mut home = at.dir();
    while fleeting.contains(&home) && !home.path.is_root() {
        home = home.dir();
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

    /// Owner, mode and attributes of the file that a new one is a renamed or copied version of.
    fn like(&mut self, desk: &Desk, op: &Op) -> Result<Option<Attributes>, Miss> {
        let Op::Create { like: Some(like), .. } = op else { return Ok(None) };
        let leaf = like.path.leaf().ok_or(Miss::NotAFile)?;
        match Spot::new(self.hold(desk, &like.dir())?, leaf).look().doing("opening")? {
            Look::File(inode) => Ok(Some(Attributes::of(inode.fd())?)),
            Look::Link(_) => Ok(None),
            Look::Absent => Err(Miss::Vanished),
            Look::Denied(_) => Err(Miss::Denied),
            Look::Directory(_) | Look::Other(_) => Err(Miss::NotAFile),
        }
    }

    /// Checks both ends of a move.
    #[allow(clippy::too_many_arguments, reason = "the parts of one operation")]
    fn moving(
        &mut self,
        desk: &Desk,
        op: &FileOp,
        to: &WsPath,
        what: &Moved,
        over: Option<Entry>,
        made: &BTreeSet<&WsPath>,
        fleeting: &BTreeSet<&WsPath>,
    ) -> Result<Item, Miss> {
        desk.step("stage", &op.at).doing("preparing")?;
        if to.is_within(&op.at) && to != &op.at {
            return Err(Miss::IntoItself);
        }
        let source = Spot::new(self.hold(desk, &op.at.dir())?, op.at.path.leaf().ok_or(Miss::Exists)?);
        let moving = moving(&source, &op.at, what)?;
        let home = self.hold(desk, &home_of(to, fleeting))?;
        if home.id().dev != source.dir().id().dev || home.id().mount_id != source.dir().id().mount_id {
            return Err(Miss::OtherDevice);
        }
        let leaf = to.path.leaf().ok_or(Miss::Exists)?;
        let look = match to.dir() {
            parent if made.contains(&parent) => Look::Absent,
            parent => Spot::new(self.hold(desk, &parent)?, leaf).look().doing("opening")?,
        };
        let pre = match (over, look) {
            (None, Look::Absent) => None,
            (None, _) => return Err(Miss::Exists),
            (Some(_), Look::Absent) => return Err(Miss::Vanished),
            (Some(over), look) => Some(pre_file(desk, look, over)?),
        };
        let temp_name = fresh_name().doing("naming a temporary file for")?;
        Ok(Item {
            at: to.clone(),
            temp: Spot::new(home, temp_name.as_bytes()),
            temp_name,
            post: moving.entry,
            work: Work::Move(moving),
            pre,
            dir_mode: 0,
            like: None,
        })
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
            Work::Create(Fresh::File { temp, .. }) | Work::Replace(Fresh::File { temp, .. }) => {
                Some(temp.fd())
            }
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
                from: item.from().or(item.like.as_ref()).cloned(),
                pre: item.pre.as_ref().map(|pre| pre.entry.digest),
                post: item.post.map(|post| post.digest),
                pre_mode: item.pre.as_ref().map_or(item.dir_mode, |pre| pre.mode),
                post_mode: item.post_mode(),
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
            Work::MakeDir { .. } => ChangeOp::MakeDir,
            Work::Create(_) => ChangeOp::Create,
            Work::Replace(_) => ChangeOp::Edit,
            Work::Delete => ChangeOp::Delete,
            Work::RemoveDir { .. } => ChangeOp::RemoveDir,
            Work::Move(_) => ChangeOp::Move,
        }
    }

    fn from(&self) -> Option<&WsPath> {
        match &self.work {
            Work::Move(moving) => Some(&moving.from),
            _ => None,
        }
    }

    /// `st_mode` of what will stand there.
    fn post_mode(&self) -> u32 {
        match &self.work {
            Work::Create(fresh) | Work::Replace(fresh) => fresh.mode(),
            Work::Move(moving) => moving.mode,
            Work::MakeDir { mode } => S_IFDIR | mode.unwrap_or(0),
            Work::Delete | Work::RemoveDir { .. } => 0,
        }
    }

    fn intent_path(&mut self, dirs: &BTreeMap<WsPath, Arc<Held>>) -> IntentPath {
        let parent = dirs.get(&self.at.dir()).map_or(ParentId::default(), |held| {
            let id = held.id();
            ParentId { dev: id.dev, ino: id.ino, mount: id.mount_id }
        });
        let (op, from, post_mode) = (self.op(), self.from().cloned(), self.post_mode());
        let made_ino = match &self.work {
            Work::Move(moving) => Some(moving.id.ino),
            _ => None,
        };
        let pre = self.pre.as_mut();
        let owner = pre.as_ref().map_or((0, 0), |pre| pre.owner);
        IntentPath {
            at: self.at.clone(),
            op,
            parent,
            temp: self.temp_name.clone(),
            from,
            pre: pre.as_ref().map(|pre| pre.entry.digest),
            post: self.post.map(|post| post.digest),
            pre_mode: pre.as_ref().map_or(self.dir_mode, |pre| pre.mode),
            post_mode,
            uid: owner.0,
            gid: owner.1,
            inline_pre: pre.and_then(|pre| pre.inline.take()),
            made_ino,
        }
    }

    fn aim(
        self,
        desk: &Desk,
        dirs: &mut BTreeMap<WsPath, Arc<Held>>,
        note: impl Fn(&Held) -> Result<(), Miss>,
    ) -> Result<Aimed, Miss> {
        let mut made = None;
        if let Work::MakeDir { mode } = self.work {
            desk.step("mkdir", &self.at).doing("making the directory")?;
            self.temp.make_dir(mode).doing("making the directory")?;
            let held = self.temp.dir().child(self.temp.name(), &self.at).doing("making the directory")?;
            let held = Arc::new(held);
            note(&held)?;
            dirs.insert(self.at.clone(), Arc::clone(&held));
            made = Some(held);
        }
        let parent = dirs.get(&self.at.dir()).cloned().ok_or(Miss::Vanished)?;
        let leaf = self.at.path.leaf().unwrap_or(b".");
        let pair = Pair { target: Spot::new(parent, leaf), temp: self.temp, at: self.at };
        let kept = self.pre.as_ref().is_none_or(|pre| pre.kept);
        let pre = self.pre.map(|pre| pre.entry);
        Ok(Aimed { pair, work: self.work, pre, kept, post: self.post, made })
    }
}

/// Checks one path and stages what it gets. `parent` is `None` where this change makes the directory itself.
fn item(
    desk: &Desk,
    op: &FileOp,
    parent: Option<Arc<Held>>,
    home: Arc<Held>,
    like: Option<&Attributes>,
) -> Result<Item, Miss> {
    desk.step("stage", &op.at).doing("preparing")?;
    let leaf = op.at.path.leaf().ok_or(Miss::Exists)?;
    let spot = parent.map(|parent| Spot::new(parent, leaf));
    let look = spot.as_ref().map_or(Ok(Look::Absent), Spot::look).doing("opening")?;
    let mut dir_mode = 0;
    let (work, pre) = match (&op.op, look) {
        (Op::MakeDir { mode }, Look::Absent) => (Work::MakeDir { mode: *mode }, None),
        (Op::Create { new, .. }, Look::Absent) => (Work::Create(Fresh::stage(&home, new, like)?), None),
        (Op::MakeDir { .. } | Op::Create { .. }, _) => return Err(Miss::Exists),
        (_, Look::Absent) => return Err(Miss::Vanished),
        (Op::Replace { old, new }, look) => {
            let fresh = Fresh::instead(&home, *old, new, &look)?;
            (Work::Replace(fresh), Some(pre_file(desk, look, *old)?))
        }
        (Op::Delete { old }, look) => (Work::Delete, Some(pre_file(desk, look, *old)?)),
        (Op::RemoveDir, Look::Directory(id)) => {
            let held = spot.map(|spot| spot.dir().child(leaf, &op.at)).ok_or(Miss::Vanished)?;
            dir_mode = held.and_then(|held| held.mode()).doing("opening")?;
            (Work::RemoveDir { id }, None)
        }
        (Op::RemoveDir, _) => return Err(Miss::NotADirectory),
        // Both ends of a move are looked at elsewhere.
        (Op::Move { .. }, _) => return Err(Miss::Changed),
    };
    let like = match &op.op {
        Op::Create { like, .. } => like.clone(),
        _ => None,
    };
    let temp_name = fresh_name().doing("naming a temporary file for")?;
    let temp = Spot::new(home, temp_name.as_bytes());
    Ok(Item { at: op.at.clone(), work, temp, temp_name, pre, post: op.post(), dir_mode, like })
}

/// What is moved, checked against the plan; a directory by what lies below it.
fn moving(source: &Spot, from: &WsPath, what: &Moved) -> Result<Moving, Miss> {
    let look = source.look().doing("opening")?;
    let id = look.id().ok_or(Miss::Vanished)?;
    let (entry, mode) = match (what, look) {
        (Moved::Directory { listing }, Look::Directory(_)) => {
            let held = source.dir().child(source.name(), from).doing("opening the directory")?;
            if held.listing().doing("listing the directory")? != *listing {
                return Err(Miss::Changed);
            }
            (None, held.mode().doing("opening the directory")?)
        }
        (Moved::Directory { .. }, _) => return Err(Miss::NotADirectory),
        (_, Look::Denied(_)) => return Err(Miss::Denied),
        (Moved::Entry(entry), look) => (Some(*entry), look.leaf().ok_or(Miss::NotAFile)?.mode()),
    };
    Ok(Moving { source: source.clone(), from: from.clone(), id, entry, mode })
}

impl Fresh {
    /// Stages what is to stand where nothing does.
    fn stage(home: &Held, new: &Body, like: Option<&Attributes>) -> Result<Fresh, Miss> {
        if new.kind == EntryKind::Link {
            return Ok(Fresh::Link { target: new.content.clone(), owner: None });
        }
        let attributes = like.map(|like| like.clone().with_mode(new.mode));
        let like = attributes.as_ref().map_or(Like::New(new.mode), Like::File);
        let temp = Temp::stage(home, &new.content, like)?;
        Ok(Fresh::File { temp, content: new.content.clone(), like: None })
    }

    /// Stages what is to stand in the place of a file or a link.
    fn instead(home: &Held, old: Entry, new: &Body, look: &Look) -> Result<Fresh, Miss> {
        match (look, new.kind) {
            (Look::File(inode), kind) => {
                let other_bytes = old != new.entry();
                replaceable(inode, other_bytes)?;
                if kind == EntryKind::Link {
                    return Ok(Fresh::Link { target: new.content.clone(), owner: Some(inode.owner()) });
                }
                let stamp = inode.stamp().doing("reading")?;
                let attributes = Attributes::of(inode.fd())?.with_mode(new.mode);
                let temp = Temp::stage(home, &new.content, Like::File(&attributes))?;
                let like = Some(Likeness { attributes, stamp, mode: new.mode, other_bytes });
                Ok(Fresh::File { temp, content: new.content.clone(), like })
            }
            (Look::Link(link), EntryKind::Link) => {
                Ok(Fresh::Link { target: new.content.clone(), owner: Some(link.owner) })
            }
            (Look::Link(_), EntryKind::File) => Fresh::stage(home, new, None),
            (Look::Denied(_), _) => Err(Miss::Denied),
            _ => Err(Miss::NotAFile),
        }
    }

    fn mode(&self) -> u32 {
        match self {
            Fresh::File { temp, .. } => EntryKind::File.bits() | temp.mode(),
            Fresh::Link { .. } => EntryKind::Link.bits() | 0o777,
        }
    }

    /// The bytes that it brings.
    pub(super) fn content(self) -> Content {
        match self {
            Fresh::File { content, .. } => content,
            Fresh::Link { target, .. } => target,
        }
    }

    /// Owner, mode or attributes may have changed since the new file was staged: it gets them as they are now.
    pub(super) fn refit(&self, old: &Leaf) -> Result<(), Miss> {
        let (Fresh::File { temp, like: Some(like), .. }, Leaf::File(old)) = (self, old) else {
            return Ok(());
        };
        replaceable(old, like.other_bytes)?;
        if old.stamp().doing("reading")? == like.stamp {
            return Ok(());
        }
        let now = Attributes::of(old.fd())?.with_mode(like.mode);
        if now != like.attributes {
            temp.give(&now)?;
        }
        Ok(())
    }
}

/// R10. A file that its owner may not write keeps its bytes, but its mode may be changed.
fn replaceable(inode: &Inode, other_bytes: bool) -> Result<(), Miss> {
    if inode.links() > 1 {
        return Err(Miss::HardLinked(inode.links()));
    }
    if other_bytes && inode.mode() & 0o200 == 0 {
        return Err(Miss::ReadOnly);
    }
    Ok(())
}

/// Notes what stands there. A small file that the ledger has not is carried by the intent; whether it is the one that
/// the plan was made for is decided here for a small one, and for every one in the critical section.
fn pre_file(desk: &Desk, look: Look, entry: Entry) -> Result<PreFile, Miss> {
    let leaf = match look {
        Look::Denied(_) => return Err(Miss::Denied),
        look => look.leaf().ok_or(Miss::NotAFile)?,
    };
    let (mode, owner) = (leaf.mode(), leaf.owner());
    let stored = record::has(&desk.ledger, entry.digest);
    let (bytes, inode) = match leaf {
        Leaf::File(inode) => {
            let bytes = if stored { None } else { inode.read_up_to(INLINE_MAX).doing("reading")? };
            (bytes, Some(inode))
        }
        Leaf::Link(link) => (Some(link.target), None),
    };
    let kind = if inode.is_some() { EntryKind::File } else { EntryKind::Link };
    if kind != entry.kind || bytes.as_ref().is_some_and(|bytes| Digest::of(bytes) != entry.digest) {
        return Err(Miss::Changed);
    }
    let kept = stored || bytes.is_some();
    let unsynced = if kept { None } else { inode };
    Ok(PreFile { entry, mode, owner, inline: bytes.filter(|_| !stored), unsynced, kept })
}
