//! An overlay that stays open over many commands. It lives in a mount namespace that no process is in between them; the
//! daemon works in it through a directory it holds.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cotenant_model::ExecLimits;

use super::compose::{compose_open, layers, stageable};
use super::machine::Machine;
use super::start::{Started, quietly, start};
use super::upper::{RunDir, Upper};
use super::{Session, Shared, StartError, points};
use crate::run::{Folder, How, InFolder, Request};

/// Why something cannot be done with an open overlay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverlayError {
    /// A command runs in it.
    #[error("a command is running in it")]
    Running,
    /// It was closed.
    #[error("it is closed")]
    Closed,
    /// It has no folder of that number.
    #[error("it has no folder {0}")]
    NoFolder(usize),
}

/// What a command writes stays in it, and the folders below are as they were.
pub struct OpenOverlay {
    folders: Vec<Folder>,
    mounts: OwnedFd,
    dirs: Vec<OwnedFd>,
    run: Arc<RunDir>,
    /// Its namespaces are the session's; so is its home.
    shared: Arc<Shared>,
    users: Mutex<Users>,
}

#[derive(Debug, Default)]
struct Users {
    running: usize,
    closed: bool,
}

impl fmt::Debug for OpenOverlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOverlay").field("run", &self.run).finish_non_exhaustive()
    }
}

impl OpenOverlay {
    /// Mounts an overlay over the writable ones of `folders`. `read_only` paths cannot be written in it, `caches` are
    /// written for real.
    pub fn open(
        machine: &Machine,
        session: &Session,
        folders: Vec<Folder>,
        read_only: Vec<InFolder>,
        caches: Vec<PathBuf>,
    ) -> Result<OpenOverlay, StartError> {
        let inner = &machine.inner;
        stageable(inner, &folders)?;
        let run = make_run(machine, &folders)?;
        let how = How::Staged { through: Vec::new(), read_only };
        let mut request = Request::new("", folders, how);
        request.caches = caches;
        request.limits = ExecLimits::default();
        let shared = session.shared();
        let composed = compose_open(inner, shared, &request, &run.0)?;
        let (mounts, dirs) = quietly(|| {
            let started = start(&composed, None)?;
            let held = held(&started, &request.folders);
            started.end();
            held.map_err(|error| StartError::io("holding the overlay open", error))
        })??;
        let (folders, users) = (request.folders, Mutex::default());
        Ok(OpenOverlay { folders, mounts, dirs, run, shared: shared.clone(), users })
    }

    /// The folders as commands in it see them: at the same paths.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// The merged directory of a folder: what is opened and written beneath it is what commands see.
    pub fn dir(&self, folder: usize) -> Result<&OwnedFd, OverlayError> {
        if self.users().closed {
            return Err(OverlayError::Closed);
        }
        self.dirs.get(folder).ok_or(OverlayError::NoFolder(folder))
    }

    /// What was changed in it so far. Only while no command runs in it; nothing may be started or written until the answer
    /// has been used.
    pub fn upper(&self) -> Result<Upper, OverlayError> {
        let users = self.users();
        match (users.closed, users.running) {
            (true, _) => Err(OverlayError::Closed),
            (false, 0) => Ok(Upper::new(self.run.clone())),
            _ => Err(OverlayError::Running),
        }
    }

    /// Ends it: no command can be started in it any more. What is in it goes with the last user of it.
    pub fn close(&self) {
        self.users().closed = true;
    }

    fn users(&self) -> std::sync::MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn mounts_fd(&self) -> RawFd {
        self.mounts.as_raw_fd()
    }

    pub(crate) fn run_dir(&self) -> &Arc<RunDir> {
        &self.run
    }

    /// Counts a command that runs in it, which must be of the same session.
    pub(crate) fn enter(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<Inside, StartError> {
        if !Arc::ptr_eq(&self.shared, shared) {
            return Err(StartError::BadRequest("the overlay is another session's".to_owned()));
        }
        let mut users = self.users();
        if users.closed {
            return Err(StartError::Busy("the overlay is closed".to_owned()));
        }
        users.running += 1;
        drop(users);
        Ok(Inside(self.clone()))
    }
}

/// A command in an open overlay; gone when dropped.
#[derive(Debug)]
pub(crate) struct Inside(Arc<OpenOverlay>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.users().running -= 1;
    }
}

/// The mount namespace of what was started, and the folders in it.
fn held(started: &Started, folders: &[Folder]) -> std::io::Result<(OwnedFd, Vec<OwnedFd>)> {
    let process = PathBuf::from(format!("/proc/{}", started.pid.as_raw_nonzero()));
    let mounts = File::open(process.join("ns/mnt"))?.into();
    let root = process.join("root");
    let open = |folder: &Folder| File::open(root.join(super::view::inside(&folder.host))).map(OwnedFd::from);
    Ok((mounts, folders.iter().map(open).collect::<Result<_, _>>()?))
}

/// Makes a run's private directory with a layer for each writable folder.
pub(crate) fn make_run(machine: &Machine, folders: &[Folder]) -> Result<Arc<RunDir>, StartError> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let base = machine.inner.overlay.as_ref().unwrap_or(&machine.inner.scratch);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let run = Arc::new(RunDir(base.join(format!("run-{}-{number}", std::process::id()))));
    let error = |error| StartError::io("making the directories of a run", error);
    points::private_dir(&run.0).map_err(error)?;
    for (index, folder) in folders.iter().enumerate().filter(|(_, folder)| folder.writable) {
        let (upper, work) = layers(&run.0, index);
        points::private_dir(&upper).map_err(error)?;
        points::private_dir(&work).map_err(error)?;
        points::like(&upper, &folder.host).map_err(error)?;
    }
    Ok(run)
}
