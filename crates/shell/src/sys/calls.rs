//! System calls as a child may make them: no allocation, no lock, the error as a number.

use std::ffi::CStr;
use std::os::fd::RawFd;

/// What a call of the child comes to; the error is `errno`.
pub(super) type Done<T = ()> = Result<T, i32>;

/// Not in libc for every target: `linux/mount.h`, `linux/openat2.h`.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_EMPTY_PATHS: libc::c_uint = 0x04 | 0x40;
const RESOLVE_NO_MAGICLINKS: u64 = 0x02;
const RESOLVE_NO_SYMLINKS: u64 = 0x04;
const RESOLVE_BENEATH: u64 = 0x08;
const MOUNT_ATTR_RDONLY: u64 = 0x01;
/// `fsconfig` commands.
const SET_FLAG: libc::c_uint = 0;
const SET_STRING: libc::c_uint = 1;
const SET_FD: libc::c_uint = 5;
const CREATE: libc::c_uint = 6;

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// A descriptor or number, or the error.
pub(super) fn number(result: libc::c_long) -> Done<RawFd> {
    if result < 0 { Err(errno()) } else { Ok(RawFd::try_from(result).unwrap_or(0)) }
}

/// The same without the number.
pub(super) fn done(result: libc::c_long) -> Done {
    number(result).map(drop)
}

#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    access: u64,
    parent: i32,
}

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

/// A path as the process sees it, not for reading.
pub(super) fn open_path(path: &CStr) -> Done<RawFd> {
    // SAFETY: the path is a C string that outlives the call.
    number(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) }.into())
}

/// A path beneath a directory, and never out of it; links on the way only where `links`.
pub(super) fn open_beneath(dir: RawFd, path: &CStr, links: bool) -> Done<RawFd> {
    let no_links = if links { 0 } else { RESOLVE_NO_SYMLINKS };
    let how = OpenHow {
        flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
        mode: 0,
        resolve: RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | no_links,
    };
    // SAFETY: both pointers lead to what outlives the call; the size is the structure's.
    number(unsafe {
        libc::syscall(libc::SYS_openat2, dir, path.as_ptr(), &raw const how, size_of::<OpenHow>())
    })
}

pub(super) fn close(fd: RawFd) {
    // SAFETY: a number; the caller owns the descriptor and does not use it again.
    unsafe { libc::close(fd) };
}

/// A copy of the mounts at and below `fd`, attached nowhere yet.
pub(super) fn clone_mounts(fd: RawFd) -> Done<RawFd> {
    let flags = OPEN_TREE_CLONE
        | libc::O_CLOEXEC as libc::c_uint
        | libc::AT_EMPTY_PATH as libc::c_uint
        | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: an empty C string and numbers.
    number(unsafe { libc::syscall(libc::SYS_open_tree, fd, c"".as_ptr(), flags) })
}

/// Makes a mount and what is mounted below it read-only.
pub(super) fn read_only(fd: RawFd) -> Done {
    let attr = MountAttr { set: MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = (libc::AT_EMPTY_PATH | libc::AT_RECURSIVE) as libc::c_uint;
    // SAFETY: the pointers lead to what outlives the call; the size is the structure's.
    done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    })
}

/// Puts a mount over the place that `to` names.
pub(super) fn attach(mount: RawFd, to: RawFd) -> Done {
    // SAFETY: empty C strings and numbers.
    done(unsafe {
        libc::syscall(libc::SYS_move_mount, mount, c"".as_ptr(), to, c"".as_ptr(), MOVE_MOUNT_EMPTY_PATHS)
    })
}

/// Cuts the mounts of this namespace off from those it was copied from.
pub(super) fn make_private() -> Done {
    let none = std::ptr::null();
    // SAFETY: C strings, numbers and null pointers, as the call takes them for a change of propagation.
    done(
        unsafe { libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, std::ptr::null()) }
            .into(),
    )
}

/// Makes the directory `root` the root of this namespace and lets go of the old one.
pub(super) fn pivot(root: RawFd) -> Done {
    // SAFETY: a number, then constant C strings.
    unsafe {
        done(libc::fchdir(root).into())?;
        done(libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()))?;
        done(libc::umount2(c".".as_ptr(), libc::MNT_DETACH).into())?;
        done(libc::chdir(c"/".as_ptr()).into())
    }
}

/// A file system in the making.
pub(super) struct NewFs(RawFd);

impl NewFs {
    pub(super) fn open(kind: &CStr) -> Done<NewFs> {
        // SAFETY: a C string and a number (`FSOPEN_CLOEXEC`).
        number(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1) }).map(NewFs)
    }

    pub(super) fn flag(&self, key: &CStr) -> Done {
        self.config(SET_FLAG, key.as_ptr(), std::ptr::null(), 0)
    }

    pub(super) fn text(&self, key: &CStr, value: &CStr) -> Done {
        self.config(SET_STRING, key.as_ptr(), value.as_ptr().cast(), 0)
    }

    /// A directory by its descriptor; kernels before 6.13 get its name below `/proc/self/fd`, as `old` knows it.
    pub(super) fn layer(&self, key: &CStr, old: &CStr, fd: RawFd) -> Done {
        match self.config(SET_FD, key.as_ptr(), std::ptr::null(), fd) {
            Ok(()) => Ok(()),
            Err(_) => self.text(old, FdPath::new(fd).as_c_str()),
        }
    }

    fn config(
        &self,
        what: libc::c_uint,
        key: *const libc::c_char,
        value: *const libc::c_void,
        aux: RawFd,
    ) -> Done {
        // SAFETY: `key` and `value` are C strings that outlive the call, or null where the command takes none.
        done(unsafe { libc::syscall(libc::SYS_fsconfig, self.0, what, key, value, aux) })
    }

    /// The file system as a mount that is attached nowhere yet.
    pub(super) fn mount(self, attributes: libc::c_uint) -> Done<RawFd> {
        let made = self.config(CREATE, std::ptr::null(), std::ptr::null(), 0);
        // SAFETY: numbers only (`FSMOUNT_CLOEXEC`).
        let mount =
            made.and_then(|()| number(unsafe { libc::syscall(libc::SYS_fsmount, self.0, 1, attributes) }));
        close(self.0);
        mount
    }
}

/// `/proc/self/fd/N`, written where nothing may be allocated.
struct FdPath([u8; 32]);

impl FdPath {
    fn new(fd: RawFd) -> FdPath {
        let mut text = [0; 32];
        let prefix = b"/proc/self/fd/";
        text[..prefix.len()].copy_from_slice(prefix);
        let mut digits = [0u8; 10];
        let mut left = fd.unsigned_abs();
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        let digits = &digits[at..];
        text[prefix.len()..prefix.len() + digits.len()].copy_from_slice(digits);
        FdPath(text)
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c"")
    }
}

/// Writes all of `bytes` to a file that exists.
pub(super) fn write_file(path: &CStr, bytes: &[u8]) -> Done {
    // SAFETY: the path is a C string that outlives the call.
    let fd = number(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) }.into())?;
    let written = write(fd, bytes);
    close(fd);
    written
}

/// Writes `bytes` in one call, as the files of the kernel and short records want it.
pub(super) fn write(fd: RawFd, bytes: &[u8]) -> Done {
    // SAFETY: pointer and length are those of a slice that outlives the call.
    done(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) } as libc::c_long)
}

/// Device and inode of what is open.
pub(super) fn ident(fd: RawFd) -> Done<(u64, u64)> {
    // SAFETY: an all-zero `stat` is a valid value of plain numbers.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer leads to a local that outlives the call.
    done(unsafe { libc::fstat(fd, &raw mut stat) }.into())?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Grants `access` at and below `at` in a Landlock ruleset.
pub(super) fn landlock_allow(ruleset: RawFd, at: RawFd, access: u64) -> Done {
    let rule = PathBeneath { access, parent: at };
    // SAFETY: the pointer leads to a rule of the type that the number 1 (`PATH_BENEATH`) announces.
    done(unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, 1, &raw const rule, 0) })
}

pub(super) fn landlock_restrict(ruleset: RawFd) -> Done {
    // SAFETY: numbers only.
    done(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) })
}

/// The Landlock ABI of the kernel; 0 where it has none or it is switched off.
pub(crate) fn landlock_abi() -> u32 {
    // SAFETY: with flag 1 (`VERSION`) the kernel reads no attributes; a null pointer and size 0 are what it asks for.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, 1 as libc::c_uint)
    };
    u32::try_from(abi).unwrap_or(0)
}

/// Leaves of the capabilities that a later `execve` could give only those in `keep`, and none inheritable.
pub(super) fn drop_capabilities(keep: u64) -> Done {
    for capability in 0..64u32 {
        if keep & (1 << capability) == 0 {
            // SAFETY: numbers only. Those the kernel does not know are an error that means nothing.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0) };
        }
    }
    let header = CapHeader { version: 0x2008_0522, pid: 0 };
    let (low, high) = (keep as u32, (keep >> 32) as u32);
    // Per half: effective, permitted, inheritable.
    let mut sets = [[0u32; 3]; 2];
    // SAFETY: the third version of the structure has two halves; both pointers lead to locals.
    done(unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) })?;
    for (half, kept) in sets.iter_mut().zip([low, high]) {
        *half = [half[0] & kept, half[1] & kept, 0];
    }
    // SAFETY: as above.
    done(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptors_path_is_written_without_allocating() {
        for fd in [0, 7, 10, 255, i32::MAX] {
            assert_eq!(FdPath::new(fd).as_c_str().to_str(), Ok(format!("/proc/self/fd/{fd}").as_str()));
        }
    }

    #[test]
    fn an_error_is_its_number() {
        assert_eq!(open_path(c"/there is nothing here"), Err(libc::ENOENT));
        assert_eq!(ident(-1), Err(libc::EBADF));
    }
}
