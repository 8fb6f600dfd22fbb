//! The link's rates: from the command line, or from a short policy that has them.

use super::options::Options;
use std::io::ErrorKind;
use std::path::Path;
use tidegate_packet::Rate;
use tidegate_scenario::presets::{LinePreset, VaryingLine};
use tidegate_scenario::shell::quoted;
use tidegate_scenario::{TraceSpec, joined_names};
use tidegate_sim::Trace;
use tidegate_trial::{ModemBuffer, TrialLine, TrialSettings};

/// The link of a trial.
pub(crate) struct TrialLink {
    /// The rates, of a direction that varies its mean.
    pub(crate) up: Rate,
    pub(crate) down: Rate,
    /// The line, if it varies.
    pub(crate) line: Option<TrialLine>,
}

impl TrialLink {
    /// That of settings made before.
    pub(crate) fn of(settings: &TrialSettings) -> TrialLink {
        TrialLink { up: settings.up, down: settings.down, line: settings.line.clone() }
    }

    /// A line that is always the same.
    fn fixed(up: Rate, down: Rate) -> TrialLink {
        TrialLink { up, down, line: None }
    }
}

/// The link of a trial.
///
/// # Errors
/// A rate is missing: which, and where it can be written. A recording cannot be read.
pub(crate) fn of(options: &Options) -> Result<TrialLink, String> {
    if let Some(preset) = options.preset {
        return varying_by_name(options, preset);
    }
    let names = crate::words::names(&options.trace);
    if names.len() > 2 {
        return Err("--trace takes two recordings: of the upload, and of the download".to_owned());
    }
    let given = |at: usize| names.get(at).filter(|name| !name.is_empty());
    let recorded = |at: usize| given(at).map(|name| recording(name)).transpose();
    let traces = [recorded(0)?, recorded(1)?];
    let rates = [("up", options.up, &traces[0]), ("down", options.down, &traces[1])].map(
        |(name, rate, trace)| match (rate, trace.as_ref().and_then(Trace::mean_rate)) {
            (Some(_), Some(_)) => {
                Err(format!("--{name} beside a recording of --trace that has rates: leave it out"))
            }
            (rate, mean) => Ok(rate.or(mean.map(Rate::bits))),
        },
    );
    let [up, down] = rates;
    let fixed = fixed(options, (up?, down?))?;
    let [up, down] = traces;
    if up.is_none() && down.is_none() {
        return Ok(fixed);
    }
    let files = joined_names(names.iter().map(String::as_str), ',');
    let named: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let line = TrialLine {
        name: format!("as recorded in {}", named.join(" and ")),
        options: format!("--trace {}", quoted(&files)),
        up,
        down,
        buffers: None,
    };
    Ok(TrialLink { line: Some(line), ..fixed })
}

/// A line by the name of its preset.
fn varying_by_name(options: &Options, preset: &LinePreset) -> Result<TrialLink, String> {
    let VaryingLine { up, down } = preset.line(options.seed);
    let mean = |trace: &Trace| trace.mean_rate().map(Rate::bits).ok_or("the preset has no rates");
    let (up_rate, down_rate) = (mean(&up)?, mean(&down)?);
    let line = TrialLine {
        name: format!("the preset {}, seed {}", preset.name, options.seed),
        options: format!("--preset {}", preset.name),
        up: Some(up),
        down: Some(down),
        buffers: Some(preset.buffers.map(ModemBuffer::Time)),
    };
    Ok(TrialLink { up: up_rate, down: down_rate, line: Some(line) })
}

/// A recording, or what is made of several.
///
/// # Errors
/// It cannot be read: the line and what to do.
fn recording(name: &str) -> Result<Trace, String> {
    let spec = TraceSpec::parse(name, &|name| Path::new(name).exists())?;
    spec.read(&|name| crate::input::result_text(Path::new(name)).map_err(|error| format!("{error:#}")))
}

/// The link with the rates that the options or a short policy name.
fn fixed(options: &Options, (up, down): (Option<Rate>, Option<Rate>)) -> Result<TrialLink, String> {
    if let (Some(up), Some(down)) = (up, down) {
        return Ok(TrialLink::fixed(up, down));
    }
    let (of_up, of_down) = of_policy(&options.script)?;
    match (up.or(of_up), down.or(of_down)) {
        (Some(up), Some(down)) => Ok(TrialLink::fixed(up, down)),
        (up, down) => {
            let missing = [("--up RATE", up), ("--down RATE", down)].into_iter();
            let missing = missing.filter(|(_, rate)| rate.is_none()).map(|(option, _)| option);
            Err(format!(
                "the link's rate is missing: {}, such as 20mbit (only a short policy with `up` and `down` needs \
                 no such options)",
                missing.collect::<Vec<_>>().join(" ")
            ))
        }
    }
}

/// The rates that a short policy names.
///
/// # Errors
/// There is no such file, or its policy has mistakes.
fn of_policy(file: &Path) -> Result<(Option<Rate>, Option<Rate>), String> {
    let name = file.to_string_lossy();
    let text = match crate::input::policy(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(format!("{name}: there is no such file; check the path"));
        }
        // What else is wrong with a file is said where it is loaded.
        text => text.unwrap_or_default(),
    };
    let rates = tidegate_sessions::trial::rates_of(file, &text)?;
    // What is not read needs no rates.
    match tidegate_loader::sniff(&name, text.as_bytes()) {
        Err(error) if !text.is_empty() => Err(format!("{name}: {error}")),
        _ => Ok(rates),
    }
}
