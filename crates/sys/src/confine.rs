//! What a process gives up before it runs an untrusted program: namespaces, descriptors, keys, writable
//! mounts.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::io::FdFlags;
use rustix::thread::UnshareFlags;

/// `KEYCTL_JOIN_SESSION_KEYRING` of `keyctl(2)`.
const JOIN_SESSION_KEYRING: libc::c_int = 1;

/// Moves this process, which must have a single thread, into new namespaces.
///
/// # Errors
/// What `unshare(2)` reports; descriptors cannot be unshared here.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    if flags.contains(UnshareFlags::FILES) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the table of descriptors stays shared, so no descriptor with an owner disappears.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(Into::into)
}

/// Marks all descriptors from `first` on to be closed when this process executes another program.
///
/// # Errors
/// Neither `close_range(2)` nor `/proc/self/fd` can be had.
pub fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    let from = libc::c_uint::try_from(first).map_err(io::Error::other)?;
    // SAFETY: no descriptor is closed now, and no memory is passed.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            from,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC as libc::c_uint,
        )
    };
    if done == 0 {
        return Ok(());
    }
    // Before Linux 5.11.
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(fd) = entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()) else {
            continue;
        };
        if fd >= first {
            // SAFETY: the descriptor was open a moment ago, and one that is not is an error that changes
            // nothing.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            let _ = rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC);
        }
    }
    Ok(())
}

/// Leaves the session keyring for a new, empty one. A kernel without keyrings has nothing to leave.
///
/// # Errors
/// What `keyctl(2)` reports.
pub fn new_session_keyring() -> io::Result<()> {
    // SAFETY: a null name requests an anonymous keyring; no memory is passed.
    let ring =
        unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    match ring {
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
}

/// `struct mount_attr` of `mount_setattr(2)`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const _: () = assert!(size_of::<MountAttributes>() == 32);

const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_NOSUID: u64 = 0x2;
const MOUNT_ATTR_NODEV: u64 = 0x4;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;

/// Makes a mount, and all below it, read-only, without set-user-ID programs and without devices, in one step.
///
/// # Errors
/// What `mount_setattr(2)` reports; `ENOSYS` before Linux 5.12.
pub fn mount_read_only(mount: &impl AsFd) -> io::Result<()> {
    let flags = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    let attributes = MountAttributes { set: flags, clear: 0, propagation: 0, user_namespace: 0 };
    set_attributes(mount.as_fd(), libc::AT_RECURSIVE, &attributes)
}

/// Shows a detached mount's files as owned by the users that a user namespace maps them to.
///
/// # Errors
/// What `mount_setattr(2)` reports: the file system cannot do it, or the kernel is older than 5.12.
pub fn mount_idmapped(mount: &impl AsFd, user_namespace: &impl AsFd) -> io::Result<()> {
    let namespace = u64::try_from(user_namespace.as_fd().as_raw_fd()).map_err(io::Error::other)?;
    let set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    let attributes = MountAttributes { set, clear: 0, propagation: 0, user_namespace: namespace };
    set_attributes(mount.as_fd(), 0, &attributes)
}

fn set_attributes(mount: BorrowedFd<'_>, flags: libc::c_int, attributes: &MountAttributes) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | flags;
    // SAFETY: the path is an empty string with its closing zero; the kernel reads as many bytes of
    // `attributes` as the size that is passed, which is its own, and both live until the call returns.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
