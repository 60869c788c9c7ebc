//! Judging command lines: text in, verdict out.

mod attacks;
mod cases;
mod floor;
mod forms;
mod options;
mod ordinary;
mod parts;
mod random;
mod read_only;
mod rules;
mod sameness;
mod shown;
mod verbs;

use cotenant_model::{Answer, ClassRules, CommandRule, PathClass, RelPath};
use cotenant_shell::policy::{Judgement, Rules, Surroundings, Verdict, judge};

pub(crate) const ROOT: &str = "/home/dev/project";
pub(crate) const OUT: &str = "/home/dev/outside";

/// A rule without examples.
pub(crate) fn rule(answer: Answer, pattern: &str) -> CommandRule {
    CommandRule {
        pattern: pattern.to_owned(),
        matches: Vec::new(),
        not_matches: Vec::new(),
        reason: String::new(),
        answer,
    }
}

/// Judges a line in the workspace's directory `cwd`, by rules of `[commands]`.
pub(crate) fn judged_in(cwd: &str, rules: &[CommandRule], line: &str) -> Judgement {
    let classes = ClassRules::default();
    let class = |path: &RelPath| -> PathClass { classes.classify(path).class };
    let writable = ["/home/dev/.cache/tool".to_owned()];
    let around = Surroundings {
        root: ROOT,
        cwd: &RelPath::parse(cwd).unwrap(),
        home: Some("/home/dev"),
        writable: &writable,
        class: &class,
    };
    judge(line, &Rules::new(rules).unwrap(), &around)
}

/// Judges a line in the root, without rules.
pub(crate) fn judged(line: &str) -> Judgement {
    judged_in(".", &[], line)
}

/// One word for a verdict.
pub(crate) fn verdict(judgement: &Judgement) -> &'static str {
    match judgement.verdict {
        Verdict::ReadOnly => "read-only",
        Verdict::Ordinary => "ordinary",
        Verdict::Allowed => "allowed",
        Verdict::Ask { .. } => "ask",
        Verdict::Deny { .. } => "deny",
    }
}

/// Asserts one verdict for many lines.
#[track_caller]
pub(crate) fn all(expected: &str, lines: &[&str]) {
    let wrong = |line: &&&str| verdict(&judged(line)) != expected;
    let told = |line: &&str| format!("{line}: {:?}", judged(line));
    let wrong: Vec<String> = lines.iter().filter(wrong).map(told).collect();
    assert!(wrong.is_empty(), "not {expected}:\n{}", wrong.join("\n"));
}
