//! What a trial measured of each class.

use super::model::{Box, Device};
use super::options::Options;
use anyhow::{Context, bail};
use std::path::Path;
use tidegate_loader::LoadedPolicy;
use tidegate_measure::trial::{ClassSeries, TrialDocument, TrialRun};
use tidegate_report::{percent, rate};
use tidegate_trial::InstalledTrees;

/// A trial's run, for those who ask of a class.
pub(super) struct Used {
    trial: TrialDocument,
    run: usize,
}

/// What a class did in the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Use {
    /// Bits per second sent.
    pub(super) sent: f64,
    /// The share of the most that it may send; `None`: nothing limits it.
    pub(super) share: Option<f64>,
    /// Packets dropped.
    pub(super) dropped: u64,
}

impl Use {
    /// `812 kbit/s, 85 % of what it may; 12 dropped`.
    pub(super) fn words(&self) -> String {
        let share = self.share.map_or(String::new(), |share| format!(", {} of what it may", percent(share)));
        let dropped = if self.dropped > 0 { format!("; {} dropped", self.dropped) } else { String::new() };
        format!("{}{share}{dropped}", rate(self.sent))
    }
}

/// Reads a trial's document.
pub(super) fn read(path: &Path, options: &Options) -> anyhow::Result<Used> {
    let text = crate::input::result_text(path)?;
    let trial = tidegate_analysis::trial::from_json(&text)
        .with_context(|| format!("{} is not a document of `tidegate try --json`", path.display()))?;
    let runs = trial.runs.iter().enumerate().filter(|(_, run)| run.policy);
    let found = match &options.load {
        Some(load) => runs.clone().find(|(_, run)| run.load == *load),
        None => runs.clone().next_back(),
    };
    match found.map(|(at, _)| at) {
        Some(run) => Ok(Used { trial, run }),
        None => {
            let loads: Vec<&str> = runs.map(|(_, run)| run.load.as_str()).collect();
            bail!("{} has no such load; it has {}", path.display(), loads.join(", "))
        }
    }
}

impl Used {
    /// Refuses the result of another policy, whose figures would be wrong on this one's classes.
    ///
    /// # Errors
    /// It is of another one; in what they differ, and how to get this one's.
    pub(super) fn must_be_of(&self, policy: &mut LoadedPolicy, path: &Path) -> anyhow::Result<()> {
        let commands = policy.commands();
        let gateway = &mut policy.machine.gateway;
        let devices: Vec<_> = gateway.devices().collect();
        let trees = InstalledTrees::of(gateway, &devices, policy.machine.now);
        if let Some(difference) = tidegate_trial::difference(&self.trial, commands, &trees) {
            bail!(
                "{} is the result of another policy ({difference}); `tidegate try --json` makes that of this one",
                path.display()
            );
        }
        Ok(())
    }

    /// The run with the policy.
    pub(super) fn run(&self) -> &TrialRun {
        &self.trial.runs[self.run]
    }

    /// What a box of a device did, if that was measured.
    pub(super) fn of(&self, device: &Device, one: &Box) -> Option<Use> {
        let id = match device.name == self.trial.device {
            true => one.id.to_string(),
            false => format!("{} {}", device.name, one.id),
        };
        let run = self.run();
        let series = run.classes.iter().find(|series| series.id == id)?;
        let (bits, dropped) = within(run, series);
        let most = one.ceil.or(one.rate).map(|rate| rate.as_bits() as f64);
        Some(Use { sent: bits, share: most.filter(|most| *most > 0.0).map(|most| bits / most), dropped })
    }

    /// The most that any box dropped.
    pub(super) fn most_dropped(&self) -> u64 {
        let run = self.run();
        run.classes.iter().map(|series| within(run, series).1).max().unwrap_or(0)
    }
}

/// Bits per second sent and packets dropped within the measured time.
fn within(run: &TrialRun, series: &ClassSeries) -> (f64, u64) {
    let step = run.step_ns.max(1);
    let steps = |at: u64| (at / step) as usize;
    let (from, to) = (steps(run.window.0), steps(run.window.1).min(series.sent.len()));
    let part = from.min(to)..to;
    let bytes: u64 = series.sent[part.clone()].iter().sum();
    let dropped = series.dropped.get(part.clone()).unwrap_or_default().iter().map(|n| u64::from(*n)).sum();
    let ns = (part.len() as u64 * step).max(1);
    (bytes as f64 * 8.0 * 1e9 / ns as f64, dropped)
}
