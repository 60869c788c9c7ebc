//! A throw-away workspace with everything around it: a directory outside, a sibling with a longer name, own state.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::Value;

use crate::client::Launch;
use crate::http::Http;
use crate::process::{PATIENCE, kill_and_wait, strays, wait_exit};

/// A private directory with `root/` (the workspace), `out/`, `root-evil/`, `home/`, `state/`, `run/`.
///
/// Dropped, it stops its daemon, ends what else was started for it, and removes everything.
#[derive(Debug)]
pub struct Scratch {
    base: PathBuf,
    program: PathBuf,
}

/// What a finished command said.
#[derive(Clone, Debug)]
pub struct Output {
    /// Exit status; 128 and the signal's number where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Fails unless the exit status is 0.
    #[track_caller]
    pub fn ok(&self) -> &Output {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }
}

/// A new directory of the test's own below `base`, closed to others. One that a killed test of an earlier process of
/// the same number left behind is passed over.
pub fn fresh_directory(base: &Path, what: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("cotenant-{what}-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return path,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

impl Scratch {
    /// Makes the directories. `program` is the `cotenant` binary under test.
    pub fn new(program: impl Into<PathBuf>) -> Scratch {
        // Resolved, so that a path an answer shows can be compared.
        let base = fresh_directory(&std::env::temp_dir().canonicalize().unwrap(), "test");
        let make = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path).unwrap();
        for part in ["root", "out", "root-evil", "home", "state", "run"] {
            make(&base.join(part));
        }
        Scratch { base, program: program.into() }
    }

    /// The directory that holds everything.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The workspace.
    pub fn root(&self) -> PathBuf {
        self.base.join("root")
    }

    /// A directory outside the workspace.
    pub fn out(&self) -> PathBuf {
        self.base.join("out")
    }

    /// A path in the workspace.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    /// The bytes of a file of the workspace.
    #[track_caller]
    pub fn bytes(&self, relative: &str) -> Vec<u8> {
        let path = self.path(relative);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The text of a file of the workspace.
    #[track_caller]
    pub fn text(&self, relative: &str) -> String {
        String::from_utf8(self.bytes(relative)).unwrap()
    }

    /// Writes a file of the workspace, with its parents, as a stranger does: in place.
    pub fn put(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Adds to `cotenant.toml`.
    pub fn configure(&self, toml: &str) {
        let path = self.path("cotenant.toml");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, before + toml).unwrap();
    }

    /// Runs a bash script in the workspace; `$W` is the workspace, `$OUT` the directory outside. Fails unless it exits 0.
    #[track_caller]
    pub fn sh(&self, script: &str) -> Output {
        let output = self.try_sh(script);
        assert_eq!(output.code, 0, "{script}\n{output:?}");
        output
    }

    /// Runs a bash script in the workspace.
    pub fn try_sh(&self, script: &str) -> Output {
        let mut bash = self.within("bash");
        bash.args(["-c", script]).current_dir(self.root());
        finish(bash)
    }

    /// A command with the scratch directory's environment.
    pub fn within(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("W", self.root())
            .env("OUT", self.out())
            .env("HOME", self.base.join("home"))
            .env("XDG_STATE_HOME", self.base.join("state"))
            .env("XDG_RUNTIME_DIR", self.base.join("run"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env_remove("COTENANT_SESSION")
            .stdin(Stdio::null());
        command
    }

    /// `cotenant ARGS…`, to be started by the caller.
    pub fn cotenant(&self, arguments: &[&str]) -> Command {
        let mut command = self.within(&self.program);
        command.args(arguments).current_dir(self.root());
        command
    }

    /// Runs `cotenant ARGS… --root ROOT`.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_at(&self.root(), arguments)
    }

    /// The same for another root.
    pub fn run_at(&self, root: &Path, arguments: &[&str]) -> Output {
        let mut command = self.cotenant(arguments);
        command.arg("--root").arg(root);
        finish(command)
    }

    /// Prepares `cotenant mcp`.
    pub fn mcp(&self) -> Launch<'_> {
        Launch::new(self)
    }

    /// The binary under test.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The daemon's process, if one serves the workspace.
    pub fn daemon_pid(&self) -> Option<i32> {
        let output = self.run(&["status", "--pid"]);
        (output.code == 0).then(|| output.stdout.trim().parse().unwrap_or_else(|_| panic!("{output:?}")))
    }

    /// `kill -9` of the daemon; returns when it is gone.
    pub fn kill_daemon(&self) {
        kill_and_wait(self.daemon_pid().expect("a daemon serves the workspace"));
    }

    /// Starts `cotenant serve` and waits for the address it prints.
    pub fn serve(&self) -> Serve {
        let mut command = self.cotenant(&["serve"]);
        command.arg("--root").arg(self.root()).stdout(Stdio::piped());
        command.stderr(std::fs::File::create(self.base.join("serve.err")).unwrap());
        let mut child = command.spawn().unwrap();
        let lines = lines(child.stdout.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let Ok(line) = lines.recv_timeout(PATIENCE) else {
                let errors = std::fs::read_to_string(self.base.join("serve.err")).unwrap_or_default();
                panic!("serve printed no address: {said}{errors}");
            };
            said += &line;
            if let Some(rest) = line.split("http://").nth(1) {
                break rest.split(['/', ' ', '\n']).next().unwrap().parse().unwrap();
            }
        };
        Serve { child, http: Http::new(address), said }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.run(&["stop"]);
        for pid in strays(&self.base) {
            kill_and_wait(pid);
        }
        if std::env::var_os("COTENANT_KEEP").is_none() {
            let _ = std::fs::remove_dir_all(&self.base);
        } else {
            eprintln!("kept: {}", self.base.display());
        }
    }
}

/// A running `cotenant serve`; ended when dropped.
#[derive(Debug)]
pub struct Serve {
    child: Child,
    /// Its address.
    pub http: Http,
    /// What it printed up to the line with the address.
    pub said: String,
}

impl Serve {
    /// Kills `serve`; the daemon is another process.
    pub fn end(mut self) {
        self.kill();
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        self.kill();
    }
}

fn lines(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        // Read to the end, so that the process never writes into a closed pipe.
        while stdout.read_line(&mut line).is_ok_and(|read| read > 0) {
            let _ = sender.send(std::mem::take(&mut line));
        }
    });
    receiver
}

/// Runs a command to its end, at most `PATIENCE`, with its output read aside.
fn finish(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = drain(child.stdout.take().unwrap());
    let stderr = drain(child.stderr.take().unwrap());
    let Some(status) = wait_exit(&mut child, PATIENCE) else {
        let _ = child.kill();
        panic!("{command:?} did not end: {:?}", stderr.recv_timeout(Duration::from_secs(1)));
    };
    // Whatever the command left running may hold the pipes: what came so far is what it said.
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
    Output {
        code: status.code().unwrap_or(128 + signal),
        stdout: stdout.recv_timeout(PATIENCE).expect("standard output is closed"),
        stderr: stderr.recv_timeout(PATIENCE).expect("standard error is closed"),
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// Swaps two names in one step, as an attacker does.
pub fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// Whether the long form of a test was asked for (`COTENANT_LONG=1`).
pub fn long() -> bool {
    std::env::var_os("COTENANT_LONG").is_some_and(|value| value == "1")
}
