//! This test binary started once more, as a daemon: a real process with a fake workspace.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cotenant_daemon::{Admin, Homes, Opened, Opening, Options, Peer, Starter};
use cotenant_model::{Code, Refusal, SessionId};
use cotenant_tools::host::{Answer, Call, Hello, Host, Ticket};
use serde_json::{Map, Value, json};

use crate::Ground;
use crate::fake::Fake;

const FOLDER: &str = "COTENANT_TEST_FOLDER";
const SOCKET: &str = "COTENANT_TEST_SOCKET";
const IDLE: &str = "COTENANT_TEST_IDLE_MS";
/// The daemon has the workspace of the product behind it instead of the fake one.
pub(crate) const REAL: &str = "COTENANT_TEST_REAL";

/// What runs [`as_the_daemon`] in a process of its own; `--root DIR` behind it counts as a filter that fits nothing.
pub(crate) fn starter(folder: &Path, idle: Duration) -> Starter {
    Starter {
        exe: std::env::current_exe().unwrap(),
        args: ["acting::as_the_daemon", "--exact", "--nocapture", "--"].map(str::to_owned).to_vec(),
        env: vec![
            (FOLDER.to_owned(), folder.display().to_string()),
            (IDLE.to_owned(), idle.as_millis().to_string()),
        ],
    }
}

/// No test of its own: the daemon of all others.
#[test]
fn as_the_daemon() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let idle = Duration::from_millis(std::env::var(IDLE).unwrap().parse().unwrap());
    let homes = Homes { state: folder.join("state"), runtime: folder.join("run") };
    let open = if std::env::var_os(REAL).is_some() { cotenant_daemon::desk::open } else { open };
    let ended = cotenant_daemon::run(&folder.join("root"), &Options { idle, homes }, open);
    ended.map_err(|refusal| refusal.to_string()).unwrap();
}

/// No test of its own: another user who tries to be served, for the test below.
#[test]
fn as_another_user() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let mut stream = UnixStream::connect(socket).unwrap();
    let greeting = json!({ "cotenant": 1, "build": "x", "any_build": true, "kind": "admin" });
    // The connection may be gone before it is written.
    let _ = writeln!(stream, "{greeting}").and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    assert_eq!(said, "");
}

#[test]
fn another_user_is_not_served() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIP: only root can become another user");
        return;
    }
    let ground = Ground::new();
    let admin = ground.admin();
    let exe = ground.folder.join("other");
    fs::copy(&ground.starter.exe, &exe).unwrap();
    // What keeps others out is taken away, so that only the daemon's own look at them is left.
    let folder = ground.place.socket.parent().unwrap();
    for (path, mode) in [
        (&ground.folder, 0o755),
        (&ground.homes.runtime, 0o755),
        (&folder.to_owned(), 0o755),
        (&ground.place.socket, 0o666),
        (&exe, 0o755),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let as_user = |uid: u32| {
        let mut other = Command::new(&exe);
        other.args(["acting::as_another_user", "--exact"]).env(SOCKET, &ground.place.socket);
        other
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .uid(uid)
            .status()
            .unwrap()
            .success()
    };
    assert!(as_user(65534), "another user got an answer");
    assert!(!as_user(0), "the user got none");
    assert_eq!(ground.pid(), Some(admin.pid));
}

fn open(opening: Opening) -> Result<Opened, Refusal> {
    let root = opening.place.root;
    // How often the workspace was opened, and whether someone could connect while it was.
    let mut log = OpenOptions::new().create(true).append(true).open(root.join("opened")).unwrap();
    writeln!(log, "{}", UnixStream::connect(&opening.place.socket).is_ok()).unwrap();
    if root.join("broken").exists() {
        return Err(Refusal::new(Code::IoError, "The ledger is broken.")
            .fact("at", 7u32)
            .next("cotenant doctor"));
    }
    let workspace = Arc::new(Workspace { fake: Fake::default(), root });
    Ok((workspace.clone(), workspace))
}

struct Workspace {
    fake: Fake,
    root: PathBuf,
}

impl Workspace {
    /// Stops here while the test wants it.
    fn pause(&self) {
        if let Ok(mut test) = UnixStream::connect(self.root.join("pause")) {
            writeln!(test, "{}", std::process::id()).unwrap();
            let _ = test.read_to_end(&mut Vec::new());
        }
    }

    /// Adds a line to a file, once for each key.
    fn once(&self, key: &str) -> &'static str {
        let path = self.root.join("effects");
        let known = fs::read_to_string(&path).unwrap_or_default();
        let again = known.lines().any(|line| line == key);
        if !again {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            writeln!(file, "{key}").unwrap();
        }
        self.pause();
        if again { "again" } else { "first" }
    }
}

impl Host for Workspace {
    fn open(&self, hello: &Hello) -> Result<SessionId, Refusal> {
        self.fake.open(hello)
    }

    fn introduce(&self, session: SessionId, client: &str, roots: Option<&[String]>) {
        self.fake.introduce(session, client, roots);
    }

    fn close(&self, session: SessionId) {
        self.fake.close(session);
    }

    fn tools(&self, session: SessionId) -> Arc<Vec<Value>> {
        self.fake.tools(session)
    }

    fn instructions(&self, session: SessionId) -> String {
        self.fake.instructions(session)
    }

    fn arrive(&self, session: SessionId, tool: &str, args: &Map<String, Value>) -> Ticket {
        self.fake.arrive(session, tool, args)
    }

    fn forgo(&self, session: SessionId, ticket: Ticket) {
        self.fake.forgo(session, ticket);
    }

    fn call(&self, call: Call) -> Answer {
        let said = match call.tool.as_str() {
            "once" => self.once(call.meta["cotenant/idempotency"].as_str().unwrap()),
            "pause" => {
                self.pause();
                "went on"
            }
            "hello" => {
                return Answer { text: format!("{:?}", self.hello(call.session)), ..Answer::default() };
            }
            "die" => std::process::abort(),
            _ => return self.fake.call(call),
        };
        Answer { text: said.to_owned(), ..Answer::default() }
    }
}

impl Workspace {
    fn hello(&self, session: SessionId) -> Hello {
        self.fake.with(|state| state.opened[usize::try_from(session.0).unwrap() - 1].clone())
    }
}

impl Admin for Workspace {
    fn admin(&self, op: &str, args: &Map<String, Value>, peer: &Peer) -> Result<Value, Refusal> {
        match op {
            "echo" => Ok(json!({ "args": args, "pid": peer.pid, "process": peer.pidfd.is_some() })),
            "status" => Ok(json!({ "watcher": { "ready": true } })),
            "sessions" => {
                let wanted = usize::try_from(args["closed"].as_u64().unwrap()).unwrap();
                self.fake.wait_for(|state| state.closed.len() >= wanted);
                Ok(self.fake.with(|state| {
                    json!({ "opened": state.opened.len(), "introduced": state.introduced
                    .iter().map(|seen| seen.1.clone()).collect::<Vec<_>>() })
                }))
            }
            "fault" => panic!("a fault on purpose"),
            _ => Err(Refusal::new(Code::BadInput, "No such operation.")
                .fact("op", op)
                .fact("list", vec!["a".to_owned()])
                .fact("flag", true)
                .fact("number", 3u32)
                .block("a\nb")
                .next("help")),
        }
    }

    fn busy(&self) -> bool {
        self.root.join("busy").exists()
    }

    fn gone(&self, _peer: &Peer) {}
}
