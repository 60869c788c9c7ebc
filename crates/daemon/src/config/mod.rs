//! Reads `cotenant.toml`: every section of the contract, every key known, a slip answered with what was meant.

mod commands;
mod file;
mod hooks;
mod meaning;

use std::fs;
use std::io;
use std::path::Path;

use cotenant_model::{Code, Refusal, Settings};

/// The file's name at the root.
pub const FILE: &str = "cotenant.toml";

/// Two names are near if at least this share of them is alike; farther ones are not what was meant.
const NEAR: f64 = 0.75;

/// The settings of a root; the defaults where it has no `cotenant.toml`.
pub fn load(root: &Path) -> Result<Settings, Refusal> {
    let text = match fs::read_to_string(root.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Settings::default()),
        Err(error) => return Err(wrong(format!("It cannot be read: {error}."))),
    };
    parse(&text, root)
}

/// The settings that `text` makes for `root`, an absolute path.
pub fn parse(text: &str, root: &Path) -> Result<Settings, Refusal> {
    let sections: file::Sections = toml::from_str(text).map_err(|error| slip(text, &error))?;
    meaning::settings(sections, root).map_err(wrong)
}

fn wrong(what: String) -> Refusal {
    Refusal::new(Code::BadInput, what)
        .fact("path", FILE)
        .next("correct cotenant.toml, then `cotenant config check`")
}

/// The refusal of a text that has another form.
fn slip(text: &str, error: &toml::de::Error) -> Refusal {
    let message = error.message();
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    // serde's words: unknown field `a`, expected one of `b`, `c`
    let mut words = message.split('`').skip(1).step_by(2);
    let unknown = ["unknown field", "unknown variant"].iter().any(|start| message.starts_with(start));
    let given = words.next().filter(|_| unknown);
    let near = given.and_then(|given| nearest(given, words));
    let mut refusal = wrong(match (given, near) {
        (Some(given), Some(near)) => format!("There is no {given:?} there; {near:?} is near."),
        _ => format!("{}.", message.trim_end_matches('.')),
    });
    for (name, value) in [("line", line.map(|line| line.to_string())), ("given", given.map(str::to_owned))] {
        if let Some(value) = value {
            refusal = refusal.fact(name, value);
        }
    }
    match near {
        Some(near) => refusal.fact("near", near),
        None => refusal,
    }
}

/// The word that is most like `given`; where none is near, the first that begins or ends alike counts as none.
fn nearest<'a>(given: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let likeness = |word: &&str| strsim::jaro_winkler(&given, word);
    let best = words.max_by(|left, right| likeness(left).total_cmp(&likeness(right)))?;
    (likeness(&best) >= NEAR).then_some(best)
}
