//! Deleting, moving and replacing over the real protocol and from the command line: the same answers either way.

use std::time::Instant;

use cotenant_testkit::{long, snapshot};
use serde_json::json;

use crate::support::{diff_lines, scratch};

#[test]
fn the_command_line_does_what_the_protocol_does() {
    let scratch = scratch();
    scratch.configure("[approvals]\nprofile = \"trusting\"\n");
    scratch.put("src/a.rs", "fn old() {}\nold();\n");
    scratch.put("src/b.rs", "old();\n");
    let dry = scratch.run(&["replace-text", "src", "old", "new", "--dry-run"]);
    assert!(dry.ok().stdout.contains("replaced=3 files=2") && dry.stdout.contains("-old();"), "{dry:?}");
    assert_eq!(scratch.text("src/b.rs"), "old();\n");
    let wrong = scratch.run(&["replace-text", "src", "old", "new", "--expected", "2"]);
    assert_eq!(wrong.code, 1, "{wrong:?}");
    let done = scratch.run(&[
        "replace-text",
        "src",
        "(?P<name>old)\\(",
        "${name}er(",
        "--regex",
        "--expected",
        "3",
        "--json",
    ]);
    let fields = done.ok().json();
    assert_eq!((&fields["replaced"], &fields["files"]), (&json!(3), &json!(2)), "{fields}");
    assert_eq!(
        fields["per_file"],
        json!([{"path": "src/a.rs", "count": 2}, {"path": "src/b.rs", "count": 1}])
    );
    assert_eq!(scratch.text("src/a.rs"), "fn older() {}\nolder();\n");
    let moved = scratch.run(&["move-path", "src", "lib/core"]);
    assert!(moved.ok().stdout.contains("path=lib/core from=src kind=directory entries=2"), "{moved:?}");
    scratch.run(&["rename-path", "lib/core/b.rs", "c.rs"]).ok();
    assert_eq!(scratch.text("lib/core/c.rs"), "older();\n");
    let unseen = scratch.run(&["delete-file", "lib/core/c.rs"]);
    assert_eq!(unseen.code, 1, "{unseen:?}");
    let digest = scratch.run(&["read-file", "lib/core/c.rs", "--json"]).ok().json()["digest"].clone();
    let gone = scratch.run(&["delete-file", "lib/core/c.rs", "--expected-digest", digest.as_str().unwrap()]);
    assert!(gone.ok().stdout.contains("deleted=yes") && !scratch.path("lib/core/c.rs").exists(), "{gone:?}");
}

#[test]
fn a_thousand_files_are_replaced_as_one_change_and_undone() {
    let scratch = scratch();
    let count = if long() { 5000 } else { 1000 };
    scratch.sh(&format!(
        "for i in $(seq 1 {count}); do d=d$((i % 40)); mkdir -p $d; printf 'x\\nold %d\\n' $i > $d/f$i; done"
    ));
    let before = snapshot(&scratch.root());
    let mut agent = scratch.mcp().flags(&["--durability", "batch"]).start();
    let args = json!({"path": ".", "pattern": "^old (\\d+)$", "replacement": "new $1", "regex": true, "expected": count});
    let began = Instant::now();
    let done = agent.call("replace_text", args);
    eprintln!("{count} files replaced in {:?}", began.elapsed());
    assert_eq!((done.ok().number("replaced"), done.number("files")), (count, count));
    assert!(done.text.len() < 5000, "{} bytes", done.text.len());
    assert_eq!(scratch.text("d7/f47"), "x\nnew 47\n");
    assert_eq!(agent.call("history", json!({})).number("changes"), 1);
    agent.call("undo", json!({})).ok();
    // What was displaced keeps a name until the background is done.
    drop(agent);
    scratch.run(&["stop"]).ok();
    assert!(snapshot(&scratch.root()) == before, "undone to the byte");
}

#[test]
fn what_is_deleted_survives_the_daemon() {
    let scratch = scratch();
    scratch.sh("printf 'v\\000x' > bin; printf 'one\\n' > 'a b'; ln -s 'a b' l; mkdir d; mv bin d");
    let mut agent = scratch.mcp().start();
    let refused = agent.call("delete_file", json!({"path": "d/bin"}));
    let set = json!({"expected_digest": refused.refused("EDIT_REQUIRES_PRIOR_READ").get("digest")});
    let bin = agent.retry(&refused.offered("token"), set).ok().get("change");
    agent.read("a b");
    let file = agent.call("delete_file", json!({"path": "a b"})).ok().get("change");
    let link = agent.call("delete_file", json!({"path": "l"})).ok().get("change");
    assert_eq!(scratch.sh("ls . d").stdout, ".:\nd\n\nd:\n");
    drop(agent);
    scratch.kill_daemon();
    let mut next = scratch.mcp().start();
    for change in [link, file, bin] {
        next.call("undo", json!({"change": change})).refused_as_or_ok(&["APPROVAL_PENDING"]);
        let pending = scratch.run(&["pending", "--json"]).ok().json();
        if let Some(question) = pending["pending"].as_array().and_then(|list| list.first()) {
            let (id, digest) = (question["id"].as_str().unwrap(), question["digest"].as_str().unwrap());
            scratch.run(&["approve", id, "--digest", digest]).ok();
        }
    }
    scratch.sh(
        "test \"$(readlink l)\" = 'a b' && test \"$(cat 'a b')\" = one && printf 'v\\000x' | cmp - d/bin",
    );
}

#[test]
fn a_move_keeps_every_byte_mode_and_link_of_what_goes() {
    let scratch = scratch();
    scratch.sh(
        "mkdir -p d/deep/.hidden && printf 'x' > d/run && chmod 750 d/run && printf 's' > d/sec && chmod 600 d/sec \
         && ln -s ../run d/deep/l && ln -s /etc/passwd d/out && ln d/run d/hard && printf 'n' > \"d/$(printf 'a\\nb')\" \
         && mkdir d/empty && chmod 700 d/deep",
    );
    let state =
        |dir: &str| scratch.sh(&format!("cd {dir} && find . -printf '%P|%m|%l|%n|%s\\n' | sort")).stdout;
    let before = state("d");
    let mut agent = scratch.mcp().start();
    agent.call("move_path", json!({"from": "d", "to": "new/place"})).ok().says("kind=directory");
    assert_eq!(state("new/place"), before);
    agent.call("undo", json!({})).ok();
    assert_eq!(state("d"), before);
    assert!(!scratch.path("new").exists(), "the directory that was made for it went, too");
}

#[test]
fn order_is_kept_between_a_move_and_what_lies_below() {
    let scratch = scratch();
    scratch.put("d/f", "0\n");
    let mut agent = scratch.mcp().start();
    agent.read("d/f");
    for turn in 0..20 {
        let (here, there) = if turn % 2 == 0 { ("d", "e") } else { ("e", "d") };
        let old = turn.to_string();
        let new = (turn + 1).to_string();
        // Sent at once: the edit is for the file at its new place.
        let moved = agent.post_call("move_path", json!({"from": here, "to": there}));
        let edit = json!({"path": format!("{there}/f"), "old_text": old, "new_text": new});
        let edited = agent.post_call("edit_file", edit);
        agent.reply(moved).ok();
        agent.reply(edited).ok();
    }
    assert_eq!(scratch.text("d/f"), "20\n");
}

#[test]
fn a_human_sees_a_move_a_deletion_and_a_replacement_before_they_land() {
    let scratch = scratch();
    scratch.put("a.txt", "one\ntwo\n");
    scratch.put("b.txt", "two\n");
    let mut agent = scratch.mcp().profile("careful").start();
    agent.read("b.txt");
    let moved = agent.call("move_path", json!({"from": "a.txt", "to": "c/d.txt"}));
    let deleted = agent.call("delete_file", json!({"path": "b.txt"}));
    let replaced = agent.call("replace_text", json!({"path": "a.txt", "pattern": "two", "replacement": "2"}));
    for reply in [&moved, &deleted, &replaced] {
        reply.refused("APPROVAL_PENDING");
    }
    let pending = scratch.run(&["pending", "--json"]).ok().json();
    let diffs: Vec<String> = pending["pending"]
        .as_array()
        .unwrap()
        .iter()
        .map(|question| question["diff"].as_str().unwrap().to_owned())
        .collect();
    assert!(diffs[0].contains("rename from a.txt\nrename to c/d.txt"), "{diffs:?}");
    assert!(diffs[1].contains("--- b.txt\n+++ /dev/null\n") && diffs[1].contains("-two"), "{diffs:?}");
    assert!(diffs[2].contains("-two\n+2\n"), "{diffs:?}");
    assert_eq!(pending["pending"][0]["paths"], json!(["c", "a.txt", "c/d.txt"]));
    // The move lands first: what was planned for the old name does not fit any more, and says so.
    let answer = |index: usize| {
        let question = &pending["pending"][index];
        let (id, digest) = (question["id"].as_str().unwrap(), question["digest"].as_str().unwrap());
        scratch.run(&["approve", id, "--digest", digest]).code
    };
    assert_eq!((answer(0), answer(1), answer(2)), (0, 0, 1));
    assert_eq!(scratch.text("c/d.txt"), "one\ntwo\n");
    assert!(!scratch.path("a.txt").exists() && !scratch.path("b.txt").exists());
    let stale = agent.retry(&replaced.offered("token"), json!({}));
    stale.refused("APPROVAL_STALE");
}

#[test]
fn a_dry_run_is_bound_to_what_it_showed() {
    let scratch = scratch();
    scratch.put("a", "x\nx\n");
    let mut agent = scratch.mcp().start();
    let dry =
        agent.call("replace_text", json!({"path": ".", "pattern": "x", "replacement": "y", "dry_run": true}));
    assert_eq!(diff_lines(dry.ok()), (2, 2), "{}", dry.text);
    scratch.put("b", "x\n");
    let (tool, args) = dry.noticed_call().expect("a call in the notice");
    agent.call(&tool, args).refused("TEXT_AMBIGUOUS").says("b: 1");
    assert_eq!(scratch.text("a"), "x\nx\n");
}
