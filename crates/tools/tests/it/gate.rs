//! A gate around calls: what it refuses, asks, rewrites and takes away; and that nothing runs beside it.

use std::sync::{Arc, Mutex};

use cotenant_engine::Workspace;
use cotenant_model::{Profile, Refusal, Settings};
use cotenant_tools::gate::{Asked, AskedBy, Gate, Passed, hook_denied};
use cotenant_tools::host::{Answer, Call, Hello, Host};
use cotenant_tools::tool::Tool;
use serde_json::{Map, Value, json};

use crate::fixture::Fixture;

/// Does what the content of a written file says, and notes every call.
struct Guard(Seen);

/// Tools and arguments.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

impl Gate for Guard {
    fn takes_ms(&self, tool: &Tool) -> (u64, u64) {
        if tool.name == "whoami" { (0, 0) } else { (10, 10) }
    }

    fn before(&self, _ws: &Workspace, asked: &Asked<'_>) -> Result<Passed, Refusal> {
        self.0.lock().unwrap().push((asked.tool.name.to_owned(), asked.args.clone().into()));
        let by = |reason: &str| AskedBy { hook: "guard".to_owned(), reason: reason.to_owned() };
        let instead = |path: &str| {
            let args = json!({"path": path, "content": "rewritten"});
            args.as_object().cloned()
        };
        let notices = vec!["the guard was here".to_owned()];
        match asked.args.get("content").and_then(Value::as_str) {
            Some("refuse") => Err(hook_denied("guard", asked.tool.name, "No.").next("whoami {}")),
            Some("ask") => Ok(Passed { ask: Some(by("hm")), ..Passed::default() }),
            Some("rewrite") => Ok(Passed { args: instead("other.txt"), notices, ..Passed::default() }),
            Some("outside") => Ok(Passed { args: instead("../other.txt"), notices, ..Passed::default() }),
            Some("both") => Ok(Passed { args: instead("other.txt"), ask: Some(by("")), notices }),
            _ => Ok(Passed::default()),
        }
    }

    fn after(&self, _ws: &Workspace, asked: &Asked<'_>, answer: &mut Answer) -> Result<(), Refusal> {
        if answer.text.contains("keep back") {
            return Err(hook_denied("guard", asked.tool.name, "Kept back.").next("whoami {}"));
        }
        answer.text = answer.text.replace("secret", "******");
        Ok(())
    }
}

fn guarded() -> (Fixture, Seen) {
    let seen = Seen::default();
    let settings = Settings { profile: Profile::Trusting, ..Settings::default() };
    (Fixture::behind(settings, Box::new(Guard(Arc::clone(&seen)))), seen)
}

fn write(fixture: &Fixture, content: &str) -> Answer {
    fixture.call("write_file", json!({"filePath": "./a.txt", "contents": content}))
}

#[test]
fn the_gate_sees_what_runs_and_its_no_counts() {
    let (fixture, seen) = guarded();
    let refused = write(&fixture, "refuse");
    assert!(refused.text.starts_with("HOOK_DENIED hook=guard tool=write_file\nNo."), "{}", refused.text);
    assert!(!fixture.has("a.txt"));
    write(&fixture, "fine");
    assert!(fixture.has("a.txt"));
    fixture.ok("whoami", json!({}));
    let args = |content: &str| json!({"path": "./a.txt", "content": content});
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [("write_file".into(), args("refuse")), ("write_file".into(), args("fine"))]);
}

#[test]
fn what_it_asks_a_human_is_asked() {
    let (fixture, _) = guarded();
    let pending = write(&fixture, "ask");
    assert!(pending.text.starts_with("APPROVAL_PENDING") && !pending.is_error, "{}", pending.text);
    assert!(pending.text.contains("hook=guard") && pending.text.contains("\"hm\""), "{}", pending.text);
    let question = &fixture.toolbox.waiting()[0];
    assert_eq!(fixture.toolbox.asked_by(question.id).unwrap().reason, "hm");
    fixture.toolbox.approve(question.id, &question.digest.to_string()).unwrap();
    assert_eq!(fixture.get("a.txt"), "ask\n");
    assert!(!fixture.retry(&pending.text).is_error);
}

#[test]
fn what_it_rewrites_is_a_call_like_any_other() {
    let (fixture, _) = guarded();
    let written = write(&fixture, "rewrite");
    assert!(written.text.contains("! the guard was here"), "{}", written.text);
    assert_eq!((fixture.has("a.txt"), fixture.get("other.txt").as_str()), (false, "rewritten\n"));
    let refused = write(&fixture, "outside");
    assert!(refused.text.starts_with("PATH_OUTSIDE"), "{}", refused.text);
    assert!(refused.text.contains("(the guard was here.)"), "{}", refused.text);
    std::fs::remove_file(fixture.path("other.txt")).unwrap();
    let pending = write(&fixture, "both");
    assert!(
        pending.text.starts_with("APPROVAL_PENDING") && pending.text.contains("path=other.txt"),
        "{}",
        pending.text
    );
    assert!(!fixture.has("other.txt"));
}

#[test]
fn a_rewritten_call_waits_for_those_before_it() {
    let (fixture, _) = guarded();
    let args = |path: &str| json!({"path": path, "content": "first"}).as_object().cloned().unwrap();
    // One that has its place on the other path, and does not run yet.
    let first = fixture.toolbox.arrive(fixture.session, "write_file", &args("other.txt"));
    std::thread::scope(|threads| {
        let second = threads.spawn(|| write(&fixture, "rewrite"));
        // It comes as far as to wait; what it waits for is the order, whenever that thread gets there.
        let call = Call {
            session: fixture.session,
            tool: "write_file".to_owned(),
            args: args("other.txt"),
            meta: Map::new(),
            ticket: first,
        };
        let first = fixture.toolbox.call(call);
        assert!(!first.is_error, "{}", first.text);
        let second = second.join().unwrap();
        assert!(second.text.starts_with("ALREADY_EXISTS"), "{}", second.text);
    });
    assert_eq!(fixture.get("other.txt"), "first\n");
    // Nothing is left in the order.
    assert!(!fixture.call("write_file", json!({"path": "third.txt", "content": "x"})).is_error);
}

#[test]
fn a_repeated_call_is_seen_with_what_it_runs_with() {
    let (fixture, seen) = guarded();
    let slip = fixture.no(
        "BAD_INPUT",
        "write_file",
        json!({"path": "a.txt", "content": "refuse", "overwrit": true}),
    );
    assert!(seen.lock().unwrap().is_empty());
    let denied = fixture.retry(&slip);
    assert!(denied.text.starts_with("HOOK_DENIED"), "{}", denied.text);
    let args = json!({"path": "a.txt", "content": "refuse", "overwrite": true});
    assert_eq!(*seen.lock().unwrap(), [("write_file".into(), args)]);
    assert!(!fixture.has("a.txt"));
}

#[test]
fn answers_pass_it_stored_ones_too() {
    let (fixture, _) = guarded();
    fixture.put("a.txt", "a secret\n");
    assert!(fixture.ok("read_file", json!({"path": "a.txt"})).contains("1|a ******"));
    let args = json!({"path": "a.txt", "old_text": "secret", "new_text": "secret 2", "idempotency_key": "k"});
    for _ in 0..2 {
        assert!(!fixture.ok("edit_file", args.clone()).contains("secret"));
    }
    fixture.put("b.txt", "keep back\n");
    let kept = fixture.no("HOOK_DENIED", "read_file", json!({"path": "b.txt"}));
    assert!(kept.ends_with("Kept back.\nnext: whoami {}"), "{kept}");
}

#[test]
fn a_human_passes() {
    let (fixture, seen) = guarded();
    let hello = Hello { human: true, profile: Some(Profile::Trusting), ..Hello::default() };
    let human = fixture.toolbox.open(&hello).unwrap();
    assert!(!fixture.call_as(human, "write_file", json!({"path": "a.txt", "content": "refuse"})).is_error);
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn a_token_never_repeats_a_repetition() {
    let fixture = Fixture::new();
    // Were it kept, the next token would be the one that is named here.
    for slip in ["retyr", "retr"] {
        let said = fixture.no("BAD_INPUT", slip, json!({"token": "r1", "set": {"wait": null}}));
        assert!(said.contains("retry") && !said.contains("\"r1\""), "{said}");
    }
    fixture.no("BAD_INPUT", "retry", json!({"token": "r1", "set": {"wait": null}, "wait": 1}));
    for token in ["r1", "r2", "r3"] {
        fixture.no("HANDLE_EXPIRED", "retry", json!({"token": token, "set": {"wait": null}}));
        fixture.no("HANDLE_EXPIRED", "retry", json!({"token": token}));
    }
}

#[test]
fn a_notice_is_one_line_at_its_place() {
    for (text, wanted) in [
        ("path=a", "path=a notices=1\n! new"),
        ("path=a\nbody", "path=a notices=1\n! new\nbody"),
        ("path=a\nbody\n", "path=a notices=1\n! new\nbody\n"),
        ("path=a notices=1\n! old\n! body", "path=a notices=2\n! old\n! new\n! body"),
        ("notices=1\n! old", "notices=2\n! old\n! new"),
        ("path=\"a notices=1\"\n! body", "path=\"a notices=1\" notices=1\n! new\n! body"),
        ("list=a,notices=1\nbody", "list=a,notices=1 notices=1\n! new\nbody"),
        ("notices=99\n! old", "notices=100\n! old\n! new"),
        ("", "notices=1\n! new"),
    ] {
        let mut answer =
            Answer { text: text.to_owned(), structured: Some(json!({"of": 1})), ..Answer::default() };
        answer.notice("new");
        assert_eq!(answer.text, wanted);
        assert_eq!(answer.structured, Some(json!({"of": 1, "notices": ["new"], "text": answer.text})));
    }
    let mut answer = Answer { text: "a=1".to_owned(), ..Answer::default() };
    answer.notice("one\n! two\r");
    assert_eq!(answer.text, "a=1 notices=1\n! one ! two ");
    assert_eq!(answer.structured, None);
}
