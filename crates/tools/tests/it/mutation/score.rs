//! The judge: what became of each case, counted by format and by error.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cotenant_model::{Durability, Profile, Settings};
use serde_json::json;

use super::draft::{Answer, Draft};
use super::formats::{FORMATS, Format};
use crate::fixture::{Fixture, next_calls};

/// Cases of one workspace; a long ledger is not what is measured.
const SHARED: usize = 200;

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// The bytes that are meant, or a refusal where nothing could be meant.
    Right,
    /// Refused, and the refusal's first call gives the bytes that are meant.
    Suggested,
    /// Refused; nothing was written.
    Refused,
    /// Refused, the words being ambiguous or overtaken: there is no one right answer.
    Rightly,
    /// Other bytes.
    Wrong,
}

const OUTCOMES: [Outcome; 5] =
    [Outcome::Right, Outcome::Suggested, Outcome::Refused, Outcome::Rightly, Outcome::Wrong];

/// Counts of outcomes.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(BTreeMap<Outcome, usize>);

impl Counts {
    pub(super) fn add(&mut self, outcome: Outcome) {
        *self.0.entry(outcome).or_default() += 1;
    }

    pub(super) fn of(&self, outcome: Outcome) -> usize {
        self.0.get(&outcome).copied().unwrap_or(0)
    }

    pub(super) fn all(&self) -> usize {
        self.0.values().sum()
    }

    pub(super) fn row(&self, name: &str) -> String {
        let counts: Vec<String> = OUTCOMES.iter().map(|outcome| self.of(*outcome).to_string()).collect();
        format!("| {name} | {} | {} |\n", self.all(), counts.join(" | "))
    }
}

/// The head of a table of [`Counts`].
pub(super) fn head(first: &str) -> String {
    format!(
        "| {first} | cases | right | refused, its call is right | refused | refused, no one right answer | WRONG |\n\
         |---|---:|---:|---:|---:|---:|---:|\n"
    )
}

/// All cases so far.
#[derive(Default)]
pub(super) struct Score {
    fixture: Option<Fixture>,
    in_fixture: usize,
    pub(super) formats: BTreeMap<&'static str, Counts>,
    pub(super) errors: BTreeMap<&'static str, Counts>,
    pub(super) total: Counts,
    /// Spoiled texts that say another edit exactly: no error that could be seen.
    pub(super) literal: usize,
    /// What is to be looked at: the case, and what was answered.
    pub(super) wrong: Vec<String>,
    pub(super) refused: Vec<(&'static str, Format, String)>,
}

impl Score {
    /// Carries out one case.
    pub(super) fn add(&mut self, error: &'static str, draft: &Draft) -> Outcome {
        if self.in_fixture == SHARED || self.fixture.is_none() {
            let settings =
                Settings { profile: Profile::Trusting, durability: Durability::Fast, ..Settings::default() };
            (self.fixture, self.in_fixture) = (Some(Fixture::with(settings)), 0);
        }
        self.in_fixture += 1;
        let fixture = self.fixture.as_ref().unwrap();
        let (outcome, answer) = judged(fixture, draft);
        self.total.add(outcome);
        self.formats.entry(draft.format.name()).or_default().add(outcome);
        self.errors.entry(error).or_default().add(outcome);
        let told = || {
            let (tool, args) = draft.sent.call(draft.format);
            let sent = match args.get("patch").and_then(|patch| patch.as_str()) {
                Some(patch) => patch.to_owned(),
                None => args.to_string(),
            };
            format!("{error}, {:?}, {}\n{tool}:\n{sent}\n--- answered:\n{answer}\n", draft.format, draft.path)
        };
        match outcome {
            Outcome::Wrong => self.wrong.push(told()),
            Outcome::Refused => self.refused.push((error, draft.format, told())),
            _ => {}
        }
        outcome
    }

    /// Refusals with a working call, of a hundred that have one right answer.
    pub(super) fn working(&self) -> f64 {
        let (working, other) = (self.total.of(Outcome::Suggested), self.total.of(Outcome::Refused));
        100.0 * working as f64 / (working + other).max(1) as f64
    }

    /// Both tables.
    pub(super) fn tables(&self) -> String {
        let mut text = head("format");
        for format in FORMATS {
            text.push_str(&self.formats.get(format.name()).cloned().unwrap_or_default().row(format.name()));
        }
        text.push_str(&self.total.row("**all**"));
        let _ = write!(text, "\n{}", head("error"));
        for error in super::errors::ERRORS {
            text.push_str(&self.errors.get(error.name).cloned().unwrap_or_default().row(error.name));
        }
        text
    }
}

/// The outcome, and what was answered.
fn judged(fixture: &Fixture, draft: &Draft) -> (Outcome, String) {
    fixture.put(&draft.path, draft.read.content());
    for (path, content) in &draft.others {
        fixture.put(path, content);
    }
    fixture.ok("read_file", json!({"path": draft.path, "limit": 0, "max_bytes": 1_000_000}));
    for (path, _) in &draft.others {
        fixture.ok("read_file", json!({"path": path}));
    }
    let before = draft.disk.content();
    fixture.put(&draft.path, &before);
    let (tool, args) = draft.sent.call(draft.format);
    let answer = fixture.call(tool, args);
    let (now, apart) = state(fixture, draft);
    let mut told = answer.text.clone();
    let right = draft.right().unwrap();
    let outcome = if now != before || apart {
        if !answer.is_error && !apart && right == Answer::Bytes(now) {
            Outcome::Right
        } else {
            Outcome::Wrong
        }
    } else {
        let (outcome, followed) = followed(fixture, draft, &right, &answer.text, &before);
        told.push_str(&followed);
        outcome
    };
    clear(fixture, draft);
    (outcome, told)
}

/// What a refusal is worth: its first call is carried out as it stands.
fn followed(
    fixture: &Fixture,
    draft: &Draft,
    right: &Answer,
    refusal: &str,
    before: &str,
) -> (Outcome, String) {
    let mut told = String::new();
    if let Some((tool, args)) = next_calls(refusal).into_iter().next() {
        let answer = fixture.call(&tool, args);
        told = format!("\n--- followed:\n{}", answer.text);
    }
    let (now, apart) = state(fixture, draft);
    let wrote = now != before;
    let said = ["ALREADY_APPLIED", "NOTHING_TO_CHANGE"].iter().any(|code| refusal.starts_with(code))
        || refusal.contains(" cause=already-applied")
        || refusal.contains("it changes nothing");
    let outcome = match right {
        _ if apart => Outcome::Wrong,
        Answer::Bytes(bytes) if now == *bytes => Outcome::Suggested,
        Answer::Either(several) if several.contains(&now) => Outcome::Rightly,
        // What the call leaves out was refused, and said so; what it writes is as meant.
        Answer::Refusal if wrote && draft.parts().contains(&now) => Outcome::Rightly,
        _ if wrote && draft.parts().contains(&now) => Outcome::Refused,
        _ if wrote => Outcome::Wrong,
        Answer::Nothing if said => Outcome::Right,
        Answer::Bytes(_) if !draft.is_sole() => Outcome::Rightly,
        Answer::Bytes(_) | Answer::Nothing => Outcome::Refused,
        Answer::Either(_) | Answer::Refusal => Outcome::Rightly,
    };
    (outcome, told)
}

/// The file now, and whether any other is not as it was.
fn state(fixture: &Fixture, draft: &Draft) -> (String, bool) {
    let others = draft.others.iter().any(|(path, content)| fixture.get(path) != *content);
    let names = std::fs::read_dir(fixture.path("src")).unwrap();
    let names = names
        .filter(|entry| !entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".cotenant-"));
    (fixture.get(&draft.path), others || names.count() != 1 + draft.others.len())
}

fn clear(fixture: &Fixture, draft: &Draft) {
    let paths = draft.others.iter().map(|(path, _)| path).chain([&draft.path]);
    for path in paths {
        std::fs::remove_file(fixture.path(path)).unwrap();
    }
}
