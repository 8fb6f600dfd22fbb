//! The score of a run.

use serde::Serialize;
use tidegate_packet::{Nanos, Time};
use tidegate_sim::ProbePacket;

/// A packet of a call that is lost, or later than this, counts as late by this: it is of no use to anybody.
pub(crate) const USELESS: Nanos = Nanos::secs(2);

/// What a controller achieved in a case; delays in ms.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GymScore {
    /// Delay one way of a call's packets, in the direction where it is worse, the median.
    pub call_p50_ms: f64,
    /// The 95th percentile.
    pub call_p95_ms: f64,
    /// The 99th percentile.
    pub call_p99_ms: f64,
    /// Packets of the call that are lost or later than two seconds, as a share.
    pub call_lost: f64,
    /// Round trips of the probes that came back, the 95th percentile.
    pub probe_p95_ms: f64,
    /// What the line carried, as a share of what it could: the mean of the loaded directions.
    pub utilisation: f64,
    /// How often a rate was set.
    pub changes: u64,
}

/// A percentile of values in rising order, by the nearest rank; 0 of none.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Percentiles 50, 95 and 99 of a call's packets that were sent in a window, in ms, and the share of useless
/// ones.
pub(crate) fn call(packets: &[ProbePacket], (from, to): (Time, Time)) -> ([f64; 3], f64) {
    let within = packets.iter().filter(|packet| packet.sent >= from && packet.sent < to);
    let ms = |delay: Nanos| delay.0 as f64 / 1e6;
    let mut delays: Vec<f64> = within.map(|packet| ms(packet.took.unwrap_or(USELESS).min(USELESS))).collect();
    delays.sort_by(f64::total_cmp);
    let useless = delays.iter().filter(|delay| **delay >= ms(USELESS)).count();
    let share = useless as f64 / delays.len().max(1) as f64;
    ([50.0, 95.0, 99.0].map(|percent| percentile(&delays, percent)), share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_very_late_packets_of_a_call_count_as_two_seconds() {
        let packet = |n: u64, took: Option<u64>| ProbePacket {
            sent: Time(n * 1_000_000),
            took: took.map(Nanos::millis),
        };
        let packets: Vec<_> = (0..100)
            .map(|n| match n {
                98 => packet(n, None),
                99 => packet(n, Some(5000)),
                n => packet(n, Some(n + 1)),
            })
            .collect();
        let (delays, lost) = call(&packets, (Time(0), Time(100_000_000)));
        assert_eq!((delays, lost), ([50.0, 95.0, 2000.0], 0.02));
        assert_eq!(call(&packets, (Time(0), Time(0))).0, [0.0; 3]);
    }
}
