//! Where the workspace is and what is in it: its root, cargo's metadata, its Rust files.

use crate::Failure;
use cargo_metadata::{Metadata, MetadataCommand};
use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's root folder, known from where this program was compiled.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// What cargo knows of the workspace, by the committed lock file only.
pub(crate) fn metadata() -> Result<Metadata, Failure> {
    let options = vec!["--locked".to_owned()];
    Ok(MetadataCommand::new().manifest_path(root().join("Cargo.toml")).other_options(options).exec()?)
}

/// Every Rust file of the workspace as (path relative to the root with `/`, text), sorted by path.
pub(crate) fn rust_files() -> Result<Vec<(String, String)>, Failure> {
    let root = root();
    let mut found = Vec::new();
    for top in ["crates", "xtask"] {
        collect(&root, &root.join(top), &mut found)?;
    }
    found.sort();
    Ok(found)
}

/// The text of one file of the workspace; the error names the file.
pub(crate) fn text(relative: &str) -> Result<String, Failure> {
    fs::read_to_string(root().join(relative)).map_err(|error| format!("{relative}: {error}").into())
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<(String, String)>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(root, &path, found)?;
            }
        } else if name.ends_with(".rs") {
            let relative = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            found.push((relative, fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rust_file_is_found_once_with_its_text() {
        let files = rust_files().unwrap();
        let own: Vec<_> = files.iter().filter(|(path, _)| path == "xtask/src/workspace.rs").collect();
        assert_eq!(own.len(), 1);
        assert!(own[0].1.starts_with("//!"));
        assert!(
            files.is_sorted()
                && files.iter().all(|(path, _)| path.ends_with(".rs") && !path.contains("target/"))
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        assert!(text("no/such/page.md").unwrap_err().to_string().starts_with("no/such/page.md: "));
    }
}
