//! R29: packets of L4S senders (ECT(1), RFC 9331) in one queue with all others, which marks both alike.
//!
//! An L4S sender expects frequent marks and slows down a little at each; a sender of classic ECN expects few
//! and slows down much (RFC 9331, abstract). A queue that marks both with the same probability therefore
//! leaves less to the classic ones (draft-ietf-tsvwg-l4sops is about that alone). Where flows are queued
//! apart, as by fq_codel and cake, each meets only its own marks; dualpi2 knows L4S.

use super::context::RuleContext;
use super::measured::led_to;
use crate::drive::{Bench, WATCHED};
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::l4s::marks_in_one_queue;
use crate::packet::Packet;
use crate::reach::Candidate;
use crate::sets::bdd::TooLarge;
use tidegate_gateway::EgressPath;
use tidegate_packet::Handle;
use tidegate_packet::header::proto;
use tidegate_policy::dump::QdiscDump;

/// A segment of a long transfer.
const SENDER: &str = "tcp 192.168.1.10:40000 > 198.51.100.7:443 ack ecn ect1 len 1500";
/// The bits of the DS field that are ECN's, and what is written there.
const ECN: u8 = 3;
const ECT1: u8 = 1;
const ECT0: u8 = 2;
/// Packets that are kept waiting to see marks: CoDel needs many at a high rate, PIE drops instead where the
/// delay is far above its target.
const BACKLOGS: [u32; 4] = [1000, 200, 50, 20];

/// A note for each such queue to which packets of L4S senders come and that marks both kinds.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut bench = Bench::new(reading);
    let mut found = Vec::new();
    for qdisc in reading.qdiscs.iter().filter(|qdisc| marks_in_one_queue(&qdisc.params)) {
        let dev = qdisc.dev.as_str();
        if qdisc.handle.is_none() || context.leaves_out(dev) || reading.lost.tree(dev) {
            continue;
        }
        let step = reading.maker_of_qdisc(qdisc).and_then(|op| reading.step_of(op));
        let (Some(step), Some(class)) = (step, led_to(reading, qdisc)) else { continue };
        let frame = reading.frame(dev);
        let both = BACKLOGS.iter().find_map(|backlog| {
            let [l4s, classic] = [ECT1, ECT0].map(|ecn| bench.marked(dev, class, frame, (*backlog, ecn)));
            let [Some((l4s @ 1.., waited)), Some((classic @ 1.., more))] = [l4s, classic] else {
                return None;
            };
            Some((waited.max(more), l4s, classic))
        });
        let Some((backlog, l4s, classic)) = both else { continue };
        let Some(packet) = comes_here(context, qdisc)? else { continue };
        let name = format!("{} {}", qdisc.kind.name(), qdisc.handle);
        found.push(Finding {
            rule: Rule::L4s,
            level: Level::Note,
            place: step.place.clone(),
            what: format!("{name} marks packets of L4S senders (ECT(1)) as those of classic ECN, in one queue"),
            because: format!(
                "with up to {backlog} packets waiting it marked {l4s} of {WATCHED} frames with ECT(1), and \
                 {classic} of as many with ECT(0); a sender of L4S slows down less at a mark (RFC 9331), so \
                 beside it the others may get less throughput"
            ),
            witness: Some(Witness::Packet { packet: packet.to_string(), went: name.clone() }),
            fix: Some(Fix {
                what: "nothing, if no sender here uses L4S; else a qdisc that queues flows apart (fq_codel, cake), \
                       or one that knows L4S (dualpi2)"
                    .to_owned(),
                edits: Vec::new(),
            }),
        });
    }
    Ok(found)
}

/// A packet of an L4S sender that waits in this queue: a plain one, else one of those that come to its class.
fn comes_here(context: &mut RuleContext<'_>, qdisc: &QdiscDump) -> Result<Option<Packet>, TooLarge> {
    let plain = Packet::parse(SENDER).ok().map(|packet| Packet { to: Some(qdisc.dev.clone()), ..packet });
    if let Some(packet) = plain {
        let way = context.send_by(&packet, &qdisc.dev, EgressPath::Forwarded(None));
        if way.is_some_and(|way| waits_in(context, &way, qdisc)) {
            return Ok(Some(packet));
        }
    }
    if qdisc.parent == Handle::ROOT {
        return Ok(None);
    }
    let classes = &context.reached.walked.seen.classes;
    let here = classes.iter().filter(|((place, _), _)| place.0 == qdisc.dev && place.1 == qdisc.parent);
    let parts: Vec<_> = here.map(|(_, parts)| parts.clone()).collect();
    for parts in parts {
        let Some(candidate) = context.reached.pick(context.reading, &parts)? else { continue };
        let packet = Packet { dsfield: candidate.packet.dsfield & !ECN | ECT1, ..candidate.packet.clone() };
        let has_senders = matches!(packet.protocol, proto::TCP | proto::UDP);
        let candidate = Candidate { packet, ..candidate };
        let way = context.send(&candidate);
        if has_senders && waits_in(context, &way, qdisc) {
            return Ok(Some(candidate.packet));
        }
    }
    Ok(None)
}

/// Is this the queue that holds the packet?
fn waits_in(context: &RuleContext<'_>, way: &crate::probe::ProbeResult, qdisc: &QdiscDump) -> bool {
    let stop = context.prober.device(&qdisc.dev).and_then(|id| way.stop_at(id));
    way.dropped.is_none() && stop.is_some_and(|stop| stop.qdiscs.iter().any(|at| at.qdisc == qdisc.handle))
}
