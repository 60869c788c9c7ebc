//! Edits that need no shell: every recorded case, the forms one by one, and a fuzz against the real bash and sed.

mod cases;
mod forms;
mod fuzz;
mod generate;
mod table;
mod tree;
mod words;

use cotenant_model::{Folders, RelPath, WsPath};
use cotenant_shell::edits::{Environment, Ground, Outcome, Recognised, Sed, Simulated, recognise, simulate};

use tree::Tree;

/// The host path of the root in tests that name it.
const HOST: &str = "/srv/project";

fn at(path: &str) -> WsPath {
    WsPath::root(RelPath::parse(path).unwrap())
}

fn sed() -> Sed {
    Sed::find(&std::env::var("PATH").unwrap()).expect("GNU sed 4.3 or later is there")
}

fn utf8() -> Environment {
    Environment::new([("LC_ALL", "C.UTF-8")], 0o022)
}

fn folders() -> Folders {
    let mut folders = Folders::default();
    folders.add("", vec![HOST.into()]);
    folders
}

/// Carries a recognised edit out in `tree`, at its root.
fn run(edit: &Recognised, tree: &Tree) -> Simulated {
    let (folders, sed) = (folders(), sed());
    let ground = Ground { cwd: &WsPath::default(), folders: &folders, files: tree, sed: Some(&sed) };
    patiently(|| simulate(edit, &ground))
}

/// The result of a run that was given its time: a machine with much else to do may let the 2 s pass.
fn patiently(mut run: impl FnMut() -> Simulated) -> Simulated {
    let late =
        |result: &Simulated| matches!(result, Simulated::Shell { why, .. } if why == "sed: 2 s passed");
    (0..4).map(|_| run()).find(|result| !late(result)).unwrap_or_else(run)
}

/// Carries a command out in `tree`; a command that is not recognised is for the shell.
fn carried(command: &str, tree: &Tree) -> Simulated {
    let shell = || Simulated::Shell { why: "not recognised".to_owned(), notes: Vec::new() };
    recognise(command, &utf8()).map_or_else(shell, |edit| run(&edit, tree))
}

/// The outcome of a command that must be carried out, and the tree after it.
#[track_caller]
fn done(command: &str, tree: &Tree) -> (Outcome, Tree) {
    match carried(command, tree) {
        Simulated::Done(outcome) => {
            let after = tree.after(&outcome.effects, 0o022);
            (outcome, after)
        }
        other => panic!("{command}: {other:?}"),
    }
}

/// Why a command is left to the shell.
#[track_caller]
fn left(command: &str, tree: &Tree) -> String {
    match carried(command, tree) {
        Simulated::Shell { why, .. } => why,
        other => panic!("{command}: {other:?}"),
    }
}
