//! The same load with and without a policy, in turns.
//!
//! ```text
//! turns (ABBA) ─▶ Switch (apply, revert) ─▶ a turn of a Measurement ──▶ one Experiment, two policies ──▶ measure::paired
//! ```

mod forecast;
mod options;
mod switch;

pub use forecast::forecast;
pub use options::{NAMES, VerifyOptions};

use crate::error::{Error, Result, chain};
use crate::measure::{Measurement, Progress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use switch::Switch;
use tidegate_measure::experiment::{Experiment, PolicyRecord};
use tidegate_measure::paired;

/// What turns came to.
#[derive(Debug)]
pub struct Turns {
    /// All runs, of both.
    pub experiment: Experiment,
    /// Why not all of them were carried out.
    pub trouble: Option<Error>,
    /// The device after which the policy that was applied is named.
    pub device: Option<String>,
}

/// All turns; what was done before it broke off is the result, unless that is nothing.
///
/// The policy is applied and reverted by this executable, as `apply --json --confirm SECONDS …` and `revert
/// --json …`, or by the options' commands; at the end, and if this is dropped on the way, it is reverted.
/// `say` gets a message if that fails then.
///
/// # Errors
/// Nothing was measured, or the policy cannot be taken away.
pub fn turns(
    options: &VerifyOptions,
    measurement: &Measurement,
    stop: &'static AtomicBool,
    (progress, say): (Progress<'_>, &dyn Fn(&str)),
) -> Result<Turns> {
    let mut switch = Switch::new(options, measurement.length() + options.settle, say)?;
    let mut whole: Option<Experiment> = None;
    let mut trouble = None;
    for (n, with) in (0..).zip(paired::turns(options.rounds as usize)) {
        let measure = || measurement.turn(NAMES[usize::from(with)], stop, progress);
        match one(&mut switch, with, options.settle, measure) {
            Ok(run) => whole = Some(joined(whole, run, with, n / 2)),
            Err(error) if whole.is_none() => return Err(error),
            Err(error) => trouble = Some(error),
        }
        if stop.load(Ordering::Relaxed) {
            trouble.get_or_insert_with(|| Error::Partial("it was stopped".to_owned()));
        }
        if trouble.is_some() {
            break;
        }
    }
    let device = switch.device().map(str::to_owned);
    switch.turn(false)?;
    let mut experiment = whole.unwrap_or_default();
    experiment.scenario = "verify".into();
    experiment.title =
        format!("{}, {} without and with {}", measurement.target.host, options.test, named(options));
    experiment.again = measurement.again.clone();
    experiment.notes = once_each(std::mem::take(&mut experiment.notes));
    experiment.notes.extend(trouble.iter().map(|why| format!("partial: {}", chain(why))));
    drop(switch);
    Ok(Turns { experiment, trouble, device })
}

fn one(
    switch: &mut Switch<'_>,
    with: bool,
    settle: Duration,
    measure: impl FnOnce() -> Result<Experiment>,
) -> Result<Experiment> {
    switch.turn(with)?;
    std::thread::sleep(settle);
    measure()
}

/// Notes of all turns, those that differ in their figures only once.
fn once_each(notes: Vec<String>) -> Vec<String> {
    let without_figures =
        |note: &str| note.replace(|letter: char| letter.is_ascii_digit() || letter == '.', "");
    let mut kinds: Vec<(String, String, usize)> = Vec::new();
    for note in notes {
        let kind = without_figures(&note);
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., count)) => *count += 1,
            None => kinds.push((kind, note, 1)),
        }
    }
    let text = |(_, note, count): (String, String, usize)| match count {
        1 => note,
        _ => format!("{note} (the first of {count} such turns)"),
    };
    kinds.into_iter().map(text).collect()
}

/// What the policy is called.
fn named(options: &VerifyOptions) -> String {
    match &options.with {
        Some(command) => format!("`{command}`"),
        None => options.policy.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", "),
    }
}

/// One more run: of the policy that it was measured with, in its round.
fn joined(whole: Option<Experiment>, mut run: Experiment, with: bool, round: u32) -> Experiment {
    let policy = NAMES[usize::from(with)];
    run.runs.iter_mut().for_each(|run| {
        run.policy = policy.to_owned();
        run.repeat = round;
    });
    let policies =
        NAMES.map(|name| PolicyRecord { name: name.into(), title: name.into(), commands: Vec::new() });
    match whole {
        None => Experiment { policies: policies.into(), ..run },
        Some(mut whole) => {
            whole.runs.extend(run.runs);
            // By policy, then by load, then by round, as documents have it.
            let place = |name: &str, all: &[String]| all.iter().position(|known| known == name);
            let loads: Vec<String> = whole.loads.iter().map(|load| load.name.clone()).collect();
            let names = NAMES.map(str::to_owned);
            whole.runs.sort_by_key(|run| (place(&run.policy, &names), place(&run.load, &loads), run.repeat));
            whole.notes.extend(run.notes);
            whole
        }
    }
}

#[cfg(test)]
mod tests {
    use super::once_each;

    #[test]
    fn notes_that_differ_in_figures_only_are_one() {
        let notes = ["late by 3.5 ms", "set clock", "late by 12 ms", "late by 12 ms"].map(str::to_owned);
        let expected = ["late by 3.5 ms (the first of 3 such turns)", "set clock"];
        assert_eq!(once_each(notes.into()), expected);
    }
}
