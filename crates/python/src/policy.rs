//! `check`, `explain` and `run`.

use crate::failure::Failure;
use crate::input::{Given, Loading};
use crate::watch::watched;
use pyo3::prelude::*;
use tidegate_capture::{Exit, Output};
use tidegate_inspect::Packet;
use tidegate_inspect::PolicyModel;
use tidegate_inspect::checked::to_json;
use tidegate_inspect::explained::{Explained, ExplainedPacket};
use tidegate_loader::ReadOptions;
use tidegate_loader::checked::CheckError;
use tidegate_loader::runs::{RunOptions, ScriptRuns};

/// A document, and what else is to be said.
type Documented = (String, Vec<String>);

/// The findings about a policy, as `tidegate check --json` prints them.
#[pyfunction]
pub(crate) fn check(
    py: Python<'_>,
    policy: Given,
    loading: Loading,
    dev: Option<String>,
) -> PyResult<Documented> {
    watched(py, None, move |_| {
        let how = loading.options(dev.iter().cloned().collect(), 1)?;
        let loaded = loading.load_as(&policy, &ReadOptions { batches_go_on: true, ..how })?;
        let checked = loaded.checked(dev.as_deref()).map_err(|error| match error {
            CheckError::NoSuchDevice(error) => {
                Failure::input(error.to_string().replacen("--dev ", "dev ", 1))
            }
            other => Failure::input(other),
        })?;
        Ok((to_json(&checked), loaded.cut_off().collect()))
    })
}

/// What packets meet under a policy, as `tidegate explain --json` prints it.
#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    policy: Given,
    packets: Vec<String>,
    loading: Loading,
    reply: bool,
    other: Option<Given>,
) -> PyResult<Documented> {
    watched(py, None, move |_| {
        let parsed = packets.iter().map(|words| Packet::parse(words)).collect::<Result<Vec<Packet>, _>>()?;
        let packets = parsed.into_iter().map(|packet| ExplainedPacket { heading: String::new(), packet });
        let (reading, mut notes) = read(&loading, &policy)?;
        let other = match other.map(|other| read(&loading, &other)).transpose()? {
            Some((reading, more)) => {
                notes.extend(more);
                Some(reading)
            }
            None => None,
        };
        let explained = Explained::of(reading, other, packets.collect(), reply).map_err(Failure::input)?;
        Ok((explained.to_json(), notes))
    })
}

fn read(loading: &Loading, policy: &Given) -> Result<(PolicyModel, Vec<String>), Failure> {
    let loaded = loading.load(policy, Vec::new(), 1)?;
    if !loaded.ended() {
        let name = policy.path.display();
        return Err(Failure::input(format!(
            "{name} did not come to its end, so what it configures is not known"
        )));
    }
    match loaded.nothing_found() {
        Some(nothing) => Err(Failure::input(nothing)),
        None => Ok((loaded.reading(), loaded.warnings().collect())),
    }
}

/// A script's runs on a model of the machine, as `tidegate run --json` prints them, and the exit code of the
/// last one; `None`: it did not come to its end.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    policy: Given,
    then: Vec<Vec<String>>,
    devices: Vec<String>,
    loading: Loading,
) -> PyResult<(String, Option<i32>)> {
    watched(py, None, move |_| {
        let mut turns = vec![loading.args.clone()];
        turns.extend(then);
        let how = RunOptions {
            turns,
            devices,
            sandbox: loading.sandbox.options()?,
            kernel: loading.kernel()?,
            tc: loading.tc()?,
            output: Output::Collect,
            ..RunOptions::default()
        };
        let mut runs = match policy.own_text() {
            Some((name, text)) => ScriptRuns::of_text(&name.to_string_lossy(), text, &how)?,
            None => ScriptRuns::of(&policy.path, &how, &mut |_| {})?,
        };
        let code = match runs.outcomes.last().map(|outcome| &outcome.exit) {
            Some(Exit::Code(code)) => Some(i32::from(*code)),
            Some(Exit::Signal(signal)) => Some(128 + i32::from(*signal)),
            _ => None,
        };
        Ok((runs.to_json(), code))
    })
}
