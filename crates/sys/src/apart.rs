//! This program once more, apart from the machine: root among its own users, networks, processes and mounts.
//!
//! ```text
//! we ── start ──▶ outer: unshare ──▶ inner (process 1 of its namespace): goes on as the program, `apart` now
//! ```
//! When any of them dies, the kernel kills those to its right, and with the last one every namespace and
//! device is gone. The executable must call [`stage`] first thing in `main`.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::process::Signal;
use rustix::thread::UnshareFlags;

const OUTER: &str = "tidegate-apart-outer";
const INNER: &str = "tidegate-apart-inner";
/// The outer stage could not enter its namespaces; it has printed why.
const REFUSED: i32 = 125;

/// How a program that was started apart ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this code; 128 and more: by a signal.
    Code(u8),
    /// It could not be isolated; the reason is on standard error.
    Refused,
}

/// Runs this program with `words`, apart, with our input and output, and waits for it.
///
/// # Errors
/// It cannot be started at all.
pub fn run(words: &[OsString]) -> io::Result<Ended> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(OUTER).args(words);
    crate::process::die_with_parent(&mut command);
    // Ctrl-C reaches all of a terminal's programs; those inside decide what it means.
    let ignored = crate::interrupt::ignore();
    let status = command.status();
    drop(ignored);
    Ok(Ended::of(status?))
}

/// Starts this program with `words`, apart, with this socket as its input. It ends with us.
///
/// # Errors
/// It cannot be started at all.
pub fn start(words: &[OsString], input: OwnedFd) -> io::Result<Apart> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(OUTER).args(words).stdin(Stdio::from(input));
    Ok(Apart { child: crate::process::die_with_parent(&mut command).spawn()? })
}

/// A program that was started apart.
#[derive(Debug)]
pub struct Apart {
    child: Child,
}

impl Apart {
    /// Waits for its end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait(mut self) -> io::Result<Ended> {
        Ok(Ended::of(self.child.wait()?))
    }
}

impl Ended {
    fn of(status: ExitStatus) -> Ended {
        match code_of(status) {
            REFUSED => Ended::Refused,
            code => Ended::Code(u8::try_from(code & 0xff).unwrap_or(1)),
        }
    }
}

/// Plays the outer stage if that is what this process was started for, and never returns then. True: this
/// process is the one apart, and its first word has been taken for that.
///
/// Must be called before any thread is started.
#[must_use]
pub fn stage() -> bool {
    crate::attach::stage();
    let name = std::env::args_os().next().unwrap_or_default();
    if here() {
        let _ = own_proc();
        return true;
    }
    if name == OsStr::new(OUTER) {
        std::process::exit(match enter() {
            Ok(code) => code,
            Err((step, error)) => {
                eprintln!("tidegate: could not {step}: {error}");
                REFUSED
            }
        });
    }
    false
}

/// The outer stage: enters the namespaces, starts the inner one and waits for it.
fn enter() -> Result<i32, (&'static str, io::Error)> {
    let least = UnshareFlags::NEWNS | UnshareFlags::NEWNET;
    let rest = least | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    // Root needs no user namespace, unless it lacks capabilities; a small kernel may lack some namespaces.
    let root = rustix::process::geteuid().is_root();
    if !(root && unshare(rest).or_else(|_| unshare(least)).is_ok()) {
        become_root().map_err(|error| ("create a user namespace", error))?;
        unshare(rest).map_err(|error| ("create network, process and mount namespaces", error))?;
    }
    // A change of credentials forgets the earlier wish to die with the parent.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let ignored = crate::interrupt::ignore();
    let mut command = Command::new("/proc/self/exe");
    command.arg0(INNER).args(std::env::args_os().skip(1));
    crate::process::die_with_parent(&mut command);
    let status = command.status();
    drop(ignored);
    Ok(code_of(status.map_err(|error| ("start the first process inside", error))?))
}

/// A user namespace in which we are root, and no other user is mapped.
fn become_root() -> io::Result<()> {
    let (user, group) = (crate::process::effective_uid(), crate::process::effective_gid());
    unshare(UnshareFlags::NEWUSER)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1\n"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1\n"))
}

/// Is this process the one that was set apart?
#[must_use]
pub fn here() -> bool {
    std::env::args_os().next().is_some_and(|name| name == *INNER)
}

/// Gives a file another content, for the isolated process alone: one that is there, or, where the kernel lays
/// one directory over another for us (overlayfs), one that is not.
///
/// # Errors
/// There is no such file and no overlay, or no place for the text.
pub fn cover(path: &Path, text: &str) -> io::Result<()> {
    // We are process 1 of our namespaces; descriptors from before may belong to others.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let dir = std::env::temp_dir().join(format!("tidegate-{}-{}", std::process::id(), now.as_nanos()));
    std::fs::create_dir(&dir)?;
    let covered = cover_from(&dir, path, text);
    // The mount over the path keeps the file; it stays one with a name, so that it can be covered again.
    let _ = rustix::mount::unmount(&dir, UnmountFlags::DETACH);
    std::fs::remove_dir(&dir).and(covered)
}

/// Covers a file by way of a directory in memory.
fn cover_from(dir: &Path, path: &Path, text: &str) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", dir, "tmpfs", flags, None)?;
    if path.exists() {
        let own = dir.join("cover");
        std::fs::write(&own, text)?;
        return Ok(rustix::mount::mount_bind(&own, path)?);
    }
    let no_overlay = |error: io::Error| {
        let remedy = format!("there is none, and none can be laid over it; `touch {}`", path.display());
        io::Error::new(error.kind(), format!("{remedy} ({error})"))
    };
    lay_over(dir, path, text).map_err(no_overlay)
}

/// Lays a directory that has this file, too, over the one that lacks it.
fn lay_over(dir: &Path, path: &Path, text: &str) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let [upper, work] = ["upper", "work"].map(|name| dir.join(name));
    std::fs::create_dir(&upper)?;
    std::fs::create_dir(&work)?;
    std::fs::write(upper.join(name), text)?;
    // What overlayfs notes in files goes into attributes that we may write (Linux 5.11).
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr",
        parent.display(),
        upper.display(),
        work.display()
    );
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount("overlay", parent, "overlay", flags, &*CString::new(options)?)?)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: FILES is not among the flags, so descriptors stay as they are; the process has one thread here.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(Into::into)
}

/// Shows the processes of the new namespace in `/proc`; where that is not allowed, the old view stays.
fn own_proc() -> io::Result<()> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount("proc", Path::new("/proc"), "proc", quiet, None)?)
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}
