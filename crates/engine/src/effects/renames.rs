//! Which of the paths that came to be are those that went, under another name.

use std::collections::{BTreeMap, BTreeSet};

use cotenant_model::{ChangeFile, ChangeOp, Digest, EntryKind, WsPath};
use cotenant_tree::Stat;

use super::stand::{Stand, Turn};

/// From where to where.
pub(super) type Renames = BTreeMap<WsPath, WsPath>;

/// The files and links that have another name now. The same inode with the same bytes is the same file, also where it went
/// over another one; else equal bytes tell, if there are any.
pub(super) fn find(turns: &[Turn]) -> Renames {
    let gone: Vec<&Turn> =
        turns.iter().filter(|turn| turn.is == Stand::Absent && is_entry(turn.was)).collect();
    let mut by_inode: BTreeMap<(u64, u64), &Turn> = BTreeMap::new();
    let mut by_bytes: BTreeMap<(EntryKind, [u8; 32]), Vec<&Turn>> = BTreeMap::new();
    for turn in gone.iter().rev() {
        if let Some(old) = turn.old {
            by_inode.insert((old.dev, old.ino), turn);
        }
        if let Some(entry) = turn.was.entry() {
            by_bytes.entry((entry.kind, *entry.digest.as_bytes())).or_default().push(turn);
        }
    }
    let mut renames = Renames::new();
    let mut taken: BTreeSet<&WsPath> = BTreeSet::new();
    for to in
        turns.iter().filter(|turn| is_entry(turn.is) && (turn.was == Stand::Absent || is_entry(turn.was)))
    {
        let from = to.new.and_then(|new| by_inode.get(&(new.dev, new.ino)));
        if let Some(from) = from.filter(|from| is_same_file(from, to) && !taken.contains(&from.at)) {
            taken.insert(&from.at);
            renames.insert(from.at.clone(), to.at.clone());
        }
    }
    let arrived: BTreeSet<WsPath> = renames.values().cloned().collect();
    for to in turns.iter().filter(|turn| turn.was == Stand::Absent && !arrived.contains(&turn.at)) {
        let Some(entry) = to.is.entry().filter(|entry| entry.digest != Digest::of(b"")) else { continue };
        let same = by_bytes.get_mut(&(entry.kind, *entry.digest.as_bytes()));
        let from = same.and_then(|same| {
            same.retain(|from| !taken.contains(&from.at));
            same.pop()
        });
        if let Some(from) = from {
            taken.insert(&from.at);
            renames.insert(from.at.clone(), to.at.clone());
        }
    }
    renames
}

fn is_entry(stand: Stand) -> bool {
    matches!(stand, Stand::Entry(..) | Stand::Unknown)
}

/// Whether what went has the inode and the bytes of what came; of one whose bytes nobody has, its length and date must do.
fn is_same_file(from: &Turn, to: &Turn) -> bool {
    match (from.was, to.is, from.old, to.new) {
        (Stand::Entry(was, _), Stand::Entry(is, _), ..) => was == is,
        (Stand::Unknown, Stand::Entry(..), Some(old), Some(new)) => {
            let dated = |stat: Stat| (stat.size, stat.mtime_ns);
            dated(old) == dated(new)
        }
        _ => false,
    }
}

/// What history says of the turns, in path order. Turns whose old bytes nobody has are left out, unless it is enough to
/// give them their name back.
pub(super) fn files(turns: &[Turn], renames: &Renames) -> Vec<ChangeFile> {
    let came: BTreeMap<&WsPath, &WsPath> = renames.iter().map(|(from, to)| (to, from)).collect();
    let by_path: BTreeMap<&WsPath, &Turn> = turns.iter().map(|turn| (&turn.at, turn)).collect();
    // What only got another name: the old one needs no line of its own.
    let moves = |to: &Turn, from: &Turn| {
        let rights = |turn: Option<Stat>| turn.map(|stat| stat.mode);
        to.is.entry().is_some() && (rights(to.new) == rights(from.old) || from.was == Stand::Unknown)
    };
    let mut files = Vec::with_capacity(turns.len());
    for turn in turns {
        let from = came.get(&turn.at).and_then(|from| by_path.get(*from));
        let to = renames.get(&turn.at).and_then(|to| by_path.get(to));
        if to.is_some_and(|to| moves(to, turn)) {
            continue;
        }
        match from {
            Some(from) if moves(turn, from) => files.push(moved(turn, &from.at)),
            // With other permissions it is a new file like the old one, which went.
            Some(from) if turn.was == Stand::Absent => {
                files.extend(
                    lines(turn).into_iter().map(|file| ChangeFile { from: Some(from.at.clone()), ..file }),
                );
            }
            _ => files.extend(lines(turn)),
        }
    }
    files
}

fn moved(turn: &Turn, from: &WsPath) -> ChangeFile {
    ChangeFile {
        from: Some(from.clone()),
        op: ChangeOp::Move,
        ..line(turn, ChangeOp::Move, turn.was, turn.is)
    }
}

/// The lines of one path: two where one kind of thing became another.
fn lines(turn: &Turn) -> Vec<ChangeFile> {
    let one = |op| vec![line(turn, op, turn.was, turn.is)];
    let two = |first, then| {
        vec![line(turn, first, turn.was, Stand::Absent), line(turn, then, Stand::Absent, turn.is)]
    };
    match (turn.was, turn.is) {
        (Stand::Absent, Stand::Entry(..)) => one(ChangeOp::Create),
        (Stand::Absent, Stand::Dir(_)) => one(ChangeOp::MakeDir),
        (Stand::Entry(..), Stand::Absent) => one(ChangeOp::Delete),
        (Stand::Dir(_), Stand::Absent) => one(ChangeOp::RemoveDir),
        (Stand::Entry(..), Stand::Entry(..)) => one(ChangeOp::Edit),
        (Stand::Entry(..), Stand::Dir(_)) => two(ChangeOp::Delete, ChangeOp::MakeDir),
        (Stand::Dir(_), Stand::Entry(..)) => two(ChangeOp::RemoveDir, ChangeOp::Create),
        (Stand::Absent, Stand::Absent) | (Stand::Dir(_), Stand::Dir(_)) => Vec::new(),
        (Stand::Unknown, _) | (_, Stand::Unknown) => Vec::new(),
    }
}

fn line(turn: &Turn, op: ChangeOp, was: Stand, is: Stand) -> ChangeFile {
    ChangeFile {
        at: turn.at.clone(),
        op,
        from: None,
        pre: was.entry().map(|entry| entry.digest),
        post: is.entry().map(|entry| entry.digest),
        pre_mode: was.mode(),
        post_mode: is.mode(),
    }
}

#[cfg(test)]
mod tests {
    use cotenant_model::{Entry, RelPath};

    use super::*;

    fn at(path: &str) -> WsPath {
        WsPath::root(RelPath::parse(path).unwrap())
    }

    fn stat(ino: u64, mode: u32) -> Stat {
        Stat { dev: 1, ino, size: 3, mode, uid: 0, gid: 0, nlink: 1, mtime_ns: 5, ctime_ns: 6 }
    }

    fn file(bytes: &str, mode: u32) -> Stand {
        Stand::Entry(Entry::file(Digest::of(bytes.as_bytes())), mode)
    }

    /// `path=old>new`, each side `bytes@inode` or nothing; `?` are unknown bytes, `*` after them makes it executable.
    fn turn(text: &str) -> Turn {
        let (path, sides) = text.split_once('=').unwrap();
        let side = |text: &str| match text.split_once('@') {
            None => (Stand::Absent, None),
            Some((bytes, ino)) => {
                let mode = if bytes.ends_with('*') { 0o100_755 } else { 0o100_644 };
                let bytes = bytes.trim_end_matches('*');
                let stand = if bytes == "?" { Stand::Unknown } else { file(bytes, mode) };
                (stand, Some(stat(ino.parse().unwrap(), mode)))
            }
        };
        let (was, is) = sides.split_once('>').unwrap();
        let ((was, old), (is, new)) = (side(was), side(is));
        Turn { at: at(path), was, is, old, new }
    }

    fn told(turns: &str) -> String {
        let turns: Vec<Turn> = turns.split(' ').map(turn).collect();
        let files = files(&turns, &find(&turns));
        let tell = |file: &ChangeFile| match &file.from {
            Some(from) => format!("{}:{}<{}", file.op.name(), file.at.path, from.path),
            None => format!("{}:{}", file.op.name(), file.at.path),
        };
        files.iter().map(tell).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_name_that_went_and_one_that_came_are_one_move_where_the_bytes_are_the_same() {
        for (turns, expected) in [
            ("a=x@1> b=>x@1", "move:b<a"),
            ("a=x@1> b=>x@2", "move:b<a"),
            ("a=x@1> b=>y@1", "delete:a create:b"),
            ("a=x@1> b=>y@2", "delete:a create:b"),
            // Two of the same: each goes to one, by inode where that tells.
            ("a=x@1> b=x@2> c=>x@2 d=>x@1", "move:c<b move:d<a"),
            ("a=x@1> b=x@2> c=>x@8 d=>x@9", "move:c<a move:d<b"),
            ("a=x@1> b=>x@8 c=>x@9", "move:b<a create:c"),
            // Empty files are all the same: only the inode tells.
            ("a=@1> b=>@2", "delete:a create:b"),
            ("a=@1> b=>@1", "move:b<a"),
            // Over another one; without the inode the bytes prove nothing.
            ("a=x@1> b=y@2>x@1", "move:b<a"),
            ("a=x@1> b=y@2>x@3", "delete:a edit:b"),
            // With other permissions it is a new file, like the old one.
            ("a=x@1> b=>x*@1", "delete:a create:b<a"),
            ("a=x@1> b=y@2>x*@1", "delete:a edit:b"),
            // Nobody has the bytes: to give it its name back is enough.
            ("a=?@1> b=>x@1", "move:b<a"),
            ("a=?@1> b=>x@2", "create:b"),
            ("a=?@1>x@1", ""),
        ] {
            assert_eq!(told(turns), expected, "{turns}");
        }
    }

    #[test]
    fn a_thing_of_another_kind_is_two_lines() {
        let dir = Stand::Dir(0o40_755);
        let both = |was, is| {
            let turns = [Turn { at: at("a"), was, is, old: None, new: None }];
            files(&turns, &find(&turns)).iter().map(|file| file.op).collect::<Vec<_>>()
        };
        assert_eq!(both(file("x", 0o100_644), dir), [ChangeOp::Delete, ChangeOp::MakeDir]);
        assert_eq!(both(dir, file("x", 0o100_644)), [ChangeOp::RemoveDir, ChangeOp::Create]);
        assert_eq!(both(dir, dir), []);
        let link = Stand::Entry(Entry::link(Digest::of(b"x")), 0o120_777);
        assert_eq!(both(file("x", 0o100_644), link), [ChangeOp::Edit]);
    }
}
