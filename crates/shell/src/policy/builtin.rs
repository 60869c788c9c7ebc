//! What builtins change for the commands after them: the directory, and variables.

use super::part::{Part, State};
use super::place::normal;

/// Changes the state as the command would.
pub(super) fn apply(part: &Part, state: &mut State) {
    match part.program() {
        Some("cd" | "pushd") => state.cwd = destination(part, state),
        Some("popd") => state.cwd = None,
        Some("export" | "declare" | "local" | "readonly" | "typeset") => {
            for arg in part.rest() {
                let (name, value) = match arg.word.start().split_once('=') {
                    Some((name, _)) => (name, arg.known.as_deref().and_then(|text| text.split_once('='))),
                    None => (arg.text(), None),
                };
                state.vars.insert(name.to_owned(), value.map(|(_, value)| value.to_owned()));
            }
        }
        Some("read" | "mapfile" | "readarray" | "getopts") => {
            for arg in part.rest() {
                state.vars.insert(arg.text().to_owned(), None);
            }
        }
        Some("unset") => {
            for arg in part.rest() {
                state.vars.remove(arg.text());
            }
        }
        _ => {}
    }
}

/// Where `cd` goes.
fn destination(part: &Part, state: &State) -> Option<String> {
    let operands = part.rest().iter().filter(|arg| !matches!(arg.text(), "-P" | "-L" | "-e" | "--"));
    let to = match operands.collect::<Vec<_>>().as_slice() {
        [] => state.home.clone()?,
        [arg] if !arg.globbed && arg.text() != "-" => arg.known.clone()?,
        _ => return None,
    };
    if to.starts_with('/') {
        Some(normal(&to))
    } else {
        Some(normal(&format!("{}/{to}", state.cwd.as_deref()?)))
    }
}
