//! The `[commands]` rules of a workspace: patterns of words, tried on every part.

use cotenant_model::{Answer, CommandRule};

use super::git;
use super::part::{Arg, Flow, Kind, Part, State};
use super::walk::Walk;

/// The `[commands]` rules, read and tried on their own examples.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    /// `commands.deny[3]`.
    name: String,
    words: Vec<String>,
    /// Any further words fit.
    open: bool,
    answer: Answer,
    reason: String,
}

/// How well a part fits a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    /// A word that cannot be seen may be the one of the pattern.
    Perhaps,
    Yes,
}

/// What the rules say of all parts.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The part, the rule's name and its reason.
    pub(super) deny: Option<(String, String, String)>,
    /// Why it is asked.
    pub(super) ask: Vec<String>,
    /// For each part, whether a rule allows it.
    pub(super) allowed: Vec<bool>,
}

impl Rules {
    /// Reads the rules and tries each on its examples.
    ///
    /// # Errors
    ///
    /// A sentence that begins with the rule (`commands.deny[3]`, counted within its own list from 0): its pattern is empty
    /// or no plain words, or one of its examples does not hold.
    pub fn new(rules: &[CommandRule]) -> Result<Rules, String> {
        let mut counts = [0usize; 3];
        let mut all = Vec::new();
        for rule in rules {
            let (list, at) = match rule.answer {
                Answer::Deny => ("deny", 0),
                Answer::Ask => ("ask", 1),
                Answer::Allow => ("allow", 2),
            };
            let name = format!("commands.{list}[{}]", counts[at]);
            counts[at] += 1;
            all.push(Rule::read(name.clone(), rule).map_err(|why| format!("{name}: {why}"))?);
        }
        Ok(Rules(all))
    }

    /// What the rules say of the parts of a command line.
    pub(super) fn judge(&self, parts: &[Part]) -> Said {
        let mut said = Said { allowed: vec![false; parts.len()], ..Said::default() };
        for (at, part) in parts.iter().enumerate() {
            for rule in &self.0 {
                let fit = rule.fit(part);
                match (rule.answer, fit) {
                    (_, Fit::No) => {}
                    (Answer::Deny, Fit::Yes) => {
                        said.deny.get_or_insert_with(|| {
                            (part.shown.clone(), rule.name.clone(), rule.reason.clone())
                        });
                    }
                    (Answer::Deny, Fit::Perhaps) => {
                        said.ask.push(format!("`{}` may be what {} denies", part.shown, rule.name));
                    }
                    (Answer::Ask, _) => {
                        let reason =
                            if rule.reason.is_empty() { String::new() } else { format!(": {}", rule.reason) };
                        said.ask.push(format!("`{}` is asked about by {}{reason}", part.shown, rule.name));
                    }
                    (Answer::Allow, fit) => said.allowed[at] |= fit == Fit::Yes && may_be_allowed(part),
                }
            }
        }
        said
    }
}

/// What a rule can lift at all: a command whose words are all seen, that writes no file by a redirection and brings no
/// variable along.
fn may_be_allowed(part: &Part) -> bool {
    let written = |flow: Flow, target: &Arg| flow == Flow::To && target.literal() != Some("/dev/null");
    !part.is_opaque()
        && !part.is_function
        && !part.substitutes
        && part.assigns.is_empty()
        && !part.redirects.iter().any(|redirect| written(redirect.flow, &redirect.target))
}

impl Rule {
    fn read(name: String, rule: &CommandRule) -> Result<Rule, String> {
        let (words, open) = words(&rule.pattern)?;
        let read = Rule { name, words, open, answer: rule.answer, reason: rule.reason.clone() };
        for (examples, fits) in [(&rule.matches, true), (&rule.not_matches, false)] {
            for example in examples {
                let parts = parts(example, false).map_err(|why| format!("the example `{example}`: {why}"))?;
                if parts.iter().any(|part| read.fit(part) == Fit::Yes) != fits {
                    let verb = if fits { "does not fit" } else { "fits" };
                    return Err(format!("the pattern `{}` {verb} its example `{example}`", rule.pattern));
                }
            }
        }
        Ok(read)
    }

    /// The pattern against the words of a part: as written, by the program's base name, and git without its own options.
    fn fit(&self, part: &Part) -> Fit {
        if !matches!(part.kind, Kind::Command | Kind::Wrapper) || part.args.is_empty() {
            return Fit::No;
        }
        let whole = self.fit_words(&part.args, part.more);
        if whole == Fit::Yes {
            return whole;
        }
        let bare = git::call(part).and_then(|call| {
            let words: Vec<Arg> =
                part.args.first().into_iter().chain(call.verb).chain(call.rest).cloned().collect();
            (call.verb.is_some()).then(|| self.fit_words(&words, part.more))
        });
        whole.max(bare.unwrap_or(Fit::No))
    }

    fn fit_words(&self, args: &[Arg], more: bool) -> Fit {
        let Some(program) = args.first().and_then(|arg| arg.known.as_deref()) else { return Fit::No };
        let named = self.words[0] == program || Some(self.words[0].as_str()) == program.rsplit('/').next();
        if !named {
            return Fit::No;
        }
        let mut fit = Fit::Yes;
        for (at, word) in self.words.iter().enumerate().skip(1) {
            match args.get(at) {
                Some(arg) => match arg.known.as_deref() {
                    Some(text) if text == word => {}
                    Some(_) => return Fit::No,
                    // It may be this word, or several.
                    None => return Fit::Perhaps,
                },
                None if more => return Fit::Perhaps,
                None => return Fit::No,
            }
        }
        if !self.open && args.len() > self.words.len() {
            return Fit::No;
        }
        if !self.open && more {
            fit = Fit::Perhaps;
        }
        fit
    }
}

/// The words of a pattern, and whether it ends in a `*`.
fn words(pattern: &str) -> Result<(Vec<String>, bool), String> {
    let parts = parts(pattern, true).map_err(|why| format!("the pattern `{pattern}`: {why}"))?;
    let [part] = parts.as_slice() else { return Err(format!("the pattern `{pattern}` is not one command")) };
    if part.args.is_empty() || !part.assigns.is_empty() || !part.redirects.is_empty() {
        return Err(format!("the pattern `{pattern}` is no plain words"));
    }
    let mut words = part
        .args
        .iter()
        .map(|arg| arg.known.clone())
        .collect::<Option<Vec<String>>>()
        .ok_or_else(|| format!("the pattern `{pattern}` is no plain words"))?;
    let open = part.args.last().is_some_and(|arg| arg.word.raw == "*");
    if open {
        words.pop();
    }
    match words.first().map(String::as_str) {
        None | Some("") => Err(format!("the pattern `{pattern}` names no program")),
        Some(_) => Ok((words, open)),
    }
}

/// The parts of a rule's own text; `flat` without those that a wrapper starts.
fn parts(text: &str, flat: bool) -> Result<Vec<Part>, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut walk = Walk::default();
    walk.flat = flat;
    walk.script(text, &mut State::default()).map_err(str::to_owned)?;
    Ok(walk.parts)
}
