//! Calls at the same time: nothing is lost, nothing waits for what it need not, and the order of a session holds.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use cotenant_model::SessionId;
use cotenant_tools::host::{Answer, Call, Host, Ticket};
use serde_json::{Map, Value, json};

use crate::fixture::{Fixture, fact};

fn arrive(f: &Fixture, session: SessionId, tool: &str, args: Value) -> Call {
    let args = args.as_object().cloned().unwrap_or_default();
    let ticket = f.toolbox.arrive(session, tool, &args);
    Call { session, tool: tool.to_owned(), args, meta: Map::new(), ticket }
}

/// Calls again until it is not refused because another was quicker.
fn insist(f: &Fixture, session: SessionId, tool: &str, args: &Value) -> Answer {
    loop {
        let answer = f.call_as(session, tool, args.clone());
        let passing = ["FILE_CHANGED_SINCE_READ", "TEXT_NOT_FOUND", "BUSY"];
        if !answer.is_error || !passing.iter().any(|code| answer.text.starts_with(code)) {
            return answer;
        }
        f.ok_as(session, "read_file", json!({"path": args["path"]}));
    }
}

#[test]
fn every_line_that_agents_add_to_one_file_is_there_in_the_end() {
    let f = Fixture::new();
    f.put("log", "begin\nend\n");
    let sessions: Vec<SessionId> = (0..4).map(|n| f.session(&format!("agent-{n}"))).collect();
    let gate = Barrier::new(sessions.len());
    std::thread::scope(|scope| {
        for (n, session) in sessions.iter().enumerate() {
            let (f, gate) = (&f, &gate);
            scope.spawn(move || {
                f.ok_as(*session, "read_file", json!({"path": "log"}));
                gate.wait();
                for turn in 0..5 {
                    let args =
                        json!({"path": "log", "old_text": "end\n", "new_text": format!("{n}-{turn}\nend\n")});
                    let answer = insist(f, *session, "edit_file", &args);
                    assert!(!answer.is_error, "{}", answer.text);
                }
            });
        }
    });
    let text = f.get("log");
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.remove(0), lines.pop()), ("begin", Some("end")));
    assert_eq!(lines.len(), 20, "no update is lost and none lands twice: {text}");
    for n in 0..4 {
        let own: Vec<String> = lines
            .iter()
            .filter(|line| line.starts_with(&format!("{n}-")))
            .map(|line| (*line).to_owned())
            .collect();
        assert_eq!(
            own,
            (0..5).map(|turn| format!("{n}-{turn}")).collect::<Vec<_>>(),
            "each in its own order"
        );
    }
    assert_eq!(f.changes().len(), 20);
}

#[test]
fn of_many_who_create_one_path_one_does() {
    let f = Fixture::new();
    let sessions: Vec<SessionId> = (0..4).map(|n| f.session(&format!("agent-{n}"))).collect();
    for round in 0..5 {
        let gate = Barrier::new(sessions.len());
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for session in &sessions {
                let (f, gate, made) = (&f, &gate, &made);
                scope.spawn(move || {
                    gate.wait();
                    let args = json!({"path": format!("d{round}/x"), "content": format!("{session}\n")});
                    let answer = f.call_as(*session, "write_file", args);
                    if answer.is_error {
                        assert!(
                            ["ALREADY_EXISTS", "FILE_CHANGED", "NOT_FOUND", "BUSY"]
                                .iter()
                                .any(|code| answer.text.starts_with(code)),
                            "{}",
                            answer.text
                        );
                    } else {
                        made.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1, "round {round}");
        assert!(sessions.iter().any(|session| f.get(&format!("d{round}/x")) == format!("{session}\n")));
    }
}

#[test]
fn what_was_cancelled_or_answered_holds_nobody_up() {
    let f = Fixture::new();
    f.put("a", "1\n");
    f.ok("read_file", json!({"path": "a"}));
    let first = arrive(&f, f.session, "edit_file", json!({"path": "a", "old_text": "1", "new_text": "2"}));
    let second = arrive(&f, f.session, "edit_file", json!({"path": "a", "old_text": "1", "new_text": "3"}));
    f.toolbox.forgo(f.session, first.ticket);
    assert!(!f.toolbox.call(second).is_error, "the one before was cancelled");
    assert_eq!(f.get("a"), "3\n");
    // Giving a place back twice, or one that never was, is harmless.
    f.toolbox.forgo(f.session, first.ticket);
    f.toolbox.forgo(f.session, Ticket(u64::MAX));
    f.ok("read_file", json!({"path": "a"}));
}

#[test]
fn other_paths_and_other_sessions_do_not_wait() {
    let f = Fixture::new();
    let other = f.session("agent-b");
    f.put("a", "1\n");
    f.put("b/c", "1\n");
    // A change of `a` that has arrived and is not carried out yet.
    let waits =
        arrive(&f, f.session, "write_file", json!({"path": "a", "content": "2\n", "overwrite": true}));
    for (tool, args) in [
        ("read_file", json!({"path": "b/c"})),
        ("list_directory", json!({"path": "b"})),
        ("write_file", json!({"path": "n", "content": "x"})),
        ("whoami", json!({})),
        ("history", json!({})),
    ] {
        assert!(!f.call(tool, args).is_error, "{tool} is about something else");
    }
    assert!(
        !f.call_as(other, "read_file", json!({"path": "a"})).is_error,
        "another session has its own order"
    );
    f.toolbox.forgo(f.session, waits.ticket);
}

#[test]
fn a_call_that_waits_for_the_human_lets_the_next_ones_by() {
    let f = Fixture::careful();
    f.put("a", "one\ntwo\n");
    f.ok("read_file", json!({"path": "a"}));
    f.toolbox.workspace().coord().reviewer_came();
    std::thread::scope(|scope| {
        let asks =
            arrive(&f, f.session, "edit_file", json!({"path": "a", "old_text": "one", "new_text": "1"}));
        let next = arrive(&f, f.session, "read_file", json!({"path": "a"}));
        let f = &f;
        let waiting = scope.spawn(move || f.toolbox.call(asks));
        // It is answered while the other still waits: only then is the human's answer given.
        let read = f.toolbox.call(next);
        assert!(!read.is_error, "{}", read.text);
        let question = f.toolbox.waiting().into_iter().next().unwrap();
        f.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
        assert!(waiting.join().unwrap().text.contains("change=c1"));
    });
    assert_eq!(f.get("a"), "1\ntwo\n");
}

#[test]
fn what_was_approved_lands_although_its_session_is_gone() {
    let f = Fixture::careful();
    let leaving = f.session("agent-b");
    f.put("a", "one\n");
    f.ok_as(leaving, "read_file", json!({"path": "a"}));
    let asked = f.call_as(leaving, "edit_file", json!({"path": "a", "old_text": "one", "new_text": "two"}));
    let id = fact(&asked.text, "id").unwrap().parse().unwrap();
    let digest = fact(&asked.text, "digest").unwrap();
    f.toolbox.close(leaving);
    match f.toolbox.approve(id, &digest) {
        Ok(_) => assert_eq!(f.get("a"), "two\n"),
        Err(error) => {
            assert!(matches!(error, cotenant_tools::NotAnswered::Gone), "{error:?}");
            assert_eq!(f.get("a"), "one\n");
        }
    }
    let late = f.call_as(leaving, "read_file", json!({"path": "a"}));
    assert!(late.text.starts_with("SESSION_ENDED"), "{}", late.text);
    f.toolbox.close(leaving);
}

#[test]
fn of_two_answers_to_one_question_one_counts() {
    for _ in 0..5 {
        let f = Fixture::careful();
        f.put("a", "one\n");
        f.ok("read_file", json!({"path": "a"}));
        let asked =
            f.no("APPROVAL_PENDING", "edit_file", json!({"path": "a", "old_text": "one", "new_text": "two"}));
        let id = fact(&asked, "id").unwrap().parse().unwrap();
        let digest = fact(&asked, "digest").unwrap();
        let gate = Barrier::new(3);
        let (yes, no, again) = std::thread::scope(|scope| {
            let approve = || {
                scope.spawn(|| {
                    gate.wait();
                    f.toolbox.approve(id, &digest).is_ok()
                })
            };
            let (first, second) = (approve(), approve());
            let deny = scope.spawn(|| {
                gate.wait();
                f.toolbox.deny(id, Some(&digest), "no").is_ok()
            });
            (first.join().unwrap(), deny.join().unwrap(), second.join().unwrap())
        });
        let counted = [yes, no, again].iter().filter(|counted| **counted).count();
        assert_eq!(counted, 1, "yes {yes}, no {no}, again {again}");
        assert_eq!(f.get("a") == "two\n", !no);
        assert_eq!(f.changes().len(), usize::from(!no));
    }
}
