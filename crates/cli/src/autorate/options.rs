//! The command line of `tidegate autorate`.

use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_control::PerDirection;
use tidegate_gym::ControllerChoice;
use tidegate_prober::probe_targets::MAX_PROBE_TARGETS;

/// Adjust a shaper's rate to a line that varies (LTE, Starlink)
///
/// Finds the shaper at the root of DEV (cake with a bandwidth, htb, or tbf), probes hosts beyond the line,
/// and changes the rate, and nothing else, as the line allows. When it ends, by Ctrl-C, SIGTERM, SIGHUP, an
/// error or `kill -9`, the rates that it found are put back.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
Controllers: tidegate (its own; tidegate:AIM), cake-autorate and sqm-autorate (their algorithms), pid, \
fixed:SHARE (of the base rate). `tidegate gym` tries them in simulation.

No host is probed unless --target names it. Best is a server that you run, near the line's other end. Of hosts \
of others name at least eight, so that each is probed about three times a second at most.

Exit codes: 0 it ran, and the rates that were found are back; 1 a rate could not be put back; 2 wrong usage or input: \
no shaper, no target; 4 not permitted; 74 standard output or the log did not take what was written.

Examples:
  tidegate autorate eth0 --dry-run --target 192.0.2.1
  tidegate autorate eth0 --down ifb4eth0 --target 192.0.2.1 --target 198.51.100.1
  tidegate autorate eth0 --down ifb4eth0 --target 192.0.2.1 --min 1mbit,5mbit --max 20mbit,150mbit
  tidegate autorate eth0 --restore")]
pub struct Options {
    /// The device whose root shapes uploads
    #[arg(value_name = "DEV", value_parser = crate::values::device)]
    pub dev: String,
    /// The device whose root shapes downloads: an ifb, or the device of the LAN
    #[arg(long, value_name = "DEV", value_parser = crate::values::device)]
    pub down: Option<String>,
    /// The controller
    #[arg(long, value_name = "NAME", default_value = "tidegate",
          value_parser = ControllerChoice::named_live)]
    pub controller: ControllerChoice,
    /// A configuration of cake-autorate, for that controller: read as data, never run
    #[arg(long, value_name = "FILE")]
    pub cake_config: Option<PathBuf>,
    /// The lowest rates; default: found by observation, a fifth of the base rates at first
    #[arg(long, value_name = "UP[,DOWN]", value_parser = rates)]
    pub min: Option<Rates>,
    /// The rates to begin with and without load; default: those that the shapers have
    #[arg(long, value_name = "UP[,DOWN]", value_parser = rates)]
    pub base: Option<Rates>,
    /// The highest rates; default: found by observation, twice the base rates at first
    #[arg(long, value_name = "UP[,DOWN]", value_parser = rates)]
    pub max: Option<Rates>,
    /// A host beyond the line to probe (ICMP), by name or address; may be repeated
    #[arg(long, value_name = "HOST", alias = "reflector")]
    pub target: Vec<String>,
    /// From one probe of a host to the next; default: 40ms for each target, so that one of them is probed
    /// every 40ms
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Without load for this time, pause probing at the base rates; 0: never
    #[arg(long, value_name = "TIME", value_parser = crate::values::time, default_value = "60s")]
    pub idle: Duration,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = crate::values::duration)]
    pub duration: Option<Duration>,
    /// Show what would be done, and whether the targets reply; change nothing
    #[arg(long, conflicts_with_all = ["duration", "log", "restore"])]
    pub dry_run: bool,
    /// Print every decision
    #[arg(long)]
    pub decisions: bool,
    /// Print everything that happens as lines of JSON
    #[arg(long)]
    pub json: bool,
    /// Append the same lines of JSON to a file; one of 16 MB is renamed to FILE.1, and
    /// begins again
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Put back the rates that a killed `tidegate autorate DEV` left, and exit
    #[arg(long)]
    pub restore: bool,
    /// Be the guard of a running one
    #[arg(long, hide = true)]
    pub guard: bool,
}

/// A rate, or one for each direction, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    pub(super) up: u64,
    pub(super) down: Option<u64>,
}

impl Rates {
    /// For the directions that there are; `name` is the option's.
    ///
    /// # Errors
    /// One too many, or too few.
    pub(super) fn of(
        given: Option<Rates>,
        has_down: bool,
        name: &str,
    ) -> Result<PerDirection<Option<u64>>, String> {
        match given {
            None => Ok(PerDirection::default()),
            Some(Rates { down: None, .. }) if has_down => {
                Err(format!("--{name} needs two rates, for upload and download: --{name} 2mbit,20mbit"))
            }
            Some(Rates { down: Some(_), .. }) if !has_down => {
                Err(format!("--{name} has a rate for downloads, whose device is not given: --down DEV"))
            }
            Some(Rates { up, down }) => Ok(PerDirection { up: Some(up), down }),
        }
    }
}

fn rates(text: &str) -> Result<Rates, String> {
    let rate = |text: &str| crate::values::rate(text).map(|rate| rate.as_bits());
    match text.split_once(',') {
        None => Ok(Rates { up: rate(text)?, down: None }),
        Some((up, down)) => Ok(Rates { up: rate(up)?, down: Some(rate(down)?) }),
    }
}

/// The usual interval for each target.
const USUAL: Duration = Duration::from_millis(40);
/// The shortest and the longest interval.
const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(20)..=Duration::from_secs(5);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = crate::values::duration(text)?;
    if INTERVALS.contains(&interval) { Ok(interval) } else { Err("from 20ms to 5s".to_owned()) }
}

impl Options {
    /// The devices whose shapers are controlled, that of uploads first.
    pub(super) fn devices(&self) -> Vec<&str> {
        std::iter::once(&self.dev).chain(&self.down).map(String::as_str).collect()
    }

    /// From one probe of each of so many targets to the next.
    pub(super) fn interval(&self, targets: usize) -> Duration {
        self.interval.unwrap_or(USUAL * u32::try_from(targets.max(1)).unwrap_or(u32::MAX))
    }

    /// # Errors
    /// Too many targets.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.target.len() > MAX_PROBE_TARGETS {
            return Err(format!("at most {MAX_PROBE_TARGETS} targets"));
        }
        Ok(())
    }
}
