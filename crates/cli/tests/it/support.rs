//! What the modules share: workspaces of the binary under test, an HTTP session, counting lines of a diff.

use cotenant_testkit::{Http, Reply, Scratch};
use serde_json::{Value, json};

/// The bearer token that [`http_settings`] configures.
pub(crate) const TOKEN: &str = "a-token-for-tests-0123456789";
/// The revision the HTTP session speaks.
pub(crate) const REVISION: &str = "2025-11-25";

/// A workspace of the binary under test.
pub(crate) fn scratch() -> Scratch {
    Scratch::new(env!("CARGO_BIN_EXE_cotenant"))
}

/// Settings that let the agent `web` in over HTTP, trusted like the agents on stdio.
pub(crate) fn http_settings(scratch: &Scratch) {
    scratch.configure(&format!(
        "[approvals]\nprofile = \"trusting\"\n[http]\ntokens = [{{ name = \"web\", token = \"{TOKEN}\" }}]\n"
    ));
}

/// The message that opens an HTTP session.
pub(crate) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "web", "version": "1"},
    }})
}

/// Opens an HTTP session and returns its id.
pub(crate) fn open_session(http: &Http) -> String {
    let opened = http.rpc(Some(TOKEN), &[], &initialize());
    assert_eq!(opened.status, 200, "{opened:?}");
    assert!(opened.json()["result"]["serverInfo"].is_object(), "{opened:?}");
    let session = opened.header("mcp-session-id").expect("a session id").to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ready = http.rpc(Some(TOKEN), &session_headers(&session), &ready);
    assert_eq!(ready.status, 202, "{ready:?}");
    session
}

/// The headers that continue an HTTP session.
pub(crate) fn session_headers(session: &str) -> [(&'static str, &str); 2] {
    [("Mcp-Session-Id", session), ("MCP-Protocol-Version", REVISION)]
}

/// A tool call's message.
pub(crate) fn tool_call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// How many lines the diff in an answer takes away and adds.
pub(crate) fn diff_lines(reply: &Reply) -> (usize, usize) {
    let count = |sign: char, header: &str| {
        reply.content().lines().filter(|line| line.starts_with(sign) && !line.starts_with(header)).count()
    };
    (count('-', "---"), count('+', "+++"))
}
