//! The revision of 2026-07-28 and those with a handshake before it, on one connection, each request by its own word.

use serde_json::{Value, json};

use crate::fake::Fake;
use crate::{Client, call, run, text};

const HANDSHAKES: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

fn modern(mut request: Value, version: &str) -> Value {
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "modern", "version": "1" },
    });
    request
}

#[test]
fn each_handshake_is_answered_with_its_own_revision() {
    run(async {
        for version in HANDSHAKES {
            let host = Fake::new();
            let mut client = Client::new(&host);
            let answer = client.initialize(version).await;
            let result = &answer["result"];
            assert_eq!(result["protocolVersion"], version);
            assert_eq!(result["serverInfo"]["name"], "cotenant");
            assert_eq!(result["capabilities"], json!({ "tools": {} }));
            assert_eq!(result["instructions"], "instructions for se9");
            let answer = client.ask(call(1, "echo", json!({ "text": "hi" }))).await;
            assert_eq!(
                answer["result"],
                json!({ "content": [{ "type": "text", "text": "hi" }], "isError": false,
                        "_meta": { "cotenant/facts": { "a": 1 } } }),
                "{version}"
            );
            assert_eq!(
                client.ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await["result"],
                json!({})
            );
            assert_eq!(client.finish().await, "");
            host.with(|state| {
                assert_eq!(state.introduced.len(), 1);
                assert_eq!(state.introduced[0].1, "probe");
            });
        }
    });
}

#[test]
fn an_unknown_revision_is_answered_with_the_newest_handshake() {
    run(async {
        let mut client = Client::new(&Fake::new());
        for asked in ["2019-01-01", "2026-07-28", "x"] {
            assert_eq!(client.initialize(asked).await["result"]["protocolVersion"], "2025-11-25", "{asked}");
        }
    });
}

#[test]
fn the_stateless_revision_needs_no_handshake() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        let discover = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} });
        let found = client.ask(modern(discover, "2026-07-28")).await;
        let versions = found["result"]["supportedVersions"].as_array().unwrap();
        assert!(HANDSHAKES.iter().chain(&["2026-07-28"]).all(|version| versions.contains(&json!(version))));
        assert_eq!(found["result"]["instructions"], "instructions for se9");
        assert_eq!(found["result"]["capabilities"], json!({ "tools": {} }));
        let answer = client.ask(modern(call(2, "echo", json!({ "text": "hi" })), "2026-07-28")).await;
        assert_eq!(text(&answer), "hi");
        assert_eq!(answer["result"]["resultType"], "complete");
        let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {} });
        let list = client.ask(modern(list, "2026-07-28")).await;
        assert!(list["result"]["ttlMs"].is_number() && list["result"]["cacheScope"].is_string(), "{list}");
        let wrong = client.ask(modern(call(4, "echo", json!({})), "2099-01-01")).await;
        assert_eq!(wrong["error"]["code"], -32022);
        host.with(|state| {
            assert_eq!(state.introduced.iter().map(|seen| seen.1.as_str()).collect::<Vec<_>>(), ["modern"]);
            // The call of a revision that is not served took a place, and gave it back.
            assert_eq!(state.arrived.len(), 2);
        });
        host.wait_for(|state| state.forgone == [1]);
    });
}

#[test]
fn the_handshake_is_no_method_of_the_revision_without_one() {
    run(async {
        let mut client = Client::new(&Fake::new());
        let handshake = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
        assert_eq!(client.ask(modern(handshake.clone(), "2026-07-28")).await["error"]["code"], -32601);
        assert_eq!(client.ask(handshake).await["error"]["code"], -32602);
    });
}

#[test]
fn both_kinds_share_a_connection() {
    run(async {
        let mut client = Client::new(&Fake::new());
        let modern_call = modern(call(1, "echo", json!({ "text": "a" })), "2026-07-28");
        assert_eq!(text(&client.ask(modern_call.clone()).await), "a");
        client.initialize("2025-06-18").await;
        assert_eq!(text(&client.ask(call(2, "echo", json!({ "text": "b" }))).await), "b");
        let again = client.ask(modern_call).await;
        assert_eq!((text(&again), &again["result"]["resultType"]), ("a", &json!("complete")));
        let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping", "params": {} });
        assert_eq!(client.ask(modern(ping, "2026-07-28")).await["error"]["code"], -32601);
    });
}

#[test]
fn the_list_of_tools_is_passed_on_byte_for_byte() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        client.initialize("2025-06-18").await;
        client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
        let line = client.line().await;
        let tool =
            cotenant_tools::host::Host::tools(host.as_ref(), cotenant_model::SessionId(1))[0].to_string();
        assert_eq!(line, format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"tools\":[{tool}]}}}}\n"));
    });
}

#[test]
fn structured_content_is_sent_where_the_host_gives_it() {
    run(async {
        let mut client = Client::new(&Fake::new());
        client.initialize("2025-11-25").await;
        let answer = client.ask(call(1, "structured", json!({}))).await;
        assert_eq!(answer["result"]["structuredContent"], json!({ "text": "t" }));
        let answer = client.ask(call(2, "nonsense", json!({}))).await;
        assert_eq!(answer["result"]["isError"], true);
        assert!(answer["result"].get("structuredContent").is_none());
        assert!(answer["result"].get("_meta").is_none());
    });
}

#[test]
fn roots_are_asked_for_and_passed_on() {
    run(async {
        let host = Fake::new();
        let mut client = Client::new(&host);
        client
            .ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": { "roots": { "listChanged": true } },
                "clientInfo": { "name": "rooted", "version": "1" } } }))
            .await;
        for roots in [json!([{ "uri": "file:///" }]), json!([{ "uri": "file:///a" }, { "uri": "file:///b" }])]
        {
            let changed = if roots[1].is_null() { "initialized" } else { "roots/list_changed" };
            client.send(json!({ "jsonrpc": "2.0", "method": format!("notifications/{changed}") })).await;
            let asked = client.answer().await;
            assert_eq!(asked["method"], "roots/list");
            client.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": roots } })).await;
            let uris: Vec<String> = roots
                .as_array()
                .unwrap()
                .iter()
                .map(|root| root["uri"].as_str().unwrap().to_owned())
                .collect();
            host.wait_for(|state| state.introduced.last().unwrap().2.as_ref() == Some(&uris));
        }
    });
}
