//! The policy that would mend a line, and what the simulator says of it.

use crate::measuring::predict::{Line, Said, Traffic, Way, predict};
use crate::trial::tc_rate;
use std::fmt::Write as _;
use std::path::PathBuf;
use tidegate_measure::quick::{Grade, Load, Predicted, Quick, Remedy};

/// Transfers at once, in the simulator.
const FLOWS: usize = 4;

/// What would mend the line, tried; `None`: nothing needs to, or nothing is known of its rates. What cannot be tried is noted.
pub(super) fn of(quick: &mut Quick, dev: &str) -> Option<Remedy> {
    if quick.grade()? < Grade::B {
        return None;
    }
    let (up, down) = quick.rates();
    let up = up.filter(|bits| *bits > 0.0)?;
    // What echoes carried is the slower way's rate: the faster one's is not known then.
    let both_only = quick.phases.iter().all(|phase| phase.load != Load::Down);
    let known_down = down.filter(|bits| *bits > 0.0 && !both_only);
    let policy = short(dev, up, known_down);
    let predicted = predicted(quick, up, known_down).unwrap_or_else(|error| {
        quick.notes.push(format!("the simulator could not try it: {error:#}"));
        Vec::new()
    });
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
fn predicted(quick: &Quick, up: f64, down: Option<f64>) -> anyhow::Result<Vec<Predicted>> {
    let far = quick.farthest().unwrap_or_default();
    let full = |load: Load, bits: f64| quick.buffer(load).map(|bytes| bytes as f64 * 8.0 / bits);
    let line = Line {
        up: Some(Way { bits: up, full: full(Load::Up, up).or(full(Load::Both, up)) }),
        down: down.map(|bits| Way { bits, full: full(Load::Down, bits) }),
        round_trip: quick.pings(far, 0).rtt.percentile(50.0).unwrap_or(0) as f64 / 1e9,
    };
    let file = Passing::new(&short("eth0", up, down))?;
    let loads: Vec<Load> =
        [Load::Up, Load::Down].into_iter().filter(|load| *load == Load::Up || down.is_some()).collect();
    let traffic = |load: &Load| {
        let (up, down) = if *load == Load::Up { (FLOWS, 0) } else { (0, FLOWS) };
        Traffic { name: load.word().into(), up, down }
    };
    let traffic: Vec<Traffic> = loads.iter().map(traffic).collect();
    let said = predict(&line, &file.0, "eth0", &traffic)?;
    let ns = |(median, high): (f64, f64)| ((median * 1e9) as u64, (high * 1e9) as u64);
    let one = |(load, said): (&Load, Said)| Predicted { load: *load, without: ns(said.without), with: ns(said.with) };
    Ok(loads.iter().zip(said).map(one).collect())
}

/// A file that is gone when this is.
struct Passing(PathBuf);

impl Passing {
    fn new(text: &str) -> anyhow::Result<Passing> {
        let path = std::env::temp_dir().join(format!("tidegate-quick-{}.toml", std::process::id()));
        crate::output::file(&path, text)?;
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
