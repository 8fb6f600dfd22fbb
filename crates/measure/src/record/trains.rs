//! A train of packets: how fast the line passed it on.

use alloc::vec::Vec;

/// A packet of a train: its number in it, when it was sent, and when it left the bottleneck (or arrived), ns;
/// `None`: it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) number: u32,
    pub(super) sent: i64,
    pub(super) left: Option<i64>,
}

/// How a train was served.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServedTrain {
    /// Packets per second while the line was busy with it.
    pub(super) rate: f64,
    /// It came slower than it was sent: the line was busy all the time.
    pub(super) is_saturating: bool,
    /// It came as it was sent, with holes: something drops by rate without a queue.
    pub(super) is_policed: bool,
    /// The middle of the time in which it was served.
    pub(super) middle: i64,
    /// How much slower its last third came than its first, as a ratio of times.
    pub(super) slowed: f64,
    /// The times in it at which nothing passed.
    pub(super) stalls: Vec<(i64, i64)>,
    /// Gaps that were looked at, those that are longer than their neighbours, and by how much, ns, with the
    /// time that all took.
    pub(super) gaps: u32,
    pub(super) odd: u32,
    pub(super) odd_ns: f64,
    pub(super) busy_ns: f64,
    /// Packets that came before one that was sent earlier.
    pub(super) overtaken: u32,
}

/// A train that takes this much longer to come than to be sent saturates the line.
const SATURATING: f64 = 1.15;
/// What a train loses where a policer is.
const POLICED: f64 = 0.1;
/// Its first packets find the line idle, and the bucket of a shaper full: one in so many is not counted.
const LEAD: usize = 8;
/// Gaps that a train must show.
const LEAST_GAPS: usize = 3;
/// Nothing passes for this long, ns, and for so many usual gaps: the line stood still.
const STALL_NS: i64 = 30_000_000;
const STALL_GAPS: f64 = 5.0;
/// A gap is odd if it is longer than those around it by this ratio.
const ODD: f64 = 1.15;
/// Neighbours on each side.
const AROUND: usize = 4;

/// The middle of some values, the upper of two; `None` of nothing.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// How long nothing must pass, ns, where packets usually come this far apart.
pub(super) fn stall_after(gap_ns: f64) -> i64 {
    STALL_NS.max((STALL_GAPS * gap_ns) as i64)
}

/// Reads a train on a path of this irregularity (ns); `None` if too few packets arrived.
pub(super) fn served(packets: &[Sent], irregularity: f64) -> Option<ServedTrain> {
    let mut train = ServedTrain::default();
    let mut arrived: Vec<(u32, i64, i64)> = Vec::with_capacity(packets.len());
    for packet in packets {
        let Some(left) = packet.left else { continue };
        if arrived.last().is_some_and(|(.., before)| left < *before) {
            train.overtaken += 1;
            continue;
        }
        arrived.push((packet.number, packet.sent, left));
    }
    train.slowed = slowed(&arrived);
    let lead = (arrived.len() / LEAD).max(1).min(arrived.len());
    let inner = &arrived[lead..];
    if inner.len() < LEAST_GAPS + 1 {
        return None;
    }
    let (first, last) = (inner[0], inner[inner.len() - 1]);
    let (sent_ns, took_ns) = ((last.1 - first.1).max(1) as f64, (last.2 - first.2).max(1) as f64);
    let lost = packets.len() - arrived.len() - train.overtaken as usize;
    train.middle = first.2 + (last.2 - first.2) / 2;
    train.is_saturating = took_ns >= SATURATING * sent_ns;
    if !train.is_saturating {
        train.is_policed = lost as f64 >= POLICED * packets.len() as f64;
        train.rate = (inner.len() - 1) as f64 * 1e9 / took_ns;
        return Some(train);
    }
    busy(inner, irregularity, &mut train);
    (train.rate > 0.0).then_some(train)
}

/// The gaps of a train that kept the line busy.
fn busy(inner: &[(u32, i64, i64)], irregularity: f64, train: &mut ServedTrain) {
    let gaps: Vec<(u32, f64)> =
        inner.windows(2).map(|pair| (pair[1].0 - pair[0].0, (pair[1].2 - pair[0].2) as f64)).collect();
    // Of a lost packet is not known whether the line carried it. Those that follow each other show what one
    // takes.
    let follow: Vec<f64> = gaps.iter().filter(|(steps, _)| *steps == 1).map(|(_, ns)| *ns).collect();
    let one = median(&follow).filter(|ns| *ns > 0.0);
    let carried = |steps: u32, ns: f64| match one {
        Some(one) if steps > 1 => libm::round(ns / one).clamp(1.0, f64::from(steps)),
        _ => 1.0,
    };
    let each: Vec<(f64, f64)> = gaps.iter().map(|(steps, ns)| (carried(*steps, *ns), *ns)).collect();
    let times: Vec<f64> = each.iter().map(|(count, ns)| ns / count).collect();
    let usual = median(&times).unwrap_or(0.0);
    let (stall, slack) = (stall_after(usual), 60.0 + 1.3 * irregularity);
    let (mut count, mut took) = (0.0, 0.0);
    for (at, (packets, ns)) in each.iter().enumerate() {
        if *ns as i64 > stall {
            train.stalls.push((inner[at].2, inner[at + 1].2));
            continue;
        }
        count += packets;
        took += ns;
        let around = &times[at.saturating_sub(AROUND)..(at + AROUND + 1).min(times.len())];
        let local = median(around).unwrap_or(0.0);
        train.gaps += 1;
        if times[at] > local * ODD + slack {
            train.odd += 1;
            train.odd_ns += ns - local * packets;
        }
    }
    train.busy_ns = took;
    train.rate = if took > 0.0 { count * 1e9 / took } else { 0.0 };
}

/// About how many packets a second came, whatever was lost, if a few did.
pub(super) fn roughly(packets: &[Sent]) -> Option<f64> {
    let left: Vec<i64> = packets.iter().filter_map(|packet| packet.left).collect();
    let (first, last) = (left.iter().min()?, left.iter().max()?);
    (left.len() > 2 && last > first).then(|| (left.len() - 1) as f64 * 1e9 / (last - first) as f64)
}

/// The range of a path's own irregularity, ns, from small packets far apart: four times the distance of the
/// quarter from the least, so that others' packets, which most do not meet, are no part of it.
pub(super) fn irregularity(packets: &[Sent]) -> f64 {
    let mut delays: Vec<i64> = packets.iter().filter_map(|packet| Some(packet.left? - packet.sent)).collect();
    delays.sort_unstable();
    match (delays.first(), delays.get(delays.len() / 4)) {
        (Some(least), Some(quarter)) => (quarter - least) as f64 * 4.0,
        _ => 0.0,
    }
}

/// How much slower the last third of a train came than the first; 1 where it cannot be seen.
fn slowed(arrived: &[(u32, i64, i64)]) -> f64 {
    let third = arrived.len() / 3;
    if third < LEAST_GAPS {
        return 1.0;
    }
    let took = |part: &[(u32, i64, i64)]| (part[part.len() - 1].2 - part[0].2) as f64;
    let (first, last) = (took(&arrived[..third]), took(&arrived[arrived.len() - third..]));
    last / first.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Packets sent each 10 µs; when each left.
    fn train(left: &[Option<i64>]) -> Vec<Sent> {
        let packet = |(number, left): (u32, &Option<i64>)| Sent {
            number,
            sent: i64::from(number) * 10_000,
            left: *left,
        };
        (0u32..).zip(left).map(packet).collect()
    }

    #[test]
    fn a_busy_line_has_a_rate() {
        let steady: Vec<Option<i64>> = (0..40).map(|n| Some(n * 20_000)).collect();
        let found = served(&train(&steady), 0.0).unwrap_or_default();
        assert_eq!((found.rate, found.is_saturating, found.odd, found.gaps), (50_000.0, true, 0, 34));
        // One in five was lost behind the line: it had carried it.
        let lossy: Vec<Option<i64>> = (0..40).map(|n| (n % 5 != 2).then_some(n * 20_000)).collect();
        let found = served(&train(&lossy), 0.0).unwrap_or_default();
        assert!((found.rate - 50_000.0).abs() < 1.0 && !found.is_policed, "{found:?}");
        // The queue was full after ten packets: every second one found no place and took no time.
        let full: Vec<Option<i64>> =
            (0..40)
                .map(|n| {
                    if n < 14 {
                        Some(n * 20_000)
                    } else {
                        (n % 2 == 1).then_some(260_000 + (n - 13) * 10_000)
                    }
                })
                .collect();
        let found = served(&train(&full), 0.0).unwrap_or_default();
        assert!((found.rate - 50_000.0).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn what_comes_as_it_was_sent_shows_no_rate() {
        let idle: Vec<Option<i64>> = (0..40).map(|n| Some(n * 10_000)).collect();
        let found = served(&train(&idle), 0.0).unwrap_or_default();
        assert_eq!((found.rate, found.is_saturating, found.is_policed), (100_000.0, false, false));
        let policed: Vec<Option<i64>> =
            (0..40).map(|n| (n < 20 || n % 2 == 1).then_some(n * 10_000)).collect();
        let found = served(&train(&policed), 0.0).unwrap_or_default();
        assert!(!found.is_saturating && found.is_policed, "{found:?}");
        assert_eq!(served(&train(&[Some(0), None, None, None, Some(5), Some(9)]), 0.0), None);
        assert_eq!(served(&[], 0.0), None);
    }

    #[test]
    fn others_packets_and_stalls_are_found() {
        // Every sixth gap has a packet of somebody else in it.
        let shared: Vec<Option<i64>> = (0..60).map(|n| Some(n * 20_000 + n / 6 * 8_000)).collect();
        let found = served(&train(&shared), 0.0).unwrap_or_default();
        assert!(found.odd >= 7 && (found.odd_ns - f64::from(found.odd) * 8_000.0).abs() < 1.0, "{found:?}");
        // Where the path itself is as irregular, nothing follows.
        assert_eq!(served(&train(&shared), 8_000.0).map(|train| train.odd), Some(0));
        // A pause of 100 ms is no service time.
        let paused: Vec<Option<i64>> =
            (0..40).map(|n| Some(n * 20_000 + if n >= 20 { 100_000_000 } else { 0 })).collect();
        let found = served(&train(&paused), 0.0).unwrap_or_default();
        assert_eq!((found.rate, found.stalls), (50_000.0, vec![(380_000, 100_400_000)]));
    }

    #[test]
    fn irregularity_is_the_paths_and_not_that_of_others() {
        let packets = |delay: fn(i64) -> i64| {
            let packet =
                |n: i64| Sent { number: 0, sent: n * 1_000_000, left: Some(n * 1_000_000 + delay(n)) };
            (0..20).map(packet).collect::<Vec<_>>()
        };
        // Even from 0 to 95 µs; and nothing, but for every third packet behind somebody else's.
        assert_eq!(irregularity(&packets(|n| n * 5_000)), 100_000.0);
        assert_eq!(irregularity(&packets(|n| if n % 3 == 0 { 400_000 } else { 7_000 })), 0.0);
        assert_eq!((irregularity(&[]), roughly(&[])), (0.0, None));
        let few = train(&[Some(0), None, None, Some(40_000_000), Some(80_000_000), None]);
        assert_eq!(roughly(&few), Some(25.0));
    }

    #[test]
    fn a_bucket_that_is_spent_slows_a_train() {
        let bucket: Vec<Option<i64>> =
            (0..60).map(|n| Some(if n < 20 { n * 12_000 } else { 240_000 + (n - 20) * 60_000 })).collect();
        let found = served(&train(&bucket), 0.0).unwrap_or_default();
        assert!((found.slowed - 5.0).abs() < 0.01, "{found:?}");
    }
}
