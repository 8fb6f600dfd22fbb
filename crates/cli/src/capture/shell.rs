//! Single lines and small scripts without a sandbox: the tools stand first in `PATH`, nothing else is changed.
//!
//! For files that are ours or whose content is known (a trace's commands), hundreds of times: one directory and one
//! socket per session, one `sh` per line.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tidegate_os::process;

use super::face::{SOCKET_VARIABLE, TOOLS};
use super::lines::Finder;
use super::serve::{Event, Intake, Side, Stream};
use super::{Answer, CaptureError, Exit, Outcome, Output, troubles};

/// The most calls and bytes of output that one line may make.
const MAX_CALLS: usize = 100_000;
const MAX_OUTPUT: usize = 4 << 20;
/// The most directories of dead sessions that are looked at.
const MAX_STALE: usize = 10_000;
const PREFIX: &str = "tidegate-shell-";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// How often a shell without streams is asked whether it has ended.
const QUIET_STEP: Duration = Duration::from_millis(5);

/// A session: dropping it removes its directory.
#[derive(Debug)]
pub struct Shell {
    dir: PathBuf,
    listener: UnixListener,
    path: std::ffi::OsString,
    timeout: Duration,
}

impl Shell {
    /// Opens a session whose lines may each run for `timeout`. `executable` plays the tools; `None`: ourselves.
    ///
    /// # Errors
    /// The directory for the tools cannot be made under the system's directory for temporary files.
    pub fn open(executable: Option<&Path>, timeout: Duration) -> Result<Self, CaptureError> {
        let executable = match executable {
            Some(path) => path.to_owned(),
            None => std::env::current_exe().map_err(CaptureError::io("find our own executable"))?,
        };
        let place = std::env::temp_dir();
        remove_stale(&place);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = place.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let make = CaptureError::io("make a directory for the tools");
        // Only a directory that we made ourselves is used: nobody else may stand in it.
        std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700).create(&dir).map_err(&make)?;
        let session = |dir: &Path| -> std::io::Result<UnixListener> {
            fs::create_dir(dir.join("bin"))?;
            for tool in TOOLS.iter().filter(|tool| **tool != "sudo") {
                symlink(&executable, dir.join("bin").join(tool))?;
            }
            UnixListener::bind(dir.join("sock"))
        };
        let listener = session(&dir).map_err(|error| {
            let _ = fs::remove_dir_all(&dir);
            make(error)
        })?;
        let mut dirs = vec![dir.join("bin")];
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        dirs.extend(std::env::split_paths(&path));
        Ok(Self { path: std::env::join_paths(dirs).unwrap_or(path), dir, listener, timeout })
    }

    /// Runs one line by `sh -c` in `cwd`.
    ///
    /// # Errors
    /// There is no `sh`, or it cannot be started in `cwd`.
    pub fn run_line(&self, line: &str, cwd: &Path, answer: &mut dyn Answer) -> Result<Outcome, CaptureError> {
        let words = ["-c", line];
        self.run(&words, cwd, Finder::new(&[("-".into(), line.into())], &[]), answer)
    }

    /// Runs a file by `sh -e` in `cwd`, so it stops at the first command that fails; it need not be executable.
    ///
    /// # Errors
    /// The file cannot be read, there is no `sh`, or it cannot be started in `cwd`.
    pub fn run_file(&self, file: &Path, cwd: &Path, answer: &mut dyn Answer) -> Result<Outcome, CaptureError> {
        let text = fs::read(file).map_err(|error| CaptureError::read(file, &error))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let path = fs::canonicalize(file).map_err(|error| CaptureError::read(file, &error))?;
        let name = path.to_string_lossy().into_owned();
        self.run(&["-e", &name], cwd, Finder::new(&[(file.into(), text)], &[]), answer)
    }

    fn run(
        &self,
        words: &[&str],
        cwd: &Path,
        finder: Finder,
        answer: &mut dyn Answer,
    ) -> Result<Outcome, CaptureError> {
        let mut command = Command::new("sh");
        command
            .args(words)
            .current_dir(cwd)
            .env("PATH", &self.path)
            .env(SOCKET_VARIABLE, self.dir.join("sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let start = CaptureError::io("start sh");
        let mut child = process::die_with_parent(&mut command).spawn().map_err(&start)?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(start(std::io::Error::other("no pipe")));
        };
        let mut intake = Intake {
            answer,
            finder: Some(finder),
            calls: Vec::new(),
            max_calls: MAX_CALLS,
            stdout: Stream::new(stdout, MAX_OUTPUT, Output::Collect, Side::Output),
            stderr: Stream::new(stderr, MAX_OUTPUT, Output::Collect, Side::Errors),
        };
        let deadline = Instant::now() + self.timeout;
        // The streams end when the last who could write is gone: then the line is done, background jobs included.
        let mut timed_out = None;
        loop {
            // A shell that sent its streams elsewhere (`exec >FILE`) may still call.
            let quiet = !intake.open();
            if quiet && child.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            let until = if quiet { deadline.min(Instant::now() + QUIET_STEP) } else { deadline };
            match intake.step(&self.listener, None, until) {
                Ok(Event::TimeUp) if until < deadline => {}
                Ok(Event::TimeUp) => {
                    let running = process::descendants(child.id());
                    process::kill_tree(child.id());
                    timed_out = Some(Exit::TimedOut {
                        after: self.timeout,
                        running: running.iter().map(|one| one.words.join(" ")).collect(),
                    });
                    intake.drain(&self.listener);
                    break;
                }
                Ok(_) => {}
                Err(error) => {
                    process::kill_tree(child.id());
                    let _ = child.wait();
                    return Err(CaptureError::io("wait for sh")(error));
                }
            }
        }
        let status = child.wait().map_err(CaptureError::io("wait for sh"))?;
        let exit = timed_out.unwrap_or_else(|| exit_of(status));
        let stderr = intake.stderr.bytes;
        let troubles =
            intake.finder.map(|finder| troubles::list(&finder, &intake.calls, &exit, &stderr)).unwrap_or_default();
        Ok(Outcome {
            exit,
            calls: intake.calls,
            stdout: intake.stdout.bytes,
            stderr,
            devices: Vec::new(),
            notes: Vec::new(),
            troubles,
        })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    let byte = |number: i32| u8::try_from(number & 0xff).unwrap_or(1);
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(byte(code)),
        (None, Some(signal)) => Exit::Signal(byte(signal)),
        (None, None) => Exit::Code(1),
    }
}

/// Removes what sessions left that were killed before they could.
fn remove_stale(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for entry in entries.flatten().take(MAX_STALE) {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|rest| rest.split('-').next())
            .and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
