//! MCP in front of a [`Host`]: over a byte stream and over HTTP. The only crate that knows rmcp.
//!
//! Answers revision 2026-07-28, which has no sessions of its own, and the revisions with a handshake before it, each
//! request by what it says itself.

mod handler;
pub mod http;
mod lines;
mod parse;
pub mod scan;
mod transport;
mod turn;

use std::sync::Arc;

use cotenant_model::SessionId;
use cotenant_tools::host::Host;
use tokio::sync::watch;

pub use lines::{Cutter, Line, MESSAGE_MAX, Reader};
pub use parse::too_long_answer;
pub use transport::Writer;

/// Serves one connection of an open session until its input ends or `stop` turns true; then the calls under way are
/// answered, for at most 5 s, and the output is closed. Does not close the session: leases and waiting calls are its
/// owner's business.
pub async fn serve(
    host: Arc<dyn Host>,
    session: SessionId,
    input: Reader,
    output: Writer,
    stop: watch::Receiver<bool>,
) {
    let wire = transport::Wire::new(Arc::clone(&host), session, input, output, stop);
    let handler = handler::Handler::new(host, handler::Caller::Session(session));
    // The handshake is no state of ours: each request says, or its connection has said, which revision it speaks.
    let running = rmcp::service::serve_directly(handler, wire, None);
    // The task ends with the connection; that it could not be joined means that the runtime is going down.
    let _ = running.waiting().await;
}
