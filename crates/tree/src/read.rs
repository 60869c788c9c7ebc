//! Reading a whole file, and knowing whether it held still.

use cotenant_model::{FolderId, RelPath};

use crate::dir::Stat;
use crate::error::TreeError;
use crate::place::Place;
use crate::tree::Tree;

/// A file's bytes and what it was when they were read.
#[derive(Clone, Debug)]
pub struct ReadFile {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// The file they belong to.
    pub stat: Stat,
    /// It changed during every attempt: the bytes may belong to no single state and must not back a receipt (R18).
    pub unstable: bool,
}

impl Tree {
    /// Reads the file at `place`, up to `max_bytes`; a larger one is `TooLarge`. (R18)
    pub fn read(&self, _place: &Place, _max_bytes: u64) -> Result<ReadFile, TreeError> {
        Err(TreeError::NotFound)
    }

    /// The bytes of a settings file (`cotenant.toml`, `.editorconfig`, `.gitattributes`), protected or not: a regular
    /// file of at most 1 MiB, no link on its way. `None` where there is no such file.
    pub fn read_meta_file(&self, _folder: FolderId, _path: &RelPath) -> Option<Vec<u8>> {
        None
    }
}
