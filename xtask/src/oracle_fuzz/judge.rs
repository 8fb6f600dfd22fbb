//! Asks the oracle, lets the engine do the same, and compares.

use super::case::Case;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What is compared, in this order. Of drops.csv the last column (a kernel function's name) is left out.
const COMPARED: [&str; 5] = ["egress.csv", "drops.csv", "snap.txt", "stats.txt", "filters.txt"];
/// How long one batch may take either side.
const PATIENCE: Duration = Duration::from_secs(300);

/// The two sides, and where cases are put.
pub(super) struct Judge {
    pub(super) oracle: PathBuf,
    pub(super) tidegate: PathBuf,
    pub(super) place: PathBuf,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Identical in everything compared, and every draw used up.
    Same,
    /// The real tc refused a line of the set-up script: nothing to compare.
    Refused,
    /// The oracle gave no answer.
    NoAnswer,
    /// They differ: the file, and the first line that does.
    Differs { file: String, detail: String },
}

impl Judge {
    /// The folder of a case of the batch.
    pub(super) fn folder(&self, index: usize) -> PathBuf {
        self.place.join(format!("case{index:02}"))
    }

    /// Judges a batch with one call of either side.
    pub(super) fn judge(&self, cases: &[Case]) -> Result<Vec<Verdict>, String> {
        let io = |error: std::io::Error| format!("{}: {error}", self.place.display());
        let ours = self.place.join("ours");
        if ours.exists() {
            fs::remove_dir_all(&ours).map_err(io)?;
        }
        let mut folders = Vec::new();
        for (index, case) in cases.iter().enumerate() {
            let folder = self.folder(index);
            case.write(&folder).map_err(io)?;
            folders.push(folder);
        }
        run(Command::new(&self.oracle).args(&folders), PATIENCE)?;
        // `replay` reads a folder's own name, so one call does for all; a single one gets its folder told.
        let mut answered: Vec<&PathBuf> = folders.iter().filter(|folder| folder.join("stats.txt").exists()).collect();
        answered.retain(|folder| !folder.join("script.out").exists());
        let errors = if answered.is_empty() {
            String::new()
        } else {
            let out =
                if answered.len() == 1 { ours.join(answered[0].file_name().unwrap_or_default()) } else { ours.clone() };
            run(Command::new(&self.tidegate).arg("replay").args(&answered).arg("--out").arg(&out), PATIENCE)?
        };
        Ok(folders.iter().map(|folder| verdict(folder, &ours, &errors)).collect())
    }
}

fn verdict(folder: &Path, ours: &Path, errors: &str) -> Verdict {
    if folder.join("script.out").exists() {
        return Verdict::Refused;
    }
    if !folder.join("stats.txt").exists() {
        return Verdict::NoAnswer;
    }
    let ours = ours.join(folder.file_name().unwrap_or_default());
    for file in COMPARED {
        let theirs = lines(folder, file);
        let mine = lines(&ours, file);
        if theirs == mine {
            continue;
        }
        let at = theirs.iter().zip(&mine).position(|(a, b)| a != b).unwrap_or(theirs.len().min(mine.len()));
        let show = |lines: &[String]| lines.get(at).map_or("(end of file)".into(), String::clone);
        let detail = format!("line {}\n  kernel: {}\n  engine: {}", at + 1, show(&theirs), show(&mine));
        return Verdict::Differs { file: file.into(), detail };
    }
    // Draws left over, a command that could not be run, a panic.
    let name = folder.display().to_string();
    match errors.lines().find(|line| line.contains(&name) && line.starts_with("tidegate replay:")) {
        Some(line) => Verdict::Differs { file: "replay".into(), detail: line.into() },
        None => Verdict::Same,
    }
}

/// A file's lines, empty when it is not there.
fn lines(folder: &Path, file: &str) -> Vec<String> {
    let text =
        fs::read(folder.join(file)).map(|octets| String::from_utf8_lossy(&octets).into_owned()).unwrap_or_default();
    let keep = |line: &str| match file {
        "drops.csv" => line.splitn(5, ',').take(4).collect::<Vec<_>>().join(","),
        _ => line.to_string(),
    };
    text.lines().map(keep).collect()
}

/// Runs a program to its end, at most so long; gives what it said on stderr.
fn run(command: &mut Command, patience: Duration) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let log = std::env::temp_dir().join(format!("oracle-fuzz-{}.err", std::process::id()));
    let file = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file)
        .spawn()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    let begun = Instant::now();
    loop {
        match child.try_wait().map_err(|error| format!("{name}: {error}"))? {
            Some(_) => break,
            None if begun.elapsed() > patience => {
                let _gone = child.kill();
                let _reaped = child.wait();
                return Err(format!("{name} took longer than {} s", patience.as_secs()));
            }
            None => sleep(Duration::from_millis(5)),
        }
    }
    let said = fs::read(&log).unwrap_or_default();
    let _gone = fs::remove_file(&log);
    Ok(String::from_utf8_lossy(&said).into_owned())
}
