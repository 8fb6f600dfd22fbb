//! The tool shims: this executable under the name of a tool, inside a captured script.
//!
//! A shim interprets nothing. It sends the call to the parent and does what the reply contains; only `sudo`
//! acts on its own, since it only has to run the rest.

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use tidegate_sandbox as sandbox;
use tidegate_sys::process;

use super::effect;
use super::input::{MAX_INPUT, input_name, is_stdin};
use super::wire::{self, Request};
use tidegate_shims::{Call, Reply, TOOLS, run_in_namespace, sysctl_path};

/// What tells the tools of a program in which network namespace it runs.
const NETNS: &str = "TIDEGATE_NETNS";

/// Files that scripts write to instead of calling a tool.
pub(super) const WATCHED: [&str; 3] = [
    "/sys/class/net/*/tx_queue_len",
    "/sys/class/net/*/mtu",
    "/sys/module/sch_htb/parameters/htb_hysteresis",
];

/// Plays a stage of the sandbox, or a tool's shim, if this process was started as one.
///
/// Call it first thing in `main`, before any thread starts. `None`: this is `tidegate` itself.
#[must_use]
pub fn dispatch() -> Option<u8> {
    sandbox::stage();
    let mut words = std::env::args_os();
    let name = words.next()?;
    let name = Path::new(&name).file_name()?.to_str()?.to_owned();
    (TOOLS.contains(&name.as_str()) || is_among_tools()).then(|| shim(&name, words.collect()))
}

/// Whether this process runs from the sandbox's directory of tools: under another name it is a program that
/// is not run.
fn is_among_tools() -> bool {
    std::env::current_exe().is_ok_and(|path| path.starts_with(sandbox::TOOLS))
}

/// Whether a shell started this process in the background: without job control it has such ones ignore
/// interrupts.
fn is_in_background() -> bool {
    const INTERRUPT: u64 = 1 << 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & INTERRUPT != 0)
}

fn shim(tool: &str, args: Vec<OsString>) -> u8 {
    if tool == "sudo" {
        return sudo(args);
    }
    let args: Vec<String> = args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    match call(tool, &args) {
        Ok(reply) if reply.code == 0 && run_in_namespace(tool, &args).is_some() => enter(tool, &args),
        Ok(reply) => {
            // The reader may have gone (`tc … | head -1`): that is not a failure of the call.
            let _ = io::stdout().write_all(&reply.stdout);
            let _ = io::stdout().flush();
            let _ = io::stderr().write_all(&reply.stderr);
            wire::files_of(&reply).for_each(effect::perform);
            // In the foreground a server that is not run would keep the script from its end.
            if reply.waits && (TOOLS.contains(&tool) || is_in_background()) {
                // Only a signal ends it; parking may end for no reason.
                loop {
                    std::thread::park();
                }
            }
            reply.code
        }
        // The run is over: the command that answered has given the reason, and this process ends with the
        // script.
        Err(error) if is_cut(&error) => 255,
        Err(error) => {
            eprintln!(
                "{tool}: this is tidegate under the name of {tool}, and no capture answers ({error}); run \
                the script with `tidegate try SCRIPT`"
            );
            255
        }
    }
}

/// Runs what `ip netns exec` runs; the tools that it calls say where they were called.
fn enter(tool: &str, args: &[String]) -> u8 {
    let Some((name, [program, words @ ..])) = run_in_namespace(tool, args) else { return 0 };
    let error = Command::new(program).args(words).env(NETNS, name).exec();
    let text = error.to_string();
    eprintln!("exec of \"{program}\" failed: {}", text.split(" (os error").next().unwrap_or(&text));
    1
}

/// Was a call that had been taken not answered any more?
fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn call(tool: &str, args: &[String]) -> io::Result<Reply> {
    // Elsewhere some service may listen at that port.
    if !Path::new(sandbox::TOOLS).is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "this is no sandbox"));
    }
    let (stdin, refused) = match input(tool, args) {
        Ok(stdin) => (stdin, None),
        Err(reason) => (None, Some(reason)),
    };
    let request = Request {
        call: Call {
            tool: tool.to_owned(),
            args: args.to_vec(),
            stdin,
            cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            netns: std::env::var(NETNS).ok(),
        },
        issuer: process::words_of(process::parent()),
        silenced: goes_to_null(),
        refused,
        files: files(tool, args),
    };
    let mut stream = TcpStream::connect(sandbox::ADDRESS)?;
    stream.set_nodelay(true)?;
    wire::write_request(&mut stream, &request)?;
    wire::read_reply(&mut BufReader::new(stream))
}

/// Files in which the script may have written something, and settings that the call is about.
fn files(tool: &str, args: &[String]) -> Vec<(String, String)> {
    let mut patterns: Vec<String> = WATCHED.iter().map(|path| (*path).to_owned()).collect();
    if tool == "sysctl" {
        patterns.extend(args.iter().filter_map(|arg| sysctl_path(arg)).take(64));
    }
    sandbox::watch::read(&patterns)
}

/// The tool's input: a batch file, or standard input where the call reads it.
fn input(tool: &str, args: &[String]) -> Result<Option<Vec<u8>>, String> {
    let Some(file) = input_name(tool, args) else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = if is_stdin(file) {
        io::stdin().take(MAX_INPUT).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|opened| opened.take(MAX_INPUT).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(Some(bytes)),
        Err(error) => {
            let text = error.to_string();
            let reason = text.split(" (os error").next().unwrap_or(&text);
            Err(format!("Cannot open file \"{file}\" for reading: {reason}\n"))
        }
    }
}

fn goes_to_null() -> bool {
    let Ok(ours) = io::stderr().as_fd().try_clone_to_owned().map(std::fs::File::from) else {
        return false;
    };
    use std::os::unix::fs::MetadataExt;
    match (ours.metadata(), std::fs::metadata("/dev/null")) {
        (Ok(ours), Ok(null)) => ours.rdev() == null.rdev() && ours.rdev() != 0,
        _ => false,
    }
}

/// Runs the rest of the words: inside a capture everyone is root already.
fn sudo(args: Vec<OsString>) -> u8 {
    let mut words = args.into_iter().peekable();
    while let Some(option) = words.next_if(|word| word.to_string_lossy().starts_with('-')) {
        let option = option.to_string_lossy().into_owned();
        if option == "--" {
            break;
        }
        if matches!(
            option.as_str(),
            "-u" | "-g" | "-p" | "-C" | "-h" | "-r" | "-t" | "-U" | "-D" | "-R" | "-T"
        ) {
            words.next();
        }
    }
    let mut settings = Vec::new();
    while let Some(word) = words.next_if(|word| word.to_string_lossy().contains('=')) {
        let text = word.to_string_lossy().into_owned();
        if let Some((name, value)) = text.split_once('=') {
            settings.push((name.to_owned(), value.to_owned()));
        }
    }
    let Some(program) = words.next() else {
        return 0;
    };
    let error = Command::new(&program).args(words).envs(settings).exec();
    eprintln!("sudo: {}: {error}", program.to_string_lossy());
    1
}
