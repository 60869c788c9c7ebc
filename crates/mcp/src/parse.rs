//! From a line to a message of the protocol, or to the error that answers it.

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ErrorData, NumberOrString,
    RequestId,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

use crate::scan::Scan;

/// What a line is.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// A message to act on.
    Message(Box<ClientJsonRpcMessage>),
    /// A request, or something like one, that is answered with an error.
    Wrong(Option<RequestId>, ErrorData),
    /// Nothing that anyone waits for: an empty line, a notification or an answer of no known form.
    Nothing,
}

/// The frame around every message.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Reads one line.
pub(crate) fn parse(line: &[u8]) -> Parsed {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Parsed::Nothing;
    }
    let frame: Frame<'_> = match serde_json::from_slice(line) {
        Ok(frame) => frame,
        Err(_) => return no_frame(line),
    };
    let id = match frame.id.map(request_id) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => return wrong(None, "id must be a string or a whole number"),
    };
    if frame.jsonrpc.as_deref() != Some("2.0") {
        return wrong(id, "jsonrpc must be \"2.0\"");
    }
    match (frame.method.as_deref(), id) {
        (Some("tools/call"), Some(id)) => tool_call(&frame, id),
        (Some(_), Some(id)) => match serde_json::from_slice(line) {
            Ok(message) => Parsed::Message(Box::new(message)),
            Err(_) => wrong(Some(id), "params must be an object"),
        },
        (Some(_), None) | (None, Some(_)) if frame.method.is_some() || Scan::of(line).answers() => {
            serde_json::from_slice(line).map_or(Parsed::Nothing, |message| Parsed::Message(Box::new(message)))
        }
        (_, id) => wrong(id, "a request has a method"),
    }
}

/// The line that answers a request which exceeded the bound; `None` where nothing waits for an answer.
pub fn too_long_answer(scan: &Scan) -> Option<Vec<u8>> {
    match too_long(scan) {
        Parsed::Wrong(id, error) => Some(error_line(id.as_ref(), &error)),
        _ => None,
    }
}

/// The line that answers with an error. Where the id is not known it is null, as JSON-RPC has it.
pub(crate) fn error_line(id: Option<&RequestId>, error: &ErrorData) -> Vec<u8> {
    let mut line = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The error that answers a line which exceeded the bound.
pub(crate) fn too_long(scan: &Scan) -> Parsed {
    if scan.answers() && scan.method().is_none() {
        return Parsed::Nothing;
    }
    let id = scan.id().and_then(|raw| serde_json::from_slice(raw).ok()).and_then(request_id);
    wrong(id, "the message exceeds 16 MiB; send the content in parts")
}

/// The error that answers what is no JSON.
pub(crate) fn not_json(bytes: &[u8]) -> Option<ErrorData> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string());
    let read =
        text.and_then(|text| serde_json::from_str::<IgnoredAny>(text).map_err(|error| error.to_string()));
    read.err().map(|error| ErrorData::parse_error(format!("the message is not JSON: {error}"), None))
}

fn no_frame(line: &[u8]) -> Parsed {
    if let Some(error) = not_json(line) {
        return Parsed::Wrong(None, error);
    }
    let id = Scan::of(line).id().and_then(|raw| serde_json::from_slice(raw).ok()).and_then(request_id);
    wrong(id, "the message must be one JSON-RPC object")
}

/// `tools/call`, the one request whose params can be large, is read without the detour over every other form.
fn tool_call(frame: &Frame<'_>, id: RequestId) -> Parsed {
    let params = frame.params.map_or("{}", RawValue::get);
    match serde_json::from_str::<CallToolRequestParams>(params) {
        Ok(mut params) => {
            let meta = params.meta.take().unwrap_or_default();
            let mut request = CallToolRequest::new(params);
            request.extensions.insert(meta);
            Parsed::Message(Box::new(ClientJsonRpcMessage::request(
                ClientRequest::CallToolRequest(request),
                id,
            )))
        }
        Err(error) => {
            Parsed::Wrong(Some(id), ErrorData::invalid_params(format!("tools/call: {error}"), None))
        }
    }
}

fn wrong(id: Option<RequestId>, message: &'static str) -> Parsed {
    Parsed::Wrong(id, ErrorData::invalid_request(message, None))
}

fn request_id(raw: &RawValue) -> Option<RequestId> {
    serde_json::from_str::<NumberOrString>(raw.get()).ok()
}
