//! How long a queue behind the shaper is, by all that is seen: probes (round trips, and delays one way where
//! there are any) and the round trips of TCP connections that pass.
//!
//! A probe that avoids the queue says that there is none; a connection cannot avoid it. So the longer of both
//! counts. What delays both directions together is divided by the delays one way, or, without those, by which
//! direction is loaded.

use crate::baseline::Baseline;
use crate::controller::{PerDirection, ProbeReply, RateDirection};
use crate::jitter::Jitter;
use alloc::collections::{BTreeMap, VecDeque};
use tidegate_packet::{Nanos, Time};

/// How long a path's least delay is remembered, up to twice that.
const WINDOW: Nanos = Nanos::secs(10);
/// The most reflectors and connections whose least delays are kept.
const MAX_PATHS: usize = 1024;
/// How long a sample counts.
const PROBES_COUNT: Nanos = Nanos::millis(250);
const TCP_COUNTS: Nanos = Nanos::millis(100);
/// The most samples that count at once.
const MAX_SAMPLES: usize = 512;
/// A connection that is later than this, ns, shows a queue; probes see it if they show this share of it.
const LATE: i64 = 15_000_000;
const SHOWS: f64 = 0.4;
/// Frames of others that may be under way before.
const OTHERS: i64 = 2;
/// So many readings in a row show that probes are blind, and that they are not.
const HIDDEN_IN_A_ROW: u32 = 16;
const SHOWN_IN_A_ROW: u32 = 3;
/// A delay one way that is so much longer than the round trip allows, ns, shows that a clock was set.
const CLOCK_WAS_SET: i64 = 50_000_000;
/// Bits of a full frame, and how long Linux delays an acknowledgement, ns.
const SEGMENT_BITS: f64 = 1514.0 * 8.0;
const DELAYED_ACK: f64 = 40e6;
/// A connection that was seen within this is active.
const ACTIVE: Nanos = Nanos::millis(500);
/// So many probes of the last ones must be late: one may be by chance.
const AGREE: usize = 2;

/// The delay of a probe above the least one of its reflector, ns.
#[derive(Clone, Copy, Debug)]
struct ProbeSample {
    at: Time,
    round_trip: i64,
    one_way: Option<PerDirection<i64>>,
}

#[derive(Clone, Copy, Debug)]
struct TcpSample {
    at: Time,
    data: RateDirection,
    above: i64,
}

/// A connection: its least round trip, and when it was seen last.
#[derive(Clone, Copy, Debug)]
struct SeenConnection {
    base: Baseline,
    data: RateDirection,
    last: Time,
}

/// Least delays to a reflector.
#[derive(Clone, Copy, Debug)]
struct ReflectorPath {
    round_trip: Baseline,
    one_way: Option<PerDirection<Baseline>>,
}

/// The queueing delay beyond the shaper, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueEstimate {
    pub(crate) delay: PerDirection<i64>,
    /// By how much the delays of probes differ from their neighbours'.
    pub(crate) jitter: PerDirection<i64>,
    /// Something was seen lately at all.
    pub(crate) known: bool,
}

/// The estimator.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueEstimator {
    reflectors: BTreeMap<u16, ReflectorPath>,
    connections: BTreeMap<u32, SeenConnection>,
    probes: VecDeque<ProbeSample>,
    tcp: VecDeque<TcpSample>,
    /// Of probes, each direction, and the round trip.
    jitter: PerDirection<Jitter>,
    round_trip_jitter: Jitter,
    /// How long a receiver may wait for a second segment before it acknowledges, ns: no queue's delay.
    waits: PerDirection<i64>,
    /// How long a full frame takes, ns.
    frame: PerDirection<i64>,
    /// How often in a row connections were late by what probes do not show, and how often probes were late.
    hidden: u32,
    shown: u32,
    /// Probes are blind: they show nothing of what connections meet.
    blind: bool,
}

impl QueueEstimator {
    pub(crate) fn probe(&mut self, now: Time, reply: &ProbeReply) {
        if self.reflectors.len() >= MAX_PATHS && !self.reflectors.contains_key(&reply.reflector) {
            return;
        }
        let rtt = reply.rtt.0 as i64;
        let path = self
            .reflectors
            .entry(reply.reflector)
            .or_insert(ReflectorPath { round_trip: Baseline::new(WINDOW, now, rtt), one_way: None });
        let round_trip = path.round_trip.above(now, rtt);
        let one_way = reply.one_way.map(|both| {
            let both = PerDirection { up: both.up, down: both.down };
            let bases = path.one_way.get_or_insert_with(|| {
                PerDirection::of(|direction| Baseline::new(WINDOW, now, both[direction]))
            });
            // A clock that was set moves both ways, by as much against each other; the round trip does not
            // move with it, and no delay one way is longer than that.
            let above = PerDirection::of(|direction| bases[direction].above(now, both[direction]));
            if above.up.max(above.down) > round_trip + CLOCK_WAS_SET {
                *bases = PerDirection::of(|direction| Baseline::new(WINDOW, now, both[direction]));
                return PerDirection::default();
            }
            PerDirection::of(|direction| above[direction].min(round_trip))
        });
        self.round_trip_jitter.take(now, round_trip);
        if let Some(both) = one_way {
            for direction in RateDirection::BOTH {
                self.jitter[direction].take(now, both[direction]);
            }
        }
        if self.probes.len() == MAX_SAMPLES {
            self.probes.pop_front();
        }
        self.probes.push_back(ProbeSample { at: now, round_trip, one_way });
    }

    pub(crate) fn round_trip(&mut self, now: Time, flow: u32, data: RateDirection, rtt: Nanos) {
        let rtt = rtt.0 as i64;
        if self.connections.len() >= MAX_PATHS && !self.connections.contains_key(&flow) {
            self.connections.pop_first();
        }
        let first = SeenConnection { base: Baseline::new(WINDOW, now, rtt), data, last: now };
        let connection = self.connections.entry(flow).or_insert(first);
        connection.last = now;
        let above = connection.base.above(now, rtt);
        if self.tcp.len() == MAX_SAMPLES {
            self.tcp.pop_front();
        }
        self.tcp.push_back(TcpSample { at: now, data, above });
    }

    /// At these rates, bit/s, data pass: the slower, and the more connections share them, the longer
    /// receivers wait for a second segment.
    pub(crate) fn passes(&mut self, now: Time, rates: PerDirection<f64>) {
        self.frame = PerDirection::of(|one| (SEGMENT_BITS / rates[one].max(1.0) * 1e9).min(1e9) as i64);
        self.waits = PerDirection::of(|direction| {
            let seen = |one: &&SeenConnection| one.data == direction && now.since(one.last) < ACTIVE;
            let sharing = self.connections.values().filter(seen).count().max(1);
            let segments = sharing as f64 + 1.0;
            (segments * SEGMENT_BITS / rates[direction].max(1.0) * 1e9).min(DELAYED_ACK) as i64
        });
    }

    /// The queue now, where these directions are loaded.
    pub(crate) fn estimate(&mut self, now: Time, loaded: PerDirection<bool>) -> QueueEstimate {
        while self.probes.front().is_some_and(|sample| now.since(sample.at) > PROBES_COUNT) {
            self.probes.pop_front();
        }
        while self.tcp.front().is_some_and(|sample| now.since(sample.at) > TCP_COUNTS) {
            self.tcp.pop_front();
        }
        let last = || self.probes.iter().rev().take(AGREE);
        let probed = last().map(|sample| sample.round_trip).min();
        let ways = PerDirection::of(|direction| {
            last().filter_map(|sample| sample.one_way.map(|both| both[direction])).min()
        });
        // A queue delays every connection that passes it, whichever way its data go.
        let tcp = self.tcp.iter().map(|sample| sample.above - self.waits[sample.data]).min();
        // What connections show and probes do not explain is put down to the loaded directions, once it was
        // so for a while: a single connection is late for reasons of its own, too.
        let explained = match (ways.up, ways.down) {
            (Some(up), Some(down)) => up + down,
            _ => probed.unwrap_or(0),
        };
        self.compare(explained, loaded);
        let hidden = tcp.filter(|_| self.blind || probed.is_none()).map(|tcp| tcp - explained.max(0));
        let delay = PerDirection::of(|direction| {
            let by_probes = match ways[direction] {
                Some(delay) => delay,
                None => probed.filter(|_| loaded[direction]).unwrap_or(0),
            };
            let hidden = hidden.filter(|_| loaded[direction]).unwrap_or(0);
            by_probes.max(0) + hidden.max(0)
        });
        let jitter = PerDirection::of(|direction| {
            let of = if ways[direction].is_some() { self.jitter[direction] } else { self.round_trip_jitter };
            of.mean() as i64
        });
        QueueEstimate { delay, jitter, known: probed.is_some() || tcp.is_some() }
    }

    /// Are probes blind? A connection is late for reasons of its own, too: its receiver waits, or frames of
    /// others pass before. So all that pass must be later than that, for a while. Probes that show a queue
    /// are not blind.
    fn compare(&mut self, explained: i64, loaded: PerDirection<bool>) {
        let frame = RateDirection::BOTH.into_iter().filter(|one| loaded[*one]).map(|one| self.frame[one]);
        let others = LATE + OTHERS * frame.max().unwrap_or(0);
        let late = self.tcp.iter().map(|sample| sample.above).min().map(|above| above - DELAYED_ACK as i64);
        match late {
            Some(late) if late > others && (explained as f64) < SHOWS * late as f64 => self.hidden += 1,
            Some(_) => self.hidden = 0,
            None => {}
        }
        self.shown = if explained > others { self.shown + 1 } else { 0 };
        if self.shown >= SHOWN_IN_A_ROW {
            (self.blind, self.hidden) = (false, 0);
        } else if self.hidden >= HIDDEN_IN_A_ROW {
            self.blind = true;
        }
    }

    /// The path became longer by what looked like a queue in this direction.
    pub(crate) fn path_is_longer(&mut self, direction: RateDirection, by: i64) {
        for path in self.reflectors.values_mut() {
            path.round_trip.raise(by);
            if let Some(both) = &mut path.one_way {
                both[direction].raise(by);
            }
        }
        self.connections.values_mut().for_each(|one| one.base.raise(by));
        self.probes.clear();
        self.tcp.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::OneWayDelays;

    const MS: i64 = 1_000_000;

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn reply(up: i64, down: i64, clock: i64) -> ProbeReply {
        let one_way = Some(OneWayDelays { up: (up + clock) * MS, down: (down - clock) * MS });
        ProbeReply { reflector: 1, sent: at(0), rtt: Nanos(((up + down) * MS) as u64), one_way }
    }

    const UPLOAD: PerDirection<bool> = PerDirection { up: true, down: false };

    #[test]
    fn delays_one_way_say_where_the_queue_is_and_a_clock_that_is_set_makes_none() {
        let mut queue = QueueEstimator::default();
        let mut after = |ms, up, down, clock| {
            queue.probe(at(ms), &reply(up, down, clock));
            queue.probe(at(ms + 1), &reply(up, down, clock));
            let found = queue.estimate(at(ms + 2), UPLOAD);
            (found.delay.up / MS, found.delay.down / MS)
        };
        assert_eq!(after(0, 10, 10, 0), (0, 0));
        assert_eq!(after(100, 60, 10, 0), (50, 0));
        assert_eq!(after(200, 10, 40, 0), (0, 30));
        assert_eq!(after(300, 10, 10, 5000), (0, 0));
        assert_eq!(after(400, 10, 10, -5000), (0, 0));
    }

    #[test]
    fn connections_show_a_queue_that_probes_avoid() {
        let mut queue = QueueEstimator::default();
        let mut after = |from: u64, rtt: u64, shown: i64| {
            let mut found = QueueEstimate::default();
            for ms in (from..from + 1000).step_by(50) {
                queue.probe(at(ms), &reply(10 + shown, 10, 0));
                queue.probe(at(ms), &reply(10 + shown, 10, 0));
                queue.round_trip(at(ms), 7, RateDirection::Up, Nanos::millis(rtt));
                found = queue.estimate(at(ms + 1), UPLOAD);
            }
            (found.delay.up / MS, found.delay.down / MS)
        };
        assert_eq!(after(0, 20, 0), (0, 0));
        // A receiver that waits before it acknowledges is no queue.
        assert_eq!(after(1000, 65, 0), (0, 0));
        assert_eq!(after(2000, 120, 0), (100, 0));
        // Known once, it counts from where probes would show it; and probes that show a queue are not blind.
        assert_eq!(after(3000, 40, 0), (20, 0));
        assert_eq!(after(4000, 60, 40), (40, 0));
        assert_eq!(after(5000, 65, 0), (0, 0));
        queue.path_is_longer(RateDirection::Up, 50 * MS);
        queue.round_trip(at(6000), 7, RateDirection::Up, Nanos::millis(70));
        assert_eq!(queue.estimate(at(6001), UPLOAD).delay.up, 0);
    }
}
