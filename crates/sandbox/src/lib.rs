#![forbid(unsafe_code)]
//! Runs untrusted programs where they can do no harm. The one place in tidegate that confines.
//!
//! Three processes of the same executable run one inside the other, because a namespace must be entered by a
//! process with a single thread and a process namespace begins with the next child:
//!
//! ```text
//! caller ── Sandbox::start ──▶ outer: new session, namespaces ──▶ init (process 1): root, links, confine ──▶ program
//!    ▲                                                              │
//!    └──────────────── control socket: listener, notes, exit codes ─┘
//! ```
//! When one of them dies, the kernel kills those to its right, and with the last one every mount and link is
//! gone. The executable must call [`stage`] first thing in `main`.
//!
//! What is closed, and what closes it (the threat model is in `docs/security.md`, each line is tested in
//! `crates/cli/tests/attacks.rs`):
//!
//! | attack surface | closed by |
//! |---|---|
//! | terminal (TIOCSTI, modes), signals to the caller's process group | `outer`: new session; `init`: own
//! process group; pipes |
//! | the caller's keyring, inherited file descriptors | `outer`: new session keyring; all but 0, 1, 2 closed
//! on exec |
//! | other processes, IPC, host name, network, cgroups | `outer`: namespaces; no cgroup file system is
//! mounted |
//! | files of the host, by content, mode, owner, times, attributes | `root`: overlays in memory, read-only
//! mounts |
//! | Unix sockets of the host, vsock, packet sockets, other families | `syscalls`: only IP and rtnetlink
//! sockets |
//! | mounts, nested namespaces, BPF, io_uring, ptrace, keyctl … | `syscalls`: an allow list; `confine`:
//! capabilities |
//! | kernel modules loaded on request | `confine`: no CAP_NET_ADMIN for programs; `links`: only kinds already
//! there |
//! | memory, processes, files, time | `cgroup`, `confine`: limits; bounded memory for files; the caller's
//! deadline |

mod cgroup;
mod confine;
mod control;
mod error;
mod idmap;
mod init;
mod links;
mod mounts;
mod outer;
mod paths;
mod root;
mod settings;
mod spec;
mod syscalls;
pub mod watch;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use cgroup::Cgroup;
pub use cgroup::Shortage;
use control::{Control, Message};
pub use error::SandboxError;
pub use links::LinkRequest;
pub use paths::{ADDRESS, TOOLS};
use paths::{INIT, OUTER};
pub use spec::{Spec, Users};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// How long an answer of the first process inside may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long the set-up may take.
const SETUP_LIMIT: Duration = Duration::from_secs(20);
/// What is kept of the environment where it is hidden; the home directory is to be known, so that it can be
/// hidden.
const PUBLIC: [&str; 7] = ["PATH", "LANG", "LC_ALL", "TERM", "TZ", "SHELL", "HOME"];
/// The most reports that are kept while an answer is awaited.
const MAX_REPORTS: usize = 4096;

/// What the sandbox reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Something could not be provided inside; the program runs without it.
    Note(String),
    /// A watched file and its content, after a program has ended.
    File(String, String),
    /// Processes that the program started run on after its end.
    OthersRun,
    /// The program exited with this code.
    Exited(u8),
    /// This signal ended the program.
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
    control: Control,
    early: VecDeque<Report>,
    /// Listens at [`ADDRESS`] inside.
    pub listener: TcpListener,
    /// What could not be provided.
    pub notes: Vec<String>,
    /// Bounds the memory of all inside; dropped last.
    cgroup: Option<Cgroup>,
}

impl Sandbox {
    /// Sets up the sandbox; nothing runs in it yet. Output and errors of all its programs come through the
    /// two pipes.
    ///
    /// # Errors
    /// The step that failed.
    pub fn start(spec: &Spec, users: Users) -> Result<(Self, ChildStdout, ChildStderr), SandboxError> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|error| SandboxError::new("open the control socket", error.into()))?;
        let cgroup = (spec.max_memory > 0).then(|| Cgroup::create(spec.max_memory, spec.max_processes));
        let cgroup = cgroup.flatten();
        let mut command = Command::new(&spec.executable);
        command
            .arg0(OUTER)
            .arg(if users == Users::Caller { "root" } else { "user" })
            .args(spec.encode())
            .stdin(theirs)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if spec.private {
            command.env_clear();
            command.envs(PUBLIC.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        tidegate_sys::process::die_with_parent(&mut command);
        let mut child =
            command.spawn().map_err(|error| SandboxError::new("start the sandbox process", error))?;
        // The command still holds the other end of the control socket: with it open we would not see its end.
        drop(command);
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(SandboxError::new("connect the program's output", io::Error::other("no pipe")));
        };
        let control = Control::new(ours);
        match set_up(&control, child.id(), spec, users, cgroup.as_ref()) {
            Ok((listener, notes)) => {
                Ok((Self { child, control, early: VecDeque::new(), listener, notes, cgroup }, stdout, stderr))
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Runs a program with these arguments, its name first; [`Sandbox::report`] gives how it ended. One at a
    /// time.
    ///
    /// # Errors
    /// The sandbox is gone, or the words are too long.
    pub fn run(&mut self, words: &[OsString]) -> io::Result<()> {
        self.control.send_words(words)?;
        self.control.send(&Message::Run)
    }

    /// The same, with a standard input: without one a program reads nothing.
    ///
    /// # Errors
    /// As for [`Sandbox::run`].
    pub fn run_reading(&mut self, words: &[OsString], stdin: BorrowedFd<'_>) -> io::Result<()> {
        self.control.send_words(words)?;
        self.control.send_with(&Message::Run, Some(stdin))
    }

    /// Readable when [`Sandbox::report`] has a report.
    #[must_use]
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Is there a report that came while an answer was awaited? [`Sandbox::control`] is silent about those.
    #[must_use]
    pub fn has_report(&self) -> bool {
        !self.early.is_empty()
    }

    /// The next report; waits for it.
    pub fn report(&mut self) -> Report {
        if let Some(report) = self.early.pop_front() {
            return report;
        }
        match self.control.receive() {
            Ok((message, _)) => report_of(message),
            Err(_) => Report::Gone,
        }
    }

    /// Changes a network link inside; programs there may not do that themselves.
    ///
    /// # Errors
    /// The kernel's error, or that the sandbox is gone.
    pub fn change_link(&mut self, request: &LinkRequest) -> io::Result<()> {
        match self.ask(&Message::Link(request.clone()))? {
            (Message::LinkDone(None), _) => Ok(()),
            (Message::LinkDone(Some(reason)), _) => Err(io::Error::other(reason)),
            _ => Err(io::Error::other("the sandbox answered something else")),
        }
    }

    /// Opens a regular file as the first process inside sees it, for reading; symbolic links are not
    /// followed.
    ///
    /// # Errors
    /// There is no such file, or the sandbox is gone.
    pub fn open(&mut self, path: &Path) -> io::Result<File> {
        match self.ask(&Message::Open(path.to_owned()))? {
            (Message::Opened, Some(fd)) => {
                let file = File::from(fd);
                // Never trust what was inside: a pipe would make the caller wait.
                if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Has the kernel ended a process inside for want of memory, and whose?
    #[must_use]
    pub fn ran_out_of_memory(&self) -> Option<Shortage> {
        self.cgroup.as_ref().and_then(Cgroup::ran_out)
    }

    /// The number of the outer process, as the host sees it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks and awaits the answer; reports that come first are kept.
    fn ask(&mut self, question: &Message) -> io::Result<(Message, Option<OwnedFd>)> {
        self.control.send(question)?;
        for _ in 0..MAX_REPORTS {
            if tidegate_sys::poll::readable(&[self.control.as_fd()], ANSWER_LIMIT)? != [true] {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let (message, fd) = self.control.receive()?;
            match message {
                Message::LinkDone(_) | Message::Opened => return Ok((message, fd)),
                Message::End => return Err(io::ErrorKind::BrokenPipe.into()),
                other => self.early.push_back(report_of(other)),
            }
        }
        Err(io::Error::other("too many reports"))
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The outer stage takes the namespaces' first process with it, and that one everything else.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn report_of(message: Message) -> Report {
    match message {
        Message::Exited(code) => Report::Exited(code),
        Message::Signalled(signal) => Report::Signalled(signal),
        Message::OthersRun => Report::OthersRun,
        Message::File(path, content) => Report::File(path, content),
        Message::Note(text) => Report::Note(text),
        Message::Failed(error) => Report::Failed(error.to_string()),
        _ => Report::Gone,
    }
}

/// Plays a stage of the sandbox if that is what this process was started for, and never returns then.
///
/// Must be called before any thread is started.
pub fn stage() {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let code = if name == OsStr::new(OUTER) {
        outer::run(words)
    } else if name == OsStr::new(INIT) {
        init::run(words)
    } else {
        return;
    };
    std::process::exit(code);
}

/// The caller's side of the set-up: the listener, and what could not be provided. No program inside runs
/// before this returns, so none is ever outside the control group.
fn set_up(
    control: &Control,
    outer: u32,
    spec: &Spec,
    users: Users,
    cgroup: Option<&Cgroup>,
) -> Result<(TcpListener, Vec<String>), SandboxError> {
    let (tell, receiver) = mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        // The kernel takes its time to move a process: meanwhile that one builds its root.
        let mover = std::thread::Builder::new()
            .spawn_scoped(scope, move || {
                receiver.recv().ok().zip(cgroup).map(|(init, cgroup)| cgroup.take(init))
            })
            .map_err(|error| SandboxError::new("start a thread", error))?;
        let mut notes = Vec::new();
        let listener = handshake(control, outer, spec, users, tell, &mut notes);
        if let Ok(Some(Err(error))) = mover.join() {
            notes.push(format!(
                "memory, or the number of processes, is not bounded by a control group: {error}"
            ));
        }
        listener.map(|listener| (listener, notes))
    })
}

/// Answers the stages until the listener has come and the first process inside is known, which is passed to
/// `tell`.
fn handshake(
    control: &Control,
    outer: u32,
    spec: &Spec,
    users: Users,
    tell: SyncSender<u32>,
    notes: &mut Vec<String>,
) -> Result<TcpListener, SandboxError> {
    const STEP: &str = "set up the sandbox";
    let (mut listener, mut started) = (None, false);
    for _ in 0..MAX_REPORTS {
        if started && let Some(listener) = listener.take() {
            return Ok(listener);
        }
        let ready = tidegate_sys::poll::readable(&[control.as_fd()], SETUP_LIMIT)
            .map_err(|error| SandboxError::new(STEP, error))?;
        if ready != [true] {
            return Err(SandboxError::new(STEP, io::Error::other("no answer for 20 s")));
        }
        let (message, fd) = control.receive().map_err(|error| SandboxError::new(STEP, error))?;
        match message {
            Message::MapUsers => {
                idmap::map_users(outer, users)
                    .and_then(|()| control.send(&Message::Mapped))
                    .map_err(|error| SandboxError::new("map the user into the namespace", error))?;
            }
            Message::WantMounts => {
                idmap::send_mounts(control, outer, users, spec)
                    .map_err(|error| SandboxError::new("map the host's files to spare users", error))?;
            }
            Message::Note(text) => notes.push(text),
            Message::Failed(error) => return Err(error),
            Message::Started(init) => {
                // The other end waits for one number, and there is room for it.
                let _ = tell.try_send(init);
                started = true;
            }
            Message::Listening => {
                let arrived =
                    fd.ok_or_else(|| SandboxError::new(STEP, io::Error::other("no listener came")))?;
                listener = Some(TcpListener::from(arrived));
            }
            _ => break,
        }
    }
    Err(SandboxError::new(STEP, io::Error::other("its process ended early")))
}
