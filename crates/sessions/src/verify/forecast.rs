//! The simulator's prediction, from measurements without the policy.

use super::options::{NAMES, VerifyOptions};
use crate::error::{Error, Result, invalid};
use crate::measure::Measurement;
use crate::predict::{LineDirection, MeasuredLine, Traffic, TriedPolicy, predict};
use tidegate_analysis::verify::Predicted;
use tidegate_measure::experiment::{Experiment, RunRecord, Spread, figure};
use tidegate_scenario::run::ExperimentWatch;

/// IP packets of what TCP carried: full ones, 52 of 1,500 bytes heads.
const WITH_HEADS: f64 = 1500.0 / 1448.0;

/// The simulator's prediction for the policy, from measurements without it: the medians and 95th percentiles
/// of the round trips under each load. `device` is the one after which the policy is named.
///
/// # Errors
/// Why nothing could be predicted: the causes follow by [`std::error::Error::source`].
pub fn forecast(
    options: &VerifyOptions,
    measurement: &Measurement,
    (experiment, device): (&Experiment, Option<&str>),
    watch: &ExperimentWatch<'_>,
) -> Result<Vec<Predicted>> {
    let ([policy], Some(device)) = (options.policy.as_slice(), device) else {
        return invalid("only a policy in one file is tried in the simulator");
    };
    if !options.args.is_empty() {
        return invalid("a script with arguments is not tried in the simulator");
    }
    let before: Vec<&RunRecord> = experiment.runs.iter().filter(|run| run.policy == NAMES[0]).collect();
    let probe = before.iter().flat_map(|run| &run.probes).find(|probe| !probe.there.is_empty());
    let probe = probe
        .map(|probe| probe.id.clone())
        .ok_or_else(|| Error::Invalid("no round trips were measured".into()))?;
    let mut all = Vec::new();
    // Under transfers both ways acknowledgements wait, too, and neither rate is the line's.
    let one_way = |(_, up, down): &(&str, usize, usize)| *up == 0 || *down == 0;
    let flows: Vec<_> = measurement.flows().filter(one_way).collect();
    if flows.is_empty() && measurement.flows().next().is_none() {
        return invalid("the test has no transfers");
    }
    if flows.is_empty() {
        return invalid(
            "transfers in both directions at once do not show the line's rates; the tests tcp_4up and \
            tcp_4down do",
        );
    }
    for (load, up, down) in flows {
        let line = line(&before, load, &probe)
            .ok_or_else(|| Error::Invalid("the line's rates are not known".into()))?;
        let traffic = Traffic { name: load.to_owned(), up, down };
        let predictions = predict(&line, TriedPolicy::File(policy), device, &[traffic], watch)?;
        for prediction in predictions {
            let one = |statistic: &str, without, with| Predicted {
                load: load.to_owned(),
                figure: format!("{probe}.{statistic}"),
                without,
                with,
            };
            all.push(one("median", prediction.without.0, prediction.with.0));
            all.push(one("p95", prediction.without.1, prediction.with.1));
        }
    }
    Ok(all)
}

/// The line as it was under a load.
fn line(before: &[&RunRecord], load: &str, probe: &str) -> Option<MeasuredLine> {
    let middle = |name: &str| {
        let loaded = before.iter().filter(|run| run.load == load);
        let found = loaded.filter_map(|run| Some(figure(run, name, run.window).ok()?.number));
        Spread::new(found.collect(), "").map(|spread| spread.median)
    };
    let least =
        before.iter().filter_map(|run| Some(figure(run, &format!("{probe}.min"), run.window).ok()?.number));
    let round_trip = least.min_by(f64::total_cmp)?;
    let way = |rate: &str, delay: &str| {
        let full = middle(&format!("{probe}.{delay}")).map(|delay| (delay - round_trip / 2.0).max(0.0));
        Some(LineDirection { bits: middle(rate)? * WITH_HEADS, full })
    };
    Some(MeasuredLine {
        up: way("upload.rate", "there-p95"),
        down: way("download.rate", "back-p95"),
        round_trip,
    })
}
