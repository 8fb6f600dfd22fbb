//! `tidegate gym`: controllers of a shaper's rate on lines that vary.
//!
//! ```text
//! presets, recordings, failures ─▶ cases ─▶ sessions::gym (all processors) ─▶ GymDocument ─▶ text | JSON | page
//! ```

mod lines;
mod options;
mod text;

pub use options::Options;

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use crate::sweep::results::SCALE;
use anyhow::{Context, bail};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use tidegate_control::{CakeAutorateSettings, PerDirection, RateLimits};
use tidegate_gym::{ControllerChoice, GYM_FORM, GymCase, GymDocument, GymLoad, NAMED_FAILURES, compare};
use tidegate_packet::Nanos;
use tidegate_report::chart::{Drawing, Theme, file, png};
use tidegate_scenario::shell::{quoted, quoted_path};
use tidegate_sessions::gym::{GymJob, GymWatch, MAX_CASES, details, play};

/// Pixels of a picture's width.
const WIDTH: f64 = 720.0;
/// Cases in detail on a page if none is asked for.
const DETAILS: usize = 6;

/// Plays `tidegate gym`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate gym: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let controllers = controllers(options)?;
    let named: Vec<ControllerChoice> =
        baselines().into_iter().filter(|one| !controllers.contains(one)).collect();
    let all: Vec<ControllerChoice> = controllers.iter().cloned().chain(named.iter().cloned()).collect();
    let (mut cases, mut abouts) = cases(options)?;
    let mut wanted = wanted(options, &cases)?;
    if options.output.iter().any(is_picture) && wanted.len() != 1 {
        bail!("a picture shows one case: name it with --detail, as in `--detail {}`", cases[0].name);
    }
    if let ([only], true) = (&wanted[..], is_picture_only(options)) {
        (cases, abouts) = (vec![cases.swap_remove(*only)], vec![abouts.swap_remove(*only)]);
        wanted = vec![0];
    }
    crate::output::may_write(outputs::paths(&options.output))?;
    let columns = "playing  1234567/1234567 runs, 10m left".len();
    let words = ("playing", "{pos}/{len} runs, {eta} left");
    let bar = crate::output::progress_bar((cases.len() * all.len()) as u64, words, columns);
    let done = || bar.inc(1);
    let watch = GymWatch { stop: tidegate_sys::interrupt::notice(), done: &done };
    let job = GymJob { cases: &cases, controllers: &all, workers: options.jobs.map(usize::from) };
    let played = play(&job, &watch);
    bar.finish_and_clear();
    let (rows, failures) = match played {
        Err(tidegate_sessions::Error::Partial(why)) => {
            eprintln!("tidegate gym: {why}");
            return Ok(CliExit::Partial);
        }
        other => other?,
    };
    let names: Vec<String> = all.iter().map(ToString::to_string).collect();
    let has_page = options.output.iter().any(|file| file.form == Form::Html);
    let wanted = if has_page && wanted.is_empty() { latest(&rows) } else { wanted };
    let wanted: Vec<(usize, String)> = wanted.into_iter().map(|row| (row, abouts[row].clone())).collect();
    let quiet = GymWatch { stop: tidegate_sys::interrupt::notice(), done: &|| () };
    let details = if wanted.is_empty() { Vec::new() } else { details(&job, &quiet, &wanted)? };
    let first = cases.first();
    let document = GymDocument {
        tidegate_gym: GYM_FORM,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: again(options),
        shaper: options.shaper.name().to_owned(),
        seconds: first.map_or([0.0; 2], |case| [case.warm_up, case.duration].map(Nanos::as_secs_f64)),
        comparison: compare(&names, &rows),
        controllers: names,
        baselines: named.len(),
        rows,
        failures,
        details,
    };
    for ReportFile { path, form } in &options.output {
        let content = match form {
            Form::Html => tidegate_report::gym::page(&document).into_bytes(),
            Form::Svg => file(&picture(&document)?, WIDTH, Theme::Light).into_bytes(),
            Form::Png => png(&picture(&document)?, WIDTH, SCALE, Theme::Light)?,
            _ => json(&document)?.into_bytes(),
        };
        crate::output::file(path, content)?;
    }
    if options.json {
        crate::output::text(&json(&document)?);
    } else {
        crate::output::report(&text::report(&document, options.cases));
    }
    Ok(if document.failures.is_empty() { CliExit::Yes } else { CliExit::No })
}

fn is_picture(file: &ReportFile) -> bool {
    matches!(file.form, Form::Svg | Form::Png)
}

/// A picture is all that is wanted: then its case is all that is played.
fn is_picture_only(options: &Options) -> bool {
    let has_picture = !options.output.is_empty() && options.output.iter().all(is_picture);
    has_picture && !options.json && !options.cases
}

/// The case in detail, with the first controller.
fn picture(document: &GymDocument) -> anyhow::Result<Drawing> {
    let detail = document.details.first().context("no case in detail")?;
    let one = detail.records.first().filter(|one| one.controller == 0);
    let one =
        one.context("the first controller has no picture: it failed in this case, or its rate is fixed")?;
    let case = &document.rows[detail.row].case;
    Ok(tidegate_report::gym::case_drawing(case, &document.controllers[0], &one.record))
}

fn json(document: &GymDocument) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

/// What every controller is compared with.
fn baselines() -> [ControllerChoice; 4] {
    [
        ControllerChoice::Known,
        ControllerChoice::Fixed(0.5),
        ControllerChoice::Fixed(0.75),
        ControllerChoice::Fixed(1.0),
    ]
}

fn controllers(options: &Options) -> anyhow::Result<Vec<ControllerChoice>> {
    let mut controllers = options.controllers.clone();
    if controllers.is_empty() {
        let usual =
            [ControllerChoice::Own, ControllerChoice::CakeAutorate(None), ControllerChoice::SqmAutorate];
        controllers = usual.into();
    }
    let mut seen: Vec<String> = Vec::new();
    for controller in &controllers {
        let name = controller.to_string();
        if seen.contains(&name) {
            bail!("{name} is given twice");
        }
        seen.push(name);
    }
    for controller in &controllers {
        let ControllerChoice::Program(path) = controller else { continue };
        let found = std::fs::metadata(path).with_context(|| format!("program:{path}"))?;
        if !found.is_file() {
            bail!("program:{path}: this is no file; name the program itself");
        }
        if found.permissions().mode() & 0o111 == 0 {
            bail!("program:{path}: it may not be run; allow that: chmod +x {}", quoted(path));
        }
        // Found here, it is one error, and not one for each case.
        tidegate_capture::check_program(Path::new(path))
            .map_err(|error| anyhow::anyhow!("program:{error}"))?;
        let executable = std::env::current_exe().context("find our own executable")?;
        tidegate_capture::available(&executable)
            .with_context(|| format!("program:{path}: programs run in a sandbox only"))?;
    }
    let Some(path) = &options.cake_config else { return Ok(controllers) };
    let text = crate::input::policy(path).with_context(|| path.display().to_string())?;
    // Whatever it leaves out is as for the line; what is wrong in it is so on any line.
    let both = |rate| PerDirection { up: rate, down: rate };
    let any = RateLimits { least: both(1), base: both(1), most: both(u64::MAX >> 12) };
    CakeAutorateSettings::new(any)
        .read(&text)
        .map_err(|wrong| anyhow::anyhow!(wrong))
        .with_context(|| path.display().to_string())?;
    let given = controllers.iter_mut().find(|one| **one == ControllerChoice::CakeAutorate(None));
    let Some(given) = given else {
        bail!("--cake-config is for the controller cake-autorate, which is not given")
    };
    *given = ControllerChoice::CakeAutorate(Some(text));
    Ok(controllers)
}

/// The cases, and what happens in each.
fn cases(options: &Options) -> anyhow::Result<(Vec<GymCase>, Vec<String>)> {
    let mut cases = Vec::new();
    let mut abouts = Vec::new();
    if options.failures {
        for failure in &NAMED_FAILURES {
            cases.push(GymCase { seed: options.seed, ..failure.case() });
            abouts.push(failure.about.to_owned());
        }
    } else {
        let usual = || GymLoad::NAMED.iter().map(|(_, load, _)| *load).filter(|load| *load != GymLoad::Idle);
        let loads: Vec<GymLoad> =
            if options.loads.is_empty() { usual().collect() } else { options.loads.clone() };
        for (line, about) in lines::lines(options)? {
            for load in &loads {
                cases.push(GymCase::new(line.clone(), *load, options.seed));
                let what = GymLoad::NAMED.iter().find(|(_, of, _)| of == load).map_or("", |(.., what)| *what);
                abouts.push(format!("{about}; {what}"));
            }
        }
    }
    if cases.len() > MAX_CASES {
        bail!("these are {} cases; {MAX_CASES} are the most at once", cases.len());
    }
    for case in &mut cases {
        case.shaper = options.shaper;
        if !options.failures {
            case.duration = Nanos::secs(u64::from(options.duration));
        }
    }
    Ok((cases, abouts))
}

/// The cases that are wanted in detail.
fn wanted(options: &Options, cases: &[GymCase]) -> anyhow::Result<Vec<usize>> {
    let find = |name: &String| {
        cases.iter().position(|case| case.name == *name).with_context(|| {
            let some: Vec<&str> = cases.iter().take(5).map(|case| case.name.as_str()).collect();
            format!("--detail {name}: there is no such case; cases are called {}, …", some.join(", "))
        })
    };
    options.detail.iter().map(find).collect()
}

/// The cases in which the first controller is latest.
fn latest(rows: &[tidegate_gym::CaseRow]) -> Vec<usize> {
    let late = |row: usize| rows[row].scores.first().and_then(|score| Some(score.as_ref()?.call_p95_ms));
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|one, other| late(*other).unwrap_or(f64::MAX).total_cmp(&late(*one).unwrap_or(f64::MAX)));
    order.truncate(DETAILS);
    order.sort_unstable();
    order
}

/// The mean rate as the option takes it.
fn mean(options: &Options) -> String {
    match options.mean.as_bits() {
        0 => "0".to_owned(),
        bits if bits % 1_000_000 == 0 => format!("{}mbit", bits / 1_000_000),
        bits => format!("{bits}bit"),
    }
}

/// The command that gives the same result.
fn again(options: &Options) -> String {
    let mut line = "tidegate gym".to_owned();
    let mut add = |word: &str, value: String| line.push_str(&format!(" {word}{value}"));
    options.controllers.iter().for_each(|one| add("", quoted(&one.to_string()).to_string()));
    if !options.traces.is_empty() {
        add("--traces ", quoted(&options.traces.join(",")).to_string());
    }
    if !options.loads.is_empty() {
        add("--loads ", options.loads.iter().map(|load| load.name()).collect::<Vec<_>>().join(","));
    }
    if options.failures {
        add("--failures", String::new());
    } else {
        add("--lines ", options.lines.to_string());
        add("--duration ", format!("{}s", options.duration));
        add("--mean ", mean(options));
    }
    if let Some(path) = &options.cake_config {
        add("--cake-config ", quoted(&path.display().to_string()).to_string());
    }
    add("--shaper ", options.shaper.name().to_owned());
    options.detail.iter().for_each(|case| add("--detail ", quoted(case).to_string()));
    if is_picture_only(options) {
        // Without it all cases would be played.
        options.output.iter().for_each(|file| add("-o ", quoted_path(&file.path)));
    }
    add("--seed ", options.seed.to_string());
    line
}
