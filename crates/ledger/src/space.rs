//! The disk under the state folder: what kind it is, how much room it has, and the reserve that is given up so that a
//! seal can be written on a full one (R14).

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation};

use crate::LedgerError;

/// What the state folder lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A disk.
    Disk,
    /// Memory (tmpfs, ramfs): whatever the settings say, the durability is `fast`.
    Volatile,
}

/// What must stay free beyond what an intent needs, in bytes.
const MARGIN: u64 = 16 << 20;
/// The reserve, in bytes.
const BALLAST: u64 = 4 << 20;

/// Magic numbers of `statfs(2)`.
const MEMORY: &[u64] = &[0x0102_1994, 0x8584_58f6];
const NETWORKED: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x0bd0_0bd0, "Lustre"),
    (0x6770_6673, "GPFS"),
];

impl Medium {
    /// What `dir` lies on. A network file system is refused: SQLite's log needs memory shared by all who map it and
    /// locks that hold.
    pub fn of(dir: &Path) -> Result<Medium, LedgerError> {
        let stat = rustix::fs::statfs(dir).map_err(|error| LedgerError::io("statfs", dir, error))?;
        classify(dir, stat.f_type.cast_unsigned())
    }
}

fn classify(dir: &Path, magic: u64) -> Result<Medium, LedgerError> {
    // 32-bit magics arrive sign-extended where `f_type` is narrower than the register.
    let magic = magic & 0xffff_ffff;
    if let Some((_, kind)) = NETWORKED.iter().find(|(known, _)| *known == magic) {
        return Err(LedgerError::Unsuitable { dir: dir.to_owned(), kind });
    }
    Ok(if MEMORY.contains(&magic) { Medium::Volatile } else { Medium::Disk })
}

/// Whether the disk holds `bytes` more and the margin besides.
pub(crate) fn room(dir: &Path, bytes: u64) -> Result<(), LedgerError> {
    let stat = rustix::fs::statvfs(dir).map_err(|error| LedgerError::io("statvfs", dir, error))?;
    if stat.f_bavail.saturating_mul(stat.f_frsize) < bytes.saturating_add(MARGIN) {
        return Err(LedgerError::OutOfSpace);
    }
    Ok(())
}

/// The lock on a state folder.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Takes the lock, for this process and this one value.
    pub(crate) fn take(dir: &Path) -> Result<Lock, LedgerError> {
        let path = dir.join("lock");
        let file = private(&path).map_err(|error| LedgerError::io("open", &path, error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LedgerError::Locked(dir.to_owned())),
            Err(error) => Err(LedgerError::io("lock", &path, error)),
        }
    }
}

impl Drop for Lock {
    /// Given up by word, because closing is not enough while a process that is just being started has a copy of the
    /// descriptor.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens for writing, made with mode 0600 if absent.
pub(crate) fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The reserve: a file whose blocks are taken.
#[derive(Debug)]
pub(crate) struct Ballast {
    path: PathBuf,
}

impl Ballast {
    pub(crate) fn new(dir: &Path) -> Ballast {
        Ballast { path: dir.join("ballast") }
    }

    /// Takes the reserve, if it is not there and the disk has room. On a disk without room there is none: what would
    /// have been refused at the intent is refused there all the same.
    pub(crate) fn ensure(&self) {
        let there = fs::metadata(&self.path).is_ok_and(|meta| meta.len() == BALLAST);
        let Some(dir) = self.path.parent() else { return };
        if there || room(dir, BALLAST).is_err() {
            return;
        }
        let taken = private(&self.path)
            .is_ok_and(|file| rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, BALLAST).is_ok());
        if !taken {
            self.release();
        }
    }

    /// Gives the reserve up.
    pub(crate) fn release(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_told_apart() {
        let of = |magic| classify(Path::new("/s"), magic);
        assert_eq!(of(0xef53), Ok(Medium::Disk));
        assert_eq!(of(0x0102_1994), Ok(Medium::Volatile));
        assert_eq!(of(0xffff_ffff_8584_58f6), Ok(Medium::Volatile));
        for (magic, kind) in [(0x6969, "NFS"), (0x0102_1997, "9p"), (0x6573_5546, "FUSE")] {
            let refused = of(magic).unwrap_err();
            assert_eq!(refused, LedgerError::Unsuitable { dir: "/s".into(), kind });
            assert!(refused.refusal().next.contains("state_dir"));
        }
    }
}
