//! Races: others swap directories and links while we look.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cotenant_testkit::{exchange, long};
use cotenant_tree::{ListOptions, TreeError};

use crate::fixture::{StopOnDrop, Ws, query, ws};

fn duration() -> Duration {
    Duration::from_secs(if long() { 60 } else { 2 })
}

/// Runs `attack` on four threads while `probe` is repeated; how many probes there were.
fn under(attack: impl Fn(usize) + Sync, mut probe: impl FnMut()) -> usize {
    let stop = AtomicBool::new(false);
    let mut probes = 0;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (stop, attack) = (&stop, &attack);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    attack(thread);
                }
            });
        }
        let _stop = StopOnDrop(&stop);
        let begun = Instant::now();
        while begun.elapsed() < duration() {
            probe();
            probes += 1;
        }
    });
    probes
}

/// `d` (with a file `f`) and the link `l` to the directory outside (with a secret `f`) stand for each other by turns; so
/// do `e/f` and a link to the secret.
fn swapped() -> Ws {
    ws(
        "mkdir d e && echo in > d/f && echo in > e/f && ln -s ../out l && echo secret > $OUT/f && ln -s ../../out/f e/g",
    )
}

fn swap(root: &Path, thread: usize) {
    match thread % 2 {
        0 => exchange(&root.join("d"), &root.join("l")),
        _ => exchange(&root.join("e/f"), &root.join("e/g")),
    }
}

#[test]
fn r125_swapped_directories_and_links_never_let_a_read_out() {
    let ws = swapped();
    let root = ws.scratch.root();
    let (inside, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let probes = under(
        |thread| swap(&root, thread),
        || {
            for path in ["d/f", "l/f", "e/f", "e/g"] {
                let read = ws.tree.locate(&ws.wire(path)).and_then(|place| ws.tree.read(&place, 100));
                match read {
                    Ok(read) => {
                        assert_eq!(read.bytes, b"in\n", "{path} escaped");
                        inside.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(TreeError::Outside { .. } | TreeError::Changing) => {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => panic!("{path}: {error:?}"),
                }
            }
        },
    );
    let (inside, refused) = (inside.into_inner(), refused.into_inner());
    eprintln!("{probes} probes, {inside} inside, {refused} refused, 0 escapes");
    assert!(inside > 100 && refused > 100, "the swap was never seen in both states: {inside} {refused}");
}

#[test]
fn searching_and_listing_never_get_out_by_a_swap() {
    let ws = swapped();
    let root = ws.scratch.root();
    let probes = under(
        |thread| swap(&root, thread),
        || {
            let place = ws.tree.locate(&ws.wire(".")).unwrap();
            let hits = ws.tree.search_content(&place, &query("secret")).unwrap();
            assert_eq!(hits.total_matches, 0, "{hits:?}");
            let options = ListOptions { depth: None, limit: 100, include_ignored: true };
            assert!(ws.tree.list(&place, &options).unwrap().total >= 4);
        },
    );
    assert!(probes > 20, "{probes}");
}

#[test]
fn r128_a_place_to_create_in_is_always_a_directory_inside() {
    let ws = swapped();
    let root = ws.scratch.root();
    let inside = ws.at("e/x").parent.ident();
    let known = [ws.at("d/x").parent.ident(), ws.at("x").parent.ident(), inside];
    let outside = std::fs::metadata(ws.scratch.out()).unwrap();
    let probes = under(
        |thread| swap(&root, thread),
        || {
            if let Ok(place) = ws.tree.locate(&ws.wire("d/new/x")) {
                let ident = place.parent.ident();
                assert_ne!(ident.ino, std::os::unix::fs::MetadataExt::ino(&outside));
                assert!(known.contains(&ident), "{place:?}");
            }
        },
    );
    assert!(probes > 100, "{probes}");
}

#[test]
fn directories_moved_about_inside_are_found_or_said_to_change() {
    let ws = ws("mkdir -p a/x b/y && echo a > a/x/f && echo b > b/y/f && ln -s a/x/f one && ln -s a/y/f two");
    let root = ws.scratch.root();
    under(
        |thread| {
            if thread == 0 {
                exchange(&root.join("a"), &root.join("b"));
            }
        },
        || {
            for path in ["one", "two", "a/x/f", "b/x/f"] {
                match ws.tree.locate(&ws.wire(path)).and_then(|place| ws.tree.read(&place, 10)) {
                    Ok(read) => assert!(read.bytes == b"a\n" || read.bytes == b"b\n"),
                    Err(TreeError::NotFound | TreeError::Changing) => {}
                    Err(error) => panic!("{path}: {error:?}"),
                }
            }
        },
    );
}
