//! A program run where it can harm nothing: its own user, mount, network, process, IPC and host-name namespaces.
//!
//! Three processes of the same executable stand in a row, because a namespace must be entered by a process with a
//! single thread and a process namespace begins with the next child:
//!
//! ```text
//! parent ── Sandbox::start ──▶ outer: unshare ──▶ init (process 1): mounts, links, socket ──▶ the program
//!    ▲                                                  │
//!    └──────────── control socket: listener, notes, how it ended
//! ```
//! When any of them dies, the kernel kills those to its right and with the last one every mount and link is gone.
//! The file system the program sees is the host's, with a memory-backed layer on top: what it writes vanishes with it.
//! The executable must call [`stage`] first thing in `main`.

mod init;
mod mounts;
mod root;
pub mod watch;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use rustix::process::Signal;
use rustix::thread::UnshareFlags;

/// Where the program inside finds the socket of the parent.
pub const SOCKET: &str = "/run/tidegate/sock";
/// Where the program inside finds the executable under each tool's name.
pub const TOOLS: &str = "/run/tidegate/bin";

const OUTER: &str = "tidegate-sandbox-outer";
const INIT: &str = "tidegate-sandbox-init";
/// How long setting up may take before we call it failed.
const SETUP_LIMIT: Duration = Duration::from_secs(20);
/// Longest message on the control socket, in bytes.
const MESSAGE: usize = 4096;

/// What to run, and what it shall find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spec {
    /// The executable that plays the stages and the tools; normally our own.
    pub executable: PathBuf,
    /// The program's working directory.
    pub cwd: PathBuf,
    /// The programs with their words, run one after the other in the same world: [`Sandbox::go_on`] starts the second and so on.
    pub programs: Vec<Vec<OsString>>,
    /// Links that exist inside, beside `lo`.
    pub links: Vec<String>,
    /// Names under which the executable is found inside.
    pub tools: Vec<String>,
    /// Directories in which these names stand, whether the host has them (the names, the directories) or not.
    /// Absolute, free of symbolic links.
    pub tool_dirs: Vec<PathBuf>,
    /// Directories that must stay visible even under `/tmp`, `/run` or `/dev`, which are new inside.
    pub keep: Vec<PathBuf>,
    /// Directories of `/sys` that stand in memory, so that [`Spec::files`] can be put there. Those that the kernel lacks are left out.
    pub memory: Vec<PathBuf>,
    /// Files in those directories: absolute path, content.
    pub files: Vec<(PathBuf, String)>,
    /// Files whose content is told after each program, see [`watch::read`].
    pub watched: Vec<String>,
    /// Processes that may exist at once inside, where the kernel can hold to that: it refuses further ones. 0: no such limit.
    pub max_processes: u32,
    /// Do without overlays, as on kernels that have none: the host's files are then read-only inside.
    pub no_overlay: bool,
}

/// Why a sandbox could not be set up.
#[derive(Debug)]
pub struct SandboxError {
    /// What was being done.
    pub step: String,
    /// What went wrong.
    pub reason: String,
    /// True when the kernel or an administrator forbids it to us: another user, or another setting, may succeed.
    pub forbidden: bool,
}

/// What the sandbox reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Something could not be provided inside; the program runs without it.
    Note(String),
    /// A watched file and its content, after a program has ended.
    File(String, String),
    /// The program ended by itself with this code.
    Exited(u8),
    /// The program was ended by this signal.
    Signalled(u8),
    /// The program could not be started.
    Failed(String),
    /// The sandbox is gone.
    Gone,
}

/// A running sandbox. Dropping it kills everything inside and waits until it is gone.
#[derive(Debug)]
pub struct Sandbox {
    child: Child,
    control: OwnedFd,
    /// Listens at [`SOCKET`] inside.
    pub listener: UnixListener,
    /// What could not be provided.
    pub notes: Vec<String>,
}

impl Sandbox {
    /// Sets up the namespaces and starts the program. Its output and errors come through the two returned pipes.
    ///
    /// `user_namespace` false keeps the caller's own user namespace: that needs root, and is for kernels where
    /// user namespaces are forbidden.
    ///
    /// # Errors
    /// The step that failed.
    pub fn start(spec: &Spec, user_namespace: bool) -> Result<(Self, ChildStdout, ChildStderr), SandboxError> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| SandboxError::new("open the control socket", error.into()))?;
        let mut command = Command::new(&spec.executable);
        command
            .arg0(OUTER)
            .arg(if user_namespace { "user" } else { "root" })
            .args(spec.encode())
            .stdin(theirs)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        crate::process::die_with_parent(&mut command);
        let mut child = command.spawn().map_err(|error| SandboxError::new("start the sandbox process", error))?;
        // The command still holds the other end of the control socket: with it open we would not see its end.
        drop(command);
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(SandboxError::new("connect the program's output", io::Error::other("no pipe")));
        };
        let mut notes = Vec::new();
        match handshake(&ours, child.id(), &mut notes) {
            Ok(listener) => Ok((Self { child, control: ours, listener, notes }, stdout, stderr)),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Readable when [`Sandbox::report`] has something to say.
    #[must_use]
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// The next report; waits for it.
    pub fn report(&mut self) -> Report {
        match receive(&self.control) {
            Ok((message, _)) => match message.split_first() {
                Some((b'X', [code])) => Report::Exited(*code),
                Some((b'S', [signal])) => Report::Signalled(*signal),
                Some((b'C', text)) => {
                    let text = String::from_utf8_lossy(text);
                    let (path, content) = text.split_once('\0').unwrap_or((&text, ""));
                    Report::File(path.to_owned(), content.to_owned())
                }
                Some((b'N', text)) => Report::Note(String::from_utf8_lossy(text).into_owned()),
                Some((b'F', text)) => Report::Failed(SandboxError::decode(text).to_string()),
                _ => Report::Gone,
            },
            Err(_) => Report::Gone,
        }
    }

    /// Starts the next of [`Spec::programs`] when one has ended.
    ///
    /// # Errors
    /// The sandbox is gone.
    pub fn go_on(&mut self) -> io::Result<()> {
        send(&self.control, b"G", None)
    }

    /// The number of the first process of the sandbox, as the host sees it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The outer stage takes the namespaces' first process with it, and that one everything else.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Spec {
    fn encode(&self) -> Vec<OsString> {
        let mut words =
            vec![self.executable.clone().into(), self.cwd.clone().into(), u8::from(self.no_overlay).to_string().into()];
        words.push(self.max_processes.to_string().into());
        let mut lists: Vec<Vec<OsString>> = vec![
            self.links.iter().map(Into::into).collect(),
            self.tools.iter().map(Into::into).collect(),
            self.tool_dirs.iter().map(Into::into).collect(),
            self.keep.iter().map(Into::into).collect(),
            self.memory.iter().map(Into::into).collect(),
            self.files.iter().flat_map(|(path, text)| [path.into(), text.into()]).collect(),
            self.watched.iter().map(Into::into).collect(),
        ];
        lists.extend(self.programs.iter().cloned());
        for list in lists {
            words.push(list.len().to_string().into());
            words.extend(list);
        }
        words
    }

    fn decode(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let executable = words.next()?.into();
        let cwd = words.next()?.into();
        let no_overlay = words.next()? == OsStr::new("1");
        let max_processes = words.next()?.to_str()?.parse().ok()?;
        let mut list = || -> Option<Vec<OsString>> {
            let length: usize = words.next()?.to_str()?.parse().ok()?;
            (0..length).map(|_| words.next()).collect()
        };
        let texts = |list: Vec<OsString>| list.into_iter().map(|word| word.into_string().ok()).collect();
        let paths = |list: Vec<OsString>| list.into_iter().map(PathBuf::from).collect();
        let links: Option<Vec<String>> = texts(list()?);
        let tools: Option<Vec<String>> = texts(list()?);
        let (tool_dirs, keep, memory) = (paths(list()?), paths(list()?), paths(list()?));
        let pairs = list()?;
        let files = pairs.chunks_exact(2).map(|pair| Some((PathBuf::from(&pair[0]), pair[1].to_str()?.to_owned())));
        let files: Option<Vec<_>> = files.collect();
        let watched: Option<Vec<String>> = texts(list()?);
        let programs = std::iter::from_fn(list).collect();
        Some(Self {
            executable,
            cwd,
            programs,
            links: links?,
            tools: tools?,
            tool_dirs,
            keep,
            memory,
            files: files?,
            watched: watched?,
            max_processes,
            no_overlay,
        })
    }
}

impl SandboxError {
    fn new(step: &str, error: io::Error) -> Self {
        let forbidden = matches!(
            error.raw_os_error().map(rustix::io::Errno::from_raw_os_error),
            Some(
                rustix::io::Errno::PERM
                    | rustix::io::Errno::ACCESS
                    | rustix::io::Errno::NOSPC
                    | rustix::io::Errno::USERS
                    | rustix::io::Errno::INVAL
                    | rustix::io::Errno::NOSYS
            )
        );
        Self { step: step.to_owned(), reason: error.to_string(), forbidden }
    }

    fn encode(&self) -> Vec<u8> {
        let mut message = format!("F{}\0{}\0{}", u8::from(self.forbidden), self.step, self.reason).into_bytes();
        message.truncate(MESSAGE);
        message
    }

    fn decode(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut parts = text.splitn(3, '\0');
        let forbidden = parts.next() == Some("1");
        Self {
            step: parts.next().unwrap_or("set up").to_owned(),
            reason: parts.next().unwrap_or("unknown reason").to_owned(),
            forbidden,
        }
    }
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {}", self.step, self.reason)
    }
}

impl std::error::Error for SandboxError {}

/// Plays a stage of the sandbox if that is what this process was started for, and never returns then.
///
/// Must be called before any thread is started.
pub fn stage() {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let code = if name == OsStr::new(OUTER) {
        outer(words)
    } else if name == OsStr::new(INIT) {
        init::run(words)
    } else {
        return;
    };
    std::process::exit(code);
}

/// The first stage: enters the namespaces and starts the second.
fn outer(mut words: impl Iterator<Item = OsString>) -> i32 {
    let control = io::stdin();
    let user_namespace = words.next().as_deref() == Some(OsStr::new("user"));
    let words: Vec<OsString> = words.collect();
    match enter(&control.as_fd(), user_namespace, &words) {
        Ok(mut child) => child.wait().ok().and_then(|status| status.code()).unwrap_or(1),
        Err(error) => {
            let _ = send(&control, &error.encode(), None);
            1
        }
    }
}

fn enter(control: &BorrowedFd<'_>, user_namespace: bool, words: &[OsString]) -> Result<Child, SandboxError> {
    if user_namespace {
        unshare(UnshareFlags::NEWUSER).map_err(|error| SandboxError::new("create a user namespace", error))?;
        // Who we are inside is written by the parent: only it may map more than ourselves.
        let asked = send(control, b"M", None).and_then(|()| receive(control));
        if asked.map(|(message, _)| message).ok().as_deref() != Some(b"G") {
            return Err(SandboxError::new(
                "enter the user namespace",
                io::Error::other("the parent did not map our user"),
            ));
        }
    }
    let rest =
        UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    unshare(rest).map_err(|error| SandboxError::new("create mount and network namespaces", error))?;
    let executable = words.first().cloned().unwrap_or_default();
    let mut command = Command::new(executable);
    command.arg0(INIT).args(words);
    let inherited =
        control.try_clone_to_owned().map_err(|error| SandboxError::new("pass on the control socket", error))?;
    command.stdin(inherited);
    // A change of credentials forgets the earlier wish to die with the parent.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    crate::process::die_with_parent(&mut command);
    command.spawn().map_err(|error| SandboxError::new("start the first process inside", error))
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: FILES is not among the flags, so descriptors stay as they are; the process has one thread here.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(Into::into)
}

/// The parent's side of setting up: maps users when asked, until the listener arrives.
fn handshake(control: &OwnedFd, pid: u32, notes: &mut Vec<String>) -> Result<UnixListener, SandboxError> {
    const STEP: &str = "set up the sandbox";
    // Two messages and a note per link are all there can be; the bound is generous.
    for _ in 0..1024 {
        let ready =
            crate::poll::readable(&[control.as_fd()], SETUP_LIMIT).map_err(|error| SandboxError::new(STEP, error))?;
        if ready != [true] {
            return Err(SandboxError::new(STEP, io::Error::other("it did not answer for 20 s")));
        }
        let (message, fd) = receive(control).map_err(|error| SandboxError::new(STEP, error))?;
        match message.split_first() {
            Some((b'M', _)) => {
                map_users(pid).map_err(|error| SandboxError::new("map the user into the namespace", error))?;
                send(control, b"G", None).map_err(|error| SandboxError::new(STEP, error))?;
            }
            Some((b'N', text)) => notes.push(String::from_utf8_lossy(text).into_owned()),
            Some((b'F', text)) => return Err(SandboxError::decode(text)),
            Some((b'L', _)) => {
                return fd
                    .map(UnixListener::from)
                    .ok_or_else(|| SandboxError::new(STEP, io::Error::other("no listener came")));
            }
            _ => break,
        }
    }
    Err(SandboxError::new(STEP, io::Error::other("its process ended early")))
}

/// Maps the caller to root inside; a caller who is root keeps all users, so that permissions read as they are.
fn map_users(pid: u32) -> io::Result<()> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let (uid, gid) = (crate::process::effective_uid(), crate::process::effective_gid());
    if uid == 0 {
        let all = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}"));
        // A map of the identity over what we have ourselves: `inside outside count`, inside equal to outside.
        let identity = |map: &str| -> String {
            map.lines()
                .filter_map(|line| {
                    let mut fields = line.split_whitespace();
                    let (inside, _, count) = (fields.next()?, fields.next()?, fields.next()?);
                    Some(format!("{inside} {inside} {count}\n"))
                })
                .collect()
        };
        let whole = all("uid_map").and_then(|map| {
            std::fs::write(proc.join("uid_map"), identity(&map))?;
            std::fs::write(proc.join("gid_map"), identity(&all("gid_map")?))
        });
        if whole.is_ok() {
            return whole;
        }
    }
    std::fs::write(proc.join("setgroups"), "deny")?;
    std::fs::write(proc.join("uid_map"), format!("0 {uid} 1\n"))?;
    std::fs::write(proc.join("gid_map"), format!("0 {gid} 1\n"))
}

/// Sends one message, with a descriptor if there is one.
fn send(control: &impl AsFd, message: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    }
    rustix::net::sendmsg(control, &[io::IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message, empty at the end, with its descriptor if one came.
fn receive(control: &impl AsFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut buffer = vec![0_u8; MESSAGE];
    let received = rustix::net::recvmsg(
        control,
        &mut [io::IoSliceMut::new(&mut buffer)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    buffer.truncate(received.bytes);
    let fd = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        })
        .next();
    Ok((buffer, fd))
}

/// True when the path holds a byte that mount options cannot carry.
fn awkward(path: &std::path::Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b',' | b':' | b'\\' | b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_survives_the_command_line() {
        let spec = Spec {
            executable: "/bin/true".into(),
            cwd: "/a b".into(),
            programs: vec![vec!["sh".into(), "-c".into(), "".into()], vec!["true".into()]],
            links: vec!["eth0".into()],
            tools: vec!["tc".into(), "ip".into()],
            tool_dirs: vec!["/usr/sbin".into()],
            keep: Vec::new(),
            memory: vec!["/sys/module".into()],
            files: vec![("/sys/module/x".into(), "1\n".into())],
            watched: vec!["/sys/class/net/*/mtu".into()],
            max_processes: 7,
            no_overlay: true,
        };
        assert_eq!(Spec::decode(spec.encode().into_iter()), Some(spec));
    }

    #[test]
    fn an_error_survives_the_control_socket() {
        let error = SandboxError::new("try", io::Error::from_raw_os_error(1));
        assert!(error.forbidden);
        let back = SandboxError::decode(&error.encode()[1..]);
        assert_eq!((back.step, back.reason), (error.step, error.reason));
    }
}
