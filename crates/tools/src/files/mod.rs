//! The tools that see and change files.

pub mod create_path;
pub mod delete_file;
pub mod edit_file;
pub mod edit_refusals;
pub mod list_directory;
pub mod move_path;
mod notebook;
pub mod overwrite;
pub mod pattern;
pub mod read_file;
pub mod relocate;
pub mod rename_path;
pub mod replace_refusals;
pub mod replace_text;
pub mod search_files;
pub mod write_file;
