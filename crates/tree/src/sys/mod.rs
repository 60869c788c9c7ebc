//! System calls behind plain functions; what other systems lack stands here alone.

mod open;
pub(crate) mod swap;

pub(crate) use open::{
    Flavour, ident_of_path, open_beneath, open_dir, open_file, open_root, path_of, read_link,
    reopen_for_reading, stat_beneath, stat_dir, stat_leaf,
};
