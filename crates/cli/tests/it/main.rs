//! The product as a client meets it: the real binary, over stdio and HTTP, in a throw-away workspace per test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod approvals;
mod attacks;
mod bad_input;
mod cases;
mod commands;
mod contract;
mod flow;
mod human;
mod organise;
mod parallel;
mod permissions;
mod replay;
mod support;
mod taking_back;
