//! The gate: from a path as a client wrote it to a held directory and a name in it.
//!
//! A path without links is opened in one step beneath the folder, by the kernel's own rules, and no link is allowed in
//! that step. Where there is one, the links are read one by one to find the path without them, and that one is then
//! opened in one step as well: what is answered never rests on the walk, which others may race with.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use cotenant_model::{ClassHit, FolderId, PathClass, RelPath, WirePath, WsPath};
use rustix::io::Errno;

use crate::dir::Dir;
use crate::error::{NotAFile, TreeError};
use crate::place::{Kind, Place};
use crate::sys::{self, Flavour};
use crate::tree::Tree;

/// How many links a path may go through, as on Linux.
const MAX_LINKS: usize = 40;
/// How often a path that changes under the look-up is looked up again.
const MAX_TRIES: usize = 64;

/// What becomes of a link in the last place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Follow,
    Keep,
}

/// What a look along a path without links found.
enum Look {
    Found {
        parent: Arc<Dir>,
        kind: Kind,
    },
    /// There is a link in it (now).
    Link,
}

impl Tree {
    /// Where `path` leads. Links that stay inside are followed, the last one too; a dangling one leads to what is
    /// absent. Refuses what leads out, what is protected (as asked for and as resolved), and what is neither a file nor
    /// a directory. What is absent is no error: see [`Kind::Absent`].
    pub fn locate(&self, path: &WirePath) -> Result<Place, TreeError> {
        self.locate_as(path, Last::Follow)
    }

    /// Like [`Tree::locate`], but a link in the last place is the place itself.
    pub fn locate_link(&self, path: &WirePath) -> Result<Place, TreeError> {
        // `link/` asks for the directory behind the link.
        self.locate_as(path, if path.dir_only { Last::Follow } else { Last::Keep })
    }

    fn locate_as(&self, path: &WirePath, last: Last) -> Result<Place, TreeError> {
        let asked = &path.at;
        let class = unprotected(self.rules.classify(&asked.path))?;
        let root = self.root_dir(asked.folder).ok_or(TreeError::NotFound)?;
        let mut real = asked.path.clone();
        for _ in 0..MAX_TRIES {
            match self.look(&root, asked.folder, &real, last)? {
                // Where it changes under the walk, the last known path shows what to do next.
                Look::Link => real = self.without_links(&root, asked, last)?.unwrap_or(real),
                Look::Found { parent, kind } => return self.place(path, real, class, parent, kind),
            }
        }
        Err(TreeError::Changing)
    }

    fn place(
        &self,
        path: &WirePath,
        real: RelPath,
        class: ClassHit,
        parent: Arc<Dir>,
        kind: Kind,
    ) -> Result<Place, TreeError> {
        let asked = path.at.clone();
        let through_link = real != asked.path;
        let class = match through_link {
            true => unprotected(class.max(self.rules.classify(&real)))?,
            false => class,
        };
        let real = WsPath { folder: asked.folder, path: real };
        if path.dir_only && matches!(kind, Kind::File(_)) {
            return Err(TreeError::NotADirectory { at: self.folders().show(&asked) });
        }
        let class = class.max(self.class_on_disk(&real));
        let leaf = real.path.leaf().unwrap_or(b".").to_vec();
        let access = self.access(real.folder);
        Ok(Place { asked, real, through_link, dir_only: path.dir_only, class, parent, leaf, kind, access })
    }

    /// Looks along `real`, which should have no links (but for the last one, if that is kept).
    fn look(&self, root: &Arc<Dir>, folder: FolderId, real: &RelPath, last: Last) -> Result<Look, TreeError> {
        let (Some(leaf), Some(above)) = (real.leaf(), real.parent()) else {
            return Ok(Look::Found { parent: root.clone(), kind: Kind::Dir });
        };
        let parent = if above.is_root() {
            root.clone()
        } else {
            match sys::open_dir(root.fd(), above.as_bytes()) {
                Ok(fd) => hold(fd)?,
                Err(Errno::LOOP) => return Ok(Look::Link),
                Err(_) => return self.look_step_by_step(root, folder, &above),
            }
        };
        let meta = match sys::stat_leaf(parent.fd(), leaf) {
            Err(Errno::NOENT) => {
                return Ok(Look::Found { parent, kind: Kind::Absent { missing: Vec::new() } });
            }
            other => other.map_err(|errno| TreeError::of(errno, "looking up"))?,
        };
        if meta.mount_id != parent.ident().mount_id {
            return Err(TreeError::CrossDevice { mount: self.show(folder, real) });
        }
        let kind = match meta.flavour {
            Flavour::File => Kind::File(meta.stat),
            Flavour::Dir => Kind::Dir,
            Flavour::Link if last == Last::Keep => Kind::Link,
            Flavour::Link => return Ok(Look::Link),
            other => return Err(TreeError::NotAFile { what: other.what() }),
        };
        Ok(Look::Found { parent, kind })
    }

    /// Finds out what is the matter with `above`, the parent of a path: which part is absent, no directory, or a mount.
    fn look_step_by_step(
        &self,
        root: &Arc<Dir>,
        folder: FolderId,
        above: &RelPath,
    ) -> Result<Look, TreeError> {
        let mut there = RelPath::root();
        let mut names = above.components();
        while let Some(name) = names.next() {
            let next = there.join(name);
            match sys::open_dir(root.fd(), next.as_bytes()) {
                Ok(_) => there = next,
                Err(Errno::LOOP) => return Ok(Look::Link),
                Err(Errno::NOENT) => {
                    let missing = std::iter::once(name).chain(names).map(<[u8]>::to_vec).collect();
                    let parent = match there.is_root() {
                        true => root.clone(),
                        false => hold(open_step(root, &there)?)?,
                    };
                    return Ok(Look::Found { parent, kind: Kind::Absent { missing } });
                }
                Err(errno) => return Err(self.step_error(errno, folder, &next)),
            }
        }
        // It came to be in the meantime: look once more, as if for links.
        Ok(Look::Link)
    }

    fn step_error(&self, errno: Errno, folder: FolderId, at: &RelPath) -> TreeError {
        match errno {
            Errno::NOTDIR => TreeError::NotADirectory { at: self.show(folder, at) },
            Errno::XDEV => TreeError::CrossDevice { mount: self.show(folder, at) },
            errno => TreeError::of(errno, "opening"),
        }
    }

    /// The path that `asked` comes to when every link in it is replaced by what it says, beneath the folder all along;
    /// `None` where a name became something else between two looks at it.
    fn without_links(
        &self,
        root: &Arc<Dir>,
        asked: &WsPath,
        last: Last,
    ) -> Result<Option<RelPath>, TreeError> {
        let mut trail = Trail { held: Vec::new(), names: Vec::new() };
        // What is still to be walked, the next name at the end.
        let mut todo: Vec<Vec<u8>> = asked.path.components().rev().map(<[u8]>::to_vec).collect();
        let mut links = 0;
        while let Some(name) = todo.pop() {
            if name == b"." {
                continue;
            }
            if name == b".." {
                trail.up()?;
                continue;
            }
            let dir = trail.held.last().map_or(root.fd(), |fd| fd.as_fd());
            let flavour = match sys::stat_leaf(dir, &name) {
                Ok(meta) => meta.flavour,
                Err(Errno::NOENT) => return trail.absent(name, &todo).map(Some),
                Err(errno) => return Err(TreeError::of(errno, "looking up")),
            };
            if flavour == Flavour::Link && !(todo.is_empty() && last == Last::Keep) {
                links += 1;
                if links > MAX_LINKS {
                    return Err(TreeError::NotAFile { what: NotAFile::LinkLoop });
                }
                match sys::read_link(dir, &name) {
                    Ok(target) => self.follow(&name, &target, &mut todo)?,
                    Err(_) => return Ok(None),
                }
            } else if todo.is_empty() {
                trail.names.push(name);
            } else {
                let opened = sys::open_dir(dir, &name);
                trail.names.push(name);
                match opened {
                    Ok(fd) => trail.held.push(fd),
                    // A link by now.
                    Err(Errno::LOOP) => return Ok(None),
                    Err(errno) => return Err(self.step_error(errno, asked.folder, &trail.path()?)),
                }
            }
        }
        trail.path().map(Some)
    }

    /// Puts what the link `name` says in front of what is still to be walked.
    fn follow(&self, name: &[u8], target: &[u8], todo: &mut Vec<Vec<u8>>) -> Result<(), TreeError> {
        if target.starts_with(b"/") {
            let link = String::from_utf8_lossy(name);
            return Err(TreeError::Outside {
                why: format!("the link {link} is absolute, and only relative links inside are followed"),
                real: self.named_by_host(target, todo),
            });
        }
        // An empty part (`a//b`, `a/`) stands for `.`, which the walk takes as: what is before it is a directory.
        let parts = target.split(|byte| *byte == b'/').rev();
        todo.extend(parts.map(|part| if part.is_empty() { b".".to_vec() } else { part.to_vec() }));
        Ok(())
    }

    /// The path by which a client may name what an absolute link and the rest behind it point at, if that is inside.
    fn named_by_host(&self, target: &[u8], todo: &[Vec<u8>]) -> Option<String> {
        let mut path = target.to_vec();
        for name in todo.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        let inside = self.folders().parse(std::str::from_utf8(&path).ok()?).ok()?;
        Some(self.folders().show(&inside.at))
    }

    fn show(&self, folder: FolderId, path: &RelPath) -> String {
        self.folders().show(&WsPath { folder, path: path.clone() })
    }
}

/// The directories that lead from the folder to where the walk is.
struct Trail {
    held: Vec<OwnedFd>,
    names: Vec<Vec<u8>>,
}

impl Trail {
    fn up(&mut self) -> Result<(), TreeError> {
        self.names.pop();
        match self.held.pop() {
            Some(_) => Ok(()),
            None => {
                Err(TreeError::Outside { why: "a link in it points above the folder".to_owned(), real: None })
            }
        }
    }

    fn path(&self) -> Result<RelPath, TreeError> {
        if self.names.is_empty() {
            return Ok(RelPath::root());
        }
        RelPath::from_bytes(&self.names.join(&b'/')).map_err(|_| TreeError::NameTooLong)
    }

    /// Nothing is called `name` here: the rest is absent, too.
    fn absent(mut self, name: Vec<u8>, todo: &[Vec<u8>]) -> Result<RelPath, TreeError> {
        self.names.push(name);
        if todo.iter().any(|name| name == b"..") {
            return Err(TreeError::NotFound);
        }
        self.names.extend(todo.iter().rev().filter(|name| *name != b".").cloned());
        self.path()
    }
}

fn hold(fd: OwnedFd) -> Result<Arc<Dir>, TreeError> {
    Dir::new(fd).map(Arc::new).map_err(|errno| TreeError::of(errno, "looking up"))
}

fn open_step(root: &Dir, path: &RelPath) -> Result<OwnedFd, TreeError> {
    sys::open_dir(root.fd(), path.as_bytes()).map_err(|_| TreeError::Changing)
}

fn unprotected(class: ClassHit) -> Result<ClassHit, TreeError> {
    match class.class {
        PathClass::Protected => Err(TreeError::Protected { rule: class.rule }),
        _ => Ok(class),
    }
}
