//! The verdict over a plan: path classes, profile, plan mode and approval rules. The strictest of what applies wins.
//!
//! What no rule can lift: protected and generated paths, folders allowed for reading, the profile `readonly`, plan
//! mode; and the question about a sensitive path or about taking back another's change. An `allow` rule lifts only
//! what a profile would ask, and only for the paths that it names; an `ask` or a `deny` rule wins over it.

use cotenant_model::{
    Answer, ApprovalRule, ClassHit, Code, FileOp, FolderId, Folders, Op, PathClass, Plan, Profile, Refusal,
    WsPath,
};
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

/// What becomes of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may land.
    Allow,
    /// A human decides.
    Ask,
    /// It may not.
    Refuse(Refusal),
}

/// What the verdict rests on, beside the plan.
#[derive(Clone, Copy, Debug)]
pub struct JudgeFacts<'a> {
    /// The session's profile.
    pub profile: Profile,
    /// `[approvals] rules`.
    pub rules: &'a ApprovalRules,
    /// The class of each operation's path, in the order of the plan; the stricter of the path as asked and as resolved.
    /// An operation without one is asked about.
    pub classes: &'a [ClassHit],
    /// Further paths that the plan touches: those below a moved directory, at both ends. Rules hold for them, too.
    pub also: &'a [WsPath],
    /// How paths are shown.
    pub folders: &'a Folders,
    /// The folders allowed for reading only.
    pub read_only: &'a [FolderId],
    /// Every change is refused until a human approves a plan.
    pub plan_mode: bool,
    /// The change that the plan takes back is the agent's own; of no matter for other plans.
    pub own_change: bool,
    /// Every pre-image will be kept, so that the change can be undone.
    pub undoable: bool,
}

/// `[approvals] rules`, compiled.
#[derive(Clone, Debug, Default)]
pub struct ApprovalRules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    tool: Option<String>,
    /// Per folder its patterns; `None` for all paths.
    paths: Option<Vec<(FolderId, GlobSet)>>,
    answer: Answer,
}

impl Rule {
    fn fits(&self, tool: &str, at: &WsPath) -> bool {
        let path = Candidate::from_bytes(at.path.as_bytes());
        self.tool.as_deref().is_none_or(|wanted| wanted == tool)
            && self.paths.as_ref().is_none_or(|sets| {
                sets.iter().any(|(folder, set)| *folder == at.folder && set.is_match_candidate(&path))
            })
    }
}

impl ApprovalRules {
    /// Compiles the rules. A pattern is about the served root, `NAME:pattern` about that folder; one that ends in `/`
    /// covers the directory and all below it, any other a file. The error names the pattern that does not parse.
    pub fn new(rules: &[ApprovalRule], folders: &Folders) -> Result<ApprovalRules, String> {
        let compile = |rule: &ApprovalRule| {
            let sets =
                rule.paths.iter().map(|pattern| compiled(pattern, folders)).collect::<Result<_, String>>()?;
            Ok(Rule {
                tool: rule.tool.clone(),
                paths: if rule.paths.is_empty() { None } else { Some(sets) },
                answer: rule.answer,
            })
        };
        rules.iter().map(compile).collect::<Result<_, String>>().map(ApprovalRules)
    }

    /// The strictest answer of the rules that fit, and the number of the first that gives it, from 0.
    pub fn answer(&self, tool: &str, at: &WsPath) -> Option<(Answer, usize)> {
        let fitting = self.0.iter().enumerate().filter(|(_, rule)| rule.fits(tool, at));
        fitting
            .map(|(index, rule)| (rule.answer, index))
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
    }
}

fn compiled(pattern: &str, folders: &Folders) -> Result<(FolderId, GlobSet), String> {
    let named = pattern.split_once(':').and_then(|(name, rest)| Some((folders.by_name(name)?, rest)));
    let (folder, glob) = named.unwrap_or((FolderId::ROOT, pattern));
    let inside = glob.strip_prefix("./").unwrap_or(glob);
    if inside.is_empty() || inside.starts_with('/') {
        return Err(format!("{pattern:?}: not a pattern relative to a folder"));
    }
    let directory = inside.strip_suffix('/');
    let mut set = GlobSetBuilder::new();
    let forms =
        directory.map_or_else(|| vec![inside.to_owned()], |dir| vec![dir.to_owned(), format!("{dir}/**")]);
    for form in forms {
        let glob = GlobBuilder::new(&form).literal_separator(true).backslash_escape(true).build();
        set.add(glob.map_err(|error| format!("{pattern:?}: {}", error.kind()))?);
    }
    Ok((folder, set.build().map_err(|error| format!("{pattern:?}: {error}"))?))
}

/// Judges a plan. Pure: the same plan and facts give the same verdict.
pub fn judge(plan: &Plan, facts: &JudgeFacts<'_>) -> Verdict {
    let refusal = refuse_protected(plan, facts)
        .or_else(|| refuse_mode(plan, facts))
        .or_else(|| refuse_read_only(plan, facts))
        .or_else(|| refuse_rule(plan, facts));
    if let Some(refusal) = refusal {
        return Verdict::Refuse(refusal);
    }
    let foreign = plan.undoes.is_some() && !facts.own_change;
    let ruled =
        |at: &WsPath| facts.rules.answer(&plan.tool, at).is_some_and(|(answer, _)| answer != Answer::Allow);
    let asked = foreign
        || facts.also.iter().any(ruled)
        || plan.ops.iter().enumerate().any(|(index, op)| asks(plan, index, op, facts));
    if asked { Verdict::Ask } else { Verdict::Allow }
}

/// Whether one operation is a matter for a human.
fn asks(plan: &Plan, index: usize, op: &FileOp, facts: &JudgeFacts<'_>) -> bool {
    let sensitive = facts.classes.get(index).is_none_or(|hit| hit.class == PathClass::Sensitive);
    let by_profile = !facts.undoable || facts.profile == Profile::Careful && changes(op);
    // Of a move both ends count: an `allow` lifts the question only where it holds for either.
    let mut answers = op.paths().map(|at| facts.rules.answer(&plan.tool, at).map(|(answer, _)| answer));
    let by_rule = answers.clone().flatten().any(|answer| answer != Answer::Allow);
    sensitive || by_rule || by_profile && !answers.all(|answer| answer == Some(Answer::Allow))
}

/// Whether it changes something that stands already, or makes something that can be run.
fn changes(op: &FileOp) -> bool {
    match &op.op {
        Op::MakeDir { .. } => false,
        Op::Create { new, .. } => new.mode.is_some_and(|mode| mode & 0o111 != 0),
        _ => true,
    }
}

fn refuse_protected(plan: &Plan, facts: &JudgeFacts<'_>) -> Option<Refusal> {
    let (op, hit) = classed(plan, facts, PathClass::Protected)?;
    Some(protected(&facts.folders.show(&op.at), hit))
}

fn refuse_mode(plan: &Plan, facts: &JudgeFacts<'_>) -> Option<Refusal> {
    let refuse = |code, why: &str| {
        let refusal = Refusal::new(code, why).fact("tool", &*plan.tool);
        match plan.ops.first() {
            Some(op) => refusal.fact("path", facts.folders.show(&op.at)),
            None => refusal,
        }
    };
    if facts.profile == Profile::ReadOnly {
        let why = "The profile readonly refuses every change; nothing was written.";
        let next = "go on reading and searching, and tell the user what you would change";
        return Some(refuse(Code::ProfileReadOnly, why).next(next));
    }
    facts.plan_mode.then(|| {
        let why = "Plan mode is on until a human approves a plan; nothing was written. Reading, searching and \
                   dry_run work.";
        refuse(Code::PlanMode, why).next("go on reading and searching, and tell the user what you plan to change")
    })
}

fn refuse_read_only(plan: &Plan, facts: &JudgeFacts<'_>) -> Option<Refusal> {
    if let Some((op, hit)) = classed(plan, facts, PathClass::Generated) {
        return Some(generated(&facts.folders.show(&op.at), hit));
    }
    let mut paths = plan.ops.iter().flat_map(FileOp::paths);
    let at = paths.find(|at| facts.read_only.contains(&at.folder))?;
    Some(read_only(&facts.folders.show(at), facts.folders.name(at.folder)))
}

/// `PATH_READ_ONLY` in a folder that is allowed for reading only.
pub fn read_only(path: &str, folder: &str) -> Refusal {
    let why = format!("The folder {folder:?} is allowed for reading only; nothing was written.");
    Refusal::new(Code::PathReadOnly, why)
        .fact("path", path)
        .fact("class", "folder")
        .fact("rule", "access = \"read\"")
        .next("write below the root, or ask the user to allow writing there")
}

fn refuse_rule(plan: &Plan, facts: &JudgeFacts<'_>) -> Option<Refusal> {
    let denied = |at: &WsPath| match facts.rules.answer(&plan.tool, at) {
        Some((Answer::Deny, index)) => Some((facts.folders.show(at), index)),
        _ => None,
    };
    let (path, index) = plan.ops.iter().flat_map(FileOp::paths).chain(facts.also).find_map(denied)?;
    let rule = format!("approvals.rules[{index}]");
    let why = format!("A rule of cotenant.toml denies {} on {path}; nothing was written.", plan.tool);
    Some(
        Refusal::new(Code::ApprovalDenied, why)
            .fact("tool", &*plan.tool)
            .fact("path", path)
            .fact("rule", rule)
            .next("leave this path as it is, or tell the user what you would change there"),
    )
}

/// The first operation whose path is of that class.
fn classed<'a>(
    plan: &'a Plan,
    facts: &JudgeFacts<'a>,
    class: PathClass,
) -> Option<(&'a FileOp, &'a ClassHit)> {
    plan.ops.iter().zip(facts.classes).find(|(_, hit)| hit.class == class)
}

/// `PATH_PROTECTED` of a path as it is shown, for reading and writing alike.
pub fn protected(path: &str, hit: &ClassHit) -> Refusal {
    let why = format!("The rule {} protects {path}: it is neither read nor written.", hit.rule);
    Refusal::new(Code::PathProtected, why)
        .fact("path", path)
        .fact("class", "protected")
        .fact("rule", hit.rule.as_str())
        .next("go on without it, or tell the user what you need of it; another tool is refused too")
}

/// `PATH_READ_ONLY` of a generated file, with its generator as the next step.
pub fn generated(path: &str, hit: &ClassHit) -> Refusal {
    let made = match (&hit.from, &hit.command) {
        (Some(from), Some(command)) => format!("This file is generated from {from} by `{command}`"),
        (Some(from), None) => format!("This file is generated from {from}"),
        (None, Some(command)) => format!("This file is generated by `{command}`"),
        (None, None) => "This file is generated".to_owned(),
    };
    let source = hit.from.as_deref().unwrap_or("what it is generated from");
    let next = match &hit.command {
        Some(command) => format!("edit {source}, then have `{command}` run"),
        None => format!("edit {source}, then have it generated anew"),
    };
    Refusal::new(Code::PathReadOnly, format!("{made}; hand edits would be lost."))
        .fact("path", path)
        .fact("class", "generated")
        .fact("rule", hit.rule.as_str())
        .next(next)
}
