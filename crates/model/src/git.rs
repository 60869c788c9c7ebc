//! What is asked of git: which files it keeps as they stand, and their bytes. `shell` answers, for it alone starts git.

use crate::WsPath;

/// A regular file that git's index names, with the object that was made of it.
///
/// The object has the bytes of the file as it was when git last looked at it, if it has as many: of all that git may make
/// of a file on the way in, only filters, keywords and encodings keep the length, and a file that is subject to one of
/// those is no `Tracked`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// The path.
    pub at: WsPath,
    /// The object's name in hex digits.
    pub object: Box<str>,
    /// Bytes of the object.
    pub bytes: u64,
    /// What git saw of the file when it last looked.
    pub seen: GitStamp,
}

/// What git's index keeps of a file's stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GitStamp {
    /// Last change of content or attributes, nanoseconds since the Unix epoch.
    pub ctime_ns: i128,
    /// Last change of the content, nanoseconds since the Unix epoch.
    pub mtime_ns: i128,
    /// The lower half of the inode number.
    pub ino: u32,
    /// The lower half of the length in bytes.
    pub size: u32,
}

/// Git's index and objects, read without running anything that a repository may name: no hook, filter, monitor or
/// transport.
pub trait GitObjects: Send + Sync {
    /// The files of the repository whose work tree is this directory; `None` where git is not to be had, fails, or does
    /// not keep files as they stand (replaced objects).
    fn tracked(&self, repository: &WsPath) -> Option<Vec<Tracked>>;

    /// Hands over the bytes of each object that is there, with its place in `objects`, in that order. False where git
    /// failed before the end.
    fn contents(&self, repository: &WsPath, objects: &[&str], each: &mut dyn FnMut(usize, Vec<u8>)) -> bool;
}
