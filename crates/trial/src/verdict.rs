//! What a trial comes to, in sentences.

use crate::figures::{loads, seconds, window_start};
use crate::{drops, modem, transfers, worse};
use tidegate_measure::Durations;
use tidegate_measure::numbers::{milliseconds, percent};
use tidegate_measure::trial::{LinkFacts, TreeNode, TrialDocument, TrialProbe, TrialRun};

/// The sentences, the most important first.
pub(super) fn sentences(trial: &TrialDocument) -> Vec<String> {
    let worst = loads(trial).max_by_key(|(without, _)| figure(without));
    let mut sentences = plugged(trial);
    sentences.extend(transfers::stopped(trial));
    if let Some((without, with)) = worst {
        sentences.push(latency(trial, without, with));
        sentences.extend(people(without, with));
        let told = speaker(with).map_or("", |probe| &probe.id);
        sentences.extend(worse::sentence(trial, (&with.load, told)));
        sentences.extend(drops::sentence(with));
        sentences.extend(remainder(trial, with));
    }
    let hardest = worst.map(|(without, _)| without.load.as_str());
    sentences.extend(transfers::cost(trial, hardest));
    sentences.extend(unreached(trial));
    sentences
}

/// The plugs that hold what comes to them: packets wait there, and none was sent in any run with the policy.
fn plugged(trial: &TrialDocument) -> Vec<String> {
    let mut lines = Vec::new();
    for plug in trial.tree.iter().filter(|node| node.kind == "plug" && !node.is_class) {
        // A qdisc in a class is measured as that class.
        let measured = if plug.parent.is_empty() { &plug.id } else { &plug.parent };
        let id = match plug.device == trial.device {
            true => measured.clone(),
            false => format!("{} {measured}", plug.device),
        };
        let here = || {
            trial
                .runs
                .iter()
                .filter(|run| run.policy)
                .flat_map(|run| &run.classes)
                .filter(|class| class.id == id)
        };
        let waiting = here().flat_map(|class| &class.qlen).max().copied().unwrap_or(0);
        let sent: u64 = here().flat_map(|class| &class.sent).sum();
        if waiting > 0 && sent == 0 {
            lines.push(format!(
                "The plug {} on {} holds all that comes to it, and sends nothing until it is released (tc \
                qdisc change dev {} … plug release_indefinite): up to {waiting} packets waited there.",
                plug.id, plug.device, plug.device
            ));
        }
    }
    lines
}

/// The probe that represents a run: the ping, else the first there is.
fn speaker(run: &TrialRun) -> Option<&TrialProbe> {
    run.probes.iter().find(|probe| probe.id == "ping").or(run.probes.first())
}

/// Its 95th percentile in ns.
fn figure(run: &TrialRun) -> Option<u64> {
    percentile(run, 95.0)
}

pub(crate) fn percentile(run: &TrialRun, percent: f64) -> Option<u64> {
    speaker(run)?.figures(run.window).rtt.percentile(percent)
}

/// The run without transfers and without the policy.
pub(crate) fn idle_run(runs: &[TrialRun]) -> Option<&TrialRun> {
    runs.iter().find(|run| !run.policy && run.flows.is_empty())
}

/// What the probe takes without transfers, in ns: measured on the idle link, else where nothing waits. Of a
/// line that varies that is not known beforehand: its quickest reply stands for it.
fn idle(trial: &TrialDocument) -> u64 {
    let quickest = || trial.runs.iter().filter_map(|run| percentile(run, 0.0)).min();
    let unloaded = || match trial.link.varies {
        Some(_) => quickest().unwrap_or(0),
        None => unloaded(&trial.link),
    };
    idle_run(&trial.runs).and_then(figure).unwrap_or_else(unloaded)
}

/// The path's round trip and a full frame each way, in ns.
pub(crate) fn unloaded(link: &LinkFacts) -> u64 {
    let frame = |bits: u64| FULL_FRAME * 8_000_000_000 / bits.max(1);
    link.rtt_ns + frame(link.up_bits) + frame(link.down_bits)
}

/// Bytes of a full frame.
const FULL_FRAME: u64 = 1514;

/// How the ping fares under the load that hurts most.
fn latency(trial: &TrialDocument, without: &TrialRun, with: &TrialRun) -> String {
    let load = &without.title;
    let Some(probe) = speaker(with) else { return format!("No probe ran under {load}.") };
    let name = &probe.title;
    let pings = probe.figures(with.window);
    let lost = pings.loss();
    let lose = |word: &str| {
        if lost > NOTICED_LOSS { format!(", {word} {} are lost", percent(lost)) } else { String::new() }
    };
    let (and, but) = (lose("and"), lose("but"));
    let (before, after) = match (figure(without), figure(with)) {
        (Some(before), Some(after)) => (before, after),
        (_, None) if pings.lost == 0 => {
            return format!("Under {load} no {name} was sent while it was measured.");
        }
        (before, None) => {
            let without = match before {
                Some(before) => format!("; without it 95 % take at most {}", milliseconds(before)),
                None => ", nor without it".to_owned(),
            };
            return format!("Under {load} no {name} of {} is answered with the policy{without}.", pings.lost);
        }
        (None, Some(after)) => {
            return format!(
                "Under {load} no {name} is answered without the policy; with it 95 % take at most {}{but}.",
                milliseconds(after)
            );
        }
    };
    let (from, to) = (milliseconds(before), milliseconds(after));
    let ratio = before as f64 / after.max(1) as f64;
    if ratio >= CUT {
        format!(
            "Under {load} the policy cuts the {name}'s 95th percentile from {from} to {to} ({ratio:.1} \
            times shorter){but}."
        )
    } else if ratio <= 0.83 {
        format!(
            "Under {load} the policy makes the {name} worse: its 95th percentile is {to} instead of \
            {from}{and}."
        )
    } else if before > 2 * idle(trial) {
        let medians = [without, with].map(|run| speaker(run)?.figures(run.window).rtt.percentile(50.0));
        let median = match medians {
            [Some(from), Some(to)] if from as f64 >= CUT * to.max(1) as f64 => {
                format!("; its median is {} instead of {}", milliseconds(to), milliseconds(from))
            }
            _ => String::new(),
        };
        // Others may gain all the same, by classes of their own.
        format!(
            "Under {load} the policy hardly changes the {name}'s 95th percentile: {to} with it, {from} \
            without{and}{median}."
        )
    } else {
        format!(
            "{load} does not disturb the {name}: its 95th percentile is {to} with the policy, {from} \
            without{but}."
        )
    }
}

/// A delay that was so many times as long is cut.
const CUT: f64 = 1.2;
/// A larger share of packets or answers that are lost is said.
const NOTICED_LOSS: f64 = 0.02;

/// What people wait for, under the same load.
fn people(without: &TrialRun, with: &TrialRun) -> Option<String> {
    let found = without.probes.iter().filter(|probe| probe.id != "ping").filter_map(|before| {
        let after = with.probes.iter().find(|probe| probe.id == before.id)?;
        let text_of = |probe: &TrialProbe, run: &TrialRun| {
            let figures = probe.figures(run.window);
            match figures.rtt.percentile(50.0) {
                Some(median) if figures.loss() > NOTICED_LOSS => {
                    format!("{} (and {} never)", seconds(median), percent(figures.loss()))
                }
                Some(median) => seconds(median),
                None => "never".to_owned(),
            }
        };
        let (a, b) = (text_of(before, without), text_of(after, with));
        // What takes longer is for the sentence about what is worse.
        let median = |probe: &TrialProbe, run: &TrialRun| probe.figures(run.window).rtt.percentile(50.0);
        let is_better = median(after, with).is_some_and(|b| {
            median(before, without).is_none_or(|a| b as f64 <= a as f64 * transfers::NOTICED_LESS)
        });
        (a != b && is_better).then(|| format!("{} {b} instead of {a}", before.title))
    });
    let lines: Vec<String> = found.collect();
    (!lines.is_empty()).then(|| format!("Typically: {}.", lines.join("; ")))
}

/// Where packets still wait with the policy, and what to do about it: in a queue of its own, at the modem, at
/// the provider.
fn remainder(trial: &TrialDocument, with: &TrialRun) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(own_queues(trial, with));
    if let Some(ns) = waits(with, "modem", trial.link.up_bits) {
        sentences.push(format!(
            "The modem still holds {}{} of packets{}",
            milliseconds(ns),
            at_mean(trial),
            modem::why(trial, with)
        ));
    }
    if let Some(ns) = waits(with, "provider", trial.link.down_bits) {
        let elsewhere = trial.tree.iter().any(|node| node.device != trial.device);
        let remedy = match elsewhere {
            true => ".",
            false => {
                ": holding downloads below the link's rate, on an ifb, shortens that (examples/download.sh)."
            }
        };
        sentences.push(format!(
            "In the provider's download queue {}{} of packets wait{remedy}",
            milliseconds(ns),
            at_mean(trial)
        ));
    }
    sentences
}

/// What a time at the link's rate is, of a line that varies.
fn at_mean(trial: &TrialDocument) -> &'static str {
    if trial.link.varies.is_some() { " (at the line's mean rate)" } else { "" }
}

/// The persistent queue of a buffer outside the policy, in ns of its link, if it is worth a sentence.
fn waits(run: &TrialRun, title: &str, bits: u64) -> Option<u64> {
    let buffer = run.buffers.iter().find(|buffer| buffer.title == title)?;
    let bytes = median_backlog(run, &buffer.backlog)?;
    let at_rate = |bytes: u64| bytes * 8_000_000_000 / bits.max(1);
    Some(at_rate(bytes)).filter(|&ns| ns > NOTICED_NS.max(at_rate(NOTICED_BYTES)))
}

/// What waits half of the time while it is measured.
fn median_backlog(run: &TrialRun, series: &[u64]) -> Option<u64> {
    Durations::new(series.get(window_start(run)..)?.to_vec()).percentile(50.0)
}

/// The policy's own queues that packets of probes and transfers wait in, where they are FIFOs: there a packet
/// waits for all that is before it. The first probe's comes first.
fn own_queues(trial: &TrialDocument, with: &TrialRun) -> Vec<String> {
    // A root without classes is the only queue there is.
    let is_root = |id: &String| trial.tree.iter().any(|node| node.id == *id && !node.is_class);
    let root = match with.classes.as_slice() {
        [only] if only.leaf && is_root(&only.id) => Some(&only.id),
        _ => None,
    };
    let mut queues: Vec<(&String, Vec<&str>, u64)> = Vec::new();
    // One that did not begin while it was measured waits nowhere.
    let began = |probe: &&TrialProbe| {
        let (from, to) = with.window;
        probe.answers.iter().any(|(sent, _)| (from..to).contains(sent))
    };
    let probes = speaker(with).into_iter().chain(&with.probes).filter(began);
    let probes = probes.map(|probe| (&probe.title, &probe.class, NOTICED_NS));
    // A transfer always fills its own queue: the delay there is reported for others where it is long.
    let flows = with.flows.iter().map(|flow| (&flow.title, &flow.class, LONG_NS));
    for (title, class, least) in probes.chain(flows) {
        let Some(id) = class.as_ref().or(root) else { continue };
        match queues.iter_mut().find(|queue| queue.0 == id) {
            Some(queue) if queue.1.contains(&title.as_str()) => {}
            Some(queue) => queue.1.push(title),
            None => queues.push((id, vec![title], least)),
        }
    }
    let found =
        queues.into_iter().filter_map(|(id, titles, least)| own_queue(trial, with, id, &titles, least));
    found.take(MOST_NAMED).collect()
}

/// The sentence about one of them; `least`: how long it must be, in ns.
fn own_queue(
    trial: &TrialDocument,
    with: &TrialRun,
    id: &str,
    titles: &[&str],
    least: u64,
) -> Option<String> {
    let class = with.classes.iter().find(|class| class.id == *id)?;
    let fifo = fifo_of(trial, &class.id)?;
    let sent: u64 = class.sent.get(window_start(with)..)?.iter().sum();
    let bits = tidegate_measure::bits_per_second(sent, with.window.1.saturating_sub(with.window.0));
    let bytes = median_backlog(with, &class.backlog)?;
    let ns = (bytes as f64 * 8e9 / bits.max(1.0)) as u64;
    let packets: Vec<u64> = class.qlen.iter().map(|&packets| u64::from(packets)).collect();
    let packets = median_backlog(with, &packets)?;
    let (who, wait) = match titles {
        [one] => (format!("The {one}"), "waits"),
        [first, second] => (format!("The {first} and {second}"), "wait"),
        several => (format!("The {}, {} and {} more", several[0], several[1], several.len() - 2), "wait"),
    };
    (ns > least && bytes > NOTICED_BYTES).then(|| {
        let title = match class.title.is_empty() || class.title.len() > LONG_TITLE {
            true => String::new(),
            false => format!(" ({})", class.title),
        };
        // A qdisc's handle ends with a colon of its own.
        let id = class.id.trim_end_matches(':');
        let place = format!("{who} {wait} in the policy's own queue {id}{title}: {packets} packets");
        match sent {
            // How long they will wait is not known, and no queue helps that is not served.
            0 => format!("{place}, none of which left while it was measured, in {fifo}."),
            _ => format!(
                "{place}, {}, in {fifo}; a queue that keeps itself short, as fq_codel does, belongs there.",
                seconds(ns)
            ),
        }
    })
}

/// The FIFO that a class's packets wait in, by its kind; `None`: it is no FIFO.
fn fifo_of(trial: &TrialDocument, id: &str) -> Option<String> {
    // Those of other devices are called with their device.
    let (device, id) = id.rsplit_once(' ').unwrap_or((&trial.device, id));
    let here = |node: &&TreeNode| node.device == device;
    let node = trial.tree.iter().filter(here).find(|node| node.id == id)?;
    let below = |above: &TreeNode| trial.tree.iter().filter(here).find(|below| below.parent == above.id);
    let queue = if node.is_class { below(node) } else { Some(node) };
    let Some(queue) = queue else { return Some("the FIFO that a class has of itself".to_owned()) };
    match (queue.kind.as_str(), below(queue)) {
        (kind, None) if FIFOS.contains(&kind) => Some(format!("{kind} {}", queue.options)),
        ("tbf", None) => Some(format!("the FIFO of tbf {}, {}", queue.id, queue.options)),
        ("tbf", Some(inner)) if FIFOS.contains(&inner.kind.as_str()) => {
            Some(format!("{} {} in tbf {}", inner.kind, inner.options, queue.id))
        }
        _ => None,
    }
}

const FIFOS: [&str; 2] = ["pfifo", "bfifo"];

/// A queue shorter than this, or than two full frames, is not worth a word.
const NOTICED_NS: u64 = 20_000_000;
/// A class's title of more letters is left out of sentences.
const LONG_TITLE: usize = 30;
/// A queue of a transfer's own that is longer than this is worth a word.
const LONG_NS: u64 = 200_000_000;
const NOTICED_BYTES: u64 = 2 * FULL_FRAME;

/// The classes nothing was found for: each with its reason, or, of many, their names.
fn unreached(trial: &TrialDocument) -> Vec<String> {
    let unreached: Vec<_> =
        trial.tree.iter().filter_map(|node| Some((node, node.unreachable.as_ref()?))).collect();
    if unreached.len() > MOST_NAMED {
        let names: Vec<&str> = unreached.iter().map(|(node, _)| node.id.as_str()).collect();
        return vec![format!(
            "No packet was found that reaches any of {} classes: {}.",
            names.len(),
            names.join(", ")
        )];
    }
    let lines = unreached.iter().map(|(node, why)| {
        let name = if node.title.is_empty() { String::new() } else { format!(" ({})", node.title) };
        format!("No packet was found that reaches class {}{name} on {}: {why}.", node.id, node.device)
    });
    lines.collect()
}

/// More classes than this are only listed.
const MOST_NAMED: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::trial::{BufferSeries, ClassSeries, LinkFacts, TrialFlow};

    const STEP: u64 = 100_000_000;
    const MS: u64 = 1_000_000;

    /// A run of ten seconds with a ping each 100 ms, all of which take as long, and one flow with a rate.
    fn run(load: &str, policy: bool, rtt_ms: Option<u64>, mbit: u64) -> TrialRun {
        let answers = (0..100).map(|n| (n * STEP, rtt_ms.map(|ms| ms * MS))).collect();
        let flow =
            TrialFlow { title: "upload 1".into(), up: true, bytes: mbit * 1_250_000, ..TrialFlow::default() };
        let buffer = |title: &str| BufferSeries {
            title: title.into(),
            backlog: vec![0; 100],
            ..BufferSeries::default()
        };
        TrialRun {
            load: load.into(),
            title: if load == "idle" { "nothing".into() } else { "1 upload".into() },
            policy,
            window: (0, 100 * STEP),
            step_ns: STEP,
            probes: vec![TrialProbe {
                id: "ping".into(),
                title: "ping".into(),
                class: Some("1:10".into()),
                answers,
                ..TrialProbe::default()
            }],
            flows: if load == "idle" { Vec::new() } else { vec![flow] },
            buffers: vec![buffer("modem"), buffer("provider")],
            ..TrialRun::default()
        }
    }

    /// 10 Mbit/s up and 50 down behind HTB with one top class and a leaf.
    fn trial(runs: Vec<TrialRun>, top: u64, leaf_queue: &str) -> TrialDocument {
        let node = |id: &str, parent: &str, kind: &str, bits: Option<u64>| TreeNode {
            device: "eth0".into(),
            id: id.into(),
            parent: parent.into(),
            is_class: !id.ends_with(':'),
            kind: kind.into(),
            rate_bits: bits,
            ceil_bits: bits,
            ..TreeNode::default()
        };
        TrialDocument {
            device: "eth0".into(),
            link: LinkFacts {
                up_bits: 10_000_000,
                down_bits: 50_000_000,
                rtt_ns: 30 * MS,
                ..LinkFacts::default()
            },
            tree: vec![
                node("1:", "", "htb", None),
                node("1:1", "1:", "htb", Some(top)),
                node("1:10", "1:1", "htb", Some(top)),
                node("10:", "1:10", leaf_queue, None),
            ],
            runs,
            ..TrialDocument::default()
        }
    }

    fn class(packets_waiting: u32) -> ClassSeries {
        ClassSeries {
            id: "1:10".into(),
            leaf: true,
            // 9 Mbit/s.
            sent: vec![112_500; 100],
            packets: vec![75; 100],
            backlog: vec![u64::from(packets_waiting) * 1514; 100],
            qlen: vec![packets_waiting; 100],
            ..ClassSeries::default()
        }
    }

    fn with(mut run: TrialRun, change: impl FnOnce(&mut TrialRun)) -> TrialRun {
        change(&mut run);
        run
    }

    #[test]
    fn without_an_idle_run_a_slow_ping_is_not_called_undisturbed() {
        let text_of = |before, after| {
            sentences(&trial(
                vec![run("up", false, before, 9), run("up", true, after, 9)],
                9_000_000,
                "fq_codel",
            ))
            .remove(0)
        };
        assert!(text_of(Some(1528), Some(1500)).starts_with("Under 1 upload the policy hardly changes"));
        assert!(text_of(Some(36), Some(34)).starts_with("1 upload does not disturb the ping"));
        assert!(
            text_of(Some(1528), Some(40))
                .contains("cuts the ping's 95th percentile from 1528 ms to 40.0 ms (38.2 times")
        );
        assert!(text_of(Some(40), Some(1528)).contains("makes the ping worse"));
        assert_eq!(
            text_of(Some(40), None),
            "Under 1 upload no ping of 100 is answered with the policy; without it 95 % take at most 40.0 ms."
        );
        assert!(text_of(None, Some(40)).contains("no ping is answered without the policy"));
    }

    /// Half of the pings may gain where the slowest do not.
    #[test]
    fn a_median_that_is_cut_is_a_help() {
        let mostly_fast = with(run("up", true, Some(1400), 9), |run| {
            run.probes[0].answers.iter_mut().skip(20).for_each(|answer| answer.1 = Some(600 * MS));
        });
        let runs = vec![run("up", false, Some(1500), 9), mostly_fast];
        assert_eq!(
            sentences(&trial(runs, 9_000_000, "fq_codel"))[0],
            "Under 1 upload the policy hardly changes the ping's 95th percentile: 1400 ms with it, 1500 ms without; \
             its median is 600 ms instead of 1500 ms."
        );
    }

    #[test]
    fn what_is_lost_is_one_more_harm_where_the_policy_does_not_help() {
        let lossy = |before, after| {
            let with = with(run("up", true, Some(after), 9), |run| {
                run.probes[0].answers.iter_mut().take(33).for_each(|answer| answer.1 = None);
            });
            sentences(&trial(vec![run("up", false, Some(before), 9), with], 9_000_000, "fq_codel")).remove(0)
        };
        assert!(lossy(40, 1528).ends_with("instead of 40.0 ms, and 33.0 % are lost."), "{}", lossy(40, 1528));
        assert!(lossy(1528, 40).ends_with("times shorter), but 33.0 % are lost."));
    }

    #[test]
    fn the_cost_of_transfers_is_given_when_they_are_alone() {
        let runs = |hardest: u64| {
            let mut runs = vec![run("up", false, Some(100), 9), run("up", true, Some(40), 8)];
            for policy in [false, true] {
                let mut both = run("both", policy, Some(hardest), 9);
                both.flows.push(TrialFlow {
                    title: "download 1".into(),
                    bytes: 1_000_000,
                    ..TrialFlow::default()
                });
                runs.push(both);
            }
            sentences(&trial(runs, 9_000_000, "fq_codel")).join("\n")
        };
        assert!(runs(500).contains("\nAlone, 1 upload carries 11 % less up"), "{}", runs(500));
        assert!(runs(50).contains("\n1 upload carries 11 % less up"), "{}", runs(50));
        assert!(!runs(50).contains("instead of 9.00 Mbit/s up, "), "nothing is lost together: {}", runs(50));
    }

    #[test]
    fn what_transfers_both_ways_carry_is_given_where_one_way_loses() {
        let said = |up: u64| {
            let both = |policy, up| {
                let mut both = run("both", policy, Some(100), up);
                both.flows.push(TrialFlow {
                    title: "download 1".into(),
                    bytes: 1_000_000,
                    ..TrialFlow::default()
                });
                both
            };
            sentences(&trial(vec![both(false, 10), both(true, up)], 10_000_000, "fq_codel")).join("\n")
        };
        let shown = said(8);
        assert!(shown.contains(" transfers carry 8.00 Mbit/s instead of 10.0 Mbit/s up, "), "{shown}");
        assert!(!said(10).contains("Mbit/s up, "), "{}", said(10));
    }

    /// tbf whose `mtu` holds no full frame: the ping is quick because no upload gets through.
    #[test]
    fn stopped_transfers_are_reported_first() {
        let lines_of = |rate| {
            sentences(&trial(
                vec![run("up", false, Some(1528), 9), run("up", true, Some(31), rate)],
                9_000_000,
                "fq_codel",
            ))
        };
        let stopped = lines_of(0);
        assert_eq!(
            stopped[0],
            "With the policy 1 upload carries almost nothing: 0 bit/s instead of 9.00 Mbit/s."
        );
        assert!(!stopped[1..].iter().any(|text| text.contains("% less up")), "{stopped:?}");
        assert!(lines_of(1)[0].starts_with("Under 1 upload the policy cuts"));
    }

    #[test]
    fn an_idle_run_defines_undisturbed() {
        let runs = |ms| {
            vec![
                run("idle", false, Some(500), 0),
                run("idle", true, Some(500), 0),
                run("up", false, Some(ms), 9),
                run("up", true, Some(ms), 9),
            ]
        };
        let text_of = |ms| sentences(&trial(runs(ms), 9_000_000, "fq_codel")).remove(0);
        assert!(text_of(900).contains("does not disturb") && text_of(1100).contains("hardly changes"));
    }

    #[test]
    fn without_probes_there_is_no_sentence() {
        let silent =
            |policy| with(run("up", policy, Some(30), 9), |run| run.window = (200 * STEP, 300 * STEP));
        let lines = sentences(&trial(vec![silent(false), silent(true)], 9_000_000, "fq_codel"));
        assert_eq!(lines[0], "Under 1 upload no ping was sent while it was measured.");
    }

    #[test]
    fn what_is_sent_for_the_classes_sake_is_in_no_sentence() {
        let mut runs = vec![run("up", false, Some(900), 9), run("up", true, Some(40), 1)];
        let without = sentences(&trial(runs.clone(), 9_000_000, "fq_codel"));
        runs.push(with(run("up", true, Some(2000), 10), |run| run.witnesses = true));
        assert_eq!(sentences(&trial(runs, 9_000_000, "fq_codel")), without);
        assert!(
            without
                .iter()
                .any(|text| text.contains("carries 89 % less up: 1.00 Mbit/s instead of 9.00 Mbit/s")),
            "{without:?}"
        );
    }

    #[test]
    fn a_queue_of_the_policys_own_is_named_where_it_is_a_fifo() {
        let text_of = |kind, packets| {
            let shaped = with(run("up", true, Some(900), 9), |run| run.classes.push(class(packets)));
            sentences(&trial(vec![run("up", false, Some(900), 9), shaped], 9_000_000, kind)).join("\n")
        };
        let text = "The ping waits in the policy's own queue 1:10: 1000 packets, 1.3 s, in pfifo ";
        assert!(text_of("pfifo", 1000).contains(text), "{}", text_of("pfifo", 1000));
        // Of a queue that nothing leaves it is not known how long its packets will wait.
        let starved = with(run("up", true, Some(900), 9), |run| {
            run.classes.push(ClassSeries { sent: vec![0; 100], ..class(1000) });
        });
        let runs = vec![run("up", false, Some(900), 9), starved];
        let lines = sentences(&trial(runs, 9_000_000, "pfifo")).join("\n");
        assert!(
            lines
                .contains("own queue 1:10: 1000 packets, none of which left while it was measured, in pfifo"),
            "{lines}"
        );
        // What goes past the only class does not wait in it.
        let past = with(run("up", true, Some(900), 9), |run| {
            run.classes.push(class(1000));
            run.probes[0].class = None;
        });
        let runs = vec![run("up", false, Some(900), 9), past];
        let lines = sentences(&trial(runs, 9_000_000, "pfifo")).join("\n");
        assert!(!lines.contains("own queue"), "{lines}");
        // What did not begin while it was measured waits nowhere.
        let shaped = with(run("up", true, Some(900), 9), |run| {
            run.classes.push(class(1000));
            let page = TrialProbe { id: "web".into(), title: "web page".into(), ..run.probes[0].clone() };
            run.probes.push(TrialProbe { answers: Vec::new(), ..page });
        });
        let runs = vec![run("up", false, Some(900), 9), shaped];
        let lines = sentences(&trial(runs, 9_000_000, "pfifo")).join("\n");
        assert!(lines.contains(text) && !lines.contains("web page"), "{lines}");
        // In a fair queue the ping need not wait for the others' packets.
        assert!(!text_of("sfq", 1000).contains("own queue") && !text_of("pfifo", 2).contains("own queue"));
    }

    #[test]
    fn a_plug_is_named_where_it_blocks_everything() {
        let text_of = |sent: u64, waiting: u32| {
            let shaped = with(run("up", true, None, 0), |run| {
                run.classes.push(ClassSeries { sent: vec![sent; 100], ..class(waiting) });
            });
            sentences(&trial(vec![run("up", false, Some(900), 9), shaped], 9_000_000, "plug")).join("\n")
        };
        assert!(
            text_of(0, 33).starts_with("The plug 10: on eth0 holds all that comes to it"),
            "{}",
            text_of(0, 33)
        );
        assert!(text_of(0, 33).contains("up to 33 packets waited there"));
        // It lets packets through, or none came.
        assert!(!text_of(1514, 33).contains("plug") && !text_of(0, 0).contains("plug"));
    }

    /// The sentence about the modem, of a run in which a second of packets waits there.
    fn at_the_modem(
        top: u64,
        change: impl FnOnce(&mut TrialRun),
        rewrite: impl FnOnce(&mut TrialDocument),
    ) -> String {
        let shaped = with(run("up", true, Some(900), 9), |run| {
            run.classes.push(class(0));
            run.buffers[0].backlog = vec![1_250_000; 100];
            change(run);
        });
        let mut trial = trial(vec![run("up", false, Some(900), 9), shaped], top, "fq_codel");
        rewrite(&mut trial);
        sentences(&trial).into_iter().find(|text| text.contains("modem")).unwrap_or_default()
    }

    #[test]
    fn packets_at_the_modem_are_explained_by_what_the_policy_is() {
        assert_eq!(
            at_the_modem(9_000_000, |_| (), |_| ()),
            "The modem still holds 1000 ms of packets, though the policy sends 9.00 Mbit/s and the link \
            carries 10.0 Mbit/s: the cause is not known."
        );
        let full = |run: &mut TrialRun| run.classes[0].sent = vec![125_000; 100];
        assert!(at_the_modem(9_000_000, full, |_| ()).ends_with(
            ": the policy sends 10.0 Mbit/s, the link carries 10.0 Mbit/s. Give it a lower rate."
        ),);
        // Of a line that varies another cause is known.
        let varies = |trial: &mut TrialDocument| trial.link.varies = Some("the preset lte, seed 1".into());
        assert_eq!(
            at_the_modem(9_000_000, full, varies),
            "The modem still holds 1000 ms (at the line's mean rate) of packets: the policy's rate is fixed and the \
             line's is not (the preset lte, seed 1), so packets wait there while the line is slower than the policy."
        );
        let another = |trial: &mut TrialDocument| {
            let mut other = trial.tree[2].clone();
            (other.id, other.rate_bits) = ("1:20".into(), Some(5_000_000));
            trial.tree.push(other);
        };
        assert!(
            at_the_modem(9_000_000, full, another).contains(
                "the rates of the classes below class 1:1 add up to 14.0 Mbit/s, and htb sends these even \
                where class 1:1 may send 9.00 Mbit/s"
            ),
            "{}",
            at_the_modem(9_000_000, full, another)
        );
        assert!(at_the_modem(12_000_000, full, another).ends_with(
            "Give it a rate below that, and the classes below it rates that fit in it (they add up to 17.0 \
            Mbit/s)."
        ));
        // A band of prio beside one with a shaper.
        let bands = |trial: &mut TrialDocument| {
            for node in &mut trial.tree {
                (node.kind, node.rate_bits, node.ceil_bits) = ("prio".into(), None, None);
            }
            let mut tree_node = trial.tree[2].clone();
            (tree_node.id, tree_node.parent) = ("1:20".into(), "1:".into());
            let mut shaper = trial.tree[3].clone();
            (shaper.id, shaper.parent, shaper.kind) = ("20:".into(), "1:20".into(), "tbf".into());
            trial.tree.extend([tree_node, shaper]);
        };
        assert_eq!(
            at_the_modem(9_000_000, |_| (), bands),
            "The modem still holds 1000 ms of packets: nothing holds what goes through 1:10 to a rate."
        );
        // Which of both it is cannot be told where the shaper lets as much through as the link carries.
        let lax = |trial: &mut TrialDocument| {
            bands(trial);
            trial.tree.last_mut().expect("the shaper").rate_bits = Some(24_000_000);
        };
        assert_eq!(
            at_the_modem(9_000_000, |_| (), lax),
            "The modem still holds 1000 ms of packets: tbf 20: may send 24.0 Mbit/s, the link carries 10.0 Mbit/s, and \
             nothing holds what goes through 1:10 to a rate. Hold all of it together to a rate below the link's."
        );
        // One that sends next to nothing is not why the modem is full.
        let little = |run: &mut TrialRun| {
            let another = ClassSeries { id: "1:20".into(), sent: vec![125_000; 100], ..class(0) };
            run.classes.push(another);
            run.classes[0].sent = vec![1514; 100];
        };
        let text = at_the_modem(9_000_000, little, bands);
        assert!(!text.contains("nothing holds"), "{text}");
        assert!(
            at_the_modem(12_000_000, |_| (), |_| ())
                .contains(": class 1:1 may send 12.0 Mbit/s, the link carries 10.0")
        );
        let direct = |packets| at_the_modem(9_000_000, |run| run.direct_packets = packets, |_| ());
        assert!(
            direct(7000).contains("7000 packets were sent past all classes of eth0")
                && !direct(70).contains("past all")
        );
        let inner = at_the_modem(
            9_000_000,
            |run| run.direct_packets = 7000,
            |trial| trial.tree[0].parent = "5:1".into(),
        );
        assert!(inner.contains("past all classes of eth0, as fast as what is above htb sends,"), "{inner}");
        let to_itself = |trial: &mut TrialDocument| trial.tree[0].options = "r2q 10 default 0x10".into();
        let led = at_the_modem(9_000_000, |run| run.direct_packets = 7000, to_itself);
        assert!(
            led.ends_with("because a filter or rule leads them to htb itself, and to none of its classes."),
            "{led}"
        );
        // The topmost class cannot borrow.
        let high = at_the_modem(9_000_000, |_| (), |trial| trial.tree[1].ceil_bits = Some(12_000_000));
        assert!(high.ends_with("the cause is not known."), "{high}");
        // Guaranteed rates are no reason where no more leaves than the class above them may send.
        let near = |run: &mut TrialRun| run.classes[0].sent = vec![123_000; 100];
        let text = at_the_modem(9_800_000, near, another);
        assert!(text.ends_with("Give it a lower rate."), "{text}");
        let hfsc =
            |trial: &mut TrialDocument| trial.tree.iter_mut().for_each(|node| node.kind = "hfsc".into());
        let text = at_the_modem(9_800_000, near, hfsc);
        assert!(text.ends_with("less guaranteed (rt, sc), which is sent even above ul."), "{text}");
        // All of a qdisc without classes goes through the shaper in it.
        let inner = |trial: &mut TrialDocument| {
            trial.tree.truncate(2);
            let [root, shaper] = &mut trial.tree[..] else { return };
            root.kind = "netem".into();
            (shaper.id, shaper.is_class, shaper.kind) = ("10:".into(), false, "tbf".into());
        };
        let whole = |run: &mut TrialRun| {
            run.classes[0].sent = vec![125_000; 100];
            run.classes[0].id = "1:".into();
        };
        let text = at_the_modem(20_000_000, whole, inner);
        assert!(
            text.contains("tbf 10: may send 20.0 Mbit/s") && text.ends_with("Give it a rate below that."),
            "{text}"
        );
        // One class below the top: its rate is sent whatever the top may send.
        let own = |trial: &mut TrialDocument| {
            (trial.tree[2].rate_bits, trial.tree[2].ceil_bits) = (Some(11_000_000), Some(11_000_000));
        };
        let text = at_the_modem(9_000_000, full, own);
        assert!(
            text.contains(
                "the class below class 1:1 has a rate of 11.0 Mbit/s, and htb sends that even where"
            ),
            "{text}"
        );
        let text = at_the_modem(12_000_000, full, own);
        assert!(
            text.ends_with("and the class below it a rate that fits in it (it has 11.0 Mbit/s)."),
            "{text}"
        );
        let shaperless = at_the_modem(
            9_000_000,
            |_| (),
            |trial| {
                trial.tree.truncate(1);
                trial.tree[0].kind = "prio".into();
            },
        );
        assert!(shaperless.contains("nothing that was carried out holds eth0 to a rate"), "{shaperless}");
    }

    #[test]
    fn the_providers_queue_has_a_remedy_only_with_one_device() {
        let text_of = |device: &str| {
            let late =
                with(run("down", true, Some(300), 9), |run| run.buffers[1].backlog = vec![1_250_000; 100]);
            let mut trial = trial(vec![run("down", false, Some(300), 9), late], 9_000_000, "fq_codel");
            trial.tree.push(TreeNode { device: device.into(), kind: "htb".into(), ..TreeNode::default() });
            sentences(&trial).join("\n")
        };
        assert!(text_of("eth0").contains("In the provider's download queue 200 ms of packets wait: holding"));
        assert!(
            text_of("ifb0").contains("200 ms of packets wait.")
                && !text_of("ifb0").contains("examples/download.sh")
        );
    }
}
