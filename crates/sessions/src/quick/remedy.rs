//! The policy that would fix a line, and the simulator's prediction for it.

use crate::error::{Error, Result, chain};
use crate::predict::{LineDirection, MeasuredLine, Prediction, Traffic, TriedPolicy, predict};
use std::fmt::Write as _;
use tidegate_measure::quick::{CapacityEstimate, Grade, LoadDirection, PredictedRtt, Quick, Remedy};
use tidegate_scenario::run::ExperimentWatch;
use tidegate_scenario::shell::tc_rate;

/// Transfers at once, in the simulator.
const FLOWS: usize = 4;

/// What is said of a queue before the first hop of a computer that may be the router.
const ROUTER: &str = "the queue is before the first router on the path, and this computer forwards packets: \
    if it is the router at the line, that is the line, and the policy is for it; if it is a computer behind \
    that router (a host of containers, for example), the queue is in your own network, and a better cable, \
    switch or Wi-Fi helps instead";

/// What would fix the line, tried; `None`: nothing needs to, or nothing is known of its rates. What cannot be
/// tried is noted.
pub(super) fn of(
    quick: &mut Quick,
    (dev, saved): (&str, Option<&str>),
    watch: &ExperimentWatch<'_>,
) -> Option<Remedy> {
    if quick.grade()? < Grade::B {
        return None;
    }
    if quick.may_wait_at_line_or_home() {
        quick.notes.push(ROUTER.into());
    }
    if quick.is_in_own_network() {
        quick.notes.push(
            "the queue is in your own network, before the first router: a better cable, switch or Wi-Fi \
                helps, a \
            policy for the line does not; measure again by cable, next to the router"
                .into(),
        );
        return None;
    }
    let (mut up, mut down) = quick.rates();
    for (load, rate, name) in
        [(LoadDirection::Up, &mut up, "uploads"), (LoadDirection::Down, &mut down, "downloads")]
    {
        if quick.waits_in_own_network(load) && rate.take().is_some() {
            quick.notes.push(format!(
                "under {name} the queue is in your own network, before the first router: that rate is not the \
                line's, and no policy is proposed for it"
            ));
        }
    }
    let policy = short(dev, up, down)?;
    let (known_up, known_down) = (known(up), known(down));
    let predicted = predicted(quick, known_up, known_down, watch).unwrap_or_else(|error| {
        quick.notes.push(format!("the simulator could not try it: {}", chain(&error)));
        Vec::new()
    });
    let missing = match (known_up, known_down) {
        (Some(_), Some(_)) => None,
        (None, _) => Some("upload".to_owned()),
        (_, None) => Some("download".to_owned()),
    };
    let saved = saved.filter(|_| missing.is_none()).map(str::to_owned);
    Some(Remedy { policy, missing, saved, predicted })
}

/// A rate that a policy can be made of.
fn known(rate: Option<CapacityEstimate>) -> Option<f64> {
    rate.and_then(CapacityEstimate::full).filter(|bits| rounded(*bits) > 0)
}

/// What the policy makes of its rates, as its first lines.
const SHAPED: &str = "\
# One cake in each direction, at 95 % of the upload and 90 % of the download rate, so that the queue is here
# and not at the provider; where the kernel has no cake, one fq_codel at 95 % and 85 %.
";

/// A short policy for these rates; unknown values are comments in it. `None`: neither is known.
fn short(dev: &str, up: Option<CapacityEstimate>, down: Option<CapacityEstimate>) -> Option<String> {
    if known(up).is_none() && known(down).is_none() {
        return None;
    }
    let mut text = format!("{SHAPED}device = \"{dev}\"\n");
    for (key, rate) in [("up", up), ("down", down)] {
        match known(rate) {
            Some(bits) => {
                let _ = writeln!(text, "{key} = \"{}\"", tc_rate(rounded(bits)));
            }
            None => {
                let least = rate.filter(|rate| rounded(rate.bits()) > 0);
                let least = least.map_or_else(String::new, |rate| {
                    format!(" (at least {})", tc_rate(rounded(rate.bits())))
                });
                let _ = writeln!(text, "# {key} = \"…\"{least}: not measured");
            }
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
    up: Option<f64>,
    down: Option<f64>,
    watch: &ExperimentWatch<'_>,
) -> Result<Vec<PredictedRtt>> {
    let far = quick.farthest().unwrap_or_default();
    let full = |load: LoadDirection, bits: f64| quick.buffer(load).map(|bytes| bytes as f64 * 8.0 / bits);
    let line = MeasuredLine {
        up: up.map(|bits| LineDirection {
            bits,
            full: full(LoadDirection::Up, bits).or(full(LoadDirection::Both, bits)),
        }),
        down: down.map(|bits| LineDirection { bits, full: full(LoadDirection::Down, bits) }),
        round_trip: quick.pings(far, 0).rtt.percentile(50.0).unwrap_or(0) as f64 / 1e9,
    };
    let policy = short("eth0", up.map(CapacityEstimate::Full), down.map(CapacityEstimate::Full))
        .ok_or_else(|| Error::Invalid("a rate of nothing".to_owned()))?;
    let loads: Vec<LoadDirection> = [(LoadDirection::Up, up), (LoadDirection::Down, down)]
        .into_iter()
        .filter_map(|(load, rate)| rate.map(|_| load))
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
    use tidegate_loader::short::understand;
    use tidegate_syntax::short::{Short, TreeKind};

    #[test]
    fn what_is_not_known_is_a_comment() {
        let lines = |up, down| {
            short("eth0", up, down).map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        };
        let (full, least) =
            (|bits| Some(CapacityEstimate::Full(bits)), |bits| Some(CapacityEstimate::AtLeast(bits)));
        let known = lines(full(4.91e6), full(19.8e6)).expect("a policy");
        // What the first lines say is what it comes to.
        let text = known.join("\n");
        let short = |text: &str| understand(text).expect("a policy").0;
        let shares = |short: Short| (short.kind, short.shape, short.down_share());
        assert_eq!(shares(short(&text)), (TreeKind::Cake, 95, 90));
        assert_eq!(shares(short(&text).without_cake()), (TreeKind::FqCodel, 95, 85));
        assert_eq!(known[3..5], ["up = \"4910kbit\"", "down = \"19800kbit\""]);
        let up_only = lines(full(4.91e6), least(4.91e6)).expect("a policy");
        assert_eq!(up_only[3..5], ["up = \"4910kbit\"", "# down = \"…\" (at least 4910kbit): not measured"]);
        let down_only = lines(None, full(19.8e6)).expect("a policy");
        assert_eq!(down_only[3..5], ["# up = \"…\": not measured", "down = \"19800kbit\""]);
        // What the slower direction carries is neither's rate, and makes no policy.
        assert_eq!(lines(least(4.91e6), least(4.91e6)), None);
        assert_eq!((lines(full(300.0), None), lines(None, None)), (None, None));
    }

    #[test]
    fn rates_are_rounded_down_to_three_digits() {
        let cases = [(4_876_543.0, 4_870_000), (987_654.0, 987_000), (94_123_456.0, 94_100_000), (900.0, 0)];
        for (bits, expected) in cases {
            assert_eq!(rounded(bits), expected, "{bits}");
        }
    }
}
