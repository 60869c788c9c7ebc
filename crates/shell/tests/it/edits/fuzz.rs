//! What is carried out leaves what the real bash and sed leave, over many generated pairs of a command and a workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use cotenant_model::{Folders, WsPath};
use cotenant_shell::edits::{Environment, Ground, Outcome, Sed, Simulated, recognise, simulate};
use cotenant_testkit::{Dice, fresh_directory};

use super::generate::{Pair, pair};
use super::sed;
use super::tree::Tree;

/// How many pairs every run tries; `COTENANT_FUZZ_SED` says another number.
const PAIRS: u64 = 20_000;
/// How many commands one bash carries out.
const BATCH: u64 = 250;
/// What the shell is started with.
const SURROUNDINGS: [(&str, bool, u32); 4] =
    [("C.UTF-8", false, 0o022), ("C", false, 0o022), ("C.UTF-8", true, 0o027), ("C.UTF-8", false, 0o077)];

#[test]
fn the_real_bash_and_sed_agree() {
    let pairs = std::env::var("COTENANT_FUZZ_SED").ok().map_or(PAIRS, |number| number.parse().unwrap());
    let mut dice = Dice::thrown();
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get() as u64).min(8);
    let seeds: Vec<u64> = (0..threads).map(|_| dice.below(u64::MAX)).collect();
    let sum = std::thread::scope(|scope| {
        let workers: Vec<_> =
            seeds.into_iter().map(|seed| scope.spawn(move || work(seed, pairs.div_ceil(threads)))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .fold([0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]])
    });
    let [tried, simulated] = sum;
    println!("{tried} pairs, {simulated} carried out ({} %), 0 differences", simulated * 100 / tried);
    assert!(simulated * 10 >= tried * 6, "{simulated} of {tried} were carried out");
}

/// Tries `pairs` pairs: how many there were, and how many were carried out.
fn work(seed: u64, pairs: u64) -> [u64; 2] {
    let mut dice = Dice::seeded(seed);
    let sed = sed();
    let mut counts = [0; 2];
    while counts[0] < pairs {
        let (locale, posix, umask) = SURROUNDINGS[usize::try_from(dice.below(4)).unwrap()];
        let variables: BTreeMap<&str, &str> =
            [("LC_ALL", locale)].into_iter().chain(posix.then_some(("POSIXLY_CORRECT", "1"))).collect();
        let environment = Environment::new(&variables, umask);
        let batch: Vec<Pair> = (0..BATCH.min(pairs - counts[0])).map(|_| pair(&mut dice)).collect();
        counts[0] += batch.len() as u64;
        let done: Vec<(Pair, Outcome)> = batch
            .into_iter()
            .filter_map(|pair| Some((carried(&pair, &environment, &sed)?, pair)))
            .map(|(outcome, pair)| (pair, outcome))
            .collect();
        counts[1] += done.len() as u64;
        compare(&done, &variables, umask);
    }
    counts
}

fn carried(pair: &Pair, environment: &Environment, sed: &Sed) -> Option<Outcome> {
    let edit = recognise(&pair.command, environment)?;
    let ground =
        Ground { cwd: &WsPath::default(), folders: &Folders::default(), files: &pair.tree, sed: Some(sed) };
    match simulate(&edit, &ground) {
        Simulated::Done(outcome) => Some(outcome),
        _ => None,
    }
}

/// Runs the commands for real, each in a directory of its own, by one bash.
fn compare(done: &[(Pair, Outcome)], variables: &BTreeMap<&str, &str>, umask: u32) {
    let root = fresh_directory(scratch(), "fuzz");
    for (index, (pair, _)) in done.iter().enumerate() {
        let place = root.join(index.to_string());
        fs::create_dir_all(place.join("w")).unwrap();
        pair.tree.put(&place.join("w"));
        fs::write(place.join("command"), &pair.command).unwrap();
    }
    let each = "umask $1; for at in *; do (cd $at/w && . ../command) >$at/out 2>$at/err </dev/null; echo $? >$at/code; done";
    let status = Command::new("bash")
        .args(["-c", each, "bash", &format!("{umask:03o}")])
        .current_dir(&root)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(variables)
        .stdin(Stdio::null())
        .status();
    assert!(done.is_empty() || status.unwrap().success());
    for (index, (pair, outcome)) in done.iter().enumerate() {
        agree(pair, outcome, &root.join(index.to_string()), umask);
    }
    fs::remove_dir_all(root).unwrap();
}

/// Where files cost least.
fn scratch() -> &'static Path {
    static SCRATCH: std::sync::LazyLock<std::path::PathBuf> = std::sync::LazyLock::new(|| {
        let memory = Path::new("/dev/shm");
        let writable = rustix::fs::access(memory, rustix::fs::Access::WRITE_OK).is_ok();
        if writable { memory.to_owned() } else { std::env::temp_dir() }
    });
    &SCRATCH
}

#[track_caller]
fn agree(pair: &Pair, outcome: &Outcome, place: &Path, umask: u32) {
    let about =
        || format!("{}\n{:?}\n{}", pair.command, pair.tree, fs::read_to_string(place.join("err")).unwrap());
    assert_eq!(fs::read_to_string(place.join("code")).unwrap(), "0\n", "{}", about());
    assert_eq!(fs::read(place.join("out")).unwrap(), outcome.stdout, "{}", about());
    let real = Tree::read(&place.join("w"));
    let mut ours = pair.tree.after(&outcome.effects, umask);
    // How many names a file has changes with its twin, which the effects do not tell.
    forget_links(&mut ours);
    let mut theirs = real;
    forget_links(&mut theirs);
    assert_eq!(ours, theirs, "{}", about());
}

fn forget_links(tree: &mut Tree) {
    for item in tree.0.values_mut() {
        if let super::tree::Item::File { links, .. } = item {
            *links = 1;
        }
    }
}
