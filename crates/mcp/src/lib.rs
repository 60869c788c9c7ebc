//! The `mcp` crate.
