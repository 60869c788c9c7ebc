//! A place to stand at every step of a commit: tests kill the process there, let a foreign writer in, or fail the step.

use std::io;

use cotenant_model::WsPath;

/// Told of every step before it is made.
pub trait Steps: Send + Sync {
    /// `step` is about to be made at `at`. An error makes the step fail as if the system had said so.
    fn reached(&self, step: &'static str, at: &WsPath) -> io::Result<()>;
}

/// Nobody watches: what the product uses.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Steps for Unwatched {
    fn reached(&self, _step: &'static str, _at: &WsPath) -> io::Result<()> {
        Ok(())
    }
}
