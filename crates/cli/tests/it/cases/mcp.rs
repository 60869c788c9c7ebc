//! The protocol's edges: what may stand on stdout, when the bridge ends, who may ask over HTTP, what programs are promised.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use cotenant_testkit::{Client, PATIENCE, conforms, gone, is_alive, wait_exit};
use serde_json::{Value, json};

use super::{Case, cases};
use crate::support::{TOKEN, http_settings, initialize, open_session, session_headers};

cases!(c169, c170, c172, c173, c175, c176);

/// How long an end may take: the case says 2 s; tests share the machine with others.
const SOON: Duration = Duration::from_secs(15);

/// The client fails on any line of stdout that is not JSON-RPC.
fn c169(case: &Case) {
    case.sh("mkdir closed && chmod 000 closed");
    let loud = |case: &Case| case.mcp().env("RUST_LOG", "trace").env("COTENANT_LOG", "trace").start_silent();
    let mut client = loud(case);
    let id = client.post("initialize", initialize()["params"].clone());
    client.answer(id);
    client.notify("notifications/initialized", json!({}));
    client.read("f");
    client.grep("x", ".").ok();
    client.drain();
    case.run(&["stop"]).ok();

    // A broken configuration is said, but not there.
    case.configure("[worksapce]\n");
    let mut client = loud(case);
    let id = client.post("initialize", initialize()["params"].clone());
    let answer = client.answer_within(id, PATIENCE);
    client.drain();
    let said = format!("{answer:?} {}", client.said());
    assert!(said.contains("worksapce"), "nobody is told what is wrong: {said}");
}

fn c170(case: &Case) {
    // The end of input.
    let mut client = case.agent();
    let daemon = case.daemon_pid().unwrap();
    client.close_stdin();
    assert_eq!(client.wait_exit(SOON).expect("ends").code(), Some(0));

    // No input at all.
    let mut child = case.mcp().command().stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    assert_eq!(wait_exit(&mut child, SOON).expect("ends").code(), Some(0));

    // Nobody reads any more.
    let mut command = case.mcp().command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(wait_exit(&mut child, SOON).is_some(), "runs on although nobody reads its answers");

    // The client is killed; it held both ends.
    let mut bash = case.within("bash");
    bash.args(["-c", "coproc { exec \"$@\"; }; echo $COPROC_PID; cat", "bash"]);
    let bridge = case.mcp().command();
    bash.arg(bridge.get_program()).args(bridge.get_args());
    let mut parent = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let bridge: i32 = line.trim().parse().unwrap();
    assert!(is_alive(bridge));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(gone(bridge, SOON), "outlives its client");

    assert_eq!(case.daemon_pid(), Some(daemon), "the daemon is unaffected");
}

fn c172(case: &Case) {
    http_settings(case);
    let served = case.serve();
    let port = served.http.address().port();
    assert!(served.http.address().ip().is_loopback());
    let (evil_host, here) = (format!("evil.example:{port}"), format!("http://localhost:{port}"));
    let foreign: [&[(&str, &str)]; 3] =
        [&[("Origin", "https://evil.example")], &[("Origin", "null")], &[("Host", &evil_host)]];
    for headers in foreign {
        for token in [Some(TOKEN), None] {
            let answer = served.http.rpc(token, headers, &initialize());
            assert_eq!(answer.status, 403, "{headers:?}: {answer:?}");
        }
        for path in ["/", "/mcp", "/api/pending", "/api/session", "/metrics", "/pending/a1", "/nowhere"] {
            for method in ["GET", "POST"] {
                let answer = served.http.send(method, path, headers, b"");
                assert_eq!(answer.status, 403, "{method} {path} {headers:?}: {answer:?}");
            }
        }
    }
    assert_eq!(served.http.rpc(None, &[], &initialize()).status, 401);
    assert_eq!(served.http.rpc(Some("wrong"), &[], &initialize()).status, 401);
    assert_eq!(served.http.rpc(Some(TOKEN), &[], &initialize()).status, 200);
    assert_eq!(served.http.rpc(Some(TOKEN), &[("Origin", &here)], &initialize()).status, 200);
}

fn c173(case: &Case) {
    http_settings(case);
    let served = case.serve();
    let old = open_session(&served.http);
    served.end();
    case.run(&["stop"]).ok();
    let served = case.serve();
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
    let lost = served.http.rpc(Some(TOKEN), &session_headers(&old), &list);
    assert_eq!(lost.status, 404, "{lost:?}");
    let again = served.http.rpc(Some(TOKEN), &[("Mcp-Session-Id", &old)], &initialize());
    assert_eq!(again.status, 200, "{again:?}");
    let new = again.header("mcp-session-id").expect("a new session").to_owned();
    assert_ne!(new, old);
    let bearer = format!("Bearer {TOKEN}");
    let delete = || {
        let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", &new)];
        served.http.send("DELETE", "/mcp", &headers, b"").status
    };
    let first = delete();
    assert!((200..300).contains(&first), "{first}");
    assert_eq!(delete(), 404);
    let headers = [("Authorization", bearer.as_str()), ("Accept", "text/event-stream")];
    let without = served.http.send("GET", "/mcp", &headers, b"");
    assert!((400..500).contains(&without.status), "{without:?}");
    open_session(&served.http);
}

/// The output schema of each tool, as a strict client keeps them.
fn schemas(client: &mut Client) -> impl Fn(&str) -> Value + use<> {
    let tools = client.tools();
    move |tool| {
        let found =
            tools.iter().find(|listed| listed["name"] == tool).unwrap_or_else(|| panic!("no tool {tool}"));
        assert!(found["outputSchema"].is_object(), "{tool} has no output schema");
        found["outputSchema"].clone()
    }
}

fn c175(case: &Case) {
    let mut client = case.mcp().flags(&["--structured"]).start();
    let schema = schemas(&mut client);
    let handle = {
        case.put("long.txt", "line\n".repeat(3000));
        let shown = client.call("list_directory", json!({"path": ".", "limit": 1}));
        shown.fact("handle")
    };
    let mut calls = vec![
        ("read_file", json!({"path": "f"})),
        ("read_file", json!({"path": "long.txt"})),
        ("list_directory", json!({})),
        ("search_files", json!({"pattern": "a", "content_search": true})),
        ("search_files", json!({"pattern": "f", "content_search": false})),
        ("write_file", json!({"path": "new.txt", "content": "x\n"})),
        ("edit_file", json!({"path": "new.txt", "old_text": "x", "new_text": "y"})),
        ("edit_file", json!({"path": "new.txt", "old_text": "y", "new_text": "z", "dry_run": true})),
        ("create_path", json!({"path": "made", "kind": "directory"})),
        ("history", json!({})),
        ("show_change", json!({"change": "c1"})),
        ("undo", json!({"dry_run": true})),
        ("whoami", json!({})),
    ];
    calls.extend(handle.map(|handle| ("read_more", json!({"handle": handle}))));
    for (tool, arguments) in calls {
        let reply = client.call(tool, arguments);
        let structured = &reply.ok().raw["structuredContent"];
        conforms(&schema(tool), structured).unwrap_or_else(|error| panic!("{tool}: {error}\n{}", reply.raw));
        assert_eq!(structured["text"], reply.text, "{tool}");
    }
    for (tool, arguments, code) in [
        ("edit_file", json!({"path": "f", "old_text": "a", "new_text": "b"}), "TEXT_AMBIGUOUS"),
        ("read_file", json!({"path": "absent"}), "NOT_FOUND"),
        ("undo", json!({"change": "c9999"}), "NOT_FOUND"),
    ] {
        let reply = client.call(tool, arguments);
        assert!(reply.refused(code).is_error);
        let structured = &reply.raw["structuredContent"];
        if !structured.is_null() {
            conforms(&schema(tool), structured)
                .unwrap_or_else(|error| panic!("{tool}: {error}\n{}", reply.raw));
            assert_eq!((&structured["code"], &structured["text"]), (&json!(code), &json!(reply.text)));
        }
    }
}

fn c176(case: &Case) {
    let mut client = case.mcp().flags(&["--structured"]).start();
    let schema = schemas(&mut client);
    for (tool, arguments, way_on) in [
        ("read_file", json!({"path": "big.txt", "max_bytes": 4096}), "next_start"),
        ("list_directory", json!({"path": "many", "max_bytes": 4096}), "next_offset"),
        (
            "search_files",
            json!({"pattern": "1", "content_search": true, "path": "big.txt", "max_bytes": 4096}),
            "next_offset",
        ),
    ] {
        let reply = client.call(tool, arguments);
        let structured = &reply.ok().raw["structuredContent"];
        conforms(&schema(tool), structured).unwrap_or_else(|error| panic!("{tool}: {error}\n{}", reply.raw));
        assert_eq!(structured["text"], reply.text, "{tool}");
        assert!(reply.text.len() <= 4096 + 1024, "{tool}: {} bytes", reply.text.len());
        let way = [way_on, "handle"].into_iter().find(|way| structured.get(way).is_some());
        let way = way.unwrap_or_else(|| panic!("{tool}: no way on\n{}", reply.text));
        let told = structured[way].as_str().map_or_else(|| structured[way].to_string(), str::to_owned);
        assert_eq!(told, reply.get(way), "{tool}: {}", reply.raw);
    }
}
