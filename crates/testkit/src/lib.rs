//! What tests of the whole product share: throw-away workspaces, a raw MCP client over stdio and HTTP, shared data.
//!
//! Nothing here is shipped. Everything panics with what it saw: a helper that fails is a failed test. Nothing sleeps:
//! each wait is for a message, the end of a process, or a descriptor, with a limit after which the test fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod client;
mod dice;
mod fence;
mod http;
mod process;
mod reply;
mod schema;
mod scratch;
mod shared;
mod snapshot;

pub use client::{Client, Launch};
pub use dice::Dice;
pub use fence::{Fenced, fence, fenced_test, inside_fence};
pub use http::{Http, HttpReply};
pub use process::{PATIENCE, gone, is_alive, wait_exit};
pub use reply::Reply;
pub use schema::conforms;
pub use scratch::{Output, Scratch, Serve, exchange, fresh_directory, long};
pub use shared::{records, shared};
pub use snapshot::snapshot;
