//! What is put back when a controller ends, however it ends: written down before the first change, and
//! carried out by the process itself, by a guard that outlives it, or by the next one.

use super::shaper::FoundShaper;
use crate::error::{Context, Error, Result, invalid};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tidegate_daemon::RuntimeDir;
use tidegate_measure::numbers;
use tidegate_netlink::{Kernel, encode};
use tidegate_sys::netlink::Links;
use tidegate_sys::netlink_socket::NetlinkSocket;
use tidegate_sys::service::{self, Alone};
use tidegate_sys::{boot, input_file, output_file};

/// How long a guard may take to be ready.
const PATIENCE: Duration = Duration::from_secs(10);
const READY: &str = "ready";
/// How long a guard tries to put back what the kernel refuses, and how often.
const TRIES: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(250);
/// How long a new process waits for the guard of the one before.
const GUARD_ENDS: Duration = Duration::from_secs(7);
/// How the kernel refuses a change of what is not there, or of another kind: ENOENT, EEXIST, EINVAL,
/// EOPNOTSUPP. Other refusals may pass.
const ANOTHER: [i32; 4] = [2, 17, 22, 95];
/// The most messages of one file, and bytes.
const MAX_MESSAGES: usize = 1024;
const MAX_BYTES: u64 = 1 << 20;

/// The lock of a device; `Err`: who has it.
///
/// # Errors
/// Another process controls the rate of this device.
pub(super) fn lock(runtime: &RuntimeDir, dev: &str) -> Result<Alone> {
    runtime
        .make()
        .context("the directory for what is controlled cannot be made (TIDEGATE_RUN names another)")?;
    let path = runtime.steering(dev);
    let at = || {
        format!(
            "{}: the lock of {dev} cannot be taken; remove that file if it is none of tidegate's, or name \
             another directory with TIDEGATE_RUN",
            path.display()
        )
    };
    // A process works as long as it likes; a guard is done after a moment, and has written nothing for us.
    let patience = if runtime.steered(dev).exists() && holder_is_guard(runtime, dev) {
        GUARD_ENDS
    } else {
        Duration::from_millis(300)
    };
    match RuntimeDir::take_within(&path, patience).context(at())? {
        Some(alone) => Ok(alone),
        None => controlled(dev, RuntimeDir::holder(&path).unwrap_or(0)),
    }
}

fn controlled<T>(dev: &str, pid: u32) -> Result<T> {
    invalid(format!("the rate of {dev} is controlled already, by process {pid}: end that first (kill {pid})"))
}

/// What a run of now would find of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftBehind {
    /// A killed one left this rate to put back, bit/s: a run begins with that.
    Rate(u64),
    /// Another user's run has something to put back, now or when it was killed: only that user may know more.
    OfOther,
}

/// What is left behind on a device, without changing anything.
///
/// # Errors
/// Another process controls the device; what is there is not what tidegate wrote.
pub(super) fn left_behind(runtime: &RuntimeDir, dev: &str) -> Result<Option<LeftBehind>> {
    if let Some(pid) = RuntimeDir::holder(&runtime.steering(dev)) {
        return controlled(dev, pid);
    }
    // The lock and the record of another user's run are not this one's to read.
    let own = tidegate_sys::process::effective_uid();
    if fs::metadata(runtime.steered(dev)).is_ok_and(|found| found.uid() != own) {
        return Ok(Some(LeftBehind::OfOther));
    }
    Ok(record(runtime, dev)?.map(|record| LeftBehind::Rate(record.rate)))
}

fn holder_is_guard(runtime: &RuntimeDir, dev: &str) -> bool {
    let holder = RuntimeDir::holder(&runtime.steering(dev));
    let words = holder.map(tidegate_sys::process::words_of).unwrap_or_default();
    words.iter().any(|word| word == "--guard")
}

/// Writes down what is to be put back on the devices of these shapers, each under its own name.
///
/// # Errors
/// It cannot be written, or a device is gone.
pub(super) fn write(runtime: &RuntimeDir, shapers: &[&FoundShaper]) -> Result<()> {
    let links = Links::open()?;
    for shaper in shapers {
        let number = links
            .index(shaper.dev())
            .context(format!("{} went away; start again when it is there (`ip link`)", shaper.dev()))?;
        let messages: Vec<Value> = shaper
            .messages(number)?
            .iter()
            .map(|message| json!([message.kind, message.flags, hex(&message.body)]))
            .collect();
        let text = format!(
            "{:#}\n",
            json!({
                "boot": boot::id()?,
                "pid": std::process::id(),
                "number": number,
                "rate": shaper.found(),
                "messages": messages,
            })
        );
        let path = runtime.steered(shaper.dev());
        output_file::remove_unfinished(&path);
        output_file::write(&path, text.as_bytes())
            .context(format!("{}: what is to be put back cannot be written down", path.display()))?;
    }
    Ok(())
}

/// Removes the files: nothing is to be put back any more.
///
/// # Errors
/// One stays.
pub(super) fn forget(runtime: &RuntimeDir, devices: &[&str]) -> Result<()> {
    for dev in devices {
        match fs::remove_file(runtime.steered(dev)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// A device whose rate was put back, and the rate, bit/s; or why it was not.
pub type PutBack = (String, std::result::Result<u64, String>);

/// What is to be put back on a device.
struct Record {
    number: u32,
    rate: u64,
    messages: Vec<Raw>,
}

/// What a process left on a device; `None`: nothing, or of an earlier run of the machine.
///
/// # Errors
/// It cannot be read, or is not what tidegate wrote.
fn record(runtime: &RuntimeDir, dev: &str) -> Result<Option<Record>> {
    let path = runtime.steered(dev);
    let broken = || {
        Error::Invalid(format!(
            "{} is not what tidegate wrote; remove it if nothing was controlled",
            path.display()
        ))
    };
    let text = match input_file::read_own(&path, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(broken()),
        text => text.context(path.display().to_string())?,
    };
    let document: Value = serde_json::from_str(&text).map_err(|_| broken())?;
    // The queues of an earlier run of the machine went with it.
    if document["boot"].as_str() != boot::id().ok().as_deref() {
        return Ok(None);
    }
    let (number, rate, messages) = read(&document).ok_or_else(broken)?;
    Ok(Some(Record { number, rate, messages }))
}

/// Why a rate was not put back.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NotPutBack {
    /// The device is gone, and its shaper with it: there is nothing to put back any more.
    Gone,
    /// The shaper that the record is of is not there, or not whole; in words.
    Replaced(String),
    /// It could not be done, and can be tried again; in words.
    Failed(String),
}

impl NotPutBack {
    fn words(self) -> String {
        match self {
            NotPutBack::Gone => "that device is gone, and its shaper with it".to_owned(),
            NotPutBack::Replaced(why) | NotPutBack::Failed(why) => why,
        }
    }
}

/// Puts back what a process left on a device that did not end well. The record is removed once that is done,
/// or the device is gone.
fn try_put_back(runtime: &RuntimeDir, dev: &str) -> Result<Option<std::result::Result<u64, NotPutBack>>> {
    let Some(Record { number, rate, messages }) = record(runtime, dev)? else {
        forget(runtime, &[dev])?;
        return Ok(None);
    };
    let done = carry_out(dev, number, &messages).and_then(|()| has_rate(dev, rate));
    if matches!(done, Ok(_) | Err(NotPutBack::Gone)) {
        forget(runtime, &[dev])?;
    }
    Ok(Some(done))
}

/// Puts back what a process left on a device that did not end well, before the next one begins. `None`: there
/// is nothing.
///
/// # Errors
/// The file is not what tidegate wrote; it could not be put back: what is there now would be taken for what
/// was found.
pub(super) fn put_back(runtime: &RuntimeDir, dev: &str) -> Result<Option<PutBack>> {
    let Some(done) = try_put_back(runtime, dev)? else { return Ok(None) };
    match done {
        Err(NotPutBack::Failed(why)) => invalid(format!("{dev}: {}", kept(runtime, dev, &why))),
        // Another shaper is there: its rate is the one to put back from now on.
        done => Ok(Some((dev.to_owned(), done.map_err(NotPutBack::words)))),
    }
}

/// That a record is kept, and what can be done.
fn kept(runtime: &RuntimeDir, dev: &str, why: &str) -> String {
    format!(
        "{why}; what to put back is kept: `tidegate autorate {dev} --restore` tries again, and where the \
         shaper is as it should be, remove {}",
        runtime.steered(dev).display()
    )
}

/// Whether a device's shaper has a rate now; the rate.
fn has_rate(dev: &str, rate: u64) -> std::result::Result<u64, NotPutBack> {
    let mut kernel = Kernel::open().map_err(|error| NotPutBack::Failed(error.to_string()))?;
    match FoundShaper::find(&mut kernel, dev) {
        Ok(now) if now.found() / 8 == rate / 8 => Ok(rate),
        Ok(now) => Err(NotPutBack::Failed(format!("it has {}", numbers::rate(now.found() as f64)))),
        Err(error) => Err(NotPutBack::Failed(crate::error::chain(&error))),
    }
}

type Raw = (u16, u16, Vec<u8>);

/// Messages that change a qdisc or a class of the device of this number; nothing else is sent.
fn read(document: &Value) -> Option<(u32, u64, Vec<Raw>)> {
    let number = u32::try_from(document["number"].as_u64()?).ok()?;
    let message = |message: &Value| {
        let part = |at: usize| u16::try_from(message[at].as_u64()?).ok();
        let (kind, flags, body) = (part(0)?, part(1)?, bytes(message[2].as_str()?)?);
        (encode::queue_device(kind, &body) == Some(number)).then_some((kind, flags, body))
    };
    let all = document["messages"].as_array().filter(|all| !all.is_empty() && all.len() <= MAX_MESSAGES)?;
    Some((number, document["rate"].as_u64()?, all.iter().map(message).collect::<Option<Vec<Raw>>>()?))
}

fn carry_out(dev: &str, number: u32, messages: &[Raw]) -> std::result::Result<(), NotPutBack> {
    let failed = |error: io::Error| NotPutBack::Failed(error.to_string());
    let links = Links::open().map_err(failed)?;
    if links.index(dev).ok() != Some(number) {
        return Err(match links.name(number) {
            Ok(name) => NotPutBack::Failed(format!("that device is called {name} now")),
            Err(_) => NotPutBack::Gone,
        });
    }
    let mut socket = NetlinkSocket::open().map_err(failed)?;
    let mut done = Ok(());
    for (kind, flags, body) in messages {
        let one = match socket.request(*kind, *flags, body) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(refused)) => {
                let words = format!("the kernel refuses it ({refused})");
                Err(match ANOTHER.contains(&refused.errno) {
                    true => NotPutBack::Replaced(format!("{words}: another shaper is there")),
                    false => NotPutBack::Failed(words),
                })
            }
            Err(error) => return Err(failed(error)),
        };
        // One class may be gone, and the others still be there.
        done = done.and(one);
    }
    done
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The guard of a running controller: a process that puts the rates back if this one cannot.
pub(super) struct Guard {
    child: Child,
    /// Held, not written to: its end is what the guard waits for.
    line: Option<ChildStdin>,
}

impl Guard {
    /// Starts it, as `tidegate autorate DEV --down DEV --guard` of the running executable, and waits until it
    /// is ready.
    ///
    /// # Errors
    /// It does not become ready.
    pub(super) fn start(devices: &[&str]) -> Result<Guard> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("autorate").arg(devices[0]).arg("--guard");
        for down in &devices[1..] {
            command.args(["--down", down]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        service::without_manager(&mut command);
        let mut child = service::detached(&mut command).spawn().context("no guard can be started")?;
        let (line, stdout) = (child.stdin.take(), child.stdout.take());
        let (tell, heard) = mpsc::sync_channel(1);
        std::thread::Builder::new().name("guard".into()).spawn(move || {
            let mut first = String::new();
            let _ = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut first));
            let _ = tell.send(first);
        })?;
        match heard.recv_timeout(PATIENCE) {
            Ok(first) if first.trim() == READY => Ok(Guard { child, line }),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                invalid("the guard that would put the rates back does not run, so nothing was changed")
            }
        }
    }

    /// Does it still run?
    pub(super) fn watches(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Lets it end, and waits for that.
    pub(super) fn end(mut self) {
        drop(self.line.take());
        let _ = self.child.wait();
    }
}

/// Is the guard: says so on `out`, waits until its standard input ends, which the kernel ensures however the
/// other process dies, and puts back what that has left.
///
/// # Errors
/// No process waits for a guard.
pub fn guard(devices: &[&str], out: &mut dyn Write) -> Result<()> {
    let runtime = RuntimeDir::here()?;
    // What ends the other process must not end this one before its work is done.
    let _bell = tidegate_sys::interrupt::event_fd()?;
    writeln!(out, "{READY}").and_then(|()| out.flush()).context("no process waits for a guard")?;
    let mut stdin = io::stdin();
    loop {
        match stdin.read(&mut [0; 16]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let begun = Instant::now();
    for dev in devices {
        while runtime.steered(dev).exists() && begun.elapsed() < TRIES {
            // The process that has the lock puts back what is there: one that was started after the dead one.
            if let Some(_alone) = RuntimeDir::take_within(&runtime.steering(dev), PAUSE)? {
                // The other device is to be put back, too, where this one's file cannot be read.
                match try_put_back(&runtime, dev) {
                    Ok(Some(Err(NotPutBack::Failed(_)))) => {}
                    _ => break,
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// Puts back the rates that a controller which died left on devices. A record of what could not be put back
/// is kept, and that is said.
///
/// # Errors
/// One runs, or what was left cannot be read.
pub fn restore(devices: &[&str]) -> Result<Vec<PutBack>> {
    let runtime = RuntimeDir::here()?;
    let mut all = Vec::new();
    for dev in devices {
        if !runtime.steered(dev).exists() {
            continue;
        }
        let _alone = lock(&runtime, dev)?;
        let Some(done) = try_put_back(&runtime, dev)? else { continue };
        let done = done.map_err(|why| match why {
            NotPutBack::Gone => why.words(),
            why => kept(&runtime, dev, &why.words()),
        });
        all.push(((*dev).to_owned(), done));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_and_other_texts_are_none() {
        assert_eq!(bytes(&hex(&[0, 255, 16])), Some(vec![0, 255, 16]));
        assert_eq!((bytes("0g"), bytes("é0")), (None, None));
        let body = |number: u32| {
            let mut body = vec![0; 20];
            body[4..8].copy_from_slice(&number.to_ne_bytes());
            body
        };
        let of = |kind: u16, body: &[u8]| {
            read(&json!({"number": 3, "rate": 8000, "messages": [[kind, 5, hex(body)]]}))
        };
        assert_eq!(of(36, &body(3)), Some((3, 8000, vec![(36, 5, body(3))])));
        // Another device, another kind of message (RTM_NEWLINK), no message, none at all.
        for (kind, body) in [(36, body(4)), (16, body(3)), (36, vec![]), (36, vec![0; 7])] {
            assert_eq!(of(kind, &body), None);
        }
        assert_eq!(read(&json!({"number": 3, "rate": 8000, "messages": []})), None);
        assert_eq!(read(&json!({"rate": 8000})), None);
    }
}
