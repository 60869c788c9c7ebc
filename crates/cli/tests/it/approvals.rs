//! A human's yes and no: what is asked is kept, what is answered is what is written.

use cotenant_testkit::{Client, Reply, Scratch};
use serde_json::{Value, json};

use crate::support::scratch;

struct Asked {
    id: String,
    digest: String,
    token: String,
}

#[track_caller]
fn asked(reply: &Reply) -> Asked {
    reply.refused("APPROVAL_PENDING");
    assert!(!reply.is_error, "a question is no error");
    assert_eq!(reply.get("reviewer"), "none");
    let facts = &reply.meta["cotenant/refusal"]["facts"];
    let digest = facts["digest"].as_str().unwrap_or_else(|| panic!("no digest: {facts}")).to_owned();
    Asked { id: reply.get("id"), digest, token: reply.offered("token") }
}

fn careful(scratch: &Scratch) -> Client {
    scratch.put("a.txt", "one\ntwo\n");
    let mut agent =
        scratch.mcp().profile("careful").flags(&["--agent", "agent-a", "--task", "numbers"]).start();
    agent.read("a.txt");
    agent
}

/// The one pending question, as the command line lists it.
#[track_caller]
fn pending(scratch: &Scratch) -> Value {
    let listed = scratch.run(&["pending", "--json"]);
    let pending = listed.ok().json()["pending"].as_array().unwrap().clone();
    assert_eq!(pending.len(), 1, "{listed:?}");
    pending[0].clone()
}

#[test]
fn a_change_waits_and_lands_when_it_is_approved() {
    let scratch = scratch();
    let mut agent = careful(&scratch);
    let question = asked(&agent.edit("a.txt", "one", "1"));
    assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
    let listed = pending(&scratch);
    assert_eq!((&listed["id"], &listed["digest"]), (&json!(question.id), &json!(question.digest)));
    assert_eq!((&listed["agent"], &listed["task"]), (&json!("agent-a"), &json!("numbers")));
    assert_eq!((&listed["tool"], &listed["paths"]), (&json!("edit_file"), &json!(["a.txt"])));
    let diff = listed["diff"].as_str().unwrap();
    assert!(diff.contains("-one") && diff.contains("+1"), "{diff}");
    scratch.run(&["approve", &question.id, "--digest", &question.digest]).ok();
    // It lands by itself.
    assert_eq!(scratch.text("a.txt"), "1\ntwo\n");
    let told = agent.call("whoami", json!({}));
    assert!(told.text.contains(&question.id), "nobody is told: {}", told.text);
    let result = agent.call("retry", json!({"token": question.token}));
    assert!(result.ok().fact("change").is_some(), "{}", result.text);
    assert_eq!(scratch.run(&["approve", &question.id, "--digest", &question.digest]).code, 1);
    assert_eq!(agent.call("history", json!({})).number("changes"), 1);
}

#[test]
fn a_no_comes_with_its_reason() {
    let scratch = scratch();
    let mut agent = careful(&scratch);
    let question = asked(&agent.edit("a.txt", "one", "1"));
    scratch.run(&["deny", &question.id, "--reason", "keep the words"]).ok();
    assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
    let answer = agent.call("retry", json!({"token": question.token}));
    answer.refused("APPROVAL_DENIED").says("keep the words");
    assert_eq!(scratch.run(&["deny", &question.id, "--reason", "again"]).code, 1);
    assert_eq!(scratch.run(&["approve", &question.id, "--digest", &question.digest]).code, 1);
    assert_eq!(scratch.run(&["pending", "--json"]).json()["pending"], json!([]));
}

#[test]
fn only_the_digest_that_was_seen_is_approved() {
    let scratch = scratch();
    let mut agent = careful(&scratch);
    let question = asked(&agent.edit("a.txt", "one", "1"));
    let other = "0".repeat(question.digest.len());
    assert_eq!(scratch.run(&["approve", &question.id, "--digest", &other]).code, 1);
    assert_ne!(scratch.run(&["approve", &question.id]).code, 0, "without a terminal the digest is required");
    assert_eq!(scratch.run(&["approve", "a999", "--digest", &question.digest]).code, 1);
    assert_eq!(scratch.text("a.txt"), "one\ntwo\n");
    assert_eq!(pending(&scratch)["id"], question.id.as_str());
}

#[test]
fn careful_asks_for_changes_and_lets_create() {
    let scratch = scratch();
    let mut agent = careful(&scratch);
    agent.write("new.txt", "x\n").ok();
    agent.call("create_path", json!({"path": "made", "kind": "directory"})).ok();
    asked(&agent.overwrite("a.txt", "all new\n"));
    asked(&agent.call("undo", json!({})));
    let preview = json!({"path": "a.txt", "old_text": "one", "new_text": "1", "dry_run": true});
    agent.call("edit_file", preview).ok().says("+1");
}

#[test]
fn a_waiting_change_does_not_stop_other_work() {
    let scratch = scratch();
    scratch.put("b.txt", "b\n");
    let mut agent = careful(&scratch);
    let question = asked(&agent.edit("a.txt", "one", "1"));
    agent.read("b.txt");
    agent.write("c.txt", "c\n").ok();
    agent.read("a.txt").says("1|one");
    let again = asked(&agent.call("retry", json!({"token": question.token})));
    assert_eq!((&again.id, &again.digest), (&question.id, &question.digest), "asked once, not twice");
    scratch.run(&["deny", &question.id, "--reason", "done"]).ok();
}

#[test]
fn what_is_read_only_refuses_every_change() {
    let scratch = scratch();
    scratch.put("a.txt", "one\n");
    let mut agent = scratch.mcp().profile("readonly").start();
    agent.read("a.txt");
    for refused in [
        agent.edit("a.txt", "one", "1"),
        agent.overwrite("a.txt", "x\n"),
        agent.write("new.txt", "x\n"),
        agent.call("create_path", json!({"path": "made", "kind": "directory"})),
    ] {
        refused.refused("PROFILE_READ_ONLY");
    }
    assert_eq!(scratch.sh("ls; cat a.txt").stdout, "a.txt\none\n");
}

#[test]
fn sensitive_files_are_asked_about_even_when_trusted() {
    let scratch = scratch();
    let mut agent = scratch.mcp().start();
    let question = asked(&agent.write("AGENTS.md", "be kind\n"));
    assert!(!scratch.path("AGENTS.md").exists());
    scratch.run(&["approve", &question.id, "--digest", &question.digest]).ok();
    assert_eq!(scratch.text("AGENTS.md"), "be kind\n");
}

#[test]
fn rules_of_the_settings_decide_too() {
    let scratch = scratch();
    scratch.put("docs/a.md", "one\n");
    scratch.put("src/a.rs", "one\n");
    scratch.configure(
        "[approvals]\nrules = [\n  { tool = \"edit_file\", paths = [\"docs/**\"], answer = \"deny\" },\n  \
         { tool = \"edit_file\", paths = [\"src/**\"], answer = \"ask\" },\n]\n",
    );
    let mut agent = scratch.mcp().start();
    agent.read("docs/a.md");
    agent.read("src/a.rs");
    assert!(agent.edit("docs/a.md", "one", "1").refused_as(&[]).is_error);
    asked(&agent.edit("src/a.rs", "one", "1"));
    scratch.run(&["config", "check"]).ok();
}

#[test]
fn the_review_on_a_plain_terminal_takes_answers_line_by_line() {
    let scratch = scratch();
    let mut agent = careful(&scratch);
    asked(&agent.edit("a.txt", "one", "1"));
    let shown = scratch.run(&["review"]);
    assert!(shown.stdout.contains("a.txt") && shown.stdout.contains("agent-a"), "{shown:?}");
    assert_eq!(scratch.text("a.txt"), "one\ntwo\n", "no answer is no yes");
    let listed = scratch.run(&["review", "--json"]).ok().json();
    assert_eq!(listed["pending"].as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn the_human_is_told_which_hook_asks_and_why() {
    let scratch = scratch();
    let word = r#"{"decision": "ask", "reason": "it is\nthe changelog"}"#;
    scratch.configure(&format!(
        "[approvals]\nprofile = \"trusting\"\n[hooks]\npre_tool_call = [{{ matcher = \"Write\", command = '''printf %s '{word}' ''' }}]\n"
    ));
    scratch.run(&["config", "check"]).ok();
    let mut agent = scratch.mcp().start();
    agent.write("CHANGES", "x\n").refused("APPROVAL_PENDING").says("it is\\nthe changelog");
    let shown = scratch.run(&["review"]);
    assert!(shown.stdout.contains("\nasked by pre_tool_call[1]: it is the changelog\n"), "{shown:?}");
    assert_eq!(pending(&scratch)["why"], "it is\nthe changelog");
    // From a command line it is a call like any other.
    let said = scratch.run(&["write-file", "OTHER", "x"]);
    assert!(said.stdout.starts_with("APPROVAL_PENDING"), "{said:?}");
    assert!(!scratch.path("CHANGES").exists() && !scratch.path("OTHER").exists());
}
