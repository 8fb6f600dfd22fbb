//! `tidegate replay DIR`: a recorded run, done again by the engine.
//!
//! Reads `link`, `script.tc`, `schedule.csv` and `draws.csv` (nothing else) and writes `egress.csv`,
//! `drops.csv`, `stats.txt`, `filters.txt` and, where the schedule's commands ask, `snap.txt`, in the form of
//! the recordings. A folder without draws is a run that no one recorded: a question to the engine, or a
//! picture for a class.

pub(crate) mod captured;
mod folder;
mod lives;

use crate::exit::CliExit;
use folder::Folder;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidegate_replay::recorded::{self, RandomError};
use tidegate_shims::Machine;

/// Replay recorded packets through a policy, without new traffic
///
/// Of a capture (pcap, pcapng): what policies would have done with its packets. Of the folder of a recorded
/// run: the same run again, packet by packet. `tidegate try` and `tidegate sim` generate traffic instead.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 done; 1 recorded draws are left over; 2 wrong usage or input, or a policy that fails.

Examples:
  tidegate replay --capture monday.pcap --policy gateway.sh --rate 2mbit -o monday.html
  tidegate replay --capture monday.pcap --policy 'gateway.sh start eth0' --policy home.toml
  tidegate replay recorded/run-1 --out again --flows")]
pub struct Options {
    /// Folders of recorded runs: link, script.tc, schedule.csv and, if it was recorded, draws.csv
    #[arg(required_unless_present = "capture", value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Write egress.csv, drops.csv, stats.txt, filters.txt and snap.txt there; with several DIRs into a
    /// folder each
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,
    /// Print the outcome of each flow's packets
    #[arg(long)]
    flows: bool,
    /// Draw each packet from its arrival to its departure, as SVG; for one DIR
    #[arg(long, value_name = "SVG")]
    picture: Option<PathBuf>,
    /// Seed of the random numbers, where there is no draws.csv
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    captured: captured::Options,
}

/// Plays `tidegate replay`.
pub fn command(options: &Options) -> ExitCode {
    if options.captured.is_asked() {
        return captured(options);
    }
    if !options.captured.is_silent() {
        // Clap lets that pass, because folders and a capture exclude each other.
        eprintln!("tidegate replay: --policy, --rate and the like are for captures: give one with --capture");
        return CliExit::Input.into();
    }
    if options.picture.is_some() && options.dirs.len() > 1 {
        eprintln!("tidegate replay: one picture shows one run: give one DIR with --picture");
        return CliExit::Input.into();
    }
    let mut code = CliExit::Yes;
    for dir in &options.dirs {
        let target = options.out.as_ref().map(|out| match options.dirs.len() {
            1 => out.clone(),
            _ => out.join(dir.file_name().unwrap_or_default()),
        });
        match replay(dir, target.as_deref(), options) {
            Ok(text) => print!("{}: {text}", dir.display()),
            Err(error) => {
                eprintln!("tidegate replay: {}: {error:#}", dir.display());
                code = failure(&error);
            }
        }
    }
    code.into()
}

/// The code of an error: that recorded draws are left over is an answer.
fn failure(error: &anyhow::Error) -> CliExit {
    if error.is::<RandomError>() { CliExit::No } else { CliExit::of(error) }
}

/// Replays a capture through policies.
fn captured(options: &Options) -> ExitCode {
    if options.out.is_some() || options.picture.is_some() || options.flows {
        eprintln!(
            "tidegate replay: --out, --picture and --flows are for recorded runs; see --write, -o and \
            --top for captures"
        );
        return CliExit::Input.into();
    }
    match captured::replay(&options.captured, options.seed) {
        Ok(()) => CliExit::Yes.into(),
        Err(error) => {
            eprintln!("tidegate replay: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// Replays one recorded run and prints what happened.
fn replay(dir: &Path, out: Option<&Path>, options: &Options) -> anyhow::Result<String> {
    let folder = Folder::read(dir, options.seed)?;
    let recording = &folder.recording;
    let mut machine = Machine::recorded(recorded::recorded_device(&recording.link), recording.link.forward);
    machine.tc = folder.tc;
    machine.distributions = tidegate_loader::distributions::installed();
    let mut commands = folder.commands()?;
    let done = recorded::replay(recording, machine, &mut commands).map_err(folder::failed)?;
    let snapshot = commands.snapshot()?;
    if let Some(out) = out {
        let is_same = dir.canonicalize().ok().is_some_and(|dir| out.canonicalize().ok() == Some(dir));
        anyhow::ensure!(
            !is_same,
            "cannot write to {}: it holds the recording; name another directory",
            out.display()
        );
        crate::output::directory(out)?;
        folder::write(out, &done, snapshot.as_deref())?;
    }
    let mut text = done.summary() + "\n";
    if options.flows {
        text.push_str(&format!("\n{}", lives::table(&done.lives)));
    }
    if let Some(path) = &options.picture {
        let title = dir.canonicalize()?.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let picture = lives::picture(&done.lives, &title, &recording.link).alone(0.0);
        crate::output::file(path, picture)?;
    }
    done.check_draws()?;
    Ok(text)
}
