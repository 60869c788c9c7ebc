//! The tools' own tests: arguments, listings, and whole calls against a workspace in a scratch folder.

mod approvals;
mod arguments;
mod edits;
mod fixture;
mod listing;
mod pages;
mod sessions;
