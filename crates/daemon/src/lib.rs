//! One daemon per workspace: found or started by any command, reached over a socket, ended when nobody needs it.
//!
//! Has sockets, processes, timers and the wall clock. What the workspace is and does is behind two traits: `Host`
//! for agents, [`Admin`] for everyone else.

mod admin;
mod build;
mod claim;
mod client;
pub mod clock;
pub mod config;
pub mod desk;
pub mod doctor;
mod hello;
mod hooks;
mod http;
mod place;
mod server;
mod session;
mod socket;
mod spawn;
mod sys;
mod trim;

pub mod bridge;

pub use admin::{Admin, Peer};
pub use build::build_id;
pub use client::{Asking, Client, connect, connect_or_start};
pub use hello::Kind;
pub use place::{Homes, Place};
pub use server::{Opened, Opening, Options, run};
pub use spawn::Starter;

/// Writes a line to standard error, which of a daemon is its log and of a bridge what its client shows.
pub(crate) fn log(line: &str) {
    use std::io::Write;
    // There is nowhere to report that it cannot be written.
    let _ = writeln!(std::io::stderr(), "cotenant: {line}");
}
