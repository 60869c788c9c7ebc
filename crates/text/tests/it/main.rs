//! Tests of the text crate.
