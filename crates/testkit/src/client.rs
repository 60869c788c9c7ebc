//! A raw MCP client over stdio: it sends bytes, sees bytes, and checks that nothing but JSON-RPC comes back.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{PATIENCE, wait_exit};
use crate::reply::Reply;
use crate::scratch::Scratch;

/// The newest revision that has a handshake.
const HANDSHAKE: &str = "2025-11-25";
/// From this revision on each request says for itself which revision it speaks.
const STATELESS: &str = "2026-07-28";

/// How `cotenant mcp` is to be started.
#[derive(Debug)]
pub struct Launch<'a> {
    scratch: &'a Scratch,
    root: PathBuf,
    profile: &'static str,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    wrapper: Option<String>,
    revision: &'static str,
    name: String,
    roots: Option<Vec<String>>,
}

impl<'a> Launch<'a> {
    pub(crate) fn new(scratch: &'a Scratch) -> Launch<'a> {
        Launch {
            scratch,
            root: scratch.root(),
            profile: "trusting",
            flags: Vec::new(),
            environment: Vec::new(),
            wrapper: None,
            revision: HANDSHAKE,
            name: "testkit".to_owned(),
            roots: None,
        }
    }

    /// Serves another directory.
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = root.into();
        self
    }

    /// Another profile than `trusting`.
    pub fn profile(mut self, profile: &'static str) -> Self {
        self.profile = profile;
        self
    }

    /// Further flags.
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        self
    }

    /// A variable of the environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The revision to speak; 2026-07-28 has no handshake.
    pub fn revision(mut self, revision: &'static str) -> Self {
        self.revision = revision;
        self
    }

    /// The client's name in its introduction.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Announces roots, and answers the server's question for them.
    pub fn announcing(mut self, roots: &[&str]) -> Self {
        self.roots = Some(roots.iter().map(|&root| root.to_owned()).collect());
        self
    }

    /// Runs the server from a bash script, in which `"$@"` is the command: to mount or to limit something first.
    pub fn wrapped(mut self, script: &str) -> Self {
        self.wrapper = Some(script.to_owned());
        self
    }

    /// The command as it would be started.
    pub fn command(&self) -> Command {
        let mut arguments = vec!["mcp".into(), "--root".into(), self.root.clone().into_os_string()];
        arguments.extend(["--profile", self.profile].map(Into::into));
        arguments.extend(self.flags.iter().map(Into::into));
        let mut command = match &self.wrapper {
            None => self.scratch.within(self.scratch.program()),
            Some(script) => {
                let mut bash = self.scratch.within("unshare");
                let user = if rustix::process::geteuid().is_root() { "-m" } else { "-rm" };
                bash.args([user, "bash", "-c", script, "bash"]).arg(self.scratch.program());
                bash
            }
        };
        command.args(arguments).current_dir(self.scratch.root());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the server without a word to it.
    pub fn start_silent(self) -> Client {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let errors = self.scratch.base().join(format!("mcp-{number}.err"));
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(std::fs::File::create(&errors).unwrap());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || read_lines(stdout, &sender));
        Client {
            stdin: child.stdin.take(),
            child,
            lines,
            answers: HashMap::new(),
            notifications: Vec::new(),
            welcome: Value::Null,
            next_id: 0,
            revision: self.revision,
            name: self.name,
            roots: self.roots,
            errors,
            structured: self.flags.iter().any(|flag| flag == "--structured"),
        }
    }

    /// Starts the server and opens a session.
    pub fn start(self) -> Client {
        let mut client = self.start_silent();
        if client.revision == STATELESS {
            client.welcome = client.request("server/discover", json!({}));
            return client;
        }
        let capabilities = client.roots.as_ref().map_or(json!({}), |_| json!({"roots": {}}));
        let params = json!({
            "protocolVersion": client.revision,
            "capabilities": capabilities,
            "clientInfo": {"name": client.name, "version": "1"},
        });
        client.welcome = client.request("initialize", params);
        client.notify("notifications/initialized", json!({}));
        client
    }
}

/// One connection to the server.
#[derive(Debug)]
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    answers: HashMap<u64, Value>,
    /// What the server said unasked.
    pub notifications: Vec<Value>,
    /// The result of `initialize` or `server/discover`.
    pub welcome: Value,
    next_id: u64,
    revision: &'static str,
    name: String,
    roots: Option<Vec<String>>,
    errors: PathBuf,
    structured: bool,
}

impl Client {
    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap_or_else(|error| {
            panic!(
                "the server takes no input ({error}): {}",
                std::fs::read_to_string(&self.errors).unwrap_or_default()
            )
        });
    }

    /// The bytes of a request, with its line end, and its id.
    pub fn encode(&mut self, method: &str, mut params: Value) -> (u64, Vec<u8>) {
        self.next_id += 1;
        if self.revision == STATELESS {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(STATELESS);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] =
                json!({"name": self.name, "version": "1"});
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let request = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        (self.next_id, format!("{request}\n").into_bytes())
    }

    /// Sends a request without waiting for its answer.
    pub fn post(&mut self, method: &str, params: Value) -> u64 {
        let (id, bytes) = self.encode(method, params);
        self.send_raw(&bytes);
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// The whole answer to a request: `result` or `error`.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        match self.answer_within(id, PATIENCE) {
            Some(answer) => answer,
            None => panic!("no answer to request {id}: {}", self.said()),
        }
    }

    /// The whole answer to a request, if it comes within `limit`; `None` also where the server ends first.
    pub fn answer_within(&mut self, id: u64, limit: Duration) -> Option<Value> {
        let until = Instant::now() + limit;
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Some(answer);
            }
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.take(&line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// The next answer without an id: to a message whose id could not be read.
    #[track_caller]
    pub fn answer_to_nobody(&mut self) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let at = self.notifications.iter().position(|note| note.get("error").is_some());
            if let Some(at) = at {
                return self.notifications.remove(at);
            }
            let line = self.lines.recv_timeout(until.saturating_duration_since(Instant::now()));
            let line = line.unwrap_or_else(|_| panic!("no answer without an id: {}", self.said()));
            self.take(&line);
        }
    }

    fn take(&mut self, line: &[u8]) {
        let message: Value = serde_json::from_slice(line).unwrap_or_else(|error| {
            panic!("stdout has what is not JSON ({error}): {}", String::from_utf8_lossy(line))
        });
        assert_eq!(message["jsonrpc"], "2.0", "stdout has what is not JSON-RPC: {message}");
        match (message["id"].as_u64(), message["method"].as_str()) {
            (Some(id), None) => {
                assert!(self.answers.insert(id, message).is_none(), "two answers to request {id}");
            }
            (_, Some("roots/list")) => {
                let roots = self.roots.iter().flatten().map(|uri| json!({"uri": uri})).collect::<Vec<_>>();
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}});
                self.send_raw(format!("{answer}\n").as_bytes());
            }
            _ => self.notifications.push(message),
        }
    }

    /// Sends a request and returns its result; fails on an error.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.post(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a tool call without waiting for its answer.
    pub fn post_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.post("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The answer to a tool call that was posted.
    #[track_caller]
    pub fn reply(&mut self, id: u64) -> Reply {
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "not a result: {answer}");
        assert!(
            self.structured || answer["result"].get("structuredContent").is_none(),
            "structured content that nobody asked for: {answer}"
        );
        Reply::read(&answer["result"])
    }

    /// Calls a tool.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        let id = self.post_call(tool, arguments);
        self.reply(id)
    }

    /// Makes the call that an answer's `next:` spells out.
    #[track_caller]
    pub fn follow(&mut self, reply: &Reply) -> Reply {
        let (tool, arguments) =
            reply.next_call().unwrap_or_else(|| panic!("no call in next:\n{}", reply.text));
        self.call(&tool, arguments)
    }

    /// `read_file`, which must succeed.
    #[track_caller]
    pub fn read(&mut self, path: &str) -> Reply {
        let reply = self.call("read_file", json!({"path": path}));
        reply.ok();
        reply
    }

    /// `edit_file` of one text.
    #[track_caller]
    pub fn edit(&mut self, path: &str, old: &str, new: &str) -> Reply {
        self.call("edit_file", json!({"path": path, "old_text": old, "new_text": new}))
    }

    /// `edit_file` of several texts: pairs of old and new.
    #[track_caller]
    pub fn edits(&mut self, path: &str, edits: &[(&str, &str)]) -> Reply {
        let edits: Vec<Value> =
            edits.iter().map(|(old, new)| json!({"old_text": old, "new_text": new})).collect();
        self.call("edit_file", json!({"path": path, "edits": edits}))
    }

    /// `write_file` of a new file.
    #[track_caller]
    pub fn write(&mut self, path: &str, content: &str) -> Reply {
        self.call("write_file", json!({"path": path, "content": content}))
    }

    /// `write_file` over an existing file.
    #[track_caller]
    pub fn overwrite(&mut self, path: &str, content: &str) -> Reply {
        self.call("write_file", json!({"path": path, "content": content, "overwrite": true}))
    }

    /// `search_files` in contents.
    #[track_caller]
    pub fn grep(&mut self, pattern: &str, path: &str) -> Reply {
        self.call("search_files", json!({"pattern": pattern, "content_search": true, "path": path}))
    }

    /// `search_files` in names.
    #[track_caller]
    pub fn glob(&mut self, pattern: &str) -> Reply {
        self.call("search_files", json!({"pattern": pattern, "content_search": false}))
    }

    /// `retry` of a token with changed arguments.
    #[track_caller]
    pub fn retry(&mut self, token: &str, set: Value) -> Reply {
        self.call("retry", json!({"token": token, "set": set}))
    }

    /// The tools of `tools/list`.
    pub fn tools(&mut self) -> Vec<Value> {
        let listed = self.request("tools/list", json!({}));
        assert!(listed.get("nextCursor").is_none(), "the list comes in one piece");
        listed["tools"].as_array().unwrap().clone()
    }

    /// Ends the input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The bridge's process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Waits for the bridge's end; `None` if it still runs after `limit`.
    pub fn wait_exit(&mut self, limit: Duration) -> Option<ExitStatus> {
        wait_exit(&mut self.child, limit)
    }

    /// `kill -9` of the bridge.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Reads what is left on stdout after the input's end; every line must be JSON-RPC.
    pub fn drain(&mut self) {
        self.close_stdin();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.take(&line);
        }
    }

    /// What the bridge said on standard error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close_stdin();
        if std::thread::panicking() {
            eprintln!("standard error of cotenant mcp: {}", self.said());
        }
        if self.wait_exit(Duration::from_secs(5)).is_none() {
            self.kill();
        }
    }
}

fn read_lines(stdout: ChildStdout, sender: &Sender<Vec<u8>>) {
    let mut stdout = BufReader::with_capacity(1 << 16, stdout);
    loop {
        let mut line = Vec::new();
        match stdout.read_until(b'\n', &mut line) {
            Ok(read) if read > 0 => {
                if sender.send(line).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}
