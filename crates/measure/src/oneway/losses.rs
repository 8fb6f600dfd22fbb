//! What was lost, and what was overtaken.

use crate::stream::StreamTrace;
use crate::wilson;
use alloc::vec::Vec;

/// What did not arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LossStats {
    /// Packets sent.
    pub sent: u64,
    /// Those that did not arrive.
    pub lost: u64,
    /// How many were lost one after the other, each time.
    pub runs: Vec<u32>,
    /// How many arrived between two such runs.
    pub gaps: Vec<u32>,
}

impl LossStats {
    /// The losses of a stream.
    pub fn of(trace: &StreamTrace) -> LossStats {
        let mut losses = LossStats::default();
        let (mut lost_in_turn, mut arrived_in_turn) = (0, 0);
        for packet in trace.packets.iter().filter(|packet| packet.sent.is_some()) {
            losses.sent += 1;
            if packet.arrived.is_none() {
                losses.lost += 1;
                if lost_in_turn == 0 && !losses.runs.is_empty() {
                    losses.gaps.push(arrived_in_turn);
                }
                if lost_in_turn == 0 {
                    losses.runs.push(0);
                }
                lost_in_turn += 1;
                arrived_in_turn = 0;
                if let Some(run) = losses.runs.last_mut() {
                    *run = lost_in_turn;
                }
            } else {
                (lost_in_turn, arrived_in_turn) = (0, arrived_in_turn + 1);
            }
        }
        losses
    }

    /// The share lost, 0 to 1; 0 of nothing.
    pub fn share(&self) -> f64 {
        crate::share(self.lost, self.sent)
    }

    /// Which share that is with 95 % confidence (Wilson).
    pub fn interval(&self) -> (f64, f64) {
        wilson(self.lost, self.sent)
    }

    /// The Gilbert model (1960) with these losses: the probabilities that it turns bad before a packet while
    /// good, and good while bad. `None` with fewer than ten runs of losses.
    pub fn gilbert(&self) -> Option<(f64, f64)> {
        let runs = self.runs.len() as f64;
        let arrived = (self.sent - self.lost) as f64;
        (self.runs.len() >= 10 && arrived > 0.0).then(|| (runs / arrived, runs / self.lost as f64))
    }
}

/// What was overtaken (RFC 4737).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
    /// The largest extent: how many places before such a packet the first of those arrived that overtook it.
    pub extent: u32,
}

impl Order {
    /// The order of a stream's packets.
    pub fn of(trace: &StreamTrace) -> Order {
        let mut arrivals: Vec<(u32, u32)> = trace
            .packets
            .iter()
            .zip(0..)
            .filter(|(packet, _)| packet.arrived.is_some())
            .map(|(packet, number)| (packet.rank, number))
            .collect();
        arrivals.sort_unstable();
        let mut order = Order::default();
        // Each new highest number with its place: the first that overtook a packet is among them, found by
        // halving.
        let mut records: Vec<(u32, u32)> = Vec::new();
        for ((_, number), place) in arrivals.into_iter().zip(0u32..) {
            if records.last().is_none_or(|(highest, _)| number > *highest) {
                records.push((number, place));
                continue;
            }
            let first = records.partition_point(|(highest, _)| *highest < number);
            order.reordered += 1;
            order.extent = order.extent.max(place - records[first].1);
        }
        order
    }
}

/// Does a packet bear an earlier time than one that arrived before it?
pub(super) fn is_reordered(trace: &StreamTrace) -> bool {
    let mut arrivals: Vec<(u32, u64)> =
        trace.packets.iter().filter_map(|packet| Some((packet.rank, packet.arrived?))).collect();
    arrivals.sort_unstable();
    // Stamps of two packets taken by two processors may differ by microseconds.
    arrivals.windows(2).any(|pair| pair[0].1 > pair[1].1 + 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{PacketRecord, PacketTrain, Stream};
    use alloc::vec;

    /// A stream whose packets arrived at these places; `None`: lost.
    fn course(ranks: &[Option<u32>]) -> StreamTrace {
        let phase =
            PacketTrain { payload: 100, gap_ns: 10, packets: ranks.len() as u32, ..PacketTrain::default() };
        let packet = |(at, rank): (usize, &Option<u32>)| PacketRecord {
            sent: Some(at as u64 * 10),
            arrived: rank.map(|rank| 1000 + u64::from(rank)),
            rank: rank.unwrap_or(0),
            ..PacketRecord::default()
        };
        StreamTrace { stream: Stream::steady(phase), packets: ranks.iter().enumerate().map(packet).collect() }
    }

    #[test]
    fn runs_of_losses_and_gaps_between_them() {
        let losses = LossStats::of(&course(&[Some(0), None, None, Some(1), Some(2), None, Some(3), None]));
        assert_eq!(losses, LossStats { sent: 8, lost: 4, runs: vec![2, 1, 1], gaps: vec![2, 1] });
        assert_eq!((losses.share(), losses.gilbert()), (0.5, None));
        let mut pattern = Vec::new();
        for round in 0..20 {
            pattern.extend([Some(round * 3), Some(round * 3 + 1), Some(round * 3 + 2), None, None]);
        }
        assert_eq!(LossStats::of(&course(&pattern)).gilbert(), Some((1.0 / 3.0, 0.5)));
    }

    #[test]
    fn overtaken_packets() {
        // RFC 4737, section 4.2.3: 4 arrives after 5 and 6, an extent of 2.
        let places = [Some(0), Some(1), Some(2), Some(5), Some(3), Some(4), Some(6)];
        assert_eq!(Order::of(&course(&places)), Order { reordered: 1, extent: 2 });
        assert_eq!(Order::of(&course(&[Some(0), None, Some(1)])), Order::default());
        assert_eq!(Order::of(&course(&[Some(2), Some(1), Some(0)])), Order { reordered: 2, extent: 2 });
    }
}
