//! The allowed folders of a workspace, held by descriptors.

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use cotenant_model::{
    Access, ClassRules, FolderId, FolderSpec, Folders, PathError, RelPath, WirePath, WsPath,
};
use rustix::io::Errno;

use crate::attributes::AttributeCache;
use crate::dir::Dir;
use crate::sys;

/// Roots that are not served themselves; what lies below them may be.
const NOT_ITSELF: &[&str] = &["/", "/root", "/home", "/var", "/run", "/tmp"];
/// Directories of the system: neither they nor anything below them is served. A final `*` stands for any rest.
const NOT_BELOW: &[&str] = &["etc", "proc", "sys", "dev", "boot", "bin", "sbin", "lib*", "usr"];

/// Why a folder is not served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The root is one of those that are never served.
    #[error("{} is not served: {why}", path.display())]
    NotServed {
        /// The path, as given or resolved.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A further folder lies in another folder, or around one: its files would have two names.
    #[error("{} and {} overlap; a file may belong to one allowed folder only", path.display(), other.display())]
    Overlap {
        /// The folder.
        path: PathBuf,
        /// The folder it overlaps with.
        other: PathBuf,
    },
    /// A further folder has no name, or one that is taken.
    #[error("the folder name {name:?} is empty or taken")]
    Name {
        /// The name.
        name: String,
    },
    /// The system refused.
    #[error("{} cannot be opened as a directory: {errno}", path.display())]
    Io {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        errno: Errno,
    },
}

/// The allowed folders. Shared by all threads; everything it does works on held directories.
#[derive(Debug)]
pub struct Tree {
    folders: Folders,
    held: Vec<Held>,
    pub(crate) rules: ClassRules,
    pub(crate) attributes: AttributeCache,
}

#[derive(Debug)]
struct Held {
    /// Another one once a removed root was opened anew.
    dir: RwLock<Arc<Dir>>,
    host: PathBuf,
    access: Access,
}

/// What became of the served root's name since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootState {
    /// The path still names it.
    Same,
    /// It goes by another name; all goes on, by its descriptor.
    Renamed {
        /// Its path now.
        now: PathBuf,
    },
    /// It has no links left, or its path names another directory: it must be opened anew.
    Removed,
}

impl Tree {
    /// Opens the folders: `root` (read and write) and `further` ones. Links in their paths are followed, once, here.
    pub fn open(root: &Path, further: &[FolderSpec], rules: ClassRules) -> Result<Tree, OpenError> {
        let mut tree = Tree {
            folders: Folders::default(),
            held: Vec::new(),
            rules,
            attributes: AttributeCache::default(),
        };
        tree.add("", root, Access::ReadWrite)?;
        for spec in further {
            if spec.name.is_empty() || tree.folders.by_name(&spec.name).is_some() {
                return Err(OpenError::Name { name: spec.name.clone() });
            }
            tree.add(&spec.name, &spec.path, spec.access)?;
        }
        Ok(tree)
    }

    /// The tree of one directory that is held already and has a name before the colon: a sandbox's view of the
    /// workspace, which no path leads to from here. `host` is where it says it is, for people to read.
    pub fn over(dir: OwnedFd, name: &str, host: &Path, rules: ClassRules) -> Result<Tree, OpenError> {
        let failed = |errno| OpenError::Io { path: host.to_owned(), errno };
        let dir = Arc::new(Dir::new(dir).map_err(failed)?);
        let mut folders = Folders::default();
        folders.add(name, vec![bytes(host)]);
        let held = Held { dir: RwLock::new(dir), host: host.to_owned(), access: Access::ReadWrite };
        Ok(Tree { folders, held: vec![held], rules, attributes: AttributeCache::default() })
    }

    fn add(&mut self, name: &str, given: &Path, access: Access) -> Result<(), OpenError> {
        let failed = |errno| OpenError::Io { path: given.to_owned(), errno };
        let absolute = std::path::absolute(given).map_err(|_| failed(Errno::NOENT))?;
        let fd = sys::open_root(&absolute).map_err(failed)?;
        let host = sys::path_of(&fd).map_err(failed)?;
        for path in [&absolute, &host] {
            if let Some(why) = not_served(path) {
                return Err(OpenError::NotServed { path: path.clone(), why });
            }
        }
        if let Some(other) =
            self.held.iter().find(|held| host.starts_with(&held.host) || held.host.starts_with(&host))
        {
            return Err(OpenError::Overlap { path: host, other: other.host.clone() });
        }
        let dir = Arc::new(Dir::new(fd).map_err(failed)?);
        let mut known = vec![bytes(&host)];
        if absolute != host {
            known.push(bytes(&absolute));
        }
        self.folders.add(name, known);
        self.held.push(Held { dir: RwLock::new(dir), host, access });
        Ok(())
    }

    /// Names and host paths of the folders, to parse what clients write and to show paths to them.
    pub fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Parses a path from outside. An absolute one that goes to a folder by another name than those it was opened by,
    /// through a link say, counts by what it leads to.
    pub fn parse(&self, text: &str) -> Result<WirePath, PathError> {
        self.folders.parse(text).or_else(|error| match error {
            PathError::Absolute => self.parse_by_identity(text).ok_or(error),
            _ => Err(error),
        })
    }

    fn parse_by_identity(&self, text: &str) -> Option<WirePath> {
        let path = Path::new(text);
        // A `..` behind a link goes where nobody sees.
        if path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        for above in path.ancestors() {
            let Some(named) = sys::ident_of_path(above) else { continue };
            let is_root = |folder: &FolderId| self.root_dir(*folder).is_some_and(|dir| dir.ident() == named);
            let mut folders =
                (0..self.held.len()).filter_map(|index| u16::try_from(index).ok().map(FolderId));
            if let Some(folder) = folders.find(is_root) {
                let rest = path.strip_prefix(above).ok()?.to_str()?;
                let path = if rest.is_empty() { RelPath::root() } else { RelPath::parse(rest).ok()? };
                return Some(WirePath { at: WsPath { folder, path }, dir_only: text.ends_with('/') });
            }
        }
        None
    }

    /// What may be done in a folder.
    pub fn access(&self, folder: FolderId) -> Access {
        self.held.get(usize::from(folder.0)).map_or(Access::Read, |held| held.access)
    }

    /// The resolved host path that a folder had when it was opened; for people to read, never to open files by.
    pub fn host_path(&self, folder: FolderId) -> &Path {
        self.held.get(usize::from(folder.0)).map_or(Path::new(""), |held| &held.host)
    }

    /// The folder's directory.
    pub fn root_dir(&self, folder: FolderId) -> Option<Arc<Dir>> {
        let held = self.held.get(usize::from(folder.0))?;
        Some(Arc::clone(&held.dir.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Opens the served root anew by its path, after [`RootState::Removed`]: the path names another directory now.
    /// Whatever was known of files below the old one is void.
    pub fn reopen_root(&self) -> Result<(), OpenError> {
        let Some(root) = self.held.first() else { return Ok(()) };
        let failed = |errno| OpenError::Io { path: root.host.clone(), errno };
        let fd = sys::open_root(&root.host).map_err(failed)?;
        let now = sys::path_of(&fd).map_err(failed)?;
        if let Some(why) = not_served(&now) {
            return Err(OpenError::NotServed { path: now, why });
        }
        let dir = Arc::new(Dir::new(fd).map_err(failed)?);
        *root.dir.write().unwrap_or_else(PoisonError::into_inner) = dir;
        Ok(())
    }

    /// Whether the served root's path still names the directory that is held. Two or three system calls.
    pub fn root_state(&self) -> RootState {
        let (Some(root), Some(dir)) = (self.held.first(), self.root_dir(FolderId::ROOT)) else {
            return RootState::Removed;
        };
        if !self.folders.name(FolderId::ROOT).is_empty() {
            // A sandbox's view has no path of its own.
            return RootState::Same;
        }
        match sys::ident_of_path(&root.host) {
            Some(named) if named == dir.ident() => return RootState::Same,
            Some(_) => return RootState::Removed,
            None => {}
        }
        match sys::stat_beneath(dir.fd()) {
            Ok(meta) if meta.stat.nlink > 0 => {
                sys::path_of(dir.fd()).map_or(RootState::Removed, |now| RootState::Renamed { now })
            }
            _ => RootState::Removed,
        }
    }
}

/// Why `path` may not be served; `None` if it may.
fn not_served(path: &Path) -> Option<String> {
    let text = path.to_string_lossy();
    if NOT_ITSELF.contains(&text.as_ref()) {
        return Some("a whole system or home tree is never served; serve a project in it".to_owned());
    }
    let first = path.components().nth(1)?.as_os_str().to_string_lossy().into_owned();
    let below = NOT_BELOW.iter().any(|name| match name.strip_suffix('*') {
        Some(start) => first.starts_with(start),
        None => first == *name,
    });
    below.then(|| format!("/{first} belongs to the system"))
}

fn bytes(path: &Path) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec()
}
