//! Which workspace is meant: `--root`, else the nearest directory above that looks like one.

use std::path::{Path, PathBuf};

/// What marks a workspace's root.
const MARKS: [&str; 2] = ["cotenant.toml", ".git"];

/// The root: `given`, else the nearest of the current directory and those above it that has one of [`MARKS`], else the
/// current directory.
pub(crate) fn find(given: Option<&str>) -> Result<PathBuf, String> {
    if let Some(given) = given {
        return Ok(PathBuf::from(given));
    }
    let here = std::env::current_dir().map_err(|error| format!("the current directory: {error}"))?;
    Ok(above(&here).unwrap_or(here))
}

fn above(here: &Path) -> Option<PathBuf> {
    here.ancestors().find(|dir| MARKS.iter().any(|mark| dir.join(mark).exists())).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_marked_directory_is_the_root() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let root = above(&here);
        assert!(
            root.is_none_or(
                |root| here.starts_with(&root) && MARKS.iter().any(|mark| root.join(mark).exists())
            )
        );
    }

    #[test]
    fn what_is_given_is_taken_as_it_is() {
        assert_eq!(find(Some("some/where")), Ok(PathBuf::from("some/where")));
    }
}
