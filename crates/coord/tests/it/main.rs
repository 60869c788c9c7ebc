//! The tests of the crate, in one binary: a table per rule, and every part that holds state against a naive model.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers, too")]

mod approvals;
mod keep;
mod kit;
mod lines;
mod missed;
mod notices;
mod order;
mod receipts;
mod sessions;
mod staleness;
mod stats;
mod verdict;
mod walk;
