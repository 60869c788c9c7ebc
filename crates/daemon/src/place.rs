//! Where the daemon of a root is found, and where it keeps what it keeps.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use cotenant_model::{Code, Refusal};
use rustix::process::geteuid;

use crate::claim::{self, Claim};

/// The places of one root. Both folders exist, are the user's own and closed to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The root, absolute, without links.
    pub root: PathBuf,
    /// Where the root was before, if it was moved since its state began.
    pub moved_from: Option<PathBuf>,
    /// 16 hex digits that stand for the root, and go with it when it is moved.
    pub key: String,
    /// State of this root: the lock, the log and, unless `[workspace] state_dir` says otherwise, the ledger.
    pub state: PathBuf,
    /// The daemon's socket.
    pub socket: PathBuf,
}

/// The folders of the user that places lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes {
    /// `$XDG_STATE_HOME`, else `~/.local/state`.
    pub state: PathBuf,
    /// `$XDG_RUNTIME_DIR`, else `/run/user/UID` where it exists, else as `state`.
    pub runtime: PathBuf,
}

impl Homes {
    /// As the environment says. A variable that is no absolute path counts as absent.
    pub fn of_user() -> Result<Homes, Refusal> {
        let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state =
            named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state"))).ok_or_else(
                || Refusal::new(Code::NotAvailable, "There is no home folder: set HOME or XDG_STATE_HOME."),
            )?;
        let run = PathBuf::from(format!("/run/user/{}", geteuid().as_raw()));
        let runtime = named("XDG_RUNTIME_DIR").or_else(|| run.is_dir().then_some(run));
        Ok(Homes { runtime: runtime.unwrap_or_else(|| state.clone()), state })
    }
}

impl Place {
    /// The places of `root`; makes their folders, and finds those of a root that was moved. Refuses a root that is no folder.
    pub fn of(root: &Path, homes: &Homes) -> Result<Place, Refusal> {
        let given = root.display().to_string();
        let root = root.canonicalize().map_err(|error| {
            Refusal::new(Code::NotFound, format!("The root cannot be opened: {error}."))
                .fact("path", given.clone())
        })?;
        if !root.is_dir() {
            return Err(Refusal::new(Code::NotADirectory, "The root is not a folder.").fact("path", given));
        }
        let state = own_folder(&homes.state.join("cotenant")).and_then(|all| {
            let claim = claim::find(&all, &root)?;
            let state = own_folder(&all.join(&claim.key))?;
            claim::note(&state, &root, &claim)?;
            Ok((state, claim))
        });
        let (state, Claim { key, moved_from }) = state.map_err(|error| unusable(&homes.state, &error))?;
        let runtime =
            own_folder(&homes.runtime.join("cotenant")).map_err(|error| unusable(&homes.runtime, &error))?;
        Ok(Place { socket: runtime.join(format!("{key}.sock")), root, moved_from, key, state })
    }

    /// Gives the state of the workspace that was at `old` to `root`, which has none of its own yet: for one that was
    /// copied, or moved to another file system. One that was only renamed needs no word.
    pub fn relink(root: &Path, old: &Path, homes: &Homes) -> Result<Place, Refusal> {
        let place = Place::of(root, homes)?;
        let settings = crate::config::load(&place.root)?;
        let all = homes.state.join("cotenant");
        let ledgers = settings.state_dir.unwrap_or_else(|| all.clone());
        let used = |key: &str| ledgers.join(key).join("ledger").exists();
        let old = std::path::absolute(old).map_err(|error| unusable(old, &error))?;
        claim::adopt(&all, &place.root, &old, used).map_err(|error| {
            Refusal::new(Code::NotAvailable, format!("The state was not taken over: {error}."))
                .fact("path", old.display().to_string())
                .next("cotenant stop --root DIR for both, then cotenant doctor --relink OLD --root NEW before any other use of NEW")
        })?;
        Place::of(root, homes)
    }

    /// Held by the daemon as long as it lives.
    pub fn lock(&self) -> PathBuf {
        self.state.join(claim::LOCK)
    }

    /// Held by a daemon that starts, until it can be reached.
    pub fn start_lock(&self) -> PathBuf {
        self.state.join("start.lock")
    }

    /// What the daemon writes to standard error.
    pub fn log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }
}

/// Makes a folder that is closed to others, parents included, or checks that it is one.
fn own_folder(path: &Path) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::other(format!("{} is not a folder of this user's", path.display())));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    }
    Ok(path.to_owned())
}

fn unusable(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(Code::NotAvailable, format!("The folder for state cannot be used: {error}."))
        .fact("path", path.display().to_string())
        .next("set XDG_STATE_HOME or XDG_RUNTIME_DIR to a folder of your own")
}
