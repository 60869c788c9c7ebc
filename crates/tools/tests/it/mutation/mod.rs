//! The mutation corpus: known edits of real files, said in every format, spoiled by the errors that models make, and judged.
//!
//! Every run takes some files of the project itself. `cargo xtask mutate [DIR…]` takes many of the directories given
//! (`COTENANT_MUTATE`), as many of each language as `COTENANT_MUTATE_EACH` says, with the seed `COTENANT_SEED`, and prints
//! the tables, beside those of `git apply`, GNU `patch`, and the envelope's own binary where `COTENANT_CODEX` names it.

mod corpus;
mod draft;
mod edits;
mod errors;
mod formats;
mod peers;
mod score;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cotenant_testkit::Dice;

use corpus::Sample;
use draft::{Answer, Draft};
use edits::{KINDS, below, stands_once};
use errors::ERRORS;
use formats::FORMATS;
use peers::Peers;
use score::{Outcome, Score};

/// How much is made of the corpus.
struct Extent {
    directories: Vec<PathBuf>,
    /// Files of each language.
    each: usize,
    /// Kinds of edit that are made of each file.
    kinds: usize,
    /// Whether each error is made in every format, else in one.
    whole: bool,
    seed: u64,
}

/// Carries out all cases.
fn run(extent: &Extent, mut peers: Option<&mut Peers>) -> (Vec<Sample>, Score) {
    let mut dice = Dice::seeded(extent.seed);
    let samples = corpus::samples(&extent.directories, extent.each, &mut dice);
    let mut score = Score::default();
    let mut number = 0;
    for (index, sample) in samples.iter().enumerate() {
        for turn in 0..extent.kinds {
            let kind = KINDS[(index + turn) % KINDS.len()];
            let Some(hunks) = edits::edit(&sample.text, kind, &mut dice) else { continue };
            for error in ERRORS {
                let one = below(&mut dice, FORMATS.len());
                // Where the error cannot be made in that format, the next one is taken.
                let order = (0..FORMATS.len()).map(|at| FORMATS[(one + at) % FORMATS.len()]);
                for format in order {
                    number += 1;
                    let path = format!("src/Case{number}.{}", sample.extension);
                    let mut draft = Draft::new(format, path, &sample.text, &hunks);
                    if !spoiled(&mut draft, error, &mut dice) {
                        continue;
                    }
                    if says_another(&draft) {
                        score.literal += 1;
                        continue;
                    }
                    score.add(error.name, &draft);
                    if let Some(peers) = peers.as_mut() {
                        peers.add(error.name, &draft);
                    }
                    if !extent.whole {
                        break;
                    }
                }
            }
        }
    }
    (samples, score)
}

/// Whether the error could be made, and the edit is one still.
fn spoiled(draft: &mut Draft, error: &errors::Error, dice: &mut Dice) -> bool {
    (error.spoil)(draft, dice).is_some()
        && draft.right().is_some_and(|right| right != Answer::Bytes(draft.disk.content()))
        && (draft.answer.is_some() || draft.meant.iter().all(|hunk| stands_once(&draft.disk, hunk)))
}

/// Whether the words, taken as they are, fit once and mean other bytes: an error that nobody can see.
fn says_another(draft: &Draft) -> bool {
    match (draft.literally(), draft.right()) {
        (Some(literal), Some(Answer::Bytes(right))) => literal != right,
        (Some(literal), Some(Answer::Nothing)) => literal != draft.disk.content(),
        (Some(_), Some(Answer::Refusal)) => true,
        _ => false,
    }
}

/// The seed of `COTENANT_SEED`, or always the same.
fn seed() -> u64 {
    std::env::var("COTENANT_SEED").map_or(1, |seed| seed.parse().expect("COTENANT_SEED is a number"))
}

fn assert_sound(score: &Score) {
    for wrong in score.wrong.iter().take(10) {
        println!("WRONG: {wrong}");
    }
    assert!(score.wrong.is_empty(), "{} of {} cases gave other bytes", score.wrong.len(), score.total.all());
    assert!(score.working() >= 90.0, "only {:.1} % of the refusals have a call that works", score.working());
}

/// How many refusals without a working call there are of each error and format; one of each kind in full, if asked.
fn refusals(score: &Score) -> String {
    let mut kinds: BTreeMap<(&str, formats::Format), (usize, &str)> = BTreeMap::new();
    for (error, format, told) in &score.refused {
        kinds.entry((error, *format)).or_insert((0, told)).0 += 1;
    }
    let shown = std::env::var("COTENANT_MUTATE_SHOW").unwrap_or_default();
    let lines = kinds.iter().map(|((error, format), (count, told))| {
        let told = if !shown.is_empty() && error.contains(&shown) { *told } else { "" };
        format!("{count:5} {error} ({})\n{told}", format.name())
    });
    lines.collect()
}

#[test]
fn the_projects_own_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (samples, score) =
        run(&Extent { directories: vec![root], each: 1, kinds: 3, whole: false, seed: seed() }, None);
    let languages: std::collections::BTreeSet<&str> = samples.iter().map(|sample| sample.language).collect();
    println!("{}\n{}", score.tables(), refusals(&score));
    assert_sound(&score);
    assert!(languages.len() >= 6, "{languages:?}");
    assert!(score.errors.len() > 30, "{:?}", score.errors.keys());
    assert!(FORMATS.iter().all(|format| score.formats.contains_key(format.name())));
    assert!(score.total.of(Outcome::Suggested) > 100, "{:?}", score.total);
}

/// Only where directories are given: see above.
#[test]
fn directories_that_are_given() {
    let Some(given) = std::env::var_os("COTENANT_MUTATE") else { return };
    let each = std::env::var("COTENANT_MUTATE_EACH").map_or(1, |each| each.parse().expect("a number"));
    let directories = std::env::split_paths(&given).collect();
    let mut peers = Peers::here();
    let (samples, score) =
        run(&Extent { directories, each, kinds: KINDS.len(), whole: true, seed: seed() }, Some(&mut peers));
    let mut languages: BTreeMap<&str, usize> = BTreeMap::new();
    samples.iter().for_each(|sample| *languages.entry(sample.language).or_default() += 1);
    println!(
        "seed {}, files {languages:?}, {} cases, {} say another edit exactly",
        seed(),
        score.total.all(),
        score.literal
    );
    println!("{}\nwith a working call: {:.1} %\n\n{}", score.tables(), score.working(), peers.tables());
    println!("refused without a working call:\n{}", refusals(&score));
    assert_sound(&score);
}
