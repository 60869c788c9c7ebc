//! The `coord` crate.
