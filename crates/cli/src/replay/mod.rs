//! `tidegate replay DIR`: a recorded run, done again by the engine.
//!
//! Reads `link`, `script.tc`, `schedule.csv` and `draws.csv` (nothing else) and writes `egress.csv`, `drops.csv`, `stats.txt`,
//! `filters.txt` and, where the schedule's commands ask, `snap.txt`, in the form of the recordings.

mod beside;
mod draws;
mod files;
mod frame;
mod run;

use crate::faces::Machine;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `tidegate replay` is told.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 done; 1 bad input, or recorded draws left over; 2 wrong usage.")]
pub struct Options {
    /// Folders with link, script.tc, schedule.csv and draws.csv.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Write egress.csv, drops.csv, stats.txt, filters.txt and snap.txt there; with several DIRs into a folder each.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Plays `tidegate replay`.
pub fn command(options: &Options) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for dir in &options.dirs {
        let target = options.out.as_ref().map(|out| match options.dirs.len() {
            1 => out.clone(),
            _ => out.join(dir.file_name().unwrap_or_default()),
        });
        match replay(dir, target.as_deref()) {
            Ok(summary) => println!("{}: {summary}", dir.display()),
            Err(error) => {
                eprintln!("tidegate replay: {}: {error:#}", dir.display());
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Does one recorded run again; tells in a line what happened.
///
/// # Errors
/// When a file is missing or not in form (with its line), when a command cannot be run, when draws are left over.
pub fn replay(dir: &Path, out: Option<&Path>) -> anyhow::Result<String> {
    let recording = files::Recording::read(dir)?;
    // Commands run in a folder of their own: they may write, and the recording stays as it is.
    let place = match out {
        Some(out) => {
            std::fs::create_dir_all(out)?;
            out.to_owned()
        }
        None => std::env::temp_dir().join(format!("tidegate-replay-{}", std::process::id())),
    };
    std::fs::create_dir_all(&place)?;
    let result = run::Run::new(&recording, Machine::recorded(recording.link.device()), &place)?.finish();
    let done = result.and_then(|done| {
        if out.is_some() {
            done.write(&place)?;
        }
        Ok(done)
    });
    if out.is_none() {
        let _ = std::fs::remove_dir_all(&place);
    }
    let done = done?;
    let summary = done.summary();
    done.check_draws()?;
    Ok(summary)
}
