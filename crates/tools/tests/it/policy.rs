//! What goes around a plan: profiles, rules, dry runs, keys that come twice, and the human's answer.

use std::sync::Barrier;

use cotenant_model::{AgentRule, Answer, ApprovalRule, Profile, Settings, ToolSet};
use cotenant_tools::host::{Hello, Host};
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact, next_calls};

/// One call of each kind of change, on a workspace that [`ready`] prepared: tool, arguments, and whether it only creates.
fn mutations() -> Vec<(&'static str, Value, bool)> {
    vec![
        ("edit_file", json!({"path": "a", "old_text": "one", "new_text": "1"}), false),
        ("edit_file", json!({"path": "new/e", "old_text": "", "new_text": "x"}), true),
        ("write_file", json!({"path": "a", "content": "2\n", "overwrite": true}), false),
        ("write_file", json!({"path": "new/w", "content": "x"}), true),
        ("create_path", json!({"path": "new/c"}), true),
        ("create_path", json!({"path": "new/d/"}), true),
        ("undo", json!({"change": "c1"}), false),
    ]
}

fn ready(settings: Settings) -> Fixture {
    let f = Fixture::with(settings);
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let maker = f.toolbox.open(&Hello {
        agent: Some("agent-a".to_owned()),
        profile: Some(Profile::Trusting),
        ..Hello::default()
    });
    f.ok_as(maker.unwrap(), "write_file", json!({"path": "made", "content": "x\n"}));
    f
}

fn state(f: &Fixture) -> (String, bool, bool) {
    (f.get("a"), f.has("made"), f.has("new"))
}

#[test]
fn each_profile_answers_each_kind_of_change() {
    for profile in [Profile::ReadOnly, Profile::Careful, Profile::Trusting] {
        for (tool, args, creates) in mutations() {
            let f = ready(Settings { profile, ..Settings::default() });
            let before = state(&f);
            let answer = f.call(tool, args.clone());
            let case = format!("{} {tool} {args}: {}", profile.name(), answer.text);
            match (profile, creates) {
                (Profile::ReadOnly, _) => assert!(answer.text.starts_with("PROFILE_READ_ONLY"), "{case}"),
                (Profile::Careful, false) => {
                    assert!(!answer.is_error && answer.text.starts_with("APPROVAL_PENDING"), "{case}");
                }
                _ => assert!(!answer.is_error && fact(&answer.text, "change").is_some(), "{case}"),
            }
            let landed = fact(&answer.text, "change").is_some();
            assert_eq!(state(&f) != before, landed, "{case}");
        }
    }
}

#[test]
fn a_dry_run_of_any_change_shows_it_and_does_nothing() {
    for profile in [Profile::Careful, Profile::Trusting] {
        for (tool, mut args, creates) in mutations() {
            let f = ready(Settings { profile, ..Settings::default() });
            let (before, changes) = (state(&f), f.changes());
            args["dry_run"] = true.into();
            let dry = f.ok(tool, args.clone());
            assert_eq!(fact(&dry, "dry_run").as_deref(), Some("yes"), "{dry}");
            assert_eq!((fact(&dry, "change"), fact(&dry, "digest")), (None, None), "{dry}");
            assert!(body(&dry).contains("+++") || body(&dry).contains("new directory"), "{tool}: {dry}");
            assert_eq!((state(&f), f.changes()), (before.clone(), changes), "{tool}: {dry}");
            assert!(f.toolbox.waiting().is_empty(), "nobody is asked about a rehearsal");
            // And its token does what was shown, by the rules of the profile.
            let done = f.retry(&dry);
            let landed = fact(&done.text, "change").is_some();
            assert_eq!(landed, creates || profile == Profile::Trusting, "{tool}: {}", done.text);
            assert_eq!(state(&f) != before, landed, "{tool}: {}", done.text);
        }
    }
}

fn rule(tool: Option<&str>, paths: &[&str], answer: Answer) -> ApprovalRule {
    ApprovalRule {
        tool: tool.map(str::to_owned),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        answer,
    }
}

#[test]
fn rules_narrow_and_widen_the_profile_and_the_strictest_wins() {
    let allow_docs = rule(None, &["docs/**"], Answer::Allow);
    let deny_locked = rule(None, &["**/*.locked"], Answer::Deny);
    let ask_edits = rule(Some("edit_file"), &[], Answer::Ask);
    for (profile, rules, path, wanted) in [
        (Profile::Careful, vec![allow_docs.clone()], "docs/a", "path="),
        (Profile::Careful, vec![allow_docs.clone()], "src/a", "APPROVAL_PENDING"),
        (Profile::Trusting, vec![deny_locked.clone()], "src/a.locked", "APPROVAL_DENIED"),
        (Profile::Trusting, vec![deny_locked.clone()], "src/a", "path="),
        (Profile::Careful, vec![allow_docs.clone(), deny_locked], "docs/a.locked", "APPROVAL_DENIED"),
        (Profile::Trusting, vec![ask_edits.clone()], "src/a", "APPROVAL_PENDING"),
        (Profile::Careful, vec![allow_docs.clone(), ask_edits], "docs/a", "APPROVAL_PENDING"),
        (Profile::ReadOnly, vec![allow_docs.clone()], "docs/a", "PROFILE_READ_ONLY"),
        (Profile::Trusting, vec![allow_docs], "AGENTS.md", "APPROVAL_PENDING"),
    ] {
        let f = Fixture::with(Settings { profile, approval_rules: rules.clone(), ..Settings::default() });
        f.put(path, "one\n");
        f.ok("read_file", json!({"path": path}));
        let answer = f.call("edit_file", json!({"path": path, "old_text": "one", "new_text": "two"}));
        assert!(answer.text.starts_with(wanted), "{} {rules:?} {path}: {}", profile.name(), answer.text);
        assert_eq!(f.get(path) == "two\n", wanted == "path=", "{path}");
    }
}

#[test]
fn what_the_settings_say_of_an_agent_is_only_narrowed_by_its_flags() {
    let rule = AgentRule {
        profile: Some(Profile::Careful),
        tools: Some(vec![ToolSet::Core, ToolSet::History]),
        ..AgentRule::default()
    };
    let f = Fixture::with(Settings { agents: [("x".to_owned(), rule)].into(), ..Settings::default() });
    f.put("a", "one\n");
    let open = |profile: Option<Profile>, tools: Option<Vec<ToolSet>>| {
        f.toolbox.open(&Hello { agent: Some("x".to_owned()), profile, tools, ..Hello::default() }).unwrap()
    };
    for (asked, given) in [
        (None, "careful"),
        (Some(Profile::Trusting), "careful"),
        (Some(Profile::Careful), "careful"),
        (Some(Profile::ReadOnly), "readonly"),
    ] {
        let me = f.ok_as(open(asked, None), "whoami", json!({}));
        assert_eq!(fact(&me, "profile").as_deref(), Some(given), "{asked:?}");
    }
    let names = |session| {
        let tools = f.toolbox.tools(session);
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = names(open(None, None));
    assert!(all.contains(&"history".to_owned()) && !all.contains(&"create_path".to_owned()), "{all:?}");
    let wanted = names(open(None, Some(vec![ToolSet::Organise, ToolSet::History])));
    assert_eq!(wanted, ["history", "show_change", "rewind", "list_trash", "restore_file"]);
    let session = open(None, Some(vec![ToolSet::Core]));
    let refused = f.call_as(session, "history", json!({}));
    assert!(
        refused.text.starts_with("BAD_INPUT tool=history"),
        "a tool outside of the list: {}",
        refused.text
    );
    assert!(f.toolbox.instructions(session).contains("run_command"));
    let organising = open(None, Some(vec![ToolSet::Organise]));
    assert!(!f.toolbox.instructions(organising).contains("run_command"), "only tools that there are");
}

#[test]
fn a_key_in_flight_twice_has_one_effect_and_one_answer() {
    let f = Fixture::new();
    let twin = f.session("agent-a");
    let args = json!({"path": "k", "content": "v\n", "idempotency_key": "K"});
    let gate = Barrier::new(4);
    let answers: Vec<String> = std::thread::scope(|scope| {
        let one = |session| {
            let (f, gate, args) = (&f, &gate, args.clone());
            scope.spawn(move || {
                gate.wait();
                f.call_as(session, "write_file", args).text
            })
        };
        let threads: Vec<_> = [f.session, twin, f.session, twin].into_iter().map(one).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(
        answers.iter().all(|answer| *answer == answers[0] && answer.contains("created=yes")),
        "{answers:?}"
    );
    assert_eq!(f.changes().len(), 1);
    // Another agent's key is another key.
    let other = f.session("agent-b");
    let answer = f.call_as(other, "write_file", args);
    assert!(answer.text.starts_with("ALREADY_EXISTS"), "{}", answer.text);
}

#[test]
fn a_final_refusal_is_kept_under_its_key_a_passing_one_is_not() {
    let f = Fixture::careful();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let miss = json!({"path": "a", "old_text": "zzz", "new_text": "1", "idempotency_key": "miss"});
    let first = f.no("TEXT_NOT_FOUND", "edit_file", miss.clone());
    f.put("a", "zzz\n");
    assert_eq!(f.call("edit_file", miss).text, first, "the first answer, whatever has become of the file");
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let keyed = json!({"path": "a", "old_text": "one", "new_text": "two", "idempotency_key": "ask"});
    let pending = f.no("APPROVAL_PENDING", "edit_file", keyed.clone());
    let again = f.no("APPROVAL_PENDING", "edit_file", keyed.clone());
    assert_eq!(fact(&again, "id"), fact(&pending, "id"), "the same question");
    assert_eq!(f.toolbox.waiting().len(), 1);
    let mut other = keyed.clone();
    other["new_text"] = "three".into();
    f.no("BAD_INPUT", "edit_file", other);
    let id = fact(&pending, "id").unwrap().parse().unwrap();
    f.toolbox.approve(id, &fact(&pending, "digest").unwrap()).unwrap();
    let landed = f.call("edit_file", keyed.clone());
    assert!(landed.text.contains("match=exact change=c1"), "{}", landed.text);
    assert_eq!(f.call("edit_file", keyed).text, landed.text);
    assert_eq!(f.changes().len(), 1);
}

#[test]
fn a_no_is_final_under_its_key() {
    let f = Fixture::careful();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let keyed = json!({"path": "a", "old_text": "one", "new_text": "two", "idempotency_key": "ask"});
    let pending = f.no("APPROVAL_PENDING", "edit_file", keyed.clone());
    let id = fact(&pending, "id").unwrap().parse().unwrap();
    f.toolbox.deny(id, None, "not now").unwrap();
    let denied = f.no("APPROVAL_DENIED", "edit_file", keyed.clone());
    assert!(denied.contains("not now"), "{denied}");
    assert_eq!(
        crate::fixture::body(&f.no("APPROVAL_DENIED", "edit_file", keyed)),
        crate::fixture::body(&denied)
    );
    assert!(f.toolbox.waiting().is_empty(), "nobody is asked again");
}

#[test]
fn a_replay_has_the_fields_of_the_first_answer() {
    let f = Fixture::new();
    let program =
        f.toolbox.open(&Hello { agent: Some("p".to_owned()), structured: true, ..Hello::default() }).unwrap();
    let args = json!({"path": "k", "content": "v\n", "idempotency_key": "K"});
    let first = f.call_as(program, "write_file", args.clone());
    let again = f.call_as(program, "write_file", args);
    assert_eq!(again.text, first.text);
    let fields = again.structured.unwrap();
    assert_eq!(fields["path"], json!("k"));
    assert_eq!(fields["text"], json!(again.text));
    assert_eq!(again.meta["cotenant/facts"], first.meta["cotenant/facts"]);
}

#[test]
fn a_reviewer_who_is_there_is_waited_for() {
    let f = Fixture::careful();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    f.toolbox.workspace().coord().reviewer_came();
    let answer = std::thread::scope(|scope| {
        let call =
            scope.spawn(|| f.call("edit_file", json!({"path": "a", "old_text": "one", "new_text": "two"})));
        let question = loop {
            if let Some(question) = f.toolbox.waiting().into_iter().next() {
                break question;
            }
            std::thread::yield_now();
        };
        f.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
        call.join().unwrap()
    });
    assert!(
        answer.text.starts_with("path=a edited=1-1") && answer.text.contains("change=c1"),
        "{}",
        answer.text
    );
    f.toolbox.workspace().coord().reviewer_went();
    let alone =
        f.no("APPROVAL_PENDING", "edit_file", json!({"path": "a", "old_text": "two", "new_text": "3"}));
    assert_eq!(fact(&alone, "reviewer").as_deref(), Some("none"), "{alone}");
}

#[test]
fn a_question_names_its_paths_and_its_token() {
    let f = Fixture::careful();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    f.ok("write_file", json!({"path": "n/x", "content": "1"}));
    let edit = f.no(
        "APPROVAL_PENDING id=a1 kind=edit_file path=a waited_s=0 reviewer=none digest=",
        "edit_file",
        json!({"path": "a", "old_text": "one", "new_text": "two"}),
    );
    assert!(edit.contains("`cotenant approve a1`"), "{edit}");
    let undo = f.no("APPROVAL_PENDING id=a2 kind=undo paths=", "undo", json!({}));
    assert!(fact(&undo, "paths").unwrap().contains("n/x"), "{undo}");
    let waiting = f.toolbox.waiting();
    assert_eq!(waiting.len(), 2);
    assert!(waiting[0].plan.diff.contains("-one\n+two"), "the human sees the diff: {}", waiting[0].plan.diff);
    let me = f.ok("whoami", json!({}));
    assert!(me.contains("pending: a1 edit_file a, nobody reviewing, retry r"), "{me}");
    assert!(next_calls(&edit).is_empty() || next_calls(&edit)[0].0 == "retry");
}

#[test]
fn a_change_that_no_longer_fits_is_stale_and_may_be_asked_again() {
    let f = Fixture::careful();
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    let pending =
        f.no("APPROVAL_PENDING", "edit_file", json!({"path": "a", "old_text": "one", "new_text": "two"}));
    f.put("a", "quite another\n");
    let id = fact(&pending, "id").unwrap().parse().unwrap();
    let outcome = f.toolbox.approve(id, &fact(&pending, "digest").unwrap());
    assert!(matches!(outcome, Err(cotenant_tools::NotAnswered::Stale)), "{outcome:?}");
    let stale = f.retry(&pending);
    assert!(stale.is_error && stale.text.starts_with("APPROVAL_STALE id=a1"), "{}", stale.text);
    f.put("a", "one\n");
    f.ok("read_file", json!({"path": "a"}));
    assert!(f.retry(&stale.text).text.starts_with("APPROVAL_PENDING id=a2"));
    assert_eq!(f.get("a"), "one\n");
}
