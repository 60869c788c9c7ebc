//! Reading a whole file, and knowing whether it held still.

use std::fs::File;
use std::io::Read;

use cotenant_model::{Digest, FolderId, RelPath, WsPath};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::AsFd;

use crate::dir::Stat;
use crate::error::{NotAFile, TreeError};
use crate::place::{Kind, Place};
use crate::sys::{self, Flavour};
use crate::tree::Tree;

/// How often a file that changes under the read is read again (R18).
pub(crate) const MAX_REREADS: usize = 3;
/// Bytes of a file that are in memory at once while it is digested.
const PIECE: usize = 256 * 1024;
/// The largest settings file that is looked at, in bytes.
const META_LIMIT: u64 = 1024 * 1024;
/// The largest file that is read on a thread which must not wait, in bytes: more would keep it from its other work.
const AT_ONCE: u64 = 128 * 1024;

/// A file's bytes and what it was when they were read.
#[derive(Clone, Debug)]
pub struct ReadFile {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// The file they belong to.
    pub stat: Stat,
    /// It changed during every attempt: the bytes may belong to no single state and must not back a receipt (R18).
    pub unstable: bool,
}

impl Tree {
    /// Reads the file at `place`, up to `max_bytes`; a larger one is `TooLarge`. One that changes meanwhile is read again
    /// up to three times (R18). What tells is the time of the last change, which the kernel sets as a write begins: a
    /// single write that is under way all through the read goes unnoticed.
    pub fn read(&self, place: &Place, max_bytes: u64) -> Result<ReadFile, TreeError> {
        let mut rereads = 0;
        loop {
            let (file, stat) = open(place)?;
            if stat.size > max_bytes {
                return Err(TreeError::TooLarge { size: stat.size, limit: max_bytes });
            }
            let bytes = contents(&file, stat.size, max_bytes)?;
            let stable = is_same(place, &stat) && bytes.len() as u64 == stat.size;
            if stable || rereads == MAX_REREADS {
                return Ok(ReadFile { bytes, stat, unstable: !stable });
            }
            rereads += 1;
        }
    }

    /// The digest of the file at `place`, whatever its size, without holding it in memory. One that changes meanwhile is
    /// `Changing`.
    pub fn digest(&self, place: &Place) -> Result<Digest, TreeError> {
        for _ in 0..=MAX_REREADS {
            let (file, stat) = open(place)?;
            let digest = Digest::stream(|sink| stream(&file, sink)).map_err(|error| io_error(&error))?;
            if is_same(place, &stat) {
                return Ok(digest);
            }
        }
        Err(TreeError::Changing)
    }

    /// The permission bits of what stands at `place`, a link itself included; `None` where nothing does.
    pub fn mode(&self, place: &Place) -> Option<u32> {
        sys::stat_leaf(place.parent.fd(), &place.leaf).ok().map(|meta| meta.stat.mode & 0o7777)
    }

    /// The names of a directory, at most so many; none where it cannot be read.
    pub fn names_in(&self, dir: &WsPath, most: usize) -> Vec<Box<[u8]>> {
        let Some(root) = self.root_dir(dir.folder) else { return Vec::new() };
        let path: &[u8] = if dir.path.is_root() { b"." } else { dir.path.as_bytes() };
        let opened = sys::open_beneath(root.fd(), path, OFlags::RDONLY | OFlags::DIRECTORY);
        let found = opened.and_then(|dir| crate::below::names(dir.as_fd()));
        found.unwrap_or_default().into_iter().take(most).map(|(name, _)| name).collect()
    }

    /// The time at which a change in a folder would be stamped now, by its file system: nanoseconds since the Unix epoch,
    /// from a file that never has a name. `None` where the file system makes none.
    pub fn stamp(&self, folder: FolderId) -> Option<i128> {
        sys::time_at(self.root_dir(folder)?.fd())
    }

    /// What the link at `place` says.
    pub fn link_target(&self, place: &Place) -> Result<Vec<u8>, TreeError> {
        if place.kind != Kind::Link {
            return Err(TreeError::NotFound);
        }
        sys::read_link(place.parent.fd(), &place.leaf).map_err(|errno| match errno {
            // It is something else by now.
            Errno::INVAL => TreeError::Changing,
            errno => TreeError::of(errno, "reading the link"),
        })
    }

    /// The bytes of a settings file (`cotenant.toml`, `.editorconfig`, `.gitattributes`), protected or not: a regular
    /// file of at most 1 MiB, no link on its way. `None` where there is no such file.
    pub fn read_meta_file(&self, folder: FolderId, path: &RelPath) -> Option<Vec<u8>> {
        let root = self.root_dir(folder)?;
        let fd = sys::open_file(root.fd(), path.as_bytes()).ok()?;
        let meta = sys::stat_beneath(fd.as_fd()).ok()?;
        if meta.flavour != Flavour::File || meta.stat.size > META_LIMIT {
            return None;
        }
        contents(&File::from(fd), meta.stat.size, META_LIMIT).ok()
    }
}

/// Opens the file at `place` for reading, whatever it has become since: still beneath its folder, still regular.
pub(crate) fn open(place: &Place) -> Result<(File, Stat), TreeError> {
    match place.kind {
        Kind::File(_) => {}
        Kind::Dir => return Err(TreeError::NotAFile { what: NotAFile::Directory }),
        Kind::Link => return Err(TreeError::NotAFile { what: NotAFile::Link }),
        Kind::Absent { .. } => return Err(TreeError::NotFound),
    }
    let fd = sys::open_file(place.parent.fd(), &place.leaf).map_err(|errno| match errno {
        Errno::LOOP => TreeError::Changing,
        Errno::XDEV => TreeError::CrossDevice { mount: place.real.path.to_string() },
        errno => TreeError::of(errno, "opening"),
    })?;
    let meta = sys::stat_beneath(fd.as_fd()).map_err(|errno| TreeError::of(errno, "looking at"))?;
    match meta.flavour {
        Flavour::File => Ok((File::from(fd), meta.stat)),
        other => Err(TreeError::NotAFile { what: other.what() }),
    }
}

/// Whether the place still holds the file `stat`, unchanged.
pub(crate) fn is_same(place: &Place, stat: &Stat) -> bool {
    let now = sys::stat_leaf(place.parent.fd(), &place.leaf);
    now.is_ok_and(|now| {
        (now.stat.dev, now.stat.ino, now.stat.size, now.stat.ctime_ns)
            == (stat.dev, stat.ino, stat.size, stat.ctime_ns)
    })
}

/// Hands all bytes of `file` over, piece by piece.
pub(crate) fn stream(mut file: &File, sink: &mut dyn FnMut(&[u8])) -> std::io::Result<()> {
    if !sys::may_wait() {
        return Err(sys::miss().into());
    }
    let mut buffer = vec![0; PIECE];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => sink(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// All bytes of `file`, which has `size` of them, unless it has grown over `limit`.
fn contents(file: &File, size: u64, limit: u64) -> Result<Vec<u8>, TreeError> {
    if !sys::may_wait() {
        return at_once(file, size).map_err(|errno| TreeError::of(errno, "reading"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).saturating_add(1));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| io_error(&error))?;
    if bytes.len() as u64 > limit {
        return Err(TreeError::TooLarge { size: bytes.len() as u64, limit });
    }
    Ok(bytes)
}

/// The bytes of `file` where they are in memory; one more than `size` where it has grown.
fn at_once(file: &File, size: u64) -> Result<Vec<u8>, Errno> {
    let room = usize::try_from(size).ok().filter(|_| size <= AT_ONCE).ok_or_else(sys::miss)?;
    let mut bytes = vec![0; room + 1];
    let mut filled = 0;
    while filled < bytes.len() {
        match sys::read_at_once(file, &mut bytes[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The error of a failed read.
pub(crate) fn io_error(error: &std::io::Error) -> TreeError {
    TreeError::of(Errno::from_io_error(error).unwrap_or(Errno::IO), "reading")
}
