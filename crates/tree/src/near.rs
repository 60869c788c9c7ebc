//! Near paths for a path that is not there.

use cotenant_model::WsPath;

use crate::tree::Tree;

impl Tree {
    /// Up to three paths that may have been meant by `path`, best first: the same name in another spelling, names at a
    /// small edit distance beside it, the same name elsewhere. Bounded work; never protected ones.
    pub fn near(&self, _path: &WsPath) -> Vec<WsPath> {
        Vec::new()
    }
}
