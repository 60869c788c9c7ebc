//! The `daemon` crate.
