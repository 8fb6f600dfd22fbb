//! `tidegate verify HOST --policy FILE`: the same load with and without a policy, in turns, and what differs.
//!
//! ```text
//! turns (ABBA) ─▶ Switch (apply, revert) ─▶ measure (a run of `tidegate measure`) ──▶ one Experiment, two policies ──▶ measure::paired
//!                                                                 └─ what was measured without it ──▶ forecast (sim) ──▶ predicted beside measured
//! ```

mod forecast;
mod options;
mod switch;

pub use options::Options;

use super::far::PARTIAL;
use super::measure;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;
use switch::Switch;
use tidegate_measure::experiment::{Experiment, Policy};
use tidegate_measure::paired;
use tidegate_report::measuring::verify::{self, Predicted, Said};

/// Something got worse.
const WORSE: u8 = 1;
/// What the two are called.
const NAMES: [&str; 2] = ["without", "with"];

/// Plays `tidegate verify`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("verify", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<u8> {
    measure::check(&options.output)?;
    let turn = measure::Turn::new(&options.host, &options.test, options.length, &options.far, options.quiet)?;
    let (mut experiment, trouble, device) = turns(options, &turn)?;
    let predicted = forecast::of(options, &turn, device.as_deref(), &experiment).unwrap_or_else(|why| {
        experiment.notes.push(format!("nothing was predicted: {why}"));
        Vec::new()
    });
    measure::write(&options.output, &experiment)?;
    let text =
        if options.json { format!("{:#}\n", json(&experiment, &predicted)) } else { text(&experiment, &predicted) };
    crate::output::text(&text);
    if let Some(trouble) = &trouble {
        eprintln!("tidegate verify: partial: {trouble:#}");
    }
    let is_worse = verify::rows(&experiment).iter().any(|row| row.said() == Said::Worse);
    Ok(match trouble {
        Some(_) => PARTIAL,
        None if is_worse => WORSE,
        None => 0,
    })
}

/// All turns; what was done before it broke off is the result, unless that is nothing.
fn turns(
    options: &Options,
    turn: &measure::Turn,
) -> anyhow::Result<(Experiment, Option<anyhow::Error>, Option<String>)> {
    let stop = tidegate_os::interrupt::notice();
    let mut switch = Switch::new(options, turn.length() + options.settle)?;
    let mut whole: Option<Experiment> = None;
    let mut trouble = None;
    for (n, with) in (0..).zip(paired::turns(options.rounds as usize)) {
        match one(&mut switch, turn, with, options.settle) {
            Ok(run) => whole = Some(joined(whole, run, with, n / 2)),
            Err(error) if whole.is_none() => return Err(error),
            Err(error) => trouble = Some(error),
        }
        if stop.load(Ordering::Relaxed) {
            trouble.get_or_insert_with(|| anyhow::anyhow!("it was stopped"));
        }
        if trouble.is_some() {
            break;
        }
    }
    let device = switch.device().map(str::to_owned);
    switch.turn(false)?;
    let mut experiment = whole.unwrap_or_default();
    experiment.scenario = "verify".into();
    experiment.title = format!("{}, {} without and with {}", options.host, options.test, named(options));
    experiment.again = super::again();
    experiment.notes.extend(trouble.iter().map(|why| format!("partial: {why:#}")));
    experiment.notes.dedup();
    Ok((experiment, trouble, device))
}

fn one(switch: &mut Switch, turn: &measure::Turn, with: bool, settle: Duration) -> anyhow::Result<Experiment> {
    switch.turn(with)?;
    std::thread::sleep(settle);
    turn.measure(NAMES[usize::from(with)])
}

/// What the policy is called.
fn named(options: &Options) -> String {
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
    let policies = NAMES.map(|name| Policy { name: name.into(), title: name.into(), commands: Vec::new() });
    match whole {
        None => Experiment { policies: policies.into(), ..run },
        Some(mut whole) => {
            whole.runs.extend(run.runs);
            // By policy, then by load, then by round, as documents have it.
            let place = |name: &str, all: &[String]| all.iter().position(|known| known == name);
            let loads: Vec<String> = whole.loads.iter().map(|load| load.name.clone()).collect();
            let names = NAMES.map(str::to_owned);
            whole.runs.sort_by_key(|run| (place(&run.policy, &names), place(&run.load, &loads), run.repeat));
            let new: Vec<String> = run.notes.into_iter().filter(|note| !whole.notes.contains(note)).collect();
            whole.notes.extend(new);
            whole
        }
    }
}

fn text(experiment: &Experiment, predicted: &[Predicted]) -> String {
    let mut out = format!("{}\n\n{}", experiment.title, verify::text(experiment, predicted));
    for note in &experiment.notes {
        out += &format!("note: {note}\n");
    }
    out
}

fn json(experiment: &Experiment, predicted: &[Predicted]) -> serde_json::Value {
    let predicted = predicted.iter().map(
        |one| serde_json::json!({"load": one.load, "figure": one.figure, "without": one.without, "with": one.with}),
    );
    serde_json::json!({
        "tidegate": experiment.version, "again": experiment.again, "title": experiment.title, "notes": experiment.notes,
        "differences": verify::json(experiment),
        "predicted": predicted.collect::<Vec<_>>(),
    })
}
