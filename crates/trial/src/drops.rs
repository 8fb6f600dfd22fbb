//! Where packets are dropped with the policy: in its classes, at its filters, in the buffers of modem and
//! provider.

use crate::home::Run;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_measure::trial::{FilterDrops, TrialRun as Measured};
use tidegate_packet::Handle;
use tidegate_policy::Act;
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry};
use tidegate_scenario::series::counts;
use tidegate_syntax::units::print_rate;

/// What filters' actions dropped, and roots that had no class for a packet.
pub(crate) fn outside_classes(run: &Run) -> Vec<FilterDrops> {
    let mut found = Vec::new();
    let mut by_filters: BTreeMap<(&str, u16), u64> = BTreeMap::new();
    let hooks: BTreeSet<(&str, u16)> = run
        .trees
        .qdiscs
        .iter()
        .filter(|q| q.kind.is_hook())
        .map(|q| (q.dev.as_str(), q.handle.major()))
        .collect();
    for dump in &run.trees.filters {
        let FilterEntry::Filter { actions, .. } = &dump.entry else { continue };
        for action in actions.iter().filter(|action| action.drops > 0) {
            let dropped = u64::from(action.drops);
            found.push(FilterDrops { title: title(dump, &action.action.act), dropped });
            if !hooks.contains(&(dump.dev.as_str(), dump.parent.major())) {
                *by_filters.entry((&dump.dev, dump.parent.major())).or_default() += dropped;
            }
        }
    }
    for qdisc in run.trees.qdiscs.iter().filter(|q| !q.handle.is_none() && !q.kind.is_hook()) {
        let own = |class: &&ClassDump| {
            class.dev == qdisc.dev && class.classid.qdisc() == qdisc.handle && counts(class)
        };
        let classes: Vec<&ClassDump> = run.trees.classes.iter().filter(own).collect();
        if classes.is_empty() {
            continue;
        }
        // What a class's queue dropped, the qdisc counts too, and all above it.
        let hung = |class: Handle| run.trees.qdiscs.iter().find(|q| q.dev == qdisc.dev && q.parent == class);
        let leaves =
            classes.iter().filter(|class| !classes.iter().any(|other| other.parent == class.classid));
        let in_leaves = leaves.map(|leaf| match (hung(leaf.classid), &leaf.stats) {
            (Some(queue), _) => u64::from(queue.stats.drops),
            (None, Some(stats)) => u64::from(stats.drops),
            (None, None) => 0,
        });
        let by_filters = by_filters.get(&(qdisc.dev.as_str(), qdisc.handle.major())).copied().unwrap_or(0);
        let dropped = u64::from(qdisc.stats.drops).saturating_sub(in_leaves.sum::<u64>() + by_filters);
        if dropped > 0 {
            let title = format!(
                "{} {} on {}, which had no class for them",
                qdisc.kind.name(),
                qdisc.handle,
                qdisc.dev
            );
            found.push(FilterDrops { title, dropped });
        }
    }
    found
}

/// `the policer at 8Mbit of the u32 filter of preference 10 at 1: of eth0`.
fn title(dump: &FilterDump, act: &Act) -> String {
    let filter =
        format!("the {} filter of preference {} at {} of {}", dump.kind, dump.pref, dump.parent, dump.dev);
    match act {
        Act::Police(police) => {
            let rate = police.rate.as_ref().map(|spec| format!(" at {}", print_rate(spec.rate, false)));
            format!("the policer{} of {filter}", rate.unwrap_or_default())
        }
        other => format!("the action {} of {filter}", other.kind()),
    }
}

/// Where the packets of a run were dropped, if that is worth a sentence: requests stayed without a reply.
pub(crate) fn sentence(run: &Measured) -> Option<String> {
    let lossy = run.probes.iter().any(|probe| probe.figures(run.window).loss() > NOTICED_LOSS);
    let mut places: Vec<(u64, String)> = Vec::new();
    let sum = |series: &[u32]| series.iter().map(|n| u64::from(*n)).sum::<u64>();
    let leaves = run.classes.iter().filter(|class| class.leaf);
    places.extend(leaves.map(|class| (sum(&class.dropped), format!("in class {}", class.id))));
    places.extend(run.filter_drops.iter().map(|drops| (drops.dropped, format!("by {}", drops.title))));
    places.extend(
        run.buffers.iter().map(|buffer| (buffer.dropped, format!("in the {}'s buffer", buffer.title))),
    );
    places.retain(|(dropped, _)| *dropped > 0);
    places.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    if !lossy || places.is_empty() {
        return None;
    }
    let lines: Vec<String> =
        places.iter().take(MOST_PLACES).map(|(dropped, place)| format!("{dropped} {place}")).collect();
    let others: u64 = places.iter().skip(MOST_PLACES).map(|(dropped, _)| dropped).sum();
    let others = if others > 0 { format!(", {others} elsewhere") } else { String::new() };
    Some(format!(
        "Packets dropped under {} with the policy, warm-up included: {}{others}.",
        run.title,
        lines.join(", ")
    ))
}

/// A loss above this share is worth a word.
const NOTICED_LOSS: f64 = 0.02;
/// Places that are named.
const MOST_PLACES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::trial::{BufferSeries, ClassSeries, TrialProbe};

    fn run(lost: usize) -> Measured {
        let answers = (0..100).map(|n| (n, (n as usize >= lost).then_some(1_000_000))).collect();
        let class =
            |id: &str, leaf, dropped| ClassSeries { id: id.into(), leaf, dropped, ..ClassSeries::default() };
        Measured {
            title: "1 upload".into(),
            window: (0, 100),
            step_ns: 1,
            probes: vec![TrialProbe { answers, ..TrialProbe::default() }],
            classes: vec![
                class("1:1", false, vec![9]),
                class("1:10", true, vec![3, 4]),
                class("1:20", true, vec![0]),
            ],
            buffers: vec![BufferSeries { title: "modem".into(), dropped: 2, ..BufferSeries::default() }],
            filter_drops: vec![FilterDrops { title: "the policer at 8Mbit of F".into(), dropped: 40 }],
            ..Measured::default()
        }
    }

    #[test]
    fn places_are_named_where_something_is_not_answered() {
        assert_eq!(sentence(&run(2)), None);
        let text = "Packets dropped under 1 upload with the policy, warm-up included: 40 by the policer at \
        8Mbit of F, 7 in class 1:10, 2 in the modem's buffer.";
        assert_eq!(sentence(&run(3)).as_deref(), Some(text));
    }
}
