//! The data that lies beside the project: cases and scenarios. Tests that need it say so when it is not there.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A path in the data directory: `COTENANT_SHARED_DIR`, else `../shared` beside the project.
///
/// `None` where it is not there (the test then ends after the line this prints); `COTENANT_SHARED=required` makes that
/// a failure.
pub fn shared(path: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let directory = std::env::var_os("COTENANT_SHARED_DIR").map_or_else(beside, PathBuf::from);
    let found = directory.join(path);
    if found.exists() {
        return Some(found);
    }
    let missing = format!("no {} (set COTENANT_SHARED_DIR)", found.display());
    assert!(std::env::var_os("COTENANT_SHARED").is_none_or(|need| need != "required"), "{missing}");
    eprintln!("SKIP: {missing}");
    None
}

/// The records of a JSON-lines file of the data directory.
pub fn records(path: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared(path)?).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}
