//! The tools' own tests: arguments, listings, and whole calls against a workspace in a scratch folder.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

mod approvals;
mod arguments;
mod backwards;
mod coercion;
mod commands;
mod concurrent;
mod deleting;
mod diffs;
mod direct_runs;
mod edits;
mod every_answer;
mod fixture;
mod folders;
mod forms;
mod gate;
mod keeping;
mod listing;
mod moved_back;
mod moving;
mod mutation;
mod notebooks;
mod pages;
mod patching;
mod policy;
mod reading;
mod replacing;
mod retrying;
mod rewinding;
mod searching;
mod sessions;
mod staleness;
mod states;
mod told;
mod trashing;
mod undoing;
mod whole_sessions;
mod writing;
