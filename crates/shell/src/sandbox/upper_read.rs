//! The content of files in an upper layer.

use std::fs::File;
use std::io::Read;

use cotenant_model::{Content, RelPath};

use super::upper::{Upper, UpperError};

impl Upper {
    /// All bytes of a file of a layer.
    pub fn content(&self, folder: usize, path: &RelPath) -> Result<Content, UpperError> {
        let mut bytes = Vec::new();
        let read = File::from(self.open(folder, path)?).read_to_end(&mut bytes);
        match read {
            Ok(_) => Ok(bytes.into()),
            Err(error) => Err(UpperError::Io { path: path.clone(), error: error.to_string() }),
        }
    }
}
