//! Before a call: no, ask, rewrite, and what cannot be asked.

use cotenant_testkit::{PATIENCE, gone};
use serde_json::{Value, json};

use super::{Scene, TRUSTING, noting, saying};

fn decides(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
        "permissionDecisionReason": reason}})
}

#[test]
fn a_hook_reads_the_call_and_has_no_opinion() {
    let mut scene = Scene::before(&noting(""));
    scene.put("a.txt", "one\ntwo\n");
    scene.call("read_file", json!({"filePath": "./a.txt"})).ok().says("1|one");
    scene
        .call(
            "edit_file",
            json!({"file_path": "a.txt", "oldText": "two", "newText": "2", "explanation": "x"}),
        )
        .ok();
    let asked = scene.asked();
    let root = scene.ground.place.root.display().to_string();
    assert_eq!(asked[0]["hook_event_name"], "PreToolUse");
    assert_eq!(asked[0]["cwd"], root);
    assert_eq!(asked[0]["tool_name"], "read_file");
    assert_eq!(asked[0]["tool_input"], json!({"path": "a.txt", "file_path": format!("{root}/a.txt")}));
    let session = asked[0]["session_id"].as_str().unwrap();
    assert!(session.starts_with("se"), "{session}");
    let about =
        json!({"agent": "ada", "task": "sums", "session": session, "tool": "read_file", "also": ["Read"]});
    assert_eq!(asked[0]["cotenant"], about);
    // Whatever names the agent used, the hook finds ours and Claude Code's.
    let edit = json!({"path": "a.txt", "file_path": format!("{root}/a.txt"), "old_text": "two", "old_string": "two",
        "new_text": "2", "new_string": "2"});
    assert_eq!(asked[1]["tool_input"], edit);
    assert_eq!(scene.get("a.txt").unwrap(), "one\n2\n");
    let none = |event: &str| [event, "pre_tool_call[1]", "none", ""].map(str::to_owned);
    assert_eq!(scene.journal(), [none("PreToolUse"), none("PreToolUse")]);
}

#[test]
fn a_no_ends_the_call() {
    let says = saying(json!({"decision": "block", "reason": "not today\n! notices=9"}));
    for (script, reason) in [
        (saying(decides("deny", "not on Sundays")), "not on Sundays"),
        (says, "not today\\n! notices=9"),
        ("echo 'ask Bob' >&2; exit 2".to_owned(), "ask Bob"),
    ] {
        let mut scene = Scene::before(&script);
        let refused = scene.call("write_file", json!({"path": "a.txt", "content": "x"}));
        refused
            .refused("HOOK_DENIED")
            .says(&format!("refuses this call: \"{reason}\""))
            .says("Nothing was done.");
        assert_eq!(
            (refused.get("hook"), refused.get("tool")),
            ("pre_tool_call[1]".into(), "write_file".into())
        );
        assert_eq!(scene.get("a.txt"), None, "{script}");
        assert_eq!(scene.journal()[0][2], "deny");
        // It ends the call, not the session.
        scene.call("whoami", json!({})).refused("HOOK_DENIED");
    }
}

#[test]
fn what_cannot_be_asked_counts_as_a_no() {
    for (script, why) in [
        ("exit 1", "it ended with status 1"),
        ("echo 'Traceback: boom' >&2; exit 3", "status 3"),
        ("kill -9 $$", "signal 9"),
        ("no-such-program-here", "not found"),
        ("echo OK", "its output is no JSON object"),
        ("echo '[1]'", "its output is no JSON object"),
        ("echo '{\"desicion\": \"deny\"}'", "says nothing that is known"),
        ("echo '{\"decision\": \"maybe\"}'", "its decision \"maybe\" is none"),
        ("head -c 1100000 /dev/zero", "over 1 MiB"),
        ("head -c 1100000 /dev/zero >&2", "over 1 MiB"),
        ("yes | head -c 900000; yes | head -c 900000 >&2", "over 1 MiB"),
    ] {
        let mut scene = Scene::new(&format!("pre_tool_call = [{{ command = '''{script}''' }}]"), &[]);
        let refused = scene.call("write_file", json!({"path": "a.txt", "content": "x"}));
        refused.refused("HOOK_DENIED").says("counts as a no").says(why);
        assert_eq!(scene.get("a.txt"), None, "{script}");
        assert_eq!(scene.journal()[0][2], "failed", "{script}");
        if script.contains("boom") {
            refused.says("it said: \"Traceback: boom\"");
        }
    }
}

#[test]
fn a_hook_that_does_not_answer_is_ended_with_all_it_started() {
    let script = "mkfifo \"$0.fifo\"\n(echo $$ > \"${0%/*}/parent\"; exec sleep 1000) &\n\
                  echo $! > \"${0%/*}/child\"\nwait & cat \"$0.fifo\"";
    let mut scene =
        Scene::new("pre_tool_call = [{ command = \"$S/hook\", timeout_s = 1 }]", &[("hook", script)]);
    let refused = scene.call("write_file", json!({"path": "a.txt", "content": "x"}));
    refused.refused("HOOK_DENIED").says("it did not answer in time");
    assert_eq!(scene.get("a.txt"), None);
    for name in ["parent", "child"] {
        let pid = scene.noted(name).trim().parse().unwrap();
        assert!(gone(pid, PATIENCE), "{name} lives");
    }
}

#[test]
fn nothing_of_a_hook_that_answered_is_left() {
    let mut scene = Scene::before("sleep 1000 &\necho $! > \"${0%/*}/child\"");
    scene.call("whoami", json!({})).ok();
    assert!(gone(scene.noted("child").trim().parse().unwrap(), PATIENCE));
}

#[test]
fn a_hook_need_not_read_and_may_read_much() {
    let mut scene = Scene::before("exec true");
    let long = "long line\n".repeat(100_000);
    scene.call("write_file", json!({"path": "a.txt", "content": long})).ok();
    assert_eq!(scene.get("a.txt").unwrap().len(), long.len());
    let mut scene = Scene::before(&noting(""));
    scene.call("write_file", json!({"path": "a.txt", "content": long})).ok();
    assert_eq!(scene.asked()[0]["tool_input"]["content"], long);
}

#[test]
fn a_hook_that_may_fail_lets_the_call_pass_and_says_so() {
    let mut scene = Scene::new("pre_tool_call = [{ command = \"exit 9\", fail_open = true }]", &[]);
    let written = scene.call("write_file", json!({"path": "a.txt", "content": "x"}));
    written
        .ok()
        .says("! pre_tool_call[1]: could not be asked (it ended with status 9); the call passed without it");
    assert_eq!(scene.get("a.txt").as_deref(), Some("x\n"));
    assert_eq!(scene.journal()[0][2], "failed, passed");
    // A no of the same hook is a no.
    let mut scene = Scene::new("pre_tool_call = [{ command = \"exit 2\", fail_open = true }]", &[]);
    scene.call("whoami", json!({})).refused("HOOK_DENIED");
}

#[test]
fn what_a_hook_asks_is_asked_whatever_the_profile() {
    let mut scene = Scene::before(&saying(decides("ask", "it is the changelog")));
    let pending = scene.call("write_file", json!({"path": "CHANGES", "content": "x\n"}));
    pending.refused("APPROVAL_PENDING").says("Why it is asked: \"it is the changelog\"");
    assert_eq!(pending.get("hook"), "pre_tool_call[1]");
    assert_eq!(scene.get("CHANGES"), None);
    let [question] = &scene.pending()[..] else { panic!("{:?}", scene.pending()) };
    assert_eq!(
        (&question["hook"], &question["why"]),
        (&json!("pre_tool_call[1]"), &json!("it is the changelog"))
    );
    let token = pending.offered("token");
    let yes = json!({"id": question["id"], "digest": question["digest"]});
    scene.ground.admin().ask("approve", yes.as_object().unwrap().clone()).unwrap();
    assert_eq!(scene.get("CHANGES").as_deref(), Some("x\n"));
    scene.call("retry", json!({"token": token})).ok().says("change=c");
}

#[test]
fn nothing_is_asked_about_a_call_that_changes_nothing() {
    let mut scene = Scene::before(&saying(decides("ask", "private")));
    scene.put("a.txt", "x\n");
    scene
        .call("read_file", json!({"path": "a.txt"}))
        .refused("HOOK_DENIED")
        .says("private")
        .says("changes only");
    let dry = scene.call("write_file", json!({"path": "b.txt", "content": "x", "dry_run": true}));
    dry.refused("HOOK_DENIED").says("next: send the call without dry_run");
    assert_eq!(scene.pending(), Vec::<Value>::new());
}

#[test]
fn the_strictest_of_several_wins() {
    let scripts = [
        ("allow", saying(decides("allow", "fine"))),
        ("ask", saying(decides("ask", "hm"))),
        ("deny", saying(decides("deny", "never"))),
    ];
    let scripts: Vec<(&str, &str)> = scripts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    for (order, code) in [
        (&["allow", "ask"][..], "APPROVAL_PENDING"),
        (&["ask", "allow"], "APPROVAL_PENDING"),
        (&["ask", "allow", "deny"], "HOOK_DENIED"),
        (&["deny", "allow"], "HOOK_DENIED"),
    ] {
        let hooks: Vec<String> = order.iter().map(|name| format!("{{ command = \"$S/{name}\" }}")).collect();
        let mut scene = Scene::new(&format!("pre_tool_call = [{}]", hooks.join(", ")), &scripts);
        scene.call("write_file", json!({"path": "a.txt", "content": "x"})).refused(code);
        assert_eq!(scene.get("a.txt"), None);
    }
}

#[test]
fn an_allow_lifts_nothing() {
    let script = saying(decides("allow", "go"));
    let hooks = "pre_tool_call = [{ command = \"$S/hook\" }]";
    let mut scene = Scene::with("[approvals]\nprofile = \"careful\"\n", hooks, &[("hook", &script)]);
    scene.put("a.txt", "one\n");
    scene.call("read_file", json!({"path": "a.txt"})).ok();
    scene
        .call("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "1"}))
        .refused("APPROVAL_PENDING");
    scene.call("read_file", json!({"path": "cotenant.toml"})).refused("PATH_PROTECTED");
}

#[test]
fn a_rewritten_call_is_a_new_call() {
    let rewrite = |input: Value| saying(json!({"hookSpecificOutput": {"updatedInput": input}}));
    let write = json!({"path": "a.txt", "content": "x"});
    let mut scene = Scene::before(&rewrite(json!({"path": "b.txt", "content": "y"})));
    let written = scene.call("write_file", write.clone());
    written.ok().says("! pre_tool_call[1] changed the arguments of this call");
    assert_eq!((scene.get("a.txt"), scene.get("b.txt").as_deref()), (None, Some("y\n")));
    assert_eq!(scene.journal()[0][2], "rewrite");
    // By Claude Code's name, and by Gemini's form, which names what changes only.
    let mut scene = Scene::before(&rewrite(json!({"file_path": "b.txt", "content": "y"})));
    scene.call("write_file", write.clone()).ok();
    assert_eq!((scene.get("a.txt"), scene.get("b.txt").as_deref()), (None, Some("y\n")));
    let mut scene = Scene::before(&saying(json!({"hookSpecificOutput": {"tool_input": {"content": "z"}}})));
    scene.call("write_file", write.clone()).ok();
    assert_eq!(scene.get("a.txt").as_deref(), Some("z\n"));
    // Confined and classed like any other.
    for (path, code) in [("../a.txt", "PATH_OUTSIDE"), ("/etc/x", "PATH_OUTSIDE"), (".env", "PATH_PROTECTED")]
    {
        let mut scene = Scene::before(&rewrite(json!({"path": path, "content": "y"})));
        let refused = scene.call("write_file", write.clone());
        refused.refused(code).says("pre_tool_call[1] changed the arguments of this call");
    }
    let mut scene = Scene::before(&rewrite(json!({"path": "b.txt", "text": "y"})));
    scene.call("write_file", write).refused("HOOK_DENIED").says("gave it arguments that it cannot have");
    assert_eq!((scene.get("a.txt"), scene.get("b.txt")), (None, None));
}

#[test]
fn a_rewrite_keeps_the_key_and_the_dry_run() {
    let script = saying(json!({"hookSpecificOutput": {"updatedInput": {"path": "a.txt", "content": "y"}}}));
    let mut scene = Scene::before(&script);
    let args = json!({"path": "a.txt", "content": "x", "idempotency_key": "k1"});
    scene.call("write_file", json!({"path": "a.txt", "content": "x", "dry_run": true})).ok();
    assert_eq!(scene.get("a.txt"), None);
    let first = scene.call("write_file", args.clone()).ok().get("change");
    assert_eq!(scene.call("write_file", args).ok().get("change"), first);
    assert_eq!(scene.get("a.txt").as_deref(), Some("y\n"));
}

#[test]
fn what_one_hook_rewrites_every_other_one_sees() {
    let guard = "if grep -q 'tool_input.*secret'; then echo 'no secrets' >&2; exit 2; fi";
    let rewrite = saying(json!({"hookSpecificOutput": {"tool_input": {"content": "a secret"}}}));
    let hooks = "pre_tool_call = [{ command = \"$S/guard\" }, { command = \"$S/rewrite\" }]";
    let mut scene = Scene::new(hooks, &[("guard", guard), ("rewrite", &rewrite)]);
    let refused = scene.call("write_file", json!({"path": "a.txt", "content": "x"}));
    refused.refused("HOOK_DENIED").says("no secrets");
    assert_eq!(refused.get("hook"), "pre_tool_call[1]");
    assert_eq!(scene.get("a.txt"), None);
    // Two that undo one another's work come to an end.
    let other = saying(json!({"hookSpecificOutput": {"tool_input": {"content": "nothing"}}}));
    let mut scene = Scene::new(hooks, &[("guard", &other), ("rewrite", &rewrite)]);
    scene
        .call("write_file", json!({"path": "a.txt", "content": "x"}))
        .refused("HOOK_DENIED")
        .says("again and again");
    assert_eq!(scene.get("a.txt"), None);
}

#[test]
fn a_retry_is_judged_as_the_call_that_it_repeats() {
    let script = noting("tail -n 1 \"${0%/*}/asked\" | grep -q '\"tool_input\":.*b.txt' && exit 2\nexit 0");
    let hooks = "pre_tool_call = [{ matcher = \"write_file\", command = \"$S/hook\" }]";
    let mut scene = Scene::new(hooks, &[("hook", &script)]);
    scene.put("a.txt", "there\n");
    let exists = scene.call("write_file", json!({"path": "a.txt", "content": "x", "contnt": 1}));
    let token = exists.refused("BAD_INPUT").offered("token");
    let set = json!({"contnt": null, "path": "b.txt"});
    scene.call("retry", json!({"token": token, "set": set})).refused("HOOK_DENIED");
    assert_eq!(scene.get("b.txt"), None);
    scene.call("retry", json!({"token": token, "set": {"contnt": null, "path": "c.txt"}})).ok();
    assert_eq!(scene.get("c.txt").as_deref(), Some("x\n"));
    let paths: Vec<Value> = scene.asked().iter().map(|asked| asked["tool_input"]["path"].clone()).collect();
    assert_eq!(paths, ["b.txt", "c.txt"]);
}

#[test]
fn matchers_know_our_names_and_claude_codes() {
    let claude = "pre_tool_call = [{ matcher = \"Edit|Write\", hooks = [{ type = \"command\", command = \"$S/hook\", \
                  timeout = 10 }] }]";
    let mut scene = Scene::new(claude, &[("hook", "exit 2")]);
    scene.put("a.txt", "one\n");
    scene.call("read_file", json!({"path": "a.txt"})).ok();
    scene
        .call("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "1"}))
        .refused("HOOK_DENIED");
    scene.call("write_file", json!({"path": "b.txt", "content": "x"})).refused("HOOK_DENIED");
    scene.call("create_path", json!({"path": "b.txt", "kind": "file"})).refused("HOOK_DENIED");
    scene.call("whoami", json!({})).ok();
    // Names that the registry takes for another are that other.
    let mut scene = Scene::new("pre_tool_call = [{ matcher = \"Read\", command = \"exit 2\" }]", &[]);
    scene.call("exec_read", json!({"path": "a.txt"})).refused("HOOK_DENIED");
}

#[test]
fn context_for_the_model_is_a_notice() {
    let json = json!({"hookSpecificOutput": {"additionalContext": "the tests\nof a.txt are slow"}});
    let mut scene = Scene::before(&saying(json));
    scene.put("a.txt", "! no notice\n");
    let read = scene.call("read_file", json!({"path": "a.txt"}));
    assert_eq!(read.ok().notices(), ["pre_tool_call[1]: the tests of a.txt are slow"]);
    assert_eq!(read.content(), "1|! no notice");
}

#[test]
fn nobody_but_a_hook_says_that_a_human_is_asked() {
    let ask = json!({"hook": "pre_tool_call[1]", "reason": "forged"});
    let mut scene = Scene::new("pre_tool_call = [{ matcher = \"undo\", command = \"exit 2\" }]", &[]);
    for (name, meta) in [("a.txt", json!({"cotenant/ask": ask})), ("b.txt", json!({"cotenant/ask": null}))] {
        scene.call_with("write_file", json!({"path": name, "content": "x"}), meta).ok();
    }
    // Nor does anything that a client sends take the question away.
    let script = saying(decides("ask", "asked"));
    let mut scene = Scene::before(&script);
    for meta in [json!({"cotenant/ask": null}), json!({"cotenant/ask": false}), json!({"cotenant/ask": ask})]
    {
        let pending = scene.call_with("write_file", json!({"path": "a.txt", "content": "x"}), meta);
        pending.refused("APPROVAL_PENDING").says("asked").never_says("forged");
    }
    assert_eq!(scene.get("a.txt"), None);
}

#[test]
fn a_call_that_cannot_be_understood_asks_no_hook() {
    let mut scene = Scene::before(&noting(""));
    scene.call("write_file", json!({"path": "a.txt"})).refused("BAD_INPUT");
    scene.call("no_such_tool", json!({})).refused("BAD_INPUT");
    assert!(scene.asked().is_empty());
}

#[test]
fn what_is_answered_once_asks_no_hook_again() {
    // The first call passes, every later one is a no.
    let script = "[ -e \"$0.once\" ] && exit 2\n: > \"$0.once\"";
    let mut scene = Scene::before(script);
    let args = json!({"path": "a.txt", "content": "x", "idempotency_key": "k1"});
    let first = scene.call("write_file", args.clone()).ok().get("change");
    assert_eq!(scene.call("write_file", args).ok().get("change"), first);
    scene.call("write_file", json!({"path": "b.txt", "content": "x"})).refused("HOOK_DENIED");
}

#[test]
fn no_hook_no_journal() {
    let mut scene = Scene::with(TRUSTING, "", &[]);
    scene.call("write_file", json!({"path": "a.txt", "content": "x"})).ok();
    assert!(scene.journal().is_empty());
}
