//! Tests of the tree, on real directories.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod attacks;
mod classes;
mod content;
mod fixture;
mod gate;
mod ignored;
mod ignores;
mod lines;
mod listing;
mod names;
mod near;
mod oracle;
mod outside;
mod races;
mod reading;
mod roots;
mod scanning;
