//! Text in, text out: the cases by their ids, then each part by itself, then random pairs against a naive model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on fails"
)]

mod attacks;
mod diagnosis;
mod diffs;
mod edits;
mod encoding_cases;
mod exhaustive;
mod forms;
mod kit;
mod match_cases;
mod meant;
mod merges;
mod notebooks;
mod pairs;
mod patches;
mod project_rules;
mod reading;
mod stale_cases;
mod substitutions;
mod writing;
