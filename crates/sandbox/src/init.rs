//! The first process inside: builds the file system and the links, opens the listener, gives up what it does
//! not need, runs programs and reaps them.

use std::ffi::{OsStr, OsString};
use std::io::{self, Stdin};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus};

use tidegate_sys::netlink::Links;

use crate::control::{Control, Message, words_of};
use crate::error::SandboxError;
use crate::paths::ADDRESS;
use crate::spec::Spec;
use crate::{confine, links, root, settings};

/// How often adopted processes that have ended are looked for while a program runs.
const REAP_EVERY: Duration = Duration::from_millis(100);
/// How often, and how far apart, processes that outlive their program are looked at before they are reported:
/// what read the program's output (`exec > >(logger)`) ends with it.
const LINGER_ROUNDS: usize = 50;
const LINGER: Duration = Duration::from_millis(5);
/// The largest command line that is gathered, bytes.
const MAX_WORDS: usize = 2 << 20;

/// Runs the stage; the return value is the exit code of the process.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> i32 {
    let control = Control::new(io::stdin());
    let own_users = words.next().as_deref() == Some(OsStr::new("user"));
    let Some(spec) = Spec::decode(words) else {
        return 1;
    };
    match prepare(&control, &spec, own_users)
        .and_then(|links| Init { control: &control, spec: &spec, links, words: Vec::new() }.serve())
    {
        Ok(()) => 0,
        Err(error) => {
            let _ = control.send(&Message::Failed(error));
            // Our end is the end of everything inside: the caller reads first.
            let _ = control.receive();
            1
        }
    }
}

fn prepare(control: &Control<Stdin>, spec: &Spec, own_users: bool) -> Result<Option<Links>, SandboxError> {
    let note = |text: String| drop(control.send(&Message::Note(text)));
    let visible = root::build(spec, own_users, control, &note)?;
    // Opened now: the filter refuses such sockets later, to us too.
    let mut links = Links::open().inspect_err(|error| note(format!("no links: netlink: {error}"))).ok();
    let usable = if spec.no_links { None } else { links.as_mut() };
    let missing = links::create_all(usable, &spec.links);
    if !missing.is_empty() {
        let names = missing.join(", ");
        note(format!(
            "no kernel link without loading a module: {names} exist as files in /sys and /proc/sys only"
        ));
        settings::cover_missing(&missing)
            .map_err(|error| SandboxError::new("stand in for settings of links", error))?;
    }
    let listener =
        TcpListener::bind(ADDRESS).map_err(|error| SandboxError::new("open the listener inside", error))?;
    std::env::set_current_dir(&spec.cwd)
        .map_err(|error| SandboxError::new("enter the working directory", error))?;
    confine::confine(spec, &visible)?;
    control
        .send_with(&Message::Listening, Some(listener.as_fd()))
        .map_err(|error| SandboxError::new("pass on the listener", error))?;
    Ok(links)
}

/// The first process at work.
struct Init<'a> {
    control: &'a Control<Stdin>,
    spec: &'a Spec,
    /// The kernel's links inside, if it has netlink.
    links: Option<Links>,
    /// The words of the next program, as far as they have come.
    words: Vec<u8>,
}

impl Init<'_> {
    /// Carries out the caller's requests until it closes the socket.
    fn serve(&mut self) -> Result<(), SandboxError> {
        while let Ok((message, fd)) = self.control.receive() {
            match message {
                Message::Run => {
                    let words = words_of(&std::mem::take(&mut self.words));
                    let main = self.start(&words, fd)?;
                    let ended = self.attend(main);
                    if others_run_on() {
                        let _ = self.control.send(&Message::OthersRun);
                    }
                    for (path, content) in crate::watch::read(&self.spec.watched) {
                        let _ = self.control.send(&Message::File(path, content));
                    }
                    let _ = self.control.send(&ended);
                }
                Message::End => break,
                other => self.answer(other),
            }
        }
        Ok(())
    }

    /// Answers the requests that are allowed at any time.
    fn answer(&mut self, message: Message) {
        let _ = match message {
            Message::Words(bytes) => {
                if self.words.len() + bytes.len() <= MAX_WORDS {
                    self.words.extend(bytes);
                }
                Ok(())
            }
            Message::Link(request) => {
                let done = self.links.as_mut().map_or(Ok(()), |links| request.perform(links));
                self.control.send(&Message::LinkDone(done.err().map(|error| error.to_string())))
            }
            Message::Open(path) => {
                let flags =
                    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
                match rustix::fs::open(&path, flags, Mode::empty()) {
                    Ok(file) => self.control.send_with(&Message::Opened, Some(file.as_fd())),
                    Err(_) => self.control.send(&Message::Opened),
                }
            }
            _ => Ok(()),
        };
    }

    fn start(&self, words: &[OsString], stdin: Option<OwnedFd>) -> Result<Pid, SandboxError> {
        let failed = |error| SandboxError::new("start the program", error);
        let (program, words) =
            words.split_first().ok_or_else(|| failed(io::Error::other("no program given")))?;
        let mut command = Command::new(program);
        if self.spec.private {
            // All else was taken away before the first stage.
            command.env("HOME", "/tmp");
        }
        let child = command
            .args(words)
            .env("PATH", path_with_tools())
            .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
            // A signal to its process group (`kill 0`) reaches no process outside.
            .process_group(0)
            .spawn()
            .map_err(|error| SandboxError::new(&format!("start {}", Path::new(program).display()), error))?;
        i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| failed(io::Error::other("no process")))
    }

    /// Answers the caller and reaps, ours or adopted, until `main` ends.
    fn attend(&mut self, main: Pid) -> Message {
        let pidfd = rustix::process::pidfd_open(main, PidfdFlags::empty()).ok();
        let mut listening = true;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == main => return ended(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => continue,
                Ok(None) => {}
                Err(_) => return Message::Exited(1),
            }
            let mut watched = Vec::new();
            if listening {
                watched.push(self.control.as_fd());
            }
            watched.extend(pidfd.as_ref().map(AsFd::as_fd));
            // Without a descriptor for the process (before Linux 5.3) its end is noticed at the next round.
            let ready = tidegate_sys::poll::readable(&watched, REAP_EVERY).unwrap_or_default();
            if listening && ready.first() == Some(&true) {
                match self.control.receive() {
                    Ok((Message::End, _)) | Err(_) => listening = false,
                    Ok((message, _)) => self.answer(message),
                }
            }
        }
    }
}

/// Do processes that the program started outlive it? Those that are about to end are given time to.
fn others_run_on() -> bool {
    for _ in 0..LINGER_ROUNDS {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => std::thread::sleep(LINGER),
            // There is no child left.
            Err(_) => return false,
        }
    }
    true
}

fn ended(status: WaitStatus) -> Message {
    let byte = |number: i32| u8::try_from(number & 0xff).unwrap_or(1);
    match status.terminating_signal() {
        Some(signal) => Message::Signalled(byte(signal)),
        None => Message::Exited(byte(status.exit_status().unwrap_or(1))),
    }
}

/// The caller's search path, with the usual directories behind it.
fn path_with_tools() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for dir in ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"] {
        if !dirs.iter().any(|known| known == Path::new(dir)) {
            dirs.push(dir.into());
        }
    }
    std::env::join_paths(dirs).unwrap_or(path)
}
