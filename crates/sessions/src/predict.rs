//! A line with measured figures, without and with a policy, in the simulator.

use crate::error::{Error, Result, invalid};
use crate::simulated::{ScenarioFiles, WithPolicy, of_text};
use std::fmt::Write as _;
use std::path::Path;
use tidegate_measure::experiment::Experiment;
use tidegate_scenario::Files;
use tidegate_scenario::run::ExperimentWatch;
use tidegate_scenario::shell::tc_rate;

/// Buffers are believed to hold this at least, bytes.
const LEAST_BUFFER: f64 = 16_000.0;
/// A line's other direction, if nothing is known of it, differs by so much.
const OTHER: f64 = 4.0;
/// Of a provider whose queue was not seen, so much of a second.
const USUAL_BUFFER: f64 = 0.25;
/// Frames of full packets, as the line's device counts them.
const AS_FRAMES: f64 = 1514.0 / 1500.0;

/// One way of a line, as it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LineDirection {
    /// Throughput of IP packets, bits per second.
    pub bits: f64,
    /// How long what came last into its full buffer waited there, s; `None`: it was not filled.
    pub full: Option<f64>,
}

impl LineDirection {
    fn buffer(self) -> u64 {
        (self.full.unwrap_or(USUAL_BUFFER) * self.bits / 8.0).max(LEAST_BUFFER) as u64
    }
}

/// A line, as it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredLine {
    /// Away from here.
    pub up: Option<LineDirection>,
    /// Towards here.
    pub down: Option<LineDirection>,
    /// A round trip when it is idle, s.
    pub round_trip: f64,
}

/// TCP transfers at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// What it is called.
    pub name: String,
    /// How many uploads.
    pub up: usize,
    /// How many downloads.
    pub down: usize,
}

/// The simulator's prediction for a line under a load: pings' median and 95th percentile, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// As it is.
    pub without: (f64, f64),
    /// With the policy.
    pub with: (f64, f64),
}

/// A policy to try.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TriedPolicy<'p> {
    /// Any file that holds one.
    File(&'p Path),
    /// The text of a short policy.
    Short(&'p str),
}

/// The file name of a policy that is only a text.
const NAMELESS: &str = "/policy.toml";

/// Tries a policy for the device `dev` on the line under each load. What was not measured of the line is
/// taken to be like what was: its other direction four times as fast up, or a quarter down.
///
/// # Errors
/// No rate is known, the feature `predict` is off, the policy does not fit a home's gateway with that device,
/// or it was stopped.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use tidegate_scenario::run::ExperimentWatch;
/// use tidegate_sessions::predict::{LineDirection, MeasuredLine, Traffic, TriedPolicy, predict};
///
/// let up = LineDirection { bits: 4e6, full: Some(0.3) };
/// let line = MeasuredLine { up: Some(up), down: None, round_trip: 0.02 };
/// let policy = TriedPolicy::Short("device = \"eth0\"\nup = \"3500kbit\"\npreset = \"home\"\n");
/// let load = Traffic { name: "upload".to_owned(), up: 1, down: 0 };
/// let stop = AtomicBool::new(false);
/// let watch = ExperimentWatch { stop: &stop, begin: &|_, _| {}, seconds: &|_| {}, observer: &|| None };
/// let predicted = predict(&line, policy, "eth0", &[load], &watch).unwrap();
/// // The median ping beside an upload, without the policy and with it.
/// assert!(predicted[0].without.0 > 0.1 && predicted[0].with.0 < 0.08);
/// ```
pub fn predict(
    line: &MeasuredLine,
    policy: TriedPolicy<'_>,
    dev: &str,
    loads: &[Traffic],
    watch: &ExperimentWatch<'_>,
) -> Result<Vec<Prediction>> {
    if !cfg!(feature = "predict") {
        return invalid("predictions are not in this smaller build");
    }
    let (up, down) = match (line.up, line.down) {
        (Some(up), Some(down)) => (up, down),
        (Some(up), None) => (up, LineDirection { bits: up.bits * OTHER, full: None }),
        (None, Some(down)) => (LineDirection { bits: down.bits / OTHER, full: None }, down),
        (None, None) => return invalid("no rate was measured"),
    };
    let (path, text) = match policy {
        TriedPolicy::File(path) => (std::path::absolute(path)?, None),
        TriedPolicy::Short(text) => (NAMELESS.into(), Some(text)),
    };
    let with_policy = text.map(|text| WithPolicy { name: &path, text });
    let files: &dyn Files = match &with_policy {
        Some(files) => files,
        None => &ScenarioFiles::default(),
    };
    let text = scenario((up, down), line.round_trip, &path, dev, loads)?;
    let experiment = of_text((Path::new("the line as measured"), &text), files, watch)?;
    let prediction_of = |load: &Traffic| prediction(&experiment, &load.name);
    let all: Option<Vec<Prediction>> = loads.iter().map(prediction_of).collect();
    all.ok_or_else(|| Error::Invalid("the simulator gave no result".to_owned()))
}

fn scenario(
    (up, down): (LineDirection, LineDirection),
    trip: f64,
    policy: &Path,
    dev: &str,
    loads: &[Traffic],
) -> Result<String> {
    // A string of JSON is one of TOML.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let policy = policy.to_str().ok_or_else(|| Error::Invalid("the policy's path is not text".to_owned()))?;
    let policy = quoted(policy);
    let frames = |way: LineDirection| tc_rate((way.bits * AS_FRAMES) as u64);
    let lan = if dev == "eth1" { "eth0" } else { "eth1" };
    let mut text = format!(
        "warm-up = \"4s\"\nduration = \"12s\"\n[home]\nhosts = [\"a\"]\nwan = {}\nlan = \"{lan}\"\nup \
        = \"{}\"\ndown = \"{}\"\n\
         rtt = \"{}ns\"\nbuffer = \"{}\"\ndown-buffer \
         = \"{}\"\n[policies.without]\n[policies.with]\ngateway = {policy}\n",
        quoted(dev),
        frames(up),
        frames(down),
        (trip * 1e9) as u64,
        up.buffer(),
        down.buffer(),
    );
    for load in loads {
        let flow = |count: usize, arrow: &str| format!("{{ tcp = \"a {arrow} server\", count = {count} }}");
        let flows = [(load.up, "->"), (load.down, "<-")].into_iter().filter(|(count, _)| *count > 0);
        let flows: Vec<String> = flows.map(|(count, arrow)| flow(count, arrow)).collect();
        let _ = writeln!(text, "[loads.{}]\ntraffic = [{}]", quoted(&load.name), flows.join(", "));
    }
    text += "[[traffic]]\nping = \"a -> server\"\nevery = \"50ms\"\n";
    Ok(text)
}

fn prediction(experiment: &Experiment, load: &str) -> Option<Prediction> {
    let pair = |policy: &str| {
        let case = experiment.case(policy, load)?;
        let figure = |name: &str| Some(case.figure(name).ok()?.median);
        Some((figure("ping.median")?, figure("ping.p95")?))
    };
    Some(Prediction { without: pair("without")?, with: pair("with")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shaper below the line's rate takes the queue away, whichever device it names.
    #[test]
    fn a_shaper_is_predicted_to_help() {
        for dev in ["eth0", "eth1", "ppp0"] {
            let file = std::env::temp_dir().join(format!("tidegate-predict-{dev}-{}.tc", std::process::id()));
            // A list of commands needs no sandbox.
            let commands = format!("qdisc add dev {dev} root tbf rate 3500kbit burst 5k limit 10k\n");
            std::fs::write(&file, commands).expect("a file");
            let line = MeasuredLine {
                up: Some(LineDirection { bits: 4e6, full: Some(0.3) }),
                down: None,
                round_trip: 0.02,
            };
            let load = Traffic { name: "tcp_4up".into(), up: 4, down: 0 };
            let stop = std::sync::atomic::AtomicBool::new(false);
            let watch =
                ExperimentWatch { stop: &stop, begin: &|_, _| {}, seconds: &|_| {}, observer: &|| None };
            let result = predict(&line, TriedPolicy::File(&file), dev, &[load], &watch);
            let _ = std::fs::remove_file(&file);
            let predictions = result.unwrap_or_else(|error| panic!("{dev}: {error}"));
            assert!(
                predictions[0].without.0 > 0.15 && predictions[0].with.0 < 0.08,
                "{dev}: {predictions:?}"
            );
        }
    }
}
