//! A program of a user's in the sandbox, with pipes to talk to it by.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStderr, ChildStdout};

use tidegate_sandbox::{Report, Sandbox, Spec};

use crate::error::CaptureError;

/// Processes of one program at once, and bytes of memory that they may take together, where the kernel can
/// hold them to that.
const MAX_PROCESSES: u32 = 64;
const MAX_MEMORY: u64 = 512 << 20;

/// A program that runs in a sandbox of its own: a network without links, home directories and most of the
/// environment hidden, the host's files as they are but not to be changed. Dropping it ends it.
#[derive(Debug)]
pub struct ConfinedProgram {
    /// What is written here it reads as its standard input.
    pub stdin: UnixStream,
    /// What it prints.
    pub stdout: ChildStdout,
    /// Its errors.
    pub stderr: ChildStderr,
    sandbox: Sandbox,
}

impl ConfinedProgram {
    /// Starts a program by its absolute path, without arguments.
    ///
    /// # Errors
    /// No sandbox can be made here.
    pub fn start(program: &Path) -> Result<ConfinedProgram, CaptureError> {
        let spec = Spec {
            executable: super::sandbox::executable(None)?,
            cwd: "/".into(),
            keep: vec![program.to_owned()],
            max_processes: MAX_PROCESSES,
            max_memory: MAX_MEMORY,
            no_links: true,
            private: true,
            ..Spec::default()
        };
        let (mut sandbox, stdout, stderr) = super::sandbox::start(&spec)?;
        let (stdin, theirs) = UnixStream::pair().map_err(CaptureError::io("connect the program"))?;
        let words: [OsString; 1] = [program.into()];
        sandbox.run_reading(&words, theirs.as_fd()).map_err(CaptureError::io("start the program"))?;
        Ok(ConfinedProgram { stdin, stdout, stderr, sandbox })
    }

    /// Readable when the program has ended: the sandbox holds its pipes open until it is dropped.
    #[must_use]
    pub fn ends(&self) -> BorrowedFd<'_> {
        self.sandbox.control()
    }

    /// How it ended, in words; it must have ended or be about to. `None`: it is not known within this time.
    pub fn ended(&mut self, limit: std::time::Duration) -> Option<String> {
        let until = std::time::Instant::now() + limit;
        while let Some(left) = until.checked_duration_since(std::time::Instant::now()) {
            let ready = self.sandbox.has_report()
                || tidegate_sys::poll::readable(&[self.sandbox.control()], left).ok()? == [true];
            if !ready {
                return None;
            }
            match self.sandbox.report() {
                Report::Exited(code) => return Some(format!("it ended with exit code {code}")),
                Report::Signalled(signal) if self.sandbox.ran_out_of_memory().is_some() => {
                    let mib = MAX_MEMORY >> 20;
                    return Some(format!("signal {signal} ended it: it took more than {mib} MiB of memory"));
                }
                Report::Signalled(signal) => return Some(format!("signal {signal} ended it")),
                Report::Failed(why) => return Some(why),
                Report::Gone => return Some("its sandbox is gone".to_owned()),
                Report::Note(_) | Report::File(..) | Report::OthersRun => {}
            }
        }
        None
    }
}
