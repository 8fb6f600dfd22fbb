//! `tidegate replay DIR`: a recorded run, done again by the engine.
//!
//! Reads `link`, `script.tc`, `schedule.csv` and `draws.csv` (nothing else) and writes `egress.csv`, `drops.csv`, `stats.txt`,
//! `filters.txt` and, where the schedule's commands ask, `snap.txt`, in the form of the recordings.

mod draws;
mod files;
mod frame;
mod run;

use crate::faces::Machine;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Plays `tidegate replay`; `words` are those after it.
pub fn command(words: &[String]) -> ExitCode {
    let (mut dirs, mut out) = (Vec::new(), None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--out" => match rest.next() {
                Some(dir) => out = Some(PathBuf::from(dir)),
                None => return fail("--out wants a directory"),
            },
            "--help" | "-h" => {
                println!(
                    "usage: tidegate replay DIR... [--out DIR]\n\n\
                     Does a recorded run again: reads link, script.tc, schedule.csv and draws.csv in DIR and writes egress.csv,\n\
                     drops.csv, stats.txt, filters.txt and snap.txt into --out (with several DIRs: a folder each, by its name).\n\
                     Without --out it only tells what happened. Exit codes: 0 done, 1 bad input or draws left over."
                );
                return ExitCode::SUCCESS;
            }
            flag if flag.starts_with('-') => return fail(&format!("no such option: {flag}")),
            dir => dirs.push(PathBuf::from(dir)),
        }
    }
    if dirs.is_empty() {
        return fail("which folder? usage: tidegate replay DIR... [--out DIR]");
    }
    let mut code = ExitCode::SUCCESS;
    for dir in &dirs {
        let target = out.as_ref().map(|out| if dirs.len() == 1 { out.clone() } else { out.join(dir.file_name().unwrap_or_default()) });
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

fn fail(why: &str) -> ExitCode {
    eprintln!("tidegate replay: {why}");
    ExitCode::from(2)
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
    let result = run::Run::new(&recording, Machine::recorded(recording.link.device()), &place)?.to_the_end();
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
