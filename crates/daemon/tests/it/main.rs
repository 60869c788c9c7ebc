//! The daemon as a process, its clients and its bridge; the workspace behind it is a fake one, but for hooks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers, too")]

mod acting;
mod admin;
mod bridge;
mod config;
#[allow(dead_code, reason = "the tests of mcp use all of it")]
#[path = "../../../mcp/tests/it/fake.rs"]
mod fake;
mod hooks;
mod life;
mod moved;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use cotenant_daemon::bridge::End;
use cotenant_daemon::{Asking, Client, Homes, Kind, Place, Starter, connect, connect_or_start};
use cotenant_model::Refusal;
use cotenant_tools::host::Hello;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Map, Value, json};

/// A root with homes of its own, whose daemon is ended with it.
pub(crate) struct Ground {
    pub(crate) folder: PathBuf,
    pub(crate) homes: Homes,
    pub(crate) place: Place,
    pub(crate) starter: Starter,
}

impl Ground {
    pub(crate) fn new() -> Ground {
        let folder = cotenant_testkit::fresh_directory(&std::env::temp_dir(), "daemon");
        let root = folder.join("root");
        fs::create_dir_all(&root).unwrap();
        let homes = Homes { state: folder.join("state"), runtime: folder.join("run") };
        let place = Place::of(&root, &homes).unwrap();
        let starter = acting::starter(&folder, Duration::from_secs(600));
        Ground { folder, homes, place, starter }
    }

    pub(crate) fn configured(toml: &str) -> Ground {
        let ground = Ground::new();
        fs::write(ground.place.root.join("cotenant.toml"), toml).unwrap();
        ground
    }

    /// With the workspace of the product behind its daemon.
    pub(crate) fn real(toml: &str) -> Ground {
        let mut ground = Ground::configured(toml);
        ground.starter.env.push((acting::REAL.to_owned(), "1".to_owned()));
        ground
    }

    pub(crate) fn admin(&self) -> Client {
        connect_or_start(&self.place, &self.starter, &asking(Kind::Admin)).unwrap()
    }

    /// The daemon's process, where one runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        connect(&self.place, &Asking { any_build: true, ..asking(Kind::Admin) })
            .unwrap()
            .map(|client| client.pid)
    }

    pub(crate) fn bridge(&self) -> Piped {
        self.bridge_as(Hello::default())
    }

    pub(crate) fn bridge_as(&self, hello: Hello) -> Piped {
        let (input, to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let (from, output) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let (place, starter) = (self.place.clone(), self.starter.clone());
        let ended =
            std::thread::spawn(move || cotenant_daemon::bridge::run(&place, &starter, &hello, input, output));
        Piped { to: Some(File::from(to)), from: BufReader::new(File::from(from)), ended }
    }

    /// Calls of `once` and `pause` connect there, and go on when the connection is closed.
    pub(crate) fn pauses(&self) -> UnixListener {
        UnixListener::bind(self.place.root.join("pause")).unwrap()
    }

    pub(crate) fn no_more_pauses(&self) {
        fs::remove_file(self.place.root.join("pause")).unwrap();
    }

    /// What calls of `once` did, one line each.
    pub(crate) fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.place.root.join("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let asking = Asking { any_build: true, ..asking(Kind::Admin) };
        if let Ok(Some(mut daemon)) = connect(&self.place, &asking)
            && daemon.ask("stop", Map::new()).is_ok()
        {
            daemon.wait_end();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn asking(kind: Kind) -> Asking {
    Asking { kind, hello: Hello::default(), any_build: false }
}

/// A client of the bridge, at the other ends of its pipes.
pub(crate) struct Piped {
    pub(crate) to: Option<File>,
    pub(crate) from: BufReader<File>,
    pub(crate) ended: JoinHandle<End>,
}

impl Piped {
    pub(crate) fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.to.as_mut().unwrap().write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn send(&mut self, message: Value) {
        self.raw(format!("{message}\n"));
    }

    pub(crate) fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    pub(crate) fn ask(&mut self, message: Value) -> Value {
        self.send(message);
        self.answer()
    }

    pub(crate) fn call(&mut self, id: u64, tool: &str) -> String {
        text(&self.ask(call(id, tool, json!({ "text": tool })))).to_owned()
    }

    pub(crate) fn initialize(&mut self) {
        let answer = self.ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "probe", "version": "1" } } }));
        assert_eq!(answer["result"]["serverInfo"]["name"], "cotenant");
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// Closes the bridge's input; what it still said, and how it ended.
    pub(crate) fn finish(mut self) -> (String, End) {
        self.to = None;
        let end = self.ended.join().unwrap();
        // The bridge is a thread here, so its end of the pipe may be held by another one a little longer.
        let mut rest = Vec::new();
        rest.extend_from_slice(self.from.buffer());
        rustix::io::ioctl_fionbio(self.from.get_ref(), true).unwrap();
        let _ = self.from.get_mut().read_to_end(&mut rest);
        (String::from_utf8(rest).unwrap(), end)
    }
}

pub(crate) fn call(id: u64, tool: &str, args: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": args } })
}

pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"))
}

/// Takes a call that pauses: the daemon's process, and the connection that holds the call.
pub(crate) fn paused(pauses: &UnixListener) -> (u32, UnixStream) {
    let (stream, _) = pauses.accept().unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    (line.trim().parse().unwrap(), stream)
}

pub(crate) fn process(pid: u32) -> OwnedFd {
    pidfd_open(Pid::from_raw(pid.try_into().unwrap()).unwrap(), PidfdFlags::empty()).unwrap()
}

/// Waits for the end of a process.
pub(crate) fn ended(process: &OwnedFd) {
    let limit = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1, "the process did not end");
}

pub(crate) fn kill(pid: u32) {
    let process = process(pid);
    pidfd_send_signal(&process, Signal::KILL).unwrap();
    ended(&process);
}

pub(crate) fn refused<T>(result: Result<T, Refusal>) -> Refusal {
    match result {
        Ok(_) => panic!("not refused"),
        Err(refusal) => refusal,
    }
}
