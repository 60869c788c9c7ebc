//! One connection of the socket, from its first line to its end.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cotenant_model::{Code, Refusal};
use rustix::process::geteuid;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::spawn_blocking;

use crate::hello::{First, Kind, Reply, WIRE, refusal_json};
use crate::server::Server;
use crate::trim::Counted;
use crate::{Peer, build_id, sys};

/// How long a client may take for its first line.
const FIRST: Duration = Duration::from_secs(5);

/// The longest first line, in bytes.
const FIRST_MAX: u64 = 64 * 1024;

/// The longest admin request, in bytes.
const REQUEST_MAX: u64 = cotenant_mcp::MESSAGE_MAX as u64;

type Input = BufReader<OwnedReadHalf>;

/// Serves a connection to its end.
pub(crate) async fn connection(server: Arc<Server>, stream: UnixStream) {
    let Some(peer) = peer(&stream) else { return };
    let _present = server.present();
    let held = stream.as_fd().try_clone_to_owned();
    let (read, mut output) = stream.into_split();
    let mut input = BufReader::with_capacity(64 * 1024, read);
    let first = tokio::time::timeout(FIRST, line(&mut input, FIRST_MAX)).await;
    let Ok(Some(first)) = first else { return };
    let first = match accepted(&first) {
        Ok(first) => first,
        Err(refusal) => return refuse(&mut output, &refusal).await,
    };
    if first.build != build_id() && !first.any_build {
        // Its calls go to their end; the client starts its own build, which waits for that.
        if send(&mut output, &Reply::Replaced { replaced: true }).await {
            server.stop_for(None);
        }
        return;
    }
    match first.kind {
        Kind::Mcp => mcp(&server, &first, peer, input, output).await,
        Kind::Admin => {
            let open = standing(None);
            if send(&mut output, &open).await {
                admin(&server, peer, held.ok(), input, output).await;
            }
        }
    }
}

/// The daemon's word that the connection stands.
fn standing(session: Option<u64>) -> Reply {
    Reply::Open { ok: true, build: build_id().to_owned(), pid: std::process::id(), session }
}

/// Who is at the other end; `None` for another user, and for one who has gone.
fn peer(stream: &UnixStream) -> Option<Peer> {
    let (pid, uid) = sys::peer_credentials(stream)?;
    if uid != geteuid().as_raw() {
        return None;
    }
    let pidfd = sys::peer_process(stream, pid).map(Arc::new);
    Some(Peer { pid, uid, pidfd })
}

/// The next line, without its end; `None` at the end of the stream, and for a line that is too long.
async fn line(input: &mut Input, max: u64) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    input.take(max).read_until(b'\n', &mut line).await.ok()?;
    (line.pop() == Some(b'\n')).then_some(line)
}

fn accepted(line: &[u8]) -> Result<First, Refusal> {
    let first: First = serde_json::from_slice(line)
        .map_err(|error| Refusal::new(Code::BadInput, format!("The first line is no greeting: {error}.")))?;
    if first.cotenant == WIRE {
        return Ok(first);
    }
    Err(Refusal::new(Code::NotAvailable, "This daemon speaks another revision of the socket's protocol.")
        .fact("build", build_id())
        .next("cotenant stop"))
}

/// Sends one line; whether the other end took it.
async fn send(output: &mut OwnedWriteHalf, message: &impl serde::Serialize) -> bool {
    let Ok(mut line) = serde_json::to_vec(message) else { return false };
    line.push(b'\n');
    output.write_all(&line).await.is_ok()
}

async fn refuse(output: &mut OwnedWriteHalf, refusal: &Refusal) {
    // Whoever is gone needs no refusal.
    let _ = send(output, &Reply::Refused { refusal: refusal_json(refusal) }).await;
}

/// An agent's session.
async fn mcp(server: &Arc<Server>, first: &First, peer: Peer, input: Input, mut output: OwnedWriteHalf) {
    let host = Arc::clone(&server.host);
    let hello = first.hello(peer.pid);
    let opened = blocking(move || hello.and_then(|hello| host.open(&hello))).await;
    let session = match opened {
        Ok(session) => session,
        Err(refusal) => return refuse(&mut output, &refusal).await,
    };
    let open = standing(Some(session.0));
    if send(&mut output, &open).await {
        server.agents.fetch_add(1, Ordering::Relaxed);
        let input = Box::new(Counted::new(input, Arc::clone(&server.much)));
        let output = Box::new(Counted::new(output, Arc::clone(&server.much)));
        let host = Arc::clone(&server.host);
        tokio::select! {
            () = cotenant_mcp::serve(host, session, input, output, server.stop.subscribe()) => {}
            () = sys::ended(peer.pidfd) => {}
        }
        server.agents.fetch_sub(1, Ordering::Relaxed);
    }
    let host = Arc::clone(&server.host);
    // A panic in there is in the log; the session is over either way.
    let _ = blocking(move || {
        host.close(session);
        Ok(())
    })
    .await;
}

/// Runs what may block. A panic becomes a refusal.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    spawn_blocking(act).await.unwrap_or_else(|_| {
        Err(Refusal::new(Code::IoError, "The request ended in a fault of cotenant itself; its log has more."))
    })
}

/// The requests of one client of the command line.
async fn admin(
    server: &Arc<Server>,
    peer: Peer,
    held: Option<OwnedFd>,
    mut input: Input,
    mut output: OwnedWriteHalf,
) {
    let mut stop = server.stop.subscribe();
    let mut keeps = 0usize;
    let mut held = held;
    loop {
        let request = tokio::select! {
            request = line(&mut input, REQUEST_MAX) => request,
            _ = stop.wait_for(|stop| *stop) => None,
        };
        let Some(request) = request else { break };
        let (op, args) = match admin_request(&request) {
            Ok(request) => request,
            Err(refusal) => {
                refuse(&mut output, &refusal).await;
                break;
            }
        };
        let answer = match op.as_str() {
            "http" => server.http.keep(&server.host).await.inspect(|_| keeps += 1),
            "stop" => Ok(json!({ "pid": std::process::id() })),
            "status" => status(server, args, peer.clone()).await,
            _ => asked(server, op.clone(), args, peer.clone()).await,
        };
        let answer = match answer {
            Ok(value) => json!({ "ok": value }),
            Err(refusal) => json!({ "refusal": refusal_json(&refusal) }),
        };
        if !send(&mut output, &answer).await {
            break;
        }
        if op == "stop" {
            server.stop_for(held.take());
            output.forget();
            break;
        }
    }
    for _ in 0..keeps {
        server.http.release().await;
    }
    let admin = Arc::clone(&server.admin);
    let _ = blocking(move || {
        admin.gone(&peer);
        Ok(())
    })
    .await;
}

fn admin_request(line: &[u8]) -> Result<(String, Map<String, Value>), Refusal> {
    let wrong = |why: String| Refusal::new(Code::BadInput, format!("The request has a wrong form: {why}."));
    let mut args: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
    match args.remove("op") {
        Some(Value::String(op)) => Ok((op, args)),
        _ => Err(wrong("op is missing".to_owned())),
    }
}

async fn asked(
    server: &Arc<Server>,
    op: String,
    args: Map<String, Value>,
    peer: Peer,
) -> Result<Value, Refusal> {
    let admin = Arc::clone(&server.admin);
    blocking(move || admin.admin(&op, &args, &peer)).await
}

/// The daemon's own facts, and the workspace's.
async fn status(server: &Arc<Server>, args: Map<String, Value>, peer: Peer) -> Result<Value, Refusal> {
    let mut facts = Map::new();
    let http = server.http.address().await.map(|address| format!("http://{address}/mcp"));
    for (name, value) in [
        ("pid", json!(std::process::id())),
        ("build", json!(build_id())),
        ("root", json!(server.place.root.display().to_string())),
        ("uptime_s", json!(server.started.elapsed().as_secs())),
        ("sessions", json!(server.sessions().await)),
        ("http", json!(http)),
    ] {
        facts.insert(name.to_owned(), value);
    }
    if let Value::Object(more) = asked(server, "status".to_owned(), args, peer).await? {
        facts.extend(more);
    }
    Ok(Value::Object(facts))
}
