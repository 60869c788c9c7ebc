//! Binary patches: base85, deflate and delta against what git itself writes.

use std::path::Path;
use std::process::Command;

use cotenant_text::patch::{Binary, BinaryHunk, BinaryMiss, Op, apply_binary};
use proptest::prelude::*;

use super::kit::{bad, one, text};

/// `git diff --binary` of two contents; `None` where there is no git.
pub(crate) fn git_diff(
    folder: &Path,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    more: &[&str],
) -> Option<Vec<u8>> {
    let write = |name: &str, content: Option<&[u8]>| {
        let path = folder.join(name);
        std::fs::create_dir_all(&path).unwrap();
        let _ = std::fs::remove_file(path.join("f"));
        if let Some(content) = content {
            std::fs::write(path.join("f"), content).unwrap();
        }
    };
    write("a", old);
    write("b", new);
    let git = Command::new("git")
        .args(["-c", "core.autocrlf=false", "diff", "--no-index", "--binary", "--no-prefix", "--no-color"])
        .args(more)
        .args(["a", "b"])
        .current_dir(folder)
        .output();
    git.ok().map(|output| output.stdout)
}

/// A folder of its own for one test, removed at its end.
pub(crate) struct Scratch(pub(crate) std::path::PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("cotenant-text-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn binary(patch: &[u8]) -> Binary {
    one(std::str::from_utf8(patch).unwrap()).binary.expect("a binary patch")
}

fn noise(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    (0..length).map(|_| next()).collect()
}

/// As `assert_eq`, without printing what may be long.
fn assert_gives(result: Result<Vec<u8>, BinaryMiss>, wanted: Result<&[u8], BinaryMiss>) {
    let short = |result: &Result<Vec<u8>, BinaryMiss>| result.as_ref().map(Vec::len).map_err(|miss| *miss);
    assert!(
        result.as_deref().map_err(|miss| *miss) == wanted,
        "{:?}, not {:?}",
        short(&result),
        wanted.map(<[u8]>::len)
    );
}

#[test]
fn a_literal_of_git_gives_its_bytes() {
    let scratch = Scratch::new("literal");
    let old = [b"\0old".to_vec(), noise(1, 70)].concat();
    let new = [b"\0new".to_vec(), noise(2, 300)].concat();
    let Some(patch) = git_diff(&scratch.0, Some(&old), Some(&new), &[]) else { return };
    let binary = binary(&patch);
    assert!(
        matches!(binary.forward, BinaryHunk::Literal(_))
            && binary.old_id.is_some()
            && binary.new_id.is_some()
    );
    assert_gives(apply_binary(Some(&old), &binary), Ok(&new));
    assert_gives(apply_binary(Some(&new), &binary), Err(BinaryMiss::AlreadyApplied));
    assert_gives(apply_binary(Some(b"else"), &binary), Err(BinaryMiss::OtherContent));
    let without_ids = Binary { old_id: None, new_id: None, ..binary.clone() };
    assert_gives(apply_binary(Some(&old), &without_ids), Ok(&new));
    assert_gives(apply_binary(Some(&new), &without_ids), Err(BinaryMiss::AlreadyApplied));
    assert_gives(apply_binary(Some(b"else"), &without_ids), Err(BinaryMiss::OtherContent));
    let unproven = Binary { reverse: None, ..without_ids };
    assert_gives(apply_binary(Some(&old), &unproven), Err(BinaryMiss::Unverifiable));
    let other_end = Binary { new_id: binary.old_id, old_id: None, ..binary };
    assert_gives(apply_binary(None, &other_end), Err(BinaryMiss::Damaged));
}

#[test]
fn a_delta_of_git_gives_its_bytes() {
    let scratch = Scratch::new("delta");
    let old = noise(3, 200_000);
    let new = [&old[..90_000], b"\0inserted", &old[90_100..]].concat();
    let Some(patch) = git_diff(&scratch.0, Some(&old), Some(&new), &[]) else { return };
    let binary = binary(&patch);
    assert!(matches!(binary.forward, BinaryHunk::Delta(_)), "a small change of much noise is a delta");
    assert_gives(apply_binary(Some(&old), &binary), Ok(&new));
    assert_gives(apply_binary(Some(&new), &binary), Err(BinaryMiss::AlreadyApplied));
    assert_gives(apply_binary(Some(&old[1..]), &binary), Err(BinaryMiss::OtherContent));
    let mut other = old.clone();
    other[5] ^= 1;
    assert_gives(apply_binary(Some(&other), &binary), Err(BinaryMiss::OtherContent));
    let without_ids = Binary { old_id: None, new_id: None, ..binary };
    assert_gives(apply_binary(Some(&old), &without_ids), Err(BinaryMiss::Unverifiable));
}

#[test]
fn files_come_and_go() {
    let scratch = Scratch::new("binary-add");
    let content = [b"\0".to_vec(), noise(4, 99)].concat();
    let Some(patch) = git_diff(&scratch.0, None, Some(&content), &[]) else { return };
    let file = one(std::str::from_utf8(&patch).unwrap());
    assert_eq!((file.op, text(&file.path)), (Op::Add, "b/f".to_owned()));
    assert_gives(apply_binary(None, &file.binary.unwrap()), Ok(&content));
    let gone = git_diff(&scratch.0, Some(&content), None, &[]).unwrap();
    let file = one(std::str::from_utf8(&gone).unwrap());
    assert_eq!(file.op, Op::Delete);
    let binary = file.binary.unwrap();
    assert_gives(apply_binary(Some(&content), &binary), Ok(b""));
    assert_gives(apply_binary(Some(b"other"), &binary), Err(BinaryMiss::OtherContent));
}

#[test]
fn damage_is_found_at_its_line() {
    let head = "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\n";
    let cases = [
        ("", 4, "without data"),
        ("literal x\n", 4, "no number"),
        ("literal 999999999999\n", 4, "over 100 MiB"),
        ("literal 3\nKcmZ\n", 5, "no base85 line"),
        ("literal 3\n?cmZPo\n", 5, "no base85 line"),
        ("literal 3\nDcmZPo\n\n", 4, "do not unpack"),
    ];
    for (rest, line, what) in cases {
        let refused = bad(&format!("{head}{rest}"));
        assert_eq!(refused.line, line.min(refused.line.max(3)), "{rest}: {refused}");
        assert!(refused.what.contains(what), "{rest}: {refused}");
    }
}

#[test]
fn the_instructions_of_a_delta_are_checked() {
    let was = || Some(BinaryHunk::Literal(b"abcdef".to_vec()));
    let delta = |data: &[u8]| Binary {
        forward: BinaryHunk::Delta(data.to_vec()),
        reverse: was(),
        old_id: None,
        new_id: None,
    };
    let of = |data: &[u8]| apply_binary(Some(b"abcdef"), &delta(data));
    assert_eq!(of(&[6, 3, 0x90, 3]), Ok(b"abc".to_vec()), "copy three from the start");
    assert_eq!(of(&[6, 3, 0x91, 2, 3]), Ok(b"cde".to_vec()), "copy three from offset two");
    assert_eq!(of(&[6, 2, 2, b'x', b'y']), Ok(b"xy".to_vec()), "two given bytes");
    assert_eq!(of(&[5, 3, 0x90, 3]), Err(BinaryMiss::OtherContent), "made for five bytes");
    let damaged: [&[u8]; 9] = [
        &[],
        &[6],
        &[6, 3, 0x91, 5, 3],
        &[6, 3, 0],
        &[6, 9, 0x90, 3],
        &[6, 2, 0x90, 3],
        &[6, 3, 5, b'x'],
        &[6, 3, 0x9f, 1],
        &[0x80; 12],
    ];
    for data in damaged {
        assert_eq!(of(data), Err(BinaryMiss::Damaged), "{data:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_delta_is_answered(data in prop::collection::vec(any::<u8>(), 0..40), base in prop::collection::vec(any::<u8>(), 0..20)) {
        let reverse = Some(BinaryHunk::Literal(base.clone()));
        let binary = Binary { forward: BinaryHunk::Delta(data), reverse, old_id: None, new_id: None };
        let _ = apply_binary(Some(&base), &binary);
    }

    #[test]
    fn any_data_are_answered(lines in prop::collection::vec("[A-Za-z][0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{0,60}", 0..5), size in 0usize..200) {
        let patch = format!("diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral {size}\n{}\n", lines.join("\n"));
        let _ = cotenant_text::patch::parse(&patch, &Default::default());
    }
}
