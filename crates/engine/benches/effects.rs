//! What finding a direct run's effects costs: the look before and the look after, with all that they read and record.
//!
//! `cargo bench -p cotenant-engine --bench effects -- DIR FILES CHANGED` makes so many files below DIR (100,000 if not said)
//! and prints, for a plain directory and for a repository, `effects KIND BEFORE AFTER` in milliseconds, one line for each
//! run, in which so many files change (0 if not said). The first run finds an empty store.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use cotenant_engine::effects::{self, Bounds};
use cotenant_engine::{Clock, Options, Workspace};
use cotenant_model::{Author, GitObjects, Millis, SessionId, Settings, WsPath};
use cotenant_shell::git::Git;

const RUNS: usize = 5;
const IN_A_DIRECTORY: usize = 20;

struct Still;

impl Clock for Still {
    fn wall(&self) -> Millis {
        Millis(1_796_053_442_000)
    }
    fn steady(&self) -> Millis {
        Millis(1000)
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let base = PathBuf::from(words.first().map_or("target/bench-effects", String::as_str));
    let number =
        |index: usize, default: usize| words.get(index).map_or(default, |word| word.parse().unwrap());
    let (files, changed) = (number(1, 100_000), number(2, 0));
    let root = base.join("root");
    let paths: Vec<PathBuf> = (0..files).map(|index| path(&root, index)).collect();
    for (index, path) in paths.iter().enumerate() {
        if index % IN_A_DIRECTORY == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, format!("fn f{index}() {{}}\n")).unwrap();
    }
    runs("plain", &base, &paths[..changed], None);
    let commit = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0", "commit", "-qm", "x"];
    for arguments in [&["init", "-q"][..], &["add", "."], &commit, &["gc", "-q"]] {
        assert!(Command::new("git").args(arguments).current_dir(&root).status().unwrap().success());
    }
    let git = Git::find(&std::env::var_os("PATH").unwrap(), vec![root.canonicalize().unwrap()]).unwrap();
    runs("git", &base, &paths[..changed], Some(Arc::new(git)));
    let _ = fs::remove_dir_all(&base);
}

fn path(root: &Path, index: usize) -> PathBuf {
    let number = index / IN_A_DIRECTORY;
    root.join(format!("d{}/e{number}/module_{index}.rs", number % 97))
}

fn runs(kind: &str, base: &Path, changed: &[PathBuf], git: Option<Arc<dyn GitObjects>>) {
    let options = Options {
        root: base.join("root"),
        state: base.join(format!("state-{kind}")),
        settings: Settings::default(),
        clock: Arc::new(Still),
    };
    let ws = Workspace::open(options).unwrap();
    let author = Author { agent: "a".into(), session: SessionId(1), task: None, turn: 1 };
    for run in 0..RUNS {
        let begun = Instant::now();
        let before = effects::before(&ws, &[WsPath::default()], git.clone(), Bounds::default()).unwrap();
        let first = begun.elapsed().as_secs_f64() * 1e3;
        changed
            .iter()
            .for_each(|path| fs::write(path, format!("run {run} of {}\n", path.display())).unwrap());
        let begun = Instant::now();
        let recorded = effects::after(&ws, &before, &author, "run_command").unwrap();
        let second = begun.elapsed().as_secs_f64() * 1e3;
        println!(
            "effects {kind} {first:.0} {second:.0} files={} lost={} uncovered={}",
            recorded.files.len(),
            recorded.not_restorable.len(),
            before.uncovered().count()
        );
    }
}
