//! What the test kit itself must get right: reading answers, checking schemas, seeing processes end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Stdio};
use std::time::Duration;

use cotenant_testkit::{Dice, Reply, Scratch, conforms, gone, is_alive, snapshot, wait_exit};
use serde_json::{Value, json};

fn result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn refusal(text: &str) -> Value {
    let code = text.split(' ').next().unwrap();
    json!({"content": [{"type": "text", "text": text}], "isError": true, "_meta": {"cotenant/refusal": {"code": code}}})
}

#[test]
fn facts_notices_and_content_are_told_apart() {
    let reply = Reply::read(&result(
        "path=\"a b \\\"c\" lines=1-2 of=2 notices=1\n! eol=crlf: x\n1|! no notice\n2|b",
    ));
    assert_eq!(reply.get("path"), "a b \"c");
    assert_eq!(reply.number("of"), 2);
    assert_eq!(reply.notices(), ["eol=crlf: x"]);
    assert_eq!(reply.numbered(), [(1, "! no notice"), (2, "b")]);
    assert_eq!((reply.code(), reply.next()), (None, ""));
}

#[test]
fn the_next_call_is_read_from_a_refusal() {
    let text = "ALREADY_EXISTS path=a lines=1\nIt exists.\nnext: to replace it, retry {\"token\":\"r1\",\"set\":{\"a\":\"}\"}} (kept); or read_file";
    let reply = Reply::read(&refusal(text));
    reply.refused("ALREADY_EXISTS").says("exists");
    assert_eq!(reply.next_call(), Some(("retry".to_owned(), json!({"token": "r1", "set": {"a": "}"}}))));
    assert_eq!(reply.offered("token"), "r1");
}

#[test]
#[should_panic(expected = "without a next step")]
fn a_refusal_without_a_next_step_fails() {
    Reply::read(&refusal("NOT_FOUND path=a\nThere is no a."));
}

#[test]
#[should_panic(expected = "2 blocks")]
fn two_blocks_fail() {
    Reply::read(&json!({"content": [{"type": "text", "text": "a=1"}, {"type": "text", "text": "b"}]}));
}

#[test]
#[should_panic(expected = "without a code")]
fn an_error_without_a_code_fails() {
    Reply::read(&json!({"content": [{"type": "text", "text": "Error: no"}], "isError": true}));
}

#[test]
fn a_schema_is_checked_as_a_strict_client_does() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"enum": ["x", "y"]}}},
        "required": ["a"],
        "additionalProperties": false,
    });
    assert_eq!(conforms(&schema, &json!({"a": 1, "b": ["x"]})), Ok(()));
    for (value, place) in [
        (json!({}), "$.a"),
        (json!({"a": 1.5}), "$.a"),
        (json!({"a": 1, "b": ["z"]}), "$.b[0]"),
        (json!({"a": 1, "c": 2}), "$.c"),
        (json!([]), "$"),
    ] {
        let error = conforms(&schema, &value).unwrap_err();
        assert!(error.starts_with(place), "{value}: {error}");
    }
    let either = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    assert!(conforms(&either, &Value::Null).is_ok() && conforms(&either, &json!(1)).is_err());
}

#[test]
fn the_end_of_a_process_is_an_event() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    assert!(is_alive(pid));
    assert!(!gone(pid, Duration::ZERO));
    drop(child.stdin.take());
    assert!(wait_exit(&mut child, Duration::from_secs(20)).unwrap().success());
    assert!(!is_alive(pid) && gone(pid, Duration::ZERO));
}

#[test]
fn a_scratch_directory_has_its_surroundings_and_goes() {
    let base = {
        let scratch = Scratch::new("true");
        scratch.put("a/b.txt", "x");
        let before = snapshot(&scratch.out());
        scratch.sh("test -d $OUT && test -d \"$W-evil\" && echo y > $OUT/new && cat a/b.txt");
        assert_ne!(snapshot(&scratch.out()), before);
        scratch.base().to_owned()
    };
    assert!(!base.exists());
}

#[test]
fn a_seed_gives_the_same_numbers() {
    let numbers = || {
        let mut dice = Dice::seeded(7);
        [dice.below(1000), dice.below(1000), dice.below(1000)]
    };
    assert_eq!(numbers(), numbers());
    assert!(numbers().iter().all(|&number| number < 1000));
}
