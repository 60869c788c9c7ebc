//! After a call: what is taken out, kept back or added, and what an answer that nobody looked at leaves.

use serde_json::{Value, json};

use super::{Scene, noting, saying};

#[test]
fn a_hook_reads_the_answer() {
    let mut scene = Scene::after(&noting(""));
    scene.put("a.txt", "one\n");
    let read = scene.call("read_file", json!({"path": "a.txt"}));
    let missing = scene.call("read_file", json!({"path": "b.txt"}));
    let asked = scene.asked();
    assert_eq!(
        (&asked[0]["hook_event_name"], &asked[0]["tool_name"]),
        (&json!("PostToolUse"), &json!("read_file"))
    );
    assert_eq!(asked[0]["tool_input"]["path"], "a.txt");
    assert_eq!(asked[0]["tool_response"], json!({"text": read.ok().text, "is_error": false}));
    assert_eq!(
        asked[1]["tool_response"],
        json!({"text": missing.refused("NOT_FOUND").text, "is_error": true})
    );
    assert_eq!(scene.journal()[1], ["PostToolUse", "post_tool_response[1]", "none", ""].map(str::to_owned));
}

#[test]
fn what_is_redacted_is_nowhere_in_the_answer() {
    let redact = json!({"redact": ["hunter2", {"regex": "key-[0-9]+"}]});
    let script = saying(json!({"hookSpecificOutput": redact}));
    let mut scene = Scene::after(&script);
    scene.put("a.txt", "user hunter2\nkey-123 and key-\n$1\n");
    let read = scene.call("read_file", json!({"path": "a.txt"}));
    read.ok().says("1|user [redacted]\n2|[redacted] and key-\n3|$1").never_says("hunter2");
    assert!(!read.raw.to_string().contains("hunter2"), "{}", read.raw);
    // In a name, a refusal and the facts beside it.
    let missing = scene.call("read_file", json!({"path": "hunter2.txt"}));
    missing.refused("NOT_FOUND");
    assert!(!missing.raw.to_string().contains("hunter2"), "{}", missing.raw);
    assert_eq!(scene.journal()[0][2], "redact");
    // What has nothing of it stays as it is, facts included.
    scene.put("b.txt", "plain\n");
    assert_eq!(scene.call("read_file", json!({"path": "b.txt"})).ok().meta["cotenant/facts"]["of"], 1);
}

#[test]
fn an_answer_can_be_replaced() {
    for updated in
        [json!("new text"), json!({"text": "new text"}), json!([{"type": "text", "text": "new text"}])]
    {
        let mut scene = Scene::after(&saying(json!({"hookSpecificOutput": {"updatedToolOutput": updated}})));
        scene.put("a.txt", "secret\n");
        let read = scene.call("read_file", json!({"path": "a.txt"}));
        assert_eq!(read.ok().text, "new text");
        assert!(!read.raw.to_string().contains("a.txt"), "{}", read.raw);
    }
}

#[test]
fn programs_get_the_text_that_is_left() {
    let script = saying(json!({"redact": ["hunter2"]}));
    let scene = Scene::after(&script);
    scene.put("a.txt", "hunter2\n");
    let request = json!({"tool": "read_file", "args": {"path": "a.txt"}});
    let answer = scene.ground.admin().ask("tool", request.as_object().unwrap().clone()).unwrap();
    assert!(answer["text"].as_str().unwrap().contains("1|[redacted]"), "{answer}");
    assert_eq!(answer["fields"], json!({"text": answer["text"]}));
}

#[test]
fn a_later_hook_sees_what_an_earlier_one_left() {
    let first = saying(json!({"redact": ["secret"]}));
    let hooks = "post_tool_response = [{ command = \"$S/first\" }, { command = \"$S/second\" }]";
    let mut scene = Scene::new(hooks, &[("first", &first), ("second", &noting(""))]);
    scene.put("a.txt", "a secret\n");
    scene.call("read_file", json!({"path": "a.txt"})).ok();
    assert!(scene.asked()[0]["tool_response"]["text"].as_str().unwrap().contains("1|a [redacted]"));
}

#[test]
fn a_blocked_answer_says_what_was_done() {
    for script in [
        saying(json!({"decision": "block", "reason": "run the tests"})),
        "echo 'run the tests' >&2; exit 2".into(),
    ] {
        let mut scene = Scene::after(&script);
        let blocked = scene.call("write_file", json!({"path": "a.txt", "content": "x"}));
        blocked.refused("HOOK_DENIED").says("keeps this answer back: \"run the tests\"");
        let change = blocked.get("change");
        blocked.says(&format!("The call was carried out: {change} stands."));
        assert_eq!(scene.get("a.txt").as_deref(), Some("x\n"));
        scene
            .call("read_file", json!({"path": "b.txt"}))
            .refused("HOOK_DENIED")
            .says("had been refused (NOT_FOUND)");
        assert_eq!(scene.journal()[0][2], "block");
    }
}

#[test]
fn an_answer_that_nobody_could_look_at_is_kept_back() {
    for script in [
        "exit 1",
        "echo nonsense",
        "kill -9 $$",
        "echo '{\"decision\":\"ask\"}'",
        "echo '{\"redact\":[\"\"]}'",
    ] {
        let mut scene = Scene::after(script);
        let written = scene.call("write_file", json!({"path": "a.txt", "content": "secret"}));
        let change = written.ok().get("change");
        assert_eq!(written.text.lines().next().unwrap(), format!("change={change} withheld=yes notices=1"));
        written.says(&format!("The call was carried out: {change} stands.")).never_says("secret");
        assert_eq!(written.meta["cotenant/facts"], json!({"change": change}));
        assert_eq!(scene.get("a.txt").as_deref(), Some("secret\n"), "{script}");
        let read = scene.call("read_file", json!({"path": "a.txt"}));
        read.ok().never_says("secret").says("The call was carried out.");
        let missing = scene.call("read_file", json!({"path": "secrets"}));
        missing.refused("HOOK_DENIED").says("had been refused (NOT_FOUND)").never_says("secrets");
        assert_eq!(scene.journal()[0][2], "failed", "{script}");
    }
}

#[test]
fn a_late_look_keeps_the_answer_back_too() {
    let hooks = "post_tool_response = [{ command = \"$S/hook\", timeout_s = 1 }]";
    let mut scene = Scene::new(hooks, &[("hook", "mkfifo \"$0.fifo\"; cat \"$0.fifo\"")]);
    scene.call("whoami", json!({})).ok().says("it did not answer in time").says("withheld=yes");
}

#[test]
fn a_hook_that_may_fail_lets_the_answer_pass_and_says_so() {
    let mut scene = Scene::new("post_tool_response = [{ command = \"exit 1\", fail_open = true }]", &[]);
    scene.put("a.txt", "one\n");
    let read = scene.call("read_file", json!({"path": "a.txt"}));
    read.ok().says("1|one").says("! post_tool_response[1]: could not be asked (it ended with status 1)");
}

#[test]
fn context_is_added_as_a_notice() {
    let script = saying(json!({"hookSpecificOutput": {"additionalContext": "mind\nthe gap"}}));
    let mut scene = Scene::after(&script);
    scene.put("a.txt", "one\n");
    let read = scene.call("read_file", json!({"path": "a.txt"}));
    assert_eq!(read.ok().notices(), ["post_tool_response[1]: mind the gap"]);
    assert_eq!(read.content(), "1|one");
    // Behind those that the answer had.
    let written = scene.call("write_file", json!({"path": "b.txt", "content": "x"}));
    assert_eq!(written.ok().notices().last().unwrap(), &"post_tool_response[1]: mind the gap");
    let missing = scene.call("read_file", json!({"path": "c.txt"}));
    missing.refused("NOT_FOUND").says("notices=1\n! post_tool_response[1]: mind the gap\n");
}

#[test]
fn answers_that_hold_other_answers_are_looked_at() {
    let script = saying(json!({"redact": ["hunter2"]}));
    let hooks = "post_tool_response = [{ matcher = \"Read\", command = \"$S/hook\" }]";
    let mut scene = Scene::new(hooks, &[("hook", &script)]);
    let text = "hunter2 and some more words to fill the line\n".repeat(500);
    let change = scene.call("write_file", json!({"path": "a.txt", "content": text})).ok().get("change");
    scene.call("read_file", json!({"path": "a.txt"})).ok().never_says("hunter2");
    let handle = scene.call("show_change", json!({"change": change, "max_bytes": 300})).ok().get("handle");
    scene.call("read_more", json!({"handle": handle})).ok().never_says("hunter2").says("[redacted]");
}

#[test]
fn a_remembered_answer_is_looked_at_again() {
    let script = saying(json!({"redact": ["hunter2"]}));
    let mut scene = Scene::after(&script);
    scene.put("a.txt", "hunter2\n");
    scene.call("read_file", json!({"path": "a.txt"})).ok();
    let args =
        json!({"path": "a.txt", "old_text": "hunter2", "new_text": "hunter2!", "idempotency_key": "k"});
    for _ in 0..2 {
        let edited = scene.call("edit_file", args.clone());
        assert!(!edited.ok().raw.to_string().contains("hunter2"), "{}", edited.raw);
        assert_eq!(edited.meta["cotenant/facts"], json!({"change": edited.get("change")}));
    }
}

#[test]
fn a_question_that_nobody_could_look_at_still_waits() {
    let hooks = "post_tool_response = [{ command = \"exit 1\" }]";
    let mut scene = Scene::with("", hooks, &[]);
    scene.put("a.txt", "one\n");
    let delete = scene.call("move_path", json!({"from": "a.txt", "to": "b.txt"}));
    delete.refused("HOOK_DENIED").says("The call waits for a human, as a");
    let pending: Vec<Value> = scene.pending();
    assert_eq!((pending.len(), &pending[0]["id"]), (1, &json!(delete.get("id"))));
}
