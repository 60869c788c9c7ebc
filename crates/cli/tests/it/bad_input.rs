//! Messages no client should send, and clients that vanish: a clear answer, nothing lost, the next call works.

use std::thread;
use std::time::Duration;

use cotenant_testkit::{Client, Reply, is_alive};
use serde_json::{Value, json};

use crate::support::scratch;

/// A protocol error says what is wrong.
#[track_caller]
fn is_error(answer: &Value, code: i64) {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.len() > 5), "{answer}");
}

/// Refused either as a protocol error or as a tool's refusal, and `word` is named.
#[track_caller]
fn is_refused(answer: &Value, word: &str) {
    match answer.get("error") {
        Some(error) => assert!(error["code"].is_i64(), "{answer}"),
        None => drop(Reply::read(&answer["result"]).refused_as(&[]).clone()),
    }
    assert!(answer.to_string().contains(word), "does not name {word}: {answer}");
}

/// The session goes on.
#[track_caller]
fn lives(client: &mut Client) {
    client.read("f.txt").says("1|x");
}

#[test]
fn what_is_not_json_is_answered_with_a_parse_error() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let mut client = scratch.mcp().start();
    let broken: [&[u8]; 6] = [
        b"{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\n",
        b"this is no JSON\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":901,\"method\":\"tools/call\",\"params\":{\"name\":\"read_fi\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"ping\xff\xfe\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":903,\"method\":\"ping\"} trailing\n",
        b"\x00\x01\x02\n",
    ];
    for bytes in broken {
        client.send_raw(bytes);
        // Where the id can still be read the answer may bear it; a parse error has none.
        is_error(&client.answer_to_nobody(), -32700);
        lives(&mut client);
    }
    // Empty lines are no messages.
    client.send_raw(b"\n\r\n  \n");
    lives(&mut client);
}

#[test]
fn json_that_is_no_request_is_answered_as_such() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let mut client = scratch.mcp().start();
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    let strange = "{\"jsonrpc\":\"2.0\",\"method\":5,\"id\":null}";
    for text in ["42", "\"ping\"", "null", "[]", "{}", strange, &deep] {
        client.send_raw(format!("{text}\n").as_bytes());
        is_error(&client.answer_to_nobody(), -32600);
        lives(&mut client);
    }
    let request = json!({"jsonrpc": "1.0", "id": 700, "method": "ping"});
    client.send_raw(format!("{request}\n").as_bytes());
    is_error(&client.answer(700), -32600);
    let unknown = client.post("tools/nonsense", json!({}));
    is_error(&client.answer(unknown), -32601);
    // Nobody waits for an answer to these, and none comes.
    client.notify("notifications/cancelled", json!({"requestId": 123_456}));
    client.notify("notifications/nonsense", json!({"a": [1]}));
    lives(&mut client);
}

#[test]
fn wrong_tools_and_wrong_types_are_named() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let mut client = scratch.mcp().start();
    for (params, word) in [
        (json!({"name": "read_fil", "arguments": {"path": "f.txt"}}), "read_fil"),
        (json!({"name": "", "arguments": {}}), "tool"),
        (json!({"name": 5, "arguments": {}}), "expected a string"),
        (json!({"arguments": {}}), "name"),
        (json!({"name": "read_file", "arguments": "f.txt"}), "expected a map"),
        (json!({"name": "read_file", "arguments": ["f.txt"]}), "expected a map"),
        (json!({"name": "read_file", "arguments": {}}), "path"),
        (json!({"name": "read_file"}), "path"),
    ] {
        let id = client.post("tools/call", params);
        is_refused(&client.answer(id), word);
        lives(&mut client);
    }
    for (tool, arguments, word) in [
        ("read_file", json!({"path": 5}), "path"),
        ("read_file", json!({"path": null}), "path"),
        ("read_file", json!({"path": {"a": 1}}), "path"),
        ("read_file", json!({"path": "f.txt", "limit": "many"}), "limit"),
        ("read_file", json!({"path": "f.txt", "start": 1.5}), "start"),
        ("read_file", json!({"path": "f.txt", "start": 1e300}), "start"),
        ("read_file", json!({"path": "f.txt", "line_numbers": "perhaps"}), "line_numbers"),
        ("list_directory", json!({"path": ".", "depth": "deep"}), "depth"),
        ("search_files", json!({"pattern": ["a"], "content_search": true}), "pattern"),
        ("search_files", json!({"pattern": "a", "content_search": true, "output": "everything"}), "output"),
        ("edit_file", json!({"path": "f.txt", "edits": "x"}), "edits"),
        ("edit_file", json!({"path": "f.txt", "edits": [5]}), "edits"),
        ("edit_file", json!({"path": "f.txt", "edits": []}), "edits"),
        ("edit_file", json!({"path": "f.txt", "old_text": "x"}), "new_text"),
        ("edit_file", json!({"path": "f.txt"}), "old_text"),
        ("write_file", json!({"path": "g.txt", "content": ["x"]}), "content"),
        ("write_file", json!({"path": "g.txt", "content": "x", "overwrite": "perhaps"}), "overwrite"),
        ("write_file", json!({"path": "g.txt"}), "content"),
        ("write_file", json!({"path": "g.txt", "content": "x", "encoding": "klingon"}), "encoding"),
        ("write_file", json!({"path": "g.txt", "content": "x", "eol": "cr"}), "eol"),
        ("create_path", json!({"path": "g", "kind": "socket"}), "kind"),
        ("retry", json!({"set": {}}), "token"),
        ("show_change", json!({"change": 7}), "change"),
    ] {
        let refused = client.call(tool, arguments);
        refused.refused("BAD_INPUT").says(word);
        assert!(!scratch.path("g.txt").exists());
        lives(&mut client);
    }
}

#[test]
fn too_large_a_message_is_refused_and_the_connection_lives() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let mut client = scratch.mcp().start();
    let (id, bytes) = client.encode(
        "tools/call",
        json!({"name": "write_file", "arguments": {"path": "big.txt", "content": "b".repeat(17 << 20)}}),
    );
    client.send_raw(&bytes);
    // Its id stands at the front, so it is answered by it; one without a readable id is answered to nobody.
    let answer =
        client.answer_within(id, Duration::from_secs(1)).unwrap_or_else(|| client.answer_to_nobody());
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("16")), "{answer}");
    assert!(!scratch.path("big.txt").exists());
    lives(&mut client);
    client.write("near.txt", &"b".repeat(9 << 20)).ok();
    assert!(scratch.bytes("near.txt").len() >= 9 << 20);
}

#[test]
fn half_a_message_and_the_end_of_input_end_in_peace() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let mut client = scratch.mcp().start();
    lives(&mut client);
    let (_, bytes) = client.encode(
        "tools/call",
        json!({"name": "write_file", "arguments": {"path": "half.txt", "content": "x"}}),
    );
    client.send_raw(&bytes[..bytes.len() / 2]);
    client.drain();
    assert_eq!(client.wait_exit(Duration::from_secs(15)).expect("ends").code(), Some(0));
    assert!(!scratch.path("half.txt").exists());
    lives(&mut scratch.mcp().start());
}

#[test]
fn calls_under_way_are_finished_at_the_end_of_input() {
    let scratch = scratch();
    let mut client = scratch.mcp().start();
    let ids: Vec<u64> = (0..20)
        .map(|number| {
            client.post_call("write_file", json!({"path": format!("n{number}.txt"), "content": "x\n"}))
        })
        .collect();
    client.close_stdin();
    for id in ids {
        client.reply(id).ok();
    }
    assert_eq!(client.wait_exit(Duration::from_secs(15)).expect("ends").code(), Some(0));
    assert_eq!(scratch.sh("ls n*.txt | wc -l").stdout.trim(), "20");
}

#[test]
fn a_client_that_vanishes_leaves_the_old_or_the_new_file() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let content = format!("{}\n", "vanishing ".repeat(20)).repeat(5000);
    for round in 0..5 {
        let mut client = scratch.mcp().start();
        let path = format!("v{round}.txt");
        client.post_call("write_file", json!({"path": path, "content": content}));
        client.kill();
        let mut next = scratch.mcp().start();
        lives(&mut next);
        // The daemon may still be at work for the one that went: its answer tells when the path is free.
        let mine = next.write(&path, &content);
        mine.refused_as_or_ok(&["ALREADY_EXISTS", "BUSY"]);
        assert_eq!(scratch.text(&path), content);
    }
    scratch.run(&["stop"]).ok();
    scratch.sh("! ls -A | grep '^[.]cotenant-'");
}

#[test]
fn bridges_that_start_at_once_find_one_daemon() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let sessions: Vec<String> = thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = scratch.mcp().start();
                    lives(&mut client);
                    client.call("whoami", json!({})).get("session")
                })
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let mut different = sessions.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), sessions.len(), "two daemons numbered sessions: {sessions:?}");
}

#[test]
fn a_daemon_killed_under_a_session_is_replaced_and_the_session_goes_on() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let mut client = scratch.mcp().start();
    client.read("f.txt");
    let first = scratch.daemon_pid().unwrap();
    scratch.kill_daemon();
    lives(&mut client);
    client.edit("f.txt", "x", "y").ok();
    let second = scratch.daemon_pid().unwrap();
    assert!(first != second && !is_alive(first) && is_alive(second));
    // Calls on their way while it dies are each carried out once.
    let ids: Vec<u64> = (0..30)
        .map(|number| {
            client.post_call("write_file", json!({"path": format!("k{number}.txt"), "content": "x\n"}))
        })
        .collect();
    scratch.kill_daemon();
    for id in ids {
        client.reply(id).ok();
    }
    assert_eq!(scratch.sh("cat k*.txt | wc -l").stdout.trim(), "30");
    let changes = client.call("history", json!({})).number("changes");
    assert_eq!(changes, 31);
}

#[test]
fn a_stopped_daemon_is_started_again_by_the_next_call() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    let mut client = scratch.mcp().start();
    lives(&mut client);
    scratch.run(&["stop"]).ok();
    lives(&mut client);
}

#[test]
fn a_daemon_that_was_stopped_is_gone_and_the_next_one_starts() {
    let scratch = scratch();
    scratch.put("f.txt", "x\n");
    for round in 0..8 {
        let mut client = scratch.mcp().start();
        client.post_call(
            "write_file",
            json!({"path": format!("s{round}.txt"), "content": "x\n".repeat(20_000)}),
        );
        lives(&mut client);
        let daemon = scratch.daemon_pid().unwrap();
        client.kill();
        scratch.run(&["stop"]).ok();
        assert!(!is_alive(daemon), "round {round}: stopped, but still there");
    }
}
