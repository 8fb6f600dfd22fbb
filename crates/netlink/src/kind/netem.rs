//! netem: a structure, and attributes behind it.

use super::base::Codec;
use crate::decode::message::{Message, numbers};
use alloc::boxed::Box;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, Found, read, words};
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::dump::{NetemStats, Xstats};
use tidegate_policy::{
    NetemCorrelations, NetemDistribution, NetemLoss, NetemParams, NetemRate, NetemSlot, QdiscParams,
};

pub(super) struct Netem;

impl Codec for Netem {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Netem(params) = params {
            encode(to, params);
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(options).map(|params| QdiscParams::Netem(Box::new(params)))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        let bytes = message.own_payload();
        let number = |at: usize| Some(u64::from_ne_bytes(bytes.get(at * 8..at * 8 + 8)?.try_into().ok()?));
        Some(Xstats::Netem(NetemStats {
            delayed: number(0)?,
            dropped: number(1)?,
            corrupted: number(2)?,
            duplicated: number(3)?,
            reordered: number(4)?,
            ecn_marked: number(5)?,
        }))
    }
}

const RATE_FULL: u64 = u32::MAX as u64;

/// The options of a netem.
fn encode(to: &mut Attributes, params: &NetemParams) {
    let loss = if let NetemLoss::Random(share) = params.loss { share } else { 0 };
    let NetemParams { limit, gap, duplicate, latency_ns, jitter_ns, .. } = params;
    let mut bytes = words(&[ticks(*latency_ns), *limit, loss, *gap, *duplicate, ticks(*jitter_ns)]);
    bytes.extend(behind(params).bytes());
    to.payload(TCA_OPTIONS, &bytes);
}

/// Nanoseconds in ticks of 64.
fn ticks(ns: i64) -> u32 {
    u32::try_from(ns >> 6).unwrap_or(u32::MAX)
}

/// The attributes behind the structure.
fn behind(params: &NetemParams) -> Attributes {
    let mut to = Attributes::default();
    if let Some(NetemCorrelations { delay, loss, duplicate }) = params.correlations {
        to.payload(1, &words(&[delay, loss, duplicate]));
    }
    if let Some((probability, correlation)) = params.reorder {
        to.payload(3, &words(&[probability, correlation]));
    }
    if params.ecn {
        to.u32(7, 1);
    }
    if let Some((probability, correlation)) = params.corrupt {
        to.payload(4, &words(&[probability, correlation]));
    }
    if let Some(slot) = &params.slot {
        to.payload(12, &slots(slot));
    }
    loss(&mut to, params.loss);
    if let Some(rate) = &params.rate {
        serial(&mut to, rate);
    }
    if let Some(seed) = params.seed {
        to.u64(14, seed);
    }
    table(&mut to, 13, params.slot.as_ref().and_then(|slot| slot.distribution.as_ref()));
    table(&mut to, 2, params.distribution.as_ref());
    // Delays of more than 4 minutes do not fit the structure.
    for (number, ns) in [(10, params.latency_ns), (11, params.jitter_ns)] {
        if u32::try_from(ns >> 6).is_err() {
            to.u64(number, ns as u64);
        }
    }
    to
}

fn loss(to: &mut Attributes, loss: NetemLoss) {
    let mut inner = Attributes::default();
    match loss {
        NetemLoss::Random(_) => return,
        NetemLoss::States { p13, p31, p32, p23, p14 } => inner.payload(1, &words(&[p13, p31, p32, p14, p23])),
        NetemLoss::Gilbert { p, r, h, k1 } => inner.payload(2, &words(&[p, r, h, k1])),
    };
    to.marked_nest(5, &inner);
}

fn serial(to: &mut Attributes, rate: &NetemRate) {
    let NetemRate { rate, packet_overhead, cell_size, cell_overhead } = *rate;
    if rate > RATE_FULL {
        to.u64(8, rate);
    }
    let fits = rate.min(RATE_FULL) as u32;
    to.payload(6, &words(&[fits, packet_overhead as u32, cell_size, cell_overhead as u32]));
}

fn slots(slot: &NetemSlot) -> Vec<u8> {
    let NetemSlot {
        min_delay_ns, max_delay_ns, max_packets, max_bytes, dist_delay_ns, dist_jitter_ns, ..
    } = slot;
    let mut bytes = Vec::new();
    bytes.extend(min_delay_ns.to_ne_bytes());
    bytes.extend(max_delay_ns.to_ne_bytes());
    bytes.extend(words(&[*max_packets as u32, *max_bytes as u32]));
    bytes.extend(dist_delay_ns.to_ne_bytes());
    bytes.extend(dist_jitter_ns.to_ne_bytes());
    bytes
}

fn table(to: &mut Attributes, number: u16, table: Option<&NetemDistribution>) {
    if let Some(NetemDistribution(values)) = table {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        to.payload(number, &bytes);
    }
}

const STRUCTURE: usize = 24;

fn decode(options: &[u8]) -> Option<NetemParams> {
    let (head, rest) = options.split_at_checked(STRUCTURE)?;
    let words = numbers(head);
    let [latency, limit, loss, gap, duplicate, jitter] = *words.as_slice() else { return None };
    let from = read(rest);
    let wide =
        |number: u16, ticks: u32| from.u64(number).map_or_else(|| i64::from(ticks) << 6, |ns| ns as i64);
    let pair = |number: u16| match numbers(from.get(number)?).as_slice() {
        [0, _] | [] => None,
        [probability, correlation, ..] => Some((*probability, *correlation)),
        [_] => None,
    };
    Some(NetemParams {
        limit,
        latency_ns: wide(10, latency),
        jitter_ns: wide(11, jitter),
        distribution: None,
        correlations: correlations(&from),
        loss: read_loss(&from, loss),
        ecn: from.u32(7).is_some_and(|on| on != 0),
        duplicate,
        gap,
        reorder: pair(3),
        corrupt: pair(4),
        rate: read_rate(&from),
        slot: from.get(12).and_then(read_slot),
        seed: from.u64(14),
    })
}

fn correlations(from: &Found<'_>) -> Option<NetemCorrelations> {
    match numbers(from.get(1)?).as_slice() {
        [0, 0, 0] => None,
        [delay, loss, duplicate] => {
            Some(NetemCorrelations { delay: *delay, loss: *loss, duplicate: *duplicate })
        }
        _ => None,
    }
}

fn read_loss(from: &Found<'_>, share: u32) -> NetemLoss {
    let inner = from.nest(5);
    let words = |number: u16| inner.get(number).map(numbers).unwrap_or_default();
    if let [p13, p31, p32, p14, p23] = *words(1).as_slice() {
        return NetemLoss::States { p13, p31, p32, p23, p14 };
    }
    if let [p, r, h, k1] = *words(2).as_slice() {
        return NetemLoss::Gilbert { p, r, h, k1 };
    }
    NetemLoss::Random(share)
}

fn read_rate(from: &Found<'_>) -> Option<NetemRate> {
    let words = numbers(from.get(6)?);
    let [narrow, packet_overhead, cell_size, cell_overhead] = *words.as_slice() else { return None };
    let rate = from.u64(8).unwrap_or_else(|| narrow.into());
    let whole = NetemRate {
        rate,
        packet_overhead: packet_overhead as i32,
        cell_size,
        cell_overhead: cell_overhead as i32,
    };
    (rate > 0).then_some(whole)
}

fn read_slot(bytes: &[u8]) -> Option<NetemSlot> {
    let long = |at: usize| Some(i64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let short = |at: usize| Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some(NetemSlot {
        min_delay_ns: long(0)?,
        max_delay_ns: long(8)?,
        max_packets: short(16)?,
        max_bytes: short(20)?,
        dist_delay_ns: long(24)?,
        dist_jitter_ns: long(32)?,
        distribution: None,
    })
}
