//! Which build this is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;

static BUILD: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    // The running file, also where a newer one has taken its name.
    match fs::metadata("/proc/self/exe") {
        Ok(exe) => format!("{version}+{:x}.{:x}.{:x}", exe.size(), exe.mtime(), exe.mtime_nsec()),
        Err(_) => version.to_owned(),
    }
});

/// A name of this build: its version, and what tells two files of one version apart. Two processes that run the same
/// file have the same.
pub fn build_id() -> &'static str {
    &BUILD
}
