//! What every controller hears and answers.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};
use tidegate_packet::{Nanos, Time};

/// A direction of the line, seen from the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RateDirection {
    /// Upload.
    Up,
    /// Download.
    Down,
}

impl RateDirection {
    /// Upload, then download.
    pub const BOTH: [RateDirection; 2] = [RateDirection::Up, RateDirection::Down];

    /// The other one.
    #[must_use]
    pub fn other(self) -> RateDirection {
        match self {
            RateDirection::Up => RateDirection::Down,
            RateDirection::Down => RateDirection::Up,
        }
    }

    /// `upload` or `download`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RateDirection::Up => "upload",
            RateDirection::Down => "download",
        }
    }
}

/// One of something for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// The upload's.
    pub up: T,
    /// The download's.
    pub down: T,
}

impl<T> PerDirection<T> {
    /// One for each, made alike.
    pub fn of(mut make: impl FnMut(RateDirection) -> T) -> PerDirection<T> {
        PerDirection { up: make(RateDirection::Up), down: make(RateDirection::Down) }
    }
}

impl<T> Index<RateDirection> for PerDirection<T> {
    type Output = T;

    fn index(&self, direction: RateDirection) -> &T {
        match direction {
            RateDirection::Up => &self.up,
            RateDirection::Down => &self.down,
        }
    }
}

impl<T> IndexMut<RateDirection> for PerDirection<T> {
    fn index_mut(&mut self, direction: RateDirection) -> &mut T {
        match direction {
            RateDirection::Up => &mut self.up,
            RateDirection::Down => &mut self.down,
        }
    }
}

/// Delays one way, by the clocks of both ends: their difference is in them, so only changes mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneWayDelays {
    /// To the reflector, ns.
    pub up: i64,
    /// And back.
    pub down: i64,
}

/// A probe that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeReply {
    /// The reflector that replied, by number.
    pub reflector: u16,
    /// When the probe was sent.
    pub sent: Time,
    /// The round trip.
    pub rtt: Nanos,
    /// The delays one way, where the reflector gives timestamps (ICMP type 13, a tidegate server).
    pub one_way: Option<OneWayDelays>,
}

/// What a shaper counted since the event before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShaperCounters {
    /// Bytes that came to it. Before the download's shaper this is what the line carried.
    pub arrived: u64,
    /// Bytes that it sent.
    pub sent: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Bytes that wait in it now.
    pub backlog: u64,
}

/// What a controller hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// The first event: the controller sets the rates to begin with.
    Start,
    /// A probe came back.
    ProbeReply(ProbeReply),
    /// No reply to a probe within a second.
    ProbeLost {
        /// The reflector.
        reflector: u16,
        /// When the probe was sent.
        sent: Time,
    },
    /// The shapers' counters, read regularly.
    Counters(PerDirection<ShaperCounters>),
    /// A TCP connection's round trip beyond the shapers, by its timestamps.
    TcpRoundTrip {
        /// The connection, by number.
        flow: u32,
        /// Which way its data go.
        data: RateDirection,
        /// The round trip.
        rtt: Nanos,
    },
    /// So many bytes of uploads were acknowledged.
    Acknowledged(u64),
    /// A segment was sent again.
    Retransmission(RateDirection),
    /// What the line can carry now, bit/s: only yardsticks are told; live it is not known.
    Capacity(PerDirection<u64>),
    /// The time that [`RateController::due`] gave has come.
    Timer,
}

/// Why a rate was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControlReason {
    /// The rate to begin with.
    Begin,
    /// It never changes.
    Fixed,
    /// The capacity is known.
    Known,
    /// The load is high, and delay is low.
    LoadHigh,
    /// Delay is above its threshold.
    DelayHigh,
    /// Delay is above its threshold, but the load is low.
    DelayWithoutLoad,
    /// The load is low: back towards the base rate.
    LoadLow,
    /// Nothing came back for too long.
    NoReplies,
    /// A queue waits behind the shaper: the rate goes below the capacity until it is drained.
    Draining,
    /// The queue behind the shaper is drained: back to what the line carried.
    Drained,
    /// The line carries nothing, as in a handover.
    Silence,
    /// The line carries again.
    Resumed,
    /// Slower did not lower the delay: the path became longer.
    PathLonger,
    /// The path seemed longer: is it?
    Check,
    /// The delay differs from the one that is wanted: by how much, for how long, and how fast it changes.
    Error,
    /// A program in another language decided, and gave no reason.
    Program,
}

impl ControlReason {
    /// All of them.
    pub const ALL: [ControlReason; 16] = [
        ControlReason::Begin,
        ControlReason::Fixed,
        ControlReason::Known,
        ControlReason::LoadHigh,
        ControlReason::DelayHigh,
        ControlReason::DelayWithoutLoad,
        ControlReason::LoadLow,
        ControlReason::NoReplies,
        ControlReason::Draining,
        ControlReason::Drained,
        ControlReason::Silence,
        ControlReason::Resumed,
        ControlReason::PathLonger,
        ControlReason::Check,
        ControlReason::Error,
        ControlReason::Program,
    ];

    /// For documents: one word.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            ControlReason::Begin => "begin",
            ControlReason::Fixed => "fixed",
            ControlReason::Known => "known",
            ControlReason::LoadHigh => "load-high",
            ControlReason::DelayHigh => "delay-high",
            ControlReason::DelayWithoutLoad => "delay-without-load",
            ControlReason::LoadLow => "load-low",
            ControlReason::NoReplies => "no-replies",
            ControlReason::Draining => "draining",
            ControlReason::Drained => "drained",
            ControlReason::Silence => "silence",
            ControlReason::Resumed => "resumed",
            ControlReason::PathLonger => "path-longer",
            ControlReason::Check => "check",
            ControlReason::Error => "error",
            ControlReason::Program => "program",
        }
    }

    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            ControlReason::Begin => "the rate to begin with",
            ControlReason::Fixed => "the rate is fixed",
            ControlReason::Known => "the line's capacity is known",
            ControlReason::LoadHigh => "the load is high and the delay low: faster",
            ControlReason::DelayHigh => "the delay is above its threshold: slower",
            ControlReason::DelayWithoutLoad => {
                "the delay is above its threshold without load: the lowest rate"
            }
            ControlReason::LoadLow => "the load is low: towards the base rate",
            ControlReason::NoReplies => "nothing came back for too long: the lowest rate",
            ControlReason::Draining => "a queue waits behind the shaper: slower until it is drained",
            ControlReason::Drained => {
                "the queue behind the shaper is drained: close to what the line carried"
            }
            ControlReason::Silence => "the line carries nothing: wait",
            ControlReason::Resumed => "the line carries again: as before",
            ControlReason::PathLonger => "slower did not lower the delay: the path became longer",
            ControlReason::Check => "the path seems longer: slower for a moment, to see whether it is",
            ControlReason::Error => "the delay is not the one that is wanted: towards it",
            ControlReason::Program => "the program gave no reason",
        }
    }
}

/// A rate to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateDecision {
    /// Of which shaper.
    pub direction: RateDirection,
    /// The rate, bit/s.
    pub bits_per_second: u64,
    /// Why.
    pub reason: ControlReason,
    /// The queueing delay that it was decided by, where it was.
    pub delay: Option<Nanos>,
}

/// A controller of a shaper's rates.
///
/// It is given events in the order of their time, [`ControlEvent::Start`] first. What it answers depends on
/// nothing else.
pub trait RateController {
    /// What users call it.
    fn name(&self) -> &str;

    /// Hears an event, and adds the rates to set to `decisions`.
    fn on_event(&mut self, now: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>);

    /// When it wants a [`ControlEvent::Timer`]; may change with every event.
    fn due(&self) -> Option<Time> {
        None
    }

    /// Does it decide as soon as a reply comes? If not, replies may be given to it just before the counters,
    /// so that its caller need not wake up for each.
    fn decides_by_replies(&self) -> bool {
        true
    }

    /// Chooses between other limits from now on; the base rates stay. A controller whose rates have none
    /// ignores it.
    fn limit(&mut self, limits: RateLimits) {
        let _ = limits;
    }

    /// Does it need to hear [`ControlEvent::Capacity`]? Then it is a yardstick and cannot run live.
    fn knows_capacity(&self) -> bool {
        false
    }
}

/// Between which rates a controller chooses, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Never slower.
    pub least: PerDirection<u64>,
    /// The rate to begin with, and without load.
    pub base: PerDirection<u64>,
    /// Never faster.
    pub most: PerDirection<u64>,
}

/// Where they are not given, the lowest rate is the base rate divided by this, and the highest is so many
/// times as high.
const USUAL_LEAST: u64 = 5;
/// See [`USUAL_LEAST`].
const USUAL_MOST: u64 = 2;

impl RateLimits {
    /// What is assumed where nothing but the base rates is known.
    #[must_use]
    pub fn assumed(base: PerDirection<u64>) -> RateLimits {
        RateLimits {
            least: PerDirection::of(|direction| base[direction] / USUAL_LEAST),
            base,
            most: PerDirection::of(|direction| base[direction].saturating_mul(USUAL_MOST)),
        }
    }

    /// A direction's rate between these limits, the base rate to begin with.
    #[must_use]
    pub fn controlled(&self, direction: RateDirection) -> Controlled {
        Controlled::new(direction, self.base[direction], self.least[direction], self.most[direction])
    }
}

/// A rate within its limits, as controllers keep it: it answers only when the rate changes by 0.1 % or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controlled {
    direction: RateDirection,
    rate: f64,
    set: u64,
    least: f64,
    most: f64,
}

impl Controlled {
    /// A rate to begin with, bit/s, and its limits.
    #[must_use]
    pub fn new(direction: RateDirection, begin: u64, least: u64, most: u64) -> Controlled {
        let (least, most) = (least.max(1) as f64, most.max(least).max(1) as f64);
        Controlled { direction, rate: (begin as f64).clamp(least, most), set: 0, least, most }
    }

    /// The rate, bit/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Gives it other limits; the rate is within them from the next time that it is set.
    pub fn limit(&mut self, least: u64, most: u64) {
        let within = Controlled::new(self.direction, self.set, least, most);
        (self.least, self.most) = (within.least, within.most);
        self.rate = self.rate.clamp(self.least, self.most);
    }

    /// The highest that it may be.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.most
    }

    /// The lowest that it may be.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.least
    }

    /// Sets it, within its limits.
    pub fn set(
        &mut self,
        rate: f64,
        reason: ControlReason,
        delay: Option<Nanos>,
        decisions: &mut Vec<RateDecision>,
    ) {
        if rate.is_finite() {
            self.rate = rate.clamp(self.least, self.most);
        }
        let rounded = (self.rate + 0.5) as u64;
        if rounded.abs_diff(self.set) * 1000 < self.set {
            return;
        }
        self.set = rounded;
        decisions.push(RateDecision { direction: self.direction, bits_per_second: rounded, reason, delay });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_reason_has_words_and_an_id_of_its_own() {
        let words: BTreeSet<_> = ControlReason::ALL.iter().map(|reason| reason.words()).collect();
        let ids: BTreeSet<_> = ControlReason::ALL.iter().map(|reason| reason.id()).collect();
        assert_eq!((words.len(), ids.len()), (ControlReason::ALL.len(), ControlReason::ALL.len()));
    }

    #[test]
    fn a_rate_stays_within_its_limits_and_small_changes_are_not_made() {
        let mut decisions = Vec::new();
        let mut rate = Controlled::new(RateDirection::Up, 1_000_000, 500_000, 2_000_000);
        for wanted in [1_000_000.0, 1_000_100.0, 3e6, 1.0, f64::NAN] {
            rate.set(wanted, ControlReason::LoadHigh, None, &mut decisions);
        }
        let set: Vec<u64> = decisions.iter().map(|decision| decision.bits_per_second).collect();
        assert_eq!(set, [1_000_000, 2_000_000, 500_000]);
        rate.limit(600_000, 700_000);
        rate.set(1.0, ControlReason::LoadHigh, None, &mut decisions);
        rate.set(3e6, ControlReason::LoadHigh, None, &mut decisions);
        let set: Vec<u64> = decisions[3..].iter().map(|decision| decision.bits_per_second).collect();
        assert_eq!(set, [600_000, 700_000]);
    }
}
