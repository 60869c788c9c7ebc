//! What can be wrong with a path, and how it is said to a client.

use cotenant_model::{Code, PathError, Refusal};
use rustix::io::Errno;

/// Characters of a path that a refusal shows.
const BRIEF: usize = 250;

/// What stands where a file was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAFile {
    /// A directory.
    Directory,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
    /// Links that lead in a circle, or too many of them.
    LinkLoop,
    /// A symbolic link itself.
    Link,
}

impl NotAFile {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            NotAFile::Directory => "directory",
            NotAFile::Fifo => "FIFO",
            NotAFile::Socket => "socket",
            NotAFile::Device => "device",
            NotAFile::LinkLoop => "link loop",
            NotAFile::Link => "link",
        }
    }
}

/// Why a path is not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// It leads out of its folder.
    #[error("{why}")]
    Outside {
        /// How.
        why: String,
        /// The path to use instead, where the target is inside after all.
        real: Option<String>,
    },
    /// It is protected, as asked for or as resolved.
    #[error("protected by {rule}")]
    Protected {
        /// The rule.
        rule: String,
    },
    /// Nothing stands there.
    #[error("there is no such file or directory")]
    NotFound,
    /// Something else than a regular file stands there.
    #[error("it is a {}, not a regular file", what.name())]
    NotAFile {
        /// What.
        what: NotAFile,
    },
    /// A component before the last is no directory, or a directory was wanted.
    #[error("{at} is not a directory")]
    NotADirectory {
        /// The path of that component.
        at: String,
    },
    /// A link in it leads to a name or path that is too long.
    #[error("a name is over 255 bytes or a path over 4,095 bytes")]
    NameTooLong,
    /// It lies on another mount than its folder.
    #[error("{mount} is a mount point")]
    CrossDevice {
        /// The mount point.
        mount: String,
    },
    /// The system's permissions forbid it.
    #[error("the system denies access")]
    Permission,
    /// The file is too large for what was asked.
    #[error("it has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// Its length in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The path kept changing while it was looked up.
    #[error("the path keeps changing")]
    Changing,
    /// The system failed.
    #[error("{doing}: {errno}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        errno: Errno,
    },
}

impl TreeError {
    /// The error for what the system said while `doing`. Links are dealt with before.
    pub(crate) fn of(errno: Errno, doing: &'static str) -> TreeError {
        match errno {
            Errno::NOENT => TreeError::NotFound,
            Errno::LOOP => TreeError::NotAFile { what: NotAFile::LinkLoop },
            Errno::ACCESS | Errno::PERM => TreeError::Permission,
            Errno::NAMETOOLONG => TreeError::NameTooLong,
            Errno::ISDIR => TreeError::NotAFile { what: NotAFile::Directory },
            // A socket, or a device without a driver.
            Errno::NXIO => TreeError::NotAFile { what: NotAFile::Socket },
            errno => TreeError::Io { doing, errno },
        }
    }

    /// The answer to a client. `shown` is the path as the client is told it; near paths are the caller's to add.
    pub fn refusal(&self, shown: &str) -> Refusal {
        let shown = &brief(shown);
        let new = |code, message: String| Refusal::new(code, message).fact("path", shown.as_str());
        match self {
            TreeError::Outside { why, real } => {
                let refusal =
                    new(Code::PathOutside, format!("{shown} leads out of the allowed folders: {why}."));
                match real {
                    Some(real) if is_brief(real) => {
                        refusal.fact("real", real.as_str()).next(format!("the same call with path {real}"))
                    }
                    _ => refusal.next("use a path inside the allowed folders; whoami lists them"),
                }
            }
            TreeError::Protected { rule } => new(
                Code::PathProtected,
                format!("{shown} is protected by the rule {rule}: the file tools neither read nor write it."),
            )
            .fact("rule", rule.as_str())
            .next(
                "leave it to the human; an exception is a line in cotenant.toml, which only they can write",
            ),
            TreeError::NotFound => new(Code::NotFound, format!("There is no {shown}."))
                .next("list_directory or search_files finds what is there"),
            TreeError::NotAFile { what } => not_a_file(*what, new),
            TreeError::NotADirectory { at } => {
                let at = brief(at);
                new(Code::NotADirectory, format!("{at} is not a directory."))
                    .next(format!("drop what follows {at}, or choose a directory"))
                    .fact("at", at)
            }
            TreeError::NameTooLong => path_refusal(&PathError::NameTooLong, shown),
            TreeError::CrossDevice { mount } => {
                let mount = brief(mount);
                new(
                    Code::PathOutside,
                    format!("{mount} is a mount point: it does not belong to the allowed folder."),
                )
                .fact("mount", mount)
                .next("ask the human to allow it as a further folder")
            }
            TreeError::Permission => {
                new(Code::PermissionDenied, format!("The system denies access to {shown}."))
                    .next("ask the human to change its permissions")
            }
            TreeError::TooLarge { size, limit } => {
                new(Code::TooLarge, format!("{shown} has {size} bytes; the limit here is {limit}."))
                    .fact("size", *size)
                    .fact("limit", *limit)
                    .next("read_file with start and limit, or search_files with this path")
            }
            TreeError::Changing => new(Code::Busy, format!("{shown} kept changing while it was looked up."))
                .next("repeat the call"),
            TreeError::Io { doing, errno } => {
                new(Code::IoError, format!("{doing} {shown} failed: {errno}.")).next("repeat the call once")
            }
        }
    }
}

fn not_a_file(what: NotAFile, new: impl Fn(Code, String) -> Refusal) -> Refusal {
    let refusal =
        new(Code::NotAFile, format!("It is a {}, not a regular file.", what.name())).fact("is", what.name());
    match what {
        NotAFile::Directory => refusal.next("list_directory with the same path"),
        _ => refusal.next("choose a regular file; list_directory shows what is there"),
    }
}

/// The answer to a text that is no path at all. `given` is the text.
pub fn path_refusal(error: &PathError, given: &str) -> Refusal {
    let code = match error {
        PathError::Empty => Code::BadInput,
        _ => Code::PathOutside,
    };
    let refusal = Refusal::new(code, format!("{error}.")).fact("path", brief(given));
    match error {
        PathError::DotDot { cleaned: Some(cleaned) } if is_brief(cleaned) => {
            refusal.fact("cleaned", cleaned.as_str()).next(format!("the same call with path {cleaned}"))
        }
        _ => refusal.next("use a path relative to the root; whoami lists the allowed folders"),
    }
}

fn is_brief(path: &str) -> bool {
    path.chars().nth(BRIEF).is_none()
}

/// A path of any length as it fits into a refusal, which is short: its beginning, at the most.
fn brief(path: &str) -> String {
    match path.char_indices().nth(BRIEF) {
        None => path.to_owned(),
        Some((end, _)) => format!("{}…", &path[..end]),
    }
}
