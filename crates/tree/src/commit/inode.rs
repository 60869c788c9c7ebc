//! One regular file, held open for reading: its digest, its lease, and whether it was written since.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use cotenant_model::Digest;
use rustix::fs::{FileType, Stat};

use super::spot::FileId;
use crate::sys::swap::{self, LeaseState};

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// A regular file open for reading. The descriptor keeps its inode number from being reused.
#[derive(Debug)]
pub struct Inode {
    fd: OwnedFd,
    id: FileId,
    mode: u32,
    links: u64,
    uid: u32,
    gid: u32,
    size: u64,
}

/// What holds foreign writers off a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grip {
    /// A kernel lease: nobody has it open for writing, and who wants to waits.
    Lease,
    /// Nothing: leases are not to be had here. Only digests tell.
    None,
}

/// A file's change time and size: differs after every write, and also after its name was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    seconds: i64,
    nanos: u64,
    size: i64,
}

impl Inode {
    /// Of an open descriptor; an error unless it is a regular file.
    pub(super) fn new(fd: OwnedFd) -> io::Result<Inode> {
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Inode {
            id: FileId::of(&stat),
            mode: stat.st_mode & 0o7777,
            links: link_count(&stat),
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            fd,
        })
    }

    /// Which inode it is.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Its descriptor, open for reading.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Permission bits when it was opened, set-id and sticky bits included.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// How many names it had when it was opened.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// Owner and group when it was opened.
    pub fn owner(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The digest of its bytes as they are now.
    pub fn digest(&self) -> io::Result<Digest> {
        let mut buffer = vec![0; CHUNK.min(usize::try_from(self.size).unwrap_or(CHUNK).max(1) + 1)];
        Digest::stream(|sink| {
            let mut offset = 0;
            loop {
                let read = rustix::io::pread(&self.fd, &mut buffer, offset)?;
                if read == 0 {
                    return Ok(());
                }
                sink(&buffer[..read]);
                offset += read as u64;
            }
        })
    }

    /// Its bytes, if they are at most `limit`.
    pub fn read_up_to(&self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        if self.size > limit as u64 {
            return Ok(None);
        }
        let mut bytes = vec![0; limit + 1];
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::io::pread(&self.fd, &mut bytes[filled..], filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        Ok((filled <= limit).then_some(bytes))
    }

    /// Takes a kernel lease. `WouldBlock` while anyone has the file open or mapped for writing.
    pub fn grip(&self) -> io::Result<Grip> {
        match swap::lease(self.fd.as_fd()) {
            Ok(()) => Ok(Grip::Lease),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            // Not the owner, or a file system or a kernel without leases.
            Err(_) => Ok(Grip::None),
        }
    }

    /// Whether the lease stands and nobody waits for it.
    pub fn gripped(&self) -> bool {
        swap::lease_state(self.fd.as_fd()) == LeaseState::Held
    }

    /// Gives the lease back. Closing the descriptor does the same, so a failure leaves nothing behind.
    pub fn let_go(&self) {
        let _ = swap::unlease(self.fd.as_fd());
    }

    /// Its change time and size now.
    pub fn stamp(&self) -> io::Result<Stamp> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok(Stamp { seconds: stat.st_ctime, nanos: stat.st_ctime_nsec, size: stat.st_size })
    }
}

#[allow(clippy::unnecessary_cast, reason = "nlink_t is narrower on some architectures")]
fn link_count(stat: &Stat) -> u64 {
    stat.st_nlink as u64
}
