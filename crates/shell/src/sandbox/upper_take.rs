//! Taking files out of an upper layer as they are: what a build wrote into ignored directories is moved, not copied, and
//! keeps its times.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use cotenant_model::RelPath;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, lremovexattr,
    mkdirat, openat, readlinkat, renameat, renameat_with, statat, symlinkat, utimensat,
};
use rustix::io::Errno;

use super::upper::{Upper, UpperError, at, attribute_path, list_attributes, open_readable, parent_of};

impl Upper {
    /// Moves an entry of a layer, a directory with all that is in it, into `to` under `name`. What the overlay noted at it
    /// is stripped, modes and times stay. `replace` lets it take the place of a file; a directory never does. On
    /// another file system it is copied.
    pub fn move_into(
        &self,
        folder: usize,
        path: &RelPath,
        (to, name): (BorrowedFd<'_>, &OsStr),
        replace: bool,
    ) -> Result<(), UpperError> {
        let layer = self.layer(folder)?;
        let moved = || {
            let (parent, leaf) = parent_of(&layer, path)?;
            strip(&layer, path)?;
            let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
            match renameat_with(&parent, leaf.as_c_str(), to, name, flags) {
                Err(Errno::XDEV) => copy((&layer, path), (to, name), replace),
                other => other,
            }
        };
        moved().map_err(at(path))
    }
}

/// Removes the overlay's notes from an entry and all below it.
fn strip(layer: &OwnedFd, top: &RelPath) -> Result<(), Errno> {
    let mut open = vec![top.clone()];
    while let Some(path) = open.pop() {
        let (parent, leaf) = parent_of(layer, &path)?;
        strip_one(&parent, &leaf)?;
        let stat = statat(&parent, leaf.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let fd = open_readable(layer, &path, OFlags::RDONLY | OFlags::DIRECTORY)?;
            names(&fd)?.iter().for_each(|name| open.push(path.join(name)));
            restore(&parent, &leaf, &stat)?;
        }
    }
    Ok(())
}

/// Gives a directory back the mode that was opened up to read it.
fn restore(parent: &OwnedFd, leaf: &CStr, before: &rustix::fs::Stat) -> Result<(), Errno> {
    let now = statat(parent, leaf, AtFlags::SYMLINK_NOFOLLOW)?;
    if now.st_mode == before.st_mode {
        return Ok(());
    }
    rustix::fs::chmodat(parent, leaf, Mode::from_raw_mode(before.st_mode & 0o7777), AtFlags::empty())
}

fn strip_one(parent: &OwnedFd, leaf: &CStr) -> Result<(), Errno> {
    let path = attribute_path(parent, leaf);
    for name in list_attributes(&path)?.split(|byte| *byte == 0) {
        if name.starts_with(b"user.overlay.") || name.starts_with(b"trusted.overlay.") {
            lremovexattr(&path, OsStr::from_bytes(name))?;
        }
    }
    Ok(())
}

/// Names in a directory.
fn names(dir: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    let mut listing = Dir::read_from(dir)?;
    while let Some(entry) = listing.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Copies an entry with all below it: under a name of its own first, which then takes the wanted one in one step.
fn copy(
    (layer, path): (&OwnedFd, &RelPath),
    (to, name): (BorrowedFd<'_>, &OsStr),
    replace: bool,
) -> Result<(), Errno> {
    let (parent, leaf) = parent_of(layer, path)?;
    let temporary = temporary_name();
    copy_below((parent.as_fd(), &leaf), (to, &temporary))?;
    let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    renameat_with(to, temporary.as_bytes(), to, name, flags)
}

/// As the workspace's own temporary files are called, so that no listing shows it.
fn temporary_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!(".cotenant-{:016x}", RandomState::new().hash_one(0))
}

fn copy_below(from: (BorrowedFd<'_>, &CStr), to: (BorrowedFd<'_>, &str)) -> Result<(), Errno> {
    let stat = statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => symlinkat(readlinkat(from.0, from.1, Vec::new())?, to.0, to.1.as_bytes())?,
        FileType::Directory => {
            mkdirat(to.0, to.1.as_bytes(), Mode::from_raw_mode(0o700))?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let (source, copied) = (
                openat(from.0, from.1, flags, Mode::empty())?,
                openat(to.0, to.1.as_bytes(), flags, Mode::empty())?,
            );
            copy_all(&source, &copied)?;
            rustix::fs::fchmod(&copied, mode)?;
        }
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut source = File::from(openat(from.0, from.1, flags, Mode::empty())?);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mut copied = File::from(openat(to.0, to.1.as_bytes(), flags, Mode::from_raw_mode(0o600))?);
            std::io::copy(&mut source, &mut copied)
                .map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
            rustix::fs::fchmod(&copied, mode)?;
        }
        // A FIFO or socket that a build left is nothing that a later one needs.
        _ => return Ok(()),
    }
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ },
    };
    utimensat(to.0, to.1.as_bytes(), &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// Copies what is in a directory; one level of the stack for each level of the tree, of which a path has at most 2,048.
fn copy_all(source: &OwnedFd, copied: &OwnedFd) -> Result<(), Errno> {
    for name in names(source)? {
        let name = std::ffi::CString::new(name).map_err(|_| Errno::INVAL)?;
        // The name may be no text, which a temporary one always is.
        let temporary = temporary_name();
        copy_below((source.as_fd(), &name), (copied.as_fd(), &temporary))?;
        match renameat(copied, temporary.as_bytes(), copied, name.as_c_str()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    let _ = CWD;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::points;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_copy_keeps_modes_times_and_links() {
        let base = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "copy");
        for dir in ["from/a/b", "to"] {
            points::private_dir(&base.join(dir)).unwrap();
        }
        let file = base.join("from/a/b/run");
        std::fs::write(&file, "bytes").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("b/run", base.join("from/a/link")).unwrap();
        let layer = OwnedFd::from(File::open(base.join("from")).unwrap());
        let to = File::open(base.join("to")).unwrap();
        let path = RelPath::parse("a").unwrap();
        copy((&layer, &path), (to.as_fd(), OsStr::new("a")), false).unwrap();
        let copied = std::fs::metadata(base.join("to/a/b/run")).unwrap();
        let original = std::fs::metadata(&file).unwrap();
        assert_eq!(copied.mode(), original.mode());
        assert_eq!((copied.mtime(), copied.mtime_nsec()), (original.mtime(), original.mtime_nsec()));
        assert_eq!(std::fs::read_to_string(base.join("to/a/link")).unwrap(), "bytes");
        assert_eq!(copy((&layer, &path), (to.as_fd(), OsStr::new("a")), false), Err(Errno::EXIST));
        points::remove(&base);
    }
}
