//! `[commands]` rules: patterns, examples, strictness.

use cotenant_model::{Answer, CommandRule};
use cotenant_shell::policy::{Rules, Verdict};

use super::{judged_in, rule, verdict};

#[track_caller]
fn with(rules: &[(Answer, &str)], line: &str, expected: &str) {
    let rules: Vec<CommandRule> = rules.iter().map(|(answer, pattern)| rule(*answer, pattern)).collect();
    let judgement = judged_in(".", &rules, line);
    assert_eq!(verdict(&judgement), expected, "{line}: {judgement:?}");
}

#[test]
fn a_pattern_fits_words() {
    let deny = |pattern, line, expected| with(&[(Answer::Deny, pattern)], line, expected);
    deny("npm publish *", "npm publish", "deny");
    deny("npm publish *", "npm publish --tag x", "deny");
    deny("npm publish *", "npm pub", "ordinary");
    deny("npm publish", "npm publish --tag x", "ordinary");
    deny("npm *", "npm", "deny");
    deny("rm *", "/bin/rm x", "deny");
    deny("rm *", "r''m x", "deny");
    deny("rm *", "a=rm; $a x", "deny");
    deny("/bin/rm *", "rm x", "ordinary");
    deny("/bin/rm *", "/bin/rm x", "deny");
    deny("git commit -m 'a b'", "git commit -m \"a b\"", "deny");
    deny("git push *", "git -C sub -c a=b push origin", "deny");
    deny("git push *", "sh -c 'git push'", "deny");
    deny("touch *", "find . -name x | xargs touch", "deny");
    deny("touch *", "echo $(touch x)", "deny");
    deny("npm *", "cd x && (true; timeout 5 npm test) | tail", "deny");
    deny("npm *", "echo npm test", "read-only");
}

#[test]
fn a_word_that_cannot_be_seen_may_be_the_denied_one() {
    with(&[(Answer::Deny, "git push --force")], "git push $x", "ask");
    with(&[(Answer::Deny, "git push --force")], "git pull $x", "ordinary");
    with(&[(Answer::Deny, "rm -rf x")], "xargs rm", "ask");
    with(&[(Answer::Deny, "rm *")], "xargs rm", "deny");
}

#[test]
fn the_strictest_answer_of_all_parts_wins() {
    let rules = [(Answer::Deny, "npm publish *"), (Answer::Ask, "npm install *"), (Answer::Allow, "npm *")];
    with(&rules, "npm test", "allowed");
    with(&rules, "npm test && ls -la", "allowed");
    with(&rules, "npm install", "ask");
    with(&rules, "npm install && npm publish", "deny");
    with(&rules, "npm test && make", "ordinary");
    with(&rules, "npm test > log", "ordinary");
    with(&rules, "npm test 2>&1 > /dev/null", "allowed");
    with(&rules, "A=1 npm test", "ordinary");
    with(&rules, "npm test $x", "ordinary");
    with(&rules, "npm test $(ls)", "ordinary");
    with(&rules, "npm() { rm x; }; npm test", "ordinary");
    with(&rules, "npm test; 'open", "ask");
    with(&rules, "timeout 60 npm test", "allowed");
    with(&rules, "timeout 60 make", "ordinary");
    with(&rules, "npm test | sh", "ordinary");
}

#[test]
fn a_refusal_names_part_rule_and_reason() {
    let mut first = rule(Answer::Deny, "npm *");
    first.reason = "Use pnpm.".to_owned();
    let rules = [first, rule(Answer::Deny, "yarn *"), rule(Answer::Ask, "make *")];
    let deny = |line: &str| match judged_in(".", &rules, line).verdict {
        Verdict::Deny { part, rule, why, .. } => (part, rule, why),
        other => panic!("{other:?}"),
    };
    let text = |text: &str| text.to_owned();
    assert_eq!(deny("ls; npm i"), (text("npm i"), text("commands.deny[0]"), text("Use pnpm.")));
    assert_eq!(deny("yarn"), (text("yarn"), text("commands.deny[1]"), text("commands.deny[1] denies it")));
    let Verdict::Ask { why } = judged_in(".", &rules, "make all").verdict else { panic!() };
    assert_eq!(why, ["`make all` is asked about by commands.ask[0]"]);
}

#[test]
fn rules_are_tried_on_their_examples() {
    let error = |change: fn(&mut CommandRule)| {
        let mut last = rule(Answer::Deny, "git push *");
        change(&mut last);
        Rules::new(&[rule(Answer::Deny, "a"), rule(Answer::Ask, "b"), last]).map(|_| ()).unwrap_err()
    };
    assert_eq!(
        error(|rule| rule.matches = vec!["git push".to_owned(), "git pull".to_owned()]),
        "commands.deny[1]: the pattern `git push *` does not fit its example `git pull`"
    );
    assert_eq!(
        error(|rule| rule.not_matches = vec!["git pull".to_owned(), "cd x; git push".to_owned()]),
        "commands.deny[1]: the pattern `git push *` fits its example `cd x; git push`"
    );
    assert_eq!(
        error(|rule| rule.matches = vec!["git 'push".to_owned()]),
        "commands.deny[1]: the example `git 'push`: a single quote does not end"
    );
    assert_eq!(
        error(|rule| rule.pattern = "  ".to_owned()),
        "commands.deny[1]: the pattern `  `: it is empty"
    );
    for (pattern, why) in [
        ("*", "commands.deny[1]: the pattern `*` names no program"),
        ("a; b", "commands.deny[1]: the pattern `a; b` is not one command"),
        ("a $x", "commands.deny[1]: the pattern `a $x` is no plain words"),
        ("a > b", "commands.deny[1]: the pattern `a > b` is no plain words"),
        ("X=1 a", "commands.deny[1]: the pattern `X=1 a` is no plain words"),
        ("a (", "commands.deny[1]: the pattern `a (`: a bracket or compound command is not closed"),
    ] {
        let mut last = rule(Answer::Deny, pattern);
        last.reason = "x".to_owned();
        assert_eq!(Rules::new(&[rule(Answer::Deny, "a"), last]).map(|_| ()).unwrap_err(), why);
    }
    assert!(Rules::new(&[rule(Answer::Deny, "env *"), rule(Answer::Allow, "rm -rf *")]).is_ok());
}
