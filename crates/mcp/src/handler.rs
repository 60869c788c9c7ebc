//! The one handler: every revision of the protocol on one side, the host on the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cotenant_model::SessionId;
use cotenant_tools::host::{Answer, Host};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, ErrorData, Implementation, InitializeRequestParams, InitializeResult,
    ListToolsResult, MetaObject, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::watch;

use crate::http::Doors;
use crate::turn::Turn;

/// Methods whose params have a form: one of them that arrives as a request of no known kind had wrong params.
const WITH_PARAMS: &[&str] = &["initialize", "tools/call", "tools/list", "server/discover"];

/// How long a client may take to say which roots it has.
const ROOTS: Duration = Duration::from_secs(2);

/// Serves one connection, or one door of HTTP.
#[derive(Clone)]
pub(crate) struct Handler {
    host: Arc<dyn Host>,
    caller: Caller,
    asks_roots: Arc<AtomicBool>,
    /// Whether the client has said which roots it has: before that no call of its may run.
    roots_known: Arc<watch::Sender<bool>>,
}

/// Whose requests they are.
#[derive(Clone)]
pub(crate) enum Caller {
    /// The session of the connection.
    Session(SessionId),
    /// The session of the token that the request came with.
    Token(Arc<Doors>),
}

impl Handler {
    pub(crate) fn new(host: Arc<dyn Host>, caller: Caller) -> Handler {
        Handler {
            host,
            caller,
            asks_roots: Arc::new(AtomicBool::new(false)),
            roots_known: Arc::new(watch::Sender::new(false)),
        }
    }

    fn session(&self, context: &RequestContext<RoleServer>) -> Result<SessionId, ErrorData> {
        match &self.caller {
            Caller::Session(session) => Ok(*session),
            Caller::Token(doors) => doors.session(context),
        }
    }

    fn config(&self, session: SessionId) -> Result<ServerConfig, ErrorData> {
        let instructions = guarded(|| self.host.instructions(session))?;
        Ok(self.get_info().with_instructions(instructions))
    }

    /// A call over a stream has its place since it was read. One over HTTP takes it here: requests that each come
    /// by themselves have no other order.
    async fn turn(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Turn, ErrorData> {
        let doors = match &self.caller {
            Caller::Token(doors) => doors,
            Caller::Session(_) => {
                let turn = context.extensions.get::<Turn>().cloned();
                return turn.ok_or_else(|| ErrorData::internal_error("the call has no place", None));
            }
        };
        let session = doors.session(context)?;
        let slot = doors.slot().await;
        let meta = context.meta.0.0.clone();
        let args = request.arguments.unwrap_or_default();
        Ok(Turn::arrive(&self.host, session, request.name.to_string(), args, meta, slot))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("cotenant", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let session = self.session(&context)?;
        let version = self.negotiate_initialize(&request)?.protocol_version;
        let mut client = request;
        client.protocol_version = version.clone();
        context.peer.set_peer_info(client);
        Ok(self.config(session)?.with_protocol_version(version))
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let session = self.session(&context)?;
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.config(session)?))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let session = self.session(&context)?;
        let tools = guarded(|| self.host.tools(session))?;
        let tools = tools.iter().map(|tool| serde_json::from_value::<Tool>(tool.clone()));
        let tools = tools.collect::<Result<_, _>>();
        tools.map(ListToolsResult::with_all_items).map_err(|error| {
            ErrorData::internal_error(format!("a tool's description has no valid form: {error}"), None)
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let turn = self.turn(request, &context).await?;
        self.wait_for_roots(&context.peer).await;
        match turn.answer(context.ct.cancelled()).await {
            Some(answer) => Ok(result(answer).into()),
            // Nobody waits for this answer; rmcp drops it.
            None => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // Where there is no handshake, `initialize` is a method like any other that does not exist.
        let stateless = context.meta.protocol_version() >= Some(ProtocolVersion::V_2026_07_28);
        let known = WITH_PARAMS.contains(&request.method.as_str());
        Err(if known && !(stateless && request.method == "initialize") {
            ErrorData::invalid_params(format!("the params of {} have a wrong form", request.method), None)
        } else {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("no method {}", request.method), None)
        })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.ask_roots(&context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.ask_roots(&context).await;
    }
}

impl Handler {
    /// Asks a client of the older revisions for its roots, and passes them on; one question at a time.
    async fn ask_roots(&self, context: &NotificationContext<RoleServer>) {
        let Caller::Session(session) = self.caller else { return };
        let Some(client) = context.peer.peer_info() else { return };
        if client.capabilities.roots.is_none() || self.asks_roots.swap(true, Ordering::AcqRel) {
            return;
        }
        let roots = roots(&context.peer).await;
        self.asks_roots.store(false, Ordering::Release);
        if let Some(roots) = roots {
            self.host.introduce(session, &client.client_info.name, Some(&roots));
        }
        self.roots_known.send_replace(true);
    }

    /// Holds a call until the client has said which roots it has, so that none runs outside of them. A client that
    /// does not say is served all the same, after a while: its roots only narrow what the settings allow.
    async fn wait_for_roots(&self, client: &Peer<RoleServer>) {
        let has_roots = || client.peer_info().is_some_and(|info| info.capabilities.roots.is_some());
        if *self.roots_known.borrow() || !matches!(self.caller, Caller::Session(_)) || !has_roots() {
            return;
        }
        let mut known = self.roots_known.subscribe();
        if tokio::time::timeout(ROOTS, known.wait_for(|known| *known)).await.is_err() {
            self.roots_known.send_replace(true);
        }
    }
}

/// What the host says, or the error that answers its fault: a handler that panics would never answer.
fn guarded<T>(ask: impl FnOnce() -> T) -> Result<T, ErrorData> {
    let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask));
    asked.map_err(|_| ErrorData::internal_error("a fault of cotenant itself; its log has more", None))
}

/// The client's roots; `None` where it does not say.
#[expect(deprecated, reason = "the revisions that have roots are served, too")]
async fn roots(client: &Peer<RoleServer>) -> Option<Vec<String>> {
    let list = client.list_roots().await.ok()?;
    Some(list.roots.into_iter().map(|root| root.uri).collect())
}

/// An answer in the protocol's form: one text block.
fn result(answer: Answer) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
    result.is_error = Some(answer.is_error);
    result.structured_content = answer.structured;
    result.meta = (!answer.meta.is_empty()).then_some(MetaObject(answer.meta));
    result
}
