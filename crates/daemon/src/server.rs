//! The life of the daemon: the lock, the workspace, the socket, the connections, the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cotenant_model::{Code, Refusal, Settings};
use cotenant_tools::host::Host;
use rustix::fs::{FlockOperation, flock};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::hello::refusal_json;
use crate::http::Http;
use crate::spawn::Notice;
use crate::{Admin, Homes, Place, config, session, socket, trim};

/// Threads for what is waited for; calls have threads of their own. Everything here is short, and a second one costs
/// every message two switches: they wake each other for tasks that the first one has done by then.
const WORKERS: usize = 1;

/// Threads for calls and requests at most; they exist only while there is something to do. A session has 16 calls
/// under way at most, so that those who answer the questions that calls wait for get through.
const CALLS: usize = 512;

/// A thread for calls that has nothing to do ends after so long.
const CALLS_LINGER: Duration = Duration::from_secs(5);

/// Stack of a thread, of which only what is used costs memory.
const STACK: usize = 1024 * 1024;

/// How long calls may take to their end once the daemon stops: as long as a call may take, and a little.
const FINISH: Duration = Duration::from_secs(55);

/// How long a new daemon waits for its first connection at least.
const FIRST: Duration = Duration::from_secs(10);

/// How a daemon is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// It ends after so long without connections, leases and jobs.
    pub idle: Duration,
    /// Where its places lie.
    pub homes: Homes,
}

/// What a workspace is opened with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The places of the root; `state` is the folder for the ledger, as the settings have it.
    pub place: Place,
    /// The settings of `cotenant.toml`.
    pub settings: Settings,
}

/// An open workspace: as agents see it, and as everyone else does.
pub type Opened = (Arc<dyn Host>, Arc<dyn Admin>);

/// What the daemon shares between its connections.
pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) admin: Arc<dyn Admin>,
    pub(crate) http: Http,
    pub(crate) started: Instant,
    pub(crate) stop: watch::Sender<bool>,
    /// Wakes [`trim`].
    pub(crate) much: Arc<Notify>,
    /// Agents connected over the socket.
    pub(crate) agents: AtomicUsize,
    connections: watch::Sender<usize>,
    /// Sockets that stay open until the daemon has ended: those who asked it to stop wait for that.
    held: Mutex<Vec<OwnedFd>>,
}

/// A daemon that can be reached, before its first connection.
struct Started {
    server: Arc<Server>,
    listener: UnixListener,
    lock: File,
    /// `[daemon] idle_s`.
    idle: Option<Duration>,
}

/// Runs the daemon of `root` until it is stopped or idle. `make` opens the workspace, with all recovery, while nobody
/// can connect yet. Returns at once where the root has a daemon already. Standard output gets one line for whoever
/// started it, and leads nowhere after that.
pub fn run(
    root: &Path,
    options: &Options,
    make: impl FnOnce(Opening) -> Result<Opened, Refusal>,
) -> Result<(), Refusal> {
    // Fails where it already leads a session, which is as good.
    let _ = rustix::process::setsid();
    let started = Place::of(root, &options.homes).and_then(|place| start(place, make));
    let notice = match &started {
        Ok(_) => Notice::Ready,
        Err(refusal) => Notice::Refused { refusal: refusal_json(refusal) },
    };
    announce(&notice);
    match started? {
        Some((started, start_lock)) => {
            drop(start_lock);
            let idle = started.idle.unwrap_or(options.idle);
            serve(started, idle)
        }
        None => Ok(()),
    }
}

/// Takes the lock, opens the workspace and listens; `None` where another daemon can be reached. The second lock is
/// held until that has been announced: starters queue there, and find a daemon when their turn comes.
fn start(
    place: Place,
    make: impl FnOnce(Opening) -> Result<Opened, Refusal>,
) -> Result<Option<(Started, File)>, Refusal> {
    let start_lock =
        lock_file(&place.start_lock()).and_then(|file| locked(file, FlockOperation::LockExclusive));
    let start_lock = start_lock.map_err(|error| failed("The start lock", &error))?;
    let lock = lock_file(&place.lock()).map_err(|error| failed("The daemon's lock", &error))?;
    let lock = match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => lock,
        // Whoever has it has started; either it listens, or it is on its way out and frees it at its end.
        Err(_) if socket::connect(&place.socket).is_ok() => return Ok(None),
        Err(_) => locked(lock, FlockOperation::LockExclusive)
            .map_err(|error| failed("The daemon's lock", &error))?,
    };
    let settings = config::load(&place.root)?;
    let mut opened = place.clone();
    if let Some(folder) = &settings.state_dir {
        opened.state = folder.join(&place.key);
    }
    let http = Http::new(&settings);
    let idle = settings.idle_s.map(Duration::from_secs);
    let (host, admin) = make(Opening { place: opened, settings })?;
    let listener = socket::listen(&place.socket).map_err(|error| failed("The socket", &error))?;
    let server = Server {
        place,
        host,
        admin,
        http,
        started: Instant::now(),
        stop: watch::Sender::new(false),
        much: Arc::new(Notify::new()),
        agents: AtomicUsize::new(0),
        connections: watch::Sender::new(0),
        held: Mutex::default(),
    };
    Ok(Some((Started { server: Arc::new(server), listener, lock, idle }, start_lock)))
}

fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn locked(file: File, operation: FlockOperation) -> io::Result<File> {
    loop {
        match flock(&file, operation) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.map(|()| file).map_err(Into::into),
        }
    }
}

fn failed(what: &str, error: &io::Error) -> Refusal {
    Refusal::new(Code::IoError, format!("{what} cannot be had: {error}."))
}

/// Tells whoever started us, then lets go of standard output: a pipe that nobody reads must not stop us later.
fn announce(notice: &Notice) {
    let Ok(mut line) = serde_json::to_vec(notice) else { return };
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    // Nobody may be there to read it.
    let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

fn serve(started: Started, idle: Duration) -> Result<(), Refusal> {
    let Started { server, listener, lock, .. } = started;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(CALLS)
        .thread_keep_alive(CALLS_LINGER)
        .thread_stack_size(STACK)
        .thread_name("cotenant")
        .enable_all()
        .build()
        .map_err(|error| failed("The runtime", &error))?;
    let ended = runtime.block_on(accept(&server, listener, idle));
    // Calls that run go to their end: their clients ask again, and are given what came out.
    runtime.shutdown_timeout(FINISH);
    let held = std::mem::take(&mut *server.held.lock().unwrap_or_else(PoisonError::into_inner));
    drop(server);
    drop(held);
    // Background threads may still hold the ledger: the next daemon waits for the process, not for this line.
    std::mem::forget(lock);
    ended.map_err(|error| failed("The socket", &error))
}

/// Takes connections until the daemon stops, and sees them to their end.
async fn accept(server: &Arc<Server>, listener: UnixListener, idle: Duration) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::UnixListener::from_std(listener)?;
    let mut stop = server.stop.subscribe();
    let mut tasks = JoinSet::new();
    tokio::spawn(trim::trim_when_quiet(Arc::clone(&server.much)));
    tokio::spawn(stop_when_idle(Arc::clone(server), idle));
    server.http.open_configured(&server.host).await;
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tasks.spawn(session::connection(Arc::clone(server), stream));
                }
                // Out of descriptors, most likely: those that are connected go on, and give some back.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
        }
    }
    socket::remove(&server.place.socket)?;
    drop(listener);
    let ending = async {
        server.http.close().await;
        while tasks.join_next().await.is_some() {}
    };
    // What has not ended by then is cut off.
    let _ = tokio::time::timeout(FINISH, ending).await;
    Ok(())
}

/// Stops the daemon once nobody has needed it for `idle`. Whoever had it started gets time to connect, however busy
/// the machine is.
async fn stop_when_idle(server: Arc<Server>, idle: Duration) {
    let mut connections = server.connections.subscribe();
    let _ = tokio::time::timeout(idle.max(FIRST), connections.wait_for(|count| *count > 0)).await;
    // The sender lives in `server`.
    while connections.wait_for(|count| *count == 0).await.is_ok() {
        let quiet = tokio::time::timeout(idle, connections.wait_for(|count| *count > 0)).await.is_err();
        if quiet && server.http.sessions().await == 0 && !server.admin.busy() {
            server.stop.send_replace(true);
            return;
        }
    }
}

/// Counts a connection while it lives.
pub(crate) struct Present<'a>(&'a Server);

impl Server {
    pub(crate) fn present(&self) -> Present<'_> {
        self.connections.send_modify(|count| *count += 1);
        Present(self)
    }

    /// Stops the daemon; `asker` is closed when it has ended.
    pub(crate) fn stop_for(&self, asker: Option<OwnedFd>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).extend(asker);
        self.stop.send_replace(true);
    }

    /// Agents connected, over the socket and over HTTP.
    pub(crate) async fn sessions(&self) -> usize {
        self.agents.load(Ordering::Relaxed) + self.http.sessions().await
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.connections.send_modify(|count| *count -= 1);
    }
}
