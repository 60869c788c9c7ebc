//! A daemon killed at any moment, a full disk, metadata, another writer. The step-exact crash tests are crate engine's.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use cotenant_testkit::{Dice, Reply, long};
use serde_json::json;

use crate::support::scratch;

pub(super) const IDS: &[&str] = &["D379", "D381", "D383", "D385", "D387"];

/// The workspace is a small file system of its own, which only the server sees; tests reach it through its process.
const SMALL_DISK: &str =
    "mount -t tmpfs -o size=40m none \"$W\" && cd \"$W\" && printf 'old\\n' > r.txt && exec \"$@\"";

#[test]
fn d379_serial_killed_at_any_moment_the_file_is_the_old_or_the_new_one() {
    let scratch = scratch();
    scratch.put("a.txt", "value 0\n");
    let mut agent = scratch.mcp().flags(&["--agent", "agent-a"]).start();
    let mut dice = Dice::thrown();
    let mut value = 0;
    for run in 0..if long() { 400 } else { 20 } {
        agent.read("a.txt");
        let (old, new) = (format!("value {value}"), format!("value {}", value + 1));
        let edit = json!({"path": "a.txt", "old_text": old, "new_text": new});
        let id = agent.post_call("edit_file", edit);
        let early = agent.answer_within(id, Duration::from_micros(dice.below(12_000)));
        scratch.kill_daemon();
        let between = scratch.text("a.txt");
        assert!(between == format!("{old}\n") || between == format!("{new}\n"), "run {run}: {between:?}");
        let reply = match early {
            Some(answer) => Reply::read(&answer["result"]),
            None => agent.reply(id),
        };
        if reply.code().is_none() {
            value += 1;
        }
        assert_eq!(scratch.text("a.txt"), format!("value {value}\n"), "run {run}: {}", reply.text);
    }
    let changes = agent.call("history", json!({"path": "a.txt", "limit": 1000})).number("changes");
    assert!(changes >= value, "{changes} changes on record, {value} made");
    scratch.run(&["journal", "verify"]).ok();
    let newest = agent.call("history", json!({"path": "a.txt"}));
    let newest = newest.content().split(' ').next().unwrap();
    agent.call("undo", json!({"change": newest})).ok();
    assert_eq!(scratch.text("a.txt"), format!("value {}\n", value - 1));
    // What an answered change displaced goes in the background, at the latest at the end.
    scratch.run(&["stop"]).ok();
    scratch.sh("! ls -A | grep '^[.]cotenant-'");
}

/// Of a patch over many files all land or none, whenever the daemon is killed; and an undo of it likewise.
#[test]
fn patch_serial_killed_at_any_moment_all_files_are_old_or_all_new() {
    const FILES: usize = 40;
    let scratch = scratch();
    for file in 0..FILES {
        scratch.put(&format!("d{}/f{file}", file % 5), "one\nvalue 0\nthree\n");
    }
    let values = || {
        let value = |file| scratch.text(&format!("d{}/f{file}", file % 5));
        let mut all: Vec<String> = (0..FILES).map(value).collect();
        all.dedup();
        all
    };
    let text = |value: usize| format!("one\nvalue {value}\nthree\n");
    let mut agent = scratch.mcp().flags(&["--agent", "agent-a", "--durability", "batch"]).start();
    let mut dice = Dice::thrown();
    let mut value = 0;
    for run in 0..if long() { 200 } else { 12 } {
        // So that there is a daemon to be killed.
        agent.call("whoami", json!({})).ok();
        let hunk = format!("@@ -1,3 +1,3 @@\n one\n-value {value}\n+value {}\n three\n", value + 1);
        let one = |file| format!("--- a/d{0}/f{file}\n+++ b/d{0}/f{file}\n{hunk}", file % 5);
        let patch: String = (0..FILES).map(one).collect();
        let id = agent.post_call("apply_patch", json!({"patch": patch}));
        let early = agent.answer_within(id, Duration::from_micros(dice.below(60_000)));
        scratch.kill_daemon();
        // The bridge finds another daemon, which recovers first, and asks again.
        let reply = early.map_or_else(|| agent.reply(id), |answer| Reply::read(&answer["result"]));
        if reply.code().is_none() {
            value += 1;
        }
        assert_eq!(values(), [text(value)], "run {run}: {}", reply.text);
    }
    assert!(value > 0);
    let newest = agent.call("history", json!({"limit": 1}));
    let newest = newest.content().split(' ').next().unwrap().to_owned();
    let id = agent.post_call("undo", json!({"change": newest}));
    let early = agent.answer_within(id, Duration::from_micros(dice.below(60_000)));
    scratch.kill_daemon();
    early.map_or_else(|| agent.reply(id), |answer| Reply::read(&answer["result"])).ok();
    assert_eq!(values(), [text(value - 1)]);
}

#[test]
fn d381_on_a_full_disk_the_original_stays_and_the_next_call_works() {
    let scratch = scratch();
    if scratch.try_sh("unshare -rm mount -t tmpfs none /mnt || unshare -m mount -t tmpfs none /mnt").code != 0
    {
        eprintln!("SKIP: no mount namespaces here");
        return;
    }
    let mut agent = scratch.mcp().wrapped(SMALL_DISK).start();
    agent.read("r.txt");
    let pid = scratch.daemon_pid().unwrap();
    let inside = format!("/proc/{pid}/root{}", scratch.root().display());
    scratch.try_sh(&format!("head -c 60m /dev/zero > {inside}/fill"));
    let refused = agent.edit("r.txt", "old", "new");
    refused.refused("OUT_OF_SPACE");
    agent.write("more.txt", "x\n").refused("OUT_OF_SPACE");
    let there = scratch.sh(&format!("cat {inside}/r.txt; ls -A {inside}"));
    assert_eq!(there.stdout, "old\nfill\nr.txt\n");
    scratch.sh(&format!("rm {inside}/fill"));
    agent.edit("r.txt", "old", "new").ok();
    assert_eq!(scratch.sh(&format!("cat {inside}/r.txt")).stdout, "new\n");
}

#[test]
fn d383_mode_acl_and_attributes_are_equal_after_an_edit() {
    let scratch = scratch();
    scratch.sh("printf 'x\\n' > r.txt; chmod 750 r.txt");
    let attributes =
        scratch.try_sh("setfacl -m u:65534:rx r.txt && setfattr -n user.note -v kept r.txt").code == 0;
    if !attributes {
        eprintln!("SKIP: no ACLs or user attributes here; the mode is tested");
    }
    let state = || {
        let list = if attributes { "; getfacl -c r.txt; getfattr -d r.txt" } else { "" };
        scratch.sh(&format!("stat -c '%a %u %g' r.txt{list}")).stdout
    };
    let before = state();
    let mut agent = scratch.mcp().start();
    agent.read("r.txt");
    agent.edit("r.txt", "x", "y").ok();
    assert_eq!(scratch.text("r.txt"), "y\n");
    assert_eq!(state(), before);
}

#[test]
fn d385_a_file_that_another_writes_is_busy() {
    let scratch = scratch();
    scratch.put("r.txt", "x\n");
    let mut agent = scratch.mcp().start();
    agent.read("r.txt");
    let mut writer = OpenOptions::new().append(true).open(scratch.path("r.txt")).unwrap();
    let busy = agent.edit("r.txt", "x", "y");
    busy.refused("BUSY").says(&std::process::id().to_string());
    writer.write_all(b"late\n").unwrap();
    drop(writer);
    assert_eq!(scratch.text("r.txt"), "x\nlate\n");
    agent.read("r.txt");
    agent.edit("r.txt", "x", "y").ok();
    assert_eq!(scratch.text("r.txt"), "y\nlate\n");
}

#[test]
fn d387_nothing_is_restored_over_another_file() {
    let scratch = scratch();
    scratch.put("a.txt", "gone\n");
    let mut agent = scratch.mcp().start();
    agent.read("a.txt");
    agent.call("delete_file", json!({"path": "a.txt"})).ok();
    scratch.put("a.txt", "another\n");
    let item = agent.call("list_trash", json!({})).ok().content().split(' ').next().unwrap().to_owned();
    agent.call("restore_file", json!({"item": item})).refused("ALREADY_EXISTS");
    assert_eq!(scratch.text("a.txt"), "another\n");
    agent.call("restore_file", json!({"item": item, "to": "b.txt"})).ok();
    assert_eq!((scratch.text("a.txt"), scratch.text("b.txt")), ("another\n".to_owned(), "gone\n".to_owned()));
}
