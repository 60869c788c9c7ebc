//! Commands as a client meets them: over stdio, over HTTP, from a terminal; ended, killed, asked about, taken back.

mod asked;
mod dying;
mod hostile;
mod jobs;
mod running;
mod sandbox;
mod terminal;
mod together;

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use cotenant_testkit::{Client, PATIENCE, Reply, Scratch, Serve, gone};
use serde_json::{Value, json};

use crate::support::{TOKEN, open_session, scratch, session_headers, tool_call};

/// An agent, however it is connected.
pub(crate) enum Agent {
    Stdio(Box<Client>),
    Web(Box<Web>),
}

/// One that is connected over HTTP, with the server that it talks to.
pub(crate) struct Web {
    served: Serve,
    session: String,
    calls: u64,
}

impl Agent {
    /// Calls a tool.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        match self {
            Agent::Stdio(client) => client.call(tool, arguments),
            Agent::Web(web) => {
                web.calls += 1;
                let call = tool_call(web.calls + 1, tool, &arguments);
                let answer = web.served.http.rpc(Some(TOKEN), &session_headers(&web.session), &call);
                assert_eq!(answer.status, 200, "{answer:?}");
                Reply::read(&answer.json()["result"])
            }
        }
    }

    /// `run_command`.
    #[track_caller]
    pub(crate) fn run(&mut self, command: &str) -> Reply {
        self.call("run_command", json!({"command": command}))
    }

    /// The same with further arguments.
    #[track_caller]
    pub(crate) fn run_with(&mut self, command: &str, more: Value) -> Reply {
        self.call("run_command", with(command, more))
    }

    /// Goes away without a word.
    pub(crate) fn vanish(self) {
        match self {
            Agent::Stdio(mut client) => client.kill(),
            Agent::Web(web) => {
                let bearer = format!("Bearer {TOKEN}");
                let headers = [&session_headers(&web.session)[..], &[("Authorization", &bearer)]].concat();
                let left = web.served.http.send("DELETE", "/mcp", &headers, b"");
                assert!((200..300).contains(&left.status), "{left:?}");
            }
        }
    }
}

/// The arguments of `run_command`.
pub(crate) fn with(command: &str, more: Value) -> Value {
    let mut arguments = json!({"command": command});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

/// Plays a scenario twice, each in a workspace of its own: over stdio and over HTTP.
pub(crate) fn both(profile: &'static str, play: impl Fn(&Scratch, Agent)) {
    {
        let scratch = scratch();
        let client = scratch.mcp().profile(profile).flags(&["--agent", "web"]).start();
        play(&scratch, Agent::Stdio(Box::new(client)));
    }
    let scratch = scratch();
    scratch.configure(&format!(
        "[approvals]\nprofile = \"{profile}\"\n[http]\ntokens = [{{ name = \"web\", token = \"{TOKEN}\" }}]\n"
    ));
    let served = scratch.serve();
    let session = open_session(&served.http);
    play(&scratch, Agent::Web(Box::new(Web { served, session, calls: 0 })));
}

/// A word that no other process of the machine has among its arguments, and that `sleep` takes for a long time.
pub(crate) fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("86400.{:07}{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The processes with the marker among their arguments, and their programs' names.
pub(crate) fn marked(marker: &str) -> Vec<(i32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let line = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let name = line.split('\0').next()?.to_owned();
        line.contains(marker).then_some((pid, name))
    })
    .collect()
}

/// Waits until `sleep MARKER` runs, and gives its number.
#[track_caller]
pub(crate) fn asleep(marker: &str) -> i32 {
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let found = marked(marker).into_iter().find(|(_, name)| name == "sleep");
        if let Some((pid, _)) = found {
            return pid;
        }
        assert!(std::time::Instant::now() < until, "nothing sleeps: {:?}", marked(marker));
        std::thread::yield_now();
    }
}

/// Waits until nothing of a command with that marker is left.
#[track_caller]
pub(crate) fn all_gone(marker: &str) {
    // While it is being ended it may still start something.
    for _ in 0..10 {
        let left = marked(marker);
        if left.is_empty() {
            return;
        }
        for (pid, name) in left {
            assert!(gone(pid, PATIENCE), "{name} ({pid}) still runs");
        }
    }
    panic!("it starts itself again: {:?}", marked(marker));
}

/// Lets a command go on that waits in `sleep MARKER`.
pub(crate) fn wake(sleeper: i32) {
    let pid = rustix::process::Pid::from_raw(sleeper).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// The one question that waits, as the command line lists it.
#[track_caller]
pub(crate) fn waiting(scratch: &Scratch) -> Value {
    let listed = scratch.run(&["pending", "--json"]);
    let pending = listed.ok().json()["pending"].as_array().unwrap().clone();
    assert_eq!(pending.len(), 1, "{listed:?}");
    pending[0].clone()
}

/// Says yes to it by its digest.
#[track_caller]
pub(crate) fn approve(scratch: &Scratch, question: &Value) -> cotenant_testkit::Output {
    let [id, digest] = ["id", "digest"].map(|name| question[name].as_str().unwrap().to_owned());
    scratch.run(&["approve", &id, "--digest", &digest])
}

/// No file of ours lies about in the workspace.
#[track_caller]
pub(crate) fn no_strays(scratch: &Scratch) {
    scratch.run(&["stop"]).ok();
    let found = scratch.sh("find . -name '.cotenant-*'").stdout;
    assert_eq!(found, "", "temporary files were left");
}

/// Whether commands can run on a copy here; where not, the test is skipped, loudly.
pub(crate) fn can_stage(scratch: &Scratch) -> bool {
    let report = scratch.run(&["doctor", "--json"]).json();
    let can = report["grades"]["G3"] == json!(true);
    if !can {
        eprintln!("SKIP: no staged runs on this machine: {report}");
    }
    can
}
