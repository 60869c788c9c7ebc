//! Places to mount on, and private directories. What a command may have touched is never followed through a link.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;

/// A directory that is not for reading, itself no link.
pub(crate) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Makes a directory for our own eyes, with its parents.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Gives a directory the mode and owner of another: of an overlay they are those of its upper layer. The run's own
/// directory above it stays closed to others.
pub(crate) fn like(dir: &Path, other: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, chown};
    let (own, wanted) = (std::fs::metadata(dir)?, std::fs::metadata(other)?);
    if (own.uid(), own.gid()) != (wanted.uid(), wanted.gid()) {
        chown(dir, Some(wanted.uid()), Some(wanted.gid()))?;
    }
    std::fs::set_permissions(dir, wanted.permissions())
}

/// Makes `path` below `dir` a directory, without following a link on the way; what is there already stays.
pub(crate) fn dir_beneath(dir: impl AsFd, path: &Path) -> io::Result<()> {
    let mut at = None::<OwnedFd>;
    for part in path.components() {
        let Component::Normal(name) = part else { continue };
        let parent = at.as_ref().map_or(dir.as_fd(), AsFd::as_fd);
        let make = || mkdirat(parent, name.as_bytes(), Mode::from_raw_mode(0o755));
        let made = make().or_else(|error| match error {
            // Closed by a command to which it belongs; it is ours as well.
            Errno::ACCESS => open_again(parent).and_then(|()| make()),
            other => Err(other),
        });
        match made {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = Some(openat2(parent, name.as_bytes(), DIR, Mode::empty(), NO_LINKS)?);
    }
    Ok(())
}

/// Gives the owner back what may be done in a directory.
fn open_again(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
    rustix::fs::chmod(path, Mode::from_raw_mode(0o700))
}

/// Makes `path` below `dir` a file, likewise.
pub(crate) fn file_beneath(dir: impl AsFd, path: &Path) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new(""));
    dir_beneath(dir.as_fd(), parent)?;
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = openat2(dir, parent, DIR, Mode::empty(), NO_LINKS)?;
    let name = path.file_name().unwrap_or_default();
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(&parent, name, flags, Mode::from_raw_mode(0o644)) {
        Ok(_) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

const DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const NO_LINKS: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Removes a directory and all below it, also where modes stand in the way; what cannot be removed stays.
pub(crate) fn remove(path: &Path) {
    if std::fs::remove_dir_all(path).is_ok() {
        return;
    }
    open_up(path);
    let _ = std::fs::remove_dir_all(path);
}

/// Makes every directory below one that its owner can read and write: an overlay's `work` is closed to all.
fn open_up(path: &Path) {
    let mut open = vec![path.to_owned()];
    while let Some(dir) = open.pop() {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let _ = std::fs::set_permissions(&dir, mode);
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        open.extend(entries.filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
}

/// Does what [`remove`] does, without waiting for it.
pub(crate) fn remove_later(path: std::path::PathBuf) {
    let name = "cotenant-remove".to_owned();
    let again = path.clone();
    if std::thread::Builder::new().name(name).spawn(move || remove(&path)).is_err() {
        remove(&again);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn scratch() -> std::path::PathBuf {
        cotenant_testkit::fresh_directory(&std::env::temp_dir(), "points")
    }

    #[test]
    fn a_link_on_the_way_is_not_followed() {
        let base = scratch();
        for dir in ["in", "out"] {
            private_dir(&base.join(dir)).unwrap();
        }
        symlink("../out", base.join("in/link")).unwrap();
        let dir = open_dir(&base.join("in")).unwrap();
        assert!(dir_beneath(&dir, Path::new("link/new")).is_err());
        assert!(file_beneath(&dir, Path::new("link/new/file")).is_err());
        dir_beneath(&dir, Path::new("a/b/c")).unwrap();
        std::fs::set_permissions(base.join("in/a"), PermissionsExt::from_mode(0o000)).unwrap();
        dir_beneath(&dir, Path::new("a/b/c")).unwrap();
        dir_beneath(&dir, Path::new("a/new")).unwrap();
        file_beneath(&dir, Path::new("a/file")).unwrap();
        file_beneath(&dir, Path::new("file")).unwrap();
        assert!(base.join("in/a/b/c").is_dir() && base.join("in/a/file").is_file());
        assert_eq!(std::fs::read_dir(base.join("out")).unwrap().count(), 0);
        remove(&base);
    }

    #[test]
    fn what_is_closed_is_removed_all_the_same() {
        let base = scratch();
        private_dir(&base.join("a/inner/deep")).unwrap();
        std::fs::write(base.join("a/inner/deep/file"), "x").unwrap();
        for dir in ["a/inner/deep", "a/inner"] {
            std::fs::set_permissions(base.join(dir), PermissionsExt::from_mode(0o000)).unwrap();
        }
        remove(&base);
        assert!(!base.exists());
    }
}
