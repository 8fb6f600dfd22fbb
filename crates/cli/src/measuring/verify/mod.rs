//! `tidegate verify HOST --policy FILE`: the same load with and without a policy, in turns, and what differs.
//!
//! ```text
//! tidegate_sessions::verify (turns) ──▶ one Experiment, two policies ──▶ measure::paired
//!                                            └─ what was measured without it ──▶ forecast ──▶ predicted beside measured
//! ```

mod options;

pub use options::Options;

use super::measure;
use crate::exit::CliExit;
use crate::outputs;
use crate::sim::Pace;
use std::process::ExitCode;
use tidegate_analysis::verify::{self, ChangeVerdict, Predicted};
use tidegate_measure::experiment::Experiment;
use tidegate_report::measuring::verify as report;
use tidegate_scenario::run::ExperimentWatch;
use tidegate_sessions::verify::{Turns, forecast, turns};
use tidegate_sys::interrupt;

/// Plays `tidegate verify`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("verify", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    crate::output::may_write(outputs::paths(&options.output))?;
    let test = measure::Options::of(&options.host, &options.test, options.duration, &options.far);
    let measurement = test.measurement()?;
    let measured = options.into();
    let say = |words: &str| eprintln!("tidegate verify: {words}");
    let shown = measure::progress();
    let Turns { mut experiment, trouble, device } =
        turns(&measured, &measurement, interrupt::notice(), (&shown, &say))?;
    let pace = Pace::default();
    let watch = ExperimentWatch {
        stop: interrupt::notice(),
        begin: &|_, seconds| pace.begin(seconds),
        seconds: &|more| pace.add(more),
        observer: &|| None,
    };
    let forecast = forecast(&measured, &measurement, (&experiment, device.as_deref()), &watch);
    pace.finish();
    let predicted = forecast.unwrap_or_else(|why| {
        experiment.notes.push(format!("nothing was predicted: {:#}", anyhow::Error::new(why)));
        Vec::new()
    });
    let text = if options.json {
        format!("{:#}\n", json(&experiment, &predicted))
    } else {
        text(&experiment, &predicted)
    };
    crate::output::report(&text);
    measure::write(&options.output, &experiment)?;
    let is_partial = trouble.is_some();
    if let Some(trouble) = trouble {
        eprintln!("tidegate verify: partial: {:#}", anyhow::Error::from(trouble));
    }
    let is_worse = verify::rows(&experiment).iter().any(|row| row.verdict() == ChangeVerdict::Worse);
    Ok(match is_partial {
        true => CliExit::Partial,
        false if is_worse => CliExit::No,
        false => CliExit::Yes,
    })
}

fn text(experiment: &Experiment, predicted: &[Predicted]) -> String {
    let mut out = format!("{}\n\n{}", experiment.title, report::text(experiment, predicted));
    for note in &experiment.notes {
        out += &format!("note: {note}\n");
    }
    out
}

/// The form of the document: it changes when a member changes its meaning or goes away.
const FORM: u32 = 2;

fn json(experiment: &Experiment, predicted: &[Predicted]) -> serde_json::Value {
    let predicted = predicted.iter().map(
        |one| serde_json::json!({"load": one.load, "figure": one.figure, "without": one.without, "with": one.with}),
    );
    serde_json::json!({
        "tidegate_verify": FORM, "version": experiment.version, "command": experiment.again, "title": experiment.title, "notes": experiment.notes,
        "differences": verify::json(experiment),
        "predicted": predicted.collect::<Vec<_>>(),
    })
}
