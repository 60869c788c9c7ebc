//! What the command line asks of the daemon.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use cotenant_daemon::Kind;
use cotenant_model::{Code, FactValue};
use cotenant_tools::host::Hello;
use serde_json::{Map, Value, json};

use crate::{Ground, asking, process, refused};

fn args(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn requests_are_carried_out_for_who_asked() {
    let ground = Ground::new();
    let mut admin = ground.admin();
    let said = admin.ask("echo", args(json!({ "a": [1, { "b": null }] }))).unwrap();
    assert_eq!(
        said,
        json!({ "args": { "a": [1, { "b": null }] }, "pid": std::process::id(), "process": true })
    );
}

#[test]
fn refusals_arrive_whole_and_the_connection_goes_on() {
    let ground = Ground::new();
    let mut admin = ground.admin();
    let refusal = refused(admin.ask("no-such", Map::new()));
    assert_eq!(
        refusal.to_string(),
        "BAD_INPUT op=no-such list=a flag=yes number=3\nNo such operation.\na\nb\nnext: help"
    );
    assert_eq!(refusal.get("list"), Some(&FactValue::List(vec!["a".to_owned()])));
    assert_eq!(refused(admin.ask("fault", Map::new())).code, Code::IoError);
    assert!(admin.ask("echo", Map::new()).is_ok());
}

#[test]
fn requests_without_a_form_are_refused() {
    let ground = Ground::new();
    drop(ground.admin());
    for request in ["nonsense", "[]", "{\"op\":5}", "{}"] {
        let mut stream = UnixStream::connect(&ground.place.socket).unwrap();
        let greeting = json!({ "cotenant": 1, "build": cotenant_daemon::build_id(), "kind": "admin" });
        write!(stream, "{greeting}\n{request}\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.lines().nth(1).unwrap().starts_with("{\"refusal\":{\"code\":\"BAD_INPUT\""), "{said}");
    }
}

#[test]
fn status_has_the_daemons_facts_and_the_workspaces() {
    let ground = Ground::new();
    let mut admin = ground.admin();
    let mut bridge = ground.bridge_as(Hello { agent: Some("ada".to_owned()), ..Hello::default() });
    bridge.initialize();
    let status = admin.ask("status", Map::new()).unwrap();
    assert_eq!(status["pid"], admin.pid);
    assert_eq!(status["build"], cotenant_daemon::build_id());
    assert_eq!(status["root"], ground.place.root.display().to_string());
    assert_eq!(status["sessions"], 1);
    assert_eq!((&status["http"], &status["watcher"]["ready"]), (&Value::Null, &json!(true)));
    bridge.finish();
    assert_eq!(admin.ask("sessions", args(json!({ "closed": 1 }))).unwrap()["opened"], 1);
}

fn status_of(address: SocketAddr, token: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "web", "version": "1" } } })
    .to_string();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    said.split(' ').nth(1)?.parse().ok()
}

fn address(url: &Value) -> SocketAddr {
    url.as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().parse().unwrap()
}

#[test]
fn http_is_open_while_someone_keeps_it_open() {
    let ground = Ground::configured("[http]\ntokens = [{ name = \"ada\", token = \"secret-of-ada\" }]\n");
    let mut first = ground.admin();
    let mut second = ground.admin();
    let open = first.ask("http", Map::new()).unwrap();
    assert_eq!(open["tokens"], 1);
    assert_eq!(second.ask("http", Map::new()).unwrap()["url"], open["url"]);
    let address = address(&open["url"]);
    assert!(address.ip().is_loopback());
    assert_eq!(status_of(address, "secret-of-ada"), Some(200));
    assert_eq!(status_of(address, "secret-of-bob"), Some(401));
    assert_eq!(second.ask("status", Map::new()).unwrap()["http"], open["url"]);
    drop(first);
    assert_eq!(status_of(address, "secret-of-bob"), Some(401));
    let daemon = process(second.pid);
    drop(second);
    let mut third = ground.admin();
    // The last keeper is gone when its door is; asking again opens another.
    while !third.ask("status", Map::new()).unwrap()["http"].is_null() {
        std::thread::yield_now();
    }
    assert_eq!(status_of(address, "secret-of-ada"), None);
    drop(daemon);
}

#[test]
fn http_that_is_configured_is_open_from_the_start() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let toml =
        format!("[http]\nlisten = \"{free}\"\ntokens = [{{ name = \"ada\", token = \"secret-of-ada\" }}]\n");
    let ground = Ground::configured(&toml);
    let mut admin = ground.admin();
    let url = admin.ask("http", Map::new()).unwrap()["url"].clone();
    assert_eq!(address(&url), free);
    drop(admin);
    assert_eq!(status_of(free, "secret-of-ada"), Some(200));
    assert!(cotenant_daemon::connect(&ground.place, &asking(Kind::Admin)).unwrap().is_some());
}
