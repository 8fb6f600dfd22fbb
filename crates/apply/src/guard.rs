//! The guardian: a process that outlives the terminal and the process that started it, and reverts if that
//! cannot.
//!
//! It is started before the first change and reports that it is ready; then it waits until its standard input
//! ends, which the kernel ensures however the other process dies. The state gives what is then to do: a job
//! that did not end is undone, a policy that is not confirmed is reverted when its time is over. It tries
//! again until it has succeeded.

use crate::guardian::READY;
use crate::job;
use crate::state::{Does, Job, State};
use crate::time::since_1970;
use crate::undone;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::{ErrorContext, Result};
use tidegate_sys::service::Alone;
use tidegate_sys::{interrupt, poll};

/// How often a confirmation, or the end of the working process, is looked for.
const LOOK: Duration = Duration::from_millis(250);
/// How long the next attempt is put off at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long it waits at once for what may never come.
const HOUR: Duration = Duration::from_secs(3600);
/// A log longer than this begins again.
const LONGEST_LOG: u64 = 64 << 10;

/// Is the guardian of a policy: the process that [`apply`](crate::apply()) starts as `tidegate revert NAME
/// --guard`. Says so on `out`, waits until its standard input ends, and then does what the policy's state
/// requests, until nothing is left to do.
///
/// # Errors
/// There is no policy to watch, or it cannot wait.
pub fn guard(name: &str, out: &mut dyn Write) -> Result<()> {
    let runtime = RuntimeDir::here()?;
    let mut log = Log::open(&runtime, name);
    // SIGTERM makes it do at once what it would do later; a policy without a guardian would stay for good.
    let bell = interrupt::event_fd()?;
    // One waits for a confirmation, however many changes there were meanwhile.
    runtime.make()?;
    let mut watch = RuntimeDir::take_within(&runtime.watch(name), Duration::ZERO)?;
    writeln!(out, "{READY}").and_then(|()| out.flush()).context("no process waits for a guardian")?;
    wait_for_end()?;
    let mut hurry = false;
    let mut pause = FIRST_PAUSE;
    loop {
        let wait = match look(&runtime, name, hurry, &mut log) {
            Ok(Look::Nothing) => return Ok(()),
            Ok(Look::Later(after)) => {
                pause = FIRST_PAUSE;
                after
            }
            Ok(Look::Waits(after)) => {
                pause = FIRST_PAUSE;
                if watch.is_none() {
                    watch = RuntimeDir::take(&runtime.watch(name))?;
                }
                if watch.is_none() {
                    return Ok(());
                }
                after
            }
            Err(error) => {
                log.say(&format!("{error:#}; trying again in {} ms", pause.as_millis()));
                let now = pause;
                pause = (pause * 2).min(LONGEST_PAUSE);
                now
            }
        };
        if hurry {
            std::thread::sleep(wait);
        } else {
            hurry = poll::readable(&[bell.as_fd()], wait)?[0];
        }
    }
}

/// Waits until the process that started this one closes its end, or is dead.
fn wait_for_end() -> Result<()> {
    let mut stdin = io::stdin();
    loop {
        match stdin.read(&mut [0; 16]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // There never was another end, or it is broken: its process is gone.
            Err(_) => return Ok(()),
        }
        let _ = poll::readable(&[stdin.as_fd()], HOUR)?;
    }
}

/// What there is to do.
enum Look {
    Nothing,
    /// There may be, after a time.
    Later(Duration),
    /// There is, unless a confirmation comes: it is looked for after a time.
    Waits(Duration),
}

/// Looks what the state requests, and does it. `hurry`: a policy that waits to be confirmed is not waited
/// for.
fn look(runtime: &RuntimeDir, name: &str, hurry: bool, log: &mut Log) -> Result<Look> {
    let Some(state) = State::read(runtime, name)? else { return Ok(Look::Nothing) };
    match (state.job(), state.left_to_confirm()) {
        (None, None) => return Ok(Look::Nothing),
        (None, Some(left)) if !left.is_zero() && !hurry => return Ok(Look::Waits(left.min(LOOK))),
        _ => {}
    }
    // The process at work here ends it, or dies and leaves that to us.
    let Some(_alone) = Alone::take(&runtime.work())? else { return Ok(Look::Later(LOOK)) };
    // The answer may have come at the last moment.
    let Some(state) = State::read(runtime, name)? else { return Ok(Look::Nothing) };
    match (state.job(), state.left_to_confirm()) {
        (None, None) => Ok(Look::Nothing),
        (Some(job), _) => {
            let does = Job::of(job)?.does;
            job::go_back(runtime, name, &state, &|_| {})?;
            log.say(&format!("`tidegate {}` did not end; everything is as it was before it", does.name()));
            if does == Does::Apply {
                undone::note(runtime, name, &state, "`tidegate apply` was interrupted");
            }
            // What was there before may wait to be confirmed.
            Ok(Look::Later(Duration::ZERO))
        }
        (None, Some(left)) if !left.is_zero() && !hurry => Ok(Look::Waits(left.min(LOOK))),
        (None, Some(left)) => {
            let why = match (left.is_zero(), state.0["confirm"]["seconds"].as_u64()) {
                (true, Some(seconds)) => format!("it was not confirmed within {seconds} s"),
                _ => "its guardian received SIGTERM while it waited for the confirmation".to_owned(),
            };
            let state = job::begun(runtime, name, &state, Does::Revert)?;
            job::go_back(runtime, name, &state, &|_| {})?;
            log.say("the policy was not confirmed; everything is as it was before it");
            undone::note(runtime, name, &state, &why);
            Ok(Look::Later(Duration::ZERO))
        }
    }
}

/// Where a guardian logs: a file, because there may be no terminal.
struct Log(Option<File>);

impl Log {
    fn open(runtime: &RuntimeDir, name: &str) -> Log {
        let path = runtime.guard_log(name);
        let long = std::fs::metadata(&path).is_ok_and(|known| known.len() > LONGEST_LOG);
        // That nothing can be written down is no reason not to watch.
        let file = OpenOptions::new().create(true).write(true).append(!long).truncate(long).open(path);
        Log(file.ok())
    }

    fn say(&mut self, text: &str) {
        if let Some(file) = &mut self.0 {
            let _ = writeln!(
                file,
                "{} guardian {}: {text}",
                crate::time::utc(since_1970().as_secs()),
                std::process::id()
            );
        }
    }
}
