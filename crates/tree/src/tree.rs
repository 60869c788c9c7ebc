//! The allowed folders of a workspace, held by descriptors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cotenant_model::{Access, ClassRules, FolderId, FolderSpec, Folders};

use crate::attributes::AttributeCache;
use crate::dir::Dir;
use crate::error::OpenError;
use crate::sys;

/// Roots that are not served themselves; what lies below them may be.
const NOT_ITSELF: &[&str] = &["/", "/root", "/home", "/var", "/run", "/tmp"];
/// Directories of the system: neither they nor anything below them is served. A final `*` stands for any rest.
const NOT_BELOW: &[&str] = &["etc", "proc", "sys", "dev", "boot", "bin", "sbin", "lib*", "usr"];

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
    dir: Arc<Dir>,
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

    fn add(&mut self, name: &str, given: &Path, access: Access) -> Result<(), OpenError> {
        let failed = |errno| OpenError::Io { path: given.to_owned(), errno };
        let absolute = std::path::absolute(given).map_err(|_| failed(rustix::io::Errno::NOENT))?;
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
        self.held.push(Held { dir, host, access });
        Ok(())
    }

    /// Names and host paths of the folders, to parse what clients write and to show paths to them.
    pub fn folders(&self) -> &Folders {
        &self.folders
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
    pub fn root_dir(&self, folder: FolderId) -> Option<&Arc<Dir>> {
        self.held.get(usize::from(folder.0)).map(|held| &held.dir)
    }

    /// Whether the served root's path still names the directory that is held. Two or three system calls.
    pub fn root_state(&self) -> RootState {
        let Some(root) = self.held.first() else { return RootState::Removed };
        match sys::ident_of_path(&root.host) {
            Some(named) if named == root.dir.ident() => return RootState::Same,
            Some(_) => return RootState::Removed,
            None => {}
        }
        match sys::stat_beneath(root.dir.fd()) {
            Ok(meta) if meta.stat.nlink > 0 => {
                sys::path_of(root.dir.fd()).map_or(RootState::Removed, |now| RootState::Renamed { now })
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
