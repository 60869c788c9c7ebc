//! Patches: each grammar, each rule of placement, then random patches against what they were made from.

mod anchors;
mod applying;
mod binaries;
mod block_patches;
mod disagreements;
mod envelopes;
mod generated;
mod kit;
mod malformed;
mod placement;
mod roundtrips;
mod scenarios;
mod seeds;
mod spoiled;
mod unified_diffs;
mod wrappings;
