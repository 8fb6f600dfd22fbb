//! The policy that would mend a line, and what the simulator says of it.

use crate::sim;
use crate::trial::tc_rate;
use anyhow::Context;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tidegate_measure::experiment::Experiment;
use tidegate_measure::quick::{Grade, Load, Predicted, Quick, Remedy};

/// Buffers are believed to hold this at least.
const LEAST_BUFFER: u64 = 16_000;
/// A line's other direction, if nothing is known of it, is so much faster.
const FASTER: f64 = 4.0;

/// What would mend the line, tried; `None`: nothing needs to, or nothing is known of its rates.
pub(super) fn of(quick: &Quick, dev: &str) -> Option<Remedy> {
    if quick.grade()? < Grade::B {
        return None;
    }
    let (up, down) = quick.rates();
    let up = up.filter(|bits| *bits > 0.0)?;
    // What echoes carried is the slower way's rate: the faster one's is not known then.
    let both_only = quick.phases.iter().all(|phase| phase.load != Load::Down);
    let known_down = down.filter(|bits| *bits > 0.0 && !both_only);
    let policy = short(dev, up, known_down);
    let predicted = predict(quick, up, known_down).unwrap_or_default();
    Some(Remedy { policy, predicted })
}

/// A short policy for these rates.
fn short(dev: &str, up: f64, down: Option<f64>) -> String {
    let mut text = format!("device = \"{dev}\"\n");
    let _ = writeln!(text, "up = \"{}\"", tc_rate(rounded(up)));
    if let Some(down) = down {
        let _ = writeln!(text, "down = \"{}\"", tc_rate(rounded(down)));
    }
    text + "preset = \"home\"\n"
}

/// To three digits, down.
fn rounded(bits: f64) -> u64 {
    let bits = bits as u64;
    let scale = 10_u64.pow(bits.checked_ilog10().unwrap_or(0).saturating_sub(2)).max(1000);
    bits / scale * scale
}

/// The line with these figures, without and with the policy, in the simulator.
fn predict(quick: &Quick, up: f64, down: Option<f64>) -> anyhow::Result<Vec<Predicted>> {
    let far = quick.farthest().unwrap_or_default();
    let rtt = quick.pings(far, 0).rtt.percentile(50.0).unwrap_or(0);
    let up_buffer = quick.buffer(Load::Up).or(quick.buffer(Load::Both)).unwrap_or(0).max(LEAST_BUFFER);
    let line_down = down.unwrap_or(up * FASTER);
    let down_buffer = quick.buffer(Load::Down).unwrap_or((line_down / 32.0) as u64).max(LEAST_BUFFER);
    let file = Passing::new(&short("eth0", up, down))?;
    // A string of JSON is one of TOML.
    let policy = serde_json::Value::from(file.0.to_str().context("the directory for temporary files has no name")?);
    let mut text = format!(
        "warm-up = \"4s\"\nduration = \"12s\"\n[home]\nhosts = [\"a\"]\nup = \"{}\"\ndown = \"{}\"\nrtt = \"{rtt}ns\"\nbuffer = \"{up_buffer}\"\n\
         down-buffer = \"{down_buffer}\"\n[policies.none]\n[policies.fixed]\ngateway = {policy}\n[loads.up]\n\
         traffic = [{{ tcp = \"a -> server\", count = 4 }}]\n",
        tc_rate(up as u64),
        tc_rate(line_down as u64),
    );
    if down.is_some() {
        text += "[loads.down]\ntraffic = [{ tcp = \"a <- server\", count = 4 }]\n";
    }
    text += "[[traffic]]\nping = \"a -> server\"\nevery = \"50ms\"\n";
    let experiment = sim::of_text(Path::new("the line as measured"), &text)?;
    let loads = [Load::Up, Load::Down].into_iter().filter(|load| *load == Load::Up || down.is_some());
    Ok(loads.filter_map(|load| predicted(&experiment, load)).collect())
}

fn predicted(experiment: &Experiment, load: Load) -> Option<Predicted> {
    let pair = |policy: &str| {
        let case = experiment.case(policy, load.word())?;
        let figure = |name: &str| Some((case.figure(name).ok()?.median * 1e9) as u64);
        Some((figure("ping.median")?, figure("ping.p95")?))
    };
    Some(Predicted { load, without: pair("none")?, with: pair("fixed")? })
}

/// A file that is gone when this is.
struct Passing(PathBuf);

impl Passing {
    fn new(text: &str) -> anyhow::Result<Passing> {
        let path = std::env::temp_dir().join(format!("tidegate-quick-{}.toml", std::process::id()));
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(Passing(path))
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded_down_to_three_digits() {
        let cases = [(4_876_543.0, 4_870_000), (987_654.0, 987_000), (94_123_456.0, 94_100_000), (900.0, 0)];
        for (bits, expected) in cases {
            assert_eq!(rounded(bits), expected, "{bits}");
        }
    }
}
