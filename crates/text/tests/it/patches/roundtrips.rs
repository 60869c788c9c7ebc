//! Random edits as patches of our own, of git and of diff: applied, they give the very bytes.

use std::process::Command;

use cotenant_text::patch::{Cause, apply, apply_binary};
use cotenant_text::{Form, unified};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::binaries::{Scratch, git_diff};
use super::generated::{Lines, Pair, hunks, only, pairs, patch_of};

/// Old and new bytes, and the form of the old.
fn sides(pair: &Pair) -> (Vec<u8>, Vec<u8>, Form) {
    let (old, new) = (pair.bytes(&pair.old), pair.bytes(&pair.new));
    let form = pair.form(&old);
    (old, new, form)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_diff_of_ours_gives_the_new_bytes(pair in pairs(1..4)) {
        let (old, new, form) = sides(&pair);
        prop_assume!(old != new);
        let patch = patch_of(&unified(&old, &form, &new, &pair.form(&new), pair.context));
        let applied = apply(&old, &form, &hunks(&patch), &[]);
        let text = String::from_utf8_lossy(&patch).into_owned();
        let applied = applied.map_err(|misfit| TestCaseError::fail(format!("{misfit:#?}\n{text}")))?;
        prop_assert_eq!(applied.bytes, new, "{}", text);
        prop_assert!(applied.landed.iter().all(|landed| landed.drift == 0), "{:?}\n{}", applied.landed, text);
    }

    #[test]
    fn what_is_applied_does_not_apply_again(pair in pairs(3..4)) {
        let (old, new, form) = sides(&pair);
        prop_assume!(old != new && !old.is_empty());
        let patch = hunks(&patch_of(&unified(&old, &form, &new, &pair.form(&new), pair.context)));
        if let Ok(applied) = apply(&old, &form, &patch, &[]) {
            let again = apply(&applied.bytes, &pair.form(&applied.bytes), &patch, &[]);
            // A file may hold both what a hunk makes and what it takes; then it is the place that tells.
            let twice = |hunk: &cotenant_text::patch::Hunk| hunk.old_lines().count() < 2 || hunk.new_lines().count() < 2;
            prop_assert!(again.is_err() || patch.iter().any(twice) || repeats(&pair), "{:?}", again);
        }
    }

    #[test]
    fn an_lf_patch_leaves_a_crlf_file_as_it_is(pair in pairs(1..4)) {
        let with = |lines: &Lines, end: &'static str| -> Lines { lines.iter().map(|(text, _)| (text.clone(), end)).collect() };
        let lf = Pair { old: with(&pair.old, "\n"), new: with(&pair.new, "\n"), ..pair };
        let (old, new, form) = sides(&lf);
        prop_assume!(old != new && !lf.old.is_empty());
        let patch = hunks(&patch_of(&unified(&old, &form, &new, &lf.form(&new), lf.context)));
        let crlf = |lines: &Lines| lf.bytes(&with(lines, "\r\n"));
        let (old, new) = (crlf(&lf.old), crlf(&lf.new));
        let applied = apply(&old, &lf.form(&old), &patch, &[]).map_err(|m| TestCaseError::fail(format!("{m:#?}")))?;
        prop_assert_eq!(applied.bytes, new);
    }
}

/// Whether some line stands more than once, so that old and new may both be found.
fn repeats(pair: &Pair) -> bool {
    let mut lines: Vec<&str> = pair.old.iter().chain(&pair.new).map(|(text, _)| text.as_str()).collect();
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    lines.len() < count
}

/// Runs a property as often as processes allow.
fn few(run: impl Fn(&Pair) -> Result<(), TestCaseError>, contexts: std::ops::Range<usize>) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(200) });
    runner.run(&pairs(contexts), |pair| run(&pair)).unwrap();
}

/// Whether a patch without context says by a number alone where it inserts.
fn is_bare_insertion(patch: &[u8]) -> bool {
    hunks(patch).iter().any(|hunk| hunk.old_lines().next().is_none())
}

fn check(patch: &[u8], pair: &Pair) -> Result<(), TestCaseError> {
    let (old, new, form) = sides(pair);
    let shown = || format!("{}\n{pair:?}", String::from_utf8_lossy(patch));
    let Some(file) = only(patch) else {
        return Err(TestCaseError::fail(format!("not read: {}", shown())));
    };
    if let Some(binary) = &file.binary {
        prop_assert_eq!(apply_binary(Some(&old), binary), Ok(new), "{}", shown());
        return Ok(());
    }
    match apply(&old, &form, &file.hunks, &[]) {
        Ok(applied) => prop_assert_eq!(applied.bytes, new, "{}", shown()),
        Err(misfit) => {
            let bare =
                misfit.misses.iter().all(|miss| miss.cause == Cause::NoPlace) && is_bare_insertion(patch);
            prop_assert!(bare, "{:#?}\n{}", misfit, shown());
            if let [hunk] = file.hunks.as_slice() {
                let offered = misfit.misses[0].suggestion.clone();
                prop_assert!(offered.is_some(), "{:?}\n{}", hunk, shown());
            }
        }
    }
    Ok(())
}

#[test]
fn a_diff_of_git_gives_the_new_bytes() {
    let scratch = Scratch::new("git-roundtrip");
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let run = |pair: &Pair| {
        let (old, new, _) = sides(pair);
        let context = format!("-U{}", pair.context);
        match git_diff(&scratch.0, Some(&old), Some(&new), &[&context]) {
            Some(patch) if !patch.is_empty() && as_is(pair) => check(&patch, pair),
            _ => Ok(()),
        }
    };
    few(run, 0..4);
}

/// Whether the bytes of a file are those of its text, as a patch of another program has them.
fn as_is(pair: &Pair) -> bool {
    !pair.bom && !matches!(pair.encoding, Some(cotenant_text::Encoding::Legacy(_)))
}

#[test]
fn a_diff_of_diff_gives_the_new_bytes() {
    let scratch = Scratch::new("diff-roundtrip");
    if Command::new("diff").arg("--version").output().is_err() {
        return;
    }
    let run = |pair: &Pair| {
        let (old, new, _) = sides(pair);
        std::fs::write(scratch.0.join("f.orig"), &old).unwrap();
        std::fs::write(scratch.0.join("f"), &new).unwrap();
        let context = format!("-U{}", pair.context);
        let output = Command::new("diff")
            .args(["-a", &context, "f.orig", "f"])
            .current_dir(&scratch.0)
            .output()
            .unwrap();
        if output.stdout.is_empty() || !as_is(pair) { Ok(()) } else { check(&output.stdout, pair) }
    };
    few(run, 0..4);
}

#[test]
fn bytes_of_no_known_encoding_go_through_a_diff_of_git() {
    let scratch = Scratch::new("git-bytes");
    let (old, new) = (b"caf\xe9\nb\n\xff\n".to_vec(), b"caf\xe9\n\xe8\nb\n\xfe\n".to_vec());
    let Some(patch) = git_diff(&scratch.0, Some(&old), Some(&new), &[]) else { return };
    let form = cotenant_text::detect(&old, None).unwrap();
    assert_eq!(apply(&old, &form, &hunks(&patch), &[]).unwrap().bytes, new);
}
