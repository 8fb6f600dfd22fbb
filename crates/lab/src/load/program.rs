//! A program of the user's on a host: started at its time, stopped at its end, its output kept.

use std::fmt::Write;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_sys::process::{self, die_with_parent};

use super::clock::{LoadClock, lock, spawn};
use crate::host::LabHost;

/// Bytes of its output that are kept: the first ones.
const KEPT: usize = 64 << 10;
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long it may still write once it is asked to end, in ns.
const LAST_WORDS: u64 = 1_000_000_000;

/// A program to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramPlan {
    /// The line, as a shell reads it.
    pub line: String,
    /// When it is started, and stopped if it still runs; ns since the beginning.
    pub start: u64,
    /// When it is stopped.
    pub stop: u64,
}

/// The outcome of it.
#[derive(Clone, Debug, Default)]
pub struct ProgramOutcome {
    /// When it was started.
    pub began: Option<u64>,
    /// When it had ended.
    pub ended: Option<u64>,
    /// How, if it ended.
    pub status: Option<ExitStatus>,
    /// It still ran at its end, and was stopped.
    pub stopped: bool,
    /// Why it could not be started.
    pub problem: Option<String>,
    output: Vec<u8>,
    /// It wrote more than is kept.
    more: bool,
}

impl ProgramOutcome {
    /// It could not be started, or ended on its own with a failure.
    pub fn failed(&self) -> bool {
        self.problem.is_some() || !self.stopped && self.status.is_some_and(|status| !status.success())
    }

    /// Its output, both streams as they came, with remarks in brackets.
    pub fn output(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.output).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.more {
            let _ = writeln!(text, "[more output than the {KEPT} bytes that are kept]");
        }
        if let Some(problem) = &self.problem {
            let _ = writeln!(text, "[it could not be started: {problem}]");
        }
        match self.status {
            _ if self.stopped => text.push_str("[it still ran at its end, and was stopped]\n"),
            Some(status) if !status.success() => {
                let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
                let _ = writeln!(text, "[it ended with {code}]");
            }
            _ => {}
        }
        text
    }
}

/// A program on a host.
#[derive(Clone, Debug)]
pub struct ProgramLoad {
    outcome: Arc<Mutex<ProgramOutcome>>,
}

impl ProgramLoad {
    /// Sets it going; it ends with the clock at the latest.
    ///
    /// # Errors
    /// No thread can be started on the host.
    pub fn begin(clock: &LoadClock, host: &LabHost, plan: ProgramPlan) -> io::Result<ProgramLoad> {
        let end = Arc::new(Mutex::new(ProgramOutcome::default()));
        let (clock, of) = (clock.clone(), Arc::clone(&end));
        host.go(move || {
            spawn(clock, "program", move |clock| {
                if clock.sleep_until(plan.start)
                    && let Err(error) = live(clock, &plan, &of)
                {
                    lock(&of).problem = Some(error.to_string());
                }
            })
        })??;
        Ok(ProgramLoad { outcome: end })
    }

    /// Its state so far.
    pub fn outcome(&self) -> ProgramOutcome {
        lock(&self.outcome).clone()
    }
}

/// Runs the program from its start to its end.
fn live(clock: &LoadClock, plan: &ProgramPlan, outcome: &Arc<Mutex<ProgramOutcome>>) -> io::Result<()> {
    let (mut child, output) = start(&plan.line)?;
    lock(outcome).began = Some(clock.now());
    let of = Arc::clone(outcome);
    spawn(clock.clone(), "listener", move |_| listen(output, &of))?;
    let mut stopped = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let now = clock.now();
        if clock.is_over() || now >= plan.stop.saturating_add(LAST_WORDS) {
            stopped = true;
            process::kill_tree(child.id());
            break child.wait()?;
        }
        if now >= plan.stop && !stopped {
            stopped = true;
            process::request_termination(child.id());
        }
        std::thread::sleep(LOOK);
    };
    let mut outcome = lock(outcome);
    outcome.ended = Some(clock.now());
    outcome.status = Some(status);
    outcome.stopped = stopped;
    Ok(())
}

/// A shell that carries out a line, and where both its streams come out.
fn start(line: &str) -> io::Result<(Child, PipeReader)> {
    let (output, pipe_writer) = io::pipe()?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).stdin(Stdio::null()).stdout(pipe_writer.try_clone()?).stderr(pipe_writer);
    let child = die_with_parent(&mut command).spawn()?;
    Ok((child, output))
}

/// Hears it out, and keeps the beginning.
fn listen(mut output: PipeReader, outcome: &Mutex<ProgramOutcome>) {
    let mut chunk = [0; 4096];
    while let Ok(bytes) = output.read(&mut chunk) {
        if bytes == 0 {
            return;
        }
        let mut outcome = lock(outcome);
        let kept = bytes.min(KEPT - outcome.output.len());
        outcome.output.extend_from_slice(&chunk[..kept]);
        outcome.more |= kept < bytes;
    }
}
