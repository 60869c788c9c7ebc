//! Images: stored once, taken over, read back verified.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

use cotenant_ledger::{INLINE_MAX, Keep, Ledger, LedgerError, commit, prune};
use cotenant_model::{Code, Digest, Millis};
use proptest::prelude::*;

use crate::{Folder, change, edit, in_namespace, intent, mount};

fn blob_path(folder: &Folder, digest: Digest) -> PathBuf {
    let hex = digest.hex();
    folder.state().join("blobs").join(&hex[..2]).join(hex)
}

fn large(seed: u8) -> Vec<u8> {
    (0..300_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8 ^ seed).collect()
}

#[test]
fn many_at_once_are_as_many_one_by_one() {
    let folder = Folder::new();
    let ledger = folder.open();
    let path = folder.state().join("../many");
    let mut storing = commit::Storing::new(&ledger);
    let mut stored = Vec::new();
    for number in 0..200_u32 {
        let image = [&large(3)[..(number as usize * 137) % 40_000], &number.to_le_bytes()].concat();
        let digest = if number % 2 == 0 {
            storing.bytes(image.clone())
        } else {
            fs::write(&path, &image).unwrap();
            storing.file(File::open(&path).unwrap().as_fd())
        };
        stored.push((digest.unwrap(), image));
    }
    let pins = storing.done().unwrap();
    // Retention leaves them alone, though no change names them and they are old.
    let years_later = Millis(4_000_000_000_000);
    for _ in 0..2 {
        prune(&ledger, years_later, Keep::default()).unwrap();
    }
    for (digest, image) in &stored {
        assert_eq!(*digest, Digest::of(image));
        assert_eq!(ledger.blob(*digest), Ok(Some(image.clone())));
    }
    let digests: Vec<Digest> = stored.iter().map(|(digest, _)| *digest).collect();
    commit::sync_blobs(&ledger, &digests).unwrap();
    drop(pins);
    for later in [0, 2 * 24 * 3_600_000] {
        prune(&ledger, Millis(years_later.0 + later), Keep::default()).unwrap();
    }
    assert!(stored.iter().all(|(digest, _)| ledger.blob(*digest) == Ok(None)));
    let _ = fs::remove_file(path);
}

#[test]
fn images_of_every_size_come_back() {
    let folder = Folder::new();
    let ledger = folder.open();
    for size in [0, 1, INLINE_MAX - 1, INLINE_MAX, INLINE_MAX + 1, 300_000] {
        let image = &large(1)[..size];
        let digest = commit::store(&ledger, image).unwrap();
        assert_eq!(digest, Digest::of(image));
        assert_eq!(ledger.blob(digest), Ok(Some(image.to_vec())), "{size}");
        assert_eq!(blob_path(&folder, digest).exists(), size > INLINE_MAX, "{size}");
        assert_eq!(commit::store(&ledger, image), Ok(digest), "again");
        commit::sync_blobs(&ledger, &[digest]).unwrap();
    }
    let unknown = Digest::of(b"unknown");
    assert_eq!(ledger.blob(unknown), Ok(None));
    assert!(!commit::has(&ledger, unknown));
    assert_eq!(commit::sync_blobs(&ledger, &[unknown]), Err(LedgerError::Missing(unknown)));
}

#[test]
fn many_images_are_synced_at_once() {
    let folder = Folder::new();
    let ledger = folder.open();
    let digests: Vec<Digest> = (0..20).map(|seed| commit::store(&ledger, &large(seed)).unwrap()).collect();
    commit::sync_blobs(&ledger, &digests).unwrap();
    assert!(digests.iter().all(|digest| commit::has(&ledger, *digest)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn an_open_file_is_stored_from_its_beginning(size in 0_usize..300_000, offset in 0_u64..1000, seed: u8) {
        let folder = Folder::new();
        let ledger = folder.open();
        let path = folder.path().join("f");
        fs::write(&path, &large(seed)[..size]).unwrap();
        let mut file = File::open(&path).unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        let digest = commit::store_file(&ledger, file.as_fd()).unwrap();
        prop_assert_eq!(digest, Digest::of(&large(seed)[..size]));
        prop_assert_eq!(ledger.blob(digest).unwrap().unwrap(), &large(seed)[..size]);
        prop_assert_eq!(file.stream_position().unwrap(), offset, "the offset is the caller's");
    }
}

/// Adopts a file `name` with `image` in the test's folder.
fn adopt(
    folder: &Folder,
    ledger: &Ledger,
    name: &str,
    image: &[u8],
    expected: Digest,
) -> Result<(), LedgerError> {
    fs::write(folder.path().join(name), image).unwrap();
    let dir = File::open(folder.path()).unwrap();
    commit::adopt(ledger, dir.as_fd(), name.as_bytes(), expected)
}

#[test]
fn a_displaced_file_is_taken_over_by_a_rename() {
    let folder = Folder::new();
    let ledger = folder.open();
    let digest = Digest::of(&large(1));
    let name = folder.path().join("x");
    adopt(&folder, &ledger, "x", &large(1), digest).unwrap();
    assert!(!name.exists(), "it moved");
    assert_eq!(ledger.blob(digest), Ok(Some(large(1))));
    let meta = fs::metadata(blob_path(&folder, digest)).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.nlink()), (0o600, 1));
    commit::sync_blobs(&ledger, &[digest]).unwrap();

    adopt(&folder, &ledger, "x", &large(1), digest).unwrap();
    assert!(name.exists(), "what is stored already stays where it is");

    adopt(&folder, &ledger, "small", b"few bytes", Digest::of(b"few bytes")).unwrap();
    assert_eq!(ledger.blob(Digest::of(b"few bytes")), Ok(Some(b"few bytes".to_vec())));
    assert!(!blob_path(&folder, Digest::of(b"few bytes")).exists(), "small ones go into the database");
}

#[test]
fn a_displaced_file_with_another_name_is_copied() {
    let folder = Folder::new();
    let ledger = folder.open();
    let (name, other) = (folder.path().join("x"), folder.path().join("other"));
    fs::write(&other, large(2)).unwrap();
    fs::hard_link(&other, &name).unwrap();
    let dir = File::open(folder.path()).unwrap();
    let digest = Digest::of(&large(2));
    commit::adopt(&ledger, dir.as_fd(), b"x", digest).unwrap();
    assert!(name.exists());
    let (stored, kept) = (fs::metadata(blob_path(&folder, digest)).unwrap(), fs::metadata(&other).unwrap());
    assert_ne!(stored.ino(), kept.ino(), "an image is never a hard link of a workspace file");
}

#[test]
fn a_displaced_file_that_someone_wrote_into_is_told() {
    let folder = Folder::new();
    let ledger = folder.open();
    let expected = Digest::of(b"was");
    assert_eq!(adopt(&folder, &ledger, "x", b"is", expected), Err(LedgerError::Corrupt(expected)));
    assert!(!commit::has(&ledger, expected));
    assert!(folder.path().join("x").exists(), "and left alone");
    // A large one is renamed unread; the reader is told.
    let expected = Digest::of(b"was large");
    adopt(&folder, &ledger, "x", &large(3), expected).unwrap();
    assert_eq!(ledger.blob(expected), Err(LedgerError::Corrupt(expected)));
}

#[test]
fn what_is_not_a_file_is_not_taken() {
    let folder = Folder::new();
    let ledger = folder.open();
    let dir = File::open(folder.path()).unwrap();
    fs::write(folder.path().join("target"), b"secret").unwrap();
    symlink("target", folder.path().join("link")).unwrap();
    fs::create_dir(folder.path().join("dir")).unwrap();
    rustix::fs::mknodat(&dir, "fifo", rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    for name in ["link", "dir", "fifo", "absent"] {
        let taken = commit::adopt(&ledger, dir.as_fd(), name.as_bytes(), Digest::of(b"secret"));
        assert!(matches!(taken, Err(LedgerError::Io { .. })), "{name}: {taken:?}");
    }
    assert!(!commit::has(&ledger, Digest::of(b"secret")), "a link is never followed");
}

#[test]
fn a_displaced_file_on_another_mount_is_copied() {
    const NAME: &str = "blobs::a_displaced_file_on_another_mount_is_copied";
    let Some(dir) = std::env::var_os(crate::CHILD) else {
        let folder = Folder::new();
        in_namespace(NAME, folder.path());
        return;
    };
    let elsewhere = PathBuf::from(dir);
    mount("tmpfs", "size=4m", &elsewhere);
    let folder = Folder::new();
    let ledger = folder.open();
    fs::write(elsewhere.join("x"), large(4)).unwrap();
    let dir = File::open(&elsewhere).unwrap();
    commit::adopt(&ledger, dir.as_fd(), b"x", Digest::of(&large(4))).unwrap();
    assert!(elsewhere.join("x").exists());
    assert_eq!(ledger.blob(Digest::of(&large(4))), Ok(Some(large(4))));
}

#[test]
fn damage_is_found_when_an_image_is_read() {
    let folder = Folder::new();
    let ledger = folder.open();
    let digest = commit::store(&ledger, &large(5)).unwrap();
    let path = blob_path(&folder, digest);
    for damage in [large(6), large(5)[..1000].to_vec(), Vec::new()] {
        let mut file = File::create(&path).unwrap();
        file.write_all(&damage).unwrap();
        let error = ledger.blob(digest).unwrap_err();
        assert_eq!(error, LedgerError::Corrupt(digest));
        assert_eq!(error.refusal().code, Code::IoError);
    }
    let small = commit::store(&ledger, b"small").unwrap();
    drop(ledger);
    let conn = rusqlite::Connection::open(folder.state().join("ledger.db")).unwrap();
    conn.execute("UPDATE image SET bytes = x'00' WHERE digest = ?1", [small.as_bytes().as_slice()]).unwrap();
    conn.close().unwrap();
    assert_eq!(folder.open().blob(small), Err(LedgerError::Corrupt(small)));
}

#[test]
fn an_image_in_an_unsealed_intent_is_there() {
    let folder = Folder::new();
    let ledger = folder.open();
    let id = commit::next_change(&ledger);
    let mut intended = intent(change(id, vec![edit("a", b"before", b"after")]));
    intended.paths[0].inline_pre = Some(b"before".to_vec());
    commit::intend(&ledger, intended).wait().unwrap();
    assert_eq!(ledger.blob(Digest::of(b"before")), Ok(Some(b"before".to_vec())));
    commit::seal(&ledger, id, cotenant_model::Outcome::Sealed, None);
    commit::flush(&ledger).unwrap();
    assert_eq!(ledger.blob(Digest::of(b"before")), Ok(Some(b"before".to_vec())));
    commit::sync_blobs(&ledger, &[Digest::of(b"before")]).unwrap();
}

#[test]
fn what_a_crash_left_half_written_goes_at_the_next_start() {
    let folder = Folder::new();
    drop(folder.open());
    let left = folder.state().join("blobs/new-0");
    fs::write(&left, b"half").unwrap();
    let ledger = folder.open();
    assert!(!left.exists());
    let digest = commit::store(&ledger, &large(7)).unwrap();
    assert_eq!(ledger.blob(digest), Ok(Some(large(7))));
}
