//! The bridge as its client sees it: through the deaths of daemons, to the end of either side.

use std::io::BufRead;
use std::time::{Duration, Instant};

use cotenant_daemon::bridge::End;
use cotenant_model::{Durability, Profile, ToolSet};
use cotenant_tools::host::Hello;
use serde_json::{Map, json};

use crate::{Ground, call, ended, kill, paused, process, text};

#[test]
fn a_round_trip_and_an_end() {
    let ground = Ground::new();
    let mut bridge = ground.bridge();
    bridge.initialize();
    assert_eq!(bridge.call(1, "echo"), "echo");
    assert_eq!(bridge.finish(), (String::new(), End::Client));
    let mut admin = ground.admin();
    let seen = admin.ask("sessions", json!({ "closed": 1 }).as_object().unwrap().clone()).unwrap();
    assert_eq!(seen["introduced"], json!(["probe"]));
}

#[test]
fn flags_reach_the_session() {
    let ground = Ground::new();
    let hello = Hello {
        human: false,
        agent: Some("ada".to_owned()),
        task: Some("t".to_owned()),
        profile: Some(Profile::ReadOnly),
        durability: Some(Durability::Fast),
        tools: Some(vec![ToolSet::Core, ToolSet::Plan]),
        structured: true,
        plan: true,
        pid: None,
        number: None,
    };
    let mut bridge = ground.bridge_as(hello.clone());
    let said = Hello { pid: Some(std::process::id()), ..hello };
    assert_eq!(bridge.call(1, "hello"), format!("{said:?}"));
}

#[test]
fn a_daemon_killed_in_a_call_is_followed_and_the_call_has_one_effect() {
    let ground = Ground::new();
    let pauses = ground.pauses();
    let mut bridge = ground.bridge();
    bridge.initialize();
    bridge.send(call(1, "once", json!({})));
    bridge.send(call(2, "echo", json!({ "text": "queued" })));
    let (first, _held) = paused(&pauses);
    // The other one may have its answer before the daemon dies; it has exactly one either way.
    ground.no_more_pauses();
    kill(first);
    let mut answers = [bridge.answer(), bridge.answer()];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.each_ref().map(text), ["again", "queued"]);
    assert_eq!(ground.effects().len(), 1);
    // The greeting was repeated to the new daemon, and its answer kept from the client.
    assert_eq!(bridge.call(3, "echo"), "echo");
    let second = ground.pid().unwrap();
    assert_ne!(second, first);
    let mut admin = ground.admin();
    let seen = admin.ask("sessions", json!({ "closed": 0 }).as_object().unwrap().clone()).unwrap();
    assert_eq!(seen["introduced"], json!(["probe"]));
    assert_eq!(bridge.finish(), (String::new(), End::Client));
}

#[test]
fn each_call_has_a_key_of_its_own_in_what_meta_it_has() {
    let ground = Ground::new();
    let mut bridge = ground.bridge();
    let mut keys = Vec::new();
    for (id, params) in [
        r#"{"name":"meta"}"#,
        r#"{"name":"meta","_meta":{}}"#,
        r#"{ "_meta" : { "progressToken" : 1 } , "name":"meta"}"#,
        r#"{"name":"meta","arguments":{"_meta":{"x":1}}}"#,
    ]
    .iter()
    .enumerate()
    {
        bridge.raw(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n"
        ));
        let answer = bridge.answer();
        let meta: serde_json::Value = serde_json::from_str(text(&answer)).unwrap();
        keys.push(meta["cotenant/idempotency"].as_str().unwrap().to_owned());
    }
    let first = ground.bridge().call(1, "meta");
    keys.push(first);
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "{keys:?}");
}

#[test]
fn many_requests_survive_a_death_and_are_answered_once() {
    let ground = Ground::new();
    let pauses = ground.pauses();
    let mut bridge = ground.bridge();
    bridge.initialize();
    bridge.send(call(1, "pause", json!({})));
    let (first, _held) = paused(&pauses);
    ground.no_more_pauses();
    // More than the daemon takes at a time, and more than the socket holds.
    let text = "x".repeat(20_000);
    let mut to = bridge.to.take().unwrap();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        for id in 2..202 {
            writeln!(to, "{}", call(id, "echo", json!({ "text": text }))).unwrap();
        }
        to
    });
    let mut seen = vec![bridge.answer()["id"].as_u64().unwrap()];
    kill(first);
    while seen.len() < 201 {
        seen.push(bridge.answer()["id"].as_u64().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..202).collect::<Vec<_>>());
    bridge.to = Some(writer.join().unwrap());
    assert_eq!(bridge.finish(), (String::new(), End::Client));
}

#[test]
fn a_request_that_kills_each_daemon_is_given_up_and_the_next_one_served() {
    let ground = Ground::new();
    let mut bridge = ground.bridge();
    bridge.initialize();
    let answer = bridge.ask(call(1, "die", json!({})));
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32000)));
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("IO_ERROR"), "{answer}");
    assert_eq!(bridge.call(2, "echo"), "echo");
}

#[test]
fn a_stopped_daemon_is_started_again_when_something_is_wanted_of_it() {
    let ground = Ground::new();
    let mut bridge = ground.bridge();
    bridge.initialize();
    let mut admin = ground.admin();
    let daemon = process(admin.pid);
    admin.ask("stop", Map::new()).unwrap();
    admin.wait_end();
    ended(&daemon);
    assert_eq!(ground.pid(), None);
    assert_eq!(bridge.call(1, "echo"), "echo");
    assert!(ground.pid().is_some());
    assert_eq!(bridge.finish(), (String::new(), End::Client));
}

#[test]
fn the_end_of_input_gives_calls_a_while_and_no_more() {
    // C170
    let ground = Ground::new();
    let pauses = ground.pauses();
    let mut bridge = ground.bridge();
    bridge.initialize();
    bridge.send(call(1, "pause", json!({})));
    let (_, held) = paused(&pauses);
    bridge.to = None;
    drop(held);
    assert_eq!(text(&bridge.answer()), "went on");
    assert_eq!(bridge.finish().1, End::Client);

    let mut bridge = ground.bridge();
    bridge.send(call(1, "pause", json!({})));
    let (_, held) = paused(&pauses);
    let closed = Instant::now();
    assert_eq!(bridge.finish(), (String::new(), End::Client));
    assert!(closed.elapsed() < Duration::from_secs(10));
    drop(held);
}

#[test]
fn input_that_is_empty_or_half_a_message_is_an_end() {
    let ground = Ground::new();
    assert_eq!(ground.bridge().finish(), (String::new(), End::Client));
    let mut bridge = ground.bridge();
    bridge.raw("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"");
    assert_eq!(bridge.finish(), (String::new(), End::Client));
}

#[test]
fn output_that_nobody_reads_is_an_end() {
    // C170
    let ground = Ground::new();
    let mut bridge = ground.bridge();
    bridge.initialize();
    let crate::Piped { to, from, ended } = bridge;
    drop(from);
    assert_eq!(ended.join().unwrap(), End::Client);
    drop(to);
}

#[test]
fn what_hinders_is_told_as_the_answer_to_the_first_request() {
    let ground = Ground::configured("[limits]\nread_line = 5\n");
    let mut bridge = ground.bridge();
    bridge.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let answer = bridge.ask(json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {} }));
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("i"), &json!(-32000)));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("BAD_INPUT path=cotenant.toml line=2 given=read_line near=read_lines"),
        "{message}"
    );
    assert_eq!(bridge.finish(), (String::new(), End::Daemon));

    let ground = Ground::new();
    let mut bridge = ground.bridge_as(Hello { agent: Some("refused".to_owned()), ..Hello::default() });
    let answer = bridge.ask(call(1, "echo", json!({})));
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("PERMISSION_DENIED"), "{answer}");
    assert_eq!(bridge.finish().1, End::Daemon);
}

#[test]
fn wrong_and_over_long_lines_are_answered_through_the_bridge() {
    let ground = Ground::new();
    let mut bridge = ground.bridge();
    bridge.raw("nonsense\n");
    assert_eq!(bridge.answer()["error"]["code"], -32700);
    let mut to = bridge.to.take().unwrap();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        let long = "x".repeat(17 * 1024 * 1024);
        writeln!(
            to,
            "{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{{\"t\":\"{long}\"}}}}"
        )
        .unwrap();
        writeln!(to, "{}", call(10, "echo", json!({ "text": long[..15 * 1024 * 1024] }))).unwrap();
        to
    });
    let answer = bridge.answer();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(9), &json!(-32600)));
    assert_eq!(text(&bridge.answer()).len(), 15 * 1024 * 1024);
    bridge.to = Some(writer.join().unwrap());
    assert_eq!(bridge.call(11, "echo"), "echo");
}

#[test]
fn a_greeting_of_any_depth_is_repeated_or_left_out() {
    let ground = Ground::new();
    let pauses = ground.pauses();
    let mut bridge = ground.bridge();
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    bridge.raw(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{{\"experimental\":{{\"x\":{{\"y\":{deep}}}}}}},\"clientInfo\":{{\"name\":\"deep\",\"version\":\"1\"}}}}}}\n"
    ));
    assert!(bridge.answer().get("result").is_some());
    bridge.send(call(1, "pause", json!({})));
    let (first, _held) = paused(&pauses);
    ground.no_more_pauses();
    kill(first);
    assert_eq!(text(&bridge.answer()), "went on");
}

#[test]
fn characters_that_are_split_between_writes_stay_whole() {
    // C016
    let ground = Ground::new();
    let mut bridge = ground.bridge();
    let han = "\u{5f20}".repeat(3000);
    for chunk in format!("{}\n", call(1, "echo", json!({ "text": han }))).as_bytes().chunks(7) {
        bridge.raw(chunk);
    }
    assert_eq!(text(&bridge.answer()), han);
}

#[test]
fn a_cancelled_call_is_not_asked_again() {
    let ground = Ground::new();
    let pauses = ground.pauses();
    let mut bridge = ground.bridge();
    bridge.initialize();
    bridge.send(call(1, "once", json!({})));
    let (first, _held) = paused(&pauses);
    ground.no_more_pauses();
    bridge
        .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    assert_eq!(bridge.call(2, "echo"), "echo");
    kill(first);
    assert_eq!(bridge.call(3, "echo"), "echo");
    assert_eq!(ground.effects().len(), 1);
    let (rest, end) = bridge.finish();
    assert_eq!((rest.as_str(), end), ("", End::Client));
}

#[test]
fn an_agent_that_dies_ends_its_session() {
    let ground = Ground::new();
    let mut admin = ground.admin();
    let stream = std::os::unix::net::UnixStream::connect(&ground.place.socket).unwrap();
    let greeting = json!({ "cotenant": 1, "build": cotenant_daemon::build_id(), "kind": "mcp" });
    use std::io::Write;
    writeln!(&stream, "{greeting}").unwrap();
    let mut line = String::new();
    std::io::BufReader::new(&stream).read_line(&mut line).unwrap();
    drop(stream);
    let seen = admin.ask("sessions", json!({ "closed": 1 }).as_object().unwrap().clone()).unwrap();
    assert_eq!(seen["opened"], 1);
}
