//! `whoami`, `history`, `show_change`: what a session is told of itself and of what happened.

use cotenant_model::ToolSet;
use cotenant_tools::host::{Hello, Host};
use serde_json::{Value, json};

use crate::fixture::{Fixture, body, fact, notices};

fn history(f: &Fixture, args: Value) -> Vec<String> {
    let listed = f.ok("history", args);
    body(&listed).lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

/// Five changes by two agents in two turns, a minute apart: c1..c3 by agent-a, c4 by agent-b, c5 (second turn) by agent-a.
fn eventful() -> Fixture {
    let f = Fixture::new();
    let other = f.session("agent-b");
    let write = |session, path: &str| {
        f.ok_as(session, "write_file", json!({"path": path, "content": "x\n"}));
        f.pass(60_000);
    };
    write(f.session, "src/a");
    write(f.session, "src/deep/b");
    write(f.session, "docs/c");
    write(other, "src/d");
    f.pass(121_000);
    write(f.session, "srcs");
    f
}

#[test]
fn history_is_filtered_by_each_of_its_arguments() {
    let f = eventful();
    let start = 1_796_053_442_000u64 + 1000;
    let at = |ms: u64| cotenant_model::Millis(start + ms).rfc3339();
    for (args, ids) in [
        (json!({}), vec!["c5", "c4", "c3", "c2", "c1"]),
        (json!({"path": "."}), vec!["c5", "c4", "c3", "c2", "c1"]),
        (json!({"path": "src"}), vec!["c4", "c2", "c1"]),
        (json!({"path": "src/"}), vec!["c4", "c2", "c1"]),
        (json!({"path": "src/deep"}), vec!["c2"]),
        (json!({"path": "src/a"}), vec!["c1"]),
        (json!({"path": "gone"}), vec![]),
        (json!({"agent": "me"}), vec!["c5", "c3", "c2", "c1"]),
        (json!({"agent": "agent-b"}), vec!["c4"]),
        (json!({"agent": "nobody"}), vec![]),
        (json!({"turn": 1}), vec!["c3", "c2", "c1"]),
        (json!({"turn": 2}), vec!["c5"]),
        (json!({"turn": 2, "agent": "agent-b"}), vec!["c4"]),
        (json!({"turn": 1, "agent": "me", "path": "docs"}), vec!["c3"]),
        (json!({"limit": 2}), vec!["c5", "c4"]),
        (json!({"since": "c3"}), vec!["c5", "c4"]),
        (json!({"since": at(120_000)}), vec!["c5", "c4", "c3"]),
        (json!({"since": "2026-11-29"}), vec!["c5", "c4", "c3", "c2", "c1"]),
        (json!({"since": "1d"}), vec!["c5", "c4", "c3", "c2", "c1"]),
        (json!({"since": "200s"}), vec!["c5"]),
        (json!({"since": "4m"}), vec!["c5"]),
        (json!({"since": "5 m"}), vec!["c5", "c4"]),
    ] {
        let mut got = history(&f, args.clone());
        if args.get("since") == Some(&json!("c3")) {
            // Whether the named change itself is listed is no matter here.
            got.retain(|id| id != "c3");
        }
        if args.get("since").is_some_and(|since| since == "4m" || since == "5 m") {
            assert!(got.starts_with(&["c5".to_owned()]) && got.len() <= 2, "{args}: {got:?}");
            continue;
        }
        assert_eq!(got, ids, "{args}");
    }
    for nonsense in ["soon", "h", "-1h", "12", "2026-13-01", "99999999999999999999w"] {
        let refusal = f.no("BAD_INPUT tool=history argument=since", "history", json!({"since": nonsense}));
        assert!(!f.follow(&refusal).is_error, "{refusal}");
    }
    f.no("PATH_OUTSIDE", "history", json!({"path": "../x"}));
    let more = f.ok("history", json!({"limit": 2}));
    assert!(fact(&more, "more").is_some() && notices(&more)[0].contains("after c4"), "{more}");
}

#[test]
fn a_line_of_history_names_what_there_is_to_name() {
    let f = Fixture::new();
    let hello = Hello {
        agent: Some("agent b".to_owned()),
        task: Some("climbing parser".to_owned()),
        tools: Some(ToolSet::ALL.to_vec()),
        ..Hello::default()
    };
    let other = f.toolbox.open(&hello).unwrap();
    f.ok_as(other, "write_file", json!({"path": "a b/c,d", "content": "1\n"}));
    let listed = body(&f.ok("history", json!({})));
    assert_eq!(
        listed,
        "c1 2026-11-30T15:44:03Z agent=\"agent b\" tool=write_file task=\"climbing parser\" files=\"a b\",\"a b/c,d\""
    );
    f.ok_as(other, "undo", json!({}));
    assert!(body(&f.ok("history", json!({}))).starts_with(
        "c2 2026-11-30T15:44:03Z agent=\"agent b\" tool=undo task=\"climbing parser\" undoes=c1 files="
    ));
    let wide: Vec<Value> = (0..7).map(|n| json!(format!("d{n}"))).collect();
    let deep = wide.iter().map(|part| part.as_str().unwrap()).collect::<Vec<_>>().join("/");
    f.ok("create_path", json!({"path": format!("{deep}/")}));
    let line = body(&f.ok("history", json!({"limit": 1})));
    assert!(line.ends_with(",+2"), "of many files the first five: {line}");
}

#[test]
fn a_change_is_shown_with_its_author_reason_and_diff() {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "a", "content": "1\n2\n3\n"}));
    f.ok("edit_file", json!({"path": "a", "old_text": "2", "new_text": "two"}));
    f.ok("undo", json!({}));
    f.ok("create_path", json!({"path": "d/"}));
    f.put("bin", b"\0\x01");
    let digest = cotenant_model::Digest::of(b"\0\x01").to_string();
    f.ok(
        "write_file",
        json!({"path": "bin", "content": "text\n", "overwrite": true, "expected_digest": digest}),
    );
    for (change, head, diff) in [
        ("c1", "agent=agent-a tool=write_file outcome=sealed files=1", "--- /dev/null\n+++ a\n"),
        ("c2", "tool=edit_file outcome=sealed files=1", "-2\n+two\n"),
        ("c3", "tool=undo undoes=c2 outcome=sealed files=1", "-two\n+2\n"),
        ("c4", "tool=create_path outcome=sealed files=1", "new directory d/"),
        ("c5", "tool=write_file outcome=sealed files=1", "binary: 2 bytes before, 5 after"),
    ] {
        let shown = f.ok("show_change", json!({"change": change}));
        assert!(shown.starts_with(&format!("change={change} time=2026-11-30T15:44:03Z ")), "{shown}");
        assert!(shown.contains(head) && body(&shown).contains(diff), "{shown}");
    }
    let gone = f.no("NOT_FOUND change=c99", "show_change", json!({"change": "c99"}));
    assert!(!f.follow(&gone).is_error, "{gone}");
    for odd in ["99", "x", "", "c"] {
        f.no("BAD_INPUT tool=show_change argument=change", "show_change", json!({"change": odd}));
    }
}

#[test]
fn what_may_not_be_read_is_not_shown_as_a_change() {
    let f = Fixture::new();
    f.ok("write_file", json!({"path": "src/open", "content": "seen\n"}));
    f.ok("write_file", json!({"path": "vault/closed", "content": "hidden\n"}));
    let narrow = f.session("agent-b");
    let root = f.path("src").display().to_string();
    f.toolbox.introduce(narrow, "client", Some(&[root]));
    assert!(f.ok_as(narrow, "show_change", json!({"change": "c1"})).contains("+seen"));
    let closed = f.ok_as(narrow, "show_change", json!({"change": "c2"}));
    assert!(closed.contains("not shown: PATH_OUTSIDE") && !closed.contains("hidden"), "{closed}");
}

#[test]
fn whoami_tells_work_questions_and_what_others_did() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.ok("write_file", json!({"path": "src/a", "content": "1\n2\n3\n"}));
    f.ok("write_file", json!({"path": "src/b", "content": "1\n"}));
    f.ok("edit_file", json!({"path": "src/a", "old_text": "2", "new_text": "two"}));
    f.ok_as(other, "read_file", json!({"path": "src/a"}));
    f.ok_as(other, "edit_file", json!({"path": "src/a", "old_text": "3", "new_text": "three"}));
    f.no("NOT_FOUND", "read_file", json!({"path": "nowhere/x"}));
    f.no("TEXT_NOT_FOUND", "edit_file", json!({"path": "src/b", "old_text": "zz", "new_text": "y"}));
    let me = f.ok("whoami", json!({}));
    for part in [
        "agent=agent-a session=se",
        "turn=1 mode=normal profile=trusting",
        "changed this session: 2 files, undo with rewind {\"turn\":1}, the last with undo {}",
        "src/a (c3 c1), unseen since: agent-b c4",
        "src/b (c2)",
        "refusals: ",
        "1 TEXT_NOT_FOUND",
        "1 NOT_FOUND",
    ] {
        assert!(me.contains(part), "{part} in {me}");
    }
    assert!(me.contains("root=root"), "{me}");
    f.ok("read_file", json!({"path": "src/a"}));
    assert!(!f.ok("whoami", json!({})).contains("unseen since"), "a look ends it");
}

#[test]
fn whoami_stays_short_whatever_happened() {
    let f = Fixture::new();
    let hello = Hello {
        agent: Some("agent-b".to_owned()),
        task: Some("é".repeat(3000)),
        tools: Some(ToolSet::ALL.to_vec()),
        ..Hello::default()
    };
    let other = f.toolbox.open(&hello).unwrap();
    for n in 0..60 {
        let path = format!("a/rather/long/path/of/a/file/number-{n:03}.txt");
        f.ok("write_file", json!({"path": path, "content": "1\n2\n"}));
        f.ok_as(other, "read_file", json!({"path": path}));
        f.ok_as(other, "edit_file", json!({"path": path, "old_text": "2", "new_text": "two"}));
    }
    for (session, waits) in [(f.session, true), (f.session, false), (other, false)] {
        let me = f.ok_as(session, "whoami", json!({}));
        assert!(me.len() <= 2048, "{} bytes: {me}", me.len());
        assert_eq!(!notices(&me).is_empty(), waits, "{me}");
    }
}

#[test]
fn notices_that_are_many_are_told_in_part_and_kept_whole_for_programs() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    for n in 0..30 {
        f.ok("write_file", json!({"path": format!("some/directory/file-{n}"), "content": "1\n2\n"}));
    }
    for n in 0..30 {
        let path = format!("some/directory/file-{n}");
        f.ok_as(other, "read_file", json!({"path": path}));
        f.ok_as(other, "edit_file", json!({"path": path, "old_text": "2", "new_text": "two"}));
    }
    let answer = f.call("list_directory", json!({}));
    let told = notices(&answer.text);
    assert!(told.iter().all(|line| line.starts_with("! ")) && told.len() < 30, "{}", answer.text);
    assert!(told.last().unwrap().contains(&format!("and {} more", 30 - (told.len() - 1))), "{}", answer.text);
    let all = answer.meta["cotenant/notices"].as_array().unwrap();
    assert_eq!(all.len(), 30);
    assert!(all.iter().all(|notice| notice["kind"] == "reload" && notice["path"].is_string()));
    assert!(notices(&f.ok("list_directory", json!({}))).is_empty(), "once");
}

#[test]
fn a_client_without_a_name_is_called_after_its_program() {
    let f = Fixture::new();
    let open = |agent: Option<&str>| {
        f.toolbox
            .open(&Hello {
                agent: agent.map(str::to_owned),
                tools: Some(ToolSet::ALL.to_vec()),
                ..Hello::default()
            })
            .unwrap()
    };
    let named = |session, client: &str| {
        f.toolbox.introduce(session, client, None);
        fact(&f.ok_as(session, "whoami", json!({})), "agent").unwrap()
    };
    let first = open(None);
    assert_eq!(named(first, "claude\u{1b}-code"), format!("claude-code-{}", first.0));
    let second = open(None);
    assert_eq!(named(second, ""), format!("agent-{}", second.0));
    assert_eq!(named(open(Some("given")), "claude"), "given");
    let long = named(open(None), &"x".repeat(5000));
    assert!(long.len() < 60, "{long}");
}

#[test]
fn a_turn_is_marked_by_the_client() {
    let f = Fixture::new();
    let call = |turn: Value, path: &str| {
        let args = json!({"path": path, "content": "x"}).as_object().cloned().unwrap_or_default();
        let ticket = f.toolbox.arrive(f.session, "write_file", &args);
        let meta = json!({"cotenant/turn": turn}).as_object().cloned().unwrap_or_default();
        f.toolbox.call(cotenant_tools::host::Call {
            session: f.session,
            tool: "write_file".to_owned(),
            args,
            meta,
            ticket,
        })
    };
    for (turn, path) in
        [(json!("p1"), "a"), (json!("p1"), "b"), (json!("p2"), "c"), (Value::Null, "d"), (json!(3), "e")]
    {
        assert!(!call(turn, path).is_error);
    }
    assert_eq!(history(&f, json!({"turn": 1})), ["c2", "c1"]);
    assert_eq!(history(&f, json!({"turn": 2})), ["c4", "c3"]);
    assert_eq!(history(&f, json!({"turn": 3})), ["c5"]);
}
