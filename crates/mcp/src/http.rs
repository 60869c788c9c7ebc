//! MCP over HTTP on loopback: a guard before all routing, then `/mcp`.
//!
//! The guard lets through what names a loopback host, comes from no foreign origin, and bears a token; and only bodies
//! within the bound that are JSON.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use cotenant_model::SessionId;
use cotenant_tools::host::{Hello, Host};
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::MESSAGE_MAX;
use crate::handler::{Caller, Handler};
use crate::parse::{error_line, not_json};
use crate::scan::Scan;

/// A token's session ends after so long without a request.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// Calls under way, over all tokens.
const IN_FLIGHT: usize = 32;

/// Bodies that are read at one time; each may be as long as a message may be.
const BODIES: usize = 8;

/// How much of a body that is too long is read on and dropped, so that its sender gets to read the answer.
const DRAINED: usize = 4 * MESSAGE_MAX;

const SESSION_HEADER: &str = "mcp-session-id";

/// Who may come in.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The agent's name by its token.
    pub tokens: BTreeMap<String, String>,
    /// Origins that are let in beside the server's own, such as `https://app.example.com`.
    pub origins: Vec<String>,
}

/// The sessions of the tokens, one each, opened at the first request.
pub struct Doors {
    host: Arc<dyn Host>,
    open: Mutex<HashMap<Arc<str>, Open>>,
    slots: Arc<Semaphore>,
}

struct Open {
    session: SessionId,
    used: Instant,
}

/// The agent whose token a request bore, among the request's extensions.
#[derive(Clone)]
struct Bearer(Arc<str>);

impl Doors {
    /// No token has a session yet.
    pub fn new(host: Arc<dyn Host>) -> Doors {
        Doors { host, open: Mutex::default(), slots: Arc::new(Semaphore::new(IN_FLIGHT)) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<Arc<str>, Open>) -> T) -> T {
        act(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many tokens have a session.
    pub fn sessions(&self) -> usize {
        self.with(|open| open.len())
    }

    /// The session of the token that the request came with.
    pub(crate) fn session(&self, context: &RequestContext<RoleServer>) -> Result<SessionId, ErrorData> {
        let bearer = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Bearer>());
        let Some(Bearer(agent)) = bearer else {
            return Err(ErrorData::internal_error("the request passed no guard", None));
        };
        let (session, new) = self
            .with(|open| {
                if let Some(known) = open.get_mut(agent) {
                    known.used = Instant::now();
                    return Ok((known.session, false));
                }
                let hello = Hello { agent: Some(agent.to_string()), ..Hello::default() };
                let session = self.host.open(&hello)?;
                open.insert(Arc::clone(agent), Open { session, used: Instant::now() });
                Ok((session, true))
            })
            .map_err(|refusal: cotenant_model::Refusal| {
                ErrorData::new(ErrorCode(-32000), refusal.to_string(), None)
            })?;
        if new && let Some(client) = context.client_info() {
            self.host.introduce(session, &client.name, None);
        }
        Ok(session)
    }

    /// A place among the calls under way.
    pub(crate) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).acquire_owned().await.ok()
    }

    /// Ends the sessions whose last request is at least `idle` ago.
    fn expire(&self, idle: Duration) {
        let gone: Vec<Open> = self.with(|open| {
            open.extract_if(|_, door| door.used.elapsed() >= idle).map(|(_, door)| door).collect()
        });
        gone.into_iter().for_each(|door| self.host.close(door.session));
    }
}

/// Serves the host of `doors` to those whom `access` lets in, until `stop` turns true; then all sessions are closed.
pub async fn serve(listener: TcpListener, doors: Arc<Doors>, access: Access, stop: watch::Receiver<bool>) {
    let handler = Handler::new(Arc::clone(&doors.host), Caller::Token(Arc::clone(&doors)));
    let served = serve_handler(listener, access, move || handler.clone(), stop);
    let expiry = async {
        let mut minute = tokio::time::interval(Duration::from_secs(60));
        loop {
            minute.tick().await;
            doors.expire(IDLE);
        }
    };
    tokio::select! {
        () = served => {}
        () = expiry => {}
    }
    doors.expire(Duration::ZERO);
}

/// Serves any handler behind the same guard; the protocol's conformance suite is run against one of its own.
pub async fn serve_handler<H: ServerHandler>(
    listener: TcpListener,
    access: Access,
    handler: impl Fn() -> H + Send + Sync + 'static,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(address) = listener.local_addr() else { return };
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(IDLE);
    let sessions = Arc::new(sessions);
    // Host and Origin are the guard's business: it stands before every route, not only before this one.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MESSAGE_MAX);
    let streams = config.cancellation_token.clone();
    let service = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&sessions), config);
    let guard = Arc::new(Guard::new(access, address.port(), sessions));
    let routes = Router::new().route_service("/mcp", service);
    let app = Router::new().fallback_service(routes).layer(from_fn_with_state(guard, guarded));
    let stopped = async move {
        // An error means that the sender is gone, which is a stop, too.
        let _ = stop.wait_for(|stop| *stop).await;
        streams.cancel();
    };
    // Accepting goes on through errors; it ends by `stopped` alone.
    let _ = axum::serve(listener, app).with_graceful_shutdown(stopped).await;
}

struct Guard {
    tokens: Vec<(String, Arc<str>)>,
    origins: Vec<String>,
    sessions: Arc<LocalSessionManager>,
    bodies: Semaphore,
}

impl Guard {
    fn new(access: Access, port: u16, sessions: Arc<LocalSessionManager>) -> Guard {
        let own = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("http://{host}:{port}"));
        let origins = own.into_iter().chain(access.origins);
        Guard {
            tokens: access.tokens.into_iter().map(|(token, agent)| (token, agent.into())).collect(),
            origins: origins.map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect(),
            sessions,
            bodies: Semaphore::new(BODIES),
        }
    }

    /// The agent whose token the request bears, or the answer that turns it away.
    fn admit(&self, parts: &Parts) -> Result<Bearer, Box<Response>> {
        let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let hosts_are_ours = named.is_some_and(loopback)
            && parts.uri.authority().is_none_or(|authority| loopback(authority.as_str()))
            && parts.headers.get_all(header::HOST).iter().count() == 1;
        if !hosts_are_ours {
            return Err(Box::new(plain(
                StatusCode::FORBIDDEN,
                "Host is not a name of this machine's loopback",
            )));
        }
        let foreign = parts.headers.get_all(header::ORIGIN).iter().any(|origin| {
            let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
            !self.origins.contains(&origin)
        });
        if foreign {
            return Err(Box::new(plain(StatusCode::FORBIDDEN, "Origin is not among [http] allowed_origins")));
        }
        self.bearer(&parts.headers).ok_or_else(|| {
            let why = "a token of [http] tokens is wanted: Authorization: Bearer TOKEN";
            let answer = ([(header::WWW_AUTHENTICATE, "Bearer")], plain(StatusCode::UNAUTHORIZED, why));
            Box::new(answer.into_response())
        })
    }

    fn bearer(&self, headers: &HeaderMap) -> Option<Bearer> {
        let value = headers.get(header::AUTHORIZATION)?.as_bytes();
        let (scheme, token) = value.split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return None;
        }
        let token = token.trim_ascii();
        // All are compared, each to its end: time tells nothing of a token.
        let mut found = None;
        for (known, agent) in &self.tokens {
            if same(known.as_bytes(), token) {
                found = Some(Bearer(Arc::clone(agent)));
            }
        }
        found
    }

    /// The body, or the answer that turns it away.
    async fn body(&self, body: Body) -> Result<Bytes, Response> {
        let too_long = || plain(StatusCode::PAYLOAD_TOO_LARGE, "the message exceeds 16 MiB");
        let _turn = self.bodies.acquire().await.map_err(|_| too_long())?;
        let mut body = pin!(body);
        let (mut kept, mut seen) = (Vec::new(), 0usize);
        while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let data = frame.ok().and_then(|frame| frame.into_data().ok());
            let Some(data) = data else { break };
            seen += data.len();
            if seen <= MESSAGE_MAX {
                kept.extend_from_slice(&data);
            } else {
                kept = Vec::new();
            }
            if seen > DRAINED {
                break;
            }
        }
        if seen > MESSAGE_MAX { Err(too_long()) } else { Ok(kept.into()) }
    }

    /// Whether the request names a session of the older revisions that is gone.
    async fn stale(&self, headers: &HeaderMap) -> bool {
        let Some(id) = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()) else { return false };
        !self.sessions.has_session(&id.to_owned().into()).await.unwrap_or(false)
    }
}

/// What every request passes before it is routed.
async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    match guard.admit(&parts) {
        Ok(bearer) => parts.extensions.insert(bearer),
        Err(answer) => return *answer,
    };
    let stale = guard.stale(&parts.headers).await;
    if parts.method == Method::DELETE && stale {
        return plain(StatusCode::NOT_FOUND, "no such session");
    }
    if parts.method != Method::POST {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let body = match guard.body(body).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    if let Some(error) = not_json(&body) {
        return wrong(&error);
    }
    if stale && Scan::of(&body).method() == Some(b"initialize") {
        // A client that starts anew with the id of a session that is gone gets a new one.
        parts.headers.remove(SESSION_HEADER);
    }
    next.run(Request::from_parts(parts, body.into())).await
}

fn wrong(error: &ErrorData) -> Response {
    let body = error_line(None, error);
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn plain(status: StatusCode, why: &'static str) -> Response {
    (status, why).into_response()
}

/// Whether an authority, such as `localhost:8080`, names the loopback.
fn loopback(authority: &str) -> bool {
    authority.parse::<Authority>().is_ok_and(|authority| {
        let plain = !authority.as_str().contains('@');
        plain
            && ["localhost", "127.0.0.1", "[::1]"]
                .iter()
                .any(|host| authority.host().eq_ignore_ascii_case(host))
    })
}

/// Equality in a time that depends on the lengths only.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).fold(0, |differing, (left, right)| differing | (left ^ right)) == 0
}
