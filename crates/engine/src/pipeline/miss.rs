//! Why a step of a commit missed, and how that is told to the client.

use std::io;

use cotenant_model::{Code, Refusal, WsPath};
use cotenant_tree::Tree;
use cotenant_tree::commit::{FileId, StageError, Unlike};

/// Why a path could not be changed. Where the step had begun, it was taken back, but for `Stuck`.
#[derive(Debug, thiserror::Error)]
pub(super) enum Miss {
    #[error("it is open for writing elsewhere")]
    Busy(FileId),
    #[error("its bytes are not those that the change was made for")]
    Changed,
    #[error("something stands there already")]
    Exists,
    #[error("nothing stands there")]
    Vanished,
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it may not be read")]
    Denied,
    #[error("it is not a directory")]
    NotADirectory,
    #[error("the directory was moved away meanwhile")]
    Moved,
    #[error("a directory cannot be moved into itself")]
    IntoItself,
    #[error("the two ends lie on different file systems")]
    OtherDevice,
    #[error("the directory is not empty")]
    NotEmpty,
    #[error("it has {0} names (hard links)")]
    HardLinked(u64),
    #[error("its mode denies its owner to write")]
    ReadOnly,
    #[error(transparent)]
    Unlike(#[from] Unlike),
    #[error("the file system has no unnamed temporary files")]
    Unsupported,
    #[error("{need} bytes are needed, {free} are free")]
    NoSpace { need: u64, free: u64 },
    #[error("{doing}: {error}")]
    Io { doing: &'static str, error: io::Error },
    /// It could not be taken back: recovery must decide.
    #[error("{doing}: {error}, and it could not be taken back")]
    Stuck { doing: &'static str, error: io::Error },
}

/// Names what was being done, for an error of the system.
pub(super) trait Doing<T> {
    /// The miss for an error while `doing`.
    fn doing(self, doing: &'static str) -> Result<T, Miss>;
    /// The same where no way back was left.
    fn stuck(self, doing: &'static str) -> Result<T, Miss>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, Miss> {
        self.map_err(|error| Miss::Io { doing, error })
    }

    fn stuck(self, doing: &'static str) -> Result<T, Miss> {
        self.map_err(|error| Miss::Stuck { doing, error })
    }
}

impl From<StageError> for Miss {
    fn from(error: StageError) -> Miss {
        match error {
            StageError::Unsupported => Miss::Unsupported,
            StageError::Unlike(unlike) => Miss::Unlike(unlike),
            StageError::Io(error) => Miss::Io { doing: "writing the new content", error },
        }
    }
}

impl Miss {
    /// Whether the machinery failed, not the world: the ledger must stop and recover (R13). A full disk, a permission
    /// or a mount is the world.
    pub(super) fn is_failure(&self) -> bool {
        match self {
            Miss::Stuck { .. } => true,
            Miss::Io { error, .. } => !told_by_world(error),
            _ => false,
        }
    }

    /// The answer to the client.
    pub(super) fn refusal(&self, tree: &Tree, at: &WsPath) -> Refusal {
        let path = tree.folders().show(at);
        let new = |code, message: String| Refusal::new(code, message).fact("path", path.as_str());
        let read =
            || format!("read_file {{\"path\":{}}}, then make the change on what is there now", json(&path));
        match self {
            Miss::Busy(file) => busy(*file, &path),
            Miss::Changed => new(
                Code::FileChangedSinceRead,
                format!("{path} was changed by another program while this change was on its way. Nothing of this call stands."),
            )
            .next(read()),
            Miss::Exists => new(Code::AlreadyExists, format!("{path} came to be meanwhile. Nothing of this call stands."))
                .next(read()),
            Miss::Vanished => new(Code::NotFound, format!("{path} is gone. Nothing of this call stands."))
                .next("list_directory or search_files finds what is there"),
            Miss::NotAFile => new(Code::NotAFile, format!("{path} is not a regular file. Nothing was written."))
                .next("choose a regular file; list_directory shows what is there"),
            Miss::NotADirectory => new(Code::NotADirectory, format!("{path} is not a directory. Nothing was written."))
                .next("choose a directory; list_directory shows what is there"),
            Miss::Moved => new(
                Code::FileChangedSinceRead,
                format!("The directory of {path} was moved or replaced meanwhile. Nothing of this call stands."),
            )
            .next("search_files finds where it is now"),
            Miss::IntoItself => new(Code::BadInput, format!("{path} cannot be moved into itself. Nothing was done."))
                .next("choose a place outside of it"),
            Miss::OtherDevice => new(
                Code::CrossDevice,
                format!("{path} and the place it should move to lie on different file systems or mounts; it is never copied and deleted behind your back. Nothing was done."),
            )
            .next("ask the human to move it, or write the content anew there"),
            Miss::NotEmpty => new(Code::FileChangedSinceRead, format!("{path} is not empty. Nothing of this call stands."))
                .next(format!("list_directory {{\"path\":{}}}", json(&path))),
            Miss::HardLinked(links) => new(
                Code::HardLinked,
                format!("{path} has {links} names (hard links); replacing it would leave the others with the old content. Nothing was written."),
            )
            .fact("links", *links)
            .next(format!("read_file {{\"path\":{}}}, then write_file the changed content under a new name; or ask the human to break the link (cp -p and mv)", json(&path))),
            Miss::Denied => denied(&path, "it may not be read, so what would be lost cannot be kept"),
            Miss::ReadOnly => denied(&path, "its mode denies writing to its owner"),
            Miss::Unlike(unlike) => denied(&path, &unlike.to_string()),
            Miss::Unsupported => new(Code::NotAvailable, format!("{path} lies on a file system that cannot take a file in safely (it lacks O_TMPFILE). Nothing was written."))
                .next("ask the human to move the workspace to a local file system"),
            Miss::NoSpace { need, free } => full(&path).fact("need", *need).fact("free", *free),
            Miss::Io { doing, error } => failed(&path, doing, error),
            Miss::Stuck { doing, error } => new(
                Code::IoError,
                format!("{doing} {path} failed: {error}. What was begun could not be taken back; every version is kept, and recovery decides before the next change."),
            )
            .next(format!("read_file {{\"path\":{}}} shows which version stands", json(&path))),
        }
    }
}

/// `EMFILE` and `ENFILE`: too many open files, for which there is no kind.
const TOO_MANY_FILES: [i32; 2] = [24, 23];

fn told_by_world(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    if error.raw_os_error().is_some_and(|errno| TOO_MANY_FILES.contains(&errno)) {
        return true;
    }
    matches!(
        error.kind(),
        Kind::StorageFull
            | Kind::QuotaExceeded
            | Kind::PermissionDenied
            | Kind::ReadOnlyFilesystem
            | Kind::CrossesDevices
            | Kind::ResourceBusy
            | Kind::NotFound
            | Kind::NotADirectory
            | Kind::AlreadyExists
            | Kind::InvalidFilename
            | Kind::TooManyLinks
    )
}

fn failed(path: &str, doing: &str, error: &io::Error) -> Refusal {
    use io::ErrorKind as Kind;
    let new = |code, message: String| Refusal::new(code, message).fact("path", path);
    match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => full(path),
        Kind::PermissionDenied => denied(path, &format!("{doing}: {error}")),
        Kind::ReadOnlyFilesystem => denied(path, "its file system is mounted read-only"),
        Kind::CrossesDevices => new(
            Code::CrossDevice,
            format!("{path} lies where it cannot be swapped in one step (another mount, an overlay's lower directory, or a project quota). Nothing was written."),
        )
        .next("create the file under a new name instead; it is never copied behind your back"),
        Kind::ResourceBusy => new(
            Code::CrossDevice,
            format!("{path} is itself a mount point, so it cannot be replaced. Nothing was written."),
        )
        .next("ask the human; a bind-mounted file can be changed only where it comes from"),
        Kind::NotFound | Kind::NotADirectory => {
            new(Code::NotFound, format!("The directory of {path} is gone. Nothing of this call stands."))
                .next("list_directory or search_files finds what is there")
        }
        _ => new(Code::IoError, format!("{doing} {path} failed: {error}. Nothing of this call stands."))
            .next("repeat the call; if it fails again, the human must look at the disk"),
    }
}

fn full(path: &str) -> Refusal {
    Refusal::new(
        Code::OutOfSpace,
        format!("There is not enough room on the disk to write {path}. The file is as it was."),
    )
    .fact("path", path)
    .next("ask the human to free space, then repeat the call")
}

fn denied(path: &str, why: &str) -> Refusal {
    Refusal::new(Code::PermissionDenied, format!("{path} cannot be replaced: {why}. Nothing was written."))
        .fact("path", path)
        .next("ask the human to change its permissions, or leave the file alone")
}

fn busy(file: FileId, path: &str) -> Refusal {
    let pids: Vec<String> = cotenant_tree::commit::writers(file).iter().map(u32::to_string).collect();
    let who = match pids.as_slice() {
        [] => "Another program".to_owned(),
        [pid] => format!("Process {pid}"),
        _ => format!("Processes {}", pids.join(", ")),
    };
    let refusal = Refusal::new(
        Code::Busy,
        format!("{who} has {path} open for writing; a change now could lose what is being written. Nothing was written."),
    )
    .fact("path", path);
    let refusal = if pids.is_empty() { refusal } else { refusal.fact("pids", pids) };
    refusal.next("repeat the call in a moment; if it stays busy, that program must close the file first")
}

/// `text` as a JSON string.
fn json(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for ch in text.chars() {
        match ch {
            '"' | '\\' => quoted.extend(['\\', ch]),
            ch if ch.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(ch))),
            ch => quoted.push(ch),
        }
    }
    quoted.push('"');
    quoted
}
