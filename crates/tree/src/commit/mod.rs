//! The writing half of the tree: single steps of the commit protocol, each one or a few system calls.
//!
//! Only the engine's pipeline may name this module: it alone knows in which order the steps keep every byte. Nothing
//! here follows a link, waits for a foreign writer, or removes a name that it was not told to remove.

mod discard;
mod disk;
mod inode;
mod meta;
mod spot;
mod temp;
#[cfg(test)]
mod tests;
mod writers;

pub use discard::discard;
pub use disk::{Flush, flush};
pub use inode::{Grip, Inode, Stamp};
pub use meta::{Attributes, Unlike};
pub use spot::{FileId, Held, Leaf, Link, Look, Spot, TEMP_PREFIX, exchange, fresh_name, rename};
pub use temp::{Like, StageError, Temp};
pub use writers::writers;

/// Makes the process fit for commits: deaf to SIGIO, which the kernel sends when a lease is broken and which would kill
/// it; and with as many open files as it may have, because a plan holds two for each of its paths. Must be called before
/// the first [`Inode::grip`].
pub fn prepare_process() {
    crate::sys::swap::ignore_sigio();
    let resource = rustix::process::Resource::Nofile;
    let limit = rustix::process::getrlimit(resource);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    // Where it is not allowed, a plan of many paths is refused for want of descriptors.
    let _ = rustix::process::setrlimit(resource, raised);
}
