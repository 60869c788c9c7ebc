//! Patches: each grammar, each rule of placement, then random patches against what they were made from.

mod applying;
mod binaries;
mod block_patches;
mod disagreements;
mod envelopes;
mod kit;
mod scenarios;
mod spoiled;
mod unified_diffs;
