//! Who holds a file open for writing, for the answer to a call that had to wait for them in vain.

use std::os::unix::fs::MetadataExt;

use super::spot::FileId;

/// How many are named at most.
const NAMED_MAX: usize = 8;

/// Processes that have the file open for writing, as far as this user may look: process ids, ascending. A writable
/// mapping whose descriptor is closed is not found.
pub fn writers(file: FileId) -> Vec<u32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<u32> = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| writes(*pid, file))
        .take(NAMED_MAX)
        .collect();
    found.sort_unstable();
    found
}

fn writes(pid: u32, file: FileId) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.filter_map(Result::ok).any(|entry| {
        // Following the magic link is a stat of the open file itself.
        let same = std::fs::metadata(entry.path())
            .is_ok_and(|meta| (meta.dev(), meta.ino()) == (file.dev, file.ino));
        same && entry.file_name().to_str().is_some_and(|fd| open_for_writing(pid, fd))
    })
}

/// Whether the descriptor's flags say `O_WRONLY` or `O_RDWR`.
fn open_for_writing(pid: u32, fd: &str) -> bool {
    let Ok(info) = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")) else { return false };
    let flags =
        info.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & 0o3 != 0)
}
