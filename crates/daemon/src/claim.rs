//! Which state folder belongs to a root: the one named after its path, or, where the root was moved, the one it had
//! before. Each folder says in its file `root` which directory it is of, so that a moved one is known again.
//!
//! A directory is known by device, inode and time of birth: the inode alone may soon be that of another directory.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::{FlockOperation, flock};

/// The file in a state folder.
const FILE: &str = "root";
/// Held by the daemon of a state folder as long as it lives.
pub(crate) const LOCK: &str = "daemon.lock";

/// The state folder of a root.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its name: 16 hex digits.
    pub(crate) key: String,
    /// Where the root was before, if it was moved.
    pub(crate) moved_from: Option<PathBuf>,
}

/// What makes a directory the same one under another path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    dev: u64,
    ino: u64,
    /// Nanoseconds since the epoch; `None` where the file system does not tell, and then nothing that moved is known
    /// again.
    born: Option<u128>,
}

impl Identity {
    fn of(root: &Path) -> io::Result<Identity> {
        let found = fs::metadata(root)?;
        let born = found.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Identity { dev: found.dev(), ino: found.ino(), born: born.map(|since| since.as_nanos()) })
    }
}

/// What a state folder says of its root.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    id: Identity,
    root: PathBuf,
    moved_from: Option<PathBuf>,
}

impl Record {
    /// Lines: device, inode and birth (`-` where unknown); then both paths, each ended by a NUL, as a path has none.
    fn bytes(&self) -> Vec<u8> {
        let born = self.id.born.map_or("-".to_owned(), |born| born.to_string());
        let mut bytes = format!("{} {} {born}\n", self.id.dev, self.id.ino).into_bytes();
        for path in [Some(&self.root), self.moved_from.as_ref()] {
            bytes.extend(path.map_or(&b""[..], |path| path.as_os_str().as_bytes()));
            bytes.push(0);
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Record> {
        let line = bytes.iter().position(|byte| *byte == b'\n')?;
        let (line, paths) = bytes.split_at(line);
        let mut numbers = std::str::from_utf8(line).ok()?.split(' ');
        let dev = numbers.next()?.parse().ok()?;
        let ino = numbers.next()?.parse().ok()?;
        let born = match numbers.next()? {
            "-" => None,
            born => Some(born.parse().ok()?),
        };
        let mut paths =
            paths.get(1..)?.split(|byte| *byte == 0).map(|path| PathBuf::from(OsStr::from_bytes(path)));
        let root = paths.next().filter(|root| root.is_absolute())?;
        let moved_from = paths.next().filter(|path| path.is_absolute());
        Some(Record { id: Identity { dev, ino, born }, root, moved_from })
    }

    /// What the folder says; `None` where it says nothing that can be read.
    fn read(folder: &Path) -> Option<Record> {
        Record::parse(&fs::read(folder.join(FILE)).ok()?)
    }

    /// Written aside first, so that it is whole at any moment.
    fn write(&self, folder: &Path) -> io::Result<()> {
        let aside = folder.join(format!("{FILE}.{}", std::process::id()));
        fs::write(&aside, self.bytes())?;
        fs::rename(&aside, folder.join(FILE))
    }

    /// Whether the directory `id`, now at `root`, is the one this folder was made for.
    fn fits(&self, id: &Identity, root: &Path) -> bool {
        self.id == *id && (self.root == root || id.born.is_some() && !self.is_there())
    }

    /// Whether the directory is still where it was. Then it is seen at two places at once, and each has its own state.
    fn is_there(&self) -> bool {
        Identity::of(&self.root).is_ok_and(|id| id == self.id)
    }
}

/// The key of a canonical root, among the state folders in `all`.
pub(crate) fn find(all: &Path, root: &Path) -> io::Result<Claim> {
    let id = Identity::of(root)?;
    let own = key(&[root.as_os_str().as_bytes()]);
    let known = Record::read(&all.join(&own));
    if let Some(known) = &known
        && known.id == id
        && known.root == root
    {
        return Ok(Claim { key: own, moved_from: known.moved_from.clone() });
    }
    if let Some((key, record)) = moved(all, &id, root) {
        let moved_from = if record.root == root { record.moved_from } else { Some(record.root) };
        return Ok(Claim { key, moved_from });
    }
    let key = match known {
        // Its first directory went elsewhere and took the folder along.
        Some(known) if known.root != root => key(&[root.as_os_str().as_bytes(), &[0], &id.ino.to_le_bytes()]),
        // New here, or made anew at the same place: the history of a path goes on.
        _ => own,
    };
    Ok(Claim { key, moved_from: None })
}

/// Gives the state of the root that was at `old` to `root`: what [`find`] does by itself, for a directory that was
/// copied, or moved to another file system. `used`: whether the state of a key holds a history.
pub(crate) fn adopt(all: &Path, root: &Path, old: &Path, used: impl Fn(&str) -> bool) -> io::Result<()> {
    let id = Identity::of(root)?;
    let folders = fs::read_dir(all)?.flatten().map(|entry| entry.path());
    let known = folders.filter_map(|folder| Some((Record::read(&folder)?, folder)));
    let found = known
        .filter(|(record, _)| record.root == old && record.id != id)
        .min_by(|(_, one), (_, other)| one.cmp(other));
    let (record, folder) =
        found.ok_or_else(|| io::Error::other("no other workspace was served from there"))?;
    if record.is_there() {
        return Err(io::Error::other("the workspace is still there"));
    }
    let own = find(all, root)?.key;
    if used(&own) {
        return Err(io::Error::other("this folder has a history of its own already"));
    }
    let _both = (unused(&folder)?, unused(&all.join(&own))?);
    match fs::remove_file(all.join(&own).join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Record { id, root: root.to_owned(), moved_from: Some(old.to_owned()) }.write(&folder)
}

/// Keeps daemons from a state folder as long as what is returned lives; nothing where there is no folder.
fn unused(folder: &Path) -> io::Result<Option<fs::File>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let lock = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(LOCK))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(_) => Err(io::Error::other("a daemon runs for one of them")),
    }
}

/// Notes in the state folder of a claim which directory it is of.
pub(crate) fn note(folder: &Path, root: &Path, claim: &Claim) -> io::Result<()> {
    let record =
        Record { id: Identity::of(root)?, root: root.to_owned(), moved_from: claim.moved_from.clone() };
    if Record::read(folder).as_ref() == Some(&record) { Ok(()) } else { record.write(folder) }
}

/// The folder whose root was moved here; the first by name where there are several.
fn moved(all: &Path, id: &Identity, root: &Path) -> Option<(String, Record)> {
    let folders = fs::read_dir(all).ok()?.flatten();
    folders
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, Record::read(&entry.path())?)))
        .filter(|(_, record)| record.fits(id, root))
        .min_by(|(one, _), (other, _)| one.cmp(other))
}

fn key(parts: &[&[u8]]) -> String {
    let mut hash = blake3::Hasher::new();
    parts.iter().for_each(|part| {
        hash.update(part);
    });
    hash.finalize().to_hex().as_str().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(root: &[u8], born: Option<u128>, from: Option<&str>) -> Record {
        Record {
            id: Identity { dev: 7, ino: u64::MAX, born },
            root: OsStr::from_bytes(root).into(),
            moved_from: from.map(PathBuf::from),
        }
    }

    #[test]
    fn what_a_folder_says_is_read_back() {
        for record in [
            record(b"/w", Some(1), None),
            record(b"/a b/\n/x", None, Some("/before/now")),
            record(b"/not \xff utf-8", Some(u128::from(u64::MAX)), None),
        ] {
            assert_eq!(Record::parse(&record.bytes()), Some(record));
        }
    }

    #[test]
    fn what_is_damaged_says_nothing() {
        let whole = record(b"/w", Some(1), None).bytes();
        for broken in [&b""[..], b"\n", b"1 2\n/w\0", b"1 2 3\n", b"1 2 x\n/w\0", b"1 2 3\nw\0", &whole[..5]]
        {
            assert_eq!(Record::parse(broken), None, "{broken:?}");
        }
    }
}
