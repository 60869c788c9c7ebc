//! Each step on its own: what it promises about names, inodes, leases and attributes.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cotenant_model::{ClassRules, Digest, Durability, Entry, RelPath, WsPath};

use super::*;
use crate::Tree;

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        Scratch(cotenant_testkit::fresh_directory(&std::env::temp_dir(), "tree-commit"))
    }

    fn tree(&self) -> Tree {
        Tree::open(&self.0, &[], ClassRules::default()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn at(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

fn root(tree: &Tree) -> Arc<Held> {
    Arc::new(Held::open(tree, &at(".")).unwrap())
}

fn file(spot: &Spot) -> Inode {
    match spot.look().unwrap() {
        Look::File(inode) => inode,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_staged_file_has_no_name_until_it_is_linked() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let home = root(&tree);
    let temp = Temp::stage(&home, b"content", Like::New(Some(0o640))).unwrap();
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
    assert_eq!((temp.mode(), temp.inode().links()), (0o640, 0));
    let name = fresh_name().unwrap();
    assert!(name.starts_with(TEMP_PREFIX) && name.len() == TEMP_PREFIX.len() + 16);
    let spot = Spot::new(home, name.as_bytes());
    temp.link(&spot).unwrap();
    assert_eq!(fs::read(scratch.path(&name)).unwrap(), b"content");
    assert_eq!(spot.id().unwrap(), Some(temp.id()));
    assert_eq!(temp.link(&spot).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    // Nobody holds it open for writing, so it can be fenced at once.
    assert_eq!(file(&spot).grip().unwrap(), Grip::Lease);
}

#[test]
fn a_look_names_what_stands_there_and_follows_nothing() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let home = root(&tree);
    fs::write(scratch.path("file"), b"12345").unwrap();
    fs::create_dir(scratch.path("dir")).unwrap();
    symlink("file", scratch.path("link")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(home.fd(), "fifo", fifo, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    let look = |name: &str| Spot::new(Arc::clone(&home), name.as_bytes()).look().unwrap();
    assert!(matches!(look("none"), Look::Absent) && look("none").id().is_none());
    assert!(matches!(look("dir"), Look::Directory(_)));
    let seen = look("fifo");
    assert!(matches!(seen, Look::Other(_)) && seen.entry().unwrap().is_none());
    assert!(seen.leaf().is_none());
    let seen = look("link");
    assert_eq!(seen.entry().unwrap(), Some(Entry::link(Digest::of(b"file"))));
    let leaf = seen.leaf().unwrap();
    assert_eq!((leaf.mode(), leaf.id()), (0o120_777, look("link").id().unwrap()));
    assert_eq!(look("file").entry().unwrap(), Some(Entry::file(Digest::of(b"12345"))));
    let inode = file(&Spot::new(home, b"file"));
    assert_eq!(inode.read_up_to(5).unwrap().as_deref(), Some(&b"12345"[..]));
    assert_eq!(inode.read_up_to(4).unwrap(), None);
    assert_eq!(inode.id().ino, fs::metadata(scratch.path("file")).unwrap().ino());
}

#[test]
fn names_are_exchanged_and_never_replaced() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let home = root(&tree);
    let spot = |name: &str| Spot::new(Arc::clone(&home), name.as_bytes());
    fs::write(scratch.path("a"), b"a").unwrap();
    fs::write(scratch.path("b"), b"b").unwrap();
    exchange(&spot("a"), &spot("b")).unwrap();
    assert_eq!(fs::read(scratch.path("a")).unwrap(), b"b");
    assert_eq!(exchange(&spot("a"), &spot("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(rename(&spot("a"), &spot("b")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    rename(&spot("a"), &spot("c")).unwrap();
    assert_eq!(fs::read(scratch.path("c")).unwrap(), b"b");
    spot("d").make_dir(None).unwrap();
    let made = home.child(b"d", &at("d")).unwrap();
    assert!(made.is_empty().unwrap());
    fs::write(scratch.path("d/x"), b"").unwrap();
    assert!(!made.is_empty().unwrap());
    assert_eq!(spot("d").remove_dir().unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
    spot("c").unlink().unwrap();
    assert_eq!(spot("c").id().unwrap(), None);
}

#[test]
fn a_held_directory_knows_when_it_is_elsewhere() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let step = |from: &str, to: &str| fs::rename(scratch.path(from), scratch.path(to)).unwrap();
    fs::create_dir_all(scratch.path("a/b")).unwrap();
    let held = Held::open(&tree, &at("a/b")).unwrap();
    assert!(held.in_place(&tree).unwrap());
    step("a", "elsewhere");
    assert!(!held.in_place(&tree).unwrap());
    // Another one of the same name, and a link to the right one, are not it.
    fs::create_dir_all(scratch.path("a/b")).unwrap();
    assert!(!held.in_place(&tree).unwrap());
    fs::remove_dir_all(scratch.path("a")).unwrap();
    symlink("elsewhere", scratch.path("a")).unwrap();
    assert!(!held.in_place(&tree).unwrap());
    assert!(Held::find(&tree, &at("a/b")).unwrap().is_none());
    fs::remove_file(scratch.path("a")).unwrap();
    step("elsewhere", "a");
    assert!(held.in_place(&tree).unwrap());
}

#[test]
fn a_lease_is_refused_to_a_written_file_and_tells_who_asks() {
    prepare_process();
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let path = scratch.path("f");
    fs::write(&path, b"x").unwrap();
    let spot = Spot::new(root(&tree), b"f");
    let writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let inode = file(&spot);
    assert_eq!(inode.grip().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(writers(inode.id()).contains(&std::process::id()));
    drop(writer);
    // A process that another test is just starting has a copy of every descriptor until it becomes another program.
    let free = (0..100_000).map(|_| inode.grip()).find(Result::is_ok);
    assert_eq!(free.unwrap().unwrap(), Grip::Lease);
    assert!(inode.gripped());
    // Reading is free; a writer that does not wait is turned away, and its asking is seen.
    assert_eq!(fs::read(&path).unwrap(), b"x");
    assert!(inode.gripped());
    let asked = fs::OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&path);
    assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(!inode.gripped());
    inode.let_go();
    fs::write(&path, b"y").unwrap();
}

#[test]
fn a_stamp_changes_with_every_write() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    fs::write(scratch.path("f"), b"x").unwrap();
    let inode = file(&Spot::new(root(&tree), b"f"));
    let before = inode.stamp().unwrap();
    assert_eq!(inode.stamp().unwrap(), before);
    fs::write(scratch.path("f"), b"yy").unwrap();
    assert_ne!(inode.stamp().unwrap(), before);
    assert_eq!(inode.digest().unwrap(), Digest::of(b"yy"), "the digest is of the bytes as they are now");
}

#[test]
fn attributes_are_carried_over_and_read_back() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let home = root(&tree);
    let path = scratch.path("f");
    fs::write(&path, b"x").unwrap();
    let set = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    set(&path, "user.one", b"1");
    set(&path, "user.empty", b"");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o2751)).unwrap();
    let attributes = Attributes::of(file(&Spot::new(Arc::clone(&home), b"f")).fd()).unwrap();
    let temp = Temp::stage(&home, b"y", Like::File(&attributes)).unwrap();
    assert_eq!(Attributes::of(temp.fd()).unwrap(), attributes);
    // Once more, after they changed: what is gone goes, what is new comes.
    rustix::fs::removexattr(&path, "user.empty").unwrap();
    set(&path, "user.two", b"2");
    let changed = Attributes::of(file(&Spot::new(home, b"f")).fd()).unwrap();
    temp.give(&changed).unwrap();
    assert_eq!(Attributes::of(temp.fd()).unwrap(), changed);
    assert_ne!(changed, attributes);
}

#[test]
fn every_way_of_flushing_takes_files_and_directories() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let home = root(&tree);
    let temps: Vec<Temp> = (0..20).map(|_| Temp::stage(&home, b"x", Like::New(None)).unwrap()).collect();
    for how in [Durability::Full, Durability::Batch, Durability::Fast] {
        for count in [0, 1, 8, 9, 20] {
            let fds: Vec<_> = temps.iter().take(count).map(|temp| temp.fd()).collect();
            flush(&fds, Flush::Data, how).unwrap();
        }
        flush(&[home.fd()], Flush::Names, how).unwrap();
    }
    // A descriptor that cannot be synced is an error, not a shrug.
    let pipe = rustix::pipe::pipe().unwrap().0;
    assert!(flush(&[pipe.as_fd()], Flush::Data, Durability::Full).is_err());
}

#[test]
fn links_and_directories_are_made_as_asked_and_over_nothing() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let home = root(&tree);
    let spot = |name: &str| Spot::new(Arc::clone(&home), name.as_bytes());
    spot("link").make_link(b"no/where", None).unwrap();
    assert_eq!(fs::read_link(scratch.path("link")).unwrap(), Path::new("no/where"));
    let again = spot("link").make_link(b"else", None).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    let me = fs::symlink_metadata(scratch.path("link")).unwrap();
    spot("mine").make_link(b"x", Some((me.uid(), me.gid()))).unwrap();
    for mode in [0o700, 0o2775, 0o000] {
        let name = format!("d{mode:o}");
        spot(&name).make_dir(Some(mode)).unwrap();
        assert_eq!(fs::metadata(scratch.path(&name)).unwrap().mode() & 0o7777, mode);
    }
}

#[test]
fn a_listing_tells_every_name_below_and_only_names() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    for dir in ["d/a", "d/b/c", "e/a", "e/b/c"] {
        fs::create_dir_all(scratch.path(dir)).unwrap();
    }
    for top in ["d", "e"] {
        fs::write(scratch.path(&format!("{top}/.env")), top).unwrap();
        fs::write(scratch.path(&format!("{top}/b/c/z")), top).unwrap();
        symlink(top, scratch.path(&format!("{top}/b/link"))).unwrap();
    }
    let home = root(&tree);
    let listing = |name: &str| home.child(name.as_bytes(), &at(name)).unwrap().listing().unwrap();
    assert_eq!(listing("d"), listing("e"), "bytes do not count, names do");
    fs::write(scratch.path("e/.cotenant-0123456789abcdef"), b"").unwrap();
    assert_eq!(listing("d"), listing("e"), "nor do the temporary names of commits");
    fs::remove_file(scratch.path("e/b/link")).unwrap();
    fs::write(scratch.path("e/b/link"), b"").unwrap();
    assert_ne!(listing("d"), listing("e"), "what a name is counts");
    let place = tree.locate(&tree.parse("d").unwrap()).unwrap();
    let below = tree.below(&place).unwrap();
    let shown: Vec<String> =
        below.entries.iter().map(|(at, kind)| format!("{} {kind:?}", tree.folders().show(at))).collect();
    let expected = ["d/.env File", "d/a Dir", "d/b Dir", "d/b/link Link", "d/b/c Dir", "d/b/c/z File"];
    assert_eq!(
        (shown, below.digest, below.mounts.len()),
        (expected.map(str::to_owned).to_vec(), listing("d"), 0)
    );
}

/// Where a path leads, a link being a link, to be taken away.
fn place(tree: &Tree, path: &str) -> crate::Place {
    tree.locate_link(&cotenant_model::WirePath { at: at(path), dir_only: false }).unwrap()
}

#[test]
fn discarding_takes_all_that_is_in_a_directory_and_nothing_that_a_link_leads_to() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    let deep = "out/".to_owned() + &vec!["d"; 200].join("/");
    fs::create_dir_all(scratch.path(&deep)).unwrap();
    fs::create_dir_all(scratch.path("kept/inner")).unwrap();
    fs::write(scratch.path("kept/file"), "kept").unwrap();
    fs::write(scratch.path(&format!("{deep}/leaf")), "x").unwrap();
    for (index, dir) in ["out", "out/d", "out/d/d/d"].into_iter().enumerate() {
        symlink(scratch.path("kept"), scratch.path(&format!("{dir}/absolute"))).unwrap();
        symlink("../".repeat(index + 1) + "kept", scratch.path(&format!("{dir}/relative"))).unwrap();
        symlink("nowhere", scratch.path(&format!("{dir}/dangling"))).unwrap();
        fs::hard_link(scratch.path("kept/file"), scratch.path(&format!("{dir}/twin"))).unwrap();
        let odd = fs::File::open(scratch.path(dir)).unwrap();
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(odd.as_fd(), "fifo", fifo, mode, 0).unwrap();
    }
    for many in 0..500 {
        fs::write(scratch.path(&format!("out/d/{many}")), "").unwrap();
    }
    discard(&place(&tree, "out")).unwrap();
    assert!(scratch.path("out").symlink_metadata().is_err());
    assert_eq!(fs::read(scratch.path("kept/file")).unwrap(), b"kept");
    assert_eq!(fs::metadata(scratch.path("kept/file")).unwrap().nlink(), 1);
    assert!(scratch.path("kept/inner").is_dir());
}

#[test]
fn discarding_takes_what_stands_there_when_it_comes_and_is_content_with_nothing() {
    let scratch = Scratch::new();
    let tree = scratch.tree();
    fs::create_dir(scratch.path("dir")).unwrap();
    fs::write(scratch.path("dir/file"), "x").unwrap();
    symlink("dir", scratch.path("link")).unwrap();
    for path in ["absent", "dir/absent", "absent/below"] {
        discard(&place(&tree, path)).unwrap();
    }
    discard(&place(&tree, "link")).unwrap();
    assert!(scratch.path("link").symlink_metadata().is_err() && scratch.path("dir/file").exists());
    // Gone between the look and the act.
    let (file, dir) = (place(&tree, "dir/file"), place(&tree, "dir"));
    fs::remove_dir_all(scratch.path("dir")).unwrap();
    discard(&file).unwrap();
    discard(&dir).unwrap();
    // A directory where a file was, and a link where a directory was, are not what was looked at.
    fs::write(scratch.path("f"), "x").unwrap();
    fs::create_dir(scratch.path("d")).unwrap();
    fs::create_dir(scratch.path("other")).unwrap();
    fs::write(scratch.path("other/kept"), "x").unwrap();
    let (file, dir) = (place(&tree, "f"), place(&tree, "d"));
    fs::remove_file(scratch.path("f")).unwrap();
    fs::create_dir(scratch.path("f")).unwrap();
    fs::write(scratch.path("f/kept"), "x").unwrap();
    fs::remove_dir(scratch.path("d")).unwrap();
    symlink("other", scratch.path("d")).unwrap();
    assert!(discard(&file).is_err());
    assert!(discard(&dir).is_err());
    assert!(scratch.path("f/kept").exists() && scratch.path("other/kept").exists());
    assert!(scratch.path("d").symlink_metadata().unwrap().is_symlink());
}
