//! Foreign writers: programs that know nothing of cotenant and write as editors, shells and loggers do.
#![allow(unsafe_code, reason = "a writer by a shared mapping needs one")]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// How a foreign program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A new file renamed over the old one.
    RenameOver,
    /// Opened without truncating, written from the beginning.
    InPlace,
    /// Opened with `O_TRUNC`, written, closed.
    Truncate,
    /// Written by a descriptor that was opened before the commit.
    Held,
    /// Written by a shared mapping that was made before the commit.
    Mapped,
    /// The name removed.
    Remove,
}

pub const KINDS: [Kind; 6] =
    [Kind::RenameOver, Kind::InPlace, Kind::Truncate, Kind::Held, Kind::Mapped, Kind::Remove];

/// A foreign program at one file.
pub struct Foreign {
    pub kind: Kind,
    path: PathBuf,
    held: Option<File>,
    mapped: Option<Mapping>,
    waiting: Option<JoinHandle<Option<Vec<u8>>>>,
    pending: Vec<u8>,
    /// What it wrote; all bytes of the file, always of the length that the file had.
    pub wrote: Option<Vec<u8>>,
    /// What it overwrote or removed knowingly: what stood in the file, or at the name, when it wrote.
    pub destroyed: Option<Vec<u8>>,
}

/// Renames `new` over `path` and returns what it took the name from: an exchange tells, where a look beforehand might
/// see another version than the one that goes.
fn rename_over(new: &Path, path: &Path) -> Option<Vec<u8>> {
    if renameat_with(CWD, new, CWD, path, RenameFlags::EXCHANGE).is_err() {
        fs::rename(new, path).unwrap();
        return None;
    }
    let gone = fs::read(new).ok();
    fs::remove_file(new).unwrap();
    gone
}

impl Foreign {
    /// A program that is about to write to `path`, which exists for the kinds that hold it open.
    pub fn new(kind: Kind, path: &Path) -> Foreign {
        let open = || OpenOptions::new().read(true).write(true).open(path).unwrap();
        Foreign {
            kind,
            path: path.to_owned(),
            held: (kind == Kind::Held).then(open),
            // The mapping outlives its descriptor.
            mapped: (kind == Kind::Mapped).then(|| Mapping::of(&open())),
            waiting: None,
            pending: Vec::new(),
            wrote: None,
            destroyed: None,
        }
    }

    /// Writes `bytes`. Where the kernel makes it wait (a lease), it goes on waiting in a thread.
    pub fn write(&mut self, bytes: &[u8]) {
        match self.kind {
            Kind::RenameOver => {
                let other = self.path.with_extension("foreign");
                // Without its directory it has nowhere to write.
                if fs::write(&other, bytes).is_ok() {
                    self.destroyed = rename_over(&other, &self.path);
                    self.wrote = Some(bytes.to_vec());
                }
            }
            Kind::Remove => {
                self.destroyed = fs::read(&self.path).ok();
                let _ = fs::remove_file(&self.path);
            }
            Kind::InPlace | Kind::Truncate => self.write_by_name(bytes),
            Kind::Held => {
                let file = self.held.as_ref().unwrap();
                self.destroyed = Some(all(file));
                file.write_all_at(bytes, 0).unwrap();
                self.wrote = Some(bytes.to_vec());
            }
            Kind::Mapped => {
                self.destroyed = Some(self.mapped.as_ref().unwrap().swap(bytes));
                self.wrote = Some(bytes.to_vec());
            }
        }
    }

    fn write_by_name(&mut self, bytes: &[u8]) {
        let mut open = OpenOptions::new();
        open.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let truncate = self.kind == Kind::Truncate;
        match open.open(&self.path) {
            Ok(file) => {
                self.destroyed = Some(all(&file));
                overwrite(file, bytes, truncate);
                self.wrote = Some(bytes.to_vec());
            }
            // Somebody holds a lease: the kernel has told them, and a program that may wait does.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let (path, bytes) = (self.path.clone(), bytes.to_vec());
                self.pending = bytes.clone();
                self.waiting = Some(std::thread::spawn(move || {
                    // The file may be gone by the time the path is looked up again: then it writes nothing.
                    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
                    let before = all(&file);
                    overwrite(file, &bytes, truncate);
                    Some(before)
                }));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits until it has written, and lets the file go.
    pub fn leave(&mut self) {
        self.leave_thread();
        (self.held, self.mapped) = (None, None);
    }

    /// Waits until it has written.
    pub fn leave_thread(&mut self) {
        if let Some(waiting) = self.waiting.take()
            && let Some(before) = waiting.join().unwrap()
        {
            self.destroyed = Some(before);
            self.wrote = Some(std::mem::take(&mut self.pending));
        }
    }
}

/// Runs `work` on this thread as a user who owns nothing. Only root can; `None` for others.
pub fn as_nobody<T>(work: impl FnOnce() -> T) -> Option<T> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIP: only root can become another user");
        return None;
    }
    let become_user = |uid: libc::uid_t| {
        // SAFETY: the raw call takes integers and changes this thread alone, unlike libc's wrapper.
        let result = unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) };
        assert_eq!(result, 0);
    };
    become_user(65534);
    let result = work();
    become_user(0);
    Some(result)
}

fn all(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn overwrite(mut file: File, bytes: &[u8], truncate: bool) {
    if truncate {
        file.set_len(0).unwrap();
    }
    file.write_all(bytes).unwrap();
}

/// A shared, writable mapping of a file.
struct Mapping {
    address: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to the value alone; which thread uses it makes no difference.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(file: &File) -> Mapping {
        let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping of `length` bytes wherever the kernel likes.
        let address = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(address, libc::MAP_FAILED);
        Mapping { address: address.cast(), length }
    }

    /// Writes `bytes` and returns what stood there.
    fn swap(&self, bytes: &[u8]) -> Vec<u8> {
        assert_eq!(bytes.len(), self.length, "every version has one length");
        // SAFETY: the mapping has `length` bytes and lives as long as `self`; nobody else uses it in this process.
        let mapped = unsafe { std::slice::from_raw_parts_mut(self.address, self.length) };
        let before = mapped.to_vec();
        mapped.copy_from_slice(bytes);
        before
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps what `of` mapped, once.
        unsafe { libc::munmap(self.address.cast(), self.length) };
    }
}
