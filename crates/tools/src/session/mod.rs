//! The tools about the session itself.

pub mod read_more;
pub mod retry;
pub mod whoami;
