//! `tidegate quick`: half a minute, one page: idle and loaded latency, rates, where the bottleneck queue is,
//! and the policy that would fix it.
//!
//! ```text
//! tidegate_sessions::quick ──▶ measure::quick::Quick ──▶ text, JSON, page
//! ```

mod options;

pub use options::Options;

use crate::exit::CliExit;
use crate::measuring::again;
use crate::outputs::{self, Form, PAGES, ReportFile};
use crate::sim::Pace;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;
use tidegate_measure::quick::{Grade, LoadDirection, Quick, Remedy};
use tidegate_report::measuring::quick as report;
use tidegate_sessions::Error;
use tidegate_sessions::quick::{QuickOptions, measure};

/// Plays `tidegate quick`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("quick", attempt(options).map(|quick| code(&quick)))
}

fn code(quick: &Quick) -> CliExit {
    match quick.grade() {
        _ if quick.partial.is_some() => CliExit::Partial,
        None => CliExit::Partial,
        Some(grade) if grade > Grade::B => CliExit::No,
        Some(_) => CliExit::Yes,
    }
}

fn attempt(options: &Options) -> anyhow::Result<Quick> {
    crate::output::may_write(outputs::paths(&options.output).chain(options.save_policy.as_deref()))?;
    let (shown, pace) = (OnceLock::new(), Pace::default());
    let saved = options.save_policy.as_ref().and_then(|path| path.to_str());
    let far_options = options.far.words();
    let measured = QuickOptions {
        reflectors: &options.hosts,
        target: &|name| options.far.target(name).map_err(|error| Error::Invalid(format!("{error:#}"))),
        family: options.far.family.family(),
        time_ns: options.duration.0,
        most_bps: options.max_rate.0 as f64 * 8.0,
        max_data: options.max_data.into(),
        echo_load: options.echo_load,
        far_options: &far_options,
        saved,
        dev: options.dev.as_deref(),
        again: again(),
        // It counts from when it is known who answers.
        tell: &|doing| shown.get_or_init(|| bar(options)).set_message(doing.to_owned()),
        stop: tidegate_sys::interrupt::notice,
        simulating: &|_, seconds| pace.begin(seconds),
        simulated: &|more| pace.add(more),
    };
    let quick = measure(&measured)?;
    pace.finish();
    shown.get().into_iter().for_each(ProgressBar::finish_and_clear);
    give(options, &quick)?;
    Ok(quick)
}

/// Prints the result, and writes its files; it is printed even where a file cannot be written.
fn give(options: &Options, quick: &Quick) -> anyhow::Result<()> {
    let json = || format!("{:#}\n", tidegate_analysis::quick::json(quick));
    let text = if options.json { json() } else { report::text(quick) };
    crate::output::report(&text);
    for ReportFile { path, form } in &options.output {
        crate::output::file(path, if PAGES && *form == Form::Html { report::page(quick) } else { json() })?;
    }
    let Some(path) = &options.save_policy else { return Ok(()) };
    match &quick.remedy {
        Some(remedy) if remedy.missing.is_none() => crate::output::file(path, &remedy.policy)?,
        _ => {
            let why = unsaved(quick);
            crate::output::error_lines(&format!("tidegate quick: {} was not written: {why}", path.display()));
        }
    }
    Ok(())
}

/// Why there is no policy to save.
fn unsaved(quick: &Quick) -> String {
    match (&quick.remedy, quick.grade()) {
        (Some(Remedy { missing: Some(missing), .. }), _) if waits_in_own_network(quick, missing) => format!(
            "under {missing}s the queue is in your own network, so the line's {missing} rate is unknown, and \
            `tidegate try` needs both; measure on the router, or by cable next to it"
        ),
        (Some(Remedy { missing: Some(missing), .. }), _) => {
            format!("the {missing} rate was not measured, and `tidegate try` needs both; see above")
        }
        (_, Some(grade)) if grade < Grade::B => "nothing needs to be fixed".to_owned(),
        (None, Some(_)) if quick.is_in_own_network() => {
            "the queue is in your own network, where a policy for the line does not help; measure on the \
            router, or by cable next to it"
                .to_owned()
        }
        (_, None) => "the line was not full, so it is unknown whether it needs a policy".to_owned(),
        _ => "no rate was measured".to_owned(),
    }
}

/// Whether the direction that a policy lacks (`upload` or `download`) was measured in the user's own network.
fn waits_in_own_network(quick: &Quick, missing: &str) -> bool {
    let load = if missing == "upload" { LoadDirection::Up } else { LoadDirection::Down };
    quick.waits_in_own_network(load)
}

/// Shows how long it has gone on, where someone looks.
fn bar(options: &Options) -> ProgressBar {
    let is_shown = crate::output::progress_columns().is_some();
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(options.duration.0 / 1_000_000_000), target);
    if let Ok(style) = ProgressStyle::with_template("{elapsed} of about {len} s  {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
