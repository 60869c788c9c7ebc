//! Roots that are moved, removed and made anew: whose state is whose.

use std::fs;
use std::path::{Path, PathBuf};

use cotenant_daemon::{Homes, Place};

use crate::Ground;

/// Homes and a folder for roots, without a daemon.
struct Roots {
    folder: PathBuf,
    homes: Homes,
}

impl Roots {
    fn new() -> Roots {
        let folder = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "moved");
        let homes = Homes { state: folder.join("state"), runtime: folder.join("run") };
        Roots { folder, homes }
    }

    fn root(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn make(&self, name: &str) -> Place {
        fs::create_dir_all(self.root(name)).unwrap();
        self.of(name)
    }

    fn of(&self, name: &str) -> Place {
        Place::of(&self.root(name), &self.homes).unwrap()
    }

    fn shift(&self, from: &str, to: &str) {
        fs::rename(self.root(from), self.root(to)).unwrap();
    }

    /// Whether the file system tells when a directory was made: without that nothing that moved is known again.
    fn tells_births(&self) -> bool {
        fs::metadata(&self.folder).unwrap().created().is_ok()
    }
}

impl Drop for Roots {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_moved_root_keeps_its_state_however_often_it_moves() {
    let roots = Roots::new();
    if !roots.tells_births() {
        return;
    }
    let first = roots.make("a");
    assert_eq!(first.moved_from, None);
    fs::write(first.state.join("something"), "kept").unwrap();
    let mut before = "a";
    for now in ["b", "not\u{e9} utf\n8", "a", "c"] {
        roots.shift(before, now);
        let place = roots.of(now);
        assert_eq!(
            (&place.key, &place.state, &place.socket),
            (&first.key, &first.state, &first.socket),
            "{now:?}"
        );
        assert_eq!(place.moved_from.as_deref(), Some(roots.root(before).as_path()));
        assert_eq!(roots.of(now), place, "asked again, it is the same");
        before = now;
    }
    assert_eq!(fs::read_to_string(roots.of("c").state.join("something")).unwrap(), "kept");
}

#[test]
fn who_comes_to_the_place_of_a_moved_root_has_a_state_of_their_own() {
    let roots = Roots::new();
    if !roots.tells_births() {
        return;
    }
    let first = roots.make("a");
    roots.shift("a", "b");
    assert_eq!(roots.of("b").key, first.key);
    let second = roots.make("a");
    assert_ne!(second.key, first.key);
    assert_eq!((second.moved_from.as_deref(), roots.of("a")), (None, second.clone()));
    // Both go on moving, through each other's places.
    roots.shift("a", "aside");
    roots.shift("b", "a");
    roots.shift("aside", "b");
    assert_eq!((roots.of("a").key, roots.of("b").key), (first.key, second.key));
}

#[test]
fn before_anyone_asks_for_the_moved_one_its_old_place_may_be_taken() {
    let roots = Roots::new();
    if !roots.tells_births() {
        return;
    }
    let first = roots.make("a");
    let other = roots.make("other");
    roots.shift("a", "b");
    roots.shift("other", "a");
    assert_eq!(roots.of("a").key, other.key, "what was moved here brings its state");
    assert_eq!(roots.of("b").key, first.key);
}

#[test]
fn a_root_made_anew_at_the_same_path_goes_on_with_its_state() {
    let roots = Roots::new();
    let first = roots.make("a");
    fs::remove_dir(roots.root("a")).unwrap();
    let again = roots.make("a");
    assert_eq!((again.key, again.moved_from), (first.key, None));
}

#[test]
fn a_new_directory_with_the_inode_of_a_removed_one_is_another() {
    let roots = Roots::new();
    let first = roots.make("a");
    for number in 0..20 {
        fs::remove_dir(roots.root("a")).unwrap();
        // Often it gets the same inode at once.
        let next = roots.make(&format!("b{number}"));
        assert_ne!(next.key, first.key);
        fs::remove_dir(&next.root).unwrap();
        roots.make("a");
    }
}

#[test]
fn a_copy_is_another_root_and_the_original_keeps_its_state() {
    let roots = Roots::new();
    let first = roots.make("a");
    let copy = roots.make("copy");
    assert_ne!(copy.key, first.key);
    assert_eq!(roots.of("a").key, first.key);
}

#[test]
fn a_copy_takes_over_the_state_of_what_it_was_copied_from_when_told_to() {
    let roots = Roots::new();
    let first = roots.make("a");
    roots.make("copy");
    let relink = || Place::relink(&roots.root("copy"), &roots.root("a"), &roots.homes);
    let why = |result: Result<Place, cotenant_model::Refusal>| crate::refused(result).to_string();
    assert!(why(relink()).contains("still there"));
    fs::remove_dir(roots.root("a")).unwrap();
    let taken = relink().unwrap();
    assert_eq!((&taken.key, taken.moved_from.as_deref()), (&first.key, Some(roots.root("a").as_path())));
    assert_eq!(roots.of("copy"), taken, "and keeps it");
    assert!(why(relink()).contains("no other workspace"), "once");
    let anew = roots.make("a");
    assert_ne!(anew.key, first.key);
    // Not what never was, and not over a history.
    fs::create_dir(roots.root("other")).unwrap();
    let of = |old: &str| Place::relink(&roots.root("other"), &roots.root(old), &roots.homes);
    assert!(why(of("never")).contains("no other workspace"));
    fs::remove_dir(roots.root("copy")).unwrap();
    fs::create_dir(roots.of("other").state.join("ledger")).unwrap();
    assert!(why(of("copy")).contains("a history of its own"));
    fs::remove_dir(roots.of("other").state.join("ledger")).unwrap();
    let lock = fs::File::create(taken.state.join("daemon.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    assert!(why(of("copy")).contains("a daemon runs"));
    drop(lock);
    assert_eq!(of("copy").unwrap().key, first.key);
}

#[test]
fn a_folder_that_says_nothing_readable_is_of_its_path() {
    let roots = Roots::new();
    let first = roots.make("a");
    for damage in [&b""[..], b"garbage", b"1 2 3\nrelative\0", &[0xff; 100]] {
        fs::write(first.state.join("root"), damage).unwrap();
        assert_eq!(roots.of("a"), first, "and says it anew");
        assert_ne!(fs::read(first.state.join("root")).unwrap(), damage);
    }
    fs::remove_file(first.state.join("root")).unwrap();
    assert_eq!(roots.of("a"), first, "as a state of before there was such a file");
}

#[test]
fn a_daemon_of_a_moved_root_is_found_at_the_new_place() {
    let mut ground = Ground::new();
    let pid = ground.admin().pid;
    let to: &Path = &ground.folder.join("elsewhere");
    if fs::metadata(&ground.place.root).unwrap().created().is_err() {
        return;
    }
    fs::rename(&ground.place.root, to).unwrap();
    ground.place = Place::of(to, &ground.homes).unwrap();
    assert_eq!(ground.pid(), Some(pid), "no second one is started for it");
}
