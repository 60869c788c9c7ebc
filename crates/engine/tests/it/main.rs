//! The pipeline on real files: what lands, what is refused, and what is left when it is killed, attacked or starved.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    missing_docs
)]

mod basics;
mod crash;
mod desk;
mod direct;
mod faults;
mod foreign;
mod keeping;
mod organise;
mod races;
mod remote;
mod rig;
mod staged;
mod table;
