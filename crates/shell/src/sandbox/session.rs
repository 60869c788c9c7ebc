//! What the commands of one session have in common: a loopback, a home, a `/tmp`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::machine::{Inner, Machine, Standing};
use super::{StartError, points};
use crate::sys::{self, Held};

/// A session's surroundings. Its namespaces are made when its first command starts. Dropped or ended, its processes are
/// killed and its directories removed.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
}

/// What can be ended from elsewhere.
pub(crate) trait Killable: Send + Sync {
    /// Ends all of it at once.
    fn kill(&self);
}

/// What each command of the session holds on to.
pub(crate) struct Shared {
    dir: PathBuf,
    /// The home that commands may write; it outlives each of them, not the session.
    pub(crate) home: PathBuf,
    /// Their `/tmp`.
    pub(crate) tmp: PathBuf,
    /// An empty directory and an empty file, to lay over what shall not be seen.
    pub(crate) nothing: PathBuf,
    pub(crate) blank: PathBuf,
    held: OnceLock<Result<Held, String>>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    ended: bool,
    running: Vec<Weak<dyn Killable>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Session {
    /// Makes the session's directories.
    pub fn open(machine: &Machine) -> Result<Session, StartError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = machine.inner.scratch.join(format!("session-{}-{number}", std::process::id()));
        let part = |name: &str| dir.join(name);
        let shared = Shared {
            home: part("home"),
            tmp: part("tmp"),
            nothing: part("nothing"),
            blank: part("blank"),
            held: OnceLock::new(),
            members: Mutex::default(),
            dir,
        };
        let error = |error| StartError::io("making the session's directories", error);
        for dir in [&shared.home, &shared.tmp, &shared.nothing] {
            points::private_dir(dir).map_err(error)?;
        }
        std::fs::write(&shared.blank, "").map_err(error)?;
        Ok(Session { shared: Arc::new(shared) })
    }

    /// Ends every process of the session. No command can be started in it afterwards.
    pub fn end(&self) {
        let mut members = self.shared.members();
        members.ended = true;
        let running = std::mem::take(&mut members.running);
        drop(members);
        running.iter().filter_map(Weak::upgrade).for_each(|member| member.kill());
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn members(&self) -> std::sync::MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The namespaces; made at the first call.
    pub(crate) fn held(&self, machine: &Inner) -> Result<&Held, StartError> {
        let make = || {
            let user = machine.standing == Standing::User;
            let net = machine.standing != Standing::Bare && machine.net;
            if !user && !net {
                return Ok(Held::default());
            }
            sys::hold(user, net).map_err(|error| error.to_string())
        };
        let held = self.held.get_or_init(make).as_ref();
        held.map_err(|error| StartError::io("making the session's namespaces", error))
    }

    /// Counts a command as one of the session's; refused once that has ended.
    pub(crate) fn join(&self, member: Weak<dyn Killable>) -> Result<(), StartError> {
        let mut members = self.members();
        if members.ended {
            return Err(StartError::Busy("the session has ended".to_owned()));
        }
        members.running.retain(|member| member.strong_count() > 0);
        members.running.push(member);
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        points::remove_later(std::mem::take(&mut self.dir));
    }
}
