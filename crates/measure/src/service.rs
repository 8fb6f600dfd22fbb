//! How long the line takes for a packet, from when packets of one size arrived.

use crate::stream::{PacketRecord, StreamTrace};
use alloc::vec::Vec;

/// How long the line took for packets of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Service {
    /// Each, ns.
    pub ns: f64,
    /// The standard error of that, as a share.
    pub error: f64,
    /// Packets that arrived.
    pub arrived: usize,
    /// They went as they came, with holes: something drops by rate without a queue.
    pub is_policed: bool,
    /// The line was not busy: all went as they came.
    pub is_idle: bool,
    /// Most came evenly spaced, so the time is the line's own; otherwise it is from their count, and others'
    /// packets and losses are in it.
    pub is_regular: bool,
    /// They came more unevenly than the path's own irregularity explains: others used the line.
    pub is_uneven: bool,
    /// The second half took so much longer than the first, as a ratio.
    pub drift: f64,
}

/// Gaps alike within this share, and this many ns, are one service time.
const ALIKE: f64 = 0.01;
const ALIKE_NS: f64 = 60.0;
/// So many of the gaps are alike where a busy line spaces packets.
const REGULAR: f64 = 0.4;
/// Packets that a phase must deliver.
const LEAST: usize = 8;
/// The range of what is uniformly irregular, in quartile distances of its differences.
const RANGE: f64 = 3.5;
/// Parts of a phase that are compared.
const BLOCKS: usize = 10;

/// A packet that arrived: when it was sent, and when it came.
#[derive(Clone, Copy, Debug)]
struct Passage {
    sent: f64,
    arrived: f64,
}

/// The irregularity of a path, ns: the quartile distance of the differences between delays of packets that
/// follow each other, in a phase in which nothing queued.
pub fn irregularity(trace: &StreamTrace, phase: usize) -> f64 {
    let passages: Vec<(u32, Passage)> =
        trace.of_phase(phase).filter_map(|(_, packet)| passage(packet)).collect();
    let delay = |passage: &Passage| passage.arrived - passage.sent;
    let mut differences: Vec<f64> =
        passages.windows(2).map(|pair| delay(&pair[1].1) - delay(&pair[0].1)).collect();
    differences.sort_by(f64::total_cmp);
    let quartile = |n: usize| differences.get(differences.len() * n / 4).copied().unwrap_or(0.0);
    quartile(3) - quartile(1)
}

/// The service time of a phase's packets on a path of this irregularity (ns); `None` if too few arrived.
pub fn service(trace: &StreamTrace, phase: usize, irregularity: f64) -> Option<Service> {
    let packets: Vec<&PacketRecord> = trace.of_phase(phase).map(|(_, packet)| packet).collect();
    let mut arrived: Vec<(u32, Passage)> = packets.iter().filter_map(|packet| passage(packet)).collect();
    arrived.sort_unstable_by_key(|(rank, _)| *rank);
    // What comes first and last still shares the line with packets of other sizes.
    let margin = arrived.len() / 16 + 1;
    let inner = arrived.get(margin..arrived.len().saturating_sub(1))?;
    if inner.len() < LEAST {
        return None;
    }
    let passages: Vec<Passage> = inner.iter().map(|(_, passage)| *passage).collect();
    let gaps: Vec<f64> = passages.windows(2).map(|pair| pair[1].arrived - pair[0].arrived).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let slack = ALIKE_NS + RANGE * irregularity;
    let lost = packets.iter().any(|packet| packet.sent.is_some() && packet.arrived.is_none());
    let is_policed = lost && went_as_they_came(&passages, slack);
    let regular = regular(&gaps, mean, slack).filter(|_| !is_policed);
    let spread = spread(&gaps, mean);
    let (ns, error) = regular.unwrap_or((mean, spread / libm::sqrt(BLOCKS as f64)));
    let block = mean * gaps.len() as f64 / BLOCKS as f64;
    Some(Service {
        ns,
        error,
        arrived: arrived.len(),
        is_policed,
        is_idle: !lost && is_as_long(&passages),
        is_regular: regular.is_some(),
        is_uneven: regular.is_none() && !is_policed && spread > 0.002 + RANGE * irregularity / block,
        drift: drift(&gaps),
    })
}

fn passage(packet: &PacketRecord) -> Option<(u32, Passage)> {
    Some((packet.rank, Passage { sent: packet.sent? as f64, arrived: packet.arrived? as f64 }))
}

/// Did they take as long to arrive as to be sent?
fn is_as_long(passages: &[Passage]) -> bool {
    let (Some(first), Some(last)) = (passages.first(), passages.last()) else { return true };
    (last.arrived - first.arrived) < (last.sent - first.sent) * 1.03
}

/// Is it as far from one to the next on arrival as it was when they were sent, most of the time? Never, where
/// irregularity hides it.
fn went_as_they_came(passages: &[Passage], slack: f64) -> bool {
    let alike = passages.windows(2).filter(|pair| {
        let (sent, arrived) = (pair[1].sent - pair[0].sent, pair[1].arrived - pair[0].arrived);
        (arrived - sent).abs() <= ALIKE * sent.abs() + slack && slack < sent / 20.0
    });
    alike.count() * 10 > (passages.len() - 1) * 7
}

/// The service time of a busy line: where most gaps are. Other traffic and losses behind the line make gaps
/// longer, which does no harm. A receiver that gets packets in bunches shows mostly gaps far below the mean:
/// those are ignored.
fn regular(gaps: &[f64], mean: f64, slack: f64) -> Option<(f64, f64)> {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut best = (0, 0);
    let mut end = 0;
    for begin in 0..sorted.len() {
        let limit = sorted[begin] * (1.0 + ALIKE) + slack;
        while end < sorted.len() && sorted[end] <= limit {
            end += 1;
        }
        if end - begin > best.1 - best.0 {
            best = (begin, end);
        }
    }
    let cluster = &sorted[best.0..best.1];
    let n = cluster.len() as f64;
    let ns = cluster.iter().sum::<f64>() / n;
    if n < REGULAR * gaps.len() as f64 || ns < mean / 2.0 || slack > ns / 4.0 {
        return None;
    }
    let variance = cluster.iter().map(|gap| (gap - ns) * (gap - ns)).sum::<f64>() / n;
    Some((ns, libm::sqrt(variance / n) / ns))
}

/// How much the means of blocks differ, as a share.
fn spread(gaps: &[f64], mean: f64) -> f64 {
    let blocks = gaps.chunks(gaps.len().div_ceil(BLOCKS));
    let means: Vec<f64> = blocks.map(|block| block.iter().sum::<f64>() / block.len() as f64).collect();
    let n = means.len() as f64;
    let variance = means.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    libm::sqrt(variance) / mean.max(1.0)
}

fn drift(gaps: &[f64]) -> f64 {
    let (first, second) = gaps.split_at(gaps.len() / 2);
    let mean = |half: &[f64]| half.iter().sum::<f64>() / half.len().max(1) as f64;
    mean(second) / mean(first).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{PacketTrain, Stream};

    /// Packets sent each `gap`; of each number when it arrived, if it did.
    fn course(gap: u64, arrived: impl Fn(u64) -> Option<u64>) -> StreamTrace {
        let phase = PacketTrain { payload: 100, gap_ns: gap, packets: 400, ..PacketTrain::default() };
        let mut rank = 0;
        let records = (0..400u64).map(|n| {
            let packet =
                PacketRecord { sent: Some(n * gap), arrived: arrived(n), rank, ..PacketRecord::default() };
            rank += u32::from(packet.arrived.is_some());
            packet
        });
        StreamTrace { packets: records.collect(), stream: Stream::steady(phase) }
    }

    /// A line that takes 12 µs for each, offered one each 10: the time is found, however others and losses
    /// pull packets apart.
    #[test]
    fn busy_lines_space_packets() {
        let queued = |n: u64| Some(50_000 + n * 12_000);
        let lossy = |n: u64| (!n.is_multiple_of(9)).then_some(50_000 + n * 12_000);
        let others = |n: u64| Some(50_000 + n * 12_000 + n / 6 * 40_000);
        for (name, of) in [("queued", queued as fn(u64) -> Option<u64>), ("lossy", lossy), ("others", others)]
        {
            let found = service(&course(10_000, of), 0, 0.0).unwrap_or_default();
            assert!((found.ns - 12_000.0).abs() < 0.1 && found.is_regular, "{name}: {found:?}");
            assert!(!found.is_idle && !found.is_policed && !found.is_uneven, "{name}: {found:?}");
        }
    }

    /// A receiver that gets eight packets at once does not make the line eight times as fast: the count
    /// decides.
    #[test]
    fn bunches_tell_by_their_count() {
        let found =
            service(&course(10_000, |n| Some(50_000 + (n / 8 * 8 + 8) * 12_000 + n % 8 * 100)), 0, 30_000.0);
        let found = found.unwrap_or_default();
        assert!((found.ns / 12_000.0 - 1.0).abs() < 0.02 && !found.is_regular, "{found:?}");
    }

    #[test]
    fn what_goes_as_it_comes_is_no_queue() {
        let idle = service(&course(10_000, |n| Some(50_000 + n * 10_000)), 0, 0.0).unwrap_or_default();
        assert!(idle.is_idle && !idle.is_policed, "{idle:?}");
        let policed =
            service(&course(10_000, |n| (!n.is_multiple_of(6)).then_some(50_000 + n * 10_000)), 0, 0.0)
                .unwrap_or_default();
        assert!(policed.is_policed && !policed.is_regular, "{policed:?}");
        assert!((policed.ns / 12_000.0 - 1.0).abs() < 0.01, "{policed:?}");
        assert_eq!(service(&course(10_000, |n| (n < 5).then_some(n)), 0, 0.0), None);
    }
}
