//! netem: a structure, and attributes behind it.

use super::super::numbers;
use tidegate_os::attribute::{Found, read};
use tidegate_policy::{NetemCorrelations, NetemLoss, NetemParams, NetemRate, NetemSlot};

const STRUCTURE: usize = 24;

pub(crate) fn netem(options: &[u8]) -> Option<NetemParams> {
    let (head, rest) = options.split_at_checked(STRUCTURE)?;
    let words = numbers(head);
    let [latency, limit, loss, gap, duplicate, jitter] = *words.as_slice() else { return None };
    let from = read(rest);
    let wide = |number: u16, ticks: u32| from.u64(number).map_or_else(|| i64::from(ticks) << 6, |ns| ns as i64);
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
        loss: self::loss(&from, loss),
        ecn: from.u32(7).is_some_and(|on| on != 0),
        duplicate,
        gap,
        reorder: pair(3),
        corrupt: pair(4),
        rate: rate(&from),
        slot: from.get(12).and_then(slot),
    })
}

fn correlations(from: &Found<'_>) -> Option<NetemCorrelations> {
    match numbers(from.get(1)?).as_slice() {
        [0, 0, 0] => None,
        [delay, loss, duplicate] => Some(NetemCorrelations { delay: *delay, loss: *loss, duplicate: *duplicate }),
        _ => None,
    }
}

fn loss(from: &Found<'_>, share: u32) -> NetemLoss {
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

fn rate(from: &Found<'_>) -> Option<NetemRate> {
    let words = numbers(from.get(6)?);
    let [narrow, packet_overhead, cell_size, cell_overhead] = *words.as_slice() else { return None };
    let rate = from.u64(8).unwrap_or_else(|| narrow.into());
    let whole =
        NetemRate { rate, packet_overhead: packet_overhead as i32, cell_size, cell_overhead: cell_overhead as i32 };
    (rate > 0).then_some(whole)
}

fn slot(octets: &[u8]) -> Option<NetemSlot> {
    let long = |at: usize| Some(i64::from_ne_bytes(octets.get(at..at + 8)?.try_into().ok()?));
    let short = |at: usize| Some(i32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?));
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
