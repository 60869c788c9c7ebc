//! System calls behind plain functions; what other systems lack stands here alone.

mod at_once;
mod open;
pub(crate) mod swap;

pub use at_once::{at_once, has_missed};
pub(crate) use at_once::{may_wait, miss, read as read_at_once};
pub(crate) use open::{
    Flavour, ident_of_path, open_beneath, open_dir, open_entry, open_file, open_root, path_of, read_link,
    reopen_for_reading, stat_beneath, stat_dir, stat_leaf, time_at,
};
