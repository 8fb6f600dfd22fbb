//! The policy that would fix a line, and the simulator's prediction for it.

use crate::error::{Error, Result, chain};
use crate::predict::{LineDirection, MeasuredLine, Prediction, Traffic, TriedPolicy, predict};
use std::fmt::Write as _;
use tidegate_measure::quick::{CapacityEstimate, Grade, LoadDirection, PredictedRtt, Quick, Remedy};
use tidegate_scenario::run::ExperimentWatch;
use tidegate_scenario::shell::tc_rate;

/// Transfers at once, in the simulator.
const FLOWS: usize = 4;

/// What would fix the line, tried; `None`: nothing needs to, or nothing is known of its rates. What cannot be
/// tried is noted.
pub(super) fn of(quick: &mut Quick, dev: &str, watch: &ExperimentWatch<'_>) -> Option<Remedy> {
    if quick.grade()? < Grade::B {
        return None;
    }
    let (up, down) = quick.rates();
    let policy = short(dev, up?, down)?;
    let (up, known_down) = (up?.bits(), down.and_then(CapacityEstimate::full).filter(|bits| *bits > 0.0));
    let predicted = predicted(quick, up, known_down, watch).unwrap_or_else(|error| {
        quick.notes.push(format!("the simulator could not try it: {}", chain(&error)));
        Vec::new()
    });
    Some(Remedy { policy, predicted })
}

/// A short policy for these rates; unknown values are comments in it. `None`: the upload failed.
fn short(dev: &str, up: CapacityEstimate, down: Option<CapacityEstimate>) -> Option<String> {
    let written = |rate: CapacityEstimate| tc_rate(rounded(rate.bits()));
    if rounded(up.bits()) == 0 {
        return None;
    }
    let mut text = format!("device = \"{dev}\"\n");
    let _ = write!(text, "up = \"{}\"", written(up));
    if up.full().is_none() {
        text.push_str(" # the slower direction, which is the upload of most lines");
    }
    text.push('\n');
    match down {
        Some(CapacityEstimate::Full(bits)) if rounded(bits) > 0 => {
            let _ = writeln!(text, "down = \"{}\"", written(CapacityEstimate::Full(bits)));
        }
        _ => {
            let least = down.filter(|rate| rounded(rate.bits()) > 0);
            let least = least.map_or_else(String::new, |rate| format!(" (at least {})", written(rate)));
            let _ = writeln!(
                text,
                "# down = \"…\"{least}: not measured; `tidegate quick http://HOST/FILE` or a host with \
                `tidegate serve` measures it"
            );
        }
    }
    Some(text + "preset = \"home\"\n")
}

/// To three digits, down.
fn rounded(bits: f64) -> u64 {
    let bits = bits as u64;
    let scale = 10_u64.pow(bits.checked_ilog10().unwrap_or(0).saturating_sub(2)).max(1000);
    bits / scale * scale
}

/// The line with these figures, without and with the policy, in the simulator.
fn predicted(
    quick: &Quick,
    up: f64,
    down: Option<f64>,
    watch: &ExperimentWatch<'_>,
) -> Result<Vec<PredictedRtt>> {
    let far = quick.farthest().unwrap_or_default();
    let full = |load: LoadDirection, bits: f64| quick.buffer(load).map(|bytes| bytes as f64 * 8.0 / bits);
    let line = MeasuredLine {
        up: Some(LineDirection {
            bits: up,
            full: full(LoadDirection::Up, up).or(full(LoadDirection::Both, up)),
        }),
        down: down.map(|bits| LineDirection { bits, full: full(LoadDirection::Down, bits) }),
        round_trip: quick.pings(far, 0).rtt.percentile(50.0).unwrap_or(0) as f64 / 1e9,
    };
    let policy = short("eth0", CapacityEstimate::Full(up), down.map(CapacityEstimate::Full))
        .ok_or_else(|| Error::Invalid("a rate of nothing".to_owned()))?;
    let loads: Vec<LoadDirection> = [LoadDirection::Up, LoadDirection::Down]
        .into_iter()
        .filter(|load| *load == LoadDirection::Up || down.is_some())
        .collect();
    let traffic = |load: &LoadDirection| {
        let (up, down) = if *load == LoadDirection::Up { (FLOWS, 0) } else { (0, FLOWS) };
        Traffic { name: load.word().into(), up, down }
    };
    let traffic: Vec<Traffic> = loads.iter().map(traffic).collect();
    let predictions = predict(&line, TriedPolicy::Short(&policy), "eth0", &traffic, watch)?;
    let ns = |(median, high): (f64, f64)| ((median * 1e9) as u64, (high * 1e9) as u64);
    let one = |(load, prediction): (&LoadDirection, Prediction)| PredictedRtt {
        load: *load,
        without: ns(prediction.without),
        with: ns(prediction.with),
    };
    Ok(loads.iter().zip(predictions).map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_comment() {
        let lines = |up, down| {
            short("eth0", up, down).map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        };
        let known =
            lines(CapacityEstimate::Full(4.91e6), Some(CapacityEstimate::Full(19.8e6))).expect("a policy");
        assert_eq!(known[1..3], ["up = \"4910kbit\"", "down = \"19800kbit\""]);
        let pings = lines(CapacityEstimate::AtLeast(4.91e6), Some(CapacityEstimate::AtLeast(4.91e6)))
            .expect("a policy");
        assert!(pings[1].starts_with("up = \"4910kbit\" # the slower direction"), "{pings:?}");
        assert!(pings[2].starts_with("# down = \"…\" (at least 4910kbit): not measured"), "{pings:?}");
        assert!(
            lines(CapacityEstimate::Full(4e6), None)
                .is_some_and(|lines| lines[2].starts_with("# down = \"…\": not measured"))
        );
        assert_eq!(lines(CapacityEstimate::Full(300.0), None), None);
    }

    #[test]
    fn rates_are_rounded_down_to_three_digits() {
        let cases = [(4_876_543.0, 4_870_000), (987_654.0, 987_000), (94_123_456.0, 94_100_000), (900.0, 0)];
        for (bits, expected) in cases {
            assert_eq!(rounded(bits), expected, "{bits}");
        }
    }
}
