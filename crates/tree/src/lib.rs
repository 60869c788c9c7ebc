//! The `tree` crate.
