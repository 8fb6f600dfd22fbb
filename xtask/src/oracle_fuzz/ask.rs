//! The kernel's answers: the script named by `ORACLE`, called once for a batch of folders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::case::Release;

/// Where the real kernel is asked.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    /// The `ask` script.
    pub(crate) ask: PathBuf,
    /// The core that it runs on.
    pub(crate) core: usize,
}

impl Oracle {
    /// From the environment; the error says what to set.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let ask = std::env::var_os("ORACLE")
            .ok_or("ORACLE is not set: give the path of the oracle's `ask` script")?;
        let ask = PathBuf::from(ask);
        if ask.is_file() {
            Ok(Self { ask, core: 0 })
        } else {
            Err(format!("ORACLE={}: no such file", ask.display()))
        }
    }

    /// The same on another core, so that two questions do not wait for each other.
    pub(crate) fn on_core(&self, core: usize) -> Self {
        Self { ask: self.ask.clone(), core }
    }

    /// Asks about each folder; an answer is written beside the question.
    ///
    /// While the kernel reads it, a plain script is one `tc -batch`: the same operations in half the time, as
    /// every process in there is dear. The folder has its own script again afterwards.
    pub(crate) fn ask(&self, dirs: &[PathBuf]) -> io::Result<()> {
        let mut plain = Vec::new();
        for dir in dirs {
            let path = dir.join("script.tc");
            let text = fs::read_to_string(&path)?;
            if let Some(batch) = batched(&text) {
                fs::write(&path, batch)?;
                plain.push((path, text));
            }
        }
        let result = self.ask_each_release(dirs);
        for (path, text) in plain {
            fs::write(path, text)?;
        }
        result
    }

    /// Asks about runs of TCP, by a kernel with so much memory (`1G`): that bounds its windows.
    pub(crate) fn ask_about_tcp(&self, dirs: &[PathBuf], memory: &str) -> io::Result<()> {
        Command::new(&self.ask)
            .arg("--tcp")
            .args(dirs)
            .env("ORACLE_CPU", self.core.to_string())
            .env("ORACLE_MEM", memory)
            .env("ORACLE_TIMEOUT", "120")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map(drop)
    }

    /// The folders that want the same release are asked together.
    fn ask_each_release(&self, dirs: &[PathBuf]) -> io::Result<()> {
        let mut left = dirs.to_vec();
        while let Some(first) = left.first() {
            let release = Release::of(first);
            let (asked, others) = left.into_iter().partition(|dir| Release::of(dir) == release);
            self.ask_as_they_are(&release, asked)?;
            left = others;
        }
        Ok(())
    }

    fn ask_as_they_are(&self, release: &Release, dirs: Vec<PathBuf>) -> io::Result<()> {
        let mut command = Command::new(&self.ask);
        for (option, name) in [("--linux", &release.linux), ("--tc", &release.tc)] {
            // tc 6.1 is the system's, which needs no option.
            if !name.is_empty() && name != "6.1" {
                command.args([option, name]);
            }
        }
        command
            .args(dirs)
            .env("ORACLE_CPU", self.core.to_string())
            .env("ORACLE_TIMEOUT", "40")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map(drop)
    }
}

/// The script as one batch; none if it is short or the shell has work to do in it.
fn batched(script: &str) -> Option<String> {
    let lines: Vec<&str> = script.lines().collect();
    let plain = |line: &&str| {
        line.starts_with("tc ") && !line.contains(['$', ';', '|', '&', '>', '<', '`', '"', '\'', '\\', '#'])
    };
    if lines.len() < 3 || !lines.iter().all(plain) {
        return None;
    }
    let words: String = lines.iter().map(|line| format!("{}\n", &line[3..])).collect();
    Some(format!("tc -batch - <<'END'\n{words}END\n"))
}

/// Whether the kernel answered in this folder.
pub(crate) fn answered(dir: &Path) -> bool {
    let statistics = std::fs::metadata(dir.join("stats.json")).is_ok_and(|file| file.len() > 0);
    statistics && dir.join("egress.csv").is_file()
}

/// Whether the setting up failed there: nearly always the generator's fault, and the rest of the case is
/// empty.
pub(crate) fn script_failed(dir: &Path) -> bool {
    std::fs::read_to_string(dir.join("script.out")).is_ok_and(|text| text.contains("script failed:"))
}

#[cfg(test)]
mod tests {
    use super::batched;

    #[test]
    fn plain_scripts_become_batches() {
        let three = "tc qdisc a\ntc class b\ntc filter c\n";
        assert_eq!(batched(three).as_deref(), Some("tc -batch - <<'END'\nqdisc a\nclass b\nfilter c\nEND\n"));
        assert_eq!(batched("tc qdisc a\ntc class b\n"), None);
        assert_eq!(batched(&three.replace("b", "$b")), None);
    }
}
