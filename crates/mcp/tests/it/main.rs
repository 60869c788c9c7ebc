//! The wire against a fake host: over a stream and over HTTP, with clients of every kind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers, too")]

mod fake;
mod http;
mod revisions;
mod stream;
mod wrong;

use std::sync::Arc;
use std::time::Duration;

use cotenant_model::SessionId;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use fake::Fake;

/// One client at the end of a stream whose other end is served.
pub(crate) struct Client {
    pub(crate) output: WriteHalf<DuplexStream>,
    pub(crate) input: BufReader<ReadHalf<DuplexStream>>,
    pub(crate) served: JoinHandle<()>,
    pub(crate) stop: watch::Sender<bool>,
}

/// Runs a test on a runtime as the daemon has it.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_stack_size(1024 * 1024).enable_all().build().unwrap();
    let out = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await.unwrap() });
    runtime.shutdown_timeout(Duration::from_secs(5));
    out
}

impl Client {
    pub(crate) fn new(host: &Arc<Fake>) -> Client {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(theirs);
        let stop = watch::Sender::new(false);
        let served = tokio::spawn(cotenant_mcp::serve(
            host.clone(),
            SessionId(9),
            Box::new(input),
            Box::new(output),
            stop.subscribe(),
        ));
        let (input, output) = tokio::io::split(ours);
        Client { output, input: BufReader::new(input), served, stop }
    }

    pub(crate) async fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.output.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.raw(format!("{message}\n")).await;
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        line
    }

    pub(crate) async fn answer(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.send(message).await;
        self.answer().await
    }

    pub(crate) async fn initialize(&mut self, version: &str) -> Value {
        let answer = self
            .ask(json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {
                "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "probe", "version": "1" } } }))
            .await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    /// Closes the client's end and reads what is still said.
    pub(crate) async fn finish(mut self) -> String {
        self.output.shutdown().await.unwrap();
        let mut rest = String::new();
        self.input.read_to_string(&mut rest).await.unwrap();
        self.served.await.unwrap();
        rest
    }
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, args: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call",
            "params": { "name": tool, "arguments": args } })
}

pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"))
}
