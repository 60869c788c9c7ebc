//! Commands of several sessions at once on the same files: everything lands, or its caller is told.

use cotenant_testkit::{Client, Scratch};
use serde_json::json;

use super::{approve, asleep, can_stage, marker, waiting, wake};
use crate::support::scratch;

fn agents(scratch: &Scratch) -> [Client; 2] {
    scratch.put("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    ["one", "other"].map(|name| scratch.mcp().flags(&["--agent", name]).start())
}

/// Starts a command that has changed its copy and waits; returns its job and what it sleeps in.
fn halfway(agent: &mut Client, edit: &str) -> (String, i32) {
    let marker = marker();
    let command = format!("{edit}; sleep {marker}; true");
    let call = json!({"command": command, "background": true, "timeout_s": 900});
    let job = agent.call("run_command", call).ok().get("job");
    (job, asleep(&marker))
}

fn ended(agent: &mut Client, job: &str) -> cotenant_testkit::Reply {
    agent.call("command_output", json!({"id": job, "wait_s": 45}))
}

#[test]
fn two_commands_that_change_far_lines_of_a_file_both_land() {
    let scratch = scratch();
    let [mut one, mut other] = agents(&scratch);
    if !can_stage(&scratch) {
        return;
    }
    let (first, sleeper) = halfway(&mut one, "perl -pi -e 's/^1$/one/' a.txt");
    other.call("run_command", json!({"command": "perl -pi -e 's/^9$/nine/' a.txt"})).ok();
    assert_eq!(scratch.text("a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    wake(sleeper);
    ended(&mut one, &first).ok().says("a.txt");
    assert_eq!(scratch.text("a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    // Each takes back its own.
    one.call("undo", json!({})).ok();
    assert_eq!(scratch.text("a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

#[test]
fn two_commands_that_change_one_line_one_is_told() {
    let scratch = scratch();
    let [mut one, mut other] = agents(&scratch);
    if !can_stage(&scratch) {
        return;
    }
    let (first, sleeper) = halfway(&mut one, "perl -pi -e 's/^5$/five/' a.txt; echo x > beside");
    other.call("run_command", json!({"command": "perl -pi -e 's/^5$/V/' a.txt"})).ok();
    wake(sleeper);
    let told = ended(&mut one, &first);
    told.refused("FILE_CHANGED_SINCE_READ").says("a.txt");
    assert_eq!(scratch.text("a.txt"), "1\n2\n3\n4\nV\n6\n7\n8\n9\n");
    assert!(!scratch.path("beside").exists(), "all of it or nothing");
    assert_eq!(one.call("history", json!({})).number("changes"), 1);
}

#[test]
fn an_edit_by_a_tool_while_a_command_runs_is_not_lost() {
    let scratch = scratch();
    let [mut one, mut other] = agents(&scratch);
    if !can_stage(&scratch) {
        return;
    }
    let (first, sleeper) = halfway(&mut one, "perl -pi -e 's/^1$/one/' a.txt");
    other.read("a.txt");
    other.edit("a.txt", "8\n9\n", "8\nnine\n").ok();
    // And a person, with an editor, in between.
    scratch.put("a.txt", scratch.text("a.txt").replace("5\n", "five\n"));
    wake(sleeper);
    ended(&mut one, &first).ok();
    assert_eq!(scratch.text("a.txt"), "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n");
}

#[test]
fn a_file_that_another_made_or_removed_meanwhile_is_not_written_over() {
    let scratch = scratch();
    let [mut one, mut other] = agents(&scratch);
    if !can_stage(&scratch) {
        return;
    }
    let (made, sleeper) = halfway(&mut one, "echo mine > new.txt");
    other.write("new.txt", "theirs\n").ok();
    wake(sleeper);
    ended(&mut one, &made).refused("FILE_CHANGED_SINCE_READ").says("new.txt");
    assert_eq!(scratch.text("new.txt"), "theirs\n");
    let (removed, sleeper) = halfway(&mut one, "rm a.txt");
    other.read("a.txt");
    other.edit("a.txt", "5\n", "five\n").ok();
    wake(sleeper);
    ended(&mut one, &removed).refused("FILE_CHANGED_SINCE_READ");
    assert!(scratch.text("a.txt").contains("five"), "what changed is not deleted unseen");
    let (changed, sleeper) = halfway(&mut one, "perl -pi -e 's/^1$/one/' a.txt");
    std::fs::remove_file(scratch.path("a.txt")).unwrap();
    wake(sleeper);
    ended(&mut one, &changed).refused("FILE_CHANGED_SINCE_READ");
    assert!(!scratch.path("a.txt").exists(), "what is gone does not come back unasked");
}

#[test]
fn many_commands_at_once_count_a_file_up_or_are_told() {
    const AGENTS: usize = 4;
    let scratch = scratch();
    let slots: String = (0..AGENTS * 3).map(|slot| format!("slot {slot:02} empty\n\n-\n\n")).collect();
    scratch.put("slots.txt", slots);
    let mut clients: Vec<Client> = (0..AGENTS)
        .map(|number| scratch.mcp().flags(&["--agent", &format!("agent-{number}")]).start())
        .collect();
    let answered: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .enumerate()
            .map(|(who, client)| {
                scope.spawn(move || {
                    let mine = (0..3).map(|turn| turn * AGENTS + who);
                    mine.filter(|slot| {
                        let command =
                            format!("perl -pi -e 's/slot {slot:02} empty/slot {slot:02} full/' slots.txt");
                        let reply = client.call("run_command", json!({"command": command}));
                        reply.refused_as_or_ok(&["FILE_CHANGED_SINCE_READ", "BUSY"]).code().is_none()
                    })
                    .collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let text = scratch.text("slots.txt");
    assert_eq!(text.lines().count(), AGENTS * 3 * 4);
    for slot in 0..AGENTS * 3 {
        let full = text.contains(&format!("slot {slot:02} full\n"));
        assert_eq!(full, answered[slot % AGENTS].contains(&slot), "slot {slot}: in the file {full}\n{text}");
    }
    assert!(answered.iter().any(|slots| !slots.is_empty()), "{answered:?}");
}

#[test]
fn what_a_command_changed_is_merged_anew_where_others_wrote_before_the_yes() {
    let scratch = scratch();
    if !can_stage(&scratch) {
        return;
    }
    scratch.put("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let mut agent = scratch.mcp().profile("careful").start();
    let asked = agent.call("run_command", json!({"command": "perl -pi -e 's/^9$/nine/' a.txt"}));
    asked.refused("APPROVAL_PENDING");
    let stale = waiting(&scratch);
    scratch.put("a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(approve(&scratch, &stale).code, 1, "that is not what was seen");
    assert_eq!(scratch.text("a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let anew = waiting(&scratch);
    assert_ne!(anew["digest"], stale["digest"]);
    approve(&scratch, &anew).ok();
    assert_eq!(scratch.text("a.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    agent.call("retry", json!({"token": asked.offered("token")})).ok();
}

#[test]
fn what_others_do_while_a_direct_command_runs_is_theirs() {
    let scratch = scratch();
    let [mut one, mut other] = agents(&scratch);
    scratch.put("log", "");
    let marker = marker();
    let command = format!("echo begun >> log; sleep {marker}; echo over >> log");
    let call = json!({"command": command, "background": true, "timeout_s": 900, "mode": "direct"});
    let job = one.call("run_command", call).ok().get("job");
    let sleeper = asleep(&marker);
    other.read("a.txt");
    other.edit("a.txt", "5\n", "five\n").ok();
    other.call("run_command", json!({"command": "perl -pi -e 's/9/nine/' a.txt; echo x > beside"})).ok();
    wake(sleeper);
    let done = ended(&mut one, &job);
    assert_eq!((done.ok().number("exit"), done.number("changed")), (0, 1), "{}", done.text);
    done.says("M log").says("not counted: a.txt, beside").never_says("A beside");
    let mine = one.call("show_change", json!({"change": done.get("change")}));
    mine.ok().says("+over").never_says("five");
    one.call("undo", json!({"change": done.get("change")})).ok();
    assert_eq!((scratch.text("log"), scratch.text("beside")), (String::new(), "x\n".to_owned()));
    assert_eq!(scratch.text("a.txt"), "1\n2\n3\n4\nfive\n6\n7\n8\nnine\n");
}
