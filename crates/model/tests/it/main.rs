//! The vocabulary against naive models: paths, classes, digests, refusals, times, ids.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod classes;
mod paths;
mod plans;
mod refusals;
mod times;
mod words;
