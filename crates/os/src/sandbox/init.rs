//! The first process inside: builds the file system and the links, opens the socket, runs the program, reaps.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, WaitOptions};
use rustix::thread::CapabilitySet;

use super::{SOCKET, SandboxError, Spec, receive, root, send};
use crate::netlink::Links;

/// Bytes of memory that one process may fill.
const MAX_DATA: u64 = 1 << 30;
/// Packets in the transmit queue of an Ethernet device, as drivers set it.
const TXQLEN: u32 = 1000;

/// Runs the stage; the return value is the exit code of the process.
pub(super) fn run(words: impl Iterator<Item = OsString>) -> i32 {
    let control = io::stdin();
    let Some(spec) = Spec::decode(words) else {
        return 1;
    };
    match prepare(&control, &spec).and_then(|()| run_programs(&control, &spec)) {
        Ok(code) => code,
        Err(error) => {
            let _ = send(&control, &error.encode(), None);
            let _ = receive(&control);
            1
        }
    }
}

/// Runs the programs, each when the parent asks for it; the code of the last.
fn run_programs(control: &io::Stdin, spec: &Spec) -> Result<i32, SandboxError> {
    let mut last = 0;
    for words in &spec.programs {
        let (message, code) = reap(start(words)?);
        last = code;
        for (path, content) in super::watch::read(&spec.watched) {
            let mut file = format!("C{path}\0{content}").into_bytes();
            file.truncate(super::MESSAGE);
            let _ = send(control, &file, None);
        }
        let _ = send(control, &message, None);
        // Wait until the parent has taken the word. It asks for more, or closes: our end is the end of everything inside.
        match receive(control) {
            Ok((asked, _)) if asked == b"G" => {}
            _ => break,
        }
    }
    Ok(last)
}

fn prepare(control: &io::Stdin, spec: &Spec) -> Result<(), SandboxError> {
    let note = |text: String| {
        let mut message = format!("N{text}").into_bytes();
        message.truncate(super::MESSAGE);
        let _ = send(control, &message, None);
    };
    root::build(spec, &note)?;
    root::put_files(spec, &note)?;
    let missing = links(&spec.links, &note);
    if !missing.is_empty() {
        let names = missing.join(", ");
        note(format!("this kernel creates no link of a kind we know: {names} only stand in /sys/class/net"));
    }
    let listener = UnixListener::bind(SOCKET).map_err(|error| SandboxError::new("open the socket inside", error))?;
    std::env::set_current_dir(&spec.cwd).map_err(|error| SandboxError::new("enter the working directory", error))?;
    shed_capabilities();
    // One that gathers without end is refused memory before the host is short of it.
    for (resource, bytes) in [(Resource::Data, MAX_DATA), (Resource::Core, 0)] {
        let _ = rustix::process::setrlimit(resource, Rlimit { current: Some(bytes), maximum: Some(bytes) });
    }
    if spec.max_processes > 0 {
        // The kernel does not hold root to it; see also the highest process number.
        let limit = Some(u64::from(spec.max_processes) + 300);
        let _ = rustix::process::setrlimit(Resource::Nproc, Rlimit { current: limit, maximum: limit });
    }
    send(control, b"L", Some(listener.as_fd())).map_err(|error| SandboxError::new("pass on the socket", error))
}

/// Creates the links and returns those that this kernel would not.
fn links<'a>(names: &'a [String], note: &impl Fn(String)) -> Vec<&'a str> {
    let mut links = match Links::open() {
        Ok(links) => links,
        Err(error) => {
            note(format!("no links: netlink: {error}"));
            return names.iter().map(String::as_str).collect();
        }
    };
    let _ = links.up(1);
    let mut missing = Vec::new();
    for name in names {
        // `ifb0` is best made an ifb.
        let kind = if name.starts_with("ifb") { "ifb" } else { "dummy" };
        if links.create_like(name, kind, TXQLEN).is_err() {
            missing.push(name.as_str());
        }
    }
    missing
}

/// The program is root of its own small world, but may neither rearrange its mounts nor touch what is not its own.
fn shed_capabilities() {
    for capability in [
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::SYS_BOOT,
        CapabilitySet::SYS_MODULE,
        CapabilitySet::SYS_RAWIO,
        CapabilitySet::SYS_TIME,
        CapabilitySet::SYS_PTRACE,
        CapabilitySet::MKNOD,
    ] {
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
}

fn start(words: &[OsString]) -> Result<Pid, SandboxError> {
    let (program, words) = words
        .split_first()
        .ok_or_else(|| SandboxError::new("start the program", io::Error::other("no program given")))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for dir in ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"] {
        if !dirs.iter().any(|known| known == Path::new(dir)) {
            dirs.push(dir.into());
        }
    }
    let child = Command::new(program)
        .args(words)
        .env("PATH", std::env::join_paths(dirs).unwrap_or(path))
        .env("TIDEGATE_CAPTURE", SOCKET)
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| SandboxError::new(&format!("start {}", Path::new(program).display()), error))?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| SandboxError::new("start the program", io::Error::other("no process")))
}

/// Waits for every child, ours or adopted, until `main` ends.
fn reap(main: Pid) -> ([u8; 2], i32) {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => {
                let byte = |number: i32| u8::try_from(number & 0xff).unwrap_or(1);
                return if let Some(signal) = status.terminating_signal() {
                    ([b'S', byte(signal)], 128 + signal)
                } else {
                    let code = status.exit_status().unwrap_or(1);
                    ([b'X', byte(code)], code)
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return ([b'X', 1], 1),
        }
    }
}
