//! Rates that never change, and rates that follow a capacity that is known: what controllers are compared
//! with.

use crate::controller::{
    ControlEvent, ControlReason, Controlled, PerDirection, RateController, RateDecision, RateDirection,
};
use alloc::vec::Vec;
use tidegate_packet::Time;

/// Rates that never change.
#[derive(Clone, Copy, Debug)]
pub struct FixedRates {
    rates: PerDirection<u64>,
}

impl FixedRates {
    /// These, bit/s.
    #[must_use]
    pub fn new(rates: PerDirection<u64>) -> FixedRates {
        FixedRates { rates }
    }
}

impl RateController for FixedRates {
    fn name(&self) -> &str {
        "fixed"
    }

    fn on_event(&mut self, _: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>) {
        if *event != ControlEvent::Start {
            return;
        }
        decisions.extend(RateDirection::BOTH.map(|direction| RateDecision {
            direction,
            bits_per_second: self.rates[direction].max(1),
            reason: ControlReason::Fixed,
            delay: None,
        }));
    }
}

/// Follows a capacity that it is told: the yardstick that no controller can reach, because none knows what
/// a line is about to carry.
#[derive(Clone, Copy, Debug)]
pub struct KnownCapacity {
    share: f64,
    rates: PerDirection<Controlled>,
}

impl KnownCapacity {
    /// The rates to begin with, bit/s, and the share of the capacity that is set, above 0 and up to 1.
    #[must_use]
    pub fn new(begin: PerDirection<u64>, least: PerDirection<u64>, share: f64) -> KnownCapacity {
        let rates = PerDirection::of(|direction| {
            Controlled::new(direction, begin[direction], least[direction], u64::MAX >> 12)
        });
        KnownCapacity { share: share.clamp(0.01, 1.0), rates }
    }
}

impl RateController for KnownCapacity {
    fn name(&self) -> &str {
        "known"
    }

    fn on_event(&mut self, _: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>) {
        for direction in RateDirection::BOTH {
            let (rate, reason) = match event {
                ControlEvent::Start => (self.rates[direction].rate(), ControlReason::Begin),
                ControlEvent::Capacity(capacity) => {
                    (self.share * capacity[direction] as f64, ControlReason::Known)
                }
                _ => continue,
            };
            self.rates[direction].set(rate, reason, None, decisions);
        }
    }

    fn knows_capacity(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_capacity_is_followed_and_a_fixed_rate_is_not_changed() {
        let both = |rate| PerDirection { up: rate, down: 10 * rate };
        let mut known = KnownCapacity::new(both(100), both(10), 0.9);
        let mut fixed = FixedRates::new(both(77));
        let mut decisions = Vec::new();
        for event in [ControlEvent::Start, ControlEvent::Capacity(both(1000)), ControlEvent::Timer] {
            known.on_event(Time(0), &event, &mut decisions);
            fixed.on_event(Time(0), &event, &mut decisions);
        }
        let set: Vec<_> = decisions.iter().map(|one| (one.bits_per_second, one.reason.id())).collect();
        let expected =
            [(100, "begin"), (1000, "begin"), (77, "fixed"), (770, "fixed"), (900, "known"), (9000, "known")];
        assert_eq!(set, expected);
        assert!(known.knows_capacity() && !fixed.knows_capacity());
    }
}
