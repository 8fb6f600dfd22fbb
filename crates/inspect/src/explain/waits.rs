//! The longest time that a packet may be queued where it is: how much goes before it, and how fast that
//! leaves.

use super::Moment;
use super::served::{Bands, PLAIN_WEIGHT, Served, dump, served};
use crate::reading::PolicyModel;
use crate::words;
use tidegate_gateway::{BacklogLocation, CakeReason, CakeTin, DeviceKind, DeviceSpec, Encap};
use tidegate_packet::{FwMark, Handle, LinuxChange, Meta, Nanos, Rate};
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};
use tidegate_policy::{
    Ahead, CakeFlows, CakeParams, ClassLayout, ClassParams, CodelParams, DualPi2Params, HfscClassParams,
    Kind, NetemLoss, NetemParams, NetemProbability, PrioParams, QdiscParams, RateSpec, RedParams,
    StepThreshold,
};
use tidegate_qdisc::algo::{Cost, adjusted_size};
use tidegate_syntax::units::{print_rate, print_time};

/// How many flows are assumed to take turns: those of a busy household.
const SOME_FLOWS: u64 = 10;

/// The longest frame of a device.
#[derive(Clone, Copy, Debug)]
struct Frame {
    bytes: u64,
    /// The bytes that queues count for it, by the innermost size table (`stab`).
    counted: u64,
    /// What the shaper before the queue counts for it, its own framing (`overhead`, `mpu`, `linklayer`)
    /// included.
    cost: u64,
}

impl Frame {
    fn of(reading: &PolicyModel, moment: &Moment) -> Frame {
        let bytes = moment.spec.mtu + moment.spec.link_header;
        let mut tables = moment
            .stop
            .qdiscs
            .iter()
            .rev()
            .filter_map(|spot| dump(reading, moment, spot.qdisc)?.stab.as_ref());
        let counted = tables.next().map_or(bytes, |stab| adjusted_size(stab, bytes));
        let cost = framing(reading, moment).map_or(counted.into(), |spec| framed(spec, counted));
        Frame { bytes: bytes.into(), counted: counted.into(), cost }
    }

    /// The bytes that a shaper counts where queues count this many, in packets of this length.
    fn shaped(self, counted: u64) -> u64 {
        (u128::from(counted) * u128::from(self.cost) / u128::from(self.counted.max(1))) as u64
    }
}

/// The rate, with its framing, of the innermost class of HTB or tbf that a packet is in.
fn framing(reading: &PolicyModel, moment: &Moment) -> Option<RateSpec> {
    moment.stop.qdiscs.iter().rev().find_map(|spot| {
        if let Some(QdiscParams::Tbf(tbf)) = dump(reading, moment, spot.qdisc).map(|dump| &dump.params) {
            return Some(tbf.rate);
        }
        let class = moment.stop.classes.iter().rev().find(|class| class.qdisc() == spot.qdisc)?;
        let class = reading.classes.iter().find(|dump| dump.dev == moment.name && dump.classid == *class)?;
        match &class.params {
            ClassParams::Htb(htb) => Some(htb.rate),
            _ => None,
        }
    })
}

/// Bytes that count for a packet of so many with this framing.
fn framed(spec: RateSpec, bytes: u32) -> u64 {
    // A byte in a nanosecond.
    Cost::new(RateSpec { rate: Rate(1_000_000_000), ..spec }).ns(bytes)
}

/// The netems above the queue that a packet is in: they count the backlog below them too.
fn netems_above(reading: &PolicyModel, moment: &Moment) -> Vec<String> {
    let above = moment.stop.qdiscs.split_last().map_or(&[][..], |(_, above)| above);
    let netems = above.iter().filter_map(|spot| match &dump(reading, moment, spot.qdisc)?.params {
        QdiscParams::Netem(netem) => Some(format!("{}; {}", delayed(netem), in_all(spot.qdisc, netem))),
        _ => None,
    });
    netems.collect()
}

/// The qdiscs on a packet's way that drop or mark at random before their queue is full.
fn early(reading: &PolicyModel, moment: &Moment) -> Vec<String> {
    let sentence = |spot: &BacklogLocation| {
        let dump = dump(reading, moment, spot.qdisc)?;
        let (kind, handle) = (dump.kind.name(), dump.handle);
        let of = |red: &RedParams, unit: &str| {
            let does = match (red.nodrop, red.ecn) {
                (true, _) => "marks",
                (false, true) => "drops or marks",
                (false, false) => "drops",
            };
            format!("{kind} {handle} {does} packets at random from an average of {} {unit} on", red.curve.min)
        };
        match &dump.params {
            QdiscParams::Red(red) => Some(of(red, "bytes")),
            QdiscParams::Choke(red) => Some(of(red, "packets")),
            QdiscParams::Sfb(sfb) => {
                // 0: as long as the device's transmit queue. A bin never holds more than all.
                let limit = if sfb.limit > 0 { sfb.limit } else { moment.spec.tx_queue_len };
                let rises = format!(
                    "drops or marks packets at random, with a probability that rises with each that finds {} \
                    or more in a bin",
                    sfb.target
                );
                let full = format!("drops a packet whose bins all hold {} or more", sfb.max);
                let does = [(rises, sfb.target < sfb.max.min(limit)), (full, sfb.max < limit)];
                let does: Vec<String> =
                    does.into_iter().filter_map(|(does, is)| is.then_some(does)).collect();
                (!does.is_empty()).then(|| format!("{kind} {handle} {}", does.join(", and ")))
            }
            _ => None,
        }
    };
    moment.stop.qdiscs.iter().filter_map(sentence).collect()
}

/// The fewest packets that a netem above the queue takes in all.
fn least_netem(reading: &PolicyModel, moment: &Moment) -> Option<u64> {
    let above = moment.stop.qdiscs.split_last().map_or(&[][..], |(_, above)| above);
    let limits = above.iter().filter_map(|spot| match &dump(reading, moment, spot.qdisc)?.params {
        QdiscParams::Netem(netem) => Some(u64::from(netem.limit)),
        _ => None,
    });
    limits.min()
}

/// How many packets netem queues, those in its child included.
fn in_all(handle: Handle, netem: &NetemParams) -> String {
    let packets = words::count(netem.limit as usize, "packet", "packets");
    format!("netem {handle} takes no more than {packets}, those that wait below it included")
}

/// A class's parameters, in tc's words.
pub(super) fn class_words(class: &ClassDump) -> String {
    match &class.params {
        ClassParams::Htb(htb) => {
            let (rate, ceil) = (print_rate(htb.rate.rate, false), print_rate(htb.ceil.rate, false));
            format!("rate {rate} ceil {ceil} prio {}", htb.prio)
        }
        ClassParams::Hfsc(HfscClassParams { rt, ls, ul }) => {
            let curves = [("rt", rt), ("ls", ls), ("ul", ul)];
            let given = curves.iter().filter_map(|(name, curve)| {
                let curve = curve.as_ref()?;
                let rate = |bytes: u32| print_rate(Rate(bytes.into()), false);
                let first = match curve.d_us == 0 || curve.m1 == curve.m2 {
                    true => String::new(),
                    false => format!("{} for {}, then ", rate(curve.m1), print_time(curve.d_us)),
                };
                Some(format!("{name} {first}{}", rate(curve.m2)))
            });
            given.collect::<Vec<_>>().join(" ")
        }
        ClassParams::Drr(drr) => drr.quantum.map_or(String::new(), |bytes| format!("quantum {bytes}")),
        ClassParams::Qfq(qfq) => format!("weight {}", qfq.weight.unwrap_or(PLAIN_WEIGHT)),
        ClassParams::Ets(ets) => ets.quantum.map_or("strict".into(), |bytes| format!("quantum {bytes}")),
        ClassParams::None => String::new(),
    }
}

/// The qdisc that holds a packet: `fq_codel 120:`, `htb 1:, its direct queue`.
pub(super) fn queue_name(reading: &PolicyModel, moment: &Moment) -> String {
    match moment.stop.leaf() {
        None => "no queue".into(),
        Some(leaf) if leaf.qdisc.is_none() && leaf.on == Handle::ROOT => {
            format!("where nothing is configured ({})", leaf.kind.name())
        }
        Some(leaf) if leaf.qdisc.is_none() => format!("{} by default", leaf.kind.name()),
        Some(leaf) if leaf.kind == Kind::Htb => format!("htb {}, its direct queue", leaf.qdisc),
        Some(leaf) => match dump(reading, moment, leaf.qdisc) {
            Some(dump) => format!("{} {}", dump.kind.name(), dump.handle),
            None => leaf.kind.name().into(),
        },
    }
}

/// The priority of packets that fq of Linux 6.1 sends before all others (`TC_PRIO_CONTROL`).
const CONTROL: u32 = 7;

/// The highest priority that skbprio tells apart (tc-skbprio(8)).
const LAST_PRIORITY: u32 = 63;

/// Sentences about what may go before a packet, with the arithmetic.
pub(super) fn at_worst(reading: &PolicyModel, moment: &Moment) -> Vec<String> {
    let Some(leaf) = moment.stop.leaf() else { return Vec::new() };
    let is_named = reading.was_there(&moment.name) || reading.gateway.device(&moment.name).is_some();
    if !is_named && leaf.qdisc.is_none() && leaf.on == Handle::ROOT {
        return vec!["the policy does not name this device: its backlog is not known".into()];
    }
    let served = served(reading, moment);
    let frame = Frame::of(reading, moment);
    let dump = dump(reading, moment, leaf.qdisc);
    let mut lines = match dump.map(|dump| (dump, &dump.params)) {
        Some((_, QdiscParams::Cake(cake))) => {
            let own = |dump: &FilterDump| dump.dev == moment.name && dump.parent.qdisc() == leaf.qdisc;
            of_cake(cake, leaf.qdisc, moment, reading.filters.iter().any(own))
        }
        Some((_, QdiscParams::Netem(netem))) => of_netem(reading, moment, (netem, leaf.qdisc), frame, served),
        Some((dump, _)) if dump.kind == Kind::PfifoFast => of_bands(moment, frame, served),
        Some((dump, _)) if dump.kind == Kind::Fq && reading.kernel().linux.has(LinuxChange::FqBands) => {
            vec![
                "bands of flows take turns by weight: how long it may wait is not worked out here".to_owned(),
            ]
        }
        Some((dump, _)) if dump.kind == Kind::Hhf => {
            vec![
                "heavy hitters and the other flows take turns by weight: how long it may wait is not worked out \
                 here"
                    .to_owned(),
            ]
        }
        Some((dump, _)) if dump.kind == Kind::Fq && moment.priority & 15 == CONTROL => {
            vec!["packets of priority 7 go ahead of all flows".to_owned()]
        }
        Some((dump, _)) => of_params(dump, moment, (frame, served), least_netem(reading, moment)),
        None => of_hidden(reading, moment, leaf.kind, (frame, served)),
    };
    if leaf.kind == Kind::Skbprio && moment.priority < LAST_PRIORITY {
        lines.push(
            "packets of higher priority are served first: it waits while they come, indefinitely if they always do"
                .to_owned(),
        );
    }
    lines.extend(early(reading, moment));
    lines.extend(netems_above(reading, moment));
    lines.extend(onward(reading, &moment.name, moment.spec));
    if served.by_weight {
        lines.push(
            "its link sharing is a weight, not a rate: what others send decides how much it gets beside them"
                .into(),
        );
    }
    lines.extend(served.blocked.map(|qdisc| {
        format!(
            "while another class of {qdisc} holds packets back, {qdisc} sends none of the others: how long it waits \
             then is not worked out here"
        )
    }));
    if served.uneven {
        lines.push(
            "shapers on the way count packets differently, or begin at another rate than they go on with: how long it \
             waits is not worked out here"
                .to_owned(),
        );
    }
    lines.extend(served.crowded.map(|qdisc| {
        format!(
            "the classes of {qdisc} are guaranteed more together than is sent above them: how much it gets beside \
             the others is not worked out here"
        )
    }));
    lines.extend(served.nested.map(|qdisc| {
        format!(
            "{qdisc} stands below another shaper, where bursts that its other classes have saved go first: how much \
             it gets beside them is not worked out here"
        )
    }));
    lines.extend(served.in_turns.map(|qdisc| {
        format!(
            "the classes of {qdisc} take turns: how long it waits beside the others is not worked out here"
        )
    }));
    lines.extend(served.after.map(Bands::sentence));
    lines.extend(super::marks::of(reading, moment));
    lines
}

/// Where a packet continues from a device that is stacked on others: it is not followed there.
fn onward(reading: &PolicyModel, name: &str, spec: DeviceSpec) -> Option<String> {
    let gateway = &reading.gateway;
    let device = gateway.device(name)?;
    let lower = gateway.beneath(device).map(|lower| gateway.name(lower));
    let outer = "whose qdisc sees the outer header";
    match (spec.kind, gateway.encap(device), lower) {
        (DeviceKind::Tunnel, _, lower) | (_, Some(Encap::Tunnel(_)), lower) => {
            let by = lower.map_or_else(|| "the device that its route names".to_owned(), str::to_owned);
            Some(format!("it goes on in an outer packet by {by}, {outer}: that is not followed here"))
        }
        (_, _, Some(lower)) => {
            Some(format!("its frames go on to {lower}, through whose qdiscs they are not followed here"))
        }
        // WireGuard: other devices of raw IP have queues.
        (DeviceKind::Raw, ..) if spec.queueless => Some(format!(
            "it goes on encrypted in an outer packet (UDP) by the device that its route names, {outer}: \
            that is \
            not followed here"
        )),
        _ => None,
    }
}

/// The default queue, where none is configured.
fn of_hidden(
    reading: &PolicyModel,
    moment: &Moment,
    kind: Kind,
    (frame, served): (Frame, Served),
) -> Vec<String> {
    let above = moment.stop.qdiscs.iter().rev().nth(1).and_then(|spot| dump(reading, moment, spot.qdisc));
    match (kind, above.map(|dump| &dump.params)) {
        (Kind::Bfifo, Some(QdiscParams::Tbf(tbf))) => {
            by_bytes("bucket's queue", u64::from(tbf.limit), (frame, served))
        }
        (Kind::Bfifo, Some(QdiscParams::Red(red))) => {
            by_bytes("queue", u64::from(red.limit), (frame, served))
        }
        // 0: as long as the device's transmit queue.
        (Kind::Pfifo, Some(QdiscParams::Sfb(sfb))) if sfb.limit > 0 => {
            by_packets(kind.name(), u64::from(sfb.limit), frame, served)
        }
        (Kind::PfifoFast, _) => of_bands(moment, frame, served),
        (Kind::Noqueue, _) => vec!["it does not wait: the device has no queue".into()],
        _ => by_packets(kind.name(), u64::from(moment.spec.tx_queue_len), frame, served),
    }
}

/// pfifo_fast: three bands, each as long as the device's transmit queue.
fn of_bands(moment: &Moment, frame: Frame, served: Served) -> Vec<String> {
    let band = PrioParams::MAP[moment.priority as usize & 15];
    let mut lines = vec![format!("priority {} is band {band} of pfifo_fast's bands 0 to 2", moment.priority)];
    lines.extend(by_packets("band", u64::from(moment.spec.tx_queue_len.max(1)), frame, served));
    if band > 0 && served.after.is_none() {
        lines.push(Bands::Before.sentence());
    }
    lines
}

/// The queues of a kind with these parameters; `most`: packets that may be queued there, as a netem above
/// takes no more.
fn of_params(
    dump: &QdiscDump,
    moment: &Moment,
    (frame, served): (Frame, Served),
    most: Option<u64>,
) -> Vec<String> {
    let fewer = |limit: u64| most.filter(|most| *most < limit);
    let in_netem = |most: u64| by_packets("netem", most, frame, served);
    let own = match &dump.params {
        QdiscParams::Fq(fq) => fq
            .max_rate
            .filter(|rate| *rate != u32::MAX)
            .map_or(served, |rate| served.limited_to(f64::from(rate) * 8.0)),
        _ => served,
    };
    let low_latency = match &dump.params {
        QdiscParams::DualPi2(dual) => goes_first(dual, moment),
        _ => None,
    };
    let all = dump.kind.ahead(&dump.params);
    let take_turns = all.iter().any(|ahead| matches!(ahead, Ahead::Turns { flows, .. } if *flows != Some(1)));
    let given = all.into_iter().map(|ahead| match ahead {
        Ahead::ShortDelay { .. } if low_latency.is_some() => low_latency.clone().into_iter().collect(),
        Ahead::Packets { limit, .. } if fewer(limit.into()).is_some() => in_netem(most.unwrap_or_default()),
        Ahead::Bytes { limit, .. } if fewer(u64::from(limit) / frame.counted.max(1)).is_some() => {
            in_netem(most.unwrap_or_default())
        }
        // The turns of others come between its packets.
        Ahead::Packets { queue, limit } if take_turns && (own.assured().or(own.most())).is_some() => {
            let alone = |line| format!("{line}, while no other flow has packets here");
            by_packets(queue, limit.into(), frame, own).into_iter().map(alone).collect()
        }
        Ahead::Packets { queue, limit } => by_packets(queue, limit.into(), frame, own),
        Ahead::Unserved { queue, limit } => by_packets(queue, limit.into(), frame, served),
        Ahead::Bytes { queue, limit } => by_bytes(queue, limit.into(), (frame, served)),
        Ahead::Turns { quantum, flows } => {
            turns((quantum.into(), first_turn(&dump.params, quantum)), flows, frame, served)
        }
        Ahead::ShortDelay { us, .. } if fills_before(&dump.params, us, frame, own).is_some() => {
            let limit = fills_before(&dump.params, us, frame, own).unwrap_or_default();
            by_packets("queue", limit.into(), frame, own)
        }
        Ahead::ShortDelay { us, spares_frame: true } => {
            vec![target_sentence_at(f64::from(us) / 1000.0, frame, served)]
        }
        Ahead::ShortDelay { us, spares_frame: false } => {
            vec![target_sentence_or_more(f64::from(us) / 1000.0, frame, served)]
        }
    });
    given.flatten().collect()
}

/// The limit of a codel that is full, at the rate that is known, before its target is reached.
fn fills_before(params: &QdiscParams, target_us: u32, frame: Frame, served: Served) -> Option<u32> {
    let QdiscParams::Codel(CodelParams { limit, .. }) = params else { return None };
    let limit = limit.unwrap_or(1000);
    let all = frame_time(frame, served)? * f64::from(limit);
    (all < f64::from(target_us) / 1000.0).then_some(limit)
}

/// Where a packet's ECN field puts it into dualpi2's low-latency queue: what that is.
fn goes_first(dual: &DualPi2Params, moment: &Moment) -> Option<String> {
    let mask = dual.ecn_mask.unwrap_or(1);
    if moment.head.dsfield() & mask & 3 == 0 {
        return None;
    }
    let step = match dual.step.unwrap_or(StepThreshold::Micros(1000)) {
        StepThreshold::Micros(us) => {
            format!("marks what waits longer than {}", short(f64::from(us) / 1000.0))
        }
        StepThreshold::Packets(packets) => format!("marks what has {packets} packets or more behind it"),
    };
    Some(format!("its ECN field puts it into the low-latency queue, which goes first and {step}"))
}

/// The tin a packet takes, why, and how its flow is held there; `filtered`: the qdisc has filters of its own.
fn of_cake(cake: &CakeParams, qdisc: Handle, moment: &Moment, filtered: bool) -> Vec<String> {
    let mut meta = Meta::of(&moment.head, 0);
    (meta.mark, meta.priority) = (FwMark(moment.mark), moment.priority);
    let frame = moment.spec.mtu + moment.spec.link_header;
    let tin = CakeTin::of(cake, qdisc, frame, &meta);
    let tins = cake.tins.unwrap_or_default();
    let name = match tins.labels().and_then(|labels| labels.get(tin.place)) {
        Some(label) => (*label).to_owned(),
        None => tin.place.to_string(),
    };
    // What is known of the packet is what left.
    if cake.wash == Some(true) && matches!(tin.because, CakeReason::Dscp(_)) {
        return vec![format!(
            "its DSCP as it comes here chooses the tin of {}; wash clears it as the packet leaves",
            tins.name()
        )];
    }
    let because = match tin.because {
        CakeReason::Only => "there is one tin for all".into(),
        CakeReason::Mark => format!("its mark {:#x} puts it in tin {name}", moment.mark),
        CakeReason::Priority => format!("its priority {} puts it in tin {name}", Handle(moment.priority)),
        CakeReason::Dscp(dscp) => format!("its DSCP {dscp} puts it in tin {name} of {}", tins.name()),
    };
    let first = match tin.rate.filter(|_| tin.because != CakeReason::Only) {
        Some(rate) if cake.bandwidth == Some(rate) => {
            format!("{because}, with a threshold of {}, the whole rate", words::rate(rate))
        }
        Some(rate) => {
            format!(
                "{because}, with a threshold of {}: above that, tins below theirs go first",
                words::rate(rate)
            )
        }
        None => because,
    };
    let sharing = match cake.flows.unwrap_or_default() {
        _ if filtered => {
            "filters of its own may choose its queue, which is shared by all that they put into it".into()
        }
        CakeFlows::Blind => "all its packets are one flow".into(),
        flows
            if moment.from_other
                && cake.nat != Some(true)
                && (flows.shares_source() || flows.by_source()) =>
        {
            let turns = if flows.by_conversation() { ", whose conversations take turns" } else { "" };
            let name = flows.name();
            format!(
                "it sees the source as NAT left it (no `nat`): hosts behind one address are one \
                there{turns} ({name})"
            )
        }
        flows if flows.shares_source() || flows.shares_destination() => {
            format!("hosts take turns there, and the conversations of each ({})", flows.name())
        }
        flows if flows.by_conversation() => format!("conversations take turns there ({})", flows.name()),
        flows => format!("hosts take turns there ({})", flows.name()),
    };
    let mut lines = vec![first, sharing, target_sentence(tin.target_ns as f64 / 1e6)];
    if let Some(us) = cake.rtt_us.filter(|us| *us < SHORT_RTT_US) {
        lines.push(format!(
            "its rtt is {us} µs: it drops sooner than senders farther away than that can slow down, which \
            costs them throughput"
        ));
    }
    lines
}

/// No path that leaves a building is shorter, in µs.
const SHORT_RTT_US: u32 = 1000;

/// netem's delay, and the queue of its own rate or one above it; or its child's queue.
fn of_netem(
    reading: &PolicyModel,
    moment: &Moment,
    (netem, handle): (&NetemParams, Handle),
    frame: Frame,
    served: Served,
) -> Vec<String> {
    let mut lines = vec![delayed(netem)];
    let limited = |served: Served, rate: u64| served.limited_to(rate as f64 * 8.0);
    let served = netem.rate.as_ref().map_or(served, |rate| limited(served, rate.rate));
    let counts = netem.rate.as_ref().is_some_and(|rate| rate.packet_overhead != 0 || rate.cell_size != 0);
    let served = Served { uneven: served.uneven || netem.slot.is_some() || counts, ..served };
    let hangs = |inner: &&QdiscDump| {
        inner.dev == moment.name
            && inner.parent.qdisc() == handle
            && !inner.handle.is_none()
            && !handle.is_none()
    };
    let own_queue = || by_packets("queue inside netem", u64::from(netem.limit), frame, served);
    match reading.qdiscs.iter().find(hangs) {
        Some(inner) => {
            if netem.rate.is_some() || netem.slot.is_some() {
                lines.extend(own_queue());
            }
            let below = |other: &QdiscDump| {
                other.dev == moment.name && other.parent.qdisc() == inner.handle && !inner.handle.is_none()
            };
            // What such a qdisc makes of it shows only when the delay is over.
            if matches!(inner.kind.classes(), ClassLayout::Made | ClassLayout::Bands)
                || reading.qdiscs.iter().any(below)
            {
                lines.push(format!(
                    "then it goes into {} {}, which hangs in netem",
                    inner.kind.name(),
                    inner.handle
                ));
                lines.push(in_all(handle, netem));
                return lines;
            }
            lines.push(format!(
                "then it waits in {} {}, which hangs in netem",
                inner.kind.name(),
                inner.handle
            ));
            let served = match &inner.params {
                QdiscParams::Tbf(tbf) => limited(served, tbf.rate.rate.0),
                _ => served,
            };
            let frame = inner.stab.as_ref().map_or(frame, |stab| {
                let counted = adjusted_size(stab, moment.spec.mtu + moment.spec.link_header).into();
                Frame { counted, cost: counted, ..frame }
            });
            lines.extend(of_params(inner, moment, (frame, served), Some(netem.limit.into())));
            lines.push(in_all(handle, netem));
        }
        None if served.assured().is_some() || served.most().is_some() || netem.slot.is_some() || counts => {
            lines.extend(own_queue());
        }
        None => {}
    }
    let decides = match (netem.slot.is_some(), counts) {
        (true, _) => "its slots decide",
        (false, true) => "what it adds to each packet decides",
        (false, false) => return lines,
    };
    lines.push(format!("{decides} how fast they leave: that is not worked out here"));
    lines
}

/// What netem makes of every packet.
fn delayed(netem: &NetemParams) -> String {
    let (delay, jitter) = (netem.latency_ns as f64 / 1e6, netem.jitter_ns as f64 / 1e6);
    let is_plain = netem.rate.is_none() && netem.slot.is_none();
    let mut reasons = Vec::new();
    if is_plain || netem.latency_ns != 0 || netem.jitter_ns != 0 {
        let varies =
            if netem.jitter_ns == 0 { String::new() } else { format!(", with {jitter:.1} ms of jitter") };
        reasons.push(format!("for {delay:.1} ms{varies}"));
    }
    if let Some(rate) = &netem.rate {
        reasons.push(format!("until its rate of {} lets it go", words::rate(Rate(rate.rate))));
    }
    if netem.slot.is_some() {
        reasons.push("until a slot has room for it".to_owned());
    }
    let mut text = format!("netem holds it back {}", reasons.join(", and "));
    let correlation = netem.correlations.unwrap_or_default();
    if netem.gap > 0 {
        let before = netem.gap - 1;
        // A distance without a probability means always.
        let (reorder, degree) = netem.reorder.unwrap_or((NetemProbability::MAX, 0));
        let once =
            if before == 0 { String::new() } else { format!(" once {before} before it were held back") };
        let (comma, chance) = (if before == 0 { "" } else { "," }, chance(reorder, degree));
        match reorder {
            0 => {}
            NetemProbability::MAX if before == 0 => {
                text.push_str(", unless it goes ahead at once (reorder), as all do")
            }
            NetemProbability::MAX => {
                text.push_str(&format!(", unless it goes ahead at once (reorder):{once}"))
            }
            _ => text.push_str(&format!(
                ", unless it goes ahead at once (reorder):{once}{comma} a chance of {chance}"
            )),
        }
    }
    let lost = if netem.ecn { "lost, or marked if it can be (ecn)" } else { "lost" };
    match netem.loss {
        NetemLoss::Random(0) => {}
        NetemLoss::Random(share) => {
            text.push_str(&format!("; a chance of {} that it is {lost}", chance(share, correlation.loss)));
        }
        NetemLoss::States { .. } => text.push_str(&format!("; it may be {lost}, by a model of states")),
        NetemLoss::Gilbert { .. } => text.push_str(&format!("; it may be {lost}, by gemodel")),
    }
    text
}

/// Why netem drops a packet: by a draw.
pub(super) fn loses(netem: &NetemParams) -> String {
    match netem.loss {
        NetemLoss::Random(NetemProbability::MAX) => "netem drops every packet".to_owned(),
        NetemLoss::Random(share) => {
            format!(
                "netem drops it by a draw, with a chance of {}",
                chance(share, netem.correlations.unwrap_or_default().loss)
            )
        }
        _ => "netem drops it by a draw of its model of losses".to_owned(),
    }
}

/// `25 %`, `0.1 %, each like the last (correlation 50 %)`.
fn chance(share: NetemProbability, correlation: NetemProbability) -> String {
    let percent = |share: NetemProbability| {
        let figure = format!("{:.3}", f64::from(share) / f64::from(NetemProbability::MAX) * 100.0);
        format!("{} %", figure.trim_end_matches('0').trim_end_matches('.'))
    };
    match correlation {
        0 => percent(share),
        _ => format!("{} (correlation {})", percent(share), percent(correlation)),
    }
}

/// Flows that send one after the other.
/// The bytes of a flow's first turn.
fn first_turn(params: &QdiscParams, quantum: u32) -> u64 {
    match params {
        QdiscParams::Fq(fq) => fq.initial_quantum.unwrap_or(FIRST_OF_FQ).max(quantum).into(),
        _ => quantum.into(),
    }
}

/// What fq gives a new flow where nothing is said: ten frames of Ethernet.
const FIRST_OF_FQ: u32 = 15140;

fn turns((quantum, first): (u64, u64), flows: Option<u32>, frame: Frame, served: Served) -> Vec<String> {
    let others = flows.map_or(SOME_FLOWS, |flows| u64::from(flows).saturating_sub(1).min(SOME_FLOWS));
    if others == 0 {
        return vec!["it has one queue, which all flows share".to_owned()];
    }
    // A packet longer than a turn waits until several have added up, and so do those of the others.
    let (bytes, between) = match first < frame.counted {
        true => (frame.counted * others, "packets of this length"),
        // A flow sends as long as anything is left of its turn, and the last frame whole.
        false => (first.next_multiple_of(frame.counted.max(1)) * others, "turns"),
    };
    let longer = if first > quantum { format!(", a new one's first of {first}") } else { String::new() };
    let time = time(frame.shaped(bytes), served);
    let time = if time.is_empty() { String::new() } else { format!(": {time}") };
    vec![format!(
        "flows take turns of {quantum} bytes{longer}: with {others} other{}, {bytes} bytes between two \
        {between}{time}",
        if others == 1 { "" } else { "s" }
    )]
}

fn target_sentence(ms: f64) -> String {
    let time = short(ms);
    format!("its queue is held near {time}, as long as senders heed losses and marks")
}

/// `24 ms`, `1.2 ms`, `100 µs`.
fn short(ms: f64) -> String {
    match ms {
        ms if ms < 1.0 => format!("{:.0} µs", ms * 1000.0),
        ms if ms < 10.0 => format!("{} ms", (ms * 10.0).round() / 10.0),
        ms => format!("{ms:.0} ms"),
    }
}

/// How long one frame takes at the rate that is sure, or else the highest, ms.
fn frame_time(frame: Frame, served: Served) -> Option<f64> {
    served.assured().or(served.most()).map(|rate| frame.cost as f64 * 8.0 / rate * 1000.0)
}

/// As `target_sentence`, for a queue that drops by its delay however little waits: a target that one frame
/// does not meet is not held.
fn target_sentence_or_more(ms: f64, frame: Frame, served: Served) -> String {
    match frame_time(frame, served) {
        Some(one) if one > ms => format!(
            "its queue is longer than its target of {}: one frame alone takes {} here",
            short(ms),
            short(one)
        ),
        _ => target_sentence(ms),
    }
}

/// As `target_sentence`, for a queue that leaves at least one frame waiting: where that alone takes longer
/// than the target, that.
fn target_sentence_at(ms: f64, frame: Frame, served: Served) -> String {
    match frame_time(frame, served) {
        Some(one) if one > ms => format!(
            "its queue is held near one frame, as long as senders heed losses and marks: that takes {} \
            here, more than its target of {}",
            short(one),
            short(ms)
        ),
        _ => target_sentence(ms),
    }
}

fn by_packets(what: &str, limit: u64, frame: Frame, served: Served) -> Vec<String> {
    let Frame { bytes, counted, cost } = frame;
    if limit == 0 {
        return vec![format!("the {what} takes no packet")];
    }
    // Those ahead, those that qdiscs above hold, and one whose time is not over yet.
    let (held, total) = (held(served), limit + served.held);
    if limit == 1 {
        // A shaper lets it go when what was sent before it is paid for.
        let first = format!("the {what} holds one packet: at worst one of {bytes} bytes has just left{held}");
        return with_time(first, total * cost, served);
    }
    let sized = match cost {
        cost if cost == bytes => String::new(),
        cost if cost == counted => format!(", which stab counts as {}", words::bytes(total * cost)),
        cost => format!(", which the shaper counts as {}", words::bytes(total * cost)),
    };
    let first = format!(
        "the {what} holds {limit} packets: at worst {} of {bytes} bytes are ahead and one has just left{held}, \
         {}{sized}",
        limit - 1,
        words::bytes(total * bytes)
    );
    with_time(first, total * cost, served)
}

fn by_bytes(what: &str, limit: u64, (frame, served): (Frame, Served)) -> Vec<String> {
    let first = format!(
        "the {what} holds {}, all of which may be ahead, and a frame has just left{}",
        words::bytes(limit),
        held(served)
    );
    with_time(first, frame.shaped(limit) + (1 + served.held) * frame.cost, served)
}

/// What qdiscs above have taken out already.
fn held(served: Served) -> String {
    match served.held {
        0 => String::new(),
        1 => ", one is held by the qdisc above".to_owned(),
        more => format!(", {more} are held by the qdiscs above"),
    }
}

fn with_time(first: String, bytes: u64, served: Served) -> Vec<String> {
    match time(bytes, served) {
        // Why is said once, behind all that may be ahead.
        time if time.is_empty() && served.is_open() => vec![first],
        time if time.is_empty() => {
            vec![first, "how long that takes, the link behind the device decides".into()]
        }
        time => vec![format!("{first}: {time}")],
    }
}

/// `40.3 s at the 300 kbit/s it is guaranteed, 12.1 s at the 1 Mbit/s it may have when no other class sends`.
fn time(bytes: u64, served: Served) -> String {
    let bits = bytes as f64 * 8.0;
    let at = |rate: f64, what: &str| {
        let (time, rate) = (Nanos((bits / rate * 1e9) as u64), Rate((rate / 8.0) as u64));
        format!("{} at the {} {what}", words::time(time), words::rate(rate))
    };
    match (served.assured(), served.most()) {
        (Some(assured), Some(most)) if (assured - most).abs() < 1.0 => at(assured, "it has"),
        (Some(assured), most) => {
            let mut text = at(assured, "it is guaranteed");
            if let Some(most) = most {
                text.push_str(&format!(", {}", at(most, "it may have when no other class sends")));
            }
            text
        }
        (None, Some(most)) => at(most, "it may have when no other class sends"),
        (None, None) => String::new(),
    }
}

/// Does a packet leave an ifb as it comes, because nothing on its way there holds it back?
pub(super) fn leaves_at_once(reading: &PolicyModel, moment: &Moment) -> bool {
    let holds = |spot: &BacklogLocation| {
        let kind = dump(reading, moment, spot.qdisc).map(|dump| dump.kind);
        kind.is_none_or(|kind| {
            matches!(
                kind,
                Kind::Htb | Kind::Hfsc | Kind::Tbf | Kind::Cake | Kind::Fq | Kind::Netem | Kind::Plug
            )
        })
    };
    moment.spec.kind == DeviceKind::Ifb && !moment.stop.qdiscs.iter().any(holds)
}
