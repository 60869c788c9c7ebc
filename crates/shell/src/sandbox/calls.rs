//! The system calls a command may not make: those by which a sandbox is left, changed, or looked out of. Each fails with
//! `EPERM`, as for a user without the right.

use std::collections::BTreeMap;
use std::sync::Arc;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

use crate::sys::Filter;

/// Refused whatever the arguments are.
const REFUSED: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
];
/// Not in libc yet; the same number everywhere.
const OPEN_TREE_ATTR: i64 = 467;

/// Namespaces that could be made. `CLONE_NEWTIME` shares its bit with the signal in `clone`, so it is for `unshare` alone.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
const CLONE_NEWTIME: libc::c_int = 0x80;

/// Compiles the filter. Without `internet` not even a socket for it can be made: for where no network namespace cuts it.
pub(crate) fn filter(internet: bool) -> Result<Filter, String> {
    let rules = rules(internet).map_err(|error| error.to_string())?;
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let arch = std::env::consts::ARCH.try_into().map_err(|_| "no filter for this processor".to_owned())?;
    let compiled: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())?;
    Ok(preamble().into_iter().chain(compiled).map(instruction).collect::<Arc<[_]>>())
}

fn instruction(of: sock_filter) -> libc::sock_filter {
    libc::sock_filter { code: of.code, jt: of.jt, jf: of.jf, k: of.k }
}

/// What stands before the compiled rules. `clone3` hides its flags in memory: it is answered as by a kernel without
/// it, upon which libraries use `clone`. Other processors' calls (32 bits, x32) would pass by the numbers: refused.
fn preamble() -> Vec<sock_filter> {
    const LOAD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let native = match std::env::consts::ARCH {
        "aarch64" => 0xc000_00b7,
        "riscv64" => 0xc000_00f3,
        _ => 0xc000_003e,
    };
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let answer = |errno: i32| step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32);
    vec![
        step(LOAD, 0, 0, 4),
        step(JUMP_EQUAL, 1, 0, native),
        answer(libc::EPERM),
        step(LOAD, 0, 0, 0),
        step(JUMP_AT_LEAST, 0, 1, 0x4000_0000),
        answer(libc::EPERM),
        step(JUMP_EQUAL, 0, 1, libc::SYS_clone3 as u32),
        answer(libc::ENOSYS),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(internet: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let has = |arg: u8, bit: libc::c_int| {
        let bit = bit as u64;
        one(arg, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bit), bit)
    };
    let mut making = NAMESPACES.iter().map(|bit| has(0, *bit)).collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_clone, making.clone());
    making.push(has(0, CLONE_NEWTIME)?);
    rules.insert(libc::SYS_unshare, making);
    let request = |number: u64| one(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, number);
    rules.insert(libc::SYS_ioctl, vec![request(libc::TIOCSTI)?, request(TIOCLINUX)?]);
    rules.insert(libc::SYS_socket, sockets(internet)?);
    rules.insert(libc::SYS_socketpair, vec![is_none_of(&[libc::AF_UNIX])?]);
    Ok(rules)
}

const TIOCLINUX: u64 = 0x541c;

/// Sockets that are refused: other families than the usual ones, and of netlink all but routing, which tells programs
/// their own addresses.
fn sockets(internet: bool) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let usual: &[libc::c_int] = match internet {
        true => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        false => &[libc::AF_UNIX, libc::AF_NETLINK],
    };
    let netlink = SeccompRule::new(vec![
        condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::AF_NETLINK as u64)?,
        condition(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?,
    ])?;
    Ok(vec![is_none_of(usual)?, netlink])
}

fn is_none_of(families: &[libc::c_int]) -> Result<SeccompRule, seccompiler::BackendError> {
    let unequal =
        |family: &libc::c_int| condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *family as u64);
    SeccompRule::new(families.iter().map(unequal).collect::<Result<Vec<_>, _>>()?)
}

fn one(
    arg: u8,
    length: SeccompCmpArgLen,
    compare: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![condition(arg, length, compare, value)?])
}

fn condition(
    arg: u8,
    length: SeccompCmpArgLen,
    compare: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(arg, length, compare, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter answers to a call: a BPF interpreter for the few instructions there are.
    fn answer(filter: &[libc::sock_filter], arch: u32, number: i64, args: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend((number as u32).to_le_bytes());
        data.extend(arch.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        data.extend(args.iter().flat_map(|arg| arg.to_le_bytes()));
        let (mut at, mut a) = (0usize, 0u32);
        loop {
            let step = filter[at];
            at += 1;
            let jump = |yes: bool| usize::from(if yes { step.jt } else { step.jf });
            match step.code {
                0x20 => {
                    let word = &data[step.k as usize..][..4];
                    a = u32::from_le_bytes(word.try_into().unwrap());
                }
                0x54 => a &= step.k,
                0x05 => at += step.k as usize,
                0x15 => at += jump(a == step.k),
                0x25 => at += jump(a > step.k),
                0x35 => at += jump(a >= step.k),
                0x06 => return step.k,
                code => panic!("instruction {code:#x}"),
            }
        }
    }

    const NATIVE: u32 = if cfg!(target_arch = "aarch64") { 0xc000_00b7 } else { 0xc000_003e };
    const ALLOWED: u32 = 0x7fff_0000;
    const REFUSED_PERM: u32 = 0x0005_0001;
    const REFUSED_NOSYS: u32 = 0x0005_0026;

    fn judge(internet: bool, number: i64, args: &[u64]) -> u32 {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        answer(&filter(internet).unwrap(), NATIVE, number, all)
    }

    #[test]
    fn what_leaves_a_sandbox_is_refused_and_not_killed() {
        for call in REFUSED {
            assert_eq!(judge(true, *call, &[]), REFUSED_PERM, "{call}");
        }
        for call in [libc::SYS_read, libc::SYS_execve, libc::SYS_openat, libc::SYS_memfd_create] {
            assert_eq!(judge(true, call, &[]), ALLOWED, "{call}");
        }
    }

    #[test]
    fn namespaces_are_refused_and_threads_and_forks_are_not() {
        let thread =
            libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
        assert_eq!(judge(true, libc::SYS_clone, &[thread as u64]), ALLOWED);
        assert_eq!(judge(true, libc::SYS_clone, &[libc::SIGCHLD as u64]), ALLOWED);
        for bit in NAMESPACES {
            let flags = (*bit | libc::SIGCHLD) as u64;
            assert_eq!(judge(true, libc::SYS_clone, &[flags]), REFUSED_PERM, "{bit:#x}");
            assert_eq!(judge(true, libc::SYS_unshare, &[*bit as u64]), REFUSED_PERM, "{bit:#x}");
        }
        assert_eq!(judge(true, libc::SYS_unshare, &[0x80]), REFUSED_PERM);
        assert_eq!(judge(true, libc::SYS_unshare, &[libc::CLONE_FS as u64]), ALLOWED);
        assert_eq!(judge(true, libc::SYS_clone3, &[]), REFUSED_NOSYS);
    }

    #[test]
    fn sockets_are_the_usual_ones() {
        let socket = |internet, family: i32, protocol| {
            judge(internet, libc::SYS_socket, &[family as u64, libc::SOCK_STREAM as u64, protocol])
        };
        assert_eq!(socket(true, libc::AF_UNIX, 0), ALLOWED);
        assert_eq!(socket(true, libc::AF_INET, 6), ALLOWED);
        assert_eq!(socket(true, libc::AF_INET6, 0), ALLOWED);
        assert_eq!(socket(true, libc::AF_NETLINK, 0), ALLOWED);
        assert_eq!(socket(true, libc::AF_NETLINK, 9), REFUSED_PERM);
        for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, libc::AF_BLUETOOTH] {
            assert_eq!(socket(true, family, 0), REFUSED_PERM, "{family}");
        }
        assert_eq!(socket(false, libc::AF_INET, 0), REFUSED_PERM);
        assert_eq!(socket(false, libc::AF_INET6, 0), REFUSED_PERM);
        assert_eq!(socket(false, libc::AF_UNIX, 0), ALLOWED);
    }

    #[test]
    fn terminals_are_not_typed_into() {
        assert_eq!(judge(true, libc::SYS_ioctl, &[0, libc::TIOCSTI]), REFUSED_PERM);
        assert_eq!(judge(true, libc::SYS_ioctl, &[0, TIOCLINUX]), REFUSED_PERM);
        // The kernel looks at the low half only, and so must the filter.
        assert_eq!(judge(true, libc::SYS_ioctl, &[0, 1 << 32 | libc::TIOCSTI]), REFUSED_PERM);
        assert_eq!(judge(true, libc::SYS_ioctl, &[0, libc::TIOCGWINSZ]), ALLOWED);
    }

    #[test]
    fn calls_of_another_processor_are_refused() {
        let filter = filter(true).unwrap();
        assert_eq!(answer(&filter, 0x4000_0003, 4, [0; 6]), REFUSED_PERM);
        assert_eq!(answer(&filter, NATIVE, 0x4000_0000 | libc::SYS_ptrace, [0; 6]), REFUSED_PERM);
    }
}
