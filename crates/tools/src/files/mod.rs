//! The tools that see and change files.

pub mod create_path;
pub mod delete_file;
pub mod edit_file;
pub mod edit_refusals;
pub mod list_directory;
pub mod overwrite;
pub mod read_file;
pub mod search_files;
pub mod write_file;
