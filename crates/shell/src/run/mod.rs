//! A command that runs: its process, its output, its end, and what it left behind.

mod attend;
mod environment;
mod family;
mod job;
mod mask;
mod output;
mod plain;
mod request;
mod watch;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cotenant_model::RelPath;

pub use environment::environment;
pub use job::{Barrier, Ended, Exceeded, Hint, Job, start};
pub use mask::umask;
pub use output::{Counts, Output, Piece, Snapshot, Stream};
pub use plain::plain;
pub(crate) use request::c_string;
pub use request::{Folder, How, InFolder, OutputLimits, Request};

/// A relative path as the system takes it.
pub(crate) fn os_path(path: &RelPath) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}
