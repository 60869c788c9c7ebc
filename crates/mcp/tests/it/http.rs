//! HTTP: who is let in, what is turned away before anything is routed, both kinds of revision.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use cotenant_mcp::http::{Access, Doors, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::fake::Fake;
use crate::{call, run, text};

struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    served: JoinHandle<()>,
    doors: Arc<Doors>,
}

impl Server {
    async fn new(host: &Arc<Fake>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tokens = [("secret-a", "ada"), ("secret-b", "bob"), ("secret-r", "refused")];
        let access = Access {
            tokens: BTreeMap::from_iter(tokens.map(|(token, agent)| (token.to_owned(), agent.to_owned()))),
            origins: vec!["https://app.example.com".to_owned()],
        };
        let stop = watch::Sender::new(false);
        let doors = Arc::new(Doors::new(host.clone()));
        let served = tokio::spawn(serve(listener, doors.clone(), access, stop.subscribe()));
        Server { address, stop, served, doors }
    }

    fn post(&self, path: &str) -> Request {
        let request =
            Request { address: self.address, line: format!("POST {path}"), headers: vec![], body: vec![] };
        request
            .with("host", &self.address.to_string())
            .with("authorization", "Bearer secret-a")
            .with("content-type", "application/json")
            .with("accept", "application/json, text/event-stream")
    }
}

#[derive(Clone)]
struct Request {
    address: SocketAddr,
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

#[derive(Debug)]
struct Reply {
    status: u16,
    headers: String,
    body: String,
}

impl Reply {
    /// The JSON-RPC message, whether it came plain or as an event.
    fn message(&self) -> Value {
        let mut data = self.body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        let text = data.next_back().unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    fn session(&self) -> Option<String> {
        let line =
            self.headers.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }
}

impl Request {
    fn without(mut self, name: &str) -> Request {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    fn with(self, name: &str, value: &str) -> Request {
        let mut request = self.without(name);
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    }

    fn method(mut self, method: &str) -> Request {
        self.line = format!("{method} {}", self.line.split_once(' ').unwrap().1);
        self
    }

    async fn json(mut self, body: Value) -> Reply {
        self.body = body.to_string().into_bytes();
        self.send().await
    }

    async fn send(self) -> Reply {
        let mut head = format!("{} HTTP/1.1\r\nconnection: close\r\n", self.line);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        exchange(self.address, &[head.as_bytes(), &self.body]).await
    }

    /// The body in chunks of `size`.
    async fn chunked(self, size: usize) -> Reply {
        let mut bytes =
            format!("{} HTTP/1.1\r\nconnection: close\r\ntransfer-encoding: chunked\r\n", self.line);
        for (name, value) in &self.headers {
            bytes.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut bytes = format!("{bytes}\r\n").into_bytes();
        for chunk in self.body.chunks(size) {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        exchange(self.address, &[&bytes]).await
    }
}

async fn exchange(address: SocketAddr, parts: &[&[u8]]) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    for part in parts {
        stream.write_all(part).await.unwrap();
    }
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.unwrap();
    let reply = String::from_utf8(reply).unwrap();
    let (headers, body) = reply.split_once("\r\n\r\n").unwrap();
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    let chunked = headers.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Reply { status, headers: headers.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        whole.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    whole
}

fn initialize(version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "web", "version": "1" } } })
}

fn modern(mut request: Value) -> Value {
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "web", "version": "1" },
    });
    request
}

fn modern_post(server: &Server, method: &str, name: &str) -> Request {
    let request = server.post("/mcp").with("mcp-protocol-version", "2026-07-28").with("mcp-method", method);
    if name.is_empty() { request } else { request.with("mcp-name", name) }
}

#[test]
fn foreign_hosts_and_origins_are_turned_away_on_every_route_before_anything_else() {
    // C172, M392
    run(async {
        let host = Fake::new();
        let server = Server::new(&host).await;
        let port = server.address.port();
        for path in ["/mcp", "/", "/api/pending", "/no/such"] {
            for method in ["POST", "GET", "DELETE", "OPTIONS", "PUT"] {
                let request = || server.post(path).method(method);
                for host in [
                    "evil.test",
                    &format!("evil.example:{port}"),
                    "127.0.0.1.evil.test",
                    "localhost@evil.test",
                    "",
                ] {
                    let reply = request().with("host", host).json(initialize("2025-06-18")).await;
                    assert_eq!(reply.status, 403, "{method} {path} {host}");
                }
                for origin in
                    ["https://evil.example", "null", "http://localhost:1", "https://localhost", "file://"]
                {
                    let reply = request().with("origin", origin).json(initialize("2025-06-18")).await;
                    assert_eq!(reply.status, 403, "{method} {path} {origin}");
                }
                let reply = request().without("authorization").json(json!({})).await;
                assert_eq!(reply.status, 401, "{method} {path}");
                assert!(reply.headers.to_ascii_lowercase().contains("www-authenticate: bearer"));
            }
        }
        host.with(|state| assert!(state.opened.is_empty() && state.arrived.is_empty()));
    });
}

#[test]
fn tokens_are_compared_whole() {
    run(async {
        let server = Server::new(&Fake::new()).await;
        for value in [
            "Bearer",
            "Bearer ",
            "Bearer secret",
            "Bearer secret-aa",
            "Bearer secret-A",
            "secret-a",
            "Basic secret-a",
            "Bearer secret-a secret-a",
        ] {
            let reply = server.post("/mcp").with("authorization", value).json(initialize("2025-06-18")).await;
            assert_eq!(reply.status, 401, "{value:?}");
        }
        let reply =
            server.post("/mcp").with("authorization", "bearer secret-a").json(initialize("2025-06-18")).await;
        assert_eq!(reply.status, 200);
    });
}

#[test]
fn own_and_configured_origins_and_none_come_in() {
    run(async {
        let server = Server::new(&Fake::new()).await;
        let port = server.address.port();
        for origin in [
            format!("http://localhost:{port}"),
            format!("http://127.0.0.1:{port}"),
            "https://app.example.com".to_owned(),
        ] {
            let reply = server.post("/mcp").with("origin", &origin).json(initialize("2025-06-18")).await;
            assert_eq!(reply.status, 200, "{origin}");
        }
        for host in [format!("localhost:{port}"), "LOCALHOST".to_owned(), format!("[::1]:{port}")] {
            let reply = server.post("/mcp").with("host", &host).json(initialize("2025-06-18")).await;
            assert_eq!(reply.status, 200, "{host}");
        }
        assert_eq!(server.post("/elsewhere").json(json!({})).await.status, 404);
    });
}

#[test]
fn the_stateless_revision_is_served_by_single_requests() {
    run(async {
        let host = Fake::new();
        let server = Server::new(&host).await;
        let discover =
            modern(json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} }));
        let reply = modern_post(&server, "server/discover", "").json(discover).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.message()["result"]["instructions"], "instructions for se1");
        let reply = modern_post(&server, "tools/call", "echo")
            .json(modern(call(2, "echo", json!({ "text": "hi" }))))
            .await;
        assert_eq!(text(&reply.message()), "hi");
        let mismatch =
            modern_post(&server, "tools/list", "echo").json(modern(call(3, "echo", json!({})))).await;
        assert_eq!((mismatch.status, &mismatch.message()["error"]["code"]), (400, &json!(-32020)));
        // One token, one session; another token, another.
        let session = modern(call(4, "session", json!({})));
        assert_eq!(
            text(&modern_post(&server, "tools/call", "session").json(session.clone()).await.message()),
            "se1"
        );
        let other = modern_post(&server, "tools/call", "session").with("authorization", "Bearer secret-b");
        assert_eq!(text(&other.json(session).await.message()), "se2");
        host.with(|state| {
            let agents: Vec<_> = state.opened.iter().map(|hello| (hello.agent.clone(), hello.pid)).collect();
            assert_eq!(agents, [(Some("ada".to_owned()), None), (Some("bob".to_owned()), None)]);
        });
        assert_eq!(server.doors.sessions(), 2);
    });
}

#[test]
fn sessions_of_the_older_revisions_come_and_go() {
    // C173
    run(async {
        let host = Fake::new();
        let server = Server::new(&host).await;
        let reply = server.post("/mcp").json(initialize("2025-06-18")).await;
        assert_eq!(reply.message()["result"]["protocolVersion"], "2025-06-18");
        let session = reply.session().unwrap();
        let within = |id: &str| {
            server.post("/mcp").with("mcp-session-id", id).with("mcp-protocol-version", "2025-06-18")
        };
        let reply =
            within(&session).json(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert_eq!(reply.status, 202);
        let reply = within(&session).json(call(2, "echo", json!({ "text": "hi" }))).await;
        assert_eq!(text(&reply.message()), "hi");
        // What is gone, or never was, is 404; to start anew with it is fine.
        assert_eq!(within("no-such-session").json(call(3, "echo", json!({}))).await.status, 404);
        let anew = server
            .post("/mcp")
            .with("mcp-session-id", "no-such-session")
            .json(initialize("2025-06-18"))
            .await;
        assert_eq!(anew.status, 200);
        assert_ne!(anew.session().unwrap(), "no-such-session");
        assert_eq!(within(&session).method("DELETE").send().await.status, 202);
        assert_eq!(within(&session).method("DELETE").send().await.status, 404);
        assert_eq!(within(&session).json(call(4, "echo", json!({}))).await.status, 404);
        let get = server.post("/mcp").method("GET").with("accept", "text/event-stream");
        assert!((400..500).contains(&get.send().await.status));
        assert_eq!(host.with(|state| state.opened.len()), 1);
    });
}

#[test]
fn bodies_have_a_bound_and_must_be_json() {
    run(async {
        let server = Server::new(&Fake::new()).await;
        let mut long = server.post("/mcp");
        long.body = call(1, "echo", json!({ "text": "x".repeat(17 * 1024 * 1024) })).to_string().into_bytes();
        assert_eq!(long.clone().send().await.status, 413);
        assert_eq!(long.chunked(1024 * 1024).await.status, 413);
        let mut broken = server.post("/mcp");
        broken.body = b"{\"jsonrpc\":".to_vec();
        let reply = broken.send().await;
        assert_eq!((reply.status, &reply.message()["error"]["code"]), (400, &json!(-32700)));
        let fits = modern(call(1, "echo", json!({ "text": "y".repeat(15 * 1024 * 1024) })));
        let reply = modern_post(&server, "tools/call", "echo").json(fits).await;
        assert_eq!(text(&reply.message()).len(), 15 * 1024 * 1024);
    });
}

#[test]
fn characters_that_are_split_between_chunks_stay_whole() {
    // C016
    run(async {
        let server = Server::new(&Fake::new()).await;
        let han = "\u{5f20}".repeat(3000);
        let mut request = modern_post(&server, "tools/call", "echo");
        request.body = modern(call(1, "echo", json!({ "text": han }))).to_string().into_bytes();
        assert_eq!(text(&request.chunked(7).await.message()), han);
    });
}

#[test]
fn a_session_that_the_host_refuses_is_told_why() {
    run(async {
        let server = Server::new(&Fake::new()).await;
        let request = modern_post(&server, "tools/call", "echo").with("authorization", "Bearer secret-r");
        let error = &request.json(modern(call(1, "echo", json!({})))).await.message()["error"];
        assert!(error["message"].as_str().unwrap().starts_with("PERMISSION_DENIED"), "{error}");
    });
}

#[test]
fn the_end_closes_the_sessions() {
    run(async {
        let host = Fake::new();
        let server = Server::new(&host).await;
        let reply = modern_post(&server, "tools/call", "echo").json(modern(call(2, "echo", json!({})))).await;
        assert_eq!(reply.status, 200);
        server.stop.send_replace(true);
        server.served.await.unwrap();
        host.with(|state| assert_eq!(state.closed.len(), 1));
        assert!(TcpStream::connect(server.address).await.is_err());
    });
}
