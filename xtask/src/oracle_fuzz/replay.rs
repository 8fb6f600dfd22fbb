//! Our engine's answer: `tidegate replay DIR --out OUT`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::ask::Oracle;

/// A replay that takes longer is an endless loop of tidegate's.
const LONGEST: Duration = Duration::from_secs(30);

/// Who answers beside the kernel.
#[derive(Clone, Debug)]
pub(crate) enum Engine {
    /// Our program.
    Tidegate(PathBuf),
    /// The kernel again: whether it and this tool repeat themselves.
    Itself(Oracle),
}

impl Engine {
    /// Answers the question in `dir` into `out`; the text of a refusal is the error.
    pub(crate) fn run(&self, dir: &Path, out: &Path) -> io::Result<Result<(), String>> {
        let _ = fs::remove_dir_all(out);
        fs::create_dir_all(out)?;
        match self {
            Self::Tidegate(program) => replay(program, dir, out),
            Self::Itself(oracle) => {
                super::copy_question(dir, out)?;
                oracle.ask(&[out.to_owned()])?;
                Ok(Ok(()))
            }
        }
    }
}

fn replay(program: &Path, dir: &Path, out: &Path) -> io::Result<Result<(), String>> {
    let words = out.join("replay.err");
    let mut child = Command::new(program)
        .arg("replay")
        .arg(dir)
        .arg("--out")
        .arg(out)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&words)?)
        .spawn()?;
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            return Ok(Err(format!("no answer within {} s", LONGEST.as_secs())));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    if status.success() {
        return Ok(Ok(()));
    }
    let text = fs::read(&words).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    Ok(Err(format!("{status}: {}", text.trim())))
}
