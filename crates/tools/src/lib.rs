//! Every tool once: request, reply, description and plan function in one file each, and one registry of them all.

pub mod host;
