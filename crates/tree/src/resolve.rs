//! The gate: from a path as a client wrote it to a held directory and a name in it.

use cotenant_model::WirePath;

use crate::error::TreeError;
use crate::place::Place;
use crate::tree::Tree;

impl Tree {
    /// Where `path` leads. Links that stay inside are followed, the last one too.
    pub fn locate(&self, _path: &WirePath) -> Result<Place, TreeError> {
        Err(TreeError::NotFound)
    }

    /// Like [`Tree::locate`], but a link in the last place is the place itself.
    pub fn locate_link(&self, _path: &WirePath) -> Result<Place, TreeError> {
        Err(TreeError::NotFound)
    }
}
