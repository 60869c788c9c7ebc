//! A commit in another process that stops at every step and asks this one what happens next: go on, or die.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use cotenant_engine::pipeline::Steps;
use cotenant_model::{Durability, FileOp, WsPath};

use crate::rig::Rig;

/// What happens at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The step is made.
    Go,
    /// The process is killed before it.
    Die,
}

/// How the other process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The commit landed.
    Landed,
    /// It was refused with this code, or recovery was.
    Refused(String),
    /// It only recovered.
    Recovered,
    /// It was killed.
    Killed,
}

/// A run of the other process: the steps it reached, and its end.
#[derive(Clone, Debug)]
pub struct Run {
    pub steps: Vec<String>,
    pub end: End,
}

const SOCKET: &str = "COTENANT_TEST_SOCKET";

/// Runs `job` (a name that [`child`] knows) in another process on the tree and state; `at_step` is asked at every step.
pub fn run(tree: &Path, state: &Path, job: &str, mut at_step: impl FnMut(usize, &str) -> Then) -> Run {
    let socket = state.join("control.sock");
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    let mut child = spawn(tree, state, job, &socket);
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    let mut steps = Vec::new();
    let end = loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 {
            panic!("the other process died by itself after {steps:?}");
        }
        let line = line.trim_end();
        if let Some(end) = line.strip_prefix("end ") {
            break match end {
                "landed" => End::Landed,
                "recovered" => End::Recovered,
                other => End::Refused(other.to_owned()),
            };
        }
        steps.push(line.to_owned());
        match at_step(steps.len() - 1, line) {
            Then::Go => writer.write_all(b"g").unwrap(),
            Then::Die => {
                child.kill().unwrap();
                break End::Killed;
            }
        }
    };
    child.wait().unwrap();
    Run { steps, end }
}

fn spawn(tree: &Path, state: &Path, job: &str, socket: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "remote::child", "--nocapture"])
        .env(SOCKET, socket)
        .env("COTENANT_TEST_TREE", tree)
        .env("COTENANT_TEST_STATE", state)
        .env("COTENANT_TEST_JOB", job)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The plans that the other process can be told to commit. `none`: it only recovers.
pub fn ops(job: &str) -> Vec<FileOp> {
    crate::crash::job(job)
}

/// Asks at every step.
struct Asking(Mutex<UnixStream>);

impl Steps for Asking {
    fn reached(&self, step: &'static str, at: &WsPath) -> std::io::Result<()> {
        let mut stream = self.0.lock().unwrap();
        stream.write_all(format!("{step} {}\n", at.path).as_bytes()).unwrap();
        stream.read_exact(&mut [0; 1])
    }
}

/// The other process. As an ordinary test it does nothing.
#[test]
fn child() {
    let Ok(socket) = std::env::var(SOCKET) else { return };
    let path = |name: &str| PathBuf::from(std::env::var(name).unwrap());
    let mut stream = UnixStream::connect(socket).unwrap();
    let steps = Arc::new(Asking(Mutex::new(stream.try_clone().unwrap())));
    let opened =
        Rig::watched(&path("COTENANT_TEST_TREE"), &path("COTENANT_TEST_STATE"), Durability::Full, steps);
    let job = std::env::var("COTENANT_TEST_JOB").unwrap();
    let end = match opened {
        Err(refusal) => refusal.code.name().to_owned(),
        Ok(rig) if job == "none" => {
            rig.pipeline.idle();
            "recovered".to_owned()
        }
        Ok(rig) => {
            let end = match rig.commit(ops(&job)) {
                Ok(_) => "landed".to_owned(),
                Err(refusal) => refusal.code.name().to_owned(),
            };
            rig.pipeline.idle();
            end
        }
    };
    stream.write_all(format!("end {end}\n").as_bytes()).unwrap();
}
