//! Single lines and small scripts, one after the other in one sandbox: for replays, whose files may come from
//! strangers.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use tidegate_sandbox::Spec;

use super::error::CaptureError;
use super::lines::Finder;
use super::options::CaptureOptions;
use super::run::outcome;
use super::script_run::ScriptRun;
use super::serve::Session;
use tidegate_shims::Answer;
use tidegate_shims::TOOLS;

/// The directory in which lines run, empty at first.
const DIR: &str = "/tmp";

/// A session: dropping it ends everything in it.
pub struct Shell {
    session: Session,
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").finish_non_exhaustive()
    }
}

impl Shell {
    /// Opens a session whose lines may each run for `timeout`. `executable` plays the tools; `None`:
    /// ourselves. `scripts` is the directory of the files that [`Shell::run_file`] will be given.
    ///
    /// # Errors
    /// This system lets us make no sandbox.
    pub fn open(executable: Option<&Path>, timeout: Duration, scripts: &Path) -> Result<Self, CaptureError> {
        let spec = Spec {
            executable: super::sandbox::executable(executable)?,
            cwd: DIR.into(),
            tools: TOOLS.iter().map(|tool| (*tool).to_owned()).collect(),
            tool_dirs: super::scan::usual_tool_dirs(),
            keep: vec![fs::canonicalize(scripts).map_err(|error| CaptureError::read(scripts, &error))?],
            ..Spec::default()
        };
        let options = CaptureOptions { timeout, ..CaptureOptions::default() };
        Ok(Self { session: Session::start(&spec, &options)? })
    }

    /// Runs one line by `sh -c`.
    ///
    /// # Errors
    /// The sandbox is gone.
    pub fn run_line(&mut self, line: &str, answer: &mut dyn Answer) -> Result<ScriptRun, CaptureError> {
        let words = ["sh".into(), "-c".into(), line.into()];
        self.run(&words, Finder::new(&[("-".into(), line.into())], &[]), answer)
    }

    /// Runs a file by `sh -e`, so it stops at the first command that fails; it need not be executable.
    ///
    /// # Errors
    /// The file cannot be read, or the sandbox is gone.
    pub fn run_file(&mut self, file: &Path, answer: &mut dyn Answer) -> Result<ScriptRun, CaptureError> {
        let text = fs::read(file).map_err(|error| CaptureError::read(file, &error))?;
        tidegate_sys::input_file::note(file);
        let text = String::from_utf8_lossy(&text).into_owned();
        let path = fs::canonicalize(file).map_err(|error| CaptureError::read(file, &error))?;
        let words = ["sh".into(), "-e".into(), path.into_os_string()];
        self.run(&words, Finder::new(&[(file.into(), text)], &[]), answer)
    }

    /// What the lines have written into a file of their directory, at most `limit` bytes; `None`: there is no
    /// such file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn written(&mut self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, CaptureError> {
        let Ok(file) = self.session.open(&Path::new(DIR).join(name)) else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(CaptureError::io("read what was written in the sandbox"))?;
        Ok(Some(bytes))
    }

    fn run(
        &mut self,
        words: &[OsString],
        mut finder: Finder,
        answer: &mut dyn Answer,
    ) -> Result<ScriptRun, CaptureError> {
        let run = self.session.run(words, answer, &mut finder, false)?;
        Ok(outcome(run, &finder, &[]))
    }
}
