//! The `ledger` crate.
