//! `tidegate tune FILE`: a search for the best values of a scenario's parameters.

mod options;
mod text;

pub use options::Options;

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use crate::sweep::results::SCALE;
use anyhow::Context;
use serde_json::{Value, json};
use std::process::ExitCode;
use text::Shown;
use tidegate_report::chart::{Theme, file, pdf, png};
use tidegate_report::sweep_drawing;
use tidegate_scenario::settings::full_path;
use tidegate_sessions::simulated::ScenarioFiles;
use tidegate_sessions::tune::{CheckedWith, TuneCheck, TuneJob, TuneResult, TuneWatch, TunedPoint, tune};
use tidegate_sweep::SweepAxis;

/// The document's form.
const FORM: u64 = 1;

/// Plays `tidegate tune`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate tune: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let path = &options.file;
    let text = crate::input::scenario(path).with_context(|| path.display().to_string())?;
    let axis = |setting: &String| -> anyhow::Result<SweepAxis> {
        let axis = SweepAxis::parse(setting).with_context(|| format!("--set {setting}"))?;
        Ok(SweepAxis { path: full_path(&text, &axis.path), ..axis })
    };
    let axes: Vec<SweepAxis> = options.set.iter().map(axis).collect::<Result<_, _>>()?;
    crate::output::may_write(outputs::paths(&options.output))?;
    let disk = ScenarioFiles { sandbox: (&options.sandbox).into() };
    let job = TuneJob {
        path,
        text: &text,
        axes: &axes,
        goal: &options.objective,
        bounds: &options.subject,
        choice: &options.cases.choice(),
        most: options.tries as usize,
        workers: options.jobs.map(usize::from),
    };
    let columns = "tuning  10000/10000 points, 10m left".len();
    let words = ("tuning", "{pos}/{len} points, {eta} left");
    let bar = crate::output::progress_bar(u64::from(options.tries), words, columns);
    let watch =
        TuneWatch { stop: tidegate_sys::interrupt::notice(), tried: &|count| bar.set_position(count as u64) };
    let result = tune(&job, &disk, &watch);
    bar.finish_and_clear();
    let result = match result {
        Err(tidegate_sessions::Error::Partial(why)) => {
            eprintln!("tidegate tune: {why}");
            return Ok(CliExit::Partial);
        }
        other => other?,
    };
    let shown = Shown { options, result: &result };
    if options.json {
        crate::output::text(&document(options, &result));
    } else {
        crate::output::report(&shown.report());
    }
    for ReportFile { path, form } in &options.output {
        let drawing = || sweep_drawing(&shown.plot());
        let width = options.width.0;
        let content = match form {
            Form::Svg => file(&drawing()?, width, Theme::Light).into_bytes(),
            Form::Pdf => pdf(&drawing()?, width, Theme::Light)?,
            Form::Png => png(&drawing()?, width, SCALE, Theme::Light)?,
            _ => document(options, &result).into_bytes(),
        };
        crate::output::file(path, content)?;
    }
    if result.stopped {
        eprintln!("tidegate tune: stopped after {} points; not everything was checked", result.tried.len());
        return Ok(CliExit::Partial);
    }
    Ok(if shown.found().is_some() { CliExit::Yes } else { CliExit::No })
}

fn document(options: &Options, result: &TuneResult) -> String {
    let point = |point: &TunedPoint| -> Value {
        let set: serde_json::Map<String, Value> =
            point.settings.iter().map(|one| (one.path.clone(), Value::from(one.value.as_str()))).collect();
        json!({
            "set": set,
            "objective": point.objective,
            "bounds": point.bounds,
            "feasible": point.rank.is_feasible(),
        })
    };
    let bound = |at: usize| {
        let bound = &options.subject[at];
        json!({
            "figure": bound.figure,
            "at": if bound.least { "least" } else { "most" },
            "limit": result.limits[at].0,
            "unit": result.limits[at].1,
        })
    };
    let check = |check: &TuneCheck| {
        let (seed, repeats, load) = match &check.with {
            CheckedWith::Seeds(seed, count) => (*seed, *count, &result.load),
            CheckedWith::Load(load, seed, count) => (*seed, *count, load),
        };
        json!({
            "load": load,
            "seed": seed,
            "repeats": repeats,
            "limits": check.limits,
            "own": point(&check.own),
            "best": check.best.iter().map(point).collect::<Vec<_>>(),
            "differences": check.differences.iter().map(|one| json!(one)).collect::<Vec<_>>(),
        })
    };
    let document = json!({
        "tidegate_tune": FORM,
        "policy": result.policy,
        "load": result.load,
        "seed": result.seeds.0,
        "repeats": result.seeds.1,
        "objective": {
            "figure": options.objective.figure,
            "to_be": if result.large { "large" } else { "small" },
            "unit": result.unit,
        },
        "bounds": (0..options.subject.len()).map(bound).collect::<Vec<_>>(),
        "own": point(&result.own),
        "tried": result.tried.iter().map(point).collect::<Vec<_>>(),
        "best": result.best,
        "front": result.front,
        "refused": result.refused.as_ref().map_or(0, |(count, _)| *count),
        "checks": result.checks.iter().map(check).collect::<Vec<_>>(),
        "other_loads": result.other_loads,
        "stopped": result.stopped,
    });
    format!("{document:#}\n")
}
