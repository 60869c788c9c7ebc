//! Which folders are served, and what becomes of the root.

use std::path::{Path, PathBuf};

use cotenant_model::{Access, ClassRules, FolderId, FolderSpec};
use cotenant_tree::{OpenError, RootState, Tree};

use crate::fixture::ws;

fn open(path: &Path) -> Result<Tree, OpenError> {
    Tree::open(path, &[], ClassRules::default())
}

fn spec(name: &str, path: PathBuf) -> FolderSpec {
    FolderSpec { name: name.to_owned(), path, access: Access::Read }
}

#[test]
fn system_trees_are_not_served() {
    for path in [
        "/",
        "/root",
        "/home",
        "/var",
        "/run",
        "/tmp",
        "/etc",
        "/etc/ssl",
        "/proc/self",
        "/sys",
        "/dev/shm",
        "/boot",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/usr",
        "/usr/share/doc",
    ] {
        if Path::new(path).is_dir() {
            assert!(matches!(open(Path::new(path)), Err(OpenError::NotServed { .. })), "{path}");
        }
    }
}

#[test]
fn a_link_to_a_system_tree_is_not_served_either() {
    let ws = ws("ln -s /etc ../alias; ln -s / ../slash; mkdir ../usr");
    for name in ["alias", "slash", "slash/etc"] {
        let path = ws.scratch.base().join(name);
        assert!(matches!(open(&path), Err(OpenError::NotServed { .. })), "{name}");
    }
    assert!(open(&ws.scratch.base().join("usr")).is_ok(), "only the system's own /usr");
}

#[test]
fn what_is_no_directory_is_not_served() {
    let ws = ws("echo x > f");
    for path in [ws.scratch.path("f"), ws.scratch.path("absent")] {
        assert!(matches!(open(&path), Err(OpenError::Io { .. })), "{}", path.display());
    }
}

#[test]
fn further_folders_have_names_access_and_their_own_confinement() {
    let ws = ws("echo in > $OUT/f; ln -s ../root/r $OUT/back; echo x > r");
    let tree =
        Tree::open(&ws.scratch.root(), &[spec("docs", ws.scratch.out())], ClassRules::default()).unwrap();
    let at = |path: &str| tree.locate(&tree.folders().parse(path).unwrap());
    let place = at("docs:f").unwrap();
    assert_eq!((place.real.folder, place.access), (FolderId(1), Access::Read));
    assert_eq!(tree.read(&place, 10).unwrap().bytes, b"in\n");
    assert_eq!(at(ws.scratch.out().join("f").to_str().unwrap()).unwrap().real, place.real);
    assert_eq!(at("r").unwrap().access, Access::ReadWrite);
    assert!(at("docs:back").is_err(), "a link into another folder is a link out");
}

#[test]
fn a_file_belongs_to_one_folder() {
    let ws = ws("mkdir sub");
    let further = |name: &str, path: PathBuf| {
        Tree::open(&ws.scratch.root(), &[spec(name, path)], ClassRules::default())
    };
    assert!(matches!(further("a", ws.scratch.path("sub")), Err(OpenError::Overlap { .. })));
    assert!(matches!(further("a", ws.scratch.base().to_owned()), Err(OpenError::Overlap { .. })));
    assert!(matches!(further("", ws.scratch.out()), Err(OpenError::Name { .. })));
    assert!(
        further("a", ws.scratch.base().join("root-evil")).is_ok(),
        "a sibling with a longer name is another one"
    );
}

#[test]
fn r131_a_renamed_root_is_followed_and_told() {
    let ws = ws("echo x > f");
    assert_eq!(ws.tree.root_state(), RootState::Same);
    let moved = ws.scratch.base().join("moved");
    std::fs::rename(ws.scratch.root(), &moved).unwrap();
    assert_eq!(ws.tree.root_state(), RootState::Renamed { now: moved.clone() });
    assert_eq!(ws.read("f").unwrap(), "x\n");
    std::fs::create_dir(ws.scratch.root()).unwrap();
    assert_eq!(ws.tree.root_state(), RootState::Removed, "its path names another directory");
    assert_eq!(ws.read("f").unwrap(), "x\n", "what is held is still the old one");
    std::fs::remove_dir(ws.scratch.root()).unwrap();
    std::fs::rename(&moved, ws.scratch.root()).unwrap();
    assert_eq!(ws.tree.root_state(), RootState::Same);
}

#[test]
fn a_removed_root_is_told() {
    let ws = ws("true");
    std::fs::remove_dir(ws.scratch.root()).unwrap();
    assert_eq!(ws.tree.root_state(), RootState::Removed);
    std::fs::create_dir(ws.scratch.root()).unwrap();
    assert_eq!(ws.tree.root_state(), RootState::Removed);
}
