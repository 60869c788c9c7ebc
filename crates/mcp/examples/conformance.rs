//! A server for the protocol's conformance suite: the suite's own tools behind cotenant's HTTP stack.
//!
//! For tests only. It has tools of every kind of content, with progress and with questions to the client, because those
//! travel in ways that cotenant's own answers (one text block) do not. It has no prompts, resources or logging: cotenant
//! offers none. Prints its address, and ends with its standard input.

#![allow(clippy::print_stdout, reason = "the address is what this program prints")]

use std::collections::BTreeMap;
use std::time::Duration;

use cotenant_mcp::http::{Access, serve_handler};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientResult, ErrorData,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
    ServerRequest, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, from_value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

type Failure = Box<dyn std::error::Error>;

/// Between two notifications of one call; the suite wants to see that each comes by itself.
const PAUSE: Duration = Duration::from_millis(50);

/// A picture of one red point.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// Tools that are given arguments: the name and the schema of its properties.
fn with_arguments() -> Vec<(&'static str, Value)> {
    vec![
        ("test_sampling", json!({ "prompt": { "type": "string" } })),
        ("test_elicitation", json!({ "message": { "type": "string" } })),
        ("test_custom_header", json!({ "region": { "type": "string", "x-mcp-header": "Region" } })),
    ]
}

/// Tools without arguments that do more than return what they always return.
const ACTING: &[&str] = &[
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
];

/// What a tool returns always; none for those that do something.
fn constant(tool: &str) -> Option<Value> {
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let resource = |uri: &str, mime: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime, "text": text } });
    let content = match tool {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => {
            let said = "This is an embedded resource content.";
            json!([resource("test://embedded-resource", "text/plain", said)])
        }
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]),
        "test_error_handling" => {
            let said = "This tool intentionally returns an error for testing";
            return Some(json!({ "resultType": "complete", "content": [text(said)], "isError": true }));
        }
        // Two that the suite calls to see what does not come beside the answer: a question, a message of the log.
        "test_streaming_elicitation" | "test_logging_tool" => json!([text("Nothing else is said.")]),
        "test_custom_header" => json!([text("The header agrees with the argument.")]),
        _ => return None,
    };
    Some(complete(content))
}

const CONSTANT: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_streaming_elicitation",
    "test_logging_tool",
];

fn complete(content: Value) -> Value {
    json!({ "resultType": "complete", "content": content })
}

fn text(said: &str) -> Value {
    json!({ "type": "text", "text": said })
}

fn tool(name: &str, properties: &Value) -> Result<Tool, ErrorData> {
    let schema = json!({ "type": "object", "properties": properties });
    json_into(json!({ "name": name, "description": "For the conformance suite.", "inputSchema": schema }))
}

/// A value of the protocol from its JSON.
fn json_into<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    from_value(value).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// The form whose every field has a default.
fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

/// The form with every kind of choice.
fn choices() -> Value {
    let titled = |word: &str| {
        json!([
            { "const": "value1", "title": format!("First {word}") },
            { "const": "value2", "title": format!("Second {word}") },
            { "const": "value3", "title": format!("Third {word}") },
        ])
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}

/// One call: what it was given and who asks.
struct Call<'a> {
    request: &'a CallToolRequestParams,
    context: &'a RequestContext<RoleServer>,
}

impl Call<'_> {
    fn argument(&self, name: &str) -> &str {
        let given = self.request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        given.and_then(Value::as_str).unwrap_or_default()
    }

    /// Asks the client, and returns its answer as JSON.
    async fn ask(&self, method: &str, params: Value) -> Result<Value, ErrorData> {
        let request: ServerRequest = json_into(json!({ "method": method, "params": params }))?;
        let answer: ClientResult = self.context.peer.send_request(request).await.map_err(internal)?;
        serde_json::to_value(answer).map_err(internal)
    }

    async fn elicit(&self, message: &str, properties: Value, required: Value) -> Result<String, ErrorData> {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        let params = json!({ "message": message, "requestedSchema": schema });
        let answer = self.ask("elicitation/create", params).await?;
        Ok(format!("action={}, content={}", answer["action"].as_str().unwrap_or_default(), answer["content"]))
    }

    async fn sample(&self) -> Result<String, ErrorData> {
        let message = json!({ "role": "user", "content": text(self.argument("prompt")) });
        let answer =
            self.ask("sampling/createMessage", json!({ "messages": [message], "maxTokens": 100 })).await?;
        Ok(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))
    }

    async fn progress(&self) -> Result<String, ErrorData> {
        let token = self.context.meta.get_progress_token();
        for done in [0, 50, 100] {
            if let Some(token) = token.clone() {
                let progress = ProgressNotificationParam::new(token, f64::from(done)).with_total(100.0);
                self.context.peer.notify_progress(progress).await.map_err(internal)?;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok("Done, with progress.".to_owned())
    }

    async fn run(&self) -> Result<CallToolResult, ErrorData> {
        let said = match self.request.name.as_ref() {
            "test_tool_with_progress" => self.progress().await?,
            "test_sampling" => self.sample().await?,
            "test_elicitation" => {
                let form = json!({ "username": { "type": "string", "description": "User's response" },
                                   "email": { "type": "string", "description": "User's email address" } });
                let answer =
                    self.elicit(self.argument("message"), form, json!(["username", "email"])).await?;
                format!("User response: {answer}")
            }
            "test_elicitation_sep1034_defaults" => {
                let answer = self.elicit("Please check the defaults.", defaults(), json!([])).await?;
                format!("Elicitation completed: {answer}")
            }
            "test_elicitation_sep1330_enums" => {
                let answer = self.elicit("Please choose.", choices(), json!([])).await?;
                format!("Elicitation completed: {answer}")
            }
            "test_missing_capability" => {
                let needed: ClientCapabilities = json_into(json!({ "sampling": {} }))?;
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            other => {
                let constant = constant(other);
                let unknown = || ErrorData::invalid_params(format!("no tool {other}"), None);
                return json_into(constant.ok_or_else(unknown)?);
            }
        };
        json_into(complete(json!([text(&said)])))
    }
}

#[derive(Clone)]
struct Fixture {
    tools: Vec<Tool>,
}

impl Fixture {
    fn new() -> Result<Fixture, ErrorData> {
        let plain = CONSTANT.iter().chain(ACTING).map(|name| tool(name, &json!({})));
        let given = with_arguments().into_iter().map(|(name, properties)| tool(name, &properties));
        Ok(Fixture { tools: plain.chain(given).collect::<Result<_, _>>()? })
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(Call { request: &request, context: &context }.run().await?.into())
    }
}

async fn run(token: String) -> Result<(), Failure> {
    let fixture = Fixture::new()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let access = Access { tokens: BTreeMap::from([(token, "suite".to_owned())]), origins: vec![] };
    let (stop, stopped) = watch::channel(false);
    let served = tokio::spawn(serve_handler(listener, access, move || fixture.clone(), stopped));
    // Its end is the sign, whatever was said before.
    let input = || std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    tokio::task::spawn_blocking(input).await??;
    stop.send_replace(true);
    Ok(served.await?)
}

fn main() -> Result<(), Failure> {
    let token = std::env::var("BEARER")?;
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(run(token))
}
