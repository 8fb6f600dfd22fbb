//! The folder of a recording, and a shell for its commands.

use anyhow::bail;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_capture::{ScriptRun, Shell};
use tidegate_replay::recorded::{Commands, Recording, ReplayError, ReplayedRun, Texts};
use tidegate_shims::ToolShim;
use tidegate_syntax::TcVersion;

/// How long a command of the schedule may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// Where commands of recordings write what they show, and the most bytes of it that are kept.
const SNAPSHOT: &str = "snap.txt";
const MAX_SNAPSHOT: u64 = 64 << 20;

/// A recording, read.
pub(super) struct Folder {
    pub(super) recording: Recording,
    /// The release of tc that configured the recorded run: a file `tc`.
    pub(super) tc: TcVersion,
    script: PathBuf,
}

impl Folder {
    /// Reads a folder; without draws.csv what is random comes from `seed`.
    pub(super) fn read(dir: &Path, seed: u64) -> anyhow::Result<Folder> {
        let text = |name: &str| crate::input::result_text(&dir.join(name));
        let if_there = |name: &str| match text(name) {
            Ok(text) => Ok(Some(text)),
            Err(_) if !dir.join(name).exists() => Ok(None),
            Err(error) => Err(error),
        };
        let (draws, linux) = (if_there("draws.csv")?, if_there("linux")?);
        let tc = match if_there("tc")? {
            Some(text) => text.parse().map_err(|error| anyhow::anyhow!("{}: tc: {error}", dir.display()))?,
            None => TcVersion::default(),
        };
        let script = dir.join("script.tc");
        if !script.is_file() {
            bail!(
                "cannot read {}: there is no such file; name the folder of a recording (link, script.tc, \
                schedule.csv)",
                script.display()
            );
        }
        let (link, schedule) = (text("link")?, text("schedule.csv")?);
        let has_frames = dir.join("frames.csv").exists();
        let (random, linux) = (draws.as_deref(), linux.as_deref());
        let texts = Texts { link: &link, schedule: &schedule, random, has_frames, linux };
        Ok(Folder { recording: Recording::parse(&texts, seed)?, tc, script: script.canonicalize()? })
    }

    /// Who carries out its commands.
    pub(super) fn commands(&self) -> anyhow::Result<Sandboxed<'_>> {
        let dir = self.script.parent().unwrap_or(Path::new("/"));
        Ok(Sandboxed { shell: Shell::open(None, COMMAND_LIMIT, dir)?, script: &self.script })
    }
}

/// A shell in a sandbox.
pub(super) struct Sandboxed<'f> {
    shell: Shell,
    script: &'f Path,
}

impl Sandboxed<'_> {
    /// What the commands wrote into [`SNAPSHOT`], if they did.
    pub(super) fn snapshot(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        Ok(self.shell.written(SNAPSHOT, MAX_SNAPSHOT)?)
    }
}

impl Commands for Sandboxed<'_> {
    fn script(&mut self, shim: &mut ToolShim<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        complain(&self.shell.run_file(self.script, shim)?);
        Ok(())
    }

    fn line(&mut self, line: &str, shim: &mut ToolShim<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        complain(&self.shell.run_line(line, shim)?);
        Ok(())
    }
}

fn complain(outcome: &ScriptRun) {
    if !outcome.stderr.is_empty() {
        eprint!("{}", String::from_utf8_lossy(&outcome.stderr));
    }
}

/// Why a run could not be carried out again.
pub(super) fn failed(error: ReplayError) -> anyhow::Error {
    match error {
        ReplayError::Commands(error) => anyhow::anyhow!(error),
        other => other.into(),
    }
}

/// Writes the result of a run, in the form of the recordings.
pub(super) fn write(place: &Path, done: &ReplayedRun, snapshot: Option<&[u8]>) -> anyhow::Result<()> {
    let files = [
        ("egress.csv", Some(&done.egress)),
        ("frames.csv", done.frames.as_ref()),
        ("drops.csv", Some(&done.drops)),
        ("stats.txt", Some(&done.stats)),
        ("filters.txt", Some(&done.filters)),
    ];
    for (name, text) in files.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        crate::output::file(&place.join(name), text)?;
    }
    if let Some(snapshot) = snapshot {
        crate::output::file(&place.join(SNAPSHOT), snapshot)?;
    }
    Ok(())
}
