//! Tests of the crate through its public face, one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod edits;
mod git;
mod policy;
mod sandbox;
