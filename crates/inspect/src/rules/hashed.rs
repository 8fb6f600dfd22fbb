//! R11 of sfq, fq_codel and sfb: with a filter of their own they drop what no filter takes.

use super::devices::lacks_queue;
use super::making::{at_word, edit};
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::probe::Prober;
use crate::reading::PolicyModel;
use crate::tree::numbered_queues;
use tidegate_gateway::{DropReason, EgressPath};
use tidegate_policy::dump::{FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::{FilterParams, FlowMode, FlowParams, Kind};

/// Packets that are tried, in the words of `tidegate explain`: what is common, in both families.
const TRIED: [&str; 6] = [
    "tcp 192.0.2.7:40000 > 198.51.100.9:443",
    "udp 192.0.2.7:40000 > 198.51.100.9:53",
    "icmp 192.0.2.7 > 198.51.100.9",
    "tcp [2001:db8::7]:40000 > [2001:db8:1::9]:443",
    "udp [2001:db8::7]:40000 > [2001:db8:1::9]:53",
    "arp 192.0.2.7 > 198.51.100.9",
];

/// Qdiscs that drop packets which their own filters do not match. A dropped packet shows it; where none is
/// dropped, there is no finding.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let hashed = |qdisc: &&QdiscDump| matches!(qdisc.kind, Kind::Sfq | Kind::FqCodel | Kind::Sfb);
    let own: Vec<(&QdiscDump, &FilterDump)> = reading
        .qdiscs
        .iter()
        .filter(hashed)
        .filter_map(|qdisc| {
            let mine = |dump: &&FilterDump| {
                dump.dev == qdisc.dev
                    && dump.parent == qdisc.handle
                    && matches!(dump.entry, FilterEntry::Filter { .. })
            };
            Some((qdisc, reading.filters.iter().find(mine)?))
        })
        .collect();
    if own.is_empty() {
        return Vec::new();
    }
    let mut prober = Prober::new(reading);
    own.into_iter().filter_map(|(qdisc, filter)| dropped(reading, &mut prober, qdisc, filter)).collect()
}

fn dropped(
    reading: &PolicyModel,
    prober: &mut Prober,
    qdisc: &QdiscDump,
    filter: &FilterDump,
) -> Option<Finding> {
    let device = prober.device(&qdisc.dev)?;
    let lost = TRIED.iter().find(|words| {
        let Ok(packet) = Packet::parse(words) else { return false };
        let packet = Packet { from: Some("lo".to_owned()), to: Some(qdisc.dev.clone()), ..packet };
        let way = prober.send(&packet, device, EgressPath::Local);
        way.dropped.is_some_and(|loss| {
            loss.why == DropReason::Unclassified && loss.device == device && loss.at == qdisc.handle
        })
    })?;
    let (kind, handle) = (qdisc.kind.name(), qdisc.handle);
    let witness = Some(Witness::Packet {
        packet: format!("{lost} in lo out {}", qdisc.dev),
        went: "no queue: it is dropped".into(),
    });
    if let Some((filter, flow, queues)) = deals_beyond(reading, qdisc) {
        let step = reading.step_of(reading.maker_of_filter(filter)?)?;
        return Some(Finding {
            rule: Rule::Default,
            level: Level::Error,
            place: at_word(step, "divisor"),
            what: format!("{kind} {handle} drops what its filter deals to a queue that is not there"),
            because: format!("it has {queues} queues, and the filter deals into {}", flow.divisor),
            witness,
            fix: edit(step, "divisor", &queues.to_string(), "deal into as many as there are"),
        });
    }
    // That may be why, and is reported as such.
    let names_none = |dump: &FilterDump| match &dump.entry {
        FilterEntry::Filter { params: FilterParams::Flow(_), .. } => false,
        FilterEntry::Filter { params, .. } => {
            params.classid().is_none_or(|class| lacks_queue(qdisc, class).is_some())
        }
        _ => false,
    };
    let mut own = reading.filters.iter().filter(|dump| dump.dev == qdisc.dev && dump.parent == handle);
    if own.any(names_none) {
        return None;
    }
    let step = reading.step_of(reading.maker_of_filter(filter)?)?;
    Some(Finding {
        rule: Rule::Default,
        level: Level::Error,
        place: at_word(step, "parent"),
        what: format!("what no filter of {kind} {handle} takes is dropped"),
        because: format!(
            "with a filter of its own {kind} no longer hashes: a packet takes the queue that a filter \
            names, or none"
        ),
        witness,
        fix: Some(Fix {
            what: "remove the filter, or end its filters with one for `protocol all` that matches \
            everything else (`flow hash` distributes it)"
                .into(),
            edits: Vec::new(),
        }),
    })
}

/// A filter that deals flows into more queues than its qdisc has, and how many that has.
fn deals_beyond<'r>(
    reading: &'r PolicyModel,
    qdisc: &QdiscDump,
) -> Option<(&'r FilterDump, &'r FlowParams, u32)> {
    let (_, queues) = numbered_queues(&qdisc.params)?;
    let own = reading.filters.iter().filter(|dump| dump.dev == qdisc.dev && dump.parent == qdisc.handle);
    let mut dealing = own.filter_map(|dump| match &dump.entry {
        FilterEntry::Filter { params: FilterParams::Flow(flow), .. } => Some((dump, flow)),
        _ => None,
    });
    let is_beyond = |flow: &FlowParams| {
        let first = flow.baseclass.map_or(1, |base| u32::from(base.minor().max(1)));
        flow.mode.unwrap_or_default() == FlowMode::Hash && first.saturating_add(flow.divisor) > queues + 1
    };
    dealing.find(|(_, flow)| is_beyond(flow)).map(|(dump, flow)| (dump, flow, queues))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_tried_is_understood() {
        assert!(TRIED.iter().all(|words| Packet::parse(words).is_ok()));
    }
}
