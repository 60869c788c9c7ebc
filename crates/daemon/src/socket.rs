//! Unix sockets by path, however long the path is.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// What an address of a Unix socket holds at most, in bytes.
const ADDRESS_MAX: usize = 107;

/// Connects; `NotFound` or `ConnectionRefused` where nobody listens.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let (path, _folder) = short(path)?;
    UnixStream::connect(path)
}

/// Listens at `path`, in the place of whatever is there. Only the user can connect, from the first moment.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    let fresh = path.with_extension("new");
    remove(&fresh)?;
    let (short_fresh, _folder) = short(&fresh)?;
    let listener = UnixListener::bind(short_fresh)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))?;
    fs::rename(&fresh, path)?;
    Ok(listener)
}

/// Removes a socket that may be there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A path that fits into an address: the path itself, or one through its folder's descriptor, which must be held
/// until the path was used.
fn short(path: &Path) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    if path.as_os_str().len() <= ADDRESS_MAX {
        return Ok((path.to_owned(), None));
    }
    let parent = path.parent().unwrap_or(Path::new("/"));
    let folder = open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let name = path.file_name().unwrap_or(OsStr::new("socket"));
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((path, Some(folder)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_path_longer_than_an_address_is_listened_at_and_replaced() {
        let folder = std::env::temp_dir().join(format!("cotenant-socket-{}", std::process::id()));
        let deep = folder.join("x".repeat(120));
        fs::create_dir_all(&deep).unwrap();
        let path = deep.join("a.sock");
        assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(listen(&path).unwrap());
        assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let listener = listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut client = connect(&path).unwrap();
        client.write_all(b"hi").unwrap();
        drop(client);
        let mut got = String::new();
        listener.accept().unwrap().0.read_to_string(&mut got).unwrap();
        assert_eq!(got, "hi");
        fs::remove_dir_all(folder).unwrap();
    }
}
