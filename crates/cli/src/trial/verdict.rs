//! What a trial comes to, in sentences.

use tidegate_measure::Spans;
use tidegate_measure::trial::{Probe, Run, Trial};
use tidegate_report::{milliseconds, percent, rate};

/// The sentences, the most important first.
pub(super) fn sentences(trial: &Trial) -> Vec<String> {
    let worst = loads(trial).max_by_key(|(without, _)| figure(without));
    let mut sentences = Vec::new();
    if let Some((without, with)) = worst {
        sentences.push(latency(trial, without, with));
        sentences.extend(people(without, with));
        sentences.extend(remainder(trial, with));
    }
    sentences.extend(cost(trial));
    sentences.extend(unreached(trial));
    sentences
}

/// Loads that fill the link, each without and with the policy.
fn loads(trial: &Trial) -> impl Iterator<Item = (&Run, &Run)> {
    let without = trial.runs.iter().filter(|run| !run.policy && !run.flows.is_empty());
    without.filter_map(|run| {
        let with = trial.runs.iter().find(|other| other.policy && other.load == run.load)?;
        Some((run, with))
    })
}

/// The probe that stands for a run: the ping, else the first there is.
fn speaker(run: &Run) -> Option<&Probe> {
    run.probes.iter().find(|probe| probe.id == "ping").or(run.probes.first())
}

/// Its 95th percentile in ns.
fn figure(run: &Run) -> Option<u64> {
    speaker(run)?.figures(run.window).rtt.percentile(95.0)
}

/// How the ping fares under the load that hurts most.
fn latency(trial: &Trial, without: &Run, with: &Run) -> String {
    let load = &without.title;
    let Some(probe) = speaker(with) else { return format!("Nothing was asked under {load}.") };
    let name = &probe.title;
    let lost = probe.figures(with.window).loss();
    let but = if lost > 0.02 { format!("; but {} of them are lost", percent(lost)) } else { String::new() };
    let (before, after) = match (figure(without), figure(with)) {
        (Some(before), Some(after)) => (before, after),
        (_, None) => {
            return format!("Under {load} no {name} is answered with the policy: it leaves nothing for others.");
        }
        (None, Some(after)) => {
            return format!(
                "Under {load} no {name} is answered without the policy; with it 95 % take at most {}{but}.",
                milliseconds(after)
            );
        }
    };
    let idle = trial.runs.iter().find(|run| !run.policy && run.flows.is_empty()).and_then(figure);
    let (from, to) = (milliseconds(before), milliseconds(after));
    let ratio = before as f64 / after.max(1) as f64;
    if ratio >= 1.2 {
        format!(
            "Under {load} the policy cuts the {name}'s 95th percentile from {from} to {to} ({ratio:.1} times shorter){but}."
        )
    } else if ratio <= 0.83 {
        format!("Under {load} the policy makes the {name} worse: its 95th percentile is {to} instead of {from}{but}.")
    } else if idle.is_some_and(|idle| before > 2 * idle) {
        format!(
            "Under {load} the policy does not help: the {name}'s 95th percentile is {to} with it, {from} without{but}."
        )
    } else {
        format!("{load} does not disturb the {name}: its 95th percentile is {to} with the policy, {from} without{but}.")
    }
}

/// What people wait for, under the same load.
fn people(without: &Run, with: &Run) -> Option<String> {
    let told = without.probes.iter().filter(|probe| probe.id != "ping").filter_map(|before| {
        let after = with.probes.iter().find(|probe| probe.id == before.id)?;
        let said = |probe: &Probe, run: &Run| {
            let figures = probe.figures(run.window);
            match figures.rtt.percentile(50.0) {
                Some(median) if figures.loss() > 0.05 => {
                    format!("{} (and {} never)", seconds(median), percent(figures.loss()))
                }
                Some(median) => seconds(median),
                None => "never".to_owned(),
            }
        };
        let (a, b) = (said(before, without), said(after, with));
        (a != b).then(|| format!("{} {b} instead of {a}", before.title))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("Typically: {}.", told.join("; ")))
}

/// Where packets still wait with the policy, in a queue that it does not govern, and what to do about it.
fn remainder(trial: &Trial, with: &Run) -> Vec<String> {
    let waits = |title: &str, bits: u64| {
        let buffer = with.buffers.iter().find(|buffer| buffer.title == title)?;
        let from = (with.window.0 / with.step_ns.max(1)) as usize;
        let measured = buffer.backlog.get(from..)?.to_vec();
        let bytes = Spans::new(measured).percentile(50.0)?;
        let at_rate = |bytes: u64| bytes * 8_000_000_000 / bits.max(1);
        Some(at_rate(bytes)).filter(|&ns| ns > NOTICED_NS.max(at_rate(NOTICED_BYTES)))
    };
    let mut sentences = Vec::new();
    if let Some(ns) = waits("modem", trial.link.up_bits) {
        sentences.push(format!(
            "The modem still holds {} of packets: the policy sends faster than the link does. Give its top class or bucket a \
             lower rate, or tell it the link's overhead.",
            milliseconds(ns)
        ));
    }
    if let Some(ns) = waits("provider", trial.link.down_bits) {
        sentences.push(format!(
            "What is left of the delay waits at the provider, {} of it, on the way towards you, which this policy does not \
             govern: hold downloads below the link's rate on an ifb (examples/download.sh).",
            milliseconds(ns)
        ));
    }
    sentences
}

/// A queue shorter than this, or than two full frames, is not worth a word.
const NOTICED_NS: u64 = 20_000_000;
const NOTICED_BYTES: u64 = 3028;

/// Below a second in ms, above in s.
fn seconds(ns: u64) -> String {
    if ns < 1_000_000_000 { milliseconds(ns) } else { format!("{:.1} s", ns as f64 / 1e9) }
}

/// What the transfers pay, each way, under the loads that have them.
fn cost(trial: &Trial) -> Vec<String> {
    let mut sentences = Vec::new();
    for (up, word) in [(true, "up"), (false, "down")] {
        let carried = |run: &Run| run.flows.iter().filter(|f| f.up == up).map(|f| f.rate(run.window)).sum::<f64>();
        let pair = loads(trial).find(|(without, _)| without.flows.iter().all(|flow| flow.up == up));
        let Some((without, with)) = pair else { continue };
        let (a, b) = (carried(without), carried(with));
        if a <= 0.0 {
            continue;
        }
        let change = (b - a) / a * 100.0;
        let how = match change {
            c if c < -0.5 => format!("{:.0} % less", -c),
            c if c > 0.5 => format!("{c:.0} % more"),
            _ => "as much".to_owned(),
        };
        let carry = if without.flows.len() == 1 { "carries" } else { "carry" };
        sentences.push(format!("{} {carry} {how} {word}: {} instead of {}.", without.title, rate(b), rate(a)));
    }
    sentences
}

/// The classes nothing was found for: each with its reason, or, of many, their names.
fn unreached(trial: &Trial) -> Vec<String> {
    let unreached: Vec<_> = trial.tree.iter().filter_map(|node| Some((node, node.unreachable.as_ref()?))).collect();
    if unreached.len() > MOST_NAMED {
        let names: Vec<&str> = unreached.iter().map(|(node, _)| node.id.as_str()).collect();
        return vec![format!("No packet was found that reaches any of {} classes: {}.", names.len(), names.join(", "))];
    }
    let told = unreached
        .iter()
        .map(|(node, why)| format!("No packet was found that reaches class {} on {}: {why}.", node.id, node.device));
    told.collect()
}

/// More classes than this are only listed.
const MOST_NAMED: usize = 3;
