//! The system calls that a program inside may make: an allow list. Everything else fails as if the kernel
//! lacked it (ENOSYS), so that libraries take their older ways.
//!
//! On the list is what shells, awk, sed, perl and python need to compute, to read and write files, and to run
//! programs. Not on it, among others: mounts, namespaces, `setns`, keys, BPF, performance events, io_uring,
//! file handles, ptrace, userfaultfd, modules, clocks, memory files, System V memory, and sockets of any kind
//! but TCP, UDP, pings and connected pairs (so the host's Unix sockets, its hypervisor and its crypto
//! interface stay out of reach).

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule, TargetArch,
};

/// Flags of `clone(2)` that make namespaces (CLONE_NEWTIME is only for `clone3`, which is refused as a
/// whole).
const NEW_NAMESPACES: u64 = 0x7e02_0000;
/// Terminal controls: type for others (TIOCSTI), the console's (TIOCLINUX), take a terminal (TIOCSCTTY), take
/// the console's output (TIOCCONS). And requests at which the kernel loads a module: for frame relay
/// (SIOCADDDLCI, SIOCDELDLCI), VLANs (SIOCGIFVLAN, SIOCSIFVLAN) and bridges (SIOCGIFBR, SIOCSIFBR,
/// SIOCBRADDBR, SIOCBRDELBR).
const REFUSED_IOCTLS: [u64; 12] =
    [0x5412, 0x541c, 0x540e, 0x541d, 0x8980, 0x8981, 0x8982, 0x8983, 0x8940, 0x8941, 0x89a0, 0x89a1];
/// Commands of `fcntl(2)` by which a program makes others wait or gets notified: F_SETLEASE, F_NOTIFY.
const REFUSED_FCNTLS: [u64; 2] = [1024, 1026];
/// Options of sockets that take memory of the whole machine's budget for BPF: SO_ATTACH_FILTER,
/// SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF, SO_ATTACH_REUSEPORT_EBPF.
const FILTER_OPTIONS: [u64; 4] = [26, 50, 51, 52];
/// Families of sockets, and their kinds with protocols: TCP, UDP and pings. Others make the kernel load
/// modules, or lead out of the network namespace.
const FAMILIES: [u64; 2] = [libc::AF_INET as u64, libc::AF_INET6 as u64];
const SOCKETS: [(u64, u64); 6] = [(1, 0), (2, 0), (1, 6), (2, 17), (2, 1), (2, 58)];
/// Kinds of pairs: those that are connected for good. Datagrams could be sent to another socket, by its path.
const PAIRS: [u64; 2] = [libc::SOCK_STREAM as u64, libc::SOCK_SEQPACKET as u64];
/// The bits of a socket's kind that are no flags.
const SOCKET_KIND: u64 = 0xf;
/// The first of the options of IPv4 sockets by which iptables, arptables and ebtables work.
const FIRST_TABLE_OPTION: u64 = 64;
/// Those of IPv6 sockets.
const IPV6_TABLE_OPTIONS: [u64; 4] = [64, 65, 68, 69];

/// The filter for this machine.
///
/// # Errors
/// The architecture has none here (x86_64 and aarch64 do).
pub(crate) fn filter() -> Result<BpfProgram, BackendError> {
    if GENERIC.is_empty() {
        return Err(BackendError::InvalidTargetArch(std::env::consts::ARCH.to_owned()));
    }
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in GENERIC.iter().chain(LEGACY) {
        rules.insert(widened(*call), Vec::new());
    }
    let equal = |argument, value| Condition::new(argument, Width::Dword, Op::Eq, value);
    rules.insert(
        widened(libc::SYS_clone),
        vec![SeccompRule::new(vec![Condition::new(0, Width::Qword, Op::MaskedEq(NEW_NAMESPACES), 0)?])?],
    );
    let refused: Result<Vec<Condition>, BackendError> =
        REFUSED_IOCTLS.iter().map(|request| Condition::new(1, Width::Dword, Op::Ne, *request)).collect();
    rules.insert(widened(libc::SYS_ioctl), vec![SeccompRule::new(refused?)?]);
    let mut pairs = Vec::new();
    for kind in PAIRS {
        let kind = Condition::new(1, Width::Dword, Op::MaskedEq(SOCKET_KIND), kind)?;
        pairs.push(SeccompRule::new(vec![equal(0, libc::AF_UNIX as u64)?, kind])?);
    }
    rules.insert(widened(libc::SYS_socketpair), pairs);
    let refused: Result<Vec<Condition>, BackendError> =
        REFUSED_FCNTLS.iter().map(|command| Condition::new(1, Width::Dword, Op::Ne, *command)).collect();
    rules.insert(widened(libc::SYS_fcntl), vec![SeccompRule::new(refused?)?]);
    let mut sockets = Vec::new();
    for (family, (kind, protocol)) in
        FAMILIES.iter().flat_map(|family| SOCKETS.iter().map(move |socket| (family, socket)))
    {
        let kind = Condition::new(1, Width::Dword, Op::MaskedEq(SOCKET_KIND), *kind)?;
        sockets.push(SeccompRule::new(vec![equal(0, *family)?, kind, equal(2, *protocol)?])?);
    }
    rules.insert(widened(libc::SYS_socket), sockets);
    for call in [libc::SYS_setsockopt, libc::SYS_getsockopt] {
        rules.insert(widened(call), socket_options()?);
    }
    // The usual execution domain, and the question which it is.
    let domains =
        vec![SeccompRule::new(vec![equal(0, 0)?])?, SeccompRule::new(vec![equal(0, 0xffff_ffff)?])?];
    rules.insert(widened(libc::SYS_personality), domains);
    let refuse = SeccompAction::Errno(libc::ENOSYS as u32);
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?.try_into()
}

/// Options of sockets but filters, and those by which tables of iptables are read and written: their modules
/// are loaded for it.
fn socket_options() -> Result<Vec<SeccompRule>, BackendError> {
    let not = |argument, value| Condition::new(argument, Width::Dword, Op::Ne, value);
    let (ip, ipv6) = (libc::IPPROTO_IP as u64, libc::IPPROTO_IPV6 as u64);
    let is = |level| Condition::new(1, Width::Dword, Op::Eq, level);
    let socket = libc::SOL_SOCKET as u64;
    let filters: Result<Vec<Condition>, BackendError> =
        FILTER_OPTIONS.iter().map(|option| not(2, *option)).collect();
    let below = Condition::new(2, Width::Dword, Op::Lt, FIRST_TABLE_OPTION)?;
    let tables: Result<Vec<Condition>, BackendError> =
        IPV6_TABLE_OPTIONS.iter().map(|option| not(2, *option)).collect();
    Ok(vec![
        SeccompRule::new(vec![not(1, ip)?, not(1, ipv6)?, not(1, socket)?])?,
        SeccompRule::new([vec![is(socket)?], filters?].concat())?,
        SeccompRule::new(vec![is(ip)?, below])?,
        SeccompRule::new([vec![is(ipv6)?], tables?].concat())?,
    ])
}

/// Puts the filter over this process and all that it starts.
///
/// # Errors
/// The kernel has no seccomp filters.
pub(crate) fn apply(filter: &BpfProgram) -> Result<(), seccompiler::Error> {
    seccompiler::apply_filter(filter)
}

/// Numbers of system calls are `long`s: 32 bits on some machines.
#[allow(clippy::useless_conversion)]
fn widened(call: c_long) -> i64 {
    i64::from(call)
}

/// `fchmodat2(2)`, the same on every architecture; libc does not name it on all.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const FCHMODAT2: c_long = 452;

/// Calls that both architectures have.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[rustfmt::skip]
const GENERIC: &[c_long] = &[
    // Files and directories.
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64, libc::SYS_pwrite64,
    libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close, libc::SYS_close_range, libc::SYS_lseek, libc::SYS_fstat, libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs, libc::SYS_fstatfs, libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_getdents64,
    libc::SYS_getcwd, libc::SYS_chdir, libc::SYS_fchdir, libc::SYS_mkdirat, libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2, libc::SYS_linkat, libc::SYS_symlinkat, libc::SYS_readlinkat, libc::SYS_fchmod,
    libc::SYS_fchmodat, FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_umask, libc::SYS_truncate,
    libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fadvise64, libc::SYS_readahead, libc::SYS_utimensat,
    libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_flock, libc::SYS_dup, libc::SYS_dup3,
    libc::SYS_pipe2, libc::SYS_sendfile, libc::SYS_copy_file_range, libc::SYS_splice, libc::SYS_getxattr,
    libc::SYS_lgetxattr, libc::SYS_fgetxattr, libc::SYS_listxattr, libc::SYS_llistxattr, libc::SYS_flistxattr,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // Waiting.
    libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2, libc::SYS_eventfd2, libc::SYS_signalfd4, libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime, libc::SYS_timerfd_gettime, libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch, libc::SYS_nanosleep, libc::SYS_clock_nanosleep,
    // Memory.
    libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_mprotect, libc::SYS_madvise,
    libc::SYS_msync, libc::SYS_mincore, libc::SYS_membarrier,
    // Processes, threads and signals.
    libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal,
    libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getpgid, libc::SYS_setpgid,
    libc::SYS_getsid,
    libc::SYS_setsid, libc::SYS_set_tid_address, libc::SYS_set_robust_list, libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_futex, libc::SYS_sched_yield, libc::SYS_sched_getaffinity, libc::SYS_sched_setaffinity,
    libc::SYS_sched_getscheduler, libc::SYS_sched_getparam, libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min, libc::SYS_getpriority, libc::SYS_setpriority, libc::SYS_getcpu,
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigpending, libc::SYS_rt_sigtimedwait, libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sigaltstack, libc::SYS_restart_syscall, libc::SYS_getitimer, libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_settime, libc::SYS_timer_gettime, libc::SYS_timer_getoverrun, libc::SYS_timer_delete,
    libc::SYS_prctl, libc::SYS_seccomp,
    // User and group IDs, and resource limits.
    libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getresuid,
    libc::SYS_getresgid, libc::SYS_getgroups, libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid,
    libc::SYS_setregid, libc::SYS_setresuid, libc::SYS_setresgid, libc::SYS_setgroups, libc::SYS_setfsuid,
    libc::SYS_setfsgid, libc::SYS_capget, libc::SYS_capset, libc::SYS_getrlimit, libc::SYS_setrlimit,
    libc::SYS_prlimit64, libc::SYS_getrusage, libc::SYS_times, libc::SYS_sysinfo, libc::SYS_uname,
    // Time (reading it) and random numbers.
    libc::SYS_gettimeofday, libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_getrandom,
    // Sockets, once made.
    libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4, libc::SYS_connect,
    libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_sendto,
    libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_sendmmsg, libc::SYS_recvmmsg,
    libc::SYS_shutdown,
];

/// Older calls that programs for this architecture still make.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const LEGACY: &[c_long] = &[
    libc::SYS_open, libc::SYS_creat, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_getdents,
    libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_mknod, libc::SYS_unlink, libc::SYS_rename, libc::SYS_renameat,
    libc::SYS_link, libc::SYS_symlink, libc::SYS_readlink, libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown,
    libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat, libc::SYS_dup2, libc::SYS_pipe, libc::SYS_poll,
    libc::SYS_select, libc::SYS_epoll_create, libc::SYS_epoll_wait, libc::SYS_eventfd, libc::SYS_signalfd,
    libc::SYS_inotify_init, libc::SYS_fork, libc::SYS_vfork, libc::SYS_getpgrp, libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_time, libc::SYS_arch_prctl,
];

#[cfg(not(target_arch = "x86_64"))]
const LEGACY: &[c_long] = &[];

/// Without a list there is no filter, and without a filter nothing runs.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const GENERIC: &[c_long] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_threat_model_names_is_not_on_the_list() {
        let refused = [
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_io_uring_setup,
            libc::SYS_open_by_handle_at,
            libc::SYS_name_to_handle_at,
            libc::SYS_ptrace,
            libc::SYS_userfaultfd,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_clock_settime,
            libc::SYS_settimeofday,
            libc::SYS_adjtimex,
            libc::SYS_memfd_create,
            libc::SYS_shmget,
            libc::SYS_clone3,
            libc::SYS_pidfd_getfd,
            libc::SYS_process_vm_writev,
            libc::SYS_chroot,
            libc::SYS_pivot_root,
            libc::SYS_reboot,
            libc::SYS_sethostname,
        ];
        for call in refused {
            assert!(!GENERIC.contains(&call) && !LEGACY.contains(&call), "{call}");
        }
    }

    #[test]
    fn the_filter_fits_the_kernels_limit() {
        // BPF_MAXINSNS of linux/bpf_common.h.
        assert!(filter().is_ok_and(|program| program.len() < 4096));
    }
}
