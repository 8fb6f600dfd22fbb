//! Namespaces of others behind the line.
//!
//! ```text
//! outside (this command as it was started)                 inside (set apart: the network)
//!   ◀── a line for each: HOST ADDRESS BYTES ──────────────── lays the network out
//!   makes a device in each namespace ─── descriptors ──────▶ reads and writes packets
//!   ◀── ready ──────────────────────────────────────────────
//!   runs the program ─── ended CODE ───────────────────────▶ writes what was measured
//! ```
//! The devices are there as long as their descriptors are: with both processes gone nothing is left.

use super::names::{SERVER, YOU};
use super::options::Options;
use super::program::{code_of, command_of, in_words};
use crate::exit::CliExit;
use anyhow::Context;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use tidegate_lab::experiment::host_place;
use tidegate_scenario::lay::LaidOut;
use tidegate_scenario::model::Scenario;
use tidegate_sys::apart::{self, Ended};
use tidegate_sys::attach::{self, AttachedDevice, NamespaceName};
use tidegate_sys::tun::Tun;

/// The device in a namespace that is behind the line.
const DEVICE: &str = "tidegate0";
/// The longest line that is read.
const MAX_LINE: u64 = 200;
/// How often it is looked whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);

/// The hosts that are namespaces of others.
fn attached(options: &Options) -> Vec<(&'static str, &str)> {
    let all = [(YOU, &options.attach), (SERVER, &options.attach_server)];
    all.into_iter().filter_map(|(host, name)| Some((host, name.as_deref()?))).collect()
}

/// Does the program run outside?
pub(super) fn is_wanted(options: &Options) -> bool {
    !attached(options).is_empty()
}

/// Outside: has the network made, puts the namespaces behind it, and runs the program.
pub(super) fn outside(options: &Options) -> anyhow::Result<ExitCode> {
    let wanted = attached(options);
    let find = |(host, name): &(&'static str, &str)| {
        let name = NamespaceName::find(name).map_err(|why| anyhow::anyhow!("{}: {why}", option(host)))?;
        if name.is_ours() {
            anyhow::bail!(
                "{} {name}: that is the network of this machine, or the one that tidegate runs in: all its traffic would \
                 go behind the line; make a namespace for it (ip netns add NAME)",
                option(host)
            );
        }
        Ok((*host, name))
    };
    let names: Vec<(&str, NamespaceName)> = wanted.iter().map(find).collect::<anyhow::Result<_>>()?;
    let (ours, theirs) = UnixStream::pair().context("cannot make a socket")?;
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let inside = apart::start(&words, OwnedFd::from(theirs)).context("cannot start")?;
    let mut lines = BufReader::new(ours.try_clone()?);
    let (mut devices, mut places) = (Vec::new(), Vec::new());
    for (host, name) in &names {
        // Without a line, it has said why.
        let Some(line) = line(&mut lines)? else { return ended(inside.wait()?) };
        let device = device(&line, host).context("the network's process said something else")?;
        match attach::attach(name, &device) {
            Ok(made) => devices.push(made),
            Err(why) => {
                eprintln!("tidegate shell: {}: {why}", option(host));
                let exit = if why.is_denied { CliExit::NotPermitted } else { CliExit::Input };
                return Ok(exit.into());
            }
        }
        places.push(format!("`{name}` is `{host}` ({}, on {DEVICE})", device.address));
    }
    attach::send(ours.as_fd(), &devices.iter().map(AsFd::as_fd).collect::<Vec<_>>())?;
    drop(devices);
    let Some(_ready) = line(&mut lines)? else { return ended(inside.wait()?) };
    let code = match options.program.is_empty() {
        true => {
            let stop = tidegate_sys::interrupt::notice();
            eprintln!("tidegate shell: {}; Ctrl-C ends it", places.join("; "));
            // The network may end before, which it says.
            let gone = watch(lines);
            while !stop.load(Ordering::Relaxed)
                && gone.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout)
            {}
            0
        }
        false => {
            let _passed = tidegate_sys::interrupt::ignore();
            let mut command = command_of(options);
            if options.json {
                tidegate_sys::process::output_to_stderr(&mut command);
            }
            let status = command.status().with_context(|| format!("cannot start {}", in_words(options)))?;
            code_of(status)
        }
    };
    // Who ended before has no use for it.
    let _ = (&ours).write_all(format!("ended {code}\n").as_bytes());
    let _ = ours.shutdown(std::net::Shutdown::Write);
    match inside.wait()? {
        Ended::Code(0) => Ok(ExitCode::from(code)),
        // An expectation that fails is said where the program did not fail.
        Ended::Code(of_line) if of_line == u8::from(CliExit::Unmet) && code != 0 => Ok(ExitCode::from(code)),
        other => ended(other),
    }
}

/// How a process inside ended that has said why.
fn ended(how: Ended) -> anyhow::Result<ExitCode> {
    Ok(match how {
        Ended::Code(code) => ExitCode::from(code),
        Ended::Refused => {
            super::super::refused();
            CliExit::NotPermitted.into()
        }
    })
}

fn option(host: &str) -> &'static str {
    if host == YOU { "--attach" } else { "--attach-server" }
}

/// A line from the other process; `None`: it has ended.
fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    from.take(MAX_LINE).read_line(&mut line)?;
    Ok(line.strip_suffix('\n').map(str::to_owned))
}

/// Hears of the end of what is read.
fn watch(mut from: impl Read + Send + 'static) -> Receiver<()> {
    let (ended, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut io::sink());
        let _ = ended.send(());
    });
    receiver
}

/// `you 192.168.1.2 1500`.
fn device(line: &str, host: &str) -> Option<AttachedDevice> {
    let mut words = line.strip_prefix(host)?.split_whitespace();
    let (address, mtu) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(AttachedDevice { device: DEVICE.to_owned(), address, mtu })
}

/// Inside: the other process.
pub(super) struct Outside {
    socket: UnixStream,
}

impl Outside {
    /// Its socket is our input.
    pub(super) fn new() -> anyhow::Result<Outside> {
        let input = io::stdin().as_fd().try_clone_to_owned().context("there is no other process")?;
        Ok(Outside { socket: UnixStream::from(input) })
    }

    /// Has the devices made; `None`: it could not, and has said why.
    pub(super) fn devices(
        &mut self,
        options: &Options,
        scenario: &Scenario,
        laid: &mut LaidOut,
    ) -> anyhow::Result<Option<Vec<(&'static str, Tun)>>> {
        let wanted = attached(options);
        for (host, _) in &wanted {
            let (address, mtu) = host_place(scenario, laid, host)?;
            writeln!(self.socket, "{host} {address} {mtu}")?;
        }
        let devices = attach::receive(self.socket.as_fd())?;
        if devices.len() != wanted.len() {
            return Ok(None);
        }
        let named = wanted.into_iter().zip(devices).map(|((host, _), fd)| (host, Tun::attached(fd)));
        Ok(Some(named.collect()))
    }

    /// Has the program started; what is returned hears how it ended.
    pub(super) fn begin(mut self) -> anyhow::Result<Receiver<u8>> {
        writeln!(self.socket, "ready")?;
        let (ended, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let said = line(&mut BufReader::new(self.socket)).ok().flatten();
            let code = said.and_then(|line| line.strip_prefix("ended ")?.parse().ok());
            let _ = ended.send(code.unwrap_or(1));
        });
        Ok(receiver)
    }
}
