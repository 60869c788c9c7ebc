//! A small HTTP/1.1 client over loopback: one connection per request, headers exactly as given.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::process::PATIENCE;

/// An address to send requests to.
#[derive(Clone, Debug)]
pub struct Http {
    address: SocketAddr,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer coding.
    pub body: Vec<u8>,
}

impl Http {
    /// To that address.
    pub fn new(address: SocketAddr) -> Http {
        Http { address }
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request with exactly these headers (and `Host`, `Content-Length`, `Connection` where they are missing).
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpReply {
        let length = body.len().to_string();
        let mut head = self.head(method, path, headers);
        head += &format!("Content-Length: {length}\r\n\r\n");
        self.exchange(&[head.as_bytes(), body].concat())
    }

    /// Sends a request with a body in chunks of `size` bytes.
    pub fn send_chunked(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        size: usize,
    ) -> HttpReply {
        let mut bytes = self.head(method, path, headers).into_bytes();
        bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
        for chunk in body.chunks(size) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        self.exchange(&bytes)
    }

    /// A JSON-RPC message to `/mcp`, with a bearer token if there is one.
    pub fn rpc(&self, token: Option<&str>, headers: &[(&str, &str)], message: &Value) -> HttpReply {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut all =
            vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        all.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        all.extend(headers);
        self.send("POST", "/mcp", &all, message.to_string().as_bytes())
    }

    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head + "Connection: close\r\n"
    }

    fn exchange(&self, request: &[u8]) -> HttpReply {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A server that answers before it has read everything may close under us; its answer is what counts.
        let _ = stream.write_all(request);
        let mut bytes = Vec::new();
        if let Err(error) = stream.read_to_end(&mut bytes)
            && bytes.is_empty()
        {
            panic!("no answer from {}: {error}", self.address);
        }
        parse(&bytes)
    }
}

impl HttpReply {
    /// A header's value; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON: itself, or the last event of a stream.
    #[track_caller]
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        let event = text
            .lines()
            .rev()
            .filter_map(|line| line.strip_prefix("data:"))
            .find(|data| !data.trim().is_empty());
        serde_json::from_str(event.unwrap_or(&text))
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }
}

fn parse(bytes: &[u8]) -> HttpReply {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no head: {}", String::from_utf8_lossy(bytes)));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status line");
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = &bytes[end + 4..];
    HttpReply { status, headers, body: if chunked { unchunk(body) } else { body.to_vec() } }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]);
        let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap();
        let from = end + 2;
        let to = (from + size).min(rest.len());
        body.extend(&rest[from..to]);
        if size == 0 {
            break;
        }
        rest = rest.get(to + 2..).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_and_without_chunks() {
        let plain = parse(b"HTTP/1.1 403 Forbidden\r\nX-A: b\r\n\r\n{\"a\":1}");
        assert_eq!((plain.status, plain.header("x-a")), (403, Some("b")));
        assert_eq!(plain.json()["a"], 1);
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let events = b"7\r\ndata: {\r\nA\r\n\"a\":[2]}\n\n\r\n0\r\n\r\n";
        assert_eq!(parse(&[&head[..], events].concat()).json()["a"][0], 2);
    }
}
