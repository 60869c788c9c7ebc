//! What the background does with the store once changes are finished.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::rig::*;
use cotenant_model::Digest;

/// Bytes that repeat nowhere.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as u8
        })
        .collect()
}

fn image_file(place: &Place, bytes: &[u8]) -> PathBuf {
    let hex = Digest::of(bytes).hex();
    place.state.path().join("blobs").join(&hex[..2]).join(hex)
}

/// Until the background, which begins by itself, has come so far.
fn until(mut done: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < patience, "it does not come to it");
        std::thread::yield_now();
    }
}

#[test]
fn a_large_file_that_is_edited_is_kept_once_and_can_still_be_edited_and_read() {
    let place = Place::new();
    let rig = place.open();
    let mut versions = vec![noise(600_000)];
    rig.write("big", &versions[0]);
    let mut edit = |rig: &Rig| {
        let before = versions.last().unwrap().clone();
        let mut after = before.clone();
        let at = 1000 * versions.len();
        after[at..at + 10].copy_from_slice(b"ten bytes!");
        rig.commit(vec![replace("big", &before, &after)]).unwrap();
        rig.settle();
        versions.push(after);
        versions.clone()
    };
    edit(&rig);
    let now = edit(&rig);
    until(|| !image_file(&place, &now[1]).exists() && !image_file(&place, &now[2]).exists());
    assert!(image_file(&place, &now[0]).exists());
    // What is replaced next is packed already, and what was left over at a start is packed then.
    let now = edit(&rig);
    drop(rig);
    let rig = place.open();
    until(|| !image_file(&place, &now[3]).exists());
    let now = edit(&rig);
    for version in &now {
        assert!(rig.blob(version).as_ref() == Some(version));
    }
    assert_eq!(rig.read("big").as_ref(), now.last());
    assert!(rig.recovered.changes.is_empty());
    let kept = fs::metadata(image_file(&place, &now[0])).unwrap();
    assert_eq!(kept.len(), 600_000);
}
