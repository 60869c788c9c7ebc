//! Namespaces that stay though no process is in them: a session's users and loopback.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Pid, WaitOptions, waitpid};

use super::calls;

/// A user namespace (where asked for), a network namespace with its loopback up, and one for what is shared by number.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The user namespace.
    pub(crate) user: Option<OwnedFd>,
    /// The network namespace; `None` where none was to be had.
    pub(crate) net: Option<OwnedFd>,
    /// The namespace of what processes share by number: message queues, semaphores, shared memory.
    pub(crate) ipc: Option<OwnedFd>,
}

/// Makes the namespaces and holds them open. With `user`, ids are mapped onto themselves: all that there are where we
/// are root, else our own.
pub(crate) fn hold(user: bool, net: bool) -> io::Result<Held> {
    let flags = if user { libc::CLONE_NEWUSER } else { 0 }
        | if net { libc::CLONE_NEWNET } else { 0 }
        | libc::CLONE_NEWIPC;
    let (go, tell) = (rustix::pipe::pipe_with(CLOEXEC)?, rustix::pipe::pipe_with(CLOEXEC)?);
    let flags = libc::c_ulong::from((flags | libc::SIGCHLD) as u32);
    // SAFETY: the child shares no memory with us and only makes system calls.
    let pid = match calls::number(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) }) {
        Ok(0) => unsafe { stand(net, &go, &tell) },
        Ok(pid) => pid,
        Err(errno) => return Err(io::Error::from_raw_os_error(errno)),
    };
    drop((go.0, tell.1));
    let held = take(pid, (user, net), File::from(go.1), File::from(tell.0));
    // It ends once its pipe is closed, however that went.
    let _ = Pid::from_raw(pid).map(|pid| waitpid(Some(pid), WaitOptions::empty()));
    held
}

const CLOEXEC: rustix::pipe::PipeFlags = rustix::pipe::PipeFlags::CLOEXEC;

/// Maps the ids, lets the child bring its loopback up, and opens what it is in.
fn take(pid: i32, (user, net): (bool, bool), mut go: File, mut tell: File) -> io::Result<Held> {
    if user {
        map_ids(pid)?;
    }
    go.write_all(&[1])?;
    let mut answer = [0];
    tell.read_exact(&mut answer)?;
    let open = |kind: &str, wanted: bool| {
        wanted.then(|| File::open(format!("/proc/{pid}/ns/{kind}")).map(OwnedFd::from)).transpose()
    };
    Ok(Held { user: open("user", user)?, net: open("net", net)?, ipc: open("ipc", true)? })
}

/// The child: brings the loopback up once it may, says so, and stands until the parent lets go.
///
/// # Safety
/// Only in a child that shares no memory.
unsafe fn stand(net: bool, go: &(OwnedFd, OwnedFd), tell: &(OwnedFd, OwnedFd)) -> ! {
    // SAFETY: system calls with numbers and pointers to locals.
    unsafe {
        let mut byte = [0u8];
        libc::close(go.1.as_raw_fd());
        libc::read(go.0.as_raw_fd(), byte.as_mut_ptr().cast(), 1);
        if net && loopback_up().is_err() {
            libc::_exit(1);
        }
        let _ = calls::write(tell.1.as_raw_fd(), &[1]);
        libc::read(go.0.as_raw_fd(), byte.as_mut_ptr().cast(), 1);
        libc::_exit(0)
    }
}

/// Switches the interface `lo` of the current network namespace on.
fn loopback_up() -> calls::Done {
    // SAFETY: numbers, and a pointer to a local structure that is all plain numbers.
    unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        let socket = calls::number(libc::socket(libc::AF_INET, kind, 0).into())?;
        let mut request: libc::ifreq = std::mem::zeroed();
        for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
            *place = *byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        let up = calls::done(libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request).into());
        calls::close(socket);
        up
    }
}

/// Maps ids of the child's user namespace onto themselves.
fn map_ids(pid: i32) -> io::Result<()> {
    let put = |file: &str, text: &str| std::fs::write(format!("/proc/{pid}/{file}"), text);
    if rustix::process::geteuid().is_root() {
        put("uid_map", &identity(&std::fs::read_to_string("/proc/self/uid_map")?))?;
        return put("gid_map", &identity(&std::fs::read_to_string("/proc/self/gid_map")?));
    }
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    put("setgroups", "deny")?;
    put("uid_map", &format!("{uid} {uid} 1"))?;
    put("gid_map", &format!("{gid} {gid} 1"))
}

/// A map in which every id that `map` knows stays as it is.
fn identity(map: &str) -> String {
    let lines = map.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (first, _, count) = (words.next()?, words.next()?, words.next()?);
        Some(format!("{first} {first} {count}\n"))
    });
    lines.collect()
}

/// Blocks every signal in the calling thread, and so in what it starts, until a command unblocks them. A child must
/// never run a handler of the daemon's.
pub(crate) fn quiet_thread() {
    // SAFETY: pointers to a local, and null for the old set.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_id_is_mapped_onto_itself() {
        assert_eq!(identity("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(identity("0 100000 1000\n1000 1000 1\n"), "0 0 1000\n1000 1000 1\n");
        assert_eq!(identity("broken\n"), "");
    }
}
