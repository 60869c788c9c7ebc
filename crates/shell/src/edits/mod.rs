//! Commands that only edit files in place, carried out without a shell.
//!
//! [`recognise`] says whether a command line is one: a strict reader of its own must understand every byte of it, and a
//! reader of the whole shell language must find the same words. [`simulate`] carries it out on private copies: what it
//! would leave is an ordinary preview, and what was approved is what is written. `sed` is never imitated: the real one
//! runs as a filter. Whatever is in doubt goes to the shell.

mod environment;
mod gnu;
mod lex;
mod private;
mod program;
mod script;
mod second;
mod sed_call;
mod simulate;
mod step;
mod traps;

pub use environment::Environment;
pub use gnu::Sed;
pub use simulate::{Ground, Outcome, Simulated, simulate};
pub use traps::traps;

use step::Step;

/// The longest command that is read, in bytes.
const COMMAND_MAX: usize = 64 << 10;

/// A command that can be carried out without a shell, as far as its words tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    command: String,
    environment: Environment,
    steps: Vec<Step>,
}

/// Reads a command line; `None`: it is not an edit that can be carried out without a shell. Total, and without I/O.
pub fn recognise(command: &str, environment: &Environment) -> Option<Recognised> {
    if command.len() > COMMAND_MAX || !(command.is_ascii() || environment.is_ascii_safe()) {
        return None;
    }
    let commands = lex::lex(command)?;
    let steps: Vec<Step> =
        commands.iter().cloned().map(|command| Step::of(command, environment)).collect::<Option<_>>()?;
    let (last, before) = steps.split_last()?;
    let patch = |step: &Step| matches!(step, Step::Patch(_));
    // A patch is one call of its tool: it stands alone, in the directory that was entered for it.
    let sole = !before.iter().any(patch)
        && (!patch(last) || before.iter().all(|step| matches!(step, Step::Enter(_))));
    let edits = steps.iter().any(Step::writes);
    (sole && edits && second::read(command)? == commands).then(|| Recognised {
        command: command.to_owned(),
        environment: environment.clone(),
        steps,
    })
}

impl Recognised {
    /// The paths that it names, as written, each below the directories that the command enters before.
    pub fn targets(&self) -> Vec<String> {
        let mut below = String::new();
        let mut targets = Vec::new();
        for step in &self.steps {
            if let Step::Enter(to) = step {
                below = joined(&below, to);
                continue;
            }
            targets.extend(step.paths().iter().map(|path| joined(&below, path)));
        }
        targets
    }
}

fn joined(below: &str, path: &str) -> String {
    if below.is_empty() || path.starts_with('/') {
        return path.to_owned();
    }
    format!("{}/{path}", below.trim_end_matches('/'))
}
