//! The clock that a host has: its timers, and its timestamps.

use tidegate_packet::{Nanos, Time};

/// One tick of the clock that timers run by (HZ = 1000).
const TICK: u64 = 1_000_000;
/// Slots of one level of the timer wheel; each level's are eight times as wide as the one's before.
const LEVEL: u64 = 63;

/// When a timer fires that is to run so long: on a tick, never early, and the later the longer it runs, as
/// Linux's timer wheel has it (`Documentation/timers`, and the oracle's runs to the tick).
pub(crate) fn timer(now: Time, span: Nanos) -> Time {
    let ticks = span.0.div_ceil(TICK);
    let (mut shift, mut most) = (0, LEVEL);
    while ticks >= most && shift < 24 {
        shift += 3;
        most *= 8;
    }
    let due = now.0 / TICK + ticks;
    Time((((due + (1 << shift)) >> shift) << shift) * TICK)
}

/// The clock of timestamps (RFC 7323), in ms.
pub(crate) fn stamp(at: Time) -> u32 {
    (at.0 / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(us: u64) -> Time {
        Time(us * 1000)
    }

    /// Timers of the oracle's runs: a probe, a reordering timer, timeouts of 250, 500 and 1000 ms.
    #[test]
    fn timers_fire_on_the_wheel() {
        let cases = [
            (8_190, 18_380, 28_000),
            (264_947, 4_050, 270_000),
            (256_000, 250_000, 512_000),
            (512_000, 500_000, 1_016_000),
            (1_016_000, 1_000_000, 2_048_000),
        ];
        for (now, span, due) in cases {
            assert_eq!(timer(micros(now), Nanos::micros(span)), micros(due), "{now} {span}");
        }
    }
}
