//! Every way to a tool leads through the hooks; a human's own commands do not.

use cotenant_testkit::Http;
use serde_json::{Map, Value, json};

use super::{Scene, noting};
use crate::call;

const DENY: &str = "pre_tool_call = [{ command = \"$S/hook\" }]";

fn ask_tool(scene: &Scene, request: Value) -> Value {
    scene.ground.admin().ask("tool", request.as_object().unwrap().clone()).unwrap()
}

#[test]
fn http_calls_are_hooked() {
    let settings = "[approvals]\nprofile = \"trusting\"\n[http]\ntokens = [{ name = \"web\", token = \"secret-of-web\" }]\n";
    let scene = Scene::with(settings, DENY, &[("hook", &noting("exit 2"))]);
    let mut keeper = scene.ground.admin();
    let open = keeper.ask("http", Map::new()).unwrap();
    let address =
        open["url"].as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let http = Http::new(address.parse().unwrap());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "web", "version": "1"}}});
    let opened = http.rpc(Some("secret-of-web"), &[], &hello);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
    let message = call(2, "write_file", json!({"path": "a.txt", "content": "x"}));
    let reply = http.rpc(Some("secret-of-web"), &headers, &message).json();
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("HOOK_DENIED hook=pre_tool_call[1]"), "{reply}");
    assert_eq!(scene.asked()[0]["cotenant"]["agent"], "web");
    assert_eq!(scene.get("a.txt"), None);
}

#[test]
fn calls_from_the_command_line_are_hooked() {
    let scene = Scene::new(DENY, &[("hook", "echo no >&2; exit 2")]);
    let write = json!({"tool": "write_file", "args": {"path": "a.txt", "content": "x"}});
    let answer = ask_tool(&scene, write);
    assert!(answer["text"].as_str().unwrap().starts_with("HOOK_DENIED"), "{answer}");
    assert_eq!((&answer["refused"], &answer["fields"]["code"]), (&json!(true), &json!("HOOK_DENIED")));
    assert_eq!(scene.get("a.txt"), None);
}

#[test]
fn a_humans_own_commands_are_not_hooked() {
    let scripts = [("hook", "echo no >&2; exit 2")];
    let both = "pre_tool_call = [{ matcher = \"undo\", command = \"$S/hook\" }]\n\
                post_tool_response = [{ matcher = \"undo\", command = \"$S/hook\" }]";
    let mut scene = Scene::new(both, &scripts);
    let change = scene.call("write_file", json!({"path": "a.txt", "content": "x"})).ok().get("change");
    scene.call("undo", json!({"change": change})).refused("HOOK_DENIED");
    assert!(scene.get("a.txt").is_some());
    let undo = json!({"tool": "undo", "args": {"change": change}, "human": true});
    let answer = ask_tool(&scene, undo);
    assert_eq!(answer["refused"], json!(false), "{answer}");
    assert_eq!(scene.get("a.txt"), None);
}

#[test]
fn no_agent_writes_what_a_hook_runs() {
    let scripts = "pre_tool_call = [{ command = \"sh Hooks/guard.sh\" }]\n\
                   post_tool_response = [{ command = \"./later.sh\", fail_open = true }]";
    let mut scene = Scene::new(scripts, &[]);
    std::fs::create_dir(scene.ground.place.root.join("Hooks")).unwrap();
    scene.put("Hooks/guard.sh", "exit 0\n");
    for path in ["Hooks/guard.sh", "hooks/guard.sh", "later.sh", "./Hooks/../later.sh"] {
        let written = scene.call("write_file", json!({"path": path, "content": "exit 0", "overwrite": true}));
        written.refused_as(&["PATH_PROTECTED", "PATH_OUTSIDE"]);
    }
    scene.call("move_path", json!({"from": "Hooks", "to": "Other"})).refused("PATH_PROTECTED");
    scene.call("write_file", json!({"path": "Hooks/other.sh", "content": "x"})).ok();
}
