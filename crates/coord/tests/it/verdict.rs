//! The verdict: profiles, classes, rules, and what none of them can lift.

use cotenant_coord::{ApprovalRules, JudgeFacts, Verdict, judge};
use cotenant_model::{
    Answer, ApprovalRule, ChangeId, ClassHit, Code, Digest, Entry, FolderId, Moved, Op, PathClass, Plan,
    Profile, Refusal,
};

use crate::kit::{at, create, delete, docs, edit, folders, plan, replace};

use Answer::{Allow, Ask, Deny};
use Profile::{Careful, ReadOnly, Trusting};

fn rule(tool: Option<&str>, paths: &[&str], answer: Answer) -> ApprovalRule {
    ApprovalRule {
        tool: tool.map(str::to_owned),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        answer,
    }
}

fn compiled(rules: &[ApprovalRule]) -> ApprovalRules {
    ApprovalRules::new(rules, &folders()).unwrap()
}

/// The verdict on `plan`; `change` alters the facts from: careful, no rules, ordinary paths, everything undoable.
fn verdict(plan: &Plan, rules: &[ApprovalRule], change: impl FnOnce(&mut JudgeFacts<'_>)) -> Verdict {
    let rules = compiled(rules);
    let folders = folders();
    let classes = vec![ClassHit::ordinary(); plan.ops.len()];
    let mut facts = JudgeFacts {
        profile: Careful,
        rules: &rules,
        classes: &classes,
        also: &[],
        folders: &folders,
        read_only: &[],
        plan_mode: false,
        own_change: true,
        undoable: true,
    };
    change(&mut facts);
    judge(plan, &facts)
}

fn with_class(plan: &Plan, profile: Profile, rules: &[ApprovalRule], hit: ClassHit) -> Verdict {
    let classes = vec![hit; plan.ops.len()];
    let rules = compiled(rules);
    let folders = folders();
    let facts = JudgeFacts {
        profile,
        rules: &rules,
        classes: &classes,
        also: &[],
        folders: &folders,
        read_only: &[],
        plan_mode: false,
        own_change: true,
        undoable: true,
    };
    judge(plan, &facts)
}

fn refused(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Refuse(refusal) => refusal,
        other => panic!("{other:?} is no refusal"),
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Refuse(refusal) => refusal.code.name(),
    }
}

#[test]
fn each_profile_on_each_operation() {
    let on = |op: Op| plan("a_tool", vec![(at("f"), op)]);
    for (op, careful, trusting) in [
        (create("x"), "allow", "allow"),
        (Op::MakeDir { mode: None }, "allow", "allow"),
        (replace("a", "b"), "ask", "allow"),
        (delete("a"), "ask", "allow"),
        (Op::RemoveDir, "ask", "allow"),
    ] {
        let plan = on(op);
        for (profile, expected) in [(Careful, careful), (Trusting, trusting), (ReadOnly, "PROFILE_READ_ONLY")]
        {
            let verdict = verdict(&plan, &[], |facts| facts.profile = profile);
            assert_eq!(word(&verdict), expected, "{profile:?} {plan:?}");
        }
    }
}

#[test]
fn the_strictest_operation_of_a_plan_decides() {
    let mixed = plan("apply_patch", vec![(at("new"), create("x")), (at("old"), replace("a", "b"))]);
    assert_eq!(verdict(&mixed, &[], |_| {}), Verdict::Ask);
    let allow_old = [rule(None, &["old"], Allow)];
    assert_eq!(verdict(&mixed, &allow_old, |_| {}), Verdict::Allow, "what is asked is allowed by rule");
    let allow_new = [rule(None, &["new"], Allow)];
    assert_eq!(verdict(&mixed, &allow_new, |_| {}), Verdict::Ask, "a rule covers the paths it names");
    let deny_new = [rule(None, &["new"], Deny), rule(None, &["old"], Allow)];
    assert_eq!(word(&verdict(&mixed, &deny_new, |_| {})), "APPROVAL_DENIED");
}

#[test]
fn trusting_asks_about_what_cannot_be_undone() {
    let plan = plan("delete_file", vec![(at("huge"), delete("a"))]);
    let trusting = |undoable| {
        verdict(&plan, &[], |facts| {
            facts.profile = Trusting;
            facts.undoable = undoable;
        })
    };
    assert_eq!((trusting(true), trusting(false)), (Verdict::Allow, Verdict::Ask));
}

#[test]
fn rules_by_tool_path_and_strictness() {
    let edit_src = edit("src/a.rs", "a", "b");
    for (rules, careful, trusting) in [
        (vec![rule(Some("edit_file"), &[], Allow)], "allow", "allow"),
        (vec![rule(Some("write_file"), &[], Allow)], "ask", "allow"),
        (vec![rule(None, &["src/**"], Allow)], "allow", "allow"),
        (vec![rule(None, &["src/**"], Ask)], "ask", "ask"),
        (vec![rule(None, &["src/**"], Allow), rule(None, &["**/*.rs"], Ask)], "ask", "ask"),
        (vec![rule(None, &[], Ask), rule(None, &[], Allow)], "ask", "ask"),
        (vec![rule(None, &["tests/**"], Deny)], "ask", "allow"),
        (vec![rule(None, &["src/a.rs"], Deny), rule(None, &[], Allow)], "APPROVAL_DENIED", "APPROVAL_DENIED"),
    ] {
        for (profile, expected) in [(Careful, careful), (Trusting, trusting), (ReadOnly, "PROFILE_READ_ONLY")]
        {
            let verdict = verdict(&edit_src, &rules, |facts| facts.profile = profile);
            assert_eq!(word(&verdict), expected, "{profile:?} {rules:?}");
        }
    }
}

#[test]
fn patterns_of_rules_mean_what_the_contract_says() {
    for (pattern, path, fits) in [
        ("a.rs", at("a.rs"), true),
        ("a.rs", at("src/a.rs"), false),
        ("*.rs", at("a.rs"), true),
        ("*.rs", at("src/a.rs"), false),
        ("**/*.rs", at("src/a.rs"), true),
        ("**/*.rs", at("a.rs"), true),
        ("src", at("src/a.rs"), false),
        ("src/", at("src/a.rs"), true),
        ("src/", at("src/deep/a.rs"), true),
        ("src/", at("src"), true),
        ("src/", at("srcx"), false),
        ("src/**", at("src"), false),
        ("src/?.rs", at("src/a.rs"), true),
        ("src/[ab].rs", at("src/a.rs"), true),
        ("src/[!a].rs", at("src/a.rs"), false),
        ("{src,tests}/*.rs", at("tests/a.rs"), true),
        ("./a.rs", at("a.rs"), true),
        ("a.rs", docs("a.rs"), false),
        ("docs:a.rs", docs("a.rs"), true),
        ("docs:**", docs("x/a.rs"), true),
        ("docs:a.rs", at("a.rs"), false),
        ("other:a.rs", at("other:a.rs"), true),
        ("**", docs("a.rs"), false),
    ] {
        let rules = compiled(&[rule(None, &[pattern], Deny)]);
        let expected = fits.then_some((Deny, 0));
        assert_eq!(rules.answer("any_tool", &path), expected, "{pattern} {path:?}");
    }
}

#[test]
fn a_pattern_that_means_nothing_is_an_error_that_names_it() {
    for pattern in ["a[", "/etc/**", "", "docs:", "{a,b"] {
        let error = ApprovalRules::new(&[rule(None, &[pattern], Deny)], &folders()).unwrap_err();
        assert!(error.contains(&format!("{pattern:?}")), "{error}");
    }
}

#[test]
fn protected_and_generated_paths_are_refused_whatever_allows() {
    let plan = edit("x", "a", "b");
    let allow = [rule(None, &[], Allow)];
    for profile in [Careful, Trusting, ReadOnly] {
        let hit = ClassHit::of(PathClass::Protected, ".env*");
        assert_eq!(word(&with_class(&plan, profile, &allow, hit)), "PATH_PROTECTED", "{profile:?}");
    }
    for profile in [Careful, Trusting] {
        let hit = ClassHit::of(PathClass::Generated, "gen");
        assert_eq!(word(&with_class(&plan, profile, &allow, hit)), "PATH_READ_ONLY", "{profile:?}");
    }
}

#[test]
fn a_sensitive_path_is_always_asked_creation_too() {
    let hit = || ClassHit::of(PathClass::Sensitive, "agents.md");
    let allow = [rule(None, &[], Allow)];
    for op in [create("x"), replace("a", "b"), delete("a"), Op::MakeDir { mode: None }] {
        let plan = plan("write_file", vec![(at("AGENTS.md"), op)]);
        for profile in [Careful, Trusting] {
            assert_eq!(with_class(&plan, profile, &allow, hit()), Verdict::Ask, "{profile:?} {plan:?}");
        }
        assert_eq!(word(&with_class(&plan, ReadOnly, &allow, hit())), "PROFILE_READ_ONLY");
    }
    let deny = [rule(None, &["AGENTS.md"], Deny)];
    let plan = plan("write_file", vec![(at("AGENTS.md"), create("x"))]);
    assert_eq!(word(&with_class(&plan, Trusting, &deny, hit())), "APPROVAL_DENIED");
}

#[test]
fn an_operation_of_unknown_class_is_asked_about() {
    let plan = plan("write_file", vec![(at("f"), create("x"))]);
    assert_eq!(verdict(&plan, &[], |facts| facts.classes = &[]), Verdict::Ask);
}

#[test]
fn plan_mode_blocks_also_what_rules_allow() {
    let allow = [rule(None, &[], Allow)];
    for op in [create("x"), replace("a", "b")] {
        let plan = plan("write_file", vec![(at("f"), op)]);
        let verdict = verdict(&plan, &allow, |facts| {
            facts.plan_mode = true;
            facts.profile = Trusting;
        });
        assert_eq!(word(&verdict), "PLAN_MODE");
    }
}

#[test]
fn taking_back_anothers_change_is_asked_and_no_rule_lifts_it() {
    let mut undo = plan("undo", vec![(at("f"), replace("b", "a"))]);
    undo.undoes = Some(ChangeId(7));
    let allow = [rule(Some("undo"), &[], Allow)];
    for (profile, rules, own, expected) in [
        (Trusting, &[][..], true, Verdict::Allow),
        (Trusting, &[][..], false, Verdict::Ask),
        (Trusting, &allow[..], false, Verdict::Ask),
        (Careful, &[][..], true, Verdict::Ask),
        (Careful, &allow[..], true, Verdict::Allow),
        (Careful, &allow[..], false, Verdict::Ask),
    ] {
        let verdict = verdict(&undo, rules, |facts| {
            facts.profile = profile;
            facts.own_change = own;
        });
        assert_eq!(verdict, expected, "{profile:?} {own}");
    }
    // Of no matter for a plan that takes nothing back.
    let plan = edit("f", "a", "b");
    let verdict = verdict(&plan, &[], |facts| {
        facts.profile = Trusting;
        facts.own_change = false;
    });
    assert_eq!(verdict, Verdict::Allow);
}

#[test]
fn a_folder_allowed_for_reading_is_not_written() {
    let plan = plan("write_file", vec![(at("ok"), create("x")), (docs("a"), create("x"))]);
    let refusal = refused(verdict(&plan, &[rule(None, &[], Allow)], |facts| {
        facts.profile = Trusting;
        facts.read_only = &[FolderId(1)];
    }));
    assert_eq!(refusal.code, Code::PathReadOnly);
    assert_eq!(refusal.get("path"), Some(&"docs:a".into()));
}

#[test]
fn an_empty_plan_changes_nothing() {
    let empty = plan("edit_file", vec![]);
    assert_eq!(verdict(&empty, &[], |_| {}), Verdict::Allow);
    assert_eq!(word(&verdict(&empty, &[], |facts| facts.profile = ReadOnly)), "PROFILE_READ_ONLY");
}

#[test]
fn the_texts_of_refusals() {
    let hit = ClassHit {
        class: PathClass::Generated,
        rule: "cotenant.toml generated: **/*.pb.rs".to_owned(),
        from: Some("proto/api.proto".to_owned()),
        command: Some("buf generate".to_owned()),
    };
    let plan = edit("src/api.pb.rs", "a", "b");
    let generated = refused(with_class(&plan, Careful, &[], hit.clone()));
    assert_eq!(
        generated.to_string(),
        "PATH_READ_ONLY path=src/api.pb.rs class=generated rule=\"cotenant.toml generated: **/*.pb.rs\"\n\
         This file is generated from proto/api.proto by `buf generate`; hand edits would be lost.\n\
         next: edit proto/api.proto, then have `buf generate` run"
    );
    let protected = refused(with_class(&plan, Careful, &[], ClassHit::of(PathClass::Protected, ".env*")));
    assert_eq!(
        protected.to_string(),
        "PATH_PROTECTED path=src/api.pb.rs class=protected rule=.env*\n\
         The rule .env* protects src/api.pb.rs: it is neither read nor written.\n\
         next: go on without it, or tell the user what you need of it; another tool is refused too"
    );
    let denied = refused(verdict(&plan, &[rule(None, &[], Ask), rule(None, &["src/"], Deny)], |_| {}));
    assert_eq!(
        denied.to_string(),
        "APPROVAL_DENIED tool=edit_file path=src/api.pb.rs rule=approvals.rules[1]\n\
         A rule of cotenant.toml denies edit_file on src/api.pb.rs; nothing was written.\n\
         next: leave this path as it is, or tell the user what you would change there"
    );
    let read_only = refused(verdict(&plan, &[], |facts| facts.profile = ReadOnly));
    assert_eq!(
        read_only.to_string(),
        "PROFILE_READ_ONLY tool=edit_file path=src/api.pb.rs\n\
         The profile readonly refuses every change; nothing was written.\n\
         next: go on reading and searching, and tell the user what you would change"
    );
    let planning = refused(verdict(&plan, &[], |facts| facts.plan_mode = true));
    assert_eq!(
        planning.to_string(),
        "PLAN_MODE tool=edit_file path=src/api.pb.rs\n\
         Plan mode is on until a human approves a plan; nothing was written. Reading, searching and dry_run work.\n\
         next: go on reading and searching, and tell the user what you plan to change"
    );
    for (from, command, expected) in [
        (Some("a"), None, "edit a, then have it generated anew"),
        (None, Some("make"), "edit what it is generated from, then have `make` run"),
        (None, None, "edit what it is generated from, then have it generated anew"),
    ] {
        let hit = ClassHit {
            from: from.map(str::to_owned),
            command: command.map(str::to_owned),
            ..ClassHit::of(PathClass::Generated, "r")
        };
        assert_eq!(cotenant_coord::generated("f", &hit).next, expected);
    }
}

#[test]
fn a_move_is_judged_at_both_ends_and_by_every_path_below() {
    let op = Op::Move { to: at("new/b"), what: Moved::Entry(Entry::file(Digest::of(b"x"))), over: None };
    let plan = plan("move_path", vec![(at("old/a"), op)]);
    let also = [at("old/a/secret"), at("new/b/secret")];
    let rules_of = |rules: &[ApprovalRule], profile| {
        let (rules, folders, classes) = (compiled(rules), folders(), [ClassHit::ordinary()]);
        let facts = JudgeFacts {
            profile,
            rules: &rules,
            classes: &classes,
            also: &also,
            folders: &folders,
            read_only: &[],
            plan_mode: false,
            own_change: true,
            undoable: true,
        };
        word(&judge(&plan, &facts))
    };
    for (rules, careful, trusting) in [
        (vec![], "ask", "allow"),
        (vec![rule(None, &["old/**"], Allow)], "ask", "allow"),
        (vec![rule(None, &["old/**", "new/**"], Allow)], "allow", "allow"),
        (vec![rule(None, &["old/*"], Ask)], "ask", "ask"),
        (vec![rule(None, &["new/*"], Ask)], "ask", "ask"),
        (vec![rule(None, &["new/b"], Deny)], "APPROVAL_DENIED", "APPROVAL_DENIED"),
        (vec![rule(None, &["old/a/secret"], Deny)], "APPROVAL_DENIED", "APPROVAL_DENIED"),
        (vec![rule(None, &["new/b/secret"], Deny)], "APPROVAL_DENIED", "APPROVAL_DENIED"),
        (vec![rule(None, &["old/a/secret"], Ask), rule(None, &["old/**", "new/**"], Allow)], "ask", "ask"),
    ] {
        assert_eq!((rules_of(&rules, Careful), rules_of(&rules, Trusting)), (careful, trusting), "{rules:?}");
    }
    let into_docs = Op::Move { to: docs("b"), what: Moved::Entry(Entry::file(Digest::of(b"x"))), over: None };
    let plan = self::plan("move_path", vec![(at("a"), into_docs)]);
    let folder = [docs("b").folder];
    let (rules, folders, classes) = (compiled(&[]), folders(), [ClassHit::ordinary()]);
    let facts = JudgeFacts {
        profile: Trusting,
        rules: &rules,
        classes: &classes,
        also: &[],
        folders: &folders,
        read_only: &folder,
        plan_mode: false,
        own_change: true,
        undoable: true,
    };
    let read_only = judge(&plan, &facts);
    assert_eq!(word(&read_only), "PATH_READ_ONLY");
}
