//! What people and programs other than agents ask of the daemon: one JSON request a line, one answer a line.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use cotenant_model::Refusal;
use serde_json::{Map, Value};

/// Who is at the other end of the socket, from the kernel.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its process.
    pub pid: u32,
    /// Its user; always the daemon's own.
    pub uid: u32,
    /// The process itself, readable at its end; `None` where it was gone before it could be had.
    pub pidfd: Option<Arc<OwnedFd>>,
}

/// Carries out the requests of the command line: `pending`, `approve`, tool calls and so on. What concerns the
/// process itself (`status`, `stop`, `http`) is the daemon's, which adds its own facts to `status`.
pub trait Admin: Send + Sync + 'static {
    /// Carries out `op`. May block, at most 50 s; called from any thread. An unknown `op` is `BAD_INPUT`.
    fn admin(&self, op: &str, args: &Map<String, Value>, peer: &Peer) -> Result<Value, Refusal>;

    /// Whether the daemon must stay although nobody is connected: leases are held, jobs run.
    fn busy(&self) -> bool;

    /// The connection of `peer` ended: what was tied to it goes.
    fn gone(&self, peer: &Peer);
}
