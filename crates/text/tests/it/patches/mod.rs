//! Patches: each grammar, each rule of placement, then random patches against what they were made from.

mod applying;
mod envelopes;
mod kit;
mod unified_diffs;
