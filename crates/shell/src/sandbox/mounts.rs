//! What is mounted where: an overlay cannot lie over a tree with mounts in it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Every mount point of this process.
pub(crate) fn mount_points() -> Vec<PathBuf> {
    parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// The first mount point strictly below `dir`.
pub(crate) fn below<'a>(points: &'a [PathBuf], dir: &Path) -> Option<&'a Path> {
    points.iter().map(PathBuf::as_path).find(|point| *point != dir && point.starts_with(dir))
}

fn parse(mountinfo: &[u8]) -> Vec<PathBuf> {
    let lines = mountinfo.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    points.map(|point| PathBuf::from(OsString::from_vec(unescape(point)))).collect()
}

/// The kernel writes space, tab, line feed and backslash as `\ooo`.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let digits = text.get(at + 1..at + 4).filter(|_| *byte == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                at += 4;
            }
            None => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    bytes
}

/// The first of a folder and its direct entries whose owner or group a user namespace with one id of each could not
/// express; such files could be read there, but not written.
pub(crate) fn foreign(dir: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if uid == 0 {
        return None;
    }
    let is_foreign = |path: &Path| {
        std::fs::symlink_metadata(path).is_ok_and(|found| found.uid() != uid || found.gid() != gid)
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(dir.to_owned()).chain(entries).find(|path| is_foreign(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_the_kernel_escapes_them() {
        let text = b"1 0 8:1 / / rw - ext4 d rw\n2 1 8:2 / /a\\040b rw shared:1 - ext4 d rw\n3 1 0:1 / /x\\134y rw - t t rw\n\nbad\n";
        assert_eq!(parse(text), ["/", "/a b", "/x\\y"].map(PathBuf::from));
        assert_eq!(parse(b"1 0 8:1 / /a\\9 rw"), [PathBuf::from("/a\\9")]);
    }

    #[test]
    fn below_is_by_components_and_not_the_place_itself() {
        let points = ["/", "/w", "/w/root/data", "/w/root-evil/x"].map(PathBuf::from);
        assert_eq!(below(&points, Path::new("/w/root")), Some(Path::new("/w/root/data")));
        assert_eq!(below(&points, Path::new("/w/root/data")), None);
        assert_eq!(below(&points, Path::new("/w/roo")), None);
    }

    #[test]
    fn this_process_has_a_root() {
        assert!(mount_points().contains(&PathBuf::from("/")));
    }
}
