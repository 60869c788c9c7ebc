//! Image files: `blobs/<2 hex>/<64 hex>`, named by their digest, written once, never a hard link of anything outside.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use cotenant_model::{Digest, Millis};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::{INLINE_MAX, LedgerError};

/// Bytes read or written at once.
const CHUNK: usize = 128 * 1024;
/// Above so many files one `syncfs` replaces the loop of flushes (R2).
const SYNC_SINGLY: usize = 8;

/// The folder of image files.
#[derive(Debug)]
pub(crate) struct Blobs {
    dir: PathBuf,
    fd: OwnedFd,
    /// Makes temporary names different.
    next: AtomicU64,
    /// Images whose flush failed: what the page cache shows of them may never have reached the disk. They count as
    /// absent, and storing them again writes a new file.
    suspect: Mutex<HashSet<Digest>>,
}

/// What came of an image.
pub(crate) enum Image {
    /// It is a file of its own now.
    Filed(Digest),
    /// It is small: these are its bytes.
    Small(Vec<u8>),
}

/// An image file as retention sees it.
pub(crate) struct Stored {
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
    /// When it came into the store (its inode's change time, wall clock).
    pub(crate) since: Millis,
}

impl Blobs {
    /// Opens or makes the folder and removes what a crash left half-written.
    pub(crate) fn open(state: &Path) -> Result<Blobs, LedgerError> {
        let dir = state.join("blobs");
        make_dir(&dir)?;
        let listing = fs::read_dir(&dir).map_err(|error| LedgerError::io("list", &dir, error))?;
        for entry in
            listing.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"new-"))
        {
            let _ = fs::remove_file(entry.path());
        }
        let fd = File::open(&dir).map_err(|error| LedgerError::io("open", &dir, error))?.into();
        Ok(Blobs { dir, fd, next: AtomicU64::new(0), suspect: Mutex::default() })
    }

    fn path(&self, digest: Digest) -> PathBuf {
        let hex = digest.hex();
        self.dir.join(&hex[..2]).join(hex)
    }

    fn suspects(&self) -> std::sync::MutexGuard<'_, HashSet<Digest>> {
        self.suspect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the image is a file here.
    pub(crate) fn has(&self, digest: Digest) -> bool {
        !self.suspects().contains(&digest) && self.path(digest).exists()
    }

    /// The image, verified; `None` where it is not a file here.
    pub(crate) fn read(&self, digest: Digest) -> Result<Option<Vec<u8>>, LedgerError> {
        let path = self.path(digest);
        match fs::read(&path) {
            Ok(bytes) if Digest::of(&bytes) == digest => Ok(Some(bytes)),
            Ok(_) => Err(LedgerError::Corrupt(digest)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LedgerError::io("read", &path, error)),
        }
    }

    /// The size of the image's file, if it is one.
    pub(crate) fn size(&self, digest: Digest) -> Option<u64> {
        if self.suspects().contains(&digest) {
            return None;
        }
        fs::metadata(self.path(digest)).ok().map(|meta| meta.len())
    }

    /// Writes an image's file anew, synced, so that nobody outside can have it open.
    pub(crate) fn renew(&self, digest: Digest, bytes: &[u8]) -> Result<(), LedgerError> {
        let (path, mut file) = self.temporary()?;
        let written = file.write_all(bytes).and_then(|()| file.sync_data());
        self.publish(&path, digest, written.map_err(|error| LedgerError::io("write", &path, error)))?;
        self.sync(&[digest]).map(drop)
    }

    /// Writes an image as a file.
    pub(crate) fn write(&self, digest: Digest, bytes: &[u8]) -> Result<(), LedgerError> {
        if self.has(digest) {
            return Ok(());
        }
        let (path, mut file) = self.temporary()?;
        let written = file.write_all(bytes).map_err(|error| LedgerError::io("write", &path, error));
        self.publish(&path, digest, written)
    }

    /// Copies the content of an open file, from its beginning; the descriptor's offset is neither used nor moved.
    pub(crate) fn copy(&self, from: BorrowedFd<'_>) -> Result<Image, LedgerError> {
        let from = from.try_clone_to_owned().map_err(|error| LedgerError::io("read", &self.dir, error))?;
        let from = File::from(from);
        let read = |error| LedgerError::io("read an image for", &self.dir, error);
        let mut chunk = vec![0; CHUNK.max(INLINE_MAX + 1)];
        let first = fill(&from, &mut chunk, 0).map_err(read)?;
        if first <= INLINE_MAX {
            chunk.truncate(first);
            return Ok(Image::Small(chunk));
        }
        let (path, mut file) = self.temporary()?;
        let copied = Digest::stream(|sink| {
            let (mut at, mut got) = (0, first);
            while got > 0 {
                sink(&chunk[..got]);
                file.write_all(&chunk[..got]).map_err(|error| LedgerError::io("write", &path, error))?;
                at += got as u64;
                got = fill(&from, &mut chunk, at).map_err(read)?;
            }
            Ok(())
        });
        let digest = match copied {
            Ok(digest) => digest,
            Err(error) => {
                let _ = fs::remove_file(&path);
                return Err(error);
            }
        };
        self.publish(&path, digest, Ok(()))?;
        Ok(Image::Filed(digest))
    }

    fn temporary(&self) -> Result<(PathBuf, File), LedgerError> {
        let path = self.dir.join(format!("new-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let file = crate::space::private(&path).map_err(|error| LedgerError::io("make", &path, error))?;
        Ok((path, file))
    }

    /// Gives a finished temporary file its name, or removes it where it was not finished.
    fn publish(
        &self,
        from: &Path,
        digest: Digest,
        written: Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let to = self.path(digest);
        let named = written.and_then(|()| {
            self.shelf(digest)?;
            fs::rename(from, &to).map_err(|error| LedgerError::io("name", &to, error))
        });
        if named.is_err() {
            let _ = fs::remove_file(from);
        } else {
            self.suspects().remove(&digest);
        }
        named
    }

    /// Makes sure that the folder an image goes into is there.
    fn shelf(&self, digest: Digest) -> Result<(), LedgerError> {
        make_dir(&self.dir.join(&digest.hex()[..2]))
    }

    /// Takes the file `name` of `dir` as the image `expected`: small ones come back as bytes, larger ones are renamed
    /// into the store, or copied where that cannot be. What is read here is verified; what is renamed is verified when
    /// it is read.
    pub(crate) fn adopt(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        expected: Digest,
    ) -> Result<Image, LedgerError> {
        if self.has(expected) {
            return Ok(Image::Filed(expected));
        }
        let failed = |error: Errno| LedgerError::io("take an image into", &self.dir, error);
        // Through a path descriptor first: what is displaced need not be a file, and is never followed (R8).
        let probe =
            rustix::fs::openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
                .map_err(failed)?;
        let stat = rustix::fs::fstat(&probe).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(failed(Errno::INVAL));
        }
        let small = u64::try_from(stat.st_size).is_ok_and(|size| size <= INLINE_MAX as u64);
        if !small && stat.st_nlink == 1 && self.take(dir, name, expected)? {
            return Ok(Image::Filed(expected));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(failed)?;
        let image = self.copy(file.as_fd())?;
        let found = match &image {
            Image::Filed(digest) => *digest,
            Image::Small(bytes) => Digest::of(bytes),
        };
        // Someone wrote into it: its content is kept under its own digest, and `expected` is not in it any more.
        if found == expected { Ok(image) } else { Err(LedgerError::Corrupt(expected)) }
    }

    /// Renames a file into the store; `false` where it lies on another mount.
    fn take(&self, dir: BorrowedFd<'_>, name: &[u8], digest: Digest) -> Result<bool, LedgerError> {
        self.shelf(digest)?;
        let hex = digest.hex();
        let to = format!("{}/{hex}", &hex[..2]);
        match rustix::fs::renameat_with(dir, name, &self.fd, &to, RenameFlags::NOREPLACE) {
            // Its folder is closed to others already; the mode is second to having the image.
            Ok(()) => {
                let _ = rustix::fs::chmodat(&self.fd, &to, Mode::from_raw_mode(0o600), AtFlags::empty());
                self.suspects().remove(&digest);
                Ok(true)
            }
            Err(Errno::XDEV | Errno::EXIST | Errno::PERM | Errno::ACCESS) => Ok(false),
            Err(error) => Err(LedgerError::io("take an image into", &self.dir, error)),
        }
    }

    /// Makes image files durable, their names too; returns those that are no files any more. After a failure those it
    /// was about are suspect.
    pub(crate) fn sync(&self, digests: &[Digest]) -> Result<Vec<Digest>, LedgerError> {
        let failed = |error: std::io::Error| {
            self.suspects().extend(digests);
            LedgerError::Failed(format!("sync images in {}: {error}", self.dir.display()).into())
        };
        let mut gone = Vec::new();
        if digests.len() > SYNC_SINGLY {
            return rustix::fs::syncfs(&self.fd).map(|()| gone).map_err(|error| failed(error.into()));
        }
        for digest in digests {
            let path = self.path(*digest);
            match File::open(&path) {
                Ok(file) => file.sync_data().map_err(failed)?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    gone.push(*digest);
                    continue;
                }
                Err(error) => return Err(failed(error)),
            }
            if let Some(shelf) = path.parent() {
                File::open(shelf).and_then(|shelf| shelf.sync_all()).map_err(failed)?;
            }
        }
        rustix::fs::fsync(&self.fd).map(|()| gone).map_err(|error| failed(error.into()))
    }

    /// Every image file.
    pub(crate) fn list(&self) -> Result<Vec<Stored>, LedgerError> {
        let failed = |error| LedgerError::io("list", &self.dir, error);
        let mut stored = Vec::new();
        for shelf in fs::read_dir(&self.dir).map_err(failed)? {
            let shelf = shelf.map_err(failed)?;
            if !shelf.file_type().map_err(failed)?.is_dir() {
                continue;
            }
            for entry in fs::read_dir(shelf.path()).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let Some(digest) = entry.file_name().to_str().and_then(parse_hex) else { continue };
                let meta = entry.metadata().map_err(failed)?;
                let since = u64::try_from(meta.ctime()).unwrap_or(0).saturating_mul(1000);
                stored.push(Stored { digest, bytes: meta.len(), since: Millis(since) });
            }
        }
        Ok(stored)
    }

    /// Removes an image file; it need not be there.
    pub(crate) fn remove(&self, digest: Digest) -> Result<(), LedgerError> {
        let path = self.path(digest);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(LedgerError::io("remove", &path, error))
            }
            _ => Ok(()),
        }
    }
}

/// Makes a folder for its owner alone, if it is absent.
pub(crate) fn make_dir(dir: &Path) -> Result<(), LedgerError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(LedgerError::io("make", dir, error))
        }
        _ => Ok(()),
    }
}

/// Reads until `chunk` is full or the file ends; how many bytes there were.
fn fill(file: &File, chunk: &mut [u8], at: u64) -> std::io::Result<usize> {
    let mut got = 0;
    while got < chunk.len() {
        match file.read_at(&mut chunk[got..], at + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

fn parse_hex(name: &str) -> Option<Digest> {
    let pairs = name.as_bytes().chunks_exact(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    bytes.and_then(|bytes| Digest::from_bytes(&bytes))
}
