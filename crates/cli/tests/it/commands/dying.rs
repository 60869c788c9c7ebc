//! The daemon is killed while a command runs and while its effects land: each time all of it is there, or nothing.

use std::time::Duration;

use cotenant_testkit::{Client, Dice, PATIENCE, Reply, Scratch, gone, long};
use serde_json::{Value, json};

use super::{all_gone, asleep, can_stage, marked, marker, no_strays, wake, with};
use crate::support::scratch;

const FILES: usize = 24;

/// Files whose number a command counts up by one: run twice, it is seen.
fn counters(scratch: &Scratch) {
    (0..FILES).for_each(|file| scratch.put(&format!("d{}/f{file}", file % 4), "one\nvalue 0\nthree\n"));
}

const COUNT_UP: &str = "perl -pi -e 's/value (\\d+)/\"value \".($1+1)/e' d*/f*";

/// The different texts of all files.
fn values(scratch: &Scratch) -> Vec<String> {
    let mut all: Vec<String> =
        (0..FILES).map(|file| scratch.text(&format!("d{}/f{file}", file % 4))).collect();
    all.sort();
    all.dedup();
    all
}

fn text(value: usize) -> String {
    format!("one\nvalue {value}\nthree\n")
}

fn collected(client: &mut Client, id: u64, early: Option<Value>) -> Reply {
    early.map_or_else(|| client.reply(id), |answer| Reply::read(&answer["result"]))
}

#[test]
fn command_serial_killed_at_any_moment_all_files_are_old_or_all_new_once() {
    let scratch = scratch();
    if !can_stage(&scratch) {
        return;
    }
    counters(&scratch);
    let mut agent = scratch.mcp().flags(&["--agent", "agent-a", "--durability", "batch"]).start();
    let mut dice = Dice::thrown();
    let mut value = 0;
    for run in 0..if long() { 200 } else { 12 } {
        // So that there is a daemon to be killed.
        agent.call("whoami", json!({})).ok();
        let id = agent.post_call("run_command", json!({"command": COUNT_UP}));
        let early = agent.answer_within(id, Duration::from_micros(dice.below(200_000)));
        scratch.kill_daemon();
        for now in values(&scratch) {
            assert!([text(value), text(value + 1)].contains(&now), "run {run}: half a file: {now:?}");
        }
        // The bridge finds another daemon, which recovers first, and asks again.
        let reply = collected(&mut agent, id, early);
        if reply.code().is_none() {
            value += 1;
        }
        assert_eq!(values(&scratch), [text(value)], "run {run}: {}", reply.text);
    }
    assert!(value > 0);
    let newest = agent.call("history", json!({"limit": 1}));
    let newest = newest.content().split(' ').next().unwrap().to_owned();
    agent.call("undo", json!({"change": newest})).ok();
    assert_eq!(values(&scratch), [text(value - 1)]);
    scratch.run(&["journal", "verify"]).ok();
    no_strays(&scratch);
}

#[test]
fn command_serial_killed_while_it_runs_it_leaves_no_process_and_no_trace() {
    let scratch = scratch();
    if !can_stage(&scratch) {
        return;
    }
    counters(&scratch);
    let mut agent = scratch.mcp().start();
    let marker = marker();
    let command = format!("{COUNT_UP}; echo x > made; (setsid sleep {marker} &); sleep {marker}; echo on");
    let more = json!({"background": true, "timeout_s": 900});
    agent.call("run_command", with(&command, more)).ok();
    asleep(&marker);
    let processes = marked(&marker);
    scratch.kill_daemon();
    for (pid, name) in processes {
        assert!(gone(pid, PATIENCE), "{name} ({pid}) outlives the daemon");
    }
    assert_eq!(values(&scratch), [text(0)]);
    assert!(!scratch.path("made").exists());
    let next = agent.call("run_command", json!({"command": COUNT_UP}));
    assert_eq!(next.ok().number("changed"), FILES as u64);
    assert_eq!(values(&scratch), [text(1)]);
    assert_eq!(agent.call("history", json!({})).number("changes"), 1);
    no_strays(&scratch);
}

/// The bridge asks again after the daemon's death: what was in the middle runs anew, on the files as they were.
#[test]
fn command_serial_killed_in_the_middle_of_a_call_it_is_run_anew_and_counts_once() {
    let scratch = scratch();
    if !can_stage(&scratch) {
        return;
    }
    counters(&scratch);
    let mut agent = scratch.mcp().start();
    let marker = marker();
    let id = agent.post_call("run_command", json!({"command": format!("{COUNT_UP}; sleep {marker}; true")}));
    let first = asleep(&marker);
    scratch.kill_daemon();
    assert!(gone(first, PATIENCE));
    let again = asleep(&marker);
    assert_ne!(first, again);
    assert_eq!(values(&scratch), [text(0)]);
    wake(again);
    assert_eq!(agent.reply(id).ok().number("changed"), FILES as u64);
    assert_eq!(values(&scratch), [text(1)]);
    all_gone(&marker);
}

#[test]
fn command_serial_killed_while_a_question_waits_nothing_lands_without_a_new_one() {
    let scratch = scratch();
    counters(&scratch);
    let mut agent = scratch.mcp().profile("careful").start();
    let asked = agent.call("run_command", json!({"command": COUNT_UP}));
    asked.refused("APPROVAL_PENDING");
    let question = super::waiting(&scratch);
    scratch.kill_daemon();
    let answered = super::approve(&scratch, &question);
    if answered.code != 0 {
        assert_eq!(values(&scratch), [text(0)]);
        agent.call("retry", json!({"token": asked.offered("token")})).refused_as(&[]);
        agent.call("run_command", json!({"command": COUNT_UP})).refused("APPROVAL_PENDING");
        super::approve(&scratch, &super::waiting(&scratch)).ok();
    }
    assert_eq!(values(&scratch), [text(1)]);
}

/// What runs in the workspace itself cannot be taken back by a dead daemon; its processes end with it all the same.
#[test]
fn command_serial_killed_during_a_direct_run_it_leaves_no_process_and_the_next_works() {
    let scratch = scratch();
    let mut agent = scratch.mcp().start();
    let marker = marker();
    let command = format!("echo half > made; (setsid sleep {marker} &); sleep {marker}; echo whole > made");
    let more = json!({"background": true, "timeout_s": 900, "mode": "direct"});
    agent.call("run_command", with(&command, more)).ok();
    asleep(&marker);
    let processes = marked(&marker);
    scratch.kill_daemon();
    for (pid, name) in processes {
        assert!(gone(pid, PATIENCE), "{name} ({pid}) outlives the daemon");
    }
    assert_eq!(scratch.text("made"), "half\n");
    let next = agent.call("run_command", json!({"command": "echo next >> made; cat made", "mode": "direct"}));
    assert_eq!(next.ok().number("exit"), 0);
    assert_eq!(scratch.text("made"), "half\nnext\n");
    agent.call("undo", json!({})).ok();
    assert_eq!(scratch.text("made"), "half\n");
    no_strays(&scratch);
}

#[test]
fn command_serial_mounts_and_scratch_of_killed_daemons_do_not_pile_up() {
    let scratch = scratch();
    if !can_stage(&scratch) {
        return;
    }
    let mut agent = scratch.mcp().start();
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let marker = marker();
        let command = format!("head -c 3000000 /dev/zero > big; sleep {marker}");
        agent.call("run_command", with(&command, json!({"background": true, "timeout_s": 900}))).ok();
        asleep(&marker);
        scratch.kill_daemon();
        all_gone(&marker);
        agent.call("run_command", json!({"command": "true"})).ok();
        let state = scratch.base().join("state");
        sizes.push(scratch.sh(&format!("du -sk {} | cut -f1", state.display())).stdout.trim().to_owned());
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(scratch.base().to_str().unwrap()), "a mount is seen from outside");
    }
    let kilobytes: Vec<u64> = sizes.iter().map(|size| size.parse().unwrap()).collect();
    assert!(kilobytes[3] < kilobytes[0] + 3000, "upper layers are left behind: {kilobytes:?} KB");
    assert!(!scratch.path("big").exists());
}

/// A yes that is cut off by the daemon's death lands as a whole, or not at all and is asked for again.
#[test]
fn command_serial_killed_while_a_yes_lands_all_of_it_is_there_or_nothing() {
    let scratch = scratch();
    if !can_stage(&scratch) {
        return;
    }
    counters(&scratch);
    let mut agent = scratch.mcp().profile("careful").flags(&["--agent", "agent-a"]).start();
    let mut dice = Dice::thrown();
    let (mut value, mut landed) = (0, 0);
    for run in 0..if long() { 60 } else { 6 } {
        agent.call("run_command", json!({"command": COUNT_UP})).refused("APPROVAL_PENDING");
        let question = super::waiting(&scratch);
        let [id, digest] = ["id", "digest"].map(|name| question[name].as_str().unwrap());
        let mut yes = scratch.cotenant(&["approve", id, "--digest", digest]);
        let mut yes = yes.spawn().unwrap();
        // Some die before it is heard, some after it has landed.
        let pid = i32::try_from(yes.id()).unwrap();
        gone(pid, Duration::from_micros(dice.below(60_000)));
        scratch.kill_daemon();
        let said = yes.wait().unwrap().success();
        for now in values(&scratch) {
            assert!([text(value), text(value + 1)].contains(&now), "run {run}: half a file: {now:?}");
        }
        // Whoever comes next finds it recovered.
        agent.call("whoami", json!({})).ok();
        let all = values(&scratch);
        assert_eq!(all.len(), 1, "run {run}: some of it: {all:?}");
        if all == [text(value + 1)] {
            value += 1;
            landed += 1;
        }
        assert!(!said || all == [text(value)], "run {run}: said to have landed, and has not");
    }
    let changes = agent.call("history", json!({"limit": 1000})).number("changes");
    assert_eq!(changes, landed, "what landed is on record, once");
    no_strays(&scratch);
}
