//! `try_`.

use crate::failure::Failure;
use crate::input::{Given, Loading};
use crate::watch::watched;
use pyo3::prelude::*;
use std::sync::atomic::Ordering;
use tidegate_analysis::trial::{from_json, to_json};
use tidegate_capture::DEFAULT_TIMEOUT;
use tidegate_scenario::quantities::{measured, rate, size, span};
use tidegate_sessions::trial::{must_concern_either, must_have_worked, of_loaded, rates_of};
use tidegate_trial::{ModemBuffer, Trial, TrialCommand, TrialDevices, TrialLoad, TrialProbe, TrialSettings};

/// The link, the traffic, and what is kept: the options of `tidegate try`, as it reads them.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) struct Link {
    #[pyo3(item)]
    up: Option<String>,
    #[pyo3(item)]
    down: Option<String>,
    #[pyo3(item)]
    rtt: Option<String>,
    #[pyo3(item)]
    buffer: Option<String>,
    #[pyo3(item)]
    down_buffer: Option<String>,
    #[pyo3(item)]
    duration: Option<String>,
    #[pyo3(item)]
    dev: Option<String>,
    #[pyo3(item)]
    over: Option<(String, String)>,
    #[pyo3(item)]
    cable: Option<String>,
    #[pyo3(item)]
    ring: Option<u32>,
    #[pyo3(item)]
    bql: Option<String>,
    #[pyo3(item)]
    load: Vec<String>,
    #[pyo3(item)]
    flows: Option<u16>,
    #[pyo3(item)]
    probes: Option<Vec<String>>,
    #[pyo3(item)]
    ipv6: bool,
    #[pyo3(item)]
    seed: u64,
    #[pyo3(item)]
    keep_going: bool,
}

/// A policy on a simulated home link, as `tidegate try --json` prints it.
#[pyfunction]
#[pyo3(name = "try_")]
pub(crate) fn try_(
    py: Python<'_>,
    policy: Given,
    link: Link,
    loading: Loading,
    report: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    watched(py, report.as_ref(), move |watch| {
        let mut settings = link.settings(&policy)?;
        settings.args.clone_from(&loading.args);
        let loaded = loading.load(&policy, link.dev.iter().cloned().collect(), link.seed)?;
        if let Some(nothing) = loaded.nothing_found() {
            let troubles: String = loaded.troubles().map(|trouble| format!("\n{trouble}")).collect();
            return Err(Failure::input(format!("{nothing}{troubles}")));
        }
        let mut notes: Vec<String> = loaded.warnings().collect();
        let worked = must_have_worked(&loaded, link.keep_going).map_err(|error| {
            let troubles: String = notes.iter().map(|note| format!("\n{note}")).collect();
            Failure::input(format!("{error}{troubles}").replace("--keep-going does", "keep_going=True does"))
        })?;
        notes.extend(worked.into_iter().map(|how| format!("{how}; going on with what was understood")));
        let option = |error: String, name: &str| {
            Failure::input(error.replacen(&format!("--{name} "), &format!("{name} "), 1))
        };
        if let Some(dev) = &link.dev {
            loaded.must_concern(dev).map_err(|error| option(error.to_string(), "dev"))?;
        }
        must_concern_either(&loaded, link.over.as_ref())
            .map_err(|error| option(error.to_string(), "over"))?;
        let sandbox = loading.sandbox.options()?;
        let flags = [("private", loading.sandbox.private), ("keep-going", link.keep_going)];
        let name = |netns: &String| format!(" --netns {}", tidegate_text::shell_word(netns));
        let script = sandbox.netns.as_ref().map_or_else(String::new, name);
        let command = TrialCommand {
            policy: &policy.path,
            also: &loading.also,
            dev: link.dev.as_deref(),
            over: link.over.as_ref(),
            lan: None,
            kernel: loading.kernel()?,
            tc: loading.tc()?,
            timeout: Some(sandbox.timeout).filter(|time| *time != DEFAULT_TIMEOUT),
            script: &script,
            outputs: &[],
            flags: &flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect::<Vec<_>>(),
        };
        settings.again = command.words(&settings);
        let policy = of_loaded(
            loaded,
            TrialDevices { wan: link.dev.as_deref(), over: link.over.as_ref(), lan: None },
        )?;
        let mut trial = Trial::new(&settings, &policy);
        trial.explore();
        watch.total.store(trial.seconds(), Ordering::Relaxed);
        trial.simulate(&|| watch.step_or_unwind());
        Ok((to_json(&trial.document()), notes))
    })
}

impl Link {
    fn settings(&self, policy: &Given) -> Result<TrialSettings, Failure> {
        let (mut up, mut down) = (value("up", &self.up, rate)?, value("down", &self.down, rate)?);
        if up.is_none() || down.is_none() {
            let (of_up, of_down) =
                rates_of(&policy.path, &policy.text().unwrap_or_default()).map_err(Failure::input)?;
            (up, down) = (up.or(of_up), down.or(of_down));
        }
        let (Some(up), Some(down)) = (up, down) else {
            let missing = [("up", up), ("down", down)].into_iter().filter(|(_, rate)| rate.is_none());
            let missing: Vec<&str> = missing.map(|(name, _)| name).collect();
            return Err(Failure::input(format!(
                "the link's rate is missing: {}, such as \"20mbit\" (only a short policy with `up` and `down` \
                 needs none)",
                missing.join(" and ")
            )));
        };
        let usual = TrialSettings::new(policy.path.display().to_string(), up, down);
        let buffer = ModemBuffer::parse;
        let probes = match &self.probes {
            Some(names) => named(names, "probe", TrialProbe::named)?,
            None => usual.probes.clone(),
        };
        Ok(TrialSettings {
            rtt: value("rtt", &self.rtt, span)?.unwrap_or(usual.rtt),
            buffer: value("buffer", &self.buffer, buffer)?.unwrap_or(usual.buffer),
            down_buffer: value("down_buffer", &self.down_buffer, buffer)?,
            duration: value("duration", &self.duration, measured)?.unwrap_or(usual.duration),
            cable: value("cable", &self.cable, rate)?,
            ring: self.ring,
            bql: value("bql", &self.bql, size)?,
            load: named(&self.load, "load", TrialLoad::named)?,
            flows: self.flows,
            probes,
            ipv6: self.ipv6,
            seed: self.seed,
            ..usual
        })
    }
}

fn value<T>(
    name: &str,
    text: &Option<String>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Failure> {
    let read = |text: &String| read(text).map_err(|why| Failure::input(format!("{name}={text:?}: {why}")));
    text.as_ref().map(read).transpose()
}

fn named<T>(names: &[String], what: &str, named: fn(&str) -> Option<T>) -> Result<Vec<T>, Failure> {
    let one = |name: &String| named(name).ok_or_else(|| Failure::input(format!("unknown {what} {name:?}")));
    names.iter().map(one).collect()
}

/// The report of a trial, as `tidegate try -o FILE.html` writes it.
#[pyfunction]
pub(crate) fn trial_html(py: Python<'_>, json: String) -> PyResult<String> {
    watched(py, None, move |_| {
        let document = from_json(&json).map_err(Failure::input)?;
        Ok(tidegate_report::html(&document))
    })
}
