//! The `cotenant` binary.
fn main() {}
