//! Starting a guardian, and finding the one that runs.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tidegate_daemon::{ErrorContext, Result, RuntimeDir, bail};
use tidegate_sys::{boot, process, service};

/// How long a guardian may take to be ready.
const PATIENCE: Duration = Duration::from_secs(10);
/// Its message when it is ready.
pub(crate) const READY: &str = "ready";
/// The member of a state for a policy that waits to be confirmed.
pub(crate) fn awaited(seconds: u64) -> Value {
    let until = boot::uptime().saturating_add(Duration::from_secs(seconds));
    json!({"seconds": seconds, "until_uptime_ms": u64::try_from(until.as_millis()).unwrap_or(u64::MAX)})
}

/// The guardian of a policy, in the process that started it: when this is dropped, the guardian checks what
/// is to be done.
pub(crate) struct Guardian {
    child: Child,
    /// Held, not written to.
    _line: Option<ChildStdin>,
}

impl Guardian {
    /// Starts one, and returns when it is ready.
    ///
    /// # Errors
    /// It cannot be started, or does not become ready.
    pub(crate) fn start(name: &str) -> Result<Guardian> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["revert", name, "--guard"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = service::detached(&mut command).spawn().context("no guardian can be started")?;
        let (line, stdout) = (child.stdin.take(), child.stdout.take());
        let (tell, dump) = mpsc::sync_channel(1);
        std::thread::Builder::new().name("guardian".into()).spawn(move || {
            let mut first = String::new();
            let _ = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut first));
            let _ = tell.send(first);
        })?;
        match dump.recv_timeout(PATIENCE) {
            Ok(first) if first.trim() == READY => Ok(Guardian { child, _line: line }),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                bail!(Other, "the guardian that would undo the policy does not run, so nothing was changed")
            }
        }
    }

    /// The guardian's process ID.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Does it still run?
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn watches(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(ended) => bail!(Other, "the guardian that would undo the policy ended ({ended})"),
        }
    }
}

/// The guardian that waits until a policy is confirmed. `started`: the one that was started with it, for
/// users who may not see the owner of a lock.
pub(crate) fn of(runtime: &RuntimeDir, name: &str, started: u32) -> Option<u32> {
    let is_guardian = |pid: &u32| process::words_of(*pid).last().is_some_and(|word| word == "--guard");
    RuntimeDir::holder(&runtime.watch(name)).or(Some(started).filter(is_guardian))
}
