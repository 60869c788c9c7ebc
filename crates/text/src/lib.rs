//! The `text` crate.
