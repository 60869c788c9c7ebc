//! What a directory holds, to compare it with what it holds later.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Each path below `directory` with mode, owner, and content: bytes of a file, target of a link, nothing for others.
pub fn snapshot(directory: &Path) -> BTreeMap<Vec<u8>, (u32, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    collect(directory, directory, &mut found);
    found
}

fn collect(base: &Path, directory: &Path, found: &mut BTreeMap<Vec<u8>, (u32, u32, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_file() {
            std::fs::read(&path).unwrap()
        } else if meta.is_symlink() {
            std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
        } else {
            Vec::new()
        };
        let name = path.strip_prefix(base).unwrap().as_os_str().as_bytes().to_vec();
        found.insert(name, (meta.mode(), meta.uid(), content));
        if meta.is_dir() {
            collect(base, &path, found);
        }
    }
}
